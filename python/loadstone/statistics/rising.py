"""Whether a series rises over its window: what a queue does that is given more than is taken out of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from loadstone.statistics.centre import finite

# The test is of so many batches of neighbours at most, each of so many points at least. Neighbours resemble each
# other; batches of them hardly do. A correction for autocorrelation as in `steady` would not do here: the response
# times of a queue that grows are a random walk around their slope, whose correction takes nearly all power.
BATCHES_MAX = 10
BATCH_MIN = 3
# Of six batches a perfect order comes once in 720 times by chance; of five it is too likely.
POINTS_MIN = 6 * BATCH_MIN


@dataclass(frozen=True, slots=True)
class Rise:
    """How a series rises, in its own unit."""

    # The chance of an order of batches that rises as much in a series without a trend, one-sided.
    p: float
    # From the window's first point to its last, along the fitted line; below 0 where it falls.
    rise: float
    # The level that it starts from: the median of the first third.
    first: float


def rise(series: Sequence[float]) -> Rise | None:
    """How a series of equally long intervals rises; None where there are too few of them to say.

    Each batch has the median of its points, so that one slow interval is not a trend. The test is Mann's and Kendall's
    (Mann 1945), exact for so few; the line is Theil's and Sen's (Sen 1968).
    """
    x = finite(series)
    if len(x) < POINTS_MIN:
        return None
    batches = min(BATCHES_MAX, len(x) // BATCH_MIN)
    levels = [float(np.median(part)) for part in np.array_split(x, batches)]
    first = float(np.median(x[: len(x) // 3]))
    if not np.ptp(levels):
        return Rise(1.0, 0.0, first)
    time = np.arange(batches, dtype=float)
    p = float(stats.kendalltau(time, levels, alternative="greater").pvalue)
    slope = float(stats.theilslopes(levels, time).slope)
    return Rise(p if math.isfinite(p) else 1.0, slope * batches, first)
