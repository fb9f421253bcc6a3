"""A trial before the judge: what can be said of it without any other."""

from __future__ import annotations

from loadstone.judge import notes
from loadstone.judge.finding import Finding
from loadstone.judge.registry import DECIDED, SERIES, TRIAL
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Series, TrialResult


def judge_trial(trial: TrialResult, series: Series | None, settings: Settings) -> tuple[Finding, ...]:
    """Every finding on one trial; without its series, those on its course are missing."""
    found = [finding for check in TRIAL for finding in check(trial, settings)]
    if series is not None:
        found += [finding for check in SERIES for finding in check(trial, series, settings)]
    if trial.notes:
        decided = {name for name, has in DECIDED.items() if has(trial)}
        found += list(notes.findings(trial, {finding.check for finding in found}, decided))
    return tuple(found)
