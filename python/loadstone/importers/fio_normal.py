"""The normal output of fio 2 and 3, converted to the JSON report that fio would have written.

Rates and bandwidths are rounded (22.8k, 88.9MiB/s), but operation counts and run times are exact.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from loadstone.importers import fio, fio_options
from loadstone.importers.command_line import command_fact
from loadstone.importers.number import last_digit
from loadstone.importers.run import ImportedRun, check_rate
from loadstone.importers.source import Source

NAME = "fio-normal"
TITLE = "fio's normal output"
VERSION = re.compile(r"^(fio-\d\S*)$")
JOB = re.compile(r"^(\S.*?): \(g=(\d+)\): rw=(\w+), bs=(.*?), ioengine=(\w+), iodepth=(\d+)")
GROUP = re.compile(
    r"^(\S.*?): \(groupid=(\d+), jobs=(\d+)\): err=\s*(-?\d+).*?pid=(\d+)(?:: (\w+ \w+ +\d+ [\d:]+ \d{4}))?"
)
WAY = re.compile(r"^\s+(read|write|trim|mixed)\s*: (.*msec\)?(?:; \d+ zone resets)?|(?:(?!msec).)*)\s*$")
RATE = re.compile(r"(?i)IOPS=([\d.]+)([kM]?)")
SPEED = re.compile(r"(?i)BW=([\d.]+)([KMGT]?)(i?)B/s")
# The bandwidth in powers of 1,000, in brackets after the bandwidth in powers of 1,024.
DECIMAL_SPEED = re.compile(r"(?i)BW=\S+ \(([\d.]+)([KMGT]?)B/s\)")
IO = re.compile(r"(?i)(?:io=|\()([\d.]+)([KMGT]?)(i?)B(?:, *bw|/\d+msec)")
RUNTIME = re.compile(r"(?:runt(?:ime)?=\s*|/)(\d+)msec")
LATENCY = re.compile(r"^\s+(slat|clat|lat|sync) \(([num]?)sec\)\s*: (min=.*stdev=\s*[\w.]+)\s*$")
FIELD = re.compile(r"(min|max|avg)=\s*([\d.]+)(?![\d.]|,\d)([kKMG]?)")
PERCENTILES = re.compile(r"^\s+(clat|lat|sync) percentiles \(([num]?)sec\):")
PERCENTILE = re.compile(r"(?<![\d.,])([\d.]+)th=\[\s*([\d.]+)([kKM]?)\]")
LAST_PERCENTILE = re.compile(r"th=\[[^\[\]]*\],?\s*$")
ISSUED = re.compile(
    r"issued rwts?: total=(\d+),(\d+),(\d+)(?:,(\d+))?"
    r"|issued(?: r/w/d)?\s*: total=(?:r=)?(\d+)/(?:w=)?(\d+)/(?:d=)?(\d+)"
)
STATUS = re.compile(r"^Run status group (\d+) \(all jobs\):")
SUM = re.compile(r"^\s+(READ|WRITE|TRIM|MIXED): .*(?:run=\d+-|maxt=)\d+msec")
NS = {"n": 1.0, "u": 1e3, "m": 1e6, "": 1e9}
PREFIX = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
CUT = "import all of fio's output, including the run status, or run fio with --output-format=json"


def recognise_text(text: str) -> bool:
    """Whether the text contains the report of a group of jobs, and no JSON report."""
    return re.search(GROUP.pattern, text, re.MULTILINE) is not None and fio.SIGN not in text


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    reports: list[dict[str, Any]] = [{"jobs": [], "groups": set(), "ways": set(), "fio version": "fio", "command": ""}]
    options: dict[str, dict[str, str]] = {}
    commanded: dict[str, dict[str, str]] = {}
    command = ""
    lat: dict[str, Any] = {}
    way, group = "", 0
    for index, line in enumerate(source.bare_lines):
        report = reports[-1]
        if match := GROUP.search(line):
            if report["groups"]:
                # Each report ends with the status of its groups; with --status-interval, there are several reports.
                reports.append({**report, "jobs": [], "groups": set(), "ways": set(), "command": command})
                report = reports[-1]
            name = match[1]
            # The line of a job states only some of its options.
            stated = options.get(name, {}) | ({"numjobs": match[3]} if match[3] != "1" else {})
            report["jobs"].append({"jobname": name, "groupid": int(match[2]), "error": int(match[4]), "pid": match[5],
                                   "written": parse_date(match[6] or ""),
                                   "job options": stated, "abridged": name not in commanded,
                                   "line": index})  # fmt: skip
        elif match := VERSION.match(line):
            report["fio version"] = match[1]
        elif match := JOB.match(line):
            options[match[1]] = commanded.get(match[1], {}) | {
                "rw": match[3],
                "bs": block_size(match[4]),
                "ioengine": match[5],
                "iodepth": match[6],
            }
        elif parsed := fio_options.parse_command(line):
            command, commanded = parsed
            if not report["jobs"]:
                report["command"] = command
        elif match := STATUS.match(line):
            report["groups"].add(int(match[1]))
            group = int(match[1])
        elif match := SUM.match(line):
            report["ways"].add((group, match[1].lower()))
        elif not report["jobs"]:
            continue
        else:
            with source.report_damage("the fio output is damaged: {error}", CUT, index):
                job = report["jobs"][-1]
                if match := WAY.match(line):
                    way = match[1]
                    if way == fio.UNIFIED and any(other in job for other in fio.DIRECTIONS):
                        # `unified_rw_reporting=both` adds the sum of the other directions; fio 3.33 omits its rate.
                        way = ""
                    job[way] = read_way(match[2]) if way else {}
                elif match := LATENCY.match(line):
                    lat = read_latency(match[2], match[3])
                    place = job.setdefault("sync", {}) if match[1] == "sync" else job[way]
                    key = "lat_ns" if match[1] == "sync" else f"{match[1]}_ns"
                    if key in place:
                        # The line of a direction is missing.
                        raise ValueError("a latency occurs twice")
                    place[key] = lat
                elif match := PERCENTILES.match(line):
                    place = job["sync"] if match[1] == "sync" else job[way]
                    lat = place["lat_ns" if match[1] == "sync" else f"{match[1]}_ns"]
                    lat["unit"], lat["percentile"] = NS[match[2]], {}
                elif (parts := PERCENTILE.findall(line)) and LAST_PERCENTILE.search(line):
                    if lat["percentile"].keys() & {share for share, _, _ in parts}:
                        raise ValueError("a percentile occurs twice")
                    lat["percentile"] |= {
                        share: scale_number(value, unit) * lat["unit"] for share, value, unit in parts
                    }
                    lat["percentile_step"] = lat["unit"]
                elif match := ISSUED.search(line):
                    set_counts(job, [int(count or 0) for count in match.groups()])
                else:
                    continue
        source.used.add(index)
    with source.report_damage("the fio output is damaged: {error}", CUT):
        for report in reports:
            check_end(report, source)
        merged = merge_reports(reports)
        result = [add_command(run, report["command"]) for report, earlier in merged
                  for run in fio.read_report(report, earlier)]  # fmt: skip
    fio.mark_interrupted(source, result if len(merged) == 1 else ())
    return result


def add_command(run: ImportedRun, command: str) -> ImportedRun:
    """Adds the command line that started a run, if it is known, to the run's facts; returns the run."""
    run.facts |= {"command": command_fact(command)} if command else {}
    return run


def block_size(text: str) -> str:
    """A block size as in a job file, such as 4k; if the directions have different sizes, the text that fio printed."""
    sizes = {number.lower() for number in re.findall(r"[\d.]+[KMkm]?(?=i?B?[-/,]|i?B?$)", text)}
    size = sizes.pop() if len(sizes) == 1 else text
    return f"{int(size) // 1024}k" if size.isdigit() and not int(size) % 1024 else size


def scale_number(number: str, prefix: str) -> float:
    """The value of a number with a decimal prefix, such as 26483k."""
    return float(number) * 1000.0 ** PREFIX[prefix.lower()]


def read_way(text: str) -> dict[str, Any]:
    """The rate, bandwidth, bytes and time of a direction. Raises ValueError if a figure is missing."""
    rate, speed, io, runtime = RATE.search(text), SPEED.search(text), IO.search(text), RUNTIME.search(text)
    if rate is None or speed is None or io is None or runtime is None:
        raise ValueError(f"a direction has no rate, bandwidth or time: {text.strip()[:60]}")
    # fio 2 prints KB for KiB (`kb_base=1024`).
    factor = 1024.0 ** PREFIX[io[2].lower()]
    total, step = float(io[1]) * factor, last_digit(io[1]) * factor
    return {
        "iops": scale_number(rate[1], rate[2]),
        "iops_step": last_digit(rate[1]) * 1000.0 ** PREFIX[rate[2].lower()],
        "io_bytes": round(total),
        "io_step": step,
        "runtime": int(runtime[1]),
    } | choose_bandwidth(text, total, step, int(runtime[1]) / 1000)


def choose_bandwidth(text: str, total: float, total_step: float, seconds: float) -> dict[str, float]:
    """The first bandwidth that agrees with the bytes and the time, or simply the first if none does.

    fio 3.1 prints 11.98 MiB/s as `11.0MiB/s (12.6MB/s)`: it rounds the decimals up without a carry.
    """
    speeds = [(float(match[1]), last_digit(match[1]), 1024.0 ** PREFIX[match[2].lower()])
              for match in [SPEED.search(text)] if match]  # fmt: skip
    if match := DECIMAL_SPEED.search(text):
        speeds.append((float(match[1]), last_digit(match[1]), 1000.0 ** PREFIX[match[2].lower()]))
    for number, digit, factor in speeds:
        if abs(number * factor * seconds - total) <= digit * factor * seconds + total_step + 0.01 * total:
            break
    else:
        number, digit, factor = speeds[0]
    return {"bw_bytes": number * factor, "bw_step": digit * factor}


def read_latency(unit: str, text: str) -> dict[str, Any]:
    """The minimum, maximum and mean of a latency, in ns, with the resolutions of the extremes and of the mean."""
    fields = {name: (value, prefix) for name, value, prefix in FIELD.findall(text)}
    values = {name: scale_number(*fields[name]) * NS[unit] for name in ("min", "max", "avg")}
    step = max(last_digit(value) * 1000.0 ** PREFIX[prefix.lower()] for value, prefix in (fields["min"], fields["max"]))
    mean_step = last_digit(fields["avg"][0]) * 1000.0 ** PREFIX[fields["avg"][1].lower()] * NS[unit]
    return {
        "min": values["min"],
        "max": values["max"],
        "mean": values["avg"],
        "step": step * NS[unit],
        "mean_step": mean_step,
    }


def set_counts(job: dict[str, Any], counts: list[int]) -> None:
    """Sets each direction's number of operations, and computes the rate from this number and the direction's time."""
    # In fio's normal output, the fourth count is the number of fdatasync and fsync operations.
    known = dict(zip(("read", "write", "trim", "sync"), counts[:4] if any(counts[:4]) else counts[4:7], strict=False))
    known[fio.UNIFIED] = sum(known[way] for way in ("read", "write", "trim"))
    for way, count in known.items():
        if way in job:
            job[way]["total_ios"] = count
            for lat in job[way].values():
                if isinstance(lat, dict):
                    lat["N"] = count
            if way != "sync" and job[way]["runtime"]:
                seconds = job[way]["runtime"] / 1000
                check_rate(job[way]["iops"], seconds, count, slack=job[way]["iops_step"] * seconds)
                job[way] |= {"iops": count * 1000 / job[way]["runtime"], "iops_step": 0.0}


def check_end(report: dict[str, Any], source: Source) -> None:
    """Raises LoadstoneError if a group has no run status, a run status has no group, or part of a job is missing."""
    processes = [(job["jobname"], job["pid"]) for job in report["jobs"]]
    if report["groups"] != {job["groupid"] for job in report["jobs"]} or len(set(processes)) < len(processes):
        raise source.error_at("the fio output is truncated: its groups and its run statuses do not match", CUT)
    for job in report["jobs"]:
        ways = [way for way in fio.DIRECTIONS if way in job]
        missing = job["groupid"] not in report["groups"] or any(
            (job["groupid"], way) not in report["ways"] for way in ways if job[way]["runtime"]
        )
        if missing or not ways:
            message = "the fio output is truncated: a job lacks its data or its run status"
            raise source.error_at(message, CUT, job["line"])


def merge_reports(reports: list[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The last report of each run, and the run's earlier reports, which are cumulative."""
    groups: list[list[dict[str, Any]]] = []
    for report in reports:
        group = next((group for group in groups if continues_run(group[-1], report)), None)
        if group is None:
            groups.append([report])
        else:
            group.append(report)
    return [(group[-1], group[:-1]) for group in groups]


def continues_run(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a report includes the counts of an earlier report of the same run.

    Equal process ids are not sufficient, because containers reuse them.
    """
    if [job["pid"] for job in before["jobs"]] != [job["pid"] for job in after["jobs"]]:
        return False
    if not fio.has_grown(before, after):
        return False
    written = [max(job["written"] for job in report["jobs"]) for report in (before, after)]
    longest = [max((way["runtime"] / 1000 for way in fio.list_ways(report)), default=0.0) for report in (before, after)]
    # The run in the later report began before the earlier report was written. fio prints whole seconds.
    return not all(written) or written[1] - longest[1] < written[0] - longest[0] / 2 + 1


def parse_date(text: str) -> float:
    """The time at which fio wrote a job's report, in s since the epoch; 0 for any other text."""
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").timestamp()
    except ValueError:
        return 0.0
