"""Typical first experiments of a new user: one repeat, a rate with its unit, a workload without a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge_support import sound
from lab_support import experiment, loadstone
from loadstone.engine.events import Note
from loadstone.experiment.file import load_experiment
from loadstone.experiment.mistake import ExperimentError
from loadstone.judge.findings import judge_trial
from loadstone.judge.settings import Settings
from loadstone.runner.progress import RunProgress

SINGLE_REPEAT = """
systems: {first: {store: lmdb}, second: {store: lmdb}}
workload: {properties: {recordcount: 200}}
rate: 3000 op/s
measure: {warmup: 0, duration: 200ms}
repeats: 1
"""


def test_one_repeat_claims_nothing(tmp_path: Path) -> None:
    done = loadstone(tmp_path, "run", experiment(tmp_path, SINGLE_REPEAT), "--no-report")
    assert "warning: 1 repeat is too few for any claim" in done.stderr
    document = loadstone(tmp_path, "show", "small", "--json").stdout
    assert '"claim": "better"' not in document
    assert '"claim": "worse"' not in document
    assert "3,000 op/s" in done.stdout


@pytest.mark.parametrize(
    ("text", "rate"),
    [("3000 op/s", 3000), ("3,000 ops/s", 3000), ("2.5 op/s", 2.5), ("3000", None), ("-1 op/s", None), ("op/s", None)],
)
def test_rate_takes_its_unit(tmp_path: Path, text: str, rate: float | None) -> None:
    path = experiment(tmp_path, SINGLE_REPEAT.replace("3000 op/s", f"'{text}'"))
    if rate is None:
        with pytest.raises(ExperimentError, match="rate must be a number of operations per second"):
            load_experiment(path)
    else:
        assert load_experiment(path).experiment.rate == rate


def test_varied_rate_takes_its_unit(tmp_path: Path) -> None:
    text = SINGLE_REPEAT.replace("rate: 3000 op/s", "vary: {rate: [1000 op/s, 2000]}")
    assert load_experiment(experiment(tmp_path, text)).experiment.vary.matrix["rate"] == (1000, 2000)


def test_workload_without_file_needs_recordcount(tmp_path: Path) -> None:
    path = experiment(tmp_path, SINGLE_REPEAT.replace("recordcount: 200", "fieldcount: 2"))
    with pytest.raises(ExperimentError, match="`workload` sets neither `file` nor recordcount"):
        load_experiment(path)


def test_long_first_trial_corrects_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: dict[str, Any] = {"now": 0.0}
    monkeypatch.setattr("loadstone.runner.progress.time.monotonic", lambda: clock["now"])
    run = RunProgress("run", 4, 0, 10.0)
    assert run.state == "0:40 left"
    clock["now"] = 30.0
    assert run.state == "1:30 left"


def test_remaining_time_decreases_during_second_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: dict[str, Any] = {"now": 0.0}
    monkeypatch.setattr("loadstone.runner.progress.time.monotonic", lambda: clock["now"])
    run = RunProgress("run", 2, 0, 10.0)
    clock["now"] = 20.0
    run.finish()
    states = []
    for clock["now"] in (20.0, 35.0, 50.0):
        states.append(run.state)
    assert states == ["0:20 left", "0:05 left", "0:00 left"]


def test_nothing_finished_is_nothing_to_resume(tmp_path: Path) -> None:
    failing = SINGLE_REPEAT.replace("rate: 3000 op/s", 'hooks: {before: ["exit 3"]}').replace(
        "repeats: 1", "repeats: 2"
    )
    done = loadstone(tmp_path, "run", experiment(tmp_path, failing), code=1)
    assert "error: 3 consecutive trials failed; last error: " in done.stderr
    assert "--resume" not in done.stderr
    assert "finished trials are kept" not in done.stderr


def test_failed_trial_reports_its_cause_once() -> None:
    note = Note(name="servers", message="port 1 is in use", hint="stop that process")
    failed = replace(sound(), end="failed", values={}, notes=(note,))
    findings = [finding for finding in judge_trial(failed, None, Settings()) if "port 1" in finding.message]
    assert [(finding.check, finding.hint) for finding in findings] == [("incomplete", "stop that process")]
