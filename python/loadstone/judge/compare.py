"""Comparing: each headline metric of each contender against the baseline of its context."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from loadstone.format import units
from loadstone.judge.checks import retried
from loadstone.judge.figures import family, is_latency
from loadstone.judge.finding import Finding, Pair, Severity, Verdict, verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, VariantKey
from loadstone.judge.pairing import Match
from loadstone.results.value import Direction, direction
from loadstone.statistics.comparison import ALPHA, Evidence, between, blocked, holm
from loadstone.statistics.estimate import Estimate

Findings = Mapping[VariantKey, Sequence[Finding]]


def compare(
    matches: Sequence[Match],
    metrics: Sequence[str],
    cells: Mapping[tuple[VariantKey, str], Cell],
    held: Findings,
    *,
    interleaved: bool,
    rank_invalid: bool,
) -> list[Comparison]:
    """All comparisons, with Holm's correction over those that were tested; `held` is what speaks against a variant."""
    found = [
        (match.pair, comparison)
        for metric in metrics
        for match in matches
        for comparison in compared(match, metric, cells, held, interleaved, rank_invalid)
    ]
    adjusted = holm([comparison.p for _, comparison in found])
    return [
        confirmed(replace(comparison, p_adjusted=p, claim=claimed(comparison, p)), pair, rank_invalid)
        for (pair, comparison), p in zip(found, adjusted, strict=True)
    ]


def confirmed(comparison: Comparison, pair: Pair, rank_invalid: bool) -> Comparison:
    """The same, refused where its claim falls once failed attempts count as the worst there is."""
    theirs, ours = retried.failures(pair.baselines), retried.failures(pair.contenders)
    if comparison.claim not in ("better", "worse") or not theirs + ours:
        return comparison
    sides = [(comparison.baseline, theirs), (comparison.contender, ours)]
    (worse, lost), (better, won) = sides if comparison.claim == "better" else reversed(sides)
    figures, others = ([value for _, value in cell.samples] for cell in (worse, better))
    if not retried.turns(figures, others, (lost, won), 0.0 if comparison.direction == "higher" else math.inf):
        return comparison
    message = (
        f"attempts failed: {theirs} of {pair.baseline}, {ours} of {pair.contender};"
        " counted as the worst, they leave no such difference"
    )
    finding = Finding(retried.NAME, Severity.INVALID, message, retried.HINT, pair.trials)
    claim: Claim = comparison.claim if rank_invalid else "refused"
    return replace(comparison, claim=claim, findings=(*comparison.findings, finding))


def compared(
    match: Match,
    metric: str,
    cells: Mapping[tuple[VariantKey, str], Cell],
    held: Findings,
    interleaved: bool,
    rank_invalid: bool,
) -> Iterator[Comparison]:
    """One comparison, its claim still open; none where a side has no such figure, or it is withheld."""
    if (match.baseline, metric) not in cells or (match.contender, metric) not in cells:
        return
    ours, theirs = cells[match.contender, metric], cells[match.baseline, metric]
    if ours.withheld or theirs.withheld:
        return
    against = [*match.findings, *held.get(match.baseline, ()), *held.get(match.contender, ())]
    findings = tuple(dict.fromkeys(finding for finding in against if concerns(finding, metric)))
    refused = verdict(findings) == Verdict.INVALID and not rank_invalid
    why = "; ".join(bounded(cell, match.pair.by) for cell in (theirs, ours) if cell.bound)
    evidence = tested(theirs, ours, interleaved) if not why else nothing(theirs, ours)
    way = direction(metric)
    claim: Claim = "impossible" if evidence.p is None else "none" if way else "told"
    claim = "refused" if refused else "unranked" if why else claim
    yield Comparison(
        metric,
        ours.unit,
        way,
        match.context,
        match.pair.by,
        theirs,
        ours,
        evidence.ratio,
        claim,
        # Where nothing can be claimed, a test would only make those of the family stricter.
        evidence.p if claim == "none" else None,
        test="" if why else f"{evidence.method}, n={evidence.n}",
        effect=evidence.effect,
        findings=findings,
        why=why,
    )


def bounded(cell: Cell, by: str) -> str:
    """Why a cell cannot be ranked."""
    name, last = dict(cell.variant).get(by, ""), family(cell.metric)[1]
    of = f" in {cell.bounded} of {units.many(len(cell.samples), 'repeat')}" if cell.bounded < len(cell.samples) else ""
    reason = "falls on failed operations" if cell.bound == "failed" else "is only a lower bound"
    return f"{last} of {name} {reason}{of}"


def nothing(baseline: Cell, contender: Cell) -> Evidence:
    """No test and no ratio: a bound is not a figure to reckon with."""
    n = min(len(baseline.samples), len(contender.samples))
    return Evidence(Estimate(math.nan, n), None, "none", n, None)


def tested(baseline: Cell, contender: Cell, interleaved: bool) -> Evidence:
    """Within blocks where variants took turns, else between runs."""
    if interleaved:
        return blocked(dict(baseline.samples), dict(contender.samples))
    return between([value for _, value in baseline.samples], [value for _, value in contender.samples])


def concerns(finding: Finding, metric: str) -> bool:
    """Whether a finding is about this metric; what is invalid taints all, unless it is about latencies alone."""
    if finding.latencies and not is_latency(metric):
        return False
    return finding.metric in ("", metric) or finding.severity == Severity.INVALID


def claimed(comparison: Comparison, p: float | None) -> Claim:
    """The claim that the corrected p allows."""
    if comparison.claim != "none" or p is None or p >= ALPHA:
        return comparison.claim
    return ranked(above(comparison), comparison.direction)


def above(comparison: Comparison) -> bool:
    """Whether the contender's figure is the higher one; medians tell where there is no ratio."""
    if comparison.ratio.value == comparison.ratio.value:
        return comparison.ratio.value > 1
    return comparison.contender.estimate.value > comparison.baseline.estimate.value


def ranked(higher: bool, way: Direction | None) -> Claim:
    """Better or worse, where either is."""
    if way is None:
        return "none"
    return "better" if higher == (way == "higher") else "worse"
