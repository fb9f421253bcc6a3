"""Deceptive runs: differences between days that look like differences between systems, hidden failures, and searches
with too much or too little confidence."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from judge_support import Change, asking, set_figures
from known_truth_expected import (
    Case,
    expect_no_claim,
    expect_no_trust,
    expect_overall,
    favours,
    fires,
    says,
    unsure,
    verdict,
    wins,
)
from known_truth_imports import compare_files
from known_truth_support import (
    SHAPE,
    change_system,
    collect_results,
    fail_share,
    figure,
    make_series,
    scale_metrics,
    simulate_results,
    trial,
)
from liar_support import (
    DAY_NS,
    HOUR_NS,
    KNOWN,
    START_NS,
    alternating,
    noise,
    plant_difference,
    set_times,
    side,
    ycsb,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.results.union import join_results

LATENCIES = [f"{kind}.{name}" for kind in ("read", "all") for name in (*SHAPE, "mean")]
MINUTE_NS = 60 * 10**9


def begin_in_blocks(trial_of: TrialResult) -> int:
    """Starts each trial a minute after its predecessor."""
    return START_NS + (trial_of.order or 0) * MINUTE_NS


def folder(day: int, rate: float, system: str = "rocksdb") -> ResultSet:
    """One run of six repeats on one day."""
    results = simulate_results({system: rate}, noise=0.005, planned={})
    results = set_times(results, lambda trial_of: START_NS + day * DAY_NS + (trial_of.order or 0) * MINUTE_NS)
    return replace(
        results,
        name=f"run{day}",
        trials=[replace(trial_of, facts={**trial_of.facts, **KNOWN}) for trial_of in results.trials],
    )


def daily(days: tuple[int, ...], other: tuple[int, ...], ratio: float) -> ResultSet:
    """Runs of two commits on these days; the speed of the machine varies by 2 % between days."""
    levels = dict(zip(sorted((*days, *other)), noise("days", len(days) + len(other), 0.02), strict=True))
    first = [folder(day, 1000 * levels[day]) for day in days]
    second = [folder(day, 1000 * ratio * levels[day]) for day in other]
    return join_results([first, second])


def a_day_later(ratio: float) -> ResultSet:
    """A folder declared as interleaved, in which all trials of one side ran a day after the other side's trials."""

    def begin(trial_of: TrialResult) -> int:
        return begin_in_blocks(trial_of) + (DAY_NS if trial_of.config["system"] == "lmdb" else 0)

    return set_times(simulate_results({"rocksdb": 1000.0, "lmdb": 1000.0 * ratio}), begin)


def search_rate(capacity: float = 12_000.0, alter: Change | None = None, **question: object) -> ResultSet:
    """A search for the highest rate, which also tries rates that are not reached."""
    source = random.Random("search")
    results: list[TrialResult] = []
    loads = [1000.0, 2000.0, 4000.0, 8000.0, 16_000.0, 32_000.0, 11_300.0, 13_400.0, 12_300.0, 11_800.0]
    for load in loads:
        jitter = noise(load)
        for repeat in range(1, 7):
            done = min(load, capacity * source.gauss(1, 0.005))
            trial_of = trial("lmdb", repeat, done, load)
            latency = 2e6 if done >= load else 900e6
            trial_of = scale_metrics(LATENCIES, latency * jitter[repeat - 1] / (trial_of.value("all.p99") or 1))(
                trial_of
            )
            trial_of = set_figures(censored=max(0.0, (load - done) * 60))(trial_of)
            name = f"r{load:g}-{repeat}"
            trial_of = replace(
                trial_of, trial=name, config={"system": "lmdb", "rate": load}, facts={**trial_of.facts, "target": load}
            )
            results.append(replace(trial_of if alter is None else alter(trial_of), order=len(results)))
    find: dict[str, Scalar | None] = {"such_that": "p99 < 10ms", "over": "rate", "from": 1000, "to": 32_000}
    searching = replace(asking(), find=find, at_least=3, at_most=6, **question)  # type: ignore[arg-type]
    return collect_results(results, question=searching, interleaved=False)


def dying(share_from: float = 256) -> ResultSet:
    """A search over clients in which the server exits in a quarter of the trials from 256 clients upwards."""
    results: list[TrialResult] = []
    for load in [*(2.0**power for power in range(11)), 181.0, 215.0, 235.0]:
        for repeat in range(1, 5):
            trial_of = trial("lmdb", repeat, 1000.0 * load * noise(load, 4)[repeat - 1])
            trial_of = scale_metrics(LATENCIES, 2e6 / (trial_of.value("all.p99") or 1))(trial_of)
            trial_of = set_figures(device__reads=0, device__read=0, device__read_per_operation=0)(trial_of)
            trial_of = replace(trial_of, clients=int(load), config={"system": "lmdb", "clients": int(load)})
            trial_of = replace(trial_of, trial=f"c{load:g}-{repeat}", order=len(results))
            if load >= share_from and repeat == 1 + len(results) // 4 % 4:
                trial_of = replace(trial_of, end="failed", values={})
            results.append(trial_of)
    find: dict[str, Scalar | None] = {"such_that": "p99 < 10ms", "over": "clients", "from": 1, "to": 1024}
    question = replace(asking(), find=find, at_least=3, at_most=4)
    return collect_results(
        results,
        lambda trial_of: make_series(trial_of) if trial_of.values else None,
        question=question,
        interleaved=False,
    )


def slow_failures(trial_of: TrialResult) -> TrialResult:
    """The slowest 0.08 % time out: the mean of the remaining operations drops to a fifth, the p99 is unchanged."""
    results = fail_share(0.0008)(trial_of)
    return scale_metrics(["read.mean", "all.mean"], 0.2)(results)


def failing_updates(trial_of: TrialResult) -> TrialResult:
    """All updates fail; they are 0.09 % of the load."""
    operations = round(trial_of.values["operations"].value)
    updates = round(0.0009 * operations)
    results = replace(trial_of, statuses={"READ": {"OK": operations - updates}, "UPDATE": {"ERROR": updates}})
    return replace(results, values={**results.values, "errors": figure("errors", updates, operations)})


def ledger(trial_of: TrialResult, acknowledged: float) -> TrialResult:
    """A trial with recorded writes."""
    counts = {f"ledger.{name}": figure(f"ledger.{name}", 0, 1) for name in ("lost", "corrupt", "phantom", "unsure")}
    noted = figure("ledger.acknowledged", acknowledged, 1)
    return replace(trial_of, values={**trial_of.values, **counts, noted.metric: noted})


def miss_rows(share: float, written: float, partitions: float) -> Change:
    """Reads that find no row, and therefore end sooner."""

    def damage(trial_of: TrialResult) -> TrialResult:
        operations = trial_of.values["operations"].value
        counts = set_figures(rows_missing=round(share * operations), partitions_written=written, partitions=partitions)
        return counts(fail_share(share)(trial_of))

    return damage


def miss_point(trials: tuple[int, ...] = ()) -> ResultSet:
    """Three planned points; the third ended without a figure, or has only these repeats."""
    results = simulate_results({"rocksdb": 1000.0, "lmdb": 1300.0, "fjall": 1500.0})
    present = [point for point in results.trials if point.config["system"] != "fjall" or point.repeat in trials]
    return replace(results, trials=present)


# Traps from a hand-written report on Cassandra at scale.
HYDRA = [
    Case(
        "a point of an hour against a point of five minutes",
        lambda: plant_difference(
            1.3,
            alter_second=set_figures(
                runtime=720e9, operations=936_000, read__count=936_000, device__read=3.4e9, returned=9.36e8
            ),
        ),
        (unsure(), verdict("suspect", "invalid"), fires("sides-differ"), says("length of the window")),
    ),
    Case(
        "the 95th percentile of the 95th percentiles of 500 processes",
        lambda: plant_difference(1.3, first={"percentiles_of": "500 processes"}),
        (expect_no_claim(), fires("impossible", "withheld"), says("computed from the percentiles of 500 processes")),
        metric="read.p95",
    ),
    Case(
        "the throughput of 500 processes is a sum",
        lambda: plant_difference(1.3, first={"percentiles_of": "500 processes"}),
        (wins("second", 1.3), verdict("valid")),
    ),
    Case(
        "reads of partitions that were never written",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1900.0}, change=change_system("lmdb", miss_rows(1 / 3, 13_000, 20_000))
        ),
        (unsure(), verdict("invalid"), fires("errors", "invalid"), says("the load wrote only partitions 1 to 13,000")),
    ),
    Case(
        "RF raised by ALTER, without a repair",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1900.0}, change=change_system("lmdb", miss_rows(1 / 2, 20_000, 20_000))
        ),
        (unsure(), verdict("invalid"), fires("errors", "invalid"), says("the replicas that answered lack rows")),
    ),
    Case(
        "a point without a result",
        miss_point,
        (
            expect_overall("suspect"),
            fires("incomplete", "suspect"),
            says("1 of 3 planned variants are missing: system=fjall"),
        ),
    ),
    Case(
        "a point with a result in only one repeat",
        lambda: miss_point((2,)),
        (expect_overall("suspect"), fires("incomplete", "suspect"), says("planned repeats are missing")),
    ),
]


def start_at_hours(plain: Sequence[float], tuned: Sequence[float]) -> ResultSet:
    """Logs of two sides with one run each per day, at these hours of the day."""
    midnight = START_NS - START_NS % DAY_NS
    starts = [[midnight + day * DAY_NS + round(hour * HOUR_NS) for day, hour in enumerate(side)]
              for side in (plain, tuned)]  # fmt: skip
    return compare_files(
        side("plain", ycsb(1000, "a"), begins=starts[0], known=KNOWN),
        side("tuned", ycsb(1100, "b"), begins=starts[1], known=KNOWN),
    )


RUNS = [
    *HYDRA,
    Case(
        "one run of each of two commits, whose days differ by four percent",
        lambda: daily((0,), (1,), 1.04),
        (expect_no_trust(), verdict("suspect"), says("6 .*runs|runs .*6")),
    ),
    Case(
        "six runs of each of two commits, alternating, ten percent apart",
        lambda: daily((0, 2, 4, 6, 8, 10), (1, 3, 5, 7, 9, 11), 1.1),
        (favours("run1"), verdict("valid"), says("n=6 runs")),
    ),
    Case(
        "six runs of one commit, then six of the other",
        lambda: daily((0, 1, 2, 3, 4, 5), (6, 7, 8, 9, 10, 11), 1.1),
        (expect_no_trust(), verdict("suspect")),
    ),
    Case(
        "declared interleaved, but one side ran a day later",
        lambda: a_day_later(1.1),
        (expect_no_trust(), verdict("suspect"), fires("between-runs", "suspect")),
    ),
    Case(
        "declared interleaved, as its times confirm",
        lambda: set_times(simulate_results({"rocksdb": 1000.0, "lmdb": 1100.0}), begin_in_blocks),
        (wins("lmdb", 1.1), verdict("valid")),
    ),
    Case(
        "six logs of one system, and on the next day six of the other",
        lambda: compare_files(
            side("plain", ycsb(1000, "a"), begins=[START_NS + at * HOUR_NS for at in range(6)], known=KNOWN),
            side("tuned", ycsb(1100, "b"), begins=[START_NS + DAY_NS + at * HOUR_NS for at in range(6)], known=KNOWN),
        ),
        (expect_no_trust(), verdict("suspect")),
    ),
    Case(
        "logs whose times alternate",
        lambda: compare_files(
            side("plain", ycsb(1000, "a"), begins=alternating(0), known=KNOWN),
            side("tuned", ycsb(1100, "b"), begins=alternating(1), known=KNOWN),
        ),
        (favours("tuned"), verdict("valid")),
    ),
    Case(
        "alternating nights and afternoons, one side always at night",
        lambda: start_at_hours([0.0] * 6, [12.0] * 6),
        (expect_no_trust(), verdict("suspect"), says("time of day"), says("00:00")),
    ),
    Case(
        "alternating days at the same hours",
        lambda: start_at_hours([0.0, 12.0] * 3, [12.5, 0.5] * 3),
        (favours("tuned"), verdict("valid")),
    ),
    # Failures.
    Case(
        "the slowest operations time out, and the mean omits them",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1000.0},
            change=change_system("lmdb", slow_failures),
            question=asking(metrics=("read.mean",)),
        ),
        (expect_no_claim(), expect_no_trust(), verdict("valid", "suspect", "invalid")),
        metric="read.mean",
    ),
    Case(
        "all updates of one side fail, but few operations are updates",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1300.0}, change=change_system("lmdb", failing_updates)),
        (unsure(), verdict("suspect", "invalid"), fires("errors")),
    ),
    Case(
        "the processors of one side were throttled for 40 percent of the time",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1300.0},
            change=change_system("rocksdb", set_figures(cpu__throttled=0.4)),
            noise=0.005,
        ),
        (unsure(), verdict("suspect", "invalid")),
    ),
    Case(
        "a ledger on one side only",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1300.0},
            change=change_system("rocksdb", lambda trial_of: ledger(trial_of, 50_000)),
        ),
        (unsure(), verdict("suspect", "invalid")),
    ),
    Case(
        "a ledger without an acknowledged write",
        lambda: simulate_results({"rocksdb": 1000.0, "lmdb": 1300.0}, change=lambda trial_of: ledger(trial_of, 0)),
        (unsure(), verdict("suspect", "invalid")),
    ),
    Case(
        "a metric without a known name, in operations a second: more is better",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 1300.0},
            change=lambda trial_of: replace(
                trial_of,
                values={**trial_of.values, "commits": replace(trial_of.values["throughput"], metric="commits")},
            ),
            question=asking(metrics=("commits",)),
        ),
        (wins("lmdb", 1.3), verdict("valid")),
        metric="commits",
    ),
    # Searches.
    Case(
        "a search by rate that finds its limit",
        search_rate,
        (expect_overall("valid"), says(r"holds up to 1[12],\d00 op/s"), replace(says("op/s"), about=("curve",))),
    ),
    Case(
        "a search over clients, where the server exits in one of four trials from 256 on",
        dying,
        (
            expect_overall("valid", "suspect"),
            says(r"holds up to 235 clients"),
            replace(says("clients"), about=("curve",)),
        ),
    ),
]
