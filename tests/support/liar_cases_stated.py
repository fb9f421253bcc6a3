"""Cases with facts and figures that users state or that some trials lack, and with failures in the logs of other
tools."""

from __future__ import annotations

from dataclasses import replace

from judge_support import asking, facts, set_figures
from known_truth_expected import Case, expect_overall, favours, fires, says, silent, unsure, verdict, wins
from known_truth_imports import compare_files
from known_truth_support import change_system, collect_results, simulate_results
from liar_cases_tools import HONEST, INVALID, SUSPECT, UNCHECKED, pair_fio, pair_ycsb
from liar_support import (
    HOUR_NS,
    KNOWN,
    START_NS,
    alternating,
    logs,
    noise,
    plant_difference,
    set_times,
    side,
    table,
    ycsb,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.results.value import Value
from tool_logs import memtier


def count_errors(errors: float, unit: str) -> ResultSet:
    """A table with the throughput of two systems, and the errors of one."""
    rows = [
        row
        for n, factor in enumerate(noise("errors"), 1)
        for row in (
            f"plain,{n},throughput,op/s,{1000 * factor:.3f}",
            f"tuned,{n},throughput,op/s,{1300 / factor:.3f}",
            f"tuned,{n},errors,{unit},{errors}",
        )
    ]
    return table(rows, "variant,repeat,metric,unit,value", by="variant", metrics=("throughput",))


def simulate_pair() -> ResultSet:
    """Two systems, of which the second is 1.3 times as fast."""
    return simulate_results({"first": 1000.0, "second": 1300.0}, 8, question=asking(metrics=("throughput",)))


def rename_sides(by: str, first: Scalar, second: Scalar) -> ResultSet:
    """Two systems, represented by two values of the dimension `by`."""
    results = simulate_pair()
    trials = [
        replace(trial, config={by: first if trial.config["system"] == "first" else second}) for trial in results.trials
    ]
    return collect_results(trials, question=asking(by=by, metrics=("throughput",)))


def sweep_without_baseline(load: int) -> ResultSet:
    """Two systems at one and at two clients; the baseline has no trials at `load` clients."""
    trials = [
        replace(trial, trial=f"{trial.trial}-{clients}", config={**trial.config, "clients": clients})
        for clients in (1, 2)
        for trial in simulate_pair().trials
    ]
    results = collect_results(trials, question=asking(by="system", metrics=("throughput",)))
    return replace(results, trials=[trial for trial in trials if trial.config != {"system": "first", "clients": load}])


def count_misses(**shares: float) -> ResultSet:
    """Two systems with these mean shares of reads that miss the cache."""

    def change(trial: TrialResult) -> TrialResult:
        share = shares[str(trial.config["system"])] * noise("misses", 8)[trial.repeat - 1]
        return replace(trial, values={**trial.values, "cache.misses": Value("cache.misses", share, "share", 60_000)})

    results = simulate_pair()
    trials = [change(trial) for trial in results.trials]
    return replace(results, trials=trials, question=asking(metrics=("cache.misses",)))


# Facts that are stated and contradict the log, or that one side lacks.
STATED = [
    Case(
        "logs with different numbers of records, but the same stated number",
        lambda: pair_ycsb("-p recordcount=1000", "-p recordcount=100000"),
        (SUSPECT, says(r"number of records in the log \(1,000 against 100,000\)")),
    ),
    Case(
        "a stated number of records that contradicts one log",
        lambda: pair_ycsb("", "-p recordcount=100000"),
        (SUSPECT, says(r"number of records in the log \(1,000 against 100,000\)")),
    ),
    Case(
        "a stated number of records that contradicts all logs equally",
        lambda: pair_ycsb("-p recordcount=5000", "-p recordcount=5000"),
        (*HONEST, says(r"stated facts override the log: records \(1000 instead of 5000\)")),
    ),
    Case(
        "a stated rate on one side only",
        lambda: compare_files(
            side("plain", ycsb(1000, "a"), "log", alternating(0), KNOWN),
            side("tuned", ycsb(1300, "b"), "log", alternating(1), {**KNOWN, "target": 1300}),
        ),
        (unsure(), INVALID, says(r"loop \(closed against open\)")),
    ),
    Case(
        "a fact that changes between the repeats of the only side that states it",
        lambda: plant_difference(
            1.3, alter_second=lambda trial: facts(raid="raid0" if trial.repeat > 3 else "raid5")(trial)
        ),
        (SUSPECT, says("the raid changed between repeats: raid5 and raid0")),
    ),
    Case(
        "YCSB with the hot spot of its requests on one side",
        lambda: pair_ycsb("", "-p hotspotdatafraction=0.01"),
        (UNCHECKED, says("hotspotdatafraction")),
    ),
    Case(
        "YCSB with other exponential requests",
        lambda: pair_ycsb("-p exponential.percentile=95", "-p exponential.percentile=50"),
        (SUSPECT, says(r"exponential\.percentile \(95 against 50\)")),
    ),
    Case("fio with the size of its file on one side", lambda: pair_fio({}, {"size": "10g"}), (UNCHECKED, says("size"))),
    Case(
        "memtier with reads that find no value on one side",
        lambda: logs(memtier(1, "a"), memtier(1.3, "b", hits=0.0), suffix="json"),
        (SUSPECT, says(r"found no value \(0 % against 100 %\)")),
    ),
    Case(
        "memtier with the same share of reads that find no value",
        lambda: logs(memtier(1, "a", hits=0.9), memtier(1.3, "b", hits=0.9), suffix="json"),
        (favours("tuned"), verdict("valid"), silent("sides-differ")),
    ),
    Case(
        "memtier with lost connections on one side",
        lambda: logs(memtier(1, "a"), memtier(1.3, "b", lost=900), suffix="json"),
        (unsure(), INVALID, fires("errors")),
    ),
    Case("a share of errors in a table", lambda: count_errors(0.2, "share"), (unsure(), INVALID, says("20 % of the"))),
    Case(
        "a number of errors in a table without the number of operations",
        lambda: count_errors(20_000, "operations"),
        (SUSPECT, fires("errors"), says("the total is unknown")),
    ),
    # Figures and settings of some repeats, sides or contexts only.
    Case(
        "a latency that the slowest repeats of one side lack",
        lambda: simulate_results(
            {"first": 1000.0, "second": 1300.0},
            8,
            change=change_system("second", set_figures(without=("read.p99",)), 7, 8),
            question=asking(metrics=("read.p99",)),
        ),
        (SUSPECT, says("read.p99 is missing in 2 of 8 repeats")),
        "read.p99",
    ),
    Case(
        "a latency that no comparison uses is missing in some repeats",
        lambda: simulate_results(
            {"first": 1000.0, "second": 1300.0},
            8,
            change=change_system("second", set_figures(without=("read.p99",)), 7, 8),
            question=asking(metrics=("throughput",)),
        ),
        (wins("second", 1.3), verdict("valid"), silent("incomplete")),
    ),
    Case(
        "trials of both sides at the same time",
        lambda: set_times(simulate_pair(), lambda trial: START_NS + trial.repeat * HOUR_NS),
        (SUSPECT, says("trials of first and second overlapped in time")),
    ),
    Case(
        "trials of both sides one after the other",
        lambda: set_times(simulate_pair(), lambda trial: START_NS + (trial.order or 0) * HOUR_NS),
        (wins("second", 1.3), verdict("valid")),
    ),
    Case(
        "one setting in two spellings, compared with itself",
        lambda: rename_sides("size", "64k", 65536),
        (SUSPECT, says("size is the same on both sides \\('64k' and 65536\\)")),
    ),
    Case(
        "two settings with one number in two units",
        lambda: rename_sides("size", "64k", "64m"),
        (favours("64m"), verdict("valid")),
    ),
    Case(
        "two systems whose names differ only in spelling",
        lambda: rename_sides("system", "lmdb-next", "lmdb_next"),
        (favours("lmdb_next"), verdict("valid")),
    ),
    Case(
        "a baseline without a result at the higher load",
        lambda: sweep_without_baseline(2),
        (wins("second", 1.3), says("clients=1: second holds 1.30×"), expect_overall("suspect")),
    ),
    Case(
        "misses on one side only, which have no ratio",
        lambda: count_misses(first=0.0, second=0.001),
        (favours("first"), says("cache misses is lower with first than with second")),
        "cache.misses",
    ),
]
