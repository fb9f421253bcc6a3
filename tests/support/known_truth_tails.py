"""Scenarios with drifting latencies, or with compared figures that have no time series."""

from __future__ import annotations

from dataclasses import replace

from drift_support import (
    ALIKE,
    FLAT,
    P99,
    THROUGHPUT,
    TWICE,
    alternating,
    always,
    hump,
    simulate_drift,
    simulate_drift_at_rate,
    step,
)
from judge_support import asking
from known_truth_expected import SUSPECT, VALID, Case, favours, trusts_less, unsure, verdict, wins
from known_truth_support import (
    MS,
    change_system,
    figure,
    make_series,
    scale_metrics,
    set_figures,
    simulate_results,
    trial,
)
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Series, TrialResult

TAILS = tuple(f"{kind}.{name}" for kind in ("read", "all") for name in ("p95", "p99", "p99.9", "max"))


def tail_doubles(result: TrialResult) -> Series:
    """The p99 of lmdb doubles half way; median and throughput are constant."""
    series = make_series(result)
    if result.config["system"] != "lmdb":
        return series
    return replace(
        series,
        p99_ns=tuple((latency_ns or 0) / 1.9 * (2 if at >= 30 else 1) for at, latency_ns in enumerate(series.p99_ns)),
    )


def gaps(result: TrialResult) -> Series:
    """Every tenth interval has no p99."""
    series = make_series(result)
    return replace(
        series, p99_ns=tuple(None if at % 10 == 0 else latency_ns for at, latency_ns in enumerate(series.p99_ns))
    )


def delay_tail(metric: str, share: float) -> ResultSet:
    """Equal systems; the generator sent this share of the operations of lmdb 10 ms late, which lengthens its tail."""

    def change_result(result: TrialResult) -> TrialResult:
        names = [
            name
            for name in ("p99.9", "p99.99")
            if (name == metric or name == "p99.99") and f"read.{name}" in result.values
        ]
        later = {
            f"{kind}.{name}": figure(f"{kind}.{name}", result.values[f"read.{name}"].value + 10 * MS, 60_000)
            for name in names
            for kind in ("read", "all")
        }
        return set_figures(late__generator=share * 60_000)(replace(result, values={**result.values, **later}))

    return simulate_drift_at_rate(
        ALIKE, always(), change=change_system("lmdb", change_result), question=asking(metrics=(f"read.{metric}",))
    )


TAIL_CASES = [
    # Latencies.
    *(
        Case(
            f"equal at first: the latencies of lmdb triple half way in every window, at a rate: {metric}",
            lambda metric=metric: simulate_drift_at_rate(  # type: ignore[misc]
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
            lambda metric=metric: simulate_results(  # type: ignore[misc]
                FLAT,
                change=change_system("lmdb", scale_metrics(TAILS, 1.9)),
                minute=tail_doubles,
                question=asking(metrics=(metric,)),
            ),
            (unsure(), SUSPECT),
            metric=metric,
        )
        for metric in ("read.p95", P99, "read.p99.9")
    ),
    Case(
        "unknown: half the p99, half of the windows rise by a tenth and half fall, and some intervals have no p99",
        lambda: simulate_results(
            TWICE,
            minute=lambda result: replace(
                gaps(result),
                throughput=tuple(
                    value * ((1.05 if at < 30 else 0.95) if result.repeat % 2 else (0.95 if at < 30 else 1.05))
                    for at, value in enumerate(gaps(result).throughput)
                ),
            ),
            question=asking(metrics=(P99,)),
        ),
        (unsure(), SUSPECT),
        metric=P99,
    ),
    Case(
        "half the p95 at a rate, without drift",
        lambda: simulate_drift_at_rate(
            {"rocksdb": 10.0, "lmdb": 5.0}, always(), question=asking(metrics=("read.p95",))
        ),
        (wins("lmdb", 0.5), VALID),
        metric="read.p95",
    ),
    Case(
        "equal except for a fifth in the middle of every window in which the latencies of lmdb are five times as long",
        lambda: simulate_drift_at_rate(ALIKE, always(lmdb=hump(5.0, 0.4, 0.6)), question=asking(metrics=(P99,))),
        (unsure(), SUSPECT),
        metric=P99,
    ),
    Case(
        "equal except for the last tenth of every window in which the latencies of lmdb are three times as long",
        lambda: simulate_drift_at_rate(ALIKE, always(lmdb=hump(3.0, 0.9, 1.0)), question=asking(metrics=(P99,))),
        (unsure(), SUSPECT),
        metric=P99,
    ),
    Case(
        "equal except for the first twentieth of every window in which the latencies of lmdb are ten times as long",
        lambda: simulate_results(
            dict.fromkeys(FLAT, 1000.0),
            8,
            0.002,
            make=lambda system, block, factor: scale_metrics(
                [
                    f"{kind}.{name}"
                    for kind in ("read", "all", "read.lower", "read.service")
                    for name in ("p99", "p99.9", "max")
                ],
                4.0 if system == "lmdb" else 1.0,
            )(trial(system, block, 1000.0, target=1000.0, mean_ns=10 * MS * factor / 1000)),
            minute=lambda result: make_series(
                result,
                latencies=lambda at: (10.0 if at < 3 else 1.0) * (0.25 if result.config["system"] == "lmdb" else 1.0),
            ),
            question=asking(metrics=(P99,)),
        ),
        (unsure(), SUSPECT),
        metric=P99,
    ),
    Case(
        "a fifth of the p99, which rises by 30 percent in half of the windows and falls in half",
        lambda: simulate_drift_at_rate(
            {"rocksdb": 20.0, "lmdb": 4.0}, alternating(1.3, "lmdb"), question=asking(metrics=(P99,))
        ),
        (favours("lmdb"), VALID),
        metric=P99,
    ),
    Case(
        "twice the throughput, while the p99, which is not compared, doubles half way in every window",
        lambda: simulate_results(
            TWICE,
            minute=lambda result: replace(
                make_series(result),
                p99_ns=tuple(
                    (value or 0) * (2 if at >= 30 else 1) for at, value in enumerate(make_series(result).p99_ns)
                ),
            ),
            question=THROUGHPUT,
        ),
        (wins("lmdb", 2.0), VALID),
    ),
    Case(
        "half the median at a rate, while the p99, which is not compared, triples in every window",
        lambda: simulate_results(
            dict.fromkeys(FLAT, 1000.0),
            make=lambda system, block, factor: trial(
                system, block, 1000.0, target=1000.0, mean_ns=(5 if system == "lmdb" else 10) * MS * factor / 1000
            ),
            minute=lambda result: replace(
                make_series(result),
                p99_ns=tuple(
                    (value or 0) * (3 if at >= 30 else 1) for at, value in enumerate(make_series(result).p99_ns)
                ),
            ),
            question=asking(metrics=("read.p50",)),
        ),
        (wins("lmdb", 0.5), VALID),
        metric="read.p50",
    ),
    Case(
        "unknown steadiness of the p99: one interval in ten has none",
        lambda: simulate_results(TWICE, minute=gaps, question=asking(metrics=(P99,))),
        (trusts_less(), favours("lmdb"), VALID),
        metric=P99,
    ),
    Case(
        "equal: 0.09 percent of lmdb's operations were sent 10 ms late by the engine, which makes its p99.9",
        lambda: delay_tail("p99.9", 0.0009),
        (unsure(), verdict("invalid")),
        metric="read.p99.9",
    ),
    # Figures without a time series.
    Case(
        "twice the throughput, half of the windows rise by a tenth and half fall",
        lambda: simulate_drift(
            TWICE,
            alternating(1.1, "lmdb"),
            change=change_system("lmdb", scale_metrics(("device.read_per_operation",), 0.5)),
            question=asking(metrics=("throughput", "device.read_per_operation")),
        ),
        (wins("lmdb", 2.0), VALID),
    ),
    Case(
        "half the device bytes; half of the windows rise by a tenth and half fall; bytes have no time series",
        lambda: simulate_drift(
            TWICE,
            alternating(1.1, "lmdb"),
            change=change_system("lmdb", scale_metrics(("device.read_per_operation",), 0.5)),
            question=asking(metrics=("throughput", "device.read_per_operation")),
        ),
        (unsure(), SUSPECT),
        metric="device.read_per_operation",
    ),
]
