"""The record of one fault in a trial: its plan, its verified effects, and their instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from loadstone.engine.document import Integer

# The nouns for kinds whose names are not nouns.
NOUNS = {"power": "power cut", "full": "full disk", "slow": "slowdown"}
# The kind of the trial without a fault, and the kinds that end server processes, whose restart takes time and CPU time.
NONE = "none"
ENDING_SERVERS = frozenset({"kill", "stop", "restart", "power"})
# The fact of a fault whose effect was verified only by a user's command, which may be wrong.
VERIFIED_BY = "verified_by"


@dataclass(frozen=True)
class FaultRecord:
    """One fault. Instants are in ns since the start of the measured load; None if the instant was not reached.

    The life of a fault: ordered, held (the effect was verified), lift ordered, lifted (verified), ready (the system
    answers again), settled (no remaining work). A fault that was not verified is treated as if it did not happen.
    """

    # `kill`, `stop`, `pause`, `restart`, `power`, `cut`, `full`, `slow`; `none` in the twin.
    kind: str
    # The names of the servers; `role` is the role from which they were drawn, if any.
    servers: tuple[str, ...]
    # The instants drawn from (seed, repeat).
    planned_at_ns: Integer
    planned_lift_ns: Integer | None = None
    role: str | None = None
    ordered_ns: Integer | None = None
    held_ns: Integer | None = None
    lift_ordered_ns: Integer | None = None
    lifted_ns: Integer | None = None
    ready_ns: Integer | None = None
    # The first instant at which a surviving server considered the victim down.
    detected_ns: Integer | None = None
    # The instant at which the load generator lost its last usable connection to a victim, and the instant at which it
    # was connected to all such victims again.
    unusable_ns: Integer | None = None
    usable_ns: Integer | None = None
    settled_ns: Integer | None = None
    # The reasons why effects could not be verified, keyed by step: `held`, `lifted`, `bystanders`. Empty if all effects
    # were verified.
    unverified: Mapping[str, str] = field(default_factory=dict)
    # Facts at the time when the fault was ordered: the victim's share of the operations, the size of its log, hints …
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    @property
    def is_verified(self) -> bool:
        """Whether the effect was verified; if it was not, the fault is treated as if it did not happen."""
        return self.kind == NONE or (self.held_ns is not None and "held" not in self.unverified)

    def to_json(self) -> dict[str, Any]:
        """The record in values.jsonl."""
        return asdict(self)

    @property
    def noun(self) -> str:
        """The kind as a noun: `power cut`."""
        return NOUNS.get(self.kind, self.kind)

    @property
    def borders_ns(self) -> tuple[int, int | None]:
        """The instants at which the fault and its lift were ordered, ns; the planned instants if nothing was ordered,
        as in the twin (the same trial without the fault). A fault that lasts until the end of the load has no lift."""
        order_ns = self.planned_at_ns if self.ordered_ns is None else self.ordered_ns
        lift_ns = self.planned_lift_ns
        return order_ns, lift_ns if lift_ns is None or self.lift_ordered_ns is None else self.lift_ordered_ns


def borders_of(faults: Sequence[FaultRecord]) -> tuple[int, int | None]:
    """The instants at which the first fault of a trial and the last lift were ordered; without an order, planned.

    Both are in ns. `none` counts only in the twin, which has no other kind. Raises ValueError without faults.
    """
    orders, lifts = zip(*(fault.borders_ns for fault in select_requested(faults) or faults), strict=True)
    return min(orders), max((lift for lift in lifts if lift is not None), default=None)


def select_requested(faults: Sequence[FaultRecord]) -> Sequence[FaultRecord]:
    """The faults of all kinds except `none`."""
    return [fault for fault in faults if fault.kind != NONE]
