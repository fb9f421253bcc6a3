"""The claim: the decision table, applied to the evidence of all scenarios.

`decide_claim` applies the scenarios of every comparison. If a claim results, `apply_failures` and `shift_ratio` (for
drift and unequal CPU use) apply further scenarios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadstone.format import units, wording
from loadstone.judge.checks import attempts, rate
from loadstone.judge.finding import Finding, Pair, Severity
from loadstone.judge.judgement import Claim, Comparison, ScenarioRow
from loadstone.judge.scenarios import Kind, Scenario, Weighed
from loadstone.results.value import Direction
from loadstone.statistics.comparison import ALPHA, POWER, detectable_difference, half_width, rank_sum_p, repeats_for
from loadstone.statistics.distributions import student_quantile
from loadstone.statistics.estimate import Estimate

CLAIMS = ("better", "worse", "same", "slight")
# Ratios that differ by less than this share count as equal: histograms have three significant digits.
RESOLUTION = 0.001
# The maximum number of excluded repeats that a scenario names.
EXCLUDED_MAX = 4


@dataclass(frozen=True)
class Lost:
    """The consequence for the claim and for the verdict if the claim does not hold in a scenario."""

    name: str
    # The claims that replace a claim of a difference and a claim of equality; None: the claim is kept.
    difference: Claim | None
    equality: Claim | None
    severity: Severity

    @property
    def cause(self) -> str:
        """The cause of the scenario, as a noun."""
        return self.name.removeprefix("without ")


# The decision table. The evidence as measured may allow a claim, which is valid if it holds in every scenario.
TABLE: dict[Kind, Lost] = {
    "measured": Lost("as measured", None, None, Severity.NOTE),
    # The load generator was at fault, or trials are invalid: nothing is known about the systems.
    "own-time": Lost("without the generator's time", "refused", "refused", Severity.INVALID),
    "lateness": Lost("without the generator's lateness", "refused", "none", Severity.INVALID),
    "valid": Lost("without invalid trials", "refused", "none", Severity.INVALID),
    "failures": Lost("failures as the worst figure", "refused", "none", Severity.INVALID),
    # As far as is known, chance disturbed the trials: more repeats can decide.
    "clean": Lost("without disturbed trials", "none", "none", Severity.SUSPECT),
    # The claim as measured is kept, but readers may dispute it.
    "drift": Lost("drift at either extreme", None, None, Severity.SUSPECT),
    "processors": Lost("less CPU on one side", None, None, Severity.SUSPECT),
}


# The alternatives that concern one side only, as worded in a refusal.
ONE_SIDED: dict[Kind, str] = {
    "own-time": "if the generator slowed only one side",
    "lateness": "if the generator was late on only one side",
}


@dataclass(frozen=True)
class Tested:
    """A comparison whose claim is still open, with everything that decides it."""

    comparison: Comparison
    pair: Pair
    # The scenarios with their evidence; empty without a test.
    weighed: Sequence[Weighed] = ()
    # The findings behind the scenario `clean`.
    disturbed: Sequence[Finding] = ()


def decide_claim(tested: Tested, matters: float, tests: int) -> Comparison:
    """The comparison with the claim that its evidence allows; p is corrected for this number of `tests`.

    With a claim, the ratio is the possible ratio nearest to 1; without a claim, it is the ratio as measured.
    """
    return restore_ratio(apply_table(tested, matters, tests))


def restore_ratio(comparison: Comparison) -> Comparison:
    """The comparison with the ratio as measured if it has scenarios but no claim."""
    if not comparison.scenarios or comparison.claim not in ("none", "refused", "impossible"):
        return comparison
    return replace(comparison, ratio=replace(comparison.ratio, value=comparison.scenarios[0].ratio.value), bound=False)


def apply_table(tested: Tested, matters: float, tests: int) -> Comparison:
    """The comparison with the claim from the decision table, and with its scenarios."""
    comparison, weighed = tested.comparison, tested.weighed
    if not weighed:
        return comparison
    # Each scenario's p is scaled by the factor that corrected the comparison's p; a corrected p of 1 hides this factor.
    corrected = comparison.p_adjusted or 0.0
    scale = tests if corrected >= 1 else corrected / comparison.p if comparison.p and corrected else 1.0
    readings = [read_scenario(scenario, comparison, matters, scale) for scenario in weighed]
    rows = [scenario_row(scenario, reading, tested) for scenario, reading in zip(weighed, readings, strict=True)]
    comparison = replace(comparison, scenarios=tuple(rows))
    if comparison.claim != "none" or comparison.p_adjusted is None:
        return comparison
    measured = readings[0]
    lost = [at for at, reading in enumerate(readings) if not claims_agree(reading, measured)]
    if measured not in CLAIMS:
        return explain_undecided(mark_deciding(comparison, 0), tested, matters, tests)
    if not lost:
        # A small difference is certain (`slight`) only if it is certain in every scenario.
        return replace(comparison, claim="same" if "same" in readings else measured)
    equal = measured in ("same", "slight")
    for at in lost:
        scenario = weighed[at].scenario
        claim = TABLE[scenario.kind].equality if equal else TABLE[scenario.kind].difference
        if claim is not None and not (equal and claim == "none"):
            return refuse_claim(mark_deciding(comparison, at), tested, weighed[at], claim)
    return explain_undecided(mark_deciding(comparison, lost[0]), tested, matters, tests)


def read_scenario(weighed: Weighed, comparison: Comparison, matters: float, scale: float) -> Claim:
    """The claim that one scenario alone would allow."""
    ratio, alike = (
        widen_by_resolution(weighed.evidence.ratio, comparison),
        widen_by_resolution(weighed.alike, comparison),
    )
    p = weighed.evidence.p
    apart = p is not None and p * scale < ALPHA and excludes_one(ratio)
    # A scenario with fewer repeats is a condition for the claim, so it need not show that the difference matters.
    if apart and exceeds_difference(ratio, 0.0 if weighed.scenario.is_part else matters):
        higher = ratio.value > 1 if not math.isnan(ratio.value) else contender_is_higher(weighed)
        return rank_sides(higher, comparison.direction)
    if is_equivalent(alike, matters):
        return "slight" if apart else "same"
    return "none"


def choose_claim(comparison: Comparison, kind: Kind) -> Claim:
    """The claim that remains if a comparison's claim does not hold in a scenario; unchanged if the table keeps it."""
    lost = TABLE[kind]
    return (lost.equality if comparison.claim in ("same", "slight") else lost.difference) or comparison.claim


def claims_agree(reading: Claim, measured: Claim) -> bool:
    """Whether a scenario allows the claim; `same` and `slight` both state that the difference does not matter."""
    return reading == measured or {reading, measured} == {"same", "slight"}


def scenario_row(weighed: Weighed, reading: Claim, tested: Tested) -> ScenarioRow:
    """A scenario as a row of the report's table."""
    scenario, names = weighed.scenario, (tested.pair.baseline, tested.pair.contender)
    name = TABLE[scenario.kind].name
    if any(scenario.without):
        name += describe_excluded(scenario, tested.pair)
    elif scenario.side is not None:
        name += f" ({names[scenario.side]})"
    ratio = widen_by_resolution(weighed.evidence.ratio, tested.comparison)
    return ScenarioRow(name, ratio, weighed.evidence.n, reading)


def describe_excluded(scenario: Scenario, pair: Pair) -> str:
    """The excluded repeats of each side: ` of lmdb (r4)`, ` of lmdb (r1, r3) and rocksdb (r4)`."""
    names = []
    for name, excluded in zip((pair.baseline, pair.contender), scenario.without, strict=True):
        listed = [f"r{repeat}" for repeat in sorted(excluded)]
        if len(listed) > EXCLUDED_MAX:
            listed[EXCLUDED_MAX:] = [f"{len(listed) - EXCLUDED_MAX} more"]
        if listed:
            names.append(f"{name} ({', '.join(listed)})" if pair.blocks else str(name))
    return f" of {units.join_names(names)}"


def mark_deciding(comparison: Comparison, at: int) -> Comparison:
    """The comparison with the scenario at index `at` marked as deciding, unless another scenario is already marked."""
    rows = list(comparison.scenarios)
    if not any(row.decides for row in rows):
        rows[at] = replace(rows[at], decides=True)
    return replace(comparison, scenarios=tuple(rows))


def refuse_claim(comparison: Comparison, tested: Tested, weighed: Weighed, claim: Claim) -> Comparison:
    """A comparison whose claim as measured does not hold in a scenario, with a finding that states the failure."""
    pair, metric, scenario = tested.pair, comparison.metric, weighed.scenario
    of_scenario = widen_by_resolution(weighed.evidence.ratio, comparison)
    every = [widen_by_resolution(row.evidence.ratio, comparison) for row in tested.weighed]
    ratio = combine_intervals([row for row in every if row.low is not None] or [of_scenario])
    low, high = (wording.short_change(end) if end else "0×" for end in (ratio.low or 0.0, ratio.high or 0.0))
    name = TABLE[scenario.kind].name
    alternative = ONE_SIDED.get(scenario.kind) or (name if name.startswith("without") else f"with {name}")
    possible = f"{alternative}, anything from {low} {'upward' if ratio.high == math.inf else f'to {high}'} is possible"
    if of_scenario.low is None and weighed.evidence.p is not None:
        possible = f"{alternative}, the remaining repeats show no such difference"
    elif of_scenario.low is None:
        noun = comparison.n_unit.removesuffix("s") or "repeat"
        left = units.count_noun(weighed.evidence.n, f"{noun} remains", f"{noun}s remain")
        possible = f"{alternative}, only {left}, too few for a claim"
    value = widen_by_resolution(tested.weighed[0].evidence.ratio, comparison).value
    change = f"{wording.short_change(value)}{' than' if value < 1 else ''}"
    name = wording.metric_name(metric)
    message = f"{name} of {pair.contender} is {change} the {name} of {pair.baseline} as measured, but {possible}"
    why = f"does not hold in the scenario: {TABLE[scenario.kind].name}"
    if scenario.kind == "clean":
        check, hint = tested.disturbed[0].check, "run more repeats, or remove the cause of the disturbance"
        why += f", as {tested.disturbed[0].message} ({check})"
    else:
        causes = [
            finding for finding in comparison.findings if finding.effect.understates > 1 or finding.effect.excludes
        ]
        cause = causes[0] if causes else None
        # Lateness turns latencies into bounds even if no finding reports it.
        late = rate.GENERATOR_LIMITED, rate.choose_hint((*pair.baselines, *pair.contenders))
        check, hint = (cause.check, cause.hint) if cause else late
        why = ""
    finding = Finding(check, TABLE[scenario.kind].severity, message, hint, pair.trials, metric)
    return replace(comparison, claim=claim, why=why, findings=(*comparison.findings, finding))


# Differences of at least this share are stated as factors.
PERCENT_MAX = 0.5
# A proposal has at most this many times the repeats of the run, because users have little time.
TIMES_MAX = 4


def explain_undecided(comparison: Comparison, tested: Tested, matters: float, tests: int) -> Comparison:
    """The comparison with the reason why nothing can be claimed, or with the difference that more repeats could
    detect."""
    n, sizes = comparison.ratio.n, [len(side) for side in tested.weighed[0].scenario.sides]
    # The smallest p that a rank test can reach, whatever the figures are.
    if not tested.pair.blocks and rank_sum_p(0, *sizes) * tests >= ALPHA:
        least = next(size for size in range(n, 1000) if rank_sum_p(0, size, size) * tests < ALPHA)
        why = f"n = {n} cannot decide {units.count_noun(tests, 'test')}; n ≥ {least} can"
        return replace(comparison, claim="impossible", why=why)
    if half_width(comparison.ratio) is None or comparison.ratio.value <= 0:
        return comparison
    ratios = [widen_by_resolution(weighed.evidence.ratio, comparison) for weighed in tested.weighed]
    # The scenarios' own intervals narrow with more repeats; the distances between the scenarios do not.
    intervals = [
        (math.log(ratio.low * ratio.high) / 2, own)
        for ratio in ratios
        if (own := half_width(ratio)) is not None and ratio.low and ratio.high
    ]
    centres, sampling = [at for at, _ in intervals], max(own for _, own in intervals)
    bias = (max(centres) - min(centres)) / 2
    critical = student_quantile(ALPHA / tests / 2, n - 1) / student_quantile(ALPHA / 2, n - 1)
    more = int(min(max(repeats_for(comparison.ratio, sampling * critical, bias, matters), n + 1), TIMES_MAX * n))
    now, later = (detectable_difference(intervals, n, count, tests) for count in (n, more))
    noun = comparison.n_unit.removesuffix("s") or "repeat"
    difference = f"{describe_difference(now)} or more ({units.format_percent(POWER)} power)"
    biased = [weighed.scenario.kind for weighed in tested.weighed[1:] if not weighed.scenario.is_part]
    if bias > sampling and biased:
        cause = units.join_names([*dict.fromkeys(TABLE[kind].cause for kind in biased)])
        why = f"{units.count_noun(n, noun)} can detect only {difference}, mostly because of {cause}"
        return replace(comparison, why=f"{why}, which more repeats do not change")
    why = f"{units.count_noun(n, noun)} can detect {difference}"
    # Both differences are in percent, or both are factors.
    at_more = units.short_percent(later) if now < PERCENT_MAX else f"a factor of {units.format_number(1 + later)}"
    why += f"; {units.count_noun(more, noun)} ({more / n:.2g} times the run time) can detect {at_more}"
    return replace(comparison, why=why)


def describe_difference(share: float) -> str:
    """A difference in percent; a large difference as a factor, since 92 % more and 48 % less are the same factor."""
    return (
        f"a difference of {units.short_percent(share)}"
        if share < PERCENT_MAX
        else f"a factor of {units.format_number(1 + share)}"
    )


def combine_scenarios(weighed: Sequence[Weighed]) -> tuple[Estimate, float | None, bool]:
    """The ratio with an interval that covers all scenarios, the largest p, and whether the ratio is a bound.

    p is 1 if the scenarios point in different directions. A bound is the possible ratio nearest to 1.
    """
    first = weighed[0].evidence
    every = [scenario.evidence for scenario in weighed]
    ps = [1.0 if scenario.p is None else scenario.p for scenario in every]
    directions = {contender_is_higher(scenario) for scenario in weighed}
    p = None if first.p is None else max(ps) if len(directions) == 1 else 1.0
    ratio = combine_intervals([scenario.ratio for scenario in every])
    biased = [scenario for scenario in weighed if not scenario.scenario.is_part]
    least = nearest_ratio([scenario.evidence.ratio.value for scenario in biased]) if len(biased) > 1 else ratio.value
    unlimited = any(any(scenario.scenario.unlimited) for scenario in weighed)
    bound = unlimited or not math.isclose(least, ratio.value, rel_tol=RESOLUTION)
    return (replace(ratio, value=least) if bound and least == least else ratio), p, bound


def combine_intervals(ratios: Sequence[Estimate]) -> Estimate:
    """The first ratio, with an interval that covers the intervals of all ratios; no interval if any ratio has no
    interval."""
    lows = [ratio.low for ratio in ratios if ratio.low is not None]
    highs = [ratio.high for ratio in ratios if ratio.high is not None]
    known = len(lows) == len(highs) == len(ratios)
    return replace(ratios[0], low=min(lows) if known else None, high=max(highs) if known else None)


def nearest_ratio(ratios: Sequence[float]) -> float:
    """The only ratio that can be claimed: the nearest to 1, or the first if the ratios lie on both sides of 1."""
    if any(map(math.isnan, ratios)) or min(ratios) <= 1 <= max(ratios):
        return ratios[0]
    return min(ratios, key=lambda ratio: abs(math.log(ratio)) if ratio > 0 else math.inf)


def contender_is_higher(weighed: Weighed) -> bool:
    """Whether the contender's figure is higher."""
    evidence = weighed.evidence
    return evidence.difference.value > 0 if evidence.difference is not None else evidence.ratio.value > 1


def apply_failures(
    comparison: Comparison, sides: Sequence[tuple[Sequence[float], int]], pair: Pair, rank_invalid: bool
) -> Comparison:
    """The comparison with the scenario in which failed attempts and discarded trials have the worst figure.

    `sides`: the trustworthy figures of each side, and its number of failed attempts and discarded trials.
    """
    (_, first), (_, second) = sides
    if comparison.claim not in CLAIMS or not first + second:
        return comparison
    message = f"attempts failed: {first} of {pair.baseline}, {second} of {pair.contender}"
    if comparison.claim in ("same", "slight"):
        return restore_ratio(replace(comparison, claim=choose_claim(comparison, "failures"), why=message))
    (figures, lost), (remaining, won) = sides if comparison.claim == "better" else reversed(sides)
    worst = 0.0 if comparison.direction == "higher" else math.inf
    stands = not attempts.failures_reverse_claim(figures, remaining, (lost, won), worst)
    n = min(len(figures) + lost, len(remaining) + won)
    rows = ScenarioRow(TABLE["failures"].name, Estimate(math.nan, n), n, comparison.claim if stands else "none")
    comparison = replace(comparison, scenarios=(*comparison.scenarios, rows))
    if stands:
        return comparison
    comparison = mark_deciding(comparison, -1)
    message += "; with these counted as the worst figure, there is no such difference"
    severity = TABLE["failures"].severity
    finding = Finding(attempts.RETRIED, severity, message, attempts.RETRIED_HINT, pair.trials)
    claim = comparison.claim if rank_invalid else choose_claim(comparison, "failures")
    return restore_ratio(replace(comparison, claim=claim, findings=(*comparison.findings, finding)))


def shift_ratio(
    comparison: Comparison, kind: Kind, factor: float, alike: Estimate, matters: float, p: float | None
) -> tuple[Comparison, bool]:
    """The comparison with a scenario in which the ratio is off by a factor in either direction, and whether the claim
    holds in this scenario. `p`: the corrected p of a difference if the measured ratio is too extreme by the factor."""
    ratio = comparison.ratio
    wider = replace(
        ratio,
        low=None if ratio.low is None else ratio.low / factor,
        high=None if ratio.high is None else ratio.high * factor,
    )
    if comparison.claim in ("better", "worse"):
        away = max(ratio.value, 1 / ratio.value) if ratio.value > 0 else 0.0
        stands = bool(ratio.low and ratio.high) and away > factor * (1 + matters) and excludes_one(wider)
        stands = stands and (p is None or p < ALPHA)
    else:
        low, high = alike.low, alike.high
        known = low is not None and high is not None and ratio.value > 0
        stands = known and is_equivalent(
            replace(alike, low=(low or 0.0) / factor, high=(high or 0.0) * factor), matters
        )
    claim = comparison.claim if stands else "none"
    row = ScenarioRow(TABLE[kind].name, wider, ratio.n, claim)
    comparison = replace(comparison, scenarios=(*comparison.scenarios, row))
    if stands:
        return comparison, True
    return replace(mark_deciding(comparison, -1), claim=choose_claim(comparison, kind)), False


def excludes_one(ratio: Estimate) -> bool:
    """Whether a ratio's interval excludes 1; true if there is no ratio, because p alone then decides."""
    if math.isnan(ratio.value):
        return True
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def exceeds_difference(ratio: Estimate, matters: float) -> bool:
    """Whether a ratio is further from 1 than the smallest difference that matters."""
    if math.isnan(ratio.value):
        return True
    return ratio.value <= 0 or abs(math.log(ratio.value)) > math.log1p(matters)


def is_equivalent(interval: Estimate, matters: float) -> bool:
    """Whether the whole interval is nearer to 1 than the smallest difference that matters."""
    low, high = interval.low, interval.high
    return low is not None and high is not None and 1 / (1 + matters) < low and high < 1 + matters


def rank_sides(higher: bool, way: Direction | None) -> Claim:
    """`better` or `worse`; `none` if neither direction is better."""
    if way is None:
        return "none"
    return "better" if higher == (way == "higher") else "worse"


def widen_by_resolution(ratio: Estimate, comparison: Comparison) -> Estimate:
    """A ratio with its interval widened by the resolution of both figures."""
    wider = (1 + comparison.baseline.resolution) * (1 + comparison.contender.resolution)
    if ratio.low is None or ratio.high is None or wider == 1:
        return ratio
    return replace(ratio, low=ratio.low / wider, high=ratio.high * wider)
