"""Comparisons: the ratio of a contender to a baseline, its interval, and the p for no difference.

Interval and p come from one test, so a ratio's interval excludes 1 exactly if p is below 1 - its level.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from loadstone.statistics.distributions import (
    normal_quantile,
    normal_tail,
    rank_sum_counts,
    student_quantile,
    student_tail,
)
from loadstone.statistics.estimate import REPEATS_MIN, Estimate
from loadstone.statistics.intervals import LEVEL, ROUNDING, CentreIntervals, Floats, finite_samples, t_interval

ALPHA = 0.05
# With fewer repeats of a side than this, even disjoint ranks do not reach ALPHA.
UNPAIRED_MIN = 4
# Up to this number of repeats of a side, the probabilities of ranks are exact; SciPy has the same limit.
EXACT_MAX = 8
# The probability of showing a detectable difference.
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence on contender ÷ baseline; `p` is two-sided, before Holm, and None if there are too few repeats."""

    # nan if a value is not positive; then `difference` holds contender - baseline.
    ratio: Estimate
    p: float | None
    method: str
    # The number of blocks, or of repeats of the side with fewer repeats.
    n: int
    # Cliff's delta, from -1 to 1; None if a side is empty.
    effect: float | None
    difference: Estimate | None = None


def compare_blocks(
    baseline: Mapping[int, float], contender: Mapping[int, float], level: float = LEVEL, least: int = REPEATS_MIN
) -> Evidence:
    """Compares interleaved variants: only blocks with both variants count, and drift between blocks cancels.

    The paired t test on logarithms decides; the ratio is the geometric mean of the blocks' ratios. A signed-rank or
    sign-flip permutation test is too weak: at n = 6, its p is below 0.05 only if all six differences have one sign.
    If the ratio is the same in every block, t is undefined, and the exact signed-rank test is used instead.
    Fewer than `least` blocks are not tested.
    """
    both = [block for block in baseline if block in contender and math.isfinite(baseline[block] + contender[block])]
    b = np.array([baseline[block] for block in both], dtype=float)
    c = np.array([contender[block] for block in both], dtype=float)
    n, logs = len(both), has_logarithms(b, c)
    # Equal figures can differ in their last bit.
    steps = np.where(np.isclose(b, c, rtol=ROUNDING, atol=0), 0.0, np.log(c / b) if logs else c - b)
    scale = "logarithms" if logs else "differences"
    if n < least:
        return evidence_without_test(b, c, logs, steps.mean() if n else math.nan, "too few blocks")
    interval, tested = t_interval(steps, level)
    p, method = float(tested), f"paired t test on {scale} within blocks"
    if math.isnan(p):
        # All blocks have the same step, so the interval is also the full signed-rank interval.
        # The p is exact where SciPy supports it (Wilcoxon 1945).
        from scipy.stats import wilcoxon

        p = float(wilcoxon(steps).pvalue)
        level, method = 1 - 2.0 ** (1 - n), f"exact signed-rank test on {scale} within blocks"
    return build_evidence(b, c, logs, interval, p, level, method)


def compare_runs(
    baseline: Sequence[float], contender: Sequence[float], level: float = LEVEL, least: int = REPEATS_MIN
) -> Evidence:
    """Compares variants that ran at different times: Mann–Whitney, and Hodges and Lehmann's shift of logarithms.

    Ties count against a difference, which keeps p valid and consistent with the interval. The printed level is the
    actual level of the ranks. No p is computed if a side has fewer than `least` repeats.
    """
    b, c, logs = take_logarithms(baseline, contender)
    n = min(len(b), len(c))
    if n < least:
        return evidence_without_test(b, c, logs, np.median(c[:, None] - b) if n else math.nan, "too few repeats")
    interval, u = estimate_shift(b, c, level)
    p = rank_sum_p(int(u), len(b), len(c))
    level = 1 - rank_sum_p(critical_u(len(b), len(c), level), len(b), len(c))
    return build_evidence(b, c, logs, interval, p, level, "Mann–Whitney test")


def compare_unpaired(baseline: Sequence[float], contender: Sequence[float], level: float = LEVEL) -> Evidence:
    """Compares variants in random order with too few common blocks: Welch's t test (1947) on logarithms.

    No p is computed if a side has fewer than four repeats. If all values of each side are equal, the exact rank test is
    used.
    """
    b, c, logs = take_logarithms(baseline, contender)
    n = min(len(b), len(c))
    centre = float(c.mean() - b.mean()) if n else math.nan
    if n < UNPAIRED_MIN:
        return evidence_without_test(b, c, logs, centre, "too few repeats")
    method = f"Welch's t test on {'logarithms' if logs else 'differences'}"
    if max(np.ptp(b), np.ptp(c)) <= ROUNDING * max(np.abs(b).max(), np.abs(c).max()):
        p = 1.0 if abs(centre) <= ROUNDING else rank_sum_p(0, len(b), len(c))
        return build_evidence(b, c, logs, CentreIntervals(centre, centre, centre), p, level, method)
    parts = [float(side.var(ddof=1)) / len(side) for side in (b, c)]
    error = math.sqrt(sum(parts))
    # Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946).
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (b, c), strict=True))
    half = student_quantile((1 - level) / 2, freedom) * error
    p = 2 * student_tail(abs(centre) / error, freedom)
    return build_evidence(b, c, logs, CentreIntervals(centre, centre - half, centre + half), p, level, method)


def has_logarithms(baseline: Floats, contender: Floats) -> bool:
    """Whether both sides have figures, and all figures are positive."""
    return min(len(baseline), len(contender)) > 0 and min(baseline.min(), contender.min()) > 0


def take_logarithms(baseline: Sequence[float], contender: Sequence[float]) -> tuple[Floats, Floats, bool]:
    """The finite figures of both sides, as logarithms if all figures are positive; and whether they are logarithms."""
    b, c = finite_samples(baseline), finite_samples(contender)
    return (np.log(b), np.log(c), True) if has_logarithms(b, c) else (b, c, False)


def evidence_without_test(b: Floats, c: Floats, logs: bool, centre: float, why: str) -> Evidence:
    """The evidence without an interval and p, because there are too few figures."""
    return build_evidence(b, c, logs, CentreIntervals(centre, math.nan, math.nan), None, None, why)


def build_evidence(
    b: Floats, c: Floats, logs: bool, interval: CentreIntervals, p: float | None, level: float | None, method: str
) -> Evidence:
    """The evidence with a ratio (from an interval of logarithms) or a difference; no interval without a level."""
    n = min(len(b), len(c))
    value, low, high = (exp_or_infinity(end) if logs else float(end) for end in interval)
    estimate = Estimate(value, n, method=method) if level is None else Estimate(value, n, low, high, level, method)
    ratio = estimate if logs or not n else Estimate(math.nan, n, method=method)
    return Evidence(ratio, p, method, n, cliffs_delta(b, c), None if logs or not n else estimate)


def exp_or_infinity(logarithm: float) -> float:
    """The exponential of a logarithm; infinite if it exceeds the range of floats."""
    with np.errstate(over="ignore"):
        return float(np.exp(logarithm))


def estimate_shift(baseline: ArrayLike, contender: ArrayLike, level: float = LEVEL) -> tuple[CentreIntervals, Floats]:
    """The shift from baseline to contender along the last axis, with Mann and Whitney's U for `rank_sum_p`.

    The shift is the median of the differences of all pairs, with the interval of their order statistics (Hodges &
    Lehmann 1963; Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd ed., sections 4.2 and 4.3).
    """
    b, c = np.asarray(baseline, dtype=float), np.asarray(contender, dtype=float)
    m, n = b.shape[-1], c.shape[-1]
    pairs = (c[..., :, None] - b[..., None, :]).reshape(*b.shape[:-1], m * n)
    ordered = np.sort(pairs, axis=-1)
    cut = critical_u(m, n, level)
    # Ties count against a difference: U is the smaller side, including all ties.
    u = np.minimum(np.minimum((pairs <= 0).sum(axis=-1), (pairs >= 0).sum(axis=-1)), m * n // 2)
    return CentreIntervals(np.median(pairs, axis=-1), ordered[..., cut], ordered[..., m * n - 1 - cut]), u


@cache
def rank_sum_p(u: int, m: int, n: int) -> float:
    """The two-sided p of U = `u` without ties; exact if a side has at most 8 repeats (Mann & Whitney 1947).

    Otherwise, p follows from the normal distribution with a correction for continuity.
    """
    u = min(u, m * n - u)
    if min(m, n) <= EXACT_MAX:
        return min(2 * rank_sum_counts(m, n)[u] / math.comb(m + n, m), 1.0)
    z = (m * n / 2 - u - 0.5) / math.sqrt(m * n * (m + n + 1) / 12)
    return min(2 * normal_tail(z), 1.0)


@cache
def critical_u(m: int, n: int, level: float = LEVEL) -> int:
    """The largest U whose p is below 1 - level: the number of pairs to cut from either end of the interval.

    0 if no U reaches that level; 95 % requires REPEATS_MIN repeats.
    """
    # 1 - 0.95 is not quite 0.05 in floats, and p can be exactly 0.05.
    alpha = round(1 - level, 12)
    return max(bisect_left(range(m * n // 2 + 1), alpha, key=lambda u: rank_sum_p(u, m, n)) - 1, 0)


def cliffs_delta(baseline: Floats, contender: Floats) -> float | None:
    """The share of pairs with the contender above the baseline, minus the reverse share (Cliff 1993); None if empty."""
    if not len(baseline) or not len(contender):
        return None
    return float(np.sign(contender[:, None] - baseline).mean())


def adjust_holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p for each test of a family, in order (Holm 1979); None (not tested) stays None.

    If all tests with an adjusted p below alpha are claimed, the probability of any error is at most alpha.
    """
    tested = sorted((p, index) for index, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    worst = 0.0
    for rank, (p, index) in enumerate(tested):
        worst = max(worst, min(p * (len(tested) - rank), 1.0))
        adjusted[index] = worst
    return adjusted


def half_width(ratio: Estimate) -> float | None:
    """Half the width of a ratio's interval on the logarithmic scale; None without a finite interval above 0."""
    if not (ratio.low and ratio.high and math.isfinite(ratio.high)):
        return None
    return math.log(ratio.high / ratio.low) / 2


def detectable_difference(intervals: Sequence[tuple[float, float]], n: int, repeats: int, tests: int = 1) -> float:
    """The smallest difference, as a share, that this number of repeats shows with a probability of POWER.

    `intervals`: the centre and the half-width of each scenario's interval of `n` repeats, on the logarithmic scale. The
    half-widths narrow with the number of repeats; the distances between the centres do not. If the difference is
    half the width of the intervals' union, half of the runs show it. For POWER, the difference must be greater by a
    number of standard errors that follows from the noncentral t distribution (Cohen 1988, 2.2; its normal approximation
    is 26.7.10 in Abramowitz and Stegun). With several `tests`, Holm's first step is assumed: p below ALPHA / tests.
    """
    # `to_error` turns half-widths into standard errors, and `critical` turns these into half-widths for `repeats`.
    to_error = math.sqrt(n / repeats) / student_quantile(ALPHA / 2, n - 1)
    critical = student_quantile(ALPHA / tests / 2, repeats - 1)
    shrink = to_error * critical
    half = (max(at + shrink * own for at, own in intervals) - min(at - shrink * own for at, own in intervals)) / 2
    spread = math.sqrt(1 + critical**2 / (2 * (repeats - 1)))
    power = normal_quantile(1 - POWER) * spread - critical / (4 * (repeats - 1))
    return math.expm1(half + power * to_error * max(own for _, own in intervals))


def repeats_for(ratio: Estimate, half: float, bias: float, matters: float) -> float:
    """The number of repeats needed for a decision at the same ratio and spread; infinite if no number suffices.

    If the ratio is further from 1 than `matters`, the interval must exclude 1; else, it must lie within `matters`. An
    interval narrows with the root of the number of repeats, except for its `bias`.
    """
    distance, margin = abs(math.log(ratio.value)), math.log1p(matters)
    room = (distance if distance > margin else margin - distance) - bias
    return math.ceil(ratio.n * (half / room) ** 2) if room > 0 else math.inf
