"""Power: the number of repeats that would decide a comparison, and the difference that a number of repeats detects."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadstone.statistics.comparison import ALPHA
from loadstone.statistics.distributions import normal_quantile, student_quantile
from loadstone.statistics.estimate import Estimate

# The probability with which a detectable difference is shown.
POWER = 0.8


def half_width(ratio: Estimate) -> float | None:
    """Half the width of a ratio's interval on the logarithmic scale; None without a finite interval above 0."""
    if not (ratio.low and ratio.high and math.isfinite(ratio.high)):
        return None
    return math.log(ratio.high / ratio.low) / 2


def detectable_difference(intervals: Sequence[tuple[float, float]], n: int, repeats: int, tests: int = 1) -> float:
    """The smallest difference, as a share, that this number of repeats shows with a probability of POWER.

    `intervals`: the centre and the half-width of each scenario's interval of `n` repeats, on the logarithmic scale. The
    half-widths narrow with the number of repeats; the distances between the centres do not. A difference
    of half the width of all intervals together would be shown in half of the runs; for POWER, the difference must be
    greater by a number of standard errors that follows from the noncentral t distribution (Cohen 1988, 2.2; its normal
    approximation is 26.7.10 in Abramowitz and Stegun). With several `tests`, the first of Holm's steps is assumed: p
    below ALPHA / tests.
    """
    # From half-widths to standard errors, and from these to the half-widths of more repeats.
    to_error = math.sqrt(n / repeats) / student_quantile(ALPHA / 2, n - 1)
    critical = student_quantile(ALPHA / tests / 2, repeats - 1)
    shrink = to_error * critical
    half = (max(at + shrink * own for at, own in intervals) - min(at - shrink * own for at, own in intervals)) / 2
    spread = math.sqrt(1 + critical**2 / (2 * (repeats - 1)))
    power = normal_quantile(1 - POWER) * spread - critical / (4 * (repeats - 1))
    return math.expm1(half + power * to_error * max(own for _, own in intervals))


def repeats_for(ratio: Estimate, half: float, bias: float, matters: float) -> float:
    """The number of repeats needed for a decision at the same ratio and spread; infinite if no number suffices.

    If the ratio is further from 1 than `matters`, the interval must exclude 1; else, it must lie within `matters`. An
    interval narrows with the root of the number of repeats, except for its `bias`.
    """
    distance, margin = abs(math.log(ratio.value)), math.log1p(matters)
    room = (distance if distance > margin else margin - distance) - bias
    return math.ceil(ratio.n * (half / room) ** 2) if room > 0 else math.inf
