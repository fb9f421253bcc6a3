"""CSV with named columns: `variant,repeat,clients,metric,unit,value`.

`metric`, `unit` and `value` are required. Optional columns are `n`, the number of operations on which a figure is
based, and `bound`, the type of bound if a figure is not exact. All other columns are dimensions. Lines before the
header, and after the first empty line that follows it, are skipped. A file with semicolons or tabs may have decimal
commas.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from loadstone.importers import unit
from loadstone.importers.comments import list_cuts
from loadstone.importers.number import last_digit, number_or_text, parse_decimal_comma, parse_number
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import Source
from loadstone.results.value import Value
from loadstone.statistics.percentile import BOUNDS, UNANSWERED, Bound

NAME = "csv"
TITLE = "CSV with the columns variant,repeat,clients,metric,unit,value"
REQUIRED = frozenset({"metric", "unit", "value"})
SPECIAL = REQUIRED | {"variant", "repeat", "clients", "n", "bound"}
DELIMITERS = (",", ";", "\t")
HEADER_LINES = 2000
# A count has at most 18 digits, because a count with more digits may not fit into 64 bits.
COUNT = re.compile("[0-9]{1,18}")
FENCE = ("```", "</pre>")


@dataclass(frozen=True)
class Header:
    """The names of the columns, the delimiter, and the index of the header line."""

    columns: tuple[str, ...]
    delimiter: str
    line: int


@dataclass
class TableRow:
    """The cells of a row, keyed by column, and the index of its line."""

    cells: dict[str, str]
    line: int


def recognise_text(text: str) -> bool:
    """Whether the text contains the header of a table with the required columns."""
    return find_header(text.split("\n", HEADER_LINES)[:HEADER_LINES]) is not None


def find_header(lines: list[str]) -> Header | None:
    """The first line that names the columns, or None."""
    for index, line in enumerate(lines):
        if len(line) > 1000 or "metric" not in line.lower():
            continue
        for delimiter in DELIMITERS:
            columns = tuple(cell.strip().strip('"').lower() for cell in line.split(delimiter))
            if set(columns) >= REQUIRED:
                return Header(columns, delimiter, index)
    return None


def read_runs(source: Source) -> list[ImportedRun]:
    """One run per combination of variant, dimensions, clients and repeat. Raises LoadstoneError if a row is invalid."""
    top = find_header(source.lines)
    if top is None:
        hint = "begin the table with the line variant,repeat,clients,metric,unit,value"
        raise source.error_at("no line names the columns", hint)
    if twice := next((name for name in top.columns if top.columns.count(name) > 1), None):
        raise source.error_at(f'the column "{twice}" occurs twice', "name each column once", top.line)
    source.used.add(top.line)
    runs: dict[tuple[object, ...], ImportedRun] = {}
    counts: dict[tuple[object, ...], int] = {}
    number = parse_number if top.delimiter == "," else parse_decimal_comma
    comments: dict[str, None] = {}
    for row in read_rows(source, top, comments):
        value = read_figure(row, number, source)
        dimensions = {name: number_or_text(row.cells[name]) for name in top.columns if name not in SPECIAL}
        variant = row.cells.get("variant") or None
        clients = read_whole_number(row, "clients", source)
        key = (variant, clients, tuple(dimensions.items()))
        repeat = read_whole_number(row, "repeat", source)
        if repeat is None:
            # Without a column `repeat`, the k-th figure of a metric belongs to the k-th repeat.
            repeat = counts[(*key, value.metric)] = counts.get((*key, value.metric), 0) + 1
        run = ImportedRun(variant=variant, repeat=repeat, dimensions=dimensions, clients=clients)
        target = runs.setdefault((*key, repeat), run)
        if any(value.metric == other.metric for other in target.values):
            raise source.error_at(
                f"{value.metric} occurs twice for one variant and repeat", "number the repeats in `repeat`", row.line
            )
        if number(row.cells["value"]) is not None:
            target.values.append(value)
        else:
            target.add_note("not-a-number", f"{value.metric} has no value", "it is omitted")
    for run in runs.values():
        run.unknown |= comments
        if not run.values:
            # A repeat without figures has crashed: it is not dropped, but counts as failed.
            run.end = "failed"
    if not runs:
        raise source.error_at("the table has no rows", "write one row per figure below the column names", top.line)
    return list(runs.values())


def read_rows(source: Source, top: Header, comments: dict[str, None]) -> Iterator[TableRow]:
    """Yields the rows of the table up to an empty line, without their comments, and adds the comments to `comments`.

    Raises LoadstoneError if a row lacks cells or has too many.
    """
    for index in range(top.line + 1, len(source.lines)):
        line = source.lines[index]
        if not line.strip() or line.startswith(FENCE):
            return
        if line.startswith("#"):
            continue
        source.used.add(index)
        try:
            cells = split_row(line, top)
        except csv.Error as error:
            raise source.error_at(f"the row is not valid CSV: {error}", "check its quotes", index) from None
        for cut in list_cuts(line) if not is_valid(cells, top) else ():
            with suppress(csv.Error):
                if is_valid(shorter := split_row(line[:cut].rstrip(), top), top):
                    cells = shorter
                    comments[line[cut:].strip()] = None
                    break
        if len(cells) != len(top.columns):
            raise source.error_at(
                f"the row has {len(cells)} cells for {len(top.columns)} columns",
                "put cells that contain commas in double quotes",
                index,
            )
        yield TableRow({name: cell.strip() for name, cell in zip(top.columns, cells, strict=True)}, index)


def split_row(line: str, top: Header) -> list[str]:
    """The cells of a row. Raises csv.Error if its quotes are unbalanced."""
    return [cell.strip() for cell in next(csv.reader([line], delimiter=top.delimiter, skipinitialspace=True))]


def is_valid(cells: list[str], top: Header) -> bool:
    """Whether a row has a cell for each column, and its cell `value` is a number or empty."""
    if len(cells) != len(top.columns):
        return False
    with suppress(ValueError):
        (parse_number if top.delimiter == "," else parse_decimal_comma)(cells[top.columns.index("value")])
        return True
    return False


def read_figure(row: TableRow, number: Callable[[str], float | None], source: Source) -> Value:
    """The figure in a row, in base units; 0 if its cell is empty or NaN. Raises LoadstoneError if it is invalid."""
    metric = row.cells["metric"].lower()
    if not metric:
        raise source.error_at("the row has no metric", "use, for example, throughput, read.mean or read.p99", row.line)
    base = unit.base_unit(row.cells["unit"])
    if base is None:
        raise source.error_at(f'unknown unit "{row.cells["unit"][:40]}"', f"known units: {unit.KNOWN}", row.line)
    hint = "write 1234.5, without thousands separators; to use decimal commas, separate the cells with semicolons"
    with source.report_damage(f'{metric} is not a number: "{row.cells["value"][:40]}"', hint, row.line):
        value = (number(row.cells["value"]) or 0.0) * base[0]
    if not math.isfinite(value):
        raise source.error_at(f"{metric} is too large in {base[1]}", "check its value and its unit", row.line)
    n = read_whole_number(row, "n", source, least=0) or 0
    return Value(metric, value, base[1], n, read_bound(row, source), last_digit(row.cells["value"]) * base[0])


def read_bound(row: TableRow, source: Source) -> Bound | None:
    """The bound of a row's figure; None if the figure is exact. Raises LoadstoneError for an unknown bound."""
    text = row.cells.get("bound", "")
    if text == UNANSWERED:
        return "failed"
    bound = next((name for name in BOUNDS if name == text), None)
    if text and bound is None:
        raise source.error_at(
            f'bound must be at_least, failed or unanswered, got "{text[:40]}"', "leave it empty if exact", row.line
        )
    return bound


def read_whole_number(row: TableRow, column: str, source: Source, least: int = 1) -> int | None:
    """An integer in a column; None if the cell is empty. Raises LoadstoneError for other values."""
    text = row.cells.get(column, "")
    if not text:
        return None
    if not COUNT.fullmatch(text) or int(text) < least:
        raise source.error_at(
            f'{column} must be a whole number of at least {least}, got "{text[:40]}"', "for example 4", row.line
        )
    return int(text)
