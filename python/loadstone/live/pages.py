"""Renders the pages as HTML, with their charts and scripts."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import vl_convert

from loadstone import __version__
from loadstone.format import units
from loadstone.judge.judge import judge_results
from loadstone.live.catalogue import UNREADABLE, identify_folder
from loadstone.report import html
from loadstone.report.charts import theme
from loadstone.report.charts.figure import RATE_LABEL, TIME_LABEL
from loadstone.report.markup import Markup, data, join_markup, tag
from loadstone.report.sections import sections
from loadstone.report.view import View
from loadstone.results.folder import Folder
from loadstone.results.union import join_results

# The maximum number of cached rows of the list; a rendered row is reused while its values stay the same.
ROWS_CACHED = 4096
COLUMNS = ("", "experiment", "question", "verdict", "expectations", "systems", "metrics", "trials")
# In a legend, "engine" would be read as a storage engine.
KIND_LABEL = "datum.label === 'engine' ? 'load generator' : datum.label"
# The figures at the top of the page, by the names that live.js fills in.
TILES = (
    ("throughput", "throughput", "op/s"),
    ("due", "due", "op/s"),
    ("p50", "p50", ""),
    ("p99", "p99", ""),
    ("max", "max", ""),
    ("failed", "errors", "/s"),
    ("host", "host", "CPUs"),
)
CHARTS = {
    "throughput": "Throughput, and operations due, op/s",
    "latency": "Latency of successful operations: p50, p99 and max",
    "failed": "Failed operations per second",
    "processors": "Processors in use",
}


def report_page(folders: Sequence[Folder]) -> str:
    """The report on a folder, or on several folders as one result set. Raises LoadstoneError."""
    every = [folder.load_results() for folder in folders]
    view = View(judge_results(every[0] if len(every) == 1 else join_results(every)))
    return html.document(view, sections(view))


def render_page(title: str, *content: str, script: str) -> str:
    """A page with its style and its script."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Loadstone"),
        tag("style", Markup(html.read("style.css") + read_resource("live.css"))),
    )
    footer = tag("footer", tag("p", f"Loadstone {__version__}. This page reads result folders and changes nothing."))
    source = f"/static/{program_names()[script]}"
    body = tag("body", tag("main", *content, footer), tag("script", type="module", src=source))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def index_page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page that lists all runs, with a search field and a selection for comparison."""
    search = tag(
        "input", type="search", id="search", placeholder="system, metric, verdict, question …", aria_label="Search"
    )
    button = tag("button", "Compare", id="compare", disabled=True)
    heads = [tag("th", name, scope="col", class_="right" if name == "trials" else None) for name in COLUMNS]
    table = tag(
        "table",
        tag("thead", tag("tr", *heads)),
        tag("tbody", *(index_row(tuple(row.items())) for row in rows), id="rows"),
        class_="runs",
    )
    empty = tag("p", "No results yet: create some with ", tag("code", "loadstone run experiments/quickstart.yaml"), ".")
    return render_page(
        "Results",
        tag("header", tag("p", tag("span", "Loadstone"), class_="over"), tag("h1", "Results")),
        tag("div", search, button, tag("span", units.count_noun(len(rows), "run"), id="number"), class_="tools"),
        tag("div", table, class_="table") if rows else empty,
        script="index.js",
    )


@functools.lru_cache(maxsize=ROWS_CACHED)
def index_row(entries: tuple[tuple[str, Any], ...]) -> Markup:
    """The row of one run, from its keys and values. The page's script updates verdicts as results are
    judged."""
    row = dict(entries)
    verdict = "running" if row["running"] else str(row["verdict"])
    badge = tag("span", verdict or "…", class_=f"badge {verdict}")
    is_readable = row["verdict"] != UNREADABLE
    link = tag("a", row["name"], href=f"/run/{quote_identity(row['id'])}") if is_readable else row["name"]
    name = join_markup(link, " ", tag("small", row["time"]))
    cells = (row["question"], badge, row["expectations"], row["systems"], row["metrics"])
    box = tag("input", type="checkbox", aria_label=f"compare {row['id']}", value=row["id"], disabled=not is_readable)
    return tag(
        "tr",
        tag("td", box),
        tag("th", name, scope="row"),
        *(tag("td", cell, data_label=label) for cell, label in zip(cells, COLUMNS[2:], strict=False)),
        tag("td", str(row["trials"]), class_="right", data_label="trials"),
        data_id=row["id"],
    )


def quote_identity(name: str) -> str:
    """A folder's identity, quoted for a URL."""
    from urllib.parse import quote as quoted

    return quoted(name, safe="/")


def run_page(folder: Folder, *, has_report: bool) -> str:
    """The page of a run: its current state, the plan and the findings."""
    name = identify_folder(folder.path)
    tiles = [
        tag(
            "div",
            tag("dt", label),
            tag("dd", tag("b", "–", id=f"tile-{key}"), " ", tag("small", unit)),
            id=f"box-{key}",
        )
        for key, label, unit in TILES
    ]
    charts = [
        tag("figure", tag("h4", title), tag("div", class_="chart", id=f"chart-{key}"), id=f"figure-{key}")
        for key, title in CHARTS.items()
    ]
    links = tag(
        "p",
        tag("a", "All results", href="/"),
        " ",
        tag("a", "Report", href=f"/run/{quote_identity(name)}/report", id="report", hidden=not has_report),
        class_="links",
    )
    question = (
        (folder.header.get("question") or {}).get("text") if isinstance(folder.header.get("question"), dict) else ""
    )
    return render_page(
        folder.name,
        links,
        tag(
            "header",
            tag(
                "p",
                tag("span", "Loadstone live"),
                tag("span", folder.name),
                tag("span", folder.path.name),
                class_="over",
            ),
            tag("h1", str(question or folder.name)),
            tag(
                "div",
                tag(
                    "p",
                    tag("span", "connecting", id="status", class_="badge note"),
                    " ",
                    tag("span", "", id="progress"),
                ),
                tag("div", tag("div", id="bar"), class_="bar", role="progressbar", aria_label="trials done"),
                tag("p", "", id="expected"),
                class_="status",
            ),
        ),
        tag(
            "section",
            tag("h2", tag("span", "Now", id="heading"), " ", tag("small", "", id="trial")),
            tag("dl", *tiles, class_="tiles"),
            tag("div", *charts, class_="panels by-2"),
            id="now",
        ),
        tag("section", tag("h2", "Plan ", tag("small", "", id="metric")), tag("div", id="plan"), id="plan-section"),
        tag(
            "section",
            tag("h2", "Findings ", tag("small", "", id="checked")),
            tag("ul", id="findings", class_="findings"),
            id="findings-section",
        ),
        tag(
            "script",
            data({"events": f"/run/{quote_identity(name)}/events", **chart_specs()}),
            type="application/json",
            id="live",
        ),
        script="live.js",
    )


def chart_specs() -> dict[str, Any]:
    """The charts in the report's colours and fonts; live.js supplies their rows."""
    # On a logarithmic axis, only decades have labels and lines.
    decade = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
    time = {
        "title": None,
        "labelExpr": f"{decade} ? ({TIME_LABEL}) : ''",
        "gridOpacity": {"condition": {"test": decade, "value": 1}, "value": 0},
        "tickOpacity": {"condition": {"test": decade, "value": 1}, "value": 0},
    }
    rate = {"labelExpr": RATE_LABEL, "title": None, "tickCount": 4}
    log = {"type": "log", "nice": True}
    charts = {
        "throughput": line_chart(("throughput", "due"), rate, {"zero": True}),
        "latency": line_chart(("p50", "p99", "max"), time, log),
        "failed": line_chart(("failed",), rate, {"zero": True}),
        "processors": line_chart(
            ("host", "engine", "servers", "steal"), {"title": None, "tickCount": 4}, {"zero": True}
        ),
    }
    return {"config": theme.page_config(), "charts": charts}


def line_chart(kinds: Sequence[str], axis: Mapping[str, Any], scale: Mapping[str, Any]) -> dict[str, Any]:
    """A chart with one line for each kind, drawn over bands for faults."""
    x = {"field": "at", "type": "quantitative", "axis": {"title": "seconds", "grid": False, "tickCount": 6}}
    legend = (
        None
        if len(kinds) == 1
        else {
            "title": None,
            "orient": "top",
            "symbolType": "stroke",
            "offset": 2,
            "labelColor": "var(--muted)",
            "labelExpr": KIND_LABEL,
        }
    )
    colour = {"field": "kind", "type": "nominal", "scale": {"domain": list(kinds)}, "legend": legend}
    # Dashes distinguish the lines for viewers who cannot distinguish the colours.
    dash = {"field": "kind", "type": "nominal", "scale": {"domain": list(kinds)}, "legend": legend}
    y = {"field": "value", "type": "quantitative", "axis": dict(axis), "scale": dict(scale)}
    band = {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}}
    return {
        "width": "container",
        "height": 190,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": [
            {
                "data": {"name": "faults"},
                "mark": {"type": "rect", "opacity": 0.14, "color": "var(--bad)"},
                "encoding": band,
            },
            {
                "data": {"name": "faults"},
                "mark": {"type": "text", "align": "left", "baseline": "top", "dx": 4, "style": "word"},
                "encoding": {"x": band["x"], "y": {"value": 2}, "text": {"field": "kind"}},
            },
            {
                "data": {"name": "rows"},
                "mark": {"type": "line", "strokeWidth": 2, "strokeJoin": "round", "interpolate": "linear"},
                "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
            },
        ],
    }


def find_program(name: str) -> str | None:
    """The page script with this name, which includes the script's digest; None for any other name."""
    if name == program_names()["index.js"]:
        return read_resource("index.js")
    return live_program() if name == program_names()["live.js"] else None


@functools.cache
def program_names() -> dict[str, str]:
    """The names of the scripts, which include a digest of the source, so that browsers may cache the scripts."""
    sources = {"index.js": read_resource("index.js"), "live.js": read_resource("live.js") + __version__}
    return {name: f"{hashlib.sha256(text.encode()).hexdigest()[:12]}-{name}" for name, text in sources.items()}


@functools.cache
def live_program() -> str:
    """Vega, Vega-Lite and Vega-Embed with the script of the live page."""
    bundle: str = vl_convert.javascript_bundle(read_resource("live.js"), vl_version=html.vegalite())
    return bundle


@functools.cache
def read_resource(name: str) -> str:
    """A file of this package."""
    return resources.files("loadstone.live").joinpath(name).read_text(encoding="utf-8")
