"""go-ycsb's reports in their three styles: plain lines, a table, JSON.

It prints the same report at every interval, counted from the start, and once more after `Run finished`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from loadstone.importers.number import plain
from loadstone.importers.run import ALL, COMPOSED, OPERATIONS, Run, errors, series
from loadstone.importers.source import Source
from loadstone.importers.ycsb_command import command, whole
from loadstone.results.trial_result import Series

NAME = "go-ycsb"
TITLE = "go-ycsb"
LINE = re.compile(r"([A-Z][A-Z_]*)\s+- (Takes\(s\): .*)$")
PROPERTY = re.compile(r'"(threadcount|target|command)"="(\w+)"$')
FINISHED = re.compile(r"Run finished, takes (\S+)")
GO_DURATION = re.compile(r"([\d.]+)(h|ms|m|s|µs|us|ns)")
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}
TOTAL = "TOTAL"
FAILED = "_ERROR"
FIELDS = {"AVG(US)": "mean", "MIN(US)": "min", "MAX(US)": "max"}
PERCENTILE = re.compile(r"([\d.]+)TH\(US\)")
CUT = "import the whole output of the run, up to what follows `Run finished`"

Row = dict[str, float | None]


@dataclass
class Report:
    """The output of a run: each interval's rows by operation, and the final ones."""

    facts: dict[str, str] = field(default_factory=dict)
    intervals: list[dict[str, Row]] = field(default_factory=list)
    finished: float | None = None
    final: dict[str, Row] = field(default_factory=dict)


def recognises(text: str) -> bool:
    """Whether there is a report in one of the styles."""
    return any(sign in text for sign in (" - Takes(s): ", '"Takes(s)":', "| TAKES(S) |"))


def runs(source: Source) -> list[Run]:
    """Every run in the file. Raises LoadstoneError when one is cut."""
    reports = [Report()]
    header: list[str] = []
    for index, line in enumerate(source.lines):
        report = reports[-1]
        if line.strip().strip("*").strip() == "properties" and report.final:
            reports.append(Report())
        elif match := PROPERTY.search(line):
            report.facts[match[1]] = match[2]
        elif match := FINISHED.search(line):
            report.finished = seconds(match[1])
        elif line.lstrip().startswith("| OPERATION |"):
            header = cells(line)
        else:
            with source.reading("a row of the go-ycsb report is cut or damaged", CUT, index):
                found = rows(line, header)
            for operation, row in found:
                take(report, operation, row)
            if given := command(line):
                report.facts |= {"threadcount": str(given.clients)} if given.clients else {}
                report.facts |= {"target": str(given.target)} if given.target else {}
    for report in reports:
        if not report.final:
            raise source.error("the go-ycsb log is cut: no report follows `Run finished`", CUT)
    return [run(report) for report in reports]


def rows(line: str, header: list[str]) -> list[tuple[str, Row]]:
    """The rows of a report in one line: one in plain and table style, all in JSON."""
    if match := LINE.search(line):
        pairs = (part.partition(": ") for part in match[2].split(", "))
        return [(match[1], row({name: value for name, _, value in pairs}))]
    if header and line.lstrip().startswith("|"):
        values = cells(line)
        return [(values[0], row(dict(zip(header[1:], values[1:], strict=True))))]
    if '"Takes(s)":' in line:
        documents = json.loads(line[line.index("[") :])
        return [(document.pop("Operation"), row(document)) for document in documents]
    return []


def row(fields: dict[str, str]) -> Row:
    """A row's figures. Raises ValueError when one is missing."""
    found = {name.strip().upper(): plain(value) for name, value in fields.items()}
    if not {"TAKES(S)", "COUNT", "OPS", *FIELDS} <= found.keys():
        raise ValueError("a field is missing")
    return found


def cells(line: str) -> list[str]:
    """The cells of a table's row."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def take(report: Report, operation: str, found: Row) -> None:
    """Adds a row; an operation that is already in the interval begins the next one."""
    if report.finished is not None:
        report.final[operation] = found
    elif not report.intervals or operation in report.intervals[-1]:
        report.intervals.append({operation: found})
    else:
        report.intervals[-1][operation] = found


def seconds(text: str) -> float:
    """A Go duration: 1m2.5s."""
    return sum(float(number) * SECONDS[unit] for number, unit in GO_DURATION.findall(text))


def run(report: Report) -> Run:
    """A report's figures."""
    found = Run(facts={"tool": NAME}, step_ns=1e3)
    found.clients = whole(report.facts.get("threadcount", "")) or None
    if phase := report.facts.get("command"):
        found.facts["phase"] = phase
    if target := whole(report.facts.get("target", "")):
        found.loop = "open"
        found.facts |= {"target": target, "latency": "service"}
    for operation, each in report.final.items():
        name = operation.removesuffix(FAILED)
        if operation != TOTAL:
            status = "OK" if name == operation else "ERROR"
            found.statuses.setdefault(name, {})[status] = int(each["COUNT"] or 0)
    totals = report.final.get(TOTAL)
    simple = {name: each for name, each in report.final.items() if name != TOTAL and name not in COMPOSED}
    done = int(sum(each["COUNT"] or 0 for each in simple.values()))
    takes = max((each["TAKES(S)"] or 0.0 for each in report.final.values()), default=0.0)
    if totals is not None:
        found.add("throughput", totals["OPS"], "op/s", int(totals["COUNT"] or 0))
    elif takes:
        found.add("throughput", done / takes, "op/s", done)
        found.note("derived", "this go-ycsb prints no TOTAL: throughput is operations ÷ seconds of its rows", "")
    found.add("runtime", (report.finished or takes) * 1e9, "ns", 1)
    found.add("operations", done, OPERATIONS, done)
    found.add("errors", errors(found.statuses), OPERATIONS, done)
    for operation, each in report.final.items():
        latencies(found, ALL if operation == TOTAL else operation.lower().replace("_", "-"), each)
    found.series = course(report.intervals)
    return found


def latencies(found: Run, name: str, each: Row) -> None:
    """A row's latencies."""
    count = int(each["COUNT"] or 0)
    if not count:
        return
    found.add(f"{name}.count", count, OPERATIONS, count)
    for field_name, value in each.items():
        match = PERCENTILE.fullmatch(field_name)
        statistic = f"p{match[1]}" if match else FIELDS.get(field_name)
        # Means are cut to whole µs, so 0 is meaningless.
        if statistic is not None and value is not None and (value or statistic != "mean"):
            found.add(f"{name}.{statistic}", value * 1e3, "ns", count)


def course(intervals: list[dict[str, Row]]) -> Series | None:
    """Throughput by interval, from cumulative counts; None for fewer than two intervals."""
    rows = []
    at = count = 0.0
    for interval in intervals:
        until = max(each["TAKES(S)"] or 0.0 for each in interval.values())
        simple = (each for name, each in interval.items() if name != TOTAL and name not in COMPOSED)
        total = sum(each["COUNT"] or 0.0 for each in simple)
        if until > at and total >= count:
            rows.append((at, until - at, (total - count) / (until - at)))
            at, count = until, total
    return series(rows)
