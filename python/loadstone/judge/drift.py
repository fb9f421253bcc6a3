"""Drift within trials and unequal CPU use by other processes: the possible error of the ratio of two sides."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from statistics import fmean, geometric_mean

import numpy as np

from loadstone.format import units
from loadstone.judge.checks import interference, not_steady
from loadstone.judge.checks.not_steady import HALVES, Levels, series_of
from loadstone.judge.figures import is_latency
from loadstone.judge.finding import Finding, Pair, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import metric_statistic
from loadstone.statistics.estimate import REPEATS_MIN
from loadstone.statistics.intervals import t_interval

TURNS = "which could reverse the claim"


def trial_drift(
    pair: Pair, metric: str, findings: Sequence[Finding], time_series: Mapping[str, Levels]
) -> tuple[float, list[Finding]]:
    """The product of the largest drifts of both sides, and the drift findings; 1 and no findings without a known drift.

    The figure that a trial would have had without drift is assumed to lie within this factor of the measured figure. If
    all repeats drift in the same direction, the finding has no factor for the error, because the drift may continue
    after the window.
    """
    drifting = [
        finding for finding in findings if finding.severity == Severity.SUSPECT and 1 < finding.effect.drifts < math.inf
    ]
    own = metric_statistic(metric)
    known = all((own, HALVES) in time_series.get(trial, {}) for finding in drifting for trial in finding.trials)
    if not drifting or not known or own not in series_of(metric):
        return 1.0, []
    sides = pair.ids
    largest = [
        max((finding.effect.drifts for finding in drifting if side & set(finding.trials)), default=1.0)
        for side in sides
    ]
    return math.prod(largest), drifting


def ratio_drift(
    pair: Pair, metric: str, time_series: Mapping[str, Levels], disturbed: Collection[int], settings: Settings
) -> tuple[float, Finding] | None:
    """The largest factor by which the ratio drifts in all blocks together, with its finding; None without drift.

    Repeats that were `disturbed` can hide a common drift, so the remaining repeats are also tested alone.
    """
    # A mean lies in the middle of a trend; a percentile can lie at the worst end of the trend.
    reach = 2 if is_latency(metric) else 1
    drifts: list[tuple[float, Finding]] = []
    for name in series_of(metric):
        for part, alpha in not_steady.window_tests(settings):
            baseline, contender = (levels_by_repeat(trials, time_series, name, part) for trials in pair.sides)
            both = baseline.keys() & contender.keys()
            for blocks in (both, both - {*disturbed}):
                if len(blocks) < REPEATS_MIN:
                    continue
                outside, inside = (
                    [contender[block][at] / baseline[block][at] for block in sorted(blocks)] for at in (0, 1)
                )
                steps = np.log(np.array(inside) / np.array(outside))
                (mean, _, _), p = t_interval(steps)
                # If all blocks drift by the same factor, p is nan.
                if p >= alpha:
                    continue
                first, second = geometric_mean(outside), geometric_mean(inside)
                formats = units.format_ratio, units.format_ratio
                change = not_steady.part_text(part, f"the ratio of {name}", first, second, *formats)
                message = f"{change} (mean of {len(steps)} blocks), {TURNS}"
                finding = Finding(not_steady.NAME, Severity.SUSPECT, message, not_steady.HINT, pair.trials, metric)
                drifts.append((math.exp(reach * abs(float(mean))), finding))
    return max(drifts, key=itemgetter(0), default=None)


def levels_by_repeat(
    trials: Sequence[TrialResult], time_series: Mapping[str, Levels], name: str, part: str
) -> dict[int, tuple[float, float]]:
    """The levels of a figure outside a part of the window and inside it, by repeat."""
    known = ((trial.repeat, time_series.get(trial.trial, {}).get((name, part))) for trial in trials)
    return {repeat: both for repeat, both in known if both is not None}


def unequal_processors(pair: Pair, metric: str, settings: Settings) -> Iterator[tuple[float, Finding]]:
    """The factors by which a side may be slower because other processes used more of its host, each with a finding."""
    for name, (text, hint) in interference.SHARES.items() if series_of(metric) else ():
        baseline, contender = (
            {trial.repeat: share for trial in trials if (share := trial.value(name)) is not None}
            for trials in pair.sides
        )
        blocks = baseline.keys() & contender.keys()
        if len(blocks) < REPEATS_MIN:
            continue
        (mean, _, _), p = t_interval(np.array([contender[block] - baseline[block] for block in blocks]))
        if p >= settings.check_threshold(not_steady.NAME, "together"):
            continue
        shares = [units.format_percent(fmean(side[block] for block in blocks)) for side in (baseline, contender)]
        of = f"for {pair.baseline}, {shares[1]} for {pair.contender} (means)"
        message = f"{text.format(share=shares[0])} {of}, {TURNS}"
        finding = Finding(interference.NAME, Severity.SUSPECT, message, hint, pair.trials, metric)
        yield 1 / max(1 - abs(float(mean)), 1e-9), finding
