"""Units as people write them, and the base units that they are multiples of."""

from __future__ import annotations

# Case-insensitive: MS never means megaseconds.
TIMES = {
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), 1.0),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microseconds"), 1e3),
    **dict.fromkeys(("ms", "msec", "milliseconds"), 1e6),
    **dict.fromkeys(("s", "sec", "seconds"), 1e9),
}
RATES = {
    **dict.fromkeys(("op/s", "ops/s", "op/sec", "ops/sec", "ops", "iops", "req/s", "requests/s", "tx/s", "row/s"), 1.0),
    **dict.fromkeys(("kop/s", "kops/s", "kiops"), 1e3),
    **dict.fromkeys(("mop/s", "mops/s"), 1e6),
}
COUNTS = dict.fromkeys(("operations", "op", "count"), 1.0)
SHARES = {"share": 1.0, "ratio": 1.0, "1": 1.0, "%": 0.01, "percent": 0.01}
# Case-sensitive: MB is a million bytes, Mb a million bits, MiB 2^20 bytes.
SIZES = {
    "B": 1.0,
    **{f"{prefix}B": 1000.0**power for power, prefix in enumerate("kMGT", 1)},
    "KB": 1e3,
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGT", 1)},
}
BITS = {
    f"{prefix}{bit}": factor / 8
    for prefix, factor in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9))
    for bit in ("bit", "b")
}
KNOWN = (
    "ns, us, ms, s, op/s, kop/s, B, kB, MB, GB, KiB, MiB, GiB, B/s, MB/s, MiB/s, Mbit/s, Gbit/s, operations, %, share"
)


def base(unit: str) -> tuple[float, str]:
    """The factor to the base unit, and the base unit. Raises ValueError for an unknown unit."""
    unit = unit.strip()
    for table, name in ((TIMES, "ns"), (RATES, "op/s"), (COUNTS, "operations"), (SHARES, "share")):
        if unit.lower() in table:
            return table[unit.lower()], name
    if unit in SIZES:
        return SIZES[unit], "B"
    size = unit.removesuffix("/s") if unit.endswith("/s") else unit.removesuffix("/sec")
    if size != unit and size in SIZES:
        return SIZES[size], "B/s"
    if unit.endswith("bps") and f"{unit[:-3]}bit" in BITS:
        return BITS[f"{unit[:-3]}bit"], "B/s"
    if size != unit and size in BITS:
        return BITS[size], "B/s"
    raise ValueError(f'unknown unit "{unit[:40]}"')
