"""Cells: the summaries of one metric over the repeats of one variant, computed on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadstone.format import units
from loadstone.judge.checks.impossible import PERCENTILES_OF
from loadstone.judge.checks.too_few_samples import NAME, has_few_samples
from loadstone.judge.figures import count_failed, parse_percentile, split_metric
from loadstone.judge.judgement import Cell, VariantKey
from loadstone.judge.settings import Own, Settings
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value
from loadstone.statistics.estimate import Estimate
from loadstone.statistics.intervals import summarize_samples
from loadstone.statistics.percentile import Bound, weakest_bound

# The maximum width of a bucket, as a share of its value, in histograms with three significant digits (11 bits).
BUCKET = 2.0**-10


class Cells(Mapping[tuple[VariantKey, str], Cell]):
    """The cells by variant and metric, computed on first access, because a report shows only a few hundred of up to
    100,000 cells."""

    def __init__(self, variants: Mapping[VariantKey, list[TrialResult]], own: Own) -> None:
        self._variants = variants
        self._own = own
        self._trials: dict[tuple[VariantKey, str], list[TrialResult]] = {}
        for key, trials in variants.items():
            for trial in trials:
                for metric in trial.values:
                    self._trials.setdefault((key, metric), []).append(trial)
        self._made: dict[tuple[VariantKey, str], Cell] = {}

    def __getitem__(self, key: tuple[VariantKey, str]) -> Cell:
        if key not in self._made:
            variant, metric = key
            values = [trial.values[metric] for trial in self._trials[key]]
            fewest = min((value.n for value in values if value.n), default=0)
            bounds = [bound_of(trial, metric) for trial in self._trials[key]]
            bound = weakest_bound(bounds)
            estimate = summarize_samples([value.value for value in values])
            self._made[key] = Cell(
                variant,
                metric,
                values[0].unit,
                # The median of lower bounds is also a lower bound, but the interval of these bounds is not an interval
                # of the figure.
                Estimate(estimate.value, estimate.n) if bound else estimate,
                tuple((trial.repeat, trial.values[metric].value) for trial in self._trials[key]),
                withholding_reason(metric, fewest, self._own.settings_of(self._variants[variant][0].trial))
                or percentile_derivation(metric, self._variants[variant]),
                bound,
                bounds.count(bound) if bound else 0,
                max(map(relative_resolution, values)),
            )
        return self._made[key]

    def __iter__(self) -> Iterator[tuple[VariantKey, str]]:
        return iter(self._trials)

    def __len__(self) -> int:
        return len(self._trials)


def bound_of(trial: TrialResult, metric: str) -> Bound | None:
    """A figure's bound. The mean over all operations that were due is infinite (`failed`) if any operation failed."""
    name, last = split_metric(metric)
    bound = trial.values[metric].bound
    if bound is not None or last != "mean":
        return bound
    return "failed" if count_failed(trial, name) else None


def relative_resolution(value: Value) -> float:
    """The resolution of a figure, as a share of the figure.

    Percentiles are read from histograms, which have at most three significant digits.
    """
    known = value.resolution / value.value if value.value > 0 else 0.0
    return max(known, BUCKET) if parse_percentile(value.metric) is not None else known


def percentile_derivation(metric: str, trials: Sequence[TrialResult]) -> str:
    """The reason to withhold a percentile that was computed from the percentiles of several processes; else empty."""
    parts = next((trial.facts[PERCENTILES_OF] for trial in trials if PERCENTILES_OF in trial.facts), None)
    return "" if parts is None or parse_percentile(metric) is None else f"computed from the percentiles of {parts}"


def withholding_reason(metric: str, fewest: int, settings: Settings) -> str:
    """The reason to withhold a figure based on too few operations; empty if there are enough."""
    beyond = settings.check_threshold(NAME, "beyond")
    why = f"fewer than {beyond:g} of {units.count_noun(fewest, 'operation')} exceed {split_metric(metric)[1]}"
    return why if has_few_samples(fewest, metric, beyond) else ""
