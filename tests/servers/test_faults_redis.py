"""Faults injected into a real Redis server: their records in the results, lost writes, and a killed lab."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lab_support import ROOT, command, environment, experiment, loadstone, single_folder, start, trials
from loadstone.runner.server_pool import DIED
from loadstone.systems.base import undo
from loadstone.systems.base.networks import list_namespaces, name_prefix
from loadstone.systems.base.running_system import RunningSystem, ServerState
from systems_support import free_port
from systems_support import redis_root as redis_root
from tiny_support import until

TEXT = f"""
systems:
  redis: {{start: {{settings: {{port: PORT, appendonly: "yes", appendfsync: everysec}}}}}}
workload: {{file: {ROOT}/workloads/workloada, properties: {{recordcount: 200, fieldcount: 1}}}}
rate: 200
clients: 8
vary: {{fault: [none, kill]}}
measure: {{warmup: 0, duration: DURATION, deadline: 100ms, ledger: true}}
faults:
  - {{do: "{{fault}}", at: {{from: 600ms, to: 900ms}}, lift: 400ms, recovered: {{window: 50ms, hold: 0}}}}
repeats: 2
"""


def write_experiment(home: Path, text: str = TEXT) -> Path:
    """An experiment on a free port, with a duration that leaves time for the restart of the server."""
    # Validation assumes 2 s for the restart of Redis.
    duration = "5s" if "lift: 2s" in text else "3300ms"
    return experiment(home, text.replace("DURATION", duration).replace("PORT", str(free_port())))


def test_faults_of_a_block_are_equal_and_verified(tmp_path: Path, root: Path) -> None:
    loadstone(tmp_path, "run", write_experiment(tmp_path), "--no-report", timeout=300)
    results = trials(single_folder(tmp_path))
    assert len(results) == 4
    for repeat in (1, 2):
        block = {str(trial.config["fault"]): trial.faults[0] for trial in results if trial.repeat == repeat}
        assert {kind: fault.kind for kind, fault in block.items()} == {kind: kind for kind in ("none", "kill")}
        assert len({(fault.planned_at_ns, fault.planned_lift_ns, fault.servers) for fault in block.values()}) == 1
    assert len({trial.faults[0].planned_at_ns for trial in results}) == 2
    for trial in results:
        fault = trial.faults[0]
        assert fault.unverified == {}
        assert not [note for note in trial.notes if note.name == DIED]
        assert trial.value("ledger.lost") == 0
        if fault.kind != "none":
            assert fault.ordered_ns is not None
            assert fault.ordered_ns >= fault.planned_at_ns
            assert fault.held_ns is not None
            assert fault.ready_ns is not None
        # The engine and the lab agree on the start of the window.
        assert abs(int(fault.facts["clock_offset_ns"])) < 1_000_000
    assert RunningSystem("redis", root).status() == []


def test_killed_node_interrupts_its_key_range(tmp_path: Path, root: Path) -> None:
    port = free_port(offsets=(*range(3), *range(10_000, 10_003)))
    cluster = f'nodes: 3, settings: {{port: {port}, cluster: "yes", maxclients: "300"}}'
    text = TEXT.replace('settings: {port: PORT, appendonly: "yes", appendfsync: everysec}', cluster)
    text = text.replace("lift: 400ms", "lift: 2s").replace("repeats: 2", "repeats: 1")
    text = text.replace("ledger: true", "ledger: false").replace(
        "fieldcount: 1", "fieldcount: 1, requestdistribution: uniform"
    )
    loadstone(tmp_path, "run", write_experiment(tmp_path, text), "--no-report", timeout=300)
    (killed,) = [trial for trial in trials(single_folder(tmp_path)) if trial.config["fault"] == "kill"]
    interrupted = killed.values["range.interrupted"]
    # On a busy host, all clients may stall for half a second.
    assert 1 <= interrupted.value <= interrupted.n == 3
    assert killed.value("range.affected") == pytest.approx(interrupted.value / 3, abs=1e-3)
    assert killed.values["range.outage"].value >= killed.values["outage"].value


def test_resume_undoes_the_fault_of_a_killed_lab(tmp_path: Path, root: Path) -> None:
    text = TEXT.replace("[none, kill]", "[pause]").replace("lift: 400ms", "lift: 2s")
    path = write_experiment(tmp_path, text)
    lab = start(tmp_path, "run", path, "--no-report")
    journal = root / "redis" / undo.FILE
    until(journal.exists, "the journal of the fault")
    until(
        lambda: ServerState.PAUSED in [state for _, state in RunningSystem("redis", root).status()], "a paused server"
    )
    lab.send_signal(signal.SIGKILL)
    lab.communicate()
    assert journal.exists()
    loadstone(tmp_path, "run", path, "--no-report", "--resume", timeout=300)
    assert not journal.exists()
    assert [trial.end for trial in trials(single_folder(tmp_path))] == ["done", "done"]
    assert RunningSystem("redis", root).status() == []


def test_interrupt_during_a_fault_leaves_nothing(tmp_path: Path, root: Path) -> None:
    text = TEXT.replace("[none, kill]", "[pause]").replace("lift: 400ms", "lift: 2s")
    lab = start(tmp_path, "run", write_experiment(tmp_path, text), "--no-report")
    until((root / "redis" / undo.FILE).exists, "the journal of the fault")
    time.sleep(0.3)
    lab.send_signal(signal.SIGINT)
    _, stderr = lab.communicate(timeout=60)
    assert lab.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert not (root / "redis" / undo.FILE).exists()
    assert RunningSystem("redis", root).status() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_power_cut_loses_only_unsynced_writes(tmp_path: Path, root: Path) -> None:
    text = TEXT.replace("[none, kill]", "[power]").replace("appendfsync: everysec", 'appendfsync: "{sync}"')
    text = text.replace("vary: {fault", "vary: {sync: [always, 'no'], fault").replace(
        "start: {", "start: {file_system: 64MB, "
    )
    loadstone(tmp_path, "run", write_experiment(tmp_path, text), "--no-report", timeout=300)
    results = trials(single_folder(tmp_path))
    lost = {"always": 0.0, "no": 0.0}
    for trial in results:
        assert trial.faults[0].unverified == {}
        lost[str(trial.config["sync"])] += (trial.value("ledger.lost") or 0) + (trial.value("ledger.lost_allowed") or 0)
    assert lost["always"] == 0
    assert lost["no"] > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_partial_cut_and_slow_disk_are_verified(tmp_path: Path, root: Path) -> None:
    text = TEXT.replace("[none, kill]", "[cut, slow]").replace(
        "start: {", "start: {isolate: network, file_system: 64MB, "
    )
    text = text.replace("everysec", "always").replace(
        "lift: 400ms", "lift: 2s, peer: clients, direction: in, disk: 64KB"
    )
    loadstone(tmp_path, "run", write_experiment(tmp_path, text.replace("repeats: 2", "repeats: 1")), timeout=300)
    faults = {trial.faults[0].kind: trial.faults[0] for trial in trials(single_folder(tmp_path))}
    assert {kind: fault.unverified for kind, fault in faults.items()} == {"cut": {}, "slow": {}}
    assert (faults["cut"].facts["peer"], faults["cut"].facts["direction"]) == ("clients", "in")
    assert faults["slow"].facts["disk_bytes_per_s"] == 64 << 10
    assert not [name for name in list_namespaces() if name.startswith(name_prefix(root / "redis"))]


def test_dry_run_refuses_an_unsupported_fault(tmp_path: Path, root: Path) -> None:
    text = TEXT.replace("[none, kill]", "[power]").replace("start: {", "start: {file_system: 64MB, ")
    path = write_experiment(tmp_path, text)
    # Without mkfs.ext4 and mount on PATH, the host does not support the fault.
    (tmp_path / "bin").mkdir()
    variables = {**environment(tmp_path), "PATH": str(tmp_path / "bin")}
    done = subprocess.run(
        command("run", path, "--dry-run"), cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert "this host does not support the fault power" in done.stderr
