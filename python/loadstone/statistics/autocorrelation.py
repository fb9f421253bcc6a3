"""Autocorrelation: the precision of a run's mean if each interval resembles its predecessor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from loadstone.statistics.distributions import student_quantile
from loadstone.statistics.estimate import REPEATS_MIN, Estimate
from loadstone.statistics.intervals import LEVEL, CentreIntervals, Floats, finite_samples

# The minimum number of points: the autocorrelation of fewer points is too uncertain.
POINTS_MIN = 20


def autocovariance(series: ArrayLike) -> Floats:
    """Autocovariances at lags 0 to n - 1 along the last axis, each divided by n."""
    x = np.asarray(series, dtype=float)
    n = x.shape[-1]
    # Padding prevents the wrap-around of the transform; powers of two are fast.
    padded = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(x - x.mean(axis=-1, keepdims=True), padded, axis=-1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, padded, axis=-1)[..., :n] / n)


def effective_size(series: ArrayLike) -> Floats:
    """The number of independent points whose mean would be equally precise, from 2 to n, along the last axis.

    Autocovariances are summed by Geyer's initial monotone sequence: sums of neighbours, up to the first sum that is not
    positive, each limited to its predecessor (Geyer, Practical Markov Chain Monte Carlo, Statistical Science 7, 1992,
    section 3.3). The result is limited to n, which an oscillating series would exceed.
    """
    covariance = autocovariance(series)
    n = covariance.shape[-1]
    pairs = covariance[..., 0 : n - n % 2 : 2] + covariance[..., 1::2]
    positive = np.logical_and.accumulate(pairs > 0, axis=-1)
    monotone = np.minimum.accumulate(np.where(positive, pairs, np.inf), axis=-1)
    variance = covariance[..., 0]
    # The long-run variance is the variance of the mean, times n.
    long_run = 2 * np.where(positive, monotone, 0.0).sum(axis=-1) - variance
    ratio = np.divide(variance, long_run, out=np.ones_like(variance), where=long_run > 0)
    return np.asarray(np.clip(n * ratio, 2.0, n), dtype=float)


def run_interval(series: ArrayLike, level: float = LEVEL) -> tuple[CentreIntervals, Floats]:
    """Means of series along the last axis, with t intervals that use effective sizes in place of n."""
    x = np.asarray(series, dtype=float)
    size = effective_size(x)
    mean: Any = x.mean(axis=-1)
    # The sample variance of n dependent values is too small by the factor 1 - 1/size.
    half = student_quantiles((1 - level) / 2, size - 1) * np.sqrt(x.var(axis=-1) / (size - 1))
    return CentreIntervals(mean, mean - half, mean + half), size


student_quantiles = np.vectorize(student_quantile, otypes=[float])


def run_mean(series: Sequence[float], level: float = LEVEL) -> Estimate:
    """The mean over a run's intervals of equal length, with a confidence interval that accounts for autocorrelation.

    `n` is the effective number of intervals, rounded down. There is no confidence interval if `n` is below REPEATS_MIN,
    or if there are fewer than POINTS_MIN points (`n` is then their number). The interval is for this mean, not for the
    variation between runs.
    """
    x = finite_samples(series)
    if len(x) < POINTS_MIN:
        return Estimate(float(x.mean()) if len(x) else float("nan"), len(x), method="mean of a run")
    (value, low, high), size = run_interval(x, level)
    n = int(size)
    if n < REPEATS_MIN:
        return Estimate(float(value), n, method="mean of a run")
    return Estimate(float(value), n, float(low), float(high), level, "mean of a run, initial monotone sequence")
