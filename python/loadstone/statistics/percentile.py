"""The rule for reading percentiles, used wherever they are shown or compared.

A percentile covers all operations due (in a closed loop: sent), however they ended. A failed operation never gave
an answer, so its latency is infinite. An abandoned operation is censored: its latency is only known to
be at least the time waited (Kaplan and Meier, Nonparametric Estimation from Incomplete Observations,
1958). So each rank is looked up twice, with censored operations at their bounds and with them at infinity: if the two
agree, the percentile is exact.
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

# The bound of an inexact figure: a lower bound, or infinite if its rank belongs to a failed operation. An infinite
# figure has the latency of the slowest successful operation as its number; it cannot be ranked.
Bound = Literal["at_least", "failed"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)
# In output, an infinite figure of a stage in which no operation failed.
UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile in the unit of its histogram, and its bound; without a bound it is exact."""

    value: int
    bound: Bound | None = None


@dataclass
class Population:
    """All operations of a kind: the latencies of successes, the number of failures, and the bounds of the censored."""

    well: Histogram = field(default_factory=Histogram)
    failed: int = 0
    censored: Histogram = field(default_factory=Histogram)

    @property
    def count(self) -> int:
        """The number of operations."""
        return self.well.count + self.failed + self.censored.count

    def add_population(self, other: Population) -> None:
        """Adds other operations, exactly. Raises ValueError if the histograms' buckets differ."""
        self.well.add_histogram(other.well)
        self.failed += other.failed
        self.censored.add_histogram(other.censored)

    def read_percentiles(self, shares: Sequence[float]) -> list[Percentile]:
        """The percentile for each share (0.99: 99 %) by the rule. Raises ValueError without operations."""
        if not self.count:
            raise ValueError("without operations there are no percentiles")
        lower = Histogram()
        lower.add_histogram(self.well)
        lower.add_histogram(self.censored)
        # 0.999 as a decimal, not as a rounded float: of 1,000 operations it is the 999th, not the 1,000th.
        ranks = [max(math.ceil(Fraction(str(share)) * self.count), 1) for share in shares]
        # With censored operations at their bounds, and at infinity.
        known, ended = values_at_ranks(lower, ranks), values_at_ranks(self.well, ranks)
        (last,) = values_at_ranks(lower, [lower.count])
        return [
            Percentile(last or 0, "failed")
            if value is None
            else Percentile(value, None if value == other else "at_least")
            for value, other in zip(known, ended, strict=True)
        ]


def values_at_ranks(histogram: Histogram, ranks: Sequence[int]) -> list[int | None]:
    """The value of each rank from 1, rounded up to the end of its bucket; None beyond the last."""
    indices = sorted(histogram.counts)
    totals = list(accumulate(histogram.counts[index] for index in indices))
    positions = (bisect_left(totals, rank) for rank in ranks)
    return [histogram.layout.highest_equivalent(indices[at]) if at < len(indices) else None for at in positions]


def weakest_bound(bounds: Sequence[Bound | None]) -> Bound | None:
    """The bound of several figures together: the weakest of their bounds."""
    return next((bound for bound in ("failed", "at_least") if bound in bounds), None)
