"""An experiment without faults, and functions that change one part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from loadstone.engine.events import Note
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judge import judge_results
from loadstone.judge.settings import DEFAULTS, FAULTS, LOSS
from loadstone.results.result_set import Question, ResultSet
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import Value, metric_statistic

REPEATS = 6
# The number of checks that apply to trials without faults.
CHECKS = len(DEFAULTS) - len((*FAULTS, *LOSS))
OPERATIONS = 100_000
UNITS = {"throughput": "op/s", "bandwidth": "B/s", "mean": "ns", "min": "ns", "max": "ns", "runtime": "ns"}
# Ten clients, busy for slightly less than the whole time.
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
Change = Callable[[TrialResult], TrialResult]


def value(metric: str, figure: float, n: int = OPERATIONS) -> Value:
    """A figure in the base unit of its metric."""
    last = metric_statistic(metric)
    return Value(metric, figure, "ns" if last.startswith("p") else UNITS.get(last, ""), n)


def sound(system: str = "rocksdb", repeat: int = 1, factor: float = 1.0) -> TrialResult:
    """A trial without faults; `factor` multiplies its speed."""
    # Repeats differ by half a percent. No two repeats are equal, nor are two ratios of the systems in a block.
    speed = factor * (1 + 0.001 * ((repeat * (3 if system == "rocksdb" else 2)) % 7 - 3))
    scaled = {"throughput": speed, "all.mean": 1 / speed, "read.mean": 1 / speed}
    figures = {metric: value(metric, figure * scaled.get(metric, 1)) for metric, figure in SOUND.items()}
    return TrialResult(f"{system}-{repeat}", {"system": system}, repeat, figures, 10, "closed", dict(FACTS))


def set_figures(n: int = OPERATIONS, without: tuple[str, ...] = (), **figures: float) -> Change:
    """Changes figures; a double underscore in a name represents a dot: `late__client`."""
    changed = {name.replace("__", "."): figure for name, figure in figures.items()}

    def change_trial(trial: TrialResult) -> TrialResult:
        values = {metric: item for metric, item in trial.values.items() if metric not in without}
        return replace(trial, values={**values, **{metric: value(metric, item, n) for metric, item in changed.items()}})

    return change_trial


def facts(**known: Any) -> Change:
    """Changes facts of a trial."""
    return lambda trial: replace(trial, facts={**trial.facts, **known})


def noting(name: str, message: str) -> Change:
    """Gives a trial this note from the engine."""
    return lambda trial: replace(trial, notes=(Note(name, message, "see there"),))


def with_end(how: str, note: str = "", message: str = "") -> Change:
    """Changes how a trial ended."""
    notes = (Note(note, message, "see there"),) if note else ()
    return lambda trial: replace(trial, end=how, notes=notes)


def failing(*failures: str) -> Change:
    """Adds earlier failed attempts, with their reasons, to a trial."""
    return lambda trial: replace(trial, attempt=len(failures) + 1, failures=failures)


def both(*changes: Change) -> Change:
    """Applies several changes in sequence."""

    def change_trial(trial: TrialResult) -> TrialResult:
        for change in changes:
            trial = change(trial)
        return trial

    return change_trial


def rocksdb(change: Change) -> Change:
    """Applies a change to the trials of rocksdb only."""
    return lambda trial: change(trial) if trial.config["system"] == "rocksdb" else trial


def make_series(rates: tuple[float, ...], failed: tuple[int, ...] = (), length: float = 1.0) -> Series:
    """A trial's throughput over time."""
    starts = tuple(length * at for at in range(len(rates)))
    return Series(starts, (length,) * len(rates), rates, failed=failed or (0,) * len(rates))


def experiment(
    change: Change | None = None, repeats: int = REPEATS, rates: tuple[float, ...] = STEADY, **fields: Any
) -> ResultSet:
    """Two interleaved systems, lmdb a third faster, with a change to each trial and with `fields` of the ResultSet."""
    # At four thirds of the throughput, the mean latency is three quarters.
    trials = [
        sound(system, repeat, factor)
        for repeat in range(1, repeats + 1)
        for system, factor in (("rocksdb", 1.0), ("lmdb", 4 / 3))
    ]
    changed = [trial if change is None else change(trial) for trial in trials]
    course_of_all = make_series(rates)
    results = ResultSet("crafted", changed, interleaved=True, series=lambda _: course_of_all)
    return replace(results, **fields)


@dataclass(frozen=True)
class Case:
    """Crafted results, and the expected finding of a check; `severity` is None if no finding is expected."""

    check: str
    what: str
    results: ResultSet
    severity: Severity | None = None
    message: str = ""

    def findings(self) -> list[Finding]:
        """The findings of the check."""
        return [finding for finding in judge_results(self.results).all_findings if finding.check == self.check]


def asking(**question: Any) -> Question:
    """A question with these fields."""
    return Question(text="which is faster?", **question)
