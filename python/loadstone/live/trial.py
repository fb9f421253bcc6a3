"""Reads the current attempt at a trial from its files: the intervals of the load, and samples of host and servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadstone.engine.document import read_document
from loadstone.engine.events import COMPOSED, TIMED_STEPS, WELL, Earlier, Interval, Outcome
from loadstone.engine.histogram import Histogram, decode_histogram
from loadstone.live.tail import Tail
from loadstone.observe.summary import SERVER
from loadstone.results.fault import NONE as NO_FAULT
from loadstone.results.fault import FaultRecord
from loadstone.results.folder import FAULTS, UNDER_WAY
from loadstone.results.lines import parse_json

EVENTS = ".events.jsonl"
# The name of the load phase; all other phases are measured.
LOAD = "load"
# The latency quantiles that a point contains.
QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}
# The prefix of an engine among the observed processes. A server has the prefix SERVER.
ENGINE = "engine"
# The minimum time between two samples that are compared, ns. Processor time is counted in ticks of 10 ms, so the last
# sample of a phase, which may follow the previous sample within milliseconds, could otherwise show more processors than
# the host has.
SAMPLE_NS_MIN = 250_000_000


@dataclass
class IntervalRow:
    """One interval of a phase, summed over all engines; includes operations that were due in the interval but completed
    later."""

    start_ns: int
    length_ns: int
    due: int | None = None
    completed: int = 0
    ended: int = 0
    failed: int = 0
    histogram: Histogram = field(default_factory=Histogram)

    def chart_point(self, phase: str, k: int) -> dict[str, Any]:
        """The interval as a point of a chart: rates per second, latencies in ns (None if no operation succeeded)."""
        seconds = max(self.length_ns, 1) / 1e9
        quantiles = {
            name: self.histogram.value_at_quantile(share) if self.histogram.counts else None
            for name, share in QUANTILES.items()
        }
        due = None if self.due is None else self.due / seconds
        return {
            "k": k,
            "phase": phase,
            "at": (self.start_ns + self.length_ns) / 1e9,
            "throughput": self.completed / seconds,
            "ended": self.ended / seconds,
            "failed": self.failed / seconds,
            "due": due,
            **quantiles,
        }


@dataclass
class Steps:
    """The counts and the latencies (ns) of a phase's operations, keyed by step and status."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    latencies: dict[tuple[str, str], Histogram] = field(default_factory=dict)
    # For metrics: the samples computed from each histogram, and the number of operations at that time.
    rendered: dict[tuple[str, str], tuple[int, Sequence[Any]]] = field(default_factory=dict)

    def add_outcome(self, outcome: Outcome, histogram: Histogram) -> None:
        """Adds the operations in an outcome of an interval."""
        key = outcome.operation, outcome.status
        self.counts[key] = self.counts.get(key, 0) + outcome.count
        self.latencies.setdefault(key, Histogram()).add_histogram(histogram)


class Attempt:
    """One attempt at a trial, read from its directory while the runner writes to it."""

    def __init__(self, directory: Path, trial: str, config: Mapping[str, Any], repeat: int) -> None:
        self.directory, self.trial, self.config, self.repeat = directory, trial, dict(config), repeat
        self.rows: dict[str, dict[int, IntervalRow]] = {}
        self.steps: dict[str, Steps] = {}
        self.ready: dict[str, Any] = {}
        self.spec: dict[str, Any] = {}
        self.hosts: list[dict[str, Any]] = []
        # The start of the window on the wall clock, ns; the times of host samples are relative to this start.
        self.start_unix_ns: int | None = None
        self._placed = ""
        self._tails: dict[str, Tail] = {}
        self._observed = Tail(directory / "observed.jsonl")
        self._faults = Tail(directory / FAULTS)
        # The faults so far, keyed by number, as bands for charts, in seconds since the start of the window.
        self.faults: dict[int, dict[str, Any]] = {}
        self._sample: dict[str, Any] | None = None
        self._changed: set[tuple[str, int]] = set()
        # The points that changed, in order, so that viewers receive only changes.
        self.changes: list[tuple[str, int]] = []
        self._points: dict[tuple[str, int], dict[str, Any]] = {}

    @property
    def phase(self) -> str:
        """The current phase: `prepare`, `load`, `warm up` or `measure`."""
        name = next(reversed(self._tails), "")
        if not name:
            return "prepare"
        if name.partition(".")[0] == LOAD:
            return LOAD
        return "measure" if self.rows.get(name.partition(".")[0]) else "warm up"

    @property
    def seconds(self) -> float | None:
        """The length of the window, s; None if a number of operations limits it."""
        until = self.spec.get("until")
        limit = until.get("seconds") if isinstance(until, dict) else None
        return limit if isinstance(limit, int | float) else None

    def read_new(self) -> None:
        """Reads the new lines in the attempt's files."""
        for path in sorted(self.directory.glob(f"*{EVENTS}"), key=lambda path: (not path.name.startswith(LOAD), path)):
            stem = path.name.removesuffix(EVENTS)
            if stem not in self._tails:
                self._tails[stem] = Tail(path)
                self.spec = read_json(path.with_name(f"{stem}.spec.json"))
            for document in self._tails[stem].read_new():
                self._take_event(stem.partition(".")[0], document)
        for sample in self._observed.read_new():
            self._add_sample(sample)
        for document in self._faults.read_new():
            self._add_fault(document)
        for phase, k in self._changed:
            self._points[phase, k] = self.rows[phase][k].chart_point(phase, k)
        self.changes += self._changed
        self._changed.clear()

    @property
    def is_behind(self) -> bool:
        """Whether the events, the samples or the faults have further lines to read."""
        return any(tail.is_behind for tail in (*self._tails.values(), self._observed, self._faults))

    @property
    def is_part(self) -> bool:
        """Whether the directory is not complete."""
        return self.directory.name.endswith(UNDER_WAY)

    def find_final(self) -> Path | None:
        """The directory under its final name if the attempt has ended since the last read, else None."""
        final = self.directory.with_name(self.directory.name.removesuffix(UNDER_WAY))
        return final if final != self.directory and final.is_dir() and not self.directory.is_dir() else None

    def follow_rename(self, directory: Path) -> None:
        """Follows the renaming of the directory to its final name; the files stay the same."""
        for tail in (*self._tails.values(), self._observed, self._faults):
            tail.path = directory / tail.path.name
        self.directory = directory

    def list_points(self, first: int = 0, last: int | None = None) -> list[dict[str, Any]]:
        """The points of the current phase, in order: all, or those in the changes from `first` to before `last`."""
        phase = next(reversed(self.rows), "")
        return [self._points[key] for key in sorted({*self.changes[first:last]}) if key[0] == phase]

    def _take_event(self, phase: str, document: dict[str, Any]) -> None:
        if document.get("event") == "ready":
            self.ready = {name: document.get(name) for name in ("store", "durability", "clients")}
        if document.get("event") != "interval":
            return
        try:
            interval = read_document(Interval, document)
            rows = self.rows.setdefault(phase, {})
            row = rows.setdefault(interval.k, IntervalRow(interval.start_ns, interval.length_ns))
            if interval.due is not None:
                row.due = (row.due or 0) + interval.due
            if phase != self._placed:
                # The start is set once for each phase, so that the times that viewers have already received stay valid.
                self._placed, self.start_unix_ns = phase, interval.unix_ns - interval.start_ns - interval.length_ns
            parts: tuple[Interval | Earlier, ...] = (interval, *interval.earlier)
            for part in parts:
                self._add_part(phase, part)
        except (ValueError, TypeError):
            # A line from a different version is skipped; the remaining lines are shown.
            return

    def _add_part(self, phase: str, part: Interval | Earlier) -> None:
        row = self.rows[phase].get(part.k)
        if row is None:
            return
        row.completed += part.completed
        row.ended += part.ended
        row.failed += part.failed
        steps = self.steps.setdefault(phase, Steps())
        for outcome in part.outcomes:
            if outcome.count and outcome.operation not in TIMED_STEPS:
                histogram = decode_histogram(outcome.service if outcome.response is None else outcome.response)
                steps.add_outcome(outcome, histogram)
                if outcome.status in WELL and outcome.operation not in COMPOSED:
                    row.histogram.add_histogram(histogram)
        self._changed.add((phase, part.k))

    def _add_sample(self, sample: dict[str, Any]) -> None:
        before = self._sample
        try:
            if before is not None:
                if sample["monotonic_ns"] - before["monotonic_ns"] < SAMPLE_NS_MIN:
                    return
                self.hosts.append(measure_use(before, sample))
            self._sample = sample
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return

    def _add_fault(self, document: dict[str, Any]) -> None:
        try:
            record = read_document(FaultRecord, {name: part for name, part in document.items() if name != "fault"})
            if record.kind != NO_FAULT and (start_ns := record.held_ns or record.ordered_ns) is not None:
                end = None if record.lifted_ns is None else record.lifted_ns / 1e9
                self.faults[int(document["fault"])] = {"kind": record.kind, "from": start_ns / 1e9, "to": end}
        except (KeyError, TypeError, ValueError, OverflowError):
            return

    def host_points(self, first: int, start_unix_ns: int) -> list[dict[str, Any]]:
        """The processors in use, by role, in all samples from number `first` onwards, with times in seconds since the
        start of the window."""
        return [{**use, "at": (use["unix_ns"] - start_unix_ns) / 1e9} for use in self.hosts[first:]]


def measure_use(before: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    """The host's usage between two samples: processors in use, in total and by role, and available memory, B.

    `steal` is the time that the hypervisor withheld, as a number of processors.
    """
    seconds = (sample["monotonic_ns"] - before["monotonic_ns"]) / 1e9
    ticks = sample["ticks_per_second"] * seconds
    total = [now - then for now, then in zip(sample["processors"]["cpu"], before["processors"]["cpu"], strict=True)]
    # The columns are user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
    busy = (sum(total) - total[3] - total[4]) / ticks
    used = {"engine": 0.0, "servers": 0.0}
    for name, process in sample["processes"].items():
        role = "servers" if name.startswith(SERVER) else "engine" if name.startswith(ENGINE) else ""
        earlier = before["processes"].get(name, {})
        if role and earlier.get("pid") == process["pid"]:
            used[role] += (process["cpu_ticks"] - earlier["cpu_ticks"]) / ticks
    steal = total[7] / ticks if len(total) > 7 else 0.0
    available = sample["memory"].get("available")
    return {"unix_ns": sample["unix_ns"], "host": busy, **used, "steal": steal, "memory": available}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON document; empty if it is missing or damaged."""
    try:
        document = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
