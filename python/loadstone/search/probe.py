"""A probe: one load with its trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from loadstone.statistics.percentile import Bound, weakest_bound

# A single disturbed trial may be a coincidence; two are not.
INVALID_MIN = 2
# Two figures from histograms with three digits differ only if their ratio is further from 1 than this.
RESOLUTION = 0.002


@dataclass(frozen=True, slots=True)
class ProbeSample:
    """The result of one trial at a load."""

    throughput: float = 0.0
    # Whether the trial met the objective; None without an objective.
    meets: bool | None = None
    # The reason why the trial does not count; empty if it counts.
    invalid: str = ""
    # The objective's figures, by the keys of its terms.
    figures: Mapping[str, float] = field(default_factory=dict)
    # The bounds of the figures that are not exact, because operations failed or never completed.
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    # The message of the check rate-not-held if the rate was not held; otherwise empty.
    missed: str = ""
    # Whether only the load generator's lateness kept the trial from meeting the objective, so that it does not count.
    late: bool = False
    # Whether only the number of operations was too small to judge the objective, which is typical of slow trials.
    sparse: bool = False
    # Whether the system failed, so that the trial has no figures and counts against the load.
    failed: bool = False
    # The figures without the load generator's lateness, by the keys of their terms.
    lower: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Probe:
    """The samples of a load, in the order of their trials."""

    load: float
    samples: Sequence[ProbeSample] = ()

    @cached_property
    def valid(self) -> list[ProbeSample]:
        """The samples that count."""
        return [sample for sample in self.samples if not sample.invalid]

    @cached_property
    def usable(self) -> list[ProbeSample]:
        """The samples with figures of the system. Late and sparse trials are included, because the selection would
        otherwise favour good figures."""
        return [sample for sample in self.samples if sample.late or sample.sparse or not sample.invalid]

    @cached_property
    def invalid(self) -> str:
        """If too few trials count for the load to be judged, the most frequent reason why trials do not count; else
        empty."""
        reasons = [sample.invalid for sample in self.samples if sample.invalid]
        if len(reasons) < INVALID_MIN or len(reasons) < len(self.valid):
            return ""
        return max(dict.fromkeys(reasons), key=reasons.count)

    @property
    def throughput(self) -> float | None:
        """The median throughput, op/s, of the trials in which the system did not fail; 0 if it failed in all of them,
        None without usable samples."""
        measured = [sample.throughput for sample in self.usable if not sample.failed]
        return median(measured or [0.0]) if self.usable else None

    def median_figure(self, key: str) -> float | None:
        """The median of one of the objective's figures."""
        figures = [sample.figures[key] for sample in self.usable if key in sample.figures]
        return median(figures) if figures else None

    def weakest_bound(self, key: str) -> str | None:
        """The bound of one of the objective's figures over all trials; `at_most` if the generator's lateness raised
        this figure."""
        bound = weakest_bound([sample.bounds.get(key) for sample in self.usable])
        figure = self.median_figure(key)
        lower = [sample.lower.get(key, sample.figures[key]) for sample in self.usable if key in sample.figures]
        is_raised = figure is not None and median(lower) * (1 + RESOLUTION) < figure
        return bound or ("at_most" if is_raised or any(sample.late for sample in self.usable) else None)

    @property
    def miss_reason(self) -> str:
        """The reason why the first trial that missed the rate missed it; empty unless most trials missed the rate."""
        reasons = [sample.missed for sample in self.valid if sample.missed]
        return reasons[0] if len(reasons) * 2 > len(self.valid) else ""
