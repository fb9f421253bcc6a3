"""unverified: values read differ from values written, or were not compared as requested."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.format import units
from loadstone.judge.checks import faults
from loadstone.judge.figures import NO_FAILURES, OUTSIDE_LOAD, SUCCESSES, operation_share
from loadstone.judge.finding import Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult

NAME = "unverified"
REQUEST = "`measure: {verify: true}`"
REQUEST_OF_STATEMENTS = "`compare: true` for the statement (in a profile: `validate: true` for the query)"
WRITES = frozenset({"insert", "update", "delete", "write", "counter_write"})


def check_verification(trial: TrialResult, settings: Settings) -> Looks:
    """Finds wrong values, requested verification that is missing, and too many reads that cannot be judged.

    If a ledger proves nothing, the check could not run.
    """
    checked, wrong = count_verified(trial)
    yield from find_lost_writes(trial)
    if wrong:
        message = f"{wrong:,.0f} of {units.count_noun(checked, 'value')} read differed from the values written"
        hint = "the system lost or mixed up data, or another program wrote to it, so its speed means nothing"
        severity = Severity.INVALID
        if wrong <= faults.count_lost_reads(trial):
            # Only lost records were missing. A wrong value of an existing record is no loss.
            hint, severity = "the ledger accounts for the lost writes: see the check `loss`", Severity.NOTE
        yield Finding(NAME, severity, message, hint, (trial.trial,))
    elif has_only_writes(trial):
        if settings.verify:
            yield NotLooked(NAME, "nothing was read: `measure: {ledger: true}` accounts for writes")
    elif settings.verify and not has_coverage(trial, checked, settings):
        message = "`verify` was requested, but no value was verified"
        if checked:
            reads = units.count_noun(trial.value("read.count") or 0, "read")
            verb = "was" if checked == 1 else "were"
            message = f"`verify` was requested, but only {checked:,.0f} of {reads} {verb} verified"
        hint = "read with dataintegrity=true, or omit `verify`"
        yield Finding(NAME, Severity.INVALID, message, hint, (trial.trial,))
    elif not checked and trial.value("ledger.acknowledged") is None:
        setting = REQUEST_OF_STATEMENTS if trial.requested.get("work.generator") == "columns" else REQUEST
        yield NotLooked(NAME, f"values read were not compared with values written: set {setting}")
    if reason := unproven_reason(trial, settings):
        # The experiment requested the ledger, so the ledger's data should be there.
        yield NotLooked(NAME, reason, always_known=True)
    early = operation_share(trial, "not_yet")
    if early is not None and early > settings.check_threshold(NAME, "not_yet"):
        message = (
            f"{units.format_percent(early)} of the operations read records whose insert or delete was still in flight"
        )
        hint = "those reads cannot be judged right or wrong: raise insertlag, or use fewer clients"
        yield Finding(NAME, Severity.SUSPECT, message, hint, (trial.trial,))


# The possible findings of the read-back, with their descriptions in singular and plural.
LOST = {
    "lost": ("acknowledged write is lost", "acknowledged writes are lost"),
    "lost_loaded": ("loaded record is lost", "loaded records are lost"),
    "corrupt": (
        "field contains a value that no write of the trial wrote",
        "fields contain a value that no write of the trial wrote",
    ),
    "other_run": ("field contains a value from another run", "fields contain a value from another run"),
    "phantom": (
        "field contains a write that was refused or never sent",
        "fields contain a write that was refused or never sent",
    ),
    "missed": (
        "read found nothing, although another load generator's insert had been acknowledged before",
        "reads found nothing, although another load generator's insert had been acknowledged before",
    ),
}


def find_lost_writes(trial: TrialResult) -> Iterator[Finding]:
    """Findings on acknowledged writes that are missing according to the trial's ledger."""
    if trial.value("ledger.acknowledged") == 0:
        message = "the ledger has no acknowledged write: nothing can be lost, and nothing was checked"
        yield Finding(NAME, Severity.INVALID, message, "find out why the operations failed", (trial.trial,))
    # With faults, the check `loss` decides by the guarantee.
    names = {"missed": LOST["missed"]} if trial.faults else LOST
    losses = [
        units.count_noun(count, *meaning) for name, meaning in names.items() if (count := trial.value(f"ledger.{name}"))
    ]
    if losses:
        message = f"{'; '.join(losses)} (of {trial.value('ledger.acknowledged') or 0:,.0f} acknowledged)"
        hint = (
            "ledger.stdout of the trial names the first case; an embedded store whose clients update single fields"
            " needs `writeallfields: true`; any other system has lost the writes"
        )
        yield Finding(NAME, Severity.INVALID, message, hint, (trial.trial,))
    if trial.value("ledger.proved") == 0:
        message = "the checker of the ledger missed a fault that it had planted, or could not repair it"
        yield Finding(NAME, Severity.INVALID, message, "see ledger.stderr of the trial", (trial.trial,))
    unsure, unsettled = (trial.value(f"ledger.{name}") or 0 for name in ("unsure", "unsettled"))
    if unsure or unsettled:
        gaps = units.count_noun(unsure, "field"), units.count_noun(unsettled, "operation")
        message = f"the ledger has no evidence for {' and '.join(gaps)}"
        yield Finding(NAME, Severity.SUSPECT, message, "use a shorter window or a lower rate", (trial.trial,))


def unproven_reason(trial: TrialResult, settings: Settings) -> str | None:
    """The reason why the read-back of a ledger proves nothing; None if it is conclusive or absent."""
    if trial.value("ledger.settled") == 0:
        return "the servers had not replicated every write 5 minutes after the load: read back later"
    if undecided := trial.value("ledger.undecided"):
        missing = units.count_noun(undecided, "acknowledged write is missing", "acknowledged writes are missing")
        return f"{missing}, but not all replicas could be read"
    proven, limit = trial.value("ledger.proven"), settings.check_threshold(NAME, "proven")
    if proven is not None and proven < limit:
        share, acknowledged = units.format_percent(proven), trial.value("ledger.acknowledged") or 0
        return (
            f"only {share} of {acknowledged:,.0f} acknowledged writes could be "
            f"proven, less than {units.format_percent(limit)}"
        )
    return None


def has_only_writes(trial: TrialResult) -> bool:
    """Whether every operation was a write, so that there was no value to compare."""
    operations = {operation.lower() for operation in trial.statuses} - OUTSIDE_LOAD
    return bool(operations) and operations <= WRITES


def has_coverage(trial: TrialResult, checked: float, settings: Settings) -> bool:
    """Whether enough of the reads were verified to represent all of them."""
    reads = trial.value("read.count")
    return checked > 0 and (reads is None or checked >= settings.check_threshold(NAME, "coverage") * reads)


def count_verified(trial: TrialResult) -> tuple[float, float]:
    """The number of values checked, and of wrong values; without these figures, from the statuses of YCSB's VERIFY."""
    statuses = trial.statuses.get("VERIFY", {})
    checked = trial.value("verified")
    failed = sum(count for status, count in statuses.items() if status not in SUCCESSES)
    # A file that was replaced as a whole is wrong even without a comparison.
    wrong = max(trial.value("wrong") or 0.0, failed)
    if checked is None:
        checked = sum(statuses.values())
    if trial.faults and statuses:
        # YCSB counts a failed read as a wrong value, although the read returned no value. A missing record is wrong.
        reads = trial.statuses.get("READ", {})
        failed_reads = sum(count for status, count in reads.items() if status not in NO_FAILURES | {"NOT_FOUND"})
        return max(checked - failed_reads, 0), max(wrong - failed_reads, 0)
    return max(checked, wrong), wrong
