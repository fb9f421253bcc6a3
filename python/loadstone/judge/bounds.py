"""Bounds: how far a side's figures may be from the truth, and what holds wherever within them the truth lies.

Each doubt about the figures is a scenario: other samples that the two sides could have had. A claim must hold in all of
them, so p is the largest of theirs, and the interval covers all of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from loadstone.results.value import Direction
from loadstone.statistics.centre import LEVEL
from loadstone.statistics.comparison import ALPHA, Evidence, between, blocked, unpaired
from loadstone.statistics.estimate import REPEATS_MIN, Estimate

Samples = Mapping[int, float]
Sides = tuple[Samples, Samples]
Factors = tuple[float, float]
Lows = tuple[Samples | None, Samples | None]
# Repeats of either side.
Repeats = tuple[Collection[int], Collection[int]]
# Ratios closer than this count as equal: histograms have three significant digits.
RESOLUTION = 0.001
# The level of the interval by which two sides are found to be equivalent: two tests at 5 % (Schuirmann 1987).
ALIKE = 1 - 2 * ALPHA
# So many blocks are tested as blocks where others are left out.
FREE_MIN = 4


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
    sides: Sides,
    way: Direction | None,
    factors: Factors,
    lower: Lows,
    tainted: Repeats,
    excused: Repeats,
    blocks: bool,
) -> Weighed:
    """What is known of contender ÷ baseline, and what of that holds whatever may be wrong with the figures.

    `factors`: how many times faster than measured either may be, infinite where it is not known; `lower`: each side's
    lower bounds of a latency, where it has them; `tainted`: repeats whose own trials are invalid; `excused`: repeats
    with what was taken for chance; `blocks`: whether variants were interleaved.
    """
    every = [sides, *biased(sides, way, factors, lower)]
    bad = list(without(sides, tainted))
    free = [left for each in (sides, *bad) for left in without(each, excused)]

    def at(level: float) -> tuple[list[Evidence], list[Evidence]]:
        """What all repeats say, and what they say without some."""
        parts = [evidence_of(each, blocks, level, part=True) for each in (*bad, *free)]
        return [evidence_of(each, blocks, level) for each in every], parts

    def bounds(found: Sequence[Evidence]) -> tuple[Evidence, bool]:
        """What all say, and whether the ratio is a bound."""
        robust = envelope(found)
        least = nearest(found) if len(every) > 1 else robust.ratio.value
        bound = math.inf in factors or not math.isclose(least, robust.ratio.value, rel_tol=RESOLUTION)
        ratio = opened(robust.ratio, way, factors)
        return replace(robust, ratio=replace(ratio, value=least) if bound else ratio), bound

    (found, parts), (alike, alike_parts) = at(LEVEL), at(ALIKE)
    excusing = bounds([*found, *parts[: len(bad)]])[0] if free else None
    robust, bound = bounds([*found, *parts])
    fastest = envelope(alike if factors != (1.0, 1.0) else alike[:1])
    return Weighed(
        found[0],
        robust,
        excusing,
        opened(envelope([*alike, *alike_parts]).ratio, way, factors),
        alike[0].ratio,
        opened(fastest.ratio, way, factors),
        bound,
    )


def inside(interval: Estimate, matters: float) -> bool:
    """Whether the whole interval is nearer to 1 than the least difference that matters."""
    low, high = interval.low, interval.high
    return low is not None and high is not None and 1 / (1 + matters) < low and high < 1 + matters


def evidence_of(sides: Sides, blocks: bool, level: float, *, part: bool = False) -> Evidence:
    """Within blocks where variants were interleaved, else between runs.

    A part of the repeats is a condition of a claim that all repeats make: for that fewer blocks are enough than for a
    claim by them alone. Those of the two sides that are left out can be in different blocks, and leave few to both.
    """
    baseline, contender = (list(side.values()) for side in sides)
    if not blocks:
        return between(baseline, contender, level)
    if part and len(sides[0].keys() & sides[1].keys()) < FREE_MIN:
        return unpaired(baseline, contender, level)
    return blocked(*sides, level, FREE_MIN if part else REPEATS_MIN)


def without(sides: Sides, tainted: Repeats) -> Iterator[Sides]:
    """The sides without bad repeats."""
    if any(tainted):
        kept = [
            {repeat: value for repeat, value in side.items() if repeat not in bad}
            for side, bad in zip(sides, tainted, strict=True)
        ]
        yield kept[0], kept[1]


def biased(sides: Sides, way: Direction | None, factors: Factors, lower: Lows) -> Iterator[Sides]:
    """The sides with one at the best that is possible and the other as measured."""
    for at, (factor, samples) in enumerate(zip(factors, lower, strict=True)):
        if way is not None and 1 < factor < math.inf:
            scale = factor if way == "higher" else 1 / factor
            yield put(sides, at, {repeat: value * scale for repeat, value in sides[at].items()})
        if samples is not None:
            yield put(sides, at, samples)


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
    if any(map(math.isnan, ratios)) or min(ratios) <= 1 <= max(ratios):
        return ratios[0]
    return min(ratios, key=lambda ratio: abs(math.log(ratio)) if ratio > 0 else math.inf)


def opened(ratio: Estimate, way: Direction | None, factors: Factors) -> Estimate:
    """A ratio whose interval is open towards a side that may be faster by an unknown factor."""
    baseline, contender = map(math.isinf, reversed(factors) if way == "lower" else factors)
    if way is None or ratio.low is None or ratio.high is None:
        return ratio
    return replace(ratio, low=0.0 if baseline else ratio.low, high=math.inf if contender else ratio.high)
