"""Memory: swap, huge pages, how much there is."""

from __future__ import annotations

from loadstone.doctor.check import Check, Seen, unknown
from loadstone.doctor.machine import Machine
from loadstone.format import units

SWAPPINESS_MAX = 10
ENOUGH_BYTES, LEAST_BYTES = 4_000_000_000, 500_000_000


def swap(machine: Machine, _: int) -> Seen:
    """Memory that was swapped out comes back in milliseconds."""
    if machine.swap_bytes is None:
        return unknown()
    if not machine.swap_bytes:
        return Seen("ok", "none")
    used = machine.swap_used_bytes or 0
    found = f"{units.size(used)} of {units.size(machine.swap_bytes)} in use, swappiness {machine.swappiness}"
    if used:
        return Seen("warn", found, "sudo swapoff -a")
    if machine.swappiness is not None and machine.swappiness > SWAPPINESS_MAX:
        return Seen("warn", found, "sudo sysctl -w vm.swappiness=1")
    return Seen("ok", found)


def huge_pages(machine: Machine, _: int) -> Seen:
    """Huge pages given unasked are put together while the load runs."""
    if not machine.huge_pages:
        return unknown()
    if machine.huge_pages == "always":
        fix = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        return Seen("warn", "always", fix)
    return Seen("ok", machine.huge_pages)


def enough(machine: Machine, _: int) -> Seen:
    """Servers, engine and page cache share it."""
    free, whole = machine.memory_available_bytes, machine.memory_bytes
    if free is None:
        return unknown()
    found = f"{units.size(free)} available" + (f" of {units.size(whole)}" if whole is not None else "")
    if free < ENOUGH_BYTES:
        return Seen(
            "fail" if free < LEAST_BYTES else "warn", found, "ps -eo pid,rss,comm --sort=-rss | head   # end some"
        )
    return Seen("ok", found)


CHECKS = (
    Check(
        "swap",
        f"none, or unused with `vm.swappiness` at most {SWAPPINESS_MAX}",
        "memory that was swapped out comes back in milliseconds: a percentile of the swap, not of the store",
        swap,
    ),
    Check(
        "huge pages",
        "transparent huge pages `madvise` or `never`",
        "with `always` the kernel stops processes to put pages together; Redis and MongoDB warn of it themselves",
        huge_pages,
    ),
    Check(
        "memory",
        f"{units.size(ENOUGH_BYTES)} available",
        "servers take 1 to 2 GB each; what is short makes the kernel reclaim in the middle of a trial, or kill",
        enough,
    ),
)
