"""Figures computed from the fields of an event; the generated types of `event_types` inherit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.engine.event_types import Reached

# Statuses of operations that did not fail: the operation succeeded (a buffered write is
# accepted, and proven by the final flush); the record that it read was still being written, so it cannot be judged; or,
# in a summary only, it never ended, and only a lower bound of its latency is known.
WELL = frozenset({"OK", "BATCHED_OK"})
NOT_YET = "NOT_YET"
CENSORED = "CENSORED"


class OutcomeFigures:
    """Of an `Outcome`."""

    status: str

    @property
    def is_failure(self) -> bool:
        """Whether these operations failed."""
        return self.status not in WELL and self.status not in (NOT_YET, CENSORED)


class FilesFigures:
    """Of `Files`."""

    returned: Reached
    flushed: Reached
    durable: Reached
    closed: Reached

    @property
    def guarantees(self) -> dict[str, Reached]:
        """The guarantees of a write, the weakest first."""
        return {"returned": self.returned, "flushed": self.flushed, "durable": self.durable, "closed": self.closed}


class SummaryFigures:
    """Of a `Summary`."""

    operations: int
    succeeded: int
    not_yet: int
    in_flight: int
    unsent: int
    completed: int
    measured_ns: int

    @property
    def failures(self) -> int:
        """Operations that failed; a read of a record whose insert or delete was in progress does not count."""
        return self.operations - self.succeeded - self.not_yet

    @property
    def never_ended(self) -> int:
        """Operations that never ended: sent but not answered, or never sent."""
        return self.in_flight + self.unsent

    @property
    def throughput(self) -> float:
        """Operations that succeeded per second of the measured window."""
        return self.completed * 1e9 / self.measured_ns if self.measured_ns else 0.0
