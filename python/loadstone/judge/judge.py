"""Runs every check on a result set, compares its variants, and writes the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from loadstone.judge.answer import answer_question, describe_stalls, summarize_searches
from loadstone.judge.cells import Cells
from loadstone.judge.checks import attempts, faults, not_steady, sides_differ, view
from loadstone.judge.compare import Comparer, settle_finding
from loadstone.judge.expectations import examine_expectations
from loadstone.judge.finding import Finding, NotLooked, Severity, Verdict, worst_verdict
from loadstone.judge.findings import check_trial, judge_variant, missing_trials
from loadstone.judge.judgement import Comparison, Judgement, VariantKey
from loadstone.judge.order import OF_SEARCH
from loadstone.judge.outages import describe_failures, outage_clauses, summarize_outages
from loadstone.judge.pairing import Match, Variants, choose_baseline, list_paired, list_unpaired, match_variants
from loadstone.judge.search import judge_searches, read_rule
from loadstone.judge.settings import Own, Settings
from loadstone.judge.sweep import CURVES_MAX, find_unequal_windows, fit_curves
from loadstone.results.result_set import ResultSet, deciding_metrics, variant_key, variant_name
from loadstone.results.stage import stages_of
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.results.value import THROUGHPUT
from loadstone.statistics.autocorrelation import run_mean
from loadstone.statistics.estimate import REPEATS_MIN, Estimate

# At most this share of a variant's repeats may be disturbed by chance.
MINORITY = 1 / 3
MINORITY_HINT = (
    "no action needed: {} disturbed (a claim tolerates a third), and the claim is also tested without disturbed repeats"
)
MAJORITY_HINT = "{}; over all checks, {} disturbed, and a claim tolerates at most a third"


@dataclass(frozen=True)
class ExaminedTrials:
    """The results of single-trial checks, by trial id."""

    findings: Mapping[str, tuple[Finding, ...]]
    not_looked: Mapping[str, Sequence[NotLooked]]
    # The throughput within each trial, and the levels of throughput and percentiles in the parts of the window.
    within: Mapping[str, Estimate]
    levels: Mapping[str, not_steady.Levels]
    # The trials in which a changed threshold hides a finding, by check, for each of the stricter settings.
    loosened: Mapping[Severity, dict[str, list[str]]]


def judge_results(results: ResultSet, *, rank_invalid: bool = False) -> Judgement:
    """Judges a result set; with `rank_invalid`, comparisons with an invalid side are also ranked.

    Each step uses the findings of the preceding steps. Raises LoadstoneError when the question sets an unknown
    threshold.
    """
    own = Own(results)
    cells = Cells(results.variants, own)
    missing = missing_trials(results)
    stricter = stricter_settings(results, own)
    examined = examine_trials(results, own, stricter)
    pairs = pair_variants(results, own.common, examined)
    of_variants = examine_variants(results, own, cells, examined, missing, list_paired(pairs))
    for severity, strict in stricter.items():
        # The findings on variants and pairs under the stricter thresholds.
        before = examine_variants(results, strict, cells, examined, missing, list_paired(pairs))
        hidden = [gone for key in before for gone in view.find_hidden(before[key], of_variants[key])]
        for strict_pair, match in zip(pair_variants(results, strict.common, examined), pairs, strict=True):
            hidden += view.find_hidden(strict_pair.findings, match.findings)
        for finding in hidden:
            examined.loosened[severity].setdefault(finding.check, []).extend(finding.trials)
    departures = view.departure_findings(results, examined.loosened, own)
    matches = [replace(match, findings=(*match.findings, *departures)) for match in pairs]
    # A minority of disturbed repeats does not count against its variant in the comparisons.
    findings = note_minorities(results, examined)
    effective = {
        key: (*of_variants[key], *effective_findings(trials, findings)) for key, trials in results.variants.items()
    }
    comparer = Comparer(cells, effective, examined.levels, results, rank_invalid, own.common)
    comparisons = comparer.compare_matches(matches, results.headline_metrics)
    # The comparisons decide which drifts become notes, and so which trials count in curves and searches.
    findings = settle_findings(results, findings, comparisons)
    curves = list(
        fit_curves(
            select_ranked(results, findings, rank_invalid), interleaved=results.interleaved and not results.pooled
        )
    )
    judgement = Judgement(
        results=results,
        trials=findings,
        within=examined.within,
        variants=of_variants,
        cells=cells,
        comparisons=comparisons,
        curves=curves,
        searches=judge_searches(results.question, results.trials, findings, own.common),
        outages=summarize_outages(results.variants, findings, own.common),
        findings=tuple(
            dict.fromkeys((*departures, *overall_findings(results, results.variants, matches, missing, own.common)))
        ),
        not_looked=Counter(chain(*examined.not_looked.values(), *(match.not_looked for match in matches))),
        notes={"curves": f"only the first {CURVES_MAX} curves were fitted"} if len(curves) == CURVES_MAX else {},
    )
    judgement = replace(judgement, expectations=tuple(examine_expectations(judgement, matches, comparer)))
    return state_answer(judgement, own.common)


def stricter_settings(results: ResultSet, own: Own) -> dict[Severity, Own]:
    """The original thresholds, keyed by the severity of the finding that reports changed thresholds.

    The entry for SUSPECT has the recorded thresholds, if the view changes them; the entry for NOTE has the defaults, if
    the experiment changes them.
    """
    stricter, recorded = {}, results.recorded
    if recorded is not None and recorded.checks != results.question.checks:
        stricter[Severity.SUSPECT] = Own(replace(results, question=replace(results.question, checks=recorded.checks)))
    if any(question.checks for question in (results.question, *results.own.values())):
        stricter[Severity.NOTE] = own.use_defaults()
    return stricter


def examine_trials(results: ResultSet, own: Own, stricter: Mapping[Severity, Own]) -> ExaminedTrials:
    """Runs the checks of single trials."""
    findings: dict[str, tuple[Finding, ...]] = {}
    not_looked: dict[str, Sequence[NotLooked]] = {}
    within: dict[str, Estimate] = {}
    levels: dict[str, not_steady.Levels] = {}
    loosened: dict[Severity, dict[str, list[str]]] = {severity: {} for severity in stricter}
    for trial in results.trials:
        # Read once and then released: ten thousand time series take more memory than all figures.
        series = results.series(trial.trial)
        settings = own.settings_of(trial.trial)
        findings[trial.trial], not_looked[trial.trial] = check_trial(trial, series, settings)
        for severity, strict in stricter.items():
            before, _ = check_trial(trial, series, strict.settings_of(trial.trial))
            for hidden in view.find_hidden(before, findings[trial.trial]):
                loosened[severity].setdefault(hidden.check, []).append(trial.trial)
        if series is not None and not stages_of(trial):
            # The effects of a requested fault are not drift; nor are the stages of a rate.
            series = faults.trim_to_before(trial, series)
            levels[trial.trial] = not_steady.window_levels(series, settings)
            # For a single repeat, only the precision within the trial is known.
            if (run := run_mean(series.complete_rates)).low is not None:
                within[trial.trial] = run
    return ExaminedTrials(findings, not_looked, within, levels, loosened)


def pair_variants(results: ResultSet, settings: Settings, examined: ExaminedTrials) -> list[Match]:
    """The pairs to compare. The loads of a search are not alternatives to compare."""
    rule = read_rule(results.question)
    if rule is not None and results.comparison_dimension == rule.over:
        return []
    return match_variants(results, settings, examined.levels)


def examine_variants(
    results: ResultSet,
    own: Own,
    cells: Cells,
    examined: ExaminedTrials,
    missing: Mapping[VariantKey, Sequence[str]],
    paired: Set[VariantKey],
) -> dict[VariantKey, tuple[Finding, ...]]:
    """The findings on each variant that no single trial can show."""
    main = next(iter(results.headline_metrics), THROUGHPUT)
    jumps = {
        trial for trial, findings in examined.findings.items() if any(finding.effect.drifts > 1 for finding in findings)
    }
    by = (results.comparison_dimension or "").split(",")
    interruptions: Counter[tuple[Scalar | None, ...]] = Counter()
    for trial_of in results.trials:
        interruptions[tuple(map(trial_of.config.get, by))] += trial_of.interruptions
    of_variants = {}
    for key, trials in results.variants.items():
        side = tuple(map(dict(key).get, by))
        elsewhere = max((count for other, count in interruptions.items() if other != side), default=0)
        settings = own.settings_of(trials[0].trial)
        # These figures also decide, during a run, whether the variant has been repeated often enough.
        deciding = deciding_metrics(trials, results.question.metrics, settings.until).items()
        cells_of = [(cells.get((key, metric)) or cells.get((key, main)), share) for metric, share in deciding]
        limits = [(cell, share) for cell, share in cells_of if cell]
        of_variants[key] = (
            *judge_variant(trials, limits, missing.get(key, ()), settings, examined.levels),
            *attempts.find_interrupted(trials, interruptions[side], elsewhere),
            *not_steady.find_common_drift(trials, examined.levels, jumps, settings),
            *(() if key in paired else sides_differ.variant_changes(trials, settings)),
        )
    return of_variants


def note_minorities(results: ResultSet, examined: ExaminedTrials) -> dict[str, tuple[Finding, ...]]:
    """The findings by trial; in a single run, disturbances of a minority of a variant's repeats become notes."""
    findings = dict(examined.findings)
    if results.is_one_run:
        for trials in results.variants.values():
            findings |= note_minority(trials, examined.findings, examined.not_looked)
    return findings


def settle_findings(
    results: ResultSet, findings: Mapping[str, tuple[Finding, ...]], comparisons: Sequence[Comparison]
) -> dict[str, tuple[Finding, ...]]:
    """The findings by trial; drifts that change none of the claims that they concern become notes."""
    return dict(findings) | {
        trial.trial: tuple(settle_finding(key, finding, comparisons) for finding in findings[trial.trial])
        for key, trials in results.variants.items()
        for trial in trials
    }


def select_ranked(
    results: ResultSet, findings: Mapping[str, Sequence[Finding]], rank_invalid: bool
) -> dict[VariantKey, list[TrialResult]]:
    """The trials of each variant that count: with `rank_invalid` all, otherwise all but the invalid trials."""
    return {
        key: [trial for trial in trials if rank_invalid or worst_verdict(findings[trial.trial]) != Verdict.INVALID]
        for key, trials in results.variants.items()
    }


def state_answer(judgement: Judgement, settings: Settings) -> Judgement:
    """The judgement with its answer."""
    results = judgement.results
    metrics = results.headline_metrics or (THROUGHPUT,)
    answer = (
        summarize_searches(judgement) if judgement.searches else answer_question(judgement, metrics, settings.matters)
    )
    # In an experiment with faults, the question is about the faults; comparisons of other figures come last.
    failures = list(describe_failures(chain.from_iterable(judgement.trials.values()))) if judgement.outages else []
    # A fault causes stalls, so they need no remark.
    stalls = () if judgement.outages else tuple(describe_stalls(judgement))
    text, *further = [*outage_clauses(judgement.outages), *failures, *answer.clauses, *stalls]
    short = answer.short and replace(answer.short, remarks=(*answer.short.remarks, *stalls))
    return replace(judgement, answer=text, further=tuple(further), short=None if judgement.outages else short)


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
    # The number of disturbed repeats as text, and whether they are a minority, for each kind of figures.
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
    results: ResultSet,
    variants: Variants,
    matches: Sequence[Match],
    missing: Mapping[VariantKey, Sequence[str]],
    settings: Settings,
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
    yield from find_unequal_windows(results, settings)
    if results.trials:
        yield from attempts.find_missing_metrics(results.question.metrics, results.metrics)
    find = results.question.find
    if find is not None and read_rule(results.question) is None:
        yield from attempts.find_unreadable_objective(str(find.get("such_that")))
    by, baseline = results.comparison_dimension, results.question.baseline
    if by is not None and baseline is not None and results.trials:
        yield from attempts.find_replaced_baseline(by, baseline, choose_baseline(results, by))
