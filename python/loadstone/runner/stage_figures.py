"""The figures of each stage, from the engine's events, if the rate changes during the window.

Operations are counted in the interval in which they were due, and each stage ends where an interval ends, so its
operations are counted exactly, however late they completed. Throughput counts completions within the stage.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from loadstone.engine.events import CENSORED, COMPOSED, TIMED_STEPS
from loadstone.results.stage import Stage
from loadstone.results.trial_result import TrialResult, values_by_metric
from loadstone.results.value import Value
from loadstone.runner import engine_figures
from loadstone.runner.fault_figures import EVENTS, FaultInterval, failures_by_status, latency_figures, read_rows


def add_figures(result: TrialResult, stages: Sequence[Stage], files: Path) -> TrialResult:
    """Adds the figures of each stage to a result, which is unchanged if there are no stages or no readable events."""
    if not stages:
        return result
    try:
        rows = read_rows(sorted(files.glob(EVENTS)))
    except (OSError, ValueError):
        return result
    return replace(result, values={**result.values, **values_by_metric(*figures_of_stages(stages, rows))})


def figures_of_stages(stages: Sequence[Stage], rows: Sequence[FaultInterval]) -> Iterator[Value]:
    """The definition, counts and latencies of each stage; a stage that the trial did not reach has no counts."""
    starts = [stage.start_ns for stage in stages]
    of_stage: dict[int, list[FaultInterval]] = {}
    for row in rows:
        # Uses the middle of the interval, because the borders of intervals and stages agree only to a few ns.
        of_stage.setdefault(bisect_right(starts, row.start_ns + row.length_ns // 2), []).append(row)
    every = dict.fromkeys(outcome.operation for row in rows for outcome in row.outcomes)
    kinds = [operation.lower() for operation in every if operation not in TIMED_STEPS | COMPOSED]
    for stage in stages:
        yield from stage.values()
        yield from measure_stage(stage, of_stage.get(stage.number, ()), kinds)


def measure_stage(stage: Stage, rows: Sequence[FaultInterval], kinds: Sequence[str]) -> Iterator[Value]:
    """The figures of the operations that were due in one stage."""
    if not rows:
        return
    prefix = stage.prefix
    length_ns = sum(row.length_ns for row in rows)
    completed = sum(row.completed for row in rows)
    due, good, late, failed = (
        sum(getattr(row, name) or 0 for row in rows) for name in ("due", "good", "late", "failed")
    )
    unanswered = max(due - sum(row.not_yet for row in rows) - good - late - failed, 0)
    yield Value(f"{prefix}due", due, "operations", due)
    if not stage.is_pause:
        yield Value(f"{prefix}throughput", completed * 1e9 / length_ns, "op/s", completed)
    yield Value(f"{prefix}errors", failed, "operations", due)
    yield Value(f"{prefix}unanswered", unanswered, "operations", due)
    # The engine counts these operations in the interval in which they completed.
    for name in ("client", "generator"):
        yield Value(f"{prefix}late.{name}", sum(getattr(row, f"late_{name}") for row in rows), "operations", due)
    outcomes = [outcome for row in rows for outcome in row.outcomes if outcome.operation not in TIMED_STEPS]
    ended = [outcome.count for outcome in outcomes if outcome.status != CENSORED and outcome.operation not in COMPOSED]
    if count := sum(ended):
        wait_ns = engine_figures.time_ns(outcomes, "response") - engine_figures.time_ns(outcomes, "service")
        yield Value(f"{prefix}wait.mean", max(wait_ns, 0.0) / count, "ns", count)
    for status, count in failures_by_status(outcomes).items():
        yield Value(f"{prefix}errors.{status.lower()}", count, "operations", due)
    yield from latency_figures(prefix.removesuffix("."), outcomes, unanswered, kinds)
