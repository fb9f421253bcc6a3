"""What the checks find: on a trial without any other, and on a variant what no single trial shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from loadstone.judge import notes
from loadstone.judge.checks import generator_limited, impossible, incomplete, noisy, too_few_samples
from loadstone.judge.finding import Finding
from loadstone.judge.judgement import Cell, VariantKey
from loadstone.judge.registry import DECIDED, SERIES, TRIAL
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet, variant
from loadstone.results.trial_result import Scalar, Series, TrialResult


def judge_trial(trial: TrialResult, series: Series | None, settings: Settings) -> tuple[Finding, ...]:
    """Every finding on one trial; without its series, those on its course are missing."""
    found = [finding for check in TRIAL for finding in check(trial, settings)]
    if series is not None:
        found += [finding for check in SERIES for finding in check(trial, series, settings)]
    if trial.notes:
        decided = {name for name, has in DECIDED.items() if has(trial)}
        found += list(notes.findings(trial, {finding.check for finding in found}, decided))
    return tuple(found)


def judge_variant(
    trials: Sequence[TrialResult], headline: Cell | None, missing: Sequence[str], settings: Settings
) -> tuple[Finding, ...]:
    """Findings on a variant, given the cell that the question's interval is about and the planned trials that miss."""
    # A trial that failed is not a repeat.
    ended = [trial for trial in trials if trial.values]
    found = [*too_few_samples.check(ended, settings), *impossible.mean(trials, settings)]
    found += generator_limited.driver(trials, settings)
    if headline is not None:
        found += noisy.check(ended, headline.estimate, headline.metric, settings)
    if missing and not (headline and narrow(headline, settings)):
        found += incomplete.repeats(trials, missing)
    return tuple(found)


def narrow(headline: Cell, settings: Settings) -> bool:
    """Whether no more repeats were needed: a block that was begun is not missed then."""
    width = headline.estimate.relative_width
    enough = headline.estimate.n >= settings.at_least
    return settings.until is not None and enough and width is not None and width <= settings.until


def missing_trials(results: ResultSet) -> dict[VariantKey, list[str]]:
    """The planned trials that are not there, by variant."""
    there = {trial.trial for trial in results.trials}
    found: dict[VariantKey, list[str]] = {}
    for trial, config in results.planned.items():
        if trial not in there:
            found.setdefault(variant(config), []).append(trial)
    return found


def missing_points(
    missing: Mapping[VariantKey, Sequence[str]], there: Collection[VariantKey], planned: int
) -> tuple[Finding, ...]:
    """The finding on the variants of which nothing is there; `planned` is the number of all planned variants."""
    configs: dict[str, Mapping[str, Scalar]] = {
        trial: dict(key) for key, trials in missing.items() if key not in there for trial in trials
    }
    return tuple(incomplete.points(configs, planned))
