"""Versions 3 to 5 of fio's terse output (`--minimal`), converted to the JSON report that fio would have written.

Terse output has no operation counts, so they are computed as rate × time. Its KB are KiB; its latencies are in µs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from loadstone.importers import fio, fio_normal, fio_options
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import Source

NAME = "fio-terse"
TITLE = "fio's terse output"
LINE = re.compile(r"(?:^|\s)(\d+);(fio-[^;]+);(.*)$")
# For each version: the number of fields of a direction, and the number of directions (fio(1), TERSE OUTPUT).
LAYOUTS = {"3": (41, 2), "4": (41, 3), "5": (47, 3)}
# The number of fields before the directions, and after them: CPU usage, queue depths and latencies.
BEFORE, AFTER = 5, 34
PERCENTILES = slice(12, 32)
CUT = "import fio's whole output, or run it with --output-format=json"


def recognise_text(text: str) -> bool:
    """Whether a line contains the result of a job."""
    other = fio.recognise_text(text) or fio_normal.recognise_text(text)
    return re.search(r"(?m)^[^\w\n]*\d+;fio-[^;]+;", text) is not None and not other


def read_runs(source: Source) -> list[ImportedRun]:
    """Every job in the file. Raises LoadstoneError if a job is truncated, or if several lines have the same job."""
    # Each report begins with a line of the first job.
    reports: list[list[dict[str, Any]]] = []
    version = command = ""
    commanded: dict[str, dict[str, str]] = {}
    for index, line in enumerate(source.lines):
        match = LINE.search(line)
        if match is None:
            if parsed := fio_options.parse_command(line):
                command, commanded = parsed
                source.used.add(index)
            continue
        fields, version = line[match.start() :].strip().split(";"), match[2]
        layout = LAYOUTS.get(match[1])
        if layout is None:
            hint = "run fio with --terse-version=3, or with --output-format=json"
            raise source.error_at(f"version {match[1]} of fio's terse output is not supported", hint, index)
        size, directions = layout
        if len(fields) < BEFORE + size * directions + AFTER:
            raise source.error_at(f"a line of fio's terse output is truncated: it has {len(fields)} fields", CUT, index)
        with source.report_damage("a line of fio's terse output is damaged: {error}", CUT, index):
            job: dict[str, Any] = {
                "jobname": fields[2],
                "groupid": int(fields[3]),
                "error": int(fields[4]),
                "line": index,
                **({"job options": commanded[fields[2]]} if fields[2] in commanded else {}),
            }
            for number, way in enumerate(("read", "write", "trim")[:directions]):
                job[way] = read_way(fields[BEFORE + size * number : BEFORE + size * (number + 1)])
        if not reports or fio.job_key(job) == fio.job_key(reports[0][0]):
            reports.append([])
        reports[-1].append(job)
        source.used.add(index)
    keys = [[fio.job_key(job) for job in jobs] for jobs in reports]
    if any(len(set(part)) < len(part) or part != keys[0] for part in keys) or not is_one_run(reports):
        job = (reports[1:] or reports)[0][-1]
        message = f'the job "{job["jobname"]}" has several lines: from parallel jobs, several runs, or interim reports'
        raise source.error_at(message, "run fio with group_reporting=1 and --output-format=json", job["line"])
    with source.report_damage("fio's terse output is damaged: {error}", CUT):
        *earlier, last = ({"jobs": jobs, "fio version": version} for jobs in reports)
        return [fio_normal.add_command(run, command) for run in fio.read_report(last, earlier)]


def is_one_run(reports: Sequence[Sequence[dict[str, Any]]]) -> bool:
    """Whether reports are cumulative (`--status-interval`): the time of each is a multiple of the interval."""
    if len(reports) < 2:
        return True
    ways = [[job[way] for job in jobs for way in ("read", "write", "trim") if way in job] for jobs in reports]
    times = [max(way["runtime"] for way in part) for part in ways]
    sizes = [sum(way["io_bytes"] for way in part) for part in ways]
    steps = [after - before for before, after in pairwise(times)]
    return (
        len(steps) > 1
        and all(abs(step - times[0]) < 0.2 * times[0] for step in steps[:-1])
        and 0 < steps[-1] < 1.2 * times[0]
        and sorted(sizes) == sizes
    )


def read_way(fields: Sequence[str]) -> dict[str, Any]:
    """Converts the fields of a direction to the form of fio's JSON. Raises ValueError if a field is not a number."""
    kib, speed, rate, runtime = (int(field) for field in fields[:4])
    least, most, mean, _ = (float(field) for field in fields[8:12])
    shares = dict(field.split("%=") for field in fields[PERCENTILES])
    return {
        "io_bytes": kib,
        "bw": speed,
        "iops": rate,
        "runtime": runtime,
        "clat": {"min": least, "max": most, "mean": mean, "percentile": shares},
    }
