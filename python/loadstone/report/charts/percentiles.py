"""Latency by percentile: the shape of the tail, on an axis with equal width for each further nine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from loadstone.format import units, wording
from loadstone.judge.judgement import VariantKey
from loadstone.report.charts import figure
from loadstone.report.charts.figure import PANELS_MAX, Figure, Panel, Row, finite
from loadstone.report.percentile_curve import POINTS_MIN, list_operations, nines
from loadstone.report.view import View, spread
from loadstone.results.value import PERCENTILES

# The reasons for omitting a figure.
RARE, UNENDED = "Withheld because of too few samples", "Not drawn, as operations failed or never completed"
MARKED = ("p50", "p90", "p99", "p99.9", "p99.99")
# A Vega expression; positions on the axis are -log10(1 - p).
LABEL = (
    "datum.value < 0.5 ? '50' : datum.value < 1.5 ? '90' : datum.value < 2.5 ? '99'"
    " : datum.value < 3.5 ? '99.9' : '99.99'"
)


def curves(view: View) -> Figure:
    """A panel for each operation and context, with a line for each variant."""
    names = list_operations(view.results.metrics)
    contexts = spread(view.contexts, max(PANELS_MAX // max(len(names), 1), 1))
    left_out: dict[str, dict[str, None]] = {RARE: {}, UNENDED: {}}
    content = join_equal(
        (operation, context, rows)
        for operation in names
        for context in contexts
        for rows in [points(view, operation, context, left_out)]
        if len({row["nines"] for row in rows}) >= POINTS_MIN
    )
    if not content:
        return Figure("percentiles", (), "", "")
    values = figure.decade_domain(row["latency"] for _, _, rows in content for row in rows)
    end = max(row["nines"] for _, _, rows in content for row in rows)
    panels = tuple(
        Panel(figure.join_title(operation, view.title(context)), lines(view, rows, values, max(end, 1.0)), 260)
        for operation, context, rows in content
    )
    has_repeats = any(row["n"] != "1" for _, _, rows in content for row in rows)
    caption = "Each point is the median, over the repeats, of the percentile in each trial. " if has_repeats else ""
    caption += "Both axes are logarithmic."
    caption += "".join(f" {why}: {units.list_items([*omitted], 4)}." for why, omitted in left_out.items() if omitted)
    caption += figure.limits(view, len(contexts), len(view.contexts))
    used = {row["full"] for _, _, rows in content for row in rows}
    alt_text = f"latency of {', '.join(names)} by percentile, one line for each variant"
    return Figure("percentiles", panels, caption, alt_text, legend=figure.legend(view, used))


def join_equal(content: Iterable[tuple[str, VariantKey, list[Row]]]) -> list[tuple[str, VariantKey, list[Row]]]:
    """The operations, contexts and points of panels; operations with equal points share a panel: a tool may report one
    latency under two names."""
    joined: dict[tuple[Any, ...], tuple[str, VariantKey, list[Row]]] = {}
    for operation, context, rows in content:
        key = (context, *((row["full"], row["nines"], row["latency"]) for row in rows))
        names = f"{joined[key][0]}, {operation}" if key in joined else operation
        joined[key] = (names, context, rows)
    return [*joined.values()]


def points(view: View, operation: str, context: VariantKey, left_out: dict[str, dict[str, None]]) -> list[Row]:
    """The points of a panel; `left_out` collects the names of withheld figures and bounds."""
    rows: list[Row] = []
    known = set(view.results.metrics)
    for key in view.keys_by_context[context]:
        if view.value(key) not in figure.select_values(view):
            continue
        for percentile in PERCENTILES:
            metric = f"{operation}.{percentile}"
            cell = view.cell(key, metric) if metric in known else None
            if cell is None or not finite(cell.estimate.value) or cell.estimate.value <= 0:
                continue
            if cell.bound or cell.withheld:
                left_out[UNENDED if cell.bound else RARE][f"{view.name(key)} {operation} {percentile}"] = None
                continue
            rows.append(
                {
                    "name": view.name(key),
                    "full": view.value(key),
                    "nines": round(nines(percentile), 4),
                    "latency": cell.estimate.value,
                    "percentile": f"{percentile.removeprefix('p')} %",
                    "figure": view.figure(cell),
                    "interval": wording.interval_text(view.judgement.output_estimate(cell), cell.unit)
                    if cell.estimate.low is not None
                    else "none",
                    "n": str(cell.estimate.n),
                }
            )
    return rows


def lines(view: View, rows: Sequence[Row], values: Sequence[float], end: float) -> dict[str, Any]:
    """The chart of a panel: a line with points for each variant."""
    marks = [round(nines(name), 4) for name in MARKED]
    x = alt.X(
        "nines:Q",
        scale=alt.Scale(domain=[0, end]),
        axis=alt.Axis(
            title="percentile, %",
            values=[mark for mark in marks if mark <= end + 0.01],
            labelExpr=LABEL,
            labelFlush=True,
            labelOverlap=False,
        ),
    )
    scale = alt.Scale(type="log", domain=list(values), nice=False)
    y = alt.Y("latency:Q", scale=scale, axis=figure.time_axis(values))
    base = figure.plot(rows).encode(x=x, y=y, color=figure.colour(view))
    hover = figure.tooltip(name="name", percentile="percentile", figure="latency", interval="interval", n="repeats")
    return figure.layer_charts(
        base.mark_line(strokeWidth=2, strokeJoin="round"),
        base.mark_point(filled=True, size=34, opacity=1).encode(shape=figure.shape(view), tooltip=hover),
    )
