"""Intervals: the median with an interval of order statistics, and the mean with Student's t interval.

The array functions work along the last axis, so that simulations of thousands of experiments use the lab's functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loadstone.statistics.distributions import binomial_tail, student_quantile, student_tail
from loadstone.statistics.estimate import REPEATS_MIN, Estimate

LEVEL = 0.95
# The rounding error between equal figures: a smaller relative spread counts as 0, and is not used as a divisor.
ROUNDING = 1e-12
# Ten standard deviations of a normal distribution, in median absolute deviations, as in hyperfine (Iglewicz & Hoaglin
# 1993 suggest a third of this value).
OUTLIER = 14.826

Floats = NDArray[np.float64]


class CentreIntervals(NamedTuple):
    """Arrays of centres and of the ends of their intervals, with an element for each sample."""

    value: Any
    low: Any
    high: Any


@cache
def median_rank(n: int, level: float = LEVEL) -> tuple[int, float]:
    """The rank k, starting at 1, whose order statistics x(k) and x(n+1-k) enclose the median, and their level.

    k is the largest rank whose level is at least `level`, or 1 if no rank reaches it, so the level can be lower below
    n = 6. The ranks are symmetric and depend only on n: ranks chosen by the data would reduce the coverage. The level
    is binomial, and exact for any continuous distribution (David & Nagaraja, Order Statistics, 2003, section 7.1).
    """
    # The sum of coefficients is kept, since a new sum for each tail would take minutes for thousands of samples.
    coefficient = total = 1
    rank = 0
    while total / 2**n < (1 - level) / 2:
        coefficient = coefficient * (n - rank) // (rank + 1)
        total, rank = total + coefficient, rank + 1
    rank = max(rank, 1)
    return rank, 1 - 2 * binomial_tail(rank - 1, n)


def order_interval(samples: ArrayLike, level: float = LEVEL) -> CentreIntervals:
    """Medians along the last axis, with intervals based on order statistics."""
    ordered = np.sort(np.asarray(samples, dtype=float), axis=-1)
    n = ordered.shape[-1]
    rank, _ = median_rank(n, level)
    # NumPy's median would sort again, and the stopping rule calls this function after every block. The figures are
    # halved first, because the sum of two large figures can overflow.
    middle = ordered[..., (n - 1) // 2] / 2 + ordered[..., n // 2] / 2
    return CentreIntervals(middle, ordered[..., rank - 1], ordered[..., n - rank])


def t_interval(samples: ArrayLike, level: float = LEVEL) -> tuple[CentreIntervals, Any]:
    """Means, their t intervals, and the two-sided p for a mean of 0, along the last axis.

    If all values are equal, there is no variance to test with: the interval is the value itself, and p is 1 if the
    value is 0, else nan. The caller must then use another test.
    """
    x = np.asarray(samples, dtype=float)
    mean = x.mean(axis=-1)
    constant = np.ptp(x, axis=-1) <= ROUNDING * np.abs(x).max(axis=-1)
    n = x.shape[-1]
    # An arbitrary sample replaces constant samples, whose squares can overflow.
    safe = np.where(constant[..., None], np.arange(n, dtype=float), x)
    error = safe.std(axis=-1, ddof=1) / np.sqrt(n)
    half = np.where(constant, 0.0, student_quantile((1 - level) / 2, n - 1) * error)
    low, high = mean - half, mean + half
    tails = student_tails(np.where(constant, 0.0, np.abs(mean / error)), n - 1)
    p = np.where(constant, np.where(mean == 0, 1.0, np.nan), 2 * tails)
    return CentreIntervals(mean, low, high), p


student_tails = np.vectorize(student_tail, otypes=[float])


def find_outliers(samples: Sequence[float]) -> list[float]:
    """The samples that are more than OUTLIER median absolute deviations from the median; none if most are equal."""
    x = finite_samples(samples)
    if not len(x):
        return []
    distances = np.abs(x - np.median(x))
    deviation = np.median(distances)
    return [float(value) for value in x[distances > OUTLIER * deviation]] if deviation else []


def finite_samples(samples: Sequence[float]) -> Floats:
    """The finite samples: a repeat without a measured figure does not count."""
    x: Floats = np.asarray(samples, dtype=float)
    return x[np.isfinite(x)].copy()


def summarize_samples(samples: Sequence[float]) -> Estimate:
    """The lab's summary of a metric over repeats, as in benchstat: the median with an interval of at least 95 %.

    The interval consists of order statistics. The median is nan without repeats.
    """
    x = finite_samples(samples)
    n = len(x)
    if n < REPEATS_MIN:
        return Estimate(float(np.median(x)) if n else float("nan"), n, method="median")
    value, low, high = order_interval(x)
    return Estimate(float(value), n, float(low), float(high), median_rank(n)[1], "median, order statistics")
