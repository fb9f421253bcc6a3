"""A run: the data that an importer finds in a file, before it gets a name and facts that the file does not contain."""

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
# All operations together.
ALL = "all"
# Also reported by its read and its update, so in sums over operations it would count twice.
COMPOSED = frozenset({"READ-MODIFY-WRITE", "READ_MODIFY_WRITE"})
# Statuses of success, by YCSB's names; older versions print 0.
WELL = frozenset({"OK", "BATCHED_OK", "0"})
# Neither success nor failure: Loadstone's reads of records whose insert was in flight, and censored operations.
NO_ERROR = WELL | {NOT_YET, CENSORED}
PERCENTILE = re.compile(r"p\d+(\.\d+)?")
# Passwords in command lines: name=value, --name value, redis-benchmark's -a, and in URIs.
SECRETS = re.compile(
    r"(?i)((?:[\w.-]*(?:passw|secret|token|credential|authenticate)[\w.-]*(?:=|:|\s+)|\s-a\s+|://[^/\s:@]*:)['\"]?)[^\s'\"@]+"
)
# Failures below this share of the operations beyond a percentile do not move it visibly.
SHIFT = 0.01


@dataclass
class ImportedRun:
    """One run of another tool; figures in base units, by the names of loadstone.results.value."""

    values: list[Value] = field(default_factory=list)
    # None if the file contains no name for it.
    variant: str | None = None
    repeat: int | None = None
    # Further dimensions that distinguish it from the file's other runs.
    dimensions: dict[str, Scalar] = field(default_factory=dict)
    clients: int | None = None
    loop: Loop = "closed"
    facts: dict[str, Scalar] = field(default_factory=dict)
    statuses: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    series: Series | None = None
    # By tag, in ns; only for a tool that was run as a command.
    histograms: dict[str, Histogram] = field(default_factory=dict)
    end: str = "done"
    start_unix_ns: int | None = None
    # The value of the last digit of printed latencies, ns.
    step_ns: float = 0.0
    # Whether percentiles cover everything that was due, whatever its outcome.
    of_all: bool = False
    # Names in the file that this importer does not know; their figures are omitted.
    unknown: dict[str, None] = field(default_factory=dict)
    # Names that it knows and omits, as results have no such figure.
    omitted: dict[str, None] = field(default_factory=dict)

    def figures_with_bounds(self) -> list[Value]:
        """The figures with information that the tool omits: the step of its latencies, and bounds due to failures.

        Tools print percentiles of the operations that ended well. With failed ones, which never
        gave their answer, the percentile of all is at least that, and unknown where the failures reach its rank.
        """
        return [self.bound_figure(value) for value in self.values]

    def bound_figure(self, value: Value) -> Value:
        """One of them."""
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
        """Failed operations and all operations, by the figures of the run."""
        known = {value.metric: value.value for value in self.values}
        return known.get("errors", 0.0), known.get("operations", 0.0)

    def add_figure(self, metric: str, value: float | None, unit: str, n: int, resolution: float = 0.0) -> None:
        """Adds a figure, and the value of its last digit; None (the tool could not compute it) is ignored.

        Raises ValueError if it is negative, which no quantity of a benchmark is.
        """
        if value is not None and math.isfinite(value):
            if value < 0:
                raise ValueError(f"{metric} is negative: {value:g}")
            self.values.append(Value(metric, value, unit, n, resolution=resolution))

    def add_text(self, metric: str, text: str, scale: float, unit: str, n: int) -> None:
        """Adds a figure in its printed form, in units of `scale`. Raises ValueError if it is not a number."""
        value = parse_number(text)
        self.add_figure(metric, None if value is None else value * scale, unit, n, last_digit(text) * scale)

    def add_totals(
        self, rate: float | None, runtime_ns: float | None, done: float, step: float = 0.0, step_ns: float = 0.0
    ) -> None:
        """Adds the figures of all operations, whose statuses are known; with the last digits of rate and time."""
        self.add_figure("throughput", rate, "op/s", int(done), step)
        self.add_figure("runtime", runtime_ns, "ns", 1, step_ns)
        self.add_figure("operations", done, OPERATIONS, int(done))
        self.add_figure("errors", count_errors(self.statuses), OPERATIONS, int(done))

    def add_note(self, name: str, message: str, hint: str) -> None:
        """Adds a note for the user."""
        self.notes.append(Note(name, message, hint))


def command_fact(text: str) -> str:
    """A command line as a fact, without passwords."""
    return SECRETS.sub(r"\1***", " ".join(text.split()))


def mix_fact(weights: Mapping[str, float]) -> str:
    """The mix of operations in the form of Loadstone's trials: `95 % read, 5 % update`."""
    total = sum(weights.values())
    ranked = sorted(weights.items(), key=lambda part: (-part[1], part[0]))
    return ", ".join(f"{units.format_percent(weight / total)} {name.lower()}" for name, weight in ranked if weight)


def check_total(source: Source, parts: float, total: float, line: int | None, slack: float = 0.0) -> None:
    """Raises LoadstoneError when a report's lines cover more or fewer operations than its total.

    Lines of another run, or missing ones: both make wrong figures.
    """
    if abs(parts - total) > slack + 0.001 * max(parts, total):
        message = (
            f"its lines cover {units.format_count(parts)} operations, and its total is {units.format_count(total)}"
        )
        raise source.error_at(message, "import the whole output of one run; another run's lines may be mixed in", line)


def set_once(fields: dict[Any, Any], name: Any, value: Any) -> None:
    """Sets a field of a report. Raises ValueError if it has another value: the lines of two runs are mixed."""
    if fields.setdefault(name, value) != value:
        raise ValueError(f"it has two values of {name[-1] if isinstance(name, tuple) else name}")


def check_rate(rate: float, seconds: float, done: float, slack: float = 0.0) -> None:
    """Raises ValueError when a rate × its time is not the number of operations, within 1 % and `slack` operations."""
    if abs(rate * seconds - done) > 1 + slack + 0.01 * done:
        raise ValueError(f"{done:,.0f} operations in {seconds:g} s are not {rate:,g} a second")


def build_series(rows: Sequence[tuple[float | None, ...]], least: int = 2) -> Series | None:
    """A series from rows of start, length and throughput, optionally with p50 and p99; None for fewer than `least`."""
    columns = (() if set(column) == {None} else column for column in zip(*rows, strict=True))
    return Series(*columns) if len(rows) >= least else None


def count_failures(
    statuses: Statuses, operation: str = ALL, excluded: Set[str] = TIMED_STEPS | COMPOSED
) -> tuple[int, int]:
    """The number of failed and of all operations of a kind, or of all kinds."""
    counts = [
        outcomes
        for name, outcomes in statuses.items()
        if (name.lower() == operation or operation == ALL) and name not in excluded
    ]
    failed = sum(count for outcomes in counts for status, count in outcomes.items() if status not in NO_ERROR)
    return failed, sum(count for outcomes in counts for count in outcomes.values())


def count_errors(statuses: Statuses) -> int:
    """The number of failed operations, including composed ones."""
    return count_failures(statuses, excluded=TIMED_STEPS)[0]


def histogram_figures(name: str, well: Histogram, ns: int = 1, failures: Population | None = None) -> Iterator[Value]:
    """A histogram's figures, with the unit `ns`; the judge decides which percentiles have too few values above them.

    Percentiles cover all operations in the file, failures and unanswered ones included.
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
    """The index of the bucket of 3 digits that a value falls into (the inverse of `Layout.highest_equivalent`)."""
    shift = max(value.bit_length() - 11, 0)
    return (shift << 10) + (value >> shift)


def build_histogram(counts: Iterable[tuple[int, int]]) -> Histogram:
    """A histogram from values and their counts."""
    histogram = Histogram(Layout())
    for value, count in counts:
        histogram.counts[bucket_index(value)] += count
    return histogram
