"""stalled: no operation completed for some time."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from loadstone.format import units
from loadstone.judge.checks import too_few_samples
from loadstone.judge.figures import ALL
from loadstone.judge.finding import Finding, Looks, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Series, TrialResult

NAME = "stalled"
P999 = ".p99.9"


def check_stalls(trial: TrialResult, series: Series, settings: Settings) -> Looks:
    """A finding on the longest sequence of intervals in which no operation completed, successfully or not."""
    start, length = longest_silence(series)
    tail = p999_ns(trial, settings)
    percentiles = settings.check_threshold(NAME, "percentiles")
    if (
        length < settings.check_threshold(NAME, "seconds")
        or length == 0
        or (tail and length * 1e9 < percentiles * tail)
    ):
        return
    beyond = f" ({length * 1e9 / tail:,.0f} times the p99.9)" if tail else ""
    silence = units.format_duration(length * 1e9)
    message = f"no operation completed for {silence}{beyond}, starting {start:g} s into the window"
    hint = "find out what the system and its hosts did at that time: compaction, garbage collection, a lost node"
    yield Finding(NAME, Severity.SUSPECT, message, hint, (trial.trial,), size=length)


def check_slowest(trial: TrialResult, settings: Settings) -> Looks:
    """Without a time series: a finding if one operation took a large part of the run, as happens in a stall."""
    tail, runtime = p999_ns(trial, settings), trial.value("runtime")
    measured = ((metric, value) for metric, value in trial.values.items() if not metric.startswith("load."))
    slowest = max((value.value for metric, value in measured if metric.endswith(".max")), default=0.0)
    share = slowest / runtime if runtime else 0.0
    if (
        slowest < settings.check_threshold(NAME, "seconds") * 1e9
        or share < settings.check_threshold(NAME, "share")
        or (tail and slowest < settings.check_threshold(NAME, "percentiles") * tail)
    ):
        return
    length, part = units.format_duration(slowest), units.format_percent(share)
    message = f"the slowest operation took {length}, {part} of the run, and there is no time series"
    hint = "the system may have stopped: measure with a time series (`-s` in YCSB), and see the system's log"
    yield Finding(NAME, Severity.SUSPECT, message, hint, (trial.trial,), size=slowest / 1e9)


def longest_silence(series: Series) -> tuple[float, float]:
    """The start and the length of the longest silence, in seconds."""
    # Failures are counted at their due time, which can be long before they occurred.
    ended = series.ended or series.failed or (0,) * len(series.throughput)
    busy = (bool(rate or other) for rate, other in zip(series.throughput, ended, strict=True))
    spans = groupby(zip(series.start_seconds, series.length_seconds, busy, strict=True), key=itemgetter(2))
    idle = [list(intervals) for some, intervals in spans if not some]
    silences = ((intervals[0][0], sum(length for _, length, _ in intervals)) for intervals in idle)
    return max(silences, key=itemgetter(1), default=(0.0, 0.0))


def p999_ns(trial: TrialResult, settings: Settings) -> float | None:
    """The p99.9 of all operations, or of the slowest type; None with too few operations, as the p99.9 would then be
    the length of the stall."""
    beyond = settings.check_threshold(too_few_samples.NAME, "beyond")
    known = {
        metric: value.value
        for metric, value in trial.values.items()
        if metric.endswith(P999)
        and not metric.startswith("load.")
        and not too_few_samples.has_few_samples(value.n, metric, beyond)
    }
    return known.get(f"{ALL}{P999}", max(known.values(), default=None))
