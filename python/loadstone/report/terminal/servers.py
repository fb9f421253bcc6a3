"""The servers under load on a terminal: a row for each variant, or a line of text where a row would not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadstone.judge.judgement import Judgement
from loadstone.report.servers import by_variant
from loadstone.report.table import Column, Entry
from loadstone.report.view import View

TITLE = "servers"
# On a terminal that is too narrow for long names in one line.
NAMES_WIDTH = 36


def servers(judgement: Judgement, width: Callable[[Table], int], limit: int) -> Iterator[RenderableType]:
    """What the servers of each variant used, if any were observed."""
    found = by_variant(View(judgement))
    rows = [row for group in found.groups for row in group.rows]
    if not rows:
        return
    for names in (None, NAMES_WIDTH):
        table = tabled(found.columns, rows, names)
        if width(table) <= limit:
            yield table
            return
    yield Text(TITLE, style="bold")
    for name, *used in rows:
        yield Padding(Text(name.text, style="cyan"), (0, 0, 0, 1))
        cells = zip(found.columns[1:], used, strict=True)
        yield Padding(", ".join(f"{column.title} {entry.text}" for column, entry in cells), (0, 0, 0, 3))
    yield Text("")


def tabled(columns: Sequence[Column], rows: Sequence[Sequence[Entry]], names: int | None) -> Table:
    """A row for each variant, whose name may be broken into lines of that many columns."""
    table = Table(title=TITLE, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    first, *figures = columns
    table.add_column(first.title, no_wrap=names is None, max_width=names)
    for column in figures:
        # Two short lines take less room than one above short figures.
        table.add_column(column.title.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(entry.text for entry in row))
    return table
