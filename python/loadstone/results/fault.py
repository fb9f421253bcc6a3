"""The record of one fault in a trial: its plan, its verified effects, and their instants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# The kinds of faults that end server processes. Restarting them takes time, and CPU time of the host.
ENDING_SERVERS = frozenset({"kill", "stop", "restart", "power"})


@dataclass(frozen=True)
class FaultRecord:
    """One fault. Instants are in ns since the start of the measured load; None if the instant was not reached.

    The life of a fault: ordered, held (the effect was verified), lift ordered, lifted (verified), ready (the system
    answers again), settled (no remaining work). A fault that was not verified is treated as if it did not happen.
    """

    # `kill`, `stop`, `pause`, `restart`, `power`, `cut`, `full`, `slow`; `none` is the twin.
    kind: str
    # The names of the servers. If they were drawn from a role, `role` names it.
    servers: tuple[str, ...]
    # The instants drawn from (seed, repeat).
    planned_at_ns: int
    planned_lift_ns: int | None = None
    role: str | None = None
    ordered_ns: int | None = None
    held_ns: int | None = None
    lift_ordered_ns: int | None = None
    lifted_ns: int | None = None
    ready_ns: int | None = None
    # The first instant at which a surviving server considered the victim down.
    detected_ns: int | None = None
    settled_ns: int | None = None
    # The reasons why effects could not be verified, keyed by step: `held`, `lifted`, `bystanders`. Empty if all effects
    # were verified.
    unverified: Mapping[str, str] = field(default_factory=dict)
    # Facts at the time when the fault was ordered: the victim's share of the operations, the size of its log, hints …
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    @property
    def is_verified(self) -> bool:
        """Whether the effect was verified; if it was not, the fault is treated as if it did not happen."""
        return self.kind == "none" or (self.held_ns is not None and "held" not in self.unverified)

    def to_json(self) -> dict[str, Any]:
        """The record in values.jsonl."""
        return asdict(self)
