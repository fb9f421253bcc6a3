"""Tables before they become HTML or Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loadstone.format import wording
from loadstone.judge.finding import Verdict
from loadstone.judge.judgement import VariantKey
from loadstone.report.view import View

Align = Literal["left", "right"]


@dataclass(frozen=True)
class TableCell:
    """One cell of a table: its text, a smaller note after the text, and optionally a verdict or a tone."""

    text: str
    note: str = ""
    verdict: Verdict | None = None
    tone: Literal["", "better", "worse", "muted"] = ""
    # Shown only on hover.
    aside: str = ""


@dataclass(frozen=True)
class Column:
    """The title and layout of a column."""

    title: str
    align: Align = "left"
    # The share of the width in percent; 0 if the content determines the width.
    width: int = 0


@dataclass(frozen=True)
class Rows:
    """Rows under a heading, which may be empty."""

    title: str
    rows: tuple[tuple[TableCell, ...], ...]


@dataclass(frozen=True)
class Table:
    """A table; the first column has the names of the rows."""

    title: str
    columns: tuple[Column, ...]
    groups: tuple[Rows, ...]
    # Notes that are shown below the table.
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the table has any rows."""
        return any(group.rows for group in self.groups)


def render_cell(view: View, key: VariantKey, metric: str) -> TableCell:
    """The figure of a variant as a cell; a dash if the variant lacks it, or `withheld` with the reason on hover."""
    cell = view.cell(key, metric)
    if cell is None:
        return TableCell(wording.DASH, tone="muted")
    return TableCell("withheld", tone="muted", aside=cell.withheld) if cell.withheld else TableCell(view.figure(cell))
