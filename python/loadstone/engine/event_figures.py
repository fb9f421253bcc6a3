"""Figures computed from the fields of an event; the generated types of `event_types` inherit them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadstone.engine.event_types import Reached

# Statuses of operations that did not fail. WELL: success (for a buffered write, its acceptance: the final flush
# proves that it was written). NOT_YET: the record was still being written when it was read, so the operation cannot
# be judged. CENSORED, only in a summary: the operation never completed, and only a lower bound of its latency is known.
WELL = frozenset({"OK", "BATCHED_OK"})
NOT_YET = "NOT_YET"
CENSORED = "CENSORED"


class OutcomeFigures:
    """Properties that `Outcome` inherits."""

    status: str

    @property
    def is_failure(self) -> bool:
        """Whether these operations failed."""
        return self.status not in WELL and self.status not in (NOT_YET, CENSORED)


class FilesFigures:
    """Properties that `Files` inherits."""

    returned: Reached
    flushed: Reached
    durable: Reached
    closed: Reached

    @property
    def guarantees(self) -> dict[str, Reached]:
        """The guarantees of a write, with the weakest first."""
        return {"returned": self.returned, "flushed": self.flushed, "durable": self.durable, "closed": self.closed}


class SummaryFigures:
    """Properties that `Summary` inherits."""

    operations: int
    succeeded: int
    not_yet: int
    in_flight: int
    unsent: int
    completed: int
    measured_ns: int

    @property
    def failures(self) -> int:
        """The number of failed operations. A read of a record whose insert or delete was in flight does not count."""
        return self.operations - self.succeeded - self.not_yet

    @property
    def never_ended(self) -> int:
        """The number of operations that never completed: they were sent but not answered, or never sent."""
        return self.in_flight + self.unsent

    @property
    def throughput(self) -> float:
        """Successful operations per second of the measured window."""
        return self.completed * 1e9 / self.measured_ns if self.measured_ns else 0.0
