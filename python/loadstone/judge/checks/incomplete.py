"""incomplete: a trial ended early, or points that were planned are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from loadstone.format import units
from loadstone.judge.figures import note_text
from loadstone.judge.finding import Finding, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.result_set import variant_name
from loadstone.results.trial_result import Scalar, TrialResult

NAME = "incomplete"
RESUME = "continue with --resume"
# Those who end because an engine is gone are lost-segment's.
ELSEWHERE = frozenset({"done", "lost", "lease"})


def check(trial: TrialResult, _: Settings) -> Iterator[Finding]:
    """A trial that was stopped or failed has measured something else than it was to."""
    if trial.end in ELSEWHERE:
        return
    reason, hint = note_text(trial, NAME, trial.end)
    message = f"the trial was not finished: {trial.end}{reason}"
    yield Finding(NAME, Severity.INVALID, message, hint or RESUME, (trial.trial,))


def lacking(trial: TrialResult, missing: Sequence[NotLooked]) -> Iterator[Finding]:
    """A trial of ours that lacks what all of them have: what could not look at it has not passed."""
    reasons: dict[str, dict[str, None]] = {}
    for each in missing:
        reasons.setdefault(each.reason, {})[each.check] = None
    for reason, names in reasons.items():
        message = f"{reason}: {units.listed([*names], len(names))} could not look"
        yield Finding(NAME, Severity.SUSPECT, message, "restore the file, or measure again", (trial.trial,))


def repeats(trials: Sequence[TrialResult], missing: Sequence[str]) -> Iterator[Finding]:
    """Planned repeats of a variant that are not there; the variant has others."""
    if missing:
        message = f"{len(missing)} of {units.many(len(trials) + len(missing), 'repeat')} planned are missing"
        yield Finding(NAME, Severity.SUSPECT, message, RESUME, tuple(missing))


def stopped_early(trials: Sequence[TrialResult], n: int, settings: Settings) -> Iterator[Finding]:
    """A variant whose repeats ended although the rule of stopping asks for more."""
    if settings.at_least < n < (settings.at_most or settings.at_least):
        message = f"the repeats ended after {n}, before their interval was narrow at two looks in a row"
        yield Finding(NAME, Severity.SUSPECT, message, RESUME, tuple(trial.trial for trial in trials))


def nothing(trials: Sequence[TrialResult]) -> Iterator[Finding]:
    """No trial at all, or none with a figure: that is not valid, whatever it was to be."""
    if not any(trial.values for trial in trials):
        message = "no trial has a figure" if trials else "there is no trial"
        hint = "see what the trials say" if trials else RESUME
        yield Finding(NAME, Severity.INVALID, message, hint, tuple(trial.trial for trial in trials))


def counterparts(unpaired: Sequence[str], variants: int) -> Iterator[Finding]:
    """Variants without anything to be compared with, by name, though others have: a hole, planned or not."""
    if unpaired:
        message = (
            f"{len(unpaired)} of {variants} variants have no counterpart to compare with: {units.listed(unpaired)}"
        )
        yield Finding(NAME, Severity.NOTE, message, "measure the other side of these points, too")


def metrics(asked: Sequence[str], measured: Collection[str]) -> Iterator[Finding]:
    """Metrics that the question asks for and no trial has: without a word they would just not be there."""
    if missing := [metric for metric in asked if metric not in measured]:
        message = f"asked for and not measured: {units.listed(missing)}"
        hint = "look for a misspelt name in docs/reference/results.md; what the host hides cannot be measured"
        yield Finding(NAME, Severity.NOTE, message, hint)


def search(asked: str) -> Iterator[Finding]:
    """A search for something that nobody can search for, as earlier versions accepted; its trials are there."""
    message = f"what was searched for is not an objective: {asked}"
    yield Finding(NAME, Severity.NOTE, message, "its trials are shown; search again for p99 < 10ms or errors < 1%")


def points(configs: Mapping[str, Mapping[str, Scalar]], planned: int) -> Iterator[Finding]:
    """Planned variants of which nothing is there: their trials' ids and configs, and how many variants were planned."""
    if configs:
        names = list(dict.fromkeys(variant_name(config) for config in configs.values()))
        message = f"{len(names)} of {planned} planned points are missing: {units.listed(names)}"
        yield Finding(NAME, Severity.SUSPECT, message, RESUME, tuple(configs))


def baseline(by: str, wanted: Scalar, taken: Scalar | None) -> Iterator[Finding]:
    """A baseline that was never measured; another one took its place."""
    if str(taken) != str(wanted):
        message = f"the baseline {by}={wanted} has no trial, {by}={taken} took its place"
        yield Finding(NAME, Severity.SUSPECT, message, "run it, or name another baseline")
