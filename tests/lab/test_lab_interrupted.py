"""An attempt during which the lab ended is recorded as interrupted, keeps its files, and never counts."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lab_support import experiment, loadstone, rows, single_folder, start, trials
from loadstone.judge.judge import judge_results
from loadstone.results.folder import ATTEMPT_START, PILOT_TRIALS, VALUES, Folder
from loadstone.results.result_set import Question
from loadstone.results.trial_result import TrialResult

LONG = """
systems: {first: {store: "null"}}
workload: {file: %s/workloads/workloada, properties: {recordcount: 100}}
measure: {warmup: 0, duration: 1500ms}
repeats: 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A new folder."""
    return Folder.create_folder(tmp_path / "run", "run", Question(), interleaved=True)


def interrupt_attempt(attempt: int = 1) -> TrialResult:
    """The record of an attempt that began and did not end."""
    return TrialResult("a", {"system": "lmdb"}, 1, {}, end="interrupted", attempt=attempt)


def ends(folder: Folder, table: str = VALUES) -> list[tuple[int, str]]:
    """The number and the end of each attempt in a table."""
    return [(attempt.attempt, attempt.end) for attempt in folder.read_attempts(table)[0]]


@pytest.mark.parametrize("table", [VALUES, PILOT_TRIALS])
def test_an_attempt_without_an_end_is_recorded_once(folder: Folder, table: str) -> None:
    with suppress(KeyboardInterrupt), folder.open_attempt("a", start=interrupt_attempt(), table=table) as files:
        (files / "run.hlog").write_text("the first intervals")
        raise KeyboardInterrupt
    folder.repair_lines()
    folder.repair_lines()
    assert ends(folder, table) == [(1, "interrupted")]
    assert [path.name for path in (folder.path / "trials" / "a").iterdir()] == ["run.hlog"]
    assert folder.load_results().trials == []
    assert folder.read_pilots() == []


def test_attempt_that_ended_before_its_line_is_interrupted(folder: Folder) -> None:
    with folder.open_attempt("a", start=interrupt_attempt()):
        pass
    folder.repair_lines()
    assert ends(folder) == [(1, "interrupted")]


def test_attempt_with_a_written_line_is_not_interrupted(folder: Folder) -> None:
    with folder.open_attempt("a", start=interrupt_attempt()) as files:
        retained = (files / ATTEMPT_START).read_bytes()
    folder.append_trial(TrialResult("a", {"system": "lmdb"}, 1, {}))
    # The lab was killed before it removed this file.
    (folder.path / "trials" / "a" / ATTEMPT_START).write_bytes(retained)
    folder.repair_lines()
    assert ends(folder) == [(1, "done")]
    assert not (folder.path / "trials" / "a" / ATTEMPT_START).exists()


def test_interrupted_attempt_neither_hides_nor_is_a_failure(folder: Folder) -> None:
    folder.append_trial(TrialResult("a", {"system": "lmdb"}, 1, {}, end="failed"))
    folder.append_trial(interrupt_attempt(2))
    (trial,) = folder.load_results().trials
    assert (trial.end, trial.attempt, trial.failures) == ("failed", 1, ())
    folder.append_trial(TrialResult("a", {"system": "lmdb"}, 1, {}, attempt=3))
    (trial,) = folder.load_results().trials
    assert (trial.end, trial.attempt, trial.failures) == ("done", 3, ("failed",))


def test_file_truncated_by_power_failure_allows_a_resume(folder: Folder) -> None:
    with folder.open_attempt("a", start=interrupt_attempt()) as files:
        (files / ATTEMPT_START).write_text('{"table": "val')
    folder.repair_lines()
    assert ends(folder) == []


@pytest.mark.parametrize(
    ("number", "pilot"),
    [
        (signal.SIGINT, False),
        (signal.SIGTERM, False),
        (signal.SIGKILL, True),
        *(pytest.param(*case, marks=pytest.mark.soak) for case in ((2, True), (15, True), (9, False))),
    ],
)
def test_run_ended_in_a_trial_has_interrupted_attempt(tmp_path: Path, number: signal.Signals, pilot: bool) -> None:
    file = experiment(tmp_path, LONG.replace("warmup: 0, ", "") if pilot else LONG)
    process = start(tmp_path, "run", file, "--no-report")
    while not [*tmp_path.glob("results/*/*/trials/*/run.spec.json")] and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=60)
    table = PILOT_TRIALS if pilot else VALUES
    # A killed lab records nothing; the next lab records the interruption.
    assert ends(single_folder(tmp_path), table) == ([] if number == signal.SIGKILL else [(1, "interrupted")])
    loadstone(tmp_path, "run", file, "--no-report", "--resume")
    folder = single_folder(tmp_path)
    assert ends(folder, table)[:2] == [(1, "interrupted"), (2, "done")]
    assert len(trials(folder)) == 3
    assert not [
        finding
        for trial in judge_results(folder.load_results()).trials.values()
        for finding in trial
        if finding.check == "retried"
    ]
    tried = [
        *rows(folder),
        *({"trial": finding.trial, "attempt": finding.attempt} for finding in folder.read_attempts(PILOT_TRIALS)[0]),
    ]
    names = {finding["trial"] + (f".{finding['attempt']}" if finding["attempt"] > 1 else "") for finding in tried}
    assert {path.name for path in (folder.path / "trials").iterdir()} == names
