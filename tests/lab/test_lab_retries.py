"""Every attempt at a trial is recorded, and a variant's failures do not affect other variants."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab_support import experiment, loadstone, single_folder, trials
from loadstone.judge.finding import Severity
from loadstone.judge.judge import judge_results
from loadstone.results.lines import read_lines

pytestmark = pytest.mark.usefixtures("engine_variable")

# The second system fails until a file exists.
TWO = """
systems:
  first: {store: "null"}
  second: {store: "null", hooks: {before: ["test -e %HOME%/ready"]}}
workload: {file: %s/workloads/workloada, properties: {recordcount: 100}}
measure: {warmup: 0, duration: 100ms}
repeats: {at_least: 4}
"""


def ends(home: Path, system: str) -> list[tuple[str, int]]:
    """The end and the attempt number of each trial of a system."""
    return [(trial.end, trial.attempt) for trial in trials(single_folder(home)) if trial.config["system"] == system]


def test_failed_attempt_makes_its_successor_suspect(tmp_path: Path) -> None:
    file = experiment(tmp_path, TWO.replace("%HOME%", str(tmp_path)))
    text = loadstone(tmp_path, "run", file, "--no-report", code=1).stderr
    assert "system=second is excluded: its last 3 attempts failed; `loadstone run --resume --retry-failed`" in text
    # Three attempts at three trials; the fourth trial was not attempted. The other system has all of its trials.
    assert ends(tmp_path, "first") == [("done", 1)] * 4
    assert ends(tmp_path, "second") == [("failed", 1)] * 3
    (tmp_path / "ready").touch()
    text = loadstone(tmp_path, "run", file, "--no-report", "--resume", code=1).stderr
    assert "system=second is excluded" in text
    assert ends(tmp_path, "second") == [("failed", 1)] * 3
    loadstone(tmp_path, "run", file, "--no-report", "--resume", "--retry-failed")
    folder = single_folder(tmp_path)
    assert sorted(ends(tmp_path, "second")) == [("done", 1), *[("done", 2)] * 3]
    again = [trial for trial in trials(folder) if trial.attempt == 2]
    for trial in again:
        assert len(trial.failures) == 1
        assert "test -e" in trial.failures[0]
        assert (folder.path / "trials" / trial.trial / "hooks.log").exists(), (
            "the failed attempt's files are still there"
        )
        assert (folder.path / "trials" / f"{trial.trial}.2" / "run.hlog").exists()
        assert folder.load_results().series(trial.trial) is not None
    lines = read_lines(folder.path / "values.jsonl").documents
    assert len(lines) == 4 + 3 + 4
    result = judge_results(folder.load_results()).trials
    for trial in again:
        assert [(finding.check, finding.severity) for finding in result[trial.trial] if finding.check == "retried"] == [
            ("retried", Severity.SUSPECT)
        ]


def test_three_failing_variants_stop_neither_run_nor_resume(tmp_path: Path) -> None:
    text = TWO.replace("%HOME%", str(tmp_path)).replace("at_least: 4", "at_least: 2")
    more = "vary: {system: [first], part: [1, 2, 3, 4, 5, 6, 7, 8]}\n"
    text = text.replace('first: {store: "null"}', 'first: {store: "null", hooks: {before: ["test {part} -gt 3"]}}')
    file = experiment(tmp_path, text.replace("  second:", "  # second:") + more)
    for _ in range(3):
        loadstone(
            tmp_path,
            "run",
            file,
            "--no-report",
            "--resume" if (tmp_path / "results").exists() else "--no-report",
            code=1,
        )
    entries = {(trial.config["part"], trial.repeat): trial.end for trial in trials(single_folder(tmp_path))}
    assert {end for (part, _), end in entries.items() if isinstance(part, int) and part > 3} == {"done"}
    assert len(entries) == 16


def test_a_failure_of_everything_ends_the_run(tmp_path: Path) -> None:
    text = TWO.replace("%HOME%", str(tmp_path)).replace(
        'first: {store: "null"}', 'first: {store: "null", hooks: {before: ["false"]}}'
    )
    done = loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report", code=1)
    assert "3 consecutive trials failed; last error: the hook" in done.stderr


def test_results_of_old_versions_count_as_one_attempt(tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, TWO.replace("test -e %HOME%/ready", "true")), "--no-report")
    folder = single_folder(tmp_path)
    path = folder.path / "values.jsonl"
    documents = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text(
        "".join(json.dumps({k: v for k, v in trial.items() if k != "attempt"}) + "\n" for trial in documents)
    )
    assert {(trial.attempt, trial.failures) for trial in trials(folder)} == {(1, ())}


def test_copied_line_does_not_undo_a_later_attempt(tmp_path: Path) -> None:
    file = experiment(tmp_path, TWO.replace("%HOME%", str(tmp_path)))
    loadstone(tmp_path, "run", file, "--no-report", code=1)
    (tmp_path / "ready").touch()
    loadstone(tmp_path, "run", file, "--no-report", "--resume", "--retry-failed")
    path = single_folder(tmp_path).path / "values.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, *(line for line in lines if '"failed"' in line)]))
    assert {trial.end for trial in trials(single_folder(tmp_path))} == {"done"}
    assert {len(trial.failures) for trial in trials(single_folder(tmp_path)) if trial.attempt == 2} == {1}


def test_retry_failed_needs_resume(tmp_path: Path) -> None:
    done = loadstone(tmp_path, "run", "none.yaml", "--retry-failed", code=2)
    assert "error: --retry-failed needs --resume" in done.stderr
