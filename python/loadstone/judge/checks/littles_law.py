"""littles-law: in a closed loop, clients are busy only with operations."""

from __future__ import annotations

import math

from loadstone.format import units
from loadstone.judge.checks import faults
from loadstone.judge.checks import rate as load
from loadstone.judge.figures import (
    ALL,
    COMPOSED,
    OUTSIDE_LOAD,
    attempt_rate,
    client_count,
    count_failed_operations,
    count_operations,
    split_metric,
)
from loadstone.judge.finding import Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "littles-law"
# The figure with the completion time of the last file. In work of a fixed size, clients that have finished their files
# are idle, which is not an error.
LAST_DONE = "dfsio.last_done"
# The fact that states how many operations a client sends at once, and the tools that may not print this number.
PIPELINE = "pipeline"
PIPELINING = ("redis-benchmark", "memtier")
# The known means must cover at least this share of the operations.
COVERED = 0.99


def check_littles_law(trial: TrialResult, settings: Settings) -> Looks:
    """Checks throughput × mean latency ÷ clients, if all three are known."""
    users, rate, means = client_count(trial), attempt_rate(trial), mean_ns(trial)
    if trial.loop == "open":
        return
    if faults.has_fault(trial):
        yield NotLooked(NAME, "clients pause during a fault")
        return
    if users is None or rate is None or means is None:
        lacks = "number of clients" if users is None else "throughput" if rate is None else "mean latency"
        yield NotLooked(NAME, f"the {lacks} is not known")
        return
    if (trial.numeric_fact(PIPELINE) or 1) != 1:
        yield NotLooked(NAME, "with a pipeline, a client has several operations in flight")
        return
    low, high = settings.check_threshold(NAME, "low"), settings.check_threshold(NAME, "high")
    least, most = (rate * mean / 1e9 / users for mean in means)
    # No latency contains the engine's own time between operations of an embedded store. A disturbed probe of that time
    # is too long, so it counts only up to the limit of `generator-limited`.
    engine_share = 0.0 if load.is_networked(trial) else rate * (trial.value("driver") or 0) / 1e9 / users
    engine_share = min(engine_share, settings.check_threshold(load.GENERATOR_LIMITED, "driver"))
    if most + engine_share < low and trial.value(LAST_DONE) is None:
        busy, mean, hint = most, means[1], "clients pause while a server is unavailable: see the finding `errors`"
        if not count_failed_operations(trial):
            hint = (
                "clients did more than wait for the counted answers: check for stalls across the ends of the window, a"
                " target rate, pauses, or a client host at its limit"
            )
    elif high < least <= high + window_edge(trial):
        yield NotLooked(NAME, "operations that completed after the window may have raised the result")
        return
    elif least > high and trial.facts.get("tool") in PIPELINING and PIPELINE not in trial.facts:
        yield NotLooked(NAME, "the length of the pipeline is not known")
        return
    elif least > high:
        busy, mean = least, means[0]
        hint = "throughput and latency cannot come from one run with this many clients: take all three from one log"
    else:
        return
    # A figure that would be printed like a limit gets more digits, to avoid "0.85, not 0.85 to 1.05".
    digits = 3 if f"{busy:.3g}" not in (f"{low:g}", f"{high:g}") else 6
    message = (
        f"throughput × mean latency ÷ clients is {busy:.{digits}g}, not {low:g} to {high:g} "
        f"({units.exact_rate(rate)} × {units.format_duration(mean)} ÷ {users:g})"
    )
    yield Finding(
        NAME, Severity.SUSPECT, message, hint, (trial.trial,), size=abs(math.log(busy)) if busy > 0 else math.inf
    )


def window_edge(trial: TrialResult) -> float:
    """The largest amount by which operations that complete after the window can raise the result, because the engine
    counts operations when they are sent."""
    longest, window = trial.value(f"{ALL}.max"), trial.value("runtime")
    return longest / window if "engine" in trial.facts and longest and window else 0.0


def mean_ns(trial: TrialResult) -> tuple[float, float] | None:
    """Lower and upper bounds on the mean latency of all operations, ns. The bounds differ if the last digit may be
    rounded, or if the operation types' shares are unknown."""
    if (mean_of_all := trial.values.get(f"{ALL}.mean")) is not None:
        half = mean_of_all.resolution / 2
        return max(mean_of_all.value - half, 0.0), mean_of_all.value + half
    mean_of = {split_metric(metric): value for metric, value in trial.values.items() if metric.endswith(".mean")}
    # `read.service.mean` and `load.read.mean` are different figures.
    every = {name: value for (name, _), value in mean_of.items() if "." not in name and name not in OUTSIDE_LOAD}
    single = [value for name, value in every.items() if name not in COMPOSED]
    if not single:
        return None
    if any(value.n <= 1 for value in single):
        means = [value.value for value in every.values()]
        return min(means), max(means)
    # Composed operations are also counted as their parts, so they are subtracted here.
    total = count_operations(trial) or sum(-value.n if name in COMPOSED else value.n for name, value in every.items())
    # The means of the parts must cover nearly all operations.
    if sum(value.n for value in single) < COVERED * total:
        return None
    mean = sum(value.n * value.value for value in single) / total
    return mean, mean
