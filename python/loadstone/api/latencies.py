"""The latencies of many operations: histograms that can be added exactly, and percentiles of the sum."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from loadstone.statistics.percentile import Percentile, Population

if TYPE_CHECKING:
    import pyarrow as pa


class Latencies:
    """The latencies of operations, ns, as a sum of HDR histograms. `+` merges two objects exactly.

    `n` is the number of all operations, `failed` the number of failed operations, and `censored` the number of
    operations that were never answered, for which only the waiting time is known.
    """

    def __init__(self, population: Population) -> None:
        """Wraps a population; `Run.latencies` returns this class."""
        self.population = population
        self.n = population.count
        self.failed = population.failed
        self.censored = population.censored.count

    def __repr__(self) -> str:
        """The number of operations."""
        return f"<loadstone.Latencies n={self.n:,}, {self.failed:,} failed, {self.censored:,} censored>"

    @property
    def mean(self) -> float:
        """The mean of the successful operations, ns, each counted at the middle of its bucket (at most 0.1 % wide).

        Raises ValueError if there are no successful operations.
        """
        return self.population.well.mean

    def percentile(self, percent: float) -> Percentile:
        """A percentile (such as 99.9), ns, over every operation that was due; failed operations count as infinite.

        `value` is the upper end of the percentile's bucket; `bound` is None if the value is exact, otherwise as in
        `Run.figures`. Raises ValueError if there are no operations, or if the percentage is below 0 or above 100.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"a percentage must be from 0 to 100, got {percent}")
        # As in the figures of a trial, 99.9 is treated as a decimal, not as a rounded float.
        (percentile,) = self.population.read_percentiles([float(Decimal(str(percent)) / 100)])
        return percentile

    def __add__(self, other: Latencies) -> Latencies:
        """Merges two objects. Raises ValueError if their histograms have different buckets."""
        total = Population()
        total.add_population(self.population)
        total.add_population(other.population)
        return Latencies(total)

    def to_arrow(self) -> pa.Table:
        """The buckets of successful operations: `low_ns`, `high_ns` (both inclusive), `count`."""
        import pyarrow as pa

        well = self.population.well
        buckets = sorted(well.counts)
        return pa.table(
            {
                "low_ns": [well.layout.lowest_equivalent(bucket) for bucket in buckets],
                "high_ns": [well.layout.highest_equivalent(bucket) for bucket in buckets],
                "count": [well.counts[bucket] for bucket in buckets],
            }
        )
