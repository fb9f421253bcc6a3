"""Error rates of intervals and claims: 2,000 synthetic experiments for each figure, seeded.

`-rP` prints the figures that docs/concepts/statistics.md quotes. The draws are vectorised;
test_statistics_comparison.py shows that the array functions agree with the lab's functions.
"""

from __future__ import annotations

import numpy as np
import pytest

from loadstone.statistics.autocorrelation import run_interval
from loadstone.statistics.comparison import ALPHA, adjust_holm, estimate_shift, rank_sum_p
from loadstone.statistics.intervals import median_rank, order_interval, summarize_samples, t_interval
from loadstone.statistics.stopping import is_narrow, stopping_reason
from statistics_support import (
    EXPERIMENTS,
    POPULATIONS,
    VARIATION,
    autoregressive,
    contaminate_normal,
    covers,
    drifting,
    share,
)

SIZES = (6, 10, 20)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_of_fixed_repeats_have_nominal_coverage(name: str, n: int) -> None:
    population, random = POPULATIONS[name], np.random.default_rng([1, n])
    samples = population.draw(random, (EXPERIMENTS, n))
    order, level = order_interval(samples), median_rank(n)[1]
    by_order = covers(order.low, order.high, population.median)
    mean, _ = t_interval(samples)
    by_t = covers(mean.low, mean.high, population.mean)
    # The interval of a ratio, from the logarithms of pairs without a true difference.
    ratio, _ = t_interval(np.log(samples / population.draw(random, samples.shape)))
    by_pairs = covers(ratio.low, ratio.high, 0)
    print(f"{name}, n={n}: median {by_order:.1%} (level {level:.1%}), mean {by_t:.1%}, ratio {by_pairs:.1%}")
    assert by_order == pytest.approx(level, abs=0.015)
    assert 0.93 <= by_t <= 0.97
    assert 0.93 <= by_pairs <= 0.97


def test_outliers_break_only_the_interval_of_the_mean() -> None:
    population = contaminate_normal(0.5)
    samples = population.draw(np.random.default_rng(2), (EXPERIMENTS, 20))
    mean, _ = t_interval(samples)
    order = order_interval(samples)
    by_t, by_order = covers(mean.low, mean.high, population.mean), covers(order.low, order.high, population.median)
    print(f"one in 20 slower by half, n=20: median {by_order:.1%}, mean {by_t:.1%}")
    assert by_t < 0.9
    assert by_order == pytest.approx(median_rank(20)[1], abs=0.015)


@pytest.mark.parametrize("until", [0.03, 0.06, 0.1])
@pytest.mark.parametrize("name", ["normal", "lognormal", "outliers"])
def test_the_rule_of_stopping_keeps_the_interval_honest(name: str, until: float) -> None:
    population, at_most = POPULATIONS[name], 40
    hits, repeats, hasty = [], [], []
    for samples in population.draw(np.random.default_rng(3), (EXPERIMENTS, at_most)).tolist():
        n = next(n for n in range(6, at_most + 1) if stopping_reason([samples[:n]], 6, at_most, until))
        summary = summarize_samples(samples[:n])
        assert summary.low is not None
        assert summary.high is not None
        hits.append(summary.low <= population.median <= summary.high)
        repeats.append(n)
        if until == 0.06:
            # A rule that does not wait for a second evaluation.
            early = summarize_samples(
                samples[: next((n for n in range(6, at_most) if is_narrow(samples[:n], until)), at_most)]
            )
            hasty.append(
                early.low is not None and early.high is not None and early.low <= population.median <= early.high
            )
    print(f"{name}, until {until}: covered {share(hits):.1%}, {np.mean(repeats):.1f} repeats on average")
    assert share(hits) >= 0.92
    if hasty:
        print(f"{name}, until {until}, at the first narrow look: covered {share(hasty):.1%}")
        assert share(hasty) < share(hits)


def test_stopping_rule_seldom_separates_equal_variants() -> None:
    # Samples that are narrow by chance stop early, so the error rate exceeds 5 %. The rate peaks near this width, twice
    # the repeats' variation. Three times as many experiments are run, because the rate is close to its bound.
    random, at_most = np.random.default_rng([4, 20]), 20
    claims = []
    for pair in POPULATIONS["normal"].draw(random, (3 * EXPERIMENTS, 2, at_most)):
        n = next(n for n in range(6, at_most + 1) if stopping_reason(pair[:, :n].tolist(), 6, at_most, 2 * VARIATION))
        claims.append(t_interval(np.log(pair[1, :n] / pair[0, :n]))[1] < ALPHA)
    print(f"A/A under the rule of stopping: {share(claims):.1%} claimed")
    assert share(claims) <= 0.065


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", POPULATIONS)
def test_equal_variants_are_seldom_claimed_to_differ(name: str, n: int) -> None:
    random = np.random.default_rng([5, n])
    pairs = POPULATIONS[name].draw(random, (EXPERIMENTS, n, 2))
    _, steady = t_interval(np.log(pairs[..., 1] / pairs[..., 0]))
    drifted = drifting(random, pairs, 0.2)
    _, drift = t_interval(np.log(drifted[..., 1] / drifted[..., 0]))
    apart, _ = estimate_shift(np.log(pairs[..., 0]), np.log(pairs[..., 1]))
    claims = [share(steady < ALPHA), share(drift < ALPHA), 1 - covers(apart.low, apart.high, 0)]
    print(f"{name}, n={n}: A/A in blocks {claims[0]:.1%}, under drift {claims[1]:.1%}, between runs {claims[2]:.1%}")
    assert max(claims) <= 0.065


@pytest.mark.parametrize("n", [6, 10])
def test_holm_seldom_separates_a_family_of_equals(n: int) -> None:
    # Four contenders share a baseline, as in an experiment with five variants.
    random = np.random.default_rng([6, n])
    values = POPULATIONS["normal"].draw(random, (EXPERIMENTS, n, 5))
    drifted = drifting(random, values, 0.2)
    _, blocks = t_interval(np.log(drifted[..., 1:] / drifted[..., :1]).swapaxes(1, 2))
    logs = np.log(values).swapaxes(1, 2)
    _, u = estimate_shift(np.repeat(logs[:, :1], 4, axis=1), logs[:, 1:])
    apart = [[rank_sum_p(statistic, n, n) for statistic in family] for family in u.tolist()]
    claims = [
        share([any(p is not None and p < ALPHA for p in adjust_holm(family)) for family in families])
        for families in (blocks.tolist(), apart)
    ]
    unadjusted = share((blocks < ALPHA).any(axis=1))
    print(
        f"n={n}: any of four claimed in blocks {claims[0]:.1%} (without Holm {unadjusted:.1%}), between {claims[1]:.1%}"
    )
    assert max(claims) <= 0.065
    assert unadjusted > 0.1


@pytest.mark.parametrize(("n", "goal"), [(6, 0.75), (10, 0.95)])
@pytest.mark.parametrize("drift", [0.0, 0.1, 0.2])
def test_a_difference_of_ten_per_cent_is_found(n: int, goal: float, drift: float) -> None:
    # In logarithms, 10 % slower is a larger step than 10 % faster, so both are simulated equally often.
    results = []
    for ratio in (1.1, 0.9):
        random = np.random.default_rng([7, n, round(ratio * 10)])
        pairs = POPULATIONS["normal"].draw(random, (EXPERIMENTS, n, 2))
        drifted = drifting(random, pairs * np.array([1, ratio]), drift)
        _, p = t_interval(np.log(drifted[..., 1] / drifted[..., 0]))
        results.append(share(p < ALPHA))
    print(f"n={n}, drift {drift:.0%}: +10 % found in {results[0]:.1%}, -10 % in {results[1]:.1%}")
    assert np.mean(results) >= goal


def test_signed_rank_test_cannot_decide_six_repeats() -> None:
    # The test needs six differences of the same sign. The probability of this bounds the power of the test, and of a
    # sign-flip test.
    pairs = POPULATIONS["normal"].draw(np.random.default_rng(8), (EXPERIMENTS, 6, 2)) * np.array([1, 1.1])
    one_sided = share(np.abs(np.sign(pairs[..., 1] - pairs[..., 0]).sum(axis=-1)) == 6)
    print(f"all six differences on one side: {one_sided:.1%}")
    assert one_sided < 0.7


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("n", [60, 100, 300])
def test_error_bars_of_a_run_respect_autocorrelation(n: int, phi: float) -> None:
    series = autoregressive(np.random.default_rng(9), phi, (EXPERIMENTS, n))
    (_, low, high), size = run_interval(series)
    naive, _ = t_interval(series)
    covered, as_if, truth = covers(low, high, 100), covers(naive.low, naive.high, 100), n * (1 - phi) / (1 + phi)
    print(
        f"AR(1) {phi}, {n} points: covered {covered:.1%} (as if independent {as_if:.1%}), "
        f"effective size {np.median(size):.0f}, truth {truth:.0f}"
    )
    # A short run does not reveal a long autocorrelation; no interval can correct for this, as documented.
    assert covered >= (0.9 if n == 300 or phi < 0.9 else 0.8)
    assert np.median(size) == pytest.approx(truth, rel=0.35 if n == 300 else 1.5)


def test_the_repeats_of_the_simulations_vary_as_stated() -> None:
    samples = POPULATIONS["lognormal"].draw(np.random.default_rng(10), (100_000,))
    assert samples.std() / samples.mean() == pytest.approx(VARIATION, rel=0.02)
