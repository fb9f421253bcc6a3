"""Writes a report: the page, the text for a pull request, and the charts."""

from __future__ import annotations

import json
from pathlib import Path

import vl_convert

from loadstone.errors import LoadstoneError
from loadstone.judge.judgement import Judgement
from loadstone.report import html, markdown
from loadstone.report.charts import theme
from loadstone.report.charts.figure import Figure, combine_panels
from loadstone.report.markup import countable
from loadstone.report.sections import sections
from loadstone.report.view import View

# The number of PNG pixels for each SVG pixel, so that charts are sharp on high-resolution screens.
SCALE = 2


def write(judgement: Judgement, directory: Path) -> list[Path]:
    """Writes report.html, report.md and report/*.svg and *.png; returns their paths. Raises LoadstoneError."""
    view = View(judgement)
    content = sections(view)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        written = [directory / "report.html", directory / "report.md"]
        written[0].write_text(html.document(view, content), encoding="utf-8")
        written[1].write_text(markdown.document(view, content), encoding="utf-8")
        for figure in (figure for section in content for figure in section.figures):
            written += write_charts(figure, directory / "report")
    except OSError as error:
        raise LoadstoneError(
            f"cannot write the report to {error.filename or directory}: {error.strerror}",
            "free some space, or name another directory",
        ) from error
    return written


def write_charts(figure: Figure, directory: Path) -> list[Path]:
    """A figure as SVG and PNG."""
    directory.mkdir(exist_ok=True)
    spec = json.dumps(countable(combine_panels(figure, theme.file_config())))
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=html.vegalite())
    paths = [directory / f"{figure.name}.svg", directory / f"{figure.name}.png"]
    paths[0].write_text(svg, encoding="utf-8")
    paths[1].write_bytes(vl_convert.svg_to_png(svg, scale=SCALE))
    return paths
