"""Comparisons of each contender with the baseline of its context, for each headline metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from loadstone.format import units
from loadstone.judge import drift, scenarios
from loadstone.judge.checks import attempts, errors, faults, rate
from loadstone.judge.checks.not_steady import Levels
from loadstone.judge.decision_table import (
    CLAIMS,
    Tested,
    apply_failures,
    combine_intervals,
    combine_scenarios,
    decide_claim,
    shift_ratio,
    widen_by_resolution,
)
from loadstone.judge.figures import split_metric
from loadstone.judge.finding import Finding, Pair, Severity, Verdict, concerns_metric, worst_verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, VariantKey, is_unanswered
from loadstone.judge.pairing import Match
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet
from loadstone.results.value import OF_FAULTS, THROUGHPUT, better_direction
from loadstone.statistics.comparison import adjust_holm
from loadstone.statistics.estimate import Estimate

BOUND_HINT = "compare a lower percentile or throughput, or repeat without the failures"
MOVED_HINT = "no action needed: no claim depends on this drift"


@dataclass(frozen=True)
class Comparer:
    """Compares the variants of a result set; differences that do not matter are not claimed."""

    cells: Mapping[tuple[VariantKey, str], Cell]
    # The findings that count against each variant.
    against: Mapping[VariantKey, Sequence[Finding]]
    # The levels within each trial, by trial id.
    time_series: Mapping[str, Levels]
    results: ResultSet
    rank_invalid: bool
    settings: Settings

    def compare_matches(self, matches: Sequence[Match], metrics: Sequence[str]) -> list[Comparison]:
        """All comparisons.

        The first metric is confirmatory: its p values are corrected by Holm's method over its own pairs. All further
        metrics are exploratory: their p values are corrected over all tests. The p values of metrics outside the
        recorded question are corrected over all measured metrics, as any of them could have been chosen.
        """
        every = (self.assess_match(match, metric) for metric in metrics for match in matches)
        open_tests = [tested for tested in every if tested is not None]
        first = metrics[0] if metrics else ""
        of_first = [tested.comparison.p if tested.comparison.metric == first else None for tested in open_tests]
        # Indexed by whether a comparison is exploratory.
        adjusted = adjust_holm(of_first), adjust_holm([tested.comparison.p for tested in open_tests])
        tests = [sum(p is not None for p in ps) for ps in adjusted]
        comparisons = []
        for at, tested in enumerate(open_tests):
            metric, p = tested.comparison.metric, tested.comparison.p
            chosen = metric not in self.results.confirmatory
            exploratory = metric != first or chosen
            corrected, count = adjusted[exploratory][at], tests[exploratory]
            if chosen and p is not None:
                count = max(
                    count, len(matches) * sum(better_direction(name) is not None for name in self.results.metrics)
                )
                corrected = min(1.0, p * count)
            comparison = replace(tested.comparison, exploratory=exploratory, p_adjusted=corrected)
            tested = replace(tested, comparison=comparison)
            comparison = decide_claim(tested, self.settings.matters, count)
            comparison = apply_failures(
                comparison, self.count_failures(comparison, tested.pair), tested.pair, self.rank_invalid
            )
            if comparison.claim == "unranked" and not exploratory:
                # There is no claim, because a figure that it needs is known only as a bound.
                finding = Finding(
                    errors.NAME, Severity.UNCHECKED, comparison.why, BOUND_HINT, tested.pair.trials, metric
                )
                comparison = replace(comparison, findings=(*comparison.findings, finding))
            comparisons.append(self.apply_drift(tested, comparison))
        return comparisons

    def assess_match(self, match: Match, metric: str) -> Tested | None:
        """One comparison whose claim is not decided yet; None if a side lacks the figure, or if the figure is
        withheld."""
        pair, keys = match.pair, (match.baseline, match.contender)
        baseline, contender = (self.cells.get((key, metric)) for key in keys)
        if baseline is None or contender is None or contender.withheld or baseline.withheld:
            return None
        if metric in OF_FAULTS and not any(faults.has_fault(trial) for side in pair.sides for trial in side):
            # Without a fault on either side, there is no outage to compare.
            return None
        sides = [self.against.get(key, ()) for key in keys]
        against = [*match.findings, *sides[0], *sides[1]]
        every = [finding for finding in dict.fromkeys(against) if concerns_metric(finding, metric)]
        disturbed = [finding for finding in every if finding.effect.disturbs and finding.severity == Severity.NOTE]
        concerned = [finding for finding in every if finding not in disturbed]
        doubtful = scenarios.find_covered(concerned, pair)
        findings = tuple(
            replace(
                finding, severity=min(finding.severity, Severity.SUSPECT if finding in doubtful else Severity.INVALID)
            )
            for finding in concerned
        )
        refused = worst_verdict(findings) == Verdict.INVALID and not self.rank_invalid
        way, named = better_direction(metric, contender.unit), zip((pair.baseline, pair.contender), sides, strict=True)
        comparison = Comparison(
            metric,
            contender.unit,
            way,
            match.context,
            pair.by,
            baseline,
            contender,
            # A ratio cannot be computed from a bound.
            ratio=Estimate(math.nan, min(len(baseline.samples), len(contender.samples))),
            claim="refused" if refused else "unranked",
            findings=findings,
            why="; ".join(bound_reason(cell, pair.by, self.cells) for cell in (baseline, contender) if cell.bound),
            capacity=tuple(str(name) for name, side in named if metric == THROUGHPUT and has_missed_rate(side)),
        )
        if comparison.why:
            return Tested(comparison, pair)
        lows = scenarios.lower_samples(keys, metric, self.cells)
        samples, n_unit = self.side_samples(pair, metric, baseline, contender)
        possible = scenarios.build_scenarios(pair, metric, samples, way, doubtful, disturbed, lows)
        weighed = [scenarios.evaluate_scenario(scenario, way, pair.blocks) for scenario in possible]
        (ratio, p, bound), measured = combine_scenarios(weighed), weighed[0].evidence
        claim: Claim = "impossible" if measured.p is None else "none" if way else "descriptive"
        claim = "refused" if refused else claim
        comparison = replace(
            comparison,
            ratio=widen_by_resolution(ratio, comparison),
            claim=claim,
            # If no claim is possible, a test would only make the correction of the other tests stricter.
            p=p if claim == "none" else None,
            test=f"{measured.method}, n={measured.n}",
            effect=measured.effect,
            bound=bound,
            why=missing_repeats_text(findings, pair) if refused else "",
            n_unit=n_unit,
        )
        return Tested(comparison, pair, weighed, disturbed)

    def side_samples(self, pair: Pair, metric: str, baseline: Cell, contender: Cell) -> tuple[scenarios.Sides, str]:
        """The samples of both sides and, between runs, their unit: `runs` or `repeats`.

        The samples are the repeats or, if both sides have several runs, the median of each run.
        """
        repeats = dict(baseline.samples), dict(contender.samples)
        if pair.is_one_run:
            return repeats, ""
        medians: list[dict[int, float]] = []
        for trials in pair.sides:
            runs: dict[str, list[float]] = {}
            for trial in trials:
                if (figure := trial.value(metric)) is not None:
                    runs.setdefault(self.results.run_of(trial.trial), []).append(figure)
            medians.append({at: median(figures) for at, figures in enumerate(runs.values(), 1)})
        return ((medians[0], medians[1]), "runs") if min(map(len, medians)) > 1 else (repeats, "repeats")

    def count_failures(self, comparison: Comparison, pair: Pair) -> list[tuple[list[float], int]]:
        """Each side's trustworthy figures, and its number of attempts and trials without a trustworthy figure."""
        sides = []
        for trials, cell in ((pair.baselines, comparison.baseline), (pair.contenders, comparison.contender)):
            bad = scenarios.find_discarded(trials, self.against.get(cell.variant, ()), comparison.metric)
            # The worst figure replaces the figures of a trial that failed after its window.
            excluded = bad | {trial.repeat for trial in trials if trial.is_failure}
            known = [value for repeat, value in cell.samples if repeat not in excluded]
            sides.append((known, attempts.count_failed_attempts(trials) + len(bad)))
        return sides

    def apply_drift(self, tested: Tested, comparison: Comparison) -> Comparison:
        """The comparison with the scenarios of drift and of unequal CPU time."""
        if comparison.claim not in CLAIMS or not tested.weighed:
            return comparison
        pair, metric = tested.pair, comparison.metric
        alike = widen_by_resolution(combine_intervals([weighed.alike for weighed in tested.weighed]), comparison)
        factor, drifting = drift.trial_drift(pair, metric, comparison.findings, self.time_series)
        causes: list[tuple[scenarios.Kind, float, Finding | None]] = [("drift", factor, None)] if drifting else []
        excluded = set.union(*scenarios.repeats_of(pair, tested.disturbed))
        if further := drift.ratio_drift(pair, metric, self.time_series, excluded, self.settings):
            causes.append(("drift", *further))
        causes += [("processors", *used) for used in drift.unequal_processors(pair, metric, self.settings)]
        possible = [comparison.ratio]
        for kind, factor, cause in causes:
            p, corrected = raise_p(comparison, tested, factor)
            comparison, stands = shift_ratio(comparison, kind, factor, alike, self.settings.matters, corrected)
            findings = comparison.findings
            if stands:
                possible.append(comparison.scenarios[-1].ratio)
                comparison = replace(comparison, p=p, p_adjusted=corrected)
            if cause is None and stands:
                findings = tuple(demote_finding(finding) if finding in drifting else finding for finding in findings)
            elif cause is not None and not stands:
                findings = (*findings, cause)
            comparison = replace(comparison, findings=findings)
        # The printed interval covers the interval of each row in which the claim holds.
        return replace(comparison, ratio=combine_intervals(possible))


def raise_p(comparison: Comparison, tested: Tested, factor: float) -> tuple[float | None, float | None]:
    """The p that a claimed difference would have, before and after correction, if the ratio were too extreme by
    `factor`."""
    scenario, p = tested.weighed[0].scenario, comparison.p
    if comparison.claim not in ("better", "worse") or p is None or math.isnan(comparison.ratio.value):
        return p, comparison.p_adjusted
    nearer = 1 / factor if comparison.ratio.value > 1 else factor
    contender = {repeat: figure * nearer for repeat, figure in scenario.sides[1].items()}
    shifted = replace(scenario, sides=(scenario.sides[0], contender))
    larger = scenarios.evaluate_scenario(shifted, comparison.direction, tested.pair.blocks).evidence.p
    if larger is None or larger <= p:
        return p, comparison.p_adjusted
    correction = comparison.p_adjusted / p if comparison.p_adjusted and p else 1.0
    return larger, min(1.0, larger * correction)


def demote_finding(finding: Finding) -> Finding:
    """The finding as a note, since its drift does not change any claim."""
    return replace(finding, severity=Severity.NOTE, hint=MOVED_HINT)


def settle_finding(key: VariantKey, finding: Finding, comparisons: Sequence[Comparison]) -> Finding:
    """A finding on a variant's trial, demoted to a note if its drift changes none of the claims that it concerns."""
    if finding.effect.drifts == 1:
        return finding
    sides = [
        comparison for comparison in comparisons if key in (comparison.baseline.variant, comparison.contender.variant)
    ]
    uses = [
        demote_finding(finding) in comparison.findings
        for comparison in sides
        if concerns_metric(finding, comparison.metric)
    ]
    return demote_finding(finding) if uses and all(uses) else finding


def has_missed_rate(findings: Sequence[Finding]) -> bool:
    """Whether a side missed the requested rate."""
    return any(finding.check == rate.RATE_NOT_HELD and finding.severity == Severity.INVALID for finding in findings)


def missing_repeats_text(findings: Sequence[Finding], pair: Pair) -> str:
    """The number of additional repeats that could decide a comparison without its invalid trials, as text; empty if
    other findings make the comparison invalid, or if a side always fails."""
    alone = [finding for finding in findings if scenarios.is_single(finding)]
    if worst_verdict([finding for finding in findings if finding not in alone]) == Verdict.INVALID:
        return ""
    bad = list(dict.fromkeys(trial for finding in alone for trial in finding.trials))
    sides = pair.ids
    if any(side <= set(bad) for side in sides):
        # More repeats do not help if a side always fails.
        return ""
    return (
        f"{units.count_noun(scenarios.missing_repeats(alone, pair), 'more repeat')} could "
        f"decide the comparison if {units.list_items(bad)} were excluded"
    )


def bound_reason(cell: Cell, by: str, cells: Mapping[tuple[VariantKey, str], Cell]) -> str:
    """The reason why a cell with a bound cannot be ranked."""
    name, last = dict(cell.variant).get(by, ""), split_metric(cell.metric)[1]
    of = (
        f" in {cell.bounded} of {units.count_noun(len(cell.samples), 'repeat')}"
        if cell.bounded < len(cell.samples)
        else ""
    )
    reason = "is only a lower bound"
    if cell.bound == "failed":
        fate = "were never answered" if is_unanswered(cells, cell) else "failed"
        reason = f"is unbounded, as too many operations {fate}"
    return f"{last} of {name} {reason}{of}"
