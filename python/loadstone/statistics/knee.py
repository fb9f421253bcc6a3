"""The knee of a curve: the smallest load that reaches 95 % of the plateau, as a bracket of tried loads.

The curve is a unimodal fit to the medians of the loads: it rises up to the highest median and falls beyond it (isotonic
regression: Barlow, Bartholomew, Bremner & Brunk, Statistical Inference under Order Restrictions, 1972, section 1.2;
unimodal: Frisén, The Statistician 35, 1986). The plateau is the mean of the loads whose fit lies within the noise of
the top; the top alone would be the luckiest load. The bracket is the range of the knee over resampled blocks (Davison &
Hinkley, Bootstrap Methods and their Application, 1997, chapter 2).

All calculations use logarithms, since noise grows with throughput.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from loadstone.statistics.distributions import normal_quantile, student_quantile
from loadstone.statistics.intervals import Floats, order_interval

Columns = NDArray[np.intp]

# A throughput this far below the plateau still counts as having reached it.
TOLERANCE = 0.05
# The minimum ratio of the highest load to the knee that distinguishes a plateau from a rising curve: a curve that rises
# by 5 % over a smaller ratio may grow by 15 % with each doubling.
FLAT_RATIO = math.sqrt(2)
# Loads within this many standard errors of the top belong to the plateau. In simulations with 1 to 3.5 standard errors,
# a smaller value reduces the plateau to the luckiest load, and a larger value counts a slow rise as part of the
# plateau.
ERRORS = 2.5
# If a median differs from the fit by more than this many times the noise (ERRORS standard errors), the curve is not
# unimodal.
DEPARTURE = 2
# The minimum number of repeats: two repeats have only three different resamples.
REPEATS_MIN = 3
LOADS_MIN = 2
RESAMPLES = 400
SEED = 1972
LEVEL = 0.95
# The rounding error between equal figures.
ROUNDING = 1e-9

# The reasons for a missing bracket. `few-loads`, `few-repeats`: too little data; `rising`: the plateau is certainly
# above the tried loads; `scatter`: the repeats differ too much to decide.
Unclaimed = Literal["few-loads", "few-repeats", "rising", "scatter"]


@dataclass(frozen=True, slots=True)
class Knee:
    """The loads at which throughput reaches 95 % of its plateau and falls below it again."""

    # The loads that count, in ascending order, with the median and the unimodal fit of each, op/s.
    loads: tuple[float, ...] = ()
    medians: tuple[float, ...] = ()
    fit: tuple[float, ...] = ()
    # The mean of the loads that cannot be distinguished from the top, op/s; nan without loads. Individual loads exceed
    # the plateau.
    plateau: float = math.nan
    # The lowest and the highest of the loads that form the plateau.
    ends: tuple[float, float] = (math.nan, math.nan)
    # The smallest tried load whose fit reaches 95 % of the plateau: an estimate, not a claim.
    reached: float | None = None
    # The knee lies above `lower` and not above `upper`. `lower` is None if the lowest tried load may be sufficient;
    # `upper` is None if nothing is claimed.
    lower: float | None = None
    upper: float | None = None
    # The tried loads between which throughput falls permanently below 95 % of the plateau; None if no fall is certain.
    collapse: tuple[float, float] | None = None
    unclaimed: Unclaimed | None = None
    # The loads whose medians depart from the fit by more than noise, so that the curve rises or falls more than once.
    departing: tuple[float, ...] = ()

    @property
    def peak(self) -> tuple[float, float]:
        """The load with the highest median, and that median, op/s."""
        return max(zip(self.loads, self.medians, strict=True), key=lambda point: point[1])


def find_knee(points: Mapping[float, Mapping[int, float]], *, blocks: bool = True, resamples: int = RESAMPLES) -> Knee:
    """The knee of throughput (op/s) by load and block; figures that are not positive are ignored.

    If `blocks` is false, the inner keys only number the repeats of a load. If at least two loads have REPEATS_MIN
    repeats, loads with one repeat are ignored. If not, or without `resamples`, only the estimate is computed: no
    bracket and no collapse.
    """
    figures = {load: {block: x for block, x in cells.items() if 0 < x < math.inf} for load, cells in points.items()}
    used = {load: cells for load, cells in figures.items() if cells and 0 < load < math.inf}
    few = sum(len(cells) >= REPEATS_MIN for cells in used.values()) < LOADS_MIN
    # A single noisy figure could form a false plateau.
    used = {load: used[load] for load in sorted(used) if few or len(used[load]) > 1}
    if len(used) < LOADS_MIN:
        return Knee(unclaimed="few-loads")
    loads, logs = tuple(map(float, used)), logarithm_table(used)
    raw = column_medians(logs)
    if blocks:
        # The common shift of a block is removed. This shift moves the knee only if cells are missing.
        logs = logs - column_medians((logs - raw).T)[:, None]
    medians = column_medians(logs)
    error = ERRORS * standard_error(logs, medians, blocks=blocks)
    curve = fit_unimodal(medians[None])
    top, first, last = find_plateau(medians[None], curve, error)
    level = np.flatnonzero(is_level(curve, error)[0])
    apart = np.abs(medians - curve[0]) > max(DEPARTURE * error, TOLERANCE)
    knee = Knee(
        loads,
        # The tables print these medians; the geometric mean of the middle two would be a different value.
        tuple(order_interval([*cells.values()]).value.item() for cells in used.values()),
        tuple(np.exp(curve[0]).tolist()),
        math.exp(top[0]),
        (loads[level[0]], loads[level[-1]]),
        loads[first[0]],
        unclaimed="few-repeats" if few else None,
        departing=() if few else tuple(load for load, is_apart in zip(loads, apart, strict=True) if is_apart),
    )
    if few or not resamples:
        return knee
    # Deviations are added to the fit, because the medians already contain noise.
    again = curve + resample_deviations(logs, medians, resamples, blocks=blocks)
    _, firsts, lasts = find_plateau(again, fit_unimodal(again), error)
    return add_bracket(knee, column_interval(firsts, first[0]), column_interval(lasts, last[0]))


def logarithm_table(points: Mapping[float, Mapping[int, float]]) -> Floats:
    """Logarithms with a row for each block and a column for each load; nan for missing cells."""
    rows = sorted({block for cells in points.values() for block in cells})
    return np.log([[cells.get(block, math.nan) for cells in points.values()] for block in rows])


def column_medians(samples: Floats) -> Floats:
    """Medians along the second-to-last axis, ignoring nan."""
    # NumPy's nanmedian uses masked arrays, which would dominate the time of a search. nan is sorted last.
    number = np.isfinite(samples).sum(axis=-2)
    middle = np.stack([(number - 1) // 2, number // 2], axis=-2)
    return np.asarray(np.take_along_axis(np.sort(samples, axis=-2), middle, axis=-2).mean(axis=-2))


def degrees_of_freedom(logs: Floats, *, blocks: bool) -> int:
    """The degrees of freedom of the cells after removing the effects of loads and, if there are blocks, of blocks."""
    cells, loads = int(np.isfinite(logs).sum()), int(logs.shape[1])
    return cells - loads - (len(logs) - 1 if blocks else 0)


def standard_error(logs: Floats, medians: Floats, *, blocks: bool) -> float:
    """The standard error of the median of a load, pooled over loads."""
    # The median of normal figures has pi / 2 times the variance of their mean.
    variance = float(np.nansum((logs - medians) ** 2)) / max(degrees_of_freedom(logs, blocks=blocks), 1) * math.pi / 2
    return math.sqrt(variance * logs.shape[1] / float(np.isfinite(logs).sum()))


def fit_unimodal(medians: Floats) -> Floats:
    """The unimodal fit of each row: isotonic up to its maximum, antitonic beyond it."""
    most = medians.max(axis=1, keepdims=True)
    rising = np.arange(medians.shape[1]) <= medians.argmax(axis=1)[:, None]
    # Replacing one half of the medians with the maximum does not change the fit of the other half.
    ascent, descent = np.where(rising, medians, most), np.where(rising, most, medians)
    both = fit_isotonic(np.concatenate([ascent, descent[:, ::-1]]))
    fitted: Floats = np.minimum(both[: len(medians)], both[len(medians) :, ::-1])
    return fitted


def fit_isotonic(rows: Floats) -> Floats:
    """The isotonic fit of each row: column i is the maximum, over a <= i, of the minimum, over b >= i, of the mean of
    columns a to b.

    Robertson, Wright & Dykstra, Order Restricted Statistical Inference, 1988, theorem 1.4.4. SciPy fits one row at a
    time.
    """
    columns = rows.T
    fitted = np.full_like(columns, -math.inf)
    length = np.arange(1, len(columns) + 1)[:, None]
    for first in range(len(columns)):
        means = columns[first:].cumsum(axis=0) / length[: len(columns) - first]
        least = np.minimum.accumulate(means[::-1], axis=0)[::-1]
        np.maximum(fitted[first:], least, out=fitted[first:])
    return fitted.T


def find_plateau(medians: Floats, curve: Floats, error: float) -> tuple[Floats, Columns, Columns]:
    """For each row: the plateau, and the first and the last column that reach 95 % of the plateau."""
    within = is_level(curve, error)
    level: Floats = (medians * within).sum(axis=1) / within.sum(axis=1)
    enough = level[:, None] + math.log1p(-TOLERANCE) - ROUNDING
    # The last column is also judged by its medians, since a curve that recovers has not collapsed.
    again = np.maximum(medians, curve) >= enough
    return level, (curve >= enough).argmax(axis=1), again.shape[1] - 1 - again[:, ::-1].argmax(axis=1)


def is_level(curve: Floats, error: float) -> NDArray[np.bool_]:
    """Whether each column of a fit belongs to the plateau, because it lies within `error` of the top."""
    within: NDArray[np.bool_] = curve >= curve.max(axis=1, keepdims=True) - error - ROUNDING
    return within


def resample_deviations(logs: Floats, medians: Floats, resamples: int, *, blocks: bool) -> Floats:
    """The deviations of resampled medians from the actual medians, a row for each resample, widened for few repeats.

    The common shift of each block has been removed, so each load draws its own blocks. With one draw for all loads, the
    figures of one block would be the median of every load in a third of the resamples of five blocks. Resampling n
    figures understates their variance by the factor (n - 1) / n, and gives normal quantiles instead of Student's; both
    are corrected.
    """
    random = np.random.default_rng(SEED)
    number = np.isfinite(logs).sum(axis=0)
    # Sorting moves missing cells to the end.
    packed = np.sort(logs, axis=0)
    rows = (random.random((resamples, *logs.shape)) * number).astype(int)
    resampled = np.where(
        np.arange(len(logs))[:, None] < number, np.take_along_axis(packed[None], rows, axis=1), math.nan
    )
    tail = (1 - LEVEL) / 2
    student = student_quantile(tail, max(degrees_of_freedom(logs, blocks=blocks), 1)) / normal_quantile(tail)
    deviations: Floats = (column_medians(resampled) - medians) * np.sqrt(number / (number - 1))
    # For loads with fewer than REPEATS_MIN repeats, the pooled noise of all loads replaces resampling.
    pooled = standard_error(logs, medians, blocks=blocks) * np.sqrt(number.mean() / number)
    deviations = np.where(number < REPEATS_MIN, random.normal(size=deviations.shape) * pooled, deviations)
    return deviations * student


def column_interval(columns: Columns, estimate: int) -> tuple[int, int]:
    """The interval of a column index across the resamples, extended to include the estimate."""
    low, high = np.quantile(columns, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="inverted_cdf")
    return min(int(low), int(estimate)), max(int(high), int(estimate))


def add_bracket(knee: Knee, first: tuple[int, int], last: tuple[int, int]) -> Knee:
    """Adds bounds to the knee, from the intervals of the first and the last column that reach the plateau."""
    loads, most = knee.loads, knee.loads[-1]
    falls = last[1] < len(loads) - 1
    flat = [falls or loads[column] * FLAT_RATIO <= most for column in first]
    return replace(
        knee,
        lower=loads[first[0] - 1] if first[0] else None,
        upper=loads[first[1]] if flat[1] else None,
        collapse=(loads[last[0]], loads[last[1] + 1]) if falls else None,
        unclaimed=None if flat[1] else "scatter" if flat[0] else "rising",
    )
