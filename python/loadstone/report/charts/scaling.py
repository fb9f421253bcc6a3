"""Throughput and latency against load, for sweeps and searches: joined points, with the knee and the objective.

All panels of a context share the load axis, so that the throughput and the latencies of a load are above each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import altair as alt

from loadstone.format import units, wording
from loadstone.judge.checks import errors
from loadstone.judge.figures import is_latency
from loadstone.judge.judgement import Curve, Search, VariantKey
from loadstone.judge.settings import Settings
from loadstone.report.charts import figure
from loadstone.report.charts.figure import PANELS_MAX, Figure, Panel, Row, colour, finite, plot
from loadstone.report.view import View, spread
from loadstone.results.result_set import natural_key, variant_name
from loadstone.results.value import THROUGHPUT
from loadstone.search.probe import Probe
from loadstone.search.sentence import format_throughput, knee_text, probe_figure
from loadstone.statistics.knee import Knee

# The number of points of the fitted curve.
POINTS = 64
# The statistics of latency that have panels below throughput: of all operations, or else of the first operation type
# with the statistic. With several types, the p99 has a panel for each type.
STATISTICS = ("p99", "p50", "max")
# The maximum number of operation types with a panel for their p99.
TYPES_MAX = 3
LOADS_MIN = 2
# The minimum distance between two labels, as a share of the axis, which has 300 px on a phone.
LABEL_GAP = 0.11
# The height of a label, as a share of the axis.
LABEL_HEIGHT = 0.09
# Latencies whose ratio exceeds this need a logarithmic axis.
LOGARITHMIC = 10
HEIGHT = 200
# The space to the left of each panel, px, so that the loads of all panels are aligned.
Y_EXTENT = 48


@dataclass(frozen=True)
class Line:
    """The variants of one series over the loads."""

    name: str
    # The dimensions except the load.
    context: VariantKey
    # The variants by load.
    variants: Mapping[float, VariantKey]
    curve: Curve | None = None
    search: Search | None = None

    @property
    def knee(self) -> Knee | None:
        """The knee of the search, or else of the sweep."""
        if self.search is not None:
            return None if self.search.outcome is None else self.search.outcome.knee
        return None if self.curve is None else self.curve.knee

    def holds(self, load: float) -> bool | None:
        """Whether a search decided that the objective is met at a load; true without an objective, None if no trial
        could be judged.
        """
        outcome = None if self.search is None else self.search.outcome
        if self.search is None or outcome is None or outcome.rule.objective is None:
            return True
        samples = self.search.samples.get(load, ())
        if Probe(load, samples).invalid:
            return None
        if (decision := outcome.decision_at(load)) is not None:
            return decision.go
        # Earlier searches may have tried loads that this search did not decide.
        votes = [sample.meets for sample in samples if not sample.invalid]
        return sum(map(bool, votes)) * 2 > len(votes)


def curves(view: View) -> Figure:
    """For each context, a panel of throughput and of each latency, with a line for each compared value."""
    grouped = group_lines(view)
    metrics_of = {context: distinct_metrics(view, lines, panel_metrics(view)) for context, lines in grouped.items()}
    # If there are many contexts, fewer metrics are drawn for each.
    contexts = spread(sorted(grouped, key=natural_key), PANELS_MAX // 2)
    most = max(PANELS_MAX // max(len(contexts), 1), 1)
    chosen = [(context, metric) for context in contexts for metric in metrics_of[context][:most]]
    panels = [panel for context, metric in chosen if (panel := draw(view, context, grouped[context], metric))]
    named = {line.name for lines in grouped.values() for line in lines}
    used = [value for value in figure.select_values(view) if view.short[value] in named]
    is_compared = bool(used) and view.dimension != view.load
    is_search = any(line.search for lines in grouped.values() for line in lines)
    intervals = "" if is_search else " with their intervals (↑: beyond the panel)"
    caption = f"Points are medians of the repeats{intervals}, joined in order of load."
    if any(metric.startswith("all.") for _, metric in chosen):
        caption += " Percentiles without the name of an operation cover all operations."
    if any(line.knee is not None and line.knee.upper is not None for lines in grouped.values() for line in lines):
        caption += " The band is the knee: within it, throughput reaches 95 % of its plateau."
    if any(line.search and line.search.rule.objective for lines in grouped.values() for line in lines):
        caption += " The dashed line is the objective, unless it is far above the points"
        if any(answer_loads(line) for lines in grouped.values() for line in lines):
            caption += "; the vertical line marks the highest load that meets it, and the band its bracket"
        caption += ". Hollow points are loads at which half of the trials or more missed it."
        caption += " A question mark is a load that could not be judged."
    if any(share_failed(view, key) for lines in grouped.values() for line in lines for key in line.variants.values()):
        caption += " ✕ marks a load at which operations failed, with the share that failed."
        caption += " An infinite latency is drawn at the upper edge."
    if any(line.curve and line.curve.law for lines in grouped.values() for line in lines):
        caption += " The thin line is the Universal Scalability Law, where it fits within the noise of the repeats."
    caption += figure.limits(view, len(chosen), sum(map(len, metrics_of.values())), apart=is_compared)
    legend = figure.legend(view, used) if is_compared else ()
    signs = tuple(explain_signs([line for lines in grouped.values() for line in lines]))
    alt_text = f"throughput and latency against {view.load}"
    return Figure("scaling", tuple(panels), caption, alt_text, legend=legend, signs=signs)


def explain_signs(lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """The signs of a search with an objective, and their meanings."""
    judged = [line.holds(load) for line in lines for load in line.variants]
    if any(answer_loads(line) for line in lines):
        yield "│", "answer, in the band of its bracket"
    if False in judged:
        yield "○", "objective missed by half of the trials or more"
    if None in judged:
        yield "?", "not judged"


def group_lines(view: View) -> dict[VariantKey, list[Line]]:
    """The lines by context, which has all dimensions except the load and the compared dimension."""
    over = view.load
    if over is None:
        return {}
    variants: dict[VariantKey, dict[float, VariantKey]] = {}
    for key in view.results.variants:
        load = dict(key).get(over)
        if isinstance(load, int | float):
            variants.setdefault(tuple(pair for pair in key if pair[0] != over), {})[float(load)] = key
    by_context = {curve.context: curve for curve in view.judgement.curves} if over == "clients" else {}
    searches = {search.context: search for search in view.judgement.searches}
    grouped: dict[VariantKey, list[Line]] = {}
    for rest, loads in variants.items():
        name = series_name(view, rest)
        if len(loads) >= LOADS_MIN and name in figure.domain(view):
            context = tuple(pair for pair in rest if pair[0] != view.dimension)
            line = Line(name, rest, dict(sorted(loads.items())), by_context.get(rest), searches.get(rest))
            grouped.setdefault(context, []).append(line)
    return grouped


def series_name(view: View, context: VariantKey) -> str:
    """The name that decides a line's colour and mark."""
    return whose(view, context) or figure.domain(view)[0]


def whose(view: View, context: VariantKey) -> str:
    """The compared value of a line; empty if the line runs through all compared values."""
    value = dict(context).get(view.dimension) if view.dimension else None
    if value is None:
        return "" if view.dimension == view.load or not view.dimension else variant_name(context)
    return view.short.get(str(value), "")


def panel_metrics(view: View) -> list[str]:
    """The metrics with panels: the objective's latencies, throughput, the question's latencies, and STATISTICS."""
    known = view.results.metrics
    terms = [term for search in view.judgement.searches[:1] for term in objective_terms(search)]
    limits = [term.metric for term in terms if is_latency(term.metric)]
    listed = [metric for metric in view.results.question.metrics if is_latency(metric)]
    for statistic in STATISTICS:
        every = f"all.{statistic}"
        types = [metric for metric in known if metric.split(".", 1)[1:] == [statistic] and metric != every]
        if statistic == "p99" and len(types) > 1:
            # The percentile of all operations may hide the tail of a type.
            listed += types[:TYPES_MAX]
        else:
            listed += [metric for metric in (every, *types) if metric in known][:1]
    return [metric for metric in dict.fromkeys([*limits, THROUGHPUT, *listed]) if metric in known]


def distinct_metrics(view: View, lines: Sequence[Line], metrics: Sequence[str]) -> list[str]:
    """The metrics, each with different samples: for a single operation type, `all.p99` would repeat `read.p99`."""
    keys, cells = [key for line in lines for key in line.variants.values()], view.judgement.cells
    samples_of: dict[str, list[object]] = {}
    for metric in metrics:
        samples: list[object] = [cells[key, metric].samples for key in keys if (key, metric) in cells]
        if not samples or samples not in samples_of.values():
            samples_of[metric] = samples
    return list(samples_of)


def objective_terms(search: Search) -> Sequence[Any]:
    """The conditions of a search."""
    return () if search.rule.objective is None else search.rule.objective.terms


def draw(view: View, context: VariantKey, lines: Sequence[Line], metric: str) -> Panel | None:
    """The panel of one metric in one context; None without points."""
    points = [row for line in lines for row in measure(view, line, metric)]
    if not points:
        return None
    failing = [row for line in lines for row in failing_rows(view, line, metric)]
    loads = sorted({load for line in lines for load in line.variants})
    wide = 0 < loads[0] * LOGARITHMIC < loads[-1]
    # The axis is slightly longer than the measured range, so that no point is cut in half.
    ends = [loads[0] / 1.12, loads[-1] * 1.12] if wide else [0, loads[-1] * 1.06]
    scale = alt.Scale(type="log", base=2, domain=ends, nice=False) if wide else alt.Scale(domain=ends, nice=False)
    title = "rate, op/s" if view.load == "rate" else str(view.load)
    axis = alt.Axis(title=title, values=axis_labels(loads, ends, wide=wide), format="~s", grid=False)
    x = alt.X("load:Q", scale=scale, axis=axis)
    highest = max(row["value"] for row in points)
    limits = [row for line in lines[:1] for row in limit_rows(line, metric, highest)]
    known = [line for line in lines if line.knee is not None and line.knee.upper is not None]
    label_count = len(known) if metric == THROUGHPUT else 0
    numbers = [row["value"] for row in (*points, *limits)]
    # Intervals may lengthen the axis, unless they would flatten the points.
    numbers += [row["high"] for row in points if row["high"] is not None and row["high"] <= 2 * highest]
    (y, top), (low, _) = (vertical(metric, numbers, label_count, field) for field in ("value", "low"))
    layers: list[alt.Chart] = []
    knees = [row for number, line in enumerate(known) for row in knee_rows(view, line, ends, top, number)]
    if knees:
        spans = plot(knees).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", color=colour(view))
        layers.append(spans.mark_rect(opacity=0.15).encode(tooltip=figure.tooltip(knee="knee")))
    answers = [{"name": line.name, "load": load} for line in lines for load in answer_loads(line)]
    if brackets := [row for line in lines for row in bracket_rows(line, ends)]:
        spans = plot(brackets).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", color=colour(view))
        layers.append(spans.mark_rect(opacity=0.12).encode(tooltip=figure.tooltip(bracket="bracket")))
    # Equal answers of two sides are drawn next to each other.
    for at, row in enumerate(answers):
        rule = plot([row]).mark_rule(strokeWidth=1.5, opacity=0.8, xOffset=shift_side(at, len(answers)))
        layers.append(rule.encode(x=x, color=colour(view)))
    if limits:
        objective = plot(limits).encode(y=y)
        layers.append(objective.mark_rule(strokeDash=[5, 4], strokeWidth=1.5, style="word"))
    if metric == THROUGHPUT and (fitted := [row for line in lines for row in law(line, wide=wide)]):
        layers.append(plot(fitted).mark_line(strokeWidth=1, opacity=0.6).encode(x=x, y=y, color=colour(view)))
    base = plot(points).encode(x=x, y=y, color=colour(view))
    names = {"name": "name"} if any(whose(view, line.context) for line in lines) else {}
    unjudged = [row for line in lines for row in list_unjudged(line)]
    hover = figure.tooltip(
        **names, at=str(view.load), figure=wording.metric_name(metric), interval="interval", state="objective"
    )
    full = base.transform_filter("datum.holds === true")
    hollow = base.transform_filter("datum.holds === false")
    layers += [
        base.mark_line(strokeWidth=2, strokeJoin="round"),
        *draw_intervals(points, x, low, view),
        *mark_cut_intervals(points, x, top),
        full.mark_point(filled=True, size=56, opacity=1).encode(shape=figure.shape(view), tooltip=hover),
        hollow.mark_point(filled=False, size=56, opacity=1, strokeWidth=2).encode(
            shape=figure.shape(view), tooltip=hover
        ),
    ]
    if unjudged:
        marks = plot(unjudged).encode(x=x, y=alt.value(HEIGHT - 10), color=colour(view))
        marks = marks.encode(tooltip=figure.tooltip(**names, at=str(view.load), state="objective"))
        layers.append(marks.mark_text(text="?", fontSize=17, fontWeight="bold"))
    if failing:
        crosses = plot([{**row, "value": row["value"] or top} for row in failing])
        crosses = crosses.encode(x=x, y=y, tooltip=figure.tooltip(**names, at=str(view.load), failed="failed"))
        layers.append(crosses.mark_text(text="✕", fontSize=15, fontWeight="bold", style="word"))
        layers += figure.draw_text(crosses.encode(text="failed:N"), align="right", dx=-9, dy=-9)
    if limits:
        # The text is drawn on top of the lines, which would otherwise cross it.
        text = plot(limits).encode(y=y, text="text:N", x=alt.value(4))
        layers += figure.draw_text(text, align="left", baseline="bottom", dy=-3)
    if knees and metric == THROUGHPUT:
        # Labels are on the side of the band with more room.
        is_left = axis_place(knees[0]["low"], ends, wide=wide) < 0.5
        edge = alt.X(f"{'low' if is_left else 'high'}:Q", scale=scale)
        labels = plot(knees).encode(x=edge, y=alt.Y("top:Q"), text="knee:N")
        align, dx = ("left", 6) if is_left else ("right", -6)
        layers += figure.draw_text(labels, dx=dx, align=align, baseline="top")
    name = "throughput, op/s" if metric == THROUGHPUT else wording.metric_name(metric)
    return Panel(figure.join_title(name, view.title(context)), figure.layer_charts(*layers), HEIGHT)


def draw_intervals(points: Sequence[Row], x: alt.X, low: alt.Y, view: View) -> Iterator[alt.Chart]:
    """The intervals of the points; each line has its own offset, so that no interval covers another."""
    names = list(dict.fromkeys(row["name"] for row in points))
    for at, name in enumerate(names):
        if rows := [row for row in points if row["name"] == name and row["low"] is not None]:
            rule = plot(rows).mark_rule(strokeWidth=1.5, opacity=0.7, clip=True, xOffset=shift_side(at, len(names)))
            yield rule.encode(x=x, y=low, y2="high:Q", color=colour(view))


def mark_cut_intervals(points: Sequence[Row], x: alt.X, top: float) -> Iterator[alt.Chart]:
    """An arrow at the upper edge for each load whose interval continues above the panel."""
    loads = {row["load"] for row in points if row["high"] is not None and row["high"] > top}
    if loads:
        rows = [{"load": load} for load in sorted(loads)]
        yield plot(rows).mark_text(text="↑", fontSize=13, baseline="top", style="word").encode(x=x, y=alt.value(-4))


def shift_side(at: int, count: int) -> float:
    """The offset of a line's marks, px, so that marks of several lines at one load do not cover each other."""
    return 3.0 * (at - (count - 1) / 2)


def measure(view: View, line: Line, metric: str) -> list[Row]:
    """The points of a line, except at loads that could not be judged; the figures of a search are as in its table."""
    rows: list[Row] = []
    for load, key in line.variants.items():
        cell = view.cell(key, metric)
        low = high = None
        between = ""
        if line.search is not None and (probed := read_probe(line.search, load, metric)) is not None:
            # The figures of a search have no intervals, but are available even if the cell is withheld.
            value, text = probed
        elif cell is None or cell.withheld or cell.bound == "failed" or not finite(cell.estimate.value):
            continue
        else:
            value, text = cell.estimate.value, view.figure(cell)
            estimate = view.judgement.output_estimate(cell)
            between = wording.interval_text(estimate, cell.unit)
            low, high = (estimate.low, estimate.high) if line.search is None else (None, None)
        if not finite(value):
            continue
        if metric != THROUGHPUT and value <= 0:
            continue
        holds = line.holds(load)
        if holds is None:
            continue
        is_positive = low is not None and (low > 0 or metric == THROUGHPUT)
        rows.append(
            {
                "name": line.name,
                "full": view.value(key),
                "load": load,
                "at": units.format_load(load),
                "value": value,
                "figure": text,
                "interval": between,
                "low": low if is_positive and high is not None and finite(high) else None,
                "high": high if is_positive and high is not None and finite(high) else None,
                "holds": holds,
                "state": "" if line.search is None else "met" if holds else "not met",
            }
        )
    return rows


def list_unjudged(line: Line) -> list[Row]:
    """The loads that a search could not judge, whose figures do not count."""
    return [
        {"name": line.name, "load": load, "at": units.format_load(load), "state": "could not be judged"}
        for load in line.variants
        if line.holds(load) is None
    ]


def share_failed(view: View, key: VariantKey) -> str:
    """The median share of failed operations of a variant as text; empty if the check `errors` tolerates this share."""
    counts = [(trial.value("errors"), trial.value("operations")) for trial in view.variants.get(key, ())]
    shares = [failed / every for failed, every in counts if failed is not None and every]
    share = median(shares) if shares else 0.0
    limit = Settings.from_question(view.results.question).check_threshold(errors.NAME, "share")
    return f"{units.format_percent(share)} failed" if share > limit else ""


def failing_rows(view: View, line: Line, metric: str) -> Iterator[Row]:
    """The points at which operations failed; their value is None if the latency is infinite."""
    for load, key in line.variants.items():
        text, cell = share_failed(view, key), view.cell(key, metric)
        # In a search, the objective decides whether failures matter.
        if not text or cell is None or cell.withheld or line.search is not None:
            continue
        known = cell.bound != "failed" and finite(cell.estimate.value)
        value = cell.estimate.value if known else None
        yield {"name": line.name, "load": load, "at": units.format_load(load), "value": value, "failed": text}


def read_probe(search: Search, load: float, metric: str) -> tuple[float, str] | None:
    """The median of a probe over the trials that count, with its text; None if the search does not have the metric."""
    probe = Probe(load, search.samples.get(load, ()))
    if metric == THROUGHPUT:
        return None if (done := probe.throughput) is None else (done, format_throughput(done))
    for term in objective_terms(search):
        if term.metric == metric and (figure_of_term := probe.median_figure(term.key)) is not None:
            is_failed = probe.weakest_bound(term.key) == "failed"
            return (math.inf if is_failed else figure_of_term), probe_figure(term, probe)
    return None


def limit_rows(line: Line, metric: str, highest: float) -> list[Row]:
    """The objective's bounds on a metric, unless they are far above the highest point."""
    terms = () if line.search is None else objective_terms(line.search)
    return [
        {"value": term.bound, "text": f"objective {term.sign} {units.format_duration(term.bound)}"}
        for term in terms
        if term.metric == metric and is_latency(metric) and term.bound <= highest * LOGARITHMIC
    ]


def answer_loads(line: Line) -> list[float]:
    """The highest load at which the objective is met, in a list; empty if there is no such load."""
    search = line.search
    outcome = None if search is None or search.rule.objective is None else search.outcome
    return [] if outcome is None or outcome.load is None or not line.holds(outcome.load) else [outcome.load]


def bracket_rows(line: Line, ends: Sequence[float]) -> list[Row]:
    """The bracket of a search for an objective; an open end is at the end of the axis."""
    outcome = None if line.search is None else line.search.outcome
    if outcome is None or not answer_loads(line):
        return []
    low, high = outcome.low or ends[0], outcome.high or ends[1]
    between = f"{units.format_load(low)} to {units.format_load(high)}"
    return [{"name": line.name, "low": low, "high": high, "bracket": between}]


def vertical(metric: str, numbers: Sequence[float], labels: int = 0, field: str = "value") -> tuple[alt.Y, float]:
    """The y axis of a metric, and its upper end: linear from zero, or logarithmic for latencies that are far apart.

    The labels of throughput are above the highest point, and take at most the upper half of the axis.
    """
    top = max(numbers) * max(1.12, 1 / max(0.96 - LABEL_HEIGHT * labels, 0.5))
    if metric == THROUGHPUT:
        axis = alt.Axis(title=None, labelExpr=figure.RATE_LABEL, tickCount=4, minExtent=Y_EXTENT, maxExtent=Y_EXTENT)
        return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, top or 1], nice=False), axis=axis), top
    if max(numbers) > LOGARITHMIC * min(numbers):
        domain = figure.decade_domain(numbers)
        scale = alt.Scale(type="log", domain=domain, nice=False)
        axis = figure.time_axis(domain)
        axis.minExtent = axis.maxExtent = Y_EXTENT
        return alt.Y(f"{field}:Q", scale=scale, axis=axis), domain[1]
    axis = alt.Axis(title=None, labelExpr=figure.TIME_LABEL, tickCount=4, minExtent=Y_EXTENT, maxExtent=Y_EXTENT)
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=axis), top


def axis_labels(loads: Sequence[float], ends: Sequence[float], *, wide: bool) -> list[float]:
    """The loads with room for a label, including the highest load."""

    labels = [loads[-1]]
    places = {load: axis_place(load, ends, wide=wide) for load in loads}
    for load in loads[:-1]:
        previous = places[labels[-2]] if len(labels) > 1 else -math.inf
        if places[load] - previous >= LABEL_GAP and places[loads[-1]] - places[load] >= LABEL_GAP:
            labels.insert(-1, load)
    return labels


def axis_place(load: float, ends: Sequence[float], *, wide: bool) -> float:
    """The position of a load on the axis, from 0 to 1."""
    if wide:
        return math.log(load / ends[0]) / math.log(ends[1] / ends[0])
    return (load - ends[0]) / (ends[1] - ends[0])


def law(line: Line, *, wide: bool) -> list[Row]:
    """The fitted law between the first and the last point; empty if it does not fit."""
    if line.curve is None or line.curve.law is None:
        return []
    low, high = line.curve.knee.loads[0], line.curve.knee.loads[-1]
    shares = [at / (POINTS - 1) for at in range(POINTS)]
    loads = [low * (high / low) ** share if wide else low + (high - low) * share for share in shares]
    rows = [{"name": line.name, "load": round(at, 3), "value": line.curve.law.predict_throughput(at)} for at in loads]
    return [row for row in rows if finite(float(row["value"]))]


def knee_rows(view: View, line: Line, ends: Sequence[float], top: float, number: int) -> list[Row]:
    """The bracket of a knee that is claimed."""
    knee = line.knee
    if knee is None or knee.upper is None:
        return []
    between = f"≤ {units.format_load(knee.upper)}"
    if knee.lower is not None:
        between = f"{units.format_load(knee.lower)} to {units.format_load(knee.upper)}"
    label = whose(view, line.context)
    return [
        {
            "name": line.name,
            "low": ends[0] if knee.lower is None else knee.lower,
            "high": knee.upper,
            "knee": ": ".join(part for part in (label, f"knee {between}") if part),
            # The labels of several knees are placed below each other.
            "top": top * (1 - LABEL_HEIGHT * number),
        }
    ]


def sentences(view: View) -> list[str]:
    """A sentence on the knee of each sweep, and one on adjusted means; none for searches (the answer has the knees)."""
    knees = []
    for curve in () if view.judgement.searches else view.judgement.curves[:PANELS_MAX]:
        where = view.title(tuple(pair for pair in curve.context if pair[0] != view.dimension))
        who = " ".join(part for part in (whose(view, curve.context), where) if part)
        knees.append(f"{who}: {knee_text(curve.knee)}" if who else knee_text(curve.knee))
    if any(curve.knee.loads for curve in view.judgement.curves) and knees:
        knees.append("An adjusted mean or level is a geometric mean of medians, without the common shift of each block")
    return knees
