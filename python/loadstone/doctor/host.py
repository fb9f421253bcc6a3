"""Checks of the host: its memory, its processors and the space on its disks."""

from __future__ import annotations

from collections.abc import Collection

from loadstone.doctor.check import Check, CheckResult, Machine, State, unknown_result
from loadstone.format import units

SWAPPINESS_MAX = 10
MEMORY_BYTES, MEMORY_LEAST_BYTES = 4_000_000_000, 500_000_000
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
HIDDEN = "not reported by this machine, which may be virtual"
DISK_BYTES, DISK_LEAST_BYTES = 10_000_000_000, 1_000_000_000
# For each directory: the environment variable that sets its location.
VARIABLES = {"data": "TMPDIR", "state": "XDG_STATE_HOME", "cache": "LOADSTONE_CACHE"}
RESULTS = "loadstone run FILE.yaml --results /large/disk"
IN_MEMORY = ("tmpfs", "ramfs")


def check_swap(machine: Machine, _: int) -> CheckResult:
    """Reading swapped-out memory back takes milliseconds."""
    if machine.swap_bytes is None:
        return unknown_result()
    if not machine.swap_bytes:
        return CheckResult("ok", "none")
    used = machine.swap_used_bytes or 0
    text = (
        f"{units.format_size(used)} of {units.format_size(machine.swap_bytes)} in use, swappiness {machine.swappiness}"
    )
    if used:
        return CheckResult("warn", text, "sudo swapoff -a")
    if machine.swappiness is not None and machine.swappiness > SWAPPINESS_MAX:
        return CheckResult("warn", text, "sudo sysctl -w vm.swappiness=1")
    return CheckResult("ok", text)


def huge_pages(machine: Machine, _: int) -> CheckResult:
    """Transparent huge pages are assembled while the load runs."""
    if not machine.huge_pages:
        return unknown_result()
    if machine.huge_pages == "always":
        fix = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        return CheckResult("warn", "always", fix)
    return CheckResult("ok", machine.huge_pages)


def check_memory(machine: Machine, _: int) -> CheckResult:
    """Servers, the load generator and the page cache share the memory."""
    free, whole = machine.memory_available_bytes, machine.memory_bytes
    if free is None:
        return unknown_result()
    text = f"{units.format_size(free)} available" + (f" of {units.format_size(whole)}" if whole is not None else "")
    if free < MEMORY_BYTES:
        state: State = "fail" if free < MEMORY_LEAST_BYTES else "warn"
        return CheckResult(state, text, "ps -eo pid,rss,comm --sort=-rss | head   # then stop some processes")
    return CheckResult("ok", text)


def check_governor(machine: Machine, _: int) -> CheckResult:
    """A processor that saves power is slow to wake up."""
    if not machine.governors:
        return unknown_result(HIDDEN)
    text = ", ".join(machine.governors)
    if machine.governors == ("performance",):
        return CheckResult("ok", text)
    fix = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    return CheckResult("warn", text, fix)


def check_clock(machine: Machine, _: int) -> CheckResult:
    """The engine reads the processor's counter only if the kernel itself does."""
    if not machine.clock_source:
        return unknown_result()
    if machine.clock_source == "tsc" or machine.architecture != "x86_64":
        return CheckResult("ok", machine.clock_source)
    if "tsc" in machine.clock_sources:
        return CheckResult("warn", machine.clock_source, f"echo tsc | sudo tee {CLOCK}")
    text = f"{machine.clock_source}; the kernel does not offer tsc"
    # No command forces tsc, because the load generator would then read a counter that the kernel considers unreliable.
    fix = "sudo dmesg | grep -i tsc   # shows why the kernel rejected it; measure on another host"
    return CheckResult("warn", text, fix)


def check_space(machine: Machine, _: int) -> CheckResult:
    """Loadstone writes to several directories, and a full disk ends a run."""
    known = [directory for directory in machine.directories if directory.free_bytes is not None]
    if not known:
        return unknown_result()
    text = ", ".join(f"{directory.name} {units.format_size(directory.free_bytes or 0)} free" for directory in known)
    short = [directory for directory in known if (directory.free_bytes or 0) < DISK_BYTES]
    if not short:
        return CheckResult("ok", text)
    least = min(directory.free_bytes or 0 for directory in short)
    paths = ", ".join(dict.fromkeys(directory.path for directory in short))
    state: State = "fail" if least < DISK_LEAST_BYTES else "warn"
    return CheckResult(state, f"{text} ({paths})", move_command([directory.name for directory in short]))


def move_command(names: Collection[str]) -> str:
    """The command that moves these directories to another disk."""
    named = " ".join(f"{variable}=/large/disk" for name, variable in VARIABLES.items() if name in names)
    return " && ".join([*([f"export {named}"] if named else []), *([RESULTS] if "results" in names else [])])


def check_device(machine: Machine, _: int) -> CheckResult:
    """Data in memory never reaches a device."""
    directory = next((directory for directory in machine.directories if directory.name == "data"), None)
    if directory is None or not directory.file_system:
        return unknown_result()
    text = f"{directory.path} on {directory.file_system}"
    if directory.file_system in IN_MEMORY:
        return CheckResult("warn", text, move_command(["data"]))
    return CheckResult("ok", text)


CHECKS = (
    Check(
        "swap",
        f"none, or unused with `vm.swappiness` at most {SWAPPINESS_MAX}",
        "reading swapped-out memory back takes milliseconds: percentiles then show the swap device, not the store",
        check_swap,
    ),
    Check(
        "huge pages",
        "transparent huge pages `madvise` or `never`",
        "with `always`, the kernel stops processes to assemble pages; Redis and MongoDB also warn about this",
        huge_pages,
    ),
    Check(
        "memory",
        f"{units.format_size(MEMORY_BYTES)} available",
        "servers use 1 to 2 GB each; with too little, the kernel reclaims memory during a trial or kills a process",
        check_memory,
    ),
    Check(
        "CPU governor",
        "`performance`",
        "other governors lower the frequency between operations, so that a light load looks slow",
        check_governor,
    ),
    Check(
        "clock source",
        "`tsc`",
        "with tsc, the load generator reads the processor's counter; any other clock needs a system call of up to 1 µs",
        check_clock,
    ),
    Check(
        "disk space",
        f"{units.format_size(DISK_BYTES)} free for results, data, servers' state and the cache",
        "a full disk ends a run, and a nearly full disk is slower",
        check_space,
    ),
    Check(
        "data device",
        "the data directory (`TMPDIR`, else /var/tmp) is on a device",
        "in tmpfs, nothing reaches a device: a sync costs nothing, and all data is in memory",
        check_device,
    ),
)
