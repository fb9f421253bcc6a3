"""`loadstone run`: an experiment from its file to its report, on real stores."""

from __future__ import annotations

import json
import signal
import statistics
import time
from pathlib import Path

import pytest
import yaml

from figure_support import find_conflicts
from lab_support import ROOT, SMALL, engines, experiment, loadstone, outline, rows, single_folder, start, trials
from loadstone.judge.judge import judge_results
from loadstone.results.folder import Folder
from loadstone.results.value import PERCENTILES
from loadstone.statistics.percentile import Population
from results_support import intervals, merge_by_tag

pytestmark = pytest.mark.usefixtures("engine_variable")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, module_engine_variable: None) -> Path:
    """The directory of a small experiment, run once for all tests that only read its results."""
    path = tmp_path_factory.mktemp("lab")
    loadstone(path, "run", experiment(path))
    return path


@pytest.fixture
def folder(home: Path) -> Folder:
    """The result folder of this experiment."""
    return single_folder(home)


def test_blocks_hold_every_variant_in_a_recorded_order(folder: Folder) -> None:
    results = folder.load_results()
    assert [(trial.repeat, trial.order, trial.end) for trial in results.trials] == [
        (1 + order // 2, order, "done") for order in range(6)
    ]
    assert all(
        {trial.config["system"] for trial in results.trials[at : at + 2]} == {"first", "second"} for at in (0, 2, 4)
    )
    assert list(results.planned) == [trial.trial for trial in results.trials]


def test_an_undisturbed_run_has_one_line_per_trial(folder: Folder) -> None:
    assert [line["trial"] for line in rows(folder)] == [trial.trial for trial in trials(folder)]


def test_percentiles_equal_the_histogram_on_disk(folder: Folder) -> None:
    for trial in trials(folder):
        merged = merge_by_tag(intervals(folder.path / "trials" / trial.trial / "run.hlog"))
        for operation in ("read", "update"):
            histogram = merged[operation.upper()]
            percentiles = Population(histogram).read_percentiles(list(PERCENTILES.values()))
            assert histogram.count == trial.value(f"{operation}.count")
            # The engine sums times exactly; a histogram uses the middle of a bucket.
            assert histogram.mean == pytest.approx(trial.value(f"{operation}.mean"), rel=1e-3)
            for name, percentile in zip(PERCENTILES, percentiles, strict=True):
                value = trial.values[f"{operation}.{name}"]
                assert (value.value, value.bound) == (percentile.value, None)


def test_the_engines_events_are_kept_unchanged(folder: Folder) -> None:
    for trial in trials(folder):
        directory = folder.path / "trials" / trial.trial
        for phase in ("load", "run"):
            events = [json.loads(line) for line in (directory / f"{phase}.events.jsonl").read_text().splitlines()]
            assert (events[0]["event"], events[-1]["event"]) == ("ready", "summary")
            assert json.loads((directory / f"{phase}.spec.json").read_text())["phase"] == phase
        seconds = trial.values["runtime"].value / 1e9
        assert events[-1]["completed"] == pytest.approx((trial.value("throughput") or 0) * seconds)


def test_blocks_repeat_operations_for_variants_but_not_blocks(folder: Folder) -> None:
    seeds = {
        (trial.repeat, trial.config["system"]): json.loads(
            (folder.path / "trials" / trial.trial / "run.spec.json").read_text()
        )["seed"]
        for trial in trials(folder)
    }
    for repeat in (1, 2, 3):
        assert seeds[repeat, "first"] == seeds[repeat, "second"]
    assert len(set(seeds.values())) == 3


def test_host_and_device_figures_are_among_the_values(folder: Folder) -> None:
    for trial in trials(folder):
        assert trial.facts["hosts"] == 1
        assert {"cpu_model", "kernel", "file_system", "durability", "how", "version"} <= trial.facts.keys()
        assert trial.value("returned") == (trial.value("read.count") or 0) * 200
        assert trial.value("stored") == (trial.value("update.count") or 0) * 100
        if "no device" not in str(trial.facts["device"]):
            assert {"device.read", "device.written", "device.written_after", "device.written_per_operation"} <= set(
                trial.values
            )


def test_a_run_leaves_no_data_behind(home: Path) -> None:
    assert list((home / "data").iterdir()) == []
    assert engines(home) == []


def test_the_default_figures_are_shown(home: Path) -> None:
    output = loadstone(home, "show", "small").stdout
    for metric in ("throughput", "read.p99", "update.p99"):
        assert f"\n{metric}" in output


def test_resolved_experiment_plans_the_same_trials(home: Path, folder: Folder) -> None:
    resolved = folder.path / "experiment.yaml"
    assert yaml.safe_load(resolved.read_text())["measure"]["duration"] in ("200ms", 0.2)
    output = loadstone(home, "run", resolved, "--dry-run").stdout
    assert "6 trials" in output


def test_report_allows_no_claim_for_three_repeats(folder: Folder) -> None:
    for name in ("report.html", "report.md"):
        text = (folder.path / name).read_text()
        assert "Do two copies of one store differ?" in text
        assert "no claim possible" in text


def test_report_has_one_value_per_figure(folder: Folder) -> None:
    assert find_conflicts(judge_results(folder.load_results())) == []


def test_resuming_a_complete_run_runs_nothing(home: Path, folder: Folder) -> None:
    before = (folder.path / "values.jsonl").read_bytes()
    stderr = loadstone(home, "run", home / "small.yaml", "--resume", "--no-report").stderr
    assert "0 of 6 trials to run" in stderr
    assert (folder.path / "values.jsonl").read_bytes() == before


def test_a_changed_experiment_cannot_be_resumed(home: Path) -> None:
    stderr = loadstone(home, "run", home / "small.yaml", "--resume", "--set", "clients=3", code=1).stderr
    assert "error: clients has changed since results/small/" in stderr


def test_a_changed_workload_file_cannot_be_resumed(tmp_path: Path) -> None:
    workload = tmp_path / "workload"
    workload.write_text((ROOT / "workloads/workloada").read_text())
    file = experiment(tmp_path, SMALL.replace("%s/workloads/workloada", str(workload)))
    loadstone(tmp_path, "run", file, "--no-report", "--set", "measure.duration=100ms", "--set", "repeats=2")
    workload.write_text(workload.read_text() + "\nreadproportion=0.6\nupdateproportion=0.4\n")
    arguments = ("run", file, "--resume", "--set", "measure.duration=100ms", "--set", "repeats=2")
    stderr = loadstone(tmp_path, *arguments, code=1).stderr
    assert f"error: {workload} has changed since results/small/" in stderr


def test_ctrl_c_keeps_finished_trials_and_resume_continues(tmp_path: Path) -> None:
    file = experiment(tmp_path)
    process = start(tmp_path, "run", file, "--set", "measure.duration=1s")
    assert process.stderr
    line = ""
    while "✓" not in line:
        line = process.stderr.readline()
        assert line, "the run ended too early"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished trials are kept; continue with `loadstone run --resume`" in rest
    assert engines(tmp_path) == []
    assert list((tmp_path / "data").iterdir()) == []
    retained = outline(single_folder(tmp_path))
    assert retained
    loadstone(tmp_path, "run", file, "--set", "measure.duration=1s", "--resume", "--no-report")
    folder = single_folder(tmp_path)
    assert outline(folder)[: len(retained)] == retained
    assert len(outline(folder)) == 6
    assert sorted(row["end"] for row in rows(folder)) == ["done"] * 6 + ["interrupted"] * (len(rows(folder)) - 6)
    assert len(rows(folder)) <= 7


def test_loaded_data_are_reused_if_requested(tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path), "--set", "load.reuse=copy", "--no-report")
    folder = single_folder(tmp_path)
    loads = [entry.trial for entry in trials(folder) if (folder.path / "trials" / entry.trial / "load.hlog").exists()]
    assert len(trials(folder)) == 6
    assert len(loads) == 1, "both systems load the same data into the same store"
    for trial in trials(folder):
        assert trial.statuses["READ"].keys() == {"OK"}


def test_load_options_apply_to_the_load(tmp_path: Path) -> None:
    file = experiment(tmp_path, f"{SMALL}load: {{clients: 3, properties: {{lmdb.mapsize: 64M}}}}\n")
    loadstone(tmp_path, "run", file, "--no-report", "--set", "repeats=2")
    folder = single_folder(tmp_path)
    for trial in trials(folder):
        load, run = (
            json.loads((folder.path / "trials" / trial.trial / f"{phase}.spec.json").read_text())
            for phase in ("load", "run")
        )
        assert (load["clients"], load["store"]["properties"]["lmdb.mapsize"]) == (3, "64M")
        assert (run["clients"], "lmdb.mapsize" in run["store"]["properties"]) == (2, False)


def test_failing_hook_fails_the_trial(tmp_path: Path) -> None:
    hooks = """
hooks:
  before: ["echo before {system} {trial} $LOADSTONE_REPEAT >> %s/said"]
  after: ["echo after {system} {trial} >> %s/said", "test {system} = first -o {repeat} -ne 2"]
"""
    text = SMALL.replace("%s", str(ROOT)) + hooks.replace("%s", str(tmp_path))
    file = experiment(tmp_path, text)
    stderr = loadstone(tmp_path, "run", file, "--no-report", code=1).stderr
    ends = {(entry.config["system"], entry.repeat): entry.end for entry in trials(single_folder(tmp_path))}
    assert ends.pop(("second", 2)) == "failed"
    assert set(ends.values()) == {"done"}
    assert "the hook `test second = first -o 2 -ne 2` (after) failed with exit status 1" in stderr
    lines = (tmp_path / "said").read_text().splitlines()
    for trial in trials(single_folder(tmp_path)):
        system = trial.config["system"]
        assert f"before {system} {trial.trial} {trial.repeat}" in lines
        assert f"after {system} {trial.trial}" in lines


def test_a_rate_makes_response_times_the_headline(tmp_path: Path) -> None:
    file = experiment(tmp_path, SMALL + "rate: 2000\n")
    loadstone(tmp_path, "run", file, "--set", "measure.duration=500ms", "--no-report")
    results = trials(single_folder(tmp_path))
    # The last operation may be late if the machine delays it.
    assert statistics.median(trial.value("throughput") or 0 for trial in results) == pytest.approx(2000, rel=0.2)
    for trial in results:
        assert trial.loop == "open"
        service, response = trial.value("read.service.p50"), trial.value("read.p50")
        assert service is not None
        assert response is not None
        assert service <= response


def test_engine_refusals_are_reported_before_the_first_trial(tmp_path: Path) -> None:
    file = experiment(tmp_path, SMALL.replace("fieldcount: 2", "fieldlengthdistribution: gaussian"))
    stderr = loadstone(tmp_path, "run", file, "--no-report", code=1).stderr
    assert "fieldlengthdistribution" in stderr
    assert "hint: " in stderr
    assert not (tmp_path / "results").exists()


def test_three_hanging_engines_end_the_run(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = tmp_path / "hangs"
    hangs.write_text(f'#!/bin/sh\ncase $1 in ycsb | describe) exec {program} "$@" ;; esac\nexec sleep 600\n')
    hangs.chmod(0o755)
    monkeypatch.setenv("LOADSTONE_ENGINE", str(hangs))
    stderr = loadstone(tmp_path, "run", experiment(tmp_path, SMALL + "timeout: 1s\n"), code=1).stderr
    assert "3 consecutive trials failed; last error: " in stderr
    assert "the load generator did not finish within 1 s" in stderr
    assert [trial.end for trial in trials(single_folder(tmp_path))] == ["lost"] * 3
