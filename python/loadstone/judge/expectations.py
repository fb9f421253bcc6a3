"""Expectations: the interval of a figure decides whether each condition of the question is true, false or undecided.

A condition on a figure concerns each variant; a condition with `x` concerns the ratio of each contender to its
baseline. A ratio decides a condition only where changes over time cannot affect the ratio: within blocks of one run, or
across alternating runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from loadstone.format import units
from loadstone.judge import figures
from loadstone.judge.cells import bound_of
from loadstone.judge.checks import attempts, errors, rate, sides_differ, view
from loadstone.judge.compare import Comparer
from loadstone.judge.decision_table import TABLE, combine_intervals
from loadstone.judge.finding import Finding, Severity, concerns_metric
from loadstone.judge.judgement import Cell, Comparison, Expectation, Judgement, VariantKey
from loadstone.judge.order import DECIDES, list_start_times, order_of
from loadstone.judge.pairing import Match
from loadstone.judge.scenarios import is_single
from loadstone.results.result_set import variant_key, variant_name
from loadstone.results.trial_result import TrialResult
from loadstone.results.union import RUN
from loadstone.results.value import better_direction
from loadstone.search.objective import EQUAL_HINT, Term, parse_expectations
from loadstone.statistics.comparison import ALPHA
from loadstone.statistics.distributions import student_quantile
from loadstone.statistics.estimate import REPEATS_MIN, Estimate
from loadstone.statistics.intervals import LEVEL, median_rank, order_interval

# The maximum number of repeats that a remedy proposes.
REPEATS_MAX = 1000
# Units of counts, which are facts and not estimates, and examples of bounds in other units.
COUNTS = frozenset(
    {"operations", "attempts", "values", "fields", "records", "rows", "files", "clients", "segments", "jumps", "pauses"}
)
BOUNDS = {"ns": "12ms", "share": "12%", "op/s": "12 op/s", "B/s": "12 MB/s", "B": "12 MB", "B/op": "12 B/op"}
# The interval bounds for a figure whose value is unknown.
UNKNOWN = (-math.inf, math.inf)
MEASURE = "name a figure that was measured: `loadstone show --json` lists all of them"
SET_REPEATS = re.compile(r"set `repeats: (\d+)`")
FAILING = "find out why attempts fail, then run again"


def examine_expectations(judgement: Judgement, matches: Sequence[Match], comparer: Comparer) -> Iterator[Expectation]:
    """Decides every condition of the question, in order. Only a damaged or foreign folder has unreadable conditions."""
    every: list[tuple[str, Term]] = []
    for text in judgement.results.question.expect:
        try:
            every += parse_expectations(text)
        except ValueError as error:
            yield leave_undecided(
                text, "", f"the condition cannot be read: {error.args[0]}", "run the experiment again"
            )
    ratios = dict.fromkeys(term.metric for _, term in every if term.is_ratio)
    comparisons = list(judgement.comparisons)
    # Figures that the question does not compare are compared here, only to decide their expectations.
    if further := [metric for metric in ratios if all(item.metric != metric for item in comparisons)]:
        comparisons += comparer.compare_matches(matches, further)
    # The rate of false alarms is limited over all ratios together (Bonferroni).
    tests = sum(item.metric == term.metric for _, term in every if term.is_ratio for item in comparisons)
    for text, term in every:
        if term.is_ratio:
            decisions = examine_ratio(text, term, judgement, matches, comparisons, tests)
        else:
            decisions = examine_figure(text, term, judgement)
        # Separate runs, such as imported logs, have no file with the key `repeats`.
        is_one_run = judgement.results.is_one_run
        for item in decisions:
            yield item if is_one_run else replace(item, remedy=SET_REPEATS.sub(r"use at least \1 runs", item.remedy))


def examine_figure(text: str, term: Term, judgement: Judgement) -> Iterator[Expectation]:
    """Decides a condition on a figure for each variant; after a search, for the variant at the load found."""
    variants = dict(judgement.results.variants)
    if judgement.searches:
        loads = {
            variant_key({**dict(search.context), search.rule.over: int(load) if load == int(load) else load})
            for search in judgement.searches
            if search.outcome is not None and (load := search.outcome.load) is not None
        }
        variants = {key: trials for key, trials in variants.items() if key in loads}
    several = len(variants) > 1
    for key, trials in variants.items():
        name = variant_name(key) if several else ""
        result = count_errors(text, term, trials) if term.is_count else estimate_figure(text, term, key, judgement)
        yield replace(state_figure(result, term, judgement.cells.get((key, term.metric)), judgement), of=name)
    if not judgement.searches:
        for key in find_unmeasured(judgement):
            yield leave_undecided(
                text, variant_name(key), "planned but not measured", "continue with `loadstone run --resume`"
            )
    if not variants:
        yield leave_undecided(text, "", "nothing was measured", "run the experiment")


def find_unmeasured(judgement: Judgement) -> Iterator[VariantKey]:
    """The planned variants without any trial."""
    planned = dict.fromkeys(variant_key(config) for config in judgement.results.planned.values())
    return (key for key in planned if key not in judgement.results.variants)


def leave_undecided(
    text: str, of: str, why: str, remedy: str, estimate: Estimate | None = None, unit: str = ""
) -> Expectation:
    """A condition that remains undecided."""
    return Expectation(text, of, None, estimate, unit, why, remedy)


def count_errors(text: str, term: Term, trials: Sequence[TrialResult]) -> Expectation:
    """Decides a condition on the number of failed operations, which every trial must meet; nothing is estimated."""
    counted = (trial for trial in trials if trial.values and errors.has_error_counts(trial))
    known = [figures.count_failed_operations(trial) for trial in counted]
    most = max(known, default=math.nan)
    estimate = Estimate(most, len(known), min(known, default=math.nan), most) if known else None
    failing = [trial for trial in trials if trial.is_failure or trial.failures]
    violating = sum(not term.is_met_by(count) for count in known)
    if violating or failing:
        reason = f"in {violating} of {units.count_noun(len(trials), 'trial')}" if violating else ""
        attempt = f"{units.count_noun(attempts.count_failed_attempts(trials), 'attempt')} failed" if failing else ""
        return Expectation(text, "", False, estimate, "operations", "; ".join(filter(None, (reason, attempt))))
    if len(known) < len(trials) or not known:
        return leave_undecided(
            text, "", "the number of failed operations is not known", MEASURE, estimate, "operations"
        )
    if unanswered := sum(figures.count_censored(trial) for trial in trials):
        why = f"{units.count_noun(round(unanswered), 'operation')} never completed"
        return leave_undecided(text, "", why, "measure longer, or find out what delays them", estimate, "operations")
    return Expectation(text, "", True, estimate, "operations")


def estimate_figure(text: str, term: Term, key: VariantKey, judgement: Judgement) -> Expectation:
    """Decides a condition on a variant's figure by the interval of the median over all repeats."""
    trials = judgement.results.variants[key]
    cell = judgement.cells.get((key, term.metric))
    if cell is None:
        return leave_undecided(text, "", f"{term.metric} was not measured", MEASURE)
    unit = "share" if term.share else cell.unit
    if not term.share and not term.fits(unit):
        why = f"the bound must have the unit of {term.metric} ({unit or 'none'})"
        return leave_undecided(text, "", why, f"write `{term.metric} {term.sign} {BOUNDS.get(unit, 12)}`")
    findings = find_concerning(judgement, key, term.metric)
    excluded = {trial for finding in findings if is_single(finding) for trial in finding.trials}
    invalid = [item for item in findings if item.severity == Severity.INVALID and not is_single(item)]
    refusing = [item for item in invalid if item.effect.understates == 1]
    late = next((item for item in findings if item.check == rate.GENERATOR_LIMITED), None)
    samples = [(trial.trial, *ends_of(trial, term)) for trial in trials]
    estimate = interval_of([ends for name, *ends in samples])
    remaining = [ends for name, *ends in samples if name not in excluded]
    if excluded:
        estimate = combine_intervals([estimate, interval_of(remaining)])
    counted = count_trials(text, term, unit, [ends for _, *ends in samples]) if unit in COUNTS else None
    if (cell.withheld or refusing) and not (counted and counted.holds is False):
        why = cell.withheld or f"{refusing[0].check}: {refusing[0].message}"
        # A late generator may be the reason why the rate was not held.
        if not (cell.withheld or late) and is_violated_under_overload(term, estimate, refusing):
            return Expectation(text, "", False, estimate, unit, why)
        return leave_undecided(text, "", why, refusing[0].hint if refusing else "measure longer", estimate, unit)
    if counted is not None:
        return counted
    if term.sign == "==":
        return leave_undecided(text, "", "an estimate never equals a number exactly", EQUAL_HINT, estimate, unit)
    if estimate.low is None and len(remaining) < REPEATS_MIN <= len(samples):
        why = f"no interval: findings exclude {len(samples) - len(remaining)} of {len(samples)} repeats"
        return leave_undecided(text, "", why, "remedy these findings, or run more repeats", estimate, unit)
    if unknown := find_unknown_drift(findings):
        return leave_undecided(text, "", f"{unknown.check}: {unknown.message}", unknown.hint, estimate, unit)
    drift = max((finding.effect.drifts for finding in findings), default=1.0)
    faster = max((finding.effect.understates for finding in findings), default=1.0)
    estimate = widen_by_errors(estimate, term, cell, drift, faster)
    if estimate.low is None and late and all(term.decide_between(*ends) is None for ends in remaining):
        # More repeats would not narrow the distance between the two ends of each figure.
        return leave_undecided(text, "", f"{late.check}: {late.message}", late.hint, estimate, unit)
    result = decide_condition(text, term, estimate, unit)
    if drift <= 1 or estimate.low is None:
        return result
    # The tables show a narrower interval, so the reason names the drift.
    width = f"the interval allows for a drift of {units.format_ratio(drift)} within a trial"
    return replace(result, why="; ".join(filter(None, (result.why, width))))


def is_violated_under_overload(term: Term, estimate: Estimate, refusing: Sequence[Finding]) -> bool:
    """Whether a figure misses its bound because the system did not hold the rate: longer trials miss it by more."""
    if estimate.low is None or estimate.high is None or any(item.check != rate.RATE_NOT_HELD for item in refusing):
        return False
    return term.decide_between(estimate.low, estimate.high) is False


def state_figure(result: Expectation, term: Term, cell: Cell | None, judgement: Judgement) -> Expectation:
    """The expectation with the figure and bound that tables show; unchanged for shares, counts and failed trials."""
    estimate = result.estimate
    if cell is None or estimate is None or term.share or result.unit in COUNTS:
        return result
    if any(trial.is_failure for trial in judgement.results.variants[cell.variant]):
        return result
    return replace(result, estimate=replace(estimate, value=cell.estimate.value), bound=judgement.output_bound(cell))


def count_trials(text: str, term: Term, unit: str, samples: Sequence[Sequence[float]]) -> Expectation:
    """Decides a condition on a count, which every trial must meet, as for errors."""
    lows, highs = zip(*samples, strict=True)
    estimate = Estimate(max(highs), len(samples), min(lows), max(highs))
    met = [term.decide_between(*ends) for ends in samples]
    if failing := met.count(False):
        why = f"in {failing} of {units.count_noun(len(met), 'trial')}"
        return Expectation(text, "", False, estimate, unit, why)
    if None in met:
        return leave_undecided(text, "", f"{term.metric} is unknown in some trials", MEASURE, estimate, unit)
    return Expectation(text, "", True, estimate, unit)


def find_concerning(judgement: Judgement, key: VariantKey, metric: str) -> list[Finding]:
    """The findings on a variant and its trials that concern a metric.

    Findings on failed operations are omitted, since figures include these operations. Failures in the load phase and
    sessions that did not close are kept.
    """
    every = dict.fromkeys(judgement.variants.get(key, ()))
    for trial in judgement.results.variants[key]:
        every.update(dict.fromkeys(judgement.trials.get(trial.trial, ())))
    lost = [item for trial in judgement.results.variants[key] for item in errors.find_unclosed_sessions(trial)]
    return [
        finding
        for finding in every
        if concerns_metric(finding, metric)
        and (finding.check != errors.NAME or finding in lost or errors.PHASES[errors.LOAD] in finding.message)
    ]


def ends_of(trial: TrialResult, term: Term) -> tuple[float, float]:
    """The lowest and the highest possible figure of a trial; a failed trial or operation has the worst figure."""
    value = trial.values.get(term.metric)
    direction = better_direction(term.metric, value.unit if value else "")
    if trial.is_failure and direction is not None:
        return (0.0, 0.0) if direction == "higher" else (math.inf, math.inf)
    if trial.is_failure or value is None:
        return UNKNOWN
    if term.metric == "ledger.lost":
        # The expectation is about missing writes, even if the system's guarantee allows their loss.
        missing = value.value + (trial.value("ledger.lost_allowed") or 0)
        return missing, missing + (trial.value("ledger.undecided") or 0)
    if term.share:
        # Operations that never completed may have failed or succeeded.
        unanswered = figures.count_censored(trial)
        due = (figures.count_operations(trial) or 0) + unanswered
        return (value.value / due, (value.value + unanswered) / due) if due else UNKNOWN
    bound = bound_of(trial, term.metric)
    if bound is not None:
        return (math.inf if bound == "failed" else value.value), math.inf
    low = trial.value(figures.lower_name(term.metric)) if figures.is_latency(term.metric) else None
    return (value.value if low is None else min(low, value.value)), value.value


def interval_of(samples: Iterable[Sequence[float]]) -> Estimate:
    """The median of figures, each known as (low, high), with an interval that covers the intervals of both ends."""
    ends = np.array([*samples], dtype=float).reshape(-1, 2)
    n = len(ends)
    if not n:
        return Estimate(math.nan, 0)
    lows, highs = ends.T
    value = float(np.sort(highs)[n // 2]) if math.isinf(highs.max()) else float(np.median(highs))
    if n < REPEATS_MIN:
        return Estimate(value, n)
    low, high = float(order_interval(lows).low), float(order_interval(highs).high)
    return Estimate(value, n, low, high, median_rank(n)[1], "median, order statistics")


def find_unknown_drift(findings: Iterable[Finding]) -> Finding | None:
    """The first finding on a drift of unknown size, for which no number of repeats can compensate."""
    return next((finding for finding in findings if math.isinf(finding.effect.drifts)), None)


def widen_by_errors(estimate: Estimate, term: Term, cell: Cell, drift: float, faster: float) -> Estimate:
    """An estimate with its interval widened by known errors: resolution, drift, and the engine's share of the time.

    `drift` and `faster` are factors of at least 1.
    """
    if estimate.low is None or estimate.high is None:
        return estimate
    low, high = estimate.low / drift / (1 + cell.resolution), estimate.high * drift * (1 + cell.resolution)
    if better_direction(term.metric, cell.unit) == "higher":
        high *= faster
    elif not term.share:
        low /= faster
    return replace(estimate, low=low, high=high)


def decide_condition(text: str, term: Term, estimate: Estimate, unit: str) -> Expectation:
    """Decides a condition by an interval; if it is undecided, proposes the number of repeats that would decide it."""
    if estimate.low is None or estimate.high is None:
        why = f"no interval from {units.count_noun(estimate.n, 'repeat')}"
        return leave_undecided(text, "", why, f"set `repeats: {REPEATS_MIN}`", estimate, unit)
    holds = term.decide_between(estimate.low, estimate.high)
    if holds is None:
        return leave_undecided(
            text, "", "the interval contains the bound", propose_repeats(term, estimate), estimate, unit
        )
    return Expectation(text, "", holds, estimate, unit)


def propose_repeats(term: Term, estimate: Estimate) -> str:
    """A remedy with the number of repeats that would decide a condition if the figure and its spread stayed the same.

    The interval narrows with √n.
    """
    assert estimate.low is not None
    assert estimate.high is not None
    ends = (estimate.low, estimate.high, estimate.value, term.bound)
    if not all(0 < end < math.inf for end in ends):
        return "run more repeats"
    half, distance = math.log(estimate.high / estimate.low) / 2, abs(math.log(estimate.value / term.bound))
    needed = math.ceil(estimate.n * (half / distance) ** 2) if distance else math.inf
    if needed > REPEATS_MAX:
        return f"more than {REPEATS_MAX:,} repeats would be needed: choose a bound further from the figure"
    return f"set `repeats: {max(round(needed), estimate.n + 1)}`"


def examine_ratio(
    text: str, term: Term, judgement: Judgement, matches: Sequence[Match], comparisons: Sequence[Comparison], tests: int
) -> Iterator[Expectation]:
    """Decides a condition on the ratio of each contender to its baseline."""
    concerned = [item for item in comparisons if item.metric == term.metric]
    by_sides = {(match.baseline, match.contender): match for match in matches}
    covered: set[VariantKey] = set()
    for item in concerned:
        sides = item.baseline.variant, item.contender.variant
        covered.update(sides)
        contender, baseline = (dict(side).get(item.by) for side in reversed(sides))
        context = f", {variant_name(item.context)}" if item.context and len(matches) > 1 else ""
        of = f"{contender} ÷ {baseline}{context}"
        yield replace(judge_ratio(text, term, item, by_sides[sides], judgement, tests), of=of)
    if judgement.results.is_one_run:
        remedy = "compare the new build with the old one in one experiment: `vary: {system: [old, new]}`"
    elif judgement.results.question.by == RUN:
        remedy = "name results with the same variants: a ratio needs each variant on both sides"
    else:
        remedy = f"name the results of both builds: `loadstone compare OLD NEW --expect '{text}'`"
    if not concerned:
        why = f"{term.metric} was not measured on both sides" if matches else "there is no baseline to compare with"
        yield leave_undecided(text, "", why, MEASURE if matches else remedy)
        return
    for key in (*(key for key in judgement.results.variants if key not in covered), *find_unmeasured(judgement)):
        yield leave_undecided(text, variant_name(key), "there is no baseline to compare with", remedy)


def judge_ratio(
    text: str, term: Term, comparison: Comparison, match: Match, judgement: Judgement, tests: int
) -> Expectation:
    """Decides a condition on one ratio, by its interval over all scenarios except failures."""
    rows = [row.ratio for row in comparison.scenarios if row.name != TABLE["failures"].name]
    ratio = widen_by_tests(combine_intervals(rows or [comparison.ratio]), tests)
    refusal = refuse_ratio(comparison, match, judgement)
    if refusal:
        return leave_undecided(text, "", *refusal, ratio, "×")
    cells = comparison.baseline, comparison.contender
    if cells[1].bound == "failed" and cells[1].bounded == len(cells[1].samples) >= REPEATS_MIN and not cells[0].bound:
        # The contender's figure is infinite, and the baseline's is finite.
        why = f"{term.metric} is unbounded, as too many operations failed in every repeat"
        return Expectation(text, "", term.is_met_by(math.inf), None, "×", why)
    if any(cell.bound for cell in cells):
        return leave_undecided(text, "", comparison.why, "use a lower percentile, or throughput", ratio, "×")
    if math.isnan(ratio.value):
        why = f"{term.metric} is 0 in some repeats, which have no ratio"
        return leave_undecided(text, "", why, "write the bound without `x`", None, "×")
    if unknown := find_unknown_drift(comparison.findings):
        return leave_undecided(text, "", f"{unknown.check}: {unknown.message}", unknown.hint, ratio, "×")
    # If a scenario covers the drift, its row is among `rows`.
    is_covered = any(row.name == TABLE["drift"].name for row in comparison.scenarios)
    drift = 1.0 if is_covered else max((finding.effect.drifts for finding in comparison.findings), default=1.0)
    if ratio.low is not None and ratio.high is not None:
        ratio = replace(ratio, low=ratio.low / drift, high=ratio.high * drift)
    decided = decide_condition(text, term, ratio, "×")
    lost = [attempts.count_failed_attempts(trials) for trials in match.pair.sides]
    # A failed attempt has the worst figure, which can only refute a decision in favour of its side.
    better = decided.holds == (term.sign.startswith(">") == (comparison.direction == "higher"))
    if decided.holds is not None and lost[1 if better else 0]:
        side = (match.pair.baseline, match.pair.contender)[1 if better else 0]
        why = f"{units.count_noun(lost[1 if better else 0], 'attempt')} of {side} failed"
        return leave_undecided(text, "", why, FAILING, ratio, "×")
    return decided


def refuse_ratio(comparison: Comparison, match: Match, judgement: Judgement) -> tuple[str, str] | None:
    """The reason why a ratio cannot decide a condition, with a remedy; None if it can."""
    if comparison.baseline.withheld or comparison.contender.withheld:
        return comparison.baseline.withheld or comparison.contender.withheld, "measure longer"
    if comparison.claim == "refused":
        worst = max(comparison.findings, key=lambda finding: finding.severity)
        return f"{worst.check}: {worst.message}", worst.hint
    pair = match.pair
    if pair.is_one_run and not pair.blocks:
        return "the sides were not interleaved, so a change over time would look the same", DECIDES
    if not pair.is_one_run and (why := refuse_runs(match, judgement)):
        return why, DECIDES
    differing = [
        finding
        for finding in comparison.findings
        if finding.check in (sides_differ.NAME, view.NAME) and finding.severity >= Severity.UNCHECKED
    ]
    return (differing[0].message, differing[0].hint) if differing else None


def refuse_runs(match: Match, judgement: Judgement) -> str:
    """The reason why two sides of separate runs cannot be compared; empty if they can."""
    times = [list_start_times(judgement.results, trials, by_run=True) for trials in match.pair.sides]
    if None in times:
        return "the start times of the runs are unknown, so they may not have alternated"
    # A run that is listed under two names counts once.
    runs = [0 if began is None else len(set(began)) for began in times]
    if min(runs) < REPEATS_MIN:
        names = (match.pair.baseline, match.pair.contender)
        counts = " and ".join(f"{units.count_noun(n, 'run')} of {name}" for n, name in zip(runs, names, strict=True))
        return f"{counts}: builds measured at different times also differ because conditions change"
    return "" if order_of(*times) == "alternating" else "the runs of both sides did not alternate"


def widen_by_tests(ratio: Estimate, tests: int) -> Estimate:
    """A ratio with its interval widened for the number of tests (Bonferroni), by Student's t on logarithms."""
    if (
        ratio.low is None
        or ratio.high is None
        or tests < 2
        or not 0 < ratio.low <= ratio.value <= ratio.high < math.inf
    ):
        return ratio
    factor = student_quantile(ALPHA / 2 / tests, ratio.n - 1) / student_quantile(ALPHA / 2, ratio.n - 1)
    low, high = ((ratio.value * (end / ratio.value) ** factor) for end in (ratio.low, ratio.high))
    return replace(ratio, low=low, high=high, level=1 - (1 - (ratio.level or LEVEL)) / tests)
