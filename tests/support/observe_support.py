"""Crafted hosts: trees of /proc and /sys in the kernel's format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.process import KERNEL_THREAD, Census, Key, ProcessCounters
from loadstone.observe.sample import LAB, Clocks, HostSample
from loadstone.observe.window import Window

SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Host:
    """A directory that contains the crafted `proc` and `sys`."""

    root: Path

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def sys(self) -> Path:
        return self.root / "sys"

    def write(self, path: str, text: str) -> None:
        """Writes a file in the tree."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def link(self, path: str, to: str) -> None:
        """Creates a link in the tree to another path in the tree."""
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(self.root / to, link.parent))

    def mounts(self, *lines: str) -> None:
        """mountinfo; each line is `major:minor point type source options`."""
        text = []
        for at, line in enumerate(lines):
            number, point, kind, source, options = line.split(" ")
            text.append(f"{30 + at} 1 {number} / {point} rw,relatime shared:{at} - {kind} {source} {options}\n")
        self.write("proc/self/mountinfo", "".join(text))

    def disk(self, name: str, number: str, *partitions: tuple[str, str]) -> None:
        """A disk on a bus with its partitions, each a name and a number."""
        top = f"sys/devices/pci/block/{name}"
        self.write(f"{top}/dev", number)
        self.write(f"{top}/queue/iostats", "1\n")
        self._register(name, number, top)
        for partition, its in partitions:
            self.write(f"{top}/{partition}/partition", "1\n")
            self._register(partition, its, f"{top}/{partition}")

    def virtual(self, name: str, number: str, *slaves: str) -> None:
        """A virtual device of device mapper or md on top of other devices."""
        top = f"sys/devices/virtual/block/{name}"
        self.write(f"{top}/queue/iostats", "1\n")
        self._register(name, number, top)
        for slave in slaves:
            self.link(f"{top}/slaves/{slave}", f"sys/class/block/{slave}")

    def _register(self, name: str, number: str, top: str) -> None:
        self.link(f"sys/dev/block/{number}", top)
        self.link(f"sys/class/block/{name}", top)

    def process(
        self,
        pid: int,
        parent: int = 1,
        name: str = "worker",
        *,
        ticks: int = 0,
        start: int = 100,
        kernel: bool = False,
        io: int | None = 0,
    ) -> None:
        """A process that read `io` bytes and wrote none; if `io` is None, the counts are hidden."""
        flags = KERNEL_THREAD if kernel else 0x400000
        text = f"{pid} ({name}) S {parent} 1 1 0 -1 {flags} 5 0 3 0 {ticks} 0 0 0 20 0 4 0 {start} 9999 256 0"
        self.write(f"proc/{pid}/stat", text)
        if io is not None:
            self.write(f"proc/{pid}/io", f"rchar: 9\nread_bytes: {io}\nwrite_bytes: 0\ncancelled_write_bytes: 0\n")


def process(
    pid: int,
    ticks: int = 0,
    *,
    children: int = 0,
    start: int = 50,
    parent: int = 1000,
    faults: int = 0,
    memory: int = 0,
) -> ProcessCounters:
    """A process of a crafted sample."""
    return ProcessCounters(pid, parent, start, ticks, children, 1, memory, 0, faults)


def sample(second: float, **changes: object) -> HostSample:
    """A sample at this time after boot.

    `busy` and `stolen` are ticks, summed over two processors; the other arguments are fields.
    """
    ticks = round(second * TICKS_PER_SECOND)
    busy, stolen = int(str(changes.pop("busy", 0))), int(str(changes.pop("stolen", 0)))
    fields: dict[str, object] = {
        "processors": {
            "cpu": (busy, 0, 0, 2 * ticks - busy - stolen, 0, 0, 0, stolen),
            "cpu0": (0,) * 8,
            "cpu1": (0,) * 8,
        },
        "processes": {LAB: process(1000)},
    }
    return HostSample(Clocks(round(second * SECOND_NS), 0, ticks), **{**fields, **changes})  # type: ignore[arg-type]


def make_census(
    kernel: Mapping[Key, int] | None = None,
    family: Mapping[Key, int] | None = None,
    *,
    lab_bytes: int | None = 0,
    foreign_bytes: int | None = 0,
    heads: frozenset[Key] = frozenset(),
) -> Census:
    """A census."""
    return Census(kernel or {}, family or {(1000, 50): 0}, heads, lab_bytes, foreign_bytes)


def read(path: Path) -> Iterator[HostSample]:
    """The samples of observed.jsonl, in the format of its reference page."""
    for text in path.read_text().splitlines(keepends=True):
        # A last line without a newline is truncated.
        if text.endswith("\n"):
            yield sample_of(json.loads(text))


def sample_of(line: Mapping[str, Any]) -> HostSample:
    """The sample in a line."""

    def table(name: str) -> dict[str, Any]:
        return {key: tuple(row) for key, row in line.get(name, {}).items()}

    assert line["observed"] == 1
    return HostSample(
        Clocks(line["monotonic_ns"], line["unix_ns"], line["boot_ticks"]),
        processors=table("processors"),
        disks=table("disks"),
        network=table("network"),
        pressure=table("pressure"),
        memory=dict(line.get("memory", {})),
        throttled_ns=line.get("throttled_ns"),
        processes={name: ProcessCounters(**counters) for name, counters in line.get("processes", {}).items()},
        mark=line.get("mark", ""),
    )


def window_of(samples: Iterable[HostSample]) -> Window:
    """The window of samples in their order."""
    window = Window()
    for sample in samples:
        window.add_sample(sample)
    return window
