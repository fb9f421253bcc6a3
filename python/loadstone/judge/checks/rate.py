"""rate: whether the rate, or the clients' load, reached the system, so that only the system limited the figures.

Findings: `rate-not-held`, `carried-over`, `client-limited`, `generator-limited`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import median

from loadstone.engine.events import CENSORED
from loadstone.format import units
from loadstone.judge import figures
from loadstone.judge.checks import faults, stages
from loadstone.judge.finding import Effect, Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.stage import stages_of
from loadstone.results.trial_result import Series, TrialResult
from loadstone.statistics.steady import find_rise

RATE_NOT_HELD, CARRIED_OVER = "rate-not-held", "carried-over"
CLIENT_LIMITED, GENERATOR_LIMITED = "client-limited", "generator-limited"
# The engine's notes with these names make a trial invalid.
INVALIDATING = (RATE_NOT_HELD, GENERATOR_LIMITED)
RATE_HINT = (
    "lower the rate, or search for the highest sustainable rate: `find: {over: rate}`; the throughput remains valid"
)
# With fewer clients than this, neither a second engine nor a second executor helps.
FEW_CLIENTS = 33
# If more than this share of the operations is late, they arrive in bursts, which change the load itself.
FAR = 0.1
# If the engine had no processor for at least this share of the window, this is the cause of its lateness.
HELD_SHARE = 0.05
# If the engine's own time exceeds this share of an operation's time, the store's time is not known precisely enough.
HALF = 0.5


def check_rate(trial: TrialResult, settings: Settings) -> Looks:
    """A finding on a rate that was not achieved, or on operations that were due and never completed."""
    if trial.loop is None:
        yield NotLooked(RATE_NOT_HELD, "it is not known whether a rate was set")
    if trial.loop != "open":
        return
    if faults.has_fault(trial):
        yield from check_rate_outside_fault(trial, settings)
        return
    if stages_of(trial):
        yield from stages.check_rate(trial, settings)
        return
    target, done = trial.numeric_fact("target"), figures.attempt_rate(trial)
    missed = 1 - done / target if target and done is not None else 0.0
    uncounted = trial.value("censored") is None and not any(CENSORED in counts for counts in trial.statuses.values())
    if uncounted:
        yield NotLooked(RATE_NOT_HELD, "operations that never completed were not counted", always_known=True)
    grew = uncounted and missed > settings.check_threshold(RATE_NOT_HELD, "queue") and has_queue(trial, missed)
    if target and done is not None and (grew or missed > settings.check_threshold(RATE_NOT_HELD, "missed")):
        yield rate_finding(
            trial, f"{units.format_rate(done)} of the requested {units.format_rate(target)} was achieved", missed
        )
        return
    overdue, total = trial.value("overdue") or 0, figures.count_due_operations(trial)
    share = (figures.count_censored(trial) + overdue) / total if total else 0.0
    if share > settings.check_threshold(RATE_NOT_HELD, "censored"):
        outcome = "were sent after the cut-off" if overdue else "never completed"
        due = units.count_noun(total or 0, "operation that was due", "operations that were due")
        yield rate_finding(trial, f"{units.format_percent(share)} of the {due} {outcome}", share)


def check_rate_outside_fault(trial: TrialResult, settings: Settings) -> Looks:
    """A finding on operations due outside a requested fault that never completed; during a fault, this is normal."""
    outside = faults.outside_counts(trial, "unanswered")
    if outside is None:
        yield NotLooked(RATE_NOT_HELD, "operations outside the fault were not counted", always_known=True)
        return
    count, total = outside
    if total and count / total > settings.check_threshold(RATE_NOT_HELD, "censored"):
        message = (
            f"{units.format_percent(count / total)} of the {units.count_noun(total, 'operation')} due outside the"
            " fault never completed"
        )
        yield rate_finding(trial, message, count / total)


def has_queue(trial: TrialResult, missed: float) -> bool:
    """Whether the response times show that the missing operations waited in a queue.

    At the end, the system would need the missed share of the run time to work off such a queue, and the p99 would be
    nearly as long. Operations that were missed because the tool started late or stopped early delay no other operation.
    """
    backlog_ns = missed * (trial.value("runtime") or 0.0)
    slowest_ns = max((value.value for metric, value in trial.values.items() if metric.endswith(".p99")), default=0.0)
    return 0 < backlog_ns < 2 * slowest_ns


def check_series(trial: TrialResult, series: Series, settings: Settings) -> Looks:
    """A finding on response times that rise over the window, because more operations fall due than complete."""
    if trial.loop != "open" or not series.length_seconds:
        return
    if not series.p50_ns and not series.p99_ns:
        yield NotLooked(RATE_NOT_HELD, "there are no latencies over time", always_known=True)
    whole = len(series.complete_rates)
    seconds = series.start_seconds[whole - 1] + series.length_seconds[whole - 1]
    for name, column in (("p50", series.p50_ns), ("p99", series.p99_ns)):
        if message := rise_text([latency for latency in column[:whole] if latency is not None], seconds, settings):
            # If the median rises, all higher percentiles rise, too.
            yield rate_finding(trial, f"the {name} of the response times {message}")
            return


def rise_text(latencies: Sequence[float], seconds: float, settings: Settings) -> str:
    """A description of the rise of response times (ns) over a window; empty if no rise is certain."""
    line = find_rise(latencies)
    if line is None or line.p >= settings.check_threshold(RATE_NOT_HELD, "alpha"):
        return ""
    behind = line.rise / 1e9 / seconds
    if (
        behind <= settings.check_threshold(RATE_NOT_HELD, "behind")
        or line.rise <= settings.check_threshold(RATE_NOT_HELD, "rise") * line.first
    ):
        return ""
    return (
        f"rises by {units.format_duration(line.rise)} over the {units.format_number(seconds)} s "
        f"window, from {units.format_duration(line.first)}"
    )


def rate_finding(trial: TrialResult, message: str, size: float = 0.0) -> Finding:
    """A finding on the rate, which concerns only latencies: the throughput of the window stays valid."""
    here = (trial.trial,)
    return Finding(RATE_NOT_HELD, Severity.INVALID, message, RATE_HINT, here, about="latencies", size=size)


def check_carried(trial: TrialResult, settings: Settings) -> Looks:
    """A finding on warm-up operations that lasted too far into the window."""
    count, longest, window = trial.value("carried"), trial.value("carried.max"), trial.value("runtime")
    if count is None:
        yield NotLooked(CARRIED_OVER, "operations of the warm-up that completed in the window were not counted")
    if not count or not longest or not window or longest <= settings.check_threshold(CARRIED_OVER, "share") * window:
        return
    backlog = trial.loop == "open"
    severity = Severity.INVALID if backlog else Severity.SUSPECT
    length = units.format_duration(window)
    place = f"{units.format_duration(longest)} into the window of {length}"
    if longest > window:
        place = f"{units.format_duration(longest - window)} after the window of {length} had ended"
    carried = units.count_noun(count, "warm-up operation")
    message = f"{carried} had not completed when the window began; the last of them completed {place}"
    hint = f"use a longer warm-up{' or a lower rate' if backlog else ''}, or find out what the system did at that time"
    here, effect = (trial.trial,), Effect(excludes=True)
    yield Finding(CARRIED_OVER, severity, message, hint, here, about="latencies", effect=effect, size=longest)


def check_clients(trial: TrialResult, settings: Settings) -> Looks:
    """A finding on operations that were more than 1 ms late because no client was idle."""
    late = figures.operation_share(trial, "late.client")
    if late is None and trial.loop == "open":
        yield NotLooked(CLIENT_LIMITED, "operations that waited for a client were not counted", always_known=True)
    if late is not None and late > settings.check_threshold(CLIENT_LIMITED, "late"):
        message = f"{units.format_percent(late)} of the operations waited over 1 ms because all clients were busy"
        hint = "the response time includes that wait; use more clients to see the store's own limit"
        severity = Severity.NOTE
        if faults.has_fault(trial) and str(trial.facts.get("nodes")) != "1":
            # If all clients wait for the faulty server, the load on the healthy servers is no longer an open loop.
            severity = Severity.INVALID
            hint = "use at least (rate × share of affected operations × timeout) clients, or a shorter timeout"
        yield Finding(CLIENT_LIMITED, severity, message, hint, (trial.trial,), size=late)


def clients_decided(trial: TrialResult) -> bool:
    """Whether the trial has the figures that make the engine's note redundant."""
    return figures.operation_share(trial, "late.client") is not None


def check_generator(trial: TrialResult, settings: Settings) -> Looks:
    """Finds too few processors, debug builds, and operations that the generator sent late."""
    if trial.facts.get("profile") == "debug":
        message = "this load generator is a debug build: its figures are invalid"
        here, effect = (trial.trial,), Effect(excludes=True)
        yield Finding(GENERATOR_LIMITED, Severity.INVALID, message, "run make", here, effect=effect)
    yield from check_lateness(trial, settings)
    if is_networked(trial):
        yield from check_executors(trial, settings)
    elif trial.loop == "closed" and trial.value("driver") is None:
        yield NotLooked(
            GENERATOR_LIMITED, "the load generator's own time per operation was not measured", always_known=True
        )


def check_lateness(trial: TrialResult, settings: Settings) -> Looks:
    """A finding on operations that the generator sent late, in a trial at a rate.

    If the lateness of each operation is known, each latency lies between two bounds, and a comparison uses both.
    """
    late = figures.operation_share(trial, "late.generator")
    if late is None and trial.loop == "open":
        yield NotLooked(GENERATOR_LIMITED, "the operations that were sent late were not counted", always_known=True)
    if late is not None and late > settings.check_threshold(GENERATOR_LIMITED, "late"):
        bounded = any(f".{figures.LOWER}." in metric for metric in trial.values)
        severity = Severity.INVALID if not bounded else Severity.SUSPECT if late > FAR else Severity.NOTE
        share = units.format_percent(late)
        message = f"{share} of the operations were sent more than 1 ms late because of the load generator"
        here, effect, hint = (trial.trial,), Effect(excludes=True), choose_hint([trial])
        yield Finding(GENERATOR_LIMITED, severity, message, hint, here, about="latencies", effect=effect, size=late)


def choose_hint(trials: Collection[TrialResult]) -> str:
    """The hint for operations that were sent late."""
    if all(is_paused(trial) for trial in trials):
        return (
            "use an idle host, or a host with more processors: the load generator was ready to run, but had no"
            " processor"
        )
    if all(trial.requested.get("spin") for trial in trials):
        return "lower the rate, or use another host"
    return (
        "lower the rate, use another host, or let idle clients spin: set `properties: {spin.sleep: true}` for the"
        " system (with `loadstone ycsb`: -p spin.sleep=true)"
    )


def is_paused(trial: TrialResult) -> bool:
    """Whether a thread of the generator had no processor for a large share of the window."""
    held_ns, window_ns = trial.value("executor.held_max") or 0.0, trial.value("runtime") or math.inf
    return held_ns >= HELD_SHARE * window_ns


def check_executors(trial: TrialResult, settings: Settings) -> Looks:
    """Finds saturated threads that drive clients of a networked store; the system may then be faster by any factor."""
    share, hint = trial.value("executor.busy_max"), "use a host with more processors"
    is_large = (figures.client_count(trial) or FEW_CLIENTS) >= FEW_CLIENTS
    if is_large:
        hint += ", or `fleet: {engines: N}`"
    # A saturated thread delays its clients, even if other processors are idle.
    if share is not None:
        message = "an executor was busy for {} of the time"
        if is_large:
            hint += ", or `properties: {executors: N}` of the system"
    else:
        share, message = trial.value("cpu.engine_share"), "the load generator used {} of the processors"
    if share is None:
        yield NotLooked(
            GENERATOR_LIMITED, "the utilisation of the load generator's threads was not measured", always_known=True
        )
    elif share > settings.check_threshold(GENERATOR_LIMITED, "cpu"):
        text = message.format(units.format_percent(share))
        here, effect = (trial.trial,), Effect(understates=math.inf)
        yield Finding(GENERATOR_LIMITED, Severity.INVALID, text, hint, here, effect=effect, size=share)


def check_driver_time(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """A finding if the engine takes a large share of an operation's time, with an embedded store in a closed loop.

    The throughput is then too low by a known share, which comparisons use as a bound. Latencies exclude the engine's
    time.
    """
    cost, whole_ns = engine_overhead(trials)
    if cost / whole_ns <= settings.check_threshold(GENERATOR_LIMITED, "driver"):
        return
    share = units.format_percent(cost / whole_ns)
    message = f"{share} of each operation's time is the load generator's ({cost:.0f} ns of {whole_ns:.0f} ns)"
    hint = "compare service times, not throughput, or use larger values"
    severity = Severity.NOTE if cost / whole_ns <= HALF else Severity.INVALID
    ids, effect = tuple(trial.trial for trial in trials), Effect(understates=understatement_factor(trials))
    yield Finding(GENERATOR_LIMITED, severity, message, hint, ids, about="throughput", effect=effect)


def engine_overhead(trials: Sequence[TrialResult]) -> tuple[float, float]:
    """The engine's own time for an operation of an embedded store in a closed loop (0 if unknown), and the operation's
    total time, ns.

    The driver is probed on the null store before each trial. Disturbances can only make a probe longer, so the
    shortest probe of the variant is compared with the median of the variant's times per operation.
    """
    known = [
        (trial, cost, whole_ns) for trial in trials for cost, whole_ns in [(trial.value("driver"), operation_ns(trial))]
    ]
    costs = [(cost, whole_ns) for trial, cost, whole_ns in known if cost and whole_ns and trial.loop == "closed"]
    if not costs or any(is_networked(trial) for trial in trials):
        return 0.0, 1.0
    return min(cost for cost, _ in costs), median(whole_ns for _, whole_ns in costs)


def understatement_factor(trials: Sequence[TrialResult]) -> float:
    """The factor by which a system could be faster than measured if the engine's own time were zero."""
    cost, whole_ns = engine_overhead(trials)
    return whole_ns / (whole_ns - cost) if cost < whole_ns else math.inf


def operation_ns(trial: TrialResult) -> float | None:
    """The time that one client takes for an operation and the gap before the next operation, ns; None if unknown.

    With more clients than processors, some clients always wait for a processor. This wait is not work of the store,
    and would make the engine's share appear smaller as clients are added, so it is excluded.
    """
    users, runtime, count = figures.client_count(trial), trial.value("runtime"), figures.count_operations(trial)
    if not users or not runtime or not count:
        return None
    return runtime * min(users, trial.numeric_fact("cpus") or users) / count


def is_networked(trial: TrialResult) -> bool:
    """Whether the system runs outside the engine's process."""
    return trial.facts.get("networked") == "yes"


def generator_decided(trial: TrialResult) -> bool:
    """Whether the trial has the figures that make the engine's note redundant."""
    known = ("executor.busy_max", "cpu.engine_share") if is_networked(trial) else ("driver",)
    return figures.operation_share(trial, "late.generator") is not None and any(
        trial.value(name) is not None for name in known
    )
