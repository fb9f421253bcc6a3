"""Trials with faults over time: the outcomes of the operations of one trial, and the yield of all repeats.

Time is relative to the instant when the fault was ordered, so that repeats whose faults began at different instants
can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import altair as alt
import numpy as np

from loadstone.format import units
from loadstone.judge.outages import Outage
from loadstone.report.charts import figure
from loadstone.report.charts.figure import PANELS_MAX, Figure, Panel, Row, plot
from loadstone.report.view import View, spread
from loadstone.results.fault import FaultRecord, borders_of
from loadstone.results.trial_result import Series, TrialResult

# The maximum number of points in a line.
POINTS_MAX = 150
# The maximum number of marked points in a line.
MARKS_MAX = 6
# Bars that reach this share of an outcome's highest bar count as equally high; the middle one has the outcome's mark.
HIGHEST = 0.95
Legend = tuple[tuple[str, int], ...]
# The outcomes of operations, and their colours: green for operations in time, red for failed operations.
OUTCOMES: Legend = (("in time", 2), ("late", 4), ("failed", 1), ("unanswered", 7))
FAULT, TWIN = "with the fault", "without the fault"
REPEATS: Legend = ((FAULT, 1), (TWIN, 7))


@dataclass(frozen=True)
class FaultSeries:
    """One trial around its fault: seconds since the fault was ordered, and operations due, in total and by outcome."""

    seconds: Sequence[float]
    step: float
    due: Sequence[float]
    outcomes: dict[str, Sequence[float]]

    @property
    def yields(self) -> list[float]:
        """The share of operations answered in time; nan if no operation was due."""
        good = self.outcomes["in time"]
        return [value / due if due else float("nan") for value, due in zip(good, self.due, strict=True)]


def order_seconds(fault: FaultRecord) -> float:
    """The instant when the fault was ordered, s since the start of the measurement; for a twin, the planned instant."""
    return (fault.planned_at_ns if fault.ordered_ns is None else fault.ordered_ns) / 1e9


def series_around(series: Series, order_s: float, step: float) -> FaultSeries | None:
    """The counts of a trial in steps before and after the instant when the fault was ordered.

    None without counts by due time.
    """
    if not series.due or not series.good:
        return None
    counts = {
        "in time": np.array(series.good, dtype=float),
        "late": np.array(series.late or [0] * len(series.good), dtype=float),
        "failed": np.array(series.failed, dtype=float),
    }
    due = np.array(series.due, dtype=float)
    counts["unanswered"] = np.maximum(due - sum(counts.values()), 0)
    middle = np.array(series.start_seconds) + np.array(series.length_seconds) / 2 - order_s
    steps = np.floor(middle / step).astype(int)
    first = int(steps.min())
    size = int(steps.max()) - first + 1
    # The measurement begins and ends within a step, so incomplete steps are omitted: they would look like a dip.
    lengths = np.bincount(steps - first, series.length_seconds, size)
    complete = [at for at in range(size) if lengths[at] > 0.99 * step]
    summed = {name: np.bincount(steps - first, values, size)[complete] for name, values in counts.items()}
    return FaultSeries(
        [round((first + at) * step, 3) for at in complete],
        step,
        list(np.bincount(steps - first, due, size)[complete]),
        {name: list(values) for name, values in summed.items()},
    )


def step_of(view: View, trials: Sequence[TrialResult]) -> float:
    """The time that a point covers, s: one interval, or several, so that a line has at most `POINTS_MAX` points."""
    for trial in trials:
        if (series := view.results.series(trial.trial)) is not None and series.length_seconds:
            usual = float(np.median(series.length_seconds))
            total = series.start_seconds[-1] + series.length_seconds[-1]
            return max(1.0, -(-(total / usual) // POINTS_MAX)) * usual
    return 1.0


def describe_deadline(view: View) -> str:
    """The deadline of the trials with a fault as text: `within 50.0 ms`."""
    deadlines = {trial.value("deadline") for outage in view.judgement.outages for trial in outage.trials} - {None}
    return f"within {units.format_duration(deadlines.pop() or 0.0)}" if len(deadlines) == 1 else "within the deadline"


def timeline(view: View) -> Figure:
    """The outcomes of the operations in the trial with the median outage, for each variant."""
    panels = []
    omitted: list[str] = []
    for outage in view.judgement.outages[:PANELS_MAX]:
        trial = typical_trial(outage)
        series = view.results.series(trial.trial) if trial is not None else None
        if trial is None or series is None:
            continue
        time_series = series_around(series, order_seconds(trial.faults[0]), step_of(view, [trial]))
        if time_series is not None:
            head = figure.join_title(view.name(outage.variant), view.title(view.context(outage.variant)), trial.trial)
            panels.append(Panel(head, timeline_chart(time_series, trial), 190))
            end = time_series.seconds[-1] + time_series.step
            late = [f"{mark['label']} at {mark['at']}" for mark in marks_of(trial) if mark["seconds"] > end]
            omitted += [f"{view.name(outage.variant)} {text}" for text in late]
    caption = (
        f"Operations by due time, in the trial with the median outage; in time means {describe_deadline(view)}. The"
        " outage is the integral of 1 − the share of operations in time, up to the end, so late operations also count."
        " Time 0 is when the fault was ordered; the band"
        " ends when the lift of the fault was verified. Vertical lines mark verified instants. The mark of each outcome"
        " is at its highest rate."
    )
    if omitted:
        caption += f" After the end of the window: {units.list_items(omitted)}."
    alt_text = "operations in time, late, failed and unanswered over time around the fault, a panel for each variant"
    return Figure(
        "fault-timeline",
        tuple(panels),
        caption,
        alt_text,
        "Outcomes of the operations",
        select_entries(OUTCOMES, panels),
    )


def select_entries(legend: Legend, panels: Sequence[Panel]) -> Legend:
    """The entries of a legend that occur in a panel."""
    names = {row.get("name") for panel in panels for rows in panel.spec["datasets"].values() for row in rows}
    return tuple(entry for entry in legend if entry[0] in names)


def typical_trial(outage: Outage) -> TrialResult | None:
    """The trial with the median outage; of two middle trials, the trial with the longer outage."""
    known = sorted(
        (trial for trial in outage.trials if trial.value("outage") is not None),
        key=lambda trial: trial.value("outage") or 0.0,
    )
    return known[len(known) // 2] if known else None


def marks_of(trial: TrialResult) -> list[Row]:
    """The instants of a trial's fault, s since it was ordered."""
    fault = trial.faults[0]
    order_ns = order_seconds(fault) * 1e9
    first_ns, lift_ns = borders_of(trial.faults)
    recovered = trial.values.get("recovered")
    times = {"detected": fault.detected_ns, "ready": fault.ready_ns, "settled": fault.settled_ns}
    if recovered is not None and recovered.bound is None:
        times["recovered"] = round((first_ns if lift_ns is None else lift_ns) + recovered.value)
    return [
        {"seconds": (time - order_ns) / 1e9, "label": name, "at": units.format_duration(time - order_ns)}
        for name, time in sorted(times.items(), key=lambda item: item[1] or 0)
        if time is not None
    ]


def band_of(trials: Sequence[TrialResult], end: float) -> list[Row]:
    """The band from the instant when the fault was ordered to its verified or planned lift, else to the end.

    The lift is the median over the trials.
    """
    ends = []
    for trial in trials:
        fault = trial.faults[0]
        out = fault.lifted_ns if fault.lifted_ns is not None else fault.planned_lift_ns
        ends.append(end if out is None else out / 1e9 - order_seconds(fault))
    return [{"start": 0.0, "end": min(median(ends), end)}] if ends else []


def x_axis(domain: Sequence[float]) -> tuple[alt.Scale, alt.Axis]:
    """The x axis: seconds since the fault."""
    axis = alt.Axis(title="seconds since the fault", grid=False, tickCount=7, labelFlush=True)
    return alt.Scale(domain=list(domain), nice=False), axis


def timeline_chart(time_series: FaultSeries, trial: TrialResult) -> dict[str, Any]:
    """Stacked rates by outcome, over the band of the fault, with a line for each instant."""
    rows: list[Row] = []
    for place, at in enumerate(time_series.seconds):
        low = 0.0
        for name, values in time_series.outcomes.items():
            rate = values[place] / time_series.step
            if rate:
                span = {"start": at, "end": at + time_series.step, "low": low, "high": low + rate}
                rows.append({**span, "name": name})
            low += rate
    outcomes = time_series.outcomes.items()
    end = time_series.seconds[-1] + time_series.step
    scale, axis = x_axis([time_series.seconds[0], end])
    top = max(
        sum(values[place] for values in time_series.outcomes.values()) for place in range(len(time_series.seconds))
    )
    y_scale = alt.Scale(domain=[0, top / time_series.step * 1.22 or 1], nice=False)
    y_axis = alt.Axis(title="op/s", labelExpr=figure.RATE_LABEL, tickCount=4)
    colours = figure.scale_of(OUTCOMES)
    bars = plot(rows).encode(
        x=alt.X("start:Q", scale=scale, axis=axis),
        x2="end:Q",
        y=alt.Y("low:Q", scale=y_scale, axis=y_axis),
        y2="high:Q",
        color=alt.Color("name:N", scale=colours, legend=None),
    )
    titles = {name.replace(" ", "_"): name for name in time_series.outcomes}
    columns = [
        {"seconds": at + time_series.step / 2, "start": at, "end": at + time_series.step, "at": f"{at:g} s"}
        | {name.replace(" ", "_"): units.format_rate(counts[place] / time_series.step) for name, counts in outcomes}
        for place, at in enumerate(time_series.seconds)
    ]
    areas, line, _ = figure.draw_crosshair(columns, scale, axis, {"at": "since the fault", **titles})
    return figure.layer_charts(
        # A stroke closes the gaps between bars.
        bars.encode(stroke=alt.Stroke("name:N", scale=colours, legend=None)).mark_rect(strokeWidth=0.7),
        band_layer(band_of([trial], end), scale, axis),
        areas,
        line,
        *outcome_layers(rows, scale, y_scale),
        *mark_layers([mark for mark in marks_of(trial) if mark["seconds"] <= end], scale, axis),
    )


def outcome_layers(rows: Sequence[Row], scale: alt.Scale, y_scale: alt.Scale) -> Iterator[alt.Chart]:
    """Draws each outcome's mark from the legend in the outcome's highest bar, for readers who cannot distinguish the
    colours."""
    bars: dict[str, list[Row]] = {}
    for row in rows:
        bars.setdefault(row["name"], []).append(row)
    marks = []
    for name, of_name in bars.items():
        limit = HIGHEST * max(map(height_of, of_name))
        highest = [row for row in of_name if height_of(row) >= limit]
        row = highest[len(highest) // 2]
        center = {"seconds": (row["start"] + row["end"]) / 2, "rate": (row["low"] + row["high"]) / 2}
        marks.append({"name": name, **center})
    base = plot(marks).encode(
        x=alt.X("seconds:Q", scale=scale), y=alt.Y("rate:Q", scale=y_scale), shape=figure.shape_of(OUTCOMES)
    )
    yield base.mark_point(filled=True, size=90, opacity=1, style="halo")
    yield base.mark_point(filled=True, size=50, opacity=1, style="word")


def height_of(row: Row) -> float:
    """The rate of a bar."""
    return float(row["high"] - row["low"])


def band_layer(band: list[Row], scale: alt.Scale, axis: alt.Axis) -> alt.Chart:
    """A band for the duration of the fault."""
    x = alt.X("start:Q", scale=scale, axis=axis)
    chart: alt.Chart = plot(band).encode(x=x, x2="end:Q").mark_rect(style="word", opacity=0.12)
    return chart


def mark_layers(marks: list[Row], scale: alt.Scale, axis: alt.Axis) -> tuple[alt.Chart, ...]:
    """A line for each instant; each label has a separate row, so that close instants stay legible."""
    for number, mark in enumerate(marks):
        mark["row"] = 4 + 13 * number
    base = plot(marks).encode(
        x=alt.X("seconds:Q", scale=scale, axis=axis), tooltip=figure.tooltip(label="instant", at="after")
    )
    labels = base.encode(text="label:N", y=alt.Y("row:Q", axis=None, scale=None))
    return (
        base.mark_rule(strokeDash=[4, 3], strokeWidth=1.2, style="word"),
        *figure.draw_text(labels, align="left", dx=4, baseline="top"),
    )


def repeats(view: View) -> Figure:
    """The yield of all repeats, and of the twins, aligned at the instant when the fault was ordered."""
    panels = []
    for outage in view.judgement.outages[:PANELS_MAX]:
        twin = view.variants.get(outage.twin, []) if outage.twin is not None else []
        step = step_of(view, outage.trials)
        rows = [
            {"seconds": at, "value": share, "name": name, "trial": trial.trial, "repeat": str(trial.repeat)}
            for name, trials in ((TWIN, twin), (FAULT, outage.trials))
            for trial in trials
            if trial.faults and (series := view.results.series(trial.trial)) is not None
            if (time_series := series_around(series, order_seconds(trial.faults[0]), step)) is not None
            for at, share in zip(time_series.seconds, time_series.yields, strict=True)
            if not np.isnan(share)
        ]
        if rows:
            head = figure.join_title(view.name(outage.variant), view.title(view.context(outage.variant)))
            panels.append(Panel(head, repeats_chart(rows, outage), 150))
    caption = (
        "Yield: operations answered in time ÷ operations due. Each line is a repeat, aligned at the time when"
        " its fault was ordered. The dashed line is the level of recovery (median of the repeats)."
    )
    alt_text = "the yield of each repeat around the fault"
    return Figure("fault-repeats", tuple(panels), caption, alt_text, "All repeats", select_entries(REPEATS, panels))


def choose_points(rows: Sequence[Row]) -> list[Row]:
    """The points of each line that show the mark of the legend."""
    by_trial: dict[str, list[Row]] = {}
    for row in rows:
        by_trial.setdefault(row["trial"], []).append(row)
    chosen = (row for line in by_trial.values() for row in spread(line, MARKS_MAX))
    return [{name: row[name] for name in ("name", "seconds", "value")} for row in chosen]


def yield_columns(rows: Sequence[Row]) -> list[Row]:
    """A row for each point in time, with the median yield of the trials with and without the fault."""
    yields: dict[float, dict[str, list[float]]] = {}
    for row in rows:
        yields.setdefault(row["seconds"], {}).setdefault(row["name"].replace(" ", "_"), []).append(row["value"])
    times = sorted(yields)
    return [
        {"seconds": start, "start": start, "end": end, "at": f"{start:g} s"}
        | {name: units.format_share(median(shares)) for name, shares in yields[start].items()}
        for start, end in zip(times, [*times[1:], times[-1]], strict=True)
    ]


def repeats_chart(rows: list[Row], outage: Outage) -> dict[str, Any]:
    """Lines of yield, the band of the fault and the level of recovery."""
    times = [row["seconds"] for row in rows]
    scale, axis = x_axis([min(times), max(times)])
    y_axis = alt.Axis(title=None, format="%", tickCount=3)
    y = alt.Y("value:Q", scale=alt.Scale(domain=[0, 1.04], nice=False), axis=y_axis)
    x = alt.X("seconds:Q", scale=scale, axis=axis)
    colour = alt.Color("name:N", scale=figure.scale_of(REPEATS), legend=None)
    lines = plot(rows).encode(x=x, y=y, color=colour, detail="trial:N")
    levels = [value for trial in outage.trials if (value := trial.value("recovered.line")) is not None]
    level = plot([{"value": median(levels)}] if levels else []).encode(y=y)
    of_line = figure.tooltip(name="trials", trial="trial", repeat="repeat")
    titles = {name.replace(" ", "_"): f"median {name}" for name in dict.fromkeys(row["name"] for row in rows)}
    areas, line, _ = figure.draw_crosshair(yield_columns(rows), scale, axis, {"at": "since the fault", **titles})
    return figure.layer_charts(
        band_layer(band_of(outage.trials, max(times)), scale, axis),
        areas,
        line,
        level.mark_rule(strokeDash=[2, 3], style="word"),
        lines.mark_line(strokeWidth=1.3, opacity=0.65, interpolate="step-after").encode(tooltip=of_line),
        plot(choose_points(rows))
        .encode(x=x, y=y, color=colour, shape=figure.shape_of(REPEATS))
        .mark_point(filled=True, size=34, opacity=1),
    )
