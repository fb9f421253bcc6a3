"""Computes the figures of a launch's hosts from their merged summaries and their observers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from loadstone.engine.events import COMPOSED, TIMED_STEPS, Files, Note, Summary
from loadstone.engine.histogram import Histogram, decode_histogram
from loadstone.format import units
from loadstone.results.value import Value

# A host is slow if, at a rate, its p99 exceeds this multiple or, in a closed loop, its throughput per client is below
# this share, of the median of all hosts.
P99_FACTOR = 1.5
THROUGHPUT_SHARE = 0.8
# For these figures, the value of the whole trial is the maximum over the hosts with engines.
WORST = ("cpu.busy", "cpu.steal", "cpu.others")
# The figures in WORST that also count on hosts with only servers.
DISTURBANCES = ("cpu.steal", "cpu.others")


def host_values(name: str, summary: Summary | None, figures: Sequence[Value]) -> Iterator[Value]:
    """The figures of a host, with the prefix `host.NAME.`."""
    prefix = f"host.{name}."
    if summary is not None:
        operations = summary.operations
        yield Value(f"{prefix}operations", operations, "operations", operations)
        if (files := summary.files) is not None:
            yield from file_values(prefix, files)
        elif summary.measured_ns:
            yield Value(f"{prefix}throughput", summary.throughput, "op/s", summary.completed)
        yield Value(f"{prefix}errors", summary.failures, "operations", operations)
        yield Value(f"{prefix}late.generator", summary.late_generator, "operations", operations)
        yield Value(f"{prefix}late.client", summary.late_client, "operations", operations)
        if (p99 := p99_ns(summary)) is not None:
            yield Value(f"{prefix}p99", p99, "ns", operations)
    for figure in figures:
        yield Value(prefix + figure.metric, figure.value, figure.unit, figure.n)


def file_values(prefix: str, files: Files) -> Iterator[Value]:
    """The bytes that a host moved, its throughput from its first start to its last completion, and its throughput over
    the sum of the tasks' times. The whole trial has the corresponding figures."""
    yield Value(f"{prefix}moved", files.bytes, "B", files.done)
    if files.first_start_unix_ns is not None and files.last_done_unix_ns is not None:
        elapsed_ns = max(files.last_done_unix_ns - files.first_start_unix_ns, 1)
        yield Value(f"{prefix}throughput", files.bytes * 1e9 / elapsed_ns, "B/s", files.done)
        yield Value(f"{prefix}task_throughput", files.bytes * 1e9 / max(files.task_ns, 1), "B/s", files.done)


def worst_values(hosts: Iterable[Sequence[Value]]) -> Iterator[Value]:
    """For each share of CPU time (busy, stolen, used by other processes), the highest value on any host."""
    values = [figure for figures in hosts for figure in figures]
    for metric in WORST:
        if shares := [value for value in values if value.metric == metric]:
            yield max(shares, key=lambda value: value.value)


def add_disturbances(measured: Sequence[Value], of_hosts: Sequence[Value]) -> Iterator[Value]:
    """The highest shares of CPU time stolen, or used by other processes, on the hosts with engines or servers."""
    for metric in DISTURBANCES if of_hosts else ():
        shares = [value for value in measured if value.metric == metric][-1:]
        shares += [replace(value, metric=metric) for value in of_hosts if value.metric.endswith(f".{metric}")]
        if shares:
            yield max(shares, key=lambda value: value.value)


def p99_ns(summary: Summary) -> float | None:
    """The p99 of all successful operations of a host, ns: of response times if there are any, else of service times."""
    every = Histogram()
    for outcome in summary.outcomes:
        if not outcome.is_failure and outcome.operation not in TIMED_STEPS | COMPOSED:
            every.add_histogram(decode_histogram(outcome.response or outcome.service))
    return every.value_at_quantile(0.99) if every.count else None


def slowest_host(summaries: Mapping[str, Summary], clients: Mapping[str, int]) -> Note | None:
    """A note on the host that deviates most from the median of all hosts, if the deviation is large.

    `clients` is the number of clients on each host: in a closed loop, a host with fewer clients does less work.
    """
    if len(summaries) < 2:
        return None
    is_open = any(summary.due is not None for summary in summaries.values())
    if is_open:
        figures = {name: p99 for name, summary in summaries.items() if (p99 := p99_ns(summary)) is not None}
        if len(figures) < 2:
            return None
        name = max(figures, key=lambda host: figures[host])
        middle = statistics.median_low(sorted(figures.values()))
        if figures[name] <= P99_FACTOR * middle:
            return None
        message = f"p99 {units.format_duration(figures[name])}, median of hosts {units.format_duration(middle)}"
    else:
        figures = {
            name: summary.throughput / clients[name]
            for name, summary in summaries.items()
            if summary.measured_ns and clients.get(name)
        }
        if len(figures) < 2:
            return None
        name = min(figures, key=lambda host: figures[host])
        middle = statistics.median_high(sorted(figures.values()))
        if figures[name] >= THROUGHPUT_SHARE * middle:
            return None
        message = f"{units.format_rate(figures[name])} for each client, median of hosts {units.format_rate(middle)}"
    return Note(
        "slowest-host",
        f"host {name} is the slowest: {message}",
        "compare its CPU time, network and lateness with the other hosts",
    )
