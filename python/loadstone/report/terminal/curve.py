"""Latency by percentile on a terminal: a line of marks for each variant, with equal width for each further nine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from rich.text import Text

from loadstone.format import units
from loadstone.judge.judgement import Judgement, VariantKey
from loadstone.report.percentile_curve import POINTS_MIN, list_operations, nines
from loadstone.report.view import View
from loadstone.results.value import PERCENTILES

# The mark of each variant; further variants are not drawn.
MARKS = "●○▲△■□◆◇"
ROWS, COLUMNS_MIN, COLUMNS_MAX = 10, 24, 72
# The width of the latency labels to the left of the plot.
LABEL = 10
# The maximum number of plots, one for each operation and context.
PLOTS_MAX = 4
MARKED = ("p50", "p90", "p99", "p99.9", "p99.99")
# Pairs of a percentile's position on the axis, in nines, and its latency, ns.
Points = Sequence[tuple[float, float]]


def plot_percentiles(judgement: Judgement, width: int) -> Iterator[Text]:
    """A plot for each operation and context, as lines of text."""
    view = View(judgement)
    plots = 0
    for operation in list_operations(view.results.metrics):
        for context, keys in view.keys_by_context.items():
            curves = {view.name(key): points for key in keys if (points := read_points(view, key, operation))}
            if curves and plots < PLOTS_MAX:
                plots += 1
                title = " · ".join(
                    part for part in (f"{operation}: latency by percentile", view.title(context)) if part
                )
                yield Text(title, style="bold")
                yield from map(Text, draw_plot(dict(list(curves.items())[: len(MARKS)]), width))
                yield Text("")


def read_points(view: View, key: VariantKey, operation: str) -> Points:
    """The percentiles of a variant; empty if there are too few for a curve."""
    points = []
    for percentile in PERCENTILES:
        cell = view.cell(key, f"{operation}.{percentile}")
        if cell and not cell.withheld and not cell.bound and 0 < cell.estimate.value < math.inf:
            points.append((nines(percentile), cell.estimate.value))
    return points if len(points) >= POINTS_MIN else []


def draw_plot(curves: Mapping[str, Points], width: int) -> list[str]:
    """The lines of a plot: the latencies at the left, the percentiles below, and the names on the last line."""
    columns = max(COLUMNS_MIN, min(width - LABEL - 2, COLUMNS_MAX))
    values = [math.log(latency) for points in curves.values() for _, latency in points]
    end = max(place for points in curves.values() for place, _ in points)
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    grid = [[" "] * columns for _ in range(ROWS)]
    # The first variant is drawn last, so that it is on top.
    for mark, points in reversed(list(zip(MARKS, curves.values(), strict=False))):
        for column, value in interpolate(points, columns, end):
            grid[round((high - value) / span * (ROWS - 1))][column] = mark
    labels = {0: high, ROWS // 2: high - span * (ROWS // 2) / (ROWS - 1), ROWS - 1: low}
    lines = [
        f"{units.format_duration(math.exp(labels[row])) if row in labels else '':>{LABEL}} ┤{''.join(cells).rstrip()}"
        for row, cells in enumerate(grid)
    ]
    ticks = [" "] * columns
    for name in MARKED:
        column = min(round(nines(name) / end * (columns - 1)), columns - len(name))
        if nines(name) <= end and not "".join(ticks[max(column - 1, 0) : column + len(name)]).strip():
            ticks[column : column + len(name)] = name
    axis = f"{'':>{LABEL}} └{'─' * columns}"
    names = "   ".join(f"{mark} {name}" for mark, name in zip(MARKS, curves, strict=False))
    return [*lines, axis, f"{'':>{LABEL + 2}}{''.join(ticks).rstrip()}", f"{'':>{LABEL + 2}}{names}"]


def interpolate(points: Points, columns: int, end: float) -> Iterator[tuple[int, float]]:
    """The logarithm of the latency in each column between the first and the last point."""
    for (left, first), (right, second) in pairwise(points):
        start, stop = (round(place / end * (columns - 1)) for place in (left, right))
        for column in range(start, stop + 1):
            share = (column - start) / (stop - start) if stop > start else 0.0
            yield column, math.log(first) + share * (math.log(second) - math.log(first))
