"""Scenarios in which a few repeats are disturbed, or all repeats slightly, so that the disturbance decides the
claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from drift_support import (
    FLAT,
    SECONDS,
    THROUGHPUT,
    TWICE,
    Level,
    always,
    first_of,
    is_latency,
    line,
    mean,
    simulate_drift,
    sometimes,
    steady,
    step,
)
from judge_support import Change, asking, both, failing
from known_truth_decided import two_workloads
from known_truth_expected import (
    SUSPECT,
    UNCHECKED,
    VALID,
    Case,
    expect_no_claim,
    expect_no_valid_win,
    expect_overall,
    favours,
    fires,
    silent,
    too_few,
    unsure,
    verdict,
    wins,
)
from known_truth_support import (
    MS,
    change_system,
    collect_results,
    fail_share,
    faster,
    make_series,
    scale_metrics,
    set_figures,
    simulate_results,
)
from known_truth_undecided import knee, sweep, unsure_of_the_knee
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult

SATURATED = {1: 1000.0, 2: 2000.0, 4: 4000.0, 8: 7900.0, 16: 8000.0, 32: 8000.0, 64: 8000.0}


def worst_of_two_reasons() -> ResultSet:
    """Equal systems; lmdb is 20 % faster in four blocks with clock jumps and in four blocks with 0.2 % of failures."""
    change = both(
        change_system("lmdb", lambda trial: set_figures(clock__jumps=3)(faster(1.2)(trial)), 1, 2, 3, 4),
        change_system("lmdb", lambda trial: fail_share(0.002)(faster(1.2)(trial)), 5, 6, 7, 8),
    )
    return simulate_results(FLAT, 12, 0.002, change=change, question=THROUGHPUT)


def unsteady_and_invalid() -> ResultSet:
    """Equal systems; rocksdb drops in four windows, and lmdb is 20 % faster in four other windows with clock jumps."""
    levels = sometimes("rocksdb", step(1.0, 0.6), 1, 2, 3, 4)
    results = simulate_drift(FLAT, levels, 12, question=THROUGHPUT)
    quick = change_system("lmdb", lambda trial: set_figures(clock__jumps=3)(faster(1.2)(trial)), 5, 6, 7, 8)
    return replace(results, trials=[quick(trial) for trial in results.trials])


def stolen_and_unsteady(repeats: int, slow: tuple[int, ...], quick: tuple[int, ...]) -> ResultSet:
    """Equal systems; rocksdb is 20 % slower with stolen processor time, and lmdb rises in other windows."""
    results = simulate_drift(FLAT, sometimes("lmdb", step(1.0, 1.4), *quick), repeats, question=THROUGHPUT)
    hit = change_system("rocksdb", lambda trial: set_figures(cpu__steal=0.2)(faster(0.8)(trial)), *slow)
    return replace(results, trials=[hit(trial) for trial in results.trials])


def slow_starts_of_a_sweep(levels: Callable[[int, int], Level], rates: Mapping[int, float]) -> ResultSet:
    """A sweep whose points have separate time series; `rates` are the steady rates."""
    plain = sweep(rates)
    results = []
    for trial in plain.trials:
        middle = mean(levels(trial.clients or 0, trial.repeat))
        names = [name for name in trial.values if name.startswith(("read.", "all.")) and is_latency(name)]
        results.append(
            scale_metrics(names, 1 / middle)(scale_metrics(("throughput", "operations", "read.count"), middle)(trial))
        )

    def minute(trial: TrialResult) -> Series:
        level = levels(trial.clients or 0, trial.repeat)
        middle = mean(level)
        return make_series(
            trial,
            lambda at: level((at + 0.5) / SECONDS) / middle,
            lambda at: middle / level((at + 0.5) / SECONDS),
        )

    return collect_results(results, minute, question=plain.question)


def two_of_two(change: Change) -> ResultSet:
    """Two workloads; the change affects only the write workload, in which the throughput of lmdb drops."""
    results = two_workloads()
    return collect_results(
        [change(trial) if trial.config["workload"] == "writes" else trial for trial in results.trials],
        minute_of_writes,
        question=results.question,
    )


def minute_of_writes(trial: TrialResult) -> Series:
    """In the workload of writes, the throughput of lmdb drops by 25 % within every window."""
    if trial.config["workload"] == "writes" and trial.config["system"] == "lmdb":
        return make_series(trial, lambda at: 1.14 - 0.28 * at / 59)
    return make_series(trial)


def three_systems(unsteady: str) -> ResultSet:
    """Three systems; the throughput of one drops by 25 % within every window."""
    return simulate_drift(
        {"rocksdb": 1000.0, "lmdb": 1500.0, "redb": 1200.0},
        always(**{unsteady: line(1.14, 0.86)}),
        question=asking(by="system", baseline="rocksdb", metrics=("throughput",)),
    )


EXCLUDED = [
    # Single repeats.
    Case(
        "1.5 times as fast, and falls to 60 percent half way in two windows of six",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, sometimes("lmdb", step(1.0, 0.6), 2, 5), question=THROUGHPUT
        ),
        (favours("lmdb"), VALID),
    ),
    Case(
        "a tenth faster, and both fall to 70 percent in the same two windows of six",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1100.0},
            lambda _, block: step(1.0, 0.7) if block in (1, 2) else steady,
            question=THROUGHPUT,
        ),
        (wins("lmdb", 1.1), VALID),
    ),
    Case(
        "equal, and lmdb rises by 40 percent in four windows of twelve",
        lambda: simulate_drift(FLAT, sometimes("lmdb", step(1.0, 1.4), 1, 4, 7, 10), 12, question=THROUGHPUT),
        (unsure(), expect_no_claim(), SUSPECT),
    ),
    Case(
        "equal, lmdb rises in three windows of nine and rocksdb falls in three others",
        lambda: simulate_drift(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2, 3), sometimes("rocksdb", step(1.0, 0.6), 4, 5, 6)),
            9,
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal, lmdb rises in four windows of twelve and rocksdb falls in four others",
        lambda: simulate_drift(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2, 3, 4), sometimes("rocksdb", step(1.0, 0.6), 5, 6, 7, 8)),
            12,
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal, lmdb rises in six windows of eighteen and rocksdb falls in six others",
        lambda: simulate_drift(
            FLAT,
            first_of(
                sometimes("lmdb", step(1.0, 1.4), *range(1, 7)), sometimes("rocksdb", step(1.0, 0.6), *range(7, 13))
            ),
            18,
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal, lmdb rises in two windows of six and rocksdb falls in two others",
        lambda: simulate_drift(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2), sometimes("rocksdb", step(1.0, 0.6), 3, 4)),
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "five percent faster, and falls by 30 percent in seven windows of twenty",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1050.0},
            sometimes("lmdb", step(1.0, 0.7), *range(1, 20, 3)),
            20,
            question=THROUGHPUT,
        ),
        (expect_no_valid_win("rocksdb"), SUSPECT),
    ),
    Case(
        "five percent faster, and falls by 70 percent in six windows of twenty",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1050.0},
            sometimes("lmdb", step(1.0, 0.3), *range(1, 18, 3)),
            20,
            question=THROUGHPUT,
        ),
        (expect_no_valid_win("rocksdb"), VALID),
    ),
    # Few repeats and many.
    Case(
        "ten times as fast in five blocks, and one window falls",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 10_000.0}, sometimes("lmdb", step(1.0, 0.7), 3), 5, question=THROUGHPUT
        ),
        (too_few(), verdict("suspect")),
    ),
    Case(
        "a tenth faster, and three windows of six fall to 60 percent",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1100.0}, sometimes("lmdb", step(1.0, 0.6), 1, 3, 5), question=THROUGHPUT
        ),
        (expect_no_valid_win("rocksdb"), unsure(), SUSPECT),
    ),
    # Effects near the threshold. Two simultaneous exclusions.
    Case(
        "twice as fast in seven blocks: operations failed in one, the clock jumped in another",
        lambda: simulate_results(
            TWICE,
            7,
            change=both(
                change_system("lmdb", fail_share(0.005), 3), change_system("rocksdb", set_figures(clock__jumps=1), 5)
            ),
            question=THROUGHPUT,
        ),
        (favours("lmdb"), SUSPECT),
    ),
    Case(
        "equal, but 20 percent faster in repeats with clock jumps or failures",
        worst_of_two_reasons,
        (unsure(), verdict("invalid")),
    ),
    Case(
        "equal; one side slower in unsteady repeats, the other faster in repeats with clock jumps",
        unsteady_and_invalid,
        (unsure(), verdict("suspect", "invalid")),
    ),
    Case(
        "equal; one side slower with stolen processors, the other faster in rising repeats, eight blocks",
        lambda: stolen_and_unsteady(8, (1, 2), (3, 4)),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal; one side slower with stolen processors, the other faster in rising repeats, twelve blocks",
        lambda: stolen_and_unsteady(12, (1, 2, 3, 4), (5, 6, 7, 8)),
        (unsure(), SUSPECT),
    ),
    Case(
        "1.5 times as fast in ten blocks, two windows fall and one trial needed a second attempt",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1500.0},
            sometimes("lmdb", step(1.0, 0.7), 2, 5),
            10,
            change=change_system("lmdb", failing("connection refused"), 7),
            question=THROUGHPUT,
        ),
        (favours("lmdb"), verdict("suspect"), fires("retried", "suspect")),
    ),
    # Thresholds of other checks.
    Case(
        "equal: the hypervisor took 4.9 percent of the processors in all trials of rocksdb",
        lambda: simulate_drift(
            {"rocksdb": 952.0, "lmdb": 1000.0},
            always(),
            change=change_system("rocksdb", set_figures(cpu__steal=0.049)),
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "1.5 times as fast: the hypervisor took 4.9 percent of the processors in all trials of rocksdb",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1500.0},
            always(),
            change=change_system("rocksdb", set_figures(cpu__steal=0.049)),
            question=THROUGHPUT,
        ),
        (wins("lmdb", 1.5), VALID),
    ),
    Case(
        "five percent faster, and nine percent of both sides' time is the engine's overhead",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1050.0}, always(), change=set_figures(driver=0.9 * MS), question=THROUGHPUT
        ),
        (wins("lmdb", 1.05), VALID),
    ),
    Case(
        "twice as fast, and nine percent of its time is the engine's overhead",
        lambda: simulate_drift(
            TWICE, always(), change=change_system("lmdb", set_figures(driver=0.45 * MS)), question=THROUGHPUT
        ),
        (favours("lmdb"), VALID),
    ),
    # Data outside the comparison.
    Case(
        "twice the throughput; an operation of the warm-up extended far into the window, which affects latencies",
        lambda: simulate_results(
            TWICE, change=change_system("rocksdb", set_figures(carried__max=20e9)), question=THROUGHPUT
        ),
        (wins("lmdb", 2.0), VALID),
    ),
    Case(
        "1.5 times as fast as rocksdb, while a third system is not steady",
        lambda: three_systems("redb"),
        (wins("lmdb", 1.5), VALID, expect_overall("suspect")),
        contender="lmdb",
    ),
    Case(
        "unknown: the baseline of two systems falls by a quarter in every window",
        lambda: three_systems("rocksdb"),
        (unsure(), SUSPECT),
        contender="redb",
    ),
    Case(
        "faster in reads, while the writes of the same experiment are not steady",
        lambda: two_of_two(lambda trial: trial),
        (wins("lmdb", 1.5), VALID),
        context={"workload": "reads"},
    ),
    Case(
        "unknown in writes, which are not steady",
        lambda: two_of_two(lambda trial: trial),
        (unsure(), SUSPECT),
        context={"workload": "writes"},
    ),
    # Curves.
    Case(
        "unknown: the points of a curve beyond eight clients fall from 1.5 to half of their mean in all windows",
        lambda: slow_starts_of_a_sweep(lambda clients, _: line(1.5, 0.5) if clients > 8 else steady, SATURATED),
        (expect_overall("suspect", "invalid"), unsure_of_the_knee()),
    ),
    Case(
        "throughput doubles up to 64 clients: points beyond eight clients had not warmed up in any window",
        lambda: slow_starts_of_a_sweep(
            lambda clients, _: line(0.0, 16 / clients) if clients > 8 else steady,
            {1: 1000, 2: 2000, 4: 4000, 8: 8000, 16: 16_000, 32: 32_000, 64: 64_000},
        ),
        (expect_overall("suspect", "invalid"), unsure_of_the_knee()),
    ),
    Case(
        "throughput doubles up to 8 clients and stays; a third of all windows fall by a fifth",
        lambda: slow_starts_of_a_sweep(
            lambda clients, block: step(1.1, 0.9) if (block + clients.bit_length()) % 3 == 0 else steady, SATURATED
        ),
        (knee(4, 8), expect_overall("valid")),
    ),
    Case(
        "throughput doubles up to 8 clients and stays; 16 clients seem four times as fast, as half of it failed",
        lambda: collect_results(
            [
                replace(fail_share(0.5)(scale_metrics(("throughput",), 4.0)(trial)), config=trial.config)
                if trial.clients == 16
                else trial
                for trial in sweep(SATURATED).trials
            ],
            question=asking(by="clients", metrics=("throughput",)),
        ),
        (knee(4, 8), fires("errors", "invalid"), expect_overall("invalid")),
    ),
    # Imports.
    Case(
        "a tenth faster in two runs, one of whose windows falls",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1100.0},
            sometimes("lmdb", step(1.0, 0.7), 2),
            interleaved=False,
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "ten times as fast in two runs, one of whose windows falls",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 10_000.0},
            sometimes("lmdb", step(1.0, 0.7), 2),
            interleaved=False,
            question=THROUGHPUT,
        ),
        (favours("lmdb"), UNCHECKED),
    ),
    # Correctness of values.
    Case(
        "ten times as fast in twenty blocks, and one file of one trial was replaced",
        lambda: simulate_results(
            {"rocksdb": 1000.0, "lmdb": 10_000.0},
            20,
            change=change_system("lmdb", set_figures(wrong=1), 5),
            question=THROUGHPUT,
        ),
        (unsure(), fires("unverified", "invalid"), verdict("invalid")),
    ),
    Case(
        "twice as fast, with foreign files only: verification is impossible and was not requested",
        lambda: simulate_results(TWICE, change=set_figures(verified=0, wrong=0), question=THROUGHPUT),
        (wins("lmdb", 2.0), VALID, silent("unverified")),
    ),
]
