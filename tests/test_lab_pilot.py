"""The pilot block: what it finds, where that stands, and that it counts nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiment_support import loaded, mistakes
from lab_support import SMALL, experiment, loadstone, only_folder, trials
from loadstone.experiment.plan import plan
from loadstone.results.folder import PILOT_TRIALS
from loadstone.statistics.steady import pooled_warm_up_end

PILOTED = SMALL.replace("warmup: 0, ", "")


def test_every_variant_is_tried_once_and_none_of_it_counts(tmp_path: Path) -> None:
    file = experiment(tmp_path, PILOTED)
    told = loadstone(tmp_path, "run", file)
    folder = only_folder(tmp_path)
    assert "a pilot block of 2 trials, which do not count, finds the warm-up" in told.stderr
    found = json.loads((folder.path / "pilot.json").read_bytes())
    # The window is a fifth of a second, and so is the longest warm-up.
    assert found["cap_seconds"] == 0.2
    assert found["warmup_seconds"] == 0.2
    pilots = folder.pilots()
    assert [each.repeat for each in pilots] == [0, 0]
    assert {each.config["system"] for each in pilots} == {"first", "second"}
    lines = (folder.path / PILOT_TRIALS).read_text().splitlines()
    assert [json.loads(line)["counts"] for line in lines] == [False, False]
    counted = trials(folder)
    assert len(counted) == 6
    assert not {each.trial for each in counted} & {each.trial for each in pilots}
    specs = [json.loads(path.read_bytes()) for path in sorted(folder.path.glob("trials/*/run.spec.json"))]
    windows = [(spec["warmup_seconds"], spec["until"]["seconds"]) for spec in specs]
    assert sorted(windows) == [(0.0, pytest.approx(0.6))] * 2 + [(0.2, 0.2)] * 6
    assert "0.2 s of warm-up, found by a pilot block" in (folder.path / "report.html").read_text()
    # A run that is resumed has its warm-up.
    again = loadstone(tmp_path, "run", file, "--resume")
    assert "pilot block" not in again.stderr
    assert len(folder.pilots()) == 2


def test_a_pilot_that_was_interrupted_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    file = experiment(tmp_path, PILOTED)
    loadstone(tmp_path, "run", file)
    folder = only_folder(tmp_path)
    first = (folder.path / PILOT_TRIALS).read_text().splitlines(keepends=True)[0]
    (folder.path / PILOT_TRIALS).write_text(first)
    (folder.path / "pilot.json").unlink()
    loadstone(tmp_path, "run", file, "--resume")
    lines = (folder.path / PILOT_TRIALS).read_text().splitlines(keepends=True)
    assert lines[0] == first
    assert len(lines) == 2
    assert (folder.path / "pilot.json").exists()


def test_what_nothing_can_run_is_refused_before_the_first_block(tmp_path: Path) -> None:
    hook = 'hooks: {before: ["exit 3"]}\n'
    told = loadstone(tmp_path, "run", experiment(tmp_path, PILOTED + hook), code=1)
    assert "no variant can run; last error: " in told.stderr
    assert not (only_folder(tmp_path).path / "values.jsonl").exists()


def test_a_variant_that_cannot_run_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    hook = "hooks: {before: [\"test '{system}' = first\"]}\n"
    told = loadstone(tmp_path, "run", experiment(tmp_path, PILOTED + hook), code=1)
    assert "second: incomplete: the trial was not finished: failed" in told.stderr
    assert [each.config["system"] for each in trials(only_folder(tmp_path)) if each.end == "done"] == ["first"] * 3


@pytest.mark.parametrize(
    ("keys", "pilot", "warmup"),
    [
        ("measure: {duration: 1s}", True, None),
        ("measure: {duration: 1s, warmup: 0}", False, 0.0),
        ("measure: {operations: 100}", False, 2.0),
        ("measure: {duration: 1s}\npilot: false", False, 2.0),
        ("measure: {duration: 1s}\nfind: {over: clients}", False, 2.0),
    ],
)
def test_when_there_is_a_pilot(tmp_path: Path, keys: str, pilot: bool, warmup: float | None) -> None:
    text = f'systems: {{a: {{store: "null"}}}}\nworkload: {{file: w}}\n{keys}\n'
    (tmp_path / "w").write_text("recordcount=10\n")
    found = loaded(tmp_path, text).experiment
    assert (found.pilot, found.measure.warmup) == (pilot, warmup)
    # Written out and read again, it is the same.
    again = loaded(tmp_path, loaded(tmp_path, text).resolved).experiment
    assert (again.pilot, again.measure.warmup) == (pilot, warmup)
    assert plan(again).variants


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("measure: {duration: 1s, warmup: 1s}", "the warm-up is given, so there is nothing to find"),
        ("measure: {operations: 100}", "it needs `measure.duration`"),
        ("measure: {duration: 1s}\nfind: {over: clients}", "a search has none"),
    ],
)
def test_a_pilot_that_cannot_be_is_refused(tmp_path: Path, keys: str, message: str) -> None:
    (tmp_path / "w").write_text("recordcount=10\n")
    text = f'systems: {{a: {{store: "null"}}}}\nworkload: {{file: w}}\npilot: true\n{keys}\n'
    assert mistakes(tmp_path, text) == [f"there can be no pilot block: {message}"]


def test_the_warm_up_of_several_is_not_that_of_the_noisiest() -> None:
    warm = [40.0, 60.0, 80.0, 90.0, 95.0] + [100.0 + (i % 3) for i in range(55)]
    sound = [100.0 + (i % 5) for i in range(60)]
    noisy = [*sound]
    noisy[25] = 20.0
    assert pooled_warm_up_end([warm]) == 5
    assert pooled_warm_up_end([sound, sound, sound]) == 0
    assert pooled_warm_up_end([sound, sound, sound, sound, noisy]) < 26
    assert pooled_warm_up_end([[10 * each for each in warm], warm]) == 5
    assert pooled_warm_up_end([]) == 0
    assert pooled_warm_up_end([[0.0] * 60]) == 0
