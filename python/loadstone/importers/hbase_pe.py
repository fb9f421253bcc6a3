"""Logs of HBase's PerformanceEvaluation.

Each client prints its percentiles. The percentiles of several clients cannot be combined, so they are omitted if there
is more than one client. Means (weighted by count), minima and maxima are combined. The throughput is the number of rows
÷ the time of the slowest client; PerformanceEvaluation's `Avg TPS/QPS` adds the clients' rates and is slightly higher.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from loadstone.importers.command_line import command_fact, find_command, parse_options, split_command
from loadstone.importers.number import number_or_text, parse_number
from loadstone.importers.run import ALL, OPERATIONS, ImportedRun, check_total, set_once
from loadstone.importers.source import Source

NAME = "hbase-pe"
TITLE = "HBase PerformanceEvaluation log"
OPTIONS = re.compile(r"test run options=(\{.*\}|\{(?!.*\}\s).*)$")
# HBase 1.x prints a line for each statistic; only the thread in brackets identifies the client.
OLD_COUNT = re.compile(r"(?:\[(TestClient-\d+)\].*)?latency log \((microseconds|ms)\), on (\d+) measures")
OLD = re.compile(r"(?:\[(TestClient-\d+)\].*?)?\w+Test (Min|Avg|Max|StdDev|[\d.]+th)\s+= (\S+)\s*$")
OLD_NAMES = {"Min": "min", "Avg": "mean", "Max": "max"}
# With `--valueRandom`, statistics of the value sizes follow, under the same names.
SIZES = re.compile(r"\w+Test valueSize after \d+ measures")
LATENCY = re.compile(r"(?:\[(TestClient-\d+)\].*)?Latency \(us\) : (\w+=.*)$")
MEASURES = re.compile(r"(?:\[(TestClient-\d+)\].*)?Num measures \(latency\) : (\d+)(?![\d.,])")
THREAD = re.compile(r"\[(TestClient-\d+)\]")
FINISHED = re.compile(r"Finished (TestClient-\d+) in (\d+)ms over (\d+) rows")
SUMMARY = re.compile(r"\[(\w+?)(?:Test)?\] Summary of timings \(ms\): \[([\d, ]*)\]")
BEGIN = re.compile(r"PerformanceEvaluation(?:: Start class|: \w+Test latency log|: Latency \(us\))")
FACTS = {
    "rows": "totalRows",
    "value_bytes": "valueSize",
    "write_ahead_log": "writeToWAL",
    "columns": "columns",
    "compression": "compression",
    "auto_flush": "autoFlush",
    "multi_get": "multiGet",
    "regions": "presplitRegions",
}
# Options that do not change the operations, or that are read elsewhere.
NOT_OF_WORK = ("cmdName", "numClientThreads", "tableName", "traceRate", "period", "cycles", "nomapred", "reportLatency",
               "size", "startRow", "perClientRunRows")  # fmt: skip
PROGRAM = r"hbase\s+(?:pe|org\.apache\.hadoop\.hbase\.PerformanceEvaluation)"
# The test and the number of clients end the command.
COMMAND = r"\w+\s+\d+"
# The JSON names of options in a command, if they differ.
OPTION_NAMES = {"presplit": "presplitRegions", "compress": "compression"}
# The default number of rows per client.
ROWS = 1 << 20
# The counter group of a test that runs as a MapReduce job.
MAPREDUCE = "HBase Performance Evaluation"
CUT = "import the whole log of PerformanceEvaluation, up to its summary of timings"
US = 1e3


@dataclass
class TestLog:
    """The output of one test. For each client: latencies in µs, number of latencies, time in ms, and rows."""

    options: dict[str, Any]
    line: int
    command: str = ""
    latencies: dict[str, dict[str, float | None]] = field(default_factory=dict)
    measures: dict[str, int] = field(default_factory=dict)
    finished: dict[str, tuple[int, int]] = field(default_factory=dict)
    # The times of all clients, from the last line; None until it is read.
    summary: list[str] | None = None
    # The name of the test, from the last line.
    name: str = ""
    # The clients whose next statistics describe value sizes.
    sizes: set[str] = field(default_factory=set)
    # Whether several clients print their latencies without client names.
    anonymous: bool = False
    # The unit of the latencies in logs of HBase 1.x and earlier, in µs.
    us: float = 1.0


def recognise_text(text: str) -> bool:
    """Whether the text contains the beginning of a test."""
    return "PerformanceEvaluation" in text and ("test run options=" in text or BEGIN.search(text) is not None)


def read_runs(source: Source) -> list[ImportedRun]:
    """Every test in the file. Raises LoadstoneError if a test is truncated."""
    logs: list[TestLog] = []
    command = ""
    for index, line in enumerate(source.bare_lines):
        if line_command := find_command(line, PROGRAM, 0, COMMAND):
            command = line_command
            source.used.add(index)
        elif match := OPTIONS.search(line):
            with source.report_damage("the options of the test are truncated", CUT, index):
                logs.append(TestLog(dict(json.loads(match[1])), index, command))
            command = ""
            source.used.add(index)
        elif logs or BEGIN.search(line):
            if not logs or (logs[-1].summary is not None and BEGIN.search(line)):
                # The first lines of the log are missing.
                logs.append(TestLog(options_of(command), index, command))
                command = ""
            with source.report_damage("a client's latencies are truncated", CUT, index):
                if read_line(logs[-1], line):
                    source.used.add(index)
    return [read_test(log, source) for log in logs]


def options_of(command: str) -> dict[str, Any]:
    """The options in a command line, named as in the JSON output of newer versions."""
    arguments = split_command(command)
    if len(arguments) < 4 or not arguments[-1].isdigit():
        return {}
    stated = parse_options(arguments[2:-2], {}, ("nomapred", "inmemory"))
    options: dict[str, Any] = {OPTION_NAMES.get(name, name): number_or_text(value) for name, value in stated.items()}
    rows = options.pop("rows", ROWS)
    if isinstance(rows, int) and not {"size", "sampleRate"} & options.keys():
        options["totalRows"] = rows * int(arguments[-1])
    return options | {"cmdName": arguments[-2]}


def read_line(log: TestLog, line: str) -> bool:
    """Parses a line, and returns whether it was recognised. Raises ValueError if it is truncated."""
    if match := LATENCY.search(line):
        pairs = (part.partition("=") for part in match[2].split(", "))
        log.latencies[match[1] or str(len(log.latencies))] = {name: parse_number(value) for name, _, value in pairs}
    elif match := MEASURES.search(line):
        log.measures[match[1] or str(len(log.measures))] = int(match[2])
    elif match := FINISHED.search(line):
        set_once(log.finished, match[1], (int(match[2]), int(match[3])))
    elif match := OLD_COUNT.search(line):
        client = match[1] or "0"
        log.sizes.discard(client)
        # Up to HBase 0.98, the line does not name the client.
        log.anonymous = log.anonymous or client in log.measures
        log.measures[client], log.us = int(match[3]), 1000.0 if match[2] == "ms" else 1.0
    elif SIZES.search(line):
        match = THREAD.search(line)
        log.sizes.add(match[1] if match else "0")
    elif (match := OLD.search(line)) and (match[1] or "0") in log.sizes:
        return False
    elif match := OLD.search(line):
        log.latencies.setdefault(match[1] or "0", {})[OLD_NAMES.get(match[2], match[2])] = (
            parse_number(match[3]) or 0.0
        ) * log.us
    elif match := SUMMARY.search(line):
        log.name, log.summary = match[1], match[2].split(",")
    else:
        return False
    return True


def read_test(log: TestLog, source: Source) -> ImportedRun:
    """A test's figures. Raises LoadstoneError if the log ends before the test does."""
    test = str(log.options.get("cmdName") or log.name or "test").lower()
    stated = log.options.get("numClientThreads")
    clients = stated if isinstance(stated, int) and stated > 0 else len(log.summary or ())
    if log.summary is None and MAPREDUCE in source.text:
        message = f"the test {test} ran as a MapReduce job, whose output has no times and latencies of clients"
        raise source.error_at(f"{message}: this mode is not supported", "run it with --nomapred", log.line)
    if log.summary is None or not log.finished:
        raise source.error_at(f"the log ends before the test {test} does: it has no summary of timings", CUT, log.line)
    if len(log.finished) != clients:
        raise source.error_at(f"{len(log.finished)} of {clients} clients finished the test {test}", CUT, log.line)
    if sorted(map(int, log.summary)) != sorted(time for time, _ in log.finished.values()):
        message = f"the summary of timings of the test {test} differs from the times of its clients"
        raise source.error_at(message, CUT, log.line)
    run = ImportedRun(dimensions={"test": test}, clients=clients, facts={"tool": NAME}, step_ns=log.us * US)
    names = {option: fact for fact, option in FACTS.items()}
    for option, value in log.options.items():
        if isinstance(value, int | float | str) and option not in NOT_OF_WORK:
            run.facts[names.get(option, f"work.{option}")] = value
    run.facts |= {"command": command_fact(log.command)} if log.command else {}
    rows = sum(part for _, part in log.finished.values())
    longest = max(part for part, _ in log.finished.values())
    rate = rows * 1000 / longest if longest else None
    run.add_figure("throughput", rate, "op/s", rows, rate / longest if rate else 0.0)
    run.add_figure("runtime", longest * 1e6, "ns", 1, 1e6)
    run.add_figure("operations", rows, OPERATIONS, rows)
    add_latencies(log, test, run, source)
    return run


def add_latencies(log: TestLog, test: str, run: ImportedRun, source: Source) -> None:
    """Adds the latencies of all clients, where they can be combined."""
    if log.anonymous:
        message = "its lines do not name the client, so latencies of several clients cannot be separated"
        run.add_note("percentiles-left-out", message, "run PerformanceEvaluation with one client")
        return
    if any(figures.get("mean") is not None and client not in log.measures for client, figures in log.latencies.items()):
        raise source.error_at("the latencies of a client have no count", CUT, log.line)
    parts = [(figures, log.measures.get(client, 0)) for client, figures in log.latencies.items()]
    parts = [(figures, count) for figures, count in parts if count and figures.get("mean") is not None]
    n = sum(count for _, count in parts)
    if n and len(parts) != len(log.finished):
        raise source.error_at(
            f"only {len(parts)} of {len(log.finished)} clients have latencies with a count", CUT, log.line
        )
    rows = sum(count for _, count in log.finished.values())
    if n > rows and rows:
        # PerformanceEvaluation may measure only some rows, or several rows at once, but never more than all rows.
        check_total(source, n, rows, log.line)
    if not n:
        return
    for name in dict.fromkeys(name for figures, _ in parts for name in figures):
        if name in ("stdDev", "StdDev"):
            run.omitted[name] = None
        elif name not in ("mean", "min", "max") and not name.endswith("th"):
            run.unknown[name] = None
    mean = sum((figures["mean"] or 0.0) * count for figures, count in parts) / n
    run.add_figure(f"{test}.count", n, OPERATIONS, n)
    run.add_figure(f"{test}.mean", mean * US, "ns", n)
    # One measured call may cover several rows.
    if not log.options.get("multiGet") and not log.options.get("multiPut"):
        run.add_figure(f"{ALL}.mean", mean * US, "ns", n)
    for name, choose in (("min", min), ("max", max)):
        if values := [value for figures, _ in parts if (value := figures.get(name)) is not None]:
            run.add_figure(f"{test}.{name}", choose(values) * US, "ns", n)
    if len(parts) == 1:
        for name, value in parts[0][0].items():
            if value is not None and name.endswith("th"):
                run.add_figure(f"{test}.p{name.removesuffix('th')}", value * US, "ns", n)
        return
    message = f"each of {len(parts)} clients has its own percentiles, which cannot be combined"
    hint = "run PerformanceEvaluation with one client for its percentiles, or measure with Loadstone"
    run.add_note("percentiles-left-out", message, hint)
