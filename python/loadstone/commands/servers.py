"""The servers under load on a terminal: a row for each variant."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table

from loadstone.judge.judgement import Judgement
from loadstone.report.servers import by_variant
from loadstone.report.view import View


def servers(judgement: Judgement) -> Iterator[Table]:
    """What the servers of each variant used, if any were observed."""
    found = by_variant(View(judgement))
    if not found:
        return
    table = Table(title="servers", title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in found.columns:
        table.add_column(column.title, justify="right" if column.align == "right" else "left", no_wrap=True)
    for group in found.groups:
        for row in group.rows:
            table.add_row(*(entry.text for entry in row))
    yield table
