"""Files and sorts on a real HDFS, whose servers another test's are or the lab starts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hadoop_support import hdfs_ports
from lab_support import experiment, loadstone, only_folder
from loadstone.results.trial_result import TrialResult
from systems_support import temporary_root

REPLICATION = """
systems:
  hdfs:
    start: {system: hdfs, nodes: 2, settings: SETTINGS}
workloads:
  write: {dfsio: {operation: write, files: 2, file_size: 3MB, replication: "{replication}"}}
  read: {dfsio: {operation: read, files: 2, file_size: 3MB, replication: "{replication}", cold: true}}
  sort: {sort: {rows: 20000, replication: "{replication}"}}
clients: 2
vary: {replication: [1, 2]}
compare: {by: replication, promises: [replication], repeats: true}
repeats: 2
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[TrialResult]]]:
    """One run of every kind on servers that the lab starts, in a place of their own."""
    home = tmp_path_factory.mktemp("replication")
    settings = json.dumps({**hdfs_ports(2), "blocksize": "1m", "data.dir": str(home / "blocks")})
    with temporary_root() as root, pytest.MonkeyPatch.context() as patched:
        patched.setenv("LOADSTONE_SYSTEMS", str(root))
        file = experiment(home, REPLICATION.replace("SETTINGS", settings))
        shown = loadstone(home, "run", file, "--no-report", timeout=900).stdout
        yield shown, list(only_folder(home).load().trials)


def test_every_kind_works_on_hdfs(results: tuple[str, list[TrialResult]]) -> None:
    _, trials = results
    assert [(trial.end, trial.notes if trial.failed else ()) for trial in trials] == [("done", ())] * 12
    for trial in trials:
        assert trial.facts["data_nodes"] == 2
        if trial.config["workload"] == "sort":
            assert trial.value("validate.faults") == 0
        else:
            assert trial.value("stored" if trial.config["workload"] == "write" else "returned") == 6 << 20


def test_the_servers_are_kept_up_and_emptied(results: tuple[str, list[TrialResult]]) -> None:
    _, trials = results
    blocks = {
        trial.trial: trial.value("server.before.blocks") for trial in trials if trial.config["workload"] == "write"
    }
    assert set(blocks.values()) == {0}


def test_blocks_have_as_many_copies_as_were_asked_for(results: tuple[str, list[TrialResult]]) -> None:
    _, trials = results
    for trial in trials:
        if trial.config["workload"] == "write":
            used = trial.value("server.used_bytes")
            assert used is not None
            copies = int(trial.config["replication"])
            assert copies * (6 << 20) <= used < (copies + 0.5) * (6 << 20)


def test_each_repeat_is_shown_with_its_average(results: tuple[str, list[TrialResult]]) -> None:
    shown, _ = results
    assert "throughput: each repeat" in shown
    assert "dfsio.task_throughput: each repeat" in shown
    assert "no claim possible" in shown
