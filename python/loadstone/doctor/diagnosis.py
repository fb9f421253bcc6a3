"""All checks, and their results on a machine: as diagnoses, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadstone.doctor import faults, host, limits, software
from loadstone.doctor.check import Check, Diagnosis, Machine

# The number of clients in Loadstone's largest tests.
CLIENTS = 10_000
CHECKS: tuple[Check, ...] = (*limits.CHECKS, *host.CHECKS, *software.CHECKS, *faults.CHECKS)


def examine_machine(machine: Machine, clients: int = CLIENTS) -> list[Diagnosis]:
    """The diagnoses of all checks, in order."""
    return [Diagnosis(check, check.look(machine, clients)) for check in CHECKS]


def is_fit(found: Sequence[Diagnosis]) -> bool:
    """Whether nothing fails."""
    return all(each.seen.state != "fail" for each in found)


def render_report(found: Sequence[Diagnosis]) -> str:
    """A line for each check, then the fixes; without a final newline."""
    width = max(len(each.check.name) for each in found)
    lines = [f"{each.seen.state:<4}  {each.check.name:<{width}}  {each.seen.found}" for each in found]
    todo = [each for each in found if each.seen.fix]
    if todo:
        lines += ["", "to do:"]
    for each in sorted(todo, key=lambda each: each.seen.state != "fail"):
        lines += [f"  {each.check.name}: {each.check.why}", f"    {each.seen.fix}"]
    return "\n".join(lines)


def report_document(found: Sequence[Diagnosis], clients: int) -> dict[str, Any]:
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
    return {"clients": clients, "fit": is_fit(found), "checks": checks}
