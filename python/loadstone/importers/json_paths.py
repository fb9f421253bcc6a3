"""JSON from any tool, read by paths that the user states: `loadstone import --json 'throughput=$.tps op/s' FILE`.

A path is `$` followed by keys (`.tps`, `['a b']`) and list indices (`[0]`); with `[*]`, each element is a repeat. A
file may contain several documents, on one line or on several: each is a repeat as well. Other lines are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.importers import unit
from loadstone.importers.json_text import Document
from loadstone.importers.number import NOT_A_NUMBER, last_digit, parse_number
from loadstone.importers.run import OPERATIONS, ImportedRun
from loadstone.importers.source import Source

NAME = "json"
TITLE = "JSON by paths"
STEP = re.compile(r"\.([\w-]+)|\[(?:'([^']*)'|\"([^\"]*)\"|(\d+)|(\*))\]")
EXAMPLE = "for example --json 'throughput=$.tps op/s'"
CUT = "import the tool's whole JSON"
# The start of a line that is not text, but belongs to a document whose first lines are missing.
FRAGMENT = re.compile(r"[\s\"\]},:]")


class Printed(float):
    """A number with the place value of its last printed digit."""

    step: float

    def __new__(cls, text: str) -> Printed:
        number = super().__new__(cls, text)
        number.step = last_digit(text)
        return number


@dataclass(frozen=True)
class PathFigure:
    """A metric, the path to its value, and the factor that converts the value to the base unit."""

    metric: str
    path: str
    factor: float
    unit: str


def parse_figure(text: str) -> PathFigure:
    """Parses `metric=path unit`. Raises LoadstoneError if the text has another form."""
    metric, _, rest = text.partition("=")
    path, _, name = rest.strip().rpartition(" ")
    base = unit.base_unit(name)
    if not metric.strip() or not re.fullmatch(rf"\$(?:{STEP.pattern})+", path.strip()):
        raise LoadstoneError(f'a figure must be metric=path unit, got "{text}"', EXAMPLE)
    if base is None:
        raise LoadstoneError(f'unknown unit "{name}" in "{text}"', f"known units: {unit.KNOWN}")
    return PathFigure(metric.strip().lower(), path.strip(), *base)


def recognise_text(text: str) -> bool:
    """Always False: only the user knows the paths."""
    return False


def read_runs(source: Source) -> list[ImportedRun]:
    """A run for each document, or each element of its lists. Raises LoadstoneError if a path does not lead to a
    number."""
    figures = [parse_figure(text) for text in str(source.facts.get("json", "")).splitlines() if text.strip()]
    if not figures:
        raise source.error_at("no paths to figures were given", f"pass them to `loadstone import`, {EXAMPLE}")
    if len({figure.metric for figure in figures}) < len(figures):
        raise source.error_at("a metric has two paths", "state each metric once")
    result: list[ImportedRun] = []
    for number, document in enumerate(read_documents(source), 1):
        columns = {figure: list(follow_path(document, figure.path)) for figure in figures}
        for figure, values in columns.items():
            if not values:
                raise source.error_at(f"{figure.path} does not match anything in document {number}", "check the path")
        if len({len(values) for values in columns.values()}) > 1:
            raise source.error_at("paths with [*] lead to different numbers of values", "use lists of equal length")
        for row in zip(*columns.values(), strict=True):
            run = ImportedRun(repeat=len(result) + 1)
            for figure, value in zip(columns, row, strict=True):
                printed = to_number(value, figure, number, source)
                # Counts are exact.
                step = 0.0 if figure.unit == OPERATIONS else printed.step * figure.factor
                run.add_figure(figure.metric, printed * figure.factor, figure.unit, 0, step)
            result.append(run)
    for run in result:
        run.unknown |= {source.lines[index].strip(): None for index in source.unread}
    return result


def to_number(value: Any, figure: PathFigure, document: int, source: Source) -> Printed:
    """Converts a value to a number, even if it is a string. Raises LoadstoneError for other values."""
    text = value.strip() if isinstance(value, str) else str(value)
    if value is None or text.lower() in NOT_A_NUMBER:
        # With `[*]`, an element without the key also yields None.
        state = "null or missing" if value is None and "[*]" in figure.path else json.dumps(value)
        message = f"{figure.path} is {state} in document {document}: the tool has no value for {figure.metric}"
        raise source.error_at(message, "omit this path, or import a run in which it is a number")
    with source.report_damage(f"{figure.path} is not a number in document {document}: {text[:40]}", "check the path"):
        if isinstance(value, bool) or parse_number(text) is None:
            raise ValueError
        return value if isinstance(value, Printed) else Printed(text)


def read_documents(source: Source) -> Iterator[Any]:
    """Yields the documents in a file, and skips lines of text. Raises LoadstoneError if a document is truncated."""
    decoder = json.JSONDecoder(object_pairs_hook=Document, parse_float=Printed)
    at, text = 0, source.text
    while match := re.compile(r"\s*(?=\S)").match(text, at):
        at = match.end()
        line = text.count("\n", 0, at)
        begins_line = not text[text.rfind("\n", 0, at) + 1 : at].strip()
        if begins_line and text[at] not in "{[" and not FRAGMENT.match(text[text.rfind("\n", 0, at) + 1 :]):
            at = end if (end := text.find("\n", at)) >= 0 else len(text)
            continue
        with source.report_damage("the JSON is truncated or damaged: {error}", CUT, line):
            if text[at] not in "{[":
                raise ValueError(f"no document begins with {text[at]}")
            document, at = decoder.raw_decode(text, at)
        source.used.update(range(line, text.count("\n", 0, at) + 1))
        source.documents.extend(document if isinstance(document, list) else [document])
        yield document


def follow_path(document: Any, path: str) -> Iterator[Any]:
    """The values to which a path leads; None for a list element without a value, so that the order is preserved."""
    values = [document]
    of_elements = False
    for match in STEP.finditer(path):
        key = next((part for part in match.groups()[:3] if part is not None), None)
        following: list[Any] = []
        for value in values:
            if key is not None and isinstance(value, Mapping) and key in value:
                following.append(value[key])
            elif match[4] and isinstance(value, list) and int(match[4]) < len(value):
                following.append(value[int(match[4])])
            elif match[5] and isinstance(value, list):
                following += value
                of_elements = True
            elif of_elements:
                following.append(None)
        values = following
    yield from values
