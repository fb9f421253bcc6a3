"""Reports of scylla-bench, and of the scylla-bench in cql-stress.

`raw latency` is service time. `c-o fixed latency` is measured from the due time of an operation: with a rate,
it is response time; without a rate, both latencies are the same. cql-stress prints `99h` for `99th`, and prints the
maximum as the 99.9th percentile (`value_at_quantile(99.9)`), so this percentile is not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from loadstone.importers.command_line import command_fact, find_command
from loadstone.importers.number import go_duration, number_or_text, parse_number
from loadstone.importers.run import ALL, OPERATIONS, ImportedRun, build_series, mix_fact, set_once
from loadstone.importers.source import Source
from loadstone.results.trial_result import Scalar, Series

NAME = "scylla-bench"
TITLE = "scylla-bench"
SETTING = re.compile(r"^(\s*[A-Za-z][\w ]*?):\s+(\d\S*(?: \w+/s\w*| bytes)?|[^\d\s].*?)\s*$")
# Settings that are read as facts with other names, or that do not change the work.
NAMED = ("Mode", "Workload", "Consistency level", "Partition count", "Clustering rows", "Rows per request",
         "Concurrency", "Maximum rate", "Start timestamp", "Hdr memory consumption")  # fmt: skip
TOTAL = re.compile(r"^(Time \(avg\)|Total ops|Total rows|Total errors|Operations/s|Rows/s):\s+(\S+)\s*$")
BLOCK = re.compile(r"^(?:(raw|c-o fixed)(?: (read|write))? latency|Latency)\s*:\s*$")
STATISTIC = re.compile(r"^\s+(max|median|mean|[\d.]+t?h):\s+(\S+)\s*$")
HEADER = re.compile(r"^\s*time\s+(?:ops|operations)/s\s+")
ROW = re.compile(r"^\s*([\d.hmsµun]+s)\s+(\d+)\s+(\d+)\s+(\d+)((?:\s+[\d.hmsµun]+s)*)\s*")
STATISTICS = {"median": "p50"}
# The latencies in the columns that form the time series.
SERIES = ("median", "99th")
STOPPED = re.compile(r"^(interrupted|Following critical errors were caught during the run)")
# The lines of each block of latencies, in order.
REQUIRED = ("max", "99.9th", "99th", "95th", "90th", "median", "mean")
CUT = "import scylla-bench's whole output, up to its latencies"


@dataclass
class ScyllaBenchReport:
    """The output of one run."""

    line: int = 0
    command: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    totals: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    # The line that reports an interrupt or critical errors.
    stopped: str = ""
    # Whether cql-stress wrote the report.
    other: bool = False
    rows: list[tuple[float, float, list[str]]] = field(default_factory=list)
    # The fields of each block, keyed by the name of the block and the name of the operation.
    blocks: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)


def recognise_text(text: str) -> bool:
    """Whether the text contains settings or totals of scylla-bench."""
    return re.search(r"(?m)^[^\w\n]*Time \(avg\):\s|^[^\w\n]*Clustering row size:\s", text) is not None


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    reports = [ScyllaBenchReport()]
    for index, line in enumerate(source.bare_lines):
        report = reports[-1]
        starts = find_command(line, NAME) or line.strip() == "Configuration" or line.startswith("Mode:")
        row = ROW.match(line)
        # A run that was interrupted has no totals; the next run counts its time from 0 again.
        restarts = row and report.rows and go_duration(row[1])[0] < report.rows[-1][0]
        if (starts and (report.totals or report.rows)) or restarts:
            report = ScyllaBenchReport(line=index)
            reports.append(report)
        torn = source.torn and index == source.last
        with source.report_damage("a line of the scylla-bench report is damaged: {error}", CUT, index):
            if parse_line(report, line, torn):
                source.used.add(index)
    if len(reports) > 1 and not reports[-1].settings and not reports[-1].totals:
        reports.pop()
    result = []
    for report in reports:
        check_end(report, source)
        with source.report_damage("the scylla-bench report is damaged: {error}", CUT, report.line):
            result.append(read_report(report))
    return result


def parse_line(report: ScyllaBenchReport, line: str, torn: bool) -> bool:
    """Parses a line, and returns whether it was recognised.

    The number in a torn line is ignored, because it may be truncated.
    """
    if command := find_command(line, NAME):
        report.command = command
    elif (match := SETTING.match(line)) and is_setting(report, match[1]):
        # Settings of retries are indented.
        set_once(report.settings, f"Retries{match[1]}" if match[1].startswith(" ") else match[1], match[2])
    elif HEADER.match(line):
        report.columns = line.split()
    elif match := ROW.match(line):
        report.rows.append((go_duration(match[1])[0], float(match[2]), match[5].split()))
    elif match := STOPPED.match(line):
        report.stopped = match[1]
    elif torn:
        return False
    elif match := TOTAL.match(line):
        set_once(report.totals, match[1], match[2])
    elif match := BLOCK.match(line):
        report.blocks[match[1] or "raw", match[2] or ALL] = {}
    elif report.blocks and (match := STATISTIC.match(line)):
        report.other = report.other or re.fullmatch(r"\d+h", match[1]) is not None
        set_once(report.blocks[next(reversed(report.blocks))], re.sub(r"(?<=\d)h$", "th", match[1]), match[2])
    else:
        return False
    return True


def is_setting(report: ScyllaBenchReport, name: str) -> bool:
    """Whether a line with this name is a setting: other lines may precede the first setting, and follow the rows."""
    return not report.totals and not report.rows and (name in NAMED or "Mode" in report.settings)


def check_end(report: ScyllaBenchReport, source: Source) -> None:
    """Raises LoadstoneError if a total or a latency is missing."""
    names = {name for name, _ in report.blocks}
    missing = not {"Time (avg)", "Total ops", "Operations/s", "Rows/s"} <= report.totals.keys()
    # The first versions print no median.
    required = set(REQUIRED) - ({"median"} if "max" in report.columns and "median" not in report.columns else set())
    missing = missing or any(required - set(block) for block in report.blocks.values())
    missing = missing or ("max" in report.columns and not names)
    # Since 2021, the tool prints both latencies.
    newer = any(name == "raw" for name, _ in report.blocks) and "Hdr memory consumption" in source.text
    if missing or (newer and "c-o fixed" not in names):
        raise source.error_at("the scylla-bench report is truncated: its results are incomplete", CUT, report.line)


def read_report(report: ScyllaBenchReport) -> ImportedRun:
    """A report's figures. Raises ValueError if a figure is not a number."""
    settings = report.settings
    run = ImportedRun(facts={"tool": "cql-stress" if report.other else NAME})
    if report.other:
        run.add_note(
            "percentiles-left-out", "cql-stress prints the maximum as the 99.9th percentile", "use its HDR log"
        )
    run.facts |= facts_of_work(settings)
    run.facts |= {"command": command_fact(report.command)} if report.command else {}
    run.clients = int(settings["Concurrency"]) if settings.get("Concurrency", "").isdigit() else None
    rate = settings.get("Maximum rate", "").split(" ")[0]
    # If the rate is missing or unreadable, the two latencies show whether it was set: they then differ.
    differ = ("c-o fixed", ALL) in report.blocks and report.blocks["c-o fixed", ALL] != report.blocks.get(("raw", ALL))
    if rate.isdigit() or (rate != "unlimited" and differ):
        run.loop = "open"
    if rate.isdigit():
        run.facts["target"] = int(rate)
    run.facts["latency"] = "response" if run.loop == "open" else "service"
    done, errors = int(report.totals["Total ops"]), int(report.totals.get("Total errors", 0))
    seconds, step = go_duration(report.totals["Time (avg)"])
    speed = report.totals["Operations/s"]
    if speed.startswith(("+Inf", "NaN")):
        run.add_note("not-a-number", f"scylla-bench printed {speed} op/s", "check the run")
    elif seconds and abs(done / seconds - float(speed)) > 0.05 * done / seconds + 1:
        raise ValueError(f"{done} operations in {seconds:g} s contradict its {speed} operations per second")
    run.add_figure("throughput", parse_number(speed.replace("+", "")), "op/s", done, 1.0)
    run.add_figure("runtime", seconds * 1e9, "ns", 1, step * 1e9)
    run.add_figure("operations", done + errors, OPERATIONS, done + errors)
    run.add_figure("errors", errors, OPERATIONS, done + errors)
    mode = settings.get("Mode", ALL)
    if not re.fullmatch("[a-z_]+", mode):
        run.unknown[f"Mode: {mode}"] = None
        mode = ALL
    run.statuses[mode.upper()] = {"OK": done, **({"ERROR": errors} if errors else {})}
    for (kind, operation), block in report.blocks.items():
        headline = (kind == "c-o fixed") == (run.loop == "open")
        if not headline and run.loop == "closed":
            continue
        names = [operation] if operation != ALL or mode in ("mixed", "all") else [ALL, mode]
        for name in names:
            for label, text in block.items():
                if report.other and label == "99.9th":
                    continue
                value, digit = go_duration(text)
                statistic = STATISTICS.get(label, f"p{label.removesuffix('th')}" if label.endswith("th") else label)
                run.add_figure(
                    f"{name}{'' if headline else '.service'}.{statistic}", value * 1e9, "ns", done, digit * 1e9
                )
    check_maximum(report)
    run.omitted |= dict.fromkeys([*(name for name in report.totals if name in ("Total rows", "Rows/s")),
                                  *(f"rows: {name}" for name in report.columns[4:] if name not in SERIES)])  # fmt: skip
    if report.stopped:
        run.end = "stopped" if report.stopped == "interrupted" else "failed"
        run.add_note("stopped", f"scylla-bench reports: {report.stopped}", "run it to completion")
    run.series = time_series(report)
    return run


def check_maximum(report: ScyllaBenchReport) -> None:
    """Raises ValueError if a row has a larger maximum than the run: cql-stress may print maxima in the wrong unit."""
    printed = max((go_duration(block["max"])[0] for block in report.blocks.values()), default=None)
    maxima = [go_duration(cells[report.columns.index("max") - 4])[0] for _, _, cells in report.rows if cells]
    if printed is not None and maxima and max(maxima) > 1.1 * printed:
        message = f"the maximum of an interval ({max(maxima):g} s) exceeds the maximum of the run ({printed:g} s)"
        raise ValueError(message)


def facts_of_work(settings: dict[str, str]) -> dict[str, Scalar]:
    """Facts about the work."""
    facts: dict[str, Scalar] = {}
    for fact, name in (("consistency", "Consistency level"), ("distribution", "Workload")):
        if name in settings:
            facts[fact] = settings[name]
    counts = [settings.get(name, "") for name in ("Partition count", "Clustering rows")]
    if all(count.isdigit() for count in counts):
        facts["records"] = int(counts[0]) * int(counts[1])
    if match := re.fullmatch(r"(?:Fixed\()?(\d+)\)?", settings.get("Clustering row size", "")):
        facts["record_bytes"] = int(match[1])
    if settings.get("Rows per request", "").isdigit():
        facts["rows_per_request"] = int(settings["Rows per request"])
    for name, text in settings.items():
        if name not in NAMED and not (name == "Clustering row size" and "record_bytes" in facts):
            slug = re.sub(r"\W+", "_", name.lower())
            facts[f"work.{slug}"] = number_or_text(text)
    if settings.get("Mode") in ("read", "write"):
        facts["mix"] = mix_fact({settings["Mode"]: 1})
    return facts


def time_series(report: ScyllaBenchReport) -> Series | None:
    """The rows as a time series of throughput, median and p99."""
    rows: list[tuple[float | None, ...]] = []
    at = 0.0
    names = report.columns[4:]
    for until, rate, cells in report.rows:
        values = dict(zip(names, cells, strict=False))
        p50, p99 = (go_duration(values[name])[0] * 1e9 if name in values else None for name in ("median", "99th"))
        if until > at:
            rows.append((at, until - at, rate, p50, p99))
            at = until
    return build_series(rows)
