"""generator-limited: what was measured is the engine, not the system."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from loadstone.format import units
from loadstone.judge.figures import LOWER, clients, operations, share
from loadstone.judge.finding import Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "generator-limited"
BOUNDS_HINT = "set spin.sleep=true, use another host, or lower the rate"
# Beyond this share, the bursts of late operations change the load itself.
FAR = 0.1
# Beyond this share, the engine's own time is not known well enough.
HALF = 0.5


def check(trial: TrialResult, settings: Settings) -> Looks:
    """Late although a client was idle, or short of processors; any figure of a debug build."""
    if trial.facts.get("profile") == "debug":
        message = "this engine is a debug build: its figures are invalid"
        yield Finding(NAME, Severity.INVALID, message, "run make", (trial.trial,))
    yield from lateness(trial, settings)
    if networked(trial):
        yield from processors(trial, settings)
    elif trial.loop == "closed" and trial.value("driver") is None:
        yield NotLooked(NAME, "the load generator's own time per operation was not measured", ours=True)


def lateness(trial: TrialResult, settings: Settings) -> Looks:
    """Operations at a rate that were sent late although a client was idle.

    Where it is known how late each was, the latencies lie between two figures, and a comparison uses both.
    """
    late = share(trial, "late.generator")
    if late is None and trial.loop == "open":
        yield NotLooked(NAME, "the operations that were sent late were not counted", ours=True)
    if late is not None and late > settings.threshold(NAME, "late"):
        bounded = any(f".{LOWER}." in metric for metric in trial.values)
        severity = Severity.INVALID if not bounded else Severity.SUSPECT if late > FAR else Severity.NOTE
        message = f"{units.percent(late)} of the operations were sent more than 1 ms late although a client was idle"
        yield Finding(NAME, severity, message, BOUNDS_HINT, (trial.trial,), about="latencies")


def processors(trial: TrialResult, settings: Settings) -> Looks:
    """Threads that drive clients of a networked store, at their limit. The system may be faster by any factor."""
    share, hint = trial.value("executor.busy_max"), "more engines, or a host with more processors"
    # One thread at its limit delays its clients, however idle the other processors are.
    if share is not None:
        message, hint = "an executor was busy for {} of the time", f"more executors (executors=N), {hint}"
    else:
        share, message = trial.value("cpu.engine_share"), "the engine used {} of the processors"
    if share is None:
        yield NotLooked(NAME, "the use of the load generator's threads was not measured", ours=True)
    elif share > settings.threshold(NAME, "cpu"):
        text = message.format(units.percent(share))
        yield Finding(NAME, Severity.INVALID, text, f"use {hint}", (trial.trial,), understates=math.inf)


def driver(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """Whether a large part of each operation is the engine's own time, with an embedded store in a closed loop.

    The throughput is then too low by a known share: a bound that comparisons use. Latencies do not contain that time.
    """
    cost, each = overhead(trials)
    if cost / each <= settings.threshold(NAME, "driver"):
        return
    message = f"{units.percent(cost / each)} of each operation's time is the engine's ({cost:.0f} ns of {each:.0f} ns)"
    hint = "compare service times, not throughput, or use larger values"
    severity = Severity.NOTE if cost / each <= HALF else Severity.INVALID
    ids = tuple(trial.trial for trial in trials)
    yield Finding(NAME, severity, message, hint, ids, about="throughput", understates=understated(trials))


def overhead(trials: Sequence[TrialResult]) -> tuple[float, float]:
    """The engine's own time for an operation of an embedded store in a closed loop, 0 if unknown, and the whole, ns.

    The driver is probed on the null store before each trial, and disturbances can only make a probe longer: so the
    least of the variant's probes is compared with the median of its times per operation.
    """
    known = [(trial, cost, each) for trial in trials for cost, each in [(trial.value("driver"), each_ns(trial))]]
    costs = [(cost, each) for trial, cost, each in known if cost and each and trial.loop == "closed"]
    if not costs or any(networked(trial) for trial in trials):
        return 0.0, 1.0
    return min(cost for cost, _ in costs), median(each for _, each in costs)


def understated(trials: Sequence[TrialResult]) -> float:
    """How many times faster than measured a system could be if the engine's own time were zero."""
    cost, each = overhead(trials)
    return each / (each - cost) if cost < each else math.inf


def each_ns(trial: TrialResult) -> float | None:
    """One client's time for one operation, with the time between two of them, ns.

    With more clients than processors, only as many work at once: the others' wait for a processor is not work of the
    store, and would make the engine's share look smaller the more clients there are.
    """
    users, runtime, count = clients(trial), trial.value("runtime"), operations(trial)
    if not users or not runtime or not count:
        return None
    return runtime * min(users, trial.fact("cpus") or users) / count


def networked(trial: TrialResult) -> bool:
    """Whether the system runs outside the engine's process."""
    return trial.facts.get("networked") == "yes"


def decided(trial: TrialResult) -> bool:
    """Whether the figures already cover what the engine's note would add."""
    known = ("executor.busy_max", "cpu.engine_share") if networked(trial) else ("driver",)
    return share(trial, "late.generator") is not None and any(trial.value(name) is not None for name in known)
