"""A simulated store with a schedule of faults, and the events that an engine would report for it.

The store is a function of time: an operation that reaches it is answered, refused, held until the store returns,
answered slowly, or never answered. Operations are due at a fixed rate; clients have one operation in flight each.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from loadstone.engine.events import Outcome
from loadstone.engine.histogram import Histogram, Layout, encode_histogram
from loadstone.results.fault import FaultRecord
from loadstone.runner.fault_figures import FaultInterval

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
INTERVAL_NS = 100 * MILLISECOND
SERVICE_NS = 2 * MILLISECOND
REFUSAL_NS = MILLISECOND // 5
LAYOUT = Layout()


@dataclass(frozen=True)
class Span:
    """The store's mode from `start_ns` to `end_ns`:

    `refuse`, `silent`, `pause`, `slow` or `never`. One in `every` operations is affected.
    """

    start_ns: int
    end_ns: int
    mode: str
    every: int = 1


@dataclass(frozen=True)
class Operation:
    """One operation: its due time, its latency since then, and its status; an incomplete operation has no latency."""

    due_ns: int
    response_ns: int | None
    status: str


@dataclass(frozen=True)
class SimulatedStore:
    """Operations at a fixed rate for a time, and spans with a fault."""

    rate: int
    seconds: int
    spans: Sequence[Span] = ()
    clients: int = 1000
    timeout_ns: int = 2 * SECOND
    slow_ns: int = 400 * MILLISECOND
    # Indices of operations that fail although no fault affects them.
    unlucky: frozenset[int] = field(default_factory=frozenset)

    @property
    def end_ns(self) -> int:
        """The end of the measurement."""
        return self.seconds * SECOND

    def mode_at(self, instant_ns: int) -> Span | None:
        """The span that contains an instant."""
        return next((span for span in self.spans if span.start_ns <= instant_ns < span.end_ns), None)

    def span_of(self, number: int, sent_ns: int) -> Span | None:
        """The span that affects an operation."""
        span = self.mode_at(sent_ns)
        return span if span is not None and number % span.every == 0 else None

    def perform(self, number: int, sent_ns: int) -> tuple[int | None, str]:
        """The time at which an operation ends (None: never), and its status."""
        span = self.span_of(number, sent_ns)
        if span is None:
            return sent_ns + SERVICE_NS, "ERROR" if number in self.unlucky else "OK"
        match span.mode:
            case "refuse":
                return sent_ns + REFUSAL_NS, "SERVICE_UNAVAILABLE"
            case "silent":
                return sent_ns + self.timeout_ns, "TIMEOUT"
            case "pause":
                return span.end_ns + SERVICE_NS, "OK"
            case "never":
                return None, "OK"
        return sent_ns + self.slow_ns, "OK"

    def operations(self) -> list[Operation]:
        """Every operation that was due; each is sent when a client is free, in the order of due times."""
        free = [0] * self.clients
        measured = []
        for number in range(self.rate * self.seconds):
            due_ns = number * SECOND // self.rate
            done_ns, status = self.perform(number, max(due_ns, heapq.heappop(free)))
            heapq.heappush(free, 1 << 62 if done_ns is None else done_ns)
            has_ended = done_ns is not None and done_ns < 1 << 61
            measured.append(Operation(due_ns, done_ns - due_ns if has_ended and done_ns is not None else None, status))
        return measured

    def rows(
        self, operations: Sequence[Operation], deadline_ns: int | None = None, *, has_latencies: bool = True
    ) -> list[FaultInterval]:
        """The intervals as an engine reports them; with a deadline, the engine counts late operations."""
        groups: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        due: dict[int, int] = defaultdict(int)
        for operation in operations:
            at = operation.due_ns // INTERVAL_NS
            due[at] += 1
            if operation.response_ns is not None:
                groups[at][operation.status].append(operation.response_ns)
        rows = []
        for at in range(self.end_ns // INTERVAL_NS):
            row = FaultInterval(at * INTERVAL_NS, INTERVAL_NS, due[at])
            for status, latencies in groups[at].items():
                if has_latencies:
                    text = encode_histogram(histogram_of(latencies))
                    count = len(latencies)
                    row.outcomes.append(
                        Outcome(operation="READ", status=status, count=count, service=text, response=text)
                    )
                if status == "OK":
                    late = sum(deadline_ns is not None and latency > deadline_ns for latency in latencies)
                    row.good += len(latencies) - late
                    row.late += late
                else:
                    row.failed += len(latencies)
            rows.append(row)
        return rows


def histogram_of(latencies: Sequence[int]) -> Histogram:
    """Latencies in the buckets of the engine's histograms."""
    histogram = Histogram()
    for latency in latencies:
        histogram.counts[bucket_of(latency)] += 1
    return histogram


@cache
def bucket_of(latency_ns: int) -> int:
    """The bucket of a latency: the first whose highest value is not below the latency."""
    low, high = 0, 1 << 17
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if LAYOUT.highest_equivalent(middle) >= latency_ns else (middle + 1, high)
    return low


def fault(
    order_ns: int,
    lift_ns: int | None,
    kind: str = "kill",
    ready_ns: int | None = None,
    detected_ns: int | None = None,
) -> FaultRecord:
    """A verified fault on the server `node-1`, which begins and ends exactly when ordered."""
    if kind == "none":
        return FaultRecord("none", (), order_ns, lift_ns)
    record = FaultRecord(kind, ("node-1",), order_ns, lift_ns, None, order_ns, order_ns, lift_ns, lift_ns)
    return replace(record, ready_ns=ready_ns, detected_ns=detected_ns)
