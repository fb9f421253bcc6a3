"""Cassandra on real servers: a single node, and three nodes with a failure."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cassandra_support import nodetool
from conftest import Engine
from ledger_support import PATIENT, Proof
from loadstone.errors import LoadstoneError
from loadstone.systems.base import process
from loadstone.systems.base.jvm import read_collections
from loadstone.systems.base.running_system import RunningSystem, ServerState
from loadstone.systems.base.system import Place, SystemPlan
from loadstone.systems.cassandra.cql import Cql, RefusedError, UnreachableError
from loadstone.systems.cassandra.node import node_settings, prepare_node
from loadstone.systems.cassandra.ring import connect_node
from loadstone.systems.cassandra.system import Cassandra
from loadstone.systems.cassandra.tables import make_statements
from systems_support import free_port, up
from trial_support import READS, Start, counts, single_summary, work

DEFAULTS = {setting.name: setting.default for setting in Cassandra.settings}
COLUMNS = "SELECT column_name, type, kind FROM system_schema.columns WHERE keyspace_name = 'ycsb'"
# Other tests may use the processors.
PATIENT_S = 60.0
COUNT = "SELECT count(*) FROM ycsb.usertable"


def free_ports(nodes: int) -> dict[str, str]:
    """Settings with ports that are free on all addresses of the nodes."""
    hosts = [f"127.0.0.{node}" for node in range(1, nodes + 1)]
    port = free_port(hosts)
    storage = free_port(hosts, after=port)
    # All JMX ports are on one address; the first node uses the port after this one.
    jmx = free_port(offsets=range(1, nodes + 1), after=storage)
    return {"port": str(port), "storage_port": str(storage), "jmx_port": str(jmx)}


def is_listening(address: str) -> bool:
    """Whether an address accepts connections."""
    host, _, port = address.partition(":")
    with socket.socket() as trial:
        return trial.connect_ex((host, int(port))) == 0


@pytest.fixture(scope="module")
def single_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """A single node that syncs its commit log for each batch of writes."""
    running = RunningSystem("cassandra", tmp_path_factory.mktemp("one"))
    try:
        settings = {"heap": "512M", "commitlog_sync": "batch", "yaml.concurrent_reads": "7"}
        running.up(1, free_ports(1) | settings | {"write_request_timeout": "20000ms"})
        yield running
    finally:
        running.down()


def test_second_up_of_one_node_changes_nothing(single_node: RunningSystem) -> None:
    status = single_node.status()
    assert [(server.name, state) for server, state in status] == [("cassandra-1", ServerState.UP)]
    single_node.up(1, single_node.plan.settings)
    assert single_node.status() == status
    assert single_node.store_properties() == {"hosts": "127.0.0.1", "port": single_node.plan.settings["port"]}
    assert status[0][0].address == f"127.0.0.1:{single_node.plan.settings['port']}"


def test_settings_reach_the_server(single_node: RunningSystem) -> None:
    query = "SELECT name, value FROM system_views.settings"
    with connect_node(single_node.plan, 1, PATIENT_S) as cql:
        settings = {row["name"]: row["value"] for row in cql.run_query(query)}
        (local,) = cql.run_query("SELECT release_version, tokens FROM system.local")
    assert settings["commitlog_sync"] == "batch"
    assert settings["concurrent_reads"] == "7"
    assert (settings["read_request_timeout"], settings["write_request_timeout"]) == ("5000ms", "20000ms")
    assert local["release_version"] == single_node.server_version() == DEFAULTS["version"]
    assert single_node.read_facts() == {
        "heap": "512M",
        "durability": "device",
        "how": "commitlog_sync=batch",
        "commitlog_sync": "batch",
        "commitlog_sync_period": "",
        "commitlog_format": "mapped",
    }


def test_store_states_the_commit_log_as_lab(single_node: RunningSystem, engine: Engine) -> None:
    single_node.recreate_table("usertable")
    arguments = [word for name, text in single_node.store_properties().items() for word in ("-p", f"{name}={text}")]
    loaded = engine.run("load cassandra -P workloads/workloada recordcount=10", *arguments)
    facts = single_node.read_facts()
    for name in ("commitlog_sync", "commitlog_format"):
        assert f"{name} {facts[name]}" in loaded.err
    assert "commitlog_sync_period" not in loaded.err
    assert "compaction SizeTieredCompactionStrategy" in loaded.err


def test_keyspace_without_a_log_guarantees_nothing(single_node: RunningSystem) -> None:
    single_node.recreate_table("usertable", {"durable_writes": "false"})
    facts = single_node.read_facts()
    assert (facts["durability"], facts["how"]) == ("none", "a keyspace has durable_writes=false")
    single_node.recreate_table("usertable")
    assert single_node.read_facts()["durability"] == "device"


def test_it_listens_on_loopback_only(single_node: RunningSystem) -> None:
    (node,) = single_node.running_processes()
    inodes = {os.readlink(handle) for handle in Path(f"/proc/{node.pid}/fd").iterdir() if handle.is_symlink()}
    rows = [line.split() for line in Path(f"/proc/{node.pid}/net/tcp").read_text().splitlines()[1:]]
    listening = {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}
    assert listening == {"0100007F"}
    six = [line.split() for line in Path(f"/proc/{node.pid}/net/tcp6").read_text().splitlines()[1:]]
    assert not [row for row in six if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


def test_fresh_recreates_the_table_of_the_binding(single_node: RunningSystem) -> None:
    single_node.recreate_table("usertable")
    with connect_node(single_node.plan, 1, PATIENT_S) as cql:
        results = {(row["column_name"], row["type"], row["kind"]) for row in cql.run_query(COLUMNS)}
        assert results == {("y_id", "text", "partition_key"), *((f"field{i}", "text", "regular") for i in range(10))}
        cql.run_query("INSERT INTO ycsb.usertable (y_id, field0, field9) VALUES ('user1', 'å', 'b')")
        (row,) = cql.run_query("SELECT y_id, field0, field1, field9 FROM ycsb.usertable")
        assert row == {"y_id": "user1", "field0": "å", "field1": None, "field9": "b"}
    single_node.recreate_table("usertable", {"fieldcount": "2", "compression": "none", "durable_writes": "false"})
    with connect_node(single_node.plan, 1, PATIENT_S) as cql:
        assert cql.run_query(COUNT) == [{"count": 0}]
        assert {row["column_name"] for row in cql.run_query(COLUMNS)} == {"y_id", "field0", "field1"}
        (keyspace,) = cql.run_query("SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = 'ycsb'")
        assert keyspace["durable_writes"] is False
    # Snapshots of dropped tables would fill the disk.
    assert not list((single_node.place.data / "cassandra-1").rglob("snapshots"))


def test_figures_see_the_data_and_the_collector(single_node: RunningSystem) -> None:
    single_node.recreate_table("usertable", {"compression": "none"})
    before, pauses = single_node.read_figures(), read_collections(single_node.gc_logs()["cassandra-1"])
    assert (before["ring.nodes_up"], before["ring.nodes_down"], before["cassandra-1.up"]) == (1, 0, 1)
    assert {name for name in before if "compactions" in name} == {
        "cassandra.compactions",
        "cassandra-1.compactions_active",
        "cassandra-1.compactions_pending",
    }
    counters = ("messages_dropped_total", "tasks_blocked_total", "hint_files")
    assert [before[f"ring.{counter}"] for counter in counters] == [0, 0, 0]
    assert before["ring.tasks_pending"] >= 0
    assert pauses.pauses > 0
    with (single_node.place.logs / "cassandra-1.log").open("a") as log:
        log.write("INFO  MUTATION messages were dropped in last 5000 ms: 3 internal and 40 cross node. Mean internal\n")
    assert single_node.read_figures()["ring.messages_dropped_total"] == 43
    assert 0 < before["cassandra-1.live_heap_bytes"] <= 512 << 20
    with connect_node(single_node.plan, 1, PATIENT_S) as cql:
        for row in range(40):
            cql.run_query(f"INSERT INTO ycsb.usertable (y_id, field0) VALUES ('user{row}', '{'x' * 100_000}')")
    nodetool(single_node.place, single_node.plan, 1, "flush", "ycsb")
    after = single_node.read_figures()
    # Tests the total load, not its growth, because concurrent compactions of Cassandra's own tables free a few kB.
    assert before["cassandra-1.load_bytes"] < 4_000_000 < after["cassandra-1.load_bytes"]
    assert after["cassandra.flushes"] == before["cassandra.flushes"] + 1


def test_altered_table_costs_a_client_one_operation(single_node: RunningSystem, start: Start) -> None:
    single_node.recreate_table("usertable")
    reads = work(records=100, insert_count=100, insert_order="ordered", mix=READS)
    store = {"name": "cassandra", "properties": {**single_node.store_properties()}}
    with connect_node(single_node.plan, 1, PATIENT_S) as cql:
        for row in range(100):
            cql.run_query(f"INSERT INTO ycsb.usertable (y_id, field0) VALUES ('user{row}', 'a')")
        awake, asleep = (start(store=store, work=reads, interval_ms=100) for _ in range(2))
        awake.succeed(100)
        asleep.succeed(100)
        asleep.process.send_signal(signal.SIGSTOP)
        cql.run_query("ALTER TABLE ycsb.usertable ADD more TEXT")
        # The node has forgotten the statement, and this client prepares it again: the other client is not refused.
        awake.succeed(1000)
        asleep.process.send_signal(signal.SIGCONT)
        asleep.succeed(1000)
    for engine in (awake, asleep):
        engine.say('"stop"')
        outcomes = counts(single_summary(engine.read_remaining()[1]).outcomes)
        assert outcomes.pop(("READ", "UNEXPECTED_STATE"), 0) <= 2
        assert {*outcomes} == {("READ", "OK")}


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("SELEC 1", "SyntaxError"),
        ("SELECT * FROM ycsb.nothing", "Invalid"),
        ("CREATE KEYSPACE system WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", None),
        ("CREATE ROLE me", None),
    ],
)
def test_errors_have_their_names(single_node: RunningSystem, statement: str, name: str | None) -> None:
    with connect_node(single_node.plan, 1, PATIENT_S) as cql:
        with pytest.raises(RefusedError) as caught:
            cql.run_query(statement)
        assert caught.value.name in ([name] if name else ["Invalid", "Unauthorized"])
        # The connection remains usable.
        assert len(cql.run_query("SELECT key FROM system.local")) == 1


def test_more_replicas_than_nodes_are_unavailable(single_node: RunningSystem) -> None:
    with connect_node(single_node.plan, 1, PATIENT_S) as cql:
        cql.run_query("CREATE KEYSPACE two WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}")
        cql.run_query("CREATE TABLE two.t (k text PRIMARY KEY)")
        with pytest.raises(RefusedError) as caught:
            cql.run_query("INSERT INTO two.t (k) VALUES ('a')", "ALL")
        cql.run_query("DROP KEYSPACE two")
    assert (caught.value.name, caught.value.alive) == ("Unavailable", 1)


def test_nodetool_fails_by_name(single_node: RunningSystem) -> None:
    with pytest.raises(LoadstoneError, match="nodetool nonsense fails at cassandra-1"):
        nodetool(single_node.place, single_node.plan, 1, "nonsense")


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystem]:
    """Three nodes with passwords. Without the dynamic snitch, each is the first replica of a third of the records."""
    running = RunningSystem("cassandra", tmp_path_factory.mktemp("three"))
    login = {"authenticator": "PasswordAuthenticator", "authorizer": "CassandraAuthorizer"}
    patient = {"read_request_timeout": "20000ms", "write_request_timeout": "20000ms"}
    try:
        running.up(3, free_ports(3) | login | patient | {"heap": "768M", "yaml.dynamic_snitch": "false"})
        yield running
    finally:
        running.down()


def kill_node(running: RunningSystem, node: int) -> None:
    """Kills a node, and waits until the remaining nodes have detected it."""
    running.kill(f"cassandra-{node}")
    until = time.monotonic() + PATIENT_S
    while [running.read_figures()[f"ring.nodes_{state}"] for state in ("up", "down")] != [2, 1]:
        assert time.monotonic() < until
        time.sleep(0.5)


def test_three_nodes_lose_one_and_find_it_again(three: RunningSystem) -> None:
    port = int(three.plan.settings["port"])
    assert three.store_properties() == {
        "hosts": "127.0.0.1,127.0.0.2,127.0.0.3",
        "port": str(port),
        "cassandra.username": "cassandra",
        "cassandra.password": "cassandra",
    }
    for wrong in (None, ("cassandra", "wrong"), ("unknown", "cassandra")):
        with pytest.raises(RefusedError, match=r"password|credentials") as caught:
            Cql("127.0.0.2", port, wrong, PATIENT_S)
        assert caught.value.name == "BadCredentials"
    assert ring(three) == ["UN 127.0.0.1", "UN 127.0.0.2", "UN 127.0.0.3"]
    three.recreate_table("usertable")
    with connect_node(three.plan, 1, PATIENT_S) as cql:
        cql.run_query("INSERT INTO ycsb.usertable (y_id, field0) VALUES ('user1', 'a')", "ALL")

    kill_node(three, 2)
    assert states(three) == {"cassandra-1": "up", "cassandra-2": "dead", "cassandra-3": "up"}
    assert three.read_figures()["cassandra-2.up"] == 0
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.2:\d+ does not answer CQL: .*refused"):
        connect_node(three.plan, 2)

    three.restart("cassandra-2")
    assert set(states(three).values()) == {"up"}
    assert ring(three) == ["UN 127.0.0.1", "UN 127.0.0.2", "UN 127.0.0.3"]
    # The restarted node has the record, in its data or its commit log: a query at ALL waits for every replica.
    with connect_node(three.plan, 2, PATIENT_S) as cql:
        assert cql.run_query("SELECT field0 FROM ycsb.usertable WHERE y_id = 'user1'", "ALL") == [{"field0": "a"}]


def test_killed_node_misses_writes_but_loses_none(three: RunningSystem, engine: Engine) -> None:
    """Without hints, the records that the node missed are stale at ONE, but not lost."""
    properties = tuple(f"{name}={text}" for name, text in three.store_properties().items())
    cassandra = Proof(engine, "cassandra", (*properties, *PATIENT))
    three.recreate_table("usertable", {"keyspace": "ycsb", "replication_factor": "3"})
    cassandra.load()
    for node in (1, 2, 3):
        nodetool(three.place, three.plan, node, "disablehandoff")
    # The third node must stay up, because it has the only copy of the default user.
    kill_node(three, 2)
    line = cassandra.line("operationcount=400", "target=100")
    written = engine.run(*line, timeout=180).returns("UPDATE")["OK"]
    # One of three replicas is down: the strongest readable level is QUORUM.
    verdict = cassandra.judge(line, "--loaded")
    assert verdict.sound, verdict
    assert verdict.output["read"]["level"] == "QUORUM"
    three.restart("cassandra-2")
    verdict = cassandra.judge(line, "--loaded")
    assert verdict.sound, verdict
    assert verdict.output["read"]["level"] == "ALL"
    assert 0 < verdict.output["stale"]["writes"] <= written
    assert verdict.output["lost"]["writes"] == 0
    # A read at ALL repairs the replicas.
    assert cassandra.judge(line).output["stale"]["writes"] == 0


def test_down_stops_all_nodes(three: RunningSystem) -> None:
    processes = three.running_processes()
    three.down()
    assert len(processes) == 3
    assert not [pid_entry for pid_entry in processes if process.is_alive(pid_entry)]
    assert not [pid_entry for pid_entry in processes if is_listening(pid_entry.address)]
    assert three.status() == []
    assert not three.place.data.exists()
    assert {path.name for path in three.log_paths()} >= {"cassandra-1.log", "cassandra-3.log", "cassandra-2.gc.log"}


def test_what_cassandra_refuses_is_reported_and_nothing_stays(tmp_path: Path) -> None:
    running = RunningSystem("cassandra", tmp_path)
    with pytest.raises(LoadstoneError, match="cassandra-1 exited with status") as caught:
        running.up(1, free_ports(1) | {"heap": "256M", "yaml.nonsense": "1"})
    assert "[nonsense]" in caught.value.hint
    assert running.status() == []
    assert not running.place.data.exists()


def ring(running: RunningSystem) -> list[str]:
    """The state of each node, from Cassandra's own tool."""
    status = nodetool(running.place, running.plan, 3, "status")
    return sorted(" ".join(line.split()[:2]) for line in status.splitlines() if re.match("[UD][NLJM] ", line))


def states(running: RunningSystem) -> dict[str, str]:
    """The state of each server by its name."""
    return {server.name: str(state) for server, state in running.status()}


def test_table_is_created_by_the_bindings_statements() -> None:
    columns = ", ".join(f"field{field} varchar" for field in range(10))
    assert make_statements(3, "usertable", {}) == [
        "DROP KEYSPACE IF EXISTS ycsb",
        "CREATE KEYSPACE ycsb WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}"
        " AND durable_writes = true",
        f"CREATE TABLE ycsb.usertable (y_id varchar PRIMARY KEY, {columns})",
    ]
    options = {"cassandra.keyspace": "mine", "replication_factor": "2", "fieldcount": "1", "fieldnameprefix": "f"}
    assert make_statements(3, "t", options | {"compression": "zstd", "durable_writes": "false"}) == [
        "DROP KEYSPACE IF EXISTS mine",
        "CREATE KEYSPACE mine WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}"
        " AND durable_writes = false",
        "CREATE TABLE mine.t (y_id varchar PRIMARY KEY, f0 varchar) WITH compression = {'class': 'ZstdCompressor'}",
    ]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("usertable; DROP", {}, "is not a valid CQL identifier"),
        ("t", {"splits": "3"}, 'no option "splits" for a table'),
        ("t", {"replication_factor": "4"}, "needs 4 nodes, got 3"),
        ("t", {"fieldcount": "ten"}, 'fieldcount must be a whole number of at least 1, got "ten"'),
        ("t", {"compression": "gzip"}, 'compression cannot be "gzip"'),
        ("t", {"durable_writes": "yes"}, 'durable_writes cannot be "yes"'),
    ],
)
def test_tables_that_cannot_be_are_refused(table: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(LoadstoneError, match=message):
        make_statements(3, table, options)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"version": "3.11.19"}, 'version cannot be "3.11.19"'),
        ({"version": "latest"}, 'version cannot be "latest"'),
        ({"heap": "much"}, 'heap must be a size, got "much"'),
        ({"port": "cql"}, 'port must be a whole number of at least 1, got "cql"'),
        ({"commitlog_sync": "never"}, 'commitlog_sync cannot be "never"'),
        ({"commitlog_sync": "batch", "commitlog_sync_period": "5ms"}, "commitlog_sync=batch has no period"),
        ({"authorizer": "CassandraAuthorizer"}, "CassandraAuthorizer requires users"),
        ({"yaml.rpc_address": "0.0.0.0"}, r"yaml\.rpc_address cannot be set"),
        ({"yaml.concurrent_reads": "[7"}, r'yaml.concurrent_reads is not YAML: "\[7"'),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, settings: dict[str, str], message: str) -> None:
    with pytest.raises(LoadstoneError, match=message):
        prepare_node(Place(tmp_path, tmp_path), SystemPlan(1, DEFAULTS | settings), 1)


def test_old_release_gets_old_names(tmp_path: Path) -> None:
    settings = DEFAULTS | {"version": "4.0.19", "read_request_timeout": "5s", "commitlog_sync": "group"}
    written = node_settings(Place(tmp_path, tmp_path), SystemPlan(9, settings), 9)
    assert written["read_request_timeout_in_ms"] == 5_000
    assert written["commitlog_sync_group_window_in_ms"] == 1_000
    assert not written.keys() & {"read_request_timeout", "write_request_timeout", "commitlog_sync_group_window"}
    assert (written["listen_address"], written["initial_token"]) == ("127.0.0.9", str(-(2**63) + 8 * 2**64 // 9))


@pytest.mark.soak
@pytest.mark.parametrize("version", ["4.0.19", "4.1.10"])
def test_older_releases_serve_every_protocol(version: str, engine: Engine) -> None:
    settings: dict[str, Any] = {"version": version, "heap": "512M", "tls": "yes", "commitlog_sync_period": "7s"}
    with up("cassandra", **settings) as cassandra:
        cassandra.systems("fresh", "cassandra", "usertable")
        properties = {**cassandra.properties, "recordcount": "100", "operationcount": "200", "dataintegrity": "true"}
        arguments = [word for name, text in properties.items() for word in ("-p", f"{name}={text}")]
        for protocol, algorithms in {"3": ("lz4", "snappy"), "4": ("lz4", "snappy"), "5": ("none", "lz4")}.items():
            for algorithm in algorithms:
                line = f"cassandra -P workloads/workloada cassandra.protocol={protocol}"
                line += f" cassandra.compression={algorithm}"
                loaded = engine.run(f"load {line}", *arguments)
                assert loaded.returns("INSERT") == {"OK": 100}
                for fact in (f"version Cassandra {version}", f"protocol {protocol},", "verify=full"):
                    assert fact in loaded.err
                # Cassandra 4.0 states the period in ms.
                assert re.search(r"commitlog_sync_period (7s|7000ms)", loaded.err), loaded.err
                assert "commitlog_format mapped" in loaded.err
                ran = engine.run(f"run {line}", *arguments)
                assert (ran.returns("READ"), ran.returns("VERIFY")) == ({"OK": 100}, {"OK": 100})


@pytest.mark.parametrize("answer", [None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_who_does_not_speak_cql_is_no_node(answer: bytes | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                peer, _ = listener.accept()
                with peer:
                    peer.recv(1000)
                    if answer is None:
                        peer.recv(1000)
                    else:
                        peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        expected = {None: "timeout after 0.2 s", b"": "closed the connection"}.get(answer, "ProtocolError")
        with pytest.raises((UnreachableError, RefusedError), match=expected):
            Cql("127.0.0.1", listener.getsockname()[1], timeout_s=0.2 if answer is None else PATIENT_S)
        thread.join()
