"""The Universal Scalability Law on curves with known parameters, on unsuitable curves, and on a real sweep."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadstone.statistics.usl import COUNTS_MIN, fit_law, fit_parameters, law_curve

pytestmark = pytest.mark.filterwarnings("error")

# A read-only sweep over YCSB's threads on HBase, 10,000,000 records, in op/s as its author typed them.
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


def sweep(
    law: tuple[float, float, float], counts: tuple[int, ...], repeats: int = 1, variation: float = 0.0, seed: int = 1
) -> list[tuple[float, float]]:
    random = np.random.default_rng(seed)
    clients = np.repeat(np.array(counts, dtype=float), repeats)
    throughput = law_curve(clients, *law) * (1 + variation * random.normal(size=len(clients)))
    return list(zip(clients.tolist(), throughput.tolist(), strict=True))


def test_a_real_sweep_is_fitted() -> None:
    law = fit_law([(clients, value) for clients, values in HBASE.items() for value in values])
    assert law is not None
    for clients, values in HBASE.items():
        assert law.predict_throughput(clients) == pytest.approx(np.mean(values), rel=0.03)


@pytest.mark.parametrize("law", [LAW, (50.0, 0.3, 0.01), (200_000.0, 0.0, 0.002), (3.0, 0.9, 0.0004)])
def test_known_parameters_are_found_again(law: tuple[float, float, float]) -> None:
    points = sweep(law, POWERS)
    parameters = fit_parameters(np.array([n for n, _ in points]), np.array([x for _, x in points]))
    assert parameters == pytest.approx(law, rel=1e-3, abs=1e-6)


def test_the_law_is_gunthers() -> None:
    # 100 · 4 ÷ (1 + 0.1 · 3 + 0.01 · 4 · 3)
    assert law_curve(np.array([1.0, 4.0]), 100, 0.1, 0.01) == pytest.approx([100, 400 / 1.42])


def test_fitting_law_is_drawn_in_95_percent() -> None:
    draws = [fit_law(sweep(LAW, POWERS, 4, 0.05, seed)) is not None for seed in range(300)]
    print(f"scalability law: drawn for {np.mean(draws):.0%} of 300 sweeps that follow it")
    assert 0.9 < np.mean(draws) < 0.99


@pytest.mark.parametrize("repeats", [3, 10])
def test_ill_fitting_law_is_not_drawn(repeats: int) -> None:
    random = np.random.default_rng(5)
    counts = (1, 2, 4, 8, 12, 16, 20, 24, 32, 64, 128)
    points = [(float(n), 1000 * min(n, 20) * (1 + 0.02 * random.normal())) for n in counts for _ in range(repeats)]
    assert fit_law(points) is None


def test_law_without_repeats_has_unknown_fit() -> None:
    assert fit_law(sweep(LAW, POWERS)) is None


def test_three_numbers_of_clients_are_too_few() -> None:
    assert COUNTS_MIN == 4
    assert fit_law(sweep(LAW, (1, 8, 64), 5, 0.02)) is None
    for points in ([], [(1.0, 0.0)] * 9, [(0.0, 5.0), (math.nan, 1.0), (2.0, math.inf), (1.0, -1.0)]):
        assert fit_law(points) is None


def test_repeats_that_are_all_equal_fit_only_exactly() -> None:
    assert fit_law(sweep(LAW, POWERS, 3)) is not None
    assert fit_law([(n, 1000 * min(n, 20)) for n in POWERS for _ in range(3)]) is None
