"""Diagnoses as text, as data, and as the table of the reference page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadstone.doctor.check import Diagnosis
from loadstone.doctor.examination import CHECKS, examine
from loadstone.doctor.machine import Limit, Listener, Machine, Place

# A machine on which nothing is as it should be: its commands are the examples of the page.
WORST = Machine(
    open_files=Limit(1024, 4096),
    processes=Limit(4096, 4096),
    threads_max=192_730,
    pid_max=32_768,
    mappings_max=65_530,
    ephemeral_ports=(55_000, 60_999),
    connections_waiting_max=128,
    handshakes_waiting_max=512,
    listeners=(Listener(6379, "redis-server", 4711),),
    swap_bytes=8_000_000_000,
    swap_used_bytes=100_000_000,
    swappiness=60,
    memory_bytes=2_000_000_000,
    memory_available_bytes=100_000_000,
    governors=("powersave",),
    turbo=True,
    turbo_switch=("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
    huge_pages="always",
    clock_source="hpet",
    clock_sources=("hpet", "tsc"),
    places=(Place("data", "/tmp", 500_000_000, "tmpfs"),),
)


def report(found: Sequence[Diagnosis]) -> str:
    """A line for each check, then what is to be done; without its last line end."""
    width = max(len(each.check.name) for each in found)
    lines = [f"{each.seen.state:<4}  {each.check.name:<{width}}  {each.seen.found}" for each in found]
    todo = [each for each in found if each.seen.fix]
    if todo:
        lines += ["", "to do:"]
    for each in sorted(todo, key=lambda each: each.seen.state != "fail"):
        lines += [f"  {each.check.name}: {each.check.why}", f"    {each.seen.fix}"]
    return "\n".join(lines)


def document(found: Sequence[Diagnosis], clients: int) -> dict[str, Any]:
    """The same as data."""
    checks = [
        {
            "check": each.check.name,
            "state": each.seen.state,
            "found": each.seen.found,
            "wanted": each.check.wanted,
            "why": each.check.why,
            "fix": each.seen.fix or None,
        }
        for each in found
    ]
    return {"clients": clients, "fit": all(each.seen.state != "fail" for each in found), "checks": checks}


def table() -> str:
    """The table of docs/reference/doctor.md."""
    states = {each.check.name: each.seen.state for each in examine(WORST)}
    lines = ["| check | wanted | why | else |", "|---|---|---|---|"]
    for check in CHECKS:
        cells = (check.name, check.wanted, check.why, states[check.name])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
