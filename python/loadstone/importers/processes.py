"""Combines the logs of processes that form one run, such as hundreds of cassandra-stress processes at one point of a
sweep, and the runs of one command on several hosts.

Counts, rates and histograms can be added, but percentiles cannot: logs without histograms are refused, and a command's
percentiles are recorded only for each host.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadstone.engine.events import Note
from loadstone.engine.histogram import Histogram
from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.importers import hlog
from loadstone.importers.hlog_parser import COMMON_MIN
from loadstone.importers.read import Imported, name_runs, open_source
from loadstone.importers.run import OPERATIONS, ImportedRun, count_failures, histogram_figures
from loadstone.importers.source import Source
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value, metric_statistic
from loadstone.statistics.percentile import Population

HINT = "have each process write histograms (cassandra-stress: -log hdrfile=FILE), and import those files"

# In addition to rates and operation counts: the figures that are summed over hosts.
SUMMED = frozenset({"returned", "stored", "moved", "cpu_time"})
# The figures for which the maximum or the minimum over all hosts counts.
EXTREMES = {"time": max, "runtime": max, "memory_max": max, "max": max, "min": min}
# The words in the names of rates that must not be summed over hosts: rates of a single task, and statistics.
NOT_SUMMED = frozenset({"task", "average", "avg", "mean", "median", "min", "max", "stddev", "dev"})
# The fact with the requested rate, which is divided among the hosts.
TARGET = "target"


def merge_logs(paths: Sequence[Path], facts: Mapping[str, Scalar], name: str | None = None) -> list[Imported]:
    """One trial from the histogram logs of several processes.

    Raises LoadstoneError for a log without histograms, a copy of another log, or logs with different units.
    """
    opened = [open_source(path, facts, name) for path in paths]
    for source, chosen, _ in opened:
        if chosen.NAME != hlog.NAME:
            message = "the log has only percentiles, and percentiles of several processes cannot be merged"
            raise LoadstoneError(f"{message} ({source.path.name})", HINT)
    sources = [source for source, _, _ in opened]
    refuse_copies(sources)
    run = hlog.merge_runs(sources)
    run.facts["processes"] = len(paths)
    first, _, written = opened[0]
    return name_runs(first.path, [run], written, facts)


def refuse_copies(sources: Sequence[Source]) -> None:
    """Raises LoadstoneError if two files have the same content, because one process would count twice."""
    known: dict[str, Source] = {}
    for source in sources:
        digest = hashlib.sha256(source.text.encode()).hexdigest()
        if digest in known:
            message = f"{source.path} is a copy of {known[digest].path}"
            raise LoadstoneError(message, "name the log of each process only once")
        known[digest] = source


def combine_hosts(runs: Mapping[str, ImportedRun], elapsed_ns: Mapping[str, float]) -> ImportedRun:
    """One run from the runs of a command on several hosts, which began together and took `elapsed_ns`.

    Rates and counts are added. Latencies of all hosts together are known only if every host has histograms. Each host's
    figures have the prefix `host.NAME.`. If hosts finished at different times, total rates cover the longest time.
    """
    figures = {host: run.figures_with_bounds() for host, run in runs.items()}
    every = list(runs.values())
    # Percentiles already have their bounds.
    whole = replace(every[0], values=list(figures[next(iter(runs))]), of_all=True)
    if len(runs) > 1:
        clients = [run.clients for run in every if run.clients is not None]
        whole = ImportedRun(
            clients=sum(clients) if len(clients) == len(every) else None,
            loop=every[0].loop,
            facts=combine_facts(every),
            statuses=add_statuses(every),
            notes=list(combine_notes(runs)),
            end=next((run.end for run in every if run.end != "done"), "done"),
            start_unix_ns=min((run.start_unix_ns for run in every if run.start_unix_ns is not None), default=None),
            of_all=True,
        )
        combine_figures(whole, figures, list(elapsed_ns.values()))
        combine_histograms(whole, every)
    for host, values in figures.items():
        whole.values += [value.prefix_metric(f"host.{host}") for value in [*values, *headline_p99(values)]]
    return whole


def combine_figures(whole: ImportedRun, figures: Mapping[str, Sequence[Value]], elapsed_ns: Sequence[float]) -> None:
    """Adds to `whole` the sums and the extremes of the figures that every host has."""
    by_metric: dict[str, list[Value]] = {}
    for values in figures.values():
        for value in values:
            by_metric.setdefault(value.metric, []).append(value)
    common = {metric: values for metric, values in by_metric.items() if len(values) == len(figures)}
    times = [value.value for value in common.get("runtime", ())] or elapsed_ns
    is_apart = min(times) < COMMON_MIN * max(times)
    has_rate = False
    for metric, values in common.items():
        first, statistic = values[0], metric_statistic(metric)
        if is_summed(first):
            is_rate = first.unit.endswith("/s")
            has_rate |= is_rate
            shares = [time / max(times) if is_rate and is_apart else 1 for time in times]
            total = sum(value.value * share for value, share in zip(values, shares, strict=True))
            resolution = sum(value.resolution for value in values)
            n = sum(value.n for value in values)
            whole.values.append(Value(metric, total, first.unit, n, resolution=resolution))
        elif statistic in EXTREMES:
            whole.values.append(EXTREMES[statistic](values, key=lambda value: (value.bound is not None, value.value)))
    if is_apart and has_rate:
        span = f"{units.format_duration(min(times))} to {units.format_duration(max(times))}"
        message = f"the hosts ran for {span}: total rates cover the longest time"
        whole.add_note("processes-apart", message, "limit the command by time, so that all hosts run for the same time")


def is_summed(value: Value) -> bool:
    """Whether the figure for all hosts together is the sum of the figures per host."""
    statistic = metric_statistic(value.metric)
    if not NOT_SUMMED.isdisjoint(re.split(r"[^a-z]+", statistic)):
        return False
    return value.unit.endswith("/s") or value.unit == OPERATIONS or statistic in SUMMED


def combine_histograms(whole: ImportedRun, runs: Sequence[ImportedRun]) -> None:
    """Merges each histogram that every host has, and adds its latency figures, as far as a host reports them."""
    known = {value.metric for run in runs for value in run.values}
    own = {value.metric for value in whole.values}
    for tag in runs[0].histograms:
        if not all(tag in run.histograms for run in runs):
            continue
        merged = whole.histograms[tag] = Histogram()
        for run in runs:
            merged.add_histogram(run.histograms[tag])
        name = tag.lower()
        failed = count_failures(whole.statuses, name)[0]
        steps = {value.metric: value.resolution for run in runs for value in run.values}
        for value in histogram_figures(name, merged, failures=Population(failed=failed)):
            if value.metric in known - own:
                whole.values.append(replace(value, resolution=max(value.resolution, steps[value.metric])))


def combine_facts(runs: Sequence[ImportedRun]) -> dict[str, Scalar]:
    """The facts of all hosts: the sum of requested rates, and the distinct values of all other facts."""
    facts: dict[str, Scalar] = {}
    for fact in dict.fromkeys(fact for run in runs for fact in run.facts):
        values = [run.facts[fact] for run in runs if fact in run.facts]
        numbers = [value for value in values if isinstance(value, int | float)]
        if fact == TARGET and len(numbers) == len(runs):
            facts[fact] = sum(numbers)
        else:
            distinct = list(dict.fromkeys(values))
            facts[fact] = distinct[0] if len(distinct) == 1 else ", ".join(map(str, distinct))
    return facts


def add_statuses(runs: Sequence[ImportedRun]) -> dict[str, dict[str, int]]:
    """The outcomes on all hosts, keyed by operation."""
    total: dict[str, dict[str, int]] = {}
    for run in runs:
        for operation, outcomes in run.statuses.items():
            counts = total.setdefault(operation, {})
            for status, count in outcomes.items():
                counts[status] = counts.get(status, 0) + count
    return total


def combine_notes(runs: Mapping[str, ImportedRun]) -> Iterator[Note]:
    """The notes of all hosts; a note names its host, unless every host has it."""
    distinct = dict.fromkeys(note for run in runs.values() for note in run.notes)
    for note in distinct:
        hosts = [host for host, run in runs.items() if note in run.notes]
        place = "" if len(hosts) == len(runs) else f"host {', '.join(hosts)}: "
        yield replace(note, message=f"{place}{note.message}")


def headline_p99(values: Sequence[Value]) -> Iterator[Value]:
    """The p99 of all operations, or of the only operation, for the table of hosts."""
    every = {value.metric: value for value in values if metric_statistic(value.metric) == "p99"}
    if chosen := every.get("all.p99") or (next(iter(every.values())) if len(every) == 1 else None):
        yield replace(chosen, metric="p99")
