"""Crafted results on both sides of the thresholds for checks of a set rate."""

from __future__ import annotations

from dataclasses import replace

from judge_support import STEADY, Case, Change, asking, both, experiment, make_series, set_figures
from loadstone.judge.finding import Severity
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult

INVALID = Severity.INVALID
MS = 1e6
CARRIED = (
    "warm-up operations had not completed when the window began; the last of them completed 2.14 s into the window of"
    " 10.0 s"
)


def open_loop(trial: TrialResult) -> TrialResult:
    """The trial with a rate set."""
    return replace(trial, loop="open")


def run_at_rate(*changes: Change) -> ResultSet:
    """Trials at a rate."""
    return experiment(both(open_loop, *changes))


def count_by_statuses(trial: TrialResult) -> TrialResult:
    """Counts by status only. A read-modify-write is counted by its read and update, unless it never completed."""
    statuses = {
        "READ": {"OK": 95_000, "ERROR": 4_000, "CENSORED": 100},
        "READ-MODIFY-WRITE": {"OK": 5_000, "CENSORED": 10},
        "CLEANUP": {"OK": 2},
    }
    return replace(set_figures(errors=0)(trial), statuses=statuses)


def responding(first: float, last: float, *, sway: float = 0.0, loop: bool = True, seconds: float = 1.0) -> ResultSet:
    """Thirty intervals whose median response time, ns, goes from `first` to `last`, alternately ± the share `sway`."""
    line = [first + (last - first) * at / 29 for at in range(30)]
    p50 = tuple(latency * (1 + sway * (-1) ** at) for at, latency in enumerate(line))
    series = replace(make_series(STEADY, length=seconds), p50_ns=p50, p99_ns=(300 * MS,) * 30)
    return experiment(open_loop if loop else None, series=lambda _: series)


def tail_only(_: str) -> Series:
    """The median stays constant and the p99 grows: one shard of many does not keep up."""
    return replace(make_series(STEADY), p50_ns=(MS,) * 30, p99_ns=tuple(10 * MS + 100 * MS * at for at in range(30)))


CASES = [
    Case(
        "carried-over",
        "for a tenth of the window",
        run_at_rate(set_figures(carried=9, carried__max=1e9, runtime=10e9)),
    ),
    Case(
        "carried-over",
        "for longer, at a rate",
        run_at_rate(set_figures(carried=2_557, carried__max=2.14e9, runtime=10e9)),
        INVALID,
        f"2,557 {CARRIED}",
    ),
    Case(
        "carried-over",
        "for longer, in a closed loop",
        experiment(set_figures(carried=4, carried__max=2.14e9, runtime=10e9)),
        Severity.SUSPECT,
        f"4 {CARRIED}",
    ),
    Case("carried-over", "unknown", run_at_rate(set_figures(runtime=10e9))),
    Case("rate-not-held", "one in a thousand never completed", run_at_rate(set_figures(due=100_000, censored=100))),
    Case(
        "rate-not-held",
        "more",
        run_at_rate(set_figures(due=100_000, censored=1_000)),
        INVALID,
        "1 % of the 100,000 operations that were due never completed",
    ),
    Case("rate-not-held", "more, in a closed loop", experiment(set_figures(due=100_000, censored=1_000))),
    Case(
        "rate-not-held",
        "by statuses alone",
        run_at_rate(count_by_statuses),
        INVALID,
        "0.111 % of the 99,110 operations that were due never completed",
    ),
    Case(
        "rate-not-held",
        "more, with a separate threshold",
        replace(
            run_at_rate(set_figures(due=100_000, censored=1_000)),
            question=asking(checks={"rate-not-held": {"censored": 0.01}}),
        ),
    ),
    Case("rate-not-held", "a level response", responding(10 * MS, 10 * MS)),
    Case(
        "rate-not-held",
        "a queue that grows by 50 ms each second",
        responding(10 * MS, 1510 * MS),
        INVALID,
        "the p50 of the response times rises by 1.55 s over the 30 s window, from 243 ms",
    ),
    Case("rate-not-held", "a queue that grows, in a closed loop", responding(10 * MS, 1510 * MS, loop=False)),
    Case("rate-not-held", "a queue that shrinks", responding(1510 * MS, 10 * MS)),
    Case("rate-not-held", "ten times the latency, a thousandth of the window", responding(2 * MS, 20 * MS)),
    Case(
        "rate-not-held",
        "ten times the latency in a window of a tenth",
        responding(2 * MS, 20 * MS, seconds=0.1),
        INVALID,
        "the p50 of the response times rises by 18.6 ms over the 3 s window, from 4.79 ms",
    ),
    Case("rate-not-held", "a slow system, slower by less than a half", responding(1000 * MS, 1450 * MS)),
    Case("rate-not-held", "a level that oscillates by a half", responding(200 * MS, 200 * MS, sway=0.5)),
    Case(
        "rate-not-held",
        "a tail that grows alone",
        experiment(open_loop, series=tail_only),
        INVALID,
        "the p99 of the response times rises by 3.00 s over the 30 s window, from 460 ms",
    ),
    Case(
        "rate-not-held",
        "too few intervals for a decision",
        experiment(
            open_loop,
            series=lambda _: replace(make_series(STEADY[:17]), p50_ns=tuple(100 * MS * at for at in range(1, 18))),
        ),
    ),
]
