"""An experiment with nothing wrong, and the means to spoil it in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from loadstone.engine.events import Note
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judge import judge_results
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import Value, metric_statistic

REPEATS = 6
OPERATIONS = 100_000
UNITS = {"throughput": "op/s", "bandwidth": "B/s", "mean": "ns", "min": "ns", "max": "ns", "runtime": "ns"}
# Ten clients, a little less than busy all the time.
SOUND: Mapping[str, float] = {
    "throughput": 1000.0,
    "runtime": 1e11,
    "operations": OPERATIONS,
    "errors": 0,
    "all.mean": 9.8e6,
    "read.min": 1e6,
    "read.p50": 9e6,
    "read.p99": 3e7,
    "read.p99.9": 5e7,
    "read.p99.99": 8e7,
    "read.max": 2e8,
    "read.mean": 9.8e6,
    "late.generator": 0,
    "late.client": 0,
    "driver": 2e5,
    "device.read": 9e9,
    "returned": 1e10,
    "cpu.steal": 0.01,
    "cpu.others": 0.02,
    "io.others": 0.0,
    "verified": 50_000,
    "wrong": 0,
    "segments": 4,
    "segments.lost": 0,
}
FACTS: Mapping[str, Any] = {
    "profile": "release",
    "networked": "no",
    "durability": "os",
    "file_system": "ext4",
    "kernel": "6.1.0",
    "cpu_model": "EPYC 7763",
    "memory_bytes": 64_000_000_000,
    "data_nodes": 1,
    "device_read_bps": 1_000_000_000,
    "device_write_bps": 500_000_000,
}
STEADY = (100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 101.2, 98.8, 100.0) * 3
Spoil = Callable[[TrialResult], TrialResult]


def value(metric: str, figure: float, n: int = OPERATIONS) -> Value:
    """A figure in the base unit that its name tells."""
    last = metric_statistic(metric)
    return Value(metric, figure, "ns" if last.startswith("p") else UNITS.get(last, ""), n)


def sound(system: str = "rocksdb", repeat: int = 1, factor: float = 1.0) -> TrialResult:
    """A trial with nothing wrong; `factor` multiplies its speed."""
    # Repeats differ by half a percent, no two alike, nor the ratio of two systems in any block.
    speed = factor * (1 + 0.001 * ((repeat * (3 if system == "rocksdb" else 2)) % 7 - 3))
    scaled = {"throughput": speed, "all.mean": 1 / speed, "read.mean": 1 / speed}
    figures = {metric: value(metric, figure * scaled.get(metric, 1)) for metric, figure in SOUND.items()}
    return TrialResult(f"{system}-{repeat}", {"system": system}, repeat, figures, 10, "closed", dict(FACTS))


def given(n: int = OPERATIONS, without: tuple[str, ...] = (), **figures: float) -> Spoil:
    """Other figures; an underscore pair in a name is a point: `late__client`."""
    changed = {name.replace("__", "."): figure for name, figure in figures.items()}

    def spoil(trial: TrialResult) -> TrialResult:
        kept = {metric: each for metric, each in trial.values.items() if metric not in without}
        return replace(trial, values={**kept, **{metric: value(metric, each, n) for metric, each in changed.items()}})

    return spoil


def facts(**known: Any) -> Spoil:
    """Other facts."""
    return lambda trial: replace(trial, facts={**trial.facts, **known})


def noting(name: str, message: str) -> Spoil:
    """A note of the engine."""
    return lambda trial: replace(trial, notes=(Note(name, message, "see there"),))


def ended(how: str, note: str = "", message: str = "") -> Spoil:
    """Another end."""
    notes = (Note(note, message, "see there"),) if note else ()
    return lambda trial: replace(trial, end=how, notes=notes)


def failing(*failures: str) -> Spoil:
    """Earlier attempts that failed, and why."""
    return lambda trial: replace(trial, attempt=len(failures) + 1, failures=failures)


def both(*spoils: Spoil) -> Spoil:
    """One after the other."""

    def spoil(trial: TrialResult) -> TrialResult:
        for each in spoils:
            trial = each(trial)
        return trial

    return spoil


def rocksdb(spoil: Spoil) -> Spoil:
    """On one side only."""
    return lambda trial: spoil(trial) if trial.config["system"] == "rocksdb" else trial


def course(rates: tuple[float, ...], failed: tuple[int, ...] = (), length: float = 1.0) -> Series:
    """A trial's throughput over time."""
    starts = tuple(length * at for at in range(len(rates)))
    return Series(starts, (length,) * len(rates), rates, failed=failed or (0,) * len(rates))


def experiment(
    spoil: Spoil | None = None, repeats: int = REPEATS, rates: tuple[float, ...] = STEADY, **fields: Any
) -> ResultSet:
    """Two systems that took turns, lmdb a third faster than rocksdb, each trial spoilt; fields as a ResultSet's."""
    trials = [
        sound(system, repeat, factor)
        for repeat in range(1, repeats + 1)
        for system, factor in (("rocksdb", 1.0), ("lmdb", 4 / 3))
    ]
    # Three quarters of the latency at four thirds of the throughput.
    spoilt = [trial if spoil is None else spoil(trial) for trial in trials]
    course_of_all = course(rates)
    made = ResultSet("crafted", spoilt, interleaved=True, series=lambda _: course_of_all)
    return replace(made, **fields)


@dataclass(frozen=True)
class Case:
    """Crafted results, and what a check must say of them: nothing where there is no severity."""

    check: str
    what: str
    results: ResultSet
    severity: Severity | None = None
    message: str = ""

    def findings(self) -> list[Finding]:
        """What the check says."""
        return [finding for finding in judge_results(self.results).all_findings if finding.check == self.check]


def asking(**question: Any) -> Question:
    """A question."""
    return Question(text="which is faster?", **question)
