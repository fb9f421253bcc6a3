"""Observes servers: the CPU time, memory, device and network bytes and garbage collections of each server.

A server is a tree of processes, because PostgreSQL serves each client with a separate process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.kernel_file import PROC, parse_whole, read_text
from loadstone.observe.process import PAGE_BYTES, ProcessCounters, bytes_of, read_stat
from loadstone.observe.sockets import parse_address
from loadstone.observe.summary import ELAPSED_NS_MIN, SERVER
from loadstone.observe.traffic import Traffic
from loadstone.results.value import Value

# Reads the pauses after a position in a garbage collection log: their number, their total ns, and the log's new end.
Collections = Callable[[Path, int], tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Watched:
    """A server to observe."""

    name: str
    address: str
    pid: int
    # Distinguishes the server from a later process with the same pid.
    start_ticks: int
    gc_log: Path | None = None


@dataclass(slots=True)
class Level:
    """A server at one instant: the counters since its processes started, and its memory."""

    cpu_ticks: int
    memory_bytes: int
    # The bytes read and written; None if these counters may not be read.
    io: tuple[int, int] | None
    pids: Sequence[int]


@dataclass(slots=True)
class ServerUse:
    """The resources that a server has used since the first sample."""

    last: Level
    begun_ns: int
    elapsed_ns: int = 0
    cpu_ticks: int = 0
    memory_max: int = 0
    # The bytes read and written; None if these counters may not be read.
    io: tuple[int, int] | None = (0, 0)
    samples: int = 1
    gc_offset: int = 0
    gc_count: int = 0
    gc_pause_ns: int = 0


@dataclass
class ServerObserver:
    """Observes servers from `begin_observation` to `end_observation`."""

    watched: Sequence[Watched]
    collections: Collections
    proc: Path = PROC
    memory_max: int = 0
    _use: dict[str, ServerUse] = field(default_factory=dict)
    _traffic: Traffic | None = None

    def begin_observation(self) -> None:
        """Takes the first sample; earlier use does not count."""
        now = time.monotonic_ns()
        for server in self.watched:
            if (level := self._read_level(server)) is not None:
                offset = 0 if server.gc_log is None else file_size(server.gc_log)
                self._use[server.name] = ServerUse(level, now, memory_max=level.memory_bytes, gc_offset=offset)
        self._traffic = Traffic({server.name: parse_address(server.address) for server in self.watched}, self.proc)
        self._traffic.take_sample(self._pids_by_server())
        self.memory_max = sum(use.last.memory_bytes for use in self._use.values())

    def take_sample(self, *, last: bool = False) -> None:
        """Takes a sample; must be called about once a second."""
        now = time.monotonic_ns()
        total = 0
        for server in self.watched:
            use, level = self._use.get(server.name), self._read_level(server)
            if use is None or level is None:
                continue
            add_use(use, level, now)
            total += level.memory_bytes
        self.memory_max = max(self.memory_max, total)
        if self._traffic is not None:
            self._traffic.take_sample(self._pids_by_server(), last=last)

    def end_observation(self) -> None:
        """Takes the last sample."""
        self.take_sample(last=True)
        for server in self.watched:
            use = self._use.get(server.name)
            if use is not None and server.gc_log is not None:
                use.gc_count, use.gc_pause_ns, _ = self.collections(server.gc_log, use.gc_offset)
        if self._traffic is not None:
            self._traffic.close()

    def list_values(self) -> Iterator[Value]:
        """The figures of each server, and of all servers together."""
        sums: dict[tuple[str, str], float] = {}
        samples = max((use.samples for use in self._use.values()), default=0)
        for name, use in self._use.items():
            for figure, value, unit in self._server_figures(name, use):
                yield Value(f"{SERVER}{name}.{figure}", value, unit, use.samples)
                sums[figure, unit] = sums.get((figure, unit), 0.0) + value
        for (figure, unit), value in sums.items():
            # The servers reached their maxima at different moments, so the maxima cannot be added.
            total = self.memory_max if figure == "memory_max" else value
            yield Value(f"{SERVER}{figure}", total, unit, samples)

    def _server_figures(self, name: str, use: ServerUse) -> Iterator[tuple[str, float, str]]:
        if use.elapsed_ns >= ELAPSED_NS_MIN:
            yield "cpu", use.cpu_ticks / TICKS_PER_SECOND * 1e9 / use.elapsed_ns, "processors"
        yield "memory_max", use.memory_max, "B"
        if use.io is not None:
            yield "read", use.io[0], "B"
            yield "written", use.io[1], "B"
        if self._traffic is not None and self._traffic.able:
            total = self._traffic.totals[name]
            yield "network.received", total.received, "B"
            yield "network.sent", total.sent, "B"
        if any(server.name == name and server.gc_log for server in self.watched):
            yield "gc.count", use.gc_count, "collections"
            yield "gc.pause", use.gc_pause_ns, "ns"

    def _pids_by_server(self) -> Mapping[str, Sequence[int]]:
        return {name: use.last.pids for name, use in self._use.items()}

    def _read_level(self, server: Watched) -> Level | None:
        """The current counters and memory of a server; None if it has exited."""
        processes = process_tree(server, self.proc)
        if not processes:
            return None
        # The first process is the server itself.
        pids = [process.pid for process in processes]
        resident, shared = zip(*(resident_memory(pid, self.proc) for pid in pids), strict=True)
        done = [bytes_of(pid, self.proc) for pid in pids]
        read, written = (sum(counts[at] for counts in done if counts is not None) for at in (0, 1))
        io = None if done[0] is None else (read, written)
        return Level(
            sum(process.all_ticks for process in processes), sum(resident) - sum(shared) + max(shared), io, pids
        )


def add_use(use: ServerUse, level: Level, now_ns: int) -> None:
    """Adds the use since the last sample. A server receives an exited child's counters once it waits for the child."""
    use.cpu_ticks += max(level.cpu_ticks - use.last.cpu_ticks, 0)
    use.memory_max = max(use.memory_max, level.memory_bytes)
    if level.io is None or use.last.io is None or use.io is None:
        use.io = None
    else:
        read, written = (max(now - before, 0) for now, before in zip(level.io, use.last.io, strict=True))
        use.io = (use.io[0] + read, use.io[1] + written)
    use.elapsed_ns = now_ns - use.begun_ns
    use.last = level
    use.samples += 1


def process_tree(server: Watched, proc: Path = PROC) -> list[ProcessCounters]:
    """A server and all processes that it has started; empty if the server has exited."""
    root = read_stat(server.pid, proc)
    if root is None or root.start_ticks != server.start_ticks:
        return []
    return [
        root,
        *(process for pid in list_descendants(server.pid, proc) if (process := read_stat(pid, proc)) is not None),
    ]


def sum_ticks(watched: Sequence[Watched], proc: Path = PROC) -> int:
    """The CPU time that servers have used so far, in ticks."""
    return sum(process.all_ticks for server in watched for process in process_tree(server, proc))


def list_descendants(pid: int, proc: Path = PROC) -> Iterator[int]:
    """All descendants of a process, from its first thread's list of children, if the kernel provides that list."""
    for word in read_text(proc / f"{pid}/task/{pid}/children").split():
        child = parse_whole(word)
        if child is not None:
            yield child
            yield from list_descendants(child, proc)


def resident_memory(pid: int, proc: Path = PROC) -> tuple[int, int]:
    """The resident memory of a process, and the part that other processes may share (files, shared memory), B."""
    fields = [parse_whole(word) for word in read_text(proc / f"{pid}/statm").split()[1:3]]
    resident, shared = (*(word or 0 for word in fields), 0, 0)[:2]
    return resident * PAGE_BYTES, min(shared, resident) * PAGE_BYTES


def file_size(path: Path) -> int:
    """The size of a file; 0 if it does not exist yet."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
