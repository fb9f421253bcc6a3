"""Headline metrics: each variant's median with its interval, and every repeat as a dot."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadstone.format import units, wording
from loadstone.judge.finding import Verdict, worst_verdict
from loadstone.judge.judgement import Cell, VariantKey
from loadstone.report.charts import device, figure
from loadstone.report.charts import rows as frame
from loadstone.report.charts.figure import PANELS_MAX, Figure, Panel, Row, colour, finite, plot
from loadstone.report.view import View, spread
from loadstone.results.value import THROUGHPUT

# The maximum number of dots in a row; more dots would overlap.
DOTS_MAX = 60
# The maximum number of panels for metrics other than throughput: each metric has a panel for each context.
HEADLINES_MAX = 36
TO_READ = (
    "The vertical line is the median of the repeats, the band is its interval, and each dot is one repeat."
    " Axes start at zero."
)
LATE = ' "At most": latencies include the load generator\'s lateness; the band begins at the value without it.'
RATIOS = " A ratio compares the sides block by block, so it can differ from the ratio of the medians."
SINGLE = "The vertical line is the figure of a single run. Axes start at zero."
AS_THROUGHPUT = "Read this chart like the throughput chart."


def throughput(view: View) -> Figure:
    """Throughput in every context."""
    return draw_metrics(view, "throughput", [THROUGHPUT])


def chart_further_metrics(view: View) -> Figure:
    """The headline metrics other than throughput; metrics of the device have a separate section."""
    return draw_metrics(
        view, "headline", [name for name in view.headline if name not in (THROUGHPUT, *device.metrics(view))]
    )


def draw_metrics(view: View, name: str, metrics: Sequence[str]) -> Figure:
    """A panel for each context and metric."""
    known = [metric for metric in metrics if metric in view.results.metrics]
    each_at_most = max((PANELS_MAX if name == "throughput" else HEADLINES_MAX) // max(len(known), 1), 1)
    contexts = spread(view.contexts, each_at_most)
    drawings = [
        drawing
        for metric in known
        for context in contexts
        if (drawing := panel(view, metric, context, name == "headline"))
    ]
    is_single = all(len(trials) == 1 for trials in view.variants.values())
    caption = (
        SINGLE
        if is_single
        else AS_THROUGHPUT
        if name != "throughput" and THROUGHPUT in view.results.metrics
        else TO_READ
    )
    bounds = {
        view.judgement.output_bound(cell) for (_, metric), cell in view.judgement.cells.items() if metric in known
    }
    caption += LATE if "at_most" in bounds else ""
    caption += figure.limits(view, len(contexts), len(view.contexts))
    named = ", ".join(wording.metric_name(metric) for metric in known)
    return Figure(name, tuple(drawings), caption, f"{named} of each variant: median, interval and every repeat")


def panel(view: View, metric: str, context: VariantKey, with_metric: bool) -> Panel | None:
    """A panel with a row for each variant of a context; None without figures."""
    cells = [
        cell
        for key in view.keys_by_context[context]
        if view.value(key) in figure.select_values(view)
        and (cell := view.cell(key, metric))
        and finite(cell.estimate.value)
    ]
    if not cells:
        return None
    names = [view.name(cell.variant) for cell in cells]
    marks = [mark(view, cell) for cell in cells]
    dots = [
        dot
        for cell in cells
        if len(cell.samples) > 1 and not cell.withheld and not cell.bound
        for dot in repeats(view, cell)
    ]
    tops = [number for row in marks for number in (row["value"], row.get("high")) if number is not None]
    top = max([0.0, *tops, *(dot["value"] for dot in dots)]) * 1.06
    unit = cells[0].unit
    x = frame.figures("value", unit, top)
    there = plot([row for row in marks if row["value"] is not None])
    base = there.encode(y=frame.row(names), x=x, color=colour(view))
    hover = figure.tooltip(name="name", median="median", interval="interval", n="n")
    chart = figure.layer_charts(
        plot(dots)
        .mark_point(filled=True, size=22, opacity=0.85, yOffset=frame.MARKS + 13)
        .encode(
            y=frame.row(names),
            x=x,
            color=colour(view),
            tooltip=figure.tooltip(name="name", repeat="repeat", figure="figure"),
        ),
        base.mark_rule(strokeWidth=10, opacity=0.32, yOffset=frame.MARKS).encode(
            x=frame.figures("low", unit, top), x2="high:Q", tooltip=hover
        ),
        base.mark_tick(thickness=3, size=18, opacity=1, yOffset=frame.MARKS).encode(tooltip=hover),
        *frame.labels(marks, names),
    )
    title = figure.join_title(wording.metric_name(metric) if with_metric else "", view.title(context))
    return Panel(title, chart, frame.STEP * len(names))


def mark(view: View, cell: Cell) -> Row:
    """The marks of a variant's row."""
    estimate = view.judgement.output_estimate(cell)
    name = {"name": view.name(cell.variant), "full": view.value(cell.variant)}
    if cell.withheld or cell.bound == "failed":
        return {**name, "value": None, "figure": "withheld" if cell.withheld else view.figure(cell)}
    median = view.figure(cell)
    ends = finite(estimate.low, estimate.high)
    invalid = worst_verdict(view.findings_of(cell.variant, cell.metric)) is Verdict.INVALID
    return {
        **name,
        "value": estimate.value,
        "low": estimate.low if ends else estimate.value,
        "high": estimate.high if ends else estimate.value,
        "median": median,
        "figure": f"{median}, invalid" if invalid else median,
        "interval": wording.interval_text(estimate, cell.unit),
        "n": str(estimate.n),
    }


def repeats(view: View, cell: Cell) -> list[Row]:
    """The dots of the repeats; if there are too many, an even selection from the smallest to the largest."""
    samples = sorted(((value, repeat) for repeat, value in cell.samples if math.isfinite(value)))
    name = view.name(cell.variant)
    return [
        {"name": name, "value": value, "repeat": str(repeat), "figure": units.format_figure(value, cell.unit)}
        for value, repeat in spread(samples, DOTS_MAX)
    ]
