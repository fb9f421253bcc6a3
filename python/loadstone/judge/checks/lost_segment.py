"""lost-segment: an engine vanished, so that part of the load was never performed or never counted."""

from __future__ import annotations

from loadstone.judge.figures import note_text
from loadstone.judge.finding import Finding, Looks, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "lost-segment"
HINT = "look at the engine's log and its host's kernel log, then run it again with --resume"
ENDS = {
    "lost": "the engine vanished before it reported its result",
    "lease": "the engine stopped by itself because it lost contact with the lab",
}


def check(trial: TrialResult, _: Settings) -> Looks:
    """A trial's own end, and the segments that did not come back."""
    if (message := ENDS.get(trial.end)) is not None:
        reason, hint = note_text(trial, NAME)
        yield Finding(NAME, Severity.INVALID, f"{message}{reason}", hint or HINT, (trial.trial,))
    elif lost := trial.value("segments.lost"):
        every = trial.value("segments")
        of = f" of {every:,.0f}" if every else ""
        yield Finding(NAME, Severity.INVALID, f"segments lost: {lost:,.0f}{of}", HINT, (trial.trial,))
