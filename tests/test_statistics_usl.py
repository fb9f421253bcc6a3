"""The Universal Scalability Law on curves with known parameters and on a real sweep."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from loadstone.statistics.usl import curve, fit, peak_clients

# A read-only sweep of YCSB's threads against HBase, 10,000,000 records, op/s as its author typed them.
HBASE: dict[float, list[float]] = {
    10: [42752.40],
    20: [67884, 70293],
    25: [77900, 76069, 76420],
    28: [81779, 78563, 81625],
    30: [83915, 78397, 81796],
    31: [81611, 83030, 82546],
    32: [82200, 82940, 85458],
    33: [81620, 84615, 82957],
    35: [81620, 81136],
    40: [83798, 81771],
}
POWERS = (1, 2, 4, 8, 16, 32, 64, 128)
LAW = (1_000.0, 0.02, 0.0005)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def sweep(
    law: tuple[float, float, float], counts: tuple[int, ...], repeats: int = 1, variation: float = 0.0, seed: int = 1
) -> list[tuple[float, float]]:
    random = np.random.default_rng(seed)
    clients = np.repeat(np.array(counts, dtype=float), repeats)
    throughput = curve(clients, *law) * (1 + variation * random.normal(size=len(clients)))
    return list(zip(clients.tolist(), throughput.tolist(), strict=True))


def test_a_real_sweep_saturates_at_the_edge_of_what_was_measured() -> None:
    found = fit([(clients, each) for clients, values in HBASE.items() for each in values])
    assert found.confidence == "edge"
    assert found.peak is not None
    assert found.peak.low is not None
    assert found.peak.high is not None
    # Its author named 31 or 32, the highest of the averages; from 36 on all of these fit.
    assert (found.peak.low, found.peak.value, found.peak.high) == pytest.approx((35.6, 37.3, 41.3), abs=0.3)
    assert found.peak.n == 25
    for clients, values in HBASE.items():
        assert found.throughput(clients) == pytest.approx(np.mean(values), rel=0.03)


@pytest.mark.parametrize("law", [LAW, (50.0, 0.3, 0.01), (200_000.0, 0.0, 0.002), (3.0, 0.9, 0.0004)])
def test_known_parameters_are_found_again(law: tuple[float, float, float]) -> None:
    found = fit(sweep(law, POWERS))
    assert (found.lam, found.sigma, found.kappa) == pytest.approx(law, rel=1e-3, abs=1e-6)
    assert found.peak is not None
    assert found.peak.value == pytest.approx(math.sqrt((1 - law[1]) / law[2]), rel=1e-3)
    assert found.confidence == "clear"


def test_the_interval_of_the_peak_holds_the_truth() -> None:
    hits = []
    for seed in range(60):
        peak = fit(sweep(LAW, POWERS, 3, 0.05, seed), resamples=60).peak
        assert peak is not None
        assert peak.low is not None
        assert peak.high is not None
        hits.append(peak.low <= peak_clients(LAW) <= peak.high)
    print(f"peak of the scalability law: covered {np.mean(hits):.0%} of 60 sweeps")
    assert np.mean(hits) >= 0.85


@pytest.mark.parametrize("law", [(1_000.0, 0.0, 0.0), (1_000.0, 0.1, 0.0), (1_000.0, 0.02, 0.0005)])
def test_a_curve_that_does_not_bend_has_no_peak(law: tuple[float, float, float]) -> None:
    found = fit(sweep(law, (1, 2, 4, 8, 16), 3, 0.02))
    assert (found.peak, found.confidence) == (None, "beyond")
    # The fit holds nevertheless, for what was measured.
    assert found.throughput(8) == pytest.approx(curve(np.array([8.0]), *law)[0], rel=0.05)


def test_a_peak_just_within_noisy_points_is_vague() -> None:
    # The true peak is at 44.
    found = fit(sweep(LAW, (10, 20, 30, 40, 48), 2, 0.05, seed=2))
    assert found.confidence == "vague"
    assert found.peak is not None
    assert found.peak.value < 60


def test_three_numbers_of_clients_are_too_few() -> None:
    found = fit(sweep(LAW, (1, 8, 64), 5))
    assert (found.peak, found.confidence) == (None, "too-few-points")
    assert math.isnan(found.lam)
    for points in ([], [(1.0, 0.0)] * 9, [(0.0, 5.0), (math.nan, 1.0), (2.0, math.inf), (1.0, -1.0)]):
        assert fit(points).confidence == "too-few-points"


def test_clients_that_only_get_in_each_others_way_peak_at_one() -> None:
    found = fit([(n, 100 / n) for n in (1.0, 2, 4, 8)])
    assert found.peak is not None
    assert found.peak.value == pytest.approx(1)
    assert fit([(n, 100.0) for n in (1.0, 2, 4, 8)]).confidence == "beyond"


def test_the_same_points_give_the_same_interval() -> None:
    points = sweep(LAW, POWERS, 2, 0.05)
    assert fit(points, resamples=50) == fit(points, resamples=50)
    assert fit(points, resamples=50) != fit(points, resamples=50, seed=1)
