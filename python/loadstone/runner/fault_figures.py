"""The figures of a trial with faults: outage, recovery, and the users' view in each window around the fault.

The figures come from the engine's events, which count operations and latencies by the interval in which the operations
were due. So the time can be split into windows at the actual instants of the fault, which are known only afterwards.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from loadstone.engine.events import (
    COMPOSED,
    TIMED_STEPS,
    WELL,
    Counts,
    Interval,
    KeyRanges,
    Outcome,
    Summary,
    parse_event,
)
from loadstone.engine.histogram import Histogram, decode_histogram
from loadstone.results.fault import FaultRecord, borders_of
from loadstone.results.trial_result import Series, TrialResult, values_by_metric
from loadstone.results.value import Value
from loadstone.runner import engine_figures
from loadstone.statistics import availability
from loadstone.statistics.availability import HOLD_NS, SHARE, WINDOW_NS, WINDOWS, OfferedLoad
from loadstone.statistics.percentile import Population

# The default deadline is this multiple of the p99.9 before the fault, but at least 50 ms (Loadstone's definition).
DEADLINE_FACTOR = 10
DEADLINE_NS_MIN = 50_000_000
DEADLINE_QUANTILE = 0.999
# A key range is interrupted if its yield is below RANGE_YIELD in a window of at least a second. The window is long
# enough for RANGE_OPERATIONS on average; a window with at most half as many operations is not judged.
RANGE_YIELD = 0.5
RANGE_OPERATIONS = 20
# The parts of a composed operation.
PARTS = frozenset({"READ", "UPDATE"})
# The files of the measured phase, whether it ran one engine or several.
EVENTS, SPECS = "run*.events.jsonl", "run*.spec.json"


@dataclass(frozen=True)
class Options:
    """The conditions of recovery; the defaults are in `loadstone.statistics.availability`."""

    share: float = SHARE
    window_ns: int = WINDOW_NS
    hold_ns: int = HOLD_NS
    # An operation that succeeds after this time is late. If None, the time is computed from latencies before the fault.
    deadline_ns: int | None = None


DEFAULTS = Options()


@dataclass
class FaultInterval:
    """The operations due in one interval, over all segments: counts, and outcomes with their histograms."""

    start_ns: int
    length_ns: int
    due: int | None = None
    good: int = 0
    late: int = 0
    failed: int = 0
    not_yet: int = 0
    completed: int = 0
    # Operations sent more than 1 ms late because all clients were busy, or because of the engine.
    late_client: int = 0
    late_generator: int = 0
    outcomes: list[Outcome] = field(default_factory=list)

    def latencies(self) -> dict[str, Histogram]:
        """The latencies of the successful operations, ns, by operation."""
        merged: dict[str, Histogram] = {}
        for outcome in self.outcomes:
            if outcome.status in WELL and outcome.count and outcome.operation not in TIMED_STEPS:
                histogram = merged.setdefault(outcome.operation, Histogram())
                histogram.add_histogram(decode_histogram(outcome.response or outcome.service))
        return merged

    def first_failure_ns(self) -> int | None:
        """The shortest latency of a failed operation, ns; None if no operation failed."""
        failed = (outcome for outcome in self.outcomes if outcome.is_failure and outcome.count)
        return min((decode_histogram(outcome.response or outcome.service).minimum for outcome in failed), default=None)


def read_rows(paths: Iterable[Path]) -> list[FaultInterval]:
    """The intervals of a phase, with the counts and histograms of all its engines added up.

    Raises ValueError if a line is not an event, OSError if a file cannot be read.
    """
    rows: dict[int, FaultInterval] = {}
    for path in paths:
        with path.open() as lines:
            for line in lines:
                if isinstance(event := parse_event(line), Interval) and event.length_ns:
                    add_interval(rows, event)
    return [rows[number] for number in sorted(rows)]


def add_interval(rows: dict[int, FaultInterval], event: Interval) -> None:
    """Adds an interval of one engine, and adds to earlier intervals the operations that have completed since."""
    row = rows.setdefault(event.k, FaultInterval(event.start_ns, event.length_ns))
    if event.due is not None:
        row.due = (row.due or 0) + event.due
    row.late_client += event.late_client
    row.late_generator += event.late_generator
    parts: tuple[Counts, ...] = (event, *event.earlier)
    for part in parts:
        if target := rows.get(part.k):
            target.good += part.good
            target.late += part.late
            target.failed += part.failed
            target.not_yet += part.not_yet
            target.completed += part.completed
            target.outcomes += part.outcomes


def read_ranges(paths: Iterable[Path]) -> KeyRanges | None:
    """A phase's counts by key range, added up; None if an engine has no counts, or if the engines' key ranges differ.

    Raises ValueError if a line is not an event, OSError if a file cannot be read.
    """
    sections = []
    for path in paths:
        with path.open() as lines:
            # Parsing the interval events again would take seconds.
            summaries = (parse_event(line) for line in lines if '"key_ranges"' in line)
            sections.append(next((event.key_ranges for event in summaries if isinstance(event, Summary)), None))
    known = [section for section in sections if section is not None]
    keys = {(section.interval_ns, section.shares, section.deadlines_ns) for section in known}
    if len(known) < len(sections) or len(keys) != 1 or not known[0].sent:
        return None
    sent, good = (np.sum([getattr(section, name) for section in known], axis=0) for name in ("sent", "good"))
    tables = tuple(tuple(map(tuple, table)) for table in good.tolist())
    return replace(known[0], sent=tuple(map(tuple, sent.tolist())), good=tables)


def load_by_range(ranges: KeyRanges, rows: Sequence[FaultInterval], deadline_ns: int) -> list[OfferedLoad]:
    """Due and good operations of each key range; empty if they are unknown.

    Operations that were never sent have unknown keys, so they are divided in the proportions of the sent operations.
    """
    sent, numbers = np.array(ranges.sent, dtype=np.float64), [row.start_ns // ranges.interval_ns for row in rows]
    bound = next((at for at, bound_ns in enumerate(ranges.deadlines_ns) if bound_ns >= deadline_ns), None)
    if bound is None or not sent.sum() or max(numbers) >= sent.shape[1]:
        return []
    good = np.sum(np.array(ranges.good, dtype=np.float64)[: bound + 1], axis=0)[:, numbers]
    total = load_of(rows)
    unsent = np.maximum(total.due - sent[:, numbers].sum(axis=0), 0)
    due = sent[:, numbers] + np.outer(sent.sum(axis=1) / sent.sum(), unsent)
    return [replace(total, due=due[at], good=good[at]) for at in range(len(due))]


def measure_ranges(
    ranges: KeyRanges, rows: Sequence[FaultInterval], order_ns: int, deadline_ns: int
) -> Iterator[Value]:
    """The largest outage and the longest gap of any key range, and the number and share of interrupted ranges.

    Ranges with fewer than `RANGE_OPERATIONS` operations since the fault are not judged.
    """
    dips = list[availability.Dip]()
    interrupted, affected, unjudged = 0, 0.0, 0
    for share, load in zip(ranges.shares, load_by_range(ranges, rows, deadline_ns), strict=False):
        first = load.index_at(order_ns)
        due = load.due[first:]
        if due.sum() < RANGE_OPERATIONS:
            unjudged += 1
            continue
        dips.append(availability.measure_dip(load, order_ns))
        window = max(availability.seconds_of(load, first), math.ceil(RANGE_OPERATIONS / due.mean()))
        if availability.measure_depth(load, first, window, RANGE_OPERATIONS / 2) > 1 - RANGE_YIELD:
            interrupted += 1
            affected += share
    if dips:
        step = float(ranges.interval_ns)
        yield Value("range.outage", max(dip.outage_ns for dip in dips), "ns", len(dips))
        yield Value("range.longest_gap", max(dip.gap_ns for dip in dips), "ns", len(dips), resolution=step)
        yield Value("range.interrupted", interrupted, "ranges", len(dips))
        yield Value("range.affected", min(affected, 1.0), "share", len(dips), "at_least" if unjudged else None)


def figures_of_faults(
    faults: Sequence[FaultRecord],
    rows: Sequence[FaultInterval],
    options: Options = DEFAULTS,
    ranges: KeyRanges | None = None,
) -> list[Value]:
    """The figures of a trial with faults, whose windows are separated by the first fault and the last lift; empty
    without faults or intervals."""
    if not faults or not rows:
        return []
    order_ns, lift_ns = borders_of(faults)
    if any(row.due is None for row in rows):
        return list(measure_closed_loop(rows, faults, order_ns, lift_ns))
    counted, deadline_ns = apply_deadline(rows, order_ns, options)
    figures = list(measure_open_loop((counted, deadline_ns), faults, order_ns, lift_ns, options))
    return figures + ([] if ranges is None else list(measure_ranges(ranges, counted, order_ns, deadline_ns)))


def apply_deadline(
    rows: Sequence[FaultInterval], order_ns: int, options: Options
) -> tuple[Sequence[FaultInterval], int]:
    """The rows, in which operations that missed the deadline count as late; and the deadline, ns.

    If the engine had no deadline, the default follows from the latencies before the fault. The bucket of an operation's
    latency, which is at most 0.1 % wide, then decides whether the operation is late.
    """
    if options.deadline_ns is not None:
        return rows, options.deadline_ns
    latencies = [row.latencies() for row in rows]
    before = Histogram()
    for row, histograms in zip(rows, latencies, strict=True):
        for operation, histogram in histograms.items() if row.start_ns + row.length_ns <= order_ns else ():
            if operation not in COMPOSED:
                before.add_histogram(histogram)
    tail_ns = before.value_at_quantile(DEADLINE_QUANTILE) if before.count else 0
    deadline_ns = max(DEADLINE_FACTOR * tail_ns, DEADLINE_NS_MIN)
    counted = []
    for row, histograms in zip(rows, latencies, strict=True):
        late = min(count_late(histograms, deadline_ns), row.good + row.late)
        counted.append(replace(row, good=row.good + row.late - late, late=late))
    return counted, deadline_ns


def count_late(histograms: Mapping[str, Histogram], deadline_ns: int) -> int:
    """The number of operations that took longer than the deadline.

    The histograms of reads and updates include the parts of read-modify-writes. All these operations choose keys in the
    same way, so the parts are assumed to be as slow as other reads and updates.
    """
    composed = sum(histogram.count for operation, histogram in histograms.items() if operation in COMPOSED)
    late = 0.0
    for operation, histogram in histograms.items():
        highest, parts = histogram.layout.highest_equivalent, composed if operation in PARTS else 0
        slow = sum(count for index, count in histogram.counts.items() if highest(index) > deadline_ns)
        late += slow * max(1 - parts / histogram.count, 0)
    return round(late)


def load_of(rows: Sequence[FaultInterval]) -> OfferedLoad:
    """Due and good operations by interval, excluding operations whose outcome cannot be judged."""
    return OfferedLoad(
        np.array([row.start_ns for row in rows], dtype=np.int64),
        np.array([row.length_ns for row in rows], dtype=np.int64),
        np.array([max((row.due or 0) - row.not_yet, 0) for row in rows], dtype=np.float64),
        np.array([row.good for row in rows], dtype=np.float64),
    )


def measure_open_loop(
    counted: tuple[Sequence[FaultInterval], int],
    faults: Sequence[FaultRecord],
    order_ns: int,
    lift_ns: int | None,
    options: Options,
) -> Iterator[Value]:
    """The figures of an open loop, whose operations have due times."""
    rows, deadline_ns = counted
    load = load_of(rows)
    due = int(load.due[load.index_at(order_ns) :].sum())
    step = float(np.median(load.length_ns))
    dip = availability.measure_dip(load, order_ns)
    yield Value("outage", dip.outage_ns, "ns", due)
    yield Value("depth", dip.depth, "share", due)
    yield Value("width", dip.width_ns, "ns", due, resolution=step)
    yield Value("longest_gap", dip.gap_ns, "ns", due, resolution=step)
    yield Value("deadline", deadline_ns, "ns", 1)
    yield from first_figures(rows, order_ns, deadline_ns, step)
    recovery = None
    if (line := availability.line_before(load, order_ns, options.share, options.window_ns)) is not None:
        yield Value("recovered.line", line.level, "share", line.windows)
        yield Value("recovered.median", line.median, "share", line.windows)
        yield Value("recovered.noise", line.noise, "share", line.windows)
        yield Value("recovered.window", line.window_ns, "ns", line.windows)
        if lift_ns is not None:
            absorbed = availability.find_recovery(load, line, order_ns, lift_ns)
            if absorbed.after_ns is not None:
                yield Value("absorbed", absorbed.after_ns, "ns", 1, resolution=step)
        recovery = availability.find_recovery(load, line, order_ns if lift_ns is None else lift_ns)
        if recovery.after_ns is None:
            yield Value("recovered", recovery.watched_ns, "ns", 1, "at_least")
        else:
            yield Value("recovered", recovery.after_ns, "ns", 1, resolution=step)
            yield Value("recovered.held", recovery.held_ns, "ns", 1)
        yield Value("recovered.hold", options.hold_ns, "ns", 1)
    yield from record_figures(faults, order_ns, lift_ns)
    yield Value("before.interrupted", count_interrupted(rows, order_ns), "operations", 1)
    back = None
    if recovery is not None and recovery.after_ns is not None:
        back = (order_ns if lift_ns is None else lift_ns) + recovery.after_ns
    yield from window_figures(rows, order_ns, lift_ns, back)


def count_interrupted(rows: Sequence[FaultInterval], order_ns: int) -> int:
    """The number of operations that were due before the fault was ordered, and failed afterwards."""
    interrupted = 0
    for row in (row for row in rows if row.failed and row.start_ns + row.length_ns <= order_ns):
        for outcome in row.outcomes:
            if outcome.is_failure and outcome.count and outcome.operation not in TIMED_STEPS | COMPOSED:
                histogram = decode_histogram(outcome.response or outcome.service)
                highest = histogram.layout.highest_equivalent
                ends_ns = ((row.start_ns + row.length_ns + highest(at), n) for at, n in histogram.counts.items())
                interrupted += sum(count for end_ns, count in ends_ns if end_ns >= order_ns)
    return interrupted


def first_figures(rows: Sequence[FaultInterval], order_ns: int, deadline_ns: int, step: float) -> Iterator[Value]:
    """The instants at which the first failure completed and the first late operation passed its deadline, ns since the
    fault was ordered.

    Both are accurate to one interval, since an operation's due time within its interval is unknown.
    """
    after = [row for row in rows if row.start_ns + row.length_ns > order_ns]
    errors = [
        max(row.start_ns - order_ns, 0) + latency
        for row in after
        if row.failed and (latency := row.first_failure_ns()) is not None
    ]
    if errors:
        yield Value("first_error", min(errors), "ns", len(errors), resolution=step)
    late = [max(row.start_ns - order_ns, 0) + deadline_ns for row in after if row.late]
    if late:
        yield Value("first_late", min(late), "ns", len(late), resolution=step)


def record_figures(faults: Sequence[FaultRecord], order_ns: int, lift_ns: int | None) -> Iterator[Value]:
    """The times until a fault was first detected and connections first became unusable, ns since the fault was ordered.

    Also the times until all connections were usable, and all servers ready and settled, ns since the lift.
    """
    for name, instants in (
        ("detected", [fault.detected_ns for fault in faults]),
        ("unusable", [fault.unusable_ns for fault in faults]),
    ):
        known = [instant for instant in instants if instant is not None]
        if known:
            yield Value(name, min(known) - order_ns, "ns", len(known))
    for name, instants in (
        ("usable", [fault.usable_ns for fault in faults]),
        ("ready", [fault.ready_ns for fault in faults]),
        ("settled", [fault.settled_ns for fault in faults]),
    ):
        known = [instant for instant in instants if instant is not None]
        if known and lift_ns is not None:
            yield Value(name, max(max(known) - lift_ns, 0), "ns", len(known))


def attempt_figures(result: TrialResult) -> Iterator[Value]:
    """The rate of connection attempts while the load generator had no usable connection to a victim."""
    attempted, end_ns = result.value("connections.attempted"), result.value("runtime")
    begins = [fault.unusable_ns for fault in result.faults if fault.unusable_ns is not None]
    if attempted is None or end_ns is None or not begins:
        return
    ends = [fault.usable_ns for fault in result.faults if fault.unusable_ns is not None]
    length_ns = max(end_ns if end is None else end for end in ends) - min(begins)
    if length_ns > 0:
        yield Value("connections.attempt_rate", attempted * 1e9 / length_ns, "attempts/s", int(attempted))


def split_rows(
    rows: Sequence[FaultInterval], order_ns: int, lift_ns: int | None, back_ns: int | None
) -> Iterator[tuple[str, list[FaultInterval]]]:
    """The rows of each window. Without a lift, there is no `returning` window; without a recovery, there is no `after`
    window."""
    names = [name for name in WINDOWS if lift_ns is not None or name != "returning"]
    borders = [order_ns, *([] if lift_ns is None else [lift_ns]), *([] if back_ns is None else [back_ns])]
    windows: dict[str, list[FaultInterval]] = {name: [] for name in names}
    for row in rows:
        windows[names[availability.window_of(row.start_ns, row.length_ns, borders)]].append(row)
    yield from ((name, of_window) for name, of_window in windows.items() if of_window)


def window_figures(
    rows: Sequence[FaultInterval], order_ns: int, lift_ns: int | None, back_ns: int | None
) -> Iterator[Value]:
    """Yield, counts and latencies of each window."""
    every = dict.fromkeys(outcome.operation for row in rows for outcome in row.outcomes)
    kinds = [operation.lower() for operation in every if operation not in TIMED_STEPS | COMPOSED]
    for name, of_window in split_rows(rows, order_ns, lift_ns, back_ns):
        due = sum((row.due or 0) - row.not_yet for row in of_window)
        good, late, failed = (sum(getattr(row, count) for row in of_window) for count in ("good", "late", "failed"))
        yield Value(f"{name}.length", sum(row.length_ns for row in of_window), "ns", 1)
        yield Value(f"{name}.due", due, "operations", due)
        if due > 0:
            yield Value(f"{name}.yield", good / due, "share", due)
        unanswered = max(due - good - late - failed, 0)
        yield Value(f"{name}.late", late, "operations", due)
        yield Value(f"{name}.failed", failed, "operations", due)
        yield Value(f"{name}.unanswered", unanswered, "operations", due)
        outcomes = [outcome for row in of_window for outcome in row.outcomes if outcome.operation not in TIMED_STEPS]
        for status, count in failures_by_status(outcomes).items():
            yield Value(f"{name}.failed.{status.lower()}", count, "operations", due)
        yield from latency_figures(name, outcomes, unanswered, kinds)


def failures_by_status(outcomes: Iterable[Outcome]) -> Mapping[str, int]:
    """The number of failed operations by status."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        if outcome.is_failure and outcome.operation not in TIMED_STEPS | COMPOSED and outcome.count:
            counts[outcome.status] = counts.get(outcome.status, 0) + outcome.count
    return counts


def latency_figures(window: str, outcomes: Sequence[Outcome], unanswered: int, kinds: Sequence[str]) -> Iterator[Value]:
    """Percentiles of a window by operation, over all operations due; `kinds` are the trial's types of operation.

    An unanswered operation has no latency in any interval; in `all`, its latency counts as infinite. Its type is known
    only if the trial has a single type of operation; otherwise, the percentiles by type are lower bounds.
    """
    of_all = {engine_figures.ALL, *(kinds if len(kinds) == 1 else ())}
    for kind in ("response", "service"):
        populations = engine_figures.group_by_operation(outcomes, kind)
        for name in of_all if unanswered else ():
            populations.setdefault(name, (Population(), 0.0))[0].failed += unanswered
        for operation, (population, mean) in populations.items():
            suffix = "" if kind == "response" else ".service"
            for value in engine_figures.quantiles(f"{window}.{operation}{suffix}", population, mean):
                is_bound = unanswered and operation not in of_all and value.bound is None
                yield replace(value, bound="at_least") if is_bound else value


def measure_closed_loop(
    rows: Sequence[FaultInterval], faults: Sequence[FaultRecord], order_ns: int, lift_ns: int | None
) -> Iterator[Value]:
    """The figures of a closed loop: throughput, gaps and failures.

    Operations in a closed loop have no due times, and a stall counts once for each client, however long the stall
    lasts. A closed loop therefore has neither a yield nor an outage.
    """
    borders = [order_ns, *([] if lift_ns is None else [lift_ns])]
    names = ("before", "during", "after")
    windows: dict[str, list[FaultInterval]] = {name: [] for name in names}
    for row in rows:
        windows[names[availability.window_of(row.start_ns, row.length_ns, borders)]].append(row)
    rates = {}
    for name, of_window in windows.items():
        if length_ns := sum(row.length_ns for row in of_window):
            completed, failed = (sum(getattr(row, part) for row in of_window) for part in ("completed", "failed"))
            rates[name] = completed * 1e9 / length_ns
            yield Value(f"{name}.throughput", rates[name], "op/s", completed)
            yield Value(f"{name}.failed", failed, "operations", completed + failed)
    if rates.get("before"):
        for name in ("during", "after"):
            if name in rates:
                yield Value(f"{name}.throughput_share", rates[name] / rates["before"], "share", 1)
    ones = np.ones(len(rows))
    load = replace(load_of(rows), due=ones, good=np.array([row.completed for row in rows], dtype=np.float64))
    gap = availability.measure_gap_ns(load, load.index_at(order_ns))
    yield Value("longest_gap", gap, "ns", 1, resolution=float(np.median(load.length_ns)))
    yield from record_figures(faults, order_ns, lift_ns)


def add_figures(
    result: TrialResult, series: Series | None, files: Path, options: Options = DEFAULTS
) -> tuple[TrialResult, Series | None]:
    """Adds the figures of a trial's faults to its result, and the good and late operations to its time series.

    Without faults, both are returned unchanged. If the events cannot be read, the judge reports the missing figures.
    """
    if not result.faults:
        return result, series
    try:
        events = sorted(files.glob(EVENTS))
        rows, ranges = read_rows(events), read_ranges(events)
        deadline_ms = json.loads(min(files.glob(SPECS)).read_text()).get("deadline_ms")
    except (OSError, ValueError):
        return result, series
    if deadline_ms is not None:
        options = replace(options, deadline_ns=round(deadline_ms * 1e6))
    computed = [*figures_of_faults(result.faults, rows, options, ranges), *attempt_figures(result)]
    if series is not None and len(rows) == len(series.start_seconds) and all(row.due is not None for row in rows):
        counted, _ = apply_deadline(rows, borders_of(result.faults)[0], options)
        series = replace(series, good=tuple(row.good for row in counted), late=tuple(row.late for row in counted))
    return replace(result, values={**result.values, **values_by_metric(*computed)}), series
