"""Runs all checks on a machine, and reports the results as diagnoses, text or data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadstone.doctor import faults, host, limits, software
from loadstone.doctor.check import Check, Diagnosis, Machine

# The number of clients in Loadstone's largest tests.
CLIENTS = 10_000
CHECKS: tuple[Check, ...] = (*limits.CHECKS, *host.CHECKS, *software.CHECKS, *faults.CHECKS)


def examine_machine(machine: Machine, clients: int = CLIENTS) -> list[Diagnosis]:
    """Runs all checks, and returns their diagnoses in order."""
    return [Diagnosis(check, check.examine(machine, clients)) for check in CHECKS]


def is_fit(diagnoses: Sequence[Diagnosis]) -> bool:
    """Whether no check fails."""
    return all(diagnosis.result.state != "fail" for diagnosis in diagnoses)


def render_report(diagnoses: Sequence[Diagnosis]) -> str:
    """The report as text: a line for each check, then the fixes; without a final newline."""
    width = max(len(diagnosis.check.name) for diagnosis in diagnoses)
    lines = [
        f"{diagnosis.result.state:<4}  {diagnosis.check.name:<{width}}  {diagnosis.result.text}"
        for diagnosis in diagnoses
    ]
    todo = [diagnosis for diagnosis in diagnoses if diagnosis.result.fix]
    if todo:
        lines += ["", "to do:"]
    for diagnosis in sorted(todo, key=lambda item: item.result.state != "fail"):
        lines += [f"  {diagnosis.check.name}: {diagnosis.check.why}", f"    {diagnosis.result.fix}"]
    return "\n".join(lines)


def report_document(diagnoses: Sequence[Diagnosis], clients: int) -> dict[str, Any]:
    """The report as data."""
    checks = [
        {
            "check": diagnosis.check.name,
            "state": diagnosis.result.state,
            "found": diagnosis.result.text,
            "wanted": diagnosis.check.condition,
            "why": diagnosis.check.why,
            "fix": diagnosis.result.fix or None,
        }
        for diagnosis in diagnoses
    ]
    return {"clients": clients, "fit": is_fit(diagnoses), "checks": checks}
