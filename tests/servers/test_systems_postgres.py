"""Starts, stops, pauses and kills a real PostgreSQL through the command line."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Engine
from loadstone.systems.base import outside_directories, process
from loadstone.systems.base.files import cache, debian
from loadstone.systems.base.system import SystemsError
from loadstone.systems.postgres import cluster, system
from loadstone.systems.postgres.cluster import SHARED_MEMORY, Programs
from systems_support import Up, free_port, systems, temporary_root, up
from trial_support import READS, Running, Start, counts, single_summary, work

PASSWORD = "a'b \"c\\d"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become another user")


@pytest.fixture(scope="module")
def server() -> Iterator[Up]:
    with up("postgres", password=PASSWORD, synchronous_commit="off", conf_max_wal_size="2GB") as result:
        yield result


def programs(server: Up) -> Programs:
    """The programs of the running server."""
    return system.find_programs(server.running.place, server.running.plan, outside_directories.choose_user("postgres"))


def ask(server: Up, query: str, **changes: str) -> str:
    """The server's answer to a query by the clients' role."""
    return cluster.ask_server(programs(server), "127.0.0.1", {**server.running.plan.settings, **changes}, query)


def columns(server: Up, table: str) -> dict[str, str]:
    """A table's columns and their types."""
    query = f"SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{table}'"
    return dict(line.split("|") for line in ask(server, f"{query} ORDER BY ordinal_position").splitlines())


def test_it_serves_as_its_properties_tell(server: Up) -> None:
    port = server.running.plan.settings["port"]
    assert server.properties == {
        "postgrenosql.url": f"jdbc:postgresql://127.0.0.1:{port}/ycsb",
        "postgrenosql.user": "ycsb",
        "postgrenosql.passwd": PASSWORD,
        "db.driver": "org.postgresql.Driver",
        "db.url": f"jdbc:postgresql://127.0.0.1:{port}/ycsb",
        "db.user": "ycsb",
        "db.passwd": PASSWORD,
    }
    assert ask(server, "SELECT current_user, current_database()") == "ycsb|ycsb"
    with pytest.raises(SystemsError, match="password authentication failed"):
        ask(server, "SELECT 1", password="wrong")


def store_spec(server: Up, store: str = "postgres") -> dict[str, Any]:
    """A store of this server, in a spec."""
    names = ("db.", "postgrenosql.")
    return {"name": store, "properties": {k: v for k, v in server.properties.items() if k.startswith(names)}}


@pytest.mark.parametrize("change", ["ADD COLUMN more TEXT", "DROP COLUMN field9"])
def test_altered_table_costs_every_client_one_operation(server: Up, start: Start, change: str) -> None:
    server.running.recreate_table("usertable")
    ask(server, "INSERT INTO usertable SELECT 'user' || n FROM generate_series(0, 99) n")
    reads = work(records=100, insert_count=100, insert_order="ordered", mix=READS)
    engine = start(store=store_spec(server), work=reads, interval_ms=100)
    engine.succeed(100)
    ask(server, f"ALTER TABLE usertable {change}")
    engine.succeed(1000)
    engine.say('"stop"')
    _, events = engine.read_remaining()
    outcomes = counts(single_summary(events).outcomes)
    assert outcomes.pop(("READ", "ERROR")) == 2
    assert {*outcomes} == {("READ", "OK")}


def test_statement_timeouts_keep_their_connections(server: Up, start: Start) -> None:
    server.running.recreate_table("usertable")
    ask(server, "INSERT INTO usertable SELECT 'user' || n FROM generate_series(0, 99) n")
    store = store_spec(server)
    store["properties"]["db.url"] += "?options=-c%20statement_timeout=100"
    reads = work(records=100, insert_count=100, insert_order="ordered", mix=READS)
    engine = start(store=store, work=reads, interval_ms=100)
    engine.succeed(100)
    connections = "SELECT pid FROM pg_stat_activity WHERE application_name = 'loadstone' ORDER BY pid"
    before = ask(server, connections)
    ask(server, "BEGIN; LOCK TABLE usertable; SELECT pg_sleep(0.5); COMMIT")
    engine.succeed(1000)
    assert ask(server, connections) == before
    # The lock makes both clients wait in a read, because a session that ends between two reads fails no read.
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'loadstone'"
    ask(server, f"BEGIN; LOCK TABLE usertable; SELECT pg_sleep(0.05); {end}; COMMIT")
    engine.succeed(1000)
    engine.say('"stop"')
    _, events = engine.read_remaining()
    summary = single_summary(events)
    outcomes = counts(summary.outcomes)
    assert summary.connection_attempts is not None
    assert summary.connection_attempts.attempted == 2
    assert outcomes["READ", "TIMEOUT"] >= 2
    assert outcomes["READ", "SERVICE_UNAVAILABLE"] == 2
    assert {*outcomes} == {("READ", "OK"), ("READ", "TIMEOUT"), ("READ", "SERVICE_UNAVAILABLE")}


@pytest.fixture
def pooler(server: Up) -> Iterator[Callable[[str], dict[str, str]]]:
    """Starts PgBouncer in a mode; returns the properties of a store that reaches the server through it."""
    user = outside_directories.choose_user("postgres")
    root = debian.unpack_packages(["pgbouncer"], "", outside_directories.cache_for(user, cache.cache_root()))
    settings = server.running.plan.settings
    password = PASSWORD.replace("'", "''")
    with temporary_root() as directory, contextlib.ExitStack() as stack:

        def run(mode: str) -> dict[str, str]:
            port = free_port()
            path = directory / f"{mode}.ini"
            path.write_text(
                f"""[databases]
ycsb = host=127.0.0.1 port={settings["port"]} user=ycsb password='{password}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
"""
            )
            environment = {**os.environ, "LD_LIBRARY_PATH": debian.library_path(root)}
            command = [root / "usr/sbin/pgbouncer", path]
            log = stack.enter_context((directory / "log").open("w"))
            running = subprocess.Popen(command, env=environment, user=user, cwd="/", stdout=log, stderr=log)
            stack.callback(running.wait)
            stack.callback(running.kill)
            while "process up" not in (directory / "log").read_text():
                assert running.poll() is None, (directory / "log").read_text()
                time.sleep(0.05)
            own, other = f":{settings['port']}/", f":{port}/"
            properties = {name: text for name, text in server.properties.items() if name.startswith("db.")}
            return properties | {"db.url": properties["db.url"].replace(own, other)}

        yield run


def test_poolers_must_keep_prepared_statements(
    server: Up, pooler: Callable[[str], dict[str, str]], engine: Engine
) -> None:
    server.running.recreate_table("usertable")
    for mode in ("session", "transaction"):
        arguments = [word for name, text in pooler(mode).items() for word in ("-p", f"{name}={text}")]
        loaded = engine.run("load postgres -P workloads/workloada recordcount=100 -threads 4", *arguments)
        if mode == "session":
            assert loaded.returns("INSERT") == {"OK": 100}
            assert "pooler" not in loaded.err
        else:
            assert loaded.code == 1
            (message,) = loaded.messages("error: ")
            assert "is a pooler that loses prepared statements: prepared statement" in message
            assert "max_prepared_statements (PgBouncer 1.21)" in loaded.messages("hint: ")[0]


def outcomes(engine: Running) -> dict[tuple[str, str], int]:
    """The statuses of a trial's operations with their counts."""
    code, events = engine.read_remaining()
    counts = {(outcome.operation, outcome.status): outcome.count for outcome in single_summary(events).outcomes}
    return {**counts, ("exit", "status"): code}


@pytest.mark.parametrize("integrity", [False, True])
@pytest.mark.parametrize("store", ["postgres", "postgrenosql"])
def test_capital_letters_in_field_names_are_preserved(server: Up, start: Start, store: str, integrity: bool) -> None:
    server.running.recreate_table("usertable", {"layout": "jdbc" if store == "postgres" else store})
    mix = READS | {"update": 1, "scan": 1}
    load = work(
        records=100, insert_count=100, mix=mix, field_name_prefix="FIELD", integrity=integrity, read_all_fields=False
    )
    where = {"store": store_spec(server, store), "work": load}
    assert outcomes(start(phase="load", until={"operations": 100}, **where))["INSERT", "OK"] == 100
    result = outcomes(start(until={"operations": 600}, **where))
    assert {status for _, status in result} == {"OK", "status"}
    assert result["exit", "status"] == 0
    assert result["READ", "OK"] > 0
    assert (result.get(("VERIFY", "OK"), 0) > 0) == integrity


def test_columns_beside_the_fields_are_left_alone(server: Up, start: Start) -> None:
    server.running.recreate_table("usertable")
    ask(
        server,
        "ALTER TABLE usertable ADD made TIMESTAMPTZ DEFAULT now(), ADD number INT GENERATED ALWAYS AS IDENTITY,"
        " ADD twice TEXT GENERATED ALWAYS AS (field0 || field0) STORED",
    )
    load = work(records=100, insert_count=100, mix=READS | {"update": 1, "scan": 1})
    where = {"store": store_spec(server), "work": load}
    assert outcomes(start(phase="load", until={"operations": 100}, **where))["INSERT", "OK"] == 100
    result = outcomes(start(until={"operations": 600}, **where))
    assert {status for _, status in result} == {"OK", "status"}
    assert {kind for kind, _ in result} >= {"READ", "UPDATE", "SCAN"}


def test_field_that_is_not_text_is_refused(server: Up, start: Start) -> None:
    server.running.recreate_table("usertable")
    ask(server, "ALTER TABLE usertable ALTER field0 TYPE INT USING 0")
    # The values have four bytes, so the INT column would accept them as numbers.
    length = {"distribution": "constant", "bytes": 4}
    load = work(records=10, insert_count=10, field_length=length)
    result = outcomes(start(store=store_spec(server), work=load, phase="load", until={"operations": 10}))
    # A load ends at a client's first failure.
    assert result["INSERT", "BAD_REQUEST"] > 0
    assert ("INSERT", "OK") not in result
    assert ask(server, "SELECT count(*) FROM usertable") == "0"


def test_its_settings_are_the_servers(server: Up, engine: Engine) -> None:
    names = ("synchronous_commit", "fsync", "max_wal_size", "listen_addresses", "shared_buffers", "lc_collate")
    settings = {name: ask(server, f"SHOW {name}") for name in names}
    assert settings == {
        "synchronous_commit": "off",
        "fsync": "on",
        "max_wal_size": "2GB",
        "listen_addresses": "127.0.0.1",
        "shared_buffers": "128MB",
        "lc_collate": "C",
    }
    assert str(server.running.read_facts()["server_version"]).startswith("15.")
    assert server.running.read_facts()["conf.max_wal_size"] == "2GB"
    facts = server.running.read_facts()
    assert facts["wal_writer_delay"] == "200ms"
    server.systems("fresh", "postgres", "usertable")
    stated = engine.run("load postgres -P workloads/workloada recordcount=1", *server.arguments()).err
    # A setting has the same value, whether the store or the lab reports it.
    for name in ("fsync", "synchronous_commit", "wal_writer_delay", "shared_buffers"):
        assert f"{name} {facts[name]}" in stated


def test_checkpoints_are_counted_from_its_log(server: Up) -> None:
    before = server.running.read_figures()["postgres.checkpoints"]
    systems(server.root, "restart", "postgres")
    # The new server has not begun any checkpoint, and the old server's checkpoints do not count.
    assert (before, server.running.read_figures()["postgres.checkpoints"]) == (0, 0)


def test_clients_cannot_become_its_user(server: Up) -> None:
    """A known password on a shared machine must not be the password of an account."""
    assert ask(server, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == "f"
    with pytest.raises(SystemsError, match="must be superuser"):
        ask(server, "COPY (SELECT 1) TO PROGRAM 'cat'")
    with pytest.raises(SystemsError, match="password authentication failed"):
        ask(server, "SELECT 1", user="postgres", password="postgres")


def test_it_is_not_root(server: Up) -> None:
    (server_process,) = server.running.running_processes()
    owner = Path(f"/proc/{server_process.pid}").stat().st_uid
    assert owner != 0
    assert (server.running.place.data / "postgres/cluster").stat().st_uid == owner


def test_committed_rows_survive_a_crash(server: Up) -> None:
    ask(server, "SET synchronous_commit = on; CREATE TABLE kept (x int); INSERT INTO kept VALUES (7)")
    server.systems("kill", "postgres")
    output = server.systems("status", "postgres", code=1).stdout
    assert output.startswith("postgres dead 127.0.0.1:")
    server.systems("restart", "postgres")
    assert ask(server, "SELECT x FROM kept") == "7"
    assert (
        "was not properly shut down; automatic recovery in progress"
        in server.systems("logs", "postgres", "--lines", "99").stdout
    )


def test_restarted_it_does_not_wait_for_its_clients(server: Up) -> None:
    command = [programs(server).program_path("psql"), "--no-psqlrc", "--command=SELECT pg_sleep(600)"]
    settings = server.running.plan.settings
    variables = {"PGHOST": "127.0.0.1", "PGPORT": settings["port"], "PGUSER": "ycsb", "PGPASSWORD": PASSWORD}
    with subprocess.Popen(
        command, env={**os.environ, **programs(server).variables, **variables}, stderr=subprocess.PIPE, text=True
    ) as client:
        while ask(server, "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'") != "1":
            assert client.poll() is None
        server.systems("restart", "postgres")
        _, stderr = client.communicate(timeout=60)
    assert "terminating connection due to administrator command" in stderr
    log = server.systems("logs", "postgres", "--lines", "99").stdout
    # The server ends by an orderly shutdown, not by SIGKILL.
    assert log.rindex("database system is shut down") > log.rindex("received fast shutdown request")


def test_paused(server: Up) -> None:
    server.systems("pause", "postgres")
    assert server.systems("status", code=1).stdout.startswith("postgres paused ")
    (server_process,) = server.running.running_processes()
    everybody = [
        child_process.state
        for child in process.process_tree(server_process)
        if (child_process := process.read_process(child.pid))
    ]
    assert len(everybody) > 1
    assert {*everybody} == {"T"}
    server.systems("resume", "postgres")
    assert ask(server, "SELECT 1") == "1"


def test_new_table_has_the_layout_of_a_binding(server: Up) -> None:
    server.systems("fresh", "postgres", "--set", "fieldcount=2")
    jdbc = {"ycsb_key": "character varying", "field0": "text", "field1": "text"}
    assert columns(server, "usertable") == jdbc
    ask(server, "INSERT INTO usertable VALUES ('k', 'a', 'b')")
    server.systems("fresh", "postgres", "usertable", "--set", "layout=postgrenosql")
    assert columns(server, "usertable") == {"ycsb_key": "character varying", "ycsb_value": "jsonb"}
    assert ask(server, "SELECT count(*) FROM usertable") == "0"
    # SQL reads an unquoted name as lower case.
    server.systems("fresh", "postgres", "UserTable2")
    assert len(columns(server, "usertable2")) == 11


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x; DROP TABLE y"], 'table cannot be "x; DROP TABLE y" in SQL'),
        (["--set", "layout=mongo"], 'layout cannot be "mongo"'),
        (["--set", "splits=2"], 'postgres has no option "splits" for a table'),
        (["--set", "fieldcount=many"], 'fieldcount must be a whole number of at least 0, got "many"'),
    ],
)
def test_tables_that_cannot_be(server: Up, arguments: list[str], message: str) -> None:
    assert f"error: {message}" in server.systems("fresh", "postgres", *arguments, code=1).stderr


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("shared_buffers=lots", 'invalid value for parameter "shared_buffers": "lots"'),
        ("conf.no_such=1", 'unrecognized configuration parameter "no_such"'),
        ("conf.Fsync=off", "conf.Fsync cannot be set: Loadstone sets it"),
        ("conf.listen_addresses=*", "conf.listen_addresses cannot be set"),
        ("fsync=maybe", 'fsync must be yes or no, got "maybe"'),
        ("user=a b", 'user cannot be "a b" in SQL'),
        ("user=Postgres", "user cannot be postgres, which the server reserves"),
        ("user=select", 'syntax error at or near "select"'),
        ("password=a\nb", "the password has unprintable characters"),
        ("binary=/nowhere", "there is no program /nowhere/postgres"),
    ],
)
def test_settings_that_make_no_sense(setting: str, message: str) -> None:
    with temporary_root() as root:
        stderr = systems(root, "up", "postgres", "--set", f"port={free_port()}", "--set", setting, code=1).stderr
        assert message in stderr
        assert not (root / "postgres/data").exists()


def test_nothing_is_left_after_a_crash() -> None:
    """A killed server leaves shared memory behind, which its successor or `down` removes."""
    with up("postgres") as server:
        (server_process,) = server.running.running_processes()
        assert segments_of(server_process.pid) == 1
        server.systems("kill", "postgres")
        assert segments_of(server_process.pid) == 1
        server.systems("down", "postgres")
        assert segments_of(server_process.pid) == 0


def segments_of(pid: int) -> int:
    """The number of shared memory segments that a process created."""
    rows = [line.split() for line in SHARED_MEMORY.read_text().splitlines()]
    return sum(row[rows[0].index("cpid")] == str(pid) for row in rows[1:])


@AS_ROOT
def test_directory_unreachable_for_the_server_user_is_reported(tmp_path: Path) -> None:
    """The server's data are stored elsewhere, and `down` deletes them. The path is too long for a socket."""
    root = tmp_path / ("long" * 25)
    (tmp_path).chmod(0o700)
    before = stray_data()
    output = systems(root, "up", "postgres", "--set", f"port={free_port()}").stdout
    try:
        assert output.startswith("postgres up ")
        (result,) = stray_data() - before
        assert (root / "postgres/data/postgres").resolve() == result
    finally:
        systems(root, "down", "postgres")
    assert stray_data() == before
    assert {path.name for path in (root / "postgres").iterdir()} == {"logs", "lock"}


def stray_data() -> set[Path]:
    """Data that systems store outside their directories."""
    return {*outside_directories.DATA.iterdir()} if outside_directories.DATA.exists() else set()
