"""The claim that evidence allows: what a difference must show, and what overturns it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadstone.format import units, wording
from loadstone.judge.bounds import Weighed, inside
from loadstone.judge.checks import generator_limited, retried
from loadstone.judge.doubts import SINGLE, discarded
from loadstone.judge.finding import Finding, Pair, Severity
from loadstone.judge.judgement import Claim, Comparison, VariantKey
from loadstone.results.value import Direction
from loadstone.statistics.comparison import ALPHA, rank_sum_p, repeats_for
from loadstone.statistics.estimate import Estimate

Findings = Mapping[VariantKey, Sequence[Finding]]


@dataclass(frozen=True)
class Tested:
    """A comparison whose claim is still open, with all that decides it."""

    comparison: Comparison
    pair: Pair
    # None where nothing is to be tested.
    weighed: Weighed | None = None
    # What was taken for chance.
    excused: Sequence[Finding] = ()


def decide(tested: Tested, matters: float, tests: int, interleaved: bool) -> Comparison:
    """The claim that evidence allows; `tests` is the size of the family after which p was corrected."""
    comparison, weighed = tested.comparison, tested.weighed
    if comparison.claim != "none" or weighed is None or comparison.p_adjusted is None:
        return comparison
    ratio = comparison.ratio
    apart = comparison.p_adjusted < ALPHA and excludes(ratio)
    alike = inside(resolved(weighed.alike, comparison), matters)
    if apart and beyond(ratio, matters):
        return replace(comparison, claim=ranked(above(comparison), comparison.direction))
    if alike:
        return replace(comparison, claim="slight" if apart else "same")
    for evidence, excused in ((weighed.excusing, tested.excused), (weighed.measured, ())):
        if evidence is None or evidence.p is None or evidence.p * tests >= ALPHA:
            continue
        claimed = resolved(evidence.ratio, comparison)
        if excludes(claimed) and beyond(claimed, matters):
            return turned(comparison, tested, claimed, excused)
    # That both are equally fast may be their common limit, the load generator.
    measured, possible = (
        inside(resolved(each, comparison), matters) for each in (weighed.alike_measured, weighed.alike_factors)
    )
    if measured and not possible:
        return turned(comparison, tested, weighed.measured.ratio, ())
    n, sizes = ratio.n, (len(comparison.baseline.samples), len(comparison.contender.samples))
    # The smallest p that a rank test can have, whatever the repeats are.
    if not interleaved and rank_sum_p(0, *sizes) * tests >= ALPHA:
        enough = next(size for size in range(n, 1000) if rank_sum_p(0, size, size) * tests < ALPHA)
        why = f"n = {n} cannot decide {units.many(tests, 'test')}, n ≥ {enough} can"
        return replace(comparison, claim="impossible", why=why)
    return replace(comparison, why=needed(ratio, matters))


def turned(comparison: Comparison, tested: Tested, measured: Estimate, excused: Sequence[Finding]) -> Comparison:
    """A comparison that would claim something if its figures, or that the `excused` are chance, were beyond doubt."""
    ratio, pair, metric = comparison.ratio, tested.pair, comparison.metric
    low, high = (wording.short_change(end) if end else "0×" for end in (ratio.low or 0.0, ratio.high or 0.0))
    possible = f"anything from {low} {'upward' if ratio.high == math.inf else f'to {high}'} is possible"
    if ratio.low is None:
        possible = "the repeats that are left do not show it"
    change = f"{wording.short_change(measured.value)}{' than' if measured.value < 1 else ''}"
    message = f"{metric} of {pair.contender} is {change} that of {pair.baseline} as measured, but {possible}"
    if excused:
        check = excused[0].check
        why = f"not shown without the repeats that have a note of {check}"
        hint = "repeat more often, or remove the cause of the notes"
        finding = Finding(check, Severity.SUSPECT, f"{message}; {why}", hint, pair.trials, metric)
        return replace(comparison, claim="none", why=why, findings=(*comparison.findings, finding))
    cause = next((each for each in comparison.findings if each.understates > 1 or each.check in SINGLE), None)
    # Lateness that no finding is about still bounds latencies.
    check, hint = (cause.check, cause.hint) if cause else (generator_limited.NAME, generator_limited.BOUNDS_HINT)
    finding = Finding(check, Severity.INVALID, message, hint, pair.trials, metric)
    return replace(comparison, claim="refused", findings=(*comparison.findings, finding))


def confirmed(comparison: Comparison, pair: Pair, held: Findings, rank_invalid: bool) -> Comparison:
    """The same, refused where its claim falls once failed attempts and trials count as the worst possible."""
    if comparison.claim not in ("better", "worse", "same", "slight"):
        return comparison
    sides = []
    for trials, cell in ((pair.baselines, comparison.baseline), (pair.contenders, comparison.contender)):
        bad = discarded(trials, held.get(cell.variant, ()), comparison.metric)
        # A trial that failed after its window has figures: the worst one takes their place.
        without = bad | {trial.repeat for trial in trials if trial.failed}
        known = [value for repeat, value in cell.samples if repeat not in without]
        sides.append((known, retried.failures(trials) + len(bad)))
    (_, baseline_failures), (_, contender_failures) = sides
    if not baseline_failures + contender_failures:
        return comparison
    message = f"attempts failed: {baseline_failures} of {pair.baseline}, {contender_failures} of {pair.contender}"
    if comparison.claim in ("same", "slight"):
        return replace(comparison, claim="none", why=message)
    (figures, lost), (others, won) = sides if comparison.claim == "better" else reversed(sides)
    if not retried.turns(figures, others, (lost, won), 0.0 if comparison.direction == "higher" else math.inf):
        return comparison
    message += "; counted as the worst, they leave no such difference"
    finding = Finding(retried.NAME, Severity.INVALID, message, retried.HINT, pair.trials)
    claim: Claim = comparison.claim if rank_invalid else "refused"
    return replace(comparison, claim=claim, findings=(*comparison.findings, finding))


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


def resolved(ratio: Estimate, comparison: Comparison) -> Estimate:
    """A ratio's interval, widened by the steps in which both figures were read."""
    wider = (1 + comparison.baseline.resolution) * (1 + comparison.contender.resolution)
    if ratio.low is None or ratio.high is None or wider == 1:
        return ratio
    return replace(ratio, low=ratio.low / wider, high=ratio.high * wider)
