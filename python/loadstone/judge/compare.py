"""Comparing: each headline metric of each contender against the baseline of its context."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadstone.format import units
from loadstone.judge.bounds import weigh
from loadstone.judge.checks.not_steady import Levels
from loadstone.judge.claims import Findings, Tested, confirmed, decide, resolved
from loadstone.judge.doubts import concerns, factors, lacking, lower, overloaded, repeats_of, single, weighable
from loadstone.judge.figures import family
from loadstone.judge.finding import Finding, Pair, Severity, Verdict, verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, VariantKey
from loadstone.judge.movements import Movements, noted
from loadstone.judge.pairing import Match
from loadstone.judge.settings import Settings
from loadstone.results.value import THROUGHPUT, direction
from loadstone.statistics.comparison import holm
from loadstone.statistics.estimate import Estimate


@dataclass(frozen=True)
class Comparer:
    """Compares the variants of a result set. A difference below what matters is of no interest."""

    cells: Mapping[tuple[VariantKey, str], Cell]
    # The findings against each variant.
    held: Findings
    # The levels within each trial.
    courses: Mapping[str, Levels]
    interleaved: bool
    rank_invalid: bool
    settings: Settings

    def compare(self, matches: Sequence[Match], metrics: Sequence[str]) -> list[Comparison]:
        """All comparisons.

        The first metric is confirmatory: its p are corrected after Holm over its own pairs. The others are exploratory:
        theirs are corrected over everything that was tested.
        """
        every = [self.compared(match, metric) for metric in metrics for match in matches]
        found = [each for each in every if each is not None]
        first = metrics[0] if metrics else ""
        of_first = [each.comparison.p if each.comparison.metric == first else None for each in found]
        # By whether a comparison is exploratory.
        adjusted = holm(of_first), holm([each.comparison.p for each in found])
        tests = [sum(p is not None for p in ps) for ps in adjusted]
        made = []
        for at, each in enumerate(found):
            exploratory = each.comparison.metric != first
            comparison = replace(each.comparison, exploratory=exploratory, p_adjusted=adjusted[exploratory][at])
            tested = replace(each, comparison=comparison)
            decided = decide(tested, self.settings.matters, tests[exploratory], self.interleaved)
            decided = confirmed(decided, each.pair, self.held, self.rank_invalid)
            if each.weighed is not None:
                alike = resolved(each.weighed.alike, comparison)
                moved = Movements(each.pair, self.courses, repeats_of(each.pair, each.excused), alike, self.settings)
                decided = moved.disturbed(moved.shared(moved.outweighed(decided)))
            made.append(decided)
        return made

    def compared(self, match: Match, metric: str) -> Tested | None:
        """One comparison, its claim still open; None where a side has no such figure, or it is withheld."""
        baseline, contender = self.cells.get((match.baseline, metric)), self.cells.get((match.contender, metric))
        if baseline is None or contender is None or contender.withheld or baseline.withheld:
            return None
        sides = [self.held.get(key, ()) for key in (match.baseline, match.contender)]
        against = [*match.findings, *sides[0], *sides[1]]
        every = [finding for finding in dict.fromkeys(against) if concerns(finding, metric)]
        excused = [finding for finding in every if finding.chance and finding.severity == Severity.NOTE]
        concerned = [finding for finding in every if finding not in excused]
        doubtful = weighable(concerned, match.pair)
        findings = tuple(
            replace(each, severity=min(each.severity, Severity.SUSPECT if each in doubtful else Severity.INVALID))
            for each in concerned
        )
        refused = verdict(findings) == Verdict.INVALID and not self.rank_invalid
        way, named = direction(metric), zip((match.pair.baseline, match.pair.contender), sides, strict=True)
        made = Comparison(
            metric,
            contender.unit,
            way,
            match.context,
            match.pair.by,
            baseline,
            contender,
            # A bound allows no ratio: it is not a figure to calculate with.
            ratio=Estimate(math.nan, min(len(baseline.samples), len(contender.samples))),
            claim="refused" if refused else "unranked",
            findings=findings,
            why="; ".join(bounded(cell, match.pair.by) for cell in (baseline, contender) if cell.bound),
            capacity=tuple(str(name) for name, side in named if metric == THROUGHPUT and overloaded(side)),
        )
        if made.why:
            return Tested(made, match.pair)
        weighed = weigh(
            (dict(baseline.samples), dict(contender.samples)),
            way,
            factors(match.pair, metric, doubtful),
            lower(match, metric, self.cells),
            repeats_of(match.pair, filter(single, doubtful)),
            repeats_of(match.pair, excused),
            self.interleaved,
        )
        evidence = weighed.robust
        claim: Claim = "impossible" if weighed.measured.p is None else "none" if way else "descriptive"
        claim = "refused" if refused else claim
        made = replace(
            made,
            ratio=resolved(evidence.ratio, made),
            claim=claim,
            # Where nothing can be claimed, a test would only make the family's correction stricter.
            p=evidence.p if claim == "none" else None,
            test=f"{evidence.method}, n={evidence.n}",
            effect=evidence.effect,
            bound=weighed.bound,
            why=decidable(findings, match.pair) if refused else "",
        )
        return Tested(made, match.pair, weighed, excused)


def turning(key: VariantKey, finding: Finding, comparisons: Sequence[Comparison]) -> Finding:
    """A finding on a trial of a variant; a note where it is a movement that turns no claim that it concerns."""
    if finding.moves == 1:
        return finding
    sides = [each for each in comparisons if key in (each.baseline.variant, each.contender.variant)]
    uses = [noted(finding) in each.findings for each in sides if concerns(finding, each.metric)]
    return noted(finding) if uses and all(uses) else finding


def decidable(findings: Sequence[Finding], pair: Pair) -> str:
    """Where only single trials make a comparison invalid: how many more repeats could decide without them."""
    alone = [finding for finding in findings if single(finding)]
    if verdict([finding for finding in findings if finding not in alone]) == Verdict.INVALID:
        return ""
    trials = units.listed(list(dict.fromkeys(trial for finding in alone for trial in finding.trials)))
    return f"{units.many(lacking(alone, pair), 'more repeat')} could decide it if {trials} were left out"


def bounded(cell: Cell, by: str) -> str:
    """Why a cell cannot be ranked."""
    name, last = dict(cell.variant).get(by, ""), family(cell.metric)[1]
    of = f" in {cell.bounded} of {units.many(len(cell.samples), 'repeat')}" if cell.bounded < len(cell.samples) else ""
    reason = "falls on failed operations" if cell.bound == "failed" else "is only a lower bound"
    return f"{last} of {name} {reason}{of}"
