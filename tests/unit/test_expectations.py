"""Expectations: true, false or undecided by the interval, and never by a difference between days."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from judge_support import FACTS, SOUND, make_series, value
from loadstone.format.wording import estimate_text
from loadstone.judge.figures import lower_name
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Expectation
from loadstone.report.expectations import describe, describe_figure
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.union import join_results
from loadstone.search.objective import EQUAL_HINT, Term, parse_expectations
from loadstone.statistics.percentile import Bound
from statistics_support import chance, count_experiments

HOUR_NS = 3_600_000_000_000
# Facts that two runs must share to be comparable.
LOAD: Mapping[str, Any] = {
    **{"work": "ycsb", "records": 1000, "record_bytes": 1000, "mix": "read 1", "distribution": "zipfian"},
    "version": "1",
}
EXPERIMENTS = count_experiments(1_000)
# The variation of one build between days, and between repeats of one run.
BETWEEN_DAYS, WITHIN = 0.04, 0.05


def trial(system: str, repeat: int, figures: Mapping[str, float], hour: float = 0.0, **more: Any) -> TrialResult:
    """A sound trial that began at this hour, with some figures replaced."""
    values = {name: value(name, number) for name, number in {**SOUND, **figures}.items()}
    order = 2 * repeat + (system != "old")
    # A trial lasts for 100 s, so trials that begin every two minutes do not overlap.
    start = int((hour * 60 + 2 * order) * HOUR_NS / 60)
    name = f"{system}-{repeat}"
    return TrialResult(
        name,
        {"system": system},
        repeat,
        values,
        10,
        "closed",
        {**FACTS, **LOAD},
        order=order,
        start_unix_ns=start,
        **more,
    )


def make_run(sides: Mapping[str, Sequence[float]], *expected: str, hour: float = 0.0, **more: Any) -> ResultSet:
    """A run whose systems have these throughputs, interleaved."""
    trials = [
        trial(system, repeat, {"throughput": rate, "operations": rate * 100}, hour)
        for system, rates in sides.items()
        for repeat, rate in enumerate(rates, 1)
    ]
    trials.sort(key=lambda item: item.order or 0)
    by, baseline = ("system", next(iter(sides))) if len(sides) > 1 else (None, None)
    question = Question(by=by, baseline=baseline, metrics=("throughput", "read.p99"), expect=expected)
    return ResultSet(f"run-{hour:g}", trials, question, interleaved=True, **more)


def answers(results: ResultSet) -> list[str]:
    """The answers of all expectations, in order."""
    return [item.answer for item in judge_results(results).expectations]


def take_only(results: ResultSet) -> Expectation:
    """The single expectation."""
    (expectation,) = judge_results(results).expectations
    return expectation


def scatter(level: float, share: float = 0.01, n: int = 6, seed: int = 1) -> list[float]:
    """Repeats around a level."""
    return [float(item) for item in level * np.random.default_rng(seed).lognormal(0, share, n)]


def change_trials(results: ResultSet, *trials: str, **more: Any) -> ResultSet:
    """The results with some fields of trials replaced."""
    return replace(results, trials=[replace(item, **more) if item.trial in trials else item for item in results.trials])


def bound_trials(results: ResultSet, bound: Bound, number: int) -> ResultSet:
    """The results with the p99 of the first `number` trials turned into a bound."""
    trials = [
        replace(item, values={**item.values, "read.p99": replace(item.values["read.p99"], bound=bound)})
        if at < number
        else item
        for at, item in enumerate(results.trials)
    ]
    return replace(results, trials=trials)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("throughput >= 0.95x", Term("throughput", ">=", 0.95, is_ratio=True)),
        ("read.p99 <= 1.1 ×", Term("read.p99", "<=", 1.1, is_ratio=True)),
        ("throughput > 12,000 op/s", Term("throughput", ">", 12_000)),
        ("throughput > 12k", Term("throughput", ">", 12_000)),
        ("throughput > 12k ops/sec", Term("throughput", ">", 12_000)),
        ("time < 1m30s", Term("time", "<", 90e9)),
        ("memory_max < 1.5 MiB", Term("memory_max", "<", 1.5 * 1024**2)),
        ("ledger.lost == 0", Term("ledger.lost", "==", 0)),
        ("write.bandwidth >= 100 MB/s", Term("write.bandwidth", ">=", 100e6)),
        ("cpu.engine_share < 50%", Term("cpu.engine_share", "<", 0.5)),
        ("p99 < 10ms", Term("all.p99", "<", 10e6)),
        ("errors = 0", Term("errors", "==", 0)),
    ],
)
def test_grammar_includes_ratios_and_rates(text: str, term: Term) -> None:
    assert parse_expectations(text) == [(text, term)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "p99 < 10",
        "throughput >= 95%",
        "load.throughput < 2s",
        "time < 2 parsecs",
        "errors < nan",
        "errors < inf",
        "throughput >= x",
        "throughput > 1e999x0",
        "a b > 1",
    ],
)
def test_invalid_expectation_is_refused_with_hint(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_expectations(text)
    assert len(error.value.args) == 2


def test_estimate_cannot_equal_a_number() -> None:
    for text in ("throughput == 1x", "throughput == 5", "read.p99 == 10ms", "errors == 1%", "time == 2s"):
        with pytest.raises(ValueError, match="can never be decided") as error:
            parse_expectations(text)
        assert error.value.args[1] == EQUAL_HINT


def test_interval_decides_figure_of_each_variant() -> None:
    results = make_run({"old": scatter(1000), "new": scatter(900)}, "throughput > 950", "throughput > 1000")
    assert answers(results) == ["true", "false", "undecided", "false"]
    undecided = judge_results(results).expectations[2]
    assert undecided.remedy.startswith(("set `repeats: ", "more than"))
    assert "old" in undecided.of


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("time < 2s", "true"),
        ("time < 2", "undecided"),
        ("runtime > 1", "undecided"),
        ("runtime > 1s", "true"),
        ("cpu.steal < 5%", "true"),
        ("cpu.steal < 5", "undecided"),
        ("cpu.engine < 90%", "undecided"),
        ("throughput > 10 MB/s", "undecided"),
        ("device.written_per_operation < 2 kB", "true"),
    ],
)
def test_bound_in_another_unit_is_undecided(condition: str, answer: str) -> None:
    results = make_run({"a": scatter(1000)}, condition)
    units = {"time": "ns", "cpu.steal": "share", "device.written_per_operation": "B/op", "cpu.engine": "processors"}
    figures = {name: replace(value(name, 0.01), unit=unit) for name, unit in units.items()}
    results = replace(results, trials=[replace(item, values={**item.values, **figures}) for item in results.trials])
    assert take_only(results).answer == answer


def test_every_trial_must_meet_a_count() -> None:
    results = make_run({"a": scatter(1000, n=12)}, "ledger.lost == 0", "ledger.lost < 1", "ledger.acknowledged > 5")
    counts = {"ledger.lost": 0, "ledger.lost_allowed": 0, "ledger.undecided": 0, "ledger.acknowledged": 9}
    figures = {name: replace(value(name, number), unit="operations") for name, number in counts.items()}
    results = replace(results, trials=[replace(item, values={**item.values, **figures}) for item in results.trials])
    assert answers(results) == ["true"] * 3
    last = results.trials[-1].trial
    # A loss counts even if the guarantee allows it.
    for name, answer in (("ledger.lost", "false"), ("ledger.lost_allowed", "false"), ("ledger.undecided", "undecided")):
        damaged = {**results.trials[-1].values, name: replace(figures[name], value=1)}
        assert answers(change_trials(results, last, values=damaged))[:2] == [answer, answer]
    assert describe(judge_results(results).expectations[2]).endswith("9 operations in every trial")


def test_fewer_than_six_repeats_decide_nothing() -> None:
    expectation = take_only(make_run({"a": scatter(1000, n=5)}, "throughput > 10"))
    assert (expectation.answer, expectation.remedy) == ("undecided", "set `repeats: 6`")


def test_separate_runs_have_no_key_for_repeats() -> None:
    results = replace(make_run({"a": scatter(1000, n=5)}, "throughput > 10", "throughput >= 0.95x"), interleaved=False)
    assert [item.remedy for item in judge_results(results).expectations] == [
        "use at least 6 runs",
        "name the results of both builds: `loadstone compare OLD NEW --expect 'throughput >= 0.95x'`",
    ]


@pytest.mark.parametrize("bound", ["0.95", ".9", "1.05"])
def test_ratio_without_x_is_refused(bound: str) -> None:
    with pytest.raises(ValueError, match="throughput cannot be compared with"):
        parse_expectations(f"throughput >= {bound}")


def test_unmeasured_figure_is_undecided() -> None:
    assert take_only(make_run({"a": scatter(1000)}, "scan.p99 < 1s")).why == "scan.p99 was not measured"


def test_planned_variant_without_trials_is_undecided() -> None:
    results = make_run(
        {"a": scatter(1000)}, "throughput > 10", planned={"a-1": {"system": "a"}, "b-1": {"system": "b"}}
    )
    assert answers(results) == ["true", "undecided"]


def test_failed_trials_have_the_worst_figure() -> None:
    results = make_run({"a": scatter(1000)}, "throughput > 10", "read.p99 < 10s", "errors == 0")
    failed = change_trials(results, *(f"a-{n}" for n in range(1, 7)), end="failed", values={})
    assert "true" not in answers(failed)
    assert answers(failed)[2] == "false"


def test_failed_operations_make_percentile_infinite() -> None:
    results = make_run({"a": scatter(1000)}, "read.p99 < 10s")
    assert answers(results) == ["true"]
    assert answers(bound_trials(results, "failed", 6)) == ["false"]
    assert answers(bound_trials(results, "failed", 1)) == ["undecided"]


def test_lower_bound_is_never_below_a_limit() -> None:
    results = make_run({"a": scatter(1000)}, "read.p99 < 10s", "read.p99 < 1ms")
    assert answers(bound_trials(results, "at_least", 6)) == ["undecided", "false"]


@pytest.mark.parametrize(("failed", "censored", "answer"), [(0, 0, "true"), (1, 0, "false"), (0, 3, "undecided")])
def test_errors_are_counted_and_not_estimated(failed: int, censored: int, answer: str) -> None:
    results = make_run({"a": scatter(1000, n=2)}, "errors == 0")
    values = {**results.trials[0].values, "errors": value("errors", failed), "censored": value("censored", censored)}
    assert answers(change_trials(results, "a-2", values=values)) == [answer]


@pytest.mark.parametrize(("censored", "answer"), [(0, "true"), (99_000, "undecided")])
def test_unanswered_operations_may_have_failed(censored: int, answer: str) -> None:
    results = make_run({"a": scatter(1000)}, "errors < 0.1%")
    trials = [replace(item, values={**item.values, "censored": value("censored", censored)}) for item in results.trials]
    assert answers(replace(results, trials=trials)) == [answer]


def test_expectation_states_the_figure_of_the_table() -> None:
    results = bound_trials(make_run({"a": scatter(1000)}, "read.p99 < 10s"), "at_least", 2)
    judgement = judge_results(results)
    (expectation,) = judgement.expectations
    cell = judgement.cells[next(iter(results.variants)), "read.p99"]
    assert expectation.estimate is not None
    assert (expectation.estimate.value, expectation.estimate.n) == (cell.estimate.value, 6)
    assert (expectation.bound, judgement.output_bound(cell)) == ("at_least", "at_least")
    text = describe_figure(expectation)
    assert text.startswith(f"{estimate_text(cell.estimate, cell.unit, 'at_least')} (at least ")


def test_drift_widens_a_ratio_once() -> None:
    results = make_run({"old": scatter(1000), "new": scatter(1300, seed=2)}, "throughput >= 1x")
    drifting = make_series((1000.0,) * 12 + (930.0,) * 12)
    judgement = judge_results(replace(results, series=lambda name: drifting if name == "old-1" else None))
    comparison = next(item for item in judgement.comparisons if item.metric == "throughput")
    assert comparison.scenarios[-1].name == "drift at either extreme"
    (expectation,) = judgement.expectations
    assert expectation.estimate is not None
    assert (expectation.estimate.low, expectation.estimate.high) == (comparison.ratio.low, comparison.ratio.high)


def test_drift_of_unknown_size_names_its_finding() -> None:
    results = make_run({"old": scatter(1000), "new": scatter(1000, seed=2)}, "throughput >= 0.9x", "throughput > 1")
    stalled = make_series((1000.0,) * 12 + (0.0,) * 12)
    judgement = judge_results(replace(results, series=lambda _: stalled))
    assert [item.answer for item in judgement.expectations] == ["undecided"] * 3
    hints = {finding.hint for finding in judgement.all_findings if math.isinf(finding.effect.drifts)}
    assert hints
    assert {item.remedy for item in judgement.expectations} <= hints
    (comparison,) = [item for item in judgement.comparisons if item.metric == "throughput"]
    assert judgement.expectations[0].estimate == comparison.ratio


# All latencies are 1 s, including and excluding the load generator's lateness.
LATENCIES = [name for name in SOUND if name.startswith(("read.", "all.", "update."))]
OVERLOADED = {name: value(name, 1e9) for name in (*LATENCIES, *map(lower_name, LATENCIES))}


@pytest.mark.parametrize(
    ("condition", "late", "answer"),
    [("read.p99 < 5ms", 0, "false"), ("read.p99 < 60s", 0, "undecided"), ("read.p99 < 5ms", 50_000, "undecided")],
)
def test_overloaded_system_violates_a_bound(condition: str, late: int, answer: str) -> None:
    results = make_run({"a": scatter(1000)}, condition)
    trials = [
        replace(
            item,
            loop="open",
            facts={**item.facts, "target": 2000},
            values={
                **item.values,
                "censored": value("censored", 100_000),
                "late.generator": value("late.generator", late),
                **OVERLOADED,
            },
        )
        for item in results.trials
    ]
    judgement = judge_results(replace(results, trials=trials))
    (expectation,) = judgement.expectations
    assert expectation.answer == answer
    assert "rate-not-held" in expectation.why or late


def test_interval_that_allows_for_drift_is_explained() -> None:
    results = make_run({"a": scatter(1000)}, "throughput > 600")
    falling = make_series((1000.0,) * 12 + (700.0,) * 12)
    (expectation,) = judge_results(replace(results, series=lambda _: falling)).expectations
    assert "the interval allows for a drift of 1." in expectation.why


def test_errors_that_nobody_counted_are_undecided() -> None:
    results = make_run({"a": scatter(1000)}, "errors == 0")
    values = {name: item for name, item in results.trials[0].values.items() if name != "errors"}
    assert answers(change_trials(results, "a-2", values=values)) == ["undecided"]


def test_interleaved_ratio_is_decided() -> None:
    sides = {"old": scatter(1000), "new": scatter(900, seed=2)}
    results = make_run(sides, "throughput >= 0.95x", "throughput >= 0.8x", "throughput >= 0.9x")
    assert answers(results) == ["false", "true", "undecided"]
    assert judge_results(results).expectations[0].of == "new ÷ old"


def test_single_run_of_each_build_is_undecided() -> None:
    old, new = make_run({"a": scatter(1000)}), make_run({"a": scatter(500)}, hour=2)
    expectation = take_only(expecting(join_results([old, new]), "throughput >= 0.95x"))
    assert expectation.answer == "undecided"
    assert "1 run of" in expectation.why
    assert "interleaves" in expectation.remedy


def test_sides_without_a_common_variant_get_a_remedy() -> None:
    old, new = (
        make_run({name: scatter(1000) for name in pair}, hour=len(pair[0])) for pair in (("a", "b"), ("cc", "d"))
    )
    joined = join_results([old, new])
    expectation = take_only(expecting(joined, "throughput >= 0.95x"))
    assert (expectation.answer, expectation.why) == ("undecided", "there is no baseline to compare with")
    assert expectation.remedy.startswith("name results with the same variants")


def expecting(results: ResultSet, *expected: str) -> ResultSet:
    """The results with their expectations replaced by these."""
    return replace(results, question=replace(results.question, expect=expected))


def runs(level: float, first_hour: float, step: float = 2.0, n: int = 6, seed: int = 1) -> list[ResultSet]:
    """Several runs of one build, each at another hour."""
    levels = scatter(level, 0.005, n, seed)
    return [
        make_run({"a": scatter(item, seed=int(hour))}, hour=hour)
        for hour, item in ((first_hour + step * at, item) for at, item in enumerate(levels))
    ]


def test_six_alternating_runs_decide() -> None:
    old, new = runs(1000, 1), runs(900, 2, seed=3)
    assert answers(expecting(join_results([old, new]), "throughput >= 0.95x")) == ["false"]
    assert answers(expecting(join_results([old, new[:5]]), "throughput >= 0.95x")) == ["undecided"]
    apart = expecting(join_results([old, runs(900, 20, seed=3)]), "throughput >= 0.95x")
    assert take_only(apart).why == "the runs of both sides did not alternate"
    untimed = change_trials(apart, *(item.trial for item in apart.trials), start_unix_ns=None)
    assert take_only(untimed).why.startswith("the start times of the runs are unknown")


def test_copies_of_a_run_are_one_run() -> None:
    old, new = runs(1000, 1), runs(900, 2)
    twice = expecting(join_results([[*old[:3], *old[:3]], [*new[:3], *new[:3]]]), "throughput >= 0.95x")
    assert take_only(twice).answer == "undecided"


def test_sides_on_different_hosts_are_undecided() -> None:
    results = make_run({"old": scatter(1000), "new": scatter(900, seed=2)}, "throughput >= 0.95x")
    foreign = change_trials(results, *(f"new-{n}" for n in range(1, 7)), facts={**FACTS, **LOAD, "kernel": "6.9.0"})
    assert take_only(foreign).answer == "undecided"
    assert "kernel" in take_only(foreign).why


def test_failed_attempts_of_new_build_pass_nothing() -> None:
    results = make_run({"old": scatter(1000), "new": scatter(1100, seed=2)}, "throughput >= 0.95x")
    assert answers(results) == ["true"]
    assert answers(change_trials(results, "new-3", failures=("crashed",))) == ["undecided"]
    assert answers(change_trials(results, "old-3", failures=("crashed",))) == ["true"]


def test_ratio_of_another_figure_leaves_comparisons_alone() -> None:
    sides = {"old": scatter(1000), "new": scatter(900, seed=2)}
    plain, expected = judge_results(make_run(sides)), judge_results(make_run(sides, "read.p50 <= 1.2x"))
    assert [item.answer for item in expected.expectations] == ["true"]
    assert [item.metric for item in expected.comparisons] == [item.metric for item in plain.comparisons]


def test_ratio_of_zeros_is_undecided() -> None:
    expectation = take_only(make_run({"old": scatter(1000), "new": scatter(900, seed=2)}, "errors <= 1x"))
    assert expectation.why == "errors is 0 in some repeats, which have no ratio"


def test_ratio_without_baseline_is_undecided() -> None:
    expectation = take_only(make_run({"a": scatter(1000)}, "throughput >= 0.95x"))
    assert expectation.why == "there is no baseline to compare with"


def share_false(ratio: float, expected: Sequence[str], *, metrics: Sequence[str] = ("throughput",)) -> float:
    """The share of runs with a false expectation, for a build at this ratio to its baseline; both ran on one day."""
    random, failed = np.random.default_rng([42, int(ratio * 1000), len(expected)]), 0
    for _ in range(EXPERIMENTS):
        day = float(random.lognormal(0, BETWEEN_DAYS))
        levels = {"old": 1000 * day, "new": 1000 * day * ratio}
        results = make_run(
            {name: [*(level * random.lognormal(0, WITHIN, 6))] for name, level in levels.items()}, *expected
        )
        failed += "false" in answers(results)
    print(f"ratio {ratio}, {len(expected)} expectations: {failed / EXPERIMENTS:.2%} fail")
    return failed / EXPERIMENTS


@pytest.mark.parametrize(
    "expected", [("throughput >= 1x",), ("throughput >= 1x", "throughput >= 1.0x", "throughput > 1x")]
)
def test_equal_builds_seldom_fail(expected: tuple[str, ...]) -> None:
    assert share_false(1.0, expected) <= 0.025 + chance(0.025, EXPERIMENTS)


def test_slowdown_of_a_tenth_is_found() -> None:
    assert share_false(0.9, ["throughput >= 1x"]) >= 0.75 - chance(0.75, EXPERIMENTS)


def test_equal_builds_of_alternating_runs_seldom_fail() -> None:
    random, failed = np.random.default_rng(43), 0
    number = max(EXPERIMENTS // 10, 20)
    for _ in range(number):
        sides = []
        for first in (1, 2):
            days = random.lognormal(0, BETWEEN_DAYS, 6)
            sides.append(
                [
                    make_run({"a": [*(1000 * day * random.lognormal(0, WITHIN, 3))]}, hour=first + 2 * at)
                    for at, day in enumerate(days)
                ]
            )
        failed += "false" in answers(expecting(join_results(sides), "throughput >= 1x", "throughput > 1x"))
    assert failed / number <= 0.025 + chance(0.025, number)


def test_days_decide_nothing_between_single_runs() -> None:
    random = np.random.default_rng(44)
    for _ in range(20):
        days = 1000 * random.lognormal(0, BETWEEN_DAYS, 2)
        old, new = (make_run({"a": scatter(day, 0.001)}, hour=at) for at, day in enumerate(days))
        assert answers(expecting(join_results([old, new]), "throughput >= 1x", "throughput <= 1x")) == ["undecided"] * 2


def test_measured_figures_have_finite_intervals() -> None:
    results = make_run({"a": scatter(1000)}, "throughput > 950")
    estimate = take_only(results).estimate
    assert estimate is not None
    assert estimate.low is not None
    assert math.isfinite(estimate.low)


def test_unreadable_condition_of_a_foreign_folder_is_undecided() -> None:
    results = make_run({"a": scatter(1000)}, "rubbish", "throughput > 1")
    assert answers(results) == ["undecided", "true"]
    assert judge_results(results).expectations[0].why.startswith("the condition cannot be read: ")
