"""clock: the measuring clock jumped."""

from __future__ import annotations

from loadstone.judge.finding import Effect, Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "clock"
HINT = "check whether the machine was suspended or migrated, and its clock source in the kernel log; then measure again"


def check_clock(trial: TrialResult, _: Settings) -> Looks:
    """A finding on jumps of the measuring clock relative to the kernel's clock."""
    jumps = trial.value("clock.jumps")
    if jumps is None:
        yield NotLooked(NAME, "the measuring clock was not compared with another clock", always_known=True)
    if jumps:
        times = "once" if jumps == 1 else f"{jumps:,.0f} times"
        message = f"the measuring clock jumped {times} relative to the kernel's clock"
        yield Finding(NAME, Severity.INVALID, message, HINT, (trial.trial,), effect=Effect(excludes=True), size=jumps)
