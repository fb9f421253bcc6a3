"""fio's JSON (`--output-format=json` or `json+`), with or without normal output around it.

Jobs with the same name and group form one run. Their rates are added, and their latencies are combined where possible:
means are weighted by count, and percentiles are computed from the bins of `json+`. The importer reads the latency for
which fio prints percentiles: completion latency (clat), or total latency with `lat_percentiles=1`.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count, pairwise
from typing import Any

from loadstone.importers.fio_options import add_options
from loadstone.importers.json_text import list_numbered, read_documents
from loadstone.importers.run import (
    OPERATIONS,
    ImportedRun,
    build_histogram,
    build_series,
    check_rate,
    histogram_figures,
)
from loadstone.importers.source import Source
from loadstone.results.value import PERCENTILES, Value

NAME = "fio"
TITLE = "fio JSON"
# With `unified_rw_reporting`, fio reports reads, writes and trims together as `mixed`: either instead of or in addition
# to separate figures.
UNIFIED = "mixed"
DIRECTIONS = ("read", "write", "trim", UNIFIED)
SIGN = '"fio version"'
CUT = "run fio with --output-format=json and import its whole output"
KIB = 1024
# The name under which fio reports the sum of all hosts' jobs, with merged latencies.
ALL_CLIENTS = "All clients"
NS_PER_MS = 1e6
# Modes in which a job reads only to verify its data.
NO_READS = ("write", "randwrite", "trim", "randtrim", "trimwrite", "randtrimwrite")
# If the shortest run time of jobs is less than this share of the longest, their rates cannot be added.
COMMON_MIN = 0.95
INTERRUPTED = re.compile(r"^fio: terminating on signal \d+")
# The length of a job, in s unless it has a unit.
LENGTH = re.compile(r"(\d+)(|us|ms|s|m|h)")
SECONDS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# A time-based job that finished ran for at least this share of its configured time.
TIMED = 0.99

LATENCIES = ("slat_ns", "clat_ns", "lat_ns", "slat", "clat", "lat")

# Two reports with growing counts may belong to one run or to two. More reports with growing counts belong to one run.
UNCLEAR = 2

Job = Mapping[str, Any]


def recognise_text(text: str) -> bool:
    """Whether the text contains a fio report in JSON."""
    return SIGN in text


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a report is truncated."""
    reports: list[Job] = []
    read_documents(source, SIGN, CUT, reports.append, "fio report")
    groups: list[list[Job]] = []
    for report in reports:
        with source.report_damage("the fio report is truncated or damaged: {error}", CUT):
            if groups and continues_run(groups[-1][-1], report):
                groups[-1].append(report)
            else:
                groups.append([report])
    result: list[ImportedRun] = []
    for group in groups:
        if len(group) == UNCLEAR and not any(map(find_time_written, group)):
            message = "it is unknown whether two reports without timestamps belong to one run or to two runs"
            raise source.error_at(message, "import each run as a separate file, or only the last report of the run")
        with source.report_damage("the fio report is truncated or damaged: {error}", CUT):
            result += read_report(group[-1], group[:-1])
    mark_interrupted(source, result if len(groups) == 1 else ())
    return result


def mark_interrupted(source: Source, runs: Iterable[ImportedRun]) -> None:
    """Marks the runs of a report as interrupted if a signal terminated fio: the report itself looks complete."""
    for index, line in enumerate(source.lines):
        if INTERRUPTED.search(line):
            source.used.add(index)
            for run in runs:
                run.mark_stopped(f"fio printed: {line.strip()}")
            return


def continues_run(before: Job, after: Job) -> bool:
    """Whether a report continues the run of the previous report (`--status-interval`), whose counts it includes."""
    if [job_key(job) for job in list_jobs(before)] != [job_key(job) for job in list_jobs(after)]:
        return False
    if not has_grown(before, after) or options_of(before) != options_of(after):
        return False
    written = [find_time_written(report) for report in (before, after)]
    if all(written):
        longest = max((float(way["runtime"]) for way in list_ways(after)), default=0.0)
        # The run in the later report began before the earlier report was written.
        return written[1] - longest < written[0] - min(longest, 1000) / 2
    elapsed = [max(float(job.get("elapsed", 0)) for job in list_jobs(report)) for report in (before, after)]
    return elapsed[1] > elapsed[0] and extremes_widen(before, after)


def options_of(report: Job) -> list[Any]:
    """The options of a report's jobs."""
    return [report.get("global options"), *(job.get("job options") for job in list_jobs(report))]


def has_grown(before: Job, after: Job) -> bool:
    """Whether no count or time of a report is smaller than in the earlier report."""
    sums = [[sum(float(way.get(key, 0)) for way in list_ways(report)) for key in ("io_bytes", "total_ios", "runtime")]
            for report in (before, after)]  # fmt: skip
    return all(later >= earlier for earlier, later in zip(*sums, strict=True))


def extremes_widen(before: Job, after: Job) -> bool:
    """Whether no latency of a direction has a larger minimum or a smaller maximum than in the earlier report."""
    pairs = [
        (earlier[way][name], later[way][name])
        for earlier, later in zip(list_jobs(before), list_jobs(after), strict=True)
        for way in active_directions([earlier])
        for name in LATENCIES
        if isinstance(earlier[way].get(name), Mapping) and isinstance(later.get(way, {}).get(name), Mapping)
    ]
    return all(
        later.get("min", 0) <= earlier.get("min", 0) and later.get("max", 0) >= earlier.get("max", 0)
        for earlier, later in pairs
    )


def job_key(job: Job) -> tuple[str, int]:
    """A job's name and group. A job that waits for the earlier jobs (stonewall) begins a new group."""
    return str(job["jobname"]), int(job.get("groupid", 0))


def list_ways(report: Job) -> list[Job]:
    """The data of every active direction of every job in a report."""
    return [job[way] for job in list_jobs(report) for way in active_directions([job])]


def list_jobs(report: Job) -> list[Job]:
    """The jobs in a report; with `fio --client` and several hosts, only the sum of all hosts' jobs."""
    jobs = report["jobs"] if "jobs" in report else report["client_stats"]
    return [job for job in jobs if job["jobname"] == ALL_CLIENTS] or list(jobs)


def active_directions(jobs: Sequence[Job]) -> list[str]:
    """The directions that have data; `mixed`, which includes the other directions, only if no other has data."""
    active = [way for way in DIRECTIONS if any(is_active(job.get(way, {})) for job in jobs)]
    return [way for way in active if way != UNIFIED or active == [UNIFIED]]


def is_active(way: Job) -> bool:
    """Whether a direction has any operations."""
    longest = [way[name].get("max", 0) for name in ("clat_ns", "clat", "lat_ns", "lat") if name in way]
    return any(float(value) for value in (*(way.get(key, 0) for key in ("total_ios", "io_bytes", "runtime")), *longest))


def count_operations(way: Job) -> int:
    """The number of operations of a direction. Before 2.2, fio prints no count; it is then computed from the rate."""
    return int(way["total_ios"]) if "total_ios" in way else round(float(way["iops"]) * float(way["runtime"]) / 1000)


def read_report(document: Job, earlier: Sequence[Job] = ()) -> list[ImportedRun]:
    """The runs in a report, named after its jobs; `earlier` contains the run's earlier reports, for the time series."""
    jobs: dict[tuple[str, int], list[Job]] = {}
    for job in list_jobs(document):
        jobs.setdefault(job_key(job), []).append(job)
    if not jobs:
        raise KeyError("jobs")
    options = document.get("global options", {})
    names = number_names((name for name, _ in jobs), "-")
    result = [
        read_run(name if len(jobs) > 1 else None, group, options)
        for name, group in zip(names, jobs.values(), strict=True)
    ]
    for key, run in zip(jobs, result, strict=True):
        run.facts["job_name"] = key[0]
        run.facts["version"] = str(document[SIGN.strip('"')])
        run.start_unix_ns = start_of(document, jobs[key])
        run.series = series_of(
            [[job for job in list_jobs(report) if job_key(job) == key] for report in earlier], jobs[key]
        )
        # The utilisation of devices covers all jobs together.
        for disk in document.get("disk_util", ()) if len(jobs) == 1 else ():
            run.add_figure(f"device.{disk['name']}.util", float(disk["util"]) / 100, "share", 1)
    return result


def start_of(document: Job, jobs: Sequence[Job]) -> int | None:
    """The start of a run: the time of the report, which fio writes at the end, minus the time that the jobs took."""
    elapsed_s = max((float(job.get("elapsed", 0)) for job in jobs), default=0.0)
    end_ms = find_time_written(document)
    return round((end_ms - elapsed_s * 1000) * NS_PER_MS) if end_ms else None


def find_time_written(report: Job) -> float:
    """The Unix time at which a report was written, in ms; 0 if the report does not state it."""
    return float(report.get("timestamp_ms", 0)) or float(report.get("timestamp", 0)) * 1000


def series_of(earlier: Sequence[Sequence[Job]], last: Sequence[Job]) -> Any:
    """The rates between successive cumulative reports as a time series; None if there is only one report."""
    points = [(0.0, 0.0)]
    for jobs in [*earlier, last]:
        active = [job[way] for job in jobs for way in active_directions([job])]
        points.append(
            (max((float(way["runtime"]) / 1000 for way in active), default=0.0), sum(map(count_operations, active)))
        )
    rows = [(at, until - at, (total - before) / (until - at)) for (at, before), (until, total) in pairwise(points)
            if until > at]  # fmt: skip
    return build_series(rows) if earlier else None


def number_names(names: Iterable[str], separator: str) -> list[str]:
    """The names in order, with a number appended to each duplicate."""
    used: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}{separator}{number}" for number in count(2))
        used[next(candidate for candidate in chain([name], numbered) if candidate not in used)] = None
    return list(used)


def read_run(name: str | None, jobs: Sequence[Job], shared: dict[str, Any]) -> ImportedRun:
    """The run that consists of the jobs with one name and group."""
    # Reading a key marks it as read.
    options = ChainMap(jobs[0].get("job options", {}), shared)
    run = ImportedRun(variant=name, facts={"tool": NAME, "jobs": len(jobs)})
    for job in jobs:
        check_job(job, options)
    add_options(run, jobs[0], options)
    active = active_directions(jobs)
    for way in active:
        add_direction(way, [job[way] for job in jobs if is_active(job.get(way, {}))], run)
    # fio counts fdatasync operations only in the latencies.
    syncs = [
        lat for job in jobs if (lat := job.get("sync", {}).get("lat_ns")) and (lat.get("N") or is_active(job["sync"]))
    ]
    add_latencies("sync", syncs, 1.0, run)
    if "read" in active and len(active) > 1 and str(options.get("rw")) in NO_READS:
        # The reads of `verify` follow the writes, so the sum of both rates was never reached.
        active = [way for way in active if way != "read"]
        message = "the job reads only to verify its data, so the totals omit its reads"
        run.add_note("verification", message, "see `read.…` for their figures")
    parts = [job[way] for job in jobs for way in active if is_active(job.get(way, {}))]
    done = sum(map(count_operations, parts))
    run.add_figure("throughput", add_rates([float(way["iops"]) for way in parts], parts), "op/s", done,
                   rate_step(parts))  # fmt: skip
    times = [float(way["runtime"]) / 1000 for way in parts if float(way["runtime"])]
    if are_apart(times):
        message = f"its jobs ran for {min(times):g} to {max(times):g} s: their rates cover the longest time"
        run.add_note("processes-apart", message, "run all jobs for the same time: time_based=1 and runtime=60")
    run.add_figure("operations", done, OPERATIONS, done, count_step(parts))
    failed = [str(job["error"]) for job in jobs if int(job.get("error", 0))]
    # With `continue_on_error`, fio counts errors; otherwise, a job stops at its first error.
    run.add_figure(
        "errors", sum(int(job.get("total_err", bool(job.get("error", 0)))) for job in jobs), OPERATIONS, done
    )
    if failed:
        run.end = "failed"
        run.add_note("failed", f"fio failed with error {', '.join(failed)}", "see fio's own output")
    longest = max((float(way["runtime"]) for way in parts), default=0.0)
    run.add_figure("runtime", longest * NS_PER_MS, "ns", 1, NS_PER_MS)
    return run


def check_job(job: Job, options: Mapping[str, Any]) -> None:
    """Raises ValueError if a job has no direction, has figures among its options, or did not run for its full time."""
    if not any(way in job for way in DIRECTIONS):
        raise ValueError("a job has no direction")
    if any(not isinstance(value, str) for value in job.get("job options", {}).values()):
        # The lines between the options and a direction are missing.
        raise ValueError("the options of a job contain figures")
    length = LENGTH.fullmatch(str(options.get("runtime", "")))
    if "time_based" in options and options["time_based"] != "0" and length:
        stated = int(length[1]) * SECONDS[length[2]]
        longest = max((float(job[way]["runtime"]) for way in DIRECTIONS if way in job), default=0.0)
        if 0 < longest < stated * 1000 * TIMED and not int(job.get("error", 0)):
            raise ValueError(f"it was written after {longest / 1000:g} of {stated:g} s: the final report is missing")


def check_direction(way: Job) -> None:
    """Raises ValueError if the rates or latencies of a direction contradict its time, operations or bytes."""
    seconds = float(way["runtime"]) / 1000
    if "total_ios" in way and seconds:
        check_rate(float(way["iops"]), seconds, int(way["total_ios"]), slack=rate_step([way]) * seconds)
    if "io_bytes" in way and seconds:
        unit = bytes_unit(way)
        speed, step = (float(way["bw_bytes"]), 1.0) if "bw_bytes" in way else (float(way["bw"]) * KIB, float(KIB))
        slack = float(way.get("bw_step", step)) * seconds + float(way.get("io_step", unit))
        if abs(speed * seconds - float(way["io_bytes"]) * unit) > slack + 0.01 * speed * seconds:
            raise ValueError(f"{way['io_bytes']} bytes in {seconds:g} s contradict its {speed:,.0f} B/s")
    most = count_operations(way)
    for name in (name for name in way if name.endswith("lat_ns")):
        lat = way[name]
        if isinstance(lat, Mapping) and int(lat.get("N", 0)) > 1.01 * most + 1:
            raise ValueError(f"{name} has {lat['N']} latencies for {most} operations")


def add_rates(rates: Sequence[float], parts: Sequence[Job]) -> float:
    """The sum of rates; if their times differ, the rate over the longest time, as in fio's group totals."""
    times = [float(way["runtime"]) for way in parts]
    if not are_apart(times):
        return sum(rates)
    return sum(rate * time for rate, time in zip(rates, times, strict=True)) / max(times)


def are_apart(times: Sequence[float]) -> bool:
    """Whether times differ by more than 5 %, so that the sum of the rates was not sustained for the longest time."""
    return len(times) > 1 and min(times) < COMMON_MIN * max(times)


def rate_step(parts: Sequence[Job]) -> float:
    """The resolution of the sum of several rates: before fio 2.2, a rate is a whole number; times are in whole ms."""
    steps = (max(float(way.get("iops_step", isinstance(way["iops"], int))), time_share(way) * float(way["iops"]))
             for way in parts)  # fmt: skip
    return sum(steps)


def time_share(way: Job) -> float:
    """The resolution of a direction's run time, 1 ms, as a share of this time."""
    return 1 / float(way["runtime"]) if float(way["runtime"]) else 0.0


def bytes_unit(way: Job) -> int:
    """The unit of `io_bytes`, inferred from bandwidth × time: KiB before fio 2.99, bytes in later versions."""
    speed = float(way["bw_bytes"]) if "bw_bytes" in way else float(way["bw"]) * KIB
    expected, total = speed * float(way["runtime"]) / 1000, float(way["io_bytes"])
    return KIB if total and expected / total > KIB**0.5 else 1


def count_step(parts: Sequence[Job]) -> float:
    """The resolution of a number of operations that was computed from a rate."""
    steps = (rate_step([way]) * float(way["runtime"]) / 1000 + 1 for way in parts if "total_ios" not in way)
    return sum(steps)


def add_direction(direction: str, jobs: Sequence[Job], run: ImportedRun) -> None:
    """Adds the figures of reads, of writes, of trims, or of all of them (`mixed`)."""
    for job in jobs:
        check_direction(job)
    done = sum(map(count_operations, jobs))
    # fio 2 prints only KiB and KiB/s; 3.0 and 3.1 still print KiB/s.
    speeds = [float(job["bw_bytes"]) if "bw_bytes" in job else float(job["bw"]) * KIB for job in jobs]
    steps = (
        float(job.get("bw_step", max(0 if "bw_bytes" in job else KIB, time_share(job) * speed)))
        for job, speed in zip(jobs, speeds, strict=True)
    )
    run.add_figure(f"{direction}.bandwidth", add_rates(speeds, jobs), "B/s", done, sum(steps))
    metric = {"read": "returned", "write": "stored", UNIFIED: "moved"}.get(direction)
    if metric is not None and all("io_bytes" in job for job in jobs):
        units = [bytes_unit(job) for job in jobs]
        total = sum(int(job["io_bytes"]) * unit for job, unit in zip(jobs, units, strict=True))
        steps = (float(job.get("io_step", unit if unit > 1 else 0)) for job, unit in zip(jobs, units, strict=True))
        run.add_figure(metric, total, "B", done, sum(steps))
    rates = [float(job["iops"]) for job in jobs]
    run.add_figure(f"{direction}.throughput", add_rates(rates, jobs), "op/s", done, rate_step(jobs))
    new = "clat_ns" in jobs[0] or "lat_ns" in jobs[0]
    names = ("lat_ns", "clat_ns") if new else ("lat", "clat")
    name = next((name for name in names if any("percentile" in job.get(name, {}) for job in jobs)), names[1])
    run.facts["latency"] = "total" if name.startswith("lat") else "completion"
    for job in jobs:
        if name in job and "N" not in job[name]:
            job[name]["N"] = count_operations(job)
    add_latencies(direction, [job[name] for job in jobs if name in job], 1.0 if new else 1e3, run, count_step(jobs))


# fio's bins are 1/64 of their values wide (stat.h: FIO_IO_U_PLAT_BITS is 6).
BINS = 64
# Keys of latencies and directions, which do not occur in lists of percentiles or bins.
OF_LATENCY = re.compile(r"min|max|mean|stddev|N|percentile|bins|\w+_(?:min|max|ns|agg|mean|dev|stddev|samples|ios)")


def add_latencies(name: str, lats: Sequence[Job], ns: float, run: ImportedRun, step_n: float = 0.0) -> None:
    """Adds latencies in units of `ns` nanoseconds; for several jobs, only the figures that can be combined."""
    lats = [lat for lat in lats if int(lat.get("N", 1))]
    if not lats:
        return
    n = sum(int(lat.get("N", 0)) for lat in lats)
    weights = [int(lat.get("N", 0)) if n else 1 for lat in lats]
    run.add_figure(f"{name}.count", n or None, OPERATIONS, n, step_n)
    mean = sum(float(lat["mean"]) * weight for lat, weight in zip(lats, weights, strict=True)) / sum(weights)
    # The resolution; for fio's normal output, the place value of the last printed digit.
    step = max(float(lat.get("step", 0.0 if ns == 1 else ns)) for lat in lats)
    run.add_figure(f"{name}.mean", mean * ns, "ns", n, max(float(lat.get("mean_step", 0.0)) for lat in lats))
    run.add_figure(f"{name}.min", min(float(lat["min"]) for lat in lats) * ns, "ns", n, step)
    run.add_figure(f"{name}.max", max(float(lat["max"]) for lat in lats) * ns, "ns", n, step)
    bins = [lat["bins"] for lat in lats if lat.get("bins")]
    if len(bins) == len(lats):
        counts = (
            (round(int(value) * ns), int(times)) for part in bins for value, times in list_numbered(part, OF_LATENCY)
        )
        run.histograms[name.upper()] = build_histogram(counts)
        if run.histograms[name.upper()].count != n:
            raise ValueError(f"the bins of {name} contain {run.histograms[name.upper()].count} of {n} operations")
    if len(lats) == 1:
        for share, value in list_numbered(lats[0].get("percentile", {}), OF_LATENCY):
            if not 0 <= float(share) <= 100:
                # This is a bin of `json+`: the lines between the percentiles and the bins are missing.
                raise ValueError(f"{name} has the percentile {share}, which is not between 0 and 100")
            figure = float(value) * ns
            steps = max(figure / BINS, float(lats[0].get("percentile_step", step)))
            # fio 2 and 3.1 pad their lists of percentiles with `"0.00" : 0`.
            if float(share):
                run.values.append(Value(f"{name}.p{float(share):g}", figure, "ns", n, resolution=steps))
    elif len(bins) == len(lats):
        derived = {value.metric: value for value in histogram_figures(name, run.histograms[name.upper()])}
        run.values.extend(value for key, value in derived.items() if key.removeprefix(f"{name}.") in PERCENTILES)
    elif any("percentile" in lat for lat in lats):
        message = f"each of {len(lats)} jobs has its own percentiles, which cannot be combined"
        run.add_note("percentiles-left-out", message, "run fio with group_reporting=1, or with --output-format=json+")
