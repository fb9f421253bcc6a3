"""fio's JSON (`--output-format=json` or `json+`), with or without its normal output around it.

Jobs of one name and group are one run: their rates are added, and their latencies combined where possible: means by
count, and percentiles from the bins of `json+`. Latency is the one with percentiles: completion latency (clat), or
total latency with `lat_percentiles=1`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import Any

from loadstone.importers.run import OPERATIONS, Run, bucketed, latencies
from loadstone.importers.source import Source
from loadstone.results.value import PERCENTILES, Value

NAME = "fio"
TITLE = "fio JSON"
DIRECTIONS = ("read", "write", "trim")
SIGN = '"fio version"'
CUT = "run fio with --output-format=json and import its whole output"
KIB = 1024


def recognises(text: str) -> bool:
    """Whether there is a report."""
    return SIGN in text


def runs(source: Source) -> list[Run]:
    """Every run in the file. Raises LoadstoneError when a report is cut."""
    found: list[Run] = []
    at = source.text.find(SIGN)
    while at >= 0:
        start = source.text.rfind("{", 0, at)
        line = source.text.count("\n", 0, max(start, 0))
        with source.reading("the fio report is cut or damaged: {error}", CUT, line):
            document, end = json.JSONDecoder().raw_decode(source.text, max(start, 0))
            found.extend(of_report(document))
        at = source.text.find(SIGN, end)
    return found


def of_report(document: Mapping[str, Any]) -> list[Run]:
    """The runs of one report, by the names of its jobs."""
    # A group ends where a job waits for those before it (stonewall).
    jobs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for job in document["jobs"]:
        jobs.setdefault((str(job["jobname"]), int(job.get("groupid", 0))), []).append(job)
    if not jobs:
        raise KeyError("jobs")
    options = dict(document.get("global options", {}))
    names = distinct((name for name, _ in jobs), "-")
    found = [
        run(name if len(jobs) > 1 else None, each, options) for name, each in zip(names, jobs.values(), strict=True)
    ]
    for each in found:
        each.facts["version"] = str(document[SIGN.strip('"')])
        # The devices' utilisation is that of all jobs together.
        for disk in document.get("disk_util", ()) if len(jobs) == 1 else ():
            each.add(f"device.{disk['name']}.util", float(disk["util"]) / 100, "share", 1)
    return found


def distinct(names: Iterable[str], separator: str) -> list[str]:
    """The names in their order; one that is taken has a number after it."""
    taken: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}{separator}{number}" for number in count(2))
        taken[next(each for each in chain([name], numbered) if each not in taken)] = None
    return list(taken)


def run(name: str | None, jobs: Sequence[dict[str, Any]], options: Mapping[str, Any]) -> Run:
    """The figures of jobs of one name and group."""
    options = {**options, **jobs[0].get("job options", {})}
    found = Run(variant=name, facts={"tool": NAME, "jobs": len(jobs)})
    for fact, option in (("io_engine", "ioengine"), ("block_size", "bs"), ("direct", "direct"), ("mode", "rw")):
        if option in options:
            found.facts[fact] = str(options[option])
    for option in ("iodepth", "numjobs"):
        if str(options.get(option, "")).isdigit():
            found.facts[option] = int(options[option])
    if any(option == "rate" or option.startswith("rate_iops") for option in options):
        found.loop = "open"
    for direction in DIRECTIONS:
        one_way(direction, [job[direction] for job in jobs if int(job.get(direction, {}).get("total_ios", 0))], found)
    syncs = [job["sync"] for job in jobs if int(job.get("sync", {}).get("total_ios", 0))]
    if syncs:
        timed("sync", [lat for each in syncs if (lat := each.get("lat_ns"))], 1.0, found)
    ways = [job[way] for job in jobs for way in DIRECTIONS if way in job]
    done = sum(int(way.get("total_ios", 0)) for way in ways)
    found.add("throughput", sum(float(way["iops"]) for way in ways), "op/s", done)
    found.add("operations", done, OPERATIONS, done)
    failed = [str(job["error"]) for job in jobs if int(job.get("error", 0))]
    # With `continue_on_error` fio counts them; without it, a job ends at its first.
    found.add("errors", sum(int(job.get("total_err", bool(job.get("error", 0)))) for job in jobs), OPERATIONS, done)
    if failed:
        found.end = "failed"
        found.note("failed", f"fio ended with error {', '.join(failed)}", "see fio's own output")
    found.add("runtime", max(float(way["runtime"]) for way in ways) * 1e6, "ns", 1)
    return found


def one_way(direction: str, jobs: Sequence[Mapping[str, Any]], found: Run) -> None:
    """The figures of reads, writes or trims."""
    if not jobs:
        return
    done = sum(int(job["total_ios"]) for job in jobs)
    # fio 2 only has KiB/s.
    speed = sum(float(job["bw_bytes"]) if "bw_bytes" in job else float(job["bw"]) * KIB for job in jobs)
    found.add(f"{direction}.bandwidth", speed, "B/s", done)
    moved = "returned" if direction == "read" else "stored" if direction == "write" else None
    if moved is not None and all("io_bytes" in job for job in jobs):
        found.add(moved, sum(int(job["io_bytes"]) for job in jobs), "B", done)
    found.add(f"{direction}.throughput", sum(float(job["iops"]) for job in jobs), "op/s", done)
    new = "clat_ns" in jobs[0]
    kinds = ("lat_ns", "clat_ns") if new else ("lat", "clat")
    kind = next((each for each in kinds if any("percentile" in job.get(each, {}) for job in jobs)), kinds[1])
    found.facts["latency"] = "total" if kind.startswith("lat") else "completion"
    timed(direction, [job[kind] for job in jobs if kind in job], 1.0 if new else 1e3, found)


# fio's bins are a 64th of their values wide (stat.h: FIO_IO_U_PLAT_BITS is 6).
BINS = 64


def timed(name: str, each: Sequence[Mapping[str, Any]], ns: float, found: Run) -> None:
    """Latencies, given in units of `ns`; for several jobs, those that can be combined."""
    each = [lat for lat in each if int(lat.get("N", 1)) and "mean" in lat]
    if not each:
        return
    n = sum(int(lat.get("N", 0)) for lat in each)
    weights = [int(lat.get("N", 0)) if n else 1 for lat in each]
    found.add(f"{name}.count", n or None, OPERATIONS, n)
    mean = sum(float(lat["mean"]) * weight for lat, weight in zip(each, weights, strict=True)) / sum(weights)
    found.add(f"{name}.mean", mean * ns, "ns", n)
    found.add(f"{name}.min", min(float(lat["min"]) for lat in each) * ns, "ns", n)
    found.add(f"{name}.max", max(float(lat["max"]) for lat in each) * ns, "ns", n)
    bins = [lat["bins"] for lat in each if lat.get("bins")]
    if len(bins) == len(each):
        counts = ((round(int(value) * ns), int(count)) for one in bins for value, count in one.items())
        found.histograms[name.upper()] = bucketed(counts)
    if len(each) == 1:
        for share, value in each[0].get("percentile", {}).items():
            figure = float(value) * ns
            found.values.append(Value(f"{name}.p{float(share):g}", figure, "ns", n, resolution=figure / BINS))
    elif len(bins) == len(each):
        derived = {value.metric: value for value in latencies(name, found.histograms[name.upper()])}
        found.values.extend(value for key, value in derived.items() if key.removeprefix(f"{name}.") in PERCENTILES)
    elif any("percentile" in lat for lat in each):
        message = f"each of {len(each)} jobs has its own percentiles, and those of several cannot be combined"
        found.note("percentiles-left-out", message, "run fio with group_reporting=1, or with --output-format=json+")
