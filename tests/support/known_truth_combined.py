"""Worlds in which two things come together, of which one decides. The other must neither hide it nor refuse it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from judge_support import asking, both, facts
from known_truth_expected import (
    Case,
    favours,
    fires,
    no_claim,
    not_for,
    refused,
    same_or_differs_little,
    silent,
    too_few,
    unranked,
    unsure,
    verdict,
    whole,
    wins,
    wins_by_a_bound,
)
from known_truth_given import at_a_rate, in_two_workloads, named
from known_truth_refused import dips, on_one_side
from known_truth_support import (
    MS,
    bounded,
    course,
    failed,
    given,
    of_trials,
    on,
    typical,
    world,
)
from known_truth_undecided import knee, no_knee, sweep
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.union import join_results
from loadstone.results.value import Value

P99 = "read.p99"
FLAT = {"rocksdb": 1000.0, "lmdb": 1000.0}
TWICE = {"rocksdb": 1000.0, "lmdb": 2000.0}
RF_1, RF_3 = facts(replication=1, replication_acknowledged=1), facts(replication=3, replication_acknowledged=2)


def printed(p99_ms: Mapping[str, float], digit_ms: float) -> ResultSet:
    """A tool that prints its p99 with so many digits: these are the true ones, with 1 % of noise."""

    def rounded(one: TrialResult) -> TrialResult:
        system = str(one.config["system"])
        true = p99_ms[system] * typical(6, 0.01, system)[one.repeat - 1]
        shown = Value(P99, round(true / digit_ms) * digit_ms * MS, "ns", 60_000, None, digit_ms * MS)
        return replace(one, values={P99: shown}, facts={"tool": "cassandra-stress"}, statuses={})

    return world(FLAT, spoil=rounded, minute=lambda _: None, planned={}, question=asking(metrics=(P99,)))


def without(results: ResultSet, *names: str) -> ResultSet:
    """The same without some trials, which had been planned."""
    return replace(results, trials=[one for one in results.trials if one.trial not in names])


def broken_writes() -> ResultSet:
    """Two workloads; what was read in one of them is not what had been written."""
    wrong = [given(wrong=7)(one) if one.config["workload"] == "writes" else one for one in in_two_workloads().trials]
    return of_trials(wrong, question=asking(by="system", metrics=("throughput",)))


def mixes(reads: Mapping[str, float]) -> ResultSet:
    """Two runs; in each this share of the operations were reads and the others updates."""

    def run(system: str, rate: float) -> ResultSet:
        def mixed(one: TrialResult) -> TrialResult:
            operations = round(one.values["operations"].value)
            read = round(reads[system] * operations)
            known = {**one.facts, "mix": f"{reads[system]:.0%} read", "records": 1_000_000}
            made = replace(one, facts=known, statuses={"READ": {"OK": read}, "UPDATE": {"OK": operations - read}})
            return given(read__count=read, update__count=operations - read, update__mean=made.values["all.mean"].value)(
                made
            )

        return replace(world({system: rate}, spoil=mixed), name=system)

    return join_results([run("rocksdb", 1000.0), run("lmdb", 2000.0)])


def in_another_unit(one: TrialResult) -> TrialResult:
    """A figure that nobody asked for, in ms where the other side has ns."""
    settle = one.values["load.settle"]
    return replace(one, values={**one.values, "load.settle": replace(settle, value=settle.value / MS, unit="ms")})


def limited_sweep() -> ResultSet:
    """Throughput stays from 8 clients on, because an executor of the engine has no time left."""
    made = sweep({1: 1000, 2: 2000, 4: 4000, 8: 7900, 16: 8000, 32: 8000, 64: 8000})
    busy = [
        both(facts(networked="yes"), given(executor__busy_max=0.98 if (one.clients or 0) >= 8 else 0.4))(one)
        for one in made.trials
    ]
    return of_trials(busy, question=made.question)


def paced(system: str, block: int, rate: float) -> TrialResult:
    """One side at a rate, the other in a closed loop."""
    made = at_a_rate(system, block, rate)
    return made if system == "rocksdb" else replace(made, loop="closed")


COMBINED = [
    # Our own share.
    Case(
        "a fifth of the slower side's time and a third of the faster one's is our own overhead, the same for both",
        # 10 and 6.7 ms, 2 ms of each ours: in truth 8 and 4.7 ms, which is 1.7 times as fast.
        lambda: world({"rocksdb": 1000.0, "lmdb": 1500.0}, spoil=given(driver=2 * MS)),
        # 1.2 is what is left if only the slower side's share is taken off.
        (wins_by_a_bound("lmdb", 1.15, 1.75), fires("generator-limited"), verdict("valid")),
    ),
    Case(
        "one operation of two thousand went out late by us",
        lambda: world(TWICE, make=at_a_rate, spoil=given(late__generator=30), question=asking(metrics=(P99,))),
        (wins("lmdb", 0.5), verdict("valid"), silent("generator-limited")),
        metric=P99,
    ),
    Case(
        "the generator was late for one operation of twenty, which no median shows",
        lambda: world(TWICE, make=at_a_rate, spoil=given(late__generator=3000), question=asking(metrics=("read.p50",))),
        (wins("lmdb", 0.5), verdict("valid")),
        metric="read.p50",
    ),
    # Failures.
    Case(
        "0.2 percent of the operations failed in every trial of the faster side",
        lambda: world({"rocksdb": 1000.0, "lmdb": 10_000.0}, spoil=on("lmdb", failed(0.002))),
        (refused("errors"),),
    ),
    Case(
        "0.2 percent failed in every trial, and the file allows one percent",
        lambda: world(TWICE, spoil=failed(0.002), question=asking(checks={"errors": {"share": 0.01}})),
        (wins("lmdb", 2.0), fires("errors", "note"), verdict("valid")),
    ),
    Case(
        "the p99 of both sides is a lower bound",
        lambda: world(TWICE, spoil=bounded(P99, "at_least"), question=asking(metrics=("throughput", P99))),
        (unranked(), verdict("valid")),
        metric=P99,
    ),
    Case(
        "the p99 is a lower bound, and the throughput of the same trials is known",
        lambda: world(TWICE, spoil=bounded(P99, "at_least"), question=asking(metrics=("throughput", P99))),
        (wins("lmdb", 2.0), verdict("valid")),
    ),
    Case(
        "values read in one workload were wrong: the other one is claimed",
        broken_writes,
        (wins("lmdb", 1.5), verdict("valid")),
        context={"workload": "reads"},
    ),
    Case(
        "values read in one workload were wrong: that one is refused",
        broken_writes,
        (refused("unverified"),),
        context={"workload": "writes"},
    ),
    Case(
        "one trial of seven blocks is missing",
        lambda: without(world(TWICE, 7), "lmdb-3"),
        (wins("lmdb", 2.0), verdict("suspect"), fires("incomplete", "suspect")),
    ),
    Case(
        "six trials on one side, and five of the same blocks on the other",
        lambda: without(world(TWICE, 6), "lmdb-3"),
        (too_few(), verdict("suspect")),
    ),
    Case(
        "three percent faster in twenty blocks, 0.2 percent failed in one trial: the other nineteen say the same",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1030.0}, 20, noise=0.002, spoil=on("lmdb", failed(0.002), 5)),
        (favours("lmdb"), fires("errors"), verdict("suspect")),
    ),
    Case(
        "a tenth of the records could not be loaded on the faster side",
        lambda: world(TWICE, spoil=on("lmdb", given(load__errors=100_000))),
        (refused("errors"),),
    ),
    Case(
        "clients of the faster side did not close, and may hold back writes",
        lambda: world(TWICE, spoil=on("lmdb", given(unclosed=2), 2)),
        (refused("errors"),),
    ),
    Case(
        "one trial of twelve did not hold the rate: its latencies are no sample of the others",
        lambda: world(
            TWICE,
            make=at_a_rate,
            spoil=on("rocksdb", given(censored=1200, operations=58_800), 3),
            question=asking(metrics=(P99,)),
        ),
        (refused("rate-not-held"),),
        metric=P99,
    ),
    # Guarantees and hosts.
    Case(
        "three nodes on both sides, as a number and as a text",
        lambda: world(TWICE, spoil=both(on("rocksdb", facts(data_nodes=3)), on("lmdb", facts(data_nodes="3")))),
        (wins("lmdb", 2.0), verdict("valid"), silent("hosts-differ")),
    ),
    Case(
        "durability is compared on purpose, and the consistency differs as well",
        lambda: world(
            TWICE,
            spoil=both(
                on("rocksdb", facts(durability="device", consistency="QUORUM")),
                on("lmdb", facts(consistency="ONE")),
                named("durability", rocksdb="device", lmdb="os"),
            ),
        ),
        (refused("guarantees-differ"),),
    ),
    Case(
        "two systems whose price of durability is the question, as the file says",
        lambda: world(
            TWICE,
            spoil=on("rocksdb", facts(durability="device")),
            question=asking(by="system", promises=("durability",)),
        ),
        (wins("lmdb", 2.0), verdict("valid"), fires("guarantees-differ", "note")),
    ),
    Case(
        "two systems of which one keeps three copies, at every number of clients",
        lambda: world(TWICE, spoil=both(on("rocksdb", RF_3), on("lmdb", RF_1))),
        (refused("guarantees-differ"),),
    ),
    Case(
        "three nodes against five on purpose, with other processors",
        lambda: world(
            {"rocksdb": 3000.0, "lmdb": 5000.0},
            spoil=both(
                on("rocksdb", facts(data_nodes=3)),
                on("lmdb", facts(data_nodes=5, cpu_model="Xeon 8488C")),
                named("data_nodes", rocksdb=3, lmdb=5),
            ),
        ),
        (favours(5), verdict("suspect"), fires("hosts-differ", "suspect")),
    ),
    # The load.
    Case(
        "one side at a rate, the other in a closed loop",
        lambda: world(TWICE, make=paced, question=asking(metrics=(P99,))),
        (verdict("suspect", "invalid"), fires("load-differs"), unsure()),
        metric=P99,
    ),
    Case(
        "the throughput at a rate that both hold is what was asked for: nobody wins",
        lambda: world(TWICE, make=at_a_rate, question=asking(metrics=("throughput", P99))),
        (not_for("lmdb"), not_for("rocksdb"), verdict("valid")),
    ),
    Case(
        "two runs, 95 percent reads against 50 percent",
        lambda: mixes({"rocksdb": 0.5, "lmdb": 0.95}),
        (verdict("suspect", "invalid"), fires("load-differs"), unsure()),
    ),
    Case(
        "a figure that nobody asked for is in another unit on one side",
        lambda: world(TWICE, spoil=on("lmdb", in_another_unit), question=asking(metrics=("throughput",))),
        (wins("lmdb", 2.0), verdict("valid")),
    ),
    # The course of the window.
    Case(
        "throughput falls by 60 percent for one second of five, all the time, on both sides",
        lambda: world(TWICE, minute=dips(5, 0.6)),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "throughput falls by 60 percent for one second of fifteen",
        lambda: world(TWICE, minute=on_one_side("lmdb", dips(15, 0.6))),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "throughput falls by three percent for one second of ten, all the time",
        lambda: world(TWICE, minute=dips(10, 0.03)),
        (wins("lmdb", 2.0), verdict("valid"), silent("not-steady")),
    ),
    Case(
        "the course is steady at last, and the first tenth of the window was half as fast",
        lambda: world(TWICE, minute=on_one_side("lmdb", lambda one: course(one, lambda at: 0.5 if at < 6 else 1.05))),
        (verdict("suspect", "invalid"), fires("not-steady", "suspect"), favours("lmdb")),
    ),
    # Steps in which figures are read.
    Case(
        "a tool prints 1.0 and 1.1 ms: the difference is its last digit",
        lambda: printed({"rocksdb": 1.04, "lmdb": 1.06}, 0.1),
        (no_claim(), verdict("valid")),
        metric=P99,
    ),
    Case(
        "a tool prints 1.0 and 2.0 ms with one digit behind the point",
        lambda: printed({"rocksdb": 2.0, "lmdb": 1.0}, 0.1),
        (favours("lmdb"), verdict("valid")),
        metric=P99,
    ),
    Case(
        "0.3 percent faster for certain, where 0.1 percent matters",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1003.0}, 20, noise=0.001, question=asking(matters=0.001)),
        (wins("lmdb", 1.003, 0.001), verdict("valid")),
    ),
    Case(
        "0.05 percent faster in two hundred blocks",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1000.5}, 200, noise=0.005),
        (same_or_differs_little(), verdict("valid")),
    ),
    Case(
        "the same store twice while the machine slows down by half, blocks interleaved",
        lambda: world({"first": 1000.0, "second": 1000.0}, 10, noise=0.001, drift=0.5),
        (same_or_differs_little(), verdict("valid")),
    ),
    # Curves.
    Case("the plateau is that of an executor of ours", limited_sweep, (no_knee(), whole("suspect"))),
    Case(
        "the curve of a system that is saturated by two clients",
        lambda: sweep({1: 5000, 2: 9900, 4: 10_000, 8: 10_000, 16: 10_000}),
        (knee(1, 2), whole("valid")),
    ),
]
