"""What the kernel counts of the whole host: processors, memory, network, pressure."""

from __future__ import annotations

import os
from pathlib import Path

from loadstone.observe.kernel_file import PROC, fields, text, whole

# Columns of a processor in /proc/stat, in ticks (proc(5)); the two after them are counted in user and nice already.
PROCESSOR = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# Ticks in the order of PROCESSOR.
Ticks = tuple[int, ...]
# Names of ours for lines of /proc/meminfo, in bytes.
MEMORY = {
    "total": "MemTotal",
    "free": "MemFree",
    "available": "MemAvailable",
    "buffers": "Buffers",
    "cached": "Cached",
    "shared": "Shmem",
    "dirty": "Dirty",
    "writeback": "Writeback",
    "swap_total": "SwapTotal",
    "swap_free": "SwapFree",
}


def processors(proc: Path = PROC) -> dict[str, Ticks]:
    """Ticks of all processors together (`cpu`) and of each (`cpu0`), which vanish while they are offline."""
    found: dict[str, Ticks] = {}
    for line in text(proc / "stat").splitlines():
        if not line.startswith("cpu"):
            break
        name, *words = line.split()
        ticks = [whole(word) for word in words[: len(PROCESSOR)]]
        # Kernels before 2.6.11 and some imitations of Linux leave columns out at the end.
        if len(ticks) >= 4 and None not in ticks:
            found[name] = tuple(tick or 0 for tick in ticks) + (0,) * (len(PROCESSOR) - len(ticks))
    return found


def memory(proc: Path = PROC) -> dict[str, int]:
    """Bytes by the names of MEMORY, as far as the kernel tells."""
    found = fields(text(proc / "meminfo"))
    return {name: found[line] for name, line in MEMORY.items() if line in found}


def network(proc: Path = PROC) -> dict[str, tuple[int, int]]:
    """Bytes received and sent by interface, the loopback (`lo`) included."""
    found: dict[str, tuple[int, int]] = {}
    for line in text(proc / "net/dev").splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and len(words) >= 9:
            received, sent = whole(words[0]), whole(words[8])
            # Interfaces that never saw a byte are many on container hosts, and say nothing.
            if received is not None and sent is not None and received + sent > 0:
                found[name.strip()] = (received, sent)
    return found


def pressure(proc: Path = PROC) -> dict[str, tuple[int, int]]:
    """µs in which some, and all, tasks waited for `cpu`, `io`, `memory` (Documentation/accounting/psi)."""
    found: dict[str, tuple[int, int]] = {}
    for name in ("cpu", "io", "memory"):
        totals = {}
        for line in text(proc / "pressure" / name).splitlines():
            kind, *words = line.split()
            totals[kind] = next((whole(word[6:]) for word in words if word.startswith("total=")), None)
        # Kernels before 5.13 have no `full` for the processors.
        if (some := totals.get("some")) is not None:
            found[name] = (some, totals.get("full") or 0)
    return found
