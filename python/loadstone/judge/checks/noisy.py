"""noisy: the interval is wider than requested, even after all allowed repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadstone.format import units
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.estimate import Estimate

NAME = "noisy"


def check_noise(
    trials: Sequence[TrialResult], estimate: Estimate, metric: str, until: float, settings: Settings
) -> Iterator[Finding]:
    """Compares the interval of a variant's figure with the requested width, after the last allowed repeat."""
    width, last = estimate.relative_width, settings.at_most or settings.at_least
    if width is None or len(trials) < last or width <= until:
        return
    wide = f"is {units.format_percent(width)} wide after {units.count_noun(estimate.n, 'repeat')}"
    message = f"the interval of {metric} {wide}, not {units.format_percent(until)} as requested"
    hint = "allow more repeats, measure longer, or find out what disturbs the trials: see their findings"
    yield Finding(NAME, Severity.SUSPECT, message, hint, tuple(trial.trial for trial in trials), metric)
