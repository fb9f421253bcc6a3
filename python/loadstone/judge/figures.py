"""Figures of a trial that several checks use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache

from loadstone.engine.events import CENSORED, NOT_YET, WELL
from loadstone.results.stage import prefix_of
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import metric_statistic

# Operations that are not part of the load.
OUTSIDE_LOAD = frozenset({"cleanup", "verify"})
# A read-modify-write is also reported as a read and an update.
COMPOSED = frozenset({"read-modify-write", "read_modify_write"})
ALL = "all"
# The part of a lower bound's name before the statistic: `read.lower.p99` for `read.p99`.
LOWER = "lower"
# The largest plausible number of clients.
CLIENTS_MAX = 1e12
PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")
# YCSB before 0.3 prints 0 for success.
SUCCESSES = frozenset({*WELL, NOT_YET, "0"})
# Operations that never completed are neither successes nor failures: they are only known to be slow.
NO_FAILURES = SUCCESSES | {CENSORED}


@cache
def split_metric(metric: str) -> tuple[str, str]:
    """A metric's name in two parts: (`load.read`, `p99.9`); the first part is empty for `throughput`."""
    last = metric_statistic(metric)
    return metric[: -len(last) - 1], last


@cache
def percentile_rank(last: str) -> float | None:
    """A statistic's rank among the percentiles, from 0 (`min`) to 1 (`max`); None for other statistics."""
    if last in ("min", "max"):
        return float(last == "max")
    match = PERCENTILE.fullmatch(last)
    return float(match[1]) / 100 if match else None


@cache
def parse_percentile(metric: str) -> float | None:
    """The rank of a percentile, 0.99 for `read.p99`; None for other metrics."""
    last = split_metric(metric)[1]
    return percentile_rank(last) if last.startswith("p") else None


@cache
def is_latency(metric: str) -> bool:
    """Whether a figure is a latency: a percentile, an extreme or the mean of an operation."""
    name, last = split_metric(metric)
    return bool(name) and (last == "mean" or percentile_rank(last) is not None)


def target_rate(trial: TrialResult) -> float | None:
    """The constant rate of a trial, op/s; None if there is no rate, or it changes."""
    if (rate := trial.numeric_fact("target")) is not None:
        return rate
    try:
        steps = json.loads(str(trial.requested.get("pace.rate", "[]")))
        rates = {float(step[end]) for step in steps for end in ("from", "to")}
    except (ValueError, TypeError, KeyError):
        return None
    return rates.pop() if len(rates) == 1 else None


@cache
def lower_name(metric: str) -> str:
    """The name of a latency's lower bound: `read.lower.p99` for `read.p99`."""
    name, last = split_metric(metric)
    return f"{name}.{LOWER}.{last}"


def client_count(trial: TrialResult) -> float | None:
    """A trial's number of clients, or else the number in its config; None if it is not plausible."""
    clients = trial.clients if trial.clients is not None else trial.config.get("clients")
    if not isinstance(clients, int | float) or isinstance(clients, bool) or not 0 < clients < CLIENTS_MAX:
        return None
    return float(clients)


def window_seconds(trial: TrialResult) -> float | None:
    """The length of the measured window, s."""
    if runtime := trial.value("runtime"):
        return runtime / 1e9
    throughput, operations = trial.value("throughput"), trial.value("operations")
    return operations / throughput if throughput and operations else None


def bytes_in_window(trial: TrialResult, metric: str) -> float | None:
    """The bytes of `device.read` or `device.written` in the measured window, without the warm-up."""
    per_operation, every = trial.value(f"{metric}_per_operation"), trial.value("operations")
    return per_operation * every if per_operation is not None and every is not None else trial.value(metric)


def list_outcomes(trial: TrialResult) -> Iterator[tuple[str, str, int]]:
    """The number of operations by kind (in lower case) and status, without operations outside the load."""
    for operation, counts in trial.statuses.items():
        if operation.lower() not in OUTSIDE_LOAD:
            yield from ((operation.lower(), status, count) for status, count in counts.items())


def count_failed_operations(trial: TrialResult, prefix: str = "") -> float:
    """The number of failed operations of a phase; operations with the status NOT_YET are not failures."""
    if (errors := trial.value(f"{prefix}errors")) is not None:
        return errors
    counts = (
        count for kind, status, count in list_outcomes(trial) if kind not in COMPOSED and status not in NO_FAILURES
    )
    return 0 if prefix else sum(counts)


def count_failed(trial: TrialResult, name: str) -> float:
    """The failed operations of one kind, by the first part of a metric's name; all failed operations if they are not
    counted by kind."""
    if (of_stage := prefix_of(name)) and (count := trial.value(f"{of_stage}errors")) is not None:
        # Failures of a stage are counted by status, not by operation.
        return count
    prefix, kind = ("load.", name[5:]) if name.startswith("load.") else ("", name)
    counts = [
        count
        for operation, status, count in list_outcomes(trial)
        if operation == kind.partition(".")[0] and status not in NO_FAILURES
    ]
    return sum(counts) if trial.statuses and not prefix and kind != ALL else count_failed_operations(trial, prefix)


def count_due_operations(trial: TrialResult) -> float | None:
    """The number of operations that were due (closed loop: sent), or else the sum of the statuses; None without
    either."""
    every = trial.value("due")
    # The parts of a composed operation that never completed are not counted, so the operation itself counts.
    counts = (count for kind, status, count in list_outcomes(trial) if kind not in COMPOSED or status == CENSORED)
    return sum(counts) or None if every is None else every


def count_censored(trial: TrialResult) -> float:
    """The number of operations that never completed: sent but not answered, or due but never sent."""
    censored = trial.value("censored")
    return sum(counts.get(CENSORED, 0) for counts in trial.statuses.values()) if censored is None else censored


def count_operations(trial: TrialResult, prefix: str = "") -> float | None:
    """The number of operations of a phase, whatever their outcome."""
    if (value := trial.value(f"{prefix}operations")) is not None:
        return value
    for metric in (f"{prefix}errors", f"{prefix}throughput"):
        if (counted := trial.values.get(metric)) is not None and counted.n > 1:
            return counted.n
    return None


def operation_share(trial: TrialResult, metric: str) -> float | None:
    """A count of operations as a share of all operations; None if either number is unknown."""
    count, every = trial.value(metric), trial.value("operations")
    return None if count is None or not every else count / every


def note_text(trial: TrialResult, *names: str) -> tuple[str, str]:
    """The first note with one of these names: its message, as a text to append, and its hint; both are empty if there
    is no such note."""
    note = next((note for note in trial.notes if note.name in names), None)
    return (f": {note.message}", note.hint) if note else ("", "")


def attempt_rate(trial: TrialResult) -> float | None:
    """Operations per second, whatever their outcome: a failed operation also keeps its client busy."""
    throughput, every, length = trial.values.get("throughput"), trial.value("operations"), window_seconds(trial)
    if throughput is None:
        return None
    # The throughput of file workloads is in bytes.
    in_operations = throughput.unit == "op/s"
    if every and length and (count_failed_operations(trial) or not in_operations):
        return every / length
    return throughput.value if in_operations else None
