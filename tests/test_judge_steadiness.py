"""What single repeats that are not steady mean for a comparison in random order: chance, or the same in all."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from judge_support import course, experiment, given
from loadstone.judge.finding import Finding, Severity, Verdict
from loadstone.judge.judge import judge
from loadstone.judge.judgement import Judgement
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult

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
    return judge(replace(results, series=courses.__getitem__, interleaved=interleaved))


def said(judgement: Judgement, severity: Severity = Severity.SUSPECT, check: str = "not-steady") -> list[Finding]:
    """What a check says at a severity."""
    return [each for each in judgement.all_findings if each.check == check and each.severity == severity]


def test_a_few_repeats_that_change_their_level_are_noted_and_refuse_nothing() -> None:
    judgement = judged([0.7, 1.3, 1, 1, 1, 1], noise=0.01)
    assert judgement.verdict == Verdict.VALID
    assert {each.trials for each in said(judgement, Severity.NOTE)} == {("lmdb-1",), ("lmdb-2",)}
    (throughput,) = [each for each in judgement.comparisons if each.metric == "throughput"]
    assert throughput.claim == "better"


@pytest.mark.parametrize("steps", [[0.7, 1.3, 0.7, 1, 1, 1], [0.7, 0.7, 1.3, 1.3, 0.7, 1.3]])
def test_repeats_of_which_many_change_their_level_are_suspect_whichever_way(steps: list[float]) -> None:
    assert judged(steps).verdict == Verdict.SUSPECT


def test_repeats_that_all_move_the_same_way_are_suspect_however_little_each_of_them_moves() -> None:
    judgement = judged([0.94] * REPEATS, noise=0.06)
    assert judgement.verdict == Verdict.SUSPECT
    (found,) = [each for each in said(judgement) if len(each.trials) == REPEATS]
    assert found.message.startswith("from the first half of the window to the second, throughput falls from ")
    assert found.message.endswith("op/s (mean of 6 repeats)")


def test_half_of_the_repeats_are_too_many_to_be_excused_by_the_others() -> None:
    assert judged([0.7, 0.7, 0.7, 1, 1, 1], noise=0.01).verdict == Verdict.SUSPECT


@pytest.mark.parametrize("repeats", [2, 5])
def test_fewer_repeats_than_a_claim_takes_excuse_nothing(repeats: int) -> None:
    assert judged([0.7], repeats=repeats).verdict == Verdict.SUSPECT


def test_nothing_is_excused_where_the_order_was_not_random() -> None:
    assert judged([0.7], interleaved=False).verdict == Verdict.SUSPECT


def test_steady_repeats_are_seldom_accused_together() -> None:
    fired = sum(bool(said(judged([], seed=seed, noise=0.1))) for seed in range(100))
    # Two systems, a test each, of which 0.5 % err.
    assert fired <= 3


def disturbed(repeats: range) -> ResultSet:
    """The hypervisor takes a fifth of the processors in these repeats of lmdb."""

    def spoil(trial: TrialResult) -> TrialResult:
        hit = trial.config["system"] == "lmdb" and trial.repeat in repeats
        return given(cpu__steal=0.2 if hit else 0.0)(trial)

    return experiment(spoil, REPEATS)


def test_a_host_that_is_disturbed_in_few_repeats_is_noted_and_in_many_is_suspect() -> None:
    few, many = judge(disturbed(range(1, 3))), judge(disturbed(range(1, 4)))
    assert (few.verdict, many.verdict) == (Verdict.VALID, Verdict.SUSPECT)
    assert len(said(few, Severity.NOTE, "interference")) == 2
    assert len(said(many, Severity.SUSPECT, "interference")) == 3
