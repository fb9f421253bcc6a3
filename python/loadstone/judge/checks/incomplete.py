"""incomplete: a trial ended early, or points that were planned are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from loadstone.format import units
from loadstone.judge.figures import note_text
from loadstone.judge.finding import Finding, NotLooked, Severity
from loadstone.judge.judgement import VariantKey
from loadstone.judge.settings import Settings
from loadstone.results.result_set import variant_name
from loadstone.results.trial_result import Scalar, TrialResult

NAME = "incomplete"
RESUME = "continue with --resume"
# Trials that end because an engine is gone belong to lost-segment.
ELSEWHERE = frozenset({"done", "lost", "lease"})


def check(trial: TrialResult, _: Settings) -> Iterator[Finding]:
    """A trial that was stopped or failed did not measure what it was meant to."""
    if trial.end in ELSEWHERE:
        return
    reason, hint = note_text(trial, NAME, trial.end)
    message = f"the trial was not finished: {trial.end}{reason}"
    yield Finding(NAME, Severity.INVALID, message, hint or RESUME, (trial.trial,))


def lacking(trial: TrialResult, missing: Sequence[NotLooked]) -> Iterator[Finding]:
    """A trial of Loadstone's that lacks what all of them have: a check that could not look has not passed."""
    reasons: dict[str, dict[str, None]] = {}
    for each in missing:
        reasons.setdefault(each.reason, {})[each.check] = None
    for reason, names in reasons.items():
        message = f"{reason}: {units.listed([*names], len(names))} could not look"
        yield Finding(NAME, Severity.SUSPECT, message, "restore the file, or measure again", (trial.trial,))


def repeats(trials: Sequence[TrialResult], missing: Sequence[str]) -> Iterator[Finding]:
    """Planned repeats of a variant that are missing; the variant has others."""
    message = f"{len(missing)} of {units.many(len(trials) + len(missing), 'repeat')} planned are missing"
    yield Finding(NAME, Severity.SUSPECT, message, RESUME, tuple(missing))


def stopped_early(trials: Sequence[TrialResult], n: int, settings: Settings) -> Iterator[Finding]:
    """A variant whose repeats ended although the stopping rule asks for more."""
    if settings.at_least < n < (settings.at_most or settings.at_least):
        message = f"the repeats ended after {n}, before their interval was narrow at two looks in a row"
        yield Finding(NAME, Severity.SUSPECT, message, RESUME, tuple(trial.trial for trial in trials))


def nothing(trials: Sequence[TrialResult]) -> Iterator[Finding]:
    """No trial at all, or none with a figure: that is never valid."""
    if not any(trial.values for trial in trials):
        message = "no trial has a figure" if trials else "there are no trials"
        hint = "see the trials' own findings" if trials else RESUME
        yield Finding(NAME, Severity.INVALID, message, hint, tuple(trial.trial for trial in trials))


def counterparts(unpaired: Sequence[str], variants: int) -> Iterator[Finding]:
    """Variants without a counterpart, by name, although others have one: a gap, planned or not."""
    if unpaired:
        missing = f"{len(unpaired)} of {variants} variants have no counterpart"
        message = f"{missing} to compare with: {units.listed(unpaired)}"
        yield Finding(NAME, Severity.NOTE, message, "measure the other side of these points, too")


def metrics(asked: Sequence[str], measured: Collection[str]) -> Iterator[Finding]:
    """Metrics that the question asks for and no trial has: without this note they would be missing silently."""
    if missing := [metric for metric in asked if metric not in measured]:
        message = f"asked for and not measured: {units.listed(missing)}"
        hint = "look for a misspelt name in docs/reference/results.md; what the host hides cannot be measured"
        yield Finding(NAME, Severity.NOTE, message, hint)


def search(asked: str) -> Iterator[Finding]:
    """A search for something that cannot be searched for, which earlier versions accepted; its trials are kept."""
    message = f"what was searched for is not an objective: {asked}"
    yield Finding(NAME, Severity.NOTE, message, "its trials are shown; search again for p99 < 10ms or errors < 1%")


def points(missing: Mapping[VariantKey, Sequence[str]], planned: int) -> Iterator[Finding]:
    """Planned variants without any trial, with their trials' ids, and how many variants were planned."""
    if missing:
        message = (
            f"{len(missing)} of {planned} planned points are missing: {units.listed([*map(variant_name, missing)])}"
        )
        trials = tuple(trial for trials in missing.values() for trial in trials)
        yield Finding(NAME, Severity.SUSPECT, message, RESUME, trials)


def baseline(by: str, wanted: Scalar, taken: Scalar | None) -> Iterator[Finding]:
    """A baseline that was never measured; another one took its place."""
    if str(taken) != str(wanted):
        message = f"the baseline {by}={wanted} has no trial; {by}={taken} is used instead"
        yield Finding(NAME, Severity.SUSPECT, message, "run it, or name another baseline")
