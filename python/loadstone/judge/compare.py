"""Comparing: each headline metric of each contender against the baseline of its context."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from loadstone.format import units
from loadstone.judge import drift
from loadstone.judge.checks import attempts, rate
from loadstone.judge.checks.not_steady import Levels
from loadstone.judge.claim import CLAIMS, Tested, count_failures, decide, overall, resolved, shift
from loadstone.judge.figures import family
from loadstone.judge.finding import Finding, Pair, Severity, Verdict, concerns, verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, VariantKey
from loadstone.judge.pairing import Match
from loadstone.judge.scenarios import (
    Sides,
    covered,
    discarded,
    is_single,
    lacking,
    lower_samples,
    repeats_of,
    scenarios,
    weigh,
)
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet
from loadstone.results.value import THROUGHPUT, direction
from loadstone.statistics.comparison import holm
from loadstone.statistics.estimate import Estimate

MOVED_HINT = "the figures moved by less than what separates the compared sides"


@dataclass(frozen=True)
class Comparer:
    """Compares the variants of a result set. A difference below what matters is of no interest."""

    cells: Mapping[tuple[VariantKey, str], Cell]
    # The findings against each variant.
    held: Mapping[VariantKey, Sequence[Finding]]
    # The levels within each trial.
    courses: Mapping[str, Levels]
    results: ResultSet
    rank_invalid: bool
    settings: Settings

    def compare(self, matches: Sequence[Match], metrics: Sequence[str]) -> list[Comparison]:
        """All comparisons.

        The first metric is confirmatory: its p are corrected after Holm over its own pairs. The others are exploratory:
        theirs are corrected over everything that was tested. Metrics that the recorded question does not have are
        corrected over all that were measured, as any of them could have been chosen.
        """
        every = [self.test(match, metric) for metric in metrics for match in matches]
        found = [each for each in every if each is not None]
        first = metrics[0] if metrics else ""
        of_first = [each.comparison.p if each.comparison.metric == first else None for each in found]
        # By whether a comparison is exploratory.
        adjusted = holm(of_first), holm([each.comparison.p for each in found])
        tests = [sum(p is not None for p in ps) for ps in adjusted]
        made = []
        for at, each in enumerate(found):
            metric, p = each.comparison.metric, each.comparison.p
            chosen = metric not in self.results.confirmatory
            exploratory = metric != first or chosen
            corrected, count = adjusted[exploratory][at], tests[exploratory]
            if chosen and p is not None:
                count = max(count, len(matches) * sum(direction(name) is not None for name in self.results.metrics))
                corrected = min(1.0, p * count)
            comparison = replace(each.comparison, exploratory=exploratory, p_adjusted=corrected)
            tested = replace(each, comparison=comparison)
            comparison = decide(tested, self.settings.matters, count)
            comparison = count_failures(comparison, self.failures(comparison, each.pair), each.pair, self.rank_invalid)
            made.append(self.drift(tested, comparison))
        return made

    def test(self, match: Match, metric: str) -> Tested | None:
        """One comparison, its claim still open; None where a side has no such figure, or it is withheld."""
        pair, keys = match.pair, (match.baseline, match.contender)
        baseline, contender = (self.cells.get((key, metric)) for key in keys)
        if baseline is None or contender is None or contender.withheld or baseline.withheld:
            return None
        sides = [self.held.get(key, ()) for key in keys]
        against = [*match.findings, *sides[0], *sides[1]]
        every = [finding for finding in dict.fromkeys(against) if concerns(finding, metric)]
        disturbed = [each for each in every if each.effect.disturbs and each.severity == Severity.NOTE]
        concerned = [finding for finding in every if finding not in disturbed]
        doubtful = covered(concerned, pair)
        findings = tuple(
            replace(each, severity=min(each.severity, Severity.SUSPECT if each in doubtful else Severity.INVALID))
            for each in concerned
        )
        refused = verdict(findings) == Verdict.INVALID and not self.rank_invalid
        way, named = direction(metric, contender.unit), zip((pair.baseline, pair.contender), sides, strict=True)
        made = Comparison(
            metric,
            contender.unit,
            way,
            match.context,
            pair.by,
            baseline,
            contender,
            # A bound allows no ratio: it is not a figure to calculate with.
            ratio=Estimate(math.nan, min(len(baseline.samples), len(contender.samples))),
            claim="refused" if refused else "unranked",
            findings=findings,
            why="; ".join(bounded(cell, pair.by) for cell in (baseline, contender) if cell.bound),
            capacity=tuple(str(name) for name, side in named if metric == THROUGHPUT and overloaded(side)),
        )
        if made.why:
            return Tested(made, pair)
        lows = lower_samples(keys, metric, self.cells)
        samples = self.samples(pair, metric, baseline, contender)
        possible = scenarios(pair, metric, samples, way, doubtful, disturbed, lows)
        weighed = [weigh(each, way, pair.blocks) for each in possible]
        (ratio, p, bound), measured = overall(weighed), weighed[0].evidence
        claim: Claim = "impossible" if measured.p is None else "none" if way else "descriptive"
        claim = "refused" if refused else claim
        made = replace(
            made,
            ratio=resolved(ratio, made),
            claim=claim,
            # Where nothing can be claimed, a test would only make the family's correction stricter.
            p=p if claim == "none" else None,
            test=f"{measured.method}, n={measured.n}",
            effect=measured.effect,
            bound=bound,
            why=decidable(findings, pair) if refused else "",
        )
        return Tested(made, pair, weighed, disturbed)

    def samples(self, pair: Pair, metric: str, baseline: Cell, contender: Cell) -> Sides:
        """The samples of both sides: the repeats, or where both have several runs, the median of each run."""
        repeats = dict(baseline.samples), dict(contender.samples)
        if pair.one_run:
            return repeats
        made: list[dict[int, float]] = []
        for trials in (pair.baselines, pair.contenders):
            runs: dict[str, list[float]] = {}
            for trial in trials:
                if (figure := trial.value(metric)) is not None:
                    runs.setdefault(self.results.run_of(trial.trial), []).append(figure)
            made.append({at: median(figures) for at, figures in enumerate(runs.values(), 1)})
        return (made[0], made[1]) if min(map(len, made)) > 1 else repeats

    def failures(self, comparison: Comparison, pair: Pair) -> list[tuple[list[float], int]]:
        """Each side's figures that can be trusted, and how many attempts and trials have none."""
        sides = []
        for trials, cell in ((pair.baselines, comparison.baseline), (pair.contenders, comparison.contender)):
            bad = discarded(trials, self.held.get(cell.variant, ()), comparison.metric)
            # A trial that failed after its window has figures: the worst one takes their place.
            left_out = bad | {trial.repeat for trial in trials if trial.failed}
            known = [value for repeat, value in cell.samples if repeat not in left_out]
            sides.append((known, attempts.failures(trials) + len(bad)))
        return sides

    def drift(self, tested: Tested, comparison: Comparison) -> Comparison:
        """The comparison with the scenarios of a drift and of unequal processors."""
        if comparison.claim not in CLAIMS or not tested.weighed:
            return comparison
        pair, metric, matters = tested.pair, comparison.metric, self.settings.matters
        alike = tested.weighed[0].alike
        if len(tested.weighed) > 1:
            ends = [each.alike for each in tested.weighed]
            known = all(each.low is not None for each in ends)
            low, high = (
                (min(each.low or 0 for each in ends), max(each.high or 0 for each in ends)) if known else (None, None)
            )
            alike = replace(alike, low=low, high=high)
        alike = resolved(alike, comparison)
        factor, moved = drift.trial_drift(pair, metric, comparison.findings, self.courses)
        if moved:
            comparison, held = shift(comparison, "drift", factor, alike, matters)
            if held:
                findings = tuple(note(each) if each in moved else each for each in comparison.findings)
                comparison = replace(comparison, findings=findings)
        baseline, contender = repeats_of(pair, tested.disturbed)
        further = drift.ratio_drift(pair, metric, self.courses, {*baseline, *contender}, self.settings)
        for kind, found in (
            *((("drift", further),) if further else ()),
            *(("processors", each) for each in drift.unequal_processors(pair, metric, self.settings)),
        ):
            comparison, held = shift(comparison, "drift" if kind == "drift" else "processors", found[0], alike, matters)
            if not held:
                comparison = replace(comparison, findings=(*comparison.findings, found[1]))
        return comparison


def note(finding: Finding) -> Finding:
    """A drift that turns no claim."""
    return replace(finding, severity=Severity.NOTE, hint=MOVED_HINT)


def settle(key: VariantKey, finding: Finding, comparisons: Sequence[Comparison]) -> Finding:
    """A finding on a trial of a variant: a note where it is a drift that turns no claim that it concerns."""
    if finding.effect.drifts == 1:
        return finding
    sides = [each for each in comparisons if key in (each.baseline.variant, each.contender.variant)]
    uses = [note(finding) in each.findings for each in sides if concerns(finding, each.metric)]
    return note(finding) if uses and all(uses) else finding


def overloaded(findings: Sequence[Finding]) -> bool:
    """Whether a side did not hold the rate."""
    return any(finding.check == rate.RATE_NOT_HELD and finding.severity == Severity.INVALID for finding in findings)


def decidable(findings: Sequence[Finding], pair: Pair) -> str:
    """Where only single trials make a comparison invalid: how many more repeats could decide without them."""
    alone = [finding for finding in findings if is_single(finding)]
    if verdict([finding for finding in findings if finding not in alone]) == Verdict.INVALID:
        return ""
    bad = list(dict.fromkeys(trial for finding in alone for trial in finding.trials))
    sides = [{trial.trial for trial in trials} for trials in (pair.baselines, pair.contenders)]
    if any(side <= set(bad) for side in sides):
        # More repeats of a side that always fails decide nothing.
        return ""
    return f"{units.many(lacking(alone, pair), 'more repeat')} could decide it if {units.listed(bad)} were left out"


def bounded(cell: Cell, by: str) -> str:
    """Why a cell cannot be ranked."""
    name, last = dict(cell.variant).get(by, ""), family(cell.metric)[1]
    of = f" in {cell.bounded} of {units.many(len(cell.samples), 'repeat')}" if cell.bounded < len(cell.samples) else ""
    reason = "falls on failed operations" if cell.bound == "failed" else "is only a lower bound"
    return f"{last} of {name} {reason}{of}"
