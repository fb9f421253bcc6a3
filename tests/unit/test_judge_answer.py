"""The answer in one sentence, and the curve whose knee the answer may name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge_support import CHECKS, Change, asking, both, experiment, rocksdb, set_figures, sound, with_end
from known_truth_support import fail_share, simulate_results
from loadstone.judge.finding import Verdict
from loadstone.judge.judge import judge_results
from loadstone.judge.sweep import describe_range
from loadstone.results.result_set import Question, ResultSet, name_value
from loadstone.results.trial_result import TrialResult

# The crafted trials lack the figures of two checks.
COVERAGE = f"{CHECKS - 2} of {CHECKS} checks ran in full"


def answer(results: ResultSet) -> str:
    """The answer."""
    return judge_results(results).answer


def scale_speed(speed: float) -> Change:
    """Gives rocksdb this speed, as a multiple of its usual speed, with a little independent noise."""

    def change_trial(trial: TrialResult) -> TrialResult:
        own = speed * (1 + 0.002 * (trial.repeat % 3))
        return set_figures(throughput=1000 * own, all__mean=9.8e6 / own)(trial)

    return rocksdb(change_trial)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (
            experiment(),
            "lmdb holds 1.333× the throughput of rocksdb (95 % interval 1.329–1.337, n=6, valid)",
        ),
        (
            experiment(scale_speed(3)),
            "rocksdb holds 2.253× the throughput of lmdb (95 % interval 2.246–2.261, n=6, valid)",
        ),
        (
            experiment(question=asking(metrics=("all.mean",))),
            "mean latency is 25 % lower with lmdb than with rocksdb"
            " (7.35 ms against 9.80 ms, 95 % interval 24.8–25.2 %, n=6, valid)",
        ),
        (
            experiment(repeats=1),
            "throughput is 1,330 op/s with lmdb, 1,000 op/s with rocksdb (n=1: no interval, no claim possible, valid)",
        ),
        (
            replace(experiment(repeats=1), question=asking(baseline="lmdb")),
            "throughput is 1,000 op/s with rocksdb, 1,330 op/s with lmdb (n=1: no interval, no claim possible, valid)",
        ),
        (
            experiment(repeats=3),
            "throughput is 1,330 op/s with lmdb, 1,000 op/s with rocksdb (n=3: no interval, no claim possible, valid)",
        ),
        (
            experiment(rocksdb(set_figures(wrong=1))),
            "refused to rank lmdb and rocksdb: 1 of 50,000 values read differed from the values written (unverified)",
        ),
        (ResultSet("none", []), "nothing was measured"),
        (
            ResultSet("one", [sound()]),
            "throughput is 1,000 op/s (n=1: no interval)",
        ),
        (
            ResultSet("one", [sound(repeat=repeat) for repeat in range(1, 7)]),
            "throughput is 1,000 op/s (96.9 % interval 998 to 1,003 op/s, n=6)",
        ),
    ],
)
def test_the_answer_is_one_sentence_with_its_verdict(results: ResultSet, expected: str) -> None:
    assert answer(results) == expected.replace("valid)", f"valid; {COVERAGE})")


def test_missing_evidence_is_reported_with_its_interval() -> None:
    def change_trial(trial: TrialResult) -> TrialResult:
        speed = (1 + 0.02 * (-1) ** trial.repeat) if trial.config["system"] == "lmdb" else 1 + 0.001 * trial.repeat
        return set_figures(throughput=1000 * speed, all__mean=9.8e6 / speed)(trial)

    judgement = judge_results(experiment(change_trial))
    text = judgement.answer
    assert text.startswith(
        "undecided whether throughput differs between lmdb and rocksdb (ratio 0.996, 95 % interval 0."
    )
    assert "%" not in text.partition(" interval ")[2].partition(")")[0]
    assert text.endswith(f"n=6, valid; {COVERAGE})")
    # The difference that the repeats could detect has its own line.
    assert judgement.further == (
        "6 repeats can detect a difference of 3.1 % or more (80 % power);"
        " 24 repeats (4 times the run time) can detect 1.3 %",
    )


def test_refusal_over_single_trials_gives_the_necessary_repeats() -> None:
    def failing(*repeats: int) -> Change:
        return lambda trial: set_figures(errors=200 * (trial.config["system"] == "lmdb" and trial.repeat in repeats))(
            trial
        )

    assert answer(experiment(failing(3))).endswith(
        "(errors); 1 more repeat could decide the comparison if lmdb-3 were excluded"
    )
    assert answer(experiment(failing(2, 3))).endswith(
        "(errors); 2 more repeats could decide the comparison if lmdb-2, lmdb-3 were excluded"
    )
    # Repeats do not help if all trials of a side are affected.
    assert "could decide" not in answer(experiment(set_figures(wrong=5)))


def test_refusals_by_one_check_are_one_clause() -> None:
    def fail(trial: TrialResult) -> TrialResult:
        failures = " abcd".index(str(trial.config["workload"])) * 10_000 * (trial.config["system"] == "lmdb")
        return set_figures(errors=failures)(trial)

    results = vary_workload(4)
    judged = judge_results(replace(results, trials=[*map(fail, results.trials)]))
    assert judged.answer.count("operations failed") == 1
    assert "40,000 of 100,000 operations failed (40 %) (errors) (the worst of 4 contexts)" in judged.answer


def vary_workload(count: int) -> ResultSet:
    """Repeats the trials of rocksdb and lmdb for each of `count` workloads."""
    results = experiment()
    trials = [
        replace(trial, trial=f"{workload}-{trial.trial}", config={**trial.config, "workload": workload})
        for workload in "abcdef"[:count]
        for trial in results.trials
    ]
    return replace(results, trials=trials)


def test_a_few_contexts_are_listed_one_by_one() -> None:
    relation = "lmdb holds 1.333× the throughput of rocksdb (95 % interval 1.329–1.337, n=6, valid)"
    text = f"workload=a: {relation}; workload=b: {relation}"
    assert answer(vary_workload(2)) == text.replace("valid)", f"valid; {COVERAGE})")


def test_many_contexts_are_counted() -> None:
    assert answer(vary_workload(5)) == "throughput of lmdb against rocksdb in 5 contexts: better in all 5 (1.33×)"
    reversed_order = replace(vary_workload(5), question=asking(baseline="lmdb"))
    assert answer(reversed_order) == "throughput of rocksdb against lmdb in 5 contexts: worse in all 5 (25 % lower)"


def test_undecided_contexts_are_counted() -> None:
    results = vary_workload(5)
    noisy = [set_figures(throughput=1000 * (1 + 0.3 * (-1) ** trial.repeat))(trial) for trial in results.trials]
    mixed = [trial if trial.config["system"] == "lmdb" else noisy[at] for at, trial in enumerate(results.trials)]
    assert "undecided in all 5" in answer(replace(results, trials=mixed))


def test_plural_side_has_a_plural_verb() -> None:
    results = experiment(question=asking(by="clients", baseline=1))
    trials = [
        replace(trial, config={"clients": 4 if trial.config["system"] == "lmdb" else 1}) for trial in results.trials
    ]
    assert answer(replace(results, trials=trials)).startswith("4 clients hold 1.333× the throughput of 1 client")


def test_contexts_with_rates_above_capacity_are_counted() -> None:
    def overload(trial: TrialResult) -> TrialResult:
        if (trial.config["system"], trial.config["workload"]) not in (("lmdb", "a"), ("lmdb", "b"), ("rocksdb", "b")):
            return trial
        return replace(set_figures(due=100_000, censored=1_000)(trial), loop="open")

    result = vary_workload(5)
    text = answer(replace(result, trials=[overload(value) for value in result.trials]))
    assert "the rate is above the capacity of lmdb in 2" in text
    assert "the rate is above the capacity of rocksdb in 1" in text


def rank_systems(change: Change, *systems: str) -> ResultSet:
    """Six blocks of systems, each system slightly faster than the previous one; `change` applies to every trial."""
    trials = [
        change(replace(sound("rocksdb", repeat, 1 + 0.1 * i + 0.001 * i * repeat), config={"system": system}))
        for repeat in range(1, 7)
        for i, system in enumerate(systems)
    ]
    named = [replace(trial, trial=f"{trial.config['system']}-{trial.repeat}") for trial in trials]
    return ResultSet("crafted", named, asking(baseline="a", metrics=("throughput",)), interleaved=True)


def change_systems(wrong: dict[str, Change]) -> Change:
    """Applies the change in `wrong`, if any, to the trials of each system."""
    return lambda trial: wrong.get(str(trial.config["system"]), set_figures())(trial)


def test_refusals_of_several_contenders_have_separate_reasons() -> None:
    values = "5 of 50,000 values read differed from the values written (unverified)"
    result = answer(rank_systems(change_systems({"c": set_figures(wrong=5)}), "a", "b", "c"))
    assert result.startswith("b holds 1.103×")
    assert f"the throughput of a, c not ranked against a: {values} (" in result
    changes = {"b": set_figures(segments__lost=1), "c": set_figures(wrong=5), "d": set_figures(wrong=5)}
    assert answer(rank_systems(change_systems(changes), "a", "b", "c", "d")).startswith(
        f"b not ranked against a: segments lost: 1 of 4 (lost-segment), c and d not ranked against a: {values} ("
    )


def test_overloaded_contender_is_at_its_capacity() -> None:
    def set_rate(trial: TrialResult) -> TrialResult:
        censored = 1_000 if trial.config["system"] == "c" else 0
        return replace(set_figures(due=100_000, censored=censored)(trial), loop="open")

    result = answer(rank_systems(change_systems(dict.fromkeys("abc", set_rate)), "a", "b", "c"))
    assert "1.207× (1.203–1.211) as high with c" in result
    assert "; the rate is above the capacity of c (" in result


def sweep(saturation: float, change: Change | None = None, repeats: int = 4, collapse: float = 1e9) -> ResultSet:
    """One system with 1 to 64 clients that scales up to a limit, and drops by half beyond `collapse`."""
    trials = []
    for clients in (1, 2, 4, 8, 16, 32, 64):
        for repeat in range(1, repeats + 1):
            rate = 1000 * min(clients, saturation) * (0.99 + 0.005 * ((repeat + clients) % 4))
            rate /= 2 if clients > collapse else 1
            trial = set_figures(throughput=rate, all__mean=0.98e9 * clients / rate, without=("read.mean",))(sound())
            name = f"{clients}-{repeat}"
            trial = replace(
                trial, trial=name, repeat=repeat, clients=clients, config={"system": "lmdb", "clients": clients}
            )
            trials.append(trial if change is None else change(trial))
    return ResultSet("sweep", trials)


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_sweep_of_clients_names_its_knee(interleaved: bool) -> None:
    judgement = judge_results(replace(sweep(10), interleaved=interleaved))
    (curve,) = judgement.curves
    assert curve.context == (("system", "lmdb"),)
    assert list(curve.knee.loads) == [1, 2, 4, 8, 16, 32, 64]
    assert (curve.knee.lower, curve.knee.upper, curve.knee.collapse) == (8, 16, None)
    # A curve with a corner does not follow the scalability law.
    assert curve.law is None
    assert judgement.answer == "throughput levels off at 9,970 op/s; 95 % of that is reached between 8 and 16 clients"


def test_late_throughput_collapse_is_reported_with_the_knee() -> None:
    assert judge_results(sweep(10, collapse=32)).answer.endswith(
        " and 16 clients; throughput falls below that level again between 32 and 64 clients, to 4,990 op/s"
        " at 64 clients"
    )


def test_a_curve_that_still_rises_has_no_knee() -> None:
    (curve,) = judge_results(sweep(1000)).curves
    assert (curve.knee.upper, curve.knee.unclaimed) == (None, "rising")


@pytest.mark.parametrize(
    ("is_fixed_work", "messages"), [(True, []), (False, ["the windows of the loads last 5 to 80 min"])]
)
def test_unequal_windows_of_a_sweep_are_noted(is_fixed_work: bool, messages: list[str]) -> None:
    def lengthen(trial_of: TrialResult) -> TrialResult:
        seconds = 4800 if (trial_of.clients or 0) > 8 else 300
        operations = 6000 if is_fixed_work else (trial_of.value("throughput") or 0) * seconds
        return set_figures(runtime=seconds * 1e9, operations=operations)(trial_of)

    findings = judge_results(sweep(10, lengthen)).findings
    texts = [finding.message.partition(":")[0] for finding in findings if "windows" in finding.message]
    assert texts == messages


def test_refusal_names_the_repeat_with_most_failures() -> None:
    def fail_repeat(trial_of: TrialResult) -> TrialResult:
        return fail_share(0.1 * trial_of.repeat)(trial_of) if trial_of.config["system"] == "lmdb" else trial_of

    answer = judge_results(simulate_results({"rocksdb": 1000.0, "lmdb": 1000.0}, change=fail_repeat)).answer
    assert "operations failed (60 %) (errors)" in answer


@pytest.mark.parametrize("repeats", [1, 2])
def test_one_or_two_repeats_claim_no_knee(repeats: int) -> None:
    assert judge_results(sweep(10, repeats=repeats)).answer.startswith(
        "no knee is named: it requires 3 repeats of each load (plateau "
    )


def test_repeated_numbers_in_one_context_are_no_blocks() -> None:
    once = sweep(10)
    again = [replace(trial, trial=f"again-{trial.trial}") for trial in once.trials]
    (curve,) = judge_results(replace(once, trials=[*once.trials, *again], interleaved=True)).curves
    assert (curve.knee.lower, curve.knee.upper) == (8, 16)


def test_invalid_trials_and_open_loops_add_no_points() -> None:
    few = sweep(10, lambda trial: set_figures(wrong=1)(trial) if (trial.clients or 0) > 4 else trial)
    assert judge_results(few).curves == []
    assert len(judge_results(few, rank_invalid=True).curves) == 1
    assert judge_results(sweep(10, lambda trial: replace(trial, loop="open"))).curves == []


@pytest.mark.parametrize(
    ("systems", "expected"),
    [
        (["lmdb"], "throughput still rises at 64 clients (63,800 op/s)"),
        (
            ["a", "b"],
            "throughput of a still rises at 64 clients (63,800 op/s); throughput of b still rises at 64",
        ),
        (
            ["a", "b", "c", "d", "e"],
            "throughput of c still rises at 64 clients (63,800 op/s); and 2 more",
        ),
    ],
)
def test_the_answer_names_curves_by_their_differences(systems: list[str], expected: str) -> None:
    trials = [
        replace(trial, trial=f"{system}-{trial.trial}", config={**trial.config, "system": system, "mix": "reads"})
        for system in systems
        for trial in sweep(1000).trials
    ]
    result = answer(ResultSet("sweep", trials, Question(by="clients")))
    assert expected in result
    assert result.startswith("throughput ")
    assert "mix" not in result


def rate_results(damage: Change | None = None, **question: object) -> ResultSet:
    """lmdb and rocksdb at 1,000 op/s, which both reach; lmdb's updates take a quarter of rocksdb's time."""

    def set_rate(trial: TrialResult) -> TrialResult:
        times = 1 + 0.001 * (trial.repeat % 3) if trial.config["system"] == "lmdb" else 4 + 0.01 * (trial.repeat % 4)
        # The noise of the sides is independent, so the difference in p99 is undecided.
        noise = 1 + 0.6 * ((trial.repeat * (5 if times > 3 else 3)) % 7 - 3) / 3
        trial = set_figures(
            without=("read.p99", "read.p50"),
            throughput=1000.0,
            update__p50=1e5 * times,
            update__p99=1e7 * noise,
            due=100_000,
        )(trial)
        return replace(trial, loop="open", facts={**trial.facts, "target": 1000})

    return experiment(set_rate if damage is None else both(set_rate, damage), question=asking(**question))


def test_latency_is_answered_at_a_rate() -> None:
    judgement = judge_results(rate_results(metrics=("throughput", "update.p50", "update.p99")))
    lead, _, trust = judgement.answer.partition(" (")
    assert lead.startswith("at 1,000 op/s, which both sustained: update p50 is 75 % lower with lmdb than ")
    assert trust == (
        f"100.1 µs against 402 µs, 95 % interval 74.9–75.2 %, n=6, valid; {CHECKS - 3} of {CHECKS} checks ran in full)"
    )
    assert judgement.further == (
        "exploratory, as only the first metric decides: update p99 is undecided: 11.0 ms with lmdb, 11.0 ms with"
        " rocksdb (interval of the ratio 0.61–1.63)",
    )


def test_median_latency_is_compared_by_default() -> None:
    judgement = judge_results(rate_results())
    assert judgement.answer.startswith("at 1,000 op/s, which both sustained: undecided whether update p99 differs ")
    detectable, exploratory = judgement.further
    assert detectable.startswith("6 repeats can detect a factor of 1.96 or more (80 % power)")
    assert exploratory.startswith(
        "exploratory, as only the first metric decides: update p50 is 75 % lower with lmdb than "
    )


def test_missed_rate_is_answered_by_capacity() -> None:
    def overload(trial: TrialResult) -> TrialResult:
        return set_figures(throughput=700.0 + trial.repeat)(trial) if trial.config["system"] == "rocksdb" else trial

    judgement = judge_results(rate_results(overload, metrics=("throughput", "update.p50")))
    assert judgement.answer.startswith("at 1,000 op/s: refused to rank lmdb and rocksdb: 701 op/s of the requested")
    assert judgement.further[0].startswith(
        "exploratory, as only the first metric decides: lmdb holds 1.421× the throughput of rocksdb"
    )
    assert judgement.further[0].endswith("; the rate is above the capacity of rocksdb")


def test_every_listed_metric_is_answered() -> None:
    judgement = judge_results(experiment(question=asking(metrics=("throughput", "read.p99", "read.p99.99"))))
    assert judgement.answer.startswith("lmdb holds 1.333× the throughput of rocksdb")
    assert [text.partition(" (")[0] for text in judgement.further] == [
        "exploratory, as only the first metric decides: no difference of 1 % or more in read p99 between lmdb and"
        " rocksdb",
        "no difference of 1 % or more in read p99.99 between lmdb and rocksdb",
    ]


def test_withheld_metric_is_named() -> None:
    few = experiment(set_figures(n=500, read__p99=3e7), question=asking(metrics=("throughput", "read.p99")))
    assert judge_results(few).further == ("read p99 is withheld: fewer than 10 of 500 operations exceed p99",)


def test_sweep_answers_latency_at_its_knee() -> None:
    judgement = judge_results(replace(sweep(10), question=asking(metrics=("throughput", "read.p99"))))
    assert judgement.further == ("read p99 is 30.0 ms at 8, 30.0 ms at 16 clients",)


def grow(loads: list[int], repeats: int = 6) -> ResultSet:
    """Repeats the trials of rocksdb and lmdb for each of these numbers of clients."""
    base = experiment(repeats=repeats)
    trials = [
        replace(trial, trial=f"{count}-{trial.trial}", config={**trial.config, "clients": count})
        for count in loads
        for trial in base.trials
    ]
    return replace(base, trials=trials)


def test_mixed_sweep_names_loads_of_each_conclusion() -> None:
    results = grow([1, 2, 4])
    trials = [
        set_figures(throughput=1000.0 + trial.repeat)(trial) if trial.config["clients"] == 2 else trial
        for trial in results.trials
    ]
    judgement = judge_results(replace(results, trials=trials))
    expected = "throughput: lmdb is better at 1 and 4 clients, no difference that matters at 2 clients"
    assert judgement.answer.startswith(f"{expected} (ratios 1.00–1.33, n=6, claimed at 2 of 3 loads, ")
    assert judgement.short is not None
    assert judgement.short.statement.startswith(expected)


def test_comparison_over_loads_gives_the_range() -> None:
    text = (
        "throughput is 1.33× as high with lmdb as with rocksdb, at 1 to 4 clients"
        " (n=6, claimed at 3 of 3 loads, suspect)"
    )
    assert answer(grow([1, 2, 4])).replace("valid", "suspect") == text
    # Three repeats allow no claim, so the answer contains no ratio.
    assert answer(grow([1, 2, 4], repeats=3)) == (
        "throughput is 1,330 op/s with lmdb, 1,000 op/s with rocksdb, at 1 to 4 clients"
        " (n=3: no interval, no claim possible, valid)"
    )
    against = replace(grow([1, 2, 4]), question=asking(baseline="lmdb"))
    assert answer(against).startswith("throughput is 25 % lower with rocksdb than with lmdb, at 1 to 4 clients (n=6,")


def test_sweep_without_claims_is_one_undecided_clause() -> None:
    def even_out(trial: TrialResult) -> TrialResult:
        speed = 1 + 0.02 * (-1) ** trial.repeat if trial.config["system"] == "lmdb" else 1.0
        return set_figures(throughput=1000 * speed, all__mean=9.8e6 / speed)(trial)

    base = grow([1, 2, 4])
    trials = [
        replace(even_out(trial), trial=f"{mix}-{trial.trial}", config={**trial.config, "mix": mix})
        for mix in ("reads", "writes")
        for trial in base.trials
    ]
    assert answer(replace(base, trials=trials)) == (
        "undecided whether throughput differs between lmdb and rocksdb at any load from 1 to 4 clients"
        " (ratios at single loads: 1.00 with mix=reads, 1.00 with mix=writes, with intervals within 0.977–1.02;"
        " n=6, valid)"
    )


def test_refused_load_is_outside_the_range() -> None:
    results = grow([1, 2, 4])
    damaged = [
        replace(trial, values=set_figures(wrong=5)(trial).values) if trial.config["clients"] == 4 else trial
        for trial in results.trials
    ]
    text = answer(replace(results, trials=damaged))
    assert "at 1 to 2 clients" in text
    assert text.endswith("invalid, not ranked at 4 clients)")


def test_withheld_first_metric_leaves_reason_in_answer() -> None:
    def serve_few(trial: TrialResult) -> TrialResult:
        few = set_figures(n=500, read__p99=3e7, read__p50=9e6, due=1000, censored=0)
        return replace(few(trial), loop="open")

    judgement = judge_results(experiment(serve_few, repeats=3, question=Question(metrics=("read.p99", "read.p50"))))
    assert "(n=3: no interval, no claim possible" in judgement.answer
    assert judgement.further == ("read p99 is withheld: fewer than 10 of 500 operations exceed p99",)


def test_cause_leads_where_every_trial_failed() -> None:
    def refuse(trial: TrialResult) -> TrialResult:
        return replace(with_end("failed", "failed", "cannot connect to 127.0.0.1:1")(trial), values={})

    judgement = judge_results(experiment(refuse))
    assert judgement.verdict == Verdict.INVALID
    assert "cannot connect to 127.0.0.1:1" in judgement.all_findings[0].message


@pytest.mark.parametrize(
    ("dimension", "value", "name"),
    [
        ("splits", 20, "splits 20"),
        ("clients", 1, "1 client"),
        ("clients", 400, "400 clients"),
        ("heap", "4g", "heap 4g"),
        ("version", "10.10.1", "version 10.10.1"),
        ("system", "4store", "4store"),
    ],
)
def test_numbers_carry_their_dimension(dimension: str, value: object, name: str) -> None:
    assert name_value(dimension, value) == name


def test_failed_third_side_is_part_of_the_answer() -> None:
    results = simulate_results({"lmdb": 1000.0, "rocksdb": 1300.0, "fjall": 1500.0})
    trials = [
        replace(trial, end="failed", values={}) if trial.config["system"] == "fjall" else trial
        for trial in results.trials
    ]
    judgement = judge_results(replace(results, trials=trials))
    assert judgement.answer_verdict == judgement.verdict


def test_range_of_bounds_is_named_as_such() -> None:
    assert describe_range(0.22, 0.27, "a", "b", "at least ") == "is at least 73 to 78 % lower with a than with b"
    assert describe_range(1.2, 1.4, "a", "b") == "is 1.20× to 1.40× as high with a as with b"
