"""A store's table is created on servers that the lab started, and an existing table is never replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_server import Done, run_command
from lab_support import ROOT
from loadstone.systems import prerequisites
from loadstone.systems.base import outside_directories
from loadstone.systems.postgres import cluster, system
from systems_support import Up, free_port, up

WORKLOAD = str(ROOT / "workloads/workloada")
SMALL = ["-P", WORKLOAD, "-p", "recordcount=20", "-p", "fieldcount=2"]
SEARCH = ["--search", "clients", "--search-to", "2", "--search-seconds", "0.2", "--no-report"]


@pytest.fixture(scope="module")
def server() -> Iterator[Up]:
    with up("postgres") as result:
        yield result


def ask(server: Up, query: str) -> str:
    """The server's answer to a query by the clients' role."""
    programs = system.find_programs(
        server.running.place, server.running.plan, outside_directories.choose_user("postgres")
    )
    return cluster.ask_server(programs, "127.0.0.1", server.running.plan.settings, query)


def ycsb(home: Path, root: Path, *arguments: str) -> Done:
    """Runs `loadstone ycsb …`."""
    environment = {**os.environ, "LOADSTONE_SYSTEMS": str(root), "LOADSTONE_SHARE_HOST": "1", "NO_COLOR": "1"}
    return run_command(["ycsb", *arguments], home, environment, 120)


@pytest.mark.parametrize("store", ["postgres", "jdbc", "postgrenosql"])
def test_load_creates_its_table_and_reuses_it(server: Up, tmp_path: Path, store: str) -> None:
    table = f"made_for_{store}"
    command = [store, *SMALL, *server.arguments(), "-p", f"table={table}"]
    first = ycsb(tmp_path, server.root, "load", *command)
    assert first.returncode == 0, first.stderr
    assert f"postgres: created the missing table {table}" in first.stderr
    assert ask(server, f"SELECT count(*) FROM {table}") == "20"
    again = ycsb(tmp_path, server.root, "load", *command)
    assert "created the missing table" not in again.stderr
    assert ask(server, f"SELECT count(*) FROM {table}") == "20"


@pytest.mark.parametrize("store", ["postgres", pytest.param("postgrenosql", marks=pytest.mark.soak)])
def test_search_uses_system_properties_and_creates_its_table(server: Up, tmp_path: Path, store: str) -> None:
    (tmp_path / "lines").write_text(server.systems("properties", "postgres").stdout)
    command = ["run", store, *SMALL, "-P", "lines", "-p", f"table=search_{store}", *SEARCH]
    planned = ycsb(tmp_path, server.root, *command, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "created the missing table" not in planned.stderr
    done = ycsb(tmp_path, server.root, *command)
    assert "created the missing table" in done.stderr, done.stderr
    assert ask(server, f"SELECT count(*) FROM search_{store}") == "20"


def test_foreign_server_leaves_table_creation_to_the_user(server: Up, tmp_path: Path) -> None:
    for arguments in (["load", "postgrenosql"], ["run", "postgrenosql"]):
        more = SEARCH if arguments[0] == "run" else []
        done = ycsb(tmp_path, tmp_path / "none", *arguments, *SMALL, *server.arguments(), "-p", "table=away", *more)
        output = done.stdout + done.stderr
        assert "created the missing table" not in output
        assert "CREATE TABLE away (YCSB_KEY VARCHAR(255) PRIMARY KEY NOT NULL, YCSB_VALUE JSONB NOT NULL)" in output
    assert ask(server, "SELECT coalesce(to_regclass('away')::text, '')") == ""


def test_another_servers_table_is_not_made(server: Up, tmp_path: Path) -> None:
    url = f"db.url=jdbc:postgresql://127.0.0.1:{free_port()}/ycsb"
    done = ycsb(tmp_path, server.root, "load", "postgres", *SMALL, "-p", url, "-p", "db.user=ycsb")
    assert "created the missing table" not in done.stderr
    assert done.returncode != 0


def test_table_with_foreign_columns_is_left_unchanged(server: Up, tmp_path: Path) -> None:
    command = [*SMALL, *server.arguments(), "-p", "table=prefixed", "-p", "fieldnameprefix=g"]
    assert "created the missing table" not in ycsb(tmp_path, server.root, "load", "postgres", *command).stderr


@pytest.mark.parametrize("arguments", [["load", "rocksdb", *SMALL], ["run", "postgres"], ["load"], []])
def test_nothing_is_asked_for_what_needs_no_table(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADSTONE_SYSTEMS", str(tmp_path))
    assert prerequisites.create_load_table(arguments) is None
