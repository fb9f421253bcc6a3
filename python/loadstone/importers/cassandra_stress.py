"""Logs from cassandra-stress 2.1 to 5.0, Scylla's fork and cql-stress, in any locale.

cassandra-stress prints latencies in ms with one decimal, and rates without decimals. With `throttle=`, latencies are
service times; with `fixed=`, they are response times. Versions differ in their summaries: 2.1 prints no errors and no
units, 2.1 to 3.11 print `[WRITE:82369]`, and cql-stress prints no figures per operation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from loadstone.importers.cassandra_stress_facts import add_facts
from loadstone.importers.number import parse_grouped, parse_number
from loadstone.importers.run import ALL, ImportedRun, build_series, check_rate, check_total, set_once
from loadstone.importers.source import Source
from loadstone.results.trial_result import Series

NAME = "cassandra-stress"
TITLE = "cassandra-stress log"
SIGNS = re.compile(
    r"Stress Settings \*|total ops ?,|(?m:^[^\w\n]*+(?:\S+ *\| *)?[Oo]p rate +:)"
    r"|cassandra-stress +(?:user|mixed|read|write|counter_\w+) [^\n]*="
)
# With a user profile, the line has `[insert]`; with `-rate auto`, there is a run for each number of threads.
RUNNING = re.compile(r"Running (?:(.{1,300}?) )?with (\d+) thread")
SETTING = re.compile(r"\s*([A-Z][A-Za-z ()-]+): +(-?\d\S*(?: [A-Z]+)?|(?!-\d)[^\s\d].*)$")
# In a command, an option follows the type of the operations. Other lines are prose.
COMMAND = re.compile(
    r"cassandra-stress(?:\.bat)?\s+((?:user|mixed|read|write|counter_\w+)\s+['\"\\]*(?:-\w|no-warmup|[\w-]+\\?[=(<>]).*)$"
)
# A column of versions up to 2.0, whose summaries average only the middle 80 % of the rows.
OLDER = "interval_op_rate"
CQL_STRESS = re.compile(r"(?i)cql-stress")
SUMMARY = re.compile(
    r"([A-Za-z][\w. ()]+?)\s*:\s*([^\[\d]*|[^\[\d]*\d[^ \t\[]*(?:\s+(?:\w+/s|m?s|seconds|[KMG]?i?B))?)\s*"
    r"(?:\[([^\[\]]*:[^\[\]]*|)\])?\s*$"
)
OPERATION_FIGURE = re.compile(r"([A-Za-z_][\w.-]*):\s*(NaN|[\d.,'\u2019\u00a0\u202f]*\d)")
STATISTICS = {
    "mean": "mean",
    "median": "p50",
    "95th percentile": "p95",
    "99th percentile": "p99",
    "99.9th percentile": "p99.9",
    "max": "max",
}
LATENCY = "latency "
PERCENTILE = re.compile(r"([\d.]+)th percentile")
# The last line of a complete summary, which ends a run.
LAST = "total operation time"
FIRST = re.compile(r"(?i)\W*op rate +:")
REQUIRED = ("op rate", "latency mean", "latency max", LAST)
# Lines of a summary that have no corresponding figure in a result.
NOT_READ = re.compile(r"partition rate|row rate|total gc .*|avg gc .*|st\w*dev gc .*|improvement over .*")
# The columns that form the time series.
SERIES = ("op/s", "med", ".99", "time")
COUNTS = ("total partitions", "total operations")
ERRORS = "total errors"
CUT = "import the whole output of cassandra-stress, from its settings to END"
MS = 1e6
# The maximum length of a summary line: enough for several operations, but short enough to exclude other lines.
SUMMARY_MAX = 1000
SETTINGS = (
    "Type", "Count", "Thread Count", "OpsPer Sec", "Consistency Level", "Replication Strategy Options", "Sequence",
    "Distribution", "Size Distribution", "Count Distribution", "Command Ratios", "Operation", "Duration",
    # The names that cql-stress uses.
    "Column Names", "Partition Key Seed Distribution", "Coordinated-Omission-Fixed Latencies",
)  # fmt: skip
SETTING_NAMES = {name.lower(): name for name in SETTINGS}


@dataclass
class StressLog:
    """The output of one run."""

    settings: dict[str, str] = field(default_factory=dict)
    command: str = ""
    tool: str = NAME
    clients: int | None = None
    start_line: int | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[list[float | None]] = field(default_factory=list)
    unread: int = 0
    results: bool = False
    # Keyed by name in lower case: the figure for all operations, and the figures for each operation.
    summary: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    failed: bool = False

    @property
    def complete(self) -> bool:
        """Whether the log is complete: it contains the last line of the summary, or FAILURE."""
        return self.failed or LAST in self.summary


def recognise_text(text: str) -> bool:
    """Whether the text contains settings, rows or a summary of cassandra-stress."""
    return SIGNS.search(text) is not None or OLDER in text


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    if OLDER in source.text:
        message = "the log was written by cassandra-stress before 2.1, whose averages cover only part of the run"
        raise source.error_at(f"{message}: this version is not supported", "write its figures into a table (CSV)")
    logs = [StressLog()]
    for index, line in enumerate(source.bare_lines):
        log = logs[-1]
        starts = "Stress Settings" in line or RUNNING.search(line) or COMMAND.search(line)
        # Users may have copied only the results of each run.
        copied = LAST in log.summary and (line.strip() == "Results:" or FIRST.match(line))
        if (starts or copied) and (log.results or log.failed or (log.rows and not COMMAND.search(line))):
            if not log.complete and not log.summary:
                raise cut_error(log, source)
            # With -rate auto, the settings are printed only once for several runs.
            again = RUNNING.search(line) and "Stress Settings" not in line
            log = StressLog(dict(log.settings), log.command, log.tool) if again else StressLog(tool=log.tool)
            logs.append(log)
        with source.report_damage("a line of the cassandra-stress log is damaged: {error}", CUT, index):
            if parse_line(log, line, index):
                source.used.add(index)
    if len(logs) > 1 and not logs[-1].results and not logs[-1].failed and logs[-1].start_line is None:
        logs.pop()
    return [read_log(log, source) for log in logs]


def parse_line(log: StressLog, line: str, index: int) -> bool:
    """Parses the line with this index (from 0), and returns whether it was recognised."""
    text = line.strip()
    cells = text.removeprefix("type").lstrip(" ,\t")
    if match := RUNNING.search(line):
        if log.clients not in (None, int(match[2])):
            raise ValueError("the lines of two runs are mixed")
        log.clients, log.start_line = int(match[2]), index
        if match[1]:
            log.settings.setdefault("Running", match[1].strip("[]"))
    elif match := COMMAND.search(line):
        log.command = match[1]
    elif CQL_STRESS.search(line):
        log.tool = "cql-stress"
    elif cells.startswith("total ops") and "op/s" in cells:
        # Up to 2.1, there is no column `type`; in 4.0, there is no comma after the name `type`.
        # A repeated header is identical, so the first header is kept.
        log.columns = log.columns or [name.strip() for name in (["type"] if text != cells else []) + cells.split(",")]
    elif text == "Results:":
        log.results = True
    elif text == "END":
        pass
    elif text == "FAILURE":
        log.failed = True
    elif is_row(log, text):
        cells_ = parse_fields(text, log.columns)
        if cells_ is None:
            log.unread += 1
            return False
        log.rows.append(cells_)
    elif not log.results and (match := SETTING.match(line)) and match[1].strip().lower() in SETTING_NAMES:
        log.settings.setdefault(SETTING_NAMES[match[1].strip().lower()], match[2].strip())
    elif len(line) < SUMMARY_MAX and (match := SUMMARY.match(text)) and (log.results or match[1].lower() == "op rate"):
        log.results = True
        name = " ".join(match[1].lower().split())
        set_once(log.summary, name, (match[2], dict(OPERATION_FIGURE.findall(match[3] or ""))))
        # Only cql-stress counts operations instead of partitions.
        log.tool = "cql-stress" if name == COUNTS[1] else log.tool
    else:
        return False
    return True


def is_row(log: StressLog, text: str) -> bool:
    """Whether a line is a row that covers all operations."""
    if log.results or not log.columns:
        return False
    return text.startswith("total,") if log.columns[0] == "type" else re.match(r"\d+\s*,", text) is not None


def parse_fields(line: str, columns: list[str]) -> list[float | None] | None:
    """The figures in a row; None if the row is truncated, or cannot be split because of decimal commas."""
    cells = line.split(",")
    if len(cells) != len(columns):
        # With decimal commas, only a comma followed by a space separates two cells.
        cells = [cell.replace(",", ".") for cell in re.split(r",\s+", line)]
    if len(cells) != len(columns):
        return None
    try:
        return [parse_number(cell) for cell in cells[columns[0] == "type" :]]
    except ValueError:
        return None


def cut_error(log: StressLog, source: Source, missing: str = "") -> Exception:
    """The error for a log whose end is missing."""
    message = f'has no "{missing}"' if missing and log.summary else "has no results"
    return source.error_at(f"the cassandra-stress log is truncated: it {message}", CUT, log.start_line)


def read_log(log: StressLog, source: Source) -> ImportedRun:
    """A log's figures. Raises LoadstoneError if its summary is truncated."""
    result = ImportedRun(facts={"tool": log.tool}, end="failed" if log.failed else "done", step_ns=0.1 * MS)
    if log.failed and not log.summary:
        add_facts(log.settings, log.command, log.clients, result)
        result.series = time_series(log)
        result.add_note("failed", "cassandra-stress printed FAILURE and no results", "see its output for the reason")
        return result
    if missing := next((name for name in REQUIRED if name not in log.summary), None):
        raise cut_error(log, source, missing)
    with source.report_damage("the cassandra-stress log is damaged: {error}", CUT, log.start_line):
        add_facts(log.settings, log.command, log.clients, result)
        add_figures(log, result, source)
    result.series = time_series(log)
    result.omitted |= dict.fromkeys(
        f"rows: {name}" for name in log.columns if name not in (*SERIES, "type", "total ops")
    )
    if log.unread:
        result.add_note("rows-left-out", f"{log.unread} rows could not be read", "check the log")
    return result


def add_figures(log: StressLog, result: ImportedRun, source: Source) -> None:
    """Adds the figures of the summary. Raises ValueError or LoadstoneError if they are invalid or inconsistent."""
    rows = dict(zip([name for name in log.columns if name != "type"], log.rows[-1], strict=True)) if log.rows else {}
    partitions, by_operation = next((log.summary[name] for name in COUNTS if name in log.summary), ("nan", {}))
    # Rows count operations, and the summary counts partitions. The counts differ only if an operation touches several
    # partitions.
    done = rows.get("total ops") or parse_count(partitions)
    rate, rates = log.summary["op rate"]
    counts = {name: parse_count(text) for name, text in by_operation.items()}
    names = list(rates)
    if counts:
        check_total(source, sum(counts.values()), parse_count(partitions), log.start_line)
    if rates:
        shares = [parse_grouped(text, 0) or 0.0 for text in rates.values()]
        check_total(source, sum(shares), parse_count(rate), log.start_line, slack=len(shares) + 0.01 * sum(shares))
    partition_rate = log.summary.get("partition rate", ("", {}))[0]
    if rows and parse_count(partitions) and number_before_unit(partition_rate or rate) == number_before_unit(rate):
        # Each operation touches one partition, so the rows and the summary of one run have the same count.
        check_total(source, done, parse_count(partitions), log.start_line)
    # Rows state the time with one decimal, the summary in whole seconds.
    seconds = rows.get("time") or parse_clock(log.summary[LAST][0])
    step = 0.1e9 if rows.get("time") else 1e9
    clock = parse_clock(log.summary[LAST][0])
    if abs(seconds - clock) > 2 + 0.01 * clock:
        raise ValueError(f"its rows end after {seconds:g} s, but its total operation time is {clock:g} s")
    if rows and (printed := parse_count(rate)):
        # The rate and the rows' time are rounded.
        check_rate(printed, seconds, done, slack=0.1 * printed + seconds)
    if not done:
        done = round((parse_grouped(number_before_unit(rate), 0) or 0.0) * seconds)
    n = int(done)
    speed = parse_grouped(number_before_unit(rate), 0)
    columns = [name for name in log.columns if name != "type"]
    if ERRORS not in log.summary and "errors" in columns and any(row[columns.index("errors")] for row in log.rows):
        raise ValueError("its rows count errors, but its summary has no total errors")
    if ERRORS in log.summary and not any(name in log.summary for name in COUNTS):
        # Every version that prints errors also prints a total of partitions or operations.
        raise ValueError("its summary has no total of partitions or operations")
    if ERRORS in log.summary:
        failures, failed = log.summary[ERRORS]
        failed_n = int(parse_count(failures))
        if failed:
            check_total(source, sum(map(parse_count, failed.values())), parse_count(failures), log.start_line)
        for name in names:
            result.statuses[name] = {"OK": int(counts.get(name, 0)), "ERROR": int(parse_count(failed.get(name, "0")))}
        if not names:
            result.statuses["ALL"] = {"OK": max(n - failed_n, 0), "ERROR": failed_n}
        if speed and (COUNTS[1] in log.summary or n > parse_count(partitions)):
            # Rows, and all counts of cql-stress, include failed operations.
            speed = result.subtract_failures(speed, failed_n, n)
        result.add_totals(speed, seconds * 1e9, done, 1.0, step)
    else:
        # cassandra-stress 2.1 does not print errors: their number is unknown, not 0.
        result.add_figure("throughput", speed, "op/s", n, 1.0)
        result.add_figure("runtime", seconds * 1e9, "ns", 1, step)
        result.add_figure("operations", done, "operations", n, 0.0 if rows else (speed or 0.0))
    if len(names) > 1:
        for name, text in rates.items():
            result.add_figure(f"{name.lower()}.throughput", parse_grouped(text, 0), "op/s", int(counts.get(name, 0)), 1)
    for label, (text, parts) in log.summary.items():
        known = label.removeprefix(LATENCY)
        match = PERCENTILE.fullmatch(known)
        statistic = STATISTICS.get(known) or (f"p{match[1]}" if match else None)
        if not label.startswith(LATENCY) or statistic is None:
            if label not in (*REQUIRED, *COUNTS, ERRORS):
                (result.omitted if NOT_READ.fullmatch(label) else result.unknown)[label] = None
            continue
        result.add_figure(f"{ALL}.{statistic}", parse_latency_ns(number_before_unit(text)), "ns", n, 0.1 * MS)
        for name, part in parts.items():
            own = int(counts.get(name, 0)) if len(names) > 1 else n
            result.add_figure(f"{name.lower()}.{statistic}", parse_latency_ns(part), "ns", own, 0.1 * MS)


def number_before_unit(text: str) -> str:
    """The text of a number, without the unit that follows it."""
    return re.split(r"\s+(?=[A-Za-z])", text.strip())[0]


def parse_latency_ns(text: str) -> float | None:
    """Converts the text of a latency in ms with one decimal to ns."""
    value = parse_grouped(text, 1)
    return None if value is None else value * MS


def parse_count(text: str) -> float:
    """Parses a count with thousands separators."""
    return parse_grouped(number_before_unit(text), 0) or 0.0


def parse_clock(text: str) -> float:
    """Converts a time such as 00:02:13 to seconds. Raises ValueError for other formats."""
    if not re.fullmatch(r"\d\d+:\d\d:\d\d", text):
        raise ValueError(f"not a time: {text[:40]!r}")
    hours, minutes, seconds = (float(part) for part in text.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def time_series(log: StressLog) -> Series | None:
    """The rows as a time series; None if there are fewer than two rows."""
    columns = [name for name in log.columns if name != "type"]
    if not all(name in columns for name in SERIES):
        return None
    indices = [columns.index(name) for name in SERIES]
    rows, at = [], 0.0
    for row in log.rows:
        rate, p50, p99, until = (row[index] for index in indices)
        if rate is not None and until is not None and until > at:
            rows.append((at, until - at, rate, None if p50 is None else p50 * MS, None if p99 is None else p99 * MS))
            at = until
    return build_series(rows)
