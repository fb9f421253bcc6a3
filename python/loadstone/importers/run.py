"""A run: the data that an importer reads from a file. A name and facts that the file omits are added later."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from loadstone.engine.events import CENSORED, NOT_YET, TIMED_STEPS, Note
from loadstone.engine.histogram import Histogram, Layout
from loadstone.format import units
from loadstone.importers.number import last_digit, parse_number
from loadstone.importers.source import Source
from loadstone.results.trial_result import Loop, Scalar, Series
from loadstone.results.value import PERCENTILES, Value, metric_statistic
from loadstone.statistics.percentile import Population

Statuses = Mapping[str, Mapping[str, int]]
OPERATIONS = "operations"
# The operation name for all operations together.
ALL = "all"
# YCSB also reports the read and the update of a read-modify-write, so sums over operations would count them twice.
COMPOSED = frozenset({"READ-MODIFY-WRITE", "READ_MODIFY_WRITE"})
# YCSB's names of successful statuses; older versions print 0.
WELL = frozenset({"OK", "BATCHED_OK", "0"})
# Statuses that are not failures: successes, reads of records whose insert was in flight, and censored operations.
NO_ERROR = WELL | {NOT_YET, CENSORED}
PERCENTILE = re.compile(r"p\d+(\.\d+)?")
# If failures are fewer than this share of the operations above a percentile, they hardly change the percentile.
SHIFT = 0.01


@dataclass
class ImportedRun:
    """One run of another tool; figures are in base units, with the names defined in loadstone.results.value."""

    values: list[Value] = field(default_factory=list)
    # The variant's name; None if the file does not state it.
    variant: str | None = None
    repeat: int | None = None
    # Further dimensions that distinguish the run from the other runs in the file.
    dimensions: dict[str, Scalar] = field(default_factory=dict)
    clients: int | None = None
    loop: Loop = "closed"
    facts: dict[str, Scalar] = field(default_factory=dict)
    statuses: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    series: Series | None = None
    # Latency histograms in ns, keyed by tag; only used for a tool that was run as a command.
    histograms: dict[str, Histogram] = field(default_factory=dict)
    end: str = "done"
    start_unix_ns: int | None = None
    # The place value of the last digit of printed latencies, in ns.
    step_ns: float = 0.0
    # Whether percentiles cover all operations that were due, whatever their outcome.
    of_all: bool = False
    # Names in the file that the importer does not know; their figures are omitted.
    unknown: dict[str, None] = field(default_factory=dict)
    # Names that the importer knows but omits, because results have no such figure.
    omitted: dict[str, None] = field(default_factory=dict)

    def figures_with_bounds(self) -> list[Value]:
        """The figures with information that the tool omits: the resolution of latencies, and bounds due to failures.

        Tools print percentiles of successful operations. Failed operations never received an answer, so with failures,
        the percentile of all operations is at least the printed percentile, and is unknown if failures reach its rank.
        """
        return [self.bound_figure(value) for value in self.values]

    def bound_figure(self, value: Value) -> Value:
        """A figure with its resolution, and its bound due to failures."""
        operation, last = (
            value.metric.removesuffix(f".{metric_statistic(value.metric)}"),
            metric_statistic(value.metric),
        )
        share = 1.0 if last == "max" else float(last[1:]) / 100 if PERCENTILE.fullmatch(last) else None
        if share is None or value.unit != "ns" or value.bound is not None:
            return value
        if value.resolution < self.step_ns:
            value = replace(value, resolution=self.step_ns)
        if self.of_all:
            return value
        failed, every = count_failures(self.statuses, operation) if self.statuses else self.count_failures()
        if not failed or failed < SHIFT * (1 - share) * every:
            return value
        return replace(value, bound="failed" if failed >= (1 - share) * every else "at_least")

    def count_failures(self) -> tuple[float, float]:
        """The numbers of failed operations and of all operations, according to the run's figures."""
        known = {value.metric: value.value for value in self.values}
        return known.get("errors", 0.0), known.get("operations", 0.0)

    def add_figure(self, metric: str, value: float | None, unit: str, n: int, resolution: float = 0.0) -> None:
        """Adds a figure with the place value of its last digit. None (the tool could not compute it) is ignored.

        Raises ValueError if the figure is negative, because a benchmark's figures cannot be negative.
        """
        metric = re.sub(r"\.p100$", ".max", metric)
        if value is not None and math.isfinite(value):
            if value < 0:
                raise ValueError(f"{metric} is negative: {value:g}")
            if metric.endswith(".max") and any(known.metric == metric for known in self.values):
                # The tool prints both the maximum and the 100th percentile, which is rounded to a bucket.
                return
            self.values.append(Value(metric, value, unit, n, resolution=resolution))

    def add_text(self, metric: str, text: str, scale: float, unit: str, n: int) -> None:
        """Adds a figure from its printed text, in multiples of `scale`. Raises ValueError if it is not a number."""
        value = parse_number(text)
        self.add_figure(metric, None if value is None else value * scale, unit, n, last_digit(text) * scale)

    def add_totals(
        self, rate: float | None, runtime_ns: float | None, done: float, step: float = 0.0, step_ns: float = 0.0
    ) -> None:
        """Adds the totals over all operations, whose statuses are known; `step` and `step_ns` are resolutions."""
        self.add_figure("throughput", rate, "op/s", int(done), step)
        self.add_figure("runtime", runtime_ns, "ns", 1, step_ns)
        self.add_figure("operations", done, OPERATIONS, int(done))
        self.add_figure("errors", count_errors(self.statuses), OPERATIONS, int(done))

    def subtract_failures(self, rate: float, failed: int, done: int) -> float:
        """A tool's rate without the failed operations that the tool counts; adds a note."""
        if not 0 < failed <= done:
            return rate
        message = f"its rate of {units.format_rate(rate)} includes {units.format_count(failed)} failed operations"
        self.add_note("counts-failures", message, "the failed operations are subtracted; see `errors`")
        return rate * (done - failed) / done

    def mark_stopped(self, message: str) -> None:
        """Marks the run as interrupted."""
        self.end = "stopped"
        self.add_note("stopped", message, "run it to completion")

    def note_replies(self, replies: Sequence[str]) -> None:
        """Adds a note on a server's error replies, if any, which the tool counts as operations."""
        if replies:
            errors = units.count_noun(len(replies), "error reply", "error replies")
            message = f'{errors} of the server, which the tool counts as operations: "{replies[0][:60]}"'
            self.add_note("error-replies", message, "see the log of the server")

    def add_note(self, name: str, message: str, hint: str) -> None:
        """Adds a note for the user."""
        self.notes.append(Note(name, message, hint))


def mix_fact(weights: Mapping[str, float]) -> str:
    """The mix of operations, as in the facts of Loadstone's trials: `95 % read, 5 % update`."""
    total = sum(weights.values())
    ranked = sorted(weights.items(), key=lambda part: (-part[1], part[0]))
    return ", ".join(f"{units.format_percent(weight / total)} {name.lower()}" for name, weight in ranked if weight)


def check_total(source: Source, parts: float, total: float, line: int | None, slack: float = 0.0) -> None:
    """Raises LoadstoneError if the lines of a report cover more or fewer operations than its total.

    In that case, lines are missing, or belong to another run. Both cause wrong figures.
    """
    if abs(parts - total) > slack + 0.001 * max(parts, total):
        cover = f"the report's lines cover {units.format_count(parts)} operations"
        message = f"{cover}, but its total is {units.format_count(total)}"
        raise source.error_at(message, "import the whole output of one run, without lines of other runs", line)


def set_once(fields: dict[Any, Any], name: Any, value: Any) -> None:
    """Sets a field of a report. Raises ValueError if it already has another value: the lines of two runs are mixed."""
    if fields.setdefault(name, value) != value:
        raise ValueError(f"it has two values for {name[-1] if isinstance(name, tuple) else name}")


def check_rate(rate: float, seconds: float, done: float, slack: float = 0.0) -> None:
    """Raises ValueError if rate × time differs from the operations by more than 1 % plus 1 + `slack` operations."""
    if abs(rate * seconds - done) > 1 + slack + 0.01 * done:
        raise ValueError(f"{done:,.0f} operations in {seconds:g} s contradict its {rate:,g} operations per second")


def build_series(rows: Sequence[tuple[float | None, ...]], least: int = 2) -> Series | None:
    """A time series of rows: start, length, throughput, optionally p50 and p99. None for fewer than `least` rows."""
    columns = (() if set(column) == {None} else column for column in zip(*rows, strict=True))
    return Series(*columns) if len(rows) >= least else None


def count_failures(
    statuses: Statuses, operation: str = ALL, excluded: Set[str] = TIMED_STEPS | COMPOSED
) -> tuple[int, int]:
    """The numbers of failed operations and of all operations of one type, or of all types."""
    counts = [
        outcomes
        for name, outcomes in statuses.items()
        if (name.lower() == operation or operation == ALL) and name not in excluded
    ]
    failed = sum(count for outcomes in counts for status, count in outcomes.items() if status not in NO_ERROR)
    return failed, sum(count for outcomes in counts for count in outcomes.values())


def count_errors(statuses: Statuses) -> int:
    """The number of failed operations, including failed composed operations."""
    return count_failures(statuses, excluded=TIMED_STEPS)[0]


def histogram_figures(name: str, well: Histogram, ns: int = 1, failures: Population | None = None) -> Iterator[Value]:
    """Yields the figures of a histogram with values in multiples of `ns` nanoseconds.

    Percentiles cover all operations in the file, including failed and unanswered operations. The judge decides which
    percentiles have too few values above them.
    """
    count = well.count
    if count:
        yield Value(f"{name}.count", count, OPERATIONS, count)
        yield Value(f"{name}.mean", well.mean * ns, "ns", count)
        yield Value(f"{name}.min", well.minimum * ns, "ns", count)
    every = replace(failures or Population(), well=well)
    names = {**PERCENTILES, "max": 1.0}
    if every.count:
        for statistic, percentile in zip(names, every.read_percentiles(list(names.values())), strict=True):
            yield Value(f"{name}.{statistic}", percentile.value * ns, "ns", every.count, percentile.bound)


def bucket_index(value: int) -> int:
    """A value's bucket index with 3 digits of precision (the inverse of `Layout.highest_equivalent`)."""
    shift = max(value.bit_length() - 11, 0)
    return (shift << 10) + (value >> shift)


def build_histogram(counts: Iterable[tuple[int, int]]) -> Histogram:
    """A histogram from values and their counts."""
    histogram = Histogram(Layout())
    for value, count in counts:
        histogram.counts[bucket_index(value)] += count
    return histogram
