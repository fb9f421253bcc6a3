"""The report of any test of sysbench 0.4 to 1.1: its events, with their rate and latency.

Latencies are in ms with two decimals. With `--rate`, they include the wait in sysbench's queue, so they are response
times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePath

from loadstone.format import units
from loadstone.importers.command_line import SECRET, command_fact, find_command, split_command
from loadstone.importers.number import last_digit, number_or_text, parse_number
from loadstone.importers.run import (
    ALL,
    OPERATIONS,
    ImportedRun,
    build_series,
    check_rate,
    check_total,
    set_once,
)
from loadstone.importers.source import Source
from loadstone.results.trial_result import Scalar

NAME = "sysbench"
TITLE = "sysbench"
VERSION = re.compile(r"sysbench (\d\S*)(?: \(|:)")
# The beginning of the output, or of the last section if only the results were copied.
BEGIN = re.compile(r"(?m)sysbench \d\S*(?: \(|:)|Running the test with following options|^Threads fairness:\s*$")
# The arguments of a command without options.
COMMAND = r"\S+\s+(?:run|prepare|warmup|cleanup)"
# Options that the report repeats or that set its form, and options of the database connection.
NOT_OF_WORK = re.compile(
    r"(num-)?threads|(max-)?time|events|max-requests|(tx-)?rate|report-.*|histogram|percentile|test"
)
CONNECTION = re.compile(r"mysql|pgsql|db-")
INTERVAL = re.compile(r"\[ *(\d+)s *\].*?(?:thds|threads): *\d+,? (?:eps|tps|reads): *([\d.]+)")
FIELD = re.compile(
    r"^\s*([A-Za-z0-9][\w \t,./()%-]*?):\s+(\d[\d.]*\w*(?:/[\w.]+)?(?:\s+\([\d.]+ per sec(?:ond|\.)\))?"
    r"|(?!IOPS=)[^\s\d].*?)\s*$"
)
SECTION = re.compile(r"^ ?[A-Z][\w /()]*(?: \(ms\))?:\s*$|^\s+(?:queries performed|per-request statistics):\s*$")
PERCENTILE = re.compile(r"(?:approx\.\s+)?(\d+)(?:th|st|nd|rd)?\s+percentile")
FIGURES = {"min": "min", "avg": "mean", "max": "max"}
# The last line of every version.
END = re.compile(r"^\s*execution time \(avg/stddev\):\s+[\d.]+/[\d.]+")
# With `--report-checkpoints`, each report covers the events since the previous report, but its `total time` covers the
# whole run so far.
CHECKPOINT = re.compile(r"^\[ *\d+s *\] Checkpoint report:")
# Options of the test `fileio`, which are printed as sentences.
LAYOUT = re.compile(
    r"(?:Block size (?P<block>\S+[Bb])|(?P<size>\S+[Bb]) total file size|Doing (?P<mode>.+) test"
    r"|(?P<files>\d+) files, \S+[Bb] each|Using (?P<io_mode>.+) I/O mode"
    r"|Periodic FSYNC enabled, calling fsync\(\) each (?P<fsync_every>\d+) requests\.)$"
)
FACTS = {"block": "block_size", "block size": "block_size", "size": "size", "mode": "mode", "files": "work.files",
         "io_mode": "work.io_mode", "fsync_every": "work.fsync_every", "Prime numbers limit": "primes"}  # fmt: skip
TESTS = ("CPU speed", "SQL statistics", "File operations")
# Figures of the test `fileio`, in version 0.4 and in version 1.1, whose report ends with the sum of its latencies.
PERFORMED = re.compile(r"^Operations performed:\s+(\d+) Read, (\d+) Write, (\d+) Other = \d+ Total$")
DIRECTION = re.compile(
    r"^\s+(?P<name>read(?=.*B/s\)$)|write(?=.*B/s\)$)|fsync):\s+IOPS=(\d+\.\d\d)(?: ([\d.]+) MiB/s \([\d.]+ MB/s\))?$"
)
EXECUTED = re.compile(r"^\s*([\d.]+) Requests/sec executed$")
LATENCY_SUM = re.compile(r"^\s+sum:\s+[\d.]+$")
# The data moved by the test `memory`.
TRANSFERRED = re.compile(r"^[\d.]+ Mi?B transferred \(([\d.]+) Mi?B/sec\)$")
# Figures of the test `fileio`, since version 1.0.
FILES = {"reads/s": "read.throughput", "writes/s": "write.throughput", "fsyncs/s": "sync.throughput",
         "read, MiB/s": "read.bandwidth", "written, MiB/s": "write.bandwidth"}  # fmt: skip
PER_SECOND = ("transactions", "queries", "read/write requests", "other operations", "ignored errors", "reconnects",
              "deadlocks", "Total operations")  # fmt: skip
LATENCIES = ("Latency", "General statistics", "per-request statistics", "response time", "Test execution summary")
# Settings that are not options of a test, lines that are read, and lines that have no corresponding figure in a result.
OPTIONS = "Running the test with following options"
SETTINGS = ("Number of threads", "Target transaction rate", "Warmup time")
PERFORMED_NAMES = ("reads performed", "writes performed", "other operations performed")
READ = (
    *PERFORMED_NAMES,
    "requests/s",
    "transactions",
    "read",
    "write",
    "other",
    "total",
    "total time",
    "time elapsed",
    "total number of events",
)
NOT_READ = ("events/s (eps)", "events per second", "events (avg/stddev)", "execution time (avg/stddev)")
RATES = ("events/s (eps)", "events per second")
# The largest difference between the time that the rates of a report cover and its total time, s.
DELAY = 0.01
MIB = 1 << 20
MS = 1e6
CUT = "import sysbench's whole output, up to its section on thread fairness"


@dataclass
class SysbenchReport:
    """The output of one run."""

    line: int = 0
    version: str = ""
    command: str = ""
    # The fields of the report, keyed by section and name.
    fields: dict[tuple[str, str], str] = field(default_factory=dict)
    section: str = ""
    test: str = ""
    intervals: list[tuple[float, float]] = field(default_factory=list)
    ended: bool = False
    # The number of checkpoints, and the fields of their reports.
    checkpoints: int = 0
    segments: list[dict[tuple[str, str], str]] = field(default_factory=list)
    # For each direction of version 1.1's test `fileio`: its rate and its bandwidth in MiB/s.
    directions: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        """Whether this is the output of a run, and not of `prepare`, `cleanup` or `help`."""
        results = any(section not in ("", OPTIONS) for section, _ in self.fields)
        return results or bool(self.intervals) or (OPTIONS, "Number of threads") in self.fields


def recognise_text(text: str) -> bool:
    """Whether the text contains a report, or the beginning of a report."""
    return BEGIN.search(text) is not None


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    reports = [SysbenchReport()]
    for index, line in enumerate(source.bare_lines):
        report = reports[-1]
        begins = VERSION.search(line) or line.startswith("Running the test")
        interval = INTERVAL.search(line)
        # A run that was interrupted has no report, and the next run begins with its version or its options.
        restarts = bool(interval and report.intervals and float(interval[1]) < report.intervals[-1][0])
        restarts = restarts or (bool(report.fields) and bool(begins))
        follows = begins or find_command(line, NAME, 2, COMMAND) or (not report.checkpoints and SECTION.match(line))
        if restarts if not report.ended else follows:
            report = SysbenchReport(line=index)
            reports.append(report)
        with source.report_damage("a line of the sysbench report is damaged: {error}", CUT, index):
            if parse_line(report, line):
                source.used.add(index)
    for report, following in pairwise(reports):
        if not report.is_run:
            # The last command before a run belongs to that run.
            following.command = following.command or report.command
    reports = [report for report in reports if report.is_run] or reports
    for report in reports:
        if not report.ended or len(report.segments) < report.checkpoints:
            raise source.error_at("the sysbench report is truncated: its thread fairness is missing", CUT, report.line)
    result = []
    for report in reports:
        with source.report_damage("the sysbench report is damaged: {error}", CUT, report.line):
            result.append(read_segments(report, source) if report.checkpoints else read_report(report, source))
    return result


def parse_line(report: SysbenchReport, line: str) -> bool:
    """Parses a line, and returns whether it was recognised."""
    is_checkpoint = CHECKPOINT.match(line) is not None
    if report.ended and (is_checkpoint or (report.checkpoints and SECTION.match(line))):
        report.segments.append({key: text for key, text in report.fields.items() if key[0] != OPTIONS})
        report.fields = {key: text for key, text in report.fields.items() if key[0] == OPTIONS}
        report.ended = False
    if report.ended:
        return False
    if is_checkpoint:
        report.checkpoints += 1
    elif command := find_command(line, NAME, 2, COMMAND):
        report.command = command
    elif match := VERSION.search(line):
        report.version = match[1]
    elif match := INTERVAL.search(line):
        report.intervals.append((float(match[1]), float(match[2])))
    elif END.match(line):
        report.ended = True
    elif match := LAYOUT.match(line):
        # Version 0.4 prints Kb for KiB.
        report.fields[OPTIONS, match.lastgroup or ""] = re.sub(r"(?<=[KMG])b$", "iB", match[match.lastgroup or 0])
    elif match := PERFORMED.match(line):
        report.fields |= {("File operations", name): match[index] for index, name in enumerate(PERFORMED_NAMES, 1)}
    elif match := EXECUTED.match(line):
        report.fields["File operations", "requests/s"] = match[1]
    elif match := DIRECTION.match(line):
        set_once(report.directions, match[1], (match[2], match[3]))
    elif match := TRANSFERRED.match(line):
        report.fields["", "transferred"] = match[1]
    elif SECTION.match(line):
        # Options precede the first section.
        report.section = OPTIONS if line.startswith("Running ") else line.strip().rstrip(":").removesuffix(" (ms)")
        report.test = report.section if report.section in TESTS else report.test
    elif (match := FIELD.match(line)) and not match[1].isupper():
        # DEBUG and WARNING are log levels, not names of fields.
        set_once(report.fields, ("" if match[1] == "Total operations" else report.section, match[1]), match[2])
        # With directions, version 1.1 prints neither the number of events nor the thread fairness.
        report.ended = bool(report.directions) and LATENCY_SUM.match(line) is not None
    else:
        return False
    return True


def command_facts(command: str) -> dict[str, Scalar]:
    """The script, tables and work options in a command, and its connection options (prefix `store.`)."""
    if not command:
        return {}
    facts: dict[str, Scalar] = {"command": command_fact(command)}
    arguments = split_command(command)[1:]
    # Values always follow an equals sign.
    pairs = (word.lstrip("-").partition("=") for word in arguments if word.startswith("-"))
    options = {name: text or "true" for name, _, text in pairs}
    script = next((word for word in arguments if not word.startswith("-") and word != "run"), "")
    facts |= {"script": PurePath(script).name.removesuffix(".lua")} if script else {}
    for name, text in options.items():
        if not NOT_OF_WORK.fullmatch(name) and not SECRET.search(name):
            prefix = "store" if CONNECTION.match(name) else "work"
            facts[f"{prefix}.{name.replace('-', '_')}"] = number_or_text(text)
    # Each table of the bundled OLTP tests has 10,000 rows by default.
    sizes = options.get("table-size", options.get("oltp-table-size", "10000" if "oltp" in script else ""))
    tables = options.get("tables", options.get("oltp-tables-count", "1"))
    return facts | ({"records": int(sizes) * int(tables)} if sizes.isdigit() and tables.isdigit() else {})


def read_report(report: SysbenchReport, source: Source) -> ImportedRun:
    """A report's figures. Raises ValueError if a figure is missing or not a number."""
    fields = {name: text for (_, name), text in report.fields.items()}
    run = ImportedRun(facts={"tool": NAME})
    run.facts |= {"version": report.version} if report.version else {}
    run.facts |= command_facts(report.command)
    run.facts |= {"test": report.test} if report.test else {}
    run.facts |= {fact: fields[name] for name, fact in FACTS.items() if name in fields}
    for (section, name), text in report.fields.items():
        if section == OPTIONS and name not in (*FACTS, *SETTINGS):
            # This is an option of the test.
            run.facts[f"work.{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')}"] = text
        elif section not in ("", OPTIONS, *LATENCIES) and name not in (*READ, *FILES):
            (run.omitted if name in (*PER_SECOND, *NOT_READ) else run.unknown)[name] = None
    run.clients = int(fields["Number of threads"]) if "Number of threads" in fields else None
    if rate := re.match(r"(\d+)/sec", fields.get("Target transaction rate", "")):
        run.loop = "open"
        run.facts |= {"target": int(rate[1]), "latency": "response"}
    if report.directions:
        add_directions(report, run)
        return run
    # sysbench 1.1 renamed the field with the time, and prints it with the throughput.
    time = (fields["total time"] if "total time" in fields else fields["time elapsed"]).rstrip("s")
    events = int(fields["total number of events"])
    seconds = parse_number(time) or 0.0
    run.add_figure("throughput", events / seconds if seconds else None, "op/s", events, rate_resolution(fields, time))
    run.add_text("runtime", time, 1e9, "ns", 1)
    run.add_figure("operations", events, OPERATIONS, events)
    for field_name in (name for name in PER_SECOND if seconds and name in fields):
        if match := re.match(r"(\d+)\s+\(([\d.]+) per sec(?:\.|ond)\)", fields[field_name]):
            check_rate(float(match[2]), seconds, int(match[1]), slack=DELAY * float(match[2]))
    for field_name in (name for name in RATES if seconds and name in fields):
        check_rate(printed := parse_number(fields[field_name]) or 0.0, seconds, events, slack=DELAY * printed)
    rates = [parse_number(fields[name]) or 0.0 for name in ("reads/s", "writes/s", "fsyncs/s") if name in fields]
    if seconds and len(rates) == 3:
        # The first versions of 1.0 do not count fsync as an event.
        before_fsync = abs(sum(rates[:2]) * seconds - events) <= 1 + 0.01 * events
        check_rate(sum(rates[:2] if before_fsync else rates), seconds, events)
    if transactions := fields.get("transactions"):
        count = int(transactions.split()[0])
        check_total(source, count, events, report.line)
        if "ignored errors" in fields:
            ignored = int(fields["ignored errors"].split()[0])
            run.add_figure("errors", ignored, OPERATIONS, events + ignored)
        if reconnects := int(fields.get("reconnects", "0").split()[0]):
            message = f"{units.count_noun(reconnects, 'reconnect')}, which do not count as failed transactions"
            run.add_note("connection-errors", message, "see the log of the server")
        parts = {name: report.fields.get(("queries performed", name)) for name in ("read", "write", "other", "total")}
        counts = {name: int(text) for name, text in parts.items() if text}
        if "total" in counts:
            check_total(source, sum(counts.values()) - counts["total"], counts["total"], report.line)
            run.add_figure(
                "queries.throughput", counts["total"] / seconds if seconds else None, "op/s", counts["total"]
            )
    for field_name, metric in FILES.items():
        if field_name in fields:
            scale, unit = (MIB, "B/s") if metric.endswith("bandwidth") else (1.0, "op/s")
            run.add_text(metric, fields[field_name], scale, unit, events)
    if total := fields.get("Total operations"):
        check_total(source, int(total.split()[0]), events, report.line)
    if seconds and PERFORMED_NAMES[0] in fields:
        performed = [int(fields[name]) for name in PERFORMED_NAMES]
        check_total(source, sum(performed[:2]), events, report.line)
        check_rate(parse_number(fields["requests/s"]) or 0.0, seconds, events)
        for direction, count in zip(("read", "write"), performed, strict=False):
            run.add_figure(f"{direction}.throughput", count / seconds, "op/s", count)
    if "transferred" in fields and fields.get("operation") in ("read", "write"):
        run.add_text(f"{fields['operation']}.bandwidth", fields["transferred"], MIB, "B/s", events)
    add_latencies(report, run, events)
    rows, at = [], 0.0
    for until, speed in report.intervals:
        if until > at:
            rows.append((at, until - at, speed))
            at = until
    run.series = build_series(rows)
    run.omitted |= {"intervals, except throughput": None} if rows else {}
    return run


def rate_resolution(fields: dict[str, str], time: str) -> float:
    """The resolution of the rate: the effect of one unit of the time's last digit or, if larger, the difference from
    the printed rate."""
    events, seconds = int(fields["total number of events"]), parse_number(time) or 0.0
    if not seconds:
        return 0.0
    texts = [match[1] for name in ("Total operations", "transactions")
             if (match := re.search(r"\(([\d.]+) per sec", fields.get(name, "")))]  # fmt: skip
    printed = [parse_number(text) or 0.0 for text in [*texts, *(fields[name] for name in RATES if name in fields)]]
    differences = [abs(rate - events / seconds) - 0.005 * rate for rate in printed]
    return max([events * last_digit(time) / seconds**2, *differences])


def read_segments(report: SysbenchReport, source: Source) -> ImportedRun:
    """The run that consists of the checkpoint reports and the final report. Raises the same errors as `read_report`."""
    options = {key: text for key, text in report.fields.items() if key[0] == OPTIONS}
    last = {key: text for key, text in report.fields.items() if key[0] != OPTIONS}
    parts, rows, before = [], [], 0.0
    for fields in (*report.segments, last):
        ((place, text),) = [(key, text) for key, text in fields.items() if key[1] in ("total time", "time elapsed")]
        until = parse_number(text.rstrip("s")) or 0.0
        part = replace(report, fields={**options, **fields, place: f"{until - before:.4f}s"}, intervals=[])
        parts.append(read_report(part, source))
        rows.append((before, until - before, figure_of(parts[-1], "throughput")))
        before = until
    counts = [figure_of(part, OPERATIONS) for part in parts]
    n = int(sum(counts))
    run = replace(parts[-1], values=[], series=build_series(rows))
    run.add_figure("throughput", n / before, "op/s", n)
    run.add_figure("runtime", before * 1e9, "ns", 1, 1e5)
    run.add_figure(OPERATIONS, n, OPERATIONS, n)
    mean = sum(figure_of(part, f"{ALL}.mean") * count for part, count in zip(parts, counts, strict=True)) / n
    run.add_figure(f"{ALL}.min", min(figure_of(part, f"{ALL}.min") for part in parts), "ns", n, MS / 100)
    run.add_figure(f"{ALL}.mean", mean, "ns", n, MS / 100)
    run.add_figure(f"{ALL}.max", max(figure_of(part, f"{ALL}.max") for part in parts), "ns", n, MS / 100)
    if "ignored errors" in {name for _, name in last}:
        run.add_figure("errors", sum(figure_of(part, "errors") for part in parts), OPERATIONS, n)
    names = [value.metric for value in parts[-1].values if value.metric not in {figure.metric for figure in run.values}]
    run.omitted |= dict.fromkeys(names)
    message = f"each of {len(parts)} reports (--report-checkpoints) has its own percentiles, which cannot be combined"
    run.add_note("percentiles-left-out", message, "run sysbench without --report-checkpoints")
    return run


def figure_of(run: ImportedRun, metric: str) -> float:
    """The value of a figure. Raises ValueError if the run has no such figure."""
    for value in run.values:
        if value.metric == metric:
            return value.value
    raise ValueError(f"a report has no {metric}")


def add_directions(report: SysbenchReport, run: ImportedRun) -> None:
    """Adds the figures of version 1.1's test `fileio`, which states neither its time nor its number of events."""
    if report.directions.keys() != {"read", "write", "fsync"}:
        raise ValueError("a direction is missing")
    rates = [float(rate) for rate, _ in report.directions.values()]
    run.add_figure("throughput", sum(rates), "op/s", 0, 0.01 * len(rates))
    for name, (rate, bandwidth) in report.directions.items():
        direction = "sync" if name == "fsync" else name
        run.add_text(f"{direction}.throughput", rate, 1.0, "op/s", 0)
        if bandwidth:
            run.add_text(f"{direction}.bandwidth", bandwidth, MIB, "B/s", 0)
    add_latencies(report, run, 0)
    run.omitted |= {"intervals": None} if report.intervals else {}


def add_latencies(report: SysbenchReport, run: ImportedRun, events: int) -> None:
    """Adds the latencies of all events."""
    for (section, name), text in report.fields.items():
        if section in LATENCIES:
            add_latency(run, name, text.removesuffix("ms"), events)


def add_latency(run: ImportedRun, name: str, text: str, events: int) -> None:
    """Adds the latency in a line."""
    match = PERCENTILE.fullmatch(name)
    statistic = FIGURES.get(name) or (f"p{match[1]}" if match else None)
    if statistic is not None:
        run.add_text(f"{ALL}.{statistic}", text, MS, "ns", events)
    elif name in ("sum", "total time taken by event execution"):
        run.omitted[name] = None
    elif name not in ("total time", "total number of events"):
        run.unknown[name] = None
