"""The output of `loadstone import --explain`: the data read from a file, and the data omitted, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from loadstone.format import units
from loadstone.importers.json_text import Document
from loadstone.importers.read import Imported, name_runs, open_source, read_source
from loadstone.importers.source import Source
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value

# The maximum number of listed lines, and the maximum number of characters shown per line.
LISTED_MAX, LINE_MAX = 1000, 100


def explain_file(path: Path, facts: Mapping[str, Scalar], format: str | None = None) -> Iterator[str]:  # noqa: A002
    """Yields the explanation line by line. Raises LoadstoneError if the file cannot be read."""
    source, chosen, written = open_source(path, facts, format)
    unnamed = read_source(source, chosen)
    runs = name_runs(path, unnamed, written, facts)
    yield f"{path.name}: {chosen.TITLE}, {units.count_noun(len(runs), 'run')}"
    for imported, run in zip(runs, unnamed, strict=True):
        yield from explain_run(imported)
        if run.omitted:
            yield f"    omitted, because results lack such figures: {', '.join(run.omitted)}"
    yield from explain_source(source)


def explain_run(imported: Imported) -> Iterator[str]:
    """Yields lines about the figures, facts, time series and notes of a run."""
    result = imported.result
    yield f"  {result.trial}: {', '.join(f'{name}={value}' for name, value in result.config.items())}"
    if result.clients:
        yield f"    clients: {result.clients}, {result.loop} loop"
    yield f"    figures: {', '.join(map(format_figure, result.values.values())) or 'none'}"
    yield f"    facts: {', '.join(f'{name}={value}' for name, value in result.facts.items()) or 'none'}"
    yield f"    series: {len(imported.series.throughput) if imported.series else 'no'} intervals"
    for note in result.notes:
        yield f"    {note.name}: {note.message}"


def format_figure(value: Value) -> str:
    """A figure with its unit, as in tables."""
    return f"{value.metric} {units.format_figure(value.value, value.unit)}"


def explain_source(source: Source) -> Iterator[str]:
    """Yields lines about the lines and JSON keys that were not read."""
    ignored = source.unread
    yield (
        f"  lines read: {units.format_count(len(source.used))}; not read, because "
        f"they contain no figures or facts: {len(ignored)}"
    )
    yield from limit_lines(
        [f"    {index + 1}: {source.lines[index].strip()[:LINE_MAX]}" for index in ignored], LISTED_MAX
    )
    read: dict[str, bool] = {}
    parents: dict[str, str] = {}
    for document in (document for document in source.documents if isinstance(document, Document)):
        for key, parents[key], is_read in document.list_keys():
            read[key] = read.get(key, False) or is_read
    # Keys below an unread key are not listed.
    unread = [key for key, is_read in read.items() if not is_read and read.get(parents[key], True)]
    if unread:
        yield f"  JSON keys not read: {len(unread)}"
        yield from limit_lines([f"    {key}" for key in unread], LISTED_MAX)


def limit_lines(lines: Sequence[str], most: int) -> Iterator[str]:
    """Yields at most `most` lines, and then the number of remaining lines."""
    yield from lines[:most]
    if len(lines) > most:
        yield f"    … and {len(lines) - most} more"
