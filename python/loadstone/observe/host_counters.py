"""Reads the kernel's counters for the whole host: processors, memory, disks, network, pressure."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from loadstone.observe.kernel_file import PROC, parse_fields, read_text

# The columns for a processor in /proc/stat, in ticks (proc(5)). The next two columns are omitted, because user and nice
# already include them.
PROCESSOR = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

# The unit of the kernel's counters, whatever the sector size of the device is.
SECTOR_BYTES = 512
TOTAL = re.compile(r"^(some|full) .*total=(\d+)", re.MULTILINE)

# Ticks in the order of PROCESSOR.
Ticks = tuple[int, ...]
# Read B, written B, discarded B, busy ms, reads.
Disk = tuple[int, int, int, int, int]
# The names in results for lines of /proc/meminfo, which are converted to bytes.
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


def read_processors(proc: Path = PROC) -> dict[str, Ticks]:
    """The ticks of all processors together (`cpu`) and of each online processor (`cpu0`)."""
    processors: dict[str, Ticks] = {}
    for line in read_text(proc / "stat").splitlines():
        if not line.startswith("cpu"):
            break
        name, *fields = line.split()
        with suppress(ValueError):
            ticks = tuple(int(word) for word in fields[: len(PROCESSOR)])
            if len(ticks) == len(PROCESSOR):
                processors[name] = ticks
    return processors


def read_memory(proc: Path = PROC) -> dict[str, int]:
    """The bytes that the kernel reports, keyed by the names in MEMORY."""
    meminfo = parse_fields(read_text(proc / "meminfo"))
    return {name: meminfo[line] for name, line in MEMORY.items() if line in meminfo}


def read_disks(proc: Path = PROC) -> dict[str, Disk]:
    """The counters of every block device, keyed by name: disks, partitions, logical volumes (admin-guide/iostats)."""
    disks: dict[str, Disk] = {}
    for line in read_text(proc / "diskstats").splitlines():
        fields = line.split()
        with suppress(IndexError, ValueError):
            reads, read, written, busy, discarded = (int(fields[at]) for at in (3, 5, 9, 12, 16))
            disks[fields[2]] = (read * SECTOR_BYTES, written * SECTOR_BYTES, discarded * SECTOR_BYTES, busy, reads)
    return disks


def read_network(proc: Path = PROC) -> dict[str, tuple[int, int]]:
    """The bytes received and sent by each interface, including the loopback interface (`lo`)."""
    interfaces: dict[str, tuple[int, int]] = {}
    for line in read_text(proc / "net/dev").splitlines():
        name, _, rest = line.partition(":")
        with suppress(IndexError, ValueError):
            received, sent = (int(rest.split()[at]) for at in (0, 8))
            # Interfaces that never carried a byte are omitted; container hosts have many of them.
            if received + sent > 0:
                interfaces[name.strip()] = (received, sent)
    return interfaces


def read_pressure(proc: Path = PROC) -> dict[str, tuple[int, int]]:
    """The µs during which some or all tasks waited for `cpu`, `io` and `memory` (Documentation/accounting/psi)."""
    pressure: dict[str, tuple[int, int]] = {}
    for name in ("cpu", "io", "memory"):
        totals = dict(TOTAL.findall(read_text(proc / "pressure" / name)))
        # Kernels before 5.13 have no `full` line for processors.
        if "some" in totals:
            pressure[name] = (int(totals["some"]), int(totals.get("full", 0)))
    return pressure
