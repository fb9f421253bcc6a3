"""generator-limited: what was measured is the engine, not the system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from loadstone.format import units
from loadstone.judge.figures import clients, operations, share
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "generator-limited"


def check(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """Late with a client free, or short of processors; any of a debug build."""
    for message, hint in reasons(trial, settings):
        yield Finding(NAME, Severity.INVALID, message, hint, (trial.trial,))


def reasons(trial: TrialResult, settings: Settings) -> Iterator[tuple[str, str]]:
    """What speaks against the engine, with what to do."""
    if trial.facts.get("profile") == "debug":
        yield "this engine is a debug build: its figures are invalid", "run make"
    late = share(trial, "late.generator")
    if late is not None and late > settings.threshold(NAME, "late"):
        yield (
            f"{units.percent(late)} of the operations were sent more than 1 ms late although a client was idle",
            "run fewer clients per engine, use more engines, or set spin.sleep=true",
        )
    if not networked(trial):
        return
    busy, cpu = trial.value("executor.busy_max"), trial.value("cpu.engine_share")
    if busy is not None:
        # One thread at its limit delays its clients, however idle the other processors are.
        if busy > settings.threshold(NAME, "cpu"):
            hint = "use more executors (executors=N), more engines, or a host with more processors"
            yield f"an executor was busy for {units.percent(busy)} of the time", hint
    elif cpu is not None and cpu > settings.threshold(NAME, "cpu"):
        yield (
            f"the engine used {units.percent(cpu)} of the processors",
            "use more engines, or a host with more processors",
        )


def driver(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """A large part of a variant's operations being the driver's own, with an embedded store in a closed loop.

    The driver is probed on the null store before each trial, and whatever disturbs a probe makes it longer: so the
    least of the variant's probes is compared with the median of its times per operation.
    """
    known = [(trial, cost, each) for trial in trials for cost, each in [(trial.value("driver"), each_ns(trial))]]
    costs = [(cost, each) for trial, cost, each in known if cost and each and trial.loop == "closed"]
    if not costs or any(networked(trial) for trial in trials):
        return
    cost, each = min(cost for cost, _ in costs), median(each for _, each in costs)
    if cost / each > settings.threshold(NAME, "driver"):
        message = f"{units.percent(cost / each)} of an operation's time is ours ({cost:.0f} ns of {each:.0f} ns)"
        hint = "compare service times, not throughput, or use larger values"
        yield Finding(NAME, Severity.INVALID, message, hint, tuple(trial.trial for trial in trials))


def each_ns(trial: TrialResult) -> float | None:
    """The time of one client for one operation, with what lies between two of them, ns.

    Of clients that are more than the processors only as many are at work: the others' wait for their turn is not work
    of the store, and our share would look the smaller the more they are.
    """
    users, runtime, count = clients(trial), trial.value("runtime"), operations(trial)
    if not users or not runtime or not count:
        return None
    return runtime * min(users, trial.fact("cpus") or users) / count


def networked(trial: TrialResult) -> bool:
    """Whether the system is somewhere else than in the engine's process."""
    return trial.facts.get("networked") == "yes"


def decided(trial: TrialResult) -> bool:
    """Whether the figures say all that the engine's own note could."""
    known = ("executor.busy_max", "cpu.engine_share") if networked(trial) else ("driver",)
    return share(trial, "late.generator") is not None and any(trial.value(name) is not None for name in known)
