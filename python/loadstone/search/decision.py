"""A decision: whether to go on beyond a load, by the repeats there are, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median

from scipy import stats

# Repeats are looked at as they come, and each look is a chance to be wrong. What brackets come to in the end is
# simulated (tests/test_search_simulations.py): 95 to 98 % of them hold the knee.
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Decision:
    """What a load came to: `go` on, as throughput still grows or the objective holds, or not."""

    load: float
    go: bool
    # Whether its repeats agree; else their median decided.
    sure: bool
    # The load that it was compared with, and how much throughput grew to there for each doubling.
    partner: float | None = None
    gain: float | None = None
    # How much it grew in all.
    growth: float | None = None


def growing(load: float, partner: float, here: Sequence[float], there: Sequence[float], threshold: float) -> Decision:
    """Whether throughput grows by `threshold` or more for each doubling of the load.

    The interval is Student's, of the difference of means of logarithms: noise grows with throughput.
    """
    doublings = math.log2(partner / load)
    bound = math.log1p(threshold) * doublings
    low, high = difference(here, there)
    growth = median(there) / median(here) - 1
    sure = low > bound or high < bound
    # A sure decision is that of the interval, which its own middle may not contradict.
    go = low > bound if sure else math.log1p(growth) >= bound
    return Decision(load, go, sure, partner, math.expm1(math.log1p(growth) / doublings), growth)


def meeting(load: float, votes: Sequence[bool]) -> Decision:
    """Whether the repeats meet the objective; where they disagree, more than half of them have to."""
    return Decision(load, sum(votes) * 2 > len(votes), len(set(votes)) == 1)


def difference(here: Sequence[float], there: Sequence[float]) -> tuple[float, float]:
    """The interval of how much the logarithms of one sample lie above those of another."""
    first, second = [math.log(each) for each in here], [math.log(each) for each in there]
    freedom = len(first) + len(second) - 2
    centre = fmean(second) - fmean(first)
    if freedom < 1:
        return -math.inf, math.inf
    squares = sum((each - fmean(sample)) ** 2 for sample in (first, second) for each in sample)
    error = math.sqrt(squares / freedom * (1 / len(first) + 1 / len(second)))
    return centre - quantile(freedom) * error, centre + quantile(freedom) * error


@cache
def quantile(freedom: int) -> float:
    """Of Student's distribution."""
    return float(stats.t.ppf((1 + LEVEL) / 2, freedom))
