"""Loadstone compared with the tools of real servers, in one run.

The tools are cassandra-stress, redis-benchmark and HBase's PerformanceEvaluation. The comparisons are not
experiments, because the figures of an experiment are for one process: (e) and (g) subtract the CPU of a short run from
the CPU of a long run, and (f) is checked against a goal.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import ENGINE, ROOT, Used, ratio_of, run, verdict

from loadstone.systems.base.files.debian import library_path, unpack_packages
from loadstone.systems.base.files.maven import class_path
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.hbase import jars, system

sys.path.insert(0, str(ROOT / "tests/support"))
from stress_support import tool_command

WORKLOAD = ["-P", str(ROOT / "workloads" / "workloada")]


@contextlib.contextmanager
def up(name: str, nodes: int = 1, below: Path | None = None, **settings: str) -> Iterator[RunningSystem]:
    """Starts a system on its usual ports, with its data below a directory, and always stops it at the end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-", dir=below) as root:
        running = RunningSystem(name, Path(root) / name)
        try:
            running.up(nodes, settings)
            yield running
        finally:
            running.down()


def properties(running: RunningSystem) -> list[str]:
    """The engine's properties for the connection."""
    return [word for name, value in running.store_properties().items() for word in ("-p", f"{name}={value}")]


def throughput(used: Used) -> float:
    """Operations per second in a YCSB report."""
    match = re.search(r"^\[OVERALL\], Throughput\(ops/sec\), ([0-9.E]+)", used.stdout, re.MULTILINE)
    if match is None:
        raise SystemExit(f"error: no throughput in\n{used.stdout}")
    return float(match[1])


def property_arguments(**named: object) -> list[str]:
    """Properties as arguments of the engine's command line."""
    return [word for name, value in named.items() for word in ("-p", f"{name}={value}")]


def sleep_cpu_us() -> float:
    """CPU time of a thread for one sleep and wake-up on this machine, µs: the minimum for any paced tool."""
    wakes = 2_000
    before = time.thread_time()
    for _ in range(wakes):
        time.sleep(200e-6)
    return (time.thread_time() - before) / wakes * 1e6


def marginal_us(short: tuple[float, float], long: tuple[float, float], more: int) -> float:
    """CPU per operation of the `more` operations in a long run, µs; each run is a pair of CPU time and rate."""
    return (long[0] - short[0]) / more * 1e6


def find_stress(work: Path) -> list[str]:
    """The command of cassandra-stress, with a heap and a garbage collector for measurements."""
    return tool_command("4.0-alpha2", work, "-server", "-Xmx512m", "-XX:+UseParallelGC")


def compare_with_cassandra_stress(work: Path, few: int, many: int, rate: int) -> None:
    """(e) Client CPU per operation of writes at CL ONE, 20 clients, one node: at one rate, and as fast as possible."""
    tool = find_stress(work)
    with up("cassandra") as running:
        port = running.store_properties()["port"]
        running.recreate_table("usertable", {"fieldcount": "5"})
        engine = [ENGINE, "ycsb", "run", "cassandra", *properties(running), *WORKLOAD, "-threads", "20"]
        # cassandra-stress writes five columns of 34 bytes.
        engine += property_arguments(
            fieldcount=5, fieldlength=34, readproportion=0, updateproportion=1, writeallfields="true"
        )
        engine += property_arguments(recordcount=1_000_000, **{"cassandra.writeconsistencylevel": "ONE"})

        def run_engine(n: int, target: int) -> tuple[float, float]:
            used = run([*engine, "-p", f"operationcount={n}", *(["-target", str(target)] if target else [])])
            return used.cpu_seconds, throughput(used)

        def run_tool(n: int, target: int) -> tuple[float, float]:
            limits = ["-rate", "threads=20", *([f"throttle={target}/s"] if target else []), "-node", "127.0.0.1"]
            used = run([*tool, "write", f"n={n}", "cl=ONE", *limits, "-port", f"native={port}"])
            rate = re.search(r"^Op rate\s*:\s*([0-9,]+) op/s", used.stdout, re.MULTILINE)
            if rate is None:
                raise SystemExit(f"error: no rate in\n{used.stdout}")
            return used.cpu_seconds, float(rate[1].replace(",", ""))

        run_engine(few, 0), run_tool(few, 0)
        for target, named in ((rate, f"at {rate:,} op/s"), (0, "unthrottled")):
            short, long = (
                (run_engine(few, target), run_tool(few, target)),
                (run_engine(many, target), run_tool(many, target)),
            )
            mine, other = (marginal_us(short[side], long[side], many - few) for side in (0, 1))
            print(
                f"(e) Cassandra, writes {named}, 20 clients: client CPU Loadstone ÷ cassandra-stress {mine / other:.3f}"
            )
            print(f"    {mine:.1f} µs at {long[0][1]:,.0f} op/s against {other:.1f} µs at {long[1][1]:,.0f};")
            print(f"    goal at most 0.1, {0.1 * other:.1f} µs: {verdict(mine / other <= 0.1)}", flush=True)
        print(f"    a thread that sleeps and wakes costs {sleep_cpu_us():.1f} µs here: no client that waits until an")
        print("    operation is due can cost less, and Loadstone wakes again when the answer arrives", flush=True)


def compare_with_redis_benchmark(repeats: int, operations: int) -> None:
    """(f) Throughput of the same commands over the same number of connections, unpipelined, with one thread each."""
    tools = unpack_packages(["redis-tools"])
    environment = {"LD_LIBRARY_PATH": library_path(tools)}
    bench = next(tools.glob("usr/bin/redis-benchmark"))
    records, clients = 100_000, 50
    with up("redis") as running:
        keys = property_arguments(recordcount=records, insertorder="ordered", zeropadding=12, executors=1)
        keys += property_arguments(requestdistribution="uniform", operationcount=operations)
        engine = ["-threads", str(clients), *properties(running), *WORKLOAD, *keys]
        run([ENGINE, "ycsb", "load", "redis", *engine])
        shapes = [
            ("HGETALL", property_arguments(readproportion=1, updateproportion=0), ["HGETALL", "user__rand_int__"]),
            (
                "HMSET of a field",
                property_arguments(readproportion=0, updateproportion=1),
                ["HMSET", "user__rand_int__", "field0", "v" * 100],
            ),
        ]
        for name, mix, command in shapes:
            flags = ["-p", running.store_properties()["redis.port"], "-c", str(clients), "-n", str(operations)]
            tool_command = [str(bench), *flags, "-r", str(records), "--csv", *command]
            engine_command = [ENGINE, "ycsb", "run", "redis", *engine, *mix]
            pairs = []
            for _ in range(repeats):
                row = run(tool_command, environment=environment).stdout.splitlines()[-1]
                pairs.append((throughput(run(engine_command)), float(row.split('","')[1])))
            ratio = ratio_of(pairs)
            mine, other = (sorted(side)[repeats // 2] for side in zip(*pairs, strict=True))
            print(f"(f) Redis, {name}, {clients} connections: throughput Loadstone ÷ redis-benchmark {ratio}")
            print(f"    {mine:,.0f} op/s against {other:,.0f}; goal at least 1.0: {verdict(ratio.median >= 1)}")


def compare_with_performance_evaluation(repeats: int, few: int, many: int) -> None:
    """(g) Rows per second, and client CPU per row, compared with HBase's load generator, both without buffering."""
    version, threads = "2.6.1-hadoop3", 4
    server = f"org.apache.hbase:hbase-server:{version}:test-jar:tests"
    evaluation = [f"org.apache.hbase:hbase-mapreduce:{version}:test-jar:tests", server]
    evaluation += [f"org.apache.hbase:{name}:{version}" for name in ("hbase-mapreduce", "hbase-server", "hbase-client")]
    evaluation += [f"org.apache.hbase:hbase-common:{version}:test-jar:tests", "junit:junit:4.13.2"]
    classes = class_path("hbase-pe", [*evaluation, "org.slf4j:slf4j-simple:1.7.36"], jars.HADOOP_LOGGING)
    with up("hbase") as running:
        conf = running.store_properties()["hbase.conf"]
        everything = os.pathsep.join([conf, *map(str, classes)])
        java = [
            "java",
            "-Xmx1g",
            *system.OPENED,
            "-cp",
            everything,
            "org.apache.hadoop.hbase.PerformanceEvaluation",
        ]
        # The reads follow, when both tables are full.
        for command, phase in (("sequentialWrite", "load"), ("randomRead", "run")):

            def run_tool(rows: int, command: str = command) -> tuple[float, float]:
                """CPU seconds, and rows per second over all threads as the tool reports them."""
                flags = [
                    "--nomapred",
                    f"--rows={rows // threads}",
                    "--presplit=6",
                    "--valueSize=100",
                    "--autoFlush=true",
                ]
                used = run([*java, *flags, command, str(threads)])
                matches = re.findall(r"Finished .* in (\d+)ms at offset \d+ for (\d+) rows", used.stdout + used.stderr)
                return used.cpu_seconds, sum(int(n) for _, n in matches) / max(int(ms) for ms, _ in matches) * 1e3

            def run_engine(rows: int, phase: str = phase) -> tuple[float, float]:
                """CPU seconds and rows per second of Loadstone: a load writes `rows` records, a run reads them."""
                shape = property_arguments(
                    fieldcount=1, fieldlength=100, columnfamily="family", requestdistribution="uniform"
                )
                shape += property_arguments(recordcount=rows if phase == "load" else many, operationcount=rows)
                shape += property_arguments(readproportion=1, updateproportion=0)
                line = [ENGINE, "ycsb", phase, "hbase2", *properties(running), *WORKLOAD, *shape]
                used = run([*line, "-threads", str(threads)])
                return used.cpu_seconds, throughput(used)

            cpu, rates = [], []
            for _ in range(repeats):
                if command == "sequentialWrite":
                    running.recreate_table("usertable", {"family": "family", "splits": "5"})
                short, long = (run_engine(few), run_tool(few)), (run_engine(many), run_tool(many))
                cpu.append((marginal_us(short[0], long[0], many - few), marginal_us(short[1], long[1], many - few)))
                rates.append((long[0][1], long[1][1]))
            for what, pairs, met in (
                ("rows per second", rates, ratio_of(rates).median >= 1),
                ("client CPU per row", cpu, ratio_of(cpu).median <= 1.1),
            ):
                mine, other = (sorted(side)[repeats // 2] for side in zip(*pairs, strict=True))
                print(f"(g) HBase, {command}, {threads} threads: Loadstone ÷ HBase, {what} {ratio_of(pairs)}")
                print(f"    {mine:,.1f} against {other:,.1f}: {verdict(met)}")
