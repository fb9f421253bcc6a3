"""YCSB's text report (0.17.0 and its forks), with the command line and the status lines around it."""

from __future__ import annotations

import re

from loadstone.importers.number import parse_number
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import Source, is_log_prefix
from loadstone.importers.ycsb_figures import CUT, LATENCY, OVERALL, ReportContext, ReportEntry, build_run

NAME = "ycsb"
TITLE = "YCSB text"
ENTRY = re.compile(r"\[([^\[\]]+)\],\s*([^,\[\]]+),\s*(\S+)\s*$")
MEASUREMENT = re.compile(rf"(?:Total )?Operations|Return=\S+|{LATENCY.pattern}")
TORN = re.compile(r"\[[A-Z][\w%-]*(\](, ?[^,]*(, ?\S*)?)?)?$")
SIGNS = ("[OVERALL],", " operations; ", "YCSB Client 0.")
# YCSB-cpp prints the same status lines.
OTHER = re.compile(r"(?m)^[^\w\n]*(?:Load|Run) runtime\(sec\):")


def recognise_text(text: str) -> bool:
    """Whether the text contains a report of YCSB, or its status lines."""
    return any(sign in text for sign in SIGNS) and ("[OVERALL]," in text or not OTHER.search(text))


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated or missing."""
    reports: list[tuple[list[ReportEntry], ReportContext]] = []
    around = ReportContext()
    for index, text in enumerate(source.bare_lines):
        if entry := entry_of(text, index, source):
            if entry.begins or not reports:
                reports.append(([], around))
                around = ReportContext()
            reports[-1][0].append(entry)
            source.used.add(index)
        elif around.read_line(text):
            source.used.add(index)
    check_end(source, reports, around)
    return [build_run(entries, context, source) for entries, context in reports]


def entry_of(text: str, index: int, source: Source) -> ReportEntry | None:
    """The report entry in a line; None if the line is not an entry."""
    if "]," not in text:
        return None
    match = ENTRY.search(text)
    if match is None or not is_log_prefix(text[: match.start()]):
        return None
    try:
        return ReportEntry(match[1], match[2].strip(), parse_number(match[3]), index)
    except ValueError:
        # Prose may look like an entry, but a known measurement whose value is not a number is a damaged line.
        if match[1] == OVERALL or MEASUREMENT.fullmatch(match[2].strip()):
            raise source.error_at(f"[{match[1]}], {match[2]} is not a number: {match[3][:40]}", CUT, index) from None
        return None


def check_end(source: Source, reports: list[tuple[list[ReportEntry], ReportContext]], around: ReportContext) -> None:
    """Raises LoadstoneError if the last run has no report or ends in a truncated line.

    Also adds the lines after a single report to the report's context.
    """
    if is_torn(source, reports):
        last = source.lines[source.last].strip()
        raise source.error_at(f'the YCSB log is truncated within its last line: "{last[:60]}"', CUT, source.last)
    if not reports:
        if "YCSB Client" not in source.text:
            message = "it has only status lines, which another tool may have written"
            hint = "state paths in the tool's JSON (loadstone import --json), or write its figures into a table (CSV)"
            raise source.error_at(f"the YCSB log has no report: {message}", hint)
        raise source.error_at("the YCSB log has no report: no line starts with [OVERALL]", CUT)
    if len(reports) == 1 and not reports[0][1].statuses:
        # Standard error, which contains the command line and the status lines, follows standard output.
        context = reports[0][1]
        context.statuses, context.command = around.statuses, context.command or around.command
        context.version = context.version or around.version
    elif around.statuses:
        raise source.error_at(
            "the last run of the YCSB log has status lines but no report",
            f"{CUT}. Alternatively, remove the run's lines",
        )


def is_torn(source: Source, reports: list[tuple[list[ReportEntry], ReportContext]]) -> bool:
    """Whether the file ends in the middle of a report line."""
    last = source.lines[source.last]
    if not reports:
        return last.startswith("[") and TORN.fullmatch(last) is not None
    entry = reports[-1][0][-1]
    if entry.line == source.last:
        # The entry is complete, or its number is truncated. Status counts follow the latencies, except for failures and
        # composed operations, which have no status counts.
        return source.torn and "Latency" in entry.measurement and "-" not in entry.metric
    between = source.lines[(entry.line or 0) + 1 : source.last]
    return TORN.fullmatch(last.strip()) is not None and not any(line.strip() for line in between)
