"""Figures: what an engine's summary comes to as values, in base units, by the names of loadstone.results.value."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from loadstone.event import BESIDE, Interval, Outcome, Result, Summary
from loadstone.histogram import Histogram, decode
from loadstone.results.trial_result import Scalar, Series
from loadstone.results.value import PERCENTILES, Value
from loadstone.trial import Spec

# All operations together.
ALL = "all"
# The engine reports its read and its update as well, so in sums over operations it would count twice.
COMPOSED = "READ-MODIFY-WRITE"
# That of YCSB's zipfian lengths: the i-th shortest comes i^-theta times as often as the shortest.
ZIPFIAN_THETA = 0.99


def figures(result: Result, memory_max: int, prefix: str = "", window_ns: int = 0) -> Iterator[Value]:
    """The figures of one phase; `memory_max` is its intervals', and `prefix` is `load.` for the load phase.

    The engine's time ends with its last operation. With a rate that can be long before the end of the window: one
    operation every two seconds is not the thousands a second that its own time would come to.
    """
    summary = result.summary
    measured_ns = max(summary.measured_ns, window_ns)
    seconds = measured_ns / 1e9
    done = summary.operations - summary.failed
    if seconds > 0:
        yield Value(f"{prefix}throughput", done / seconds, "op/s", summary.operations)
    yield Value(f"{prefix}runtime", float(measured_ns), "ns", 1)
    yield Value(f"{prefix}operations", summary.operations, "operations", summary.operations)
    yield Value(f"{prefix}errors", summary.failed + summary.in_flight, "operations", summary.operations)
    yield Value(f"{prefix}not_yet", summary.not_yet, "operations", summary.operations)
    if summary.settle_seconds is not None:
        yield Value(f"{prefix}settle", summary.settle_seconds * 1e9, "ns", 1)
    yield from latencies(summary, prefix)
    for name, late in (("generator", summary.late_generator), ("client", summary.late_client)):
        yield Value(f"{prefix}late.{name}", late, "operations", summary.operations)
    if summary.measured_ns:
        yield Value(f"{prefix}cpu.engine", sum(summary.cpu_ns) / summary.measured_ns, "processors", 1)
    yield Value(f"{prefix}driver", result.ready.driver_ns, "ns", 1)
    # The summary's own is the kernel's, which begins with what the lab had when it started the engine.
    if memory_max:
        yield Value(f"{prefix}engine.memory_max", memory_max, "B", 1)
    yield Value(f"{prefix}engine.read", summary.device_bytes[0], "B", 1)
    yield Value(f"{prefix}engine.written", summary.device_bytes[1], "B", 1)
    yield from verified(summary, prefix)


def latencies(summary: Summary, prefix: str) -> Iterator[Value]:
    """Each operation's latency: response time where there was a rate, with service time beside it."""
    open_loop = any(outcome.response is not None for outcome in summary.outcomes)
    for service in (False, True) if open_loop else (True,):
        beside = ".service" if open_loop and service else ""
        for operation, histogram in by_operation(summary.outcomes, service=service).items():
            yield from quantiles(f"{prefix}{operation}{beside}", histogram)
        if summary.operations:
            mean = time_ns(summary.outcomes, service=service) / summary.operations
            yield Value(f"{prefix}{ALL}{beside}.mean", mean, "ns", summary.operations)


def by_operation(outcomes: Iterable[Outcome], *, service: bool) -> dict[str, Histogram]:
    """Histograms of what ended well, by operation in lower case, and of all operations together."""
    found: dict[str, Histogram] = defaultdict(Histogram)
    for outcome in outcomes:
        text = outcome.service if service else outcome.response
        if text is None or outcome.status != "OK" or not outcome.count:
            continue
        histogram = decode(text)
        found[outcome.operation.lower()].add(histogram)
        if outcome.operation not in BESIDE and outcome.operation != COMPOSED:
            found[ALL].add(histogram)
    return dict(found)


def time_ns(outcomes: Iterable[Outcome], *, service: bool) -> float:
    """The time that all operations took together, however they ended: what Little's law is about."""
    total = 0.0
    for outcome in outcomes:
        text = outcome.service if service else outcome.response
        if text is not None and outcome.count and outcome.operation not in BESIDE | {COMPOSED}:
            histogram = decode(text)
            total += histogram.mean * histogram.count
    return total


def quantiles(name: str, histogram: Histogram) -> Iterator[Value]:
    """A histogram's figures; which percentiles have too few values above them is for the judge to say."""
    count = histogram.count
    if not count:
        return
    yield Value(f"{name}.count", count, "operations", count)
    yield Value(f"{name}.mean", histogram.mean, "ns", count)
    yield Value(f"{name}.min", histogram.minimum, "ns", count)
    for statistic, value in zip(PERCENTILES, histogram.quantiles(list(PERCENTILES.values())), strict=True):
        yield Value(f"{name}.{statistic}", value, "ns", count)
    yield Value(f"{name}.max", histogram.quantile(1), "ns", count)


def verified(summary: Summary, prefix: str) -> Iterator[Value]:
    """How many values were compared with what they must be, and how many were something else."""
    counts = [(outcome.status, outcome.count) for outcome in summary.outcomes if outcome.operation == "VERIFY"]
    if counts:
        total = sum(count for _, count in counts)
        yield Value(f"{prefix}verified", total, "values", total)
        yield Value(f"{prefix}wrong", sum(count for status, count in counts if status != "OK"), "values", total)


def statuses(summary: Summary) -> dict[str, dict[str, int]]:
    """How often each operation ended how."""
    found: dict[str, dict[str, int]] = {}
    for outcome in summary.outcomes:
        counts = found.setdefault(outcome.operation, {})
        counts[outcome.status] = counts.get(outcome.status, 0) + outcome.count
    return found


def load(spec: Spec) -> dict[str, Scalar]:
    """What was to be done, as facts: the records there are, and how often which operation comes."""
    workload = spec["workload"]
    mix = sorted(workload.get("mix", {}).items(), key=lambda part: (-part[1], part[0]))
    total = sum(share for _, share in mix)
    shares = [f"{share / total * 100:.3g} % {name.replace('_', '-')}" for name, share in mix if share and total]
    facts = {"records": workload.get("records"), "mix": ", ".join(shares)}
    return {name: value for name, value in facts.items() if value}


class Course:
    """Collects a trial's intervals into a series."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, float, float, float | None, float | None, int]] = []
        # The engine's largest resident memory at the end of any interval, B; 0 before the first.
        self.memory_max = 0

    def take(self, interval: Interval) -> None:
        """Adds an interval, if it has a length."""
        self.memory_max = max(self.memory_max, interval.memory_bytes)
        if not interval.length_ns:
            return
        histogram = by_operation(interval.outcomes, service=not responds(interval)).get(ALL, Histogram())
        failed = interval.operations - interval.succeeded - interval.not_yet
        p50, p99 = (histogram.quantile(0.5), histogram.quantile(0.99)) if histogram.count else (None, None)
        seconds = interval.length_ns / 1e9
        done = interval.operations - failed
        self._rows.append((interval.start_ns / 1e9, seconds, done / seconds, p50, p99, failed))

    def series(self) -> Series:
        """All of them."""
        if not self._rows:
            return Series((), (), ())
        starts, lengths, rates, p50s, p99s, failures = zip(*self._rows, strict=True)
        return Series(starts, lengths, rates, p50s, p99s, failures)


def responds(interval: Interval) -> bool:
    """Whether response times were measured."""
    return any(outcome.response is not None for outcome in interval.outcomes)


def payload(spec: Spec, result: Result) -> Iterator[Value]:
    """Bytes of values that the operations carried: estimates from the workload's arithmetic, without keys.

    `returned` by reads and scans, `stored` by inserts and updates.
    """
    workload = spec["workload"]
    if workload.get("type") != "core":
        return
    field = mean_length(workload["field_length"])
    record = workload["field_count"] * field
    read = record if workload["read_all_fields"] else field
    update = record if workload["write_all_fields"] else field
    scanned = mean_length(workload["scan_length"]) * read
    counts: dict[str, int] = defaultdict(int)
    for outcome in result.summary.outcomes:
        if outcome.status == "OK":
            counts[outcome.operation] += outcome.count
    # A read-modify-write counts as its read and its update as well.
    returned = counts["READ"] * read + counts["SCAN"] * scanned
    stored = counts["INSERT"] * record + counts["UPDATE"] * update
    prefix = "load." if spec["phase"] == "load" else ""
    yield Value(f"{prefix}returned", returned, "B", counts["READ"] + counts["SCAN"])
    yield Value(f"{prefix}stored", stored, "B", counts["INSERT"] + counts["UPDATE"])


def mean_length(length: dict[str, Any]) -> float:
    """The mean of a length's distribution."""
    if "bytes" in length:
        return float(length["bytes"])
    if "counts" in length:
        sizes = [(i + 1) * length["block"] for i in range(len(length["counts"]))]
        return float(sum(map(operator.mul, sizes, length["counts"])) / max(sum(length["counts"]), 1))
    if length.get("distribution") == "zipfian":
        weights = [rank**-ZIPFIAN_THETA for rank in range(1, length["max"] - length["min"] + 2)]
        return float(sum(map(operator.mul, range(length["min"], length["max"] + 1), weights)) / sum(weights))
    return float(length["min"] + length["max"]) / 2
