"""Collects a trial's intervals into a time series while the trial runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from loadstone.engine.events import COMPOSED, TIMED_STEPS, WELL, Earlier, Interval, Outcome
from loadstone.engine.histogram import Histogram, decode_histogram
from loadstone.results.trial_result import Series


@dataclass
class SeriesInterval:
    """One interval, including its operations that completed later."""

    start_ns: int
    length_ns: int
    due: int | None
    completed: int = 0
    ended: int = 0
    failed: int = 0
    # Encoded latencies of successful operations: response times if there are any, otherwise service times.
    latencies: list[str] = field(default_factory=list)

    def quantiles(self) -> tuple[float | None, float | None]:
        """The p50 and p99 of the latencies, ns."""
        histogram = Histogram()
        for text in self.latencies:
            histogram.add_histogram(decode_histogram(text))
        return (
            (histogram.value_at_quantile(0.5), histogram.value_at_quantile(0.99)) if histogram.count else (None, None)
        )


class SeriesBuilder:
    """Collects a trial's intervals into a time series.

    An operation belongs to the interval in which it was due, but may complete in a later one. Histograms therefore stay
    encoded (a few kB per interval), and are decoded only after the measurement.
    """

    def __init__(self) -> None:
        self._rows: dict[int, SeriesInterval] = {}
        # The engine's largest resident memory at the end of any interval, B; 0 before the first.
        self.memory_max = 0

    def take(self, interval: Interval) -> None:
        """Adds an interval, and adds to earlier intervals the operations that have completed since."""
        self.memory_max = max(self.memory_max, interval.memory_bytes)
        self._rows[interval.k] = SeriesInterval(interval.start_ns, interval.length_ns, interval.due)
        self._add(interval)
        for part in interval.earlier:
            self._add(part)

    def _add(self, part: Interval | Earlier) -> None:
        """Adds operations to their interval."""
        if row := self._rows.get(part.k):
            row.completed += part.completed
            row.ended += part.ended
            row.failed += part.failed
            row.latencies += [latency(outcome) for outcome in part.outcomes if counts(outcome)]

    def series(self) -> Series:
        """All intervals in order, except intervals of length 0."""
        rows = [row for _, row in sorted(self._rows.items()) if row.length_ns]
        quantiles = [row.quantiles() for row in rows]
        due = tuple(row.due for row in rows if row.due is not None)
        return Series(
            start_seconds=tuple(row.start_ns / 1e9 for row in rows),
            length_seconds=tuple(row.length_ns / 1e9 for row in rows),
            throughput=tuple(row.completed * 1e9 / row.length_ns for row in rows),
            p50_ns=tuple(p50 for p50, _ in quantiles),
            p99_ns=tuple(p99 for _, p99 in quantiles),
            failed=tuple(row.failed for row in rows),
            due=due if len(due) == len(rows) else (),
            ended=tuple(row.ended for row in rows),
        )


def add_pauses(series: Series, began_unix_ns: int, pauses: Iterable[tuple[int, int]]) -> Series:
    """Adds the pauses of garbage collectors to a series.

    A pause consists of its end, ns since the epoch, and its length, ns; a pause that spans several intervals is divided
    among them. `began_unix_ns` is the beginning of the measured window.
    """
    starts = [round(start * 1e9) for start in series.start_seconds]
    ends = [start + round(length * 1e9) for start, length in zip(starts, series.length_seconds, strict=True)]
    paused = [0] * len(starts)
    for end_unix_ns, length_ns in pauses:
        end = end_unix_ns - began_unix_ns
        for at, borders in enumerate(zip(starts, ends, strict=True)):
            paused[at] += max(min(end, borders[1]) - max(end - length_ns, borders[0]), 0)
    return replace(series, gc_ns=tuple(paused)) if any(paused) else series


def counts(outcome: Outcome) -> bool:
    """Whether these operations succeeded and are not parts of another operation."""
    return outcome.status in WELL and outcome.count > 0 and outcome.operation not in TIMED_STEPS | COMPOSED


def latency(outcome: Outcome) -> str:
    """The response time, or the service time if there is none, as an encoded histogram."""
    return outcome.service if outcome.response is None else outcome.response
