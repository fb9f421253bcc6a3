"""Worlds at the edges: several figures to be narrow, interrupted attempts, pooled columns, other guarantees."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from imports_support import FIXTURES
from judge_support import Spoil, asking, both, facts
from known_truth_expected import (
    SUSPECT,
    UNCHECKED,
    VALID,
    Case,
    absent,
    favours,
    fires,
    not_for,
    refused,
    same,
    says,
    silent,
    unranked,
    unsure,
    verdict,
    whole,
    wins,
)
from known_truth_imports import against, logs, read, runs, table
from known_truth_refused import overload
from known_truth_support import MS, faster, given, of_trials, on, scaled, trial, typical, world
from loadstone.results.folder import Folder
from loadstone.results.projection import Projection, project_results
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar, TrialResult
from moving_support import FLAT, P99, THROUGHPUT, TWICE, alternating, always, line, moving

BOTH = ("throughput", P99)
LATENCIES = tuple(f"{kind}.{name}" for kind in ("read", "all") for name in ("p99", "p99.9", "max"))


def noisy_tail(**question: object) -> ResultSet:
    """lmdb is a third faster; its tail differs by 15 % from repeat to repeat."""
    factors = typical(6, 0.15, "tail")
    noisy = on("lmdb", lambda one: scaled(LATENCIES, factors[one.repeat - 1])(one))
    return world(spoil=noisy, question=asking(at_most=6, **question))


def attempted(**attempts: tuple[tuple[str, float], ...]) -> ResultSet:
    """A folder in which some trials have earlier attempts: how each ended, and at which multiple of its speed."""
    made = world(TWICE, 7, question=THROUGHPUT)
    with tempfile.TemporaryDirectory() as place:
        folder = Folder.create_folder(Path(place) / "run", "run", made.question, interleaved=True)
        for block in range(1, 8):
            of_block = [one for one in made.trials if one.repeat == block]
            folder.record_block(block, {one.trial: one.config for one in of_block})
            for one in of_block:
                earlier = attempts.get(one.trial.replace("-", "_"), ())
                for number, (end, factor) in enumerate(earlier, 1):
                    folder.append_trial(replace(faster(factor)(one), end=end, attempt=number, order=one.order))
                if not earlier or earlier[-1][0] != "interrupted" or len(earlier) < 3:
                    folder.append_trial(replace(one, attempt=len(earlier) + 1))
        return replace(folder.load_results(), series=made.series)


def bounds_in_a_table() -> ResultSet:
    """One of six p99 is a lower bound; the throughput beside it is exact."""
    rows = []
    for n in range(1, 7):
        bound = "at_least" if n == 4 else ""
        rows += [f"rocksdb,{n},read.p99,ms,{20 + n / 100},", f"rocksdb,{n},throughput,op/s,{1000 + n},"]
        rows += [f"lmdb,{n},read.p99,ms,{10 + n / 100},{bound}", f"lmdb,{n},throughput,op/s,{2000 + n},"]
    return table(rows, "variant,repeat,metric,unit,value,bound", metrics=BOTH)


def stress(name: str, rate: int, p99_ms: float, errors: int) -> ResultSet:
    """Six logs of cassandra-stress, 200,000 operations each."""
    text = (FIXTURES / "cassandra-stress-read.txt").read_text()
    logs = []
    for factor in typical(6, 0.01, (name, rate)):
        log = re.sub(r"1,495 (op|pk|row)/s", rf"{rate * factor:,.0f} \1/s", text)
        log = log.replace("167.9 ms", f"{p99_ms / factor:.1f} ms").replace(
            "13.2 ms", f"{20_000 / rate / factor:.1f} ms"
        )
        logs.append(re.sub(r"Total errors( +): +0 \[READ: 0\]", rf"Total errors\1: {errors:,} [READ: {errors:,}]", log))
    return read("\n".join(logs), f"{name}.txt", variant=name)


def failing_tools(slow: ResultSet, fast: ResultSet, metric: str = P99) -> ResultSet:
    """A figure of two tools' logs, where the file allows a tenth of the operations to fail."""
    joined = against(slow, fast, metric)
    allowing = asking(by=joined.comparison_dimension, metrics=(metric,), checks={"errors": {"share": 0.1}})
    return replace(joined, question=allowing, own={})


def by_wal(rates: Mapping[tuple[str, str], float], blocks: Mapping[tuple[str, str], Iterable[int]]) -> ResultSet:
    """Systems with a log that is synced or not, in these blocks; the setting is known to set the durability."""
    made = []
    for (system, wal), rate in rates.items():
        for one in world({system: rate}, 8).trials:
            if one.repeat in blocks.get((system, wal), range(1, 9)):
                known = {**one.facts, "durability": wal}
                config: dict[str, Scalar] = {"system": system, "wal": wal}
                made.append(replace(one, trial=f"{wal}-{one.trial}", config=config, facts=known))
    return of_trials(
        sorted(made, key=lambda one: one.repeat),
        planned={},
        question=asking(by="system", metrics=("throughput",), guarantees={"wal": ("durability",)}),
    )


def pooled(results: ResultSet, *col: str) -> ResultSet:
    """As `loadstone show --col` groups it."""
    return project_results(results, Projection(row=(), col=col, metrics=("throughput",))).results


SYNCED = {("rocksdb", "os"): 1000.0, ("rocksdb", "device"): 900.0, ("lmdb", "os"): 2000.0, ("lmdb", "device"): 1800.0}
# Alike in truth: only the log costs something.
PRICE = {("rocksdb", "os"): 3000.0, ("rocksdb", "device"): 100.0, ("lmdb", "os"): 3000.0, ("lmdb", "device"): 100.0}


def by_clients(
    blocks: Mapping[tuple[str, int], Iterable[int]], lmdb: float = 1.0, few: int = 10, many: int = 16
) -> ResultSet:
    """Throughput grows with the number of clients; these blocks are there, or all eight."""
    made = []
    for system, speed in (("rocksdb", 100.0), ("lmdb", 100.0 * lmdb)):
        for clients in (few, many):
            for one in world({system: speed * clients}, 8).trials:
                if one.repeat in blocks.get((system, clients), range(1, 9)):
                    timed = [name for name in one.values if name.startswith(("read.", "all.")) and "count" not in name]
                    slower = scaled(timed, clients / 10)(one)
                    config: dict[str, Scalar] = {"system": system, "clients": clients}
                    made.append(replace(slower, trial=f"{clients}-{one.trial}", clients=clients, config=config))
    return of_trials(made, planned={}, question=asking(by="system", metrics=("throughput",)))


PRICE_OF_ONE = {key: rate for key, rate in PRICE.items() if key != ("lmdb", "device")}


def priced(by: str, rates: Mapping[tuple[str, str], float]) -> ResultSet:
    """The compared dimension, and that the durability differs on purpose."""
    made = by_wal(rates, {})
    return replace(made, question=replace(made.question, by=by, promises=("durability",)))


def many_rates() -> ResultSet:
    """Six rates; both hold the lower ones, with half the tail on one side, and neither holds the highest."""
    made: list[TrialResult] = []
    minutes = {}
    for rate in (100, 200, 400, 600, 800, 1000):
        one_rate = overload({"rocksdb": 500.0, "lmdb": 700.0}) if rate == 1000 else world(TWICE, make=at_this(rate))
        for one in one_rate.trials:
            named = replace(one, trial=f"{rate}-{one.trial}", config={**one.config, "rate": rate})
            made.append(named)
            minutes[named.trial] = one_rate.series(one.trial)
    return of_trials(made, lambda one: minutes[one.trial], question=asking(by="system", metrics=(P99, "throughput")))


def at_this(rate: int) -> Callable[[str, int, float], TrialResult]:
    """A rate that is held; the speed of the side is its latency."""
    return lambda system, block, speed: trial(system, block, rate, target=rate, mean_ns=10 * MS * 1000 / speed)


def piloted(results: ResultSet) -> ResultSet:
    """Its pilot block needed more warm-up than the limit."""
    group = {"trials": ["pilot-lmdb"], "steady_seconds": {"pilot-lmdb": 60.0}, "warmup_seconds": 120.0}
    pilot = {"warmup_seconds": 90.0, "cap_seconds": 90.0, "capped": True, "trial_seconds": 150.0, "groups": [group]}
    return replace(results, pilot=pilot, pilots=pilots(results))


def pilots(results: ResultSet) -> list[TrialResult]:
    """Its trials, which never count: ten times as fast as the others."""
    first = next(one for one in results.trials if one.config["system"] == "lmdb")
    return [replace(faster(10.0)(first), trial="pilot-lmdb", repeat=0)]


def durable(*blocks: int) -> Spoil:
    """Writes are synced in these blocks only."""
    return lambda one: facts(durability="device" if one.repeat in blocks else "os")(one)


EDGES = [
    # Several figures are to be narrow.
    Case(
        "both figures were to be narrow, and only the p99 is not: the throughput stands",
        lambda: noisy_tail(metrics=BOTH, until={"throughput": 0.05, P99: 0.05}),
        (wins("lmdb", 4 / 3), VALID, fires("noisy", "suspect")),
    ),
    Case(
        "both figures were to be narrow, and only the p99 is not: the p99",
        lambda: noisy_tail(metrics=BOTH, until={"throughput": 0.05, P99: 0.05}),
        (not_for("rocksdb"), SUSPECT),
        metric=P99,
    ),
    Case(
        # The verdict of the whole is that of its claims: the warning is about a figure of which nothing is said.
        "a figure that is not compared was to be narrow, and is not",
        lambda: noisy_tail(metrics=("throughput",), until={"throughput": 0.05, P99: 0.05}),
        (wins("lmdb", 4 / 3), VALID, fires("noisy", "suspect"), whole("valid")),
    ),
    Case(
        "the throughput alone was to be narrow, and is: nobody asked the p99 to be",
        lambda: noisy_tail(metrics=BOTH, until={"throughput": 0.05}),
        (not_for("rocksdb"), VALID, silent("noisy")),
        metric=P99,
    ),
    # Attempts during which the lab ended.
    Case(
        "twice as fast; the lab ended during two attempts, with figures that would be far too good",
        lambda: attempted(rocksdb_3=(("interrupted", 50.0),), rocksdb_5=(("interrupted", 50.0), ("interrupted", 50.0))),
        (wins("lmdb", 2.0), VALID, silent("retried"), silent("incomplete")),
    ),
    Case(
        "twice as fast; one attempt failed and the next one was ended by the lab",
        lambda: attempted(rocksdb_3=(("failed", 1.0), ("interrupted", 50.0))),
        (wins("lmdb", 2.0), SUSPECT, fires("retried", "suspect"), says("1 earlier attempt at this trial failed")),
    ),
    Case(
        "twice as fast; a trial has no attempt that the lab did not end",
        lambda: attempted(lmdb_4=(("interrupted", 9.0), ("interrupted", 9.0), ("interrupted", 9.0))),
        (wins("lmdb", 2.0), SUSPECT, fires("incomplete", "suspect"), silent("retried")),
    ),
    Case(
        "twice as fast; a trial failed and was then ended by the lab at each further attempt: the failure stands",
        lambda: attempted(lmdb_4=(("failed", 0.5), ("interrupted", 9.0), ("interrupted", 9.0))),
        (favours("lmdb"), SUSPECT, fires("incomplete", "invalid")),
    ),
    # Bounds in what other tools measured.
    Case(
        "a table in which one of six p99 is a lower bound: the p99",
        bounds_in_a_table,
        (unranked(), UNCHECKED),
        metric=P99,
    ),
    Case(
        "a table in which one of six p99 is a lower bound: the throughput",
        bounds_in_a_table,
        (wins("lmdb", 2.0), UNCHECKED),
    ),
    Case(
        "YCSB, three percent of one side's operations failed, which the file allows: there is no p99",
        lambda: failing_tools(
            logs("rocksdb", runs(1000, 30_000)),
            logs("lmdb", runs(2000, 15_000, failed=3600)),
        ),
        (unranked(), UNCHECKED),
        metric=P99,
    ),
    Case(
        "cassandra-stress, two percent of one side's operations failed: the p99 of the others",
        lambda: against(stress("rocksdb", 1495, 167.9, 0), stress("lmdb", 1495, 84.0, 4000), P99),
        (refused("errors"),),
        metric=P99,
    ),
    Case(
        "cassandra-stress, two percent of one side's operations failed, which the file allows: there is no p99",
        lambda: failing_tools(stress("rocksdb", 1495, 167.9, 0), stress("lmdb", 1495, 84.0, 4000)),
        # That run warmed up for a minute of its two.
        (unranked(), SUSPECT),
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
        "YCSB did all of its target, and six percent of one side's operations failed, which the file allows",
        lambda: failing_tools(
            logs("rocksdb", runs(1000, 2000, target=1000, intended_p99_us=2100.0)),
            logs("lmdb", runs(1000, 1000, target=1000, intended_p99_us=1100.0, failed=3600)),
        ),
        (unranked(), UNCHECKED, silent("rate-not-held")),
        metric=P99,
    ),
    # Pooled columns.
    Case(
        "systems pooled over how they sync, as often on both sides: repeats of unlike guarantees",
        lambda: pooled(by_wal(SYNCED, {}), "system"),
        (not_for("rocksdb"), SUSPECT),
    ),
    Case(
        "systems pooled over how they sync, which one of them never does",
        lambda: pooled(by_wal({key: rate for key, rate in SYNCED.items() if key != ("lmdb", "device")}, {}), "system"),
        (refused("guarantees-differ"),),
    ),
    Case(
        "equal systems pooled over how they sync, one of them mostly and the other seldom",
        lambda: pooled(
            by_wal(
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
        "system and how it syncs as one column: the price of the log is asked for",
        lambda: pooled(by_wal(SYNCED, {}), "system", "wal"),
        (wins("lmdb,os", 2.0), VALID),
        contender="lmdb,os",
    ),
    Case(
        "equal systems; the price of the log was asked for, and these are pooled over it, one of which never syncs",
        lambda: pooled(priced("wal", PRICE_OF_ONE), "system"),
        (refused("guarantees-differ"),),
    ),
    Case(
        "equal systems that may differ in durability, pooled over how they sync, one of which never does",
        lambda: pooled(priced("system", PRICE_OF_ONE), "system"),
        (unsure(), SUSPECT, fires("guarantees-differ", "suspect")),
    ),
    Case(
        "the price of the log was asked for, and the systems are compared, one of which does not sync where it should",
        lambda: (
            project_results(
                of_trials(
                    [
                        facts(durability="os")(one) if one.config["system"] == "lmdb" else one
                        for one in priced("wal", PRICE).trials
                    ],
                    planned={},
                    question=priced("wal", PRICE).question,
                ),
                Projection(row=("wal",), col=("system",), metrics=("throughput",)),
            ).results
        ),
        (refused("guarantees-differ"),),
        context={"wal": "device"},
    ),
    Case(
        "equal systems pooled over the number of clients, mostly few on one side and mostly many on the other",
        lambda: pooled(by_clients({("rocksdb", 16): (1, 2), ("lmdb", 1): (1, 2)}, few=1), "system"),
        (unsure(), SUSPECT, fires("load-differs", "suspect")),
    ),
    Case(
        "twice as fast, pooled over close numbers of clients, as often on both sides",
        lambda: pooled(by_clients({}, lmdb=2.0, many=12), "system"),
        (favours("lmdb"), VALID, silent("load-differs")),
    ),
    # A guarantee that differs inside a variant.
    Case(
        "the faster side synced in three blocks only, the other in none",
        lambda: world(TWICE, spoil=on("lmdb", durable(4, 5, 6))),
        (refused("guarantees-differ"),),
    ),
    Case(
        "both sides synced in the last three blocks: each repeats two different things",
        lambda: world(TWICE, spoil=durable(4, 5, 6)),
        (favours("lmdb"), SUSPECT, fires("hosts-differ", "suspect")),
    ),
    Case(
        "a single variant synced in the last three blocks",
        lambda: world({"lmdb": 1000.0}, spoil=durable(4, 5, 6)),
        (absent(), whole("suspect"), fires("hosts-differ", "suspect")),
    ),
    # A rate above what some can do.
    Case(
        "six rates, of which the highest is held by neither: the tails at a lower one",
        many_rates,
        (wins("lmdb", 0.5), VALID),
        metric=P99,
        context={"rate": 400},
    ),
    Case(
        "six rates, of which the highest is held by neither: the tails there",
        many_rates,
        (refused("rate-not-held"), whole("invalid")),
        metric=P99,
        context={"rate": 1000},
    ),
    Case(
        "six rates, of which the highest is held by neither: the throughput there is their capacity",
        many_rates,
        (wins("lmdb", 1.4), VALID, fires("rate-not-held", "invalid")),
        context={"rate": 1000},
    ),
    Case(
        "six rates, of which the highest is held by neither: the throughput of a lower one is the rate",
        many_rates,
        (not_for("lmdb"), not_for("rocksdb"), VALID),
        context={"rate": 400},
    ),
    # Equal as measured, at a limit of the load generator.
    Case(
        "equal, and 12 percent of both sides' time is our own: one may be faster by that",
        lambda: world(FLAT, 10, noise=0.001, spoil=given(driver=1.2 * MS), question=THROUGHPUT),
        (refused("generator-limited"), says("from 12 % lower to 1.14× is possible")),
    ),
    Case(
        "equal, and nine percent of both sides' time is our own, which is less than counts",
        lambda: world(FLAT, 10, noise=0.001, spoil=given(driver=0.9 * MS), question=THROUGHPUT),
        (same(), VALID),
    ),
    Case(
        "equal, and an executor of ours is saturated on one side, which may be faster by any factor",
        lambda: world(
            FLAT,
            10,
            noise=0.001,
            spoil=both(
                facts(networked="yes"), given(executor__busy_max=0.4), on("lmdb", given(executor__busy_max=0.97))
            ),
            question=THROUGHPUT,
        ),
        (refused("generator-limited"), says("lower upward is possible")),
    ),
    # Two runs.
    Case(
        "a fifth faster in two runs, and half of its windows rise by 30 percent and half fall",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1200.0}, alternating(1.3, "lmdb"), 8, interleaved=False, question=THROUGHPUT
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "half as fast again in two runs, and falls from 1.3 to 0.7 of its mean in every window",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, always(lmdb=line(1.3, 0.7)), 8, interleaved=False, question=THROUGHPUT
        ),
        (unsure(), SUSPECT),
    ),
    # A pilot that was cut.
    Case(
        "twice as fast; the pilot asked for more warm-up than allowed, and every window is steady all the same",
        lambda: piloted(world(TWICE, question=THROUGHPUT)),
        (wins("lmdb", 2.0), VALID),
    ),
    Case(
        "equal at the end; the pilot asked for more warm-up than allowed, and every window of lmdb falls by a fifth",
        lambda: piloted(moving({"rocksdb": 1000.0, "lmdb": 1000.0}, always(lmdb=line(1.25, 1.0)), question=THROUGHPUT)),
        (unsure(), SUSPECT, fires("not-steady", "suspect")),
    ),
]
