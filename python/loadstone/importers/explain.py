"""The data read from a file, and the omissions with their reasons: the output of `loadstone import --explain`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loadstone.format import units
from loadstone.importers.read import Imported, name_runs, open_source, read_source
from loadstone.importers.source import Source
from loadstone.results.trial_result import Scalar

# The maximum number of listed lines, and of characters in a line.
LISTED_MAX, LINE_MAX = 1000, 100


def explain_file(path: Path, facts: Mapping[str, Scalar], format: str | None = None) -> Iterator[str]:  # noqa: A002
    """Lines of text. Raises LoadstoneError if the file cannot be read."""
    source, chosen, written = open_source(path, facts, format)
    runs = name_runs(path, read_source(source, chosen), written, facts)
    yield f"{path.name}: {chosen.TITLE}, {units.count_noun(len(runs), 'run')}"
    for imported in runs:
        yield from explain_run(imported)
    yield from explain_source(source)


def explain_run(imported: Imported) -> Iterator[str]:
    """The figures and facts of a run, and its omissions."""
    result = imported.result
    yield f"  {result.trial}: {', '.join(f'{name}={value}' for name, value in result.config.items())}"
    if result.clients:
        yield f"    clients: {result.clients}, {result.loop} loop"
    yield f"    figures: {', '.join(result.values) or 'none'}"
    yield f"    facts: {', '.join(f'{name}={value}' for name, value in result.facts.items()) or 'none'}"
    yield f"    series: {len(imported.series.throughput) if imported.series else 'no'} intervals"
    for note in result.notes:
        yield f"    {note.name}: {note.message}"


def explain_source(source: Source) -> Iterator[str]:
    """The lines and keys that were not read."""
    ignored = source.unread
    yield (
        f"  lines read: {units.format_count(len(source.used))}; not read, as "
        f"they have no figure or fact: {len(ignored)}"
    )
    yield from limit_lines(
        [f"    {index + 1}: {source.lines[index].strip()[:LINE_MAX]}" for index in ignored], LISTED_MAX
    )
    keys = dict.fromkeys(key for document in source.documents for key in document.list_ignored())
    if keys:
        yield f"  keys of JSON not read: {len(keys)}"
        yield from limit_lines([f"    {key}" for key in keys], LISTED_MAX)


def limit_lines(lines: Sequence[str], most: int) -> Iterator[str]:
    """The first lines, and the number of further ones."""
    yield from lines[:most]
    if len(lines) > most:
        yield f"    … and {len(lines) - most} more"
