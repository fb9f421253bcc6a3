"""Synthetic experiments: populations with known centres, drift, and series with known autocorrelation."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, signal, stats

Floats = NDArray[np.float64]
Generator = np.random.Generator

EXPERIMENTS = 2_000
# The share of the judge's and the search's simulations to run: all of them in `make soak`.
SIMULATED_SHARE = float(os.environ.get("LOADSTONE_SIMULATIONS", "0.05"))
# The variation of a trial's repeats on a quiet machine, as a share of their mean.
VARIATION = 0.05
OUTLIERS = 0.05


def count_experiments(number: int) -> int:
    """The number of simulated experiments to run, out of a total."""
    return max(round(number * SIMULATED_SHARE), 20)


def chance(bound: float, number: int) -> float:
    """The tolerance of a bound on a share: none if all simulations run, otherwise three standard deviations."""
    return 0.0 if SIMULATED_SHARE >= 1 else 3 * math.sqrt(bound * (1 - bound) / number)


@dataclass(frozen=True)
class Population:
    """The distribution of repeats, with its true median and mean."""

    draw: Callable[[Generator, tuple[int, ...]], Floats]
    median: float
    mean: float


def contaminate_normal(slower: float) -> Population:
    """Normal repeats, one in 20 of which is slower by this share, as with a noisy neighbour or a compaction."""

    def draw(random: Generator, shape: tuple[int, ...]) -> Floats:
        return random.normal(100, 100 * VARIATION, shape) * np.where(random.random(shape) < OUTLIERS, 1 - slower, 1.0)

    def below(x: float) -> float:
        usual, slow = (float(stats.norm.cdf(x, 100 * part, 100 * VARIATION * part)) for part in (1.0, 1 - slower))
        return (1 - OUTLIERS) * usual + OUTLIERS * slow - 0.5

    return Population(draw, float(optimize.brentq(below, 90, 110)), 100 * (1 - OUTLIERS * slower))


POPULATIONS = {
    "normal": Population(lambda random, shape: random.normal(100, 100 * VARIATION, shape), 100, 100),
    "lognormal": Population(
        lambda random, shape: 100 * random.lognormal(0, VARIATION, shape), 100, 100 * math.exp(VARIATION**2 / 2)
    ),
    # Represents percentiles of latency; the other populations represent throughput.
    "wide lognormal": Population(
        lambda random, shape: 100 * random.lognormal(0, 0.2, shape), 100, 100 * math.exp(0.2**2 / 2)
    ),
    # Slower by 20 %: four standard deviations.
    "outliers": contaminate_normal(0.2),
}


def drifting(random: Generator, values: Floats, drift: float) -> Floats:
    """Experiments of blocks of variants (experiments × blocks × variants) on a machine with linear drift.

    From the first trial to the last, the speed changes by `drift`; within each block the variants ran in random order.
    """
    experiments, blocks, variants = values.shape
    order = random.permuted(np.tile(np.arange(variants), (experiments, blocks, 1)), axis=-1)
    place = (np.arange(blocks)[:, None] * variants + order) / (blocks * variants - 1)
    return np.asarray(values * (1 + drift * (place - 0.5)))


def autoregressive(random: Generator, phi: float, shape: tuple[int, int], variation: float = VARIATION) -> Floats:
    """AR(1) series around 100, after a run-in that erases their start."""
    noise = random.normal(0, math.sqrt(1 - phi**2), (shape[0], shape[1] + 200))
    series: Any = signal.lfilter([1.0], [1.0, -phi], noise, axis=1)[:, 200:]
    return np.asarray(100 * (1 + variation * series))


def share(hits: Any) -> float:
    """The share of true values."""
    return float(np.mean(hits))


def covers(low: Any, high: Any, truth: float) -> float:
    """The share of intervals that contain the true value."""
    return share((np.asarray(low) <= truth) & (truth <= np.asarray(high)))
