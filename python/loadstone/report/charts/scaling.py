"""Throughput against clients, the law that was fitted to it, and its peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from loadstone.format import units, wording
from loadstone.judge.judgement import Knee, VariantKey
from loadstone.report.charts import figure
from loadstone.report.charts.figure import (
    PANELS_MAX,
    RATE_LABEL,
    Figure,
    Panel,
    Row,
    colour,
    finite,
    layered,
    limits,
    plot,
    shape,
    shown,
    words_over,
)
from loadstone.report.view import View, spread
from loadstone.results.result_set import natural, variant_name

# Points of the fitted curve.
POINTS = 64


def curves(view: View) -> Figure:
    """A panel for each context, a curve for each compared value."""
    grouped: dict[VariantKey, list[Knee]] = {}
    for knee in view.judgement.knees:
        if name(view, knee) in figure.domain(view):
            grouped.setdefault(tuple(pair for pair in knee.context if pair[0] != view.by), []).append(knee)
    contexts = spread(sorted(grouped, key=natural), PANELS_MAX)
    panels = tuple(Panel(view.title(context), panel(view, grouped[context]), 280) for context in contexts)
    named = {whose(view, knee) for knee in view.judgement.knees}
    used = [value for value in shown(view) if view.short[value] in named]
    caption = (
        "Points are medians, lines the Universal Scalability Law fitted to them; the dashed line is its peak, beyond "
        "which more clients bring less throughput, its band the interval."
        + limits(view, len(contexts), len(grouped), apart=bool(used))
    )
    words = "throughput against clients with the fitted law and its peak"
    return Figure("scaling", panels, caption, words, legend=figure.legend(view, used))


def whose(view: View, knee: Knee) -> str:
    """The compared value whose curve it is; "" where the curve runs through all of them."""
    value = dict(knee.context).get(view.by) if view.by else None
    if value is None:
        return "" if view.by == "clients" or not view.by else variant_name(knee.context)
    return view.short.get(str(value), "")


def name(view: View, knee: Knee) -> str:
    """Whose colour and mark it has."""
    return whose(view, knee) or figure.domain(view)[0]


def law(knee: Knee, clients: float) -> float:
    """Throughput at a number of clients, op/s."""
    return knee.lam * clients / (1 + knee.sigma * (clients - 1) + knee.kappa * clients * (clients - 1))


def panel(view: View, knees: Sequence[Knee]) -> dict[str, Any]:
    """The curves of one context."""
    ticks = sorted({clients for knee in knees for clients in knee.clients})
    wide = ticks[-1] / max(ticks[0], 1) > 10
    # A little more than was measured, so that no point is cut in half.
    ends = [ticks[0] / 1.12, ticks[-1] * 1.12] if wide else [0, ticks[-1] * 1.06]
    scale = alt.Scale(type="log", base=2, domain=ends, nice=False) if wide else alt.Scale(domain=ends, nice=False)
    axis = alt.Axis(title="clients", values=ticks, format="~s", grid=False, labelOverlap="greedy")
    points = [row for knee in knees for row in measured(view, knee)]
    fitted = [row for knee in knees for row in curve(view, knee, wide)]
    top = max(row["throughput"] for row in [*points, *fitted]) * 1.12
    x = alt.X("clients:Q", scale=scale, axis=axis)
    y = alt.Y(
        "throughput:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title="op/s", labelExpr=RATE_LABEL, tickCount=5),
    )
    peaks = [row for number, knee in enumerate(knees) for row in peak(view, knee, ends, top, number)]
    base = plot(points).encode(x=x, y=y, color=colour(view))
    at_peak = plot(peaks).encode(x=x, color=colour(view))
    names = ["name"] if any(whose(view, knee) for knee in knees) else []
    tooltip = [alt.Tooltip(f"{field}:N") for field in (*names, "clients", "figure")]
    told = [alt.Tooltip(f"{field}:N") for field in (*names, "peak", "interval", "confidence")]
    return layered(
        at_peak.mark_rect(opacity=0.1).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", tooltip=told),
        at_peak.mark_rule(strokeDash=[4, 4], strokeWidth=1.5).encode(tooltip=told),
        plot(fitted).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour(view)),
        base.mark_point(filled=True, size=64, opacity=1).encode(shape=shape(view), tooltip=tooltip),
        *words_over(
            plot(peaks).encode(x=x, y=alt.Y("throughput:Q"), text="peak:N"), dx=-6, align="right", baseline="top"
        ),
    )


def measured(view: View, knee: Knee) -> list[Row]:
    """The points."""
    return [
        {
            "name": name(view, knee),
            "clients": clients,
            "throughput": value,
            "figure": units.figure(value, "op/s"),
        }
        for clients, value in zip(knee.clients, knee.throughput, strict=True)
        if finite(clients, value)
    ]


def curve(view: View, knee: Knee, wide: bool) -> list[Row]:
    """The fitted law between the first and the last point."""
    low, high = min(knee.clients), max(knee.clients)
    shares = [at / (POINTS - 1) for at in range(POINTS)]
    places = [low * (high / low) ** share if wide else low + (high - low) * share for share in shares]
    rows = [{"name": name(view, knee), "clients": round(at, 3), "throughput": law(knee, at)} for at in places]
    return [row for row in rows if finite(float(row["throughput"]))]


def peak(view: View, knee: Knee, ends: Sequence[float], top: float, number: int) -> list[Row]:
    """The peak, if it lies within the picture."""
    if knee.peak is None or not ends[0] <= knee.peak.value <= ends[1]:
        return []
    low = knee.peak.value if knee.peak.low is None else max(knee.peak.low, ends[0])
    high = knee.peak.value if knee.peak.high is None else min(knee.peak.high, ends[1])
    return [
        {
            "name": name(view, knee),
            "clients": knee.peak.value,
            "low": low,
            "high": high,
            "interval": wording.interval(knee.peak, ""),
            "peak": ": ".join(part for part in (whose(view, knee), f"{knee.peak.value:.0f} clients") if part),
            "confidence": knee.confidence,
            # Labels of several peaks stand below each other.
            "throughput": top * (1 - 0.08 * number),
        }
    ]


def sentences(view: View) -> list[str]:
    """Each peak in words."""
    said = []
    for knee in view.judgement.knees[:PANELS_MAX]:
        where = view.title(tuple(pair for pair in knee.context if pair[0] != view.by))
        who = " ".join(part for part in (whose(view, knee), where) if part) or "throughput"
        sure = f" ({knee.confidence})" if knee.confidence else ""
        if knee.peak is None:
            said.append(f"{who}: no peak up to {max(knee.clients):g} clients{sure}")
            continue
        between = "" if knee.peak.low is None else f", interval {wording.interval(knee.peak, '')}"
        said.append(f"{who}: the peak is at {knee.peak.value:.0f} clients{between}{sure}")
    return said
