"""Whether a series rises over its window, as a queue does that fills faster than it is emptied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from loadstone.statistics.centre import finite

# The test uses at most this many batches of neighbours, each of at least this many points. Neighbours resemble each
# other; batches of them hardly do. A correction for autocorrelation as in `steady` would not do here: the response
# times of a growing queue are a random walk around their slope, and its correction would take nearly all power.
BATCHES_MAX = 10
BATCH_MIN = 3
# Six batches are in perfect order once in 720 times by chance; with five it is too likely.
POINTS_MIN = 6 * BATCH_MIN


@dataclass(frozen=True, slots=True)
class Rise:
    """How a series rises, in its own unit."""

    # The chance of an order of batches that rises as much in a series without a trend, one-sided.
    p: float
    # From the window's first point to its last, along the fitted line; below 0 where the series falls.
    rise: float
    # The level that it starts from: the median of the first third.
    first: float


def rise(series: Sequence[float]) -> Rise | None:
    """How a series of equally long intervals rises; None where there are too few to decide.

    Each batch is the median of its points, so that one slow interval is not a trend. The test is Mann's and Kendall's
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
