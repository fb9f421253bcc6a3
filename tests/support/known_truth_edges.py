"""Scenarios at the edges: several deciding figures, interrupted attempts, pooled columns, differing guarantees."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from drift_support import FLAT, P99, THROUGHPUT, TWICE, alternating, always, line, simulate_drift
from imports_support import FIXTURES
from judge_support import Change, asking, both, facts
from known_truth_expected import (
    SUSPECT,
    UNCHECKED,
    VALID,
    Case,
    absent,
    expect_bound,
    expect_no_win,
    expect_overall,
    expect_refusal,
    expect_same,
    favours,
    fires,
    says,
    silent,
    unsure,
    verdict,
    wins,
)
from known_truth_imports import compare_files, logs, read, runs, table
from known_truth_refused import overload
from known_truth_support import (
    MS,
    change_system,
    collect_results,
    faster,
    scale_metrics,
    set_figures,
    simulate_results,
    trial,
    typical,
)
from loadstone.results.folder import Folder
from loadstone.results.projection import Projection, project_results
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar, TrialResult

BOTH = ("throughput", P99)
LATENCIES = tuple(f"{kind}.{name}" for kind in ("read", "all") for name in ("p99", "p99.9", "max"))


def noisy_tail(**question: object) -> ResultSet:
    """lmdb is a third faster than rocksdb, with a tail that varies by 15 % between repeats."""
    factors = typical(6, 0.15, "tail")
    noisy = change_system("lmdb", lambda result: scale_metrics(LATENCIES, factors[result.repeat - 1])(result))
    return simulate_results(change=noisy, question=asking(at_most=6, **question))


def record_attempts(**attempts: tuple[tuple[str, float], ...]) -> ResultSet:
    """A folder in which some trials have earlier attempts, each with an end and a multiple of the trial's speed."""
    results = simulate_results(TWICE, 7, question=THROUGHPUT)
    with tempfile.TemporaryDirectory() as place:
        folder = Folder.create_folder(Path(place) / "run", "run", results.question, interleaved=True)
        for block in range(1, 8):
            of_block = [trial_of_block for trial_of_block in results.trials if trial_of_block.repeat == block]
            folder.record_block(block, {trial_of_block.trial: trial_of_block.config for trial_of_block in of_block})
            for trial_of_block in of_block:
                earlier = attempts.get(trial_of_block.trial.replace("-", "_"), ())
                for number, (end, factor) in enumerate(earlier, 1):
                    folder.append_trial(
                        replace(faster(factor)(trial_of_block), end=end, attempt=number, order=trial_of_block.order)
                    )
                if not earlier or earlier[-1][0] != "interrupted" or len(earlier) < 3:
                    folder.append_trial(replace(trial_of_block, attempt=len(earlier) + 1))
        return replace(folder.load_results(), series=results.series)


def bounds_in_a_table() -> ResultSet:
    """One of lmdb's six p99 values is a lower bound; the throughput is exact."""
    rows = []
    for n in range(1, 7):
        bound = "at_least" if n == 4 else ""
        rows += [f"rocksdb,{n},read.p99,ms,{20 + n / 100},", f"rocksdb,{n},throughput,op/s,{1000 + n},"]
        rows += [f"lmdb,{n},read.p99,ms,{10 + n / 100},{bound}", f"lmdb,{n},throughput,op/s,{2000 + n},"]
    return table(rows, "variant,repeat,metric,unit,value,bound", metrics=BOTH)


def stress(name: str, rate: int, p99_ms: float, errors: int) -> ResultSet:
    """Six logs of cassandra-stress with 200,000 operations each."""
    text = (FIXTURES / "cassandra-stress-read.txt").read_text()
    logs = []
    for factor in typical(6, 0.01, (name, rate)):
        log = re.sub(r"1,495 (op|pk|row)/s", rf"{rate * factor:,.0f} \1/s", text)
        log = log.replace("167.9 ms", f"{p99_ms / factor:.1f} ms").replace(
            "13.2 ms", f"{20_000 / rate / factor:.1f} ms"
        )
        seconds = 200_000 / rate / factor
        log = log.replace("133.7,", f"{seconds:.1f},").replace(
            "00:02:13", f"00:{int(seconds) // 60:02}:{seconds % 60:02.0f}"
        )
        logs.append(re.sub(r"Total errors( +): +0 \[READ: 0\]", rf"Total errors\1: {errors:,} [READ: {errors:,}]", log))
    return read("\n".join(logs), f"{name}.txt", variant=name)


def failing_tools(slow: ResultSet, fast: ResultSet, metric: str = P99) -> ResultSet:
    """Compares a figure from the logs of two tools; the question allows 10 % of the operations to fail."""
    joined = compare_files(slow, fast, metric)
    allowing = asking(by=joined.comparison_dimension, metrics=(metric,), checks={"errors": {"share": 0.1}})
    return replace(joined, question=allowing, own={})


def vary_wal(rates: Mapping[tuple[str, str], float], blocks: Mapping[tuple[str, str], Iterable[int]]) -> ResultSet:
    """Systems with and without a synced log, each combination in its `blocks` or in all; `wal` is the durability."""
    results = []
    for (system, wal), rate in rates.items():
        for result in simulate_results({system: rate}, 8).trials:
            if result.repeat in blocks.get((system, wal), range(1, 9)):
                known = {**result.facts, "durability": wal}
                config: dict[str, Scalar] = {"system": system, "wal": wal}
                results.append(replace(result, trial=f"{wal}-{result.trial}", config=config, facts=known))
    return collect_results(
        sorted(results, key=lambda result: result.repeat),
        planned={},
        question=asking(by="system", metrics=("throughput",), guarantees={"wal": ("durability",)}),
    )


def pool_columns(results: ResultSet, *col: str) -> ResultSet:
    """Groups results as `loadstone show --col` does."""
    return project_results(results, Projection(row=(), col=col, metrics=("throughput",))).results


SYNCED = {("rocksdb", "os"): 1000.0, ("rocksdb", "device"): 900.0, ("lmdb", "os"): 2000.0, ("lmdb", "device"): 1800.0}
# The systems are equal; only syncing the log has a cost.
PRICE = {("rocksdb", "os"): 3000.0, ("rocksdb", "device"): 100.0, ("lmdb", "os"): 3000.0, ("lmdb", "device"): 100.0}


def vary_clients(
    blocks: Mapping[tuple[str, int], Iterable[int]], lmdb: float = 1.0, few: int = 10, many: int = 16
) -> ResultSet:
    """Two numbers of clients, each in its `blocks` or in all eight; throughput grows with the number of clients."""
    results = []
    for system, speed in (("rocksdb", 100.0), ("lmdb", 100.0 * lmdb)):
        for clients in (few, many):
            for result in simulate_results({system: speed * clients}, 8).trials:
                if result.repeat in blocks.get((system, clients), range(1, 9)):
                    timed = [
                        name for name in result.values if name.startswith(("read.", "all.")) and "count" not in name
                    ]
                    slower = scale_metrics(timed, clients / 10)(result)
                    config: dict[str, Scalar] = {"system": system, "clients": clients}
                    results.append(replace(slower, trial=f"{clients}-{result.trial}", clients=clients, config=config))
    return collect_results(results, planned={}, question=asking(by="system", metrics=("throughput",)))


PRICE_OF_ONE = {key: rate for key, rate in PRICE.items() if key != ("lmdb", "device")}


def price_durability(by: str, rates: Mapping[tuple[str, str], float]) -> ResultSet:
    """Results compared by this dimension, with an intended difference in durability."""
    result = vary_wal(rates, {})
    return replace(result, question=replace(result.question, by=by, promises=("durability",)))


def sweep_rates() -> ResultSet:
    """Six rates; both sides reach the lower rates, lmdb with half the p99; neither side reaches the highest rate."""
    results: list[TrialResult] = []
    minutes = {}
    for rate in (100, 200, 400, 600, 800, 1000):
        one_rate = (
            overload({"rocksdb": 500.0, "lmdb": 700.0})
            if rate == 1000
            else simulate_results(TWICE, make=run_at_rate(rate))
        )
        for result in one_rate.trials:
            named = replace(result, trial=f"{rate}-{result.trial}", config={**result.config, "rate": rate})
            results.append(named)
            minutes[named.trial] = one_rate.series(result.trial)
    return collect_results(
        results, lambda result: minutes[result.trial], question=asking(by="system", metrics=(P99, "throughput"))
    )


def run_at_rate(rate: int) -> Callable[[str, int, float], TrialResult]:
    """Trials that reach the rate; the speed of a side determines its latency."""
    return lambda system, block, speed: trial(system, block, rate, target=rate, mean_ns=10 * MS * 1000 / speed)


def add_pilot(results: ResultSet) -> ResultSet:
    """Adds a pilot block that requires a longer warm-up than the limit allows."""
    group = {"trials": ["pilot-lmdb"], "steady_seconds": {"pilot-lmdb": 60.0}, "warmup_seconds": 120.0}
    pilot = {"warmup_seconds": 90.0, "cap_seconds": 90.0, "capped": True, "trial_seconds": 150.0, "groups": [group]}
    return replace(results, pilot=pilot, pilots=pilots(results))


def pilots(results: ResultSet) -> list[TrialResult]:
    """The pilot's trials, which never count: ten times as fast as the measured trials."""
    first = next(result for result in results.trials if result.config["system"] == "lmdb")
    return [replace(faster(10.0)(first), trial="pilot-lmdb", repeat=0)]


def durable(*blocks: int) -> Change:
    """Writes are synced in these blocks only."""
    return lambda result: facts(durability="device" if result.repeat in blocks else "os")(result)


EDGES = [
    # Several deciding figures.
    Case(
        "both figures should be narrow, but the p99 is wide: the claim on throughput",
        lambda: noisy_tail(metrics=BOTH, until={"throughput": 0.05, P99: 0.05}),
        (wins("lmdb", 4 / 3), VALID, fires("noisy", "suspect")),
    ),
    Case(
        "both figures should be narrow, but the p99 is wide: the p99",
        lambda: noisy_tail(metrics=BOTH, until={"throughput": 0.05, P99: 0.05}),
        (expect_no_win("rocksdb"), SUSPECT),
        metric=P99,
    ),
    Case(
        # The verdict of the experiment is the verdict of its claims; the warning concerns a figure without a claim.
        "a figure outside the comparison should be narrow, but is wide",
        lambda: noisy_tail(metrics=("throughput",), until={"throughput": 0.05, P99: 0.05}),
        (wins("lmdb", 4 / 3), VALID, fires("noisy", "suspect"), expect_overall("valid")),
    ),
    Case(
        "only the throughput must be narrow, and is; the p99 is wide",
        lambda: noisy_tail(metrics=BOTH, until={"throughput": 0.05}),
        (expect_no_win("rocksdb"), VALID, silent("noisy")),
        metric=P99,
    ),
    # Attempts during which the lab ended.
    Case(
        "twice as fast; the lab ended during two attempts, with figures that would be far too good",
        lambda: record_attempts(
            rocksdb_3=(("interrupted", 50.0),), rocksdb_5=(("interrupted", 50.0), ("interrupted", 50.0))
        ),
        (wins("lmdb", 2.0), VALID, silent("retried"), silent("incomplete")),
    ),
    Case(
        "twice as fast; one attempt failed and the next one was ended by the lab",
        lambda: record_attempts(rocksdb_3=(("failed", 1.0), ("interrupted", 50.0))),
        (wins("lmdb", 2.0), SUSPECT, fires("retried", "suspect"), says("1 earlier attempt at this trial failed")),
    ),
    Case(
        "twice as fast; the lab ended all attempts of a trial",
        lambda: record_attempts(lmdb_4=(("interrupted", 9.0), ("interrupted", 9.0), ("interrupted", 9.0))),
        (wins("lmdb", 2.0), SUSPECT, fires("incomplete", "suspect"), silent("retried")),
    ),
    Case(
        "twice as fast; a trial failed, and the lab ended all further attempts: the failure counts",
        lambda: record_attempts(lmdb_4=(("failed", 0.5), ("interrupted", 9.0), ("interrupted", 9.0))),
        (favours("lmdb"), SUSPECT, fires("incomplete", "invalid")),
    ),
    # Bounds in the measurements of other tools.
    Case(
        "a table with a lower bound as one of six p99 values: the p99",
        bounds_in_a_table,
        (expect_bound(), UNCHECKED),
        metric=P99,
    ),
    Case(
        "a table with a lower bound as one of six p99 values: the throughput",
        bounds_in_a_table,
        (wins("lmdb", 2.0), UNCHECKED),
    ),
    Case(
        "YCSB, three percent of one side's operations failed, which the file allows: there is no p99",
        lambda: failing_tools(
            logs("rocksdb", runs(1000, 30_000)),
            logs("lmdb", runs(2000, 15_000, failed=3600)),
        ),
        (expect_bound(), UNCHECKED),
        metric=P99,
    ),
    Case(
        "cassandra-stress, two percent of one side's operations failed: the p99 of the remaining ones",
        lambda: compare_files(stress("rocksdb", 1495, 167.9, 0), stress("lmdb", 1495, 84.0, 4000), P99),
        (expect_refusal("errors"),),
        metric=P99,
    ),
    Case(
        "cassandra-stress, two percent of one side's operations failed, which the file allows: there is no p99",
        lambda: failing_tools(stress("rocksdb", 1495, 167.9, 0), stress("lmdb", 1495, 84.0, 4000)),
        # The logged run used one of its two minutes for warm-up.
        (expect_bound(), SUSPECT),
        metric=P99,
    ),
    Case(
        "YCSB, three percent faster, and six percent of these operations failed, which the file allows",
        lambda: failing_tools(
            logs("rocksdb", runs(1000, 30_000, noise=0.001)),
            logs("lmdb", runs(1030, 30_000, failed=3600, noise=0.001)),
            "throughput",
        ),
        (wins("rocksdb", 0.97, 0.005), UNCHECKED),
    ),
    Case(
        "YCSB reached its target, and six percent of one side's operations failed, which the file allows",
        lambda: failing_tools(
            logs("rocksdb", runs(1000, 2000, target=1000, intended_p99_us=2100.0)),
            logs("lmdb", runs(1000, 1000, target=1000, intended_p99_us=1100.0, failed=3600)),
        ),
        (expect_bound(), UNCHECKED, silent("rate-not-held")),
        metric=P99,
    ),
    # Pooled columns.
    Case(
        "systems pooled over their sync mode, equally on both sides: repeats with different guarantees",
        lambda: pool_columns(vary_wal(SYNCED, {}), "system"),
        (expect_no_win("rocksdb"), SUSPECT),
    ),
    Case(
        "systems pooled over their sync mode; one never syncs",
        lambda: pool_columns(
            vary_wal({key: rate for key, rate in SYNCED.items() if key != ("lmdb", "device")}, {}), "system"
        ),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "equal systems pooled over their sync mode; one syncs mostly, the other seldom",
        lambda: pool_columns(
            vary_wal(
                PRICE,
                {
                    ("rocksdb", "os"): (1, 2),
                    ("rocksdb", "device"): range(1, 9),
                    ("lmdb", "os"): range(1, 9),
                    ("lmdb", "device"): (1, 2),
                },
            ),
            "system",
        ),
        (unsure(), verdict("suspect", "invalid")),
    ),
    Case(
        "system and sync mode as one column: the question is the price of the log",
        lambda: pool_columns(vary_wal(SYNCED, {}), "system", "wal"),
        (wins("lmdb,os", 2.0), VALID),
        contender="lmdb,os",
    ),
    Case(
        "equal systems pooled over the log, whose price is the question; one system never syncs",
        lambda: pool_columns(price_durability("wal", PRICE_OF_ONE), "system"),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "equal systems that may differ in durability, pooled over their sync mode; one never syncs",
        lambda: pool_columns(price_durability("system", PRICE_OF_ONE), "system"),
        (unsure(), SUSPECT, fires("guarantees-differ", "suspect")),
    ),
    Case(
        "the question is the price of the log, the systems are compared, and one omits its syncs",
        lambda: (
            project_results(
                collect_results(
                    [
                        facts(durability="os")(first) if first.config["system"] == "lmdb" else first
                        for first in price_durability("wal", PRICE).trials
                    ],
                    planned={},
                    question=price_durability("wal", PRICE).question,
                ),
                Projection(row=("wal",), col=("system",), metrics=("throughput",)),
            ).results
        ),
        (expect_refusal("guarantees-differ"),),
        context={"wal": "device"},
    ),
    Case(
        "equal systems pooled over the number of clients, mostly few on one side and mostly many on the other",
        lambda: pool_columns(vary_clients({("rocksdb", 16): (1, 2), ("lmdb", 1): (1, 2)}, few=1), "system"),
        (unsure(), SUSPECT, fires("load-differs", "suspect")),
    ),
    Case(
        "twice as fast, pooled over close numbers of clients, as often on both sides",
        lambda: pool_columns(vary_clients({}, lmdb=2.0, many=12), "system"),
        (favours("lmdb"), VALID, silent("load-differs")),
    ),
    # A guarantee that differs within a variant.
    Case(
        "the faster side synced in three blocks only, the other in none",
        lambda: simulate_results(TWICE, change=change_system("lmdb", durable(4, 5, 6))),
        (expect_refusal("guarantees-differ"),),
    ),
    Case(
        "both sides synced only in the last three blocks, so the repeats of a side measure two different things",
        lambda: simulate_results(TWICE, change=durable(4, 5, 6)),
        (favours("lmdb"), SUSPECT, fires("hosts-differ", "suspect")),
    ),
    Case(
        "a single variant synced in the last three blocks",
        lambda: simulate_results({"lmdb": 1000.0}, change=durable(4, 5, 6)),
        (absent(), expect_overall("suspect"), fires("hosts-differ", "suspect")),
    ),
    # A rate above the capacity of some variants.
    Case(
        "six rates, of which the highest is held by neither: the tails at a lower one",
        sweep_rates,
        (wins("lmdb", 0.5), VALID),
        metric=P99,
        context={"rate": 400},
    ),
    Case(
        "six rates, of which the highest is held by neither: the tails there",
        sweep_rates,
        (expect_refusal("rate-not-held"), expect_overall("invalid")),
        metric=P99,
        context={"rate": 1000},
    ),
    Case(
        "six rates, of which the highest is held by neither: the throughput there is their capacity",
        sweep_rates,
        (wins("lmdb", 1.4), VALID, fires("rate-not-held", "invalid")),
        context={"rate": 1000},
    ),
    Case(
        "six rates, of which the highest is held by neither: the throughput of a lower one is the rate",
        sweep_rates,
        (expect_no_win("lmdb"), expect_no_win("rocksdb"), VALID),
        context={"rate": 400},
    ),
    # Equal as measured, at a limit of the load generator.
    Case(
        "equal, and 12 percent of both sides' time is our own: one may be faster by that",
        lambda: simulate_results(FLAT, 10, noise=0.001, change=set_figures(driver=1.2 * MS), question=THROUGHPUT),
        (expect_refusal("generator-limited"), says("from 12 % lower to 1.14× is possible")),
    ),
    Case(
        "equal, and nine percent of both sides' time is our own, which is less than counts",
        lambda: simulate_results(FLAT, 10, noise=0.001, change=set_figures(driver=0.9 * MS), question=THROUGHPUT),
        (expect_same(), VALID),
    ),
    Case(
        "equal, and an executor of the engine is saturated on one side, which may be faster by any factor",
        lambda: simulate_results(
            FLAT,
            10,
            noise=0.001,
            change=both(
                facts(networked="yes"),
                set_figures(executor__busy_max=0.4),
                change_system("lmdb", set_figures(executor__busy_max=0.97)),
            ),
            question=THROUGHPUT,
        ),
        (expect_refusal("generator-limited"), says("lower upward is possible")),
    ),
    # Two runs.
    Case(
        "a fifth faster in two runs, and half of its windows rise by 30 percent and half fall",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1200.0}, alternating(1.3, "lmdb"), 8, interleaved=False, question=THROUGHPUT
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "1.5 times as fast in two runs, and drops from 1.3 to 0.7 of its mean in every window",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, always(lmdb=line(1.3, 0.7)), 8, interleaved=False, question=THROUGHPUT
        ),
        (unsure(), SUSPECT),
    ),
    # A truncated pilot.
    Case(
        "twice as fast; the pilot requested more warm-up than allowed, but every window is steady",
        lambda: add_pilot(simulate_results(TWICE, question=THROUGHPUT)),
        (wins("lmdb", 2.0), VALID),
    ),
    Case(
        "equal at the end; the pilot requested more warm-up than allowed, and every window of lmdb drops by 20 %",
        lambda: add_pilot(
            simulate_drift({"rocksdb": 1000.0, "lmdb": 1000.0}, always(lmdb=line(1.25, 1.0)), question=THROUGHPUT)
        ),
        (unsure(), SUSPECT, fires("not-steady", "suspect")),
    ),
]
