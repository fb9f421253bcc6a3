"""Deceptive results, and honest results that resemble them: the judgement of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge_support import asking, set_figures
from known_truth_expected import Case, Judged
from known_truth_support import (
    SHAPE,
    change_system,
    collect_results,
    fail_share,
    parts,
    scale_metrics,
    simulate_results,
    with_parts,
)
from liar_cases_faults import FAULTS
from liar_cases_runs import RUNS
from liar_cases_sides import SIDES
from liar_cases_stated import STATED
from liar_cases_table import SCENARIOS
from liar_cases_tools import TOOLS
from liar_support import plant_difference, show_results
from loadstone.experiment.file import load_experiment
from loadstone.judge.facts import SYSTEM, WORK
from loadstone.judge.judge import judge_results
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar

CASES = [*SIDES, *RUNS, *SCENARIOS, *FAULTS, *TOOLS, *STATED]
TAILS = [f"{kind}.{name}" for kind in ("read", "all") for name in (*SHAPE, "mean")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_judge_is_not_fooled(case: Case) -> None:
    judged = case.judge()
    missing = [item.text for item in case.expect if not item.holds(judged)]
    assert not missing, f"expected: {'; '.join(missing)}; the judge said: {judged.actual()}"


def equal_sides() -> ResultSet:
    """An A/A experiment with 2 % noise."""
    return simulate_results({"first": 1000.0, "second": 1000.0}, noise=0.02, repeats=10)


def test_filter_by_repeat_is_suspect(tmp_path: Path) -> None:
    document = show_results(
        simulate_results({"first": 1000.0, "second": 1040.0}, repeats=10),
        tmp_path / "a",
        "--filter",
        "-repeat:(3 OR 5)",
    )
    assert document["verdict"] == "suspect"
    assert any("repeat" in item["message"] for item in document["findings"] if item["check"] == "view")


def test_filter_by_value_of_the_context_is_valid(tmp_path: Path) -> None:
    results = simulate_results({"first": 1000.0, "second": 1300.0, "third": 1500.0}, question=asking(by="system"))
    assert show_results(results, tmp_path / "a", "--filter", "-system:third")["verdict"] == "valid"


def test_loosened_threshold_is_suspect(tmp_path: Path) -> None:
    results = simulate_results({"first": 1000.0, "second": 1300.0}, change=change_system("second", fail_share(1 / 6)))
    document = show_results(results, tmp_path / "a", "--set", "checks.errors.share=1")
    assert document["verdict"] in ("suspect", "invalid")


def test_tightened_threshold_is_valid(tmp_path: Path) -> None:
    results = simulate_results({"first": 1000.0, "second": 1300.0})
    assert show_results(results, tmp_path / "a", "--set", "checks.errors.share=0.0001")["verdict"] == "valid"


def test_confounded_dimension_left_out_is_suspect(tmp_path: Path) -> None:
    results = simulate_results({"first": 1000.0, "second": 2960.0})
    trials = [
        replace(trial, config={**trial.config, "clients": 1 if trial.config["system"] == "first" else 8})
        for trial in results.trials
    ]
    results = replace(results, trials=trials, planned={})
    assert show_results(results, tmp_path / "a", "--row", "")["verdict"] == "suspect"


def test_unrecorded_metric_is_corrected_over_all_metrics(tmp_path: Path) -> None:
    lucky = with_parts(20, repeats=6)
    results = simulate_results(
        {"first": 1000.0, "second": 1000.0}, change=lucky, noise=0.02, question=asking(metrics=("throughput",))
    )
    name = parts(20)[3]
    trials = [
        replace(
            trial,
            values={
                **trial.values,
                name: replace(
                    trial.values[name],
                    value=1e6
                    * (1 + 0.012 * (trial.config["system"] == "second"))
                    * (1 + 0.001 * (trial.repeat * 5 % 7)),
                ),
            },
        )
        for trial in results.trials
    ]
    document = show_results(replace(results, trials=trials), tmp_path / "a", "--metric", name)
    (comparison,) = document["comparisons"]
    assert comparison["exploratory"]
    assert comparison["p_adjusted"] >= 20 * comparison["p"] or comparison["p_adjusted"] == 1


def test_recorded_metrics_are_confirmatory(tmp_path: Path) -> None:
    results = simulate_results({"first": 1000.0, "second": 1300.0}, question=asking(metrics=("throughput",)))
    (comparison,) = show_results(results, tmp_path / "a", "--metric", "throughput")["comparisons"]
    assert not comparison["exploratory"]
    assert comparison["claim"] == "better"


# The facts and the request of an LMDB trial, in addition to the common facts.
RECORDED: dict[str, Scalar] = {
    "cache_bytes": "0",
    "compression": "none",
    "directory": "/var/tmp/trial/lmdb",
    "map_bytes": "274877906944",
    "version": "0.9.70 (heed 0.22.1)",
    "device": "vda",
    "store": "lmdb",
    "how": "pages written at each commit, not synced",
    "engines": 1,
    "records": 100_000,
    "record_bytes": 1000,
    "mix": "95 % read, 5 % update",
    "distribution": "zipfian",
}
REQUESTED: dict[str, Scalar] = {
    "work.field_count": 10,
    "work.read_all_fields": True,
    "work.mix.read": 0.95,
    "work.keys.distribution": "zipfian",
    "pace.mode": "closed",
    "until.seconds": 3.0,
    "warmup_seconds": 0.5,
    "inserts.retries": 0,
    "store.rocksdb.options": "write_buffer_size=1",
}
KNOWN_OF_A_TRIAL: dict[str, Scalar] = {**plant_difference().trials[0].facts, **RECORDED}


def flip(value: Scalar) -> Scalar:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    return f"{value}-other" if isinstance(value, str) else value * 2 + 1


def judge_flipped(results: ResultSet, value: Scalar, other: Scalar) -> None:
    """Checks that the comparison is not valid and names both values."""
    document = Judged(results, "throughput").comparison
    assert document is not None
    assert str(document.verdict) in ("suspect", "invalid")
    message = " ".join(item.message for item in document.findings).replace(",", "")
    assert "against" in message
    if isinstance(other, str) and not other.partition("-")[0].isdigit():
        assert f"({value} against {other})".replace(",", "") in message


@pytest.mark.parametrize("fact", sorted(KNOWN_OF_A_TRIAL))
def test_flipped_fact_is_never_valid(fact: str) -> None:
    value = KNOWN_OF_A_TRIAL[fact]
    results = plant_difference(1.3, "copy", None, {**RECORDED}, {fact: flip(value)})
    judge_flipped(results, value, flip(value))


@pytest.mark.parametrize("setting", sorted(REQUESTED))
def test_flipped_request_is_never_valid(setting: str) -> None:
    other = {**REQUESTED, setting: flip(REQUESTED[setting])}
    results = plant_difference()
    trials = [
        replace(trial, requested=other if trial.config["copy"] == "second" else REQUESTED) for trial in results.trials
    ]
    judge_flipped(replace(results, trials=trials), REQUESTED[setting], other[setting])


def test_workload_property_under_a_system_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "sides.yaml"
    file.write_text(
        "systems: {a: {store: lmdb}, b: {store: lmdb, properties: {readproportion: 1}}}\n"
        f"workload: {{file: {Path(__file__).parents[2] / 'workloads/workloada'}}}\n"
        "vary: {system: [a, b]}\n"
    )
    with pytest.raises(Exception, match="readproportion"):
        load_experiment(file)


def test_command_of_a_system_determines_no_work(tmp_path: Path) -> None:
    file = tmp_path / "command.yaml"
    file.write_text("systems: {old: {}, new: {}}\nworkload: {command: {run: 'echo {system}'}}\nrepeats: 6\n")
    assert load_experiment(file).question_for_judge().guarantees["system"] == ("work.run", "work.prepare")
    file.write_text("systems: {old: {}}\nvary: {mode: [a, b]}\nworkload: {command: {run: 'echo {mode}'}}\nrepeats: 6\n")
    assert load_experiment(file).question_for_judge().guarantees["mode"] == ("work",)


def test_nine_interrupted_attempts_of_one_side_are_suspect() -> None:
    results = simulate_results({"first": 1000.0, "second": 1190.0})
    hung = [
        replace(trial, interruptions=3 if trial.config["system"] == "second" and trial.repeat > 3 else 0)
        for trial in results.trials
    ]
    comparison = Judged(replace(results, trials=hung), "throughput").comparison
    assert comparison is not None
    assert str(comparison.verdict) == "suspect"
    assert any("9 attempts at 3 trials were interrupted" in item.message for item in comparison.findings)


def test_one_interrupted_attempt_is_valid() -> None:
    results = simulate_results({"first": 1000.0, "second": 1190.0})
    once = [replace(trial, interruptions=int(trial.trial == "second-2")) for trial in results.trials]
    comparison = Judged(replace(results, trials=once), "throughput").comparison
    assert comparison is not None
    assert str(comparison.verdict) == "valid"


def test_repeats_that_all_failed_need_no_more_repeats() -> None:
    results = simulate_results(
        {"first": 1000.0, "second": 1300.0}, change=change_system("second", set_figures(clock__jumps=1))
    )
    comparison = Judged(results, "throughput").comparison
    assert comparison is not None
    assert (comparison.claim, comparison.why) == ("refused", "")


def test_thousandfold_reduction_is_written_as_a_ratio() -> None:
    results = simulate_results(
        {"first": 1000.0, "second": 1000.0}, change=change_system("second", scale_metrics(TAILS, 0.001))
    )
    judged = Judged(replace(results, question=asking(metrics=("read.p99",))), "read.p99")
    assert "100 % lower" not in judged.text


def test_filter_by_outcome_is_suspect(tmp_path: Path) -> None:
    results = simulate_results({"first": 1000.0, "second": 1040.0}, repeats=10)
    trials = [
        replace(trial, end="failed", values={}) if trial.trial in ("second-3", "second-7") else trial
        for trial in results.trials
    ]
    failing = replace(results, trials=trials, series=lambda _: None)
    assert show_results(failing, tmp_path / "a", "--filter", "end:done")["verdict"] in ("suspect", "invalid")


def test_filter_by_trial_is_suspect(tmp_path: Path) -> None:
    results = simulate_results({"first": 1000.0, "second": 1300.0}, repeats=8)
    document = show_results(results, tmp_path / "a", "--filter", "-trial:second-3")
    assert document["verdict"] == "suspect"


def test_no_fact_belongs_to_system_and_work() -> None:
    # A fact on both lists would be allowed to differ between systems, whatever it describes.
    assert not SYSTEM & WORK


@pytest.mark.parametrize(("sides", "verdict"), [(("lmdb",), "suspect"), (("lmdb", "rocksdb"), "valid")])
def test_interruptions_of_one_side_are_added_up(sides: tuple[str, ...], verdict: str) -> None:
    trials = [
        replace(
            trial,
            trial=f"{trial.trial}-{clients}",
            config={**trial.config, "clients": clients},
            interruptions=3 * (trial.repeat == 1 and trial.config["system"] in sides),
        )
        for clients in (1, 2)
        for trial in simulate_results({"rocksdb": 1000.0, "lmdb": 1300.0}).trials
    ]
    assert str(judge_results(collect_results(trials, question=asking(by="system"))).verdict) == verdict
