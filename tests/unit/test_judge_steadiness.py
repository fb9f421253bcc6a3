"""Unsteady repeats of variants in random order count as noise, unless all repeats drift in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import pi, sin
from random import Random

import pytest

from judge_support import asking, experiment, make_series, set_figures
from known_truth_support import change_system, faster, simulate_results
from known_truth_support import make_series as minute
from known_truth_support import set_figures as observed
from loadstone.judge.decision_table import TABLE, shift_ratio
from loadstone.judge.finding import Finding, Severity, Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult
from loadstone.statistics.estimate import Estimate

REPEATS, POINTS, NOISE = 6, 40, 0.05


def judge_steps(
    steps: list[float], repeats: int = REPEATS, noise: float = NOISE, seed: int = 1, interleaved: bool = True
) -> Judgement:
    """lmdb's i-th repeat changes its level by the factor `steps[i]` halfway; rocksdb's repeats are steady."""
    random = Random(seed)
    results = experiment(repeats=repeats)
    series_by_trial = {}
    for trial in results.trials:
        step = steps[trial.repeat - 1] if trial.config["system"] == "lmdb" and trial.repeat <= len(steps) else 1.0
        rates = [1000 * (step if at >= POINTS / 2 else 1.0) * random.lognormvariate(0, noise) for at in range(POINTS)]
        series_by_trial[trial.trial] = make_series(tuple(rates))
    return judge_results(replace(results, series=series_by_trial.__getitem__, interleaved=interleaved))


def findings_of(
    judgement: Judgement, severity: Severity = Severity.SUSPECT, check: str = "not-steady"
) -> list[Finding]:
    """The findings of a check at a severity."""
    return [finding for finding in judgement.all_findings if finding.check == check and finding.severity == severity]


def test_few_repeats_with_level_changes_refuse_nothing() -> None:
    judgement = judge_steps([0.7, 1.3, 1, 1, 1, 1], noise=0.01)
    assert judgement.verdict == Verdict.VALID
    assert {comparison.trials for comparison in findings_of(judgement, Severity.NOTE)} == {("lmdb-1",), ("lmdb-2",)}
    (throughput,) = [comparison for comparison in judgement.comparisons if comparison.metric == "throughput"]
    assert throughput.claim == "better"


@pytest.mark.parametrize("steps", [[0.7, 1.3, 0.7, 1, 1, 1], [0.7, 0.7, 1.3, 1.3, 0.7, 1.3]])
def test_many_repeats_with_level_changes_are_suspect(steps: list[float]) -> None:
    assert judge_steps(steps).verdict == Verdict.SUSPECT


def test_small_common_drift_of_all_repeats_is_suspect() -> None:
    judgement = judge_steps([0.94] * REPEATS, noise=0.06)
    assert judgement.verdict == Verdict.SUSPECT
    (results,) = [finding for finding in findings_of(judgement) if len(finding.trials) == REPEATS]
    assert results.message.startswith("from the first half of the window to the second, throughput falls from ")
    assert results.message.endswith("op/s (mean of 6 repeats)")


def test_half_of_the_repeats_cannot_be_excluded() -> None:
    assert judge_steps([0.7, 0.7, 0.7, 1, 1, 1], noise=0.01).verdict == Verdict.SUSPECT


@pytest.mark.parametrize("repeats", [2, 5])
def test_fewer_repeats_than_a_claim_takes_excuse_nothing(repeats: int) -> None:
    assert judge_steps([0.7], repeats=repeats).verdict == Verdict.SUSPECT


def test_fixed_order_excludes_no_repeats() -> None:
    assert judge_steps([0.7], interleaved=False).verdict == Verdict.SUSPECT


def test_steady_repeats_are_seldom_accused_together() -> None:
    fired = sum(bool(findings_of(judge_steps([], seed=seed, noise=0.1))) for seed in range(100))
    # Two systems with one test each, each with an error rate of 0.5 %.
    assert fired <= 3


def disturb_repeats(repeats: range) -> ResultSet:
    """The hypervisor takes 20 % of the processor time in these repeats of lmdb."""

    def change_trial(trial: TrialResult) -> TrialResult:
        hit = trial.config["system"] == "lmdb" and trial.repeat in repeats
        return set_figures(cpu__steal=0.2 if hit else 0.0)(trial)

    return experiment(change_trial, REPEATS)


def test_host_disturbance_is_suspect_only_in_many_repeats() -> None:
    few, many = judge_results(disturb_repeats(range(1, 3))), judge_results(disturb_repeats(range(1, 4)))
    assert (few.verdict, many.verdict) == (Verdict.VALID, Verdict.SUSPECT)
    assert len(findings_of(few, Severity.NOTE, "interference")) == 2
    assert len(findings_of(many, Severity.SUSPECT, "interference")) == 3


def read_claim(results: ResultSet) -> tuple[str, Verdict]:
    """The claim on the throughput, and its verdict."""
    (rows,) = [comparison for comparison in judge_results(results).comparisons if comparison.metric == "throughput"]
    return rows.claim, rows.verdict


FLAT = {"rocksdb": 1000.0, "lmdb": 1000.0}


def fallen(trial: TrialResult) -> Series:
    """A time series whose throughput drops by half in the middle."""
    return minute(trial, lambda at: 0.5 if at >= 30 else 1.0)


@pytest.mark.parametrize(("repeats", "hit"), [(12, 4), (30, 10)])
def test_disturbed_third_does_not_separate_equal_stores(repeats: int, hit: int) -> None:
    stolen = change_system("rocksdb", lambda trial: observed(cpu__steal=0.2)(faster(0.8)(trial)), *range(1, hit + 1))
    assert read_claim(simulate_results(FLAT, repeats, change=stolen))[0] == "none"

    def time_series(trial: TrialResult) -> Series:
        return fallen(trial) if trial.config["system"] == "rocksdb" and trial.repeat <= hit else minute(trial)

    slower = change_system("rocksdb", faster(0.75), *range(1, hit + 1))
    assert read_claim(simulate_results(FLAT, repeats, change=slower, minute=time_series))[0] == "none"


def test_difference_only_in_disturbed_repeats_is_suspect() -> None:
    stolen = change_system("rocksdb", lambda trial: observed(cpu__steal=0.2)(faster(0.8)(trial)), *range(1, 5))
    judgement = judge_results(simulate_results(FLAT, 12, change=stolen, question=asking(metrics=("throughput",))))
    assert judgement.verdict == Verdict.SUSPECT
    (result,) = findings_of(judgement, check="interference")
    assert ", but without disturbed trials, " in result.message
    assert ' with scenario "without disturbed trials of rocksdb (r1, r2, r3, r4)", n=12' in judgement.answer


def test_claim_without_the_disturbed_repeats_holds() -> None:
    stolen = change_system("rocksdb", observed(cpu__steal=0.2), *range(1, 5))
    assert read_claim(simulate_results(repeats=12, change=stolen)) == ("better", Verdict.VALID)


def test_disturbed_and_unsteady_repeats_are_counted_together() -> None:
    def time_series(trial: TrialResult) -> Series:
        return fallen(trial) if trial.config["system"] == "lmdb" and trial.repeat in (1, 2) else minute(trial)

    other, same = (
        simulate_results(change=change_system("lmdb", observed(cpu__steal=0.3), *repeats), minute=time_series)
        for repeats in ((3, 4), (1, 2))
    )
    assert read_claim(other) == ("better", Verdict.SUSPECT)
    assert read_claim(same) == ("better", Verdict.VALID)


def test_repeats_that_nobody_could_look_at_excuse_nothing() -> None:
    nobody = observed(without=("cpu.steal", "cpu.others", "io.others"))
    stolen = change_system("lmdb", lambda trial: (observed(cpu__steal=0.3) if trial.repeat <= 2 else nobody)(trial))
    assert read_claim(simulate_results(change=stolen)) == ("better", Verdict.SUSPECT)

    def time_series(trial: TrialResult) -> Series:
        if trial.config["system"] != "lmdb":
            return minute(trial)
        return fallen(trial) if trial.repeat <= 2 else minute(trial, seconds=4)

    judgement = judge_results(simulate_results(minute=time_series))
    assert judgement.verdict == Verdict.SUSPECT
    assert "the window has fewer than 5 intervals" in {unchecked.reason for unchecked in judgement.not_looked}


def test_gaps_in_p99_exclude_no_latency_repeats() -> None:
    def time_series(trial: TrialResult) -> Series:
        if trial.config["system"] != "lmdb":
            return minute(trial)
        if trial.repeat <= 2:
            return minute(trial, lambda at: 0.5 if at >= 30 else 1.0, lambda at: 2.0 if at >= 30 else 1.0)
        result = minute(trial)
        return replace(result, p99_ns=(None, *result.p99_ns[1:]))

    judgement = judge_results(simulate_results(minute=time_series, question=asking(metrics=("throughput", "read.p99"))))
    verdicts = {comparison.metric: comparison.verdict for comparison in judgement.comparisons}
    assert verdicts == {"throughput": Verdict.VALID, "read.p99": Verdict.SUSPECT}
    assert "some intervals have no p99" in {comparison.reason for comparison in judgement.not_looked}


def test_invalid_repeats_excuse_nothing() -> None:
    def time_series(trial: TrialResult) -> Series:
        return fallen(trial) if trial.config["system"] == "lmdb" and trial.repeat <= 3 else minute(trial)

    invalid = change_system("lmdb", observed(clock__jumps=5), 9)
    assert not findings_of(judge_results(simulate_results(repeats=9, minute=time_series)))
    assert {
        finding.trials
        for finding in findings_of(judge_results(simulate_results(repeats=9, minute=time_series, change=invalid)))
    } == {
        ("lmdb-1",),
        ("lmdb-2",),
        ("lmdb-3",),
    }


SHAPES: dict[str, Callable[[float], float]] = {
    "a fall in the middle": lambda at: 0.8 if 1 / 3 <= at < 2 / 3 else 1.0,
    "two waves": lambda at: 1 + 0.15 * sin(4 * pi * at),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_common_shape_with_equal_halves_is_suspect(shape: str) -> None:
    random = Random(2)
    results = experiment()
    series_by_trial = {}
    for trial in results.trials:
        level = SHAPES[shape] if trial.config["system"] == "lmdb" else lambda _: 1.0
        rates = [1000 * level(at / POINTS) * random.lognormvariate(0, NOISE) for at in range(POINTS)]
        series_by_trial[trial.trial] = make_series(tuple(rates))
    (rows,) = [
        finding
        for finding in findings_of(judge_results(replace(results, series=series_by_trial.__getitem__)))
        if len(finding.trials) > 1
    ]
    assert "quarter of the window, throughput is " in rows.message
    assert set(rows.trials) == {f"lmdb-{repeat}" for repeat in range(1, REPEATS + 1)}


def test_p99_shape_of_all_repeats_affects_only_latencies() -> None:
    def time_series(trial: TrialResult) -> Series:
        return minute(trial, latencies=lambda at: 1.2 if at >= 30 and trial.config["system"] == "lmdb" else 1.0)

    judgement = judge_results(simulate_results(minute=time_series, question=asking(metrics=("throughput", "read.p99"))))
    verdicts = {comparison.metric: comparison.verdict for comparison in judgement.comparisons}
    assert verdicts == {"throughput": Verdict.VALID, "read.p99": Verdict.SUSPECT}


def test_windows_without_throughput_or_intervals_are_judged() -> None:
    for rates in ((0.0,) * 30, (100.0,) * 15 + (0.0,) * 15, (100.0,), (100.0, 90.0), ()):
        assert judge_results(experiment(rates=rates)).comparisons


def twice(factor: float) -> Judgement:
    """lmdb has four thirds of rocksdb's throughput; half of lmdb's repeats rise by the factor, half drop by it."""
    return judge_steps([factor, 1 / factor] * 3, noise=0.01)


def test_small_drift_refuses_equality_but_no_difference() -> None:
    verdicts = {comparison.metric: (comparison.claim, comparison.verdict) for comparison in twice(1.1).comparisons}
    assert verdicts["throughput"] == ("better", Verdict.VALID)
    assert verdicts["read.p99"] == ("same", Verdict.SUSPECT)


def test_decision_table_states_the_claim_lost_by_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    before = next(item for item in twice(1.6).comparisons if item.metric == "throughput")
    assert (before.claim, before.scenarios[-1].decides) == ("better", True)
    monkeypatch.setitem(TABLE, "drift", replace(TABLE["drift"], difference="none"))
    after = next(item for item in twice(1.6).comparisons if item.metric == "throughput")
    assert (after.claim, after.scenarios[-1].decides) == ("none", True)


@pytest.mark.parametrize(("p", "stands"), [(0.03, True), (0.134, False)])
def test_corrected_p_decides_on_a_drift(p: float, stands: bool) -> None:
    """The interval of the scenario excludes 1 (1.12 to 8.65), but the corrected p decides."""
    comparison = next(item for item in twice(1.0).comparisons if item.metric == "throughput")
    comparison = replace(comparison, ratio=Estimate(3.11, 6, 2.68, 3.61))
    shifted, holds = shift_ratio(comparison, "drift", 2.4, comparison.ratio, 0.01, p)
    assert (holds, shifted.claim) == (stands, "better")


def test_printed_interval_covers_a_drift() -> None:
    comparison = next(item for item in twice(1.1).comparisons if item.metric == "throughput")
    drifts = [row.ratio for row in comparison.scenarios if row.name == "drift at either extreme"]
    assert [(ratio.low, ratio.high) for ratio in drifts] == [(comparison.ratio.low, comparison.ratio.high)]


def test_metric_without_time_series_has_unknown_drift() -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        size = 0.5 + trial.repeat / 1000 if trial.config["system"] == "lmdb" else 1.0
        return set_figures(read__p99=3e7 * size, read__p99__9=5e7 * size)(trial)

    base = experiment(change_trial, REPEATS, question=asking(metrics=("throughput", "read.p99", "read.p99.9")))
    # Throughput drifts by 10 % in either direction, and there is no time series of latencies.
    series_by_trial = {
        trial.trial: make_series(
            tuple(1000 * (1.1 if (at >= POINTS / 2) == bool(trial.repeat % 2) else 1.0) for at in range(POINTS))
        )
        for trial in base.trials
    }
    entries = {
        comparison.metric: (comparison.claim, comparison.verdict)
        for comparison in judge_results(replace(base, series=series_by_trial.__getitem__)).comparisons
    }
    assert entries["throughput"] == ("better", Verdict.VALID)
    assert entries["read.p99"] == ("better", Verdict.SUSPECT)
    assert entries["read.p99.9"] == ("better", Verdict.SUSPECT)


def test_movements_that_could_turn_a_claim_are_suspect() -> None:
    assert twice(1.4).verdict == Verdict.SUSPECT


def test_common_drift_is_suspect_despite_large_differences() -> None:
    assert judge_steps([0.9] * REPEATS, noise=0.01).verdict == Verdict.SUSPECT


def test_movements_of_both_sides_add_up() -> None:
    # Each side drifts by less than a third.
    results = experiment(repeats=REPEATS)
    series_by_trial = {
        trial.trial: make_series(
            tuple(1000 * (1.18 if (at >= POINTS / 2) == bool(trial.repeat % 2) else 1.0) for at in range(POINTS))
        )
        for trial in results.trials
    }
    assert judge_results(replace(results, series=series_by_trial.__getitem__)).verdict == Verdict.SUSPECT
