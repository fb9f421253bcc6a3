"""Throughput and latency over time: a panel for each variant, with thin lines for repeats and a thick median."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt

from loadstone.format import units
from loadstone.judge.judgement import VariantKey
from loadstone.report.charts import figure
from loadstone.report.charts.figure import PANELS_MAX, Figure, Panel, Row, colour, plot
from loadstone.report.time_series import Figure as Kind
from loadstone.report.time_series import middle, step, thin_series
from loadstone.report.view import View, spread
from loadstone.results.stage import Stage, stages_of
from loadstone.results.trial_result import Series

# The maximum number of lines in all panels together.
LINES_MAX = 60
# Between two lines whose values are closer than this ratio, there is no room for a name.
APART = 4
# An interval is marked if garbage collectors pause for at least this share of it.
PAUSED_MIN = 0.02
HEIGHT = 170


@dataclass(frozen=True)
class ChartedSeries:
    """The series of the repeats of some variants."""

    # The series by variant, each with the id and the repeat of its trial.
    of: Mapping[VariantKey, Sequence[tuple[str, int, Series]]]
    # The number of variants, and the largest number of repeats of a variant, drawn or not.
    variants: int
    repeats: int

    @property
    def all(self) -> list[Series]:
        """Every series."""
        return [series for lines in self.of.values() for _, _, series in lines]


def select_series(view: View) -> ChartedSeries:
    """Reads the series of as many trials as fit."""
    fitting = [key for key in view.variants if view.value(key) in figure.select_values(view)]
    keys = choose_variants(view, fitting)
    most = max(LINES_MAX // max(len(keys), 1), 1)
    series_of: dict[VariantKey, list[tuple[str, int, Series]]] = {}
    for key in keys:
        for trial in spread(view.variants[key], most):
            series = view.results.series(trial.trial)
            if series is not None and len(series.start_seconds) > 1:
                series_of.setdefault(key, []).append((trial.trial, trial.repeat, series))
    total = max((len(view.variants[key]) for key in keys), default=0)
    return ChartedSeries(series_of, len(fitting), total)


def choose_variants(view: View, fitting: Sequence[VariantKey]) -> list[VariantKey]:
    """As many variants as fit: for a search, the loads nearest to its answer; else, an even selection of all
    variants."""
    answers = {
        search.context: search.outcome.load
        for search in view.judgement.searches
        if search.outcome is not None and search.outcome.load
    }
    if not answers:
        return spread(fitting, PANELS_MAX)

    def distance(key: VariantKey) -> float:
        load = dict(key).get(view.load or "")
        answer = answers.get(tuple(pair for pair in key if pair[0] != view.load))
        return abs(math.log(load / answer)) if answer and isinstance(load, int | float) and load > 0 else math.inf

    nearest = sorted(fitting, key=distance)[:PANELS_MAX]
    return [key for key in fitting if key in nearest]


def throughput(view: View, charted: ChartedSeries) -> Figure:
    """Throughput over time."""
    return draw_charts(view, charted, "throughput-over-time", ("throughput",), "op/s", "Throughput, op/s")


def latency(view: View, charted: ChartedSeries) -> Figure:
    """The p50 and the p99 of the latency over time."""
    return draw_charts(
        view, charted, "latency-over-time", ("p50", "p99"), "ns", "Latency: p50 and p99 of all operations"
    )


def draw_charts(view: View, charted: ChartedSeries, name: str, kinds: Sequence[Kind], unit: str, title: str) -> Figure:
    """A panel for each variant; panels with the same context share axes."""
    seconds = step(charted.all)
    rows = {key: panel_rows(view.name(key), repeats, kinds, seconds, unit) for key, repeats in charted.of.items()}
    panels = []
    for key, (thin, strong) in rows.items():
        alike = [other for other in charted.of if view.context(other) == view.context(key)]
        numbers = [value for other in alike for value in values(rows[other], "value") if value > 0]
        if not strong or not numbers:
            continue
        # An interval is drawn at its start, so the last point precedes the end of the window.
        every = [series for other in alike for _, _, series in charted.of[other]]
        ends = [series.start_seconds[-1] + series.length_seconds[-1] for series in every]
        head = figure.join_title(view.name(key), view.title(view.context(key)))
        stages = stages_of(view.variants[key][0])
        ends += [stage.end_ns / 1e9 for stage in stages]
        requested = rate_rows(stages) if unit == "op/s" else []
        numbers += [row["value"] for row in requested]
        behind = stage_rows(stages), requested
        layers = chart(view, thin, strong, vertical(unit, numbers), max(ends), behind, pause_rows(charted.of[key]))
        panels.append(Panel(head, layers, HEIGHT))
    alt_text = f"{' and '.join(kinds)} over time, one panel for each variant, a line for each repeat and their median"
    return Figure(name, tuple(panels), caption(view, charted, kinds, seconds, len(panels)), alt_text, title)


def stage_rows(stages: Sequence[Stage]) -> list[Row]:
    """A band for each stage."""
    bands = [
        {
            "start": stage.start_ns / 1e9,
            "end": stage.end_ns / 1e9,
            "stage": str(stage.number),
            "rate": stage.rate,
        }
        for stage in stages
    ]
    return [{**band, "odd": number % 2 * 0.07} for number, band in enumerate(bands)]


def rate_rows(stages: Sequence[Stage]) -> list[Row]:
    """The requested rate: a point at each end of each stage."""
    return [
        {"seconds": at_ns / 1e9, "value": rate, "order": number}
        for number, (at_ns, rate) in enumerate(
            end for stage in stages for end in ((stage.start_ns, stage.rate_from), (stage.end_ns, stage.rate_to))
        )
    ]


def pause_rows(repeats: Sequence[tuple[str, int, Series]]) -> list[Row]:
    """The intervals in which garbage collectors paused noticeably, each with the longest total pause of any repeat."""
    longest: dict[tuple[float, float], tuple[int, int]] = {}
    for _, repeat, series in repeats:
        for start, length, paused_ns in zip(series.start_seconds, series.length_seconds, series.gc_ns, strict=False):
            if paused_ns >= PAUSED_MIN * length * 1e9:
                longest[start, length] = max(longest.get((start, length), (0, 0)), (paused_ns, repeat))
    return [
        {
            "start": start,
            "end": start + length,
            "share": min(paused_ns / length / 1e9, 1.0),
            "paused": f"{units.format_duration(paused_ns)} in repeat {repeat}",
        }
        for (start, length), (paused_ns, repeat) in sorted(longest.items())
    ]


def vertical(unit: str, numbers: Sequence[float]) -> alt.Y:
    """The y axis of a figure: linear from zero for rates, logarithmic for latencies."""
    if unit == "ns":
        domain = figure.decade_domain(numbers)
        return alt.Y("value:Q", scale=alt.Scale(type="log", domain=domain, nice=False), axis=figure.time_axis(domain))
    scale = alt.Scale(domain=[0, max(numbers) * 1.05], nice=False)
    return alt.Y("value:Q", scale=scale, axis=alt.Axis(title=None, labelExpr=figure.RATE_LABEL, tickCount=4))


def values(lines: tuple[Sequence[Row], Sequence[Row]], field: str) -> Iterator[float]:
    """Every value of a field in thin and thick lines."""
    thin, strong = lines
    yield from (value for row in thin for value in row[field])
    yield from (row[field] for row in strong)


def panel_rows(
    name: str, repeats: Sequence[tuple[str, int, Series]], kinds: Sequence[Kind], step_seconds: float, unit: str
) -> tuple[list[Row], list[Row]]:
    """The rows of the thin lines, and the rows of the thick lines."""
    thin: list[Row] = []
    strong: list[Row] = []
    for kind in kinds:
        lines = [(trial, repeat, thin_series(series, kind, step_seconds)) for trial, repeat, series in repeats]
        for trial, repeat, line in lines if len(lines) > 1 else ():
            seconds, numbers = zip(*line, strict=True) if line else ((), ())
            row = {"name": name, "kind": kind, "trial": trial, "repeat": str(repeat)}
            thin.append({**row, "seconds": list(seconds), "value": list(numbers)})
        points = middle([line for _, _, line in lines])
        same = {"name": name, "kind": kind}
        strong.extend(
            {
                **same,
                "seconds": at,
                "value": value,
                "figure": units.format_figure(value, unit, units.digit_carried(value, value)),
                "at": f"{at:g} s",
            }
            for at, value in points
        )
        if strong and len(kinds) > 1 and points:
            strong[-1]["end"] = kind
    return thin, strong


def chart(
    view: View,
    thin: Sequence[Row],
    strong: Sequence[Row],
    y: alt.Y,
    end: float,
    behind_lines: tuple[Sequence[Row], Sequence[Row]],
    paused: Sequence[Row],
) -> dict[str, Any]:
    """The chart of a panel: thin lines behind thick lines; the stages and the requested rate are drawn behind all
    lines, and the servers' pauses at the lower edge."""
    scale = alt.Scale(domain=[0, end or 1], nice=False)
    axis = alt.Axis(title="seconds", grid=False, tickCount=5, labelFlush=True)
    x = alt.X("seconds:Q", scale=scale, axis=axis)
    # One row for each line, which the browser unfolds, takes a tenth of the bytes of a row for each point.
    behind = plot(thin).transform_flatten(["seconds", "value"]).encode(x=x, y=y, color=colour(view))
    before = plot(strong).encode(x=x, y=y, color=colour(view))
    of_line = figure.tooltip(name="name", trial="trial", repeat="repeat")
    medians = {kind: f"median {kind}" for kind in dict.fromkeys(str(row["kind"]) for row in strong)}
    areas, line, near = figure.draw_crosshair(time_columns(strong, end), scale, axis, {"at": "time", **medians})
    return figure.layer_charts(
        *stage_layers(*behind_lines, x, alt.X("start:Q", scale=scale, axis=axis), y),
        areas,
        behind.mark_line(strokeWidth=1, opacity=0.38).encode(detail=["trial:N", "kind:N"], tooltip=of_line),
        before.mark_line(strokeWidth=2.2, strokeJoin="round").encode(detail="kind:N"),
        line,
        before.mark_point(size=46, filled=True).encode(opacity=near),
        *label_layers([row for row in strong if "end" in row], x, y),
        *pause_layers(paused, alt.X("start:Q", scale=scale, axis=axis)),
    )


def pause_layers(paused: Sequence[Row], edge: alt.X) -> Iterator[alt.Chart]:
    """A mark at the lower edge for each interval with pauses; the larger their share, the darker the mark."""
    if paused:
        marks = (
            plot(paused)
            .mark_rect(style="word")
            .encode(x=edge, x2="end:Q", y=alt.value(HEIGHT - 7), y2=alt.value(HEIGHT))
        )
        shade = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.25, 1]), legend=None)
        yield marks.encode(opacity=shade, tooltip=figure.tooltip(paused="garbage collection"))


def label_layers(ends: Sequence[Row], x: alt.X, y: alt.Y) -> Iterator[alt.Chart]:
    """The names of several lines at their ends; if lines are close, the lower line's name is below it."""
    values = [row["value"] for row in ends]
    # A name below a line near the axis would cover the labels of the axis.
    lowest = min(values) if values and max(values) < APART * min(values) else None
    for row in ends:
        baseline, dy = ("top", 7) if row["value"] == lowest else ("bottom", -6)
        base = plot([row]).encode(x=x, y=y, text="end:N")
        yield from figure.draw_text(base, align="right", baseline=baseline, dy=dy, fontWeight=600)


def stage_layers(
    bands: Sequence[Row], requested: Sequence[Row], x: alt.X, edge: alt.X, y: alt.Y
) -> Iterator[alt.Chart]:
    """The numbered bands of the stages, and the requested rate; empty if the rate is constant."""
    if not bands:
        return
    of_bands = plot(bands)
    yield of_bands.mark_rect(style="word").encode(
        x=edge, x2="end:Q", opacity=alt.Opacity("odd:Q", scale=None, legend=None)
    )
    numbers = of_bands.encode(x=edge, y=alt.value(4), text="stage:N")
    yield from figure.draw_text(numbers, align="left", baseline="top", dx=3)
    if requested:
        line = plot(requested).encode(x=x, y=y, order="order:Q")
        yield line.mark_line(strokeDash=[4, 3], strokeWidth=1.2, style="word", opacity=0.6)


def time_columns(strong: Sequence[Row], end: float) -> list[Row]:
    """A row for each point in time: its column on the axis, and the medians at that time."""
    rows: dict[float, Row] = {}
    for row in strong:
        rows.setdefault(row["seconds"], {"seconds": row["seconds"], "at": row["at"]})[row["kind"]] = row["figure"]
    times = sorted(rows)
    edges = [0.0, *((left + right) / 2 for left, right in pairwise(times)), end or 1]
    return [
        {**rows[time], "start": start, "end": stop}
        for time, start, stop in zip(times, edges[:-1], edges[1:], strict=True)
    ]


def caption(view: View, charted: ChartedSeries, kinds: Sequence[Kind], seconds: float, panels: int) -> str:
    """The caption of a chart, with its omissions."""
    text = "Thin lines are repeats; the thick line is their median. Panels with the same context share axes."
    usual = min((length for series in charted.all for length in series.length_seconds[:1]), default=seconds)
    if seconds > usual * 1.5:
        joined = "mean" if kinds == ("throughput",) else "middle p50 and worst p99"
        text += f" Each point is the {joined} of the intervals in {seconds:g} s."
    repeats = max((len(lines) for lines in charted.of.values()), default=0)
    if repeats < charted.repeats:
        text += f" {repeats} of {charted.repeats} repeats are drawn."
    if any(stages_of(view.variants[key][0]) for key in charted.of):
        text += " The numbered bands are stages; the dashed line is the requested rate."
    if any(pause_rows(lines) for lines in charted.of.values()):
        text += " Marks at the lower edge are intervals in which servers collected garbage; darker means longer."
    return text + figure.limits(view, panels, charted.variants)
