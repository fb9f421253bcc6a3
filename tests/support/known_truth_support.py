"""Simulated experiments with a known answer, and functions that change one part of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from judge_support import Change
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Loop, Scalar, Series, TrialResult
from loadstone.results.value import Value, metric_statistic

SECONDS = 60
CLIENTS = 10
MS = 1e6
UNITS = {"throughput": "op/s", "bandwidth": "B/s", "runtime": "ns", "driver": "ns", "settle": "ns", "lag_p99": "ns"}
# All facts by which the judge compares hosts and guarantees, equal on both sides.
FACTS: Mapping[str, Scalar] = {
    "engine": "0.2.0",
    "profile": "release",
    "networked": "no",
    "durability": "os",
    "file_system": "ext4",
    "hosts": 1,
    "kernel": "6.1.0",
    "cpu_model": "EPYC 7763",
    "cpus": 16,
    "memory_bytes": 64_000_000_000,
    "device_read_bps": 1_000_000_000,
    "device_write_bps": 500_000_000,
}
# Latencies as multiples of the mean.
SHAPE = {"min": 0.1, "p10": 0.5, "p25": 0.7, "p50": 0.9, "p90": 1.6, "p95": 2.0, "p99": 3.0, "p99.9": 5.0, "max": 20.0}


def bucket(latency_ns: float) -> float:
    """The width of a latency's bucket in an HDR histogram of 3 significant digits, ns."""
    return max(1.0, 2.0 ** (math.floor(math.log2(max(latency_ns, 1.0))) - 10))


def figure(metric: str, number: float, n: int) -> Value:
    """A figure in the unit of its metric; a percentile is the upper edge of its bucket."""
    last = metric_statistic(metric)
    if last.startswith("p") and last[1:2].isdigit():
        step = bucket(number)
        return Value(metric, math.ceil(number / step) * step, "ns", n, None, step)
    return Value(metric, number, "ns" if last in ("mean", "min", "max") else UNITS.get(last, ""), n)


def typical(n: int, deviation: float, seed: object) -> list[float]:
    """n factors around 1 with a normal distribution, in an order determined by the seed.

    They are quantiles, not draws, so that no sample is lucky or unlucky.
    """
    normal = NormalDist()
    factors = [math.exp(deviation * normal.inv_cdf((at + 0.5) / n)) for at in range(n)]
    random.Random(repr(seed)).shuffle(factors)
    return factors


def trial(system: str, block: int, rate: float, target: float | None = None, mean_ns: float = 10 * MS) -> TrialResult:
    """A minute of reads of 1 kB by ten clients, without faults.

    In a closed loop the latencies follow from the rate. At a target they are around `mean_ns`, and `rate` is the
    throughput.
    """
    operations = round((target or rate) * SECONDS)
    mean = 0.98e9 * CLIENTS / rate if target is None else mean_ns
    latencies = {name: mean * factor for name, factor in SHAPE.items()} | {"mean": mean}
    figures: dict[str, float] = {
        f"{kind}.{name}": latency_ns for kind in ("read", "all") for name, latency_ns in latencies.items()
    }
    if target is not None:
        figures |= {
            f"read.{kind}.{name}": latency_ns for kind in ("lower", "service") for name, latency_ns in latencies.items()
        }
        figures["due"] = operations
    figures |= {
        "throughput": rate,
        "runtime": SECONDS * 1e9,
        "operations": operations,
        "read.count": operations,
        **dict.fromkeys(("errors", "not_yet", "censored", "carried.max", "unclosed", "saturated"), 0),
        **dict.fromkeys(("late.generator", "late.client", "wrong", "clock.jumps", "load.errors"), 0),
        "carried": CLIENTS,
        "verified": operations,
        "returned": 1000 * operations,
        "stored": 0,
        # 90 % of the reads reach the device, which returns a page of 4 kB each.
        "device.reads": 0.9 * operations,
        "device.read": 0.9 * 4096 * operations,
        "device.read_per_operation": 0.9 * 4096,
        "device.written": 0,
        "device.written_per_operation": 0,
        "device.written_after": 0,
        "device.utilisation": 0.5,
        "engine.read": 0.9 * 4096 * operations,
        "engine.written": 0,
        "cpu.engine": 0.5,
        "cpu.busy": 0.1,
        "cpu.iowait": 0.1,
        "cpu.steal": 0.001,
        "cpu.others": 0.005,
        "io.others": 0,
        "executor.lag_p99": 60_000,
        "executor.lag_max": 400_000,
        "driver": 2_000,
        "segments": 1,
        "segments.lost": 0,
        "load.operations": 1_000_000,
        "load.throughput": 50_000,
        "load.settle": 1e9,
    }
    values = {metric: figure(metric, latency_ns, operations) for metric, latency_ns in figures.items()}
    loop: Loop = "closed" if target is None else "open"
    statuses = {"READ": {"OK": operations}}
    return TrialResult(
        f"{system}-{block}", {"system": system}, block, values, CLIENTS, loop, dict(FACTS), statuses=statuses
    )


Shape = Callable[[int], float]


def make_series(
    of: TrialResult, rates: Shape = lambda _: 1.0, latencies: Shape = lambda _: 1.0, seconds: int = 60
) -> Series:
    """A trial's time series with one point a second and 1 % noise; the shapes multiply throughput and latencies."""
    jitter = typical(seconds, 0.01, ("series", of.trial))
    throughput = [of.values["throughput"].value * rates(at) * jitter[at] for at in range(seconds)]
    p50, p99 = (
        tuple((of.value(f"read.{name}") or 1.0) * latencies(at) / jitter[at] for at in range(seconds))
        for name in ("p50", "p99")
    )
    due = of.value("due")
    return Series(
        tuple(map(float, range(seconds))),
        (1.0,) * seconds,
        tuple(throughput),
        p50,
        p99,
        (0,) * seconds,
        () if due is None else (round(due / seconds),) * seconds,
        tuple(map(round, throughput)),
    )


def simulate_results(
    rates: Mapping[str, float] | None = None,
    repeats: int = 6,
    noise: float = 0.01,
    drift: float = 0.0,
    change: Change | None = None,
    make: Callable[[str, int, float], TrialResult] = trial,
    minute: Callable[[TrialResult], Series | None] = make_series,
    **fields: Any,
) -> ResultSet:
    """Interleaved systems with these true rates, op/s; repeats vary by `noise`, the machine slows down by `drift`."""
    rates = rates or {"rocksdb": 1000.0, "lmdb": 4000 / 3}
    factors = {system: typical(repeats, noise, (system, noise)) for system in rates}
    results: list[TrialResult] = []
    for block in range(1, repeats + 1):
        slower = 1 - drift * (block - 1) / max(repeats - 1, 1)
        for system, rate in rates.items():
            result = make(system, block, rate * slower * factors[system][block - 1])
            results.append(replace(result if change is None else change(result), order=len(results)))
    return collect_results(results, minute, **fields)


def collect_results(
    trials: Iterable[TrialResult], minute: Callable[[TrialResult], Series | None] = make_series, **fields: Any
) -> ResultSet:
    """Trials of Loadstone with their plan and their time series."""
    values = list(trials)
    by_name = {result.trial: result for result in values}
    planned = {result.trial: result.config for result in values}
    results = ResultSet(
        "crafted", values, Question(), planned, interleaved=True, series=lambda name: minute(by_name[name])
    )
    return replace(results, **fields)


def set_figures(without: tuple[str, ...] = (), **figures: float) -> Change:
    """Changed figures in the same units; a double underscore in a name represents a dot: `late__client`."""

    def change_result(result: TrialResult) -> TrialResult:
        retained = {metric: value for metric, value in result.values.items() if metric not in without}
        changed = {name.replace("__", "."): number for name, number in figures.items()}
        entries = {metric: figure(metric, number, result.values["operations"].n) for metric, number in changed.items()}
        return replace(result, values={**retained, **entries})

    return change_result


def change_system(system: str, change: Change, *blocks: int) -> Change:
    """A change to one system's trials, in these blocks or in all."""
    return lambda result: (
        change(result)
        if result.config["system"] == system and result.repeat in (blocks or (result.repeat,))
        else result
    )


def set_bound(metric: str, bound: Any) -> Change:
    """Turns a figure into a bound."""
    return lambda result: replace(result, values={**result.values, metric: replace(result.values[metric], bound=bound)})


def scale_metrics(metrics: Iterable[str], factor: float) -> Change:
    """Multiplies figures."""

    def change_result(result: TrialResult) -> TrialResult:
        old = result.values
        changed = {name: replace(old[name], value=figure(name, old[name].value * factor, 1).value) for name in metrics}
        return replace(result, values={**old, **changed})

    return change_result


def faster(factor: float) -> Change:
    """A new trial of the same system and block, with the speed multiplied by `factor`."""
    return lambda result: trial(str(result.config["system"]), result.repeat, result.values["throughput"].value * factor)


def fail_share(share: float) -> Change:
    """This share of the operations failed immediately, evenly over the minute."""

    def change_result(result: TrialResult) -> TrialResult:
        operations = round(result.values["operations"].value)
        errors = round(share * operations)
        failed = replace(result, statuses={"READ": {"OK": operations - errors, "ERROR": errors}})
        failed = scale_metrics(("throughput", "read.count"), 1 - share)(failed)
        failed = replace(failed, values={**failed.values, "errors": figure("errors", errors, operations)})
        for kind in ("read", "all"):
            for percentile, beyond in (("p99.9", 0.001), ("p99", 0.01), ("p95", 0.05), ("p90", 0.1), ("max", 0)):
                if share > beyond:
                    failed = set_bound(f"{kind}.{percentile}", "failed")(failed)
        return failed

    return change_result


def parts(count: int) -> tuple[str, ...]:
    """Names of figures without a stated direction; the judge assumes that smaller is better."""
    return tuple(f"engine.part{number:02}" for number in range(count))


def with_parts(count: int, repeats: int = 6, noise: float = 0.05) -> Change:
    """Additional figures, equal on both sides."""

    def change_result(result: TrialResult) -> TrialResult:
        factors = {name: typical(repeats, noise, (name, result.config))[result.repeat - 1] for name in parts(count)}
        extra = {name: Value(name, 1e6 * factor, "ns", 60_000) for name, factor in factors.items()}
        return replace(result, values={**result.values, **extra})

    return change_result
