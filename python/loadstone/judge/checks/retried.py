"""retried: a trial succeeded only after earlier attempts at it had failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Literal

from loadstone.format import units
from loadstone.judge.finding import Finding, Looks, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.comparison import ALPHA

NAME = "retried"
HINT = "find out why it failed: a system that fails one time in two does not hold its load every other time"


def check(trial: TrialResult, _: Settings) -> Looks:
    """The attempts at a trial that failed before this one."""
    if trial.failures:
        attempts = units.many(len(trial.failures), "earlier attempt")
        message = f"{attempts} at this trial failed, the last: {trial.failures[-1]}"
        yield Finding(NAME, Severity.SUSPECT, message, HINT, (trial.trial,))


def failures(trials: Iterable[TrialResult]) -> int:
    """How many attempts at these trials failed, those without a success after them included."""
    return sum(len(trial.failures) + trial.failed for trial in trials)


def turns(worse: Sequence[float], better: Sequence[float], failed: tuple[int, int], worst: float) -> bool:
    """Whether a claim that `better` beats `worse` falls when failed attempts count as the worst possible figure.

    `failed` counts those of each side, and `worst` is 0 where more is better, else infinity. The claim falls when the
    medians swap, or when a rank test (Mann and Whitney, Ann. Math. Statist. 18, 1947), which can take
    infinities, finds a difference without the failures but not with them.
    """
    # Imported late: it takes nearly a second of processor time, and few trials have failed.
    from scipy.stats import mannwhitneyu

    with_worse, with_better = [*worse, *[worst] * failed[0]], [*better, *[worst] * failed[1]]
    more: Literal["greater", "less"] = "greater" if worst == 0 else "less"
    low, high = median(with_worse), median(with_better)
    if low == high or (high > low) != (worst == 0):
        return True
    apart = mannwhitneyu(better, worse, alternative=more).pvalue < ALPHA / 2
    return bool(apart and mannwhitneyu(with_better, with_worse, alternative=more).pvalue >= ALPHA / 2)
