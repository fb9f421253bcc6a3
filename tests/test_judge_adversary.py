"""Worlds made to deceive the judge where it excuses: movements within a trial, disturbed repeats, small thresholds.

Written from the documentation alone. The name of a case states what is true; the truth of a store is its steady speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

import pytest

from judge_support import Spoil, asking, both, ended, facts, failing
from known_truth_expected import (
    Case,
    Expectation,
    favours,
    fires,
    no_claim,
    refused,
    says,
    silent,
    too_few,
    trusts_less,
    verdict,
    whole,
    wins,
)
from known_truth_given import in_two_workloads
from known_truth_imports import runs, two
from known_truth_support import (
    MS,
    SHAPE,
    bounded,
    course,
    failed,
    faster,
    figure,
    given,
    of_trials,
    on,
    scaled,
    trial,
    typical,
    world,
)
from known_truth_undecided import knee, sweep
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult

P99 = "read.p99"
FLAT = {"rocksdb": 1000.0, "lmdb": 1000.0}
ALIKE = {"rocksdb": 5.0, "lmdb": 5.0}
TWICE = {"rocksdb": 1000.0, "lmdb": 2000.0}
# The level at a share of the window, as a multiple of the steady one.
Level = Callable[[float], float]
# The level of a system in a block.
Levels = Callable[[str, int], Level]
SECONDS = 60


def steady(_: float) -> float:
    """Nothing moves."""
    return 1.0


def line(first: float, last: float) -> Level:
    """A straight line."""
    return lambda at: first + (last - first) * at


def step(first: float, last: float, at: float = 0.5) -> Level:
    """One level, then another."""
    return lambda share: first if share < at else last


def hump(level: float, first: float, last: float) -> Level:
    """Another level for a part of the window."""
    return lambda share: level if first <= share < last else 1.0


def always(**sides: Level) -> Levels:
    """The same in all repeats of a system."""
    return lambda system, _: sides.get(system, steady)


def sometimes(system: str, level: Level, *blocks: int) -> Levels:
    """In some repeats of a system."""
    return lambda one, block: level if one == system and block in blocks else steady


def alternating(factor: float, *systems: str) -> Levels:
    """The level rises by the factor half way in one repeat and falls by it in the next; the mean stays."""
    up = 2 * factor / (1 + factor)

    def levels(system: str, block: int) -> Level:
        if system not in systems:
            return steady
        return step(2 - up, up) if (block + len(system)) % 2 else step(up, 2 - up)

    return levels


def first_of(*some: Levels) -> Levels:
    """The first that moves."""

    def levels(system: str, block: int) -> Level:
        found = [each(system, block) for each in some]
        return next((each for each in found if each is not steady), steady)

    return levels


def mean(level: Level) -> float:
    """Over the seconds of the window."""
    return math.fsum(level((at + 0.5) / SECONDS) for at in range(SECONDS)) / SECONDS


def moving(
    rates: Mapping[str, float], levels: Levels, repeats: int = 6, noise: float = 0.002, **fields: object
) -> ResultSet:
    """Closed loops whose throughput follows the level, latencies its reciprocal; figures are those of the window."""

    def make(system: str, block: int, rate: float) -> TrialResult:
        return trial(system, block, rate * mean(levels(system, block)))

    def minute(one: TrialResult) -> Series:
        level = levels(str(one.config["system"]), one.repeat)
        middle = mean(level)
        return course(
            one,
            lambda at: level((at + 0.5) / SECONDS) / middle,
            lambda at: middle / level((at + 0.5) / SECONDS),
        )

    return world(rates, repeats, noise, make=make, minute=minute, **fields)  # type: ignore[arg-type]


def at_a_rate(
    tails: Mapping[str, float], levels: Levels, repeats: int = 6, noise: float = 0.002, **fields: object
) -> ResultSet:
    """1,000 op/s on both sides; the latencies, of these means in ms, follow the level.

    A percentile of the window is that of the mixture: with latencies of equal shape, the least factor of the shape
    that leaves so many seconds above is close to it.
    """

    def make(system: str, block: int, factor: float) -> TrialResult:
        one = trial(system, block, 1000.0, target=1000.0, mean_ns=tails[system] * factor / 1000 * MS)
        level = levels(system, block)
        return scaled([name for name in one.values if name.startswith(("read.", "all.")) and timed(name)], top(level))(
            one
        )

    def minute(one: TrialResult) -> Series:
        level = levels(str(one.config["system"]), one.repeat)
        high = top(level)
        return course(one, latencies=lambda at: level((at + 0.5) / SECONDS) / high)

    return world(dict.fromkeys(tails, 1000.0), repeats, noise, make=make, minute=minute, **fields)  # type: ignore[arg-type]


def timed(metric: str) -> bool:
    """Whether it is a latency."""
    return metric.rpartition(".")[2] in {*SHAPE, "mean"}


def top(level: Level) -> float:
    """The level that a tenth of the seconds reach: a tail is made there."""
    return sorted(level((at + 0.5) / SECONDS) for at in range(SECONDS))[-SECONDS // 10]


def unsure() -> Expectation:
    """Nothing is claimed and called valid, equality included."""
    return Expectation(
        "no valid claim",
        lambda said: said.comparison is None
        or said.claim not in ("better", "worse", "same", "slight")
        or str(said.comparison.verdict) != "valid",
    )


def not_valid_for(system: str) -> Expectation:
    """This side is not said to win by a valid comparison."""
    return Expectation(
        f"no valid claim for {system}",
        lambda said: said.winner != system or said.comparison is None or str(said.comparison.verdict) != "valid",
    )


def equal() -> Expectation:
    """Shown to be equal for all that matters."""
    return Expectation("no difference that matters", lambda said: said.claim == "same")


def slight() -> Expectation:
    """Certain, and less than matters."""
    return Expectation("differs by less than matters", lambda said: said.claim == "slight")


VALID = verdict("valid")
THROUGHPUT = asking(metrics=("throughput",))


# Slow drifts.


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


def short(levels: Levels, intervals: int, last: float = 1.0) -> ResultSet:
    """Equal in the long run; the windows have few intervals, of which the last may be shorter."""
    lengths = (1.0,) * (intervals - 1) + (last,)
    total = math.fsum(lengths)

    def shares(system: str, block: int) -> list[float]:
        level = levels(system, block)
        return [level((at + 0.5) / intervals) for at in range(intervals)]

    def mean_of(system: str, block: int) -> float:
        both_of = zip(shares(system, block), lengths, strict=True)
        return math.fsum(each * length for each, length in both_of) / total

    def make(system: str, block: int, rate: float) -> TrialResult:
        return trial(system, block, rate * mean_of(system, block))

    def minute(one: TrialResult) -> Series:
        system = str(one.config["system"])
        middle = mean_of(system, one.repeat)
        jitter = typical(intervals, 0.01, ("short", one.trial))
        seconds = SECONDS / total
        rate = one.values["throughput"].value
        rates = [rate * each / middle * j for each, j in zip(shares(system, one.repeat), jitter, strict=True)]
        starts = tuple(seconds * at for at in range(intervals))
        p50, p99 = (
            tuple(one.values[name].value * rate / each for each in rates) for name in ("read.p50", "read.p99")
        )
        ended = tuple(round(r * seconds * length) for r, length in zip(rates, lengths, strict=True))
        return Series(
            starts,
            tuple(seconds * length for length in lengths),
            tuple(rates),
            p50,
            p99,
            (0,) * intervals,
            ended=ended,
        )

    return world(FLAT, 6, 0.002, make=make, minute=minute, question=THROUGHPUT)


def noisy_drift_with_jumps() -> ResultSet:
    """Equal at the end; lmdb falls by a tenth in ten noisy windows, and doubles its speed in two."""
    repeats, points = 12, 40
    random = Random(3)
    trials, courses = [], {}
    for block in range(1, repeats + 1):
        for system in ("rocksdb", "lmdb"):
            level: Level = steady
            if system == "lmdb":
                level = step(1.0, 2.0) if block in (3, 9) else line(1.1, 1.0)
            rates = [1000 * level((at + 0.5) / points) * random.lognormvariate(0, 0.05) for at in range(points)]
            one = trial(system, block, math.fsum(rates) / points)
            p50, p99 = (
                tuple(one.values[name].value * one.values["throughput"].value / each for each in rates)
                for name in ("read.p50", "read.p99")
            )
            courses[one.trial] = Series(
                tuple(1.5 * at for at in range(points)), (1.5,) * points, tuple(rates), p50, p99, (0,) * points
            )
            trials.append(replace(one, order=len(trials)))
    return of_trials(trials, lambda one: courses[one.trial], question=THROUGHPUT)


def one_jump(repeats: int) -> ResultSet:
    """Equal at the end; lmdb falls by 4.5 percent in all windows but one, in which it jumps."""
    levels = first_of(sometimes("lmdb", step(1.0, 1.3), 4), always(lmdb=line(1.045, 1.0)))
    return moving(FLAT, levels, repeats, question=THROUGHPUT)


def random_compactions() -> ResultSet:
    """lmdb loses 60 % for three seconds of each minute, whenever that is: 3 % of its speed, in truth as well."""
    random = Random(5)
    starts = {block: random.uniform(0.1, 0.85) for block in range(1, 13)}

    def levels(system: str, block: int) -> Level:
        return hump(0.4, starts[block], starts[block] + 0.05) if system == "lmdb" else steady

    return moving(FLAT, levels, 12, 0.001, question=THROUGHPUT)


def wandering(ratio: float) -> ResultSet:
    """Throughput wanders by a tenth from second to second, each near the one before (AR(1), 0.9); repeats vary by 3 %."""
    random = Random(11)
    trials, courses = [], {}
    for block in range(1, 9):
        for system, rate in (("rocksdb", 1000.0), ("lmdb", 1000.0 * ratio)):
            state, rates = 0.0, []
            for _ in range(SECONDS):
                state = 0.9 * state + random.gauss(0, 0.1 * math.sqrt(1 - 0.81))
                rates.append(rate * math.exp(state))
            one = trial(system, block, math.fsum(rates) / SECONDS)
            p50, p99 = (
                tuple(one.values[name].value * one.values["throughput"].value / each for each in rates)
                for name in ("read.p50", "read.p99")
            )
            courses[one.trial] = Series(
                tuple(map(float, range(SECONDS))), (1.0,) * SECONDS, tuple(rates), p50, p99, (0,) * SECONDS
            )
            trials.append(replace(one, order=len(trials)))
    return of_trials(trials, lambda one: courses[one.trial], question=THROUGHPUT)


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


SATURATED = {1: 1000.0, 2: 2000.0, 4: 4000.0, 8: 7900.0, 16: 8000.0, 32: 8000.0, 64: 8000.0}


def late_tail(metric: str, share: float) -> ResultSet:
    """Equal; some operations of lmdb went out 10 ms late by us, which makes that much of its tail."""

    def spoil(one: TrialResult) -> TrialResult:
        names = [
            name
            for name in ("p99.9", "p99.99")
            if (name == metric or name == "p99.99") and f"read.{name}" in one.values
        ]
        later = {
            f"{kind}.{name}": figure(f"{kind}.{name}", one.values[f"read.{name}"].value + 10 * MS, 60_000)
            for name in names
            for kind in ("read", "all")
        }
        return given(late__generator=share * 60_000)(replace(one, values={**one.values, **later}))

    return at_a_rate(
        ALIKE, always(), spoil=on("lmdb", spoil), question=asking(metrics=(f"read.{metric}",))
    )


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


TAILS = tuple(f"{kind}.{name}" for kind in ("read", "all") for name in ("p95", "p99", "p99.9", "max"))


def tail_doubles(one: TrialResult) -> Series:
    """The p99 of lmdb doubles half way; median and throughput stay."""
    made = course(one)
    if one.config["system"] != "lmdb":
        return made
    return replace(made, p99_ns=tuple((each or 0) / 1.9 * (2 if at >= 30 else 1) for at, each in enumerate(made.p99_ns)))


def gaps(one: TrialResult) -> Series:
    """Every tenth interval has no p99."""
    made = course(one)
    return replace(made, p99_ns=tuple(None if at % 10 == 0 else each for at, each in enumerate(made.p99_ns)))


CASES = [
    # Drifts in all repeats, below the least effect of a single trial.
    Case(
        "equal at the end: lmdb falls by 4.5 percent in every window",
        lambda: moving(FLAT, always(lmdb=line(1.045, 1.0)), question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "equal at the end: lmdb falls by 4.5 percent in every one of twenty windows",
        lambda: moving(FLAT, always(lmdb=line(1.045, 1.0)), 20, 0.01, question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "equal at the end: lmdb rises by three percent and rocksdb falls by three in every window",
        lambda: moving(FLAT, always(lmdb=line(0.97, 1.0), rocksdb=line(1.03, 1.0)), 10, question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "4.5 percent ahead at the end and alike in the mean: lmdb rises, rocksdb falls in every window",
        lambda: moving(FLAT, always(lmdb=line(0.978, 1.022), rocksdb=line(1.022, 0.978)), 10, 0.001, question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "a tenth faster at every instant: both fall by 4.5 percent in every window",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1100.0}, lambda *_: line(1.022, 0.978), 8, question=THROUGHPUT
        ),
        (wins("lmdb", 1.1), VALID),
    ),
    Case(
        "three times as fast, and falls by 4.5 percent in every window",
        lambda: moving({"rocksdb": 1000.0, "lmdb": 3000.0}, always(lmdb=line(1.022, 0.978)), question=THROUGHPUT),
        (wins("lmdb", 3.0), VALID),
    ),
    Case(
        "a tenth faster while the machine slows by a fifth over all and by three percent in every window",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1100.0}, lambda *_: line(1.015, 0.985), 10, drift=0.2, question=THROUGHPUT
        ),
        (wins("lmdb", 1.1), VALID),
    ),
    Case(
        "equal at the end: the p99 of lmdb falls by 4.5 percent in every window, at a rate",
        lambda: at_a_rate(
            ALIKE, always(lmdb=line(1.045, 1.0)), 10, question=asking(metrics=(P99,))
        ),
        (unsure(),),
        metric=P99,
    ),
    Case(
        "equal at the end: lmdb falls by 4.5 percent in seven windows of eight and jumps up in one",
        lambda: one_jump(8),
        (unsure(),),
    ),
    Case(
        "equal at the end: lmdb falls by a tenth in ten noisy windows, and doubles its speed in two",
        noisy_drift_with_jumps,
        (unsure(),),
    ),
    # The same part of all windows.
    Case(
        "equal after a first tenth of every window, in which lmdb has half its speed",
        lambda: moving(FLAT, always(lmdb=hump(0.5, 0.0, 0.1)), question=THROUGHPUT),
        (unsure(), fires("not-steady", "suspect")),
    ),
    Case(
        "equal after the first three seconds of every window, in which lmdb has a third of its speed",
        lambda: moving(FLAT, always(lmdb=hump(0.33, 0.0, 0.05)), question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "equal after the first second of every window, in which lmdb has a quarter of its speed",
        lambda: moving(FLAT, always(lmdb=hump(0.25, 0.0, 1 / 60)), 10, 0.001, question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "equal but for a compaction of lmdb in the last third of every window",
        lambda: moving(FLAT, always(lmdb=hump(0.8, 0.67, 1.0)), question=THROUGHPUT),
        (unsure(), fires("not-steady", "suspect")),
    ),
    Case(
        "equal but for a compaction of lmdb in the last two seconds of every window",
        lambda: moving(FLAT, always(lmdb=hump(0.5, 0.96, 1.0)), 8, question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "half as fast again, with a compaction in the last third of every window on both sides",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, lambda *_: hump(0.8, 0.67, 1.0), question=THROUGHPUT
        ),
        (favours("lmdb"), fires("not-steady", "suspect")),
    ),
    Case(
        "three times as fast, with a compaction in the last third of half of its windows",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 3000.0}, sometimes("lmdb", hump(0.6, 0.67, 1.0), 2, 4, 5), question=THROUGHPUT
        ),
        (favours("lmdb"), VALID),
    ),
    Case(
        "three percent slower by a compaction of three seconds at any time of every window",
        random_compactions,
        (favours("rocksdb"), VALID),
    ),
    Case(
        "twice as fast although both fall by a third in every window",
        lambda: moving(TWICE, lambda *_: line(1.2, 0.8), question=THROUGHPUT),
        (favours("lmdb"), verdict("suspect")),
    ),
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
        (unsure(), no_claim()),
    ),
    Case(
        "equal, lmdb rises in three windows of nine and rocksdb falls in three others",
        lambda: moving(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2, 3), sometimes("rocksdb", step(1.0, 0.6), 4, 5, 6)),
            9,
            question=THROUGHPUT,
        ),
        (unsure(),),
    ),
    Case(
        "equal, lmdb rises in four windows of twelve and rocksdb falls in four others",
        lambda: moving(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2, 3, 4), sometimes("rocksdb", step(1.0, 0.6), 5, 6, 7, 8)),
            12,
            question=THROUGHPUT,
        ),
        (unsure(),),
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
        (unsure(),),
    ),
    Case(
        "equal, lmdb rises in two windows of six and rocksdb falls in two others",
        lambda: moving(
            FLAT,
            first_of(sometimes("lmdb", step(1.0, 1.4), 1, 2), sometimes("rocksdb", step(1.0, 0.6), 3, 4)),
            question=THROUGHPUT,
        ),
        (unsure(),),
    ),
    Case(
        "five percent faster, and falls by 30 percent in seven windows of twenty",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1050.0},
            sometimes("lmdb", step(1.0, 0.7), *range(1, 20, 3)),
            20,
            question=THROUGHPUT,
        ),
        (not_valid_for("rocksdb"),),
    ),
    Case(
        "five percent faster, and falls by 70 percent in six windows of twenty",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1050.0},
            sometimes("lmdb", step(1.0, 0.3), *range(1, 18, 3)),
            20,
            question=THROUGHPUT,
        ),
        (not_valid_for("rocksdb"),),
    ),
    # Movements against the size of the difference.
    Case(
        "three tenths faster, half of its windows rise by a tenth and half fall",
        lambda: moving({"rocksdb": 1000.0, "lmdb": 1300.0}, alternating(1.1, "lmdb"), question=THROUGHPUT),
        (wins("lmdb", 1.3), VALID),
    ),
    Case(
        "ten times as fast, half of its windows double and half fall to a half",
        lambda: moving({"rocksdb": 1000.0, "lmdb": 10_000.0}, alternating(2.0, "lmdb"), question=THROUGHPUT),
        (wins("lmdb", 10.0), VALID),
    ),
    Case(
        "ten times as fast, all windows of both sides double or fall to a half",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 10_000.0}, alternating(2.0, "lmdb", "rocksdb"), 8, question=THROUGHPUT
        ),
        (wins("lmdb", 10.0), VALID),
    ),
    Case(
        "unknown: a fifth faster in the mean, half of its windows rise by 30 percent and half fall",
        lambda: moving({"rocksdb": 1000.0, "lmdb": 1200.0}, alternating(1.3, "lmdb"), question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "unknown: 1.8 times as fast in the mean, half of its windows end at half their mean and half at 1.5 times",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1800.0},
            lambda system, block: (line(0.5, 1.5) if block % 2 else line(1.5, 0.5)) if system == "lmdb" else steady,
            question=THROUGHPUT,
        ),
        (unsure(),),
    ),
    Case(
        "unknown: alike in the mean, half of the windows of lmdb rise by a tenth and half fall",
        lambda: moving(FLAT, alternating(1.1, "lmdb"), 10, 0.001, question=THROUGHPUT),
        (unsure(),),
    ),
    Case(
        "unknown: 0.3 percent apart in the mean, half of the windows of lmdb rise by a tenth and half fall",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1003.0}, alternating(1.1, "lmdb"), 20, 0.0005, question=THROUGHPUT
        ),
        (unsure(),),
    ),
    Case(
        "equal for all that matters, 25 percent, though half of the windows rise by eight percent and half fall",
        lambda: moving(
            FLAT, alternating(1.08, "lmdb"), 8, question=asking(metrics=("throughput",), matters=0.25)
        ),
        (equal(), VALID),
    ),
    Case(
        "unknown: 30 percent faster in the mean where 25 matter, half of the windows rise by a tenth and half fall",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1300.0},
            alternating(1.1, "lmdb"),
            8,
            question=asking(metrics=("throughput",), matters=0.25),
        ),
        (unsure(),),
    ),
    Case("half as fast again, and both sides wander by a tenth within the window", lambda: wandering(1.5), (favours("lmdb"), VALID)),
    Case("equal, and both sides wander by a tenth within the window", lambda: wandering(1.0), (no_claim(),)),
    # Latencies.
    *(
        Case(
            f"equal at first: the latencies of lmdb triple half way in every window, at a rate: {metric}",
            lambda metric=metric: at_a_rate(  # type: ignore[misc]
                FLAT, always(lmdb=step(1.0, 3.0)), question=asking(metrics=(metric,))
            ),
            (unsure(),),
            metric=metric,
        )
        for metric in ("read.p50", "read.p95", P99, "read.p99.9", "read.mean")
    ),
    *(
        Case(
            f"equal at first: the tail of lmdb doubles half way in every window, at an even throughput: {metric}",
            lambda metric=metric: world(  # type: ignore[misc]
                FLAT, spoil=on("lmdb", scaled(TAILS, 1.9)), minute=tail_doubles, question=asking(metrics=(metric,))
            ),
            (unsure(),),
            metric=metric,
        )
        for metric in ("read.p95", P99, "read.p99.9")
    ),
    Case(
        "unknown: half the p99, half of the windows rise by a tenth and half fall, and some intervals have no p99",
        lambda: world(
            TWICE,
            minute=lambda one: replace(gaps(one), throughput=tuple(
                each * ((1.05 if at < 30 else 0.95) if one.repeat % 2 else (0.95 if at < 30 else 1.05))
                for at, each in enumerate(gaps(one).throughput)
            )),
            question=asking(metrics=(P99,)),
        ),
        (unsure(),),
        metric=P99,
    ),
    Case(
        "half the p95 at a rate, and nothing moves",
        lambda: at_a_rate({"rocksdb": 10.0, "lmdb": 5.0}, always(), question=asking(metrics=("read.p95",))),
        (wins("lmdb", 0.5), VALID),
        metric="read.p95",
    ),
    Case(
        "equal but for a fifth in the middle of every window in which the latencies of lmdb are five times as long",
        lambda: at_a_rate(ALIKE, always(lmdb=hump(5.0, 0.4, 0.6)), question=asking(metrics=(P99,))),
        (unsure(),),
        metric=P99,
    ),
    Case(
        "equal but for the last tenth of every window in which the latencies of lmdb are three times as long",
        lambda: at_a_rate(ALIKE, always(lmdb=hump(3.0, 0.9, 1.0)), question=asking(metrics=(P99,))),
        (unsure(),),
        metric=P99,
    ),
    Case(
        "equal but for the first twentieth of every window in which the latencies of lmdb are ten times as long",
        lambda: world(
            dict.fromkeys(FLAT, 1000.0),
            8,
            0.002,
            make=lambda system, block, factor: scaled(
                (P99, "all.p99", "read.p99.9", "all.p99.9", "read.max", "all.max"), 4.0 if system == "lmdb" else 1.0
            )(trial(system, block, 1000.0, target=1000.0, mean_ns=10 * MS * factor / 1000)),
            minute=lambda one: course(
                one,
                latencies=lambda at: (10.0 if at < 3 else 1.0) * (0.25 if one.config["system"] == "lmdb" else 1.0),
            ),
            question=asking(metrics=(P99,)),
        ),
        (unsure(),),
        metric=P99,
    ),
    Case(
        "a fifth of the p99, which rises by 30 percent in half of the windows and falls in half",
        lambda: at_a_rate(
            {"rocksdb": 20.0, "lmdb": 4.0}, alternating(1.3, "lmdb"), question=asking(metrics=(P99,))
        ),
        (favours("lmdb"), VALID),
        metric=P99,
    ),
    Case(
        "twice the throughput, while the p99 that is not compared doubles half way in every window",
        lambda: world(
            TWICE,
            minute=lambda one: replace(
                course(one),
                p99_ns=tuple((each or 0) * (2 if at >= 30 else 1) for at, each in enumerate(course(one).p99_ns)),
            ),
            question=THROUGHPUT,
        ),
        (wins("lmdb", 2.0), VALID),
    ),
    Case(
        "half the median at a rate, while the p99 that is not compared triples in every window",
        lambda: world(
            dict.fromkeys(FLAT, 1000.0),
            make=lambda system, block, factor: trial(
                system, block, 1000.0, target=1000.0, mean_ns=(5 if system == "lmdb" else 10) * MS * factor / 1000
            ),
            minute=lambda one: replace(
                course(one),
                p99_ns=tuple((each or 0) * (3 if at >= 30 else 1) for at, each in enumerate(course(one).p99_ns)),
            ),
            question=asking(metrics=("read.p50",)),
        ),
        (wins("lmdb", 0.5), VALID),
        metric="read.p50",
    ),
    Case(
        "unknown whether the p99 is steady: one interval of ten has none",
        lambda: world(TWICE, minute=gaps, question=asking(metrics=(P99,))),
        (trusts_less(),),
        metric=P99,
    ),
    Case(
        "equal: 0.09 percent of lmdb's operations went out 10 ms late by us, which makes its p99.9",
        lambda: late_tail("p99.9", 0.0009),
        (unsure(),),
        metric="read.p99.9",
    ),
    # Figures without a course of their own.
    Case(
        "twice the throughput, half of the windows rise by a tenth and half fall",
        lambda: moving(
            TWICE,
            alternating(1.1, "lmdb"),
            spoil=on("lmdb", scaled(("device.read_per_operation",), 0.5)),
            question=asking(metrics=("throughput", "device.read_per_operation")),
        ),
        (wins("lmdb", 2.0), VALID),
    ),
    Case(
        "unknown: half the device bytes, half of the windows rise by a tenth and half fall, and bytes have no course",
        lambda: moving(
            TWICE,
            alternating(1.1, "lmdb"),
            spoil=on("lmdb", scaled(("device.read_per_operation",), 0.5)),
            question=asking(metrics=("throughput", "device.read_per_operation")),
        ),
        (unsure(),),
        metric="device.read_per_operation",
    ),
    # Few repeats and many.
    *(
        Case(
            f"ten times as fast in {repeats} blocks",
            lambda repeats=repeats: moving(  # type: ignore[misc]
                {"rocksdb": 1000.0, "lmdb": 10_000.0}, always(), repeats, question=THROUGHPUT
            ),
            (too_few(), unsure()),
        )
        for repeats in (3, 4, 5)
    ),
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
        (not_valid_for("rocksdb"), unsure()),
    ),
    Case(
        "three percent faster in twenty blocks",
        lambda: moving({"rocksdb": 1000.0, "lmdb": 1030.0}, always(), 20, 0.01, question=THROUGHPUT),
        (wins("lmdb", 1.03, 0.01), VALID),
    ),
    # Near what matters.
    Case(
        "1.2 percent faster for certain",
        lambda: moving({"rocksdb": 1000.0, "lmdb": 1012.0}, always(), 20, 0.0005, question=THROUGHPUT),
        (wins("lmdb", 1.012, 0.002), VALID),
    ),
    Case(
        "0.8 percent faster for certain",
        lambda: moving({"rocksdb": 1000.0, "lmdb": 1008.0}, always(), 20, 0.0005, question=THROUGHPUT),
        (slight(), VALID),
    ),
    # Two excuses at once.
    Case(
        "twice as fast in seven blocks: operations failed in one, the clock jumped in another",
        lambda: world(
            TWICE,
            7,
            spoil=both(on("lmdb", failed(0.005), 3), on("rocksdb", given(clock__jumps=1), 5)),
            question=THROUGHPUT,
        ),
        (favours("lmdb"),),
    ),
    Case("equal, and a fifth faster where its clock jumped and where operations failed", worst_of_two_reasons, (unsure(),)),
    Case("equal, slower where it was not steady, and the other faster where its clock jumped", unsteady_and_invalid, (unsure(),)),
    Case(
        "equal, slower where the hypervisor took its processors, and the other faster where it rose, of eight",
        lambda: stolen_and_unsteady(8, (1, 2), (3, 4)),
        (unsure(),),
    ),
    Case(
        "equal, slower where the hypervisor took its processors, and the other faster where it rose, of twelve",
        lambda: stolen_and_unsteady(12, (1, 2, 3, 4), (5, 6, 7, 8)),
        (unsure(),),
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
    Case(
        "half as fast again, after three of six trials needed a second attempt",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1500.0},
            always(),
            spoil=on("lmdb", failing("connection refused"), 1, 3, 5),
            question=THROUGHPUT,
        ),
        (refused("retried"),),
    ),
    Case(
        "twice as fast, one trial of seven blocks was stopped half way",
        lambda: moving(TWICE, always(), 7, spoil=on("lmdb", ended("stopped"), 6), question=THROUGHPUT),
        (favours("lmdb"),),
    ),
    # Thresholds of other checks.
    Case(
        "equal: the hypervisor took 4.9 percent of the processors in all trials of rocksdb",
        lambda: moving(
            {"rocksdb": 952.0, "lmdb": 1000.0}, always(), spoil=on("rocksdb", given(cpu__steal=0.049)), question=THROUGHPUT
        ),
        (unsure(),),
    ),
    Case(
        "half as fast again: the hypervisor took 4.9 percent of the processors in all trials of rocksdb",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, always(), spoil=on("rocksdb", given(cpu__steal=0.049)), question=THROUGHPUT
        ),
        (wins("lmdb", 1.5), VALID),
    ),
    Case(
        "five percent faster, and nine percent of both sides' time is our own",
        lambda: moving({"rocksdb": 1000.0, "lmdb": 1050.0}, always(), spoil=given(driver=0.9 * MS), question=THROUGHPUT),
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
        "twice the throughput, and the p99 that nobody asked for is a bound",
        lambda: world(TWICE, spoil=bounded(P99, "at_least"), question=THROUGHPUT),
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
        (unsure(),),
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
        (unsure(),),
        context={"workload": "writes"},
    ),
    # Curves.
    Case(
        "unknown: the points of a curve beyond eight clients fall from 1.5 to half of their mean in all windows",
        lambda: slow_starts_of_a_sweep(lambda clients, _: line(1.5, 0.5) if clients > 8 else steady, SATURATED),
        (whole("suspect", "invalid"),),
    ),
    Case(
        "throughput doubles up to 64 clients: those beyond eight had not warmed up in any window",
        lambda: slow_starts_of_a_sweep(
            lambda clients, _: line(0.0, 16 / clients) if clients > 8 else steady,
            {1: 1000, 2: 2000, 4: 4000, 8: 8000, 16: 16_000, 32: 32_000, 64: 64_000},
        ),
        (whole("suspect", "invalid"),),
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
        (knee(4, 8), fires("errors", "invalid")),
    ),
    # Imports.
    Case(
        "six imported runs each, twice as fast, no course",
        lambda: two(runs(1000, 30_000), runs(2000, 15_000)),
        (wins("lmdb", 2.0), says(r"\d+ of \d+ checks could look")),
    ),
    Case(
        "a tenth faster in two runs, one of whose windows falls",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 1100.0},
            sometimes("lmdb", step(1.0, 0.7), 2),
            interleaved=False,
            question=THROUGHPUT,
        ),
        (unsure(),),
    ),
    Case(
        "ten times as fast in two runs, one of whose windows falls",
        lambda: moving(
            {"rocksdb": 1000.0, "lmdb": 10_000.0},
            sometimes("lmdb", step(1.0, 0.7), 2),
            interleaved=False,
            question=THROUGHPUT,
        ),
        (favours("lmdb"),),
    ),
    # Windows of few intervals.
    Case(
        "equal at the end: lmdb falls by 40 percent over the four intervals of every window",
        lambda: short(always(lmdb=line(1.67, 1.0)), 4),
        (unsure(),),
    ),
    Case(
        "equal but for the last of six intervals of every window, in which lmdb has 80 percent of its speed",
        lambda: short(always(lmdb=hump(0.8, 0.83, 1.0)), 6),
        (unsure(),),
    ),
    Case(
        "equal but for the last of ten intervals of every window, shorter and at a fifth of the speed",
        lambda: short(always(lmdb=hump(0.2, 0.9, 1.0)), 10, 0.85),
        (unsure(),),
    ),
    # Content.
    Case(
        "ten times as fast in twenty blocks, and one file of one trial was replaced",
        lambda: world({"rocksdb": 1000.0, "lmdb": 10_000.0}, 20, spoil=on("lmdb", given(wrong=1), 5), question=THROUGHPUT),
        (unsure(), fires("unverified", "invalid")),
    ),
    Case(
        "twice as fast, one file in each trial of the slower side was replaced, and nobody asked to verify",
        lambda: world(TWICE, spoil=on("rocksdb", given(wrong=1)), question=THROUGHPUT),
        (refused("unverified"),),
    ),
    Case(
        "twice as fast, files of somebody else only: nothing could be verified, and nobody asked",
        lambda: world(TWICE, spoil=given(verified=0, wrong=0), question=THROUGHPUT),
        (wins("lmdb", 2.0), VALID, silent("unverified")),
    ),
    Case(
        "one side synced its files and the other did not, and a third of its windows fall",
        lambda: moving(
            TWICE,
            sometimes("lmdb", step(1.0, 0.7), 2, 5),
            spoil=on("rocksdb", facts(durability="device")),
            question=THROUGHPUT,
        ),
        (refused("guarantees-differ"),),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_judge_is_not_deceived(case: Case) -> None:
    said = case.judged()
    missing = [each.text for each in case.expect if not each.holds(said)]
    assert not missing, f"expected: {'; '.join(missing)}; the judge said: {said.actual()}"
