"""The time series of trials, thinned for charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from loadstone.results.trial_result import Series

Figure = Literal["throughput", "p50", "p99"]
# One figure over time: pairs of seconds since the window's start and the figure.
Line = Sequence[tuple[float, float]]
# The most points in a line; a phone has 300 px for them.
POINTS_MAX = 120


def step(every: Sequence[Series]) -> float:
    """The length of a point, s: the longest interval, or more where there would be too many points."""
    lengths = [length for series in every for length in series.length_seconds]
    ends = [series.start_seconds[-1] + series.length_seconds[-1] for series in every if series.start_seconds]
    if not lengths:
        return 1.0
    # The last interval of a window is often cut short; the usual one is what counts.
    usual = float(np.median(lengths))
    return max(1.0, -(-(max(ends) / usual) // POINTS_MAX)) * usual


def thin_series(series: Series, figure: Figure, seconds: float) -> Line:
    """A line with one point every `step` seconds.

    Throughput is the mean by length. Percentiles do not add up: of several intervals stand the middle p50 and the
    worst p99.
    """
    values = {"throughput": series.throughput, "p50": series.p50_ns, "p99": series.p99_ns}[figure]
    usual = float(np.median(series.length_seconds)) if series.length_seconds else seconds
    groups: dict[int, list[tuple[float, float]]] = {}
    for start, length, value in zip(series.start_seconds, series.length_seconds, values, strict=False):
        # An interval cut short at the window's end holds little and would stand out.
        if value is not None and np.isfinite(value) and length > 0.5 * min(seconds, usual):
            groups.setdefault(int((start + length / 2) / seconds), []).append((length, value))
    return [(round(at * seconds, 3), merge_intervals(groups[at], figure)) for at in sorted(groups)]


def merge_intervals(parts: Sequence[tuple[float, float]], figure: Figure) -> float:
    """One figure for neighbouring intervals."""
    lengths, values = zip(*parts, strict=True)
    match figure:
        case "throughput":
            return float(np.average(values, weights=lengths))
        case "p50":
            return float(np.median(values))
        case "p99":
            return float(max(values))


def middle(lines: Sequence[Line]) -> Line:
    """The median over lines at each point that at least half of them have."""
    at: dict[float, list[float]] = {}
    for line in lines:
        for seconds, value in line:
            at.setdefault(seconds, []).append(value)
    return [
        (seconds, float(np.median(values))) for seconds, values in sorted(at.items()) if len(values) * 2 >= len(lines)
    ]
