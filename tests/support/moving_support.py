"""Simulated experiments whose figures move within their trials, in a known way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from judge_support import asking
from known_truth_support import (
    MS,
    SHAPE,
    course,
    scaled,
    trial,
    world,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import metric_statistic

P99 = "read.p99"
FLAT = {"rocksdb": 1000.0, "lmdb": 1000.0}
ALIKE = {"rocksdb": 5.0, "lmdb": 5.0}
TWICE = {"rocksdb": 1000.0, "lmdb": 2000.0}
SECONDS = 60
# The level at a share of the window, as a multiple of the steady one.
Level = Callable[[float], float]
# The level of a system in a block.
Levels = Callable[[str, int], Level]
THROUGHPUT = asking(metrics=("throughput",))


def steady(_: float) -> float:
    """Nothing moves."""
    return 1.0


def line(first: float, last: float) -> Level:
    """A straight line."""
    return lambda at: first + (last - first) * at


def step(first: float, last: float, at: float = 0.5) -> Level:
    """One level, then another."""
    return lambda share: first if share < at else last


def hump(level: float, first: float, last: float) -> Level:
    """Another level for a part of the window."""
    return lambda share: level if first <= share < last else 1.0


def always(**sides: Level) -> Levels:
    """The same in all repeats of a system."""
    return lambda system, _: sides.get(system, steady)


def sometimes(system: str, level: Level, *blocks: int) -> Levels:
    """In some repeats of a system."""
    return lambda one, block: level if one == system and block in blocks else steady


def alternating(factor: float, *systems: str) -> Levels:
    """The level rises by the factor half way in one repeat and falls by it in the next; the mean stays."""
    up = 2 * factor / (1 + factor)

    def levels(system: str, block: int) -> Level:
        if system not in systems:
            return steady
        return step(2 - up, up) if (block + len(system)) % 2 else step(up, 2 - up)

    return levels


def first_of(*some: Levels) -> Levels:
    """The first that moves."""

    def levels(system: str, block: int) -> Level:
        found = [each(system, block) for each in some]
        return next((each for each in found if each is not steady), steady)

    return levels


def mean(level: Level) -> float:
    """Over the seconds of the window."""
    return math.fsum(level((at + 0.5) / SECONDS) for at in range(SECONDS)) / SECONDS


def moving(
    rates: Mapping[str, float], levels: Levels, repeats: int = 6, noise: float = 0.002, **fields: object
) -> ResultSet:
    """Closed loops whose throughput follows the level, latencies its reciprocal; figures are those of the window."""

    def make(system: str, block: int, rate: float) -> TrialResult:
        return trial(system, block, rate * mean(levels(system, block)))

    def minute(one: TrialResult) -> Series:
        level = levels(str(one.config["system"]), one.repeat)
        middle = mean(level)
        return course(
            one,
            lambda at: level((at + 0.5) / SECONDS) / middle,
            lambda at: middle / level((at + 0.5) / SECONDS),
        )

    return world(rates, repeats, noise, make=make, minute=minute, **fields)  # type: ignore[arg-type]


def at_a_rate(
    tails: Mapping[str, float], levels: Levels, repeats: int = 6, noise: float = 0.002, **fields: object
) -> ResultSet:
    """1,000 op/s on both sides; the latencies, of these means in ms, follow the level.

    A percentile of the window is that of the mixture: with latencies of equal shape, the least factor of the shape
    that leaves so many seconds above is close to it.
    """

    def make(system: str, block: int, factor: float) -> TrialResult:
        one = trial(system, block, 1000.0, target=1000.0, mean_ns=tails[system] * factor / 1000 * MS)
        level = levels(system, block)
        return scaled([name for name in one.values if name.startswith(("read.", "all.")) and timed(name)], top(level))(
            one
        )

    def minute(one: TrialResult) -> Series:
        level = levels(str(one.config["system"]), one.repeat)
        high = top(level)
        return course(one, latencies=lambda at: level((at + 0.5) / SECONDS) / high)

    return world(dict.fromkeys(tails, 1000.0), repeats, noise, make=make, minute=minute, **fields)  # type: ignore[arg-type]


def timed(metric: str) -> bool:
    """Whether it is a latency."""
    return metric_statistic(metric) in {*SHAPE, "mean"}


def top(level: Level) -> float:
    """The level that a tenth of the seconds reach: a tail is made there."""
    return sorted(level((at + 0.5) / SECONDS) for at in range(SECONDS))[-SECONDS // 10]
