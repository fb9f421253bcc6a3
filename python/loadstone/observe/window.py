"""A window: the increases of counters between successive samples, and the extremes of levels.

Samples are accumulated rather than stored, so a day of samples fits in memory. A reset counter, an unplugged device or
an exited process affects only one pair of successive samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from loadstone.observe.host_counters import PROCESSOR, Ticks
from loadstone.observe.sample import LAB, HostSample

ALL_PROCESSORS = "cpu"
IDLE = frozenset({"idle", "iowait"})
# The columns for programs and kernel threads. Interrupts are not attributed to any process, because they also serve the
# engine's I/O.
BY_SOMEBODY = frozenset({"user", "nice", "system"})


@dataclass
class Usage:
    """The activity of one watched process in the window."""

    elapsed_ns: int = 0
    cpu_ticks: int = 0
    faults_major: int = 0
    memory_max: int = 0


@dataclass
class Attribution:
    """CPU ticks, counted only over pairs of successive samples in which the CPU time of the lab and of every watched
    process is known."""

    all: int = 0
    used: int = 0
    watched: int = 0


@dataclass
class Window:
    """The sums over a phase; times are in ns, unless a comment states another unit."""

    first: HostSample | None = None
    last: HostSample | None = None
    samples: int = 0
    # The ticks of all processors together, keyed by the columns in PROCESSOR.
    ticks: Counter[str] = field(default_factory=Counter)
    attributed: Attribution = field(default_factory=Attribution)
    # For each device: B read, written and discarded, busy ms, and the number of reads. For each interface: B received
    # and sent. For each resource: some µs, full µs.
    disks: dict[str, list[int]] = field(default_factory=dict)
    network: dict[str, list[int]] = field(default_factory=dict)
    pressure: dict[str, list[int]] = field(default_factory=dict)
    throttled_ns: int | None = None
    processes: dict[str, Usage] = field(default_factory=dict)
    available_min: int | None = None
    dirty_max: int | None = None
    cache_sum: int = 0
    cache_samples: int = 0

    @property
    def elapsed_ns(self) -> int:
        """The time from the first to the last sample."""
        return self.last.clocks.monotonic_ns - self.first.clocks.monotonic_ns if self.first and self.last else 0

    def add_sample(self, sample: HostSample) -> None:
        """Adds the next sample."""
        if self.last is not None:
            self._add_pair(self.last, sample)
        else:
            self.first = sample
        self.last = sample
        self.samples += 1
        self._add_levels(sample)

    def _add_levels(self, sample: HostSample) -> None:
        levels = sample.memory
        if "available" in levels:
            self.available_min = min(levels["available"], self.available_min or levels["available"])
        if "dirty" in levels:
            # A page on its way to the device is no longer dirty, but not yet durable.
            self.dirty_max = max(levels["dirty"] + levels.get("writeback", 0), self.dirty_max or 0)
        if "cached" in levels:
            # tmpfs and shared memory also count as cached, but cache nothing.
            cache = levels["cached"] + levels.get("buffers", 0) - levels.get("shared", 0)
            self.cache_sum += max(cache, 0)
            self.cache_samples += 1
        for name, process in sample.processes.items():
            usage = self.processes.setdefault(name, Usage())
            usage.memory_max = max(usage.memory_max, process.memory_bytes)

    def _add_pair(self, before: HostSample, after: HostSample) -> None:
        elapsed_ns = after.clocks.monotonic_ns - before.clocks.monotonic_ns
        old, new = before.processors.get(ALL_PROCESSORS), after.processors.get(ALL_PROCESSORS)
        if old is not None and new is not None:
            gained = ticks_between(old, new)
            self.ticks.update(gained)
            engine_ticks = sum_watched_ticks(before, after)
            if engine_ticks is not None:
                self.attributed.all += sum(gained.values())
                self.attributed.used += sum(gained[column] for column in BY_SOMEBODY)
                self.attributed.watched += engine_ticks
        add_rows(self.disks, before.disks, after.disks)
        add_rows(self.network, before.network, after.network)
        add_rows(self.pressure, before.pressure, after.pressure)
        if before.throttled_ns is not None and after.throttled_ns is not None:
            self.throttled_ns = (self.throttled_ns or 0) + counter_delta(before.throttled_ns, after.throttled_ns)
        for name, process in after.processes.items():
            was = before.processes.get(name)
            if was is not None and was.key == process.key:
                usage = self.processes.setdefault(name, Usage())
                usage.elapsed_ns += elapsed_ns
                usage.cpu_ticks += max(process.cpu_ticks - was.cpu_ticks, 0)
                usage.faults_major += max(process.faults_major - was.faults_major, 0)


def ticks_between(before: Ticks, after: Ticks) -> dict[str, int]:
    """The increase of each column's ticks, at least 0: idle and iowait may decrease a little (proc(5)), and all columns
    decrease when a processor goes offline."""
    columns = zip(PROCESSOR, before, after, strict=True)
    return {column: max(new - old, 0) for column, old, new in columns}


def sum_watched_ticks(before: HostSample, after: HostSample) -> int | None:
    """The ticks of the lab and the watched processes between two samples; None if some of them are unknown."""
    total = 0
    lab = after.processes.get(LAB)
    was_lab = before.processes.get(LAB)
    if lab is None or was_lab is None or lab.key != was_lab.key:
        return None
    children = lab.children_ticks - was_lab.children_ticks
    for name in before.processes.keys() | after.processes.keys():
        was, process = before.processes.get(name), after.processes.get(name)
        if process is not None and was is not None and process.key == was.key:
            # The lab's children are handled below.
            total += process.cpu_ticks - was.cpu_ticks if name == LAB else process.all_ticks - was.all_ticks
            continue
        if was is not None:
            # The process has exited. Its last ticks are in its parent's count of children, which is known only if the
            # parent is the lab.
            if was.parent != lab.pid:
                return None
            children -= was.all_ticks
        if process is not None:
            # A newly watched process. All its work belongs to this pair only if it started between the two samples.
            if process.start_ticks < before.clocks.boot_ticks:
                return None
            total += process.all_ticks
    # An unwatched child adds the ticks of its whole lifetime. This error overstates the lab's share, but never the
    # share of other programs.
    return total + max(children, 0)


def add_rows(
    totals: dict[str, list[int]], before: Mapping[str, tuple[int, ...]], after: Mapping[str, tuple[int, ...]]
) -> None:
    """Adds the increase in each column of each row."""
    if not before:
        # The earlier sample could not be read, so the increase since then is unknown.
        return
    for name, row in after.items():
        # A new row belongs to a device that was just plugged in or used for the first time.
        was = before.get(name, (0,) * len(row))
        gained = [counter_delta(old, new) for old, new in zip(was, row, strict=True)]
        totals[name] = [sum(pair) for pair in zip(totals.get(name, [0] * len(row)), gained, strict=True)]


def counter_delta(before: int, after: int) -> int:
    """The increase of a counter. If `after` is smaller, the counter was reset, and has since reached `after`."""
    return after - before if after >= before else after
