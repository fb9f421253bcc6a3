"""Faults under load: writes that a guarantee preserves are not reported as lost. `make soak` injects more faults."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import Engine
from hadoop_support import hbase_ports, hdfs_ports
from ledger_support import PATIENT, Proof, await_start, proof
from loadstone.engine.events import Interval
from loadstone.fleet.local import Local
from loadstone.fleet.merge import Merger
from loadstone.fleet.segments import split_spec
from loadstone.runner.settling import await_replication
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.cassandra.system import Cassandra
from test_systems_cassandra import free_ports
from trial_support import check_sums, counts, single_summary, summary_of

PAUSES = int(os.environ.get("LOADSTONE_PAUSES", "1"))
KILLS = int(os.environ.get("LOADSTONE_KILLS", "1"))
TABLE = {"keyspace": "ycsb", "replication_factor": "3"}
PAUSE_SECONDS = 4.0
# The goals for one engine: the number of clients, and the peak memory, B.
CLIENTS, MEMORY_MAX = 10_000, 150_000_000
# The duration of their run, the time until the kill of a node, and the time until its restart begins.
RUN_S, HEALTHY_S, DOWN_S = 60, 9, 10


@pytest.mark.soak
def test_paused_node_loses_no_writes(
    engine: Engine, running: list[subprocess.Popen[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster = RunningSystem("cassandra", tmp_path_factory.mktemp("three"))
    limits = {"read_request_timeout": "20000ms", "write_request_timeout": "20000ms"}
    try:
        cluster.up(3, free_ports(3) | {"heap": "512M"} | limits)
        properties = tuple(f"{name}={text}" for name, text in cluster.store_properties().items())
        cassandra = Proof(engine, "cassandra", (*properties, *PATIENT))
        stale = 0
        for pause in range(PAUSES):
            cluster.recreate_table("usertable", TABLE)
            cassandra.load()
            line = cassandra.line("operationcount=0", "maxexecutiontime=12", "target=100", "insertproportion=0.3")
            process = engine.start(*line)
            running.append(process)
            await_start(process)
            time.sleep(2)
            victim = f"cassandra-{pause % 3 + 1}"
            cluster.pause(victim)
            time.sleep(PAUSE_SECONDS)
            cluster.resume(victim)
            process.wait(120)
            waited = await_replication(cluster.find_backlog, cluster.unseen_s)
            assert waited.backlog is None, waited
            verdict = cassandra.judge(line, "--loaded")
            assert verdict.sound, verdict
            read = verdict.output["read"]
            assert (read["level"], read["own_level"]) == ("ALL", "ONE")
            assert verdict.output["writes"]["acknowledged"] > 100
            assert verdict.output["lost"]["writes"] == verdict.output["lost"]["undecided"] == 0
            stale += verdict.output["stale"]["writes"]
            print(f"pause {pause + 1}: {verdict.writes}, {verdict.output['proven']}, {waited.seconds:.0f} s to settle")
        print(f"{PAUSES} pauses: no writes lost, {stale} stale")
    finally:
        cluster.down()


@pytest.mark.parametrize(
    ("system", "settings", "window_ms"),
    [
        ("redis", {"appendonly": "yes", "appendfsync": "everysec"}, 2000),
        ("postgres", {"synchronous_commit": "off"}, 600),
        pytest.param("postgres", {"synchronous_commit": "on"}, 0, marks=pytest.mark.soak),
    ],
)
def test_killed_server_loses_what_its_guarantee_allows(
    engine: Engine, running: list[subprocess.Popen[str]], system: str, settings: dict[str, str], window_ms: float
) -> None:
    with proof(engine, system, **settings) as (store, at):
        lost = []
        for _ in range(KILLS):
            verdict = store.crash(running, at.running)
            assert verdict.is_proven, verdict
            assert verdict.output["lost"]["window_ms"] == window_ms
            assert verdict.output["lost"]["allowed"] == verdict.output["lost"]["writes"]
            lost.append(verdict.output["lost"]["writes"])
    print(f"{KILLS} kills of {system}: {lost} acknowledged writes lost, all as allowed")


@pytest.mark.soak
@pytest.mark.parametrize(("nodes", "level", "window_ms"), [(1, "ONE", 100), (3, "QUORUM", 0)])
def test_killed_cassandra_node_loses_what_is_allowed(
    engine: Engine,
    running: list[subprocess.Popen[str]],
    tmp_path_factory: pytest.TempPathFactory,
    nodes: int,
    level: str,
    window_ms: float,
) -> None:
    cluster = RunningSystem("cassandra", tmp_path_factory.mktemp("cluster"))
    try:
        cluster.up(nodes, free_ports(nodes) | {"heap": "512M"})
        properties = [f"{name}={text}" for name, text in cluster.store_properties().items()]
        store = Proof(engine, "cassandra", (*properties, *PATIENT, f"cassandra.writeconsistencylevel={level}"))
        table = TABLE | {"replication_factor": str(nodes)}
        require_allowed_losses(
            store, running, cluster, [f"cassandra-{node + 1}" for node in range(nodes)], table, window_ms
        )
    finally:
        cluster.down()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """Three nodes of Cassandra."""
    nodes = RunningSystem("cassandra", tmp_path_factory.mktemp("nodes"))
    try:
        nodes.up(3, free_ports(3) | {"heap": "768M"})
        yield nodes
    finally:
        nodes.down()


@pytest.mark.soak
@pytest.mark.usefixtures("engine_variable")
@pytest.mark.parametrize(("connections", "engines", "rate"), [("shared", 1, 0), ("client", 3, 2000)])
def test_ten_thousand_clients_survive_a_killed_node(
    engine: Engine, cluster: RunningSystem, connections: str, engines: int, rate: int
) -> None:
    """The clients share connections in a closed loop, or each has a connection to each node, at a rate.

    30,000 connections in one engine would exceed the usual limit of open files.
    """
    cluster.recreate_table("usertable", TABLE)
    properties = [f"{name}={text}" for name, text in cluster.store_properties().items()]
    quorum = ("cassandra.writeconsistencylevel=QUORUM", f"cassandra.connections={connections}")
    store = Proof(engine, "cassandra", (*properties, *quorum))
    store.load()
    ends = ("operationcount=0", f"maxexecutiontime={RUN_S}", f"target={rate}")
    line = store.line(*ends, "runnumber=9", clients=CLIENTS)
    spec = json.loads(engine(*line, "--print-spec").out)
    spec |= {"sinks": [{"sink": "hdr_ns"}], "interval_ms": 1000, "wait_for_start": True}
    spec["ledger"]["file"] = str(engine.home / "part")

    def restart_node() -> None:
        time.sleep(HEALTHY_S)
        cluster.kill("cassandra-2")
        time.sleep(DOWN_S)
        cluster.restart("cassandra-2")

    titles = [f"segment {k}/{engines}" for k in range(engines)]
    with (
        ThreadPoolExecutor() as pool,
        Merger(titles) as merger,
        Local().launch(split_spec(spec, engines), merger.hear) as launched,
    ):
        faults: list[Future[None]] = []
        received = launched.events(started=lambda _: faults.append(pool.submit(restart_node)))
        intervals = [part for _, event in received for part in merger.take(event) if isinstance(part, Interval)]
        faults[0].result()
        ready, summary = merger.result().ready, merger.result().summary
    waited = await_replication(cluster.find_backlog, cluster.unseen_s)
    assert waited.backlog is None, waited
    verdict = store.judge(line, *(f"part.{k}" for k in range(engines)), "--loaded")

    summaries = [summary_of(trial) for trial in launched.trials]
    statuses = sum((counts(share.outcomes) for share in summaries), Counter())
    memory = [share.memory_bytes_max for share in summaries]
    print(f"{summary.operations} operations, {dict(statuses)}, {summary.in_flight} unanswered, {summary.unsent} unsent")
    print(f"{ready.connect_seconds:.1f} s to connect, {[round(size / 1e6) for size in memory]} MB")
    print(f"late: {summary.late_generator} (generator), {summary.late_client} (clients)")
    print(f"{summary.words}, {[(event.server, event.event) for event in summary.server_events]}")
    print(f"{verdict.writes}, {verdict.output['proven']}, {waited.seconds:.0f} s to settle")
    assert summary.end == "done", summary.reason
    assert max(memory) <= MEMORY_MAX
    # Every operation has one outcome: in each engine, and in their sums over windows, statuses and histograms.
    for share in summaries:
        single_summary([share])
    assert statuses == counts(summary.outcomes)
    assert statuses.total() == summary.operations
    assert sum(share.in_flight + share.unsent for share in summaries) == summary.never_ended
    check_sums(summary, intervals)
    assert (summary.due or 0) == sum(interval.due or 0 for interval in intervals) == rate * RUN_S
    # The ledger has the same outcomes, and each acknowledged write is in the table.
    assert verdict.output["writes"]["acknowledged"] == summary.succeeded == statuses["UPDATE", "OK"] > 1000
    refused_or_maybe = verdict.output["writes"]["refused"] + verdict.output["writes"]["maybe"]
    assert 0 < summary.failures <= refused_or_maybe <= summary.failures + summary.in_flight
    assert verdict.output["lost"]["writes"] == verdict.output["lost"]["undecided"] == 0


@pytest.mark.soak
def test_killed_region_server_loses_no_synced_write(
    engine: Engine, running: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    hdfs, hbase = RunningSystem("hdfs", tmp_path), RunningSystem("hbase", tmp_path)
    try:
        hdfs.up(3, hdfs_ports(3))
        hbase.up(2, hbase_ports(2) | {"heap": "512m"})
        conf = hbase.store_properties()["hbase.conf"]
        patient = ("hbase.client.operation.timeout=30000", "hbase.client.retries.number=30")
        durable = (f"hbase.conf={conf}", "columnfamily=cf", "durability=SYNC_WAL")
        store = Proof(engine, "hbase", (*durable, *patient), closes=False)
        servers = ["region-server-1", "region-server-2"]
        require_allowed_losses(store, running, hbase, servers, {"family": "cf", "splits": "5"}, 0)
    finally:
        hbase.down()
        hdfs.down()


def require_allowed_losses(
    store: Proof,
    running: list[subprocess.Popen[str]],
    system: RunningSystem,
    servers: Sequence[str],
    table: Mapping[str, str],
    window_ms: float,
) -> None:
    """Kills the servers in turn; every loss must be allowed by the guarantee. All kills run before the verdict."""
    losses = []
    for kill in range(KILLS):
        verdict = store.crash(running, system, servers[kill % len(servers)], table)
        assert verdict.has_proof, verdict
        lost = verdict.output["lost"]
        # The engine states the bound of a single node, even if several nodes acknowledged a write.
        losses.append((lost["writes"], lost["allowed"] if window_ms else 0))
        assert not window_ms or lost["window_ms"] == window_ms
    print(f"{KILLS} kills of {system.name}: {losses} acknowledged writes lost, and allowed to be lost")
    assert all(writes == allowed for writes, allowed in losses), losses


class Backlogs:
    """Scripted backlogs, and a clock."""

    def __init__(self, *backlogs: str | None) -> None:
        self.backlogs = list(backlogs)
        self.now = 0.0

    def find(self) -> str | None:
        """The next backlog; the last is permanent."""
        return self.backlogs.pop(0) if len(self.backlogs) > 1 else self.backlogs[0]

    def sleep(self, seconds: float) -> None:
        """Advances the clock."""
        self.now += seconds


@pytest.mark.parametrize(
    ("backlogs", "seconds", "last"),
    [
        ((None,), 11.0, None),
        (("hints", "hints", None), 12.0, None),
        ((None, None, "hints", None), 13.0, None),
        (("hints",), 300.0, "hints"),
    ],
)
def test_read_back_waits_for_replication(backlogs: tuple[str | None, ...], seconds: float, last: str | None) -> None:
    script = Backlogs(*backlogs)
    waited = await_replication(script.find, Cassandra.unseen_s, script.sleep, lambda: script.now)
    assert (waited.seconds, waited.backlog) == (seconds, last)


def test_read_back_of_one_node_waits_for_compactions() -> None:
    script = Backlogs("compactions", "compactions", None)
    waited = await_replication(script.find, 0.0, script.sleep, lambda: script.now)
    assert (waited.seconds, waited.backlog) == (2.0, None)
