"""Scenarios: the named alternatives that findings leave open, each with the samples that both sides would then have."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from loadstone.judge.checks import errors, rate
from loadstone.judge.figures import is_latency, lower_name
from loadstone.judge.finding import Finding, Pair, Severity, concerns_metric
from loadstone.judge.judgement import Cell, VariantKey
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Direction
from loadstone.statistics.comparison import ALPHA, Evidence, compare_blocks, compare_runs, compare_unpaired
from loadstone.statistics.estimate import REPEATS_MIN, Estimate
from loadstone.statistics.intervals import LEVEL

Kind = Literal["measured", "own-time", "lateness", "valid", "clean", "failures", "drift", "processors"]
Samples = Mapping[int, float]
Sides = tuple[Samples, Samples]
# The level of the interval for equivalence: two one-sided tests at 5 % (Schuirmann 1987).
ALIKE = 1 - 2 * ALPHA
# If repeats are excluded, sides with at least this number of common blocks are compared within blocks.
FREE_MIN = 4


@dataclass(frozen=True)
class Scenario:
    """One scenario of a comparison; the first is `measured`."""

    kind: Kind
    sides: Sides
    # Whether each end of the ratio's interval is open (low, high), because a side may be faster by any factor.
    unlimited: tuple[bool, bool] = (False, False)
    # The only side whose figures differ from the measured figures (0: the baseline); None if there is no such side.
    side: int | None = None
    # The excluded repeats of each side.
    without: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))

    @property
    def is_part(self) -> bool:
        """Whether repeats are excluded: the scenario is then only a condition for the claim from all repeats, and
        needs fewer blocks."""
        return self.kind in ("valid", "clean")


@dataclass(frozen=True)
class Weighed:
    """A scenario with its evidence: contender ÷ baseline at 95 %, and at the level of the equivalence test."""

    scenario: Scenario
    evidence: Evidence
    alike: Estimate


def build_scenarios(
    pair: Pair,
    metric: str,
    sides: Sides,
    way: Direction | None,
    findings: Sequence[Finding],
    disturbed: Sequence[Finding],
    lows: Sequence[Samples | None],
) -> Iterator[Scenario]:
    """The scenarios: as measured; each side at its best; without invalid trials; without `disturbed` trials.

    `lows`: for each side, the latencies without the load generator's lateness; None if they are unknown.
    """
    yield Scenario("measured", sides)
    for at, (factor, low) in enumerate(zip(understatement_factors(pair, metric, findings), lows, strict=True)):
        if way is not None and 1 < factor < math.inf:
            scale = factor if way == "higher" else 1 / factor
            faster = {repeat: figure * scale for repeat, figure in sides[at].items()}
            yield Scenario("own-time", replace_side(sides, at, faster), side=at)
        elif way is not None and factor == math.inf:
            # For a latency, the ends swap: a faster side has a lower latency.
            unlimited = (at == 0, at == 1) if way == "higher" else (at == 1, at == 0)
            yield Scenario("own-time", sides, unlimited, at)
        if low is not None:
            yield Scenario("lateness", replace_side(sides, at, low), side=at)
    bad, unclean = repeats_of(pair, filter(is_single, findings)), repeats_of(pair, disturbed)
    if any(bad):
        yield Scenario("valid", exclude_repeats(sides, bad), without=bad)
    if any(unclean):
        yield Scenario("clean", exclude_repeats(exclude_repeats(sides, bad), unclean), without=unclean)


def evaluate_scenario(scenario: Scenario, way: Direction | None, blocks: bool) -> Weighed:
    """The scenario with its evidence: within `blocks` if the variants were interleaved, else between runs."""
    evidences = [evidence_of(scenario, blocks, level) for level in (LEVEL, ALIKE)]
    ratios = [open_ratio(evidence.ratio, scenario.unlimited) if way else evidence.ratio for evidence in evidences]
    return Weighed(scenario, replace(evidences[0], ratio=ratios[0]), ratios[1])


def evidence_of(scenario: Scenario, blocks: bool, level: float) -> Evidence:
    """The evidence at one level; if exclusions leave too few common blocks, the sides are compared unpaired."""
    baseline, contender = scenario.sides
    if not blocks:
        least = FREE_MIN if scenario.is_part else REPEATS_MIN
        return compare_runs([*baseline.values()], [*contender.values()], level, least)
    if scenario.is_part and len(baseline.keys() & contender.keys()) < FREE_MIN:
        return compare_unpaired([*baseline.values()], [*contender.values()], level)
    return compare_blocks(baseline, contender, level, FREE_MIN if scenario.is_part else REPEATS_MIN)


def open_ratio(ratio: Estimate, unlimited: tuple[bool, bool]) -> Estimate:
    """The ratio with an interval that is open in each direction in which an unknown factor could move the ratio."""
    if ratio.low is None or ratio.high is None:
        return ratio
    return replace(ratio, low=0.0 if unlimited[0] else ratio.low, high=math.inf if unlimited[1] else ratio.high)


def replace_side(sides: Sides, at: int, samples: Samples) -> Sides:
    """The samples of both sides, with one side's samples replaced."""
    return (samples, sides[1]) if at == 0 else (sides[0], samples)


def exclude_repeats(sides: Sides, excluded: tuple[Collection[int], Collection[int]]) -> Sides:
    """Both sides without the excluded repeats."""
    baseline, contender = (
        {repeat: value for repeat, value in side.items() if repeat not in bad}
        for side, bad in zip(sides, excluded, strict=True)
    )
    return baseline, contender


def is_single(finding: Finding) -> bool:
    """Whether a finding makes one trial invalid, and not the variant's other trials."""
    return finding.effect.excludes and len(finding.trials) == 1 and finding.severity == Severity.INVALID


def find_covered(findings: Sequence[Finding], pair: Pair) -> list[Finding]:
    """The findings that scenarios cover: findings that understate a side, and findings that exclude single trials."""
    biased = [finding for finding in findings if finding.effect.understates > 1]
    sides = pair.ids
    if all(
        any(math.isinf(finding.effect.understates) and side & set(finding.trials) for finding in biased)
        for side in sides
    ):
        biased = [finding for finding in biased if math.isfinite(finding.effect.understates)]
    alone = [finding for finding in findings if is_single(finding)]
    return biased if missing_repeats(alone, pair) else [*biased, *alone]


def missing_repeats(alone: Sequence[Finding], pair: Pair) -> int:
    """The number of additional repeats that a claim needs if the trials of these findings are excluded."""
    left = [
        {trial.repeat for trial in trials if trial.values} - set(repeats)
        for trials, repeats in zip(pair.sides, repeats_of(pair, alone), strict=True)
    ]
    return max(REPEATS_MIN - min(map(len, left)), 0)


def find_discarded(trials: Sequence[TrialResult], findings: Sequence[Finding], metric: str) -> set[int]:
    """The repeats with untrustworthy figures, except failed trials.

    Findings on failed operations do not count, because figures include these operations.
    """
    alone = [
        finding
        for finding in findings
        if is_single(finding) and finding.check != errors.NAME and concerns_metric(finding, metric)
    ]
    bad = {trial for finding in alone for trial in finding.trials}
    return {trial.repeat for trial in trials if trial.trial in bad and not trial.is_failure}


def repeats_of(pair: Pair, findings: Iterable[Finding]) -> tuple[set[int], set[int]]:
    """The repeats of each side that the findings concern."""
    bad = {trial for finding in findings for trial in finding.trials}
    baseline, contender = ({trial.repeat for trial in trials if trial.trial in bad} for trials in pair.sides)
    return baseline, contender


def understatement_factors(pair: Pair, metric: str, findings: Sequence[Finding]) -> tuple[float, float]:
    """The factor by which each side may be faster than measured; a finding on one side activates both factors."""
    accused = [finding for finding in findings if finding.effect.understates > 1]
    largest = []
    for trials in pair.sides:
        ids = {trial.trial for trial in trials}
        own = [finding.effect.understates for finding in accused if ids & set(finding.trials)]
        if accused and not is_latency(metric):
            own.append(rate.understatement_factor(trials))
        largest.append(max(own, default=1.0))
    return largest[0], largest[1]


def lower_samples(
    keys: Sequence[VariantKey], metric: str, cells: Mapping[tuple[VariantKey, str], Cell]
) -> list[Samples | None]:
    """For each variant, the lower bounds of a latency at a rate; None without such bounds."""
    cells_of_sides = (cells.get((key, lower_name(metric))) if is_latency(metric) else None for key in keys)
    return [dict(cell.samples) if cell is not None and not cell.bound else None for cell in cells_of_sides]
