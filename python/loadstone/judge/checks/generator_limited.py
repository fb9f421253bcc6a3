"""generator-limited: what was measured is the engine, not the system."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.judge import words
from loadstone.judge.figures import share
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "generator-limited"


def check(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """Late with a client free, short of processors, or a large part of the time itself; any of a debug build."""
    for message, hint in reasons(trial, settings):
        yield Finding(NAME, Severity.INVALID, message, hint, (trial.trial,))


def reasons(trial: TrialResult, settings: Settings) -> Iterator[tuple[str, str]]:
    """What speaks against the engine, with what to do."""
    if trial.facts.get("profile") == "debug":
        yield "this engine is a debug build: its figures are invalid", "run make"
    late = share(trial, "late.generator")
    if late is not None and late > settings.threshold(NAME, "late"):
        yield (
            f"{words.percent(late)} of the operations went out over 1 ms late though a client was free",
            "run fewer clients per engine, use more engines, or set spin.sleep=true",
        )
    cpu = trial.value("cpu.engine_share")
    if networked(trial) and cpu is not None and cpu > settings.threshold(NAME, "cpu"):
        yield (
            f"the engine used {words.percent(cpu)} of the processors",
            "use more engines, or a host with more processors",
        )
    driver = trial.value("driver.share")
    if not networked(trial) and driver is not None and driver > settings.threshold(NAME, "driver"):
        yield (
            f"{words.percent(driver)} of an operation's time is ours",
            "compare service times, not throughput, or use larger values",
        )


def networked(trial: TrialResult) -> bool:
    """Whether the system is somewhere else than in the engine's process."""
    return trial.facts.get("networked") == "yes"


def decided(trial: TrialResult) -> bool:
    """Whether the figures say all that the engine's own note could."""
    return share(trial, "late.generator") is not None and (
        trial.value("cpu.engine_share" if networked(trial) else "driver.share") is not None
    )
