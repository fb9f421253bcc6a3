"""Movements within trials, and what they mean for a claim: whether it holds at any level that the figures had."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from loadstone.format import units
from loadstone.judge.bounds import inside
from loadstone.judge.checks import interference, not_steady
from loadstone.judge.checks.not_steady import HALVES, Levels, courses_of
from loadstone.judge.figures import is_latency
from loadstone.judge.finding import Finding, Pair, Severity
from loadstone.judge.judgement import Comparison
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import statistic
from loadstone.statistics.centre import t_interval
from loadstone.statistics.estimate import REPEATS_MIN, Estimate

CLAIMS = frozenset({"better", "worse", "same", "slight"})
TURNS = "which could turn the claim"
MOVED_HINT = "the figures moved by less than what separates the compared sides"


@dataclass(frozen=True)
class Movements:
    """How the figures of two sides move within their trials."""

    pair: Pair
    # The levels in parts of the window, by trial.
    courses: Mapping[str, Levels]
    # The repeats of either side with what was taken for chance.
    excused: tuple[Collection[int], Collection[int]]
    # The interval by which two sides are found to be equivalent.
    alike: Estimate
    settings: Settings

    def outweighed(self, comparison: Comparison) -> Comparison:
        """The same; that figures moved within trials is a note where its claim would hold at any level they had.

        A trial's steady figure is taken to lie within the factor by which it moved. Repeats that move the same way,
        and so may go on, have a finding without a factor. By how much a figure moved whose own course was not looked
        at is not known.
        """
        moved = [
            each for each in comparison.findings if each.severity == Severity.SUSPECT and 1 < each.moves < math.inf
        ]
        own = statistic(comparison.metric)
        known = all((own, HALVES) in self.courses.get(trial, {}) for each in moved for trial in each.trials)
        if not moved or not known or own not in courses_of(comparison.metric):
            return comparison
        sides = [{trial.trial for trial in trials} for trials in (self.pair.baselines, self.pair.contenders)]
        factor = math.prod(
            max((each.moves for each in moved if side & set(each.trials)), default=1.0) for side in sides
        )
        if not self.holds(comparison, factor):
            return comparison
        findings = tuple(noted(each) if each in moved else each for each in comparison.findings)
        return replace(comparison, findings=findings)

    def shared(self, comparison: Comparison) -> Comparison:
        """The same; suspect where the ratio moves alike in all blocks, by as much as would turn the claim.

        However little that is: a claim of two percent falls with a movement of two percent. Repeats whose own
        movement was taken for chance hide what the others share, so that these are tested alone as well.
        """
        if comparison.claim not in CLAIMS:
            return comparison
        # The mean of a line lies in its middle; a percentile can be that of its worst end.
        reach = 2 if is_latency(comparison.metric) else 1
        for name in courses_of(comparison.metric):
            for part, alpha in not_steady.tests(self.settings):
                for baseline, contender in self.ratios(name, part):
                    steps = np.log(np.array(contender) / np.array(baseline))
                    (mean, _, _), p = t_interval(steps)
                    # Of blocks that all move alike p is not a number.
                    if p >= alpha or self.holds(comparison, math.exp(reach * abs(float(mean)))):
                        continue
                    first, second = (math.exp(fmean(map(math.log, each))) for each in (baseline, contender))
                    levels = not_steady.moves(first, second, units.times, units.times)
                    message = f"{part}, the ratio of {name} {levels} (mean of {len(steps)} blocks), {TURNS}"
                    trials, metric = self.pair.trials, comparison.metric
                    finding = Finding(not_steady.NAME, Severity.SUSPECT, message, not_steady.HINT, trials, metric)
                    return replace(comparison, findings=(*comparison.findings, finding))
        return comparison

    def disturbed(self, comparison: Comparison) -> Comparison:
        """The same; suspect where others used more of the host on one side, by as much as would turn the claim.

        That a share of the host is gone makes a system slower by that share.
        """
        if comparison.claim not in CLAIMS or not courses_of(comparison.metric):
            return comparison
        for name, (text, hint) in interference.SHARES.items():
            baseline, contender = (
                {trial.repeat: share for trial in trials if (share := trial.value(name)) is not None}
                for trials in (self.pair.baselines, self.pair.contenders)
            )
            blocks = baseline.keys() & contender.keys()
            if len(blocks) < REPEATS_MIN:
                continue
            (mean, _, _), p = t_interval(np.array([contender[block] - baseline[block] for block in blocks]))
            alpha = self.settings.threshold(not_steady.NAME, "together")
            if p >= alpha or self.holds(comparison, 1 / max(1 - abs(float(mean)), 1e-9)):
                continue
            levels = [units.percent(fmean(each[block] for block in blocks)) for each in (baseline, contender)]
            of = f"for {self.pair.baseline}, {levels[1]} for {self.pair.contender} (means)"
            message = f"{text.format(share=levels[0])} {of}, {TURNS}"
            found = Finding(interference.NAME, Severity.SUSPECT, message, hint, self.pair.trials, comparison.metric)
            comparison = replace(comparison, findings=(*comparison.findings, found))
        return comparison

    def ratios(self, name: str, part: str) -> Iterator[tuple[list[float], list[float]]]:
        """The ratio outside a part of the window and in it, block by block: of all, and of those without an excuse."""
        baseline, contender = (self.levels(each, name, part) for each in (self.pair.baselines, self.pair.contenders))
        both = baseline.keys() & contender.keys()
        for blocks in (both, both - {*self.excused[0], *self.excused[1]}):
            if len(blocks) >= REPEATS_MIN:
                rest, there = (
                    [contender[block][at] / baseline[block][at] for block in sorted(blocks)] for at in (0, 1)
                )
                yield rest, there

    def levels(self, trials: Sequence[TrialResult], name: str, part: str) -> dict[int, tuple[float, float]]:
        """A figure outside a part of the window and in it, by repeat."""
        found = ((trial.repeat, self.courses.get(trial.trial, {}).get((name, part))) for trial in trials)
        return {repeat: both for repeat, both in found if both is not None}

    def holds(self, comparison: Comparison, factor: float) -> bool:
        """Whether a claim would be the same with a ratio that is off by a factor either way.

        Whether there is a difference that is too small to matter does not matter.
        """
        better = comparison.claim in ("better", "worse")
        ratio, matters = comparison.ratio if better else self.alike, self.settings.matters
        if not (ratio.low and ratio.high and ratio.value > 0):
            return False
        if better:
            away = max(ratio.value, 1 / ratio.value)
            return away > factor * (1 + matters) and max(ratio.low, 1 / ratio.high) > factor
        return inside(replace(ratio, low=ratio.low / factor, high=ratio.high * factor), matters)


def noted(finding: Finding) -> Finding:
    """A movement that turns no claim."""
    return replace(finding, severity=Severity.NOTE, hint=MOVED_HINT)
