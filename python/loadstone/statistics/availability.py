"""Availability during a fault: yield by due time, outage, and recovery as a statistical decision.

Every figure follows from counts by the interval in which operations were due (docs/concepts/availability.md). Counting
by due time attributes a stall to the users who arrived during it; by completion time, a stall would be a dip and then a
burst above 100 %. The yield per user follows Hauer et al., Meaningful Availability (NSDI 2020).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from loadstone.statistics.distributions import binomial_upper_tail

Counts = NDArray[np.float64]
Window = Literal["before", "during", "returning", "after"]
WINDOWS: tuple[Window, ...] = ("before", "during", "returning", "after")
SECOND_NS = 1_000_000_000
# Recovery: the share of the level before the fault, the length of a window, and the time for which recovery must last.
SHARE = 0.95
WINDOW_NS = 5 * SECOND_NS
WINDOW_NS_MIN = SECOND_NS
HOLD_NS = 30 * SECOND_NS
# The level is computed from at least this many windows before the fault, each with at least this many operations.
WINDOWS_MIN = 12
OPERATIONS_MIN = 100
# A window may be below the median by this many median absolute deviations, scaled to standard deviations.
DEVIATIONS = 3.0
MAD_TO_SIGMA = 1.4826
# The minimum share of windows that noise is assumed to put below the line, and the level of the test.
BELOW_MIN = 0.01
ALPHA = 0.01
# A single window is a relapse if it is below this share of the median, and this many times as far below the median as
# any window before the fault.
RELAPSE, RELAPSE_FACTOR = 0.5, 2
# A second with a yield below this counts towards the width of the outage.
WIDTH_YIELD = 0.99
# A last interval that is shorter than this share of the first interval is a remainder.
COMPLETE = 0.9


@dataclass(frozen=True)
class OfferedLoad:
    """Operations by the interval in which they were due (in a closed loop: by the interval in which they completed).

    `due` excludes operations that cannot be judged (NOT_YET). Operations that never completed are only in `due`.
    """

    start_ns: NDArray[np.int64]
    length_ns: NDArray[np.int64]
    due: Counts
    good: Counts

    @property
    def end_ns(self) -> int:
        """The end of the last interval."""
        return int(self.start_ns[-1] + self.length_ns[-1]) if len(self.start_ns) else 0

    def index_at(self, instant_ns: int) -> int:
        """The index of the interval that contains an instant; the number of intervals if none contains it."""
        return int(np.searchsorted(self.start_ns + self.length_ns, instant_ns, side="right"))


@dataclass(frozen=True)
class NormalLevel:
    """The line from the windows before the fault: the yield of a normal window is at least `level`."""

    level: float
    median: float
    # 1.4826 × the median absolute deviation.
    noise: float
    windows: int
    window_ns: int
    # The share of the windows before the fault that are below the line, at least `BELOW_MIN`.
    below: float
    # The lowest yield of any window before the fault; a window may start at any interval.
    least: float

    @property
    def relapse(self) -> float:
        """The yield below which even a single window is not noise."""
        return min(RELAPSE * self.median, self.median - RELAPSE_FACTOR * (self.median - self.least))


@dataclass(frozen=True)
class Recovery:
    """The recovery, `after_ns` after the fault is lifted; None if there is no recovery within `watched_ns`."""

    after_ns: int | None
    watched_ns: int
    # The time from the recovery to the end of the measurement.
    held_ns: int = 0


@dataclass(frozen=True)
class Dip:
    """The drop in yield from an instant to the end of the measurement."""

    # The sum of (1 - yield) × length, ns: the length of a full outage with the same loss.
    outage_ns: float
    # 1 - the lowest yield of any second.
    depth: float
    # The total length of the seconds with a yield below `WIDTH_YIELD`.
    width_ns: int
    # The longest time without a good operation.
    gap_ns: int


def window_of(start_ns: int, length_ns: int, borders_ns: Sequence[int]) -> int:
    """The index of an interval's window; an interval that contains a border belongs to the later window."""
    return sum(border < start_ns + length_ns for border in borders_ns)


def group_intervals(load: OfferedLoad, first: int) -> list[tuple[float, float, int]]:
    """The due operations, good operations and length of each interval, starting with interval `first`.

    An interval without due operations has no yield, so it is joined with the next interval or, if there is none, with
    the previous interval.
    """
    groups: list[tuple[float, float, int]] = []
    waiting_ns = 0
    for due, good, length in zip(load.due[first:], load.good[first:], load.length_ns[first:], strict=True):
        if due > 0:
            groups.append((float(due), float(good), int(length) + waiting_ns))
            waiting_ns = 0
        else:
            waiting_ns += int(length)
    if groups and waiting_ns:
        due, good, length = groups[-1]
        groups[-1] = due, good, length + waiting_ns
    return groups


def measure_dip(load: OfferedLoad, from_ns: int) -> Dip:
    """Outage, depth, width and longest gap from an instant until the end; all are 0 if no operation was due."""
    first = load.index_at(from_ns)
    groups = group_intervals(load, first)
    outage = sum((1 - good / due) * length for due, good, length in groups)
    return Dip(outage, measure_depth(load, first), measure_width_ns(load, first), measure_gap_ns(load, first))


def seconds_of(load: OfferedLoad, first: int) -> int:
    """The number of intervals in a second, at least 1."""
    usual = float(np.median(load.length_ns[first:])) if len(load.length_ns) > first else SECOND_NS
    return max(round(SECOND_NS / usual), 1)


def measure_depth(load: OfferedLoad, first: int, intervals: int | None = None, due_min: float = 0) -> float:
    """1 - the lowest yield of any second, which may start at any interval.

    A span of less than a second is one window. `intervals` sets a window length other than one second. Windows with at
    most `due_min` due operations do not count.
    """
    due, good = load.due[first:], load.good[first:]
    count = min(intervals or seconds_of(load, first), len(due))
    if not count:
        return 0.0
    window = np.ones(count)
    sums = np.convolve(due, window, "valid"), np.convolve(good, window, "valid")
    there = sums[0] > due_min
    return float(1 - np.min(sums[1][there] / sums[0][there])) if there.any() else 0.0


def measure_width_ns(load: OfferedLoad, first: int) -> int:
    """The total length of the seconds with a yield below `WIDTH_YIELD`; consecutive seconds do not overlap."""
    count, width = seconds_of(load, first), 0
    for at in range(first, len(load.due), count):
        due, good = load.due[at : at + count].sum(), load.good[at : at + count].sum()
        if due > 0 and good / due < WIDTH_YIELD:
            width += int(load.length_ns[at : at + count].sum())
    return width


def measure_gap_ns(load: OfferedLoad, first: int) -> int:
    """The length of the longest gap: intervals without a good operation, of which the first and the last have due
    operations."""
    longest = current = pending = 0
    for due, good, length in zip(load.due[first:], load.good[first:], load.length_ns[first:], strict=True):
        if good > 0:
            current = pending = 0
        elif due > 0:
            current += pending + int(length)
            pending = 0
            longest = max(longest, current)
        elif current:
            pending += int(length)
    return longest


def complete_length(load: OfferedLoad) -> int:
    """The number of intervals, excluding a remainder at the end."""
    count = len(load.length_ns)
    return count - (count > 1 and load.length_ns[-1] < COMPLETE * load.length_ns[0])


def sums_of(counts: Counts, starts: Sequence[int], size: int) -> Counts:
    """The sum of each window of `size` intervals."""
    cumulated = np.concatenate(([0.0], np.cumsum(counts)))
    at = np.asarray(starts, dtype=np.int64)
    return np.asarray(cumulated[at + size] - cumulated[at])


def choose_window(load: OfferedLoad, before: int, window_ns: int) -> int:
    """The number of intervals in a window: as requested, or fewer so that `WINDOWS_MIN` windows fit before the fault.

    A window lasts at least a second, and is long enough for `OPERATIONS_MIN` operations.
    """
    interval_ns = float(np.median(load.length_ns))
    span = before * interval_ns
    size = max(round(max(min(window_ns, span / WINDOWS_MIN), WINDOW_NS_MIN) / interval_ns), 1)
    mean = float(load.due[:before].mean()) if before else 0.0
    return max(size, math.ceil(OPERATIONS_MIN / mean)) if mean > 0 else size


def line_before(
    load: OfferedLoad, order_ns: int, share: float = SHARE, window_ns: int = WINDOW_NS
) -> NormalLevel | None:
    """The line from the windows before the fault, up to the fault itself; None without operations.

    The line is min(share · b, b - 3 s), but at least 0, where b is the median of the windows' yields and s is 1.4826 ×
    their median absolute deviation. With fewer than `WINDOWS_MIN` windows, the estimate of the noise is too uncertain.
    """
    before = min(load.index_at(order_ns), complete_length(load))
    if not before:
        return None
    size = choose_window(load, before, window_ns)
    starts = range(before % size, before - size + 1, size)
    if not starts:
        return None
    due, good = sums_of(load.due, starts, size), sums_of(load.good, starts, size)
    levels = good[due > 0] / due[due > 0]
    if not len(levels):
        return None
    median = float(np.median(levels))
    noise = MAD_TO_SIGMA * float(np.median(np.abs(levels - median)))
    # No yield is below 0, so a lower line means the same as 0.
    level = max(min(share * median, median - DEVIATIONS * noise), 0.0)
    below = max(float(np.mean(levels < level)), BELOW_MIN)
    length_ns = round(size * float(np.median(load.length_ns)))
    every = range(before - size + 1)
    sliding = np.maximum(sums_of(load.due, every, size), 1), sums_of(load.good, every, size)
    return NormalLevel(level, median, noise, len(levels), length_ns, below, float(np.min(sliding[1] / sliding[0])))


def find_recovery(load: OfferedLoad, line: NormalLevel, from_ns: int, until_ns: int | None = None) -> Recovery:
    """The first instant after which windows below the line are no more frequent than before the fault.

    A recovery begins with an interval and a window that are not below the line. From then on, a one-sided binomial test
    at level `ALPHA` must not find a larger share of windows below the line than before the fault. In addition, no
    window, starting at any interval, may be a relapse: far below every window before the fault, and below half of the
    median of these windows.
    """
    last = complete_length(load)
    end_ns = int(load.start_ns[last - 1] + load.length_ns[last - 1]) if last else 0
    if until_ns is not None and until_ns < end_ns:
        last, end_ns = min(load.index_at(until_ns), last), until_ns
    watched = max(end_ns - from_ns, 0)
    size = max(round(line.window_ns / float(np.median(load.length_ns))), 1) if last else 1
    first = load.index_at(from_ns)
    due, good = (sums_of(counts, range(max(last - size + 1, 0)), size) for counts in (load.due, load.good))
    below = good < line.level * due
    (relapses,) = np.nonzero(good < line.relapse * due)
    starts = range(max(first, int(relapses[-1]) + 1 if len(relapses) else 0), len(due))
    for at in starts:
        if not load.due[at] or load.good[at] < line.level * load.due[at] or below[at]:
            continue
        windows = below[at::size]
        count = int(windows.sum())
        if count and binomial_upper_tail(count, len(windows), line.below) < ALPHA:
            continue
        after_ns = max(int(load.start_ns[at]) - from_ns, 0)
        return Recovery(after_ns, watched, watched - after_ns)
    return Recovery(None, watched)


def clopper_pearson(count: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a probability, given `count` events in `trials` (Clopper & Pearson, Biometrika 1934).

    Raises ValueError if `count` is not between 0 and `trials`, or if there are no trials.
    """
    if not 0 <= count <= trials or not trials:
        raise ValueError(f"{count} of {trials} is not a share")
    tail = (1 - level) / 2
    low = 0.0 if count == 0 else find_root(lambda p: binomial_upper_tail(count, trials, p) - tail)
    high = 1.0 if count == trials else find_root(lambda p: tail - (1 - binomial_upper_tail(count + 1, trials, p)))
    return low, high


def find_root(rising: Callable[[float], float]) -> float:
    """The root of a function that rises from negative to positive between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
