"""Notes of engine and lab as findings: some causes show in no figure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from loadstone.judge.finding import Finding, Severity
from loadstone.judge.settings import RENAMED
from loadstone.results.trial_result import TrialResult

# What a note of a check's name weighs. What is not here is not a check's, and a note.
SEVERITIES = {
    "littles-law": Severity.SUSPECT,
    "generator-limited": Severity.INVALID,
    "rate-not-held": Severity.INVALID,
    "carried-over": Severity.SUSPECT,
    "clock": Severity.INVALID,
    "not-steady": Severity.SUSPECT,
    "noisy": Severity.SUSPECT,
    "stalled": Severity.SUSPECT,
    "hosts-differ": Severity.SUSPECT,
    "guarantees-differ": Severity.INVALID,
    "interference": Severity.SUSPECT,
    "unverified": Severity.INVALID,
    "lost-segment": Severity.INVALID,
    "incomplete": Severity.SUSPECT,
    "impossible": Severity.INVALID,
}
# Notes that are a check's under another name, and say what its figures do not.
CHECKS = {
    "debug-build": "generator-limited",
    "unsent": "client-limited",
    "hung": "stalled",
    "failed": "incomplete",
}


def findings(trial: TrialResult, found: Collection[str], decided: Collection[str]) -> Iterator[Finding]:
    """The notes as findings, unless a check has `found` the same, or has `decided` by figures that there is nothing."""
    for note in trial.notes:
        name = RENAMED.get(note.name, note.name)
        check = CHECKS.get(name, name)
        known = name == check and (check in found or check in decided)
        # The fact, or the trial's end, has said it.
        if known or (note.name == "debug-build" and "profile" in trial.facts) or note.name == trial.end:
            continue
        yield Finding(check, SEVERITIES.get(check, Severity.NOTE), note.message, note.hint, (trial.trial,))


def said(trial: TrialResult, *names: str) -> tuple[str, str]:
    """What the first note of one of these names says, to be appended, and its hint; empty if there is none."""
    note = next((note for note in trial.notes if note.name in names), None)
    return (f": {note.message}", note.hint) if note else ("", "")
