"""A process as the kernel counts it: /proc/<pid>/stat and /proc/<pid>/io (proc(5))."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from loadstone.observe.kernel_file import PROC, fields, text

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# PF_KTHREAD in the kernel's sched.h: a thread of the kernel's own.
KERNEL_THREAD = 0x00200000
# What is not in observed.jsonl.
UNTOLD = ("kernel", "state", "session")


@dataclass(frozen=True, slots=True)
class Process:
    """Counters since the process began; `start_ticks` after boot tells two processes with one pid apart."""

    pid: int
    parent: int
    start_ticks: int
    # User and system, all threads, those that have ended too; then the same of children that it has waited for.
    cpu_ticks: int
    children_ticks: int
    threads: int
    memory_bytes: int
    faults_minor: int
    faults_major: int
    kernel: bool = False
    # As ps has it: `R`, `S`, `T` …; and the session that it is in.
    state: str = field(default="", compare=False)
    session: int = field(default=0, compare=False)
    # What it had the storage read, and the pages that it made dirty; None where the system does not tell. Children
    # that it has waited for are included (the kernel's exit.c).
    read_bytes: int | None = None
    written_bytes: int | None = None

    @property
    def all_ticks(self) -> int:
        """Its own ticks and those that its children left to it."""
        return self.cpu_ticks + self.children_ticks

    @property
    def key(self) -> tuple[int, int]:
        """What no other process on this host has."""
        return (self.pid, self.start_ticks)

    def to_json(self) -> dict[str, Any]:
        """The process as in observed.jsonl."""
        return {name: value for name, value in asdict(self).items() if value is not None and name not in UNTOLD}


def process(pid: int | str, proc: Path = PROC) -> Process | None:
    """A process, None if it is gone or hidden; `self` is this one."""
    found = stat(pid, proc)
    if found is None:
        return None
    io = bytes_of(pid, proc)
    read, written = (None, None) if io is None else io
    return replace(found, read_bytes=read, written_bytes=written)


def stat(pid: int | str, proc: Path = PROC) -> Process | None:
    """A process without its bytes, which not everybody may read."""
    found = text(f"{proc}/{pid}/stat")
    # Behind the program's name, which may hold anything.
    head, _, tail = found.rpartition(")")
    words = tail.split()
    try:
        return Process(
            pid=int(head.split(" ", 1)[0]),
            state=words[0],
            parent=int(words[1]),
            session=int(words[3]),
            kernel=bool(int(words[6]) & KERNEL_THREAD),
            faults_minor=int(words[7]),
            faults_major=int(words[9]),
            cpu_ticks=int(words[11]) + int(words[12]),
            children_ticks=int(words[13]) + int(words[14]),
            threads=int(words[17]),
            start_ticks=int(words[19]),
            memory_bytes=int(words[21]) * PAGE_BYTES,
        )
    except (IndexError, ValueError):
        return None


def bytes_of(pid: int | str, proc: Path = PROC) -> tuple[int, int] | None:
    """Bytes read from and written towards storage; None if that may not be known."""
    found = fields(text(f"{proc}/{pid}/io"))
    if "read_bytes" not in found or "write_bytes" not in found:
        return None
    # Pages that were dirty and went with a deleted file never get anywhere.
    return found["read_bytes"], max(found["write_bytes"] - found.get("cancelled_write_bytes", 0), 0)
