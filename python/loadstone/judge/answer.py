"""The answer: one sentence that names the better side, the difference, and whether to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby

from loadstone.format import units, wording
from loadstone.judge.checks.too_few_samples import too_few
from loadstone.judge.curves import CLIENTS
from loadstone.judge.decision_table import excludes_one
from loadstone.judge.figures import is_latency, target_rate
from loadstone.judge.finding import Finding, Severity, Verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, Curve, Judgement, Search, VariantKey
from loadstone.judge.sweep import describe_sweep, is_sweep
from loadstone.results.result_set import ALL_OPERATIONS, DEFAULT_METRICS, name_value, variant_key, variant_name
from loadstone.results.stage import prefix_of
from loadstone.results.value import THROUGHPUT, metric_statistic
from loadstone.search.sentence import knee_text, outcome_parts, outcome_sentence
from loadstone.statistics.estimate import REPEATS_MIN, Estimate
from loadstone.statistics.usl import COUNTS_MIN

# If there are more comparisons or curves than this, they are summarised.
CLAUSES_MAX = 3
NO_CLAIM = "no claim possible"
EXPLORATORY = "exploratory, as only the first metric decides"
UNFINISHED = "the search is not finished: continue with --resume"
# If there are more parts or contexts than this, they are only counted.
PARTS_MAX, CONTEXTS_MAX = 12, 4


def answer_question(judgement: Judgement, metrics: Sequence[str], matters: float) -> list[str]:
    """The answer by the deciding metric, and a clause for each further metric that the file lists.

    It is built from the comparisons; without comparisons, from the curves; without curves, from the only variant.
    """
    comparisons, curves = judgement.comparisons, judgement.curves
    # A sweep over clients asks where throughput levels off, not how each point compares with the first.
    if comparisons and not (curves and comparisons[0].by == "clients"):
        answers = compare_variants(judgement, metrics, matters)
        is_closed = not judgement.results.is_at_rate
        if not curves and is_closed and 1 < len(judgement.results.dimensions.get(CLIENTS, ())) < COUNTS_MIN:
            answers.append(f"no knee is named: it requires {COUNTS_MIN} numbers of clients")
        if not (curves and is_sweep(comparisons)):
            return answers
        knees = "; ".join(name_knees(curves))
        # If no claim is possible, ranges of medians do not answer the question, so they come last.
        is_claimable = any(comparison.claim != "impossible" for comparison in comparisons)
        return [*answers, knees] if is_claimable else [knees, *answers]
    if curves:
        return ["; ".join(name_knees(curves)), *describe_knee(judgement)]
    return describe_single_variant(judgement, metrics)


def name_knees(curves: Sequence[Curve]) -> list[str]:
    """A clause for the knee of each of the first curves."""
    names = name_contexts([curve.context for curve in curves]) if len(curves) > 1 else [""]
    named = zip(curves[:CLAUSES_MAX], names, strict=False)
    return [*(knee_text(curve.knee, whose=name) for curve, name in named), *count_omitted(len(curves) - CLAUSES_MAX)]


def compare_variants(judgement: Judgement, metrics: Sequence[str], matters: float) -> list[str]:
    """A clause for each metric that the file lists, the deciding metric first.

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
        is_held = not any(name for comparison in by_metric.get(THROUGHPUT, ()) for name in comparison.capacity)
        if is_held:
            # If all sides hold the rate, throughput is the rate, not a property of the systems.
            by_metric.pop(THROUGHPUT, None)
        lead = (
            "" if rate is None else f"at {units.format_rate(rate)}{f', which {sides} sustained' if is_held else ''}: "
        )
    omitted = [metric for metric in by_metric if prefix_of(metric)][CLAUSES_MAX:]
    stated = [every for metric, every in by_metric.items() if metric not in omitted]
    # If the confirmatory metric is withheld, the first exploratory metric states why there is no claim.
    stated[0] = [
        replace(comparison, exploratory=comparison.exploratory and comparison.claim != "impossible")
        for comparison in stated[0]
    ]
    main, *further = (state_metric(judgement, every, matters) for every in stated)
    # A reason that all metrics share is written once.
    further = [text for text in dict.fromkeys(further) if text != main]
    claims = {comparison.claim for every in by_metric.values() for comparison in every}
    if further and claims != {"impossible"}:
        further[0] = f"{EXPLORATORY}: {further[0]}"
    if omitted:
        further.append(f"the table shows {units.count_noun(len(omitted), 'further stage')}")
    return [lead + main, *further, *list_withheld_metrics(judgement, silent)]


def list_withheld_metrics(judgement: Judgement, metrics: Sequence[str]) -> Iterator[str]:
    """The metrics without a comparison because their figures are withheld, each with the reason."""
    for metric in metrics:
        cells = [cell for (_, name), cell in judgement.cells.items() if name == metric and cell.withheld]
        if cells:
            yield f"{wording.metric_name(metric)} is withheld: {cells[0].withheld}"


def state_metric(judgement: Judgement, comparisons: Sequence[Comparison], matters: float) -> str:
    """The comparisons of one metric: a clause each, a joint clause for each baseline, or only numbers of claims."""
    varying = {
        name
        for comparison in comparisons
        for name, value in comparison.context
        if (name, value) not in comparisons[0].context
    }
    contexts = {comparison.context for comparison in comparisons}
    if is_sweep(comparisons):
        return "; ".join(describe_sweep(comparisons, varying)) + capacity_clause(comparisons)
    if len(comparisons) == 1 or (len(comparisons) <= CLAUSES_MAX and len(contexts) == len(comparisons)):
        clauses = [context_prefix(item, varying) + comparison_clause(judgement, item, matters) for item in comparisons]
        return "; ".join(drop_repeated_ends(clauses))
    if len(comparisons) <= PARTS_MAX and len(contexts) <= CONTEXTS_MAX:
        return merge_comparisons(judgement, comparisons, varying, matters)
    return "; ".join(count_claims(comparisons))


def drop_repeated_ends(clauses: Sequence[str]) -> list[str]:
    """The clauses, without ends such as `(n=3: no interval, no claim possible, valid)` that the next one repeats."""
    ends = [clause[clause.rindex(" (n=") :] if " (n=" in clause else "" for clause in clauses]
    following = [*ends[1:], ""]
    return [
        clause.removesuffix(end) if end == after and NO_CLAIM in end else clause
        for clause, end, after in zip(clauses, ends, following, strict=True)
    ]


def describe_knee(judgement: Judgement) -> Iterator[str]:
    """If there is only one knee, the latencies at its ends: `read p99 is 1.20 ms at 8, 2.40 ms at 16 clients`."""
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


def summarize_searches(searches: Sequence[Search]) -> list[str]:
    """The answer of the searches; with several searches, their claims and then the details of each."""
    if len(searches) == 1:
        return [outcome_sentence(searches[0].outcome) if searches[0].outcome else UNFINISHED]
    claims, further = [], []
    for search, name in zip(searches[:PARTS_MAX], name_contexts([search.context for search in searches]), strict=False):
        claim, details = outcome_parts(search.outcome) if search.outcome else (UNFINISHED, "")
        claims.append(f"{name}: {claim}")
        further += [f"{name}: {details}"] if details else []
    return ["; ".join([*claims, *count_omitted(len(searches) - PARTS_MAX)]), *further]


def name_contexts(contexts: Sequence[VariantKey]) -> list[str]:
    """A name for each context, without the parts that all contexts share; a system is named without `system=`."""
    shared = set.intersection(*map(set, contexts)) if contexts else set()
    own = [tuple(pair for pair in context if pair not in shared) for context in contexts]
    return [str(pairs[0][1]) if [name for name, _ in pairs] == ["system"] else variant_name(pairs) for pairs in own]


def count_omitted(number: int) -> list[str]:
    """A last clause with the number of omitted clauses, if any are omitted."""
    return [f"and {number} more"] if number > 0 else []


def qualify_verdict(verdict: Verdict, coverage: str) -> str:
    """The verdict; if it is valid and some checks could not run, also the number of checks that ran."""
    return f"{verdict}; {coverage}" if coverage and verdict == Verdict.VALID else str(verdict)


def comparison_clause(judgement: Judgement, comparison: Comparison, matters: float) -> str:
    """The clause of one comparison; the better side comes first."""
    first, second, ratio = comparison.contender, comparison.baseline, comparison.ratio
    if comparison.claim == "worse":
        first, second, ratio = second, first, inverse_ratio(ratio)
    left, right = (name_side(comparison, cell) for cell in (first, second))
    metric = wording.metric_name(comparison.metric)
    trust = trust_of(comparison, ratio, judgement.coverage)
    if comparison.claim in ("refused", "unranked"):
        verb = "refused to rank" if comparison.claim == "refused" else "cannot rank"
        more = f"; {comparison.why}" if comparison.why and comparison.claim == "refused" else ""
        return f"{verb} {left} and {right}: {refusal_reason(comparison)}{more}"
    figures = figures_of(judgement, first, second)
    if comparison.claim == "impossible":
        # Without a claim, no ratio is printed either.
        figures = figures_of(judgement, first, second, (left, right))
        why = f" ({comparison.why or too_few_text(ratio.n)}, {qualify_verdict(comparison.verdict, judgement.coverage)})"
        return f"{metric} is {figures}{'' if comparison.exploratory else why}"
    is_open = comparison.claim == "none" and comparison.exploratory
    is_open |= comparison.claim == "descriptive" and not excludes_one(ratio)
    if is_open and (ends := ratio_ends(comparison, ratio)):
        medians = figures_of(judgement, first, second, (left, right))
        # The interval is not corrected for the other comparisons.
        corrected = ", not significant after Holm's correction" if excludes_one(ratio) else ""
        return f"{metric} is undecided: {medians} (interval of the ratio {ends}{corrected})"
    if comparison.claim in UNDECIDED:
        ratio_clause = f"ratio {wording.ratio_text(ratio).removesuffix('×')}, " if math.isfinite(ratio.value) else ""
        trust = ratio_clause + trust_of(comparison, ratio, judgement.coverage, ratio_ends(comparison, ratio))
        # For a latency, the values matter, not only the factor.
        trust = f"{figures}, {trust}" if is_latency(comparison.metric) else trust
        what = text_without_winner(comparison.claim, matters)
        why = f"; {comparison.why}" if comparison.why else ""
        return f"{what} in {metric} between {left} and {right} ({trust}){capacity_clause([comparison])}{why}"
    if math.isfinite(ratio.value):
        change = wording.change_text(ratio, bound=comparison.bound)
        relation = f"{metric} is {change} as high with {left} as with {right}"
        if wording.is_lower(ratio.value):
            relation = f"{metric} is {change} with {left} than with {right}"
        elif comparison.metric == THROUGHPUT:
            relation = f"{left} holds {change} the {metric} of {right}"
        relation = comparison.condition + relation
        figures = f"{figures}, " if is_latency(comparison.metric) else ""
    else:
        relation, figures = f"{metric} of {left} and {right} is {figures}", ""
    return f"{relation} ({figures}{trust}){capacity_clause([comparison])}"


def ratio_ends(comparison: Comparison, ratio: Estimate) -> str:
    """The interval of a ratio without a claim: as measured, and over all scenarios if these differ."""
    every = wording.ratio_interval(ratio)
    alone = comparison.scenarios[0].ratio if comparison.scenarios else ratio
    measured = wording.ratio_interval(alone)
    if not measured or (alone.low, alone.high) == (ratio.low, ratio.high) or measured == every:
        return every
    return f"{measured} as measured{f', {every} over all scenarios' if every else ''}"


def trust_of(comparison: Comparison, ratio: Estimate, coverage: str, ends: str = "") -> str:
    """Interval, n and verdict; an exploratory metric omits the parts that the first metric states."""
    if not comparison.exploratory:
        return f"{interval_text(ratio, ends)}{comparison.n_text}, {qualify_verdict(comparison.verdict, coverage)}"
    ends = wording.change_interval(ratio) and (ends or wording.change_interval(ratio))
    return ", ".join(part for part in (ends, comparison.n_text, str(comparison.verdict)) if part)


def figures_of(judgement: Judgement, first: Cell, second: Cell, names: Sequence[str] = ("", "")) -> str:
    """Both medians: `0.61 ms against 2.44 ms`; with names, `0.61 ms with lmdb, 2.44 ms with rocksdb`."""
    texts = [wording.estimate_text(cell.estimate, cell.unit, judgement.output_bound(cell)) for cell in (first, second)]
    if any(names):
        return ", ".join(f"{text} with {name}" for text, name in zip(texts, names, strict=True))
    return " against ".join(texts)


def capacity_clause(comparisons: Sequence[Comparison]) -> str:
    """A clause for sides whose throughput is their capacity, since they missed the requested rate."""
    names = dict.fromkeys(
        name for comparison in comparisons if comparison.claim != "refused" for name in comparison.capacity
    )
    return f"; the rate is above the capacity of {units.join_names([*names])}" if names else ""


UNDECIDED = ("none", "same", "slight")


def text_without_winner(claim: Claim, matters: float) -> str:
    """The text for two sides if neither is better."""
    if claim == "same":
        return f"no difference of {units.format_percent(matters)} or more"
    return (
        f"a difference of less than {units.format_percent(matters)}"
        if claim == "slight"
        else "no evidence of a difference"
    )


def merge_comparisons(
    judgement: Judgement, comparisons: Sequence[Comparison], varying: set[str], matters: float
) -> str:
    """Several comparisons with one baseline: `letter=a: rocksdb holds 1.75× (1.6–1.9) the throughput of lmdb; …`."""
    # A statement that is true in several contexts is written once.
    same: dict[str, list[str]] = {}
    # Of the contexts that one check refuses, only the worst is described.
    refused: dict[tuple[str, ...], list[list[Comparison]]] = {}
    for _, of_context in groupby(comparisons, key=lambda comparison: comparison.context):
        every = list(of_context)
        if all(comparison.claim == "refused" for comparison in every):
            checks = (worst_finding(comparison).check for comparison in every)
            refused.setdefault((*name_sides(every), *checks), []).append(every)
            continue
        text = side_by_side(judgement, every, matters)
        same.setdefault(text, []).append(context_prefix(every[0], varying).removesuffix(": "))
    for contexts in refused.values():
        worst = max(contexts, key=lambda every: max(worst_finding(comparison).size for comparison in every))
        text = side_by_side(judgement, worst, matters)
        text += f" (the worst of {len(contexts)} contexts)" if len(contexts) > 1 else ""
        same[text] = [context_prefix(every[0], varying).removesuffix(": ") for every in contexts]
    every_name = list(chain.from_iterable(same.values()))
    everywhere = f"in all {len(every_name)} contexts"
    places = (everywhere if len(names) == len(every_name) > 2 else units.join_names(names) for names in same.values())
    parts = [f"{place}: {text}" if place else text for place, text in zip(places, same, strict=True)]
    least, most = (
        min(comparison.ratio.n for comparison in comparisons),
        max(comparison.ratio.n for comparison in comparisons),
    )
    unit = f" {comparisons[0].n_unit}".rstrip()
    level = next((comparison.ratio.level for comparison in comparisons if comparison.ratio.level is not None), None)
    trust = [
        "" if level is None else f"{level * 100:.3g} % intervals",
        too_few_text(least) if least < REPEATS_MIN else f"n={least if least == most else f'{least} to {most}'}{unit}",
        qualify_verdict(
            max(comparison.verdict for comparison in comparisons),
            "" if comparisons[0].exploratory else judgement.coverage,
        ),
    ]
    return f"{comparisons[0].condition}{'; '.join(parts)} ({', '.join(part for part in trust if part)})"


def side_by_side(judgement: Judgement, comparisons: Sequence[Comparison], matters: float) -> str:
    """The clause for all contenders of one context."""
    first = comparisons[0]
    baseline, metric = name_side(first, first.baseline), wording.metric_name(first.metric)
    if all(comparison.claim == "impossible" for comparison in comparisons):
        cells = [*(comparison.contender for comparison in comparisons), first.baseline]
        texts = (wording.estimate_text(cell.estimate, cell.unit, judgement.output_bound(cell)) for cell in cells)
        named = [f"{text} with {name_side(first, cell)}" for text, cell in zip(texts, cells, strict=True)]
        return f"{metric} is {units.join_names(named)}"
    more_than: list[tuple[str, str]] = []
    less_than: list[tuple[str, str]] = []
    # Contenders without a ranking, by claim and by the reason of a refusal.
    unclaimed: dict[tuple[Claim, str], list[str]] = {}
    for comparison in comparisons:
        name = name_side(comparison, comparison.contender)
        if comparison.claim in (*UNDECIDED, "refused", "unranked") or not math.isfinite(comparison.ratio.value):
            why = refusal_reason(comparison, brief=True) if comparison.claim in ("refused", "unranked") else ""
            unclaimed.setdefault((comparison.claim, why), []).append(name)
        else:
            ends = wording.change_interval(comparison.ratio)
            change = f"{wording.change_text(comparison.ratio, bound=comparison.bound)}{f' ({ends})' if ends else ''}"
            (less_than if wording.is_lower(comparison.ratio.value) else more_than).append((name, change))
    sentences = []
    if len(more_than) == 1 and first.metric == THROUGHPUT:
        ((name, change),) = more_than
        sentences.append(f"{name} holds {change} the {metric} of {baseline}")
    elif more_than:
        parts = [f"{change} as high with {name}" for name, change in more_than]
        sentences.append(f"{metric} is {units.join_names(parts)} as with {baseline}")
    if less_than:
        parts = [f"{change} with {name}" for name, change in less_than]
        sentences.append(f"{metric} is {units.join_names(parts)}{'' if more_than else f' than with {baseline}'}")
    for (claim, why), names in unclaimed.items():
        if claim in ("refused", "unranked"):
            sentences.append(f"{units.join_names(names)} not ranked with {baseline}: {why}")
        elif claim in UNDECIDED:
            sentences.append(
                f"{text_without_winner(claim, matters)} in {metric} between {units.join_names([*names, baseline])}"
            )
        else:
            sentences.append(f"there is no ratio between {units.join_names(names)} and {baseline}")
    return ", ".join(sentences) + capacity_clause(comparisons)


def context_prefix(comparison: Comparison, varying: set[str]) -> str:
    """The part of the context in which the comparisons differ, as a prefix."""
    context = tuple(pair for pair in comparison.context if pair[0] in varying)
    return f"{variant_name(context)}: " if context else ""


def name_sides(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """The compared values of the contenders in one context."""
    return (name_side(comparison, comparison.contender) for comparison in comparisons)


def name_side(comparison: Comparison, cell: Cell) -> str:
    """The compared value of one side."""
    return name_value(comparison.by, dict(cell.variant)[comparison.by])


def worst_finding(comparison: Comparison) -> Finding:
    """The first finding with the highest severity."""
    return max(comparison.findings, key=lambda finding: finding.severity)


def refusal_reason(comparison: Comparison, *, brief: bool = False) -> str:
    """The first cause that makes a comparison invalid, or the reason why it is unranked; `brief` omits details."""
    if comparison.why and comparison.claim == "unranked":
        return comparison.why
    worst = worst_finding(comparison)
    message = worst.message.partition("; ")[0] if brief else worst.message
    return f"{message} ({worst.check})" if worst.severity == Severity.INVALID else "a side is invalid"


def too_few_text(n: int) -> str:
    """The reason why this number of repeats allows no claim."""
    return f"n={n}{': no interval' if n < REPEATS_MIN else ''}, {NO_CLAIM}"


def interval_text(estimate: Estimate, ends: str = "") -> str:
    """`95 % interval 2.1–2.5, `, or an empty text; `ends` replaces the text of the interval if it is not a change."""
    change = wording.change_interval(estimate)
    content = change and (ends or change)
    return f"{estimate.level * 100:.3g} % interval {content}, " if content and estimate.level is not None else ""


def inverse_ratio(ratio: Estimate) -> Estimate:
    """The ratio of baseline to contender, with its interval."""
    low, high = (None if end is None else 1 / end if end else math.inf for end in (ratio.high, ratio.low))
    return replace(ratio, value=1 / ratio.value if ratio.value else math.nan, low=low, high=high)


def count_claims(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """A summary of many comparisons: for each contender, the number of each claim and the range of claimed ratios."""
    contenders: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        contenders.setdefault(name_side(comparison, comparison.contender), []).append(comparison)
    baseline = name_side(comparisons[0], comparisons[0].baseline)
    for contender, every in list(contenders.items())[:CLAUSES_MAX]:
        parts = []
        for claim, name in CLAIMS.items():
            ratios = [comparison.ratio.value for comparison in every if comparison.claim == claim]
            if ratios:
                ends = dict.fromkeys(wording.short_change(end) for end in (min(ratios), max(ratios)))
                between = f" ({' to '.join(ends)})" if claim in ("better", "worse") else ""
                where = f"all {len(every)}" if claim in ("better", "worse") else str(len(every))
                where = "any of them" if claim in ("same", "none") else where
                where = where if len(ratios) == len(every) else str(len(ratios))
                parts.append(f"{name} in {where}{between}")
        contexts = "1 context" if len(every) == 1 else f"{len(every)} contexts"
        for name in dict.fromkeys(name for comparison in every for name in comparison.capacity):
            over = sum(name in comparison.capacity for comparison in every)
            parts.append(f"the rate is above the capacity of {name} in {over}")
        metric = wording.metric_name(comparisons[0].metric)
        yield f"{metric} of {contender} against {baseline} in {contexts}: {', '.join(parts)}"
    yield from count_omitted(len(contenders) - CLAUSES_MAX)


CLAIMS = {
    "better": "better",
    "worse": "worse",
    "same": "no difference that matters",
    "slight": "a difference that does not matter",
    "none": "no evidence of a difference",
    "impossible": "too few repeats for a claim",
    "refused": "refused as invalid",
    "unranked": "not ranked, as operations failed or never completed",
    "descriptive": "reported without a rank",
}


def describe_single_variant(judgement: Judgement, metrics: Sequence[str]) -> list[str]:
    """If nothing can be compared: the figures of the only variant, or the reason why there is no answer."""
    variants = {key for key, metric in judgement.cells if metric in metrics}
    if len(variants) != 1:
        return describe_unpaired_variants(judgement, metrics) if variants else ["nothing was measured"]
    (key,) = variants
    requested = [*(metrics if judgement.results.question.metrics else metrics[:1])]
    if requested == [THROUGHPUT]:
        # A throughput alone says little about a system.
        requested += [*filter(is_latency, metrics)] or ALL_OPERATIONS
    cells = [cell for metric in requested if (cell := judgement.cells.get((key, metric)))]
    # With a single variant, a valid verdict is not mentioned.
    trust = "" if judgement.verdict == Verdict.VALID else f", {judgement.verdict}"
    return [figure_of(judgement, cell, "" if at else trust) for at, cell in enumerate(cells)]


def describe_unpaired_variants(judgement: Judgement, metrics: Sequence[str]) -> list[str]:
    """For variants that cannot be compared with each other: one figure of each of the first variants."""
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
    verb = f"falls on {text} operations" if cell.bound == "failed" else f"is {text}"
    return f"{metric} {verb} ({between}{trust})"
