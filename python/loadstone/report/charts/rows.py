"""The frame of a chart with one row for each variant. The name and the figure are above the marks, so that they take no
room from the plot on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from loadstone.report.charts.figure import SIZE_LABEL, TIME_LABEL, Row, plot

# The height of a row, px: a line of text, then the marks.
STEP = 60
LABEL = -18
MARKS = 2


def row(names: Sequence[str]) -> alt.Y:
    """The y axis: a row for each name."""
    return alt.Y("name:N", sort=list(names), axis=None, scale=alt.Scale(domain=list(names)))


def labels(rows: Sequence[Row], names: Sequence[str]) -> list[alt.Chart]:
    """The `name` of each row at the left end, and its `figure` at the right end."""
    base = plot(rows).encode(y=row(names))
    return [
        base.mark_text(align="left", baseline="middle", yOffset=LABEL, style="word", fontWeight=600, limit=210).encode(
            x=alt.value(0), text="name:N", tooltip=[alt.Tooltip("full:N", title="name")]
        ),
        base.mark_text(align="right", baseline="middle", yOffset=LABEL, style="quiet").encode(
            x=alt.value("width"), text="figure:N"
        ),
    ]


def figures(field: str, unit: str, top: float) -> alt.X:
    """The x axis of a figure, from zero."""
    label = {"ns": TIME_LABEL, **dict.fromkeys(("B", "B/op", "B/s"), SIZE_LABEL)}.get(unit, "format(datum.value, '~s')")
    label = f"({label}) + '/s'" if unit == "B/s" else label
    zero = f"datum.value == 0 ? '0' : {label}"
    if not top:
        return alt.X(f"{field}:Q", scale=alt.Scale(domain=[0, 1]), axis=None)
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title=None, labelExpr=zero, tickCount=4, domain=False, labelFlush=True, labelOverlap=True),
    )
