"""The kernel's counters of a process, /proc/<pid>/stat and /proc/<pid>/io (proc(5)), and a census of all processes.

A census separates the work of the lab, of the kernel and of other programs. A census costs about 30 µs per process, so
it is taken at the beginning and end of a phase, not with each sample.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from loadstone.observe.kernel_file import PROC, list_pids, parse_fields, read_text

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# PF_KTHREAD in the kernel's sched.h: a kernel thread.
KERNEL_THREAD = 0x00200000
# Fields that are not in observed.jsonl.
UNRECORDED = ("kernel", "state", "session")

Key = tuple[int, int]
# The parent of all kernel threads. If this parent is not visible, the lab runs in a container, or the processes of
# other users are hidden.
KERNEL_PARENT = (2, "kthreadd")


@dataclass(frozen=True, slots=True)
class ProcessCounters:
    """Counters since the process started. `start_ticks`, counted from boot, distinguishes processes with the same
    pid."""

    pid: int
    parent: int
    start_ticks: int
    # The CPU time of all threads (including exited threads), and of children that the process has waited for.
    cpu_ticks: int
    children_ticks: int
    threads: int
    memory_bytes: int
    faults_minor: int
    faults_major: int
    kernel: bool = False
    # The state, in the notation of ps (`R`, `S`, `T`, …), and the session.
    state: str = field(default="", compare=False)
    session: int = field(default=0, compare=False)
    # The bytes that the process read from storage, and the bytes of pages that it dirtied; None if they cannot be read.
    # Both counts include children that the process has waited for (the kernel's exit.c).
    read_bytes: int | None = None
    written_bytes: int | None = None

    @property
    def all_ticks(self) -> int:
        """The ticks of the process and of children that it has waited for."""
        return self.cpu_ticks + self.children_ticks

    @property
    def key(self) -> tuple[int, int]:
        """Identifies the process among all processes on this host."""
        return (self.pid, self.start_ticks)

    def to_json(self) -> dict[str, Any]:
        """The process in the form of observed.jsonl."""
        return {name: value for name, value in asdict(self).items() if value is not None and name not in UNRECORDED}


def read_process(pid: int | str, proc: Path = PROC) -> ProcessCounters | None:
    """The counters of a process; None if it has exited or is hidden. The pid `self` is this process."""
    stat = read_stat(pid, proc)
    if stat is None:
        return None
    read, written = bytes_of(pid, proc) or (None, None)
    return replace(stat, read_bytes=read, written_bytes=written)


def read_stat(pid: int | str, proc: Path = PROC) -> ProcessCounters | None:
    """The counters of a process, except byte counts, which require permission to read."""
    text = read_text(f"{proc}/{pid}/stat")
    # The fields follow the program's name, which may contain any characters.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    try:
        return ProcessCounters(
            pid=int(head.split(" ", 1)[0]),
            state=fields[0],
            parent=int(fields[1]),
            session=int(fields[3]),
            kernel=bool(int(fields[6]) & KERNEL_THREAD),
            faults_minor=int(fields[7]),
            faults_major=int(fields[9]),
            cpu_ticks=int(fields[11]) + int(fields[12]),
            children_ticks=int(fields[13]) + int(fields[14]),
            threads=int(fields[17]),
            start_ticks=int(fields[19]),
            memory_bytes=int(fields[21]) * PAGE_BYTES,
        )
    except (IndexError, ValueError):
        return None


def bytes_of(pid: int | str, proc: Path = PROC) -> tuple[int, int] | None:
    """The bytes that a process read from storage, and submitted to be written; None if its counters may not be read."""
    counters = parse_fields(read_text(f"{proc}/{pid}/io"))
    if "read_bytes" not in counters or "write_bytes" not in counters:
        return None
    # Dirty pages of a deleted file are never written.
    return counters["read_bytes"], max(counters["write_bytes"] - counters.get("cancelled_write_bytes", 0), 0)


@dataclass(frozen=True)
class Census:
    """The work of the lab, of the kernel and of other programs so far, by process."""

    # Ticks of kernel threads (write-back, journals, encryption), which do not count as interference.
    kernel: Mapping[Key, int]
    # Ticks of the family: the lab, the observed processes and all their descendants, including exited children.
    family: Mapping[Key, int]
    # Members of the family whose parent is outside the family; the parent receives their counters when they exit.
    heads: frozenset[Key]
    # The bytes that the family, and all other programs, read from storage or submitted to be written; None unless all
    # of the host's processes are visible and their counters can be read.
    family_bytes: int | None
    others_bytes: int | None

    def kernel_ticks_since(self, before: Census) -> int:
        """The ticks of kernel threads since an earlier census, without threads that have exited in between."""
        return counter_gain(before.kernel, self.kernel)

    def family_ticks_since(self, before: Census) -> int | None:
        """The ticks of the family since an earlier census; None if a parent outside the family received some of them.

        A process that exited in between counts with its whole lifetime, through its parent's `children_ticks`.
        """
        if any(head not in self.family for head in before.heads):
            return None
        return counter_gain(before.family, self.family)

    def relatives_ticks_since(self, before: Census, known: Iterable[Key]) -> int:
        """The ticks of the family since an earlier census, without the processes that are `known` individually."""
        known = frozenset(known)
        return counter_gain(before.family, {key: ticks for key, ticks in self.family.items() if key not in known})

    def bytes_since(self, before: Census) -> tuple[int, int] | None:
        """The bytes of the family and of other programs since an earlier census; None if unknown.

        An exited process leaves its counters to the parent that waits for it. The sums therefore stay correct if both
        are in the family, or neither. Otherwise, the sum for other programs is too small, but never too large.
        """
        numbers = (before.family_bytes, self.family_bytes, before.others_bytes, self.others_bytes)
        if None in numbers or any(head not in self.family for head in before.heads):
            return None
        family_before, family, others_before, other_bytes = (number or 0 for number in numbers)
        return max(family - family_before, 0), max(other_bytes - others_before, 0)


def counter_gain(before: Mapping[Key, int], after: Mapping[Key, int]) -> int:
    """The total increase of the counters of all processes; new processes started at 0."""
    return sum(max(ticks - before.get(key, 0), 0) for key, ticks in after.items())


def take_census(watched: Iterable[int], proc: Path = PROC, us: int | None = None) -> Census:
    """Takes a census of all processes. `us` is the lab's process, by default this process."""
    everybody = {process.pid: process for pid in list_pids(proc) if (process := read_stat(pid, proc))}
    us = os.getpid() if us is None else us
    roots = {us, *watched}
    family = {pid for pid in everybody if is_family(pid, everybody, roots)}
    kernel = {process.key: process.cpu_ticks for process in everybody.values() if process.kernel}
    head, _, tail = read_text(proc / "2/stat").partition(") ")
    sums: list[int | None] = [None, None]
    if tail and head == "{} ({}".format(*KERNEL_PARENT):
        strangers = [pid for pid, process in everybody.items() if pid not in family and not process.kernel]
        sums = [total_bytes(members, proc) for members in (family, strangers)]
    return Census(
        kernel=kernel,
        family={everybody[pid].key: everybody[pid].all_ticks for pid in family},
        heads=frozenset(everybody[pid].key for pid in family if pid != us and everybody[pid].parent not in family),
        family_bytes=sums[0],
        others_bytes=sums[1],
    )


def total_bytes(members: Iterable[int], proc: Path) -> int | None:
    """The total bytes that processes read and wrote; None if the counters of an existing process may not be read."""
    total = 0
    for pid in members:
        counts = bytes_of(pid, proc)
        if counts is not None:
            total += sum(counts)
        elif read_stat(pid, proc) is not None:
            return None
    return total


def is_family(pid: int, everybody: Mapping[int, ProcessCounters], roots: set[int]) -> bool:
    """Whether a process is one of the roots or descends from one."""
    visited: set[int] = set()
    while pid not in roots:
        # A tree that changes while it is read may contain a cycle.
        if pid in visited or pid not in everybody:
            return False
        visited.add(pid)
        pid = everybody[pid].parent
    return True
