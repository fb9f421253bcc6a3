"""Loadstone on real servers side by side with the tools shipped with them: cassandra-stress, redis-benchmark and
HBase's PerformanceEvaluation, on the same server, in one run."""

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
from loadstone.systems.cassandra import files
from loadstone.systems.hbase import jars, system

WORKLOAD = ["-P", str(ROOT / "workloads" / "workloada")]


@contextlib.contextmanager
def up(name: str, nodes: int = 1, below: Path | None = None, **settings: str) -> Iterator[RunningSystem]:
    """Starts a system on its usual ports, with its data `below` a directory; always stopped at the end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-", dir=below) as root:
        running = RunningSystem(name, Path(root) / name)
        try:
            running.up(nodes, settings)
            yield running
        finally:
            running.down()


def properties(running: RunningSystem) -> list[str]:
    """The properties with which the engine connects."""
    return [word for name, value in running.store_properties().items() for word in ("-p", f"{name}={value}")]


def throughput(used: Used) -> float:
    """Operations per second in a YCSB report."""
    found = re.search(r"^\[OVERALL\], Throughput\(ops/sec\), ([0-9.E]+)", used.stdout, re.MULTILINE)
    if found is None:
        raise SystemExit(f"error: no throughput in\n{used.stdout}")
    return float(found[1])


def words(**named: object) -> list[str]:
    """Properties as arguments of the engine's command line."""
    return [word for name, value in named.items() for word in ("-p", f"{name}={value}")]


def sleep_cpu_us() -> float:
    """CPU of a thread that sleeps and wakes on this machine, µs, which no paced tool can avoid."""
    wakes = 2_000
    before = time.thread_time()
    for _ in range(wakes):
        time.sleep(200e-6)
    return (time.thread_time() - before) / wakes * 1e6


def marginal_us(short: tuple[float, float], long: tuple[float, float], more: int) -> float:
    """CPU per operation of the `more` operations in a long run, µs; a run is its CPU and its rate."""
    return (long[0] - short[0]) / more * 1e6


def against_cassandra_stress(work: Path, few: int, many: int, rate: int) -> None:
    """(e) Client CPU per operation of writes at CL ONE, 20 clients, one node: at one rate, and as fast as possible."""
    artifact = "-Dartifact=org.apache.cassandra:apache-cassandra:4.0-alpha2:tar.gz:bin"
    run(["mvn", "-B", "-q", "dependency:copy", artifact, f"-DoutputDirectory={work}"])
    (tarball,) = work.glob("apache-cassandra-*.tar.gz")
    run(["tar", "xzf", str(tarball), "-C", str(work)])
    tarball.unlink()
    home = next(work.glob("apache-cassandra-*"))
    jars = f"{home}/conf:{home}/tools/lib/stress.jar:{home}/lib/*"
    java = ["java", "-server", "-Xmx512m", "-XX:+UseParallelGC", *files.module_options()]
    java += [f"-Dcassandra.storagedir={work}/stress", "-Dlogback.configurationFile=logback-tools.xml"]

    with up("cassandra") as running:
        port = running.store_properties()["port"]
        running.recreate_table("usertable", {"fieldcount": "5"})
        engine = [ENGINE, "ycsb", "run", "cassandra", *properties(running), *WORKLOAD, "-threads", "20"]
        # The data that cassandra-stress writes: five columns of 34 bytes.
        engine += words(fieldcount=5, fieldlength=34, readproportion=0, updateproportion=1, writeallfields="true")
        engine += words(recordcount=1_000_000, **{"cassandra.writeconsistencylevel": "ONE"})

        def ours(n: int, target: int) -> tuple[float, float]:
            used = run([*engine, "-p", f"operationcount={n}", *(["-target", str(target)] if target else [])])
            return used.cpu_seconds, throughput(used)

        def theirs(n: int, target: int) -> tuple[float, float]:
            stress = [*java, "-cp", jars, "org.apache.cassandra.stress.Stress", "write", f"n={n}", "cl=ONE"]
            limits = ["-rate", "threads=20", *([f"throttle={target}/s"] if target else []), "-node", "127.0.0.1"]
            used = run([*stress, *limits, "-port", f"native={port}"])
            rate = re.search(r"^Op rate\s*:\s*([0-9,]+) op/s", used.stdout, re.MULTILINE)
            if rate is None:
                raise SystemExit(f"error: no rate in\n{used.stdout}")
            return used.cpu_seconds, float(rate[1].replace(",", ""))

        ours(few, 0), theirs(few, 0)
        for target, named in ((rate, f"at {rate:,} op/s"), (0, "unthrottled")):
            short, long = (ours(few, target), theirs(few, target)), (ours(many, target), theirs(many, target))
            mine, other = (marginal_us(short[side], long[side], many - few) for side in (0, 1))
            print(f"(e) Cassandra, writes {named}, 20 clients: client CPU ours ÷ cassandra-stress {mine / other:.3f}")
            print(f"    {mine:.1f} µs at {long[0][1]:,.0f} op/s against {other:.1f} µs at {long[1][1]:,.0f};")
            print(f"    goal at most 0.1, {0.1 * other:.1f} µs: {verdict(mine / other <= 0.1)}", flush=True)
        print(f"    a thread that sleeps and wakes costs {sleep_cpu_us():.1f} µs here: no client that waits until an")
        print("    operation is due can cost less, and ours is woken once more when the answer comes", flush=True)


def against_redis_benchmark(repeats: int, operations: int) -> None:
    """(f) Throughput of the same commands over as many connections, none pipelined, one thread each."""
    tools = unpack_packages(["redis-tools"])
    environment = {"LD_LIBRARY_PATH": library_path(tools)}
    bench = next(tools.glob("usr/bin/redis-benchmark"))
    records, clients = 100_000, 50
    with up("redis") as running:
        keys = words(recordcount=records, insertorder="ordered", zeropadding=12, executors=1)
        keys += words(requestdistribution="uniform", operationcount=operations)
        engine = ["-threads", str(clients), *properties(running), *WORKLOAD, *keys]
        run([ENGINE, "ycsb", "load", "redis", *engine])
        shapes = [
            ("HGETALL", words(readproportion=1, updateproportion=0), ["HGETALL", "user__rand_int__"]),
            (
                "HMSET of a field",
                words(readproportion=0, updateproportion=1),
                ["HMSET", "user__rand_int__", "field0", "v" * 100],
            ),
        ]
        for name, mix, command in shapes:
            flags = ["-p", running.store_properties()["redis.port"], "-c", str(clients), "-n", str(operations)]
            theirs = [str(bench), *flags, "-r", str(records), "--csv", *command]
            ours = [ENGINE, "ycsb", "run", "redis", *engine, *mix]
            pairs = []
            for _ in range(repeats):
                row = run(theirs, environment=environment).stdout.splitlines()[-1]
                pairs.append((throughput(run(ours)), float(row.split('","')[1])))
            ratio = ratio_of(pairs)
            mine, other = (sorted(side)[repeats // 2] for side in zip(*pairs, strict=True))
            print(f"(f) Redis, {name}, {clients} connections: throughput ours ÷ redis-benchmark {ratio}")
            print(f"    {mine:,.0f} op/s against {other:,.0f}; goal at least 1.0: {verdict(ratio.median >= 1)}")


def against_performance_evaluation(repeats: int, few: int, many: int) -> None:
    """(g) Rows per second, and client CPU per row, of HBase's own load generator with the same buffering: none."""
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
        # Reads are second, when both tables are full.
        for command, phase in (("sequentialWrite", "load"), ("randomRead", "run")):

            def theirs(rows: int, command: str = command) -> tuple[float, float]:
                """CPU seconds, and rows per second over all threads as the tool reports them."""
                flags = [
                    "--nomapred",
                    f"--rows={rows // threads}",
                    "--presplit=6",
                    "--valueSize=100",
                    "--autoFlush=true",
                ]
                used = run([*java, *flags, command, str(threads)])
                found = re.findall(r"Finished .* in (\d+)ms at offset \d+ for (\d+) rows", used.stdout + used.stderr)
                return used.cpu_seconds, sum(int(n) for _, n in found) / max(int(ms) for ms, _ in found) * 1e3

            def ours(rows: int, phase: str = phase) -> tuple[float, float]:
                """CPU seconds and rows per second of Loadstone: a load writes `rows` records, a run reads them."""
                shape = words(fieldcount=1, fieldlength=100, columnfamily="family", requestdistribution="uniform")
                shape += words(recordcount=rows if phase == "load" else many, operationcount=rows)
                shape += words(readproportion=1, updateproportion=0)
                line = [ENGINE, "ycsb", phase, "hbase2", *properties(running), *WORKLOAD, *shape]
                used = run([*line, "-threads", str(threads)])
                return used.cpu_seconds, throughput(used)

            cpu, rates = [], []
            for _ in range(repeats):
                if command == "sequentialWrite":
                    running.recreate_table("usertable", {"family": "family", "splits": "5"})
                short, long = (ours(few), theirs(few)), (ours(many), theirs(many))
                cpu.append((marginal_us(short[0], long[0], many - few), marginal_us(short[1], long[1], many - few)))
                rates.append((long[0][1], long[1][1]))
            for what, pairs, met in (
                ("rows per second", rates, ratio_of(rates).median >= 1),
                ("client CPU per row", cpu, ratio_of(cpu).median <= 1.1),
            ):
                mine, other = (sorted(side)[repeats // 2] for side in zip(*pairs, strict=True))
                print(f"(g) HBase, {command}, {threads} threads: {what} ours ÷ PerformanceEvaluation {ratio_of(pairs)}")
                print(f"    {mine:,.1f} against {other:,.1f}: {verdict(met)}")
