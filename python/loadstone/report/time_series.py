"""The time series of trials, with fewer points for charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from loadstone.results.trial_result import Series

Figure = Literal["throughput", "p50", "p99"]
# One figure over time, as pairs: the seconds since the start of the window, and the figure.
Line = Sequence[tuple[float, float]]
# The maximum number of points in a line; on a phone, the line is 300 px wide.
POINTS_MAX = 120


def step(every: Sequence[Series]) -> float:
    """The time that a point covers, s: the usual interval, or a multiple if there would be too many points."""
    lengths = [length for series in every for length in series.length_seconds]
    ends = [series.start_seconds[-1] + series.length_seconds[-1] for series in every if series.start_seconds]
    if not lengths:
        return 1.0
    # The last interval of a window is often shorter, so the median length counts.
    usual = float(np.median(lengths))
    return max(1.0, -(-(max(ends) / usual) // POINTS_MAX)) * usual


def thin_series(series: Series, figure: Figure, seconds: float) -> Line:
    """A line with one point for each span of this many seconds.

    Throughput is the mean weighted by length. Percentiles cannot be added, so a point that covers several intervals has
    their median p50 and their worst p99.
    """
    values = {"throughput": series.throughput, "p50": series.p50_ns, "p99": series.p99_ns}[figure]
    usual = float(np.median(series.length_seconds)) if series.length_seconds else seconds
    groups: dict[int, list[tuple[float, float]]] = {}
    for start, length, value in zip(series.start_seconds, series.length_seconds, values, strict=False):
        # An interval that the end of the window cut short has few operations and would be an outlier.
        if value is not None and np.isfinite(value) and length > 0.5 * min(seconds, usual):
            groups.setdefault(int((start + length / 2) / seconds), []).append((length, value))
    return [(round(at * seconds, 3), merge_intervals(groups[at], figure)) for at in sorted(groups)]


def merge_intervals(parts: Sequence[tuple[float, float]], figure: Figure) -> float:
    """The figure of several neighbouring intervals."""
    lengths, values = zip(*parts, strict=True)
    match figure:
        case "throughput":
            return float(np.average(values, weights=lengths))
        case "p50":
            return float(np.median(values))
        case "p99":
            return float(max(values))


def middle(lines: Sequence[Line]) -> Line:
    """The median of the lines at each point that at least half of them have."""
    at: dict[float, list[float]] = {}
    for line in lines:
        for seconds, value in line:
            at.setdefault(seconds, []).append(value)
    return [
        (seconds, float(np.median(values))) for seconds, values in sorted(at.items()) if len(values) * 2 >= len(lines)
    ]
