"""Distributions, rank tests and trends agree with SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from loadstone.statistics import distributions
from loadstone.statistics.comparison import compare_unpaired, rank_sum_p
from loadstone.statistics.steady import kendall_test

PRECISION = 1e-10
TAILS = (0.4, 0.2, 0.025, 0.005, 1e-4, 1e-8)


def test_normal_tails_and_quantiles_equal_scipys() -> None:
    for z in np.linspace(-8, 30, 77):
        assert distributions.normal_tail(z) == pytest.approx(stats.norm.sf(z), rel=PRECISION)
    for tail in np.logspace(-300, math.log10(0.5), 50):
        assert distributions.normal_quantile(tail) == pytest.approx(stats.norm.isf(tail), rel=PRECISION, abs=1e-15)
    assert distributions.normal_quantile(0) == math.inf


@pytest.mark.parametrize("freedom", [1, 1.3, 2, 3, 5.7, 9, 33.3, 100, 500, 5000])
def test_student_tails_and_quantiles_equal_scipys(freedom: float) -> None:
    for t in (*np.linspace(-5, 5, 41), 30, 1e4, math.inf, -math.inf):
        assert distributions.student_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), rel=PRECISION)
    for tail in TAILS:
        assert distributions.student_quantile(tail, freedom) == pytest.approx(stats.t.isf(tail, freedom), rel=PRECISION)
    assert math.isnan(distributions.student_tail(math.nan, freedom))


@pytest.mark.parametrize("freedom", [(1, 1), (2, 5), (3, 30), (10, 2), (7, 200)])
def test_f_tails_equal_scipys(freedom: tuple[int, int]) -> None:
    for f in (0, 1e-3, 0.1, 0.5, 1, 2, 5, 30, 1000):
        assert distributions.f_tail(f, freedom) == pytest.approx(stats.f.sf(f, *freedom), rel=PRECISION)


def test_kolmogorov_tails_equal_scipys() -> None:
    for x in np.linspace(0, 4, 200):
        assert distributions.kolmogorov_tail(x) == pytest.approx(stats.kstwobign.sf(x), rel=PRECISION)


@pytest.mark.parametrize("n", [1, 6, 7, 100, 1001])
def test_binomial_tails_equal_scipys(n: int) -> None:
    for k in {0, n // 3, n // 2, n - 1, n}:
        assert distributions.binomial_tail(k, n) == pytest.approx(stats.binom.cdf(k, n, 0.5), rel=PRECISION)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 5), (4, 4), (3, 8), (8, 30), (9, 9), (9, 40)])
def test_rank_sum_p_equals_scipys_everywhere(m: int, n: int) -> None:
    for u in range(m * n + 1):
        whole, rest = divmod(u, m)
        # Tie-free samples with exactly this U: `whole` values exceed every baseline value, and one value exceeds `rest`
        # of them.
        above = [m + extra for extra in range(whole)]
        contender = [*above, rest - 0.5, *(-1.0 - extra for extra in range(n - whole - 1))][:n]
        expected = stats.mannwhitneyu(contender, np.arange(m), alternative="two-sided").pvalue
        assert rank_sum_p(u, m, n) == pytest.approx(expected, rel=PRECISION)


@pytest.mark.parametrize("n", [3, 4, 10, 33, 34, 200])
@pytest.mark.parametrize("ties", [False, True])
def test_trend_test_equals_scipys(n: int, ties: bool) -> None:
    random = np.random.default_rng([n, ties])
    time = np.arange(n)
    noise = random.normal(size=n)
    for series in (noise, noise + time / n, noise - time, time * 1.0, -(time**2.0), np.r_[1, 0, time[2:]] * 1.0):
        y = np.asarray(np.round(series) if ties else series, dtype=float)
        slope, *tails = kendall_test(y)
        assert slope == stats.theilslopes(y, time).slope
        expected = (
            stats.kendalltau(time, y, alternative="greater").pvalue,
            stats.kendalltau(time, y, alternative="less").pvalue,
        )
        assert tails == pytest.approx(expected, rel=PRECISION, abs=1e-300)


def test_welchs_test_equals_scipys() -> None:
    random = np.random.default_rng(1947)
    for m, n in ((4, 4), (5, 12), (30, 6)):
        baseline, contender = random.normal(0, 1, m), random.normal(0.7, 3, n)
        assert min(baseline.min(), contender.min()) < 0
        evidence = compare_unpaired(baseline.tolist(), contender.tolist())
        expected = stats.ttest_ind(contender, baseline, equal_var=False)
        ends = expected.confidence_interval(0.95)
        assert evidence.difference is not None
        assert evidence.p == pytest.approx(expected.pvalue, rel=PRECISION)
        assert (evidence.difference.low, evidence.difference.high) == pytest.approx(tuple(ends), rel=PRECISION)
