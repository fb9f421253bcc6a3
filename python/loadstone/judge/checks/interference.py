"""interference: something else used the host meanwhile."""

from __future__ import annotations

from loadstone.format import units
from loadstone.judge.finding import Effect, Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "interference"
SHARES = {
    "cpu.steal": ("the hypervisor took {share} of the processors for other machines", "use a dedicated host"),
    "cpu.others": ("other processes used {share} of the processors", "end them, or measure while they are idle"),
    "cpu.throttled": ("a limit on processors stopped the engine for {share} of the time", "raise the limit"),
    "io.others": ("other processes kept the disks busy for {share} of the time", "use a dedicated device"),
}


def check(trial: TrialResult, settings: Settings) -> Looks:
    """Each share of the host that went elsewhere."""
    if not any(metric in trial.values for metric in SHARES):
        yield NotLooked(NAME, "the host was not observed")
    limit = settings.threshold(NAME, "share")
    for metric, (message, hint) in SHARES.items():
        share = trial.value(metric)
        if share is not None and share > limit:
            text = message.format(share=units.percent(share))
            yield Finding(NAME, Severity.SUSPECT, text, hint, (trial.trial,), effect=Effect(disturbs=True), size=share)
