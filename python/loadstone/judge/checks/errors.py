"""errors: operations failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

from loadstone.format import units
from loadstone.judge.checks import faults
from loadstone.judge.figures import OUTSIDE_LOAD, count_failed, count_failed_operations, count_operations
from loadstone.judge.finding import Effect, Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "errors"
# The phases by the prefix of their figures, each with the noun for its operations.
MEASURED, LOAD = "", "load."
PHASES = {MEASURED: "operation", LOAD: "operation of the load"}
# A trial is invalid if more than this share of the operations of one type failed.
KIND_SHARE = 0.1
UNCLOSED_HINT = "see the store's log; a session that does not close has not confirmed its last writes"
# The figure that counts reads of rows that were never written.
MISSING = "rows_missing"
MISSING_HINT = "load the whole population before the reads; each of several writers needs its own range (`segment=k/n`)"
# A new replica receives the rows only through a repair, since `ALTER KEYSPACE` copies nothing.
MISSING_COPY_HINT = "repair the keyspace (`nodetool repair`) after a change of its replication, or load it again"
# The text that precedes the system's message in the engine's note.
FIRST = ", the first: "
# The engine's note on reads of rows that were never written.
MISSING_ROWS = "missing-rows"
# The engine's note on servers that the cluster considered down: a phrase in the note's message, and the note's name.
DOWN = "considered down"
SERVER_EVENTS = "server-events"


def check_errors(trial: TrialResult, settings: Settings) -> Looks:
    """Finds failed operations of the measured phase and of the load phase, and sessions that did not close."""
    if not has_error_counts(trial):
        yield NotLooked(NAME, "failed operations were not counted", always_known=True)
    for prefix in PHASES:
        yield from check_phase(trial, prefix, settings)
    yield from through_fault(trial)
    yield from find_unclosed_sessions(trial)


def check_phase(trial: TrialResult, prefix: str, settings: Settings) -> Iterator[Finding]:
    """A finding on the failed operations of one of the PHASES."""
    count, every, what = count_failed_operations(trial, prefix), count_operations(trial, prefix), PHASES[prefix]
    retried = max((trial.value(f"{prefix}attempts.failed") or 0) - count, 0)
    if prefix == MEASURED and (outside := faults.outside_counts(trial, "failed")) is not None:
        # Failures during a requested fault, including operations in flight when it began, are its result.
        (count, every), retried, what = outside, 0.0, "operation outside the fault"
        # After the fault, reads of lost records find nothing. Before the fault, such reads are failures.
        lost = min(faults.count_lost_reads(trial), trial.value("after.failed") or 0)
        count = max(count - (trial.value("before.interrupted") or 0) - lost, 0)
    if count + retried <= 0:
        return
    # A retry turns a failed request into a successful operation; users without retries would see the failure.
    bad, requests = count + retried, (every or 0) + retried
    if (errors := trial.values.get(f"{prefix}errors")) is not None and errors.unit == "share":
        message, share = f"{units.format_percent(count)} of the {what}s failed", count
    elif not every:
        message, share = f"{units.count_noun(count, what)} failed; the total is unknown", None
    else:
        share = bad / requests
        message = f"{count:,.0f} of {units.count_noun(every, what)} failed ({units.format_percent(count / every)})"
        if retried > 0:
            message = f"{bad:,.0f} of {units.count_noun(requests, 'request')} failed ({units.format_percent(share)})"
            message += f", retries included; after retries, {count:,.0f} of {units.count_noun(every, what)} failed"
    severity = Severity.SUSPECT if share is None else Severity.NOTE
    if share is not None and share > settings.check_threshold(NAME, "share"):
        severity = Severity.INVALID
    has_kinds = prefix == MEASURED and not faults.has_fault(trial)
    if has_kinds and severity == Severity.NOTE and (kinds := [*list_failing_operations(trial)]):
        message, severity = f"{message}, among them {units.list_items(kinds)}", Severity.INVALID
    if (unsent := trial.value(f"{prefix}unsent.unreached")) and not faults.has_fault(trial):
        message = f"{message}, {unsent:,.0f} of them unsent: no server could be reached"
    hint = (
        "see the counts by operation and status; failed operations can finish early, "
        "so failures can make a system look faster"
    )
    # With a requested fault, the first failure is usually its result, not the cause of other failures.
    cause = first_failure(trial) if prefix == MEASURED and not faults.has_fault(trial) else ""
    if prefix == MEASURED and (missing := trial.value(MISSING)):
        cause = f"{describe_missing(trial, missing, count)}{cause}"
        hint = MISSING_COPY_HINT if wrote_all(trial) else MISSING_HINT
    effect = Effect(excludes=True)
    size = bad if share is None else share
    yield Finding(NAME, severity, f"{message}{cause}", hint, (trial.trial,), effect=effect, size=size)


def through_fault(trial: TrialResult) -> Iterator[Finding]:
    """A note on failures during a requested fault, with the system's message and the servers considered down."""
    if not (count := count_through_fault(trial)):
        return
    which = units.list_items([f"{fault.noun} of {units.list_items([*fault.servers])}" for fault in trial.faults])
    message = f"{units.count_noun(count, 'operation')} failed during the {which}{list_statuses(trial)}"
    hint = "no action needed: failures during a requested fault are its results"
    yield Finding(faults.FAILURES, Severity.NOTE, f"{message}{first_failure(trial)}", hint, (trial.trial,), size=count)


def list_statuses(trial: TrialResult) -> str:
    """The failures in the windows of a fault, by status, most frequent first: ` (4,731 timeout, 778 refused)`."""
    counts = Counter[str]()
    for window, (metric, value) in product(windows_of_fault(trial), trial.values.items()):
        if metric.startswith(prefix := f"{window}.failed."):
            counts[metric.removeprefix(prefix).replace("_", " ")] += int(value.value)
    return f" ({', '.join(f'{count:,} {status}' for status, count in counts.most_common() if count)})" if counts else ""


def describe_missing(trial: TrialResult, missing: float, count: float) -> str:
    """A clause on reads that found no row, and on partitions that the load wrote; `count`: failures in the window."""
    written = trial.value("partitions_written")
    reads = f"; {units.count_noun(missing, 'read')}{' (warm-up included)' if missing > count else ''} found no row"
    if wrote_all(trial):
        return f"{reads}, although the load wrote all {written:,.0f} partitions: the replicas that answered lack rows"
    return reads if written is None else f"{reads}: the load wrote only partitions 1 to {written:,.0f}"


def wrote_all(trial: TrialResult) -> bool:
    """Whether the load wrote every partition that reads may choose."""
    written, population = trial.value("partitions_written"), trial.value("partitions")
    return written is not None and population is not None and written >= population


def list_failing_operations(trial: TrialResult) -> Iterator[str]:
    """The operation types with a high share of failures, even if these failures are few compared with all
    operations."""
    for operation, counts in trial.statuses.items():
        every, bad = sum(counts.values()), count_failed(trial, operation.lower())
        if operation.lower() not in OUTSIDE_LOAD and every and bad / every > KIND_SHARE:
            yield f"{units.format_percent(bad / every)} of {operation} operations"


def find_unclosed_sessions(trial: TrialResult) -> Iterator[Finding]:
    """Findings on clients that did not close in a phase, so that their buffered writes were counted too early."""
    for prefix in PHASES:
        if clients := trial.value(f"{prefix}unclosed"):
            message = message_on_unclosed(int(clients), "of the load " if prefix == LOAD else "")
            here, effect = (trial.trial,), Effect(excludes=True)
            yield Finding(NAME, Severity.INVALID, message, UNCLOSED_HINT, here, effect=effect, size=clients)


def message_on_unclosed(clients: int, phase: str = "") -> str:
    """The message on clients that did not close; `phase` is `of the load ` or empty."""
    they = "it" if clients == 1 else "they"
    return f"{units.count_noun(clients, 'client')} {phase}did not close: writes that {they} buffered may be lost"


def first_failure(trial: TrialResult) -> str:
    """A clause with the system's message on the first failure, and the servers that were considered down, if any."""
    cause = next((note.message for note in trial.notes if note.name == NAME), "")
    events = next((f"; {note.message}" for note in trial.notes if note.name == SERVER_EVENTS), "")
    return "".join(cause.partition(FIRST)[1:]) + events


def count_through_fault(trial: TrialResult) -> float:
    """The number of operations that failed after a requested fault was ordered and before the system recovered (in a
    closed loop, before the window ended); 0 without a fault."""
    failed = (trial.value(f"{window}.failed") or 0 for window in windows_of_fault(trial))
    return sum(failed) if faults.has_fault(trial) else 0


def windows_of_fault(trial: TrialResult) -> tuple[str, str]:
    """The windows between a fault and the recovery; a closed loop has no recovery, so its last window counts."""
    return ("during", "returning" if trial.loop == "open" else "after")


def has_missing_reads(trial: TrialResult) -> bool:
    """Whether a finding on failures already states the reads that found no row."""
    return bool(trial.value(MISSING)) and bool(count_failed_operations(trial, MEASURED))


def quotes_servers(trial: TrialResult) -> bool:
    """Whether a finding on failures already names the servers that were considered down."""
    return bool(
        count_through_fault(trial) or (not faults.has_fault(trial) and count_failed_operations(trial, MEASURED))
    )


def has_error_counts(trial: TrialResult) -> bool:
    """Whether the trial has the figures that make the engine's note redundant."""
    return trial.value("errors") is not None or bool(trial.statuses)
