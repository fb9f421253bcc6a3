"""The judge: runs every check on a result set, compares its variants, and writes the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from loadstone.judge.answer import answer_question, summarize_searches
from loadstone.judge.cells import Cells
from loadstone.judge.checks import attempts, faults, not_steady, sides_differ, view
from loadstone.judge.compare import Comparer, settle_finding
from loadstone.judge.curves import CURVES_MAX, fit_curves
from loadstone.judge.expectations import examine_expectations
from loadstone.judge.finding import Finding, NotLooked, Severity, Verdict, worst_verdict
from loadstone.judge.findings import check_trial, judge_variant, missing_trials
from loadstone.judge.judgement import Judgement, VariantKey
from loadstone.judge.order import OF_SEARCH
from loadstone.judge.outages import outage_clauses, summarize_outages
from loadstone.judge.pairing import Match, Variants, choose_baseline, list_paired, list_unpaired, match_variants
from loadstone.judge.search import judge_searches, read_rule
from loadstone.judge.settings import Own
from loadstone.results.result_set import ResultSet, deciding_metrics, first_metric, variant_key, variant_name
from loadstone.results.stage import stages_of
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.autocorrelation import run_mean
from loadstone.statistics.estimate import REPEATS_MIN, Estimate

# At most this share of a variant's repeats may be disturbed by chance.
MINORITY = 1 / 3
MINORITY_HINT = "no action needed: {} disturbed (a claim tolerates a third), and the claim is also tested without them"
MAJORITY_HINT = "{}; {} disturbed, and a claim tolerates at most a third"


def judge_results(results: ResultSet, *, rank_invalid: bool = False) -> Judgement:
    """Judges a result set; with `rank_invalid`, comparisons with an invalid side are also ranked.

    Raises LoadstoneError when the question sets an unknown threshold.
    """
    own = Own(results)
    before = Own(replace(results, question=results.recorded)) if results.recorded else own
    loosened: dict[str, list[str]] = {}
    settings = own.common
    variants = results.variants
    cells = Cells(variants, own)
    metrics = results.headline_metrics
    trials: dict[str, tuple[Finding, ...]] = {}
    unseen: dict[str, Sequence[NotLooked]] = {}
    runs: dict[str, Estimate] = {}
    levels: dict[str, not_steady.Levels] = {}
    for trial in results.trials:
        # Read once and then released: ten thousand time series take more memory than all figures.
        series = results.series(trial.trial)
        trials[trial.trial], unseen[trial.trial] = check_trial(trial, series, own.settings_of(trial.trial))
        if before.common.checks != own.common.checks:
            for gone in view.find_hidden(
                check_trial(trial, series, before.settings_of(trial.trial))[0], trials[trial.trial]
            ):
                loosened.setdefault(gone.check, []).append(trial.trial)
        if series is not None and not stages_of(trial):
            # The effects of a requested fault are not drift; nor are the stages of a rate.
            series = faults.trim_to_before(trial, series)
            levels[trial.trial] = not_steady.window_levels(series, own.settings_of(trial.trial))
            # The precision within a trial is the only one available for a single repeat.
            if (run := run_mean(series.complete_rates)).low is not None:
                runs[trial.trial] = run
    missing = missing_trials(results)
    requested = results.question.metrics
    main = first_metric(results.trials, requested)
    jumps = {trial for trial, every in trials.items() if any(finding.effect.drifts > 1 for finding in every)}
    asked_for = read_rule(results.question)
    # The loads of a search are not alternatives to compare.
    loads = asked_for is not None and results.comparison_dimension == asked_for.over
    pairs = [] if loads else match_variants(results, variants, settings, levels)
    there = list_paired(pairs)
    of_variants = {}
    for key, trials_of in variants.items():
        mine = own.settings_of(trials_of[0].trial)
        # These figures also decide, during a run, whether the variant has been repeated often enough.
        deciding = deciding_metrics(trials_of, requested, mine.until).items()
        cells_of = [(cells.get((key, metric)) or cells.get((key, main)), share) for metric, share in deciding]
        limits = [(cell, share) for cell, share in cells_of if cell]
        of_variants[key] = (
            *judge_variant(trials_of, limits, missing.get(key, ()), mine, levels),
            *not_steady.find_common_drift(trials_of, levels, jumps, mine),
            *(() if key in there else sides_differ.variant_changes(trials_of, mine)),
        )
        if before.common.checks != own.common.checks:
            recorded = replace(mine, checks=before.settings_of(trials_of[0].trial).checks)
            strict = judge_variant(trials_of, limits, missing.get(key, ()), recorded, levels)
            for gone in view.find_hidden(strict, of_variants[key]):
                loosened.setdefault(gone.check, []).extend(gone.trials)
        if results.is_one_run:
            trials |= note_minority(trials_of, trials, unseen)
    if before.common.checks != own.common.checks and pairs:
        strict_pairs = match_variants(results, variants, replace(settings, checks=before.common.checks), levels)
        for strict_match, match in zip(strict_pairs, pairs, strict=True):
            for gone in view.find_hidden(strict_match.findings, match.findings):
                loosened.setdefault(gone.check, []).extend(gone.trials)
    departures = view.departure_findings(results, loosened)
    matches = [replace(match, findings=(*match.findings, *departures)) for match in pairs]
    effective = {
        key: (*of_variants[key], *effective_findings(trials_of, trials)) for key, trials_of in variants.items()
    }
    comparer = Comparer(cells, effective, levels, results, rank_invalid, settings)
    comparisons = comparer.compare_matches(matches, metrics)
    for key, trials_of in variants.items():
        for trial in trials_of:
            trials[trial.trial] = tuple(settle_finding(key, finding, comparisons) for finding in trials[trial.trial])
    counted = {
        key: [trial for trial in trials_of if rank_invalid or worst_verdict(trials[trial.trial]) != Verdict.INVALID]
        for key, trials_of in variants.items()
    }
    by_clients = list(fit_curves(counted, interleaved=results.interleaved and not results.pooled))
    found_loads = judge_searches(results.question, results.trials, trials, settings)
    judgement = Judgement(
        results=results,
        trials=trials,
        within=runs,
        variants=of_variants,
        cells=cells,
        comparisons=comparisons,
        curves=by_clients,
        searches=found_loads,
        outages=summarize_outages(variants, trials, settings),
        findings=tuple(dict.fromkeys((*departures, *overall_findings(results, variants, matches, missing)))),
        not_looked=Counter(chain(*unseen.values(), *(match.not_looked for match in matches))),
        notes={"curves": f"only the first {CURVES_MAX} curves were fitted"} if len(by_clients) == CURVES_MAX else {},
    )
    judgement = replace(judgement, expectations=tuple(examine_expectations(judgement, matches, comparer)))
    sentences = (
        summarize_searches(found_loads)
        if found_loads
        else answer_question(judgement, metrics or (main,), settings.matters)
    )
    # In an experiment with faults, the question is about the faults; comparisons of other figures come last.
    text, *further = [*outage_clauses(judgement.outages), *sentences]
    return replace(judgement, answer=text, further=tuple(further))


def note_minority(
    trials: Sequence[TrialResult], findings: Mapping[str, Sequence[Finding]], unseen: Mapping[str, Sequence[NotLooked]]
) -> dict[str, tuple[Finding, ...]]:
    """A variant's findings by trial; disturbances become notes if they concern only a minority of the repeats.

    A claim must then also hold without these repeats (the scenario `clean`). A repeat that a check could not examine
    (`unseen`) counts as disturbed. A finding on all figures also concerns latencies.
    """
    ended = [
        trial.trial for trial in trials if trial.values and worst_verdict(findings[trial.trial]) != Verdict.INVALID
    ]
    # By the kind of figures: the number of disturbed repeats as text, and whether they are a minority.
    counted: dict[str, tuple[str, bool]] = {}
    for abouts in (("all",), ("all", "latencies")):
        had = {
            trial: {finding.check for finding in findings[trial] if finding.effect.disturbs and finding.about in abouts}
            for trial in ended
        }
        checks = {check for item in had.values() for check in item}
        blind = {
            trial
            for trial in ended
            if any(finding.check in checks and finding.about in abouts for finding in unseen[trial])
        }
        count = sum(bool(had[trial]) or trial in blind for trial in ended)
        if len(ended) >= REPEATS_MIN:
            text = f"{count} of {len(ended)} repeats {'is' if count == 1 else 'are'}"
            counted[abouts[-1]] = text, MINORITY * len(ended) >= count

    def state_count(finding: Finding) -> Finding:
        text, is_minority = counted.get(finding.about, ("", False)) if finding.effect.disturbs else ("", False)
        if is_minority:
            return replace(finding, severity=Severity.NOTE, hint=MINORITY_HINT.format(text))
        return replace(finding, hint=MAJORITY_HINT.format(finding.hint, text)) if text else finding

    return {trial.trial: tuple(map(state_count, findings[trial.trial])) for trial in trials}


def effective_findings(trials: Sequence[TrialResult], findings: Mapping[str, Sequence[Finding]]) -> Iterator[Finding]:
    """The findings that count against a variant: all except notes that are not disturbances."""
    return (
        finding
        for trial in trials
        for finding in findings[trial.trial]
        if finding.severity > Severity.NOTE or finding.effect.disturbs
    )


def overall_findings(
    results: ResultSet, variants: Variants, matches: Sequence[Match], missing: Mapping[VariantKey, Sequence[str]]
) -> Iterator[Finding]:
    """Findings on the whole result set: on missing data, and on pairs (the comparisons contain these as well)."""
    yield from attempts.find_empty(results.trials)
    planned = len({variant_key(config) for config in results.planned.values()})
    yield from attempts.find_missing_points({key: ids for key, ids in missing.items() if key not in variants}, planned)
    of_pairs = dict.fromkeys(finding for match in matches for finding in match.findings)
    yield from (finding for finding in of_pairs if finding.message != OF_SEARCH)
    yield from attempts.find_missing_counterparts(
        [variant_name(key) for key in list_unpaired(variants, matches)], len(variants)
    )
    if results.trials:
        yield from attempts.find_missing_metrics(results.question.metrics, results.metrics)
    find = results.question.find
    if find is not None and read_rule(results.question) is None:
        yield from attempts.find_unreadable_objective(str(find.get("such_that")))
    by, baseline = results.comparison_dimension, results.question.baseline
    if by is not None and baseline is not None and results.trials:
        yield from attempts.find_replaced_baseline(by, baseline, choose_baseline(results, by))
