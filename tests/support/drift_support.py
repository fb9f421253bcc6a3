"""Simulated experiments with a known drift within their trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from judge_support import asking
from known_truth_support import (
    MS,
    SHAPE,
    make_series,
    scale_metrics,
    simulate_results,
    trial,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import metric_statistic

P99 = "read.p99"
FLAT = {"rocksdb": 1000.0, "lmdb": 1000.0}
ALIKE = {"rocksdb": 5.0, "lmdb": 5.0}
TWICE = {"rocksdb": 1000.0, "lmdb": 2000.0}
SECONDS = 60
# Returns the level at a point of the window (0 is its start, 1 its end), as a multiple of the steady level.
Level = Callable[[float], float]
# Returns the level of a system in a block.
Levels = Callable[[str, int], Level]
THROUGHPUT = asking(metrics=("throughput",))


def steady(_: float) -> float:
    """No drift."""
    return 1.0


def line(first: float, last: float) -> Level:
    """A straight line."""
    return lambda at: first + (last - first) * at


def step(first: float, last: float, at: float = 0.5) -> Level:
    """A step from one level to another."""
    return lambda share: first if share < at else last


def hump(level: float, first: float, last: float) -> Level:
    """The level `level` in one part of the window; the steady level elsewhere."""
    return lambda share: level if first <= share < last else 1.0


def always(**sides: Level) -> Levels:
    """For each named system, the same shape in all repeats."""
    return lambda system, _: sides.get(system, steady)


def sometimes(system: str, level: Level, *blocks: int) -> Levels:
    """A shape in the named blocks of one system; all other trials are steady."""
    return lambda result, block: level if result == system and block in blocks else steady


def alternating(factor: float, *systems: str) -> Levels:
    """Halfway, the level rises by the factor in one repeat and drops by it in the next; the mean is constant."""
    up = 2 * factor / (1 + factor)

    def levels(system: str, block: int) -> Level:
        if system not in systems:
            return steady
        return step(2 - up, up) if (block + len(system)) % 2 else step(up, 2 - up)

    return levels


def first_of(*some: Levels) -> Levels:
    """For each system and block, the first of these shapes that is not steady."""

    def levels(system: str, block: int) -> Level:
        levels_of = [shape(system, block) for shape in some]
        return next((shape for shape in levels_of if shape is not steady), steady)

    return levels


def mean(level: Level) -> float:
    """The mean over the seconds of the window."""
    return math.fsum(level((at + 0.5) / SECONDS) for at in range(SECONDS)) / SECONDS


def simulate_drift(
    rates: Mapping[str, float], levels: Levels, repeats: int = 6, noise: float = 0.002, **fields: object
) -> ResultSet:
    """Closed loops: throughput follows the level, and latencies follow its reciprocal. Figures are window means."""

    def make(system: str, block: int, rate: float) -> TrialResult:
        return trial(system, block, rate * mean(levels(system, block)))

    def minute(result: TrialResult) -> Series:
        level = levels(str(result.config["system"]), result.repeat)
        middle = mean(level)
        return make_series(
            result,
            lambda at: level((at + 0.5) / SECONDS) / middle,
            lambda at: middle / level((at + 0.5) / SECONDS),
        )

    return simulate_results(rates, repeats, noise, make=make, minute=minute, **fields)  # type: ignore[arg-type]


def simulate_drift_at_rate(
    tails: Mapping[str, float], levels: Levels, repeats: int = 6, noise: float = 0.002, **fields: object
) -> ResultSet:
    """1,000 op/s on both sides; the latencies, with these means in ms, follow the level.

    A percentile of the window is a percentile of all seconds' latencies together. For distributions of equal shape,
    the tail follows the level that a tenth of the seconds reach.
    """

    def make(system: str, block: int, factor: float) -> TrialResult:
        result = trial(system, block, 1000.0, target=1000.0, mean_ns=tails[system] * factor / 1000 * MS)
        level = levels(system, block)
        return scale_metrics(
            [name for name in result.values if name.startswith(("read.", "all.")) and is_latency(name)], top(level)
        )(result)

    def minute(result: TrialResult) -> Series:
        level = levels(str(result.config["system"]), result.repeat)
        high = top(level)
        return make_series(result, latencies=lambda at: level((at + 0.5) / SECONDS) / high)

    return simulate_results(dict.fromkeys(tails, 1000.0), repeats, noise, make=make, minute=minute, **fields)  # type: ignore[arg-type]


def is_latency(metric: str) -> bool:
    """Whether a metric is a latency."""
    return metric_statistic(metric) in {*SHAPE, "mean"}


def top(level: Level) -> float:
    """The level that is reached in a tenth of the seconds; it determines the tail."""
    return sorted(level((at + 0.5) / SECONDS) for at in range(SECONDS))[-SECONDS // 10]
