"""Worlds in which a claim would be wrong, or rest on figures that say something else: it must be refused or doubted.

Not expressible in a result set, so not here: the instants at which a clock jumped, and which device reads were those of
which trial. The closest figures stand for them: `clock.jumps`, `device.reads`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from judge_support import Spoil, asking, both, ended, facts, failing, noting
from known_truth_expected import (
    Case,
    favours,
    fires,
    no_claim,
    refused,
    says,
    silent,
    unranked,
    unsure,
    verdict,
    whole,
    wins,
)
from known_truth_given import at_a_rate, late
from known_truth_support import MS, bounded, course, failed, given, on, scaled, trial, world
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import Value

P99 = "read.p99"
TWICE = {"rocksdb": 1000.0, "lmdb": 2000.0}
FLAT = {"rocksdb": 1000.0, "lmdb": 1000.0}
MEANS = ("all.mean", "read.mean")
Make = Callable[[str, int, float], TrialResult]
Minute = Callable[[TrialResult], Series]
BOTH = asking(metrics=("throughput", P99))


def overloaded(capacity: float, due: float = 1000.0) -> Make:
    """At a rate that is too high: what is due and not done in time waits, and 5 s more are enough for little of it."""

    def make(system: str, block: int, rate: float) -> TrialResult:
        done = capacity * rate / 1000
        never = max(0.0, due * 60 - done * 65)
        behind_ns = 60e9 * (1 - done / due)
        one = trial(system, block, done, target=due, mean_ns=behind_ns / 2)
        ended_ones = round(due * 60 - never)
        one = given(censored=round(never), operations=ended_ones, read__count=ended_ones, returned=1000 * ended_ones)(
            one
        )
        for percentile in ("p90", "p95", "p99", "p99.9", "max") if never else ():
            one = both(bounded(f"read.{percentile}", "at_least"), bounded(f"all.{percentile}", "at_least"))(one)
        return replace(one, statuses={"READ": {"OK": ended_ones, "CENSORED": round(never)}})

    return make


def overload(capacities: dict[str, float]) -> ResultSet:
    """1,000 op/s are due; these do less than that or hold it."""

    def make(system: str, block: int, rate: float) -> TrialResult:
        if capacities[system] >= 1000:
            return at_a_rate(system, block, 1000.0)
        return overloaded(capacities[system])(system, block, rate)

    def minute(one: TrialResult) -> Series:
        capacity = capacities[str(one.config["system"])]
        # Who comes at second t waits for what was not done until then; at the start there is no queue.
        end_ns = max(0.0, 60e9 * (1 - capacity / 1000))
        made = course(one)
        if not end_ns:
            return made
        queue = tuple(10 * MS + end_ns * (at + 0.5) / 60 for at in range(60))
        return replace(made, p50_ns=queue, p99_ns=tuple(1.05 * each for each in queue))

    return world(dict.fromkeys(capacities, 1000.0), make=make, minute=minute, question=BOTH)


def dips(every: int, depth: float, seconds: int = 1) -> Minute:
    """Throughput falls by `depth` for some seconds, again and again."""
    return lambda one: course(one, lambda at: 1 - depth if at % every < seconds else 1.0)


def on_one_side(system: str, minute: Minute) -> Minute:
    """The course of one system's trials; the others are steady."""
    return lambda one: minute(one) if one.config["system"] == system else course(one)


def tails(one: TrialResult) -> Series:
    """Throughput and median stay, the p99 becomes ten times as long in the second half."""
    made = course(one)
    p99 = tuple((each or 0.0) * (10 if at >= 30 else 1) for at, each in enumerate(made.p99_ns))
    return replace(made, p99_ns=p99)


def in_two_units() -> ResultSet:
    """One side's throughput is in bytes."""
    in_bytes = on("lmdb", lambda one: replace(one, values={**one.values, "throughput": per_byte(one)}))
    return world(spoil=in_bytes)


def per_byte(one: TrialResult) -> Value:
    """The throughput in B/s."""
    found = one.values["throughput"]
    return replace(found, value=1000 * found.value, unit="B/s")


def small_values(one: TrialResult) -> TrialResult:
    """Values of 100 B; one read of twenty reaches the device, which gives 4 kB for it: twice as much as is returned."""
    operations = one.values["operations"].value
    return given(
        returned=100 * operations,
        device__reads=0.05 * operations,
        device__read=0.05 * 4096 * operations,
        device__read_per_operation=0.05 * 4096,
    )(one)


def networked(**busy: float) -> Spoil:
    """Servers; the busiest executor of each side ran for this share of the time."""
    sides = [on(system, given(executor__busy_max=share)) for system, share in busy.items()]
    return both(facts(networked="yes"), *sides)


def without(spoiled: str, name: str) -> Spoil:
    """A fact that one side does not tell."""
    return on(spoiled, lambda one: replace(one, facts={key: each for key, each in one.facts.items() if key != name}))


REFUSED = [
    # A rate that is not held.
    Case(
        "30 percent too much is due on one side: latencies tell how long the window was",
        lambda: overload({"rocksdb": 700.0, "lmdb": 2000.0}),
        (refused("rate-not-held"),),
        metric=P99,
    ),
    Case(
        "the same: the throughput of the overloaded side is its capacity",
        lambda: overload({"rocksdb": 700.0, "lmdb": 2000.0}),
        (favours("lmdb"), fires("rate-not-held", "invalid"), says("capacity"), verdict("valid")),
    ),
    Case(
        "5 percent too much is due on both sides, and everything is answered by the cut-off",
        lambda: overload({"rocksdb": 950.0, "lmdb": 950.0}),
        (refused("rate-not-held"),),
        metric=P99,
    ),
    Case(
        "far too much is due on both sides: capacities are compared",
        lambda: overload({"rocksdb": 400.0, "lmdb": 600.0}),
        (wins("lmdb", 1.5), says("capacity"), verdict("valid")),
    ),
    Case(
        "a backlog of the warm-up fills the first fifth of the window, at a rate",
        lambda: world(
            TWICE, make=at_a_rate, spoil=on("rocksdb", given(carried=12_000, carried__max=12e9)), question=BOTH
        ),
        (refused("carried-over"),),
        metric=P99,
    ),
    # Failures.
    Case(
        "the faster side refuses a third of the requests at once",
        lambda: world(TWICE, spoil=on("lmdb", failed(0.33))),
        (refused("errors"),),
    ),
    Case(
        "two percent faster, with half a percent of failures in half of its trials",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1020.0}, noise=0.002, spoil=on("lmdb", failed(0.005), 1, 3, 5)),
        (refused("errors"),),
    ),
    Case(
        "the p99 falls on failed operations",
        lambda: world(
            spoil=on("lmdb", failed(0.02)), question=asking(metrics=(P99,), checks={"errors": {"share": 0.1}})
        ),
        (unranked(), verdict("unchecked")),
        metric=P99,
    ),
    Case(
        "the p99 is a lower bound, as operations never ended",
        lambda: world(spoil=on("lmdb", bounded(P99, "at_least"), 2), question=BOTH),
        (unranked(), verdict("valid")),
        metric=P99,
    ),
    Case(
        "one and a half times as fast, after eight attempts that crashed",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1500.0}, spoil=on("lmdb", failing("crashed", "crashed"), 1, 2, 3, 4)),
        (refused("retried"), fires("retried", "invalid")),
    ),
    Case(
        "a server of the faster side ended during one trial",
        lambda: world(TWICE, spoil=on("lmdb", noting("server-died", "redis-1 ended during the trial"), 4)),
        (refused("server-died"),),
    ),
    Case(
        "one engine of four vanished in one trial",
        lambda: world(spoil=on("rocksdb", given(segments=4, segments__lost=1), 2)),
        (refused("lost-segment"),),
    ),
    Case(
        "a trial was stopped half way",
        lambda: world(spoil=on("lmdb", ended("stopped"), 6)),
        (refused("incomplete"),),
    ),
    Case(
        "one value of a million was not what had been written",
        lambda: world(TWICE, spoil=on("lmdb", given(wrong=1), 3)),
        (refused("unverified"),),
    ),
    Case(
        "values were to be verified, and one of each trial was",
        lambda: world(TWICE, spoil=given(verified=1), question=asking(verify=True)),
        (refused("unverified"),),
    ),
    Case(
        "a twentieth of the reads came before their insert was done",
        lambda: world(spoil=lambda one: given(not_yet=0.05 * one.values["operations"].value)(one)),
        (verdict("suspect", "invalid"), fires("unverified", "suspect"), favours("lmdb")),
    ),
    # The generator.
    Case(
        "14 percent of the slower side's time is our own overhead, and it is 5 percent behind",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1050.0}, noise=0.002, spoil=on("rocksdb", given(driver=1.4 * MS))),
        (refused("generator-limited"),),
    ),
    Case(
        "nine tenths of both sides' time are our own overhead, so that they look equal",
        lambda: world(FLAT, noise=0.001, repeats=10, spoil=given(driver=9 * MS)),
        (no_claim(), fires("generator-limited", "invalid"), verdict("invalid")),
    ),
    Case(
        "a saturated executor on the slower side, closed loop",
        lambda: world(spoil=networked(rocksdb=0.97, lmdb=0.4)),
        (refused("generator-limited"),),
    ),
    Case(
        "saturated executors on both sides, which therefore look equal",
        lambda: world(FLAT, noise=0.001, repeats=10, spoil=networked(rocksdb=0.99, lmdb=0.99)),
        (no_claim(), fires("generator-limited", "invalid"), verdict("invalid")),
    ),
    Case(
        "the generator was late by 5 ms, and the tails are 30 and 27 ms",
        lambda: late({"rocksdb": 30.0, "lmdb": 27.0}, 5.0),
        (refused("generator-limited"),),
        metric=P99,
    ),
    Case(
        "a debug build of the engine",
        lambda: world(spoil=facts(profile="debug")),
        (refused("generator-limited"),),
    ),
    Case(
        "the clock jumped in one trial of a close race",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1030.0}, noise=0.002, spoil=on("lmdb", given(clock__jumps=2), 4)),
        (refused("clock"),),
    ),
    # What is compared is not alike.
    Case(
        "one side syncs every write and the other does not",
        lambda: world({"rocksdb": 100.0, "lmdb": 3000.0}, spoil=on("rocksdb", facts(durability="device"))),
        (refused("guarantees-differ"),),
    ),
    Case(
        "a log that is synced each second against none",
        lambda: world(
            TWICE, spoil=both(on("rocksdb", facts(durability="interval")), on("lmdb", facts(durability="none")))
        ),
        (refused("guarantees-differ"), says("differ in durability \\(interval against none\\)")),
    ),
    Case(
        "commits that are not waited for against synced ones",
        lambda: world(
            TWICE, spoil=both(on("lmdb", facts(durability="interval")), on("rocksdb", facts(durability="device")))
        ),
        (refused("guarantees-differ"), says("differ in durability \\(device against interval\\)")),
    ),
    Case(
        "a log that is synced each second, and in older results one of another kind that is called none",
        lambda: world(
            TWICE,
            spoil=both(
                on("rocksdb", facts(durability="none", how="no append-only log")),
                on("lmdb", facts(durability="interval", how="append-only log, synced each second")),
            ),
        ),
        (refused("guarantees-differ"),),
    ),
    Case(
        "one side does not know what a write survives",
        lambda: world(TWICE, spoil=on("lmdb", facts(durability="unknown"))),
        (favours("lmdb"), verdict("suspect"), fires("guarantees-differ", "suspect")),
    ),
    Case(
        "no side knows what a write survives",
        lambda: world(TWICE, spoil=facts(durability="unknown")),
        (favours("lmdb"), verdict("suspect"), fires("guarantees-differ", "suspect")),
    ),
    Case(
        "quorum against one replica",
        lambda: world(
            TWICE, spoil=both(on("rocksdb", facts(consistency="QUORUM")), on("lmdb", facts(consistency="ONE")))
        ),
        (refused("guarantees-differ"),),
    ),
    Case(
        "the faster side does not say what a write survives",
        lambda: world(TWICE, spoil=without("lmdb", "durability")),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "copies written as a number on one side and as the same text on the other",
        lambda: world(TWICE, spoil=both(on("rocksdb", facts(replication=3)), on("lmdb", facts(replication="3")))),
        (favours("lmdb"), verdict("valid"), silent("guarantees-differ")),
    ),
    Case(
        "twenty clients against ten",
        lambda: world(TWICE, spoil=on("lmdb", lambda one: replace(scaled(MEANS, 2.0)(one), clients=20))),
        (verdict("suspect", "invalid"), fires("load-differs"), unsure()),
    ),
    Case("operations against bytes", in_two_units, (refused("load-differs"),)),
    Case(
        "another kernel and half the memory on the slower side",
        lambda: world(TWICE, spoil=on("rocksdb", facts(kernel="4.18.0", memory_bytes=32_000_000_000))),
        (verdict("suspect"), fires("hosts-differ", "suspect"), favours("lmdb")),
    ),
    Case(
        "one side's host lost a fifth of its processors to its neighbours, and is 10 percent slower",
        lambda: world({"rocksdb": 1000.0, "lmdb": 1100.0}, repeats=10, spoil=on("rocksdb", given(cpu__steal=0.2))),
        (verdict("suspect", "invalid"), fires("interference", "suspect"), unsure()),
    ),
    # The course of the window.
    Case(
        "the faster side doubles its speed over the window",
        lambda: world(TWICE, minute=on_one_side("lmdb", lambda one: course(one, lambda at: 0.67 + 0.67 * at / 59))),
        (verdict("suspect", "invalid"), fires("not-steady", "suspect"), favours("lmdb")),
    ),
    Case(
        "throughput falls by 60 percent for two seconds of ten, all the time",
        lambda: world(minute=on_one_side("rocksdb", dips(10, 0.6, 2))),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "throughput falls by 60 percent for a second of twenty",
        lambda: world(minute=on_one_side("lmdb", dips(20, 0.6))),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "nothing comes back for one second of every fifteen",
        lambda: world(minute=on_one_side("lmdb", dips(15, 1.0))),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "nothing comes back for three seconds, once",
        lambda: world(minute=on_one_side("rocksdb", dips(60, 1.0, 3))),
        (verdict("suspect", "invalid"), fires("stalled", "suspect"), favours("lmdb")),
    ),
    Case(
        "the p99 that is compared becomes ten times as long half way, at an even throughput",
        lambda: world(TWICE, make=at_a_rate, minute=on_one_side("lmdb", tails), question=asking(metrics=(P99,))),
        (verdict("suspect", "invalid"), fires("not-steady", "suspect"), unsure()),
        metric=P99,
    ),
    Case(
        "the course of one trial of ours is missing",
        lambda: world(minute=lambda one: None if one.trial == "lmdb-2" else course(one)),
        (verdict("suspect"), fires("incomplete", "suspect"), favours("lmdb")),
    ),
    Case(
        "no trial of ours has a course",
        lambda: world(minute=lambda _: None),
        (verdict("suspect"), fires("incomplete", "suspect"), favours("lmdb")),
    ),
    # Memory and devices.
    Case(
        "one read of a thousand reaches the device whose results these are claimed to be",
        lambda: world(
            TWICE,
            spoil=lambda one: given(
                device__reads=0.001 * one.values["operations"].value,
                device__read=4.096 * one.values["operations"].value,
                device__read_per_operation=4.096,
            )(one),
            question=asking(claims="device"),
        ),
        (refused("page-cache"),),
    ),
    Case(
        "small values in large pages: many bytes of the device, few of its reads, claimed to be the device's",
        lambda: world(TWICE, spoil=small_values, question=asking(claims="device")),
        (refused("page-cache"),),
    ),
    Case(
        "data on tmpfs, claimed to be the device's",
        lambda: world(TWICE, spoil=facts(file_system="tmpfs"), question=asking(claims="device")),
        (refused("page-cache"),),
    ),
    # Figures that contradict each other.
    Case(
        "percentiles that fall",
        lambda: world(spoil=on("lmdb", scaled(("read.p99",), 3.0))),
        (refused("impossible"),),
    ),
    Case(
        "a closed loop whose clients were busy for a third of the time",
        lambda: world(TWICE, spoil=on("rocksdb", scaled(("all.mean", "read.mean"), 0.33))),
        (verdict("suspect", "invalid"), fires("littles-law", "suspect"), favours("lmdb")),
    ),
    # Points that are missing.
    Case(
        # The first system stands in for the baseline: what is said of the two is true, and the whole is suspect.
        "the baseline was never measured",
        lambda: world(question=asking(by="system", baseline="redb")),
        (fires("incomplete", "suspect"), whole("suspect"), wins("lmdb", 4 / 3), verdict("valid")),
    ),
    Case(
        "all trials of a third system are missing",
        lambda: world(
            planned={f"{name}-{n}": {"system": name} for name in ("rocksdb", "lmdb", "x") for n in range(1, 7)}
        ),
        (fires("incomplete", "suspect"), whole("suspect"), wins("lmdb", 4 / 3), verdict("valid")),
    ),
]
