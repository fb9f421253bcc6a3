"""Throughput against clients with its knee, and the law where it fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from loadstone.format import units
from loadstone.judge.judgement import Curve, VariantKey
from loadstone.report.charts import figure
from loadstone.report.charts.figure import PANELS_MAX, Figure, Panel, Row, colour, finite, plot
from loadstone.report.view import View, spread
from loadstone.results.result_set import natural, variant_name
from loadstone.search.sentence import reached

# Points of the fitted curve.
POINTS = 64


def curves(view: View) -> Figure:
    """A panel for each context, a curve for each compared value."""
    grouped: dict[VariantKey, list[Curve]] = {}
    for each in view.judgement.curves:
        if name(view, each) in figure.domain(view) and each.knee.loads:
            grouped.setdefault(tuple(pair for pair in each.context if pair[0] != view.by), []).append(each)
    contexts = spread(sorted(grouped, key=natural), PANELS_MAX)
    panels = tuple(Panel(view.title(context), panel(view, grouped[context]), 280) for context in contexts)
    named = {whose(view, each) for each in view.judgement.curves}
    used = [value for value in figure.shown(view) if view.short[value] in named]
    caption = (
        "Points are medians. The band lies between the tried numbers of clients between which 95 % of the highest"
        " throughput is reached. A line is the Universal Scalability Law, drawn only where it fits as closely as"
        " repeats agree." + figure.limits(view, len(contexts), len(grouped), apart=bool(used))
    )
    alt_text = "throughput against clients with the knee"
    return Figure("scaling", panels, caption, alt_text, legend=figure.legend(view, used))


def whose(view: View, curve: Curve) -> str:
    """The compared value that the curve belongs to; "" where it runs through all of them."""
    value = dict(curve.context).get(view.by) if view.by else None
    if value is None:
        return "" if view.by == "clients" or not view.by else variant_name(curve.context)
    return view.short.get(str(value), "")


def name(view: View, curve: Curve) -> str:
    """The name that decides its colour and mark."""
    return whose(view, curve) or figure.domain(view)[0]


def panel(view: View, drawn: Sequence[Curve]) -> dict[str, Any]:
    """The curves of one context."""
    ticks = sorted({clients for each in drawn for clients in each.knee.loads})
    wide = ticks[-1] / max(ticks[0], 1) > 10
    # A little more than the measured range, so that no point is cut in half.
    ends = [ticks[0] / 1.12, ticks[-1] * 1.12] if wide else [0, ticks[-1] * 1.06]
    scale = alt.Scale(type="log", base=2, domain=ends, nice=False) if wide else alt.Scale(domain=ends, nice=False)
    axis = alt.Axis(title="clients", values=ticks, format="~s", grid=False, labelOverlap="greedy")
    points = [row for each in drawn for row in measured(view, each)]
    fitted = [row for each in drawn for row in law(view, each, wide)]
    top = max(row["throughput"] for row in [*points, *fitted]) * 1.12
    x = alt.X("clients:Q", scale=scale, axis=axis)
    y = alt.Y(
        "throughput:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title="op/s", labelExpr=figure.RATE_LABEL, tickCount=5),
    )
    knees = [row for number, each in enumerate(drawn) for row in knee(view, each, ends, top, number)]
    base = plot(points).encode(x=x, y=y, color=colour(view))
    names = {"name": "name"} if any(whose(view, each) for each in drawn) else {}
    of_knee = figure.tooltip(**names, knee="knee")
    of_point = figure.tooltip(**names, clients="clients", figure="figure")
    return figure.layered(
        plot(knees)
        .mark_rect(opacity=0.15)
        .encode(x=alt.X("low:Q", scale=scale), x2="high:Q", color=colour(view), tooltip=of_knee),
        plot(fitted).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour(view)),
        base.mark_point(filled=True, size=64, opacity=1).encode(shape=figure.shape(view), tooltip=of_point),
        *figure.words_over(
            plot(knees).encode(x=alt.X("high:Q", scale=scale), y=alt.Y("throughput:Q"), text="knee:N"),
            dx=-6,
            align="right",
            baseline="top",
        ),
    )


def measured(view: View, curve: Curve) -> list[Row]:
    """The points."""
    return [
        {"name": name(view, curve), "clients": clients, "throughput": value, "figure": units.figure(value, "op/s")}
        for clients, value in zip(curve.knee.loads, curve.knee.medians, strict=True)
        if finite(clients, value)
    ]


def law(view: View, curve: Curve, wide: bool) -> list[Row]:
    """The fitted law between the first and the last point; nothing where it does not fit."""
    if curve.law is None:
        return []
    low, high = curve.knee.loads[0], curve.knee.loads[-1]
    shares = [at / (POINTS - 1) for at in range(POINTS)]
    loads = [low * (high / low) ** share if wide else low + (high - low) * share for share in shares]
    rows = [
        {"name": name(view, curve), "clients": round(at, 3), "throughput": curve.law.throughput(at)} for at in loads
    ]
    return [row for row in rows if finite(float(row["throughput"]))]


def knee(view: View, curve: Curve, ends: Sequence[float], top: float, number: int) -> list[Row]:
    """The bracket of a knee that is claimed."""
    found = curve.knee
    if found.upper is None:
        return []
    between = f"≤ {found.upper:g}" if found.lower is None else f"{found.lower:g} to {found.upper:g}"
    return [
        {
            "name": name(view, curve),
            "low": ends[0] if found.lower is None else found.lower,
            "high": found.upper,
            "knee": ": ".join(part for part in (whose(view, curve), f"{between} clients") if part),
            # Labels of several knees stand below each other.
            "throughput": top * (1 - 0.08 * number),
        }
    ]


def sentences(view: View) -> list[str]:
    """Each knee in words."""
    knees = []
    for each in view.judgement.curves[:PANELS_MAX]:
        where = view.title(tuple(pair for pair in each.context if pair[0] != view.by))
        who = " ".join(part for part in (whose(view, each), where) if part)
        knees.append(f"{who}: {reached(each.knee)}" if who else reached(each.knee))
    return knees
