"""All checks, and what they come to on a machine."""

from __future__ import annotations

from loadstone.doctor import limits, memory, network, processor, software, storage
from loadstone.doctor.check import Check, Diagnosis
from loadstone.doctor.machine import Machine

# What the largest of our own tests takes.
CLIENTS = 10_000
CHECKS: tuple[Check, ...] = (
    *limits.CHECKS,
    *network.CHECKS,
    *memory.CHECKS,
    *processor.CHECKS,
    *storage.CHECKS,
    *software.CHECKS,
)


def examine(machine: Machine, clients: int = CLIENTS) -> list[Diagnosis]:
    """Every check in its order."""
    return [Diagnosis(check, check.look(machine, clients)) for check in CHECKS]


def fit(found: list[Diagnosis]) -> bool:
    """Whether nothing fails."""
    return all(each.seen.state != "fail" for each in found)
