"""All checks, grouped by the object that they examine, and the findings on a trial and on a variant.

The names of the checks are the keys of loadstone.judge.settings.DEFAULTS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from loadstone.judge.checks import (
    attempts,
    clock,
    errors,
    faults,
    impossible,
    interference,
    littles_law,
    loss,
    noisy,
    not_steady,
    page_cache,
    rate,
    sides_differ,
    stages,
    stalled,
    too_few_samples,
    unverified,
)
from loadstone.judge.finding import About, Effect, Finding, Looks, NotLooked, Pair, Severity
from loadstone.judge.judgement import Cell, VariantKey
from loadstone.judge.settings import RENAMED, Settings
from loadstone.results.result_set import ResultSet, order_metrics, variant_key
from loadstone.results.stage import stages_of
from loadstone.results.trial_result import Series, TrialResult
from loadstone.statistics.stopping import stopping_reason

TrialCheck = Callable[[TrialResult, Settings], Looks]
PairCheck = Callable[[Pair, Settings], Looks]
# Checks of one trial, and of two compared variants. check_series and judge_variant call the remaining checks.
TRIAL: tuple[TrialCheck, ...] = (
    *(
        attempts.check_attempts,
        impossible.check_plausibility,
        littles_law.check_littles_law,
        *(rate.check_generator, rate.check_clients, rate.check_rate, rate.check_carried),
        clock.check_clock,
        errors.check_errors,
        unverified.check_verification,
    ),
    *(
        page_cache.check_page_cache,
        interference.check_interference,
        not_steady.find_compilation,
        not_steady.find_rare_activity,
    ),
    *(faults.check_faults, loss.check_loss),
)
PAIR: tuple[PairCheck, ...] = (sides_differ.check_sides, faults.check_pair)
# The checks that need a time series; the first check applies only at a rate.
SERIES_CHECKS = (rate.RATE_NOT_HELD, not_steady.NAME, stalled.NAME)
NO_SERIES = "series.json is missing or damaged"
NOT_PRINTED = "the tool printed no time series"
# Checks that replace the engine's note of the same name, each with a test for the figures that the check needs.
DECIDED: dict[str, Callable[[TrialResult], bool]] = {
    rate.GENERATOR_LIMITED: rate.generator_decided,
    rate.CLIENT_LIMITED: rate.clients_decided,
    errors.NAME: errors.has_error_counts,
    errors.MISSING_ROWS: errors.has_missing_reads,
    errors.SERVER_EVENTS: errors.quotes_servers,
}
# An importer's note: latencies at a rate exclude the wait for a client (coordinated omission).
SERVICE_TIME = "service-time"
# The severity of a note that has a check's name. All other notes keep the severity NOTE.
NOTE_SEVERITIES = {
    **dict.fromkeys(
        (*rate.INVALIDATING, clock.NAME, unverified.NAME, impossible.NAME, attempts.LOST), Severity.INVALID
    ),
    **dict.fromkeys((littles_law.NAME, rate.CARRIED_OVER, not_steady.NAME, noisy.NAME, stalled.NAME), Severity.SUSPECT),
    **dict.fromkeys((sides_differ.NAME, interference.NAME, attempts.INCOMPLETE, SERVICE_TIME), Severity.SUSPECT),
    # Processes that outlived the trial's command were killed, perhaps before they finished.
    "survivors": Severity.SUSPECT,
}
# The engine's notes on unanswered operations, which a requested fault is expected to cause.
OF_OUTAGES = frozenset({"hung", "unsent"})
# Notes that exclude their trial, but do not affect the variant's other trials.
NOTE_EXCLUDES = frozenset({"errors", "clock", "lost-segment", "incomplete", "carried-over", "generator-limited"})
# Notes that belong to a check with a different name; they add information that the check's figures lack.
NOTE_CHECKS = {
    "debug-build": "generator-limited",
    "unsent": "client-limited",
    "hung": "stalled",
    "failed": "incomplete",
}


def note_findings(trial: TrialResult, checks: Collection[str], decided: Collection[str]) -> Iterator[Finding]:
    """The notes as findings, except for notes whose check already has a finding (`checks`) or was `decided` by
    figures."""
    notes = (note for note in trial.notes if note.name not in OF_OUTAGES or not faults.has_fault(trial))
    for note in notes:
        name = RENAMED.get(note.name, note.name)
        check = NOTE_CHECKS.get(name, name)
        known = name == check and (check in checks or check in decided)
        is_cause = attempts.INCOMPLETE in checks and note == attempts.find_cause(trial)
        # The note only repeats a fact, or the way in which the trial ended.
        if known or is_cause or (note.name == "debug-build" and "profile" in trial.facts) or note.name == trial.end:
            continue
        about: About = "latencies" if check == SERVICE_TIME else "all"
        severity = NOTE_SEVERITIES.get(check, Severity.NOTE)
        effect = Effect(excludes=check in NOTE_EXCLUDES)
        yield Finding(check, severity, note.message, note.hint, (trial.trial,), about=about, effect=effect)


def judge_trial(trial: TrialResult, series: Series | None, settings: Settings) -> tuple[Finding, ...]:
    """Every finding on one trial."""
    return check_trial(trial, series, settings)[0]


def check_trial(
    trial: TrialResult, series: Series | None, settings: Settings
) -> tuple[tuple[Finding, ...], tuple[NotLooked, ...]]:
    """Every finding on one trial, and the checks that could not examine the trial."""
    every = [result for check in TRIAL for result in check(trial, settings)]
    if series is None:
        why = NO_SERIES if "engine" in trial.facts else NOT_PRINTED
        every = [
            *(NotLooked(name, why, always_known=True) for name in SERIES_CHECKS[trial.loop != "open" :]),
            *every,
            *stalled.check_slowest(trial, settings),
        ]
    else:
        every += check_series(trial, series, settings)
    findings = [result for result in every if isinstance(result, Finding)]
    # A failed trial has no data to examine, and has its own finding.
    lacking = [result for result in every if isinstance(result, NotLooked) and trial.values]
    if "engine" in trial.facts:
        findings += attempts.find_unavailable_checks(trial, [result for result in lacking if result.always_known])
    if trial.notes:
        decided = {name for name, has in DECIDED.items() if has(trial)}
        findings += list(note_findings(trial, {finding.check for finding in findings}, decided))
    return tuple(findings), tuple(lacking)


def check_series(trial: TrialResult, series: Series, settings: Settings) -> Looks:
    """The checks of a time series, each without the intervals that a requested fault affects."""
    before, filled = faults.trim_to_before(trial, series), stages.fill_pauses(trial, series)
    if not stages_of(trial):
        yield from rate.check_series(trial, before, settings)
    yield from stages.check_stages(trial, before, settings)
    yield from stalled.check_stalls(trial, faults.trim_to_before(trial, filled), settings)
    if faults.has_fault(trial):
        yield from stalled.check_stalls(trial, faults.trim_to_after(trial, filled), settings)


def judge_variant(
    trials: Sequence[TrialResult],
    limits: Sequence[tuple[Cell, float]],
    missing: Sequence[str],
    settings: Settings,
    levels: Mapping[str, not_steady.Levels],
) -> tuple[Finding, ...]:
    """Findings on a variant.

    `limits`: the cells whose intervals must be narrow, with the requested relative widths; `missing`: the planned
    trials that did not run; `levels`: the levels of each trial's time series.
    """
    # A failed trial does not count as a repeat.
    ended = [trial for trial in trials if trial.values]
    findings = [
        *too_few_samples.check_samples(ended, settings),
        *impossible.check_mean(trials, settings),
        *impossible.find_duplicate_repeats(ended, levels),
        *impossible.find_constant_figures(ended),
        *attempts.find_missing_figures(ended, order_metrics(ended, settings.metrics)),
    ]
    findings += rate.check_driver_time(trials, settings)
    for cell, until in limits:
        findings += noisy.check_noise(ended, cell.estimate, cell.metric, until, settings)
    figures, most = [[value for _, value in cell.samples] for cell, _ in limits], settings.at_most or settings.at_least
    # If the stopping rule is satisfied, an unfinished block is not missing.
    if limits and stopping_reason(figures, settings.at_least, most, [until for _, until in limits]) is not None:
        return tuple(findings)
    if missing:
        findings += attempts.find_missing_repeats(trials, missing)
    elif limits:
        findings += attempts.find_early_end(ended, min(map(len, figures)), settings)
    return tuple(findings)


def missing_trials(results: ResultSet) -> dict[VariantKey, list[str]]:
    """The planned trials that are missing, by variant."""
    there = {trial.trial for trial in results.trials}
    missing: dict[VariantKey, list[str]] = {}
    for trial, config in results.planned.items():
        if trial not in there:
            missing.setdefault(variant_key(config), []).append(trial)
    return missing
