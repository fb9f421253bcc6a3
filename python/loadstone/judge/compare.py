"""Comparing: each headline metric of each contender against the baseline of its context."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from loadstone.format import units
from loadstone.judge.bounds import Doubts, Weighed, inside, weigh
from loadstone.judge.checks import errors, generator_limited, rate_not_held, retried
from loadstone.judge.checks.not_steady import Levels
from loadstone.judge.figures import family, is_latency, lower_name
from loadstone.judge.finding import Finding, Pair, Severity, Verdict, verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, VariantKey
from loadstone.judge.movements import Movements, noted
from loadstone.judge.pairing import Match
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import THROUGHPUT, Direction, direction
from loadstone.statistics.comparison import ALPHA, holm, least_p, repeats_for
from loadstone.statistics.estimate import REPEATS_MIN, Estimate

Findings = Mapping[VariantKey, Sequence[Finding]]
# The level of the interval by which two sides are found to be equivalent: two tests at 5 % (Schuirmann 1987).
ALIKE = 1 - 2 * ALPHA
# What can be wrong with single trials. A claim must then hold with and without these.
SINGLE = frozenset({errors.NAME, "clock", "lost-segment", "incomplete", "carried-over", generator_limited.NAME})


@dataclass(frozen=True)
class Tested:
    """A comparison whose claim is still open, with all that decides it."""

    comparison: Comparison
    pair: Pair
    # None where nothing is to be tested.
    weighed: Weighed | None = None
    # What was taken for chance.
    excused: Sequence[Finding] = ()


def compare(
    matches: Sequence[Match],
    metrics: Sequence[str],
    cells: Mapping[tuple[VariantKey, str], Cell],
    held: Findings,
    *,
    courses: Mapping[str, Levels],
    interleaved: bool,
    rank_invalid: bool,
    settings: Settings,
) -> list[Comparison]:
    """All comparisons; `held` are the findings against a variant, `courses` the levels within each trial.

    The first metric is confirmatory: its p are corrected after Holm over its own pairs. The others are exploratory:
    theirs are corrected over everything that was tested. A difference below what matters is of no interest.
    """
    found = [
        each
        for metric in metrics
        for match in matches
        for each in compared(match, metric, cells, held, interleaved, rank_invalid)
    ]
    first = metrics[0] if metrics else ""
    mine = [each.comparison.p if each.comparison.metric == first else None for each in found]
    tests = len([p for p in mine if p is not None]), len([each for each in found if each.comparison.p is not None])
    together = zip(holm(mine), holm([each.comparison.p for each in found]), strict=True)
    made = []
    for each, (own, overall) in zip(found, together, strict=True):
        confirmatory = each.comparison.metric == first
        comparison = replace(each.comparison, exploratory=not confirmatory, p_adjusted=own if confirmatory else overall)
        decided = decide(replace(each, comparison=comparison), settings.matters, tests[not confirmatory], interleaved)
        decided = confirmed(decided, each.pair, held, rank_invalid)
        if each.weighed is not None:
            alike = resolved(each.weighed.alike, comparison.baseline, comparison.contender)
            moved = Movements(each.pair, courses, repeats_of(each.pair, each.excused), alike, settings)
            decided = moved.disturbed(moved.shared(moved.outweighed(decided) if interleaved else decided))
        made.append(decided)
    return made


def turning(key: VariantKey, finding: Finding, comparisons: Sequence[Comparison]) -> Finding:
    """A finding on a trial of a variant; a note where it is one in every comparison that it concerns."""
    uses = [
        each
        for each in comparisons
        if key in (each.baseline.variant, each.contender.variant) and concerns(finding, each.metric)
    ]
    return noted(finding) if uses and all(noted(finding) in each.findings for each in uses) else finding


def confirmed(comparison: Comparison, pair: Pair, held: Findings, rank_invalid: bool) -> Comparison:
    """The same, refused where its claim falls once failed attempts and trials count as the worst possible."""
    if comparison.claim not in ("better", "worse", "same", "slight"):
        return comparison
    bad = [
        discarded(trials, held.get(cell.variant, ()), comparison.metric)
        for trials, cell in ((pair.baselines, comparison.baseline), (pair.contenders, comparison.contender))
    ]
    theirs, ours = retried.failures(pair.baselines) + len(bad[0]), retried.failures(pair.contenders) + len(bad[1])
    if not theirs + ours:
        return comparison
    message = f"attempts failed: {theirs} of {pair.baseline}, {ours} of {pair.contender}"
    if comparison.claim in ("same", "slight"):
        return replace(comparison, claim="none", why=message)
    known = [
        [value for repeat, value in cell.samples if repeat not in repeats]
        for cell, repeats in zip((comparison.baseline, comparison.contender), bad, strict=True)
    ]
    sides = [(known[0], theirs), (known[1], ours)]
    (figures, lost), (others, won) = sides if comparison.claim == "better" else reversed(sides)
    if not retried.turns(figures, others, (lost, won), 0.0 if comparison.direction == "higher" else math.inf):
        return comparison
    message += "; counted as the worst, they leave no such difference"
    finding = Finding(retried.NAME, Severity.INVALID, message, retried.HINT, pair.trials)
    claim: Claim = comparison.claim if rank_invalid else "refused"
    return replace(comparison, claim=claim, findings=(*comparison.findings, finding))


def discarded(trials: Sequence[TrialResult], findings: Sequence[Finding], metric: str) -> set[int]:
    """The repeats whose figures cannot be trusted. Failed operations are in the figures; failed trials have none."""
    bad = {
        trial
        for finding in findings
        if single(finding) and finding.check != errors.NAME and concerns(finding, metric)
        for trial in finding.trials
    }
    return {trial.repeat for trial in trials if trial.trial in bad and not trial.failed}


def single(finding: Finding) -> bool:
    """Whether a finding makes one trial invalid, and not the variant's other trials."""
    return (
        finding.severity == Severity.INVALID
        and finding.check in SINGLE
        and len(finding.trials) == 1
        and finding.understates == 1
    )


def compared(
    match: Match,
    metric: str,
    cells: Mapping[tuple[VariantKey, str], Cell],
    held: Findings,
    interleaved: bool,
    rank_invalid: bool,
) -> Iterator[Tested]:
    """One comparison, its claim still open; none where a side has no such figure, or it is withheld."""
    if (match.baseline, metric) not in cells or (match.contender, metric) not in cells:
        return
    ours, theirs = cells[match.contender, metric], cells[match.baseline, metric]
    if ours.withheld or theirs.withheld:
        return
    sides = [held.get(key, ()) for key in (match.baseline, match.contender)]
    against = [*match.findings, *sides[0], *sides[1]]
    every = [finding for finding in dict.fromkeys(against) if concerns(finding, metric)]
    excused = [finding for finding in every if finding.chance and finding.severity == Severity.NOTE]
    concerned = [finding for finding in every if finding not in excused]
    doubtful = weighable(concerned, match.pair)
    findings = tuple(
        replace(each, severity=min(each.severity, Severity.SUSPECT)) if each in doubtful else each for each in concerned
    )
    refused = verdict(findings) == Verdict.INVALID and not rank_invalid
    why = "; ".join(bounded(cell, match.pair.by) for cell in (theirs, ours) if cell.bound)
    way = direction(metric)
    made = Comparison(
        metric, ours.unit, way, match.context, match.pair.by, theirs, ours, no_ratio(theirs, ours), "refused", None
    )
    made = replace(made, findings=findings, why=why)
    if metric == THROUGHPUT:
        named = zip((match.pair.baseline, match.pair.contender), sides, strict=True)
        made = replace(made, capacity=tuple(str(name) for name, side in named if overloaded(side)))
    if why:
        yield Tested(replace(made, claim="refused" if refused else "unranked"), match.pair)
        return
    doubts = Doubts(
        factors(match.pair, metric, doubtful),
        lower(match, metric, cells),
        repeats_of(match.pair, filter(single, doubtful)),
        repeats_of(match.pair, excused),
    )
    weighed = weigh(theirs, ours, way, doubts, interleaved=interleaved, equal_level=ALIKE)
    evidence = weighed.robust
    claim: Claim = "impossible" if weighed.measured.p is None else "none" if way else "told"
    claim = "refused" if refused else claim
    made = replace(
        made,
        ratio=resolved(evidence.ratio, theirs, ours),
        claim=claim,
        # Where nothing can be claimed, a test would only make the family's correction stricter.
        p=evidence.p if claim == "none" else None,
        test=f"{evidence.method}, n={evidence.n}",
        effect=evidence.effect,
        bound=weighed.bound,
    )
    yield Tested(made, match.pair, weighed, excused)


def overloaded(findings: Sequence[Finding]) -> bool:
    """Whether a side did not hold the rate."""
    return any(finding.check == rate_not_held.NAME and finding.severity == Severity.INVALID for finding in findings)


def weighable(findings: Sequence[Finding], pair: Pair) -> list[Finding]:
    """Findings that are weighed: it is known by how far the figures are off, or which repeats to leave out."""
    biased = [finding for finding in findings if finding.understates > 1]
    sides = [{trial.trial for trial in trials} for trials in (pair.baselines, pair.contenders)]
    if all(any(math.isinf(each.understates) and side & set(each.trials) for each in biased) for side in sides):
        biased = [finding for finding in biased if math.isfinite(finding.understates)]
    alone = [finding for finding in findings if single(finding)]
    bad = repeats_of(pair, alone)
    left = [
        {trial.repeat for trial in trials if trial.values} - set(repeats)
        for trials, repeats in zip((pair.baselines, pair.contenders), bad, strict=True)
    ]
    return [*biased, *alone] if min(map(len, left)) >= REPEATS_MIN else biased


def repeats_of(pair: Pair, findings: Iterable[Finding]) -> tuple[set[int], set[int]]:
    """The repeats of either side that findings are about."""
    bad = {trial for finding in findings for trial in finding.trials}
    theirs, ours = (
        {trial.repeat for trial in trials if trial.trial in bad} for trials in (pair.baselines, pair.contenders)
    )
    return theirs, ours


def factors(pair: Pair, metric: str, findings: Sequence[Finding]) -> tuple[float, float]:
    """How many times faster than measured either side may be; both count once either has a finding."""
    accused = [finding for finding in findings if finding.understates > 1]
    found = []
    for trials in (pair.baselines, pair.contenders):
        ids = {trial.trial for trial in trials}
        own = [finding.understates for finding in accused if ids & set(finding.trials)]
        if accused and not is_latency(metric):
            own.append(generator_limited.understated(trials))
        found.append(max(own, default=1.0))
    return found[0], found[1]


def lower(match: Match, metric: str, cells: Mapping[tuple[VariantKey, str], Cell]) -> tuple[Cell | None, Cell | None]:
    """The lower bounds of a latency at a rate, on either side."""
    if not is_latency(metric):
        return None, None
    found = [cells.get((key, lower_name(metric))) for key in (match.baseline, match.contender)]
    known = [cell if cell is not None and not cell.bound else None for cell in found]
    return known[0], known[1]


def bounded(cell: Cell, by: str) -> str:
    """Why a cell cannot be ranked."""
    name, last = dict(cell.variant).get(by, ""), family(cell.metric)[1]
    of = f" in {cell.bounded} of {units.many(len(cell.samples), 'repeat')}" if cell.bounded < len(cell.samples) else ""
    reason = "falls on failed operations" if cell.bound == "failed" else "is only a lower bound"
    return f"{last} of {name} {reason}{of}"


def no_ratio(baseline: Cell, contender: Cell) -> Estimate:
    """A bound allows no ratio: it is not a figure to calculate with."""
    return Estimate(math.nan, min(len(baseline.samples), len(contender.samples)))


def resolved(ratio: Estimate, baseline: Cell, contender: Cell) -> Estimate:
    """A ratio's interval, widened by the steps in which both figures were read."""
    wider = (1 + baseline.resolution) * (1 + contender.resolution)
    if ratio.low is None or ratio.high is None or wider == 1:
        return ratio
    return replace(ratio, low=ratio.low / wider, high=ratio.high * wider)


def concerns(finding: Finding, metric: str) -> bool:
    """Whether a finding is about this metric; an invalid one affects all metrics, unless it names what it is about."""
    if finding.about == "latencies" and not is_latency(metric):
        return False
    if finding.about == "throughput" and family(metric)[1] != THROUGHPUT:
        return False
    return finding.metric in ("", metric) or finding.severity == Severity.INVALID


def decide(tested: Tested, matters: float, tests: int, interleaved: bool) -> Comparison:
    """The claim that evidence allows; `tests` is the size of the family after which p was corrected."""
    comparison, weighed = tested.comparison, tested.weighed
    if comparison.claim != "none" or weighed is None or comparison.p_adjusted is None:
        return comparison
    ratio = comparison.ratio
    apart = comparison.p_adjusted < ALPHA and excludes(ratio)
    alike = inside(resolved(weighed.alike, comparison.baseline, comparison.contender), matters)
    if apart and beyond(ratio, matters):
        return replace(comparison, claim=ranked(above(comparison), comparison.direction))
    if alike:
        return replace(comparison, claim="slight" if apart else "same")
    for evidence, excused in ((weighed.excusing, tested.excused), (weighed.measured, ())):
        if evidence is None or evidence.p is None or evidence.p * tests >= ALPHA:
            continue
        claimed = resolved(evidence.ratio, comparison.baseline, comparison.contender)
        if excludes(claimed) and beyond(claimed, matters):
            return turned(comparison, tested, claimed, excused)
    least = None if interleaved else least_p(len(comparison.baseline.samples), len(comparison.contender.samples))
    n = ratio.n
    if least is not None and least * tests >= ALPHA:
        enough = next(size for size in range(n, 1000) if least_p(size, size) * tests < ALPHA)
        why = f"n = {n} cannot decide {units.many(tests, 'test')}, n ≥ {enough} can"
        return replace(comparison, claim="impossible", why=why)
    return replace(comparison, why=needed(ratio, matters))


def turned(comparison: Comparison, tested: Tested, measured: Estimate, excused: Sequence[Finding]) -> Comparison:
    """A comparison that would claim something if its figures, or that the `excused` are chance, were beyond doubt."""
    ratio = comparison.ratio
    low, high = (units.times(end) if end else "0×" for end in (ratio.low or 0.0, ratio.high or 0.0))
    possible = (
        "the repeats that are left do not show it"
        if ratio.low is None
        else f"anything from {low} to {high} is possible"
    )
    message = (
        f"{comparison.metric} of {tested.pair.contender} is {units.times(measured.value)} that of"
        f" {tested.pair.baseline} as measured, but {possible}"
    )
    if excused:
        check = excused[0].check
        why = f"not shown without the repeats that have a note of {check}"
        hint = "repeat more often, or remove the cause of the notes"
        finding = Finding(check, Severity.SUSPECT, f"{message}; {why}", hint, tested.pair.trials, comparison.metric)
        return replace(comparison, claim="none", why=why, findings=(*comparison.findings, finding))
    names = [
        finding.check for finding in comparison.findings if finding.understates > 1 or finding.check in SINGLE
    ] or [generator_limited.NAME]
    hint = generator_limited.BOUNDS_HINT if names[0] == generator_limited.NAME else "see the trials' own findings"
    finding = Finding(names[0], Severity.INVALID, message, hint, tested.pair.trials, comparison.metric)
    return replace(comparison, claim="refused", findings=(*comparison.findings, finding))


def excludes(ratio: Estimate) -> bool:
    """Whether the interval excludes 1; where there is no ratio, p alone decides."""
    if math.isnan(ratio.value):
        return True
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def beyond(ratio: Estimate, matters: float) -> bool:
    """Whether a ratio is further from 1 than the least difference that matters."""
    if math.isnan(ratio.value):
        return True
    return ratio.value <= 0 or abs(math.log(ratio.value)) > math.log1p(matters)


def needed(ratio: Estimate, matters: float) -> str:
    """How many repeats would decide, if the ratio and spread seen are true; empty where that is unknown."""
    n = repeats_for(ratio, matters)
    if n is None:
        return ""
    return (
        "more than 1,000 repeats would be needed" if n > 1000 else f"about {max(n, ratio.n + 1):,} repeats would decide"
    )


def above(comparison: Comparison) -> bool:
    """Whether the contender's figure is the higher one; without a ratio, by the medians."""
    if comparison.ratio.value == comparison.ratio.value:
        return comparison.ratio.value > 1
    return comparison.contender.estimate.value > comparison.baseline.estimate.value


def ranked(higher: bool, way: Direction | None) -> Claim:
    """Better or worse, where either is."""
    if way is None:
        return "none"
    return "better" if higher == (way == "higher") else "worse"
