"""Logs of HBase's PerformanceEvaluation.

Each client prints its own percentiles; those of several clients cannot be combined, so they are left out
where there is more than one. Means (weighted by count), minima and maxima can. Throughput is rows ÷ the time of
the slowest client; PerformanceEvaluation's `Avg TPS/QPS` adds the clients' rates and is a little higher.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from loadstone.importers.number import plain
from loadstone.importers.run import ALL, OPERATIONS, Run
from loadstone.importers.source import Source

NAME = "hbase-pe"
TITLE = "HBase PerformanceEvaluation log"
OPTIONS = re.compile(r"test run options=(\{.*)$")
LATENCY = re.compile(r"(?:\[(TestClient-\d+)\].*)?Latency \(us\) : (mean=.*)$")
MEASURES = re.compile(r"(?:\[(TestClient-\d+)\].*)?Num measures \(latency\) : (\d+)")
FINISHED = re.compile(r"Finished (TestClient-\d+) in (\d+)ms over (\d+) rows")
SUMMARY = re.compile(r"\[(\w+)\] Summary of timings \(ms\): \[([\d, ]*)\]")
CUT = "import the whole log of PerformanceEvaluation, up to its summary of timings"
US = 1e3


@dataclass
class Log:
    """The output of one test: by client, latencies in µs, how many were measured, time in ms, and rows."""

    options: dict[str, Any]
    line: int
    latencies: dict[str, dict[str, float | None]] = field(default_factory=dict)
    measures: dict[str, int] = field(default_factory=dict)
    finished: dict[str, tuple[int, int]] = field(default_factory=dict)
    summary: bool = False


def recognises(text: str) -> bool:
    """Whether a test began."""
    return "PerformanceEvaluation" in text and "test run options=" in text


def runs(source: Source) -> list[Run]:
    """Every test in the file. Raises LoadstoneError when one is cut."""
    logs: list[Log] = []
    for index, line in enumerate(source.lines):
        if match := OPTIONS.search(line):
            with source.reading("the options of the test are cut", CUT, index):
                logs.append(Log(dict(json.loads(match[1])), index))
        elif logs:
            with source.reading("a client's latencies are cut", CUT, index):
                take(logs[-1], line)
    return [run(log, source) for log in logs]


def take(log: Log, line: str) -> None:
    """Takes a line. Raises ValueError when it is cut."""
    if match := LATENCY.search(line):
        pairs = (part.partition("=") for part in match[2].split(", "))
        log.latencies[match[1] or str(len(log.latencies))] = {name: plain(value) for name, _, value in pairs}
    elif match := MEASURES.search(line):
        log.measures[match[1] or str(len(log.measures))] = int(match[2])
    elif match := FINISHED.search(line):
        log.finished[match[1]] = int(match[2]), int(match[3])
    elif SUMMARY.search(line):
        log.summary = True


def run(log: Log, source: Source) -> Run:
    """A test's figures. Raises LoadstoneError when the log ends before the test."""
    test = str(log.options.get("cmdName") or "test").lower()
    given = log.options.get("numClientThreads")
    clients = given if isinstance(given, int) and given > 0 else None
    if not log.summary or not log.finished:
        raise source.error(f"the log ends before the test {test}: it has no summary of timings", CUT, log.line)
    if clients is not None and len(log.finished) != clients:
        raise source.error(f"{len(log.finished)} of {clients} clients finished the test {test}", CUT, log.line)
    found = Run(dimensions={"test": test}, clients=clients, facts={"tool": NAME}, step_ns=US)
    for fact, option in (("rows", "totalRows"), ("value_bytes", "valueSize"), ("write_ahead_log", "writeToWAL")):
        if isinstance(value := log.options.get(option), int | float | str):
            found.facts[fact] = value
    rows = sum(each for _, each in log.finished.values())
    longest = max(each for each, _ in log.finished.values())
    found.add("throughput", rows * 1000 / longest if longest else None, "op/s", rows)
    found.add("runtime", longest * 1e6, "ns", 1)
    found.add("operations", rows, OPERATIONS, rows)
    latencies(log, test, found)
    return found


def latencies(log: Log, test: str, found: Run) -> None:
    """The latencies of all clients, as far as they can be combined."""
    each = [(figures, log.measures.get(client, 0)) for client, figures in log.latencies.items()]
    each = [(figures, count) for figures, count in each if count and figures.get("mean") is not None]
    n = sum(count for _, count in each)
    if not n:
        return
    mean = sum((figures["mean"] or 0.0) * count for figures, count in each) / n
    found.add(f"{test}.count", n, OPERATIONS, n)
    found.add(f"{test}.mean", mean * US, "ns", n)
    # One measured call may cover several rows.
    if not log.options.get("multiGet") and not log.options.get("multiPut"):
        found.add(f"{ALL}.mean", mean * US, "ns", n)
    for name, choose in (("min", min), ("max", max)):
        if values := [value for figures, _ in each if (value := figures.get(name)) is not None]:
            found.add(f"{test}.{name}", choose(values) * US, "ns", n)
    if len(each) == 1:
        for name, value in each[0][0].items():
            if value is not None and name.endswith("th"):
                found.add(f"{test}.p{name.removesuffix('th')}", value * US, "ns", n)
        return
    message = f"each of {len(each)} clients has its own percentiles, and those of several cannot be combined"
    hint = "run PerformanceEvaluation with one client for its percentiles, or measure with Loadstone"
    found.note("percentiles-left-out", message, hint)
