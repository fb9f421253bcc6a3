"""The processor: how fast it runs, and by which clock."""

from __future__ import annotations

from loadstone.doctor.check import Check, Seen, unknown
from loadstone.doctor.machine import Machine

CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
HIDDEN = "not told by this machine, which may be virtual"


def governor(machine: Machine, _: int) -> Seen:
    """A processor that saves power wakes up slowly."""
    if not machine.governors:
        return unknown(HIDDEN)
    found = ", ".join(machine.governors)
    if machine.governors == ("performance",):
        return Seen("ok", found)
    fix = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    return Seen("warn", found, fix)


def turbo(machine: Machine, _: int) -> Seen:
    """A processor that is faster while it is cool measures its own temperature."""
    if machine.turbo is None:
        return unknown(HIDDEN)
    if not machine.turbo:
        return Seen("ok", "off")
    path, off = machine.turbo_switch
    return Seen("warn", "on", f"echo {off} | sudo tee {path}")


def clock(machine: Machine, _: int) -> Seen:
    """The engine reads the processor's counter only where the kernel itself does."""
    if not machine.clock_source:
        return unknown()
    if machine.clock_source == "tsc" or machine.architecture != "x86_64":
        return Seen("ok", machine.clock_source)
    if "tsc" in machine.clock_sources:
        return Seen("warn", machine.clock_source, f"echo tsc | sudo tee {CLOCK}")
    found = f"{machine.clock_source}; the kernel does not offer tsc"
    # Not forced: that takes away the kernel's own doubt, and the engine would read a counter that the kernel distrusts.
    fix = "sudo dmesg | grep -i tsc   # says why the kernel gave it up; measure on another host"
    return Seen("warn", found, fix)


CHECKS = (
    Check(
        "CPU governor",
        "`performance`",
        "others lower the frequency between operations, so that a light load looks slow",
        governor,
    ),
    Check(
        "turbo",
        "off",
        "its frequency depends on temperature and on how many cores are busy: the first repeats are faster",
        turbo,
    ),
    Check(
        "clock source",
        "`tsc`",
        "with it the engine reads the processor's counter; any other clock is a call into the kernel, up to 1 µs each",
        clock,
    ),
)
