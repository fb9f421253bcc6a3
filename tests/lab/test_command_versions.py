"""The lab finds the program in a command, and the version of the tool."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from lab_support import ROOT
from loadstone.workloads.shell_command import check_program, program_of, version_command
from test_command_kind import TPS, parse_output


def test_program_of_a_command_is_found() -> None:
    assert program_of("A=b pgbench -n") == "pgbench"
    assert program_of("n=$(cat count) x") == ""
    assert program_of("'unfinished") == ""
    assert program_of("{tool} -x") == ""
    check_program("cd /; true")


VERSIONS = {
    "env A=1 pgbench -n": "env A=1 pgbench --version",
    "timeout -s KILL 9s pgbench -n": "timeout -s KILL 9s pgbench --version",
    "nice -n 1 /opt/pg/pgbench -n": "nice -n 1 /opt/pg/pgbench --version",
    "cd 'a b' && taskset -c 0-3 ./pgbench -n": "cd 'a b' && taskset -c 0-3 ./pgbench --version",
    'X=1 "$CASSANDRA/bin/cassandra-stress" write n=5': 'X=1 "$CASSANDRA/bin/cassandra-stress" version',
    "rm -rf x; (scylla-bench -mode write) | tee log": "scylla-bench --version",
    "hadoop jar x.jar TestDFSIO -write": "hadoop version",
    "loadstone ycsb run redis": "loadstone --version",
    "nice grep pgbench file": "",
    "mytool --x": "",
}


@pytest.mark.parametrize("text", VERSIONS)
def test_version_is_asked_behind_wrappers(text: str) -> None:
    assert version_command(text) == VERSIONS[text]


def test_version_of_a_wrapped_tool_is_recorded(tmp_path: Path) -> None:
    tool = tmp_path / "bin/pgbench"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho pgbench 99 in $PWD\n")
    tool.chmod(0o755)
    command = f"cd / && env A=1 timeout 9 nice -n 1 {shlex.quote(str(tool))} > /dev/null; echo tps = 5"
    run = parse_output(tmp_path, command, TPS)
    assert run.facts["version"] == "pgbench 99 in /"
    run = parse_output(tmp_path, "echo YCSB Client 0.17.0 >&2; echo tps = 5", TPS)
    assert run.facts["version"] == "0.17.0"


SIDE_BY_SIDE = sorted((ROOT / "experiments/more").glob("*-side-by-side.yaml"))


@pytest.mark.parametrize("path", SIDE_BY_SIDE, ids=lambda path: path.stem)
def test_compared_tools_have_versions(path: Path) -> None:
    assert len(SIDE_BY_SIDE) == 4
    for name, workload in yaml.safe_load(path.read_text())["workloads"].items():
        command = workload["command"]
        # YCSB prints its version to standard error.
        assert command.get("version") or version_command(command["run"]) or "site.ycsb.Client" in command["run"], name
