"""faults: whether a fault took place as requested, and whether the system recovered.

Findings: `fault-missed`, `not-lifted`, `bystander-hit`, `before-unsteady`, `not-recovered`, `hidden-retries`,
`shared-host`, and `sides-differ` for a pair; `fault-errors` is in the check `errors`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loadstone.format import units
from loadstone.judge.finding import Effect, Finding, Looks, NotLooked, Pair, Severity
from loadstone.judge.guarantees import RETRYING
from loadstone.judge.settings import Settings
from loadstone.results.fault import ENDING_SERVERS, NONE, VERIFIED_BY, FaultRecord, borders_of
from loadstone.results.trial_result import Series, TrialResult
from loadstone.statistics.availability import RELAPSE

MISSED, NOT_LIFTED, BYSTANDER = "fault-missed", "not-lifted", "bystander-hit"
UNSTEADY, NOT_RECOVERED = "before-unsteady", "not-recovered"
RETRIES, SHARED, FAILURES = "hidden-retries", "shared-host", "fault-errors"
SIDES = "sides-differ"
# The maximum delay of a fault: a share of its planned length, but at least `DELAY_MIN_NS`; for a fault without a
# planned length, such as a restart, a fixed time.
DELAY_SHARE_MAX, DELAY_MIN_NS, DELAY_MAX_NS = 0.1, 2e8, 1e9
BUSY = "the host was too busy: repeat the trial while other programs are idle"
SLOW_VERIFY = "the fault starts when `verify` succeeds: use commands that finish sooner, or repeat on an idle host"
CLOSED = "a closed loop has no due times: an outage counts once for each client, so there is no outage in seconds"


def has_fault(trial: TrialResult) -> bool:
    """Whether a fault was requested; the twin (the same trial without a fault) has only the fault `none`."""
    return any(fault.kind != NONE for fault in trial.faults)


def count_lost_writes(trial: TrialResult) -> float:
    """The number of missing acknowledged writes and loaded records, whether or not the guarantee allows their loss."""
    return sum(trial.value(f"ledger.{name}") or 0 for name in ("lost", "lost_allowed", "lost_loaded"))


def count_lost_reads(trial: TrialResult) -> int:
    """The number of reads that found no record, if the fault lost writes or records; else 0."""
    is_lossy = has_fault(trial) and count_lost_writes(trial) > 0
    return trial.statuses.get("READ", {}).get("NOT_FOUND", 0) if is_lossy else 0


def check_faults(trial: TrialResult, settings: Settings) -> Looks:
    """Checks that faults took place, were lifted and affected nothing else, and that recovery figures are reliable."""
    for fault in trial.faults:
        if fault.kind != NONE and trial.values:
            yield from check_fault(trial, fault)
    if not trial.faults or not trial.values:
        return
    if trial.loop != "open":
        yield NotLooked(NOT_RECOVERED, CLOSED)
        return
    yield from check_before(trial, settings)
    yield from check_recovery(trial)
    if has_fault(trial):
        yield from check_surroundings(trial)


def check_fault(trial: TrialResult, fault: FaultRecord) -> Iterator[Finding]:
    """Findings on a fault that lacks proof, was late, had no visible effect, was not lifted, or hit other servers."""
    here, excludes = (trial.trial,), Effect(excludes=True)
    name = f"{fault.noun} of {units.list_items([*fault.servers]) or 'no server'}"
    end_ns = trial.value("runtime")
    order_ns = fault.ordered_ns
    outside = order_ns is not None and (order_ns < 0 or (end_ns is not None and order_ns >= end_ns))
    if not fault.is_verified or order_ns is None or outside:
        reason = fault.unverified.get("held", "it was never ordered" if order_ns is None else "no proof was recorded")
        reason = "it was ordered outside the measured window" if outside else reason
        hint = "see servers.log of the trial; `loadstone doctor` names the faults that this host supports"
        yield Finding(MISSED, Severity.INVALID, f"{name} did not take effect: {reason}", hint, here, effect=excludes)
        # An unverified fault may have had an effect nevertheless.
    is_planned = fault.planned_lift_ns is not None and fault.is_verified
    if "lifted" in fault.unverified or (is_planned and fault.lifted_ns is None):
        reason = fault.unverified.get("lifted", "the trial ended first")
        hint = "see servers.log of the trial, and use a longer `measure.duration`"
        yield Finding(NOT_LIFTED, Severity.INVALID, f"{name} was not lifted: {reason}", hint, here, effect=excludes)
    if fault.is_verified and not outside and (delay := describe_delay(fault)):
        message = f"{name} {delay}, so it cannot be compared with the other faults of its block"
        hint = SLOW_VERIFY if VERIFIED_BY in fault.facts else BUSY
        yield Finding(MISSED, Severity.SUSPECT, message, hint, here)
    if fault.is_verified and VERIFIED_BY in fault.facts:
        yield from check_effect(trial, fault, name)
    if "bystanders" in fault.unverified:
        message = f"{name} also hit other servers: {fault.unverified['bystanders']}"
        hint = "the figures describe a larger fault; see servers.log of the trial"
        yield Finding(BYSTANDER, Severity.INVALID, message, hint, here, effect=excludes)


def check_effect(trial: TrialResult, fault: FaultRecord, name: str) -> Iterator[Finding]:
    """A finding on a fault that only the user's command verified, while the engine observed no effect."""
    end_ns = trial.value("runtime") if fault.lift_ordered_ns is None else fault.lift_ordered_ns
    lasted_ns = (end_ns or 0) - (fault.held_ns or 0)
    names, is_open = ("failed", "late", "unanswered"), trial.loop == "open"
    # A closed loop only shows the gap in which no client received an answer.
    gap_ns = trial.value("longest_gap")
    visible_ns = trial.value("deadline") if is_open else None if gap_ns is None else 2 * gap_ns
    counts = [trial.value(f"during.{name}") for name in names[: None if is_open else 1]]
    if visible_ns is None or lasted_ns <= visible_ns or any(count != 0 for count in counts):
        return
    is_whole = len(fault.servers) >= (trial.numeric_fact("data_nodes") or len(fault.servers))
    attempts = trial.value("connections.attempted")
    if attempts or (attempts is None and not is_whole):
        return
    message = f"only the command `verify` shows that {name} took effect: no operation during it failed or was delayed"
    message += "" if attempts is None else ", and no connection was lost"
    hint = "check by hand that the commands of `attach` reach the servers, and that `verify` fails while they are down"
    here = (trial.trial,)
    if is_whole:
        yield Finding(MISSED, Severity.INVALID, message, hint, here, effect=Effect(excludes=True))
    else:
        # Perhaps no client uses this server, for example because it is a replica.
        yield Finding(MISSED, Severity.SUSPECT, message, hint, here)


def describe_delay(fault: FaultRecord) -> str:
    """The difference between the planned and the actual length or start of a fault, as text; empty if it is small."""
    order_ns, lift_ns = fault.borders_ns
    limit_ns, planned_ns = DELAY_MAX_NS, None
    # A restart has no planned length.
    if fault.planned_lift_ns not in (None, fault.planned_at_ns) and lift_ns is not None:
        planned_ns = fault.planned_lift_ns - fault.planned_at_ns
        limit_ns = max(DELAY_SHARE_MAX * planned_ns, DELAY_MIN_NS)
        if abs(lift_ns - order_ns - planned_ns) > limit_ns:
            lengths = [units.format_duration(length) for length in (lift_ns - order_ns, planned_ns)]
            return f"lasted {lengths[0]} instead of {lengths[1]}"
    late_ns = order_ns - fault.planned_at_ns
    return f"began {units.format_duration(late_ns)} after its planned instant" if late_ns > limit_ns else ""


def check_before(trial: TrialResult, settings: Settings) -> Looks:
    """Checks that the level before the fault is known precisely enough to detect a recovery."""
    line = trial.values.get("recovered.line")
    if line is None:
        yield NotLooked(UNSTEADY, "there are no counts by due time before the fault", always_known=True)
        return
    median = trial.value("recovered.median") or 0.0
    least = settings.check_threshold(UNSTEADY, "windows")
    if line.n < least:
        message = f"only {line.n} windows precede the fault, fewer than {least:g}: the noise is unknown"
        yield unsteady_finding(trial, message, "let the fault begin later, with `at`")
    elif median < settings.check_threshold(UNSTEADY, "yield"):
        message = f"before the fault, only {units.format_percent(median)} of the operations were answered in time"
        yield unsteady_finding(trial, message, "lower the rate, or set a longer `measure.deadline`")
    elif line.value < RELAPSE * median:
        message = (
            f"the yield before the fault varies: {units.format_percent(max(line.value, 0.0))} would count as recovered"
        )
        yield unsteady_finding(trial, message, "warm up longer, or find out what disturbs the system")


def unsteady_finding(trial: TrialResult, message: str, hint: str) -> Finding:
    """A finding on a trial with an unknown level before the fault."""
    return Finding(UNSTEADY, Severity.INVALID, message, hint, (trial.trial,), effect=Effect(excludes=True))


def check_recovery(trial: TrialResult) -> Iterator[Finding]:
    """A finding on a recovery that was not reached, or not observed for long enough; on the twin, a sign of noise."""
    recovered = trial.values.get("recovered")
    if recovered is None:
        return
    here = (trial.trial,)
    is_twin = not has_fault(trial)
    limit = units.format_duration(recovered.value)
    if recovered.bound is not None and is_twin:
        message = f"without a fault, the yield did not stay at its level within {limit}"
        hint = "the system is not steady enough to measure a recovery: warm up longer or lower the rate"
        yield Finding(NOT_RECOVERED, Severity.SUSPECT, message, hint, here)
    elif recovered.bound is not None:
        message = f"not recovered within {limit} after the {'fault' if borders_of(trial.faults)[1] is None else 'lift'}"
        hint = "this is a result; to measure the recovery time, use a longer `measure.duration`"
        yield Finding(NOT_RECOVERED, Severity.NOTE, message, hint, here, size=recovered.value)
    elif (watched := trial.value("recovered.held")) is not None and watched < (trial.value("recovered.hold") or 0.0):
        required = units.format_duration(trial.value("recovered.hold") or 0.0)
        message = (
            f"recovered after {limit}, but observed for only {units.format_duration(watched)} instead of {required}"
        )
        yield Finding(NOT_RECOVERED, Severity.SUSPECT, message, "use a longer `measure.duration`", here, size=-watched)


def check_surroundings(trial: TrialResult) -> Iterator[Finding]:
    """Notes on effects of Loadstone's client and host, which are not effects of the system."""
    here = (trial.trial,)
    retried = sum(value.value for metric, value in trial.values.items() if metric.startswith("attempts.retried."))
    if trial.facts.get("store") in RETRYING or retried:
        message = "the client retries within an operation: failures appear as latency, not as failed operations"
        hint = "read `first_late` and the latencies: an operation fails only after its retries"
        yield Finding(RETRIES, Severity.NOTE, message, hint, here)
    restarted = any(fault.kind in ENDING_SERVERS and fault.lifted_ns is not None for fault in trial.faults)
    if restarted and any(metric.startswith("server.") for metric in trial.values):
        processors = trial.numeric_fact("cpus")
        shared = "processors" if processors is None else units.count_noun(int(processors), "processor")
        message = f"servers, load generator and lab share {shared}: the restart's CPU time is part of the recovery"
        hint = "compare only with trials on an identical host, or limit the CPUs of each server in all variants"
        yield Finding(SHARED, Severity.NOTE, message, hint, here)


def check_pair(pair: Pair, _: Settings) -> Looks:
    """Findings on blocks whose sides had different faults, although each block draws servers and instants only once."""
    contenders = {trial.repeat: trial for trial in pair.contenders if has_fault(trial)}
    for trial in pair.baselines if pair.blocks else ():
        other = contenders.get(trial.repeat)
        if other is None or not has_fault(trial):
            continue
        draws = [tuple((fault.servers, fault.planned_at_ns) for fault in side.faults) for side in (trial, other)]
        if draws[0] != draws[1]:
            victims = [units.list_items([name for names, _ in draw for name in names]) for draw in draws]
            instants = [units.format_duration(draw[0][1]) for draw in draws]
            message = (
                f"in block {trial.repeat}, the faults differ: {victims[0]} at {instants[0]} against {victims[1]} at"
                f" {instants[1]}"
            )
            hint = "compare trials of one experiment, whose faults are drawn for each block"
            yield Finding(SIDES, Severity.SUSPECT, message, hint, (trial.trial, other.trial))


def outside_counts(trial: TrialResult, name: str) -> tuple[float, float] | None:
    """A count of operations before a requested fault and after the recovery, and the number of all operations in those
    windows.

    None without a fault, or without figures of these windows.
    """
    values = [value for window in ("before", "after") if (value := trial.values.get(f"{window}.{name}")) is not None]
    if not has_fault(trial) or not values:
        return None
    return sum(value.value for value in values), sum(value.n for value in values)


def trim_to_before(trial: TrialResult, series: Series) -> Series:
    """The intervals that ended before the fault; all intervals without a fault."""
    if not has_fault(trial):
        return series
    order_ns, _ = borders_of(trial.faults)
    spans = zip(series.start_seconds, series.length_seconds, strict=True)
    count = sum(start + length <= order_ns / 1e9 for start, length in spans)
    return cut_series(series, 0, count)


def trim_to_after(trial: TrialResult, series: Series) -> Series:
    """The intervals after the recovery; none if the fault was not lifted, or no recovery is known."""
    _, lift_ns = borders_of(trial.faults)
    recovered = trial.values.get("recovered")
    if lift_ns is None or recovered is None or recovered.bound is not None:
        return cut_series(series, len(series.start_seconds), len(series.start_seconds))
    first = sum(start < (lift_ns + recovered.value) / 1e9 for start in series.start_seconds)
    return cut_series(series, first, len(series.start_seconds))


def cut_series(series: Series, first: int, last: int) -> Series:
    """The part of a time series from interval `first` up to, but not including, interval `last`."""
    return replace(series, **{name: column[first:last] for name, column in vars(series).items()})
