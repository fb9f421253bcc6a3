"""A real Redis with a replica and a real PostgreSQL with a standby: roles, facts and faults."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_support import ROOT, experiment, loadstone, single_folder, trials
from loadstone.faults.site import StartedSite
from loadstone.judge.guarantees import guarantee_of
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.redis.client import RedisClient
from systems_support import Up, free_port, systems, temporary_root, up
from tiny_support import until

# Characters that need quotes in a configuration file and in a connection string.
PASSWORD = "a\"b c\\d'é#"
TEXT = f"""
systems:
  pair:
    store: STORE
    TABLE
    start: {{system: SYSTEM, nodes: 2, settings: {{port: PORT, SETTINGS}}}}
workload: {{file: {ROOT}/workloads/workloada, properties: {{recordcount: 200, fieldcount: 1}}}}
rate: 100
clients: 8
vary: {{victim: [primary, COPY]}}
measure: {{warmup: 0, duration: 8s, deadline: 100ms, ledger: true}}
faults:
  - {{do: kill, server: "{{victim}}", at: 800ms, lift: 500ms, recovered: {{window: 50ms, hold: 0}}}}
repeats: 1
"""
REDIS = {"STORE": "redis", "TABLE": "fresh: system", "SYSTEM": "redis", "COPY": "replica"}
POSTGRES = {"STORE": "postgres", "TABLE": "table: {fieldcount: 1}", "SYSTEM": "postgres", "COPY": "standby"}
SETTINGS = {"redis": 'appendonly: "yes"', "postgres": "max_connections: 40, conf.wal_retrieve_retry_interval: 200ms"}


@pytest.fixture(name="root")
def systems_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The state directory of servers; servers that are up at the end are stopped."""
    with temporary_root() as path:
        monkeypatch.setenv("LOADSTONE_SYSTEMS", str(path))
        yield path
        for name in ("redis", "postgres"):
            systems(path, "down", name)


@pytest.fixture(scope="module")
def redis() -> Iterator[Up]:
    with up("redis", 2, password=PASSWORD, appendonly="yes", min_replicas_to_write=1) as servers:
        yield servers


@pytest.fixture(scope="module")
def postgres() -> Iterator[Up]:
    with up("postgres", 2, password=PASSWORD, max_connections=40, shared_buffers="32MB") as servers:
        yield servers


def test_replica_receives_writes_and_is_a_role(redis: Up) -> None:
    port = int(redis.properties["redis.port"])
    with RedisClient("127.0.0.1", port, PASSWORD) as primary, RedisClient("127.0.0.1", port + 1, PASSWORD) as replica:
        primary.send_command("SET", "key", "value")
        until(lambda: replica.send_command("GET", "key") == "value", "the write on the replica")
    assert StartedSite(redis.running).roles() == {"primary": ["primary"], "replica": ["replica-1"]}
    facts, figures = redis.running.read_facts(), redis.running.read_figures()
    expected = {"replication": 2, "replication_acknowledged": 1, "primary": "primary", "min_replicas_to_write": "1"}
    assert {**facts, **expected} == facts
    assert figures["redis.replicas"] == 1
    assert figures["redis.keys"] == 1
    assert redis.running.find_backlog() is None


def test_primary_refuses_writes_without_replica(redis: Up) -> None:
    redis.systems("kill", "redis", "replica-1")
    with RedisClient("127.0.0.1", int(redis.properties["redis.port"]), PASSWORD) as primary:
        until(lambda: primary.read_section("replication")["connected_slaves"] == "0", "the loss of the replica")
    assert "NOREPLICAS" in redis.systems("fresh", "redis", code=1).stderr
    redis.systems("restart", "redis", "replica-1")
    redis.systems("fresh", "redis")
    assert redis.running.read_figures()["redis.keys"] == 0


def test_standby_is_synchronous_and_a_role(postgres: Up) -> None:
    assert StartedSite(postgres.running).roles() == {"primary": ["primary"], "standby": ["standby-1"]}
    facts, figures = postgres.running.read_facts(), postgres.running.read_figures()
    expected = {
        "replication": 2,
        "replication_acknowledged": "1 and * (on)",
        "synchronous_standby_names": "*",
        "synchronous_commit": "on",
        "primary": "primary",
    }
    assert {**facts, **expected} == facts
    assert figures["postgres.standbys"] == 1
    assert "postgres.standby_lag_bytes" in figures
    assert postgres.running.find_backlog() is None


def test_restarted_servers_stream_again(postgres: Up) -> None:
    for server in ("primary", "standby-1"):
        postgres.systems("kill", "postgres", server)
        postgres.systems("restart", "postgres", server)
        postgres.systems("fresh", "postgres")
    assert postgres.systems("status").stdout.count(" up ") == 2


@pytest.mark.parametrize("names", [REDIS, POSTGRES], ids=["redis", "postgres"])
def test_kill_by_role_loses_no_write(tmp_path: Path, root: Path, names: dict[str, str]) -> None:
    text = TEXT.replace("SETTINGS", SETTINGS[names["SYSTEM"]]).replace("PORT", str(free_port(offsets=(0, 1))))
    for word, value in names.items():
        text = text.replace(word, value)
    loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report", timeout=500)
    results = trials(single_folder(tmp_path))
    assert {trial.faults[0].servers for trial in results} == {("primary",), (f"{names['COPY']}-1",)}
    for trial in results:
        (fault,) = trial.faults
        assert {*fault.unverified} <= {"held"}, fault
        assert trial.value("ledger.lost") == trial.value("ledger.lost_allowed") == 0
        # Redis describes its replicas to the engine.
        assert trial.facts["replication"] == ("1 replica, after the answer" if names is REDIS else 2)
        on_primary = fault.servers == ("primary",)
        assert guarantee_of(trial.facts, trial.faults).age_ns == (2e9 if on_primary and names is REDIS else 0)
    assert RunningSystem(names["SYSTEM"], root).status() == []


@pytest.mark.parametrize("name", ["redis", "postgres"])
def test_used_port_of_second_node_is_named(name: str) -> None:
    port = free_port(offsets=(0, 1)) + 1
    with temporary_root() as root, socket.create_server(("127.0.0.1", port)):
        stderr = systems(root, "up", name, "--nodes", "2", "--set", f"port={port - 1}", code=1).stderr
        server = "replica-1" if name == "redis" else "standby-1"
        assert f"port 127.0.0.1:{port}, which {server} needs, is in use" in stderr
        assert {path.name for path in (root / name).iterdir()} == {"logs", "lock"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_isolated_standby_is_reached_by_its_address(root: Path) -> None:
    running = RunningSystem("postgres", root)
    running.up(2, {"max_connections": "40"}, isolated=True, file_system_bytes=256 << 20)
    assert [server.address for server in running.running_processes()] == [
        f"{running.plan.network}.1:5432",
        f"{running.plan.network}.2:5433",
    ]
    assert running.find_backlog() is None
    running.down()
    assert {path.name for path in (root / "postgres").iterdir()} == {"logs", "lock"}
