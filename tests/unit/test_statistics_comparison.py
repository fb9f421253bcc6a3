"""Comparisons within blocks and between runs: each compared with SciPy's test, and the agreement of ratio and p."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from loadstone.statistics.comparison import (
    ALPHA,
    Evidence,
    adjust_holm,
    cliffs_delta,
    compare_blocks,
    compare_runs,
    critical_u,
    detectable_difference,
    estimate_shift,
    rank_sum_p,
    repeats_for,
)
from loadstone.statistics.estimate import Estimate
from loadstone.statistics.intervals import t_interval
from statistics_support import Floats

pytestmark = pytest.mark.filterwarnings("error")

BASELINE = [100.0, 97.0, 103.5, 99.2, 101.1, 98.4]
CONTENDER = [110.9, 104.0, 115.3, 108.1, 112.0, 107.7]


def number_blocks(values: Floats | list[float]) -> dict[int, float]:
    return {block: float(value) for block, value in enumerate(values, 1)}


def claims(evidence: Evidence) -> tuple[bool, bool]:
    """Whether p shows a difference, and whether the interval shows one."""
    estimate, none = (evidence.ratio, 1.0) if evidence.difference is None else (evidence.difference, 0.0)
    assert evidence.p is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return evidence.p < ALPHA, not estimate.low <= none <= estimate.high


def test_blocks_are_compared_by_paired_logarithmic_t_test() -> None:
    comparison = compare_blocks(number_blocks(BASELINE), number_blocks(CONTENDER))
    expected = stats.ttest_rel(np.log(CONTENDER), np.log(BASELINE))
    ends = expected.confidence_interval(0.95)
    assert comparison.p == pytest.approx(expected.pvalue)
    assert (comparison.ratio.low, comparison.ratio.high) == pytest.approx((math.exp(ends.low), math.exp(ends.high)))
    assert comparison.ratio.value == pytest.approx(stats.gmean(CONTENDER) / stats.gmean(BASELINE))
    assert (comparison.n, comparison.effect, comparison.difference, comparison.ratio.level) == (6, 1.0, None, 0.95)
    assert comparison.method == "paired t test on logarithms within blocks"


def test_only_blocks_that_both_have_count() -> None:
    baseline, contender = number_blocks(BASELINE), number_blocks(CONTENDER)
    alone = {**baseline, 7: 5.0, 9: 100.0}
    assert compare_blocks(alone, {**contender, 8: 1e9, 9: math.nan}) == compare_blocks(baseline, contender)
    del alone[3]
    few = compare_blocks(alone, contender)
    assert (few.n, few.p, few.ratio.low, few.method) == (5, None, None, "too few blocks")
    rest = [0, 1, 3, 4, 5]
    assert few.ratio.value == pytest.approx(
        stats.gmean(np.array(CONTENDER)[rest]) / stats.gmean(np.array(BASELINE)[rest])
    )


def test_the_drift_of_a_block_cancels() -> None:
    drift = np.array([1, 2, 0.5, 3, 0.7, 1.4])
    still, drifted = (
        compare_blocks(number_blocks(np.array(BASELINE) * factor), number_blocks(np.array(CONTENDER) * factor))
        for factor in (1.0, drift)
    )
    assert drifted.p == pytest.approx(still.p)
    assert drifted.ratio.high == pytest.approx(still.ratio.high)


def test_bias_does_not_shrink_with_repeats() -> None:
    half = math.log(1.2)
    now, later = (detectable_difference([(0.0, half)], 6, count) for count in (6, 24))
    assert math.log1p(later) < math.log1p(now) / 2
    # Two scenarios whose centres differ by a factor of 4.
    biased = detectable_difference([(0.0, half), (math.log(4), half)], 6, 24)
    assert biased == pytest.approx(2 * (1 + later) - 1)
    # No number of repeats overcomes a bias that exceeds the ratio's distance from 1.
    assert repeats_for(Estimate(1.5, 6), half, math.log(2), 0.01) == math.inf
    assert repeats_for(Estimate(1.5, 6), half, 0.0, 0.01) == 2


@pytest.mark.parametrize(("repeats", "tests"), [(6, 1), (24, 1), (6, 10), (24, 10)])
def test_detectable_difference_is_shown_in_four_fifths(repeats: int, tests: int) -> None:
    draws, spread, runs = np.random.default_rng(7), 0.1, 2000
    # The average half-width of the interval for six blocks with this spread.
    half = float(stats.t.isf(ALPHA / 2, 5)) * spread / math.sqrt(6)
    difference = math.log1p(detectable_difference([(0.0, half)], 6, repeats, tests))
    hits = 0
    for _ in range(runs):
        noise = np.exp(draws.normal(difference, spread, repeats))
        p = compare_blocks(number_blocks(np.ones(repeats)), number_blocks(noise)).p
        hits += p is not None and p < ALPHA / tests
    assert 0.77 <= hits / runs <= 0.83


def test_part_of_the_runs_needs_four_repeats() -> None:
    part = compare_runs([1, 1.1, 1.2, 1.05, 1.15], [60, 61, 62, 63, 64, 65], least=4)
    assert part.p is not None
    assert part.p < 0.01
    assert compare_runs([1, 1.1, 1.2, 1.05, 1.15], [60, 61, 62, 63, 64, 65]).p is None


def test_runs_are_compared_by_mann_whitney() -> None:
    comparison = compare_runs(BASELINE, CONTENDER)
    assert comparison.p == stats.mannwhitneyu(BASELINE, CONTENDER).pvalue
    ratios = np.sort(np.divide.outer(CONTENDER, BASELINE).ravel())
    # The critical value of U at 6 and 6 is 5 (Mann & Whitney 1947), so the sixth ratios from the ends are the bounds.
    assert critical_u(6, 6) == 5
    assert (comparison.ratio.low, comparison.ratio.high) == pytest.approx((ratios[5], ratios[-6]))
    assert comparison.ratio.value == pytest.approx(np.median(ratios), rel=1e-3)
    assert comparison.ratio.level == pytest.approx(1 - 0.0411, abs=1e-4)
    assert (comparison.n, comparison.effect, comparison.method) == (6, 1.0, "Mann–Whitney test")


@pytest.mark.parametrize(("m", "n"), [(6, 6), (6, 15), (20, 7), (12, 12), (40, 25)])
def test_a_rank_sums_p_is_scipys(m: int, n: int) -> None:
    random = np.random.default_rng([m, n])
    for step in (0.0, 0.3, 0.6, 1, 3):
        baseline, contender = random.normal(size=m), random.normal(step, 1, n)
        u = int((contender[:, None] > baseline).sum())
        assert rank_sum_p(u, m, n) == pytest.approx(stats.mannwhitneyu(baseline, contender).pvalue)
    cut = critical_u(m, n)
    assert rank_sum_p(cut, m, n) < ALPHA <= rank_sum_p(cut + 1, m, n)


@pytest.mark.parametrize("n", [6, 9, 14])
def test_ratio_interval_excludes_one_exactly_for_significant_p(n: int) -> None:
    random = np.random.default_rng(n)
    results = []
    for experiment in range(120):
        values = random.normal(100, 5, (2, n)) * np.array([[1], [1 + 0.02 * (experiment % 5)]])
        # Whole numbers have ties; around 0 there is no ratio; coarse steps have many equal differences.
        baseline, contender = (values, np.round(values), values - 100, np.round(values / 5) * 5)[experiment % 4]
        for result in (
            compare_blocks(number_blocks(baseline), number_blocks(contender)),
            compare_runs(baseline.tolist(), contender.tolist()),
        ):
            by_p, by_interval = claims(result)
            assert by_p == by_interval, (baseline, contender, result)
            results.append(by_p)
    assert 0.05 < np.mean(results) < 0.9


def test_arrays_of_experiments_agree_with_each_experiment_alone() -> None:
    values = np.random.default_rng(3).lognormal(0, 0.05, (40, 8, 2))
    (_, low, high), p = t_interval(np.log(values[..., 1] / values[..., 0]))
    apart, u = estimate_shift(np.log(values[..., 0]), np.log(values[..., 1]))
    for at, (baseline, contender) in enumerate(values.swapaxes(1, 2)):
        inside, across = (
            compare_blocks(number_blocks(baseline), number_blocks(contender)),
            compare_runs(baseline.tolist(), contender.tolist()),
        )
        assert inside.p == pytest.approx(p[at])
        assert (inside.ratio.low, inside.ratio.high) == pytest.approx((np.exp(low[at]), np.exp(high[at])))
        assert across.p == rank_sum_p(int(u[at]), 8, 8)
        assert (across.ratio.low, across.ratio.high) == pytest.approx((np.exp(apart.low[at]), np.exp(apart.high[at])))


def test_one_run_per_side_has_no_claim() -> None:
    # The accelerated write-ahead log compared with the plain one, one YCSB run each.
    comparison = compare_runs([388.46], [1770.70])
    assert comparison.ratio.value == pytest.approx(4.558, abs=1e-3)
    assert (comparison.n, comparison.p, comparison.ratio.low, comparison.ratio.level) == (1, None, None, None)
    assert compare_runs([1.0] * 5, [2.0] * 9).p is None


def test_equal_figures_are_no_evidence() -> None:
    for value in (0.0, 1.0, -3.0, 1e9):
        same = [value] * 6
        for result in (compare_blocks(number_blocks(same), number_blocks(same)), compare_runs(same, same)):
            assert (result.p, result.effect, claims(result)) == (1.0, 0.0, (False, False))
    # Equal except for the last bit.
    assert compare_blocks(number_blocks([0.1 + 0.2] * 6), number_blocks([0.3] * 6)).p == 1


def test_ratio_without_variance_uses_the_signed_rank_test() -> None:
    comparison = compare_blocks(number_blocks([1.0] * 6), number_blocks([2.0] * 6))
    assert (comparison.ratio.low, comparison.ratio.value, comparison.ratio.high) == pytest.approx((2, 2, 2))
    assert (comparison.p, comparison.ratio.level, comparison.method) == (
        0.03125,
        0.96875,
        "exact signed-rank test on logarithms within blocks",
    )


def test_non_positive_figures_are_compared_by_differences() -> None:
    baseline, contender = [0.0, 1, 0, 2, 0, 1, 1], [5.0, 6, 4, 8, 5, 7, 5]
    for result in (
        compare_blocks(number_blocks(baseline), number_blocks(contender)),
        compare_runs(baseline, contender),
    ):
        assert math.isnan(result.ratio.value)
        assert result.ratio.low is None
        assert result.difference is not None
        assert result.difference.value == pytest.approx(5, abs=0.5)
        assert claims(result) == (True, True)
    assert math.isnan(compare_blocks({1: 0.0}, {1: 1.0}).ratio.value)


def test_nothing_to_compare_is_no_crash() -> None:
    for result in (
        compare_blocks({}, {}),
        compare_blocks({1: 2.0}, {2: 2.0}),
        compare_runs([], [1.0]),
        compare_runs([math.nan], []),
    ):
        assert (result.n, result.p, result.effect) == (0, None, None)
        assert math.isnan(result.ratio.value)


def test_effect_is_the_probability_above_minus_below() -> None:
    assert cliffs_delta(np.array([1.0, 2, 3]), np.array([2.0, 4])) == pytest.approx((1 + 0 - 1 + 3) / 6)


def test_holm_adjusts_from_the_smallest_up() -> None:
    # Holm's step-down by hand: 4 x 0.01, 3 x 0.02, 2 x 0.03, and never less than the preceding value.
    assert adjust_holm([0.03, 0.01, None, 0.5, 0.02]) == pytest.approx([0.06, 0.04, None, 0.5, 0.06])
    assert adjust_holm([0.04, 0.03]) == [0.06, 0.06]
    assert adjust_holm([0.7, 0.9]) == [1.0, 1.0]
    assert (adjust_holm([]), adjust_holm([None]), adjust_holm([0.02])) == ([], [None], [0.02])
