"""The compared pairs, the permitted claims, and the answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from judge_support import Change, asking, experiment, facts, rocksdb, set_figures, sound, value
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Claim, Comparison
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Direction, better_direction


def single_comparison(results: ResultSet, metric: str = "throughput", rank_invalid: bool = False) -> Comparison:
    """The one comparison by a metric."""
    (rows,) = [
        comparison
        for comparison in judge_results(results, rank_invalid=rank_invalid).comparisons
        if comparison.metric == metric
    ]
    return rows


def faster(factor: float, noise: float = 0.0) -> Change:
    """lmdb at `factor` times rocksdb's throughput, with noise that alternates by block and affects lmdb only."""

    def change_trial(trial: TrialResult) -> TrialResult:
        lmdb = trial.config["system"] == "lmdb"
        off = noise * (-1) ** trial.repeat + 1e-7 * trial.repeat if lmdb else 0.001 * trial.repeat
        speed = (factor if lmdb else 1) * (1 + off)
        return set_figures(throughput=1000 * speed, all__mean=9.8e6 / speed, read__mean=9.8e6 / speed)(trial)

    return change_trial


@pytest.mark.parametrize(
    ("factor", "noise", "metric", "claim"),
    [
        (1.3, 0.0, "throughput", "better"),
        (0.7, 0.0, "throughput", "worse"),
        (1.0, 0.05, "throughput", "none"),
        (1.3, 0.0, "all.mean", "better"),
        (0.7, 0.0, "all.mean", "worse"),
        # A higher number of operations is neither better nor worse.
        (1.3, 0.0, "operations", "descriptive"),
    ],
)
def test_claim_follows_evidence_and_the_better_direction(
    factor: float, noise: float, metric: str, claim: Claim
) -> None:
    results = experiment(faster(factor, noise), question=asking(metrics=(metric,)))
    result = single_comparison(results, metric)
    assert result.claim == claim
    assert result.test.endswith("n=6")
    assert result.verdict == Verdict.VALID


@pytest.mark.parametrize(
    ("metric", "unit", "direction"),
    [
        ("steps", "op/s", "higher"),
        ("steps", "ns", "lower"),
        ("steps", "B", "lower"),
        # A higher number of hits may be better, a higher number of evictions worse.
        ("steps", "share", None),
        ("steps", "operations", None),
        ("read.errors", "share", "lower"),
    ],
)
def test_unit_of_an_unknown_metric_gives_its_direction(metric: str, unit: str, direction: Direction | None) -> None:
    assert better_direction(metric, unit) == direction


def test_impossible_claims_leave_the_correction_unchanged() -> None:
    alone = single_comparison(experiment(question=asking(metrics=("throughput",))))
    beside = single_comparison(experiment(question=asking(metrics=("throughput", "operations", "runtime"))))
    assert alone.p_adjusted == alone.p == beside.p_adjusted
    # Only the first metric is confirmatory: its p value is not corrected. The p values of other metrics are.
    first, more = judge_results(experiment(question=asking(metrics=("throughput", "all.mean")))).comparisons
    assert (first.exploratory, first.p_adjusted) == (False, alone.p)
    assert more.exploratory
    assert more.p_adjusted is not None
    assert more.p is not None
    assert more.p_adjusted > more.p


def test_blocks_use_paired_tests_and_runs_rank_tests() -> None:
    within, between = single_comparison(experiment()), single_comparison(experiment(interleaved=False))
    assert within.test.startswith("paired t test on logarithms within blocks")
    assert between.test.startswith("Mann–Whitney test")
    assert [finding.check for finding in between.findings] == ["sides-differ"] * 2
    assert within.ratio.value == pytest.approx(4 / 3, rel=0.01)
    assert within.effect == between.effect == 1


def test_blocks_pair_repeats_of_one_number() -> None:
    # Each block drifts by 10 % from its predecessor; within blocks lmdb is 2 % faster.
    def drift(trial: TrialResult) -> TrialResult:
        noise = 1 + 0.001 * (trial.repeat % 2)
        speed = 1.1**trial.repeat * (1.02 * noise if trial.config["system"] == "lmdb" else 1)
        return set_figures(throughput=1000 * speed, all__mean=9.8e6 / speed)(trial)

    assert single_comparison(experiment(drift)).claim == "better"
    assert single_comparison(experiment(drift, interleaved=False)).claim == "none"


@pytest.mark.parametrize("repeats", [1, 3, 5])
def test_below_six_repeats_a_ratio_has_no_claim(repeats: int) -> None:
    result = single_comparison(experiment(repeats=repeats))
    assert result.claim == "impossible"
    assert result.ratio.value == pytest.approx(4 / 3, rel=0.01)
    assert (result.ratio.low, result.p, result.p_adjusted) == (None, None, None)


def test_invalid_side_is_ranked_only_on_request() -> None:
    results = experiment(lambda trial: set_figures(wrong=1)(trial) if trial.trial == "lmdb-4" else trial)
    refused = single_comparison(results)
    assert (refused.claim, refused.p, refused.verdict) == ("refused", None, Verdict.INVALID)
    ranked = single_comparison(results, rank_invalid=True)
    assert (ranked.claim, ranked.verdict) == ("better", Verdict.INVALID)


def test_unlike_promises_are_not_ranked() -> None:
    assert single_comparison(experiment(rocksdb(facts(durability="device")))).claim == "refused"


@pytest.mark.parametrize(("by", "claim"), [("cl", "better"), ("system,cl", "better"), ("system", "refused")])
def test_changed_question_excludes_consequences_of_its_dimension(by: str, claim: Claim) -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        level, copies = ("ONE", 1) if trial.config["system"] == "lmdb" else ("QUORUM", 2)
        retained = facts(consistency=f"read {level}", replication_acknowledged=copies)(trial)
        return replace(retained, config={by: level})

    question = asking(by=by, metrics=("throughput",), guarantees={"cl": ("consistency",)})
    assert single_comparison(experiment(change_trial, question=question)).claim == claim


def test_setting_that_a_compared_replication_changes_is_allowed() -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        copies = 1 if trial.config["system"] == "lmdb" else 3
        retained = facts(replication=copies)(trial)
        settings: dict[str, str | int | float | bool] = {
            "store.dfs.replication": str(copies),
            "work.job.memory_bytes": 11_700_000_000 + trial.repeat * 10**8,
        }
        return replace(retained, config={"replication": copies}, requested=settings)

    question = asking(by="replication", metrics=("throughput",), guarantees={"replication": ("replication",)})
    result = single_comparison(experiment(change_trial, question=question))
    assert (result.claim, result.verdict) == ("better", Verdict.VALID)


def test_a_withheld_figure_is_not_compared() -> None:
    results = experiment(set_figures(n=9_999, read__p99__9=5e7), question=asking(metrics=("throughput", "read.p99.9")))
    judgement = judge_results(results)
    assert [comparison.metric for comparison in judgement.comparisons] == ["throughput"]
    cell = judgement.cells[judgement.comparisons[0].contender.variant, "read.p99.9"]
    assert cell.withheld == "fewer than 10 of 9,999 operations exceed p99.9"


def test_holm_corrects_over_all_comparisons_that_were_tested() -> None:
    results = experiment(question=asking(metrics=("throughput", "all.mean", "read.mean")))
    comparisons = judge_results(results).comparisons
    assert len(comparisons) == 3
    for comparison in comparisons:
        assert comparison.p is not None
        assert comparison.p_adjusted is not None
    # Exploratory claims are corrected for all tests, including the first.
    assert min(comparison.p_adjusted or 1 for comparison in comparisons[1:]) == pytest.approx(
        3 * min(comparison.p or 1 for comparison in comparisons)
    )


def test_zeros_are_compared_without_a_ratio() -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        return set_figures(device__waste=trial.repeat if trial.config["system"] == "rocksdb" else 0)(trial)

    result = single_comparison(experiment(change_trial, question=asking(metrics=("device.waste",))), "device.waste")
    assert math.isnan(result.ratio.value)
    assert result.claim == "better"


def variants(*configs: Mapping[str, str | int]) -> ResultSet:
    """Six sound repeats of each variant."""
    trials = [
        replace(sound(repeat=repeat), trial=f"{number}-{repeat}", config=config)
        for repeat in range(1, 7)
        for number, config in enumerate(configs)
    ]
    return ResultSet("crafted", trials, interleaved=True)


@pytest.mark.parametrize(
    ("configs", "question", "expected"),
    [
        ([{"cache": 1, "file": "a"}, {"cache": 2, "file": "a"}], Question(), ("cache", 1, [2])),
        (
            [{"cache": 1, "system": "x"}, {"cache": 1, "system": "y"}, {"cache": 2, "system": "x"}],
            Question(),
            ("system", "x", ["y"]),
        ),
        ([{"cache": 1, "page": 4}, {"cache": 2, "page": 4}, {"cache": 1, "page": 8}], Question(), ("cache", 1, [2])),
        ([{"cache": 1}, {"cache": 2}, {"cache": 3}], Question(by="cache", baseline=2), ("cache", 2, [1, 3])),
        # A command line contains only strings.
        ([{"cache": 1}, {"cache": 2}], Question(by="cache", baseline="2"), ("cache", 2, [1])),
        ([{"cache": 1}], Question(), None),
    ],
)
def test_what_is_compared_with_what(
    configs: list[dict[str, str | int]], question: Question, expected: tuple[str, str | int, list[str | int]] | None
) -> None:
    comparisons = judge_results(
        replace(variants(*configs), question=replace(question, metrics=("throughput",)))
    ).comparisons
    if expected is None:
        assert comparisons == []
        return
    by, baseline, contenders = expected
    assert {comparison.by for comparison in comparisons} == {by}
    assert {dict(comparison.baseline.variant)[by] for comparison in comparisons} == {baseline}
    assert [dict(comparison.contender.variant)[by] for comparison in comparisons] == contenders


def test_contexts_are_compared_apart() -> None:
    systems, counts = ("rocksdb", "lmdb"), (1, 2)
    configs: list[dict[str, str | int]] = [
        {"system": comparison, "clients": count} for comparison in systems for count in counts
    ]
    results = variants(*configs)
    rows = [comparison for comparison in judge_results(results).comparisons if comparison.metric == "throughput"]
    assert [comparison.context for comparison in rows] == [(("clients", 1),), (("clients", 2),)]


def test_higher_is_better_metrics_replace_missing_usual_ones() -> None:
    results = experiment(
        lambda trial: replace(trial, values={"read.bandwidth": value("read.bandwidth", 1e8 + trial.repeat)})
    )
    assert {comparison.metric for comparison in judge_results(results).comparisons} == {"read.bandwidth"}


def test_cells_are_made_when_asked_for() -> None:
    cells = judge_results(experiment()).cells
    key = ((("system", "lmdb"),), "read.p99")
    assert key in cells
    assert cells[key] is cells[key]
    assert [repeat for repeat, _ in cells[key].samples] == [1, 2, 3, 4, 5, 6]
    assert (key[0], "write.p99") not in cells
    with pytest.raises(KeyError):
        cells[key[0], "write.p99"]
    assert len(list(cells)) == len(cells) == 2 * len(experiment().trials[0].values)
