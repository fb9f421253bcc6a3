"""Which findings concern a comparison, and what they make doubtful about its two sides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from loadstone.judge.bounds import Factors, Lows
from loadstone.judge.checks import errors, generator_limited, rate_not_held
from loadstone.judge.figures import family, is_latency, lower_name
from loadstone.judge.finding import Finding, Pair, Severity
from loadstone.judge.judgement import Cell, VariantKey
from loadstone.judge.pairing import Match
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import THROUGHPUT
from loadstone.statistics.estimate import REPEATS_MIN

# What can be wrong with single trials. A claim must then hold with and without these.
SINGLE = frozenset({errors.NAME, "clock", "lost-segment", "incomplete", "carried-over", generator_limited.NAME})


def concerns(finding: Finding, metric: str) -> bool:
    """Whether a finding is about this metric; an invalid one affects all metrics, unless it names what it is about."""
    if finding.about == "latencies" and not is_latency(metric):
        return False
    if finding.about == "throughput" and family(metric)[1] != THROUGHPUT:
        return False
    return finding.metric in ("", metric) or finding.severity == Severity.INVALID


def single(finding: Finding) -> bool:
    """Whether a finding makes one trial invalid, and not the variant's other trials."""
    alone = finding.check in SINGLE and len(finding.trials) == 1
    return alone and finding.severity == Severity.INVALID and finding.understates == 1


def overloaded(findings: Sequence[Finding]) -> bool:
    """Whether a side did not hold the rate."""
    return any(finding.check == rate_not_held.NAME and finding.severity == Severity.INVALID for finding in findings)


def weighable(findings: Sequence[Finding], pair: Pair) -> list[Finding]:
    """Findings to evaluate: the size of their bias is known, or the repeats to exclude."""
    biased = [finding for finding in findings if finding.understates > 1]
    sides = [{trial.trial for trial in trials} for trials in (pair.baselines, pair.contenders)]
    if all(any(math.isinf(each.understates) and side & set(each.trials) for each in biased) for side in sides):
        biased = [finding for finding in biased if math.isfinite(finding.understates)]
    alone = [finding for finding in findings if single(finding)]
    return biased if lacking(alone, pair) else [*biased, *alone]


def lacking(alone: Sequence[Finding], pair: Pair) -> int:
    """How many repeats more a claim takes without the trials that these findings are about."""
    left = [
        {trial.repeat for trial in trials if trial.values} - set(repeats)
        for trials, repeats in zip((pair.baselines, pair.contenders), repeats_of(pair, alone), strict=True)
    ]
    return max(REPEATS_MIN - min(map(len, left)), 0)


def discarded(trials: Sequence[TrialResult], findings: Sequence[Finding], metric: str) -> set[int]:
    """The repeats whose figures cannot be trusted, without failed trials. Failed operations are in the figures."""
    alone = [each for each in findings if single(each) and each.check != errors.NAME and concerns(each, metric)]
    bad = {trial for finding in alone for trial in finding.trials}
    return {trial.repeat for trial in trials if trial.trial in bad and not trial.failed}


def repeats_of(pair: Pair, findings: Iterable[Finding]) -> tuple[set[int], set[int]]:
    """The repeats of either side that findings are about."""
    bad = {trial for finding in findings for trial in finding.trials}
    baseline, contender = (
        {trial.repeat for trial in trials if trial.trial in bad} for trials in (pair.baselines, pair.contenders)
    )
    return baseline, contender


def factors(pair: Pair, metric: str, findings: Sequence[Finding]) -> Factors:
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


def lower(match: Match, metric: str, cells: Mapping[tuple[VariantKey, str], Cell]) -> Lows:
    """The lower bounds of a latency at a rate, on either side."""
    if not is_latency(metric):
        return None, None
    found = (cells.get((key, lower_name(metric))) for key in (match.baseline, match.contender))
    baseline, contender = (dict(cell.samples) if cell is not None and not cell.bound else None for cell in found)
    return baseline, contender
