"""Bounds: how far a side's figures may be from the truth, and what holds wherever within them the truth lies.

Each doubt about the figures is a scenario: other samples that the two sides could have had. A claim must hold in all of
them, so p is the largest of theirs, and the interval covers all of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from loadstone.judge.judgement import Cell
from loadstone.results.value import Direction
from loadstone.statistics.centre import LEVEL
from loadstone.statistics.comparison import Evidence, between, blocked, unpaired
from loadstone.statistics.estimate import Estimate

Samples = Mapping[int, float]
Sides = tuple[Samples, Samples]
# Ratios closer than this count as equal: histograms have three significant digits.
RESOLUTION = 0.001
# So many blocks are tested as blocks where others are left out.
FREE_MIN = 4


@dataclass(frozen=True)
class Doubts:
    """What may be wrong with the figures of a baseline and of a contender."""

    # How many times faster than measured either may be; infinite where it is not known.
    factors: tuple[float, float] = (1.0, 1.0)
    # Each side's lower bounds of a latency, where it has them.
    lower: tuple[Cell | None, Cell | None] = (None, None)
    # Repeats of either side whose own trials are invalid.
    tainted: tuple[Collection[int], Collection[int]] = ((), ())
    # Repeats of either side with what was taken for chance.
    excused: tuple[Collection[int], Collection[int]] = ((), ())


@dataclass(frozen=True)
class Weighed:
    """The evidence of a comparison, as measured and under every doubt."""

    measured: Evidence
    robust: Evidence
    # The robust one if what was taken for chance is chance; None where that is not tested.
    excusing: Evidence | None
    # The robust one at the level of 90 %, by which two sides are found to be equivalent (Schuirmann 1987).
    alike: Estimate
    # The same as measured, and with either side as fast as it can be; what was taken for chance counts in neither.
    alike_measured: Estimate
    alike_factors: Estimate
    # Whether the robust ratio is a bound: the possible ratio that is nearest to 1.
    bound: bool


def weigh(
    baseline: Cell, contender: Cell, way: Direction | None, doubts: Doubts, *, interleaved: bool, equal_level: float
) -> Weighed:
    """What is known of contender ÷ baseline; `equal_level`: the level of the interval that shows equivalence."""
    sides = (dict(baseline.samples), dict(contender.samples))
    off = list(biased(sides, way, doubts))
    bad = list(without(sides, doubts.tainted))
    every = [sides, *off]
    free = [left for each in (sides, *bad) for left in without(each, doubts.excused)]

    def kept(some: Sequence[Sides], level: float = LEVEL) -> list[Evidence]:
        """What a part of the repeats says."""
        return [evidence_without(each, interleaved, level) for each in some]

    def bounds(found: Sequence[Evidence]) -> tuple[Evidence, bool]:
        """What all say, and whether the ratio is a bound."""
        robust = envelope(found)
        least = nearest(found) if off else robust.ratio.value
        ratio = replace(opened(robust.ratio, way, doubts.factors), value=least)
        bound = math.inf in doubts.factors or not math.isclose(least, robust.ratio.value, rel_tol=RESOLUTION)
        return replace(robust, ratio=ratio if bound else replace(ratio, value=robust.ratio.value)), bound

    found = [*(evidence_of(each, interleaved) for each in every), *kept(bad)]
    alike = [evidence_of(each, interleaved, equal_level) for each in every]
    excusing = bounds(found)[0] if free else None
    robust, bound = bounds([*found, *kept(free)])
    equal = envelope([*alike, *kept([*bad, *free], equal_level)])
    fastest = alike if doubts.factors != (1.0, 1.0) else alike[:1]
    return Weighed(
        found[0],
        robust,
        excusing,
        opened(equal.ratio, way, doubts.factors),
        alike[0].ratio,
        opened(envelope(fastest).ratio, way, doubts.factors),
        bound,
    )


def inside(interval: Estimate, matters: float) -> bool:
    """Whether the whole interval is nearer to 1 than the least difference that matters."""
    low, high = interval.low, interval.high
    return low is not None and high is not None and 1 / (1 + matters) < low and high < 1 + matters


def evidence_of(sides: Sides, interleaved: bool, level: float = LEVEL) -> Evidence:
    """Within blocks where variants were interleaved, else between runs."""
    if interleaved:
        return blocked(*sides, level)
    return between(list(sides[0].values()), list(sides[1].values()), level)


def evidence_without(sides: Sides, interleaved: bool, level: float = LEVEL) -> Evidence:
    """The repeats without some: a condition of a claim that all repeats make.

    For that fewer blocks are enough than for a claim by them alone. Those of the two sides that are left out can be in
    different blocks, and leave few to both.
    """
    if not interleaved:
        return between(list(sides[0].values()), list(sides[1].values()), level)
    if len(sides[0].keys() & sides[1].keys()) >= FREE_MIN:
        return blocked(*sides, level, FREE_MIN)
    return unpaired(list(sides[0].values()), list(sides[1].values()), level)


def without(sides: Sides, tainted: tuple[Collection[int], Collection[int]]) -> Iterator[Sides]:
    """The sides without bad repeats."""
    if any(tainted):
        kept = [
            {repeat: value for repeat, value in side.items() if repeat not in bad}
            for side, bad in zip(sides, tainted, strict=True)
        ]
        yield kept[0], kept[1]


def biased(sides: Sides, way: Direction | None, doubts: Doubts) -> Iterator[Sides]:
    """The sides with one at the best that is possible and the other as measured."""
    if way is not None:
        for at, factor in enumerate(doubts.factors):
            if 1 < factor < math.inf:
                scale = factor if way == "higher" else 1 / factor
                yield put(sides, at, {repeat: value * scale for repeat, value in sides[at].items()})
    for at, cell in enumerate(doubts.lower):
        if cell is not None:
            yield put(sides, at, dict(cell.samples))


def put(sides: Sides, at: int, samples: Samples) -> Sides:
    """The sides with one of them replaced."""
    return (samples, sides[1]) if at == 0 else (sides[0], samples)


def envelope(found: Sequence[Evidence]) -> Evidence:
    """The first of several, with the interval of all and the largest p; p is 1 where their directions differ."""
    first = found[0]
    if len(found) == 1:
        return first
    ps = [1.0 if each.p is None else each.p for each in found]
    p = None if first.p is None else max(ps) if len({above(each) for each in found}) == 1 else 1.0
    lows, highs = ([getattr(each.ratio, end) for each in found] for end in ("low", "high"))
    known = None not in lows and None not in highs
    ratio = replace(first.ratio, low=min(lows) if known else None, high=max(highs) if known else None)
    return replace(first, ratio=ratio, p=p)


def above(evidence: Evidence) -> bool:
    """Whether the contender's figure is the higher one."""
    if evidence.difference is not None:
        return evidence.difference.value > 0
    return evidence.ratio.value > 1


def nearest(found: Sequence[Evidence]) -> float:
    """The ratio nearest to 1, which is all that can be claimed."""
    ratios = [each.ratio.value for each in found]
    if any(math.isnan(ratio) for ratio in ratios):
        return found[0].ratio.value
    if min(ratios) <= 1 <= max(ratios):
        return found[0].ratio.value
    return min(ratios, key=lambda ratio: abs(math.log(ratio)) if ratio > 0 else math.inf)


def opened(ratio: Estimate, way: Direction | None, factors: tuple[float, float]) -> Estimate:
    """A ratio whose interval is open towards a side that may be faster by an unknown factor."""
    baseline, contender = (math.isinf(factor) for factor in factors)
    if way == "lower":
        baseline, contender = contender, baseline
    if way is None or ratio.low is None or ratio.high is None:
        return ratio
    return replace(ratio, low=0.0 if baseline else ratio.low, high=math.inf if contender else ratio.high)
