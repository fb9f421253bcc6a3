"""Invariants of a trial's summary, and its tail computed from the log of the server."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from loadstone.engine.events import CENSORED, WELL, Counts, Earlier, Interval, Outcome, Ready, Summary
from loadstone.engine.histogram import Histogram, decode_histogram
from loadstone.runner.engine_figures import group_by_operation
from loadstone.statistics.percentile import Percentile
from scripted_relay import Relay, Scripted
from trial_support import READS, Running, rate, spec, work

# The uncertainty of the wall clock, ns: it is read twice, far apart, and may be corrected between the readings.
CLOCKS_NS = 1_000_000
# The time for a ready engine to receive its start time.
HEADWAY_NS = 500_000_000
CLIENTS, PER_SECOND, SECONDS = 4, 500, 2
DUE = PER_SECOND * SECONDS
# The number of operations that may be claimed but not sent, or between two states, when an outage starts or ends.
SLACK = 10


def sums(summary: Summary, intervals: list[Interval], due: int) -> None:
    """Checks that every due operation is ended, unanswered or unsent, in total and in each interval."""
    assert summary.due == due == summary.operations + summary.in_flight + summary.unsent
    assert [interval.k for interval in intervals] == list(range(len(intervals)))
    assert sum(interval.due or 0 for interval in intervals) == due
    parts: list[Interval | Earlier] = [*intervals, *(more for interval in intervals for more in interval.earlier)]
    ended = dict.fromkeys((interval.k for interval in intervals), 0)
    for part in parts:
        ended[part.k] += part.good + part.late + part.failed + part.not_yet
    assert sum(ended.values()) == summary.operations
    assert all(ended[interval.k] <= (interval.due or 0) for interval in intervals)
    if not summary.in_flight + summary.unsent:
        assert ended == {interval.k: interval.due for interval in intervals}
    # Operations from the warm-up's backlog do not count as throughput of this window.
    within = sum(part.completed for part in parts)
    assert summary.completed == min(within, due - summary.failures - summary.not_yet)
    censored = sum(interval.count for interval in summary.outcomes if interval.status == "CENSORED")
    assert censored == summary.in_flight + summary.unsent


def failures_by_interval(intervals: list[Interval]) -> Counter[int]:
    """Failed operations by the interval in which they were due, later additions included."""
    failures: Counter[int] = Counter()
    for interval in intervals:
        parts: tuple[Counts, ...] = (interval, *interval.earlier)
        for part in parts:
            failures[part.k] += part.failed
    return failures


def check_refusals(
    summary: Summary, intervals: list[Interval], server: Scripted, clients: int, share: float, *, logs_in: bool
) -> None:
    """Checks that operations due while the port was closed failed, and that none failed after the first success.

    A host that takes the processors away moves operations past the outage; the engine counts them as late, or
    as incomplete. `share` is the permitted share of missing failures. If a client logs in after the outage, the login
    time is bounded by the first success and not by a clock.
    """
    assert server.closed is not None
    assert server.reopened is not None
    assert server.listening is not None
    start = (summary.start_unix_ns - unix_less_monotonic_ns()) / 1e9
    begins = [start + interval.start_ns / 1e9 for interval in intervals]
    end = begins[-1] + intervals[-1].length_ns / 1e9
    # The server may answer just after a client's connection was closed.
    back = min((log.received for log in server.log if log.received > server.reopened), default=end)
    predicted = (min(back, end) - server.closed) * PER_SECOND
    late = summary.late_generator + summary.late_client
    late_after = sum(
        interval.late_generator + interval.late_client
        for interval, begin in zip(intervals, begins, strict=True)
        if begin >= back
    )
    assert summary.failures >= (1 - share) * predicted - SLACK - (late - late_after) - summary.never_ended
    if not logs_in:
        assert summary.failures <= (1 + share) * predicted + SLACK + late
    failures = failures_by_interval(intervals)
    after = [interval for interval, begin in zip(intervals, begins, strict=True) if begin >= back]
    resumed = next((interval.k for interval in after if interval.completed), len(intervals))
    assert not any(failures[k] for k in range(resumed + 1, len(intervals)))
    # An operation sent before its connection ended fails with the connection; all other failures were not sent. The
    # server takes 50 ms to end 2,000 connections.
    emptied = server.closed if server.emptied is None else server.emptied
    overdue = sum(
        min(failures[interval.k], (emptied - begin) * PER_SECOND + 1)
        for interval, begin in zip(intervals, begins, strict=True)
        if begin < emptied
    )
    assert 0 <= summary.failures - summary.unreached <= min(clients, overdue + late + SLACK)
    # Two attempts at once, then one every 0.425 to 0.575 s while the port was closed.
    connecting = summary.connection_attempts
    assert connecting is not None
    assert connecting.failed <= (server.listening - server.closed) / 0.425 + 3


def unix_less_monotonic_ns() -> int:
    """The wall clock's lead over the monotonic clock."""
    return time.time_ns() - time.monotonic_ns()


def responses_of(outcomes: Iterable[Outcome]) -> Histogram:
    """Response times of reads; for censored reads, the bounds of their response times."""
    all_of_them = Histogram()
    for outcome in outcomes:
        if outcome.operation == "READ" and outcome.response is not None:
            all_of_them.add_histogram(decode_histogram(outcome.response))
    return all_of_them


def percentiles(summary: Summary, *shares: float) -> list[Percentile]:
    """Percentiles of the response times of all reads."""
    return group_by_operation(summary.outcomes, "response")["read"][0].read_percentiles(shares)


@dataclass(frozen=True)
class Relayed:
    """A trial through a relay whose script began with the trial's window."""

    summary: Summary
    intervals: list[Interval]
    relay: Relay

    @property
    def statuses(self) -> set[str]:
        """The statuses of its operations."""
        return {outcome.status for outcome in self.summary.outcomes if outcome.count} - {CENSORED}

    @property
    def is_broken_failure(self) -> bool:
        """Whether a broken answer counts as failed or unanswered; on a busy machine, possibly no answer was broken."""
        return self.summary.failures + self.summary.in_flight > 0 or self.relay.broken == 0

    def least_ns(self) -> list[float]:
        """The minimum time of each operation according to the relay's log.

        The server answers an operation after its due time. The operation therefore cannot complete before the relay has
        passed on the first answer that arrived after this time.
        """
        answers = sorted((log.received, math.inf if log.answered is None else log.answered) for log in self.relay.log)
        first = [*accumulate((answered for _, answered in reversed(answers)), min, initial=math.inf)][::-1]
        start_ns = self.summary.start_unix_ns - unix_less_monotonic_ns()
        least, behind = [], 0
        for number in range(DUE):
            due_ns = start_ns + number * 1e9 / PER_SECOND
            while behind < len(answers) and answers[behind][0] * 1e9 < due_ns - CLOCKS_NS:
                behind += 1
            least.append(max(first[behind] * 1e9 - due_ns - CLOCKS_NS, 0))
        return least

    def check(self) -> list[float]:
        """Checks that everything due is counted once, and that nothing succeeded sooner than the log allows.

        Returns the minimum times.
        """
        sums(self.summary, self.intervals, DUE)
        least = sorted(self.least_ns())
        ended: list[float] = []
        for outcome in self.summary.outcomes:
            if outcome.operation == "READ" and outcome.status in WELL and outcome.response is not None:
                histogram = decode_histogram(outcome.response)
                for index, count in histogram.counts.items():
                    ended += [histogram.layout.highest_equivalent(index)] * count
        assert len(ended) == self.summary.succeeded
        # Failed and unanswered operations count as endless, as in a percentile.
        endless = [math.inf] * (DUE - len(ended))
        assert all(took >= bound for took, bound in zip(sorted(ended) + endless, least, strict=True))
        return least


def run_relayed(
    program: Path,
    relay: Relay,
    store: dict[str, Any],
    records: int,
    reset_at: float | None = None,
    clients: int = CLIENTS,
) -> Relayed:
    """Reads at a rate well below the store's capacity, for two seconds, through a relay."""
    trial = spec(
        store=store,
        work=work(records=records, insert_count=records, mix=READS),
        clients=clients,
        interval_ms=250,
        pace=rate(PER_SECOND),
        until={"seconds": SECONDS},
        wait_for_start=True,
    )
    with Running(program, trial) as engine:
        while not isinstance(engine.next(), Ready):
            pass
        start_ns = time.time_ns() + HEADWAY_NS
        relay.begin((start_ns - unix_less_monotonic_ns()) / 1e9, reset_at)
        engine.say(json.dumps({"start_at": start_ns}))
        code, events = engine.read_remaining()
    summary = events[-1]
    assert isinstance(summary, Summary)
    assert (code, summary.end, summary.measured_ns) == (0, "done", SECONDS * 10**9), summary.reason
    return Relayed(summary, [event for event in events if isinstance(event, Interval)], relay)
