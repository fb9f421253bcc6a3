"""server-died: a server under load ended during the trial."""

from __future__ import annotations

from loadstone.judge.finding import Finding, Looks, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "server-died"


def check(trial: TrialResult, _: Settings) -> Looks:
    """One finding for each server that the runner found dead after the trial: only it knows the servers."""
    for note in trial.notes:
        if note.name == NAME:
            yield Finding(NAME, Severity.INVALID, note.message, note.hint, (trial.trial,))
