"""What single repeats that are not steady mean for a comparison in random order: chance, or the same in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import pi, sin
from random import Random

import pytest

from judge_support import asking, course, experiment, given
from known_truth_support import course as minute
from known_truth_support import faster, on, world
from known_truth_support import given as observed
from loadstone.judge.finding import Finding, Severity, Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult

REPEATS, POINTS, NOISE = 6, 40, 0.05


def judged(
    steps: list[float], repeats: int = REPEATS, noise: float = NOISE, seed: int = 1, interleaved: bool = True
) -> Judgement:
    """lmdb's i-th repeat changes its level by the factor `steps[i]` half way; rocksdb's are steady."""
    random = Random(seed)
    results = experiment(repeats=repeats)
    courses = {}
    for trial in results.trials:
        step = steps[trial.repeat - 1] if trial.config["system"] == "lmdb" and trial.repeat <= len(steps) else 1.0
        rates = [1000 * (step if at >= POINTS / 2 else 1.0) * random.lognormvariate(0, noise) for at in range(POINTS)]
        courses[trial.trial] = course(tuple(rates))
    return judge_results(replace(results, series=courses.__getitem__, interleaved=interleaved))


def findings_of(
    judgement: Judgement, severity: Severity = Severity.SUSPECT, check: str = "not-steady"
) -> list[Finding]:
    """What a check says at a severity."""
    return [each for each in judgement.all_findings if each.check == check and each.severity == severity]


def test_few_repeats_with_level_changes_refuse_nothing() -> None:
    judgement = judged([0.7, 1.3, 1, 1, 1, 1], noise=0.01)
    assert judgement.verdict == Verdict.VALID
    assert {each.trials for each in findings_of(judgement, Severity.NOTE)} == {("lmdb-1",), ("lmdb-2",)}
    (throughput,) = [each for each in judgement.comparisons if each.metric == "throughput"]
    assert throughput.claim == "better"


@pytest.mark.parametrize("steps", [[0.7, 1.3, 0.7, 1, 1, 1], [0.7, 0.7, 1.3, 1.3, 0.7, 1.3]])
def test_many_repeats_with_level_changes_are_suspect(steps: list[float]) -> None:
    assert judged(steps).verdict == Verdict.SUSPECT


def test_small_common_drift_of_all_repeats_is_suspect() -> None:
    judgement = judged([0.94] * REPEATS, noise=0.06)
    assert judgement.verdict == Verdict.SUSPECT
    (found,) = [each for each in findings_of(judgement) if len(each.trials) == REPEATS]
    assert found.message.startswith("from the first half of the window to the second, throughput falls from ")
    assert found.message.endswith("op/s (mean of 6 repeats)")


def test_half_of_the_repeats_cannot_be_excluded() -> None:
    assert judged([0.7, 0.7, 0.7, 1, 1, 1], noise=0.01).verdict == Verdict.SUSPECT


@pytest.mark.parametrize("repeats", [2, 5])
def test_fewer_repeats_than_a_claim_takes_excuse_nothing(repeats: int) -> None:
    assert judged([0.7], repeats=repeats).verdict == Verdict.SUSPECT


def test_fixed_order_excludes_no_repeats() -> None:
    assert judged([0.7], interleaved=False).verdict == Verdict.SUSPECT


def test_steady_repeats_are_seldom_accused_together() -> None:
    fired = sum(bool(findings_of(judged([], seed=seed, noise=0.1))) for seed in range(100))
    # Two systems, a test each, of which 0.5 % err.
    assert fired <= 3


def disturbed(repeats: range) -> ResultSet:
    """The hypervisor takes a fifth of the processors in these repeats of lmdb."""

    def spoil(trial: TrialResult) -> TrialResult:
        hit = trial.config["system"] == "lmdb" and trial.repeat in repeats
        return given(cpu__steal=0.2 if hit else 0.0)(trial)

    return experiment(spoil, REPEATS)


def test_host_disturbance_is_suspect_only_in_many_repeats() -> None:
    few, many = judge_results(disturbed(range(1, 3))), judge_results(disturbed(range(1, 4)))
    assert (few.verdict, many.verdict) == (Verdict.VALID, Verdict.SUSPECT)
    assert len(findings_of(few, Severity.NOTE, "interference")) == 2
    assert len(findings_of(many, Severity.SUSPECT, "interference")) == 3


def claimed(results: ResultSet) -> tuple[str, Verdict]:
    """What is claimed of the throughput, and how far it is trusted."""
    (found,) = [each for each in judge_results(results).comparisons if each.metric == "throughput"]
    return found.claim, found.verdict


FLAT = {"rocksdb": 1000.0, "lmdb": 1000.0}


def fallen(one: TrialResult) -> Series:
    """Throughput falls to a half."""
    return minute(one, lambda at: 0.5 if at >= 30 else 1.0)


@pytest.mark.parametrize(("repeats", "hit"), [(12, 4), (30, 10)])
def test_disturbed_third_does_not_separate_equal_stores(repeats: int, hit: int) -> None:
    stolen = on("rocksdb", lambda one: observed(cpu__steal=0.2)(faster(0.8)(one)), *range(1, hit + 1))
    assert claimed(world(FLAT, repeats, spoil=stolen))[0] == "none"

    def course_of(one: TrialResult) -> Series:
        return fallen(one) if one.config["system"] == "rocksdb" and one.repeat <= hit else minute(one)

    slower = on("rocksdb", faster(0.75), *range(1, hit + 1))
    assert claimed(world(FLAT, repeats, spoil=slower, minute=course_of))[0] == "none"


def test_difference_only_in_disturbed_repeats_is_suspect() -> None:
    stolen = on("rocksdb", lambda one: observed(cpu__steal=0.2)(faster(0.8)(one)), *range(1, 5))
    judgement = judge_results(world(FLAT, 12, spoil=stolen, question=asking(metrics=("throughput",))))
    assert judgement.verdict == Verdict.SUSPECT
    (found,) = findings_of(judgement, check="interference")
    assert found.message.endswith("does not hold in the scenario: clean trials only")


def test_claim_without_the_disturbed_repeats_holds() -> None:
    stolen = on("rocksdb", observed(cpu__steal=0.2), *range(1, 5))
    assert claimed(world(repeats=12, spoil=stolen)) == ("better", Verdict.VALID)


def test_disturbed_and_unsteady_repeats_are_counted_together() -> None:
    def course_of(one: TrialResult) -> Series:
        return fallen(one) if one.config["system"] == "lmdb" and one.repeat in (1, 2) else minute(one)

    other, same = (
        world(spoil=on("lmdb", observed(cpu__steal=0.3), *repeats), minute=course_of) for repeats in ((3, 4), (1, 2))
    )
    assert claimed(other) == ("better", Verdict.SUSPECT)
    assert claimed(same) == ("better", Verdict.VALID)


def test_repeats_that_nobody_could_look_at_excuse_nothing() -> None:
    nobody = observed(without=("cpu.steal", "cpu.others", "io.others"))
    stolen = on("lmdb", lambda one: (observed(cpu__steal=0.3) if one.repeat <= 2 else nobody)(one))
    assert claimed(world(spoil=stolen)) == ("better", Verdict.SUSPECT)

    def course_of(one: TrialResult) -> Series:
        if one.config["system"] != "lmdb":
            return minute(one)
        return fallen(one) if one.repeat <= 2 else minute(one, seconds=4)

    judgement = judge_results(world(minute=course_of))
    assert judgement.verdict == Verdict.SUSPECT
    assert "the window has fewer than 5 intervals" in {each.reason for each in judgement.not_looked}


def test_gaps_in_p99_exclude_no_latency_repeats() -> None:
    def course_of(one: TrialResult) -> Series:
        if one.config["system"] != "lmdb":
            return minute(one)
        if one.repeat <= 2:
            return minute(one, lambda at: 0.5 if at >= 30 else 1.0, lambda at: 2.0 if at >= 30 else 1.0)
        made = minute(one)
        return replace(made, p99_ns=(None, *made.p99_ns[1:]))

    judgement = judge_results(world(minute=course_of, question=asking(metrics=("throughput", "read.p99"))))
    verdicts = {each.metric: each.verdict for each in judgement.comparisons}
    assert verdicts == {"throughput": Verdict.VALID, "read.p99": Verdict.SUSPECT}
    assert "some intervals have no p99" in {each.reason for each in judgement.not_looked}


def test_invalid_repeats_excuse_nothing() -> None:
    def course_of(one: TrialResult) -> Series:
        return fallen(one) if one.config["system"] == "lmdb" and one.repeat <= 3 else minute(one)

    invalid = on("lmdb", observed(clock__jumps=5), 9)
    assert not findings_of(judge_results(world(repeats=9, minute=course_of)))
    assert {each.trials for each in findings_of(judge_results(world(repeats=9, minute=course_of, spoil=invalid)))} == {
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
    courses = {}
    for trial in results.trials:
        level = SHAPES[shape] if trial.config["system"] == "lmdb" else lambda _: 1.0
        rates = [1000 * level(at / POINTS) * random.lognormvariate(0, NOISE) for at in range(POINTS)]
        courses[trial.trial] = course(tuple(rates))
    (found,) = [
        each
        for each in findings_of(judge_results(replace(results, series=courses.__getitem__)))
        if len(each.trials) > 1
    ]
    assert "quarter, throughput " in found.message
    assert set(found.trials) == {f"lmdb-{repeat}" for repeat in range(1, REPEATS + 1)}


def test_p99_shape_of_all_repeats_affects_only_latencies() -> None:
    def course_of(one: TrialResult) -> Series:
        return minute(one, latencies=lambda at: 1.2 if at >= 30 and one.config["system"] == "lmdb" else 1.0)

    judgement = judge_results(world(minute=course_of, question=asking(metrics=("throughput", "read.p99"))))
    verdicts = {each.metric: each.verdict for each in judgement.comparisons}
    assert verdicts == {"throughput": Verdict.VALID, "read.p99": Verdict.SUSPECT}


def test_windows_without_throughput_or_intervals_are_judged() -> None:
    for rates in ((0.0,) * 30, (100.0,) * 15 + (0.0,) * 15, (100.0,), (100.0, 90.0), ()):
        assert judge_results(experiment(rates=rates)).comparisons


def twice(factor: float) -> Judgement:
    """lmdb's throughput is four thirds of rocksdb's; half of its repeats rise and half fall by a factor."""
    return judged([factor, 1 / factor] * 3, noise=0.01)


def test_small_drift_refuses_equality_but_no_difference() -> None:
    verdicts = {each.metric: (each.claim, each.verdict) for each in twice(1.1).comparisons}
    assert verdicts["throughput"] == ("better", Verdict.VALID)
    assert verdicts["read.p99"] == ("same", Verdict.SUSPECT)


def test_metric_without_time_series_has_unknown_drift() -> None:
    def spoil(trial: TrialResult) -> TrialResult:
        size = 0.5 + trial.repeat / 1000 if trial.config["system"] == "lmdb" else 1.0
        return given(read__p99=3e7 * size, read__p99__9=5e7 * size)(trial)

    base = experiment(spoil, REPEATS, question=asking(metrics=("throughput", "read.p99", "read.p99.9")))
    # Throughput moves by a tenth, up and down, and nothing shows what the latencies did meanwhile.
    courses = {
        trial.trial: course(
            tuple(1000 * (1.1 if (at >= POINTS / 2) == bool(trial.repeat % 2) else 1.0) for at in range(POINTS))
        )
        for trial in base.trials
    }
    found = {
        each.metric: (each.claim, each.verdict)
        for each in judge_results(replace(base, series=courses.__getitem__)).comparisons
    }
    assert found["throughput"] == ("better", Verdict.VALID)
    assert found["read.p99"] == ("better", Verdict.SUSPECT)
    assert found["read.p99.9"] == ("better", Verdict.SUSPECT)


def test_movements_that_could_turn_a_claim_are_suspect() -> None:
    assert twice(1.4).verdict == Verdict.SUSPECT


def test_common_drift_is_suspect_despite_large_differences() -> None:
    assert judged([0.9] * REPEATS, noise=0.01).verdict == Verdict.SUSPECT


def test_movements_of_both_sides_add_up() -> None:
    # Each side alone moves by less than a third.
    results = experiment(repeats=REPEATS)
    courses = {
        trial.trial: course(
            tuple(1000 * (1.18 if (at >= POINTS / 2) == bool(trial.repeat % 2) else 1.0) for at in range(POINTS))
        )
        for trial in results.trials
    }
    assert judge_results(replace(results, series=courses.__getitem__)).verdict == Verdict.SUSPECT
