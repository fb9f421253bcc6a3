"""Figures: panels with a shared legend and caption."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from loadstone.format import units
from loadstone.report.charts.theme import PALETTE, SERIES_MAX, SHAPES
from loadstone.report.markup import countable
from loadstone.report.view import View, spread
from loadstone.results.result_set import natural_key

Row = dict[str, Any]
# The maximum number of panels in a figure, so that it stays readable.
PANELS_MAX = 12
# The width of a panel in a file, px, by the number of panels side by side.
FILE_WIDTHS = {1: 560, 2: 380, 3: 270}
# An expression in Vega's language for labels such as 0, 20k and 1.5M.
RATE_LABEL = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"
# Expressions for the labels of ticks in ns and in bytes.
TIME_LABEL, SIZE_LABEL = (
    "datum.value == 0 ? '0' : "
    + "".join(
        f"datum.value >= {factor:g} ? format(datum.value / {factor:g}, '~g') + ' {unit}' : " for factor, unit in larger
    )
    + f"format(datum.value, '~g') + ' {smallest}'"
    for *larger, (_, smallest) in (units.DURATIONS, units.SIZES)
)


@dataclass(frozen=True)
class Panel:
    """One chart; its specification has no size and no configuration."""

    title: str
    spec: Mapping[str, Any]
    # The height of the plot, px.
    height: int = 240


@dataclass(frozen=True)
class Figure:
    """The charts under one heading, with the name of their file."""

    name: str
    panels: tuple[Panel, ...]
    # How to read the figure, and which parts are omitted.
    caption: str
    # A description for readers who cannot see the figure.
    alt: str
    # A heading, if a section has several figures.
    title: str = ""
    # The names of the series with their index in the palette; empty if the panels name their series.
    legend: tuple[tuple[str, int], ...] = ()
    # Signs that all series share, with their meanings. The caption explains them in full.
    signs: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> int:
        """The number of panels side by side."""
        return {1: 1, 2: 2, 4: 2}.get(len(self.panels), 3)

    def __bool__(self) -> bool:
        """Whether the figure has any panel."""
        return bool(self.panels)


def select_values(view: View) -> list[str]:
    """The compared values that charts have room for; if there are many loads, an even selection."""
    if view.dimension is None or view.dimension != view.load:
        return view.values[:SERIES_MAX]
    return spread(sorted(view.values, key=natural_key), SERIES_MAX)


def legend(view: View, used: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The legend entries of the values that a figure uses."""
    values, names = set(used), order_colours(view)
    series = [view.short[value] for value in select_values(view) if value in values]
    return tuple((name, names.index(name)) for name in series)


def limits(view: View, panels: int, of: int, *, apart: bool = True) -> str:
    """A sentence on the omissions of a figure, if any; `apart`: each compared value is drawn separately."""
    reasons = []
    if apart and len(view.values) > SERIES_MAX:
        reasons.append(f"{SERIES_MAX} of {len(view.values):,} variants are drawn")
    if panels < of:
        reasons.append(f"{panels} of {of:,} panels are drawn")
    return f" {'; '.join(reasons)}: the tables and values.jsonl have all of them." if reasons else ""


def domain(view: View) -> list[str]:
    """The names of all series."""
    return [view.short[value] for value in select_values(view)]


def order_colours(view: View) -> list[str]:
    """All names in the order of the palette: the same names have the same colours in every chart and report, whatever
    the baseline."""
    return sorted(domain(view), key=natural_key)


def colour(view: View) -> alt.Color:
    """The colour of a row's `name`."""
    return alt.Color("name:N", scale=alt.Scale(domain=order_colours(view)), legend=None, title=None)


def shape(view: View) -> alt.Shape:
    """The mark of a row's `name`."""
    names = order_colours(view)
    return alt.Shape("name:N", scale=alt.Scale(domain=names, range=list(SHAPES[: len(names)])), legend=None)


def time_axis(domain: Sequence[float]) -> alt.Axis:
    """A logarithmic axis in ns; its labels have units, so it needs no title."""
    return alt.Axis(title=None, labelExpr=TIME_LABEL, values=ticks(domain), labelOverlap=False)


def ticks(domain: Sequence[float]) -> list[float]:
    """Powers of ten within a logarithmic axis and, if there would be few, their multiples by 2 and 5."""
    low, high = (math.log10(end) for end in domain)
    steps = (1,) if high - low >= 2.5 else (1, 2, 5)
    values = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    return [value for value in values if domain[0] <= value <= domain[1]]


def decade_domain(numbers: Iterable[float]) -> list[float]:
    """A range around the positive numbers that contains at least one power of ten."""
    positive = [number for number in numbers if number > 0]
    low, high = min(positive), max(positive)
    down, up = low / 1.25, high * 1.25
    if math.ceil(math.log10(down)) > math.floor(math.log10(up)):
        down = min(down, 10.0 ** math.floor(math.log10(low)))
    return [down, up]


def scale_of(entries: Sequence[tuple[str, int]]) -> alt.Scale:
    """The colours of a legend whose names are not compared values; the theme defines them for each colour scheme."""
    names = {number: name for name, number in entries}
    return alt.Scale(domain=[names.get(number, f"unused {number}") for number in range(SERIES_MAX)])


def shape_of(entries: Sequence[tuple[str, int]]) -> alt.Shape:
    """The marks of a legend whose names are not compared values."""
    names, shapes = [name for name, _ in entries], [SHAPES[number] for _, number in entries]
    return alt.Shape("name:N", scale=alt.Scale(domain=names, range=shapes), legend=None)


def tooltip(**titles: str) -> list[alt.Tooltip]:
    """The fields of a row that are shown on hover, with their titles."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]


def draw_crosshair(
    columns: Sequence[Row], scale: alt.Scale, axis: alt.Axis, titles: Mapping[str, str]
) -> tuple[alt.Chart, alt.Chart, Any]:
    """The crosshair of a chart over time: the columns that react to the pointer and show its figures, the line, and the
    condition for further marks in the column below the pointer.

    A row has `seconds`, the `start` and the `end` of its column, and a text for each title.
    """
    pointer = alt.selection_point(name="pointer", on="pointerover", clear="pointerout", fields=["seconds"], empty=False)
    near = alt.condition(pointer, alt.value(0.9), alt.value(0))
    areas = plot(columns).mark_rect(opacity=0).encode(x=alt.X("start:Q", scale=scale, axis=axis), x2="end:Q")
    line = plot(columns).mark_rule(strokeWidth=1, style="word")
    return (
        areas.encode(tooltip=tooltip(**titles)).add_params(pointer),
        line.encode(x=alt.X("seconds:Q", scale=scale, axis=axis), opacity=near),
        near,
    )


def join_title(*parts: str) -> str:
    """A panel's title from its parts, some of which may be empty."""
    return " · ".join(part for part in parts if part)


def plot(rows: Sequence[Row]) -> alt.Chart:
    """A chart with some rows, but without marks."""
    return alt.Chart(alt.InlineData(values=list(rows)))


def layer_charts(*layers: alt.Chart) -> dict[str, Any]:
    """Layered charts as Vega-Lite; validation is left to tests, as it would take most of the time."""
    spec: dict[str, Any] = alt.layer(*layers).to_dict(validate=False)
    # Removes the address of a schema, which must not be fetched, and the configuration, which is in the theme.
    spec.pop("$schema", None)
    spec.pop("config", None)
    return spec


def draw_text(chart: alt.Chart, **how: Any) -> tuple[alt.Chart, alt.Chart]:
    """Text on top of lines: its halo, and then the text."""
    return chart.mark_text(style="halo", **how), chart.mark_text(style="word", **how)


def finite(*numbers: float | None) -> bool:
    """Whether all numbers can be drawn."""
    return all(number is not None and math.isfinite(number) for number in numbers)


def combine_panels(figure: Figure, config: Mapping[str, Any]) -> dict[str, Any]:
    """All panels as one specification of fixed size, with a legend, for a file."""
    columns = figure.columns
    width = FILE_WIDTHS[columns]
    parts: list[dict[str, Any]] = []
    # The rows by name, which Vega-Lite expects at the top level.
    rows: dict[str, Any] = {}
    for panel in figure.panels:
        part = copy.deepcopy(dict(panel.spec))
        rows |= part.pop("datasets", {})
        part["width"], part["height"] = width, panel.height
        if panel.title:
            part["title"] = panel.title
        parts.append(part)
    whole: dict[str, Any] = {"concat": parts, "columns": columns, "spacing": 36}
    if figure.legend:
        legend = key(figure.legend)
        rows |= legend.pop("datasets", {})
        whole = {"vconcat": [whole, legend], "spacing": 14}
    # Panels share their configuration, but not their scales.
    return {
        **whole,
        "datasets": rows,
        "config": dict(config),
        "resolve": {"scale": {"color": "independent", "shape": "independent"}},
    }


def interactive(figure: Figure, config: Mapping[str, Any]) -> alt.TopLevelMixin:
    """All panels as an Altair chart; they share their selections, which Altair expects at the top level."""
    whole = combine_panels(figure, config)
    parts = whole.get("concat") or whole["vconcat"][0]["concat"]
    selections: dict[str, dict[str, Any]] = {}
    for part in parts:
        for selection in part.pop("params", ()):
            shared = selections.setdefault(selection["name"], {**selection, "views": []})
            shared["views"] += selection.get("views", ())
    if selections:
        whole["params"] = list(selections.values())
    chart: alt.TopLevelMixin = alt.Chart.from_dict(countable(whole))
    return chart


def key(entries: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """A legend as a separate chart."""
    rows = [{"name": name, "at": index} for index, (name, _) in enumerate(entries)]
    names = [name for name, _ in entries]
    # Colours are chosen by index, as this chart may have fewer names than the charts above.
    colours = [PALETTE[number] for _, number in entries]
    base = plot(rows).encode(y=alt.Y("at:O", axis=None), x=alt.value(8))
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        color=alt.Color("name:N", scale=alt.Scale(domain=names, range=colours), legend=None),
        shape=shape_of(entries),
    )
    labels = base.mark_text(align="left", dx=12, baseline="middle", style="word").encode(text="name:N")
    spec = layer_charts(points, labels)
    spec["height"] = {"step": 20}
    spec["width"] = 320
    return spec
