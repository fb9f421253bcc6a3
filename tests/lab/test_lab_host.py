"""Runs cannot measure on one host at the same time; a run that is resumed on a changed host is reported."""

from __future__ import annotations

import fcntl
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from judge_support import asking, experiment
from lab_support import command, environment
from lab_support import experiment as written
from loadstone.errors import LoadstoneError
from loadstone.judge.finding import Severity
from loadstone.judge.judge import judge_results
from loadstone.results.trial_result import TrialResult
from loadstone.runner.host_lock import NAME, find_holder, host_locked


def test_two_runs_cannot_measure_at_the_same_time(tmp_path: Path) -> None:
    with host_locked(Path("results/first"), tmp_path):
        with pytest.raises(LoadstoneError) as raised, host_locked(Path("results/second"), tmp_path):
            pass
        assert str(raised.value.args[0]).startswith(f"another run is measuring on this host (pid {os.getpid()}, ")
        assert "results/first)" in str(raised.value.args[0])
        assert "--share-host" in str(raised.value.hint)
        assert find_holder(tmp_path).endswith("results/first")
    assert find_holder(tmp_path) == ""
    with host_locked(Path("results/third"), tmp_path):
        assert "third" in (tmp_path / NAME).read_text()


def test_link_in_place_of_the_lock_stays_unopened(tmp_path: Path) -> None:
    """In /tmp, any user could create a link in place of the lock to make another user's run overwrite a file."""
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / NAME).symlink_to(other)
    with host_locked(Path("results/first"), tmp_path):
        pass
    assert other.read_text() == "kept"


def test_lock_holder_without_a_note_is_unnamed(tmp_path: Path) -> None:
    """The text in the lock file is from a run that has ended."""
    (tmp_path / NAME).write_text("pid 4194305, /results/ended\n")
    with (tmp_path / NAME).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(LoadstoneError) as raised, host_locked(Path("results/second"), tmp_path):
            pass
    assert raised.value.args[0] == "another run is measuring on this host"


def test_a_finished_run_clears_its_note(tmp_path: Path) -> None:
    with host_locked(Path("results/first"), tmp_path) as note:
        note(Path("results/first/now"))
        assert (tmp_path / NAME).read_text() == f"pid {os.getpid()}, {Path('results/first/now').resolve()}\n"
    assert (tmp_path / NAME).read_text() == ""


def test_without_a_lock_file_there_is_no_lock(tmp_path: Path) -> None:
    with host_locked(Path("results/first"), tmp_path / "missing"):
        pass


def test_concurrent_run_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    file = written(tmp_path)
    alone = {name: value for name, value in environment(tmp_path).items() if name != "LOADSTONE_SHARE_HOST"}
    arguments = command("run", file, "--results", tmp_path / "results")
    directory = Path("/run/lock") if Path("/run/lock").is_dir() else Path("/tmp")
    path = directory / NAME
    with path.open("a+") as lock:
        # Locked by a concurrent test or by this test: in both cases the host is locked.
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.skip("a run is measuring on this host")
        done = subprocess.run(
            arguments, env=alone, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert "another run is measuring on this host" in done.stderr
    assert not (tmp_path / "results").exists()


def resume_findings(fact: str, value: str, system: str | None = None, from_repeat: int = 4) -> list[str]:
    """The findings if a fact changes at a repeat, on one side or on both."""

    def change_fact(trial: TrialResult) -> TrialResult:
        changed = trial.repeat >= from_repeat and system in (None, trial.config["system"])
        return replace(trial, facts={**trial.facts, fact: value if changed else "1"})

    judgement = judge_results(experiment(change_fact, question=asking(metrics=("throughput",))))
    return [
        f"{finding.severity.name.lower()}: {finding.message}"
        for finding in judgement.comparisons[0].findings
        if finding.check == "sides-differ" and finding.severity > Severity.NOTE
    ] or [f"note: {finding.message}" for finding in judgement.all_findings if finding.check == "sides-differ"]


def test_a_run_resumed_with_another_engine_is_reported() -> None:
    assert resume_findings("engine", "2") == [
        "note: the load generator's version changed between blocks (1 and 2); within each block it is the same"
    ]
    assert resume_findings("engine", "2", "lmdb") == [
        "suspect: the load generator's version changed within blocks 4, 5, 6: 1; 1 and 2"
    ]


def test_server_or_jvm_upgrade_between_repeats_is_suspect() -> None:
    message = "suspect: the {} changed between repeats: 1 and 2"
    assert resume_findings("system_version", "2", "lmdb") == [message.format("version of the servers")]
    assert resume_findings("server_version", "2", "lmdb") == [message.format("exact version of the servers")]
    assert resume_findings("jvm", "2", "lmdb") == [message.format("JVM")]
    assert resume_findings("server_jvm", "2", "lmdb") == [message.format("JVM of the servers")]


def test_system_upgrade_between_repeats_is_suspect() -> None:
    assert resume_findings("version", "2", "lmdb") == ["suspect: the system's version changed between repeats: 1 and 2"]
