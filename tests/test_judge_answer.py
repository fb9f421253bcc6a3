"""The answer in one sentence, and the knee that may stand in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge_support import Spoil, asking, experiment, given, rocksdb, sound
from loadstone.judge.judge import judge
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import TrialResult


def answer(results: ResultSet) -> str:
    """The answer."""
    return judge(results).answer


def scaled(speed: float) -> Spoil:
    """rocksdb at this speed, with little noise of its own."""

    def spoil(trial: TrialResult) -> TrialResult:
        own = speed * (1 + 0.002 * (trial.repeat % 3))
        return given(throughput=1000 * own, all__mean=9.8e6 / own)(trial)

    return rocksdb(spoil)


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (experiment(), "lmdb holds 1.333× the throughput of rocksdb (95 % interval 1.329–1.337, n=6, valid)"),
        (
            experiment(scaled(3)),
            "rocksdb holds 2.253× the throughput of lmdb (95 % interval 2.246–2.261, n=6, valid)",
        ),
        (
            experiment(question=asking(metrics=("all.mean",))),
            "all.mean of lmdb is 25 % lower than that of rocksdb (95 % interval 24.8–25.2 %, n=6, valid)",
        ),
        (
            experiment(repeats=1),
            "lmdb holds 1.33× the throughput of rocksdb (n=1: no interval, no claim possible, valid)",
        ),
        (
            replace(experiment(repeats=1), question=asking(baseline="lmdb")),
            "lmdb holds 1.33× the throughput of rocksdb (n=1: no interval, no claim possible, valid)",
        ),
        (
            experiment(repeats=3),
            "lmdb holds 1.33× the throughput of rocksdb (n=3: no interval, no claim possible, valid)",
        ),
        (
            experiment(rocksdb(given(wrong=1))),
            "refused to rank lmdb and rocksdb: 1 of 50,000 values read were not what had been written (unverified)",
        ),
        (ResultSet("none", []), "nothing was measured"),
        (
            ResultSet("one", [sound()]),
            "throughput is 1,000.00 op/s (n=1: no interval)",
        ),
        (
            ResultSet("one", [sound(repeat=repeat) for repeat in range(1, 7)]),
            "throughput is 1,000 op/s (96.9 % interval 998 to 1,003 op/s, n=6)",
        ),
    ],
)
def test_the_answer_is_one_sentence_with_its_verdict(results: ResultSet, said: str) -> None:
    assert answer(results) == said


def test_no_evidence_is_said_with_what_the_interval_allows() -> None:
    def spoil(trial: TrialResult) -> TrialResult:
        speed = (1 + 0.02 * (-1) ** trial.repeat) if trial.config["system"] == "lmdb" else 1 + 0.001 * trial.repeat
        return given(throughput=1000 * speed, all__mean=9.8e6 / speed)(trial)

    said = answer(experiment(spoil))
    assert said.startswith(
        "no evidence of a difference in throughput between lmdb and rocksdb (ratio 0.996, 95 % interval "
    )
    assert said.endswith("n=6, valid); about 78 repeats would decide")


def in_contexts(count: int) -> ResultSet:
    """rocksdb and lmdb on several workloads."""
    one = experiment()
    trials = [
        replace(trial, trial=f"{workload}-{trial.trial}", config={**trial.config, "workload": workload})
        for workload in "abcdef"[:count]
        for trial in one.trials
    ]
    return replace(one, trials=trials)


def test_a_few_contexts_are_told_one_by_one() -> None:
    relation = "lmdb holds 1.333× the throughput of rocksdb (95 % interval 1.329–1.337, n=6, valid)"
    assert answer(in_contexts(2)) == f"workload=a: {relation}; workload=b: {relation}"


def test_many_contexts_are_counted() -> None:
    assert answer(in_contexts(5)) == "throughput of lmdb against rocksdb in 5 contexts: better in 5 (1.33×)"


def beside(spoil: Spoil, *systems: str) -> ResultSet:
    """Systems that took turns six times, each a little faster than the one before, each trial spoilt."""
    trials = [
        spoil(replace(sound("rocksdb", repeat, 1 + 0.1 * i + 0.001 * i * repeat), config={"system": system}))
        for repeat in range(1, 7)
        for i, system in enumerate(systems)
    ]
    named = [replace(each, trial=f"{each.config['system']}-{each.repeat}") for each in trials]
    return ResultSet("crafted", named, asking(baseline="a", metrics=("throughput",)), interleaved=True)


def wrong_where(wrong: dict[str, Spoil]) -> Spoil:
    """Each of these systems spoilt in its own way."""
    return lambda trial: wrong.get(str(trial.config["system"]), given())(trial)


def test_of_several_contenders_each_refusal_has_its_own_reason() -> None:
    values = "5 of 50,000 values read were not what had been written (unverified)"
    found = answer(beside(wrong_where({"c": given(wrong=5)}), "a", "b", "c"))
    assert found.startswith("b holds 1.103×")
    assert f"the throughput of a, c not ranked with a: {values} (" in found
    each = {"b": given(segments__lost=1), "c": given(wrong=5), "d": given(wrong=5)}
    assert answer(beside(wrong_where(each), "a", "b", "c", "d")).startswith(
        f"b not ranked with a: segments lost: 1 of 4 (lost-segment), c and d not ranked with a: {values} ("
    )


def sweep(kappa: float, spoil: Spoil | None = None) -> ResultSet:
    """One system with 1 to 64 clients, by the law, with a little noise."""
    trials = []
    for clients in (1, 2, 4, 8, 16, 32, 64):
        for repeat in (1, 2):
            rate = (
                1000 * clients / (1 + 0.05 * (clients - 1) + kappa * clients * (clients - 1)) * (0.99 + 0.01 * repeat)
            )
            trial = given(throughput=rate, all__mean=0.98e9 * clients / rate, without=("read.mean",))(sound())
            name = f"{clients}-{repeat}"
            trial = replace(
                trial, trial=name, repeat=repeat, clients=clients, config={"system": "lmdb", "clients": clients}
            )
            trials.append(trial if spoil is None else spoil(trial))
    return ResultSet("sweep", trials)


def test_a_sweep_of_clients_names_its_knee() -> None:
    (knee,) = judge(sweep(0.002)).knees
    assert knee.context == (("system", "lmdb"),)
    assert list(knee.clients) == [1, 2, 4, 8, 16, 32, 64]
    assert len(knee.throughput) == 7
    assert knee.peak is not None
    assert knee.peak.value == pytest.approx(21.8, rel=0.05)
    assert knee.confidence == "clear: peak and interval lie within what was measured"


def test_a_curve_that_does_not_bend_has_no_knee() -> None:
    (knee,) = judge(sweep(0)).knees
    assert knee.peak is None
    assert knee.confidence == "the curve has no peak within what was measured"


def test_invalid_trials_and_open_loops_are_no_points_of_a_curve() -> None:
    few = sweep(0.002, lambda trial: given(wrong=1)(trial) if (trial.clients or 0) > 4 else trial)
    assert judge(few).knees == []
    assert len(judge(few, rank_invalid=True).knees) == 1
    assert judge(sweep(0.002, lambda trial: replace(trial, loop="open"))).knees == []


@pytest.mark.parametrize(
    ("systems", "said"),
    [
        (["lmdb"], "throughput has no peak up to 64 clients"),
        (
            ["a", "b"],
            "throughput of system=a has no peak up to 64 clients; throughput of system=b has no peak up to 64",
        ),
        (["a", "b", "c", "d", "e"], "throughput of system=c has no peak up to 64 clients; and 2 more"),
    ],
)
def test_the_answer_names_curves_by_what_tells_them_apart(systems: list[str], said: str) -> None:
    trials = [
        replace(trial, trial=f"{system}-{trial.trial}", config={**trial.config, "system": system, "mix": "reads"})
        for system in systems
        for trial in sweep(0).trials
    ]
    found = answer(ResultSet("sweep", trials, Question(by="clients")))
    assert said in found
    assert found.startswith("throughput ")
    assert "mix" not in found
