"""Series within a run: error bars, warm-up, trend and change of level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from loadstone.statistics.autocorrelation import autocovariance, effective_size, run_interval, run_mean
from loadstone.statistics.steady import ALPHA, EFFECT_MIN, assess_steadiness, warm_up_end
from statistics_support import EXPERIMENTS, VARIATION, Floats, autoregressive, contaminate_normal, share

pytestmark = pytest.mark.filterwarnings("error")


def noise(n: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).normal(100, 100 * VARIATION, n)


# Error bars.


def test_autocovariances_are_those_of_their_definition() -> None:
    x = noise(31)
    c = x - x.mean()
    assert autocovariance(x) == pytest.approx([float((c[: 31 - lag] * c[lag:]).sum()) / 31 for lag in range(31)])


def test_effective_size_equals_geyers_sums() -> None:
    # Autocovariances of 1 to 6, times 6: 17.5, 8.75, 1, -4.75 and so on. The second pair is negative, so only the first
    # counts: the long-run variance is 2 x (17.5 + 8.75) - 17.5 = 35, and 6 x 17.5 / 35 = 3.
    assert float(effective_size([1.0, 2, 3, 4, 5, 6])) == pytest.approx(3)
    # For alternating values, the estimate would exceed n, the size for independent values, and is limited to n.
    assert float(effective_size([1.0, -1] * 20)) == 40
    assert float(effective_size([5.0] * 9)) == 9


def test_run_mean_has_its_effective_number_of_intervals() -> None:
    series = autoregressive(np.random.default_rng(2), 0.5, (1, 300))[0]
    mean = run_mean(series.tolist())
    assert (mean.value, mean.level) == pytest.approx((series.mean(), 0.95))
    assert 60 < mean.n < 160
    assert mean.low is not None
    assert mean.high is not None
    assert mean.low < mean.value < mean.high
    (_, low, high), _ = run_interval(series)
    assert (mean.low, mean.high) == (low, high)


def test_short_or_sluggish_run_has_no_error_bars() -> None:
    assert run_mean(noise(19).tolist()).low is None
    assert run_mean(noise(20).tolist()).low is not None
    assert run_mean(np.linspace(1, 2, 60).tolist()).low is None
    assert (run_mean([3.0]).value, run_mean([]).n) == (3.0, 0)


# Steady state.


@pytest.mark.parametrize("n", [5, 8, 20, 60, 300])
def test_noise_is_steady(n: int) -> None:
    random = np.random.default_rng([3, n])
    plain = random.normal(100, 20, (EXPERIMENTS // 2, n))
    skewed = random.lognormal(4.6, 0.3, (EXPERIMENTS // 8, n))
    dips = contaminate_normal(0.5).draw(random, (EXPERIMENTS // 8, n))
    alarms = [
        share([not assess_steadiness(rates.tolist()).steady for rates in series]) for series in (plain, skewed, dips)
    ]
    print(f"n={n}: false alarms {alarms[0]:.1%}, skewed {alarms[1]:.1%}, with dips {alarms[2]:.1%}")
    assert max(alarms) <= 0.05


@pytest.mark.parametrize(
    # Twenty autocorrelated points are called unsteady too often: a slow random walk cannot be distinguished from a
    # trend.
    ("phi", "n", "most"),
    [(0.5, 20, 0.2), (0.5, 60, 0.1), (0.5, 300, 0.02), (0.9, 20, 0.45), (0.9, 300, 0.1)],
)
def test_long_autocorrelated_runs_are_steady(phi: float, n: int, most: float) -> None:
    series = autoregressive(np.random.default_rng(4), phi, (EXPERIMENTS // 4, n))
    alarms = share([not assess_steadiness(rates.tolist()).steady for rates in series])
    print(f"AR(1) {phi}, {n} points: false alarms {alarms:.1%}")
    assert alarms <= most


SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "a rise by a fifth": lambda at: 0.9 + 0.2 * at,
    "a fifth less in the last quarter": lambda at: np.where(at < 0.75, 1, 0.8),
    "a fifth less from the middle on": lambda at: np.where(at < 0.5, 1, 0.8),
}


@pytest.mark.parametrize("n", [20, 60, 300])
@pytest.mark.parametrize("name", SHAPES)
def test_what_is_not_steady_is_found(name: str, n: int) -> None:
    random = np.random.default_rng([5, n])
    results = [
        share(
            [
                not assess_steadiness((rates * SHAPES[name](np.arange(n) / n)).tolist()).steady
                for rates in autoregressive(random, phi, (100, n))
            ]
        )
        for phi in (0.0, 0.5)
    ]
    print(f"{name}, n={n}: found in {results[0]:.0%}, with AR(1) 0.5 in {results[1]:.0%}")
    assert min(results) >= 0.9


def test_trend_is_its_share_of_the_window_median() -> None:
    steadiness = assess_steadiness((noise(120) * (0.9 + 0.2 * np.arange(120) / 120)).tolist())
    assert "trend" in steadiness.reasons
    assert steadiness.trend_share == pytest.approx(0.2, abs=0.05)
    assert steadiness.trend_p < ALPHA


def test_late_change_is_located_with_its_size() -> None:
    steadiness = assess_steadiness((noise(120) * np.where(np.arange(120) < 90, 1, 0.7)).tolist())
    assert "change" in steadiness.reasons
    assert steadiness.change_at == pytest.approx(90, abs=2)
    assert steadiness.change_share == pytest.approx(-0.3, abs=0.04)
    # Exact without noise.
    exact = assess_steadiness([100.0] * 20 + [80.0] * 10)
    assert (exact.change_at, exact.change_share, exact.change_p) == (20, -0.2, 0.0)


def test_what_is_sure_but_slight_is_steady() -> None:
    steadiness = assess_steadiness([100 + 0.01 * at for at in range(300)])
    assert (steadiness.steady, steadiness.reasons) == (True, ())
    assert steadiness.trend_p < 1e-6
    assert 0 < steadiness.trend_share < EFFECT_MIN
    assert not assess_steadiness([100 + 0.01 * at for at in range(300)], effect_min=0.02).steady


def test_slow_last_interval_is_no_change() -> None:
    for n in (5, 20, 60):
        assert assess_steadiness([*noise(n - 1).tolist(), 10.0]).steady


def test_short_equal_and_empty_series_are_steady() -> None:
    for series in ([], [1.0], [1.0, 2.0], [1.0, 5.0, 9.0], [0.0] * 50, [7.0] * 50, [0.0] * 40 + [1.0]):
        steadiness = assess_steadiness(series)
        assert steadiness.steady, series
        assert steadiness.n == len(series)
    # Five falling points are the minimum for a trend: p = 2 / 5!.
    fall = assess_steadiness([100.0, 90, 80, 70, 60])
    assert (fall.reasons, fall.change_at) == (("trend",), None)
    assert fall.trend_p == pytest.approx(2 / 120)


def test_day_of_seconds_is_averaged_before_the_test() -> None:
    series = noise(86_400) * np.where(np.arange(86_400) < 60_000, 1, 0.9)
    steadiness = assess_steadiness(series.tolist())
    assert steadiness.change_at == pytest.approx(60_000, abs=500)
    assert steadiness.n == 86_400


# Warm-up.


@pytest.mark.parametrize(("n", "warm"), [(20, 5), (60, 15), (300, 60)])
def test_warm_up_is_removed_up_to_its_end(n: int, warm: int) -> None:
    ends = [warm_up_end((noise(n, seed) * np.where(np.arange(n) < warm, 0.4, 1)).tolist()) for seed in range(200)]
    assert np.median(ends) == pytest.approx(warm, abs=5 if n >= 50 else 1)
    assert share([end >= warm for end in ends]) > 0.95


def test_at_most_half_is_cut_off() -> None:
    assert warm_up_end([float(at) for at in range(100)]) == 50
    assert warm_up_end([float(at) for at in range(20)]) == 10
    assert [warm_up_end([100.0] * n) for n in (0, 1, 5, 60)] == [0, 0, 0, 0]
    assert warm_up_end([1.0, 100, 100, 100, 100, 100]) == 1
