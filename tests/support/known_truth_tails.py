"""Worlds whose latencies move within the trials, or whose compared figures have no course of their own."""

from __future__ import annotations

from dataclasses import replace

from judge_support import asking
from known_truth_expected import SUSPECT, VALID, Case, favours, trusts_less, unsure, verdict, wins
from known_truth_support import (
    MS,
    course,
    figure,
    given,
    on,
    scaled,
    trial,
    world,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult
from moving_support import (
    ALIKE,
    FLAT,
    P99,
    THROUGHPUT,
    TWICE,
    alternating,
    always,
    at_a_rate,
    hump,
    moving,
    step,
)

TAILS = tuple(f"{kind}.{name}" for kind in ("read", "all") for name in ("p95", "p99", "p99.9", "max"))


def tail_doubles(one: TrialResult) -> Series:
    """The p99 of lmdb doubles half way; median and throughput stay."""
    made = course(one)
    if one.config["system"] != "lmdb":
        return made
    return replace(
        made, p99_ns=tuple((each or 0) / 1.9 * (2 if at >= 30 else 1) for at, each in enumerate(made.p99_ns))
    )


def gaps(one: TrialResult) -> Series:
    """Every tenth interval has no p99."""
    made = course(one)
    return replace(made, p99_ns=tuple(None if at % 10 == 0 else each for at, each in enumerate(made.p99_ns)))


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

    return at_a_rate(ALIKE, always(), spoil=on("lmdb", spoil), question=asking(metrics=(f"read.{metric}",)))


TAIL_CASES = [
    # Latencies.
    *(
        Case(
            f"equal at first: the latencies of lmdb triple half way in every window, at a rate: {metric}",
            lambda metric=metric: at_a_rate(  # type: ignore[misc]
                FLAT, always(lmdb=step(1.0, 3.0)), question=asking(metrics=(metric,))
            ),
            (unsure(), verdict("suspect", "invalid")),
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
            (unsure(), SUSPECT),
            metric=metric,
        )
        for metric in ("read.p95", P99, "read.p99.9")
    ),
    Case(
        "unknown: half the p99, half of the windows rise by a tenth and half fall, and some intervals have no p99",
        lambda: world(
            TWICE,
            minute=lambda one: replace(
                gaps(one),
                throughput=tuple(
                    each * ((1.05 if at < 30 else 0.95) if one.repeat % 2 else (0.95 if at < 30 else 1.05))
                    for at, each in enumerate(gaps(one).throughput)
                ),
            ),
            question=asking(metrics=(P99,)),
        ),
        (unsure(), SUSPECT),
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
        (unsure(), SUSPECT),
        metric=P99,
    ),
    Case(
        "equal but for the last tenth of every window in which the latencies of lmdb are three times as long",
        lambda: at_a_rate(ALIKE, always(lmdb=hump(3.0, 0.9, 1.0)), question=asking(metrics=(P99,))),
        (unsure(), SUSPECT),
        metric=P99,
    ),
    Case(
        "equal but for the first twentieth of every window in which the latencies of lmdb are ten times as long",
        lambda: world(
            dict.fromkeys(FLAT, 1000.0),
            8,
            0.002,
            make=lambda system, block, factor: scaled(
                [
                    f"{kind}.{name}"
                    for kind in ("read", "all", "read.lower", "read.service")
                    for name in ("p99", "p99.9", "max")
                ],
                4.0 if system == "lmdb" else 1.0,
            )(trial(system, block, 1000.0, target=1000.0, mean_ns=10 * MS * factor / 1000)),
            minute=lambda one: course(
                one,
                latencies=lambda at: (10.0 if at < 3 else 1.0) * (0.25 if one.config["system"] == "lmdb" else 1.0),
            ),
            question=asking(metrics=(P99,)),
        ),
        (unsure(), SUSPECT),
        metric=P99,
    ),
    Case(
        "a fifth of the p99, which rises by 30 percent in half of the windows and falls in half",
        lambda: at_a_rate({"rocksdb": 20.0, "lmdb": 4.0}, alternating(1.3, "lmdb"), question=asking(metrics=(P99,))),
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
        (trusts_less(), favours("lmdb"), VALID),
        metric=P99,
    ),
    Case(
        "equal: 0.09 percent of lmdb's operations went out 10 ms late by us, which makes its p99.9",
        lambda: late_tail("p99.9", 0.0009),
        (unsure(), verdict("invalid")),
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
        (unsure(), SUSPECT),
        metric="device.read_per_operation",
    ),
]
