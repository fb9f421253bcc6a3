"""A sample of the host's counters at one instant: one line of observed.jsonl."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from loadstone.observe.control_group import ControlGroup
from loadstone.observe.host_counters import (
    TICKS_PER_SECOND,
    Disk,
    Ticks,
    read_disks,
    read_memory,
    read_network,
    read_pressure,
    read_processors,
)
from loadstone.observe.kernel_file import PROC
from loadstone.observe.process import Census, ProcessCounters, read_process

VERSION = 1
# The name of this process among the observed processes.
LAB = "lab"
# The fields of a sample that are written to observed.jsonl unchanged.
COUNTERS = ("processors", "memory", "disks", "network", "pressure", "throttled_ns")


@dataclass(frozen=True, slots=True)
class Clocks:
    """One instant on three clocks; a step of the wall clock is visible only in `unix_ns`."""

    monotonic_ns: int
    unix_ns: int
    # The time since boot, including suspension: the clock of process start times.
    boot_ticks: int

    @classmethod
    def now(cls) -> Clocks:
        """The current time."""
        ticks = time.clock_gettime_ns(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND // 1_000_000_000
        return cls(time.monotonic_ns(), time.time_ns(), ticks)


@dataclass(frozen=True, slots=True)
class HostSample:
    """The counters and levels at one instant, as far as the host shows them."""

    clocks: Clocks
    processors: Mapping[str, Ticks] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    disks: Mapping[str, Disk] = field(default_factory=dict)
    network: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    pressure: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    throttled_ns: int | None = None
    # Existing processes, keyed by the lab's names for them.
    processes: Mapping[str, ProcessCounters] = field(default_factory=dict)
    # The name of the phase that begins with this sample, if any; only such a sample has a census.
    mark: str = ""
    census: Census | None = None

    def to_json(self) -> dict[str, Any]:
        """The line in observed.jsonl; docs/reference/observation.md describes the columns."""
        line: dict[str, Any] = {
            "observed": VERSION,
            **asdict(self.clocks),
            "mark": self.mark or None,
            "ticks_per_second": TICKS_PER_SECOND,
            **{name: getattr(self, name) for name in COUNTERS},
            "processes": {name: process.to_json() for name, process in self.processes.items()},
        }
        return {name: value for name, value in line.items() if value not in (None, {})}


def take_sample(
    watched: Mapping[str, int], group: ControlGroup | None = None, proc: Path = PROC, clocks: Clocks | None = None
) -> HostSample:
    """Takes a sample of the host, of the observed processes, and of this process."""
    group = group or ControlGroup()
    levels = read_memory(proc)
    if (room := group.memory_available) is not None and "available" in levels:
        # A container limited to 4 GB cannot use more, even if more is free on the host.
        levels["available"] = min(levels["available"], room)
    processes = {LAB: read_process("self", proc), **{name: read_process(pid, proc) for name, pid in watched.items()}}
    return HostSample(
        clocks or Clocks.now(),
        read_processors(proc),
        levels,
        # Omits unused devices, such as loop0 to loop7 on most machines.
        {name: row for name, row in read_disks(proc).items() if any(row)},
        read_network(proc),
        read_pressure(proc),
        group.cpu_wait_ns,
        {name: process for name, process in processes.items() if process is not None},
    )
