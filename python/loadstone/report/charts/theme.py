"""The style of charts: colours, fonts and lines, for the page (as CSS variables, so that they follow its colour scheme)
and for chart files.
"""

from __future__ import annotations

from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, 'DejaVu Sans', sans-serif"
# Okabe and Ito's colours, distinct for any colour vision, darkened to a contrast of 3 : 1 on white
# (<https://jfly.uni-koeln.de/color/>). The style sheet of the page calls them --series-1 and so on.
PALETTE = ("#0072b2", "#d55e00", "#008f68", "#b8478f", "#a87b00", "#2a8fc4", "#5b4fc7", "#4c4c4c")
SERIES_MAX = len(PALETTE)
# The shape of each series, for readers who cannot see colours.
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")

FILE_COLOURS = {"ink": "#1b1e23", "muted": "#5a626d", "rule": "#b9bec5", "grid": "#e8eaec", "paper": "#ffffff"}
PAGE = {name: f"var(--{name})" for name in FILE_COLOURS}


def page_config() -> dict[str, Any]:
    """The configuration of charts on the page."""
    return config(PAGE, [f"var(--series-{number})" for number in range(1, SERIES_MAX + 1)], "transparent")


def file_config() -> dict[str, Any]:
    """The configuration of chart files, which have one colour scheme."""
    return config(FILE_COLOURS, list(PALETTE), "white")


def config(tone: dict[str, str], palette: list[str], background: str) -> dict[str, Any]:
    """Vega-Lite's configuration; charts use no colours directly, but the styles `word`, `halo` and `quiet`."""
    return {
        "background": background,
        "font": FONT,
        "padding": {"left": 2, "right": 8, "top": 6, "bottom": 2},
        "view": {"stroke": None},
        "axis": {
            "labelColor": tone["muted"],
            "titleColor": tone["muted"],
            "domainColor": tone["rule"],
            "tickColor": tone["rule"],
            "gridColor": tone["grid"],
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelPadding": 5,
            "tickSize": 4,
        },
        "title": {"color": tone["ink"], "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
        "range": {"category": palette},
        "style": {
            "word": {"color": tone["ink"], "fontSize": 11},
            "halo": {"color": tone["paper"], "stroke": tone["paper"], "strokeWidth": 4, "fontSize": 11},
            "quiet": {"color": tone["muted"], "fontSize": 11},
        },
    }
