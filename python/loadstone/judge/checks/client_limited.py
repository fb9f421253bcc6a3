"""client-limited: with a rate set, operations waited because every client was busy."""

from __future__ import annotations

from loadstone.format import units
from loadstone.judge.figures import share
from loadstone.judge.finding import Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "client-limited"


def check(trial: TrialResult, settings: Settings) -> Looks:
    """Operations that were more than 1 ms late because no client was idle."""
    late = share(trial, "late.client")
    if late is None and trial.loop == "open":
        yield NotLooked(NAME, "operations that waited for a client were not counted", ours=True)
    if late is not None and late > settings.threshold(NAME, "late"):
        message = f"{units.percent(late)} of the operations waited over 1 ms because all clients were busy"
        hint = "the response time includes that wait; use more clients to see the store's own limit"
        yield Finding(NAME, Severity.NOTE, message, hint, (trial.trial,))


def decided(trial: TrialResult) -> bool:
    """Whether the figures already cover what the engine's note would add."""
    return share(trial, "late.client") is not None
