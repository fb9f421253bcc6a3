"""Files and sorts on a real HDFS, whose servers the lab starts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleet_support import InProcess
from hadoop_support import hdfs_ports
from lab_support import experiment, loadstone, single_folder
from loadstone.commands import run as run_command
from loadstone.fleet.clock import HostClock, ShiftedClock
from loadstone.judge.judge import judge_results
from loadstone.observe.device import IN_MEMORY, file_system_of
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.runner import run as runner
from systems_support import temporary_root, up

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


@dataclass(frozen=True)
class Results:
    """A run's output and results."""

    output: str
    trials: Sequence[TrialResult]
    folder: Path


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """One run of every workload kind, on servers that the lab starts in a separate directory."""
    home = tmp_path_factory.mktemp("replication")
    settings = json.dumps({**hdfs_ports(2), "blocksize": "1m", "data.dir": str(home / "blocks")})
    with temporary_root() as root, pytest.MonkeyPatch.context() as patched:
        patched.setenv("LOADSTONE_SYSTEMS", str(root))
        file = experiment(home, REPLICATION.replace("SETTINGS", settings))
        output = loadstone(home, "run", file, "--no-report", timeout=900).stdout
        folder = single_folder(home)
        yield Results(output, folder.load_results().trials, folder.path)


def test_every_kind_works_on_hdfs(results: Results) -> None:
    trials = results.trials
    assert [(trial.end, trial.notes if trial.is_failure else ()) for trial in trials] == [("done", ())] * 12
    for trial in trials:
        assert trial.facts["data_nodes"] == 2
        if trial.config["workload"] == "sort":
            assert trial.value("validate.faults") == 0
        else:
            assert trial.value("stored" if trial.config["workload"] == "write" else "returned") == 6 << 20


def test_the_servers_are_kept_up_and_emptied(results: Results) -> None:
    trials = results.trials
    blocks = {
        trial.trial: trial.value("server.before.blocks") for trial in trials if trial.config["workload"] == "write"
    }
    assert set(blocks.values()) == {0}


def test_the_engine_gets_the_variants_replication_and_directory(results: Results) -> None:
    """The front end's tests check the number of replicas with the name node."""
    for trial, folder in ((trial, results.folder) for trial in results.trials):
        if trial.config["workload"] == "write":
            spec = json.loads((folder / "trials" / trial.trial / "write.spec.json").read_text())
            assert spec["work"]["replication"] == trial.config["replication"]
            assert spec["store"]["properties"]["hdfs.dir"].endswith("/loadstone/dfsio")
            assert trial.value("server.blocks") == 6


def test_cold_read_uses_the_devices_of_data_nodes(results: Results) -> None:
    if file_system_of(results.folder) in IN_MEMORY:
        pytest.skip("the file system is in memory")
    judgement = judge_results(ResultSet("cold", results.trials, Question(claims="device")))
    cold = [trial for trial in results.trials if trial.config["workload"] == "read"]
    assert len(cold) == 4
    for trial in cold:
        # Data just written would be read from memory, without a device read.
        assert (trial.value("device.read") or 0) >= (trial.value("returned") or 0) == 6 << 20
        assert not [finding for finding in judgement.trials[trial.trial] if finding.check == "page-cache"]


def test_each_repeat_is_shown_with_its_average(results: Results) -> None:
    text = results.output
    assert "throughput: each repeat" in text
    assert "dfsio.task_throughput: each repeat" in text
    assert "no claim possible" in text


FLEET = """
systems: {hdfs: {properties: {fs.defaultFS: "ADDRESS"}}}
workload: {dfsio: {operation: "{what}", files: 3, file_size: 2MB}}
clients: 2
fleet: {on: ray, engines: 2, placement: role=clients}
vary: {what: [write, read]}
measure: {verify: true}
repeats: 1
pilot: false
"""


def test_hosts_move_the_files_that_one_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks, roles = [HostClock(), HostClock(), ShiftedClock(3_600_000_000_000)], ("lab", "clients", "clients")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOADSTONE_SHARE_HOST", "1")
    monkeypatch.setattr(runner, "RayTransport", lambda address: InProcess(clocks, roles))
    with up("hdfs", 1) as hdfs:
        file = experiment(tmp_path, FLEET.replace("ADDRESS", hdfs.properties["fs.defaultFS"]))
        assert run_command.main([str(file), "--no-report"]) == 0
    for trial in single_folder(tmp_path).load_results().trials:
        reads = trial.config["what"] == "read"
        assert (trial.end, trial.facts["host_names"]) == ("done", "host1, host2"), trial.notes
        assert trial.value("returned" if reads else "stored") == 6 << 20
        volumes = [trial.value(f"host.host{number}.moved") or 0 for number in (1, 2)]
        assert sorted(volumes) == [2 << 20, 4 << 20]
        rates = [trial.values[f"host.host{number}.throughput"] for number in (1, 2)]
        assert {rate.unit for rate in rates} == {"B/s"}
        # The clocks of the hosts are an hour apart.
        throughput = trial.value("throughput") or 0
        assert max(rate.value for rate in rates) / 10 < throughput <= sum(rate.value for rate in rates) * 1.01
