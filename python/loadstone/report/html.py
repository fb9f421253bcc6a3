"""The report as one self-contained page: styles, charts and their library are in it."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources

import altair
import vl_convert

from loadstone import __version__
from loadstone.report import html_parts as parts
from loadstone.report.charts import theme
from loadstone.report.charts.figure import Figure
from loadstone.report.markup import Markup, data, tag
from loadstone.report.sections import Section, opening
from loadstone.report.view import View

SELF_CONTAINED = "This page is one file and loads nothing from the network."


def document(view: View, every: Sequence[Section]) -> str:
    """The whole page, of these sections."""
    first, remaining = opening(view, list(every))
    charts = [*([first] if first else []), *(figure for section in remaining for figure in section.figures)]
    title = f"{view.results.name or 'Results'} · Loadstone"
    body = tag(
        "body",
        tag(
            "main",
            parts.header(view, first),
            parts.contents(remaining),
            *(parts.section(view, item) for item in remaining),
            tag("footer", tag("p", f"Made by Loadstone {__version__}. {SELF_CONTAINED}")),
        ),
        *(scripts(charts) if charts else ()),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(bool(charts))),
        tag("title", title),
        tag("style", Markup(read("style.css"))),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def scripts(figures: Iterable[Figure]) -> tuple[Markup, Markup]:
    """The charts' specifications and the program that draws them."""
    specs = {
        f"{figure.name}-{number}": {**panel.spec, "width": "container", "height": panel.height}
        for figure in figures
        for number, panel in enumerate(figure.panels)
    }
    content = {"config": theme.page_config(), "charts": specs}
    return (
        tag("script", data(content), type="application/json", id="charts"),
        tag("script", Markup(program()), type="module"),
    )


@functools.cache
def program() -> str:
    """Vega, Vega-Lite and Vega-Embed with our few lines, about 0.9 MB."""
    bundle: str = vl_convert.javascript_bundle(read("embed.js"), vl_version=vegalite())
    # An end tag in a string would end the script.
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def vegalite() -> str | None:
    """The version of Vega-Lite that Altair writes, if there is a copy of it here; None: the newest that is."""
    version = altair.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
    return version if version in vl_convert.get_vegalite_versions() else None


def policy(charts: bool) -> str:
    """What the browser allows this page: its own program, its own styles, and nothing from anywhere."""
    allowed = "'none'"
    if charts:
        allowed = f"'sha256-{base64.b64encode(hashlib.sha256(program().encode()).digest()).decode()}'"
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"


@functools.cache
def read(name: str) -> str:
    """A file of this package."""
    return resources.files("loadstone.report").joinpath(name).read_text(encoding="utf-8")
