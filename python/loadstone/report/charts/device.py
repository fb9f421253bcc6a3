"""Device work per operation: bytes read, bytes written, write amplification."""

from __future__ import annotations

from loadstone.format import wording
from loadstone.judge.judgement import VariantKey
from loadstone.report.charts import figure
from loadstone.report.charts import rows as frame
from loadstone.report.charts.figure import PANELS_MAX, Figure, Panel, Row, colour, finite, plot
from loadstone.report.view import View, spread


def metrics(view: View) -> list[str]:
    """The comparable device metrics of the window, per operation or as a factor; the deciding metric comes first."""
    known = view.results.metrics
    per = [name for name in known if name.startswith("device.") and name.endswith("_per_operation")]
    present = [*per, *(name for name in known if name.endswith("write_amplification") and not name.startswith("load."))]
    return sorted(present, key=lambda name: name not in view.headline[:1])


def bars(view: View) -> Figure:
    """A panel for each metric and context."""
    names = metrics(view)
    contexts = spread(view.contexts, max(PANELS_MAX // max(len(names), 1), 1))
    panels = [chart for metric in names for context in contexts if (chart := panel(view, metric, context))]
    caption = "Medians of the repeats, including data flushed to the device after the window."
    if any(name.endswith("write_amplification") for name in names):
        caption += " Write amplification is relative to the values written; an update may write only one field."
    caption += figure.limits(view, len(contexts), len(view.contexts))
    return Figure("device", tuple(panels), caption, "bytes that devices read and wrote for each operation, by variant")


def panel(view: View, metric: str, context: VariantKey) -> Panel | None:
    """One metric in one context."""
    rows: list[Row] = []
    unit = ""
    for key in view.keys_by_context[context]:
        if view.value(key) not in figure.select_values(view):
            continue
        cell = view.cell(key, metric)
        row: Row = {"name": view.name(key), "full": view.value(key), "value": None, "figure": missing_reason(view, key)}
        if cell is not None and not cell.withheld and finite(cell.estimate.value):
            estimate, unit = cell.estimate, cell.unit
            row |= {"value": estimate.value, "figure": view.figure(cell)}
            row["interval"] = wording.interval_text(estimate, unit)
        rows.append(row)
    there = [row for row in rows if row["value"] is not None]
    if not there:
        return None
    names = [row["name"] for row in rows]
    x = frame.figures("value", unit, max(row["value"] for row in there) * 1.04)
    hover = figure.tooltip(name="name", figure="median", interval="interval")
    chart = figure.layer_charts(
        plot(there)
        .mark_bar(height=13, cornerRadiusEnd=2, yOffset=frame.MARKS)
        .encode(y=frame.row(names), x=x, color=colour(view), tooltip=hover),
        *frame.labels(rows, names),
    )
    title = figure.join_title(wording.metric_name(metric.removeprefix("device.")), view.title(context))
    return Panel(title, chart, frame.STEP * len(names))


def missing_reason(view: View, key: VariantKey) -> str:
    """The reason why a variant has no device bytes: `no device`, `over the network`, `unknown`, `not measured`."""
    reasons = (str(trial.facts["device"]) for trial in view.variants[key] if "device" in trial.facts)
    # The fact names the directory's device, or states why there is none, with the type of the file system in brackets.
    return next((reason.partition(" (")[0] for reason in reasons if reason.endswith(")")), "not measured")
