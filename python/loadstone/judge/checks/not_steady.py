"""not-steady: the measured window is not of one piece, so its mean is the mean of different things."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

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
        # The ends of the fitted line; throughput does not go below 0.
        ends = [max(found.level * (1 + side * found.trend_share / 2), 0.0) for side in (-1, 1)]
        parts.append(f"{moves(*ends)} over the window")
    if "change" in found.reasons and (at := found.change_at) is not None:
        parts.append(f"{moves(median(rates[:at]), median(rates[at:]))} at {series.start_seconds[at]:.3g} s")
    hint = warm_up_hint(series) or "warm up longer, measure longer, or let the store settle before"
    yield Finding(NAME, Severity.SUSPECT, f"throughput {' and '.join(parts)}", hint, (trial.trial,))


def warm_up_hint(series: Series) -> str:
    """How much more warm-up would have left a steady window (MSER-5); nothing if none would."""
    rates = series.whole_rates
    end = warm_up_end(rates)
    if not end or not steadiness(rates[end:]).steady:
        return ""
    return f"{series.start_seconds[end]:.2g} s more of warm-up would have left a steady window (MSER-5)"


def moves(first: float, last: float) -> str:
    """From which level to which: `falls from 12,000 to 9,000 op/s`."""
    # A level is no better known than to three digits.
    shown = [float(f"{level:.3g}") for level in (first, last)]
    return f"{'rises' if last > first else 'falls'} from {units.plain(shown[0])} to {units.rate(shown[1])}"


def compiling(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """A JVM that still compiles what it runs."""
    share = trial.fact("jvm_compiling")
    if share is not None and share > settings.threshold(NAME, "compiling"):
        message = f"the JVM still compiled during {units.percent(share)} of the window"
        yield Finding(NAME, Severity.SUSPECT, message, "warm up longer", (trial.trial,))
