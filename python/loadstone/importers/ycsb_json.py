"""YCSB's JSON reports: objects (JSONMeasurementsExporter) or an array (JSONArrayMeasurementsExporter)."""

from __future__ import annotations

import json
import re
from typing import Any

from loadstone.importers.json_text import Document
from loadstone.importers.number import parse_number
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import Source
from loadstone.importers.ycsb_figures import CUT, ReportContext, ReportEntry, build_run

NAME = "ycsb-json"
TITLE = "YCSB JSON"
SIGN = re.compile(r'"metric"\s*:\s*"OVERALL"')
BETWEEN = re.compile(r"[\s,\]\[]*")


def recognise_text(text: str) -> bool:
    """Whether the text contains a report."""
    return SIGN.search(text) is not None


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    around = ReportContext()
    for index, line in enumerate(source.lines):
        if around.read_line(line):
            source.used.add(index)
    reports: list[list[ReportEntry]] = []
    for entry in read_entries(source):
        if entry.begins or not reports:
            reports.append([])
        reports[-1].append(entry)
    # With several runs, it is unknown to which of them a line outside the reports belongs.
    return [build_run(report, around if len(reports) == 1 else ReportContext(), source) for report in reports]


def read_entries(source: Source) -> list[ReportEntry]:
    """The entries in all reports."""
    text = source.text
    decoder = json.JSONDecoder(object_pairs_hook=Document)
    entries: list[ReportEntry] = []
    at, line, before = find_report(text, 0), 0, 0
    while at >= 0:
        try:
            start = at
            line += text.count("\n", before, start)
            before = start
            document, at = decoder.raw_decode(text, start)
            source.used.update(range(line, line + text.count("\n", start, at) + 1))
        except (ValueError, RecursionError):
            raise source.error_at("the YCSB JSON report is truncated or damaged", CUT, line) from None
        with source.report_damage("the YCSB JSON report is damaged: {error}", CUT, line):
            entries.extend(entry_of(document, source))
        source.documents.append(document)
        at = BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # It also matches empty text.
        at = at if text.startswith("{", at) else find_report(text, at)
    return entries


def find_report(text: str, at: int) -> int:
    """The position of the next report's first object, or -1."""
    match = SIGN.search(text, at)
    return -1 if match is None else text.rfind("{", at, match.start())


def entry_of(document: Any, source: Source) -> list[ReportEntry]:
    """The entry in an object. Objects about garbage collectors have no metric, and are skipped."""
    if not isinstance(document, Document) or not isinstance(metric := document.get("metric"), str):
        return []
    measurement, value = str(document["measurement"]), str(document["value"])
    with source.report_damage(f"{metric} {measurement} is not a number: {value}", CUT):
        return [ReportEntry(metric, measurement, parse_number(value))]
