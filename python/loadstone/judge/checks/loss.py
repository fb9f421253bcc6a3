"""loss: whether acknowledged writes were lost in a fault, and whether the setting allows the loss.

Findings: `lost-writes`, `lost-as-allowed`, `stale`, `phantom`, `corrupt`. `count_losses` estimates the frequency
of losses over all repeats, since a single fault proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadstone.format import units, wording
from loadstone.judge.checks import faults, unverified
from loadstone.judge.finding import Finding, Looks, NotLooked, Severity
from loadstone.judge.guarantees import Guarantee, guarantee_of, reads_are_current
from loadstone.judge.settings import Settings
from loadstone.results.fault import NONE
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.availability import clopper_pearson

LOST, ALLOWED, STALE, PHANTOM, CORRUPT = "lost-writes", "lost-as-allowed", "stale", "phantom", "corrupt"
# Faults after which a node still has everything that it acknowledged.
REMEMBERING = frozenset({"pause", "cut", "slow", "full"})
FIRST = "ledger.stdout of the trial names the first case"
ROUNDING = 1e-9


def check_loss(trial: TrialResult, settings: Settings) -> Looks:
    """Findings on the ledger of a trial with faults."""
    if not trial.faults or not trial.values:
        return
    if trial.value("ledger.acknowledged") is None:
        yield NotLooked(LOST, "no ledger of writes was kept: set `measure: {ledger: true}`")
        return
    guarantee = guarantee_of(trial.facts, trial.faults)
    yield from find_lost_writes(trial, guarantee)
    if stale := trial.value("ledger.stale"):
        yield stale_finding(trial, stale)
    phantoms, acknowledged = trial.value("ledger.phantom"), trial.value("ledger.acknowledged") or 0
    if phantoms:
        message = units.count_noun(phantoms, *unverified.LOST["phantom"])
        hint = f"the system stored a write that it had refused or never received; {FIRST}"
        yield Finding(PHANTOM, Severity.INVALID, message, hint, (trial.trial,), size=phantoms)
    corrupt = sum(trial.value(f"ledger.{name}") or 0 for name in ("corrupt", "other_run"))
    if corrupt:
        message = (
            f"{units.count_noun(corrupt, *unverified.LOST['corrupt'])} (of {units.count_noun(acknowledged, 'write')})"
        )
        yield Finding(
            CORRUPT, Severity.INVALID, message, f"the system damaged data; {FIRST}", (trial.trial,), size=corrupt
        )


def find_lost_writes(trial: TrialResult, guarantee: Guarantee) -> Iterator[Finding]:
    """Findings on lost writes, according to the documented guarantee of the setting."""
    count, here = faults.count_lost_writes(trial), (trial.trial,)
    if not count:
        return
    acknowledged, oldest = trial.value("ledger.acknowledged") or 0, trial.value("ledger.oldest")
    later = trial.value("ledger.lost_later")
    age = describe_age(oldest, trial.value("ledger.oldest_max")) or "of unknown age"
    age = f"{later:,.0f} of them sent after the fault" if later else age
    writes, verb = units.count_noun(acknowledged, "acknowledged write"), "is" if count == 1 else "are"
    text = f"{count:,.0f} of {writes} {verb} lost, {age}"
    bound = f"; {guarantee.setting or 'the setting'} allows the loss of {describe_bound(guarantee)}"
    if guarantee.age_ns is None or (oldest is None and not later and 0 < guarantee.age_ns < math.inf):
        reason = "the guarantee of this setting is unknown" if guarantee.age_ns is None else "their age is unknown"
        hint = "docs/concepts/guarantees.md lists the known settings"
        yield Finding(LOST, Severity.UNCHECKED, f"{text}; {reason}", hint, here, size=count)
    elif later or (guarantee.age_ns < math.inf and (guarantee.age_ns == 0 or is_beyond(trial, guarantee.age_ns))):
        yield Finding(
            LOST, Severity.INVALID, text + bound, f"the system broke its guarantee; {FIRST}", here, size=count
        )
    else:
        hint = "if the loss is too high, use a stronger setting (see docs/concepts/guarantees.md)"
        yield Finding(ALLOWED, Severity.NOTE, text + bound, hint, here, size=count)


def describe_age(least_ns: float | None, most_ns: float | None) -> str:
    """The age of the oldest lost write when the fault was ordered: `the oldest between 48.8 and 53.6 ms old`.

    Earlier versions recorded only the lower bound. Bounds are rounded outwards. Empty without bounds.
    """
    if least_ns is None:
        return ""
    low, high = (
        units.format_duration(end) if end else "0 s" for end in (round_down(least_ns), -round_down(-(most_ns or 0)))
    )
    if most_ns is None:
        return f"the oldest at least {low} old"
    return f"the oldest {low if low == high else 'between ' + wording.join_ends(low, high, ' and ')} old"


def round_down(number: float) -> float:
    """A number rounded down to three significant digits."""
    digit = 10.0 ** (math.floor(math.log10(abs(number))) - 2) if number else 1.0
    return math.floor(number / digit + ROUNDING) * digit


def is_beyond(trial: TrialResult, age_ns: float) -> bool:
    """Whether a lost write is older than a bound; loaded records are older than any bound."""
    return bool(trial.value("ledger.lost_loaded")) or (trial.value("ledger.oldest") or 0) > age_ns


def describe_bound(guarantee: Guarantee) -> str:
    """A description of the writes that a guarantee allows to be lost."""
    if guarantee.age_ns is None or guarantee.age_ns == 0 or math.isinf(guarantee.age_ns):
        return {"none": "no write", "everything": "any write"}.get(guarantee.text, "an unknown number of writes")
    return f"the last {guarantee.text}"


def stale_finding(trial: TrialResult, stale: float) -> Finding:
    """A finding on writes that only the strongest consistency level returns; suspect if R + W > RF and
    no fault made a node forget writes."""
    writes = units.count_noun(stale, "acknowledged write is missing", "acknowledged writes are missing")
    text = f"{writes} at the workload's consistency level, but not at the strongest"
    remembered = all(fault.kind in REMEMBERING | {NONE} for fault in trial.faults)
    if reads_are_current(trial.facts) and remembered:
        message = f"{text}; its levels (R + W > RF) rule this out"
        return Finding(
            STALE, Severity.SUSPECT, message, f"the system broke its guarantee; {FIRST}", (trial.trial,), size=stale
        )
    hint = "read at a stronger level, or wait until hints are delivered"
    return Finding(STALE, Severity.NOTE, text, hint, (trial.trial,), size=stale)


@dataclass(frozen=True)
class Losses:
    """Losses over the repeats of one variant; `age` describes the oldest lost write, empty if unknown."""

    kind: str
    trials: int
    with_loss: int
    writes: tuple[int, ...]
    age: str
    # The trials that were counted.
    ledgers: tuple[TrialResult, ...]
    # The number of trials that broke the guarantee, and of trials for which this is unknown.
    broken: int
    unknown: int
    guarantee: Guarantee

    @property
    def probability(self) -> tuple[float, float]:
        """The 95 % interval for the probability of a loss per fault."""
        return clopper_pearson(self.with_loss, self.trials)

    @property
    def sentence(self) -> str:
        """The losses as text: `… in 3 of 20 kills, 1 to 19 writes each, … (…); probability …: 3–38 %`."""
        faults_text = units.count_noun(self.trials, self.kind)
        low, high = (units.short_percent(end).removesuffix(" %") for end in self.probability)
        if not self.with_loss:
            return (
                f"no acknowledged write lost in {faults_text} (probability of a loss per {self.kind}: at most {high} %)"
            )
        least, most = min(self.writes), max(self.writes)
        number = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        writes = f"{number} {'write' if most == 1 else 'writes'}{' each' if self.with_loss > 1 else ''}"
        age = f", {self.age}" if self.age else ""
        limit = f"up to {self.guarantee.text}" if math.isfinite(self.guarantee.age_ns or 0.0) else "any loss"
        verdict = f"the setting allows {limit}"
        if self.broken or self.unknown:
            verdict = "beyond the guarantee" if self.broken else "guarantee unknown"
        return (
            f"acknowledged writes lost in {self.with_loss} of {faults_text}, {writes}{age} ({verdict});"
            f" probability of a loss per {self.kind}: {low}–{high} % (95 % interval)"
        )


def count_losses(trials: Sequence[TrialResult], settings: Settings) -> Losses | None:
    """The losses of a variant's repeats; None if no repeat with a verified fault has a conclusive ledger."""
    counted = [trial for trial in trials if is_conclusive(trial, settings)]
    if not counted:
        return None
    every = [[*find_lost_writes(trial, guarantee_of(trial.facts, trial.faults))] for trial in counted]
    beyond = [finding for findings in every for finding in findings if finding.check == LOST]
    bounds = [
        max((age for trial in counted if (age := trial.value(name)) is not None), default=None)
        for name in ("ledger.oldest", "ledger.oldest_max")
    ]
    kinds = dict.fromkeys(fault.noun for trial in counted for fault in trial.faults)
    return Losses(
        kind=next(iter(kinds)) if len(kinds) == 1 else "fault",
        trials=len(counted),
        with_loss=sum(bool(faults.count_lost_writes(trial)) for trial in counted),
        writes=tuple(int(faults.count_lost_writes(trial)) for trial in counted if faults.count_lost_writes(trial)),
        age=describe_age(*bounds),
        ledgers=tuple(counted),
        broken=sum(finding.severity == Severity.INVALID for finding in beyond),
        unknown=sum(finding.severity == Severity.UNCHECKED for finding in beyond),
        guarantee=guarantee_of(counted[0].facts, counted[0].faults),
    )


def is_conclusive(trial: TrialResult, settings: Settings) -> bool:
    """Whether a trial's ledger is conclusive: its faults took place, and nearly all of its writes are proven or lost.

    A ledger is not conclusive if it has a gap, or if its checker missed a planted fault.
    """
    if not faults.has_fault(trial) or not trial.value("ledger.acknowledged"):
        return False
    failures = (item for fault in trial.faults if fault.kind != NONE for item in faults.check_fault(trial, fault))
    if not all(fault.is_verified for fault in trial.faults) or any(failures):
        return False
    gap = trial.value("ledger.unsettled") or trial.value("ledger.unsure") or trial.value("ledger.proved") == 0
    return not gap and unverified.unproven_reason(trial, settings) is None
