"""Medians, means and their intervals agree with SciPy and with published tables."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadstone.statistics.estimate import REPEATS_MIN
from loadstone.statistics.intervals import median_rank, order_interval, summarize_samples, t_interval

REPEATS = [101.0, 97.5, 103.2, 99.0, 100.4, 110.0, 95.1, 98.8, 102.0, 100.1]


def test_range_of_six_has_level_31_of_32() -> None:
    summary = summarize_samples([6.0, 1, 5, 2, 4, 3])
    assert (summary.value, summary.n, summary.low, summary.high, summary.level) == (3.5, 6, 1, 6, 0.96875)


@pytest.mark.parametrize(
    # Conover, Practical Nonparametric Statistics, and benchstat: ranks of the narrowest symmetric interval.
    ("n", "rank", "level"),
    [(5, 1, 0.9375), (6, 1, 0.96875), (8, 1, 0.9921875), (9, 2, 0.9609375), (10, 2, 0.978515625), (20, 6, 0.958610)],
)
def test_ranks_are_the_innermost_whose_level_suffices(n: int, rank: int, level: float) -> None:
    assert median_rank(n) == pytest.approx((rank, level), abs=1e-6)


@pytest.mark.parametrize("n", range(6, 60))
def test_median_interval_equals_scipys_quantile_test(n: int) -> None:
    samples = np.random.default_rng(n).normal(size=n)
    expected: Any = stats.quantile_test(samples, p=0.5).confidence_interval(0.95)
    summary = summarize_samples(samples.tolist())
    assert (summary.low, summary.high) == (expected.low, expected.high)
    assert summary.level is not None
    assert summary.level >= 0.95


def test_the_mean_has_students_interval() -> None:
    expected = stats.ttest_1samp(REPEATS, 0).confidence_interval(0.95)
    (value, low, high), _ = t_interval(REPEATS)
    assert value == pytest.approx(np.mean(REPEATS))
    assert (low, high) == pytest.approx((expected.low, expected.high))


def test_fewer_than_six_repeats_have_no_interval() -> None:
    for n in range(REPEATS_MIN):
        estimate = summarize_samples(REPEATS[:n])
        assert (estimate.n, estimate.low, estimate.high, estimate.level) == (n, None, None, None)
        assert math.isnan(estimate.value) == (n == 0)


def test_what_could_not_be_measured_is_no_repeat() -> None:
    summary = summarize_samples([*REPEATS, math.nan, math.inf])
    assert (summary.n, summary) == (10, summarize_samples(REPEATS))


def test_equal_repeats_have_an_interval_of_zero_width() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (0.0, 0.1, 1e300):
            (mean, low, high), _ = t_interval([value] * 7)
            assert (low, high) == (mean, mean)
            assert mean == pytest.approx(value)
        interval, p = t_interval([[0.0] * 6, [0.3] * 6, [1.0, 2, 3, 4, 5, 6]])
    assert interval.low.tolist() == [0, pytest.approx(0.3), pytest.approx(3.5 - 2.5706 * math.sqrt(3.5 / 6), abs=1e-4)]
    assert p[0] == 1
    # Without data there is no p, and the caller must decide.
    assert math.isnan(p[1])
    assert p[2] == pytest.approx(stats.ttest_1samp([1, 2, 3, 4, 5, 6], 0).pvalue)


def test_arrays_are_taken_row_by_row() -> None:
    rows = np.random.default_rng(1).lognormal(size=(4, 3, 8))
    order, (means, _) = order_interval(rows), t_interval(rows)
    for at in np.ndindex(4, 3):
        row, (other, _) = summarize_samples(rows[at].tolist()), t_interval(rows[at])
        assert (row.value, row.low, row.high) == (order.value[at], order.low[at], order.high[at])
        assert (other.low, other.high) == pytest.approx((means.low[at], means.high[at]))
