"""The lab downloads the jars and creates the tables that a command requires."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from loadstone.observe.process import read_stat
from loadstone.systems import prerequisites
from loadstone.systems.base import state
from loadstone.systems.base.system import ServerProcess, SystemPlan, SystemsError
from loadstone.systems.hbase import jars


@pytest.fixture
def version_requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requested versions of HBase's client."""
    monkeypatch.delenv(prerequisites.VARIABLE, raising=False)
    versions: list[str] = []
    monkeypatch.setattr(jars, "client_class_path", lambda version: versions.append(version))
    return versions


@pytest.mark.parametrize("line", ["load hbase12 -P w", "run -s hbase2 -P w", "run -P w hbase"])
def test_hbases_client_is_fetched_for_its_names(version_requests: list[str], line: str) -> None:
    prerequisites.for_command(line.split())
    assert version_requests == ["2.6.1-hadoop3"]


@pytest.mark.parametrize(
    "line", ["load redis -P w", "run jvm -db hbase.Mine", "load hbase12 -p hbase.lib=/opt/lib", "", "load"]
)
def test_nothing_is_fetched_that_is_not_needed(version_requests: list[str], line: str) -> None:
    prerequisites.for_command(line.split())
    assert version_requests == []


def test_jars_of_the_users_own_are_left_alone(version_requests: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(prerequisites.VARIABLE, "/opt/hbase/lib/*")
    prerequisites.for_command(["load", "hbase12"])
    prerequisites.for_stores(["hbase"])
    assert version_requests == []


def test_command_continues_without_unavailable_downloads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(version: str) -> None:
        raise SystemsError(f"no jars of {version}", "install maven")

    monkeypatch.delenv(prerequisites.VARIABLE, raising=False)
    monkeypatch.setattr(jars, "client_class_path", refuse)
    prerequisites.for_command(["load", "hbase12"])
    assert capsys.readouterr().err == "warning: no jars of 2.6.1-hadoop3; install maven\n"
    with pytest.raises(SystemsError):
        prerequisites.for_stores(["rocksdb", "hbase"])


def test_system_without_tables_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path / "systems"))
    assert not prerequisites.has_servers()
    (tmp_path / "systems/redis").mkdir(parents=True)
    (tmp_path / "systems/redis/state.json").write_text("damaged")
    assert prerequisites.has_servers()
    assert prerequisites.prepare_spec({"store": {"name": "redis", "properties": {}}, "work": {}}) is None
    assert prerequisites.prepare_spec({"store": {"name": "lmdb", "properties": {}}, "work": {}}) is None


def test_only_running_servers_name_gc_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path))
    monkeypatch.setenv(prerequisites.GC_LOGS, "old")
    prerequisites.name_gc_logs()
    assert prerequisites.GC_LOGS not in os.environ
    stat = read_stat(os.getpid())
    assert stat is not None
    running = ServerProcess("cassandra-1", "127.0.0.1:9042", os.getpid(), stat.start_ticks)
    exited = ServerProcess("cassandra-2", "127.0.0.2:9042", os.getpid(), stat.start_ticks - 1)
    plain = ServerProcess("proxy", "127.0.0.3:9042", os.getpid(), stat.start_ticks)
    servers = [state.StartedServer(process, 0, 30.0, gc_log=f"/{process.name}.gc.log") for process in (running, exited)]
    up = state.State(SystemPlan(2, {}), (*servers, state.StartedServer(plain, 0, 30.0)))
    states = {"cassandra": up, "rebooted": replace(up, boot="earlier"), "empty": state.State(up.plan)}
    for name, saved in states.items():
        (tmp_path / name).mkdir()
        state.save_state(tmp_path / name / state.FILE, saved)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / state.FILE).write_text("{")
    prerequisites.name_gc_logs()
    assert json.loads(os.environ[prerequisites.GC_LOGS]) == {"127.0.0.1:9042": "/cassandra-1.gc.log"}
