"""The rule for reading percentiles, used wherever they are shown or compared.

A percentile covers all operations that were due (in a closed loop: sent), whatever their outcome. A failed operation
never received an answer, so its latency is infinite. An abandoned operation is censored: its latency is only known to
be at least the time waited (Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, 1958). Each rank
is therefore looked up twice, with censored operations at their bounds and at infinity. If the two figures agree, the
percentile is exact.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Literal, get_args

from loadstone.engine.histogram import Histogram

# The bound of an inexact figure. `failed`: the rank belongs to a failed operation, so the percentile is infinite. An
# infinite figure is stored as the largest known latency or wait, and cannot be ranked.
Bound = Literal["at_least", "failed"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)
# The output for an infinite figure of a stage in which no operation failed.
UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile in the unit of its histogram, with its bound; without a bound, it is exact."""

    value: int
    bound: Bound | None = None


@dataclass
class Population:
    """All operations of a kind: latencies of successes, the number of failures, and bounds of censored operations."""

    well: Histogram = field(default_factory=Histogram)
    failed: int = 0
    censored: Histogram = field(default_factory=Histogram)

    @property
    def count(self) -> int:
        """The number of operations."""
        return self.well.count + self.failed + self.censored.count

    def add_population(self, other: Population) -> None:
        """Adds the operations of another population, exactly. Raises ValueError if the histograms' buckets differ."""
        self.well.add_histogram(other.well)
        self.failed += other.failed
        self.censored.add_histogram(other.censored)

    def read_percentiles(self, shares: Sequence[float]) -> list[Percentile]:
        """The percentile for each share (0.99 is 99 %), by the rule. Raises ValueError without operations."""
        if not self.count:
            raise ValueError("without operations there are no percentiles")
        lower = Histogram()
        lower.add_histogram(self.well)
        lower.add_histogram(self.censored)
        # Shares are read as decimals, not as rounded floats: 0.999 of 1,000 operations is the 999th, not the 1,000th.
        ranks = [max(math.ceil(Fraction(str(share)) * self.count), 1) for share in shares]
        # The values with censored operations at their bounds, and at infinity.
        known, ended = values_at_ranks(lower, ranks), values_at_ranks(self.well, ranks)
        (last,) = values_at_ranks(lower, [lower.count])
        return [
            Percentile(last or 0, "failed")
            if value is None
            else Percentile(value, None if value == other else "at_least")
            for value, other in zip(known, ended, strict=True)
        ]


def values_at_ranks(histogram: Histogram, ranks: Sequence[int]) -> list[int | None]:
    """The value of each rank, starting at 1, rounded up to the end of its bucket; None beyond the last value."""
    indices = sorted(histogram.counts)
    totals = list(accumulate(histogram.counts[index] for index in indices))
    positions = (bisect_left(totals, rank) for rank in ranks)
    return [histogram.layout.highest_equivalent(indices[at]) if at < len(indices) else None for at in positions]


def weakest_bound(bounds: Sequence[Bound | None]) -> Bound | None:
    """The weakest of the bounds of several figures."""
    return next((bound for bound in ("failed", "at_least") if bound in bounds), None)
