"""go-ycsb's reports, in any of their three styles: plain lines, table and JSON.

go-ycsb prints a cumulative report at the end of every interval, and again after `Run finished`.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field

from loadstone.importers.command_line import SECRET, command_fact
from loadstone.importers.number import PLAIN, go_duration, number_or_text, parse_number
from loadstone.importers.run import (
    ALL,
    COMPOSED,
    OPERATIONS,
    ImportedRun,
    build_histogram,
    build_series,
    check_rate,
    check_total,
    count_errors,
    histogram_figures,
    mix_fact,
)
from loadstone.importers.source import Source
from loadstone.importers.ycsb_command import parse_command, parse_whole_number
from loadstone.results.trial_result import Series

NAME = "go-ycsb"
TITLE = "go-ycsb"
LINE = re.compile(r"([A-Za-z][A-Za-z_]*)\s+- (Takes\(s\): .*)$")
INTERRUPTED = re.compile(r"Got signal \[\w+\] to exit")
# The operations of go-ycsb. Forks also measure parts of operations, such as COMMIT, which do not count as operations.
KNOWN = re.compile(r"TOTAL|(?:BATCH_)?(?:READ|UPDATE|INSERT|SCAN|DELETE|READ_MODIFY_WRITE)(?:_ERROR)?|TXN(?:_ERROR)?")
PROPERTY = re.compile(r'"([\w.]+)"="([^"]*)"$')
FACTS = {"recordcount": "records", "requestdistribution": "distribution", "command": "phase"}
PROPORTION = "proportion"
# The number and size of fields by default (pkg/prop/prop.go).
SIZE = {"fieldcount": 10, "fieldlength": 100}
SETTINGS = ("threadcount", "target", "command", *FACTS, "fieldcount", "fieldlength", "operationcount", "insertorder",
            "readallfields", "writeallfields", "maxscanlength", "scanlengthdistribution", "fieldlengthdistribution",
            "insertstart", "insertcount", "dataintegrity", "batch.size")  # fmt: skip
FINISHED = re.compile(r"Run finished, takes (\S+)")
TOTAL = "TOTAL"
FAILED = "_ERROR"
TOTALS = ("TAKES(S)", "COUNT", "OPS")
FIELDS = {"AVG(US)": "mean", "MIN(US)": "min", "MAX(US)": "max"}
PERCENTILE = re.compile(r"([\d.]+)TH\(US\)")
# If the time after `Run finished` exceeds the time in the rows by more than this, in s, it includes a warm-up.
APART_S = 1.0
# An operation chosen at random is practically always executed within this multiple of the mean time between executions.
LATE_SHARE = 20.0
# The first line of `measurementtype=csv`, and a line: operation, start and latency in µs.
MEASUREMENTS = "operation,timestamp_us,latency_us"
MEASUREMENT = re.compile(r"([A-Z][A-Z_]*),(\d{16}),(\d+)$")
CUT = "import the whole output of the run, including the report after `Run finished`"

Row = dict[str, float | None]


@dataclass
class GoYcsbReport:
    """The output of a run: the rows of each interval, keyed by operation, and the final rows."""

    facts: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    intervals: list[dict[str, Row]] = field(default_factory=list)
    finished: float | None = None
    final: dict[str, Row] = field(default_factory=dict)
    # Whether another line followed the final rows, so that the run has ended.
    closed: bool = False
    # Whether a border followed the last row, if the rows form a table.
    bordered: bool = True
    command: str = ""
    line: int = 0
    interrupted: bool = False
    unknown: dict[str, None] = field(default_factory=dict)


def recognise_text(text: str) -> bool:
    """Whether the text contains a report in one of the styles."""
    return any(sign in text for sign in (" - Takes(s): ", '"Takes(s)":', "| TAKES(S) |", MEASUREMENTS))


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    if MEASUREMENTS in source.text:
        return read_measurements(source)
    reports = [GoYcsbReport()]
    header: list[str] = []
    damaged: int | None = None
    for index, line in enumerate(source.bare_lines):
        report = reports[-1]
        text = line.strip()
        command = parse_command(line)
        # A run ends with `Run finished` and any rows that follow it; later lines belong to another run.
        header_line = text.strip("*").strip() == "properties"
        ended = bool(report.final) or report.finished is not None
        begins = header_line or FINISHED.search(line) or (command and command.phase)
        # Properties precede the first interval of a run: if they follow an interval, the earlier run was interrupted.
        if (ended and begins) or (report.intervals and header_line):
            report = GoYcsbReport(line=index)
            reports.append(report)
        if match := PROPERTY.search(line):
            if report.properties.setdefault(match[1], match[2]) != match[2]:
                raise source.error_at(f"the properties of two runs are mixed: {match[1]} has two values", CUT, index)
            report.facts[match[1]] = match[2]
        elif match := FINISHED.search(line):
            with source.report_damage("the time of a run is truncated or damaged: {error}", CUT, index):
                report.finished = go_duration(match[1])[0]
        elif INTERRUPTED.search(line):
            report.interrupted = True
        elif line.lstrip().startswith("| OPERATION |"):
            header = split_cells(line)
        elif command:
            report.command = command.text
            report.facts |= {"threadcount": str(command.clients)} if command.clients else {}
            report.facts |= {"target": str(command.target)} if command.target else {}
            report.facts |= {"command": command.phase} if command.phase else {}
            report.facts |= command.properties
        else:
            try:
                entries = parse_rows(line if index != source.last or not source.torn else drop_last(line), header)
            except (LookupError, ValueError):
                # No error yet: the row may be readable without the comment after its figures.
                damaged = index if damaged is None else damaged
                continue
            if entries and report.final and (report.closed or any(name in report.final for name, _ in entries)):
                report = GoYcsbReport(line=index)
                reports.append(report)
            if report.finished is None and report.intervals and restarts(report.intervals[-1], entries):
                report = GoYcsbReport(line=index)
                reports.append(report)
            for operation, entry in entries:
                add_row(report, operation, entry)
            report.closed = report.closed or (bool(report.final) and not entries and not text.startswith(("+-", "+=")))
            if entries and text.startswith("|"):
                report.bordered = False
            elif text.startswith("+-"):
                report.bordered = True
            elif not entries and not text.startswith("***"):
                continue
        source.used.add(index)
    if damaged is not None:
        raise source.error_at("a row of the go-ycsb report is truncated or damaged", CUT, damaged)
    if len(reports) > 1 and not reports[-1].intervals and not reports[-1].final and reports[-1].finished is None:
        # The last part has only the properties or the command line of a run whose output is elsewhere.
        reports.pop()
    for report in reports:
        operations = {name for interval in report.intervals for name in interval}
        if not report.final or not report.bordered or operations - report.final.keys():
            raise source.error_at("the go-ycsb log is truncated: no report follows `Run finished`", CUT, report.line)
    return [read_report(report, source) for report in reports]


def read_measurements(source: Source) -> list[ImportedRun]:
    """The runs in lists of operations (`measurementtype=csv`). Raises LoadstoneError if a line is damaged."""
    tables: list[tuple[int, dict[str, list[tuple[int, int]]]]] = []
    damaged: int | None = None
    for index, line in enumerate(source.bare_lines):
        if line.strip() == MEASUREMENTS:
            tables.append((index, {}))
        elif match := MEASUREMENT.match(line) if tables else None:
            if index == source.last and source.torn:
                raise source.error_at("the go-ycsb log is truncated within its last line", CUT, index)
            tables[-1][1].setdefault(match[1], []).append((int(match[2]), int(match[3])))
        elif tables and line.strip() and re.match(r"[A-Z_]*,", line):
            # No error yet: the line may be readable without the comment after its figures.
            damaged = index if damaged is None else damaged
            continue
        else:
            continue
        source.used.add(index)
    if damaged is not None:
        raise source.error_at("a line of go-ycsb's measurements is damaged", CUT, damaged)
    result = []
    for begin, table in tables:
        run = ImportedRun(facts={"tool": NAME}, step_ns=1e3)
        excluded = (TOTAL, *COMPOSED, *(f"{name}{FAILED}" for name in COMPOSED))
        simple = {name: rows for name, rows in table.items() if name not in excluded}
        well = sum(len(rows) for name, rows in simple.items() if not name.endswith(FAILED))
        if TOTAL not in table:
            raise source.error_at("the go-ycsb log is truncated: it has no TOTAL", CUT, begin)
        check_total(source, well, len(table[TOTAL]), begin)
        for name, rows in simple.items():
            operation, failed = name.removesuffix(FAILED), name.endswith(FAILED)
            run.statuses.setdefault(operation, {})["ERROR" if failed else "OK"] = len(rows)
        times = [time for rows in simple.values() for time in rows]
        seconds = (max(start + latency for start, latency in times) - min(start for start, _ in times)) / 1e6
        run.add_totals(well / seconds if seconds else None, seconds * 1e9, len(times), 0.0, 1e3)
        histograms = {name: build_histogram((latency * 1000, 1) for _, latency in rows) for name, rows in table.items()}
        every = build_histogram((latency * 1000, 1) for name in simple if not name.endswith(FAILED)
                                for _, latency in simple[name])  # fmt: skip
        for name, histogram in ((ALL, every), *((name, part) for name, part in histograms.items() if name != TOTAL)):
            run.values.extend(histogram_figures(name.lower().replace("_", "-"), histogram))
        result.append(run)
    return result


def restarts(before: dict[str, Row], entries: list[tuple[str, Row]]) -> bool:
    """Whether rows belong to a new run: every operation has a shorter time and a smaller count than before."""
    fewer = [
        (row["TAKES(S)"] or 0.0) < (before[name]["TAKES(S)"] or 0.0)
        and (row["COUNT"] or 0.0) < (before[name]["COUNT"] or 0.0)
        for name, row in entries
        if name in before
    ]
    return bool(fewer) and all(fewer)


def drop_last(line: str) -> str:
    """A row without its last field, which may be truncated in the middle of a number."""
    return (
        line.rpartition(", ")[0] if LINE.search(line) and PERCENTILE.search(line.rpartition(", ")[2].upper()) else line
    )


def parse_rows(line: str, header: list[str]) -> list[tuple[str, Row]]:
    """The rows of a report on one line: a single row in plain and table style, all rows in JSON style."""
    if match := LINE.search(line):
        pairs = (part.partition(": ") for part in match[2].split(", "))
        return [(match[1], parse_row({name: value for name, _, value in pairs}))]
    if header and line.lstrip().startswith("|"):
        values = split_cells(line)
        return [(values[0], parse_row(dict(zip(header[1:], values[1:], strict=True))))]
    if '"Takes(s)":' in line:
        documents = json.loads(line[line.index("[") :])
        return [(document.pop("Operation"), parse_row(document)) for document in documents]
    return []


def parse_row(fields: dict[str, str]) -> Row:
    """A row's figures. Raises ValueError if a figure is missing."""
    names = {name: name.strip().upper() for name in fields}
    # An unknown field may have any value.
    row = {upper: parse_number(str(fields[name])) if is_known(upper) else None for name, upper in names.items()}
    if not {*TOTALS, *FIELDS} <= row.keys():
        raise ValueError("a field is missing")
    return row


def is_known(name: str) -> bool:
    """Whether a field has a figure."""
    return name in (*TOTALS, *FIELDS) or PERCENTILE.fullmatch(name) is not None


def split_cells(line: str) -> list[str]:
    """The cells of a table row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def add_row(report: GoYcsbReport, operation: str, row: Row) -> None:
    """Adds a row; an operation that is already in the interval begins the next interval."""
    if report.finished is not None:
        report.final[operation] = row
    elif not report.intervals or operation in report.intervals[-1]:
        report.intervals.append({operation: row})
    else:
        report.intervals[-1][operation] = row


def read_report(report: GoYcsbReport, source: Source) -> ImportedRun:
    """A report's figures."""
    run = ImportedRun(facts={"tool": NAME}, step_ns=1e3)
    run.unknown |= {name: None for name in report.final if not KNOWN.fullmatch(name)}
    report.final = {name: row for name, row in report.final.items() if name not in run.unknown}
    if report.interrupted:
        run.mark_stopped("go-ycsb was interrupted by a signal")
    run.clients = parse_whole_number(report.facts.get("threadcount", "")) or None
    for name, text in report.facts.items():
        if name in SETTINGS and name not in ("threadcount", "target"):
            run.facts[FACTS.get(name, name)] = number_or_text(text)
        elif name not in ("threadcount", "target") and not name.endswith(PROPORTION):
            if "." in name and not SECRET.search(name):
                # A property with a dot in its name belongs to the binding.
                run.facts[f"store.{name}"] = number_or_text(text)
            else:
                # Omits secrets, and unknown properties without a dot, which state locations.
                run.omitted[name] = None
    weights = {
        name.removesuffix(PROPORTION): float(text)
        for name, text in report.facts.items()
        if name.endswith(PROPORTION) and PLAIN.fullmatch(text)
    }
    if sum(weights.values()):
        run.facts["mix"] = mix_fact(weights)
    parts = [report.properties.get(name, str(default)) for name, default in SIZE.items()]
    if report.properties and all(text.isdigit() for text in parts):
        # go-ycsb prints all properties, so the remaining properties have their defaults.
        run.facts["record_bytes"] = math.prod(map(int, parts))
    if report.command:
        run.facts["command"] = command_fact(report.command)
    if target := parse_whole_number(report.facts.get("target", "")):
        run.loop = "open"
        run.facts |= {"target": target, "latency": "service"}
    check_times(report, source)
    for operation, row in report.final.items():
        rate, seconds = row["OPS"] or 0.0, row["TAKES(S)"] or 0.0
        with source.report_damage("a row of the go-ycsb report is damaged: {error}", CUT, report.line):
            # The rate and the time are printed with one decimal.
            check_rate(rate, seconds, row["COUNT"] or 0.0, slack=0.1 * (rate + seconds))
        name = operation.removesuffix(FAILED)
        if operation != TOTAL:
            status = "OK" if name == operation else "ERROR"
            run.statuses.setdefault(name, {})[status] = int(row["COUNT"] or 0)
    totals = report.final.get(TOTAL)
    simple = {name: row for name, row in report.final.items() if name != TOTAL and name not in COMPOSED}
    done = int(sum(row["COUNT"] or 0 for row in simple.values()))
    takes = max((row["TAKES(S)"] or 0.0 for row in report.final.values()), default=0.0)
    if totals is not None:
        # Failed operations are not included in the total.
        well = sum(entry["COUNT"] or 0 for name, entry in simple.items() if not name.endswith(FAILED))
        check_total(source, well, totals["COUNT"] or 0.0, report.line, slack=0.01 * done)
        run.add_figure("throughput", totals["OPS"], "op/s", int(totals["COUNT"] or 0), 0.1)
    elif takes:
        rates = [entry["OPS"] or 0.0 for name, entry in simple.items() if not name.endswith(FAILED)]
        run.add_figure("throughput", sum(rates), "op/s", done, 0.1 * len(rates))
        run.add_note("derived", "go-ycsb printed no TOTAL: throughput is the sum of the OPS of its operations", "")
    # Rates cover the time in the rows; the time after `Run finished` includes a warm-up.
    apart = report.finished is None or abs(report.finished - takes) > APART_S
    run.add_figure("runtime", (takes if apart and takes else report.finished or takes) * 1e9, "ns", 1)
    run.add_figure("operations", done, OPERATIONS, done)
    run.add_figure("errors", count_errors(run.statuses), OPERATIONS, done)
    for operation, row in report.final.items():
        add_latencies(run, ALL if operation == TOTAL else operation.lower().replace("_", "-"), row)
    run.series = throughput_series(report.intervals)
    run.omitted |= {"intervals, except throughput": None} if report.intervals else {}
    return run


def check_times(report: GoYcsbReport, source: Source) -> None:
    """Raises LoadstoneError if the final rows cover different times: some of them belong to another run.

    The time of an operation starts when it is first executed, so the time of a rare operation is shorter.
    """
    longest = max((row["TAKES(S)"] or 0.0 for row in report.final.values()), default=0.0)
    for operation, row in report.final.items():
        seconds, count = row["TAKES(S)"] or 0.0, row["COUNT"] or 0.0
        late = LATE_SHARE * longest / count if count else longest
        if not operation.endswith(FAILED) and longest - seconds > late + APART_S:
            message = f"{operation} took {seconds:g} s in a report of {longest:g} s: the lines of two runs are mixed"
            raise source.error_at(message, CUT, report.line)


def add_latencies(run: ImportedRun, name: str, row: Row) -> None:
    """Adds the latencies in a row."""
    count = int(row["COUNT"] or 0)
    if not count:
        return
    run.add_figure(f"{name}.count", count, OPERATIONS, count)
    for field_name, value in row.items():
        match = PERCENTILE.fullmatch(field_name)
        statistic = f"p{match[1]}" if match else FIELDS.get(field_name)
        # Means are truncated to whole µs, so 0 is meaningless.
        if statistic is not None and value is not None and (value or statistic != "mean"):
            run.add_figure(f"{name}.{statistic}", value * 1e3, "ns", count, 1e3)
        elif statistic is None and field_name not in TOTALS:
            run.unknown[field_name] = None


def throughput_series(intervals: list[dict[str, Row]]) -> Series | None:
    """The throughput in each interval, computed from cumulative counts; None for fewer than two intervals."""
    rows = []
    at = count = 0.0
    for interval in intervals:
        until = max(row["TAKES(S)"] or 0.0 for row in interval.values())
        simple = (row for name, row in interval.items() if name != TOTAL and name not in COMPOSED)
        total = sum(row["COUNT"] or 0.0 for row in simple)
        if until > at and total >= count:
            rows.append((at, until - at, (total - count) / (until - at)))
            at, count = until, total
    return build_series(rows)
