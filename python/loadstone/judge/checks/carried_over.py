"""carried-over: operations of the warm-up lasted far into the window, whose figures are therefore not the system's."""

from __future__ import annotations

from loadstone.format import units
from loadstone.judge.finding import Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "carried-over"


def check(trial: TrialResult, settings: Settings) -> Looks:
    """How far into the window the last operation of the warm-up lasted."""
    count, longest, window = trial.value("carried"), trial.value("carried.max"), trial.value("runtime")
    if count is None:
        yield NotLooked(NAME, "operations of the warm-up that ended in the window were not counted")
    if not count or not longest or not window or longest <= settings.threshold(NAME, "share") * window:
        return
    backlog = trial.loop == "open"
    severity = Severity.INVALID if backlog else Severity.SUSPECT
    spent = f"{units.duration(longest)} of its {units.duration(window)}"
    message = f"{count:,.0f} operations of the warm-up had not ended when the window began, and took up to {spent}"
    hint = f"use a longer warm-up{' or a lower rate' if backlog else ''}, or find out what the system did then"
    yield Finding(NAME, severity, message, hint, (trial.trial,), about="latencies")
