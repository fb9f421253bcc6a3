"""Scenarios in which a claim would be wrong or rest on misleading figures: the judge must refuse or question it.

A result set cannot express the instants of clock jumps, or the trial that caused a device read. The figures
`clock.jumps` and `device.reads` represent them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from judge_support import Change, asking, both, facts, failing, noting, with_end
from known_truth_decided import delay_responses, run_at_rate
from known_truth_expected import (
    Case,
    expect_bound,
    expect_no_claim,
    expect_overall,
    expect_refusal,
    favours,
    fires,
    says,
    silent,
    unsure,
    verdict,
    wins,
)
from known_truth_support import (
    MS,
    change_system,
    fail_share,
    make_series,
    scale_metrics,
    set_bound,
    set_figures,
    simulate_results,
    trial,
)
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


def make_overload(capacity: float, due: float = 1000.0) -> Make:
    """A rate above capacity: operations queue, and the queue is cut off 5 s after the end of the window."""

    def make(system: str, block: int, rate: float) -> TrialResult:
        done = capacity * rate / 1000
        never = max(0.0, due * 60 - done * 65)
        behind_ns = 60e9 * (1 - done / due)
        result = trial(system, block, done, target=due, mean_ns=behind_ns / 2)
        ended_ones = round(due * 60 - never)
        result = set_figures(
            censored=round(never), operations=ended_ones, read__count=ended_ones, returned=1000 * ended_ones
        )(result)
        for percentile in ("p90", "p95", "p99", "p99.9", "max") if never else ():
            result = both(set_bound(f"read.{percentile}", "at_least"), set_bound(f"all.{percentile}", "at_least"))(
                result
            )
        return replace(result, statuses={"READ": {"OK": ended_ones, "CENSORED": round(never)}})

    return make


def overload(capacities: dict[str, float]) -> ResultSet:
    """1,000 op/s are due; a side reaches this rate, or only its capacity."""

    def make(system: str, block: int, rate: float) -> TrialResult:
        if capacities[system] >= 1000:
            return run_at_rate(system, block, 1000.0)
        return make_overload(capacities[system])(system, block, rate)

    def minute(result: TrialResult) -> Series:
        capacity = capacities[str(result.config["system"])]
        # An operation due at second t waits for the backlog at t; the queue is empty at the start.
        end_ns = max(0.0, 60e9 * (1 - capacity / 1000))
        series = make_series(result)
        if not end_ns:
            return series
        queue = tuple(10 * MS + end_ns * (at + 0.5) / 60 for at in range(60))
        return replace(series, p50_ns=queue, p99_ns=tuple(1.05 * value for value in queue))

    return simulate_results(dict.fromkeys(capacities, 1000.0), make=make, minute=minute, question=BOTH)


def dips(every: int, depth: float, seconds: int = 1) -> Minute:
    """Throughput drops by `depth` for some seconds, periodically."""
    return lambda result: make_series(result, lambda at: 1 - depth if at % every < seconds else 1.0)


def side_series(system: str, minute: Minute) -> Minute:
    """The time series of one system's trials; the other systems are steady."""
    return lambda result: minute(result) if result.config["system"] == system else make_series(result)


def tails(result: TrialResult) -> Series:
    """Throughput and median are constant; the p99 grows tenfold in the second half."""
    series = make_series(result)
    p99 = tuple((value or 0.0) * (10 if at >= 30 else 1) for at, value in enumerate(series.p99_ns))
    return replace(series, p99_ns=p99)


def mix_units() -> ResultSet:
    """One side has its throughput in bytes per second."""
    in_bytes = change_system(
        "lmdb", lambda result: replace(result, values={**result.values, "throughput": per_byte(result)})
    )
    return simulate_results(change=in_bytes)


def per_byte(result: TrialResult) -> Value:
    """The throughput in B/s."""
    throughput = result.values["throughput"]
    return replace(throughput, value=1000 * throughput.value, unit="B/s")


def small_values(result: TrialResult) -> TrialResult:
    """Values of 100 B; 5 % of the reads fetch 4 kB each from the device: twice the bytes that the store returns."""
    operations = result.values["operations"].value
    return set_figures(
        returned=100 * operations,
        device__reads=0.05 * operations,
        device__read=0.05 * 4096 * operations,
        device__read_per_operation=0.05 * 4096,
    )(result)


def add_servers(**busy: float) -> Change:
    """Marks the store as networked; the busiest executor of a side was busy for this share of the time."""
    sides = [change_system(system, set_figures(executor__busy_max=share)) for system, share in busy.items()]
    return both(facts(networked="yes"), *sides)


def drop_fact(changed_system: str, name: str) -> Change:
    """Removes a fact from one side."""
    return change_system(
        changed_system,
        lambda result: replace(result, facts={key: value for key, value in result.facts.items() if key != name}),
    )


REFUSED = [
    # A rate that is not held.
    Case(
        "the load is 30 percent too high on one side: latencies reveal the length of the window",
        lambda: overload({"rocksdb": 700.0, "lmdb": 2000.0}),
        (expect_refusal("rate-not-held"),),
        metric=P99,
    ),
    Case(
        "the load is too high on one side: its throughput is its capacity",
        lambda: overload({"rocksdb": 700.0, "lmdb": 2000.0}),
        (favours("lmdb"), fires("rate-not-held", "invalid"), says("capacity"), verdict("valid")),
    ),
    Case(
        "the load is 5 percent too high on both sides, and everything is answered by the cut-off",
        lambda: overload({"rocksdb": 950.0, "lmdb": 950.0}),
        (expect_refusal("rate-not-held"),),
        metric=P99,
    ),
    Case(
        "the load is far too high on both sides: capacities are compared",
        lambda: overload({"rocksdb": 400.0, "lmdb": 600.0}),
        (wins("lmdb", 1.5), says("capacity"), verdict("valid")),
    ),
    Case(
        "a backlog of the warm-up fills the first fifth of the window, at a rate",
        lambda: simulate_results(
            TWICE,
            make=run_at_rate,
            change=change_system("rocksdb", set_figures(carried=12_000, carried__max=12e9)),
            question=BOTH,
        ),
        (expect_refusal("carried-over"),),
        metric=P99,
    ),
    # Failures.
    Case(
        "the faster side immediately refuses a third of the requests",
        lambda: simulate_results(TWICE, change=change_system("lmdb", fail_share(0.33))),
        (expect_refusal("errors"),),
    ),
    Case(
        "two percent faster, with half a percent of failures in half of its trials",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1020.0}, noise=0.002, change=change_system("lmdb", fail_share(0.005), 1, 3, 5)
        ),
        (expect_refusal("errors"),),
    ),
    Case(
        "the p99 falls on failed operations",
        lambda: simulate_results(
            change=change_system("lmdb", fail_share(0.02)),
            question=asking(metrics=(P99,), checks={"errors": {"share": 0.1}}),
        ),
        (expect_bound(), verdict("unchecked")),
        metric=P99,
    ),
    Case(
        "the p99 is a lower bound, as operations never completed",
        lambda: simulate_results(change=change_system("lmdb", set_bound(P99, "at_least"), 2), question=BOTH),
        (expect_bound(), verdict("valid")),
        metric=P99,
    ),
    Case(
        "one and a half times as fast, after eight attempts that crashed",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, change=change_system("lmdb", failing("crashed", "crashed"), 1, 2, 3, 4)
        ),
        (expect_refusal("retried"), fires("retried", "invalid")),
    ),
    Case(
        "a server of the faster side ended during one trial",
        lambda: simulate_results(
            TWICE, change=change_system("lmdb", noting("server-died", "redis-1 exited during the trial"), 4)
        ),
        (expect_refusal("server-died"),),
    ),
    Case(
        "one engine of four vanished in one trial",
        lambda: simulate_results(change=change_system("rocksdb", set_figures(segments=4, segments__lost=1), 2)),
        (expect_refusal("lost-segment"),),
    ),
    Case(
        "a trial was stopped half way",
        lambda: simulate_results(change=change_system("lmdb", with_end("stopped"), 6)),
        (expect_refusal("incomplete"),),
    ),
    Case(
        "one of a million values was wrong",
        lambda: simulate_results(TWICE, change=change_system("lmdb", set_figures(wrong=1), 3)),
        (expect_refusal("unverified"),),
    ),
    Case(
        "verification was requested, and one value per trial was verified",
        lambda: simulate_results(TWICE, change=set_figures(verified=1), question=asking(verify=True)),
        (expect_refusal("unverified"),),
    ),
    Case(
        "a twentieth of the reads came before their insert was done",
        lambda: simulate_results(
            change=lambda result: set_figures(not_yet=0.05 * result.values["operations"].value)(result)
        ),
        (verdict("suspect", "invalid"), fires("unverified", "suspect"), favours("lmdb")),
    ),
    # The generator.
    Case(
        "14 percent of the slower side's time is the engine's overhead, and it is 5 percent behind",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1050.0},
            noise=0.002,
            change=change_system("rocksdb", set_figures(driver=1.4 * MS)),
        ),
        (expect_refusal("generator-limited"),),
    ),
    Case(
        "nine tenths of both sides' time are the engine's overhead, which makes them seem equal",
        lambda: simulate_results(FLAT, noise=0.001, repeats=10, change=set_figures(driver=9 * MS)),
        (expect_no_claim(), fires("generator-limited", "invalid"), verdict("invalid")),
    ),
    Case(
        "a saturated executor on the slower side, closed loop",
        lambda: simulate_results(change=add_servers(rocksdb=0.97, lmdb=0.4)),
        (expect_refusal("generator-limited"),),
    ),
    Case(
        "saturated executors on both sides, which makes them seem equal",
        lambda: simulate_results(FLAT, noise=0.001, repeats=10, change=add_servers(rocksdb=0.99, lmdb=0.99)),
        (expect_no_claim(), fires("generator-limited", "invalid"), verdict("invalid")),
    ),
    Case(
        "the generator was late by 5 ms, and the tails are 30 and 27 ms",
        lambda: delay_responses({"rocksdb": 30.0, "lmdb": 27.0}, 5.0),
        (expect_refusal("generator-limited"),),
        metric=P99,
    ),
    Case(
        "a debug build of the engine",
        lambda: simulate_results(change=facts(profile="debug")),
        (expect_refusal("generator-limited"),),
    ),
    Case(
        "the clock jumped in one trial of a close race",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1030.0},
            noise=0.002,
            change=change_system("lmdb", set_figures(clock__jumps=2), 4),
        ),
        (expect_refusal("clock"),),
    ),
    # Differences between the sides.
    Case(
        "one side syncs every write and the other does not",
        lambda: simulate_results(
            {"rocksdb": 100.0, "lmdb": 3000.0}, change=change_system("rocksdb", facts(durability="device"))
        ),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "a log synced every second against no log",
        lambda: simulate_results(
            TWICE,
            change=both(
                change_system("rocksdb", facts(durability="interval")), change_system("lmdb", facts(durability="none"))
            ),
        ),
        (expect_refusal("guarantees-differ"), says("differ in durability \\(interval against none\\)")),
    ),
    Case(
        "unacknowledged commits against synced ones",
        lambda: simulate_results(
            TWICE,
            change=both(
                change_system("lmdb", facts(durability="interval")),
                change_system("rocksdb", facts(durability="device")),
            ),
        ),
        (expect_refusal("guarantees-differ"), says("differ in durability \\(device against interval\\)")),
    ),
    Case(
        "a log synced every second, and old results with another kind called none",
        lambda: simulate_results(
            TWICE,
            change=both(
                change_system("rocksdb", facts(durability="none", how="no append-only log")),
                change_system("lmdb", facts(durability="interval", how="append-only log, synced each second")),
            ),
        ),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "one side has an unknown durability",
        lambda: simulate_results(TWICE, change=change_system("lmdb", facts(durability="unknown"))),
        (favours("lmdb"), verdict("suspect"), fires("guarantees-differ", "suspect")),
    ),
    Case(
        "both sides have an unknown durability",
        lambda: simulate_results(TWICE, change=facts(durability="unknown")),
        (favours("lmdb"), verdict("suspect"), fires("guarantees-differ", "suspect")),
    ),
    Case(
        "quorum against one replica",
        lambda: simulate_results(
            TWICE,
            change=both(
                change_system("rocksdb", facts(consistency="QUORUM")), change_system("lmdb", facts(consistency="ONE"))
            ),
        ),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "the faster side does not state the durability of a write",
        lambda: simulate_results(TWICE, change=drop_fact("lmdb", "durability")),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "copies written as a number on one side and as the same text on the other",
        lambda: simulate_results(
            TWICE,
            change=both(change_system("rocksdb", facts(replication=3)), change_system("lmdb", facts(replication="3"))),
        ),
        (favours("lmdb"), verdict("valid"), silent("guarantees-differ")),
    ),
    Case(
        "twenty clients against ten",
        lambda: simulate_results(
            TWICE, change=change_system("lmdb", lambda result: replace(scale_metrics(MEANS, 2.0)(result), clients=20))
        ),
        (verdict("suspect", "invalid"), fires("load-differs"), unsure()),
    ),
    Case("operations against bytes", mix_units, (expect_refusal("load-differs"),)),
    Case(
        "another kernel and half the memory on the slower side",
        lambda: simulate_results(
            TWICE, change=change_system("rocksdb", facts(kernel="4.18.0", memory_bytes=32_000_000_000))
        ),
        (verdict("suspect"), fires("hosts-differ", "suspect"), favours("lmdb")),
    ),
    Case(
        "one side's host lost a fifth of its processors to its neighbours, and is 10 percent slower",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1100.0},
            repeats=10,
            change=change_system("rocksdb", set_figures(cpu__steal=0.2)),
        ),
        (verdict("suspect", "invalid"), fires("interference", "suspect"), unsure()),
    ),
    # The time series of the window.
    Case(
        "the faster side doubles its speed over the window",
        lambda: simulate_results(
            TWICE, minute=side_series("lmdb", lambda result: make_series(result, lambda at: 0.67 + 0.67 * at / 59))
        ),
        (verdict("suspect", "invalid"), fires("not-steady", "suspect"), favours("lmdb")),
    ),
    Case(
        "throughput falls by 60 percent for two seconds in every ten",
        lambda: simulate_results(minute=side_series("rocksdb", dips(10, 0.6, 2))),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "throughput falls by 60 percent for one second in twenty",
        lambda: simulate_results(minute=side_series("lmdb", dips(20, 0.6))),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "no answer for one second in every fifteen",
        lambda: simulate_results(minute=side_series("lmdb", dips(15, 1.0))),
        (verdict("suspect", "invalid"), favours("lmdb")),
    ),
    Case(
        "no answer for three seconds, once",
        lambda: simulate_results(minute=side_series("rocksdb", dips(60, 1.0, 3))),
        (verdict("suspect", "invalid"), fires("stalled", "suspect"), favours("lmdb")),
    ),
    Case(
        "the compared p99 grows tenfold half way, at constant throughput",
        lambda: simulate_results(
            TWICE, make=run_at_rate, minute=side_series("lmdb", tails), question=asking(metrics=(P99,))
        ),
        (verdict("suspect", "invalid"), fires("not-steady", "suspect"), unsure()),
        metric=P99,
    ),
    Case(
        "a trial by Loadstone has no time series",
        lambda: simulate_results(minute=lambda result: None if result.trial == "lmdb-2" else make_series(result)),
        (verdict("suspect"), fires("incomplete", "suspect"), favours("lmdb")),
    ),
    Case(
        "no trial by Loadstone has a time series",
        lambda: simulate_results(minute=lambda _: None),
        (verdict("suspect"), fires("incomplete", "suspect"), favours("lmdb")),
    ),
    # Memory and devices.
    Case(
        "0.1 percent of the reads reach the device, with a claim about the device",
        lambda: simulate_results(
            TWICE,
            change=lambda result: set_figures(
                device__reads=0.001 * result.values["operations"].value,
                device__read=4.096 * result.values["operations"].value,
                device__read_per_operation=4.096,
            )(result),
            question=asking(claims="device"),
        ),
        (expect_refusal("page-cache"),),
    ),
    Case(
        "small values in large pages: many device bytes, few device reads, with a claim about the device",
        lambda: simulate_results(TWICE, change=small_values, question=asking(claims="device")),
        (expect_refusal("page-cache"),),
    ),
    Case(
        "data on tmpfs, with a claim about the device",
        lambda: simulate_results(TWICE, change=facts(file_system="tmpfs"), question=asking(claims="device")),
        (expect_refusal("page-cache"),),
    ),
    # Figures that contradict each other.
    Case(
        "percentiles that fall",
        lambda: simulate_results(change=change_system("lmdb", scale_metrics(("read.p99",), 3.0))),
        (expect_refusal("impossible"),),
    ),
    Case(
        "a closed loop whose clients were busy for a third of the time",
        lambda: simulate_results(
            TWICE, change=change_system("rocksdb", scale_metrics(("all.mean", "read.mean"), 0.33))
        ),
        (verdict("suspect", "invalid"), fires("littles-law", "suspect"), favours("lmdb")),
    ),
    # Missing points.
    Case(
        # The first system serves as the baseline: the statements about the pair are true, and the experiment is
        # suspect.
        "the baseline was never measured",
        lambda: simulate_results(question=asking(by="system", baseline="redb")),
        (fires("incomplete", "suspect"), expect_overall("suspect"), wins("lmdb", 4 / 3), verdict("valid")),
    ),
    Case(
        "all trials of a third system are missing",
        lambda: simulate_results(
            planned={f"{name}-{n}": {"system": name} for name in ("rocksdb", "lmdb", "x") for n in range(1, 7)}
        ),
        (fires("incomplete", "suspect"), expect_overall("suspect"), wins("lmdb", 4 / 3), verdict("valid")),
    ),
]
