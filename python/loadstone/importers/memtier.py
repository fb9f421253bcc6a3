"""The report of memtier_benchmark 1 and 2, as text or JSON (`--json-out-file`).

A command type without operations has filler values. With several runs (`-x`), memtier_benchmark prints all of them
with `--print-all-runs`; otherwise, it prints the best run, the worst run and the average of all runs. In that case,
only the average is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from loadstone.format import units
from loadstone.importers.command_line import command_fact, find_command, split_command
from loadstone.importers.json_text import Document, list_numbered, read_documents
from loadstone.importers.number import number_or_text, parse_number
from loadstone.importers.run import (
    ALL,
    OPERATIONS,
    ImportedRun,
    build_series,
    check_rate,
    check_total,
    mix_fact,
    set_once,
)
from loadstone.importers.source import Source
from loadstone.results.trial_result import Series

NAME = "memtier"
TITLE = "memtier_benchmark"
SIGN = '"run information"'
SECTION = re.compile(r"^(ALL STATS|RUN #\d+ RESULTS|BEST RUN RESULTS|WORST RUN RESULTS|AGGREGATED AVERAGE RESULTS.*)$")
AVERAGE = re.compile(r"AGGREGATED AVERAGE RESULTS \((\d+) runs\)")
SETTING = re.compile(r"^(\d+)\s+(Threads|Connections per thread|Requests per client|Seconds)$")
TOTALS = "Totals"
SERIES = "Time-Serie"
MS = 1e6
COLUMNS = {
    "Avg. Latency": "mean",
    "Average Latency": "mean",
    "Latency": "mean",
    "Min Latency": "min",
    "Max Latency": "max",
}
PERCENTILE = re.compile(r"p([\d.]+)(?: Latency)?")
# Columns that have no corresponding figure in a result.
NOT_READ = re.compile(r"(Hits|Misses|MOVED|ASK)/sec|KB/sec.*|Connection Errors.*|Accumulated Latency")
# Columns that are read elsewhere.
READ = ("Type", "Count", "Ops/sec", "Percentile Latencies", SERIES)
REPLY = re.compile(r"handle error response: (.+)$")
INTERRUPTED = re.compile(r"^\[RUN #\d+\] Interrupted by user")
SHORT = {"P": "protocol", "d": "data_size", "R": "random_data", "n": "requests", "c": "clients", "t": "threads"}
# The values of options that the command line omits (memtier_benchmark.cpp: config_init_defaults).
DEFAULTS = {"protocol": "redis", "pipeline": "1", "data_size": "32", "key_minimum": "0", "key_maximum": "10000000",
            "key_pattern": "R:R", "ratio": "1:10", "data_size_pattern": "R"}  # fmt: skip
# Options that change the work of an operation, and that are not recorded as facts with other names.
OPTIONS = (
    "protocol", "tls", "ratio", "data_size_range", "data_size_list", "data_size_pattern", "random_data", "data_import",
    "expiry_range", "no-expiry", "generate_keys", "key_pattern", "key_stddev", "key_median", "key_zipf_exp",
    "multi_key_get", "reconnect_interval", "wait-ratio", "num-slaves", "wait-timeout", "cluster_mode", "clients_start",
    "command", "command_ratio", "command_key_pattern",
)  # fmt: skip
UNSET = ("", "0:0", "None")
DISTRIBUTIONS = {"R": "uniform", "G": "gaussian", "S": "sequential", "P": "sequential", "Z": "zipfian"}
# Keys of a command type's figures, which do not occur in lists of seconds.
OF_COMMAND = re.compile(r"p[\d.]+|Count|Histogram.*|Percentile.*|.* Latency|.*(?:Bytes|KB|/sec).*")
CUT = "import memtier_benchmark's whole output, up to its Totals, or its --json-out-file"

Section = dict[str, Mapping[str, Any]]


@dataclass
class MemtierReport:
    """The text of a report: its settings, its sections, and the command line above it."""

    line: int
    command: str = ""
    interrupted: bool = False
    replies: list[str] = field(default_factory=list)
    settings: dict[str, int] = field(default_factory=dict)
    sections: dict[str, Section] = field(default_factory=dict)


def recognise_text(text: str) -> bool:
    """Whether the text contains a report, or the beginning of a report."""
    return SIGN in text or re.search(r"(?m)^\d+\s+Connections per thread\s*$|^Totals\s+[\d.]+\s", text) is not None


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    if SIGN in source.text:
        result: list[ImportedRun] = []
        read_documents(source, SIGN, CUT, lambda document: result.extend(read_json(document, source)), "memtier report")
        return result
    reports: list[MemtierReport] = []
    header: list[tuple[str, int]] = []
    section: Section = {}
    command, interrupted = "", False
    replies: list[str] = []
    for index, line in enumerate(source.bare_lines):
        text = line.rstrip()
        if line_command := find_command(text, "memtier_benchmark"):
            command = line_command
        elif match := SETTING.match(text):
            if not reports or reports[-1].sections:
                reports.append(MemtierReport(index, command, interrupted, replies))
                command, interrupted, replies = "", False, []
            with source.report_damage("the memtier report is damaged: {error}", CUT, index):
                set_once(reports[-1].settings, match[2], int(match[1]))
        elif match := SECTION.match(text):
            if not reports or match[1] in reports[-1].sections:
                reports.append(MemtierReport(index, command, interrupted, replies))
                command, interrupted, replies = "", False, []
            section = reports[-1].sections.setdefault(match[1], {})
        elif match := REPLY.search(text):
            replies.append(match[1])
        elif INTERRUPTED.search(text):
            interrupted = True
        elif re.match(r"Type\s", text) and "Ops/sec" in text:
            if reports and not reports[-1].sections:
                # The first versions print only one table, without a title.
                section = reports[-1].sections.setdefault("ALL STATS", {})
            header = [(match[0].strip(), match.end()) for match in re.finditer(r"\S+(?: \S+)*", text)]
        elif header and reports and (cells := text.split()) and len(cells) == len(header) and TOTALS not in section:
            if source.torn and index == source.last:
                # The last cell may be truncated; its column has no corresponding figure in a result.
                cells.pop()
            section[cells[0]] = {name: cell for (name, _), cell in zip(header, cells, strict=False) if cell != "---"}
        else:
            continue
        source.used.add(index)
    result = []
    for report in reports:
        if not report.sections or any(TOTALS not in part for part in report.sections.values()):
            raise source.error_at("the memtier report is truncated: it has no Totals", CUT, report.line)
        with source.report_damage("the memtier report is damaged: {error}", CUT, report.line):
            configuration = parse_options(report.command) if report.command else {}
            runs = read_sections(report.sections, report.settings, configuration, source)
            for run in runs:
                run.note_replies(report.replies)
                if report.interrupted:
                    run.mark_stopped("the run was interrupted")
                run.facts |= {"command": command_fact(report.command)} if report.command else {}
            result += runs
    return result


def read_series(seconds: Mapping[str, Mapping[str, Any]], length: float) -> Series | None:
    """The counts in each second as a time series; the last second may be shorter.

    memtier_benchmark omits the seconds in which it completed no operation.
    """
    parts = {int(name): part for name, part in list_numbered(seconds, OF_COMMAND)}
    rows = []
    for start in range(math.ceil(length)) if parts else ():
        part, lasts = parts.get(start, {"Count": 0}), min(length - start, 1.0)
        p50, p99 = (float(part[name]) * MS if name in part else None for name in ("p50.00", "p99.00"))
        rows.append((start, lasts, float(part["Count"]) / lasts, p50, p99))
    return build_series(rows)


def parse_options(command: str) -> dict[str, str]:
    """The options in a command line, with their defaults, keyed by their names in the JSON report."""
    arguments = split_command(command)[1:]
    options = dict(DEFAULTS)
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if match := re.fullmatch(r"--([\w-]+)(?:=(.*))?|-(\w)(.*)", word):
            name = SHORT.get(match[3], match[3]) if match[3] else match[1]
            value = match[2] or match[4] or ("true" if following.startswith("-") else following) or "true"
            key = name if name in OPTIONS else name.replace("-", "_")
            # Each `--command` adds a type of command.
            options[key] = f"{options[key]}; {value}" if key == "command" and key in options else value
    if "data_size_range" in options or "data_size_list" in options:
        options["data_size"] = "0"
        options["data_size_range"] = options.get("data_size_range", "").replace("-", ":")
    options["rate_limit"] = options.get("rate_limiting", "0")
    return options


def read_json(document: Document, source: Source) -> list[ImportedRun]:
    """The runs of a JSON report."""
    sections = {name: dict(document[name].items()) for name in document if SECTION.match(name)}
    return read_sections(sections, document["run information"], document.get("configuration", {}), source)


def read_sections(
    sections: Mapping[str, Section], settings: Mapping[str, Any], configuration: Mapping[str, Any], source: Source
) -> list[ImportedRun]:
    """The runs in a report: each run, or their average if the report does not contain each run."""
    numbered = [name for name in sections if name.startswith("RUN #")]
    average = next((name for name in sections if AVERAGE.match(name)), None)
    names = numbered or (["ALL STATS"] if "ALL STATS" in sections else [])
    if not names and average:
        # The best and the worst run are ignored: they are a selection, and version 2 prints the same run as both.
        names = [average]
    if not names:
        raise KeyError("ALL STATS")
    result = [read_section(sections[name], settings, configuration, source) for name in names]
    for run in result:
        run.omitted |= dict.fromkeys(name for name in sections if name not in names)
    for run in result if average is not None and names == [average] else ():
        # The counts cover all runs, and the time is a filler value.
        run.values = [value for value in run.values if value.metric not in ("operations", "runtime")]
        run.add_note("averages", f"its figures are averages: {str(average).lower()}", "run it with --print-all-runs")
    return result


def read_section(
    section: Section, settings: Mapping[str, Any], configuration: Mapping[str, Any], source: Source
) -> ImportedRun:
    """The figures of one run. Raises ValueError or LookupError if a figure is missing."""
    run = ImportedRun(facts={"tool": NAME, "latency": "service"})
    if "Threads" in settings and "Connections per thread" in settings:
        run.clients = int(settings["Threads"]) * int(settings["Connections per thread"])
    add_facts(run, configuration)
    runtime = section.get("Runtime", {})
    if str(runtime.get("Interrupted", "false")) == "true":
        run.mark_stopped("the run was interrupted")
    run.start_unix_ns = int(runtime["Start time"]) * 10**6 if runtime.get("Start time") else None
    totals = section[TOTALS]
    if lost := parse_number(str(totals.get("Connection Errors", 0))):
        message = f"{lost:,.0f} connection errors, which do not count as operations"
        run.add_note("connection-errors", message, "see the log of memtier_benchmark")
    rate = parse_number(str(totals["Ops/sec"])) or 0.0
    seconds = settings.get("Seconds")
    known = int(settings["Requests per client"]) * (run.clients or 0) if "Requests per client" in settings else None
    # Without the number of requests and the duration, the number of operations is unknown.
    n = int(totals.get("Count", known or rate * float(seconds or 0)))
    # Lists are latency distributions.
    run.omitted |= {name: None for name, part in section.items() if not isinstance(part, Mapping)}
    tables = {name: part for name, part in section.items() if isinstance(part, Mapping) and "Ops/sec" in part}
    parts = {name: part for name, part in tables.items() if name != TOTALS and parse_number(str(part["Ops/sec"]))}
    rates = {name: parse_number(str(part["Ops/sec"])) or 0.0 for name, part in parts.items()}
    check_total(source, sum(rates.values()), rate, None, slack=0.01 * rate + 0.1)
    if rate or not n:
        run.add_text("throughput", str(totals["Ops/sec"]), 1.0, "op/s", n)
    else:
        # Some versions print zeros if their clients are still busy when the run ends.
        run.add_note("not-a-number", f"memtier_benchmark printed 0 op/s for {n:,} operations", "use another version")
    if "Total duration" in runtime and "Count" in totals:
        # The duration is in whole ms.
        check_rate(rate, float(runtime["Total duration"]) / 1000, n, slack=0.002 * rate)
    if "Total duration" in runtime:
        run.add_figure("runtime", float(runtime["Total duration"]) * MS, "ns", 1, MS)
    elif rate and n:
        run.add_figure("runtime", n / rate * 1e9, "ns", 1, MS)
    run.add_figure("operations", n or None, OPERATIONS, n)
    if lost:
        run.add_figure("attempts.failed", lost, OPERATIONS, n)
    means, counts = {}, {}
    for name, part in parts.items():
        operation = name.lower().removesuffix("s")
        counts[operation] = int(part.get("Count", n * rates[name] / rate if rate else 0))
        if n:
            run.statuses[operation.upper()] = {"OK": counts[operation]}
        run.add_text(f"{operation}.throughput", str(part["Ops/sec"]), 1.0, "op/s", counts[operation])
        add_latencies(run, operation, part, counts[operation])
        mean = next((value.value for value in run.values if value.metric == f"{operation}.mean"), None)
        means[operation] = mean
    add_latencies(run, ALL, totals, n)
    run.series = read_series(totals.get(SERIES, {}), float(runtime.get("Total duration", 0)) / 1000)
    # Version 2 prints a mean of 0 for all commands together.
    run.values = [value for value in run.values if value.metric != f"{ALL}.mean" or value.value]
    if all(mean is not None for mean in means.values()) and not any(
        value.metric == f"{ALL}.mean" for value in run.values
    ):
        total = sum(counts.values())
        run.add_figure(
            f"{ALL}.mean", sum((means[name] or 0) * counts[name] for name in counts) / total if total else None, "ns", n
        )
    misses = parse_number(str(totals.get("Misses/sec", 0))) or 0.0
    hits = parse_number(str(totals.get("Hits/sec", 0))) or 0.0
    if misses + hits:
        run.add_figure("misses", misses / (misses + hits), "share", n)
    if misses:
        run.add_note(
            "misses",
            f"{units.format_percent(misses / (misses + hits))} of its reads found no value",
            "load the keys before reading",
        )
    if rates:
        run.facts["mix"] = mix_fact({name.lower().removesuffix("s"): share for name, share in rates.items()})
    return run


def add_latencies(run: ImportedRun, name: str, part: Mapping[str, Any], n: int) -> None:
    """Adds the latencies of a command type, which are in ms."""
    nested = part.get("Percentile Latencies", {})
    run.omitted |= {key: None for key, value in nested.items() if isinstance(value, Mapping)}
    distribution = {key: value for key, value in nested.items() if not isinstance(value, Mapping)}
    for label, value in (dict(part.items()) | distribution).items():
        match = PERCENTILE.fullmatch(label)
        statistic = COLUMNS.get(label) or (f"p{float(match[1]):g}" if match else None)
        if statistic is None:
            if label not in READ:
                (run.omitted if NOT_READ.fullmatch(label) else run.unknown)[label] = None
        elif not any(known.metric == f"{name}.{statistic}" for known in run.values):
            text = value if isinstance(value, str) else f"{value:.3f}"
            run.add_text(f"{name}.{statistic}", text, MS, "ns", n)


def add_facts(run: ImportedRun, configuration: Mapping[str, Any]) -> None:
    """Adds facts about the work, from the JSON report or from a command line."""
    if not configuration:
        return
    run.facts["pipeline"] = int(configuration.get("pipeline", 1))
    # The size is 0 if there is a range or a list of sizes, which is also recorded as a fact.
    run.facts |= {"record_bytes": size} if (size := int(configuration.get("data_size", 0))) else {}
    run.facts["records"] = int(configuration.get("key_maximum", 0)) - int(configuration.get("key_minimum", 0)) + 1
    pattern = str(configuration.get("key_pattern", ""))
    run.facts["distribution"] = DISTRIBUTIONS.get(pattern.rpartition(":")[2], pattern)
    for name in OPTIONS:
        if name in configuration and (text := str(configuration[name])) not in UNSET:
            run.facts[f"work.{name.replace('-', '_')}"] = number_or_text(text)
    if rate := int(configuration.get("rate_limit", 0)):
        # `rate_limit` applies to each connection.
        run.loop = "open"
        run.facts["target"] = rate * (run.clients or 1)
