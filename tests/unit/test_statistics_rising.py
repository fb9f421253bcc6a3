"""A rise due to noise is not reported; the rise of an overloaded queue is, and the message states its size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from loadstone.judge.checks.rate import rise_text
from loadstone.judge.settings import Settings
from loadstone.statistics.steady import RISE_POINTS_MIN, find_rise
from statistics_support import Floats, Generator, autoregressive

SETTINGS = Settings()
SERIES = 1_000
MS = 1e6


def fires(latencies: Sequence[float] | Floats, seconds: float) -> bool:
    """Whether the check fires on these latencies, ns, one for each interval."""
    return bool(rise_text([float(latency) for latency in latencies], seconds, SETTINGS))


@pytest.mark.parametrize("n", [20, 30, 60, 120, 600])
@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_trendless_noise_rarely_fires(phi: float, n: int) -> None:
    # The noise is as wide as the level, and latencies are so high that the absolute threshold never suppresses a rise.
    normal = autoregressive(np.random.default_rng([3, n]), phi, (SERIES, n), 0.01) - 100
    noise = 100 * MS * np.exp(normal)
    hits = [fires(latencies, n / 1000) for latencies in noise]
    print(f"lognormal noise, phi {phi}, {n} intervals: {np.mean(hits):.2%}")
    # The check reads two columns, p50 and p99, so it fires on less than 1 % of steady series.
    assert np.mean(hits) <= 0.005


def queue(random: Generator, rate: float, load: float, seconds: int) -> tuple[Floats, Floats]:
    """Response times in an M/D/1 queue: the p50 and the p99, in ns, of the operations due in each second.

    Operations arrive as a Poisson process at one server with a constant service time.
    """
    due = np.sort(random.uniform(0, seconds, random.poisson(rate * seconds)))
    service, number = load / rate, np.arange(len(due))
    # Lindley: an operation begins at its arrival or at the end of its predecessor, whichever is later.
    done = np.maximum.accumulate(due - number * service) + (number + 1) * service
    every = [(done - due)[(due >= at) & (due < at + 1)] for at in range(seconds)]
    p50, p99 = ([float(np.quantile(series, share)) * 1e9 for series in every] for share in (0.5, 0.99))
    return np.array(p50), np.array(p99)


@pytest.mark.parametrize("rate", [100, 1_000, 10_000])
def test_only_a_queue_beyond_its_capacity_fires(rate: float) -> None:
    random = np.random.default_rng([4, int(rate)])
    for load, expected in ((0.7, False), (0.95, False), (1.05, True)):
        results = [queue(random, rate, load, 60) for _ in range(20)]
        hits = [any(fires(latencies, 60) for latencies in pair) for pair in results]
        assert hits == [expected] * 20, f"{load:.0%} of the capacity"


def test_one_slow_interval_is_no_trend() -> None:
    assert not fires([10 * MS] * 59 + [5_000 * MS], 60)
    assert not fires([10 * MS] * 30 + [5_000 * MS] * 2 + [10 * MS] * 28, 60)


def test_a_line_is_found_as_it_is() -> None:
    rise = find_rise([2.0 * at for at in range(60)])
    assert rise is not None
    assert rise.p < 1e-6
    assert rise.rise == pytest.approx(120)
    assert rise.first == 19.0


def test_what_falls_or_stays_does_not_rise() -> None:
    falling, level = find_rise([60.0 - at for at in range(60)]), find_rise([1.0] * 60)
    assert falling is not None
    assert level is not None
    assert (falling.rise < 0, falling.p) == (True, 1.0)
    assert (level.rise, level.p) == (0.0, 1.0)


def test_too_few_points_say_nothing() -> None:
    assert find_rise([float(at) for at in range(RISE_POINTS_MIN - 1)]) is None
    assert find_rise([float(at) for at in range(RISE_POINTS_MIN)]) is not None
