"""stalled: for a while no operation ended."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.format import units
from loadstone.judge.checks import too_few_samples
from loadstone.judge.figures import ALL
from loadstone.judge.finding import Finding, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Series, TrialResult

NAME = "stalled"
P999 = ".p99.9"


def check(trial: TrialResult, series: Series, settings: Settings) -> Iterator[Finding | NotLooked]:
    """The longest run of intervals in which no operation ended, successfully or not."""
    start, length = longest_silence(series)
    tail = p999_ns(trial, settings)
    percentiles = settings.threshold(NAME, "percentiles")
    if length < settings.threshold(NAME, "seconds") or length == 0 or (tail and length * 1e9 < percentiles * tail):
        return
    beyond = f", {length * 1e9 / tail:,.0f} times the p99.9" if tail else ""
    yield Finding(
        NAME,
        Severity.SUSPECT,
        f"no operation ended for {units.duration(length * 1e9)}, from {start:g} s on{beyond}",
        "find out what the system and its hosts did then: compaction, garbage collection, a node that left",
        (trial.trial,),
    )


def longest_silence(series: Series) -> tuple[float, float]:
    """Start and length of the longest, in seconds."""
    best, start, length = (0.0, 0.0), 0.0, 0.0
    # Failures are counted where they were due, which can be long before they ended.
    ended = series.ended or series.failed or (0,) * len(series.throughput)
    for at, each, rate, other in zip(
        series.start_seconds, series.length_seconds, series.throughput, ended, strict=True
    ):
        if rate or other:
            length = 0.0
            continue
        start = start if length else at
        length += each
        if length > best[1]:
            best = (start, length)
    return best


def p999_ns(trial: TrialResult, settings: Settings) -> float | None:
    """The p99.9 of all operations, else that of the slowest kind; with too few operations it is the stall itself."""
    beyond = settings.threshold(too_few_samples.NAME, "beyond")
    known = {
        metric: value.value
        for metric, value in trial.values.items()
        if metric.endswith(P999) and not metric.startswith("load.") and not too_few_samples.few(value.n, metric, beyond)
    }
    return known.get(f"{ALL}{P999}", max(known.values(), default=None))
