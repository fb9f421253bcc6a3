"""What `--dry-run` reports before anything runs."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from lab_support import experiment, loadstone, single_folder, trials
from loadstone.commands.run import main
from loadstone.runner import host_lock
from scripted_cassandra import FakeCassandra

TINY = "workload: {properties: {recordcount: 10}}\n"


def errors(home: Path, text: str, code: int = 1) -> str:
    """The messages of a dry run, which must run nothing."""
    done = loadstone(home, "run", experiment(home, text), "--dry-run", code=code)
    assert not (home / "results").exists()
    assert "trials     " in done.stdout
    return done.stderr if code else done.stdout


@pytest.fixture
def listener() -> socket.socket:
    """A socket of this process that accepts connections at a free port."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    return server


def test_refused_store_value_is_reported(tmp_path: Path) -> None:
    text = f"systems: {{a: {{store: 'null', properties: {{null.delay: 100us}}}}}}\n{TINY}"
    stderr = errors(tmp_path, text)
    assert 'error: a: null.delay must be microseconds from 0 to 1000000, got "100us"\nhint: ' in stderr


def test_refused_store_value_precedes_trials(tmp_path: Path) -> None:
    text = f"systems: {{a: {{store: 'null', properties: {{null.delay: 100us}}}}}}\n{TINY}"
    done = loadstone(tmp_path, "run", experiment(tmp_path, text), code=1)
    assert "null.delay must be" in done.stderr
    assert not (tmp_path / "results").exists()


def test_extremes_of_a_sweep_are_checked(tmp_path: Path) -> None:
    system = "systems: {a: {store: 'null', properties: {null.delay: '{delay}'}}}\n"
    stderr = errors(tmp_path, f"{system}{TINY}vary: {{delay: [1, 100us, 2], clients: [1, 2, 4000000]}}\n")
    assert 'null.delay must be microseconds from 0 to 1000000, got "100us"' in stderr
    assert "threadcount must be at most 1000000, got 4000000" in stderr


def test_unreachable_server_is_reported(tmp_path: Path) -> None:
    text = f"systems: {{redis: {{properties: {{redis.host: 127.0.0.1, redis.port: 1}}}}}}\n{TINY}"
    assert "error: cannot connect to 127.0.0.1:1: Connection refused\nhint: start the server" in errors(tmp_path, text)


def test_server_at_default_port_is_checked(tmp_path: Path) -> None:
    text = f'systems: {{redis: {{attach: {{hosts: ["127.0.0.1:1"]}}}}}}\n{TINY}'
    assert "error: cannot connect to 127.0.0.1:1:6379: " in errors(tmp_path, text)


def test_impossible_port_is_reported(tmp_path: Path) -> None:
    text = f"systems: {{redis: {{properties: {{redis.host: 127.0.0.1, redis.port: 70000}}}}}}\n{TINY}"
    assert "error: there is no port 70000\nhint: correct the address of redis" in errors(tmp_path, text)


def test_port_in_use_names_its_holder(tmp_path: Path, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    text = f"systems: {{redis: {{start: {{settings: {{port: {port}}}}}}}}}\n{TINY}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
        stderr = errors(tmp_path, text)
    assert f"port 127.0.0.1:{port}, which redis needs, is in use by " in stderr
    assert f"(pid {os.getpid()})" in stderr


def test_port_in_use_precedes_trials(tmp_path: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
    port = listener.getsockname()[1]
    text = f"systems: {{redis: {{start: {{settings: {{port: {port}}}}}}}}}\n{TINY}"
    done = loadstone(tmp_path, "run", experiment(tmp_path, text), code=1)
    first = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert f"port 127.0.0.1:{port}, which redis needs, is in use by " in first
    assert not (tmp_path / "results").exists()


def test_too_little_space_is_reported(tmp_path: Path) -> None:
    text = "systems: [lmdb]\nworkload: {properties: {recordcount: 1000000000000}}\n"
    assert re.search(
        r"error: up to 4,000 TB will be written below .*, which has .* free\nhint: set `directory`",
        errors(tmp_path, text),
    )


def test_metric_of_absent_operation_is_reported(tmp_path: Path) -> None:
    mix = "recordcount: 10, readproportion: 1, updateproportion: 0"
    text = f"systems: [lmdb]\nworkload: {{properties: {{{mix}}}}}\ncompare: {{metrics: [read.p99, %s]}}\n"
    reported = errors(tmp_path, text.replace("%s", "scan.p99"), code=0)
    assert "warning: no variant performs the operation of scan.p99\nhint: remove the metric, or add" in reported
    expected = errors(tmp_path, text.replace("%s", "all.p99") + "expect: [insert.p99 < 1s, all.p99 < 1s]\n", code=0)
    assert [line for line in expected.splitlines() if line.startswith("warning")] == [
        "warning: no variant performs the operation of insert.p99"
    ]
    assert "warning" not in errors(tmp_path, text.replace("%s", "all.p99"), code=0)


def test_slow_load_names_the_line(tmp_path: Path, listener: socket.socket) -> None:
    properties = f"{{redis.host: 127.0.0.1, redis.port: {listener.getsockname()[1]}}}"
    text = f"systems: {{redis: {{properties: {properties}}}}}\nworkload: {{properties: {{recordcount: 1000000}}}}\n"
    stderr = errors(tmp_path, text, code=0)
    assert "warning: loading 1,000,000 records with 1 client may take longer than the trials" in stderr
    assert "hint: write `load: {clients: 32}`" in stderr
    assert "warning" not in errors(tmp_path, text + "load: {clients: 32}\n", code=0)


def test_rate_without_due_operations_is_reported(tmp_path: Path) -> None:
    text = f"systems: {{a: {{store: 'null'}}}}\n{TINY}measure: {{duration: 2s}}\n"
    reported = errors(tmp_path, f"{text}rate: 0.4\n", code=0)
    assert "warning: at 0.4 op/s, no operation is due within the 2 s of the measurement\nhint: set a" in reported
    assert "warning" not in errors(tmp_path, f"{text}rate: 0.5\n", code=0)


def test_rate_above_the_limit_is_refused(tmp_path: Path) -> None:
    text = f"systems: {{a: {{store: 'null'}}}}\n{TINY}rate: 1000000001\n"
    done = loadstone(tmp_path, "run", experiment(tmp_path, text), "--dry-run", code=2)
    assert "error: rate must be at most 1,000,000,000 operations per second, got 1000000001" in done.stderr


def test_busy_host_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(host_lock, "DIRECTORIES", (tmp_path,))
    monkeypatch.delenv("LOADSTONE_SHARE_HOST", raising=False)
    file = experiment(tmp_path, f"systems: {{a: {{store: 'null'}}}}\n{TINY}")
    with host_lock.host_locked(tmp_path / "results/first"):
        assert main([str(file), "--dry-run"]) == 0
        assert f"another run is measuring on this host (pid {os.getpid()}, " in capsys.readouterr().out
    assert main([str(file), "--dry-run"]) == 0
    assert "another run" not in capsys.readouterr().out


def test_missing_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
    monkeypatch.setenv("PATH", str(tmp_path))
    text = errors(tmp_path, f"systems: {{redis: {{start: {{settings: {{port: 1023}}}}}}}}\n{TINY}", code=0)
    message = "warning: apt-get is not on PATH, but is needed to fetch redis unless the cache already contains it\n"
    assert f"{message}hint: " in text


def test_relative_library_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_text("not a library")
    text = f"systems: {{rocksdb: {{properties: {{rocksdb.library: lib.so}}}}}}\n{TINY}"
    assert "no file lib.so" not in errors(tmp_path, text)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("mixed 'ratio(write=1,read=3)'", "error: Invalid parameter 'ratio(write=1,read=3)'\nhint: mixed accepts"),
        ("write -col names=a n=fixed(3)", "error: Invalid -col options provided"),
        ("write -rate threads=5", "error: -rate cannot be set in the command"),
        ("write -mode native cql3 user=a", "error: user= cannot be set in the command"),
        ("write -schema replication (factor=3)", "error: the replication cannot be set in the command"),
        ("WRITE -Schema Replication(factor=3)", "error: the replication cannot be set in the command"),
        ("write N = 5", "error: n= cannot be set in the command"),
        ("cassandra-stress write", 'error: "cassandra-stress write" does not begin with a command'),
        ("", 'error: "" does not begin with a command of cassandra-stress'),
        ("write -compat 9", "error: -compat must be 3.0, 3.11, 4 or 5"),
        ("read -pop dist=uniform(1..2k)", "error: the command reads partitions 1 to 2,000, and `population` is 10"),
        ("read -pop seq=0..9", "error: the command reads partitions 0 to 9, and `population` is 10"),
        ("write -pop dist=uniform(1..2k)", "error: cannot connect to 127.0.0.1:1"),
        ("read -pop seq=1..10 -col n=FIXED(8) size=FIXED(128)", "error: cannot connect to 127.0.0.1:1"),
    ],
)
def test_commands_of_cassandra_stress_are_checked(tmp_path: Path, command: str, error: str) -> None:
    text = "systems: {c: {store: cassandra, properties: {hosts: 127.0.0.1, port: 1}}}\nmeasure: {operations: 9}\n"
    text += f'workload: {{cassandra-stress: {{command: "{command}", population: 10}}}}\n'
    code = 2 if "cannot be set" in error or "does not begin" in error else 1
    assert error in loadstone(tmp_path, "run", experiment(tmp_path, text), "--dry-run", code=code).stderr


MODE = """
systems: {c: {store: cassandra, properties: {hosts: 127.0.0.1, port: PORT}}}
workload:
  cassandra-stress:
    command: "write -mode native cql3 requestTimeout=9000 connectionsPerHost=2 maxPending=9"
    population: 50
clients: 4
repeats: 1
measure: {warmup: 0s, operations: 400}
"""


def test_connection_options_of_commands_reach_engines(tmp_path: Path) -> None:
    with FakeCassandra() as server:
        done = loadstone(tmp_path, "run", experiment(tmp_path, MODE.replace("PORT", str(server.port))), "--no-report")
    (trial,) = trials(single_folder(tmp_path))
    assert trial.facts["request_timeout_ms"] == "9000"
    assert trial.facts["connections"] == "2 to each node, of each executor"
    assert done.stderr.count("warning: -mode maxPending= has no effect") == 1


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ("statements: {w: {weight: 0}}", "no statement has a weight above 0"),
        ("statements: {w: {}, x: {weight: -1}}", "weight must not be negative, got -1"),
        ("statements: {w: {}}, keyspace: my-shop", '"my-shop" cannot be the name of a keyspace'),
        ("statements: {w: {}}, columns: {a: {size: UNIFORM(1k .. 10)}}", 'the range of "UNIFORM(1k .. 10)" is empty'),
    ],
)
def test_impossible_statements_are_refused_early(tmp_path: Path, keys: str, error: str) -> None:
    text = "systems: {c: {store: cassandra, properties: {hosts: 127.0.0.1, port: 1}}}\nmeasure: {operations: 9}\n"
    text += f"workload: {{statements: {{define: [CREATE TABLE t (a int PRIMARY KEY)], table: t, {keys}}}}}\n"
    assert f"error: {error}" in loadstone(tmp_path, "run", experiment(tmp_path, text), "--dry-run", code=2).stderr


def test_command_of_an_older_tool_states_its_error(tmp_path: Path) -> None:
    text = "systems: {c: {store: cassandra, attach: {hosts: [127.0.0.1]}}}\nmeasure: {operations: 9}\n"
    text += "workload: {cassandra-stress: {command: write cl=MANY, population: 10}}\n"
    done = loadstone(tmp_path, "run", experiment(tmp_path, text), "--dry-run", code=1)
    assert done.stderr.startswith("error: Invalid value MANY; must match pattern ONE|QUORUM")


def test_all_mistakes_of_a_profile_are_reported(tmp_path: Path) -> None:
    profile = tmp_path / "wrong.yaml"
    profile.write_text("keyspace: a\ntable: b\ncolumnspec:\n- {name: c, size: fixed(x)}\nquerys: {}\n")
    text = "systems: {c: {store: cassandra, attach: {hosts: [127.0.0.1]}}}\nmeasure: {operations: 9}\n"
    text += f"workload: {{cassandra-stress: {{command: 'user profile={profile} ops(insert=1)', population: 10}}}}\n"
    done = loadstone(tmp_path, "run", experiment(tmp_path, text), "--dry-run", code=1)
    for line in (4, 5):
        assert done.stderr.count(f"error: {profile}:{line}: ") == 1
