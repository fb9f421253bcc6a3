"""The answer: one sentence that names the better side and the difference, and states whether to trust them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from loadstone.format import units, wording
from loadstone.judge.checks import faults
from loadstone.judge.checks.too_few_samples import too_few
from loadstone.judge.clause import (
    Clause,
    capacity_clause,
    comparison_clause,
    context_prefix,
    explain_undecided,
    name_side,
)
from loadstone.judge.figures import ALL, OUTSIDE_LOAD, is_latency, split_metric, target_rate
from loadstone.judge.finding import Verdict
from loadstone.judge.joint_clause import CLAUSES_MAX, count_claims, count_omitted, drop_repeated_ends, merge_comparisons
from loadstone.judge.judgement import Cell, Comparison, Curve, Judgement, Search, ShortAnswer, VariantKey
from loadstone.judge.sweep import CLIENTS, describe_span, describe_sweep, is_sweep, is_undecided
from loadstone.results.result_set import ALL_OPERATIONS, DEFAULT_METRICS, LOADS, ResultSet, variant_key, variant_name
from loadstone.results.stage import prefix_of
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import THROUGHPUT, metric_statistic
from loadstone.search.outcome import SearchOutcome
from loadstone.search.sentence import (
    contradiction_text,
    format_throughput,
    knee_text,
    outcome_parts,
    outcome_sentence,
    overlap_text,
    peak_text,
    summarize_knee,
)
from loadstone.statistics.knee import REPEATS_MIN
from loadstone.statistics.usl import COUNTS_MIN

EXPLORATORY = "exploratory, as only the first metric decides"
UNFINISHED = "the search is not finished: continue with --resume"
# Beyond these numbers, the parts and contexts of the answer are only counted, not listed.
PARTS_MAX, CONTEXTS_MAX = 12, 4
# The maximum number of contenders in the table of the answer.
CONTENDERS_MAX = 4
# The maximum number of knees in the statement.
KNEES_MAX = 3
# The minimum ratio of mean to p99 for the remark on stalls.
STALL_RATIO = 2


class Answer(NamedTuple):
    """The answer based on the deciding metric, and a clause for each further metric or remark."""

    clauses: list[str]
    short: ShortAnswer | None = None


def answer_question(judgement: Judgement, metrics: Sequence[str], matters: float) -> Answer:
    """The answer from the comparisons, else from the curves, else from the only variant.

    If the question compares numbers of clients, curves take precedence over comparisons.
    """
    comparisons, curves = judgement.comparisons, judgement.curves
    # A sweep over clients asks where throughput levels off, not how each point compares with the first.
    if comparisons and not (curves and comparisons[0].by == "clients"):
        answer = compare_variants(judgement, metrics, matters)
        is_closed = not judgement.results.is_at_rate
        if not curves and is_closed and 1 < len(judgement.results.dimensions.get(CLIENTS, ())) < COUNTS_MIN:
            no_knee = f"no knee is named: a knee requires at least {COUNTS_MIN} different numbers of clients"
            short = answer.short and replace(answer.short, remarks=(*answer.short.remarks, no_knee))
            answer = Answer([*answer.clauses, no_knee], short)
        if not (curves and is_sweep(comparisons)):
            return answer
        knees = name_knees(curves)
        # If no claim is possible, ranges of medians do not answer the question, so they come last.
        is_claimable = any(comparison.claim != "impossible" for comparison in comparisons)
        clauses = [*answer.clauses, *knees] if is_claimable else ["; ".join(knees), *answer.clauses]
        return Answer(clauses, answer.short and add_knees(answer.short, curves, knees))
    if curves:
        return Answer(["; ".join(name_knees(curves)), *describe_knee(judgement)])
    return Answer(describe_single_variant(judgement, metrics))


def add_knees(short: ShortAnswer, curves: Sequence[Curve], knees: Sequence[str]) -> ShortAnswer:
    """The short answer of a sweep with its knees: up to KNEES_MAX in the statement, and the details in remarks."""
    knee, _, why = knees[0].partition(": ") if len(knees) == 1 else ("", "", "")
    remarks = [why] if why else [] if knee else knees
    if 1 < len(curves) <= KNEES_MAX:
        names = name_contexts([curve.context for curve in curves])
        brief = [summarize_knee(curve.knee, name) for curve, name in zip(curves, names, strict=True)]
        knee = f"throughput of {', '.join(filter(None, brief))}" if any(brief) else ""
    statement = f"{short.statement}; {knee}" if knee else short.statement
    return replace(short, statement=statement, remarks=(*short.remarks, *remarks))


def name_knees(curves: Sequence[Curve]) -> list[str]:
    """One clause per knee for the first curves; curves that lack a knee for the same reason share a clause."""
    names = name_contexts([curve.context for curve in curves])
    named, shared = [*zip(curves, names, strict=True)], []
    for reason, describe in (("scatter", describe_scatter), ("few-repeats", describe_few_repeats)):
        alike = [curve for curve in curves if curve.knee.upper is None and curve.knee.unclaimed == reason]
        if len(alike) > 1:
            shared.append(describe(alike, len(curves)))
            named = [(curve, name) for curve, name in named if curve not in alike]
    own = [knee_text(curve.knee, whose=name) for curve, name in named]
    return [*own[:CLAUSES_MAX], *count_omitted(len(own) - CLAUSES_MAX), *shared]


def count_curves(curves: Sequence[Curve], every: int) -> str:
    """The number of these curves among all curves, as text: `all 12 curves`, `3 of 12 curves`."""
    return f"all {every} curves" if len(curves) == every else f"{len(curves)} of {every} curves"


def describe_few_repeats(curves: Sequence[Curve], every: int) -> str:
    """The joint clause for curves with too few repeats for a knee, with the ranges of the estimates."""
    plateaus, loads = [curve.knee.plateau for curve in curves], [curve.knee.reached or 0.0 for curve in curves]
    plateau = wording.join_ends(format_throughput(min(plateaus)), format_throughput(max(plateaus)), " to ")
    where = f"{units.format_load(min(loads))} to {units.load_over(max(loads), CLIENTS)}"
    text = f"no knee is named for {count_curves(curves, every)}: a knee requires {REPEATS_MIN} repeats of each load"
    return f"{text} (as estimates: plateaus of {plateau}, of which 95 % is reached at {where})"


def describe_scatter(curves: Sequence[Curve], every: int) -> str:
    """One clause for all curves whose repeats scatter too much for a knee; `every` is the total number of curves."""
    which = count_curves(curves, every)
    loads = {curve.knee.loads[-1] for curve in curves}
    last = units.load_over(loads.pop(), CLIENTS) if len(loads) == 1 else "its highest load"
    text = (
        f"the knee is undecided for {which}: the repeats differ too much to show whether throughput rises up to {last}"
    )
    lowers = [curve.knee.lower for curve in curves if curve.knee.lower is not None]
    if len(lowers) == len(curves):
        text += f"; every knee is above {units.load_over(min(lowers), CLIENTS)}"
    return text


def compare_variants(judgement: Judgement, metrics: Sequence[str], matters: float) -> Answer:
    """A clause for each metric that the experiment file lists, the deciding metric first.

    At a rate, throughput has a clause only if a side is overloaded.
    """
    by_metric = {
        metric: every
        for metric in metrics
        if (every := [comparison for comparison in judgement.comparisons if comparison.metric == metric])
    }
    results, first = judgement.results, next(iter(by_metric))
    listed = results.question.metrics or (metrics if results.is_at_rate else metrics[:1])
    silent = [metric for metric in listed if metric not in by_metric]
    by_metric = {metric: every for metric, every in by_metric.items() if metric in (first, *listed)}
    lead = ""
    if results.is_at_rate and first != THROUGHPUT:
        rates = {target_rate(trial) for trial in results.trials}
        rate, sides = rates.pop() if len(rates) == 1 else None, "both" if len(results.variants) == 2 else "all"
        # With a fault, operations may have been completed late, so the text does not state that the rate was sustained.
        is_faulty = any(map(faults.has_fault, results.trials))
        achieved = f", which {sides} {'completed outside the fault' if is_faulty else 'sustained'}"
        is_held = not any(name for comparison in by_metric.get(THROUGHPUT, ()) for name in comparison.capacity)
        if is_held:
            # If all sides hold the rate, throughput equals the rate and does not characterise any system.
            by_metric.pop(THROUGHPUT, None)
        lead = "" if rate is None else f"at {units.format_rate(rate)}{achieved if is_held else ''}: "
    omitted = [metric for metric in by_metric if prefix_of(metric)][CLAUSES_MAX:]
    stated = [every for metric, every in by_metric.items() if metric not in omitted]
    # If the confirmatory metric is withheld, the clause on the first exploratory metric states why there is no claim.
    stated[0] = [
        replace(comparison, exploratory=comparison.exploratory and comparison.claim != "impossible")
        for comparison in stated[0]
    ]
    # In a sweep, further metrics without a claim share a clause.
    unclaimed = [every for every in stated[1:] if is_sweep(every) and is_undecided(every)]
    stated = [every for every in stated if len(unclaimed) < 2 or every not in unclaimed]
    clauses_of = [[clause.text for clause in list_clauses(judgement, every, matters)] for every in stated]
    main, *further = ("; ".join(drop_repeated_ends(texts)) for texts in clauses_of)
    if len(unclaimed) > 1:
        spans = (f"{wording.metric_name(every[0].metric)} ({describe_span(every)})" for every in unclaimed)
        further.append(f"undecided at every compared load: {', '.join(spans)}")
    varying = varying_names(judgement, stated[0])
    detectable = list(explain_undecided(stated[0], varying)) if len(stated[0]) <= CLAUSES_MAX else []
    # A reason that all metrics share is written once.
    further = [text for text in dict.fromkeys(further) if text != main]
    claims = {comparison.claim for every in by_metric.values() for comparison in every}
    if further and claims != {"impossible"}:
        further[0] = f"{EXPLORATORY}: {further[0]}"
    remarks = [f"the tables below show {units.count_noun(len(omitted), 'further stage')}"] if omitted else []
    remarks += list_withheld_metrics(judgement, silent)
    clauses = [lead + main, *detectable, *further, *remarks]
    tabulated = {metric: every for metric, every in by_metric.items() if metric not in omitted}
    if not has_short_form(tabulated):
        return Answer(clauses)
    statement = "; ".join(clause.statement for clause in list_clauses(judgement, stated[0], matters))
    capacity = (capacity_clause(every).removeprefix("; ") for every in stated[1:])
    remarks = [*detectable, *filter(None, capacity), *remarks]
    return Answer(clauses, ShortAnswer(lead + statement, tuple(tabulated), tuple(remarks)))


def has_short_form(by_metric: Mapping[str, Sequence[Comparison]]) -> bool:
    """Whether a table can state all figures: there are two sides, or a few sides in a few contexts without a sweep.

    Every comparison must have the same baseline and enough repeats. Each ranked comparison of the deciding metric must
    have a ratio.
    """
    every = [comparison for comparisons in by_metric.values() for comparison in comparisons]
    contenders = {name_side(item, item.contender) for item in every}
    rows = {(item.metric, item.context) for item in every}
    is_small = len(contenders) <= CONTENDERS_MAX and len(rows) <= PARTS_MAX and not is_sweep(every)
    has_one_baseline = len({name_side(item, item.baseline) for item in every}) == 1
    deciding = next(iter(by_metric.values()))
    has_ratios = all(item.claim in ("refused", "unranked") or math.isfinite(item.ratio.value) for item in deciding)
    is_claimable = all(item.claim != "impossible" for item in every)
    return (len(contenders) == 1 or is_small) and has_one_baseline and has_ratios and is_claimable


def list_withheld_metrics(judgement: Judgement, metrics: Sequence[str]) -> Iterator[str]:
    """The metrics without a comparison because their figures are withheld or missing, each with the reason."""
    for metric in metrics:
        cells = [cell for (_, name), cell in judgement.cells.items() if name == metric and cell.withheld]
        if cells:
            yield f"{wording.metric_name(metric)} is withheld: {cells[0].withheld}"
        elif "." not in metric and metric not in judgement.results.metrics:
            yield f"no trial has the figure {metric}"


def list_clauses(judgement: Judgement, comparisons: Sequence[Comparison], matters: float) -> Iterator[Clause]:
    """The clauses of one metric, with their contexts; in a sweep, one clause for each contender and context."""
    varying = varying_names(judgement, comparisons)
    contexts = {comparison.context for comparison in comparisons}
    if is_sweep(comparisons):
        yield from describe_sweep(judgement, comparisons, varying)
    elif len(comparisons) == len(contexts) <= CLAUSES_MAX:
        for comparison in comparisons:
            prefix, clause = context_prefix(comparison, varying), comparison_clause(judgement, comparison, matters)
            yield Clause(prefix + clause.text, prefix + clause.statement)
    elif len(comparisons) <= PARTS_MAX and len(contexts) <= CONTEXTS_MAX:
        yield merge_comparisons(judgement, comparisons, varying, matters)
    else:
        yield from (Clause(text, text) for text in count_claims(comparisons))


def varying_names(judgement: Judgement, comparisons: Sequence[Comparison]) -> set[str]:
    """The names of the dimensions in which the contexts differ, including contexts that could not be compared."""
    values = judgement.results.dimensions
    return {name for name, _ in comparisons[0].context if len(values.get(name, ())) > 1}


def describe_knee(judgement: Judgement) -> Iterator[str]:
    """If there is one curve and its knee has an upper end, the latencies at each known end of the bracket: `read p99 is
    1.20 ms at 8, 2.40 ms at 16 clients`."""
    curve = judgement.curves[0]
    ends = [load for load in (curve.knee.lower, curve.knee.upper) if load is not None]
    if len(judgement.curves) > 1 or curve.knee.upper is None:
        return
    question = judgement.results.question
    metrics = question.metrics or [metric for metric in DEFAULT_METRICS if metric_statistic(metric) == "p99"]
    for metric in filter(is_latency, metrics):
        keys = [
            variant_key({**dict(curve.context), CLIENTS: int(load) if load.is_integer() else load}) for load in ends
        ]
        cells = [cell for key in keys if (cell := judgement.cells.get((key, metric))) and not cell.withheld]
        if len(cells) == len(ends):
            texts = [
                f"{wording.estimate_text(cell.estimate, cell.unit, cell.bound)} at {units.format_load(load)}"
                for cell, load in zip(cells, ends, strict=True)
            ]
            yield f"{wording.metric_name(metric)} is {', '.join(texts)} clients"


def summarize_searches(judgement: Judgement) -> Answer:
    """The answer from the searches; if there are several, all claims come first, then the details of each search."""
    searches = judgement.searches
    names = name_contexts([search.context for search in searches])
    parts = [outcome_parts(search.outcome) if search.outcome else (UNFINISHED, "") for search in searches]
    mixed = [metric for search in searches[:1] for metric in list_parts(judgement, search)]
    objective = searches[0].rule.objective.text if mixed and searches[0].rule.objective else ""

    def name_operations(text: str) -> str:
        return text.replace(objective, f"{objective} over all operations", 1) if objective else text

    parts = [(name_operations(claim), details) for claim, details in parts]
    first = [*zip(names, parts, strict=True)][:PARTS_MAX]
    claims = [f"{name}: {claim}" if name else claim for name, (claim, _) in first]
    overlap = overlap_text([search.outcome for search in searches])
    claim = "; ".join(filter(None, [*claims, *count_omitted(len(searches) - PARTS_MAX), overlap]))
    if len(searches) == 1:
        outcome = searches[0].outcome
        clauses = [name_operations(outcome_sentence(outcome)) if outcome else UNFINISHED]
    else:
        clauses = [claim, *(f"{name}: {details}" for name, (_, details) in first if details)]
    outcomes = [search.outcome for search in searches]
    if len(searches) > PARTS_MAX or not all(outcome and is_tabular(outcome) for outcome in outcomes):
        return Answer(clauses)
    remarks = [
        f"{name}: {text}" if name else text
        for name, search in zip(names, searches, strict=True)
        if (outcome := search.outcome)
        for text in (contradiction_text(outcome), describe_load(judgement, search, mixed))
        if text
    ]
    return Answer(clauses, ShortAnswer(claim, (), tuple(remarks)))


def list_parts(judgement: Judgement, search: Search) -> list[str]:
    """The latency metrics of each operation type if the objective covers all operations; empty for a single type."""
    terms = () if search.rule.objective is None else search.rule.objective.terms
    statistics = {split_metric(term.metric)[1] for term in terms if term.metric.startswith(f"{ALL}.")}
    measured = [(metric, *split_metric(metric)) for metric in judgement.results.metrics if not prefix_of(metric)]
    # A name with a dot, such as `read.service`, is a further figure of an operation type.
    parts = [
        metric
        for metric, name, statistic in measured
        if statistic in statistics and "." not in name and name not in {"", ALL, *OUTSIDE_LOAD}
    ]
    return parts if len(parts) > 1 else []


def describe_load(judgement: Judgement, search: Search, metrics: Sequence[str]) -> str:
    """The latencies of each operation type at the answer's load, and the peak of throughput: `at 8 clients, read p99 is
    4.25 µs and …`."""
    outcome, key = search.outcome, answer_key(search)
    if outcome is None or outcome.load is None or key is None:
        return ""
    cells = [cell for metric in metrics if (cell := judgement.cells.get((key, metric))) and not cell.withheld]
    figures = [
        f"{wording.metric_name(cell.metric)} is {wording.estimate_text(cell.estimate, cell.unit, cell.bound)}"
        for cell in cells
    ]
    parts = f"at {outcome.rule.format_load(outcome.load)}, {units.join_names(figures)}" if figures else ""
    return "; ".join(filter(None, (parts, peak_text(outcome))))


def answer_key(search: Search) -> VariantKey | None:
    """The variant with the load that a search found; None without such a load."""
    outcome = search.outcome
    if outcome is None or outcome.load is None:
        return None
    return variant_key({**dict(search.context), outcome.rule.over: outcome.load})


def describe_stalls(judgement: Judgement) -> Iterator[str]:
    """A remark on variants in which rare operations take over half of the time: neither throughput nor p99 shows this.

    If the mean is at least twice the p99, the slowest 1 % of the operations take over half of the sum of all latencies.
    """
    stalled = {
        key: ratios
        for key, trials in judgement.results.variants.items()
        if len(ratios := [ratio for trial in trials if (ratio := stall_ratio(trial)) >= STALL_RATIO]) * 2 > len(trials)
    }
    if not stalled:
        return
    # What happens at the answers of searches concerns readers more than what happens at other loads.
    at_answers = {answer_key(search) for search in judgement.searches}
    answers = [key for key in stalled if key in at_answers]
    worst = max(answers or stalled, key=lambda key: median(stalled[key]))
    where = name_point(judgement.results, worst)
    more = f" (also in {units.count_noun(len(stalled) - 1, 'other variant')})" if len(stalled) > 1 else ""
    times = units.format_ratio(median(stalled[worst]))
    text = f"the slowest 1 % of the operations take over half of the total time{where}: the mean is {times} p99"
    yield text.replace("×", " times") + more


def name_point(results: ResultSet, key: VariantKey) -> str:
    """A variant's name with the load last, ` with lmdb at 11 clients`; empty for a single variant."""
    over = next((name for name in LOADS if len(results.dimensions.get(name, ())) > 1), "")
    contexts = [*dict.fromkeys(tuple(pair for pair in other if pair[0] != over) for other in results.variants)]
    name = name_contexts(contexts)[contexts.index(tuple(pair for pair in key if pair[0] != over))]
    load = f" at {units.load_over(float(dict(key)[over]), over)}" if over else ""
    return (f" with {name}" if name else "") + load


def stall_ratio(trial: TrialResult) -> float:
    """The mean latency ÷ p99; 0 if either is unknown."""
    mean, p99 = trial.value(f"{ALL}.mean"), trial.value(f"{ALL}.p99")
    return mean / p99 if mean and p99 else 0.0


def is_tabular(outcome: SearchOutcome) -> bool:
    """Whether a table of the loads around the answer is useful, which requires that the search found a load for an
    objective."""
    return outcome.kind == "found" and outcome.rule.objective is not None


def name_contexts(contexts: Sequence[VariantKey]) -> list[str]:
    """A name for each context, without the parts that all contexts share; a system is named without `system=`.

    A single context has an empty name.
    """
    if len(contexts) == 1:
        return [""]
    shared = set.intersection(*map(set, contexts)) if contexts else set()
    own = [tuple(pair for pair in context if pair not in shared) for context in contexts]
    return [str(pairs[0][1]) if [name for name, _ in pairs] == ["system"] else variant_name(pairs) for pairs in own]


def describe_single_variant(judgement: Judgement, metrics: Sequence[str]) -> list[str]:
    """The answer without comparisons: the figures of the only variant, or the reason why there is no answer."""
    variants = {key for key, metric in judgement.cells if metric in metrics}
    if len(variants) != 1:
        return describe_unpaired_variants(judgement, metrics) if variants else ["nothing was measured"]
    (key,) = variants
    requested = [*(metrics if judgement.results.question.metrics else metrics[:1])]
    if requested == [THROUGHPUT]:
        # Throughput alone says little about a system.
        requested += [*filter(is_latency, metrics)] or ALL_OPERATIONS
    cells = [cell for metric in requested if (cell := judgement.cells.get((key, metric)))]
    # With a single variant, a valid verdict is not mentioned.
    trust = "" if judgement.verdict == Verdict.VALID else f", {judgement.verdict}"
    figures = [figure_of(judgement, cell, trust) for cell in cells]
    rates = {target_rate(trial) for trial in judgement.results.trials}
    rate = rates.pop() if judgement.results.is_at_rate and len(rates) == 1 else None
    if rate is not None and figures:
        figures[0] = f"at the requested {units.format_rate(rate)}, {figures[0]}"
    return figures


def describe_unpaired_variants(judgement: Judgement, metrics: Sequence[str]) -> list[str]:
    """The answer for variants that cannot be compared with each other: one figure for each of the first variants."""
    first: dict[VariantKey, Cell] = {}
    for metric in metrics:
        for (key, name), cell in judgement.cells.items():
            if name == metric:
                first.setdefault(key, cell)
    names = name_contexts([*first])
    clauses = [
        f"{name}: {figure_of(judgement, cell, '')}"
        for name, cell in zip(names[:CLAUSES_MAX], first.values(), strict=False)
    ]
    return ["; ".join(["nothing to compare", *clauses, *count_omitted(len(first) - CLAUSES_MAX)])]


def figure_of(judgement: Judgement, cell: Cell, trust: str) -> str:
    """A clause for one figure."""
    metric, estimate, unit = wording.metric_name(cell.metric), cell.estimate, cell.unit
    if cell.withheld:
        return f"{metric} is withheld: {cell.withheld}"
    if estimate.low is None or estimate.high is None or estimate.level is None:
        between = too_few(estimate.n)
    else:
        ends = wording.span_text(estimate.low, estimate.high, unit, wording.last_digit(estimate), " to ")
        between = f"{estimate.level * 100:.3g} % interval {ends}, n={estimate.n}"
    text = wording.estimate_text(estimate, unit, judgement.output_bound(cell))
    fate = "failed" if text == "failed" else "were never answered"
    verb = f"is unbounded, as too many operations {fate}" if cell.bound == "failed" else f"is {text}"
    return f"{metric} {verb} ({between}{trust})"
