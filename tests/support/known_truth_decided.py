"""Scenarios in which the judge must give the right answer despite disturbances.

A result set cannot express a requested fault, because the fault's windows are not in the data.
"""

from __future__ import annotations

from dataclasses import replace

from judge_support import Change, asking, both, facts, failing
from known_truth_expected import (
    Case,
    differs_little,
    expect_same,
    expect_same_or_slight,
    favours,
    fires,
    silent,
    verdict,
    wins,
    wins_by_a_bound,
)
from known_truth_support import (
    MS,
    change_system,
    collect_results,
    fail_share,
    faster,
    figure,
    make_series,
    parts,
    scale_metrics,
    set_figures,
    simulate_results,
    trial,
    typical,
    with_parts,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar, TrialResult


def run_at_rate(system: str, block: int, rate: float) -> TrialResult:
    """Throughput is 1,000 op/s; `rate` determines the latency: 10 ms at 1,000 op/s."""
    return trial(system, block, 1000.0, target=1000.0, mean_ns=10 * MS * 1000 / rate)


def rename_dimension(dimension: str, **values: Scalar) -> Change:
    """Replaces the dimension `system` by another dimension, with a value for each system."""

    def change_result(result: TrialResult) -> TrialResult:
        return replace(result, config={dimension: values[str(result.config["system"])]})

    return change_result


def overhead(cost_ns: float) -> ResultSet:
    """Embedded stores that need 10 ms and 1 ms for an operation; the generator adds `cost_ns` to both."""
    rates = {"rocksdb": 10 * 1e9 / (10 * MS + cost_ns), "lmdb": 10 * 1e9 / (1 * MS + cost_ns)}
    return simulate_results(rates, change=set_figures(driver=cost_ns), noise=0.005)


def delay_responses(response_ms: dict[str, float], lateness_ms: float) -> ResultSet:
    """The generator sends 5 % of the operations late, which adds this time to each side's p99."""

    def change_result(result: TrialResult) -> TrialResult:
        p99 = response_ms[str(result.config["system"])] * MS * result.values["read.p50"].value / (9 * MS)
        changed = {
            metric: figure(metric, latency, 60_000)
            for metric, latency in (
                ("read.p99", p99),
                ("all.p99", p99),
                ("read.lower.p99", p99 - lateness_ms * MS),
                ("read.service.p99", p99 - lateness_ms * MS),
                ("read.p99.9", 3 * p99),
                ("all.p99.9", 3 * p99),
                ("read.lower.p99.9", 3 * p99 - lateness_ms * MS),
                ("read.service.p99.9", 3 * p99 - lateness_ms * MS),
                *((f"{kind}.max", 900 * MS) for kind in ("read", "all", "read.lower", "read.service")),
            )
        }
        return set_figures(late__generator=3000)(replace(result, values={**result.values, **changed}))

    flat = {"rocksdb": 1000.0, "lmdb": 1000.0}
    return simulate_results(flat, make=run_at_rate, change=change_result, question=asking(metrics=("read.p99",)))


def two_workloads() -> ResultSet:
    """lmdb is 1.5 times as fast as rocksdb in one workload, and half as fast in the other."""
    results = []
    for workload, rate in (("reads", 1500.0), ("writes", 500.0)):
        for result in simulate_results({"rocksdb": 1000.0, "lmdb": rate}).trials:
            config = {**result.config, "workload": workload}
            results.append(replace(result, trial=f"{workload}-{result.trial}", config=config))
    return collect_results(results, question=asking(by="system", metrics=("throughput",)))


def fast_and_slow_blocks() -> ResultSet:
    """The host loses a third of its speed in every second block; lmdb is 5 % faster than rocksdb in every block."""

    def clock(result: TrialResult) -> TrialResult:
        return result if result.repeat % 2 else faster(0.66)(result)

    return simulate_results({"rocksdb": 1000.0, "lmdb": 1050.0}, change=clock, repeats=10)


def shift_bucket() -> ResultSet:
    """In every block, the p99 of lmdb is one bucket above rocksdb's: by less than 0.1 %, a histogram's resolution."""

    def step(result: TrialResult) -> TrialResult:
        p99 = result.values["read.p99"]
        return replace(result, values={**result.values, "read.p99": replace(p99, value=p99.value + p99.resolution)})

    flat = {"rocksdb": 1000.0, "lmdb": 1000.0}
    return simulate_results(
        flat, noise=0.0, change=change_system("lmdb", step), question=asking(metrics=("read.p99",)), repeats=10
    )


def measure_figures(count: int) -> ResultSet:
    """lmdb is 10 % faster at 4 % noise, a difference that six blocks show (p = 0.002) for a single figure."""
    return simulate_results(
        {"rocksdb": 1000.0, "lmdb": 1100.0},
        noise=0.04,
        change=with_parts(count),
        question=asking(metrics=("throughput", *parts(count))),
    )


def compress_values(result: TrialResult) -> TrialResult:
    """Values of 16 kB, each stored in one page of 4 kB; 95 % of the reads reach the device."""
    operations = result.values["operations"].value
    pages = 0.95 * operations
    return set_figures(
        returned=16_000 * operations, device__reads=pages, device__read=4096 * pages, device__read_per_operation=3891
    )(result)


def add_outlier() -> ResultSet:
    """lmdb is 10 % faster than rocksdb, but one of the forty trials is 20 % too slow."""
    return simulate_results(
        {"rocksdb": 1000.0, "lmdb": 1100.0}, repeats=20, change=change_system("lmdb", faster(0.8), 7)
    )


TAIL = ("read.p99", "all.p99", "read.p99.9", "all.p99.9")
longer_tail = change_system("lmdb", scale_metrics(TAIL, 2.0))
DECIDED = [
    Case("a third faster, without faults", simulate_results, (wins("lmdb", 4 / 3), verdict("valid"))),
    Case(
        "half as fast, nothing wrong",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 500.0}),
        (wins("rocksdb", 0.5), verdict("valid")),
    ),
    Case(
        "ten percent faster while the machine slows down by a fifth, blocks interleaved",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1100.0}, drift=0.2, repeats=10),
        (wins("lmdb", 1.1), verdict("valid")),
    ),
    Case(
        "five percent faster on a host with two clock speeds, blocks interleaved",
        fast_and_slow_blocks,
        (wins("lmdb", 1.05), verdict("valid")),
    ),
    Case("ten percent faster, one outlier in forty trials", add_outlier, (wins("lmdb", 1.1), verdict("valid"))),
    Case(
        "1.5 percent faster with little noise",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1015.0}, noise=0.001, repeats=10),
        (wins("lmdb", 1.015, 0.003), verdict("valid")),
    ),
    Case(
        "ten times faster, 14 percent of its time is the engine's overhead",
        lambda: overhead(0.163 * MS),
        (wins_by_a_bound("lmdb", 8.3, 10.0), fires("generator-limited"), verdict("valid")),
    ),
    Case(
        "five times faster although the executor of the faster side is saturated",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 5000.0},
            change=both(
                facts(networked="yes"),
                set_figures(executor__busy_max=0.3),
                change_system("lmdb", set_figures(executor__busy_max=0.97)),
            ),
        ),
        (wins_by_a_bound("lmdb", 4.7, 5.3), fires("generator-limited"), verdict("suspect")),
    ),
    Case(
        "ten times faster, 0.2 percent of the operations failed in one trial of forty",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 10_000.0}, repeats=20, change=change_system("lmdb", fail_share(0.002), 5)
        ),
        (wins("lmdb", 10.0, 0.05), fires("errors"), verdict("suspect")),
    ),
    Case(
        "a third faster, one operation in twenty thousand failed on both sides",
        lambda: simulate_results(change=fail_share(0.00005)),
        (wins("lmdb", 4 / 3), verdict("valid"), fires("errors", "note")),
    ),
    Case(
        "a third faster, the slower side needed a second attempt once",
        lambda: simulate_results(change=change_system("rocksdb", failing("connection refused"), 3)),
        (wins("lmdb", 4 / 3), verdict("suspect"), fires("retried", "suspect")),
    ),
    Case(
        "twice as fast in ten blocks, the faster side needed a second attempt once",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 2000.0}, 10, change=change_system("lmdb", failing("connection refused"), 3)
        ),
        (wins("lmdb", 2.0), verdict("suspect")),
    ),
    Case(
        "two and a half times faster, all data in memory, without a claim about a device",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 2500.0},
            change=set_figures(device__reads=20, device__read=80_000, device__read_per_operation=1.3),
        ),
        (wins("lmdb", 2.5), verdict("valid"), fires("page-cache", "note")),
    ),
    Case(
        "values of 16 kB in compressed pages of 4 kB, with a claim about the device: few bytes, as many device reads",
        lambda: simulate_results(change=compress_values, question=asking(claims="device")),
        (wins("lmdb", 4 / 3), verdict("valid"), silent("page-cache")),
    ),
    Case(
        "one setting, called none in old results and interval in new ones",
        lambda: simulate_results(
            change=both(
                facts(durability="interval", how="synchronous_commit=off, fsync=on"),
                change_system("rocksdb", facts(durability="none")),
            )
        ),
        (wins("lmdb", 4 / 3), verdict("valid"), fires("guarantees-differ", "note")),
    ),
    Case(
        "a store that was set to none and provides interval, compared with a store set to interval",
        lambda: simulate_results(
            change=both(facts(durability="interval"), rename_dimension("durability", rocksdb="none", lmdb="interval"))
        ),
        (wins("interval", 4 / 3), verdict("valid"), silent("guarantees-differ")),
    ),
    Case(
        "the price of durability, the compared dimension",
        lambda: simulate_results(
            {"rocksdb": 100.0, "lmdb": 3000.0},
            change=both(
                change_system("rocksdb", facts(durability="device")),
                rename_dimension("durability", rocksdb="device", lmdb="os"),
            ),
        ),
        (wins("os", 30.0, 0.05), verdict("valid")),
    ),
    Case(
        "one copy against three, varied as numbers and known as texts",
        lambda: simulate_results(
            {"rocksdb": 2000.0, "lmdb": 1000.0},
            change=both(
                change_system("rocksdb", facts(replication="1", replication_acknowledged="1")),
                change_system("lmdb", facts(replication="3", replication_acknowledged="2")),
                rename_dimension("rf", rocksdb=1, lmdb=3),
            ),
        ),
        (wins(1, 0.5), verdict("valid")),
    ),
    Case(
        "five nodes compared with three, by number of nodes",
        lambda: simulate_results(
            {"rocksdb": 3000.0, "lmdb": 5000.0},
            change=both(
                change_system("rocksdb", facts(data_nodes=3)),
                change_system("lmdb", facts(data_nodes=5)),
                rename_dimension("data_nodes", rocksdb=3, lmdb=5),
            ),
        ),
        (wins(5, 5 / 3), verdict("valid"), silent("hosts-differ")),
    ),
    Case(
        "five nodes compared with three, an unintended difference",
        lambda: simulate_results(
            {"rocksdb": 3000.0, "lmdb": 5000.0},
            change=both(change_system("rocksdb", facts(data_nodes=3)), change_system("lmdb", facts(data_nodes=5))),
        ),
        (wins("lmdb", 5 / 3), verdict("suspect"), fires("hosts-differ", "suspect")),
    ),
    Case(
        "memory of the hosts differs by one percent",
        lambda: simulate_results(change=change_system("lmdb", facts(memory_bytes=63_400_000_000))),
        (wins("lmdb", 4 / 3), verdict("valid"), silent("hosts-differ")),
    ),
    Case(
        "half the tail latency at a rate that both reach",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 2000.0}, make=run_at_rate, question=asking(metrics=("read.p99",))
        ),
        (wins("lmdb", 0.5), verdict("valid")),
        metric="read.p99",
    ),
    Case(
        "the generator was late by 5 ms, and the tails are 90 and 30 ms",
        lambda: delay_responses({"rocksdb": 90.0, "lmdb": 30.0}, 5.0),
        (
            # The ratio is between 25 ÷ 90 and 30 ÷ 85, whatever the effect of the lateness.
            favours("lmdb"),
            verdict("valid", "suspect"),
        ),
        metric="read.p99",
    ),
    Case(
        "operations waited for a client at a rate that both reach",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 2000.0},
            make=run_at_rate,
            change=set_figures(late__client=900),
            question=asking(metrics=("read.p99",)),
        ),
        (wins("lmdb", 0.5), verdict("valid"), fires("client-limited", "note")),
        metric="read.p99",
    ),
    Case(
        "another machine took six percent of the processors from both sides alike",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 2000.0}, change=set_figures(cpu__steal=0.06)),
        (wins("lmdb", 2.0), verdict("suspect"), fires("interference", "suspect")),
    ),
    Case(
        "measured in two runs, 1.5 times as fast",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1500.0}, interleaved=False),
        (wins("lmdb", 1.5), verdict("unchecked"), fires("sides-differ", "unchecked")),
    ),
    Case(
        "lmdb is faster in reads",
        two_workloads,
        (wins("lmdb", 1.5), verdict("valid")),
        context={"workload": "reads"},
    ),
    Case(
        "and slower in writes, in one experiment",
        two_workloads,
        (wins("rocksdb", 0.5), verdict("valid")),
        context={"workload": "writes"},
    ),
    Case(
        "higher throughput with a longer tail: the throughput",
        lambda: simulate_results(change=longer_tail, question=asking(metrics=("throughput", "read.p99"))),
        (wins("lmdb", 4 / 3), verdict("valid")),
    ),
    Case(
        "higher throughput with a longer tail: the tail",
        lambda: simulate_results(
            change=longer_tail,
            question=asking(metrics=("throughput", "read.p99")),
        ),
        (wins("rocksdb", 1.5), verdict("valid")),
        metric="read.p99",
    ),
    Case(
        "the first metric is claimed, whatever the number of other metrics",
        lambda: measure_figures(24),
        (wins("lmdb", 1.1, 0.06), verdict("valid")),
    ),
    Case(
        "every value read was verified",
        lambda: simulate_results(question=asking(verify=True)),
        (wins("lmdb", 4 / 3), verdict("valid"), silent("unverified")),
    ),
    Case(
        "a third faster with a throughput that varies by a few percent between seconds",
        lambda: simulate_results(
            minute=lambda result: make_series(result, lambda at: typical(60, 0.03, result.trial)[at])
        ),
        (wins("lmdb", 4 / 3), verdict("valid"), silent("not-steady")),
    ),
    Case(
        "one store twice, with little noise",
        lambda: simulate_results({"first": 1000.0, "second": 1000.0}, noise=0.001, repeats=10),
        (expect_same(), verdict("valid")),
    ),
    Case(
        "one store twice, one percent of noise and many repeats",
        lambda: simulate_results({"first": 1000.0, "second": 1000.0}, noise=0.01, repeats=30),
        (expect_same(), verdict("valid")),
    ),
    Case(
        "0.3 percent faster for certain, in forty blocks",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1003.0}, noise=0.002, repeats=40),
        (differs_little(), verdict("valid")),
    ),
    Case(
        "three percent faster for certain, where only five percent matter",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1030.0}, noise=0.002, repeats=10, question=asking(matters=0.05)
        ),
        (differs_little(), verdict("valid")),
    ),
    Case(
        "a p99 that is always one bucket of the histogram higher",
        shift_bucket,
        (expect_same_or_slight(), verdict("valid")),
        metric="read.p99",
    ),
]
