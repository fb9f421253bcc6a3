"""attempts: trials that stopped early, failed, were interrupted or lost an engine or a server; missing variants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Literal

from loadstone.engine.events import Note
from loadstone.format import units
from loadstone.judge.figures import note_text
from loadstone.judge.finding import Effect, Finding, Looks, NotLooked, Severity
from loadstone.judge.judgement import VariantKey
from loadstone.judge.settings import Settings
from loadstone.results.fault import ENDING_SERVERS
from loadstone.results.result_set import variant_name
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.statistics.comparison import ALPHA

RETRIED, INTERRUPTED, INCOMPLETE = "retried", "interrupted", "incomplete"
LOST, DIED = "lost-segment", "server-died"
RETRIED_HINT = "find out why the attempts failed: a system that fails in half of its trials does not sustain its load"
INTERRUPTED_HINT = "read the files of these attempts: an interruption because the system hung is a failure"
RESUME = "continue with --resume"
MISSING_FIGURE_HINT = "find out why these repeats have no such figure; compare another metric, or measure again"
LOST_HINT = "read the load generator's log and the kernel log of its host, then repeat the trial with --resume"
LOST_ENDS = {
    "lost": "the load generator vanished before it reported its result",
    "lease": "the load generator stopped because it lost contact with the lab",
}
# This many interrupted attempts or more are not a coincidence.
INTERRUPTED_MIN = 4
# An imbalance is not a coincidence if one side has this many times as many interruptions as any other side.
INTERRUPTED_TIMES = 4


def check_attempts(trial: TrialResult, _: Settings) -> Looks:
    """Findings on how the trial and earlier attempts ended."""
    here, excludes = (trial.trial,), Effect(excludes=True)
    if (message := LOST_ENDS.get(trial.end)) is not None:
        reason, hint = note_text(trial, LOST)
        yield Finding(LOST, Severity.INVALID, f"{message}{reason}", hint or LOST_HINT, here, effect=excludes)
    elif lost := trial.value("segments.lost"):
        every = trial.value("segments")
        message = f"segments lost: {lost:,.0f}{f' of {every:,.0f}' if every else ''}"
        yield Finding(LOST, Severity.INVALID, message, LOST_HINT, here, effect=excludes)
    # Only the runner knows whether a server crashed, and reports it in a note.
    yield from (
        Finding(DIED, Severity.INVALID, note.message, note.hint, here)
        for note in trial.notes
        if note.name == DIED and not is_requested(trial, note)
    )
    if trial.failures:
        attempts = units.count_noun(len(trial.failures), "earlier attempt")
        message = f"{attempts} at this trial failed; last error: {trial.failures[-1]}"
        yield Finding(RETRIED, Severity.SUSPECT, message, RETRIED_HINT, here)
    if trial.end not in ("done", *LOST_ENDS):
        reason, hint = note_text(trial, INCOMPLETE, trial.end)
        if not reason and (note := find_cause(trial)) is not None:
            reason, hint = f": {note.message}", note.hint
        message = f"the trial was not finished: {trial.end}{reason}"
        yield Finding(INCOMPLETE, Severity.INVALID, message, hint or RESUME, here, effect=excludes)


def find_cause(trial: TrialResult) -> Note | None:
    """The last note of a failed trial, which states the cause; None for other trials."""
    return trial.notes[-1] if trial.is_failure and trial.notes else None


def is_requested(trial: TrialResult, note: Note) -> bool:
    """Whether a requested fault ended the server and was not meant to be lifted; a restarted server must keep
    running."""
    return any(
        fault.is_verified
        and fault.kind in ENDING_SERVERS
        and fault.planned_lift_ns is None
        and server in note.message.split()
        for fault in trial.faults
        for server in fault.servers
    )


def find_interrupted(trials: Sequence[TrialResult], of_side: int, elsewhere: int) -> Iterator[Finding]:
    """A finding on attempts at a variant that were interrupted, by the user or by a full disk; a few interruptions are
    considered an accident.

    `of_side`: the interruptions at all variants with the same compared value; `elsewhere`: the largest number of
    interruptions for any other value.
    """
    if count := sum(trial.interruptions for trial in trials):
        is_unequal = of_side >= max(INTERRUPTED_MIN, INTERRUPTED_TIMES * elsewhere)
        severity = Severity.SUSPECT if count >= INTERRUPTED_MIN or is_unequal else Severity.NOTE
        ids = tuple(trial.trial for trial in trials if trial.interruptions)
        verb = "was" if count == 1 else "were"
        message = f"{units.count_noun(count, 'attempt')} at {units.count_noun(len(ids), 'trial')} {verb} interrupted"
        message += f" ({of_side} on this side in total)" if is_unequal and of_side > count else ""
        yield Finding(INTERRUPTED, severity, message, INTERRUPTED_HINT, ids)


def find_unavailable_checks(trial: TrialResult, missing: Sequence[NotLooked]) -> Iterator[Finding]:
    """Findings on data that all of Loadstone's own trials have, but this trial lacks, so that checks could not run."""
    reasons: dict[str, dict[str, None]] = {}
    for not_looked in missing:
        reasons.setdefault(not_looked.reason, {})[not_looked.check] = None
    for reason, names in reasons.items():
        message = f"{reason}: {units.list_items([*names], len(names))} could not run"
        yield Finding(INCOMPLETE, Severity.SUSPECT, message, "restore missing files, or measure again", (trial.trial,))


def find_missing_repeats(trials: Sequence[TrialResult], missing: Sequence[str]) -> Iterator[Finding]:
    """A finding on the missing planned repeats of a variant that has other repeats."""
    message = f"{len(missing)} of {units.count_noun(len(trials) + len(missing), 'planned repeat')} are missing"
    yield Finding(INCOMPLETE, Severity.SUSPECT, message, RESUME, tuple(missing))


def find_missing_figures(trials: Sequence[TrialResult], metrics: Iterable[str]) -> Iterator[Finding]:
    """Findings on compared figures that some repeats lack: the repeats without a figure may be the worst."""
    for metric in metrics:
        without = tuple(trial.trial for trial in trials if metric not in trial.values)
        if 0 < len(without) < len(trials):
            message = f"{metric} is missing in {len(without)} of {units.count_noun(len(trials), 'repeat')}"
            yield Finding(INCOMPLETE, Severity.SUSPECT, message, MISSING_FIGURE_HINT, without, metric)


def find_early_end(trials: Sequence[TrialResult], n: int, settings: Settings) -> Iterator[Finding]:
    """A finding on a variant whose repeats stopped although the stopping rule requires more."""
    if settings.at_least < n < (settings.at_most or settings.at_least):
        count = units.count_noun(n, "repeat")
        message = f"stopped after {count}, before the interval was narrow enough at two consecutive checks"
        yield Finding(INCOMPLETE, Severity.SUSPECT, message, RESUME, tuple(trial.trial for trial in trials))


def find_empty(trials: Sequence[TrialResult]) -> Iterator[Finding]:
    """A finding if no trial has a figure and none failed. Results without figures are never valid; failed trials report
    their own causes."""
    if not any(trial.values or trial.is_failure for trial in trials):
        message = "no trial has a figure" if trials else "there are no trials"
        hint = "see the trials' own findings" if trials else "run the experiment again"
        yield Finding(INCOMPLETE, Severity.INVALID, message, hint, tuple(trial.trial for trial in trials))


def find_missing_counterparts(unpaired: Sequence[str], variants: int) -> Iterator[Finding]:
    """A finding on variants, by name, that lack a counterpart although other variants have one."""
    if unpaired:
        missing = f"{len(unpaired)} of {variants} variants have no counterpart"
        message = f"{missing} to compare with: {units.list_items(unpaired)}"
        yield Finding(INCOMPLETE, Severity.NOTE, message, "also measure the counterparts of these variants")


def find_missing_metrics(requested: Sequence[str], measured: Collection[str]) -> Iterator[Finding]:
    """A note on requested metrics that no trial has; otherwise, their absence would go unnoticed."""
    if missing := [metric for metric in requested if metric not in measured]:
        message = f"requested but not measured: {units.list_items(missing)}"
        hint = "check the spelling against docs/reference/results.md; the host may also hide these figures"
        yield Finding(INCOMPLETE, Severity.NOTE, message, hint)


def find_unreadable_objective(request: str) -> Iterator[Finding]:
    """A note on a search whose objective is invalid, but was accepted by an earlier version; its trials are kept."""
    message = f"the search has an unreadable objective: {request}"
    hint = "its trials are shown; search again with an objective such as p99 < 10ms or errors < 1%"
    yield Finding(INCOMPLETE, Severity.NOTE, message, hint)


def find_missing_points(missing: Mapping[VariantKey, Sequence[str]], planned: int) -> Iterator[Finding]:
    """A finding on planned variants without any trial; `planned`: the number of planned variants."""
    if missing:
        names = units.list_items([*map(variant_name, missing)])
        message = f"{len(missing)} of {planned} planned variants are missing: {names}"
        trials = tuple(trial for trials in missing.values() for trial in trials)
        yield Finding(INCOMPLETE, Severity.SUSPECT, message, RESUME, trials)


def find_replaced_baseline(by: str, requested: Scalar, used: Scalar | None) -> Iterator[Finding]:
    """A finding on a baseline that was never measured and had to be replaced."""
    if str(used) != str(requested):
        message = f"the baseline {by}={requested} has no trial; {by}={used} is used instead"
        yield Finding(INCOMPLETE, Severity.SUSPECT, message, "measure it, or name another baseline")


def count_failed_attempts(trials: Iterable[TrialResult]) -> int:
    """The number of failed attempts at these trials, whether or not a later attempt succeeded."""
    return sum(len(trial.failures) + trial.is_failure for trial in trials)


def failures_reverse_claim(
    worse: Sequence[float], better: Sequence[float], failed: tuple[int, int], worst: float
) -> bool:
    """Whether a claim that `better` beats `worse` fails when failed attempts count as the worst possible figure.

    `failed` has the number of failures of each side; `worst` is 0 if more is better, else infinity. The claim fails if
    the medians become equal or swap, or if a rank test, which accepts infinities (Mann and Whitney, Ann. Math. Statist.
    18, 1947), finds a difference without the failures but not with them.
    """
    # The import is delayed, because it takes nearly a second of CPU time, and few trials fail.
    from scipy.stats import mannwhitneyu

    with_worse, with_better = [*worse, *[worst] * failed[0]], [*better, *[worst] * failed[1]]
    more: Literal["greater", "less"] = "greater" if worst == 0 else "less"
    low, high = median(with_worse), median(with_better)
    if low == high or (high > low) != (worst == 0):
        return True
    apart = mannwhitneyu(better, worse, alternative=more).pvalue < ALPHA / 2
    return bool(apart and mannwhitneyu(with_better, with_worse, alternative=more).pvalue >= ALPHA / 2)
