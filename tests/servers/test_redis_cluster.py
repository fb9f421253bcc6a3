"""A real Redis Cluster of three nodes, through both command lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conftest import Engine, report
from loadstone.systems.redis.client import RedisClient
from systems_support import Up, free_port, systems, temporary_root, up

RECORDS = 300


@pytest.fixture(scope="module")
def cluster() -> Iterator[Up]:
    with up(
        "redis", 3, cluster="yes", port=free_port(offsets=(*range(3), *range(10_000, 10_003))), maxclients=300
    ) as servers:
        yield servers


def connect_all(cluster: Up) -> list[RedisClient]:
    """A connection to each node."""
    first = int(cluster.properties["redis.port"])
    return [RedisClient("127.0.0.1", port) for port in range(first, first + 3)]


def test_records_are_spread_over_all_nodes(cluster: Up, engine: Engine) -> None:
    cluster.systems("fresh", "redis")
    engine(f"load redis -P workloads/workloada recordcount={RECORDS} dataintegrity=true", *cluster.arguments())
    counts = [client.send_command("DBSIZE") for client in connect_all(cluster)]
    # The index of keys is a key, too.
    assert sum(map(int, map(str, counts))) == RECORDS + 1
    assert all(int(str(count)) > RECORDS / 6 for count in counts), counts
    done = engine(
        f"run redis -P workloads/workloade recordcount={RECORDS} operationcount=200 maxscanlength=9 dataintegrity=true",
        *cluster.arguments(),
    )
    assert "[SCAN], Return=OK" in done.out
    assert "ERROR" not in done.out


def test_migrated_slots_are_followed(cluster: Up, engine: Engine) -> None:
    cluster.systems("fresh", "redis")
    line = f"recordcount={RECORDS} fieldcount=1 readproportion=0.5 updateproportion=0.5 -threads 4"
    engine(f"load redis -P workloads/workloada {line}", *cluster.arguments())
    run = engine.start(
        f"run redis -P workloads/workloada {line} -target 500 operationcount=1500 -s", *cluster.arguments()
    )
    # Connected, with its slots cached.
    assert run.stderr
    while "operations" not in run.stderr.readline():
        assert run.poll() is None
    source, target, _ = connect_all(cluster)
    own, other = (str(client.send_command("CLUSTER", "MYID")) for client in (source, target))
    port = str(int(cluster.properties["redis.port"]) + 1)
    migrated = 0
    for slot in map(str, range(0, 5461)):
        keys = source.send_command("CLUSTER", "GETKEYSINSLOT", slot, "100")
        if not isinstance(keys, list) or not keys:
            continue
        target.send_command("CLUSTER", "SETSLOT", slot, "IMPORTING", own)
        source.send_command("CLUSTER", "SETSLOT", slot, "MIGRATING", other)
        source.send_command("MIGRATE", "127.0.0.1", port, "", "0", "1000", "KEYS", *map(str, keys))
        for client in (target, source):
            client.send_command("CLUSTER", "SETSLOT", slot, "NODE", other)
        migrated += len(keys)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0
    assert migrated > RECORDS / 6
    assert "ERROR" not in out
    assert "Return=NOT_FOUND" not in out
    assert "[READ], Return=OK" in out


def test_acl_users_have_rights_on_all_nodes(cluster: Up, engine: Engine) -> None:
    cluster.systems("fresh", "redis")
    for client in connect_all(cluster):
        client.send_command("ACL", "SETUSER", "loader", "on", ">secret", "~*", "+@all", "-hgetall")
    user = ("-p", "redis.cusername=loader", "-p", "redis.cpassword=secret")
    engine("load redis -P workloads/workloada recordcount=100", *cluster.arguments(), *user)
    done = engine.run(
        "run redis -P workloads/workloadc recordcount=100 operationcount=100", *cluster.arguments(), *user
    )
    assert done.returns("READ") == {"FORBIDDEN": 100}
    refused = engine.run(
        "load redis -P workloads/workloada",
        *cluster.arguments(),
        "-p",
        "redis.cusername=loader",
        "-p",
        "redis.cpassword=x",
    )
    assert "redis.cusername and redis.cpassword" in refused.messages("hint: ")[0]


def test_killed_node_fails_its_share_alone(cluster: Up, engine: Engine) -> None:
    cluster.systems("fresh", "redis")
    line = f"recordcount={RECORDS} -threads 4"
    engine(f"load redis -P workloads/workloada {line}", *cluster.arguments())
    run = engine.start(
        f"run redis -P workloads/workloadc {line} -target 300 operationcount=1200 -s status.interval=1",
        *cluster.arguments(),
    )
    assert run.stderr
    while "operations" not in run.stderr.readline():
        assert run.poll() is None
    cluster.systems("kill", "redis", "redis-3")
    out, _ = run.communicate(timeout=60)
    cluster.systems("restart", "redis", "redis-3")
    statuses = {k: int(v) for m, k, v in report(out) if m == "READ" and k.startswith("Return=")}
    assert statuses["Return=OK"] >= 600
    assert statuses["Return=SERVICE_UNAVAILABLE"] > 0
    assert {*statuses} == {"Return=OK", "Return=SERVICE_UNAVAILABLE"}


def test_cluster_and_single_server_are_distinguished(cluster: Up, engine: Engine) -> None:
    port = cluster.properties["redis.port"]
    done = engine.run(f"run redis -P workloads/workloada redis.port={port}")
    assert done.code == 1
    assert "is a node of a cluster" in done.err
    assert "redis.cluster=true" in done.err


def test_two_nodes_cannot_form_a_cluster() -> None:
    with temporary_root() as root:
        stderr = systems(root, "up", "redis", "--nodes", "2", "--cluster", code=1).stderr
        assert "2 nodes cannot have cluster=yes" in stderr
