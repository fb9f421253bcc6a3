"""Scenarios with drift within the trials. The true figure is the steady level, which can differ from the means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

from drift_support import (
    ALIKE,
    FLAT,
    P99,
    SECONDS,
    THROUGHPUT,
    TWICE,
    Level,
    Levels,
    alternating,
    always,
    first_of,
    hump,
    line,
    simulate_drift,
    simulate_drift_at_rate,
    sometimes,
    steady,
    step,
)
from judge_support import asking
from known_truth_expected import (
    SUSPECT,
    VALID,
    Case,
    expect_no_claim,
    expect_same,
    favours,
    fires,
    unsure,
    verdict,
    wins,
)
from known_truth_support import (
    collect_results,
    make_series,
    simulate_results,
    trial,
    typical,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult


def short(levels: Levels, intervals: int, last: float = 1.0) -> ResultSet:
    """The systems are equal in the long run; the windows have few intervals, the last of which may be shorter."""
    lengths = (1.0,) * (intervals - 1) + (last,)
    total = math.fsum(lengths)

    def shares(system: str, block: int) -> list[float]:
        level = levels(system, block)
        return [level((at + 0.5) / intervals) for at in range(intervals)]

    def mean_of(system: str, block: int) -> float:
        both_of = zip(shares(system, block), lengths, strict=True)
        return math.fsum(share * length for share, length in both_of) / total

    def make(system: str, block: int, rate: float) -> TrialResult:
        return trial(system, block, rate * mean_of(system, block))

    def minute(result: TrialResult) -> Series:
        system = str(result.config["system"])
        middle = mean_of(system, result.repeat)
        jitter = typical(intervals, 0.01, ("short", result.trial))
        seconds = SECONDS / total
        rate = result.values["throughput"].value
        rates = [rate * share / middle * j for share, j in zip(shares(system, result.repeat), jitter, strict=True)]
        starts = tuple(seconds * at for at in range(intervals))
        p50, p99 = (
            tuple(result.values[name].value * rate / share for share in rates) for name in ("read.p50", "read.p99")
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

    return simulate_results(FLAT, 6, 0.002, make=make, minute=minute, question=THROUGHPUT)


def simulate_rates(repeats: int, lmdb: float, rates: Callable[[str, int], list[float]]) -> ResultSet:
    """Simulates windows from the relative rate of each second; `lmdb` multiplies the rates of the system lmdb."""
    trials: list[TrialResult] = []
    series_by_trial: dict[str, Series] = {}
    for block in range(1, repeats + 1):
        for system, factor in (("rocksdb", 1.0), ("lmdb", lmdb)):
            results = [1000 * factor * rate for rate in rates(system, block)]
            result = trial(system, block, math.fsum(results) / SECONDS)
            middle = result.values["throughput"].value
            flat = make_series(result)
            p50, p99 = (
                tuple(result.values[name].value * middle / rate for rate in results) for name in ("read.p50", P99)
            )
            series_by_trial[result.trial] = replace(flat, throughput=tuple(results), p50_ns=p50, p99_ns=p99)
            trials.append(replace(result, order=len(trials)))
    return collect_results(trials, lambda result: series_by_trial[result.trial], question=THROUGHPUT)


def noisy_drift_with_jumps() -> ResultSet:
    """In ten noisy windows, lmdb falls from 1.1 times rocksdb's speed to an equal speed; in two, its speed doubles."""
    random = Random(3)

    def rates(system: str, block: int) -> list[float]:
        level: Level = steady
        if system == "lmdb":
            level = step(1.0, 2.0) if block in (3, 9) else line(1.1, 1.0)
        return [level((at + 0.5) / SECONDS) * random.lognormvariate(0, 0.06) for at in range(SECONDS)]

    return simulate_rates(12, 1.0, rates)


def single_jump(repeats: int) -> ResultSet:
    """lmdb falls from 1.045 times rocksdb's speed to an equal speed; in one window its speed rises by 30 % instead."""
    levels = first_of(sometimes("lmdb", step(1.0, 1.3), 4), always(lmdb=line(1.045, 1.0)))
    return simulate_drift(FLAT, levels, repeats, question=THROUGHPUT)


def random_compactions() -> ResultSet:
    """lmdb loses 60 % for three seconds of each minute at random instants: 3 % of its true speed."""
    random = Random(5)
    starts = {block: random.uniform(0.1, 0.85) for block in range(1, 13)}

    def levels(system: str, block: int) -> Level:
        return hump(0.4, starts[block], starts[block] + 0.05) if system == "lmdb" else steady

    return simulate_drift(FLAT, levels, 12, 0.001, question=THROUGHPUT)


def wandering(ratio: float) -> ResultSet:
    """Throughput varies by a tenth, autocorrelated from second to second (AR(1), 0.9)."""
    random = Random(11)

    def rates(_: str, __: int) -> list[float]:
        state = [0.0]
        for _second in range(SECONDS):
            state.append(0.9 * state[-1] + random.gauss(0, 0.1 * math.sqrt(1 - 0.81)))
        return [math.exp(value) for value in state[1:]]

    return simulate_rates(8, ratio, rates)


def transient(random: Random) -> Level:
    """A steady level, or another level at the start, at the end, in a hump, or on a line to the steady level."""
    kind = random.choice(["none", "none", "start", "end", "hump", "line"])
    size = random.choice([-1, 1]) * random.choice([0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.4])
    if kind == "start":
        fades = random.choice([0.02, 0.05, 0.1, 0.3])
        return lambda at: 1 + size * math.exp(-at / fades)
    if kind == "end":
        return hump(1 + size, 1 - random.choice([0.05, 0.1, 0.3]), 1.0)
    if kind == "hump":
        first, width = random.uniform(0.1, 0.7), random.choice([0.05, 0.1, 0.25])
        return hump(1 + size, first, first + width)
    return line(1 + size, 1.0) if kind == "line" else steady


def transients(seed: int) -> tuple[float, ResultSet]:
    """The true ratio, and an experiment in which each side has a transient in all of its windows."""
    random = Random(seed)
    ratio, repeats = random.choice([1.0, 1.0, 1.02, 1.05, 1.2]), random.choice([6, 8, 10, 20])
    between, within = random.choice([0.001, 0.005, 0.02]), random.choice([0.01, 0.03, 0.1])
    levels = {system: transient(random) for system in ("rocksdb", "lmdb")}

    def rates(system: str, _: int) -> list[float]:
        repeat = random.lognormvariate(0, between)
        return [
            repeat * levels[system]((at + 0.5) / SECONDS) * random.lognormvariate(0, within) for at in range(SECONDS)
        ]

    return ratio, simulate_rates(repeats, ratio, rates)


DRIFTING = [
    # Drifts in all repeats, below the minimum effect of a single trial.
    Case(
        "equal at the end: lmdb falls by 4.5 percent in every window",
        lambda: simulate_drift(FLAT, always(lmdb=line(1.045, 1.0)), question=THROUGHPUT),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal at the end: lmdb falls by 4.5 percent in every one of twenty windows",
        lambda: simulate_drift(FLAT, always(lmdb=line(1.045, 1.0)), 20, 0.01, question=THROUGHPUT),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal at the end: lmdb rises by three percent and rocksdb falls by three in every window",
        lambda: simulate_drift(FLAT, always(lmdb=line(0.97, 1.0), rocksdb=line(1.03, 1.0)), 10, question=THROUGHPUT),
        (unsure(), SUSPECT),
    ),
    Case(
        "4.5 percent ahead at the end and alike in the mean: lmdb rises, rocksdb falls in every window",
        lambda: simulate_drift(
            FLAT, always(lmdb=line(0.978, 1.022), rocksdb=line(1.022, 0.978)), 10, 0.001, question=THROUGHPUT
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "a tenth faster at every instant: both fall by 4.5 percent in every window",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1100.0}, lambda *_: line(1.022, 0.978), 8, question=THROUGHPUT
        ),
        (wins("lmdb", 1.1), VALID),
    ),
    Case(
        "three times as fast, and falls by 4.5 percent in every window",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 3000.0}, always(lmdb=line(1.022, 0.978)), question=THROUGHPUT
        ),
        (wins("lmdb", 3.0), VALID),
    ),
    Case(
        "a tenth faster while the machine slows by a fifth over all and by three percent in every window",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1100.0}, lambda *_: line(1.015, 0.985), 10, drift=0.2, question=THROUGHPUT
        ),
        (wins("lmdb", 1.1), VALID),
    ),
    Case(
        "equal at the end: the p99 of lmdb falls by 4.5 percent in every window, at a rate",
        lambda: simulate_drift_at_rate(ALIKE, always(lmdb=line(1.045, 1.0)), 10, question=asking(metrics=(P99,))),
        (unsure(), SUSPECT),
        metric=P99,
    ),
    Case(
        "equal at the end: lmdb falls by 4.5 percent in seven windows of eight and jumps up in one",
        lambda: single_jump(8),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal at the end: lmdb falls by a tenth in ten noisy windows, and doubles its speed in two",
        noisy_drift_with_jumps,
        (unsure(), SUSPECT),
    ),
    # A different level in the same part of all windows.
    Case(
        "equal after a first tenth of every window, in which lmdb has half its speed",
        lambda: simulate_drift(FLAT, always(lmdb=hump(0.5, 0.0, 0.1)), question=THROUGHPUT),
        (unsure(), fires("not-steady", "suspect"), SUSPECT),
    ),
    Case(
        "equal after the first three seconds of every window, in which lmdb has a third of its speed",
        lambda: simulate_drift(FLAT, always(lmdb=hump(0.33, 0.0, 0.05)), question=THROUGHPUT),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal after the first second of every window, in which lmdb has a quarter of its speed",
        lambda: simulate_drift(FLAT, always(lmdb=hump(0.25, 0.0, 1 / 60)), 10, 0.001, question=THROUGHPUT),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal except for a compaction of lmdb in the last third of every window",
        lambda: simulate_drift(FLAT, always(lmdb=hump(0.8, 0.67, 1.0)), question=THROUGHPUT),
        (unsure(), fires("not-steady", "suspect"), SUSPECT),
    ),
    Case(
        "equal except for a compaction of lmdb in the last two seconds of every window",
        lambda: simulate_drift(FLAT, always(lmdb=hump(0.5, 0.96, 1.0)), 8, question=THROUGHPUT),
        (unsure(), SUSPECT),
    ),
    Case(
        "1.5 times as fast, with a compaction in the last third of every window on both sides",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1500.0}, lambda *_: hump(0.8, 0.67, 1.0), question=THROUGHPUT
        ),
        (favours("lmdb"), fires("not-steady", "suspect"), SUSPECT),
    ),
    Case(
        "three times as fast, with a compaction in the last third of half of its windows",
        lambda: simulate_drift(
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
        lambda: simulate_drift(TWICE, lambda *_: line(1.2, 0.8), question=THROUGHPUT),
        (favours("lmdb"), verdict("suspect")),
    ),
    # Drift compared with the size of the difference.
    Case(
        "three tenths faster, half of its windows rise by a tenth and half fall",
        lambda: simulate_drift({"rocksdb": 1000.0, "lmdb": 1300.0}, alternating(1.1, "lmdb"), question=THROUGHPUT),
        (wins("lmdb", 1.3), VALID),
    ),
    Case(
        "ten times as fast, half of its windows double and half fall to a half",
        lambda: simulate_drift({"rocksdb": 1000.0, "lmdb": 10_000.0}, alternating(2.0, "lmdb"), question=THROUGHPUT),
        (wins("lmdb", 10.0), VALID),
    ),
    Case(
        "ten times as fast, all windows of both sides double or fall to a half",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 10_000.0}, alternating(2.0, "lmdb", "rocksdb"), 8, question=THROUGHPUT
        ),
        (wins("lmdb", 10.0), VALID),
    ),
    Case(
        "unknown: a fifth faster in the mean, half of its windows rise by 30 percent and half fall",
        lambda: simulate_drift({"rocksdb": 1000.0, "lmdb": 1200.0}, alternating(1.3, "lmdb"), question=THROUGHPUT),
        (unsure(), SUSPECT),
    ),
    Case(
        "unknown: 1.8 times as fast in the mean, half of its windows end at half their mean and half at 1.5 times",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1800.0},
            lambda system, block: (line(0.5, 1.5) if block % 2 else line(1.5, 0.5)) if system == "lmdb" else steady,
            question=THROUGHPUT,
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "unknown: alike in the mean, half of the windows of lmdb rise by a tenth and half fall",
        lambda: simulate_drift(FLAT, alternating(1.1, "lmdb"), 10, 0.001, question=THROUGHPUT),
        (unsure(), SUSPECT),
    ),
    Case(
        "unknown: 0.3 percent apart in the mean, half of the windows of lmdb rise by a tenth and half fall",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1003.0}, alternating(1.1, "lmdb"), 20, 0.0005, question=THROUGHPUT
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal for all that matters, 25 percent, though half of the windows rise by eight percent and half fall",
        lambda: simulate_drift(
            FLAT, alternating(1.08, "lmdb"), 8, question=asking(metrics=("throughput",), matters=0.25)
        ),
        (expect_same(), VALID),
    ),
    Case(
        "unknown: 30 percent faster in the mean where 25 matter, half of the windows rise by a tenth and half fall",
        lambda: simulate_drift(
            {"rocksdb": 1000.0, "lmdb": 1300.0},
            alternating(1.1, "lmdb"),
            8,
            question=asking(metrics=("throughput",), matters=0.25),
        ),
        (unsure(), SUSPECT),
    ),
    Case(
        "1.5 times as fast, and both sides wander by a tenth within the window",
        lambda: wandering(1.5),
        (favours("lmdb"), VALID),
    ),
    Case(
        # A third of windows of 60 points at an autocorrelation of 0.9 are reported as drifting
        # (docs/concepts/statistics.md).
        "equal, and both sides wander by a tenth within the window",
        lambda: wandering(1.0),
        (expect_no_claim(), verdict("valid", "suspect")),
    ),
    # Windows of few intervals.
    Case(
        "equal at the end: lmdb falls by 40 percent over the four intervals of every window",
        lambda: short(always(lmdb=line(1.67, 1.0)), 4),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal except for the last of six intervals of every window, in which lmdb has 80 percent of its speed",
        lambda: short(always(lmdb=hump(0.8, 0.83, 1.0)), 6),
        (unsure(), SUSPECT),
    ),
    Case(
        "equal except for the last of ten intervals of every window, shorter and at a fifth of the speed",
        lambda: short(always(lmdb=hump(0.2, 0.9, 1.0)), 10, 0.85),
        (unsure(), SUSPECT),
    ),
]
