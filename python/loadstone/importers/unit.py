"""Units as users write them, and the base units of which they are multiples."""

from __future__ import annotations

# Units whose case is ignored: MS never means megaseconds.
FOLDED = {
    word: (factor, base)
    for names, factor, base in (
        ("ns nsec nanoseconds", 1.0, "ns"),
        ("us µs μs usec microseconds", 1e3, "ns"),
        ("ms msec milliseconds", 1e6, "ns"),
        ("s sec seconds", 1e9, "ns"),
        ("op/s ops/s op/sec ops/sec ops iops req/s requests/s tx/s row/s", 1.0, "op/s"),
        ("kop/s kops/s kiops", 1e3, "op/s"),
        ("mop/s mops/s", 1e6, "op/s"),
        ("operations op count", 1.0, "operations"),
        ("share ratio 1", 1.0, "share"),
        ("% percent", 0.01, "share"),
    )
    for word in names.split()
}
# The case of other units matters: MB is a million bytes, Mb a million bits, MiB 2^20 bytes.
DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
SIZES = {"KB": 1e3, **{f"{prefix}B": factor for prefix, factor in DECIMAL.items()}} | {
    f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGT", 1)
}
BITS = {f"{prefix}{bit}": factor / 8 for prefix, factor in DECIMAL.items() for bit in ("bit", "b")}
SPEEDS = {f"{name}{per}": factor for name, factor in (SIZES | BITS).items() for per in ("/s", "/sec")} | {
    f"{prefix}bps": factor / 8 for prefix, factor in DECIMAL.items()
}
KNOWN = (
    "ns, us, ms, s, op/s, kop/s, B, kB, MB, GB, KiB, MiB, GiB, B/s, MB/s, MiB/s, Mbit/s, Gbit/s, operations, %, share"
)


def base_unit(unit: str) -> tuple[float, str] | None:
    """The factor that converts a unit to its base unit, and the base unit; None for an unknown unit."""
    unit = unit.strip()
    if unit in SIZES:
        return SIZES[unit], "B"
    return (SPEEDS[unit], "B/s") if unit in SPEEDS else FOLDED.get(unit.lower())
