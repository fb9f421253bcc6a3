"""Worlds in which something befalls single repeats, or too little to be noticed alone, and in which that decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from judge_support import Spoil, asking, both, failing
from known_truth_expected import (
    SUSPECT,
    UNCHECKED,
    VALID,
    Case,
    favours,
    fires,
    no_claim,
    not_valid_for,
    silent,
    too_few,
    unsure,
    verdict,
    whole,
    wins,
)
from known_truth_given import in_two_workloads
from known_truth_support import (
    MS,
    course,
    failed,
    faster,
    given,
    of_trials,
    on,
    scaled,
    world,
)
from known_truth_undecided import knee, sweep, unsure_of_the_knee
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult
from moving_support import (
    FLAT,
    SECONDS,
    THROUGHPUT,
    TWICE,
    Level,
    always,
    first_of,
    line,
    mean,
    moving,
    sometimes,
    steady,
    step,
    timed,
)

SATURATED = {1: 1000.0, 2: 2000.0, 4: 4000.0, 8: 7900.0, 16: 8000.0, 32: 8000.0, 64: 8000.0}


def worst_of_two_reasons() -> ResultSet:
    """Equal; lmdb is a fifth faster in four blocks in which its clock jumped and in four in which 0.2 % failed."""
    spoil = both(
        on("lmdb", lambda one: given(clock__jumps=3)(faster(1.2)(one)), 1, 2, 3, 4),
        on("lmdb", lambda one: failed(0.002)(faster(1.2)(one)), 5, 6, 7, 8),
    )
    return world(FLAT, 12, 0.002, spoil=spoil, question=THROUGHPUT)


def unsteady_and_invalid() -> ResultSet:
    """Equal; rocksdb falls in four windows, and lmdb is a fifth faster in four others, in which its clock jumped."""
    levels = sometimes("rocksdb", step(1.0, 0.6), 1, 2, 3, 4)
    made = moving(FLAT, levels, 12, question=THROUGHPUT)
    quick = on("lmdb", lambda one: given(clock__jumps=3)(faster(1.2)(one)), 5, 6, 7, 8)
    return replace(made, trials=[quick(one) for one in made.trials])


def stolen_and_unsteady(repeats: int, slow: tuple[int, ...], quick: tuple[int, ...]) -> ResultSet:
    """Equal; rocksdb is a fifth slower where the hypervisor took its processors, lmdb rises in other windows."""
    made = moving(FLAT, sometimes("lmdb", step(1.0, 1.4), *quick), repeats, question=THROUGHPUT)
    hit = on("rocksdb", lambda one: given(cpu__steal=0.2)(faster(0.8)(one)), *slow)
    return replace(made, trials=[hit(one) for one in made.trials])


def slow_starts_of_a_sweep(levels: Callable[[int, int], Level], rates: Mapping[int, float]) -> ResultSet:
    """A sweep whose points have courses of their own; the rates are the steady ones."""
    plain = sweep(rates)
    made = []
    for one in plain.trials:
        middle = mean(levels(one.clients or 0, one.repeat))
        names = [name for name in one.values if name.startswith(("read.", "all.")) and timed(name)]
        made.append(scaled(names, 1 / middle)(scaled(("throughput", "operations", "read.count"), middle)(one)))

    def minute(one: TrialResult) -> Series:
        level = levels(one.clients or 0, one.repeat)
        middle = mean(level)
        return course(
            one,
            lambda at: level((at + 0.5) / SECONDS) / middle,
            lambda at: middle / level((at + 0.5) / SECONDS),
        )

    return of_trials(made, minute, question=plain.question)


def two_of_two(spoil: Spoil) -> ResultSet:
    """Two workloads; in that of writes something befalls lmdb."""
    made = in_two_workloads()
    return of_trials(
        [spoil(one) if one.config["workload"] == "writes" else one for one in made.trials],
        minute_of_writes,
        question=made.question,
    )


def minute_of_writes(one: TrialResult) -> Series:
    """All repeats of lmdb fall by a quarter in the workload of writes."""
    if one.config["workload"] == "writes" and one.config["system"] == "lmdb":
        return course(one, lambda at: 1.14 - 0.28 * at / 59)
    return course(one)


def three_systems(unsteady: str) -> ResultSet:
    """Three systems, of which one falls by a quarter in all windows."""
    return moving(
        {"rocksdb": 1000.0, "lmdb": 1500.0, "redb": 1200.0},
        always(**{unsteady: line(1.14, 0.86)}),
        question=asking(by="system", baseline="rocksdb", metrics=("throughput",)),
    )


EXCUSED = [
    # Single repeats.
    Case(
        "half as fast again, and falls to 60 percent half way in two windows of six",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, sometimes("lmdb", step(1.0, 0.6), 2, 5), question=THROUGHPUT
        ),
        (favours("lmdb"), VALID),
    ),
    Case(
        "a tenth faster, and both fall to 70 percent in the same two windows of six",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1100.0},
            lambda _, block: step(1.0, 0.7) if block in (1, 2) else steady,
            question=THROUGHPUT,
        ),
        (wins("lmdb", 1.1), VALID),
    ),
    Case(
        "equal, and lmdb rises by 40 percent in four windows of twelve",
        lambda: moving(FLAT, sometimes("lmdb", step(1.0, 1.4), 1, 4, 7, 10), 12, question=THROUGHPUT),
        (unsure(), no_claim(), SUSPECT),
    ),
    Case(
        "equal, lmdb rises in three windows of nine and rocksdb falls in three others",
        lambda: moving(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2, 3), sometimes("rocksdb", step(1.0, 0.6), 4, 5, 6)),
            9,
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal, lmdb rises in four windows of twelve and rocksdb falls in four others",
        lambda: moving(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2, 3, 4), sometimes("rocksdb", step(1.0, 0.6), 5, 6, 7, 8)),
            12,
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal, lmdb rises in six windows of eighteen and rocksdb falls in six others",
        lambda: moving(
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
        lambda: moving(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2), sometimes("rocksdb", step(1.0, 0.6), 3, 4)),
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "five percent faster, and falls by 30 percent in seven windows of twenty",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1050.0},
            sometimes("lmdb", step(1.0, 0.7), *range(1, 20, 3)),
            20,
            question=THROUGHPUT,
        ),
        (not_valid_for("rocksdb"), SUSPECT),
    ),
    Case(
        "five percent faster, and falls by 70 percent in six windows of twenty",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1050.0},
            sometimes("lmdb", step(1.0, 0.3), *range(1, 18, 3)),
            20,
            question=THROUGHPUT,
        ),
        (not_valid_for("rocksdb"), VALID),
    ),
    # Few repeats and many.
    Case(
        "ten times as fast in five blocks, and one window falls",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 10_000.0}, sometimes("lmdb", step(1.0, 0.7), 3), 5, question=THROUGHPUT
        ),
        (too_few(), verdict("suspect")),
    ),
    Case(
        "a tenth faster, and three windows of six fall to 60 percent",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1100.0}, sometimes("lmdb", step(1.0, 0.6), 1, 3, 5), question=THROUGHPUT
        ),
        (not_valid_for("rocksdb"), unsure(), SUSPECT),
    ),
    # Near what matters.
    # Two excuses at once.
    Case(
        "twice as fast in seven blocks: operations failed in one, the clock jumped in another",
        lambda: world(
            TWICE,
            7,
            spoil=both(on("lmdb", failed(0.005), 3), on("rocksdb", given(clock__jumps=1), 5)),
            question=THROUGHPUT,
        ),
        (favours("lmdb"), SUSPECT),
    ),
    Case(
        "equal, and a fifth faster where its clock jumped and where operations failed",
        worst_of_two_reasons,
        (unsure(), verdict("invalid")),
    ),
    Case(
        "equal, slower where it was not steady, and the other faster where its clock jumped",
        unsteady_and_invalid,
        (unsure(), verdict("suspect", "invalid")),
    ),
    Case(
        "equal, slower where the hypervisor took its processors, and the other faster where it rose, of eight",
        lambda: stolen_and_unsteady(8, (1, 2), (3, 4)),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal, slower where the hypervisor took its processors, and the other faster where it rose, of twelve",
        lambda: stolen_and_unsteady(12, (1, 2, 3, 4), (5, 6, 7, 8)),
        (unsure(), SUSPECT),
    ),
    Case(
        "half as fast again in ten blocks, two windows fall and one trial needed a second attempt",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1500.0},
            sometimes("lmdb", step(1.0, 0.7), 2, 5),
            10,
            spoil=on("lmdb", failing("connection refused"), 7),
            question=THROUGHPUT,
        ),
        (favours("lmdb"), verdict("suspect"), fires("retried", "suspect")),
    ),
    # Thresholds of other checks.
    Case(
        "equal: the hypervisor took 4.9 percent of the processors in all trials of rocksdb",
        lambda: moving(
            {"rocksdb": 952.0, "lmdb": 1000.0},
            always(),
            spoil=on("rocksdb", given(cpu__steal=0.049)),
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "half as fast again: the hypervisor took 4.9 percent of the processors in all trials of rocksdb",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1500.0},
            always(),
            spoil=on("rocksdb", given(cpu__steal=0.049)),
            question=THROUGHPUT,
        ),
        (wins("lmdb", 1.5), VALID),
    ),
    Case(
        "five percent faster, and nine percent of both sides' time is our own",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1050.0}, always(), spoil=given(driver=0.9 * MS), question=THROUGHPUT
        ),
        (wins("lmdb", 1.05), VALID),
    ),
    Case(
        "twice as fast, and nine percent of its time is our own",
        lambda: moving(TWICE, always(), spoil=on("lmdb", given(driver=0.45 * MS)), question=THROUGHPUT),
        (favours("lmdb"), VALID),
    ),
    # What is not compared.
    Case(
        "twice the throughput; an operation of the warm-up lasted far into the window, which concerns latencies",
        lambda: world(TWICE, spoil=on("rocksdb", given(carried__max=20e9)), question=THROUGHPUT),
        (wins("lmdb", 2.0), VALID),
    ),
    Case(
        "half as fast again as rocksdb, while a third system is not steady",
        lambda: three_systems("redb"),
        (wins("lmdb", 1.5), VALID, whole("suspect")),
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
        lambda: two_of_two(lambda one: one),
        (wins("lmdb", 1.5), VALID),
        context={"workload": "reads"},
    ),
    Case(
        "unknown in writes, which are not steady",
        lambda: two_of_two(lambda one: one),
        (unsure(), SUSPECT),
        context={"workload": "writes"},
    ),
    # Curves.
    Case(
        "unknown: the points of a curve beyond eight clients fall from 1.5 to half of their mean in all windows",
        lambda: slow_starts_of_a_sweep(lambda clients, _: line(1.5, 0.5) if clients > 8 else steady, SATURATED),
        (whole("suspect", "invalid"), unsure_of_the_knee()),
    ),
    Case(
        "throughput doubles up to 64 clients: those beyond eight had not warmed up in any window",
        lambda: slow_starts_of_a_sweep(
            lambda clients, _: line(0.0, 16 / clients) if clients > 8 else steady,
            {1: 1000, 2: 2000, 4: 4000, 8: 8000, 16: 16_000, 32: 32_000, 64: 64_000},
        ),
        (whole("suspect", "invalid"), unsure_of_the_knee()),
    ),
    Case(
        "throughput doubles up to 8 clients and stays; a third of all windows fall by a fifth",
        lambda: slow_starts_of_a_sweep(
            lambda clients, block: step(1.1, 0.9) if (block + clients.bit_length()) % 3 == 0 else steady, SATURATED
        ),
        (knee(4, 8), whole("valid")),
    ),
    Case(
        "throughput doubles up to 8 clients and stays; 16 clients seem four times as fast, as half of it failed",
        lambda: of_trials(
            [
                replace(failed(0.5)(scaled(("throughput",), 4.0)(one)), config=one.config) if one.clients == 16 else one
                for one in sweep(SATURATED).trials
            ],
            question=asking(by="clients", metrics=("throughput",)),
        ),
        (knee(4, 8), fires("errors", "invalid"), whole("invalid")),
    ),
    # Imports.
    Case(
        "a tenth faster in two runs, one of whose windows falls",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1100.0},
            sometimes("lmdb", step(1.0, 0.7), 2),
            interleaved=False,
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "ten times as fast in two runs, one of whose windows falls",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 10_000.0},
            sometimes("lmdb", step(1.0, 0.7), 2),
            interleaved=False,
            question=THROUGHPUT,
        ),
        (favours("lmdb"), UNCHECKED),
    ),
    # Content.
    Case(
        "ten times as fast in twenty blocks, and one file of one trial was replaced",
        lambda: world(
            {"rocksdb": 1000.0, "lmdb": 10_000.0}, 20, spoil=on("lmdb", given(wrong=1), 5), question=THROUGHPUT
        ),
        (unsure(), fires("unverified", "invalid"), verdict("invalid")),
    ),
    Case(
        "twice as fast, files of somebody else only: nothing could be verified, and nobody asked",
        lambda: world(TWICE, spoil=given(verified=0, wrong=0), question=THROUGHPUT),
        (wins("lmdb", 2.0), VALID, silent("unverified")),
    ),
]
