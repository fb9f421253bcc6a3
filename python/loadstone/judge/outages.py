"""Outage, recovery and losses of each variant with a fault, over its repeats and compared with its twin."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from loadstone.format import units, wording
from loadstone.judge.checks import errors, faults, loss
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judgement import VariantKey
from loadstone.judge.settings import Settings
from loadstone.results.fault import ENDING_SERVERS, borders_of
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import THROUGHPUT
from loadstone.statistics.estimate import Estimate
from loadstone.statistics.intervals import summarize_samples

# The maximum number of clauses in an answer.
CLAUSES_MAX = 4


@dataclass(frozen=True)
class Outage:
    """The figures of one variant with a fault, ns, from the trials whose faults took place as requested."""

    variant: VariantKey
    kind: str
    trials: tuple[TrialResult, ...]
    # The number of repeats that do not count.
    excluded: int
    twin: VariantKey | None
    # None if operations have no due times.
    outage: Estimate | None
    # The median difference from the twin in the same block, and the number of blocks.
    excess_ns: float | None
    blocks: int
    # The outages of the twin: operations that were late or failed without a fault.
    twin_outages_ns: tuple[float, ...]
    # The median throughput of the whole window, with the fault and in the twin, op/s; None if unknown.
    throughput: float | None
    twin_throughput: float | None
    # The recovery times of the repeats that recovered and were observed long enough.
    recovered_ns: tuple[float, ...]
    # The observation times of the repeats without a recovery.
    censored_ns: tuple[float, ...]
    losses: loss.Losses | None

    @property
    def has_recovered(self) -> bool:
        """Whether most repeats recovered, so that the median recovery time is known."""
        return len(self.recovered_ns) > len(self.censored_ns)

    @property
    def median_recovery_ns(self) -> float:
        """The median over all repeats; repeats without a recovery count as infinite."""
        every = sorted(self.recovered_ns) + [float("inf")] * len(self.censored_ns)
        return median(every)


def summarize_outages(
    variants: Mapping[VariantKey, Sequence[TrialResult]], findings: Mapping[str, Sequence[Finding]], settings: Settings
) -> list[Outage]:
    """The figures of each variant with a fault."""
    twins = {key: trials for key, trials in variants.items() if is_twin(trials)}
    return [
        summarize_outage(key, trials, find_twin(key, twins), twins, findings, settings)
        for key, trials in variants.items()
        if any(map(faults.has_fault, trials))
    ]


def is_twin(trials: Sequence[TrialResult]) -> bool:
    """Whether a variant is the twin: the variant without a fault in an experiment with faults."""
    return any(trial.faults for trial in trials) and not any(map(faults.has_fault, trials))


def find_twin(key: VariantKey, twins: Mapping[VariantKey, object]) -> VariantKey | None:
    """The fault-free variant that differs from this variant in only one dimension."""
    return next((twin for twin in twins if len(set(twin) - set(key)) == 1), None)


def is_evidence(
    trial: TrialResult, findings: Mapping[str, Sequence[Finding]], irrelevant: Collection[str] = ()
) -> bool:
    """Whether a trial counts: it has figures, and no check excludes it, apart from the `irrelevant` checks."""
    every = findings.get(trial.trial, ())
    return bool(trial.values) and not any(
        finding.effect.excludes and finding.severity == Severity.INVALID and finding.check not in irrelevant
        for finding in every
    )


def summarize_outage(
    key: VariantKey,
    trials: Sequence[TrialResult],
    twin: VariantKey | None,
    twins: Mapping[VariantKey, Sequence[TrialResult]],
    findings: Mapping[str, Sequence[Finding]],
    settings: Settings,
) -> Outage:
    """The figures of one variant."""
    counted = tuple(trial for trial in trials if is_evidence(trial, findings))
    outages = [value for trial in counted if (value := trial.value("outage")) is not None]
    twin_trials = [trial for trial in (twins[twin] if twin is not None else ()) if is_evidence(trial, findings)]
    undisturbed = {trial.repeat: value for trial in twin_trials if (value := trial.value("outage")) is not None}
    differences = [
        value - undisturbed[trial.repeat]
        for trial in counted
        if (value := trial.value("outage")) is not None and trial.repeat in undisturbed
    ]
    recovered, censored = split_recoveries(counted)
    kinds = dict.fromkeys(fault.kind for trial in trials for fault in trial.faults)
    return Outage(
        variant=key,
        kind=units.join_names([*kinds]),
        trials=counted,
        excluded=len(trials) - len(counted),
        twin=twin,
        outage=summarize_samples(outages) if outages else None,
        excess_ns=median(differences) if differences else None,
        blocks=len(differences),
        twin_outages_ns=tuple(undisturbed.values()),
        throughput=median_throughput(counted),
        twin_throughput=median_throughput(twin_trials),
        recovered_ns=tuple(recovered),
        censored_ns=tuple(censored),
        # Counting lost writes does not require a steady level before the fault.
        losses=loss.count_losses(
            [trial for trial in trials if is_evidence(trial, findings, {faults.UNSTEADY})], settings
        ),
    )


def median_throughput(trials: Sequence[TrialResult]) -> float | None:
    """The median throughput of some trials, op/s; None if none of them has a throughput."""
    rates = [rate for trial in trials if (rate := trial.value(THROUGHPUT)) is not None]
    return median(rates) if rates else None


def split_recoveries(trials: Sequence[TrialResult]) -> tuple[list[float], list[float]]:
    """The recovery times, and the observation times of trials without a recovery, ns.

    A recovery that was not observed for long enough does not count as a recovery.
    """
    recovered, censored = list[float](), list[float]()
    for trial in trials:
        figure, kept_ns = trial.values.get("recovered"), trial.value("recovered.held") or 0.0
        if figure is None:
            continue
        if figure.bound is None and kept_ns >= (trial.value("recovered.hold") or 0.0):
            recovered.append(float(figure.value))
        else:
            censored.append(figure.value + (kept_ns if figure.bound is None else 0.0))
    return recovered, censored


def outage_text(outage: Outage) -> str:
    """The outage as text, `8.02 s (95 % interval 7.90 to 8.11 s, n=6)`, or the reason why it is unknown."""
    estimate = outage.outage
    if estimate is None:
        return "unknown" if outage.trials else "unknown, because all repeats were excluded"
    figure = wording.estimate_text(estimate, "ns", None)
    if estimate.low is None or estimate.high is None or estimate.level is None:
        return f"{figure} (n={estimate.n}: no interval)"
    if estimate.high - estimate.low <= 1:
        return f"{units.format_duration(estimate.value)} (n={estimate.n}, all equal)"
    # An outage is never negative.
    ends = wording.span_text(max(estimate.low, 0.0), estimate.high, "ns", wording.last_digit(estimate), " to ")
    return f"{figure} ({estimate.level * 100:.3g} % interval {ends}, n={estimate.n})"


def recovery_text(outage: Outage) -> str:
    """The recovery as text: `recovered 12.0 s after the order to restart the server (median, 6 of 6)`.

    Without a recovery: `not recovered within 9 s in 1 of 6`. Empty if no repeat was observed long enough.
    """
    total = len(outage.recovered_ns) + len(outage.censored_ns)
    if not total:
        return ""
    parts, order = [], f"the order to {'restart the server' if is_restarted(outage) else 'lift the fault'}"
    if outage.recovered_ns:
        count = f"{len(outage.recovered_ns)} of {total}"
        later = [after_ns for after_ns in outage.recovered_ns if after_ns]
        if outage.has_recovered and outage.median_recovery_ns:
            time = units.format_duration(outage.median_recovery_ns)
            parts.append(f"recovered {time} after {order} (median, {count})")
        elif not later:
            parts.append(f"recovered before {order} ({count})")
        else:
            ends = " to ".join(dict.fromkeys(units.format_duration(end) for end in (min(later), max(later))))
            if early := len(outage.recovered_ns) - len(later):
                parts.append(f"recovered before {order} in {early} of {total}")
            after = "that order" if parts else order
            parts.append(f"{'' if parts else 'recovered '}{ends} after {after} in {len(later)} of {total}")
    if outage.censored_ns:
        limit = units.format_duration(min(outage.censored_ns))
        parts.append(f"not {'' if parts else 'recovered '}within {limit} in {len(outage.censored_ns)} of {total}")
    return ", ".join(parts)


def trials_with_ranges(outage: Outage) -> list[TrialResult]:
    """The trials with figures of key ranges."""
    return [trial for trial in outage.trials if "range.interrupted" in trial.values]


def ranges_text(outage: Outage) -> tuple[str, str]:
    """Two texts with medians: the number of interrupted key ranges, as in `1 of 3`; and their share of the keys, with
    the largest outage of a range. Both texts are empty if the ranges are unknown."""
    trials = trials_with_ranges(outage)
    if not trials:
        return "", ""
    interrupted, affected, outage_ns = (
        median(trial.values[f"range.{name}"].value for trial in trials)
        for name in ("interrupted", "affected", "outage")
    )
    every = median(trial.values["range.interrupted"].n for trial in trials)
    bound = "at least " if any(trial.values["range.affected"].bound for trial in trials) else ""
    worst = units.format_duration(outage_ns) if outage_ns else "0 s"
    share = f"{bound}{units.format_percent(affected)} of the keys"
    return f"{interrupted:g} of {every:g}", f"{share}; largest outage of a range: {worst}"


def throughput_text(outage: Outage) -> str:
    """The throughput of a closed loop during the fault, as text; empty at a rate."""
    shares = [share for trial in outage.trials if (share := trial.value("during.throughput_share")) is not None]
    gaps = [gap for trial in outage.trials if (gap := trial.value("longest_gap")) is not None]
    if not shares or outage.outage is not None:
        return ""
    longest = f", longest gap {units.format_duration(median(gaps))}" if gaps else ""
    if gaps and max(gaps) > median(gaps):
        longest += f" in the median and {units.format_duration(max(gaps))} at worst"
    whole = ""
    if outage.throughput is not None and outage.twin_throughput is not None:
        rates = [
            units.format_figure(rate, "op/s", units.digit_carried(rate, rate))
            for rate in (outage.throughput, outage.twin_throughput)
        ]
        whole = f"; over the whole window {rates[0]}, without the fault {rates[1]}"
    rising = ", which was still rising" if median(shares) > 1 else ""
    return (
        f"throughput during the fault is {units.format_percent(median(shares))} of the throughput before it{rising}"
        f" (n={len(shares)}{longest}; closed loop: stalls count once per client, so there is no outage in seconds)"
        f"{whole}"
    )


def outage_clause(outage: Outage, names: Mapping[VariantKey, str]) -> str:
    """The answer for one variant."""
    name = names.get(outage.variant, "")
    figures = throughput_text(outage) or f"outage {outage_text(outage)}"
    if outage.excess_ns is not None and outage.outage is not None:
        difference = f"{units.format_duration(abs(outage.excess_ns))} {'more' if outage.excess_ns >= 0 else 'less'}"
        pairs = "the" if outage.blocks == outage.outage.n else str(outage.blocks)
        figures += (
            f", without the fault {units.format_duration(median(outage.twin_outages_ns))} "
            f"({difference}, median of {pairs} {'difference' if outage.blocks == 1 else 'differences'})"
            if any(outage.twin_outages_ns)
            else ", none without the fault"
        )
    count, extent = ranges_text(outage)
    ranges = f"{count} key ranges interrupted ({extent})" if count else ""
    has_ledger = any("ledger.acknowledged" in trial.values for trial in outage.trials)
    unknown = "unknown: the ledger is inconclusive" if has_ledger or not outage.trials else "not measured: no ledger"
    losses = outage.losses.sentence if outage.losses is not None else f"losses {unknown}"
    parts = [part for part in (figures, ranges, recovery_text(outage), losses) if part]
    counted = f" ({units.count_noun(outage.excluded, 'repeat')} excluded)" if outage.excluded else ""
    return f"{name or outage.kind}{lift_text(outage)}: {'; '.join(parts)}{counted}"


def lift_text(outage: Outage) -> str:
    """The time after which the fault was lifted: ` (restarted after 5.00 s)`; empty for a fault that was not lifted."""
    borders = [borders_of(trial.faults) for trial in outage.trials if trial.faults]
    lengths = sorted(lift_ns - order_ns for order_ns, lift_ns in borders if lift_ns is not None)
    if not lengths:
        return ""
    ends = dict.fromkeys(units.format_duration(length) for length in (lengths[0], lengths[-1]))
    return f" ({'restarted' if is_restarted(outage) else 'lifted'} after {' to '.join(ends)})"


def is_restarted(outage: Outage) -> bool:
    """Whether the end of the fault is a restart of its victim."""
    return {fault.kind for trial in outage.trials for fault in trial.faults} <= ENDING_SERVERS


def describe_failures(findings: Iterable[Finding]) -> Iterator[str]:
    """The failures during a fault in the worst trial, preferably one with servers considered down."""
    failures = [finding for finding in findings if finding.check == faults.FAILURES]
    if failures:
        worst = max(failures, key=lambda finding: (errors.DOWN in finding.message, finding.size))
        yield f"in {worst.trials[0]}, {worst.message}"


def name_variants(outages: Sequence[Outage]) -> dict[VariantKey, str]:
    """A name for each variant, from the dimensions in which the variants differ."""
    varying = [pair for outage in outages for pair in outage.variant]
    names = {name for name, _ in varying if len({value for other, value in varying if other == name}) > 1}
    return {
        outage.variant: ", ".join([*(f"{name}={value}" for name, value in outage.variant if name in names)])
        for outage in outages
    }


def outage_clauses(outages: Sequence[Outage]) -> Iterator[str]:
    """The answer for each variant, up to `CLAUSES_MAX`."""
    names = name_variants(outages)
    yield from (outage_clause(outage, names) for outage in outages[:CLAUSES_MAX])
    if len(outages) > CLAUSES_MAX:
        yield f"{units.count_noun(len(outages) - CLAUSES_MAX, 'more variant')} in the table of faults"
