"""Worlds in which a right answer exists and must be given, however much is wrong beside it.

Not expressible in a result set, so not here: a fault that the experiment asked for (its windows are not in the data).
"""

from __future__ import annotations

from dataclasses import replace

from judge_support import Spoil, asking, both, facts, failing
from known_truth_expected import (
    Case,
    differs_little,
    favours,
    fires,
    same,
    same_or_differs_little,
    silent,
    verdict,
    wins,
    wins_by_a_bound,
)
from known_truth_support import (
    MS,
    course,
    failed,
    faster,
    figure,
    given,
    of_trials,
    on,
    parts,
    scaled,
    trial,
    typical,
    with_parts,
    world,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar, TrialResult


def at_a_rate(system: str, block: int, rate: float) -> TrialResult:
    """1,000 op/s are due and done; `rate` is turned into a latency: 1,000 op/s are 10 ms."""
    return trial(system, block, 1000.0, target=1000.0, mean_ns=10 * MS * 1000 / rate)


def named(dimension: str, **values: Scalar) -> Spoil:
    """Systems under another dimension: each one's trials get the value that stands for it."""

    def spoil(one: TrialResult) -> TrialResult:
        return replace(one, config={dimension: values[str(one.config["system"])]})

    return spoil


def overhead(cost_ns: float) -> ResultSet:
    """Embedded stores of which one needs 10 ms for an operation and the other 1 ms, each with our own time on top."""
    rates = {"rocksdb": 10 * 1e9 / (10 * MS + cost_ns), "lmdb": 10 * 1e9 / (1 * MS + cost_ns)}
    return world(rates, spoil=given(driver=cost_ns), noise=0.005)


def late(response_ms: dict[str, float], lateness_ms: float) -> ResultSet:
    """One operation of twenty went out late by us, and the p99 of each side is that much too long."""

    def spoil(one: TrialResult) -> TrialResult:
        p99 = response_ms[str(one.config["system"])] * MS * one.values["read.p50"].value / (9 * MS)
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
        return given(late__generator=3000)(replace(one, values={**one.values, **changed}))

    flat = {"rocksdb": 1000.0, "lmdb": 1000.0}
    return world(flat, make=at_a_rate, spoil=spoil, question=asking(metrics=("read.p99",)))


def in_two_workloads() -> ResultSet:
    """lmdb is 1.5 times as fast in the one and half as fast in the other."""
    made = []
    for workload, rate in (("reads", 1500.0), ("writes", 500.0)):
        for one in world({"rocksdb": 1000.0, "lmdb": rate}).trials:
            config = {**one.config, "workload": workload}
            made.append(replace(one, trial=f"{workload}-{one.trial}", config=config))
    return of_trials(made, question=asking(by="system", metrics=("throughput",)))


def fast_and_slow_blocks() -> ResultSet:
    """The host runs at one of two clocks in each block, a third apart; lmdb is 5 % faster in every one."""

    def clock(one: TrialResult) -> TrialResult:
        return one if one.repeat % 2 else faster(0.66)(one)

    return world({"rocksdb": 1000.0, "lmdb": 1050.0}, spoil=clock, repeats=10)


def one_step_of_the_histogram() -> ResultSet:
    """The p99 of lmdb is one bucket higher in every block: 0.1 %, which is as far as a histogram sees."""

    def step(one: TrialResult) -> TrialResult:
        p99 = one.values["read.p99"]
        return replace(one, values={**one.values, "read.p99": replace(p99, value=p99.value + p99.resolution)})

    flat = {"rocksdb": 1000.0, "lmdb": 1000.0}
    return world(flat, noise=0.0, spoil=on("lmdb", step), question=asking(metrics=("read.p99",)), repeats=10)


def many_figures(count: int) -> ResultSet:
    """lmdb is 10 % faster at 4 % of noise, which six blocks show (p = 0.002) if they are asked for nothing else."""
    return world(
        {"rocksdb": 1000.0, "lmdb": 1100.0},
        noise=0.04,
        spoil=with_parts(count),
        question=asking(metrics=("throughput", *parts(count))),
    )


def compressed(one: TrialResult) -> TrialResult:
    """Values of 16 kB, of which each is in one page of 4 kB; 95 reads of a hundred reach the device."""
    operations = one.values["operations"].value
    pages = 0.95 * operations
    return given(
        returned=16_000 * operations, device__reads=pages, device__read=4096 * pages, device__read_per_operation=3891
    )(one)


def one_outlier() -> ResultSet:
    """One trial of forty is a fifth slower than it should be; lmdb is 10 % faster."""
    return world({"rocksdb": 1000.0, "lmdb": 1100.0}, repeats=20, spoil=on("lmdb", faster(0.8), 7))


TAIL = ("read.p99", "all.p99", "read.p99.9", "all.p99.9")
longer_tail = on("lmdb", scaled(TAIL, 2.0))
GIVEN = [
    Case("a third faster, nothing wrong", world, (wins("lmdb", 4 / 3), verdict("valid"))),
    Case(
        "half as fast, nothing wrong",
        lambda: world({"rocksdb": 1000.0, "lmdb": 500.0}),
        (wins("rocksdb", 0.5), verdict("valid")),
    ),
    Case(
        "ten percent faster while the machine slows down by a fifth, blocks interleaved",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1100.0}, drift=0.2, repeats=10),
        (wins("lmdb", 1.1), verdict("valid")),
    ),
    Case(
        "five percent faster on a host with two clock speeds, blocks interleaved",
        fast_and_slow_blocks,
        (wins("lmdb", 1.05), verdict("valid")),
    ),
    Case("ten percent faster, one outlier in forty trials", one_outlier, (wins("lmdb", 1.1), verdict("valid"))),
    Case(
        "one and a half percent faster and hardly any noise",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1015.0}, noise=0.001, repeats=10),
        (wins("lmdb", 1.015, 0.003), verdict("valid")),
    ),
    Case(
        "ten times faster, 14 percent of its time is our own overhead",
        lambda: overhead(0.163 * MS),
        (wins_by_a_bound("lmdb", 8.3, 10.0), fires("generator-limited"), verdict("valid")),
    ),
    Case(
        "five times faster although the executor of the faster side is saturated",
        lambda: world(
            {"rocksdb": 1000.0, "lmdb": 5000.0},
            spoil=both(
                facts(networked="yes"), given(executor__busy_max=0.3), on("lmdb", given(executor__busy_max=0.97))
            ),
        ),
        (wins_by_a_bound("lmdb", 4.7, 5.3), fires("generator-limited"), verdict("suspect")),
    ),
    Case(
        "ten times faster, 0.2 percent of the operations failed in one trial of forty",
        lambda: world({"rocksdb": 1000.0, "lmdb": 10_000.0}, repeats=20, spoil=on("lmdb", failed(0.002), 5)),
        (wins("lmdb", 10.0, 0.05), fires("errors"), verdict("suspect")),
    ),
    Case(
        "a third faster, one operation in twenty thousand failed on both sides",
        lambda: world(spoil=failed(0.00005)),
        (wins("lmdb", 4 / 3), verdict("valid"), fires("errors", "note")),
    ),
    Case(
        "a third faster, the slower side needed a second attempt once",
        lambda: world(spoil=on("rocksdb", failing("connection refused"), 3)),
        (wins("lmdb", 4 / 3), verdict("suspect"), fires("retried", "suspect")),
    ),
    Case(
        "twice as fast in ten blocks, the faster side needed a second attempt once",
        lambda: world({"rocksdb": 1000.0, "lmdb": 2000.0}, 10, spoil=on("lmdb", failing("connection refused"), 3)),
        (wins("lmdb", 2.0), verdict("suspect")),
    ),
    Case(
        "two and a half times faster, all data in memory, and nobody claims a device",
        lambda: world(
            {"rocksdb": 1000.0, "lmdb": 2500.0},
            spoil=given(device__reads=20, device__read=80_000, device__read_per_operation=1.3),
        ),
        (wins("lmdb", 2.5), verdict("valid"), fires("page-cache", "note")),
    ),
    Case(
        "values of 16 kB in compressed pages of 4 kB, claimed to be the device's: few bytes, as many device reads",
        lambda: world(spoil=compressed, question=asking(claims="device")),
        (wins("lmdb", 4 / 3), verdict("valid"), silent("page-cache")),
    ),
    Case(
        "the same setting, which older results call none and newer ones interval",
        lambda: world(
            spoil=both(
                facts(durability="interval", how="synchronous_commit=off, fsync=on"),
                on("rocksdb", facts(durability="none")),
            )
        ),
        (wins("lmdb", 4 / 3), verdict("valid"), fires("guarantees-differ", "note")),
    ),
    Case(
        "a store asked for none that keeps interval, against one asked for it",
        lambda: world(spoil=both(facts(durability="interval"), named("durability", rocksdb="none", lmdb="interval"))),
        (wins("interval", 4 / 3), verdict("valid"), silent("guarantees-differ")),
    ),
    Case(
        "the price of durability, which is what is compared",
        lambda: world(
            {"rocksdb": 100.0, "lmdb": 3000.0},
            spoil=both(on("rocksdb", facts(durability="device")), named("durability", rocksdb="device", lmdb="os")),
        ),
        (wins("os", 30.0, 0.05), verdict("valid")),
    ),
    Case(
        "one copy against three, varied as numbers and known as texts",
        lambda: world(
            {"rocksdb": 2000.0, "lmdb": 1000.0},
            spoil=both(
                on("rocksdb", facts(replication="1", replication_acknowledged="1")),
                on("lmdb", facts(replication="3", replication_acknowledged="2")),
                named("rf", rocksdb=1, lmdb=3),
            ),
        ),
        (wins(1, 0.5), verdict("valid")),
    ),
    Case(
        "five nodes against three, which is what is compared",
        lambda: world(
            {"rocksdb": 3000.0, "lmdb": 5000.0},
            spoil=both(
                on("rocksdb", facts(data_nodes=3)),
                on("lmdb", facts(data_nodes=5)),
                named("data_nodes", rocksdb=3, lmdb=5),
            ),
        ),
        (wins(5, 5 / 3), verdict("valid"), silent("hosts-differ")),
    ),
    Case(
        "five nodes against three, which nobody asked for",
        lambda: world(
            {"rocksdb": 3000.0, "lmdb": 5000.0},
            spoil=both(on("rocksdb", facts(data_nodes=3)), on("lmdb", facts(data_nodes=5))),
        ),
        (wins("lmdb", 5 / 3), verdict("suspect"), fires("hosts-differ", "suspect")),
    ),
    Case(
        "memory of the hosts differs by one percent",
        lambda: world(spoil=on("lmdb", facts(memory_bytes=63_400_000_000))),
        (wins("lmdb", 4 / 3), verdict("valid"), silent("hosts-differ")),
    ),
    Case(
        "half the tail latency at a rate that both hold",
        lambda: world({"rocksdb": 1000.0, "lmdb": 2000.0}, make=at_a_rate, question=asking(metrics=("read.p99",))),
        (wins("lmdb", 0.5), verdict("valid")),
        metric="read.p99",
    ),
    Case(
        "the generator was late by 5 ms, and the tails are 90 and 30 ms",
        lambda: late({"rocksdb": 90.0, "lmdb": 30.0}, 5.0),
        (
            # Between 25 ÷ 90 and 30 ÷ 85, whatever the lateness did.
            favours("lmdb"),
            verdict("valid", "suspect"),
        ),
        metric="read.p99",
    ),
    Case(
        "operations waited for a client at a rate that both hold",
        lambda: world(
            {"rocksdb": 1000.0, "lmdb": 2000.0},
            make=at_a_rate,
            spoil=given(late__client=900),
            question=asking(metrics=("read.p99",)),
        ),
        (wins("lmdb", 0.5), verdict("valid"), fires("client-limited", "note")),
        metric="read.p99",
    ),
    Case(
        "another machine took six percent of the processors from both sides alike",
        lambda: world({"rocksdb": 1000.0, "lmdb": 2000.0}, spoil=given(cpu__steal=0.06)),
        (wins("lmdb", 2.0), verdict("suspect"), fires("interference", "suspect")),
    ),
    Case(
        "measured in two runs, half as fast again",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1500.0}, interleaved=False),
        (wins("lmdb", 1.5), verdict("unchecked"), fires("sides-differ", "unchecked")),
    ),
    Case(
        "lmdb is faster in reads",
        in_two_workloads,
        (wins("lmdb", 1.5), verdict("valid")),
        context={"workload": "reads"},
    ),
    Case(
        "and slower in writes, by the same experiment",
        in_two_workloads,
        (wins("rocksdb", 0.5), verdict("valid")),
        context={"workload": "writes"},
    ),
    Case(
        "higher throughput with a longer tail: the throughput",
        lambda: world(spoil=longer_tail, question=asking(metrics=("throughput", "read.p99"))),
        (wins("lmdb", 4 / 3), verdict("valid")),
    ),
    Case(
        "higher throughput with a longer tail: the tail",
        lambda: world(
            spoil=longer_tail,
            question=asking(metrics=("throughput", "read.p99")),
        ),
        (wins("rocksdb", 1.5), verdict("valid")),
        metric="read.p99",
    ),
    Case(
        "the first metric is claimed, however many others are looked at",
        lambda: many_figures(24),
        (wins("lmdb", 1.1, 0.06), verdict("valid")),
    ),
    Case(
        "every value read was verified",
        lambda: world(question=asking(verify=True)),
        (wins("lmdb", 4 / 3), verdict("valid"), silent("unverified")),
    ),
    Case(
        "a third faster with a throughput that sways by a few percent from second to second",
        lambda: world(minute=lambda one: course(one, lambda at: typical(60, 0.03, one.trial)[at])),
        (wins("lmdb", 4 / 3), verdict("valid"), silent("not-steady")),
    ),
    Case(
        "the same store twice, hardly any noise",
        lambda: world({"first": 1000.0, "second": 1000.0}, noise=0.001, repeats=10),
        (same(), verdict("valid")),
    ),
    Case(
        "the same store twice, one percent of noise and many repeats",
        lambda: world({"first": 1000.0, "second": 1000.0}, noise=0.01, repeats=30),
        (same(), verdict("valid")),
    ),
    Case(
        "0.3 percent faster for certain, in forty blocks",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1003.0}, noise=0.002, repeats=40),
        (differs_little(), verdict("valid")),
    ),
    Case(
        "three percent faster for certain, where only five percent matter",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1030.0}, noise=0.002, repeats=10, question=asking(matters=0.05)),
        (differs_little(), verdict("valid")),
    ),
    Case(
        "a p99 that is one step of the histogram higher, every time",
        one_step_of_the_histogram,
        (same_or_differs_little(), verdict("valid")),
        metric="read.p99",
    ),
]
