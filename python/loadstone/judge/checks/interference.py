"""interference: other processes, other machines or a CPU limit disturbed the trial."""

from __future__ import annotations

from loadstone.format import units
from loadstone.judge.finding import Effect, Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.fault import ENDING_SERVERS
from loadstone.results.trial_result import TrialResult

NAME = "interference"
SHARES = {
    "cpu.steal": ("the hypervisor gave {share} of the CPU time to other machines", "use a dedicated host"),
    "cpu.others": ("other processes used {share} of the CPU time", "stop them, or measure while they are idle"),
    "cpu.throttled": ("a CPU limit paused the load generator for {share} of the time", "raise the limit"),
    "io.others": ("other processes kept the disks busy for {share} of the time", "use a dedicated device"),
}

# Servers that the lab starts during a trial count as other processes in these figures until they are observed.
OF_RESTARTS = frozenset({"cpu.others", "io.others"})
# Restarts use at most this share of the CPU or disk time; a larger share has another cause.
RESTARTS_MAX = 0.25


def check_interference(trial: TrialResult, settings: Settings) -> Looks:
    """A finding for each share of the host that other processes or machines used."""
    if not any(metric in trial.values for metric in SHARES):
        yield NotLooked(NAME, "the host was not observed")
    elif "cpu.others" not in trial.values:
        yield NotLooked(NAME, "the trial was too short to measure the CPU time of other processes")
    limit = settings.check_threshold(NAME, "share")
    for metric, (message, hint) in SHARES.items():
        share = trial.value(metric)
        if share is not None and share > limit:
            text, here = message.format(share=units.format_percent(share)), (trial.trial,)
            if (
                metric in OF_RESTARTS
                and share <= RESTARTS_MAX
                and any(fault.kind in ENDING_SERVERS for fault in trial.faults)
            ):
                hint = "the lab restarted servers as part of the fault; see shared-host"
                yield Finding(NAME, Severity.NOTE, text, hint, here, size=share)
                continue
            yield Finding(NAME, Severity.SUSPECT, text, hint, here, effect=Effect(disturbs=True), size=share)
