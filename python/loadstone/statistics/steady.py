"""Steady state: the end of a warm-up, and whether the series after it has a trend, rises or changes its level.

A finding must be significant and large enough: a test corrected for autocorrelation must reject steadiness, and the
effect must matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadstone.statistics.autocorrelation import effective_size
from loadstone.statistics.distributions import (
    inversion_tail,
    kolmogorov_tail,
    normal_quantile,
    normal_tail,
    student_tail,
)
from loadstone.statistics.intervals import ROUNDING, Floats, finite_samples

# A trend over the window, or a step within it, below this share of the median does not matter.
EFFECT_MIN = 0.05
# The significance level of each of the two tests, so that together they err in at most 5 % of cases.
ALPHA = 0.025
# Longer series are averaged in batches down to this length, since the number of slopes between points is quadratic.
POINTS_MAX = 500
# MSER-5: five points per batch; series shorter than ten batches are processed point by point.
BATCH = 5
BATCHES_MIN = 10
# The minimum number of points in a level.
SIDE_MIN = 3
# Up to this number of points, the probabilities of orders are exact.
EXACT_MAX = 33

# `find_rise` uses at most this many batches, each with at least this many points. Neighbouring points are correlated,
# but batches hardly are. A correction for autocorrelation as in `find_trend` would not work here: the response
# times of a growing queue are a random walk around their slope, and the correction would remove nearly all power.
RISE_BATCHES_MAX = 10
RISE_BATCH_MIN = 3
# By chance, six batches are in perfect order once in 720 times, and five batches once in 120 times.
RISE_POINTS_MIN = 6 * RISE_BATCH_MIN

Code = Literal["trend", "change"]


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The steadiness of a series, with the reasons if it is not steady; shares are relative to its median."""

    steady: bool
    # The tests that found the series unsteady, in this order: trend, change.
    reasons: tuple[Code, ...]
    # The Theil–Sen slope times the length of the window, and the corrected Mann–Kendall p.
    trend_share: float
    trend_p: float
    # The first point after the most likely change, the step of the median at that point, and the p of the corrected
    # CUSUM; the point is None below 6 points, or if all points are equal.
    change_at: int | None
    change_share: float
    change_p: float
    # The number of points.
    n: int
    # The level to which the shares are relative.
    level: float = 0.0


def assess_steadiness(series: Sequence[float], effect_min: float = EFFECT_MIN, alpha: float = ALPHA) -> Steadiness:
    """Tests a series of equally long intervals (throughput, a latency) for a trend and for a change of level."""
    x = finite_samples(series)
    n = len(x)
    batch = max(math.ceil(n / POINTS_MAX), 1)
    y = batch_means(x, batch)
    if len(y) < 3 or not np.ptp(y):
        return Steadiness(True, (), 0.0, 1.0, None, 0.0, 1.0, n)
    # If no operation completed in most intervals, the median is 0, and the mean replaces it.
    level = abs(float(np.median(y))) or float(np.abs(y).mean())
    slope, trend_p = find_trend(y)
    at, step, change_p = find_change(y)
    trend_share, change_share = slope * len(y) / level, step / level
    changes: dict[Code, tuple[float, float]] = {"trend": (trend_p, trend_share), "change": (change_p, change_share)}
    reasons = tuple(code for code, (p, share) in changes.items() if p < alpha and abs(share) >= effect_min)
    return Steadiness(
        not reasons, reasons, trend_share, trend_p, None if at is None else at * batch, change_share, change_p, n, level
    )


def find_trend(y: Floats) -> tuple[float, float]:
    """The Theil–Sen slope per point (Sen 1968), and the Mann–Kendall p for no trend.

    The test uses Kendall's tau against time (Mann 1945), and is exact for few points. The variance of tau is multiplied
    by n over the effective size of the detrended series (Hamed & Rao 1998; Yue & Wang 2004, who detrend first).
    """
    time = np.arange(len(y), dtype=float)
    slope, *tails = kendall_test(y)
    z = normal_quantile(min(*tails, 0.5)) / math.sqrt(variance_inflation(y - slope * time))
    return slope, 2 * normal_tail(z)


def kendall_test(y: Floats) -> tuple[float, float, float]:
    """The Theil–Sen slope per point, and the probabilities of an order that rises, or falls, at least as much.

    The probabilities are exact up to 33 points without ties, and for the most extreme orders; otherwise, they follow
    from the normal distribution (Kendall, Rank Correlation Methods, 1970, chapters 4 and 5). These are SciPy's limits.
    """
    n = len(y)
    first, second = np.triu_indices(n, 1)
    steps = y[second] - y[first]
    rising, falling = int((steps > 0).sum()), int((steps < 0).sum())
    if rising + falling == len(steps) and (n <= EXACT_MAX or min(rising, falling) <= 1):
        tails = [inversion_tail(inversions, n) for inversions in (falling, rising)]
    else:
        _, ties = np.unique(y, return_counts=True)
        spread = n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
        z = (rising - falling) / math.sqrt(spread / 18)
        tails = [normal_tail(z), normal_tail(-z)]
    return float(np.median(steps / (second - first))), tails[0], tails[1]


def find_change(y: Floats) -> tuple[int | None, float, float]:
    """The point at which the level most likely changes, the step of the median there, and p; None below 6 points.

    This is a CUSUM test: the largest sum of residuals, divided by their standard deviation and the root of n, is the
    maximum of a Brownian bridge, which has Kolmogorov's distribution (Ploberger & Krämer, The CUSUM test with OLS
    residuals, Econometrica 60, 1992; Aue & Horváth, Structural breaks in time series, 2013, on dependence). Deviation
    and effective size are computed without the step, which would otherwise distort both. Because they are estimates, a
    Student tail replaces the normal tail. Each side has at least 3 points and at least a twentieth of all points, since
    one slow interval at an end is an outlier, not a level. Pettitt's test, which uses ranks, misses late changes: with
    a loss of 20 % in the last quarter of 20 points with 5 % noise, it detected 14 % of cases, and CUSUM nearly all.
    """
    n = len(y)
    edge = max(SIDE_MIN, math.ceil(n / 20))
    if n < 2 * edge:
        return None, 0.0, 1.0
    sums = np.abs(np.cumsum(y - y.mean()))[edge - 1 : n - edge]
    at = int(np.argmax(sums)) + edge
    rest = np.concatenate((y[:at] - y[:at].mean(), y[at:] - y[at:].mean()))
    step = float(np.median(y[at:]) - np.median(y[:at]))
    if np.ptp(rest) <= ROUNDING * np.abs(y).max():
        return at, step, 0.0
    grown = variance_inflation(rest)
    deviation = math.sqrt(float(np.square(rest).sum()) / (n - 2) * grown)
    tail = kolmogorov_tail(float(sums[at - edge]) / deviation / math.sqrt(n))
    return at, step, 2 * student_tail(normal_quantile(tail / 2), max(n / grown - 2, 1.0))


def variance_inflation(rest: Floats) -> float:
    """The factor by which autocorrelation raises the variance of a sum: n ÷ the effective size, at least 1."""
    return len(rest) / float(effective_size(rest)) if np.ptp(rest) else 1.0


def warm_up_end(series: Sequence[float] | Floats) -> int:
    """The first point after the warm-up, by MSER-5; at most half of the series is truncated.

    This truncation minimises the squared standard error of the mean of the remaining batches of five (White,
    An effective truncation heuristic for bias reduction in simulation output, Simulation 69, 1997, with its bound of
    a half; White, Cobb & Spratt 2000). `assess_steadiness` decides whether the remainder is steady. The last five
    batches are always kept, because a few values can be similar by chance (Hoad, Robinson & Davies 2010).
    """
    x = np.asarray(series, dtype=float)
    batch = BATCH if len(x) >= BATCH * BATCHES_MIN else 1
    y = batch_means(x, batch)
    most = min(len(y) // 2, len(y) - BATCH)
    errors = [float(y[d:].var()) / (len(y) - d) for d in range(most + 1)]
    return int(np.argmin(errors)) * batch if errors else 0


def common_warm_up_end(series: Sequence[Sequence[float]]) -> int:
    """Applies `warm_up_end` to the pointwise median of several series, each divided by the median of its second half.

    Longer series are cut to the length of the shortest.
    """
    known = [np.asarray(values, dtype=float) for values in series if len(values)]
    if not known:
        return 0
    length = min(map(len, known))
    shares = [values[:length] / level for values in known if (level := float(np.median(values[length // 2 : length])))]
    return warm_up_end(np.median(shares, axis=0)) if shares else 0


def batch_means(x: Floats, batch: int) -> Floats:
    """The means of batches of `batch` neighbours; a remainder at the end is dropped."""
    whole = len(x) // batch * batch
    return np.asarray(x[:whole].reshape(-1, batch).mean(axis=1)) if batch > 1 else x


@dataclass(frozen=True, slots=True)
class Rise:
    """The rise of a series, in the unit of the series."""

    # The probability that the batches of a series without a trend rise as much, one-sided.
    p: float
    # The rise from the first to the last point of the window, along the fitted line; negative if the series falls.
    rise: float
    # The initial level: the median of the first third.
    first: float


def find_rise(series: Sequence[float]) -> Rise | None:
    """The rise of a series of equally long intervals; None if there are too few intervals to decide.

    Each batch is the median of its points, so that a single slow interval is not a trend. The test is the Mann–Kendall
    test (Mann 1945), which is exact for few batches; the line is the Theil–Sen line (Sen 1968).
    """
    x = finite_samples(series)
    if len(x) < RISE_POINTS_MIN:
        return None
    batches = min(RISE_BATCHES_MAX, len(x) // RISE_BATCH_MIN)
    levels = [float(np.median(part)) for part in np.array_split(x, batches)]
    first = float(np.median(x[: len(x) // 3]))
    if not np.ptp(levels):
        return Rise(1.0, 0.0, first)
    slope, p, _ = kendall_test(np.array(levels))
    return Rise(p, slope * batches, first)
