"""not-steady: the measured window is not of one piece, so its mean is the mean of different things."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.format import units
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Series, TrialResult
from loadstone.statistics.steady import steadiness, warm_up_end

NAME = "not-steady"


def check(trial: TrialResult, series: Series, settings: Settings) -> Iterator[Finding]:
    """A trend or a change of level in throughput."""
    rates = series.whole_rates
    found = steadiness(rates, settings.threshold(NAME, "effect"), settings.threshold(NAME, "alpha"))
    if found.steady:
        return
    parts = []
    if "trend" in found.reasons:
        verb = "rises" if found.trend_share > 0 else "falls"
        parts.append(f"{verb} by {units.percent(abs(of_start(found.trend_share)))} over the window")
    if "change" in found.reasons and found.change_at is not None:
        verb = "rises" if found.change_share > 0 else "falls"
        at = series.start_seconds[found.change_at]
        share = of_before(found.change_share, found.change_at / len(rates))
        parts.append(f"{verb} by {units.percent(abs(share))} at {at:.3g} s")
    hint = warm_up_hint(series) or "warm up longer, measure longer, or let the store settle before"
    yield Finding(NAME, Severity.SUSPECT, f"throughput {' and '.join(parts)}", hint, (trial.trial,))


def warm_up_hint(series: Series) -> str:
    """How much more warm-up would have left a steady window (MSER-5); nothing if none would."""
    rates = series.whole_rates
    end = warm_up_end(rates)
    if not end or not steadiness(rates[end:]).steady:
        return ""
    return f"{series.start_seconds[end]:.2g} s more of warm-up would have left a steady window (MSER-5)"


def of_start(trend: float) -> float:
    """A trend as a share of where it starts, given as a share of the mean: from 1.5 to 0.5 it falls by two thirds."""
    start = 1 - trend / 2
    return trend / start if start > 0 else trend


def of_before(step: float, part: float) -> float:
    """A step as a share of the level before it, given as a share of the mean; it comes after `part` of the window."""
    before = 1 - step * (1 - part)
    return step / before if before > 0 else step


def compiling(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """A JVM that still compiles what it runs."""
    share = trial.fact("jvm_compiling")
    if share is not None and share > settings.threshold(NAME, "compiling"):
        message = f"the JVM still compiled during {units.percent(share)} of the window"
        yield Finding(NAME, Severity.SUSPECT, message, "warm up longer", (trial.trial,))
