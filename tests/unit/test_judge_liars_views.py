"""Deceptive views and experiment files, and honest views and files that resemble them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge_support import Change, asking, set_figures
from known_truth_support import change_system, fail_share, simulate_results
from liar_cases_tools import pair_ycsb
from liar_support import plant_difference, show_results
from loadstone.experiment.file import load_experiment
from loadstone.judge.finding import Severity
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.results.projection import Projection, project_results
from loadstone.results.result_set import ResultSet
from loadstone.runner.trial import record_hooks


def keep_trial(trial: Any) -> Any:
    """No change."""
    return trial


def simulate_pair(change: Change = keep_trial, **question: Any) -> ResultSet:
    """Two systems, of which the second is 1.3 times as fast."""
    return simulate_results({"first": 1000.0, "second": 1300.0}, 8, change=change, question=asking(**question))


def drop_repeats(results: ResultSet, system: str, *repeats: int) -> ResultSet:
    """The results without some planned repeats of a system."""
    trials = [trial for trial in results.trials if not (trial.config["system"] == system and trial.repeat in repeats)]
    return replace(results, trials=trials)


@pytest.mark.parametrize("expression", ["repeat:/./", "end:done", "system:(first OR second)", "-repeat:99"])
def test_filter_that_omits_nothing_changes_nothing(expression: str, tmp_path: Path) -> None:
    plain, filtered = (
        show_results(simulate_pair(), tmp_path / name, *arguments)
        for name, arguments in (("plain", ()), ("filtered", ("--filter", expression)))
    )
    assert filtered["verdict"] == plain["verdict"] == "valid"
    assert filtered["findings"] == plain["findings"]


def judge_filtered(results: ResultSet, expression: str) -> Judgement:
    """The judgement of a view."""
    return judge_results(project_results(results, Projection(filter=expression)).results)


@pytest.mark.parametrize("expression", ["", "end:done", "repeat:/./", "system:(first OR second)"])
def test_filter_keeps_missing_repeats(expression: str) -> None:
    judgement = judge_filtered(drop_repeats(simulate_pair(), "second", 7, 8), expression)
    assert str(judgement.verdict) == "suspect"
    assert any(finding.check == "incomplete" for finding in judgement.all_findings)


def test_filter_forgets_missing_repeats_of_omitted_variants() -> None:
    results = simulate_results({"first": 1000.0, "second": 1300.0, "third": 1500.0}, 8, question=asking(by="system"))
    incomplete = drop_repeats(results, "third", 7, 8)
    assert str(judge_filtered(incomplete, "").verdict) == "suspect"
    assert str(judge_filtered(incomplete, "-system:third").verdict) == "valid"


SHORT = change_system("second", set_figures(runtime=5e9, operations=6500, read__count=6500, device__read=2e7))
BUSY = set_figures(driver=1e6)


@pytest.mark.parametrize(
    ("change", "setting"),
    [(SHORT, "sides-differ.measured=1"), (BUSY, "generator-limited.driver=1")],
)
def test_threshold_that_hides_a_comparison_is_suspect(change: Change, setting: str, tmp_path: Path) -> None:
    document = show_results(simulate_pair(change), tmp_path / "a", "--set", f"checks.{setting}")
    assert document["verdict"] in ("suspect", "invalid")
    assert any("changed threshold hides" in item["message"] for item in document["findings"])


@pytest.mark.parametrize(
    "setting",
    ["sides-differ.measured=0.01", "sides-differ.mix=0.5", "generator-limited.driver=0.5", "errors.share=0.5"],
)
def test_threshold_that_hides_nothing_is_valid(setting: str, tmp_path: Path) -> None:
    assert show_results(simulate_pair(), tmp_path / "a", "--set", f"checks.{setting}")["verdict"] == "valid"


@pytest.mark.parametrize(
    ("change", "setting", "verdict"),
    [(SHORT, "[window, operations, bytes_per_read]", "suspect"), (keep_trial, "[durability]", "valid")],
)
def test_fact_allowed_afterwards_is_suspect(change: Change, setting: str, verdict: str, tmp_path: Path) -> None:
    document = show_results(simulate_pair(change), tmp_path / "a", "--set", f"compare.guarantees={setting}")
    named = [item for item in document["findings"] if "does not allow window to differ" in item["message"]]
    assert (document["verdict"], bool(named)) == (verdict, verdict == "suspect")


def test_expectation_with_unknown_contents_is_undecided() -> None:
    results = pair_ycsb("", "", {})
    judgement = judge_results(replace(results, question=replace(results.question, expect=("throughput >= 1.1x",))))
    assert [item.holds for item in judgement.expectations] == [None]


HEAD = "workload: {command: {run: 'make {directory}'}}\nrepeats: 6\n"


def write_experiment(folder: Path, text: str) -> Path:
    """An experiment file with two systems."""
    file = folder / "hooks.yaml"
    file.write_text(HEAD + text)
    return file


def test_hooks_of_a_system_are_recorded(tmp_path: Path) -> None:
    text = "systems: {old: {}, new: {hooks: {before: [touch boost], after: ['rm boost', sync]}}}\n"
    experiment = load_experiment(write_experiment(tmp_path, text)).experiment
    assert record_hooks(experiment, "old") == {"hooks.before": "none", "hooks.after": "none"}
    assert record_hooks(experiment, "new") == {"hooks.before": "touch boost", "hooks.after": "rm boost; sync"}


def test_hooks_that_name_the_system_are_equal(tmp_path: Path) -> None:
    text = "systems: {old: {}, new: {}}\nhooks: {before: ['sync {directory} {trial} {system}']}\n"
    experiment = load_experiment(write_experiment(tmp_path, text)).experiment
    assert record_hooks(experiment, "old") == record_hooks(experiment, "new")


def test_version_of_a_compared_command_may_differ() -> None:
    results = plant_difference(1.3, "system", None, {"tool": "fio", "version": "fio-2"}, {"version": "fio-3"})
    named = replace(results, question=asking(by="system"))
    declared = replace(named, question=replace(named.question, guarantees={"system": ("work.run",)}))
    assert [str(judge_results(results).comparisons[0].verdict) for results in (named, declared)] == ["suspect", "valid"]


def test_loose_threshold_of_the_experiment_is_named() -> None:
    checks = {"errors": {"share": 1.0}, "noisy": {}}
    results = simulate_pair(change_system("second", fail_share(0.05)))
    findings = judge_results(replace(results, question=replace(results.question, checks=checks))).findings
    (named,) = [finding for finding in findings if finding.check == "view"]
    message = "a threshold of the experiment hides findings of errors in 8 trials: errors.share is 1 instead of 0.001"
    assert (named.severity, named.message) == (Severity.NOTE, message)


def test_strict_threshold_of_the_experiment_is_silent() -> None:
    results = simulate_pair()
    strict = replace(results, question=replace(results.question, checks={"errors": {"share": 0.0001}}))
    assert not [finding for finding in judge_results(strict).findings if finding.check == "view"]


def test_omitted_baseline_is_replaced_silently() -> None:
    results = simulate_results(
        {"first": 1000.0, "second": 1300.0, "third": 1500.0}, 8, question=asking(by="system", baseline="third")
    )
    for expression in ("-system:third", "system:first"):
        judgement = judge_filtered(results, expression)
        assert (str(judgement.verdict), judgement.findings) == ("valid", ())


@pytest.mark.parametrize(("thresholds", "verdict"), [((0.001, 0.5), "suspect"), ((0.5, 0.5), "valid")])
def test_threshold_that_favours_one_side_is_suspect(thresholds: tuple[float, float], verdict: str) -> None:
    results = simulate_pair(change_system("second", fail_share(0.05)))
    questions = [replace(results.question, checks={"errors": {"share": share}}) for share in thresholds]
    own = {trial.trial: questions[trial.config["system"] == "second"] for trial in results.trials}
    judgement = judge_results(replace(results, own=own))
    assert str(judgement.comparisons[0].verdict) == verdict
    assert any("hides findings of errors" in finding.message for finding in judgement.findings)
