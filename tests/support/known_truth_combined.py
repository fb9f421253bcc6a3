"""Scenarios with two effects. The minor effect must neither hide the deciding effect nor cause a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from judge_support import asking, both, facts
from known_truth_decided import rename_dimension, run_at_rate, two_workloads
from known_truth_expected import (
    Case,
    expect_bound,
    expect_no_claim,
    expect_no_win,
    expect_overall,
    expect_refusal,
    expect_same_or_slight,
    favours,
    fires,
    silent,
    too_few,
    unsure,
    verdict,
    wins,
    wins_by_a_bound,
)
from known_truth_refused import dips, side_series
from known_truth_support import (
    MS,
    change_system,
    collect_results,
    fail_share,
    make_series,
    set_bound,
    set_figures,
    simulate_results,
    typical,
)
from known_truth_undecided import expect_no_knee, knee, sweep
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.results.union import join_results
from loadstone.results.value import Value

P99 = "read.p99"
FLAT = {"rocksdb": 1000.0, "lmdb": 1000.0}
TWICE = {"rocksdb": 1000.0, "lmdb": 2000.0}
RF_1, RF_3 = facts(replication=1, replication_acknowledged=1), facts(replication=3, replication_acknowledged=2)


def print_digits(p99_ms: Mapping[str, float], digit_ms: float) -> ResultSet:
    """Results of a tool that prints the p99 with few digits; the true values have 1 % noise."""

    def round_result(trial: TrialResult) -> TrialResult:
        system = str(trial.config["system"])
        true = p99_ms[system] * typical(6, 0.01, system)[trial.repeat - 1]
        value = Value(P99, round(true / digit_ms) * digit_ms * MS, "ns", 60_000, None, digit_ms * MS)
        return replace(trial, values={P99: value}, facts={"tool": "cassandra-stress"}, statuses={})

    return simulate_results(
        FLAT, change=round_result, minute=lambda _: None, planned={}, question=asking(metrics=(P99,))
    )


def drop_trials(results: ResultSet, *names: str) -> ResultSet:
    """The results without some planned trials."""
    return replace(results, trials=[trial for trial in results.trials if trial.trial not in names])


def corrupt_writes() -> ResultSet:
    """Two workloads; reads of one workload return wrong values."""
    wrong = [
        set_figures(wrong=7)(trial) if trial.config["workload"] == "writes" else trial
        for trial in two_workloads().trials
    ]
    return collect_results(wrong, question=asking(by="system", metrics=("throughput",)))


def mixes(reads: Mapping[str, float]) -> ResultSet:
    """Two runs that differ in their share of reads; the remaining operations are updates."""

    def run(system: str, rate: float) -> ResultSet:
        def mix_operations(trial: TrialResult) -> TrialResult:
            operations = round(trial.values["operations"].value)
            read = round(reads[system] * operations)
            known = {**trial.facts, "mix": f"{reads[system]:.0%} read", "records": 1_000_000}
            result = replace(trial, facts=known, statuses={"READ": {"OK": read}, "UPDATE": {"OK": operations - read}})
            return set_figures(
                read__count=read, update__count=operations - read, update__mean=result.values["all.mean"].value
            )(result)

        return replace(simulate_results({system: rate}, change=mix_operations), name=system)

    return join_results([run("rocksdb", 1000.0), run("lmdb", 2000.0)])


def change_unit(trial: TrialResult) -> TrialResult:
    """Converts a figure outside the question from ns to ms."""
    settle = trial.values["load.settle"]
    return replace(trial, values={**trial.values, "load.settle": replace(settle, value=settle.value / MS, unit="ms")})


def sweep_with_limit() -> ResultSet:
    """Throughput levels off at 8 clients, because an executor of the engine is saturated."""
    results = sweep({1: 1000, 2: 2000, 4: 4000, 8: 7900, 16: 8000, 32: 8000, 64: 8000})
    busy = [
        both(facts(networked="yes"), set_figures(executor__busy_max=0.98 if (trial.clients or 0) >= 8 else 0.4))(trial)
        for trial in results.trials
    ]
    return collect_results(busy, question=results.question)


def pace_one_side(system: str, block: int, rate: float) -> TrialResult:
    """Runs rocksdb at a rate, and the other side in a closed loop."""
    result = run_at_rate(system, block, rate)
    return result if system == "rocksdb" else replace(result, loop="closed")


COMBINED = [
    # The generator's share of latency.
    Case(
        "a fifth of the slower side's time and a third of the faster one's is the engine's overhead, the same for both",
        # Latencies of 10 and 6.7 ms, each with 2 ms of the generator's time. The true latencies, 8 and 4.7 ms, differ
        # by a factor of 1.7.
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1500.0}, change=set_figures(driver=2 * MS)),
        # The ratio is 1.2 if only the slower side's share is subtracted.
        (wins_by_a_bound("lmdb", 1.15, 1.75), fires("generator-limited"), verdict("valid")),
    ),
    Case(
        "one operation of two thousand was sent late by the engine",
        lambda: simulate_results(
            TWICE, make=run_at_rate, change=set_figures(late__generator=30), question=asking(metrics=(P99,))
        ),
        (wins("lmdb", 0.5), verdict("valid"), silent("generator-limited")),
        metric=P99,
    ),
    Case(
        "the generator was late for one operation of twenty, which does not affect the median",
        lambda: simulate_results(
            TWICE, make=run_at_rate, change=set_figures(late__generator=3000), question=asking(metrics=("read.p50",))
        ),
        (wins("lmdb", 0.5), verdict("valid")),
        metric="read.p50",
    ),
    # Failures.
    Case(
        "0.2 percent of the operations failed in every trial of the faster side",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 10_000.0}, change=change_system("lmdb", fail_share(0.002))
        ),
        (expect_refusal("errors"),),
    ),
    Case(
        "0.2 percent failed in every trial, and the file allows one percent",
        lambda: simulate_results(TWICE, change=fail_share(0.002), question=asking(checks={"errors": {"share": 0.01}})),
        (wins("lmdb", 2.0), fires("errors", "note"), verdict("valid")),
    ),
    Case(
        "the p99 of both sides is a lower bound",
        lambda: simulate_results(
            TWICE, change=set_bound(P99, "at_least"), question=asking(metrics=("throughput", P99))
        ),
        (expect_bound(), verdict("valid")),
        metric=P99,
    ),
    Case(
        "the p99 is a lower bound, and the throughput of the same trials is known",
        lambda: simulate_results(
            TWICE, change=set_bound(P99, "at_least"), question=asking(metrics=("throughput", P99))
        ),
        (wins("lmdb", 2.0), verdict("valid")),
    ),
    Case(
        "one workload read wrong values: the other workload is claimed",
        corrupt_writes,
        (wins("lmdb", 1.5), verdict("valid")),
        context={"workload": "reads"},
    ),
    Case(
        "one workload read wrong values: it is refused",
        corrupt_writes,
        (expect_refusal("unverified"),),
        context={"workload": "writes"},
    ),
    Case(
        "one trial of seven blocks is missing",
        lambda: drop_trials(simulate_results(TWICE, 7), "lmdb-3"),
        (wins("lmdb", 2.0), verdict("suspect"), fires("incomplete", "suspect")),
    ),
    Case(
        "six trials on one side, and trials of five of these blocks on the other",
        lambda: drop_trials(simulate_results(TWICE, 6), "lmdb-3"),
        (too_few(), verdict("suspect")),
    ),
    Case(
        "three percent faster in twenty blocks, 0.2 percent failed in one trial: the remaining nineteen agree",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1030.0}, 20, noise=0.002, change=change_system("lmdb", fail_share(0.002), 5)
        ),
        (favours("lmdb"), fires("errors"), verdict("suspect")),
    ),
    Case(
        "a tenth of the records could not be loaded on the faster side",
        lambda: simulate_results(TWICE, change=change_system("lmdb", set_figures(load__errors=100_000))),
        (expect_refusal("errors"),),
    ),
    Case(
        "clients of the faster side did not close, and may hold back writes",
        lambda: simulate_results(TWICE, change=change_system("lmdb", set_figures(unclosed=2), 2)),
        (expect_refusal("errors"),),
    ),
    Case(
        "one trial of twelve missed the rate: its latencies are not comparable",
        lambda: simulate_results(
            TWICE,
            make=run_at_rate,
            change=change_system("rocksdb", set_figures(censored=1200, operations=58_800), 3),
            question=asking(metrics=(P99,)),
        ),
        (expect_refusal("rate-not-held"),),
        metric=P99,
    ),
    # Guarantees and hosts.
    Case(
        "three nodes on both sides, as a number and as a text",
        lambda: simulate_results(
            TWICE,
            change=both(change_system("rocksdb", facts(data_nodes=3)), change_system("lmdb", facts(data_nodes="3"))),
        ),
        (wins("lmdb", 2.0), verdict("valid"), silent("hosts-differ")),
    ),
    Case(
        "durability is compared intentionally, and the consistency differs as well",
        lambda: simulate_results(
            TWICE,
            change=both(
                change_system("rocksdb", facts(durability="device", consistency="QUORUM")),
                change_system("lmdb", facts(consistency="ONE")),
                rename_dimension("durability", rocksdb="device", lmdb="os"),
            ),
        ),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "two systems, with the price of durability as the question",
        lambda: simulate_results(
            TWICE,
            change=change_system("rocksdb", facts(durability="device")),
            question=asking(by="system", promises=("durability",)),
        ),
        (wins("lmdb", 2.0), verdict("valid"), fires("guarantees-differ", "note")),
    ),
    Case(
        "two systems, one with three copies at every number of clients",
        lambda: simulate_results(TWICE, change=both(change_system("rocksdb", RF_3), change_system("lmdb", RF_1))),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "three nodes intentionally compared with five, with other processors",
        lambda: simulate_results(
            {"rocksdb": 3000.0, "lmdb": 5000.0},
            change=both(
                change_system("rocksdb", facts(data_nodes=3)),
                change_system("lmdb", facts(data_nodes=5, cpu_model="Xeon 8488C")),
                rename_dimension("data_nodes", rocksdb=3, lmdb=5),
            ),
        ),
        (favours(5), verdict("suspect"), fires("hosts-differ", "suspect")),
    ),
    # The load.
    Case(
        "one side at a rate, the other in a closed loop",
        lambda: simulate_results(TWICE, make=pace_one_side, question=asking(metrics=(P99,))),
        (verdict("suspect", "invalid"), fires("load-differs"), unsure()),
        metric=P99,
    ),
    Case(
        "the first metric is throughput at a rate that both reach: neither wins",
        lambda: simulate_results(TWICE, make=run_at_rate, question=asking(metrics=("throughput", P99))),
        (expect_no_win("lmdb"), expect_no_win("rocksdb"), verdict("valid")),
    ),
    Case(
        "two runs, 95 percent reads against 50 percent",
        lambda: mixes({"rocksdb": 0.5, "lmdb": 0.95}),
        (verdict("suspect", "invalid"), fires("load-differs"), unsure()),
    ),
    Case(
        "a figure outside the question is in another unit on one side",
        lambda: simulate_results(
            TWICE, change=change_system("lmdb", change_unit), question=asking(metrics=("throughput",))
        ),
        (wins("lmdb", 2.0), verdict("valid")),
    ),
    # The time series of the window.
    Case(
        "throughput falls by 60 percent for one second in every five, on both sides",
        lambda: simulate_results(TWICE, minute=dips(5, 0.6)),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "throughput falls by 60 percent for one second in fifteen",
        lambda: simulate_results(TWICE, minute=side_series("lmdb", dips(15, 0.6))),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "throughput falls by three percent for one second in every ten",
        lambda: simulate_results(TWICE, minute=dips(10, 0.03)),
        (wins("lmdb", 2.0), verdict("valid"), silent("not-steady")),
    ),
    Case(
        "the time series ends steady, and the first tenth of the window was half as fast",
        lambda: simulate_results(
            TWICE, minute=side_series("lmdb", lambda trial: make_series(trial, lambda at: 0.5 if at < 6 else 1.05))
        ),
        (verdict("suspect", "invalid"), fires("not-steady", "suspect"), favours("lmdb")),
    ),
    # The resolution of figures.
    Case(
        "a tool prints 1.0 and 1.1 ms: the difference is its last digit",
        lambda: print_digits({"rocksdb": 1.04, "lmdb": 1.06}, 0.1),
        (expect_no_claim(), verdict("valid")),
        metric=P99,
    ),
    Case(
        "a tool prints 1.0 and 2.0 ms with one decimal",
        lambda: print_digits({"rocksdb": 2.0, "lmdb": 1.0}, 0.1),
        (favours("lmdb"), verdict("valid")),
        metric=P99,
    ),
    Case(
        "0.3 percent faster for certain, where 0.1 percent matters",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1003.0}, 20, noise=0.001, question=asking(matters=0.001)),
        (wins("lmdb", 1.003, 0.001), verdict("valid")),
    ),
    Case(
        "0.05 percent faster in two hundred blocks",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1000.5}, 200, noise=0.005),
        (expect_same_or_slight(), verdict("valid")),
    ),
    Case(
        "one store twice while the machine slows down by half, blocks interleaved",
        lambda: simulate_results({"first": 1000.0, "second": 1000.0}, 10, noise=0.001, drift=0.5),
        (expect_same_or_slight(), verdict("valid")),
    ),
    # Curves.
    Case(
        "the plateau is caused by an executor of the engine",
        sweep_with_limit,
        (expect_no_knee(), expect_overall("suspect")),
    ),
    Case(
        "the curve of a system saturated by two clients",
        lambda: sweep({1: 5000, 2: 9900, 4: 10_000, 8: 10_000, 16: 10_000}),
        (knee(1, 2), expect_overall("valid")),
    ),
]
