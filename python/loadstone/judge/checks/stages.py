"""Checks of trials whose rate changes during the window: each stage is examined separately.

A stage with a constant rate must be steady. Drift after a higher rate is a result, as the system works off its queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loadstone.format import units
from loadstone.judge.checks import not_steady
from loadstone.judge.checks.faults import cut_series
from loadstone.judge.finding import Effect, Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.stage import Stage, stages_of
from loadstone.results.trial_result import Series, TrialResult

RATE_NOT_HELD = "rate-not-held"
HINT = "a lower rate in this stage, or more clients, would show the latency without a queue; throughput stays valid"
DRAIN_HINT = "the rate of the previous stage was higher, so the system may have worked off a queue"


def check_stages(trial: TrialResult, series: Series, settings: Settings) -> Looks:
    """The steadiness of each stage with a constant rate; without stages, of the whole window."""
    stages = stages_of(trial)
    if not stages:
        yield from not_steady.check_steadiness(trial, series, settings)
    for stage, before in zip(stages, [None, *stages], strict=False):
        follows = before is not None and max(before.rate_from, before.rate_to) > stage.rate_from
        inside = cut_to_stage(series, stage)
        for outcome in not_steady.check_steadiness(trial, inside, settings) if stage.is_constant else ():
            yield name_stage(outcome, stage, follows)


def name_stage(outcome: Finding | NotLooked, stage: Stage, follows: bool) -> Finding | NotLooked:
    """A check's result restricted to the figures of one stage; a note if the stage follows a higher rate."""
    if isinstance(outcome, NotLooked):
        return replace(outcome, reason=f"{stage.title}: {outcome.reason}")
    message = f"{stage.title}: {outcome.message}"
    if follows:
        return replace(
            outcome, message=message, metric=stage.prefix, hint=DRAIN_HINT, severity=Severity.NOTE, effect=Effect()
        )
    return replace(outcome, message=message, metric=stage.prefix)


def fill_pauses(trial: TrialResult, series: Series) -> Series:
    """The series with the load's pauses marked as busy, because they are not stalls of the system."""
    pauses = [stage for stage in stages_of(trial) if stage.is_pause]
    ended = series.ended or (0,) * len(series.start_seconds)
    busy = tuple(
        max(count, int(any(stage.start_ns <= start * 1e9 < stage.end_ns for stage in pauses)))
        for count, start in zip(ended, series.start_seconds, strict=True)
    )
    return replace(series, ended=busy) if pauses else series


def cut_to_stage(series: Series, stage: Stage) -> Series:
    """The intervals of a stage; their times are relative to the start of the window."""
    middles = (
        (start + length / 2) * 1e9 for start, length in zip(series.start_seconds, series.length_seconds, strict=True)
    )
    inside = [at for at, middle in enumerate(middles) if stage.start_ns <= middle < stage.end_ns]
    return cut_series(series, inside[0], inside[-1] + 1) if inside else cut_series(series, 0, 0)


def check_rate(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """Findings on stages with operations that never completed, or with a lower rate than requested."""
    stages = [stage for stage in stages_of(trial) if trial.value(f"{stage.prefix}due")]
    for stage in stages:
        due = trial.value(f"{stage.prefix}due") or 0.0
        # Operations that were sent after the cut-off were due in the last stage.
        overdue = (trial.value("overdue") or 0.0) if stage is stages[-1] else 0.0
        unanswered = (trial.value(f"{stage.prefix}unanswered") or 0.0) + overdue
        if unanswered / due > settings.check_threshold(RATE_NOT_HELD, "censored"):
            share = units.format_percent(unanswered / due)
            noun = units.count_noun(due, "operation")
            message = f"{stage.title}: {share} of the {noun} due did not complete by the cut-off"
            yield find_missed_rate(trial, stage, message, Severity.INVALID, unanswered / due)
            continue
        done, requested = trial.value(f"{stage.prefix}throughput") or 0.0, due * 1e9 / stage.length_ns
        if stage.is_constant and done < (1 - settings.check_threshold(RATE_NOT_HELD, "missed")) * requested:
            message = (
                f"{stage.title}: {units.format_rate(done)} of the requested {units.format_rate(requested)} was achieved"
            )
            yield find_missed_rate(trial, stage, message, Severity.NOTE, 1 - done / requested)


def find_missed_rate(trial: TrialResult, stage: Stage, message: str, severity: Severity, size: float) -> Finding:
    """A finding on the latencies of a stage that did not hold its rate."""
    here = (trial.trial,)
    return Finding(RATE_NOT_HELD, severity, message, HINT, here, stage.prefix, "latencies", size=size)
