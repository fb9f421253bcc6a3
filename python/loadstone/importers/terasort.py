"""Logs of Hadoop's TeraGen, TeraSort and TeraValidate: the counters and the time of each job.

The time runs from `Running job` to `completed successfully`, without JVM startup and key sampling. A job states how
many counters it has, so a truncated list is detected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from loadstone.importers.command_line import command_fact, hadoop_facts
from loadstone.importers.run import ImportedRun, check_total
from loadstone.importers.source import Source

NAME = "terasort"
TITLE = "TeraSort's counters"
COMMAND = re.compile(r"\bjar\s+\S+\s+((?:teragen|terasort|teravalidate)\s.*)$")
TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}|\d\d/\d\d/\d\d \d\d:\d\d:\d\d)")
FORMATS = (("%Y-%m-%d %H:%M:%S,%f", 1e6), ("%y/%m/%d %H:%M:%S", 1e9))
STAGE = re.compile(r"\bterasort\.(TeraGen|TeraSort|TeraValidate)\b(: done)?")
# TeraSort prints this line after its name. If no name precedes the line, TeraValidate printed it.
SPLITS = re.compile(r"^Spent \d+ms computing base-splits")
# Hadoop 1 logs through JobClient, and prints each counter on a line with a timestamp.
RUNNING = re.compile(r"(?:mapreduce\.Job|mapred\.JobClient): Running job: (\S+)")
ENDED = re.compile(
    r"mapreduce\.Job: Job \S+ (?:completed successfully|failed with state (\w+))"
    r"|mapred\.JobClient: Job (?:complete: \S+|Failed(: .*))"
)
COUNTERS = re.compile(r"(?:mapreduce\.Job|mapred\.JobClient): Counters: (\d+)\s*$")
COUNTER = re.compile(r"(?:^|mapred\.JobClient:)\s+([A-Z][\w :()/-]*?) *=(\d+)\s*$")
# The counters that become figures or facts, or that are checked.
COUNTERS_READ = ("CHECKSUM", "Launched map tasks", "Launched reduce tasks", "Bytes Read", "Bytes Written",
                 "Spilled Records", "Reduce output records")  # fmt: skip
SHUFFLE_ERRORS = ("BAD_ID", "CONNECTION", "IO_ERROR", "WRONG_LENGTH", "WRONG_MAP", "WRONG_REDUCE", "Failed Shuffles")
ROW_BYTES = 100
CUT = "import the whole log of the job, up to its counters"


@dataclass
class Job:
    """The log of a job."""

    name: str
    line: int
    stage: str
    command: str
    start: tuple[float, float] | None
    end: tuple[float, float] | None = None
    failed: str = ""
    required: int = -1
    counters: list[tuple[str, int]] = field(default_factory=list)


def recognise_text(text: str) -> bool:
    """Whether the text contains a job of TeraGen, TeraSort or TeraValidate."""
    return (
        re.search(r"\bterasort\.Tera(?:Gen|Sort|Validate)\b|terasort\.Tera\w+\$Counters|ms computing base-splits", text)
        is not None
    )


def read_runs(source: Source) -> list[ImportedRun]:
    """Every job in the file. Raises LoadstoneError if a job is truncated."""
    jobs: list[Job] = []
    stage = command = ""
    for index, line in enumerate(source.bare_lines):
        if match := COMMAND.search(line):
            command = match[1]
        elif match := STAGE.search(line):
            stage = "" if match[2] else match[1]
        elif SPLITS.match(line):
            stage = stage or "TeraValidate"
        elif match := RUNNING.search(line):
            jobs.append(Job(match[1], index, stage, command, parse_time(line)))
            command = ""
        elif not jobs:
            continue
        elif match := ENDED.search(line):
            jobs[-1].end, jobs[-1].failed = parse_time(line), (match[1] or match[2] or "").lstrip(": ")
        elif match := COUNTERS.search(line):
            jobs[-1].required = int(match[1])
        elif jobs[-1].required > len(jobs[-1].counters) and (match := COUNTER.search(line)):
            if index != source.last or not source.torn:
                jobs[-1].counters.append((match[1], int(match[2])))
        else:
            continue
        source.used.add(index)
    if not jobs:
        raise source.error_at("the log contains no jobs", CUT)
    return [read_job(job, source) for job in jobs]


def parse_time(line: str) -> tuple[float, float] | None:
    """The timestamp of a log line in s, and its resolution in ns; None if the line has no timestamp."""
    match = TIME.search(line)
    if match is None:
        return None
    layout, step = FORMATS[0] if "-" in match[1] else FORMATS[1]
    try:
        return datetime.strptime(match[1], layout).timestamp(), step
    except ValueError:
        return None


def read_job(job: Job, source: Source) -> ImportedRun:
    """A job's figures. Raises LoadstoneError if its counters are truncated."""
    run = ImportedRun(dimensions={"stage": job.stage.lower() or "job"}, facts={"tool": NAME, "row_bytes": ROW_BYTES})
    if job.command:
        run.facts |= {"command": command_fact(job.command), **hadoop_facts(job.command)}
    if job.failed:
        run.end = "failed"
        run.add_note("failed", f"the job failed: {job.failed}", "see the job's own log")
        return run
    if job.end is None or job.required != len(job.counters):
        raise source.error_at(f"the log of {job.name} is truncated: its counters are incomplete", CUT, job.line)
    # The groups of counters, for example of file systems, repeat names; the first counter is the framework's.
    counters: dict[str, int] = {}
    for name, value in job.counters:
        counters.setdefault(name, value)
    counted = "Map output records" if job.stage == "TeraGen" else "Map input records"
    if counted not in counters:
        # The number of counters is correct, so another line was repeated in place of this counter.
        raise source.error_at(f"the counters of {job.name} are damaged: they have no {counted}", CUT, job.line)
    rows = counters[counted]
    run.facts["rows"] = rows
    written = counters.get("Reduce output records", 0)
    if job.stage == "TeraSort":
        check_total(source, counters.get("Reduce output records", rows), rows, job.line)
    elif job.stage == "TeraValidate" and written > 1:
        # In addition to the checksum, TeraValidate writes a row for each ordering error.
        run.end = "failed"
        run.add_note("failed", f"TeraValidate reports {written - 1} errors: the rows are not sorted", "sort again")
    used = {counted, *COUNTERS_READ}
    run.omitted |= dict.fromkeys(name for name in counters if name not in used)
    if lost := sum(counters.get(name, 0) for name in SHUFFLE_ERRORS):
        run.add_note("retries", f"{lost} shuffle errors, whose retries are included in the time", "check the cluster")
    if "CHECKSUM" in counters:
        run.facts["checksum"] = f"{counters['CHECKSUM']:x}"
    for fact, name in (("maps", "Launched map tasks"), ("reduces", "Launched reduce tasks")):
        if name in counters:
            run.facts[fact] = counters[name]
    if job.start is not None and job.end[0] > job.start[0]:
        seconds, step = job.end[0] - job.start[0], job.end[1]
        run.add_figure("runtime", seconds * 1e9, "ns", 1, step)
        bandwidth = rows * ROW_BYTES / seconds
        run.add_figure("throughput", bandwidth, "B/s", rows, bandwidth * step / (seconds * 1e9))
    run.add_figure("rows", rows, "rows", rows)
    for metric, name in (("returned", "Bytes Read"), ("stored", "Bytes Written"), ("spilled", "Spilled Records")):
        if name in counters:
            run.add_figure(metric, counters[name], "rows" if metric == "spilled" else "B", rows)
    return run
