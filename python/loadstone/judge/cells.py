"""Cells: each metric of each variant over its repeats, computed on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from loadstone.judge.checks.impossible import PERCENTILES_OF
from loadstone.judge.checks.too_few_samples import NAME, few
from loadstone.judge.figures import family, percentile
from loadstone.judge.judgement import Cell, VariantKey
from loadstone.judge.settings import Own, Settings
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value
from loadstone.statistics.centre import summary
from loadstone.statistics.estimate import Estimate
from loadstone.statistics.percentile import worst

# The widest bucket of a histogram of three significant digits, as a share of its values: they have 11 bits.
BUCKET = 2.0**-10


class Cells(Mapping[tuple[VariantKey, str], Cell]):
    """By variant and metric. A large experiment has 100,000 of them, of which a report shows a few hundred."""

    def __init__(self, variants: Mapping[VariantKey, list[TrialResult]], own: Own) -> None:
        self._variants = variants
        self._own = own
        self._made: dict[tuple[VariantKey, str], Cell] = {}

    def __getitem__(self, key: tuple[VariantKey, str]) -> Cell:
        if key not in self._made:
            variant, metric = key
            found = [
                (trial.repeat, trial.values[metric]) for trial in self._variants[variant] if metric in trial.values
            ]
            if not found:
                raise KeyError(key)
            samples = tuple((repeat, value.value) for repeat, value in found)
            fewest = min((value.n for _, value in found if value.n), default=0)
            bound = worst([value.bound for _, value in found])
            estimate = summary([value for _, value in samples])
            self._made[key] = Cell(
                variant,
                metric,
                found[0][1].unit,
                # A median of lower bounds is a lower bound; an interval around it would not be one.
                Estimate(estimate.value, estimate.n) if bound else estimate,
                samples,
                withheld(metric, fewest, self._own.of(self._variants[variant][0].trial))
                or derived(metric, self._variants[variant]),
                bound,
                sum(value.bound == bound for _, value in found) if bound else 0,
                max(resolution(value) for _, value in found),
            )
        return self._made[key]

    def __iter__(self) -> Iterator[tuple[VariantKey, str]]:
        return ((variant, metric) for variant, metrics in self._metrics.items() for metric in metrics)

    def __len__(self) -> int:
        return sum(map(len, self._metrics.values()))

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, tuple) or len(key) != 2:
            return False
        variant, metric = key
        return any(metric in trial.values for trial in self._variants.get(variant, ()))

    @cached_property
    def _metrics(self) -> dict[VariantKey, dict[str, None]]:
        return {
            variant: dict.fromkeys(metric for trial in trials for metric in trial.values)
            for variant, trials in self._variants.items()
        }


def resolution(value: Value) -> float:
    """The step in which a figure was read, as a share of it.

    Percentiles are read from histograms, which have three significant digits at best.
    """
    known = value.resolution / value.value if value.value > 0 else 0.0
    return max(known, BUCKET) if percentile(value.metric) is not None else known


def derived(metric: str, trials: Sequence[TrialResult]) -> str:
    """Why a percentile computed from those of several processes is not shown; empty for any other."""
    parts = next((trial.facts[PERCENTILES_OF] for trial in trials if PERCENTILES_OF in trial.facts), None)
    return "" if parts is None or percentile(metric) is None else f"computed from the percentiles of {parts}"


def withheld(metric: str, fewest: int, settings: Settings) -> str:
    """Why a figure that rests on too few operations is not shown; empty where it is."""
    beyond = settings.threshold(NAME, "beyond")
    return (
        f"fewer than {beyond:g} of {fewest:,} operations lie beyond {family(metric)[1]}"
        if few(fewest, metric, beyond)
        else ""
    )
