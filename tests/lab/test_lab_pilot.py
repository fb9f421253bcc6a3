"""The pilot block: its result, the file that records it, and the exclusion of its trials."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from experiment_support import load_text, mistakes
from lab_support import ROOT, SMALL, experiment, loadstone, single_folder, start, trials
from loadstone.experiment.plan.plan import plan_experiment
from loadstone.format import units
from loadstone.judge.judge import judge_results
from loadstone.report.sections import every, gist
from loadstone.report.view import View
from loadstone.results import lines
from loadstone.results.folder import PILOT_TRIALS, Folder
from loadstone.results.result_set import Question
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import Value
from loadstone.runner.pilot import Pilot
from loadstone.runner.progress import PlainLines
from loadstone.statistics.steady import common_warm_up_end

PILOTED = SMALL.replace("warmup: 0, ", "")


def test_pilot_runs_every_variant_once_without_counting(tmp_path: Path) -> None:
    file = experiment(tmp_path, PILOTED)
    result = loadstone(tmp_path, "run", file)
    folder = single_folder(tmp_path)
    assert "running a pilot block of 2 trials to find the warm-up; its results do not count" in result.stderr
    document = json.loads((folder.path / "pilot.json").read_bytes())
    # The window is 0.2 s, and the maximum warm-up 1.5 windows.
    assert document["cap_seconds"] == pytest.approx(0.3)
    assert document["warmup_seconds"] == pytest.approx(0.3)
    pilots = folder.read_pilots()
    assert [pilot.repeat for pilot in pilots] == [0, 0]
    assert {pilot.config["system"] for pilot in pilots} == {"first", "second"}
    lines = (folder.path / PILOT_TRIALS).read_text().splitlines()
    assert [json.loads(line)["counts"] for line in lines] == [False, False]
    counted = trials(folder)
    assert len(counted) == 6
    assert not {pilot.trial for pilot in counted} & {pilot.trial for pilot in pilots}
    specs = [json.loads(path.read_bytes()) for path in sorted(folder.path.glob("trials/*/run.spec.json"))]
    windows = [(spec["warmup_seconds"], spec["until"]["seconds"]) for spec in specs]
    assert sorted(windows) == [(0.0, pytest.approx(0.7))] * 2 + [(pytest.approx(0.3), 0.2)] * 6
    assert "0.3 s of warm-up, found by a pilot block" in (folder.path / "report.html").read_text()
    # A resumed run uses the same warm-up.
    again = loadstone(tmp_path, "run", file, "--no-report", "--resume")
    assert "pilot block" not in again.stderr
    assert len(folder.read_pilots()) == 2


def test_an_interrupted_pilot_continues_with_missing_trials(tmp_path: Path) -> None:
    file = experiment(tmp_path, PILOTED)
    loadstone(tmp_path, "run", file, "--no-report")
    folder = single_folder(tmp_path)
    first = (folder.path / PILOT_TRIALS).read_text().splitlines(keepends=True)[0]
    (folder.path / PILOT_TRIALS).write_text(first)
    (folder.path / "pilot.json").unlink()
    loadstone(tmp_path, "run", file, "--no-report", "--resume")
    lines = (folder.path / PILOT_TRIALS).read_text().splitlines(keepends=True)
    assert lines[0] == first
    assert len(lines) == 2
    assert (folder.path / "pilot.json").exists()
    # A damaged result is derived again from the existing trials.
    (folder.path / "pilot.json").write_text("{")
    loadstone(tmp_path, "run", file, "--resume", "--no-report")
    assert json.loads((folder.path / "pilot.json").read_bytes())["warmup_seconds"] == pytest.approx(0.3)
    assert (folder.path / PILOT_TRIALS).read_text().splitlines(keepends=True) == lines


def test_impossible_variant_is_named_without_stopping_the_run(tmp_path: Path) -> None:
    hook = "hooks: {before: [\"test '{system}' = first\"]}\n"
    result = loadstone(tmp_path, "run", experiment(tmp_path, PILOTED + hook), "--no-report", code=1)
    assert "second: incomplete: the trial was not finished: failed" in result.stderr
    assert [trial.config["system"] for trial in trials(single_folder(tmp_path)) if trial.end == "done"] == ["first"] * 3


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
    definition = load_text(tmp_path, text).experiment
    assert (definition.pilot, definition.measure.warmup) == (pilot, warmup)
    # The resolved experiment is unchanged.
    again = load_text(tmp_path, load_text(tmp_path, text).text_with_defaults).experiment
    assert (again.pilot, again.measure.warmup) == (pilot, warmup)
    assert plan_experiment(again).variants


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "measure: {duration: 1s, warmup: 1s}",
            "`pilot` and `measure.warmup` cannot be combined: the pilot block exists to find the warm-up",
        ),
        ("measure: {operations: 100}", "there can be no pilot block without `measure.duration`"),
        ("measure: {duration: 1s}\nfind: {over: clients}", "there can be no pilot block with `find`"),
    ],
)
def test_a_pilot_that_cannot_be_is_refused(tmp_path: Path, keys: str, message: str) -> None:
    (tmp_path / "w").write_text("recordcount=10\n")
    text = f'systems: {{a: {{store: "null"}}}}\nworkload: {{file: w}}\npilot: true\n{keys}\n'
    assert mistakes(tmp_path, text) == [message]


def test_pooled_warm_up_ignores_the_noisiest_trial() -> None:
    warm = [40.0, 60.0, 80.0, 90.0, 95.0] + [100.0 + (i % 3) for i in range(55)]
    sound = [100.0 + (i % 5) for i in range(60)]
    noisy = [*sound]
    noisy[25] = 20.0
    assert common_warm_up_end([warm]) == 5
    assert common_warm_up_end([sound, sound, sound]) == 0
    assert common_warm_up_end([sound, sound, sound, sound, noisy]) < 26
    assert common_warm_up_end([[10 * rate for rate in warm], warm]) == 5
    assert common_warm_up_end([]) == 0
    assert common_warm_up_end([[0.0] * 60]) == 0


def test_a_failed_pilot_trial_is_retried_on_resume(tmp_path: Path) -> None:
    file = experiment(tmp_path, PILOTED + f'hooks: {{before: ["test -e {tmp_path}/ready"]}}\n')
    loadstone(tmp_path, "run", file, "--no-report", code=1)
    (tmp_path / "ready").touch()
    loadstone(tmp_path, "run", file, "--no-report", "--resume")
    folder = single_folder(tmp_path)
    assert [pilot.end for pilot in folder.read_pilots()] == ["done", "done"]
    assert len(trials(folder)) == 6


def test_a_pilot_of_failing_variants_ends_after_five(tmp_path: Path) -> None:
    text = PILOTED.replace("clients: 2", "vary: {system: [first, second], clients: [1, 2, 3, 4]}")
    hook = 'hooks: {before: ["exit 3"]}\n'
    result = loadstone(tmp_path, "run", experiment(tmp_path, text + hook), "--no-report", code=1)
    assert "no variant can run; last error: " in result.stderr
    assert len(single_folder(tmp_path).read_pilots()) == 5
    assert not (single_folder(tmp_path).path / "values.jsonl").exists()


def test_a_pilot_reports_what_would_make_comparisons_invalid(tmp_path: Path) -> None:
    folder = Folder.create_folder(tmp_path / "run", "run", Question(by="system"), interleaved=True)
    pilot = pilot_of(tmp_path, folder)
    for trial, durability in zip(pilot.block(), ("device", "none"), strict=True):
        facts = {"durability": durability}
        folder.append_trial(TrialResult(trial.trial, trial.variant.config, 0, {}, facts=facts), PILOT_TRIALS)
    text = io.StringIO()
    replace(pilot, display=PlainLines(Console(file=text, width=300))).report_pairs()
    (line,) = text.getvalue().splitlines()
    assert line.startswith("sides-differ: ")
    assert "durability" in line


def test_a_pilot_reports_an_engine_limited_fast_store(tmp_path: Path) -> None:
    """Two million operations in 2 s by one client: 1,000 ns each, of which the engine takes 600 or 400."""
    for driver_ns, limited in ((600.0, True), (400.0, False)):
        folder = Folder.create_folder(tmp_path / f"run-{driver_ns}", "run", Question(by="system"), interleaved=True)
        pilot = pilot_of(tmp_path, folder)
        for trial in pilot.block():
            figures = {"driver": driver_ns, "runtime": 2e9, "operations": 2e6}
            values = {metric: Value(metric, figure, "", 1) for metric, figure in figures.items()}
            planned = TrialResult(trial.trial, trial.variant.config, 0, values, clients=1, loop="closed")
            folder.append_trial(replace(planned, facts={"networked": "no"}), PILOT_TRIALS)
        output = io.StringIO()
        replace(pilot, display=PlainLines(Console(file=output, width=300))).report_pairs()
        reported = "generator-limited: 60 % of each operation's time is the load generator's (600 ns of 1000 ns)"
        assert (reported in output.getvalue()) is limited


def test_failing_pilot_variants_do_not_stop_every_resume(tmp_path: Path) -> None:
    """Eleven of twelve variants fail. The pilot stops after five; a resumed pilot begins with untested variants."""
    text = PILOTED.replace("clients: 2", "vary: {system: [first], part: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}")
    file = experiment(tmp_path, text.replace("repeats: 3", "repeats: 2") + 'hooks: {before: ["test {part} = 5"]}\n')
    loadstone(tmp_path, "run", file, "--no-report", code=1)
    # None of the first five can run.
    assert [pilot.end for pilot in single_folder(tmp_path).read_pilots()] == ["failed"] * 5
    for _ in range(8):
        loadstone(tmp_path, "run", file, "--no-report", "--resume", code=1)
    folder = single_folder(tmp_path)
    assert [pilot.config["part"] for pilot in trials(folder) if pilot.end == "done"] == [5, 5]
    attempts = Counter(pilot.trial for pilot in folder.read_attempts(PILOT_TRIALS)[0])
    assert set(attempts.values()) <= {1, 2, 3}


def test_pilot_with_only_excluded_variants_is_reported(tmp_path: Path) -> None:
    file = experiment(tmp_path, PILOTED + 'hooks: {before: ["test -e ready"]}\n')
    loadstone(tmp_path, "run", file, "--no-report", code=1)
    for _ in range(2):
        loadstone(tmp_path, "run", file, "--no-report", "--resume", code=1)
    result = loadstone(tmp_path, "run", file, "--no-report", "--resume", code=1)
    assert "no variant can run: all are excluded" in result.stderr
    (tmp_path / "ready").touch()
    loadstone(tmp_path, "run", file, "--resume", "--retry-failed", "--no-report")
    assert len(trials(single_folder(tmp_path))) == 6


def test_a_truncated_pilot_trial_is_not_used(tmp_path: Path) -> None:
    """The truncated time series ends early, and the shortest series would limit its whole group."""
    folder = Folder.create_folder(tmp_path / "run", "run", Question(), interleaved=True)
    pilot = pilot_of(tmp_path, folder)
    warm = [40.0] * 20 + [100.0 + (i % 3) for i in range(40)]
    for trial, end, rates in zip(pilot.block(), ("done", "lost"), (warm, [40.0] * 5), strict=True):
        with folder.open_attempt(trial.trial) as files:
            (files / "series.json").write_text(json.dumps(make_series(rates).to_json()))
        result = TrialResult(trial.trial, trial.variant.config, 0, {}, end=end)
        lines.append_line(folder.path / PILOT_TRIALS, {**result.to_json(), "counts": False})
    pilot_result = pilot.result(folder.read_pilots())
    assert (pilot_result.warmup_seconds, pilot_result.capped) == (3.0, False)
    (group,) = pilot_result.groups
    assert (group.trials, group.throughput_seconds, group.latency_seconds) == (
        (folder.read_pilots()[0].trial,),
        2.0,
        None,
    )


def test_a_capped_warm_up_is_reported_as_capped(tmp_path: Path) -> None:
    folder = Folder.create_folder(tmp_path / "run", "run", Question(), interleaved=True)
    pilot = pilot_of(tmp_path, folder)
    slow = [40.0] * 28 + [100.0 + (i % 3) for i in range(32)]
    for trial in pilot.block():
        with folder.open_attempt(trial.trial) as files:
            (files / "series.json").write_text(json.dumps(make_series(slow).to_json()))
        lines.append_line(folder.path / PILOT_TRIALS, TrialResult(trial.trial, trial.variant.config, 0, {}).to_json())
    result = pilot.result(folder.read_pilots())
    assert (result.warmup_seconds, result.cap_seconds, result.capped) == (3.0, 3.0, True)


def pilot_of(home: Path, folder: Folder) -> Pilot:
    """The pilot of two variants that are measured for 2 s."""
    text = PILOTED.replace("200ms", "2s").replace("%s", str(ROOT))
    planned = plan_experiment(load_text(home, text).experiment)
    return Pilot(planned.experiment, planned, folder, PlainLines(Console(stderr=True)), 1.0)


def make_series(rates: list[float]) -> Series:
    """A time series in intervals of 0.1 s."""
    return Series(tuple(i / 10 for i in range(len(rates))), (0.1,) * len(rates), tuple(rates))


def test_run_killed_during_its_pilot_can_be_resumed(tmp_path: Path) -> None:
    file = experiment(tmp_path, PILOTED)
    process = start(tmp_path, "run", file, "--no-report")
    while not (files := [*tmp_path.glob("results/*/*/pilot.jsonl")]) and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    before = files[0].read_text()
    loadstone(tmp_path, "run", file, "--no-report", "--resume")
    folder = single_folder(tmp_path)
    after = (folder.path / PILOT_TRIALS).read_text()
    assert after.startswith(before)
    ended = [json.loads(line)["end"] for line in after.splitlines()]
    # The kill may hit the second variant's attempt, which then has a separate line.
    assert ended.count("interrupted") <= 1
    assert len({pilot.trial for pilot in folder.read_pilots()}) == len(ended) - ended.count("interrupted") == 2
    assert len(trials(folder)) == 6


def test_the_pilot_estimates_the_remaining_time(tmp_path: Path) -> None:
    """The estimate includes a hook of one second, which the forecast does not."""
    file = experiment(tmp_path, PILOTED + 'hooks: {before: ["sleep 1"]}\n')
    result = loadstone(tmp_path, "run", file, "--no-report")
    folder = single_folder(tmp_path)
    seconds = json.loads((folder.path / "pilot.json").read_bytes())["trial_seconds"]
    # A trial takes the time of the hook, the warm-up and the window.
    assert seconds > 1.4
    assert f"small: 6 of 6 trials to run, {units.format_clock(6 * seconds)} left" in result.stderr


def test_pilot_trials_are_listed_separately_from_repeats(tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, PILOTED), "--no-report")
    folder = single_folder(tmp_path)
    view = View(judge_results(folder.load_results()))
    table = every(view).more[0]
    counted, pilots = table.groups
    assert len(counted.rows) == 6
    assert pilots.title == "Pilot block (excluded from the results)"
    assert [row[0].text for row in pilots.rows] == [pilot.trial for pilot in folder.read_pilots()]
    assert {row[-1].text for row in pilots.rows} == {"excluded"}
    assert every(view).folded == "All 6 trials, and 2 of the pilot block (excluded from the results)"
    assert "3 repeats each" in gist(view)
