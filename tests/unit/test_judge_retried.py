"""Failed attempts count: a system does not win by retries until it succeeds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge_support import REPEATS, Change, asking, experiment, failing, rocksdb, set_figures, sound
from loadstone.judge.checks.attempts import failures_reverse_claim
from loadstone.judge.decision_table import TABLE
from loadstone.judge.finding import Severity, Verdict, worst_verdict
from loadstone.judge.judge import judge_results
from loadstone.results.trial_result import TrialResult

INFINITY = float("inf")


def spread(failures: int) -> Change:
    """Distributes this many failed attempts over the trials of lmdb, which is the faster side."""

    def change_trial(trial: TrialResult) -> TrialResult:
        if trial.config["system"] != "lmdb":
            return trial
        here = failures // REPEATS + (trial.repeat <= failures % REPEATS)
        return replace(trial, failures=("crashed",) * here)

    return change_trial


def test_without_failures_the_faster_one_wins() -> None:
    assert [
        comparison.claim for comparison in judge_results(experiment()).comparisons if comparison.metric == "throughput"
    ] == ["better"]


def test_six_successes_after_nine_crashes_do_not_win() -> None:
    judged = judge_results(experiment(spread(9)))
    assert {comparison.claim for comparison in judged.comparisons} <= {"refused", "none", "impossible"}
    (throughput,) = [comparison for comparison in judged.comparisons if comparison.metric == "throughput"]
    assert worst_verdict(throughput.findings) == Verdict.INVALID
    assert "attempts failed: 0 of rocksdb, 9 of lmdb" in throughput.findings[-1].message
    assert [row.name for row in throughput.scenarios if row.decides] == ["failures as the worst figure"]
    (ranked,) = [
        comparison
        for comparison in judge_results(experiment(spread(9)), rank_invalid=True).comparisons
        if comparison.metric == "throughput"
    ]
    assert ranked.claim == "better"


def test_decision_table_states_the_claim_lost_by_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "failures", replace(TABLE["failures"], difference="none", severity=Severity.SUSPECT))
    (throughput,) = [
        comparison
        for comparison in judge_results(experiment(spread(9))).comparisons
        if comparison.metric == "throughput"
    ]
    assert (throughput.claim, throughput.findings[-1].severity) == ("none", Severity.SUSPECT)


def test_one_failure_does_not_cost_a_clear_answer() -> None:
    (throughput,) = [
        comparison
        for comparison in judge_results(experiment(spread(1))).comparisons
        if comparison.metric == "throughput"
    ]
    assert throughput.claim == "better"
    assert worst_verdict(throughput.findings) == Verdict.SUSPECT


def test_failures_of_the_slower_side_only_confirm_it() -> None:
    (throughput,) = [
        comparison
        for comparison in judge_results(experiment(rocksdb(failing("crashed")))).comparisons
        if comparison.metric == "throughput"
    ]
    assert throughput.claim == "better"


def test_latencies_are_infinite_where_an_attempt_failed() -> None:
    question = asking(metrics=("throughput", "read.p99"))
    faster = experiment(
        lambda trial: set_figures(read__p99=1e7)(trial) if trial.config["system"] == "lmdb" else trial,
        question=question,
    )
    claims = {comparison.metric: comparison.claim for comparison in judge_results(faster).comparisons}
    assert claims["read.p99"] == "better"
    failed = experiment(
        lambda trial: spread(9)(set_figures(read__p99=1e7)(trial) if trial.config["system"] == "lmdb" else trial),
        question=question,
    )
    assert {comparison.metric: comparison.claim for comparison in judge_results(failed).comparisons}[
        "read.p99"
    ] == "refused"


@pytest.mark.parametrize(
    ("failures", "reversed_order"), [((0, 1), False), ((0, 2), True), ((6, 6), True), ((9, 0), False)]
)
def test_the_claim_falls_by_rank_or_by_median(failures: tuple[int, int], reversed_order: bool) -> None:
    slow, fast = [100.0 + i for i in range(6)], [150.0 + i for i in range(6)]
    assert failures_reverse_claim(slow, fast, failures, 0) is reversed_order
    assert failures_reverse_claim(fast, slow, failures, INFINITY) is reversed_order


def test_a_sound_trial_has_no_failures() -> None:
    assert (sound().attempt, sound().failures) == (1, ())


def test_trial_without_success_is_a_failure() -> None:
    # Two of eight trials have no figures; with `rank_invalid` the remaining trials are compared.
    def change_trial(trial: TrialResult) -> TrialResult:
        if trial.config["system"] != "lmdb" or trial.repeat > 2:
            return trial
        return replace(trial, end="failed", values={}, failures=("crashed", "crashed"))

    result = experiment(change_trial, repeats=8)
    (throughput,) = [
        comparison for comparison in judge_results(result).comparisons if comparison.metric == "throughput"
    ]
    assert throughput.claim == "refused"
    (ranked,) = [
        comparison
        for comparison in judge_results(result, rank_invalid=True).comparisons
        if comparison.metric == "throughput"
    ]
    assert "attempts failed: 0 of rocksdb, 6 of lmdb" in ranked.findings[-1].message
