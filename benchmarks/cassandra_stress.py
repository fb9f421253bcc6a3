"""`loadstone cassandra-stress` side by side with cassandra-stress 4.0-alpha2 on one Cassandra node.

Both tools run the same command line unthrottled. Only one of them runs at a time: the other is suspended by SIGSTOP, so
that the JVM stays warm between its windows. A suspension is shorter than the request timeout of 12 s. With `--restart`,
each turn is a new process, which allows longer windows: the seconds of `--warmup` precede each window. The trials of
``experiments/more/cassandra-stress-side-by-side.yaml`` are whole processes, including the start of the JVM.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measure import ENGINE, ratio_of, run, verdict
from servers import find_stress, up

from loadstone.runner.settling import await_replication
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.cassandra.cql import Cql

# At the start of a turn, the queues fill again.
SETTLE_S = 1.5
# The number of rows for commands, and of partitions for profiles.
POPULATION, PARTITIONS = 200_000, 20_000
ROW = re.compile(r"^\s*total,\s*(\d+),")
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
PROFILES = {
    "simple": (
        "id bigint PRIMARY KEY, name text, size int",
        "[{name: name, size: fixed(30)}]",
        "SELECT * FROM t WHERE id = ?",
    ),
    "clustering": (
        "id bigint, at int, name text, PRIMARY KEY (id, at)",
        "[{name: at, cluster: fixed(10)}, {name: name, size: fixed(30)}]",
        "SELECT * FROM t WHERE id = ? LIMIT 10",
    ),
    "collections": (
        "id bigint PRIMARY KEY, tags set<text>, marks frozen<list<int>>",
        "[{name: tags, size: fixed(5)}, {name: marks, size: fixed(5)}]",
        "SELECT * FROM t WHERE id = ?",
    ),
}


@dataclass(frozen=True)
class Sample:
    """The state of a tool at a printed row: seconds, CPU seconds, operations."""

    at_s: float
    cpu_s: float
    operations: int


@dataclass
class Tool:
    """A running tool, and a sample for each row that it printed."""

    process: subprocess.Popen[str]
    samples: list[Sample] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, command: Sequence[str]) -> Tool:
        """Starts a tool and follows its output."""
        tool = cls(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        threading.Thread(target=tool._follow, daemon=True).start()
        return tool

    def _follow(self) -> None:
        # clock_getcpuclockid(3): the CPU clock of another process.
        clock = (~self.process.pid << 3) | 2
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.tail = [*self.tail[-20:], line]
            if row := ROW.match(line):
                with contextlib.suppress(OSError):
                    self.samples.append(Sample(time.monotonic(), time.clock_gettime(clock), int(row[1])))

    def measure_turn(self, settle_s: float, seconds: float) -> tuple[float, float]:
        """Resumes the tool for a turn; returns its CPU per operation, µs, and its operations per second."""
        self.process.send_signal(signal.SIGCONT)
        time.sleep(settle_s)
        begin = time.monotonic()
        time.sleep(seconds)
        self.process.send_signal(signal.SIGSTOP)
        rows = [sample for sample in list(self.samples) if sample.at_s >= begin]
        if len(rows) < 3:
            raise SystemExit(f"error: only {len(rows)} rows in {seconds} s\n{''.join(self.tail)}")
        first, last = rows[0], rows[-1]
        operations = last.operations - first.operations
        return (last.cpu_s - first.cpu_s) / operations * 1e6, operations / (last.at_s - first.at_s)

    def peak_bytes(self) -> int:
        """Peak resident memory, B."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def stop(self) -> None:
        """Kills the tool."""
        self.process.kill()
        self.process.wait()


Turn = dict[str, tuple[float, float]]


def compare_turns(name: str, tools: dict[str, list[str]], line: list[str], options: argparse.Namespace) -> None:
    """Compares both tools on one command line, in interleaved turns."""
    commands = {side: [*tool, *line] for side, tool in tools.items()}
    turns: list[Turn] = []
    peaks: dict[str, int] = {}
    for pair, turn in enumerate(
        (measure_processes if options.restart else measure_suspended)(commands, options, peaks)
    ):
        turns.append(turn)
        print(f"    pair {pair}: {turn}", flush=True)
    cpu = ratio_of([(turn["loadstone"][0], turn["tool"][0]) for turn in turns])
    rate = ratio_of([(turn["loadstone"][1], turn["tool"][1]) for turn in turns])
    medians = {
        side: [sorted(turn[side][part] for turn in turns)[len(turns) // 2] for part in (0, 1)] for side in commands
    }
    goal = 0.12 if name.startswith("profile") else 0.08
    memory = peaks["loadstone"] / peaks["tool"]
    print(f"{name}: CPU per operation, Loadstone ÷ cassandra-stress {cpu}; goal {goal}: {verdict(cpu.high <= goal)}")
    print(f"    throughput {rate}; goal 1.0: {verdict(rate.low >= 1)}")
    print(f"    memory {memory:.3f}, {peaks['loadstone'] / 1e6:.1f} of {peaks['tool'] / 1e6:.1f} MB: ", end="")
    print(f"goal 0.1: {verdict(memory <= 0.1)}")
    for side, (micros, per_s) in medians.items():
        print(f"    {side}: {micros:.2f} µs at {per_s:,.0f} op/s")
    print(f"    load average {os.getloadavg()[0]:.1f}", flush=True)


def measure_suspended(
    commands: dict[str, list[str]], options: argparse.Namespace, peaks: dict[str, int]
) -> Iterator[Turn]:
    """Yields the turns of two processes, and suspends one while the other runs; notes their peak memory, B."""
    running = {}
    try:
        for side, command in commands.items():
            running[side] = Tool.start(command)
            # The engine needs fewer seconds, because it compiles nothing while it runs.
            time.sleep(options.warmup if side == "tool" else 5)
            running[side].process.send_signal(signal.SIGSTOP)
        for _ in range(options.pairs):
            # In a fixed order: during two consecutive turns of one tool, requests of the other tool would time out.
            yield {side: tool.measure_turn(SETTLE_S, options.seconds) for side, tool in running.items()}
        peaks.update({side: tool.peak_bytes() for side, tool in running.items()})
    finally:
        for tool in running.values():
            tool.stop()


def measure_processes(
    commands: dict[str, list[str]], options: argparse.Namespace, peaks: dict[str, int]
) -> Iterator[Turn]:
    """Yields turns that are each a new process, in alternating order; notes their peak memory, B."""
    for pair in range(options.pairs):
        turn: Turn = {}
        for side in list(commands)[:: -1 if pair % 2 else 1]:
            tool = Tool.start(commands[side])
            try:
                turn[side] = tool.measure_turn(options.warmup, options.seconds)
                peaks[side] = max(tool.peak_bytes(), peaks.get(side, 0))
            finally:
                tool.stop()
        yield turn


def measure_start(tools: dict[str, list[str]], where: list[str], running: RunningSystem, repeats: int) -> None:
    """Prints the time from a tool's start until its first row is in the table. The schema already exists."""
    port = int(running.store_properties()["port"])
    line = ["write", "n=1", "cl=ONE", "no-warmup", "-pop", "seq=1..1", "-rate", "threads=1", *where]
    seconds: dict[str, list[float]] = {side: [] for side in tools}
    with Cql("127.0.0.1", port, timeout_s=30) as connection:
        for _ in range(repeats):
            for side, command in tools.items():
                connection.run_query("TRUNCATE keyspace1.standard1")
                begin = time.monotonic()
                process = subprocess.Popen([*command, *line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while not connection.run_query("SELECT key FROM keyspace1.standard1 LIMIT 1"):
                    if process.poll() not in (None, 0):
                        raise SystemExit(f"error: {side} exited {process.returncode}")
                    time.sleep(0.001)
                seconds[side].append(time.monotonic() - begin)
                process.wait()
    for side, values in seconds.items():
        values.sort()
        print(f"start to first row, {side}: median {values[len(values) // 2]:.3f} s ({values[0]:.3f} to ", end="")
        print(f"{values[-1]:.3f}, n={len(values)}), load average {os.getloadavg()[0]:.1f}", flush=True)


@contextlib.contextmanager
def profiles(names: Sequence[str]) -> Iterator[dict[str, Path]]:
    """Yields the paths of temporary files with the profiles."""
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder:
        paths = {}
        for name in names:
            columns, spec, query = PROFILES[name]
            paths[name] = Path(folder, f"{name}.yaml")
            paths[name].write_text(
                f"keyspace: b_{name}\n"
                f'keyspace_definition: "CREATE KEYSPACE b_{name} WITH replication = {REPLICATION}"\n'
                f'table: t\ntable_definition: "CREATE TABLE t ({columns})"\ncolumnspec: {spec}\n'
                "insert: {partitions: fixed(1), batchtype: UNLOGGED, select: fixed(1)/1}\n"
                f'queries: {{q: {{cql: "{query}", fields: samerow}}}}\n'
            )
        yield paths


def main() -> int:
    """Compares the commands, the profiles or the start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["commands", "profiles", "start"])
    parser.add_argument("--only", default="", help="run only the comparisons whose names match this")
    parser.add_argument("--restart", action="store_true", help="make each turn a new process")
    parser.add_argument(
        "--warmup", type=float, default=60, help="seconds before the tool's first turn, or each restart's"
    )
    parser.add_argument("--seconds", type=float, default=8.5, help="seconds of a turn")
    parser.add_argument("--pairs", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as work, up("cassandra") as running:
        port = running.store_properties()["port"]
        where = ["-node", "127.0.0.1", "-port", f"native={port}", "-log", "no-settings"]
        engine = [ENGINE, "cassandra-stress"]
        tools = {"loadstone": engine, "tool": find_stress(Path(work))}
        print(f"cassandra {running.server_version()}; {shlex.join(tools['tool'][:4])}", flush=True)
        full = ["-pop", f"seq=1..{POPULATION}"]
        if options.what != "profiles":
            run([*engine, "write", f"n={POPULATION}", "cl=ONE", "no-warmup", *full, "-rate", "threads=100", *where])
        if options.what == "start":
            lab = {"loadstone": [str(Path(sys.executable).with_name("loadstone")), "cassandra-stress"]}
            lab["loadstone-engine"] = engine
            measure_start({**lab, "tool": tools["tool"]}, where, running, options.pairs)
        elif options.what == "commands":
            for threads in (20, 200):
                for command in ("write", "read", "mixed"):
                    name = f"{command}, {threads} threads"
                    line = [command, "duration=60m", "cl=ONE", "no-warmup", *full, "-rate", f"threads={threads}"]
                    if re.search(options.only, name):
                        # Otherwise, compactions of the rows written last would slow only the first turns.
                        await_replication(running.find_backlog, running.unseen_s)
                        compare_turns(name, tools, [*line, *where], options)
        else:
            full = ["-pop", f"seq=1..{PARTITIONS}"]
            with profiles(list(PROFILES)) as paths:
                for name, path in paths.items():
                    line = [
                        "user",
                        f"profile={path}",
                        "ops(insert=1,q=1)",
                        "duration=60m",
                        "cl=ONE",
                        "no-warmup",
                        *full,
                    ]
                    load = ["user", f"profile={path}", "ops(insert=1)", f"n={PARTITIONS}", "cl=ONE", "no-warmup", *full]
                    if re.search(options.only, name):
                        run([*engine, *load, "-rate", "threads=100", *where])
                        line += ["-rate", "threads=20", *where]
                        compare_turns(f"profile {name}, 20 threads", tools, line, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
