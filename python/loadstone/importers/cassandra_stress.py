"""Logs of cassandra-stress (4.x; the summary of older versions as well), in whatever locale it ran.

It prints latencies in ms with one decimal, and rates with none. With `throttle=` latencies are service times, with
`fixed=` response times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from loadstone.importers.number import grouped, plain
from loadstone.importers.run import ALL, Run, series
from loadstone.importers.source import Source
from loadstone.results.trial_result import Series

NAME = "cassandra-stress"
TITLE = "cassandra-stress log"
SIGNS = ("Stress Settings", "total ops,    op/s", "Op rate                   :", "op rate                   :")
RUNNING = re.compile(r"Running (?:([\w() ,.-]+) )?with (\d+) thread(?:s|Count)")
SETTING = re.compile(
    r"\s*(Thread Count|OpsPer Sec|Consistency Level|Replication Strategy Options|Type|Sequence|Distribution"
    r"|Size Distribution|Count Distribution): +(.+)$"
)
COMMAND = re.compile(r"cassandra-stress\s+\S.*-rate\s+(.*)$")
RATE = re.compile(r"\b(threads|throttle|fixed)=(\d+)")
SUMMARY = re.compile(r"(?i)(op rate|latency [\w. ]+?|total [\w ]+?)\s*:\s*([^\[]*?)\s*(?:\[(.*)\])?\s*$")
EACH = re.compile(r"([A-Za-z_][\w.-]*):\s*(NaN|[\d.,'\u2019\u00a0\u202f]*\d)")
STATISTICS = {
    "mean": "mean",
    "median": "p50",
    "95th percentile": "p95",
    "99th percentile": "p99",
    "99.9th percentile": "p99.9",
    "max": "max",
}
# The fewest lines of a complete summary, and its last one.
WANTED = ("op rate", "latency mean", "latency max", "total errors", "total operation time")
CUT = "import the whole output of cassandra-stress, from its settings to END"
MS = 1e6
# For figures of several operations in one line; it keeps the expression away from other long lines.
SUMMARY_MAX = 1000


@dataclass
class Log:
    """The output of one run."""

    settings: dict[str, str] = field(default_factory=dict)
    clients: int | None = None
    begun: int | None = None
    columns: list[str] = field(default_factory=list)
    rows: list[list[float | None]] = field(default_factory=list)
    unread: int = 0
    results: bool = False
    # By name in lower case: the figure of all operations, and of each.
    summary: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    failed: bool = False


def recognises(text: str) -> bool:
    """Whether there are settings, rows or a summary."""
    return any(sign in text for sign in SIGNS)


def runs(source: Source) -> list[Run]:
    """Every run in the file. Raises LoadstoneError when one is cut."""
    logs = [Log()]
    for index, line in enumerate(source.lines):
        log = logs[-1]
        starts = "Stress Settings" in line or RUNNING.search(line) is not None
        if starts and log.results:
            # With -rate auto the settings are printed once for several runs.
            log = Log() if "Stress Settings" in line else Log(settings=dict(log.settings))
            logs.append(log)
        take(log, line, index)
    if not logs[-1].results and logs[-1].begun is None and len(logs) > 1:
        logs.pop()
    return [run(log, source) for log in logs]


def take(log: Log, line: str, index: int) -> None:
    """Takes a line, counted from 0."""
    if match := RUNNING.search(line):
        log.clients, log.begun = int(match[2]), index
    elif match := COMMAND.search(line):
        log.settings |= dict(RATE.findall(match[1]))
    elif match := SETTING.match(line):
        log.settings[match[1]] = match[2].strip()
    elif line.strip().startswith("type") and "total ops" in line:
        # Its first two columns have no comma between them.
        log.columns = [name.strip() for name in line.replace("total ops", ",total ops", 1).split(",")]
    elif line.strip() == "Results:":
        log.results = True
    elif line.strip() == "FAILURE":
        log.failed = True
    elif line.startswith("total,") and not log.results:
        cells = fields(line, len(log.columns))
        log.unread += cells is None
        if cells is not None:
            log.rows.append(cells)
    elif len(line) < SUMMARY_MAX and (match := SUMMARY.match(line.strip())):
        log.results = True
        log.summary[" ".join(match[1].lower().split())] = (match[2], dict(EACH.findall(match[3] or "")))


def fields(line: str, columns: int) -> list[float | None] | None:
    """A row's figures after its first cell; None for a row that is cut, or unreadable due to decimal commas."""
    cells = line.split(",")
    if len(cells) != columns:
        # Decimal commas: only a comma followed by a blank separates two cells.
        cells = [cell.replace(",", ".") for cell in re.split(r",\s+", line.strip())]
    if len(cells) != columns:
        return None
    try:
        return [plain(cell) for cell in cells[1:]]
    except ValueError:
        return None


def run(log: Log, source: Source) -> Run:
    """A log's figures. Raises LoadstoneError when its summary is cut."""
    if missing := next((name for name in WANTED if name not in log.summary), None):
        what = "has no results" if not log.summary else f'has no "{missing}"'
        raise source.error(f"the cassandra-stress log is cut: it {what}", CUT, log.begun)
    found = Run(facts={"tool": NAME}, end="failed" if log.failed else "done", step_ns=0.1 * MS)
    with source.reading("the cassandra-stress log is damaged: {error}", CUT, log.begun):
        known(log, found)
        figures(log, found)
    found.series = course(log)
    if log.unread:
        found.note("rows-left-out", f"{log.unread} rows could not be read", "check the log")
    return found


def known(log: Log, found: Run) -> None:
    """Clients, rate and facts. Raises ValueError when a rate is not a number."""
    settings = log.settings
    threads = settings.get("Thread Count", settings.get("threads", ""))
    found.clients = log.clients or (int(threads) if threads.isdigit() else None)
    rate = grouped(settings.get("OpsPer Sec", settings.get("throttle", settings.get("fixed", "0"))).split("/")[0], 0)
    if rate:
        found.loop = "open"
        found.facts["target"] = int(rate)
        if "fixed" in settings or "throttle" in settings:
            found.facts["latency"] = "response" if "fixed" in settings else "service"
    for fact, names in (
        ("mix", ("Type",)),
        ("records", ("Sequence", "Distribution")),
        ("distribution", ("Sequence", "Distribution")),
        ("record_bytes", ("Count Distribution", "Size Distribution")),
    ):
        # As the tool prints them: a population, and columns of a size.
        if stated := [settings[name] for name in names if name in settings]:
            found.facts[fact] = " × ".join(stated)
    if level := settings.get("Consistency Level"):
        found.facts["consistency"] = level
    if match := re.search(r"replication_factor=(\d+)", settings.get("Replication Strategy Options", "")):
        found.facts["replication"] = int(match[1])


def figures(log: Log, found: Run) -> None:
    """The summary's figures. Raises ValueError when one is not a number."""
    rows = dict(zip(log.columns[1:], log.rows[-1], strict=True)) if log.rows else {}
    partitions, by_operation = log.summary.get("total partitions", ("nan", {}))
    # Rows count operations; the summary counts partitions, which differ only if an operation touches several.
    done = rows.get("total ops") or whole(partitions)
    counts = {name: whole(text) for name, text in by_operation.items()}
    names = log.summary["op rate"][1]
    n = int(done)
    rate, rates = log.summary["op rate"]
    seconds = rows.get("time") or clock(log.summary["total operation time"][0])
    failures, failed = log.summary["total errors"]
    for name in names:
        found.statuses[name] = {"OK": int(counts.get(name, 0)), "ERROR": int(whole(failed.get(name, "0")))}
    if not names:
        found.statuses["ALL"] = {"OK": n, "ERROR": int(whole(number(failures)))}
    found.add_totals(grouped(number(rate), 0), seconds * 1e9, done)
    if len(names) > 1:
        for name, text in rates.items():
            found.add(f"{name.lower()}.throughput", grouped(text, 0), "op/s", int(counts.get(name, 0)))
    for label, statistic in STATISTICS.items():
        total, each = log.summary.get(f"latency {label}", ("nan", {}))
        found.add(f"{ALL}.{statistic}", scaled(number(total)), "ns", n)
        for name, text in each.items():
            own = int(counts.get(name, 0)) if len(names) > 1 else n
            found.add(f"{name.lower()}.{statistic}", scaled(text), "ns", own)


def number(text: str) -> str:
    """The number before a unit."""
    return re.split(r"\s+(?=[A-Za-z])", text.strip())[0]


def scaled(text: str) -> float | None:
    """A latency in ms with one decimal, as ns."""
    value = grouped(text, 1)
    return None if value is None else value * MS


def whole(text: str) -> float:
    """A count with thousands separators."""
    return grouped(number(text), 0) or 0.0


def clock(text: str) -> float:
    """Seconds of 00:02:13."""
    hours, minutes, seconds = (float(part) for part in text.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def course(log: Log) -> Series | None:
    """The rows as a series; None where there are fewer than two."""
    wanted = ("op/s", "med", ".99", "time")
    if not all(name in log.columns for name in wanted):
        return None
    indices = [log.columns.index(name) - 1 for name in wanted]
    rows, at = [], 0.0
    for row in log.rows:
        rate, p50, p99, until = (row[index] for index in indices)
        if rate is not None and until is not None and until > at:
            rows.append((at, until - at, rate, None if p50 is None else p50 * MS, None if p99 is None else p99 * MS))
            at = until
    return series(rows)
