"""Sweeps over numbers of clients: the curve of throughput with its knee, and the range of each contender's ratios."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from loadstone.format import units, wording
from loadstone.judge import figures
from loadstone.judge.checks import sides_differ
from loadstone.judge.clause import Clause, capacity_clause, hedge_claim, name_side
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.judgement import Cell, Comparison, Curve, Judgement, VariantKey
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet, variant_key, variant_name
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import THROUGHPUT
from loadstone.statistics.estimate import REPEATS_MIN
from loadstone.statistics.knee import find_knee
from loadstone.statistics.usl import COUNTS_MIN, fit_law

CLIENTS = "clients"
# The maximum number of curves: a knee and a fit take a few milliseconds each.
CURVES_MAX = 40
# With fewer loads than this, each load has its own clause.
LOADS_MIN = 3
# The maximum number of clauses; the table has the remaining ones.
CLAUSES_MAX = 6
CLAIMED = ("better", "worse")
# The conclusions at single loads, if they differ within a sweep; the name of the better side replaces the first two.
CONCLUSIONS = {
    "better": "better",
    "worse": "worse",
    "none": "undecided",
    "same": "no difference that matters",
    "slight": "too small a difference to matter",
}
# If there are more loads than this, they are only counted.
LOADS_NAMED = 4


def is_sweep(comparisons: Sequence[Comparison]) -> bool:
    """Whether the comparisons cover at least LOADS_MIN different numbers of clients."""
    loads = {dict(comparison.context).get(CLIENTS) for comparison in comparisons}
    return len(loads) >= LOADS_MIN and all(isinstance(load, int | float) for load in loads)


def describe_sweep(judgement: Judgement, comparisons: Sequence[Comparison], varying: set[str]) -> Iterator[Clause]:
    """A clause for each contender and context over all client counts: `throughput is 73 to 78 % lower with RF 2 …`."""
    groups: dict[tuple[str, VariantKey], list[Comparison]] = {}
    for comparison in comparisons:
        context = tuple(pair for pair in comparison.context if pair[0] != CLIENTS and pair[0] in varying)
        contender = name_side(comparison, comparison.contender)
        groups.setdefault((contender, context), []).append(comparison)
    # Contexts with the same statement share a clause.
    named: dict[Clause, list[str]] = {}
    undecided: dict[str, list[tuple[str, list[Comparison]]]] = {}
    for (contender, context), group in list(groups.items())[:CLAUSES_MAX]:
        name = variant_name(context) if context else ""
        if is_undecided(group):
            undecided.setdefault(contender, []).append((name, group))
        else:
            named.setdefault(describe_group(judgement, contender, group), []).append(name)
    for clause, contexts in named.items():
        where = f"{units.join_names(contexts)}: " if any(contexts) else ""
        yield Clause(where + clause.text, where + clause.statement)
    for contender, of_context in undecided.items():
        yield describe_undecided(contender, of_context)
    if capacity := capacity_clause(comparisons).removeprefix("; "):
        yield Clause(capacity, capacity)
    if len(groups) > CLAUSES_MAX:
        more = f"and {len(groups) - CLAUSES_MAX} more"
        yield Clause(more, more)


def is_undecided(group: Sequence[Comparison]) -> bool:
    """Whether repeats allow claims, but no claim is made at any number of clients."""
    return all(item.claim == "none" and math.isfinite(item.ratio.value) for item in group)


def describe_undecided(contender: str, groups: Sequence[tuple[str, Sequence[Comparison]]]) -> Clause:
    """A clause for one contender, over all contexts in which nothing can be claimed at any number of clients."""
    every = [item for _, group in groups for item in group]
    baseline = name_side(every[0], every[0].baseline)
    spans = (
        describe_span(group) + (f" with {context}" if context and len(groups) > 1 else "") for context, group in groups
    )
    where = f"{groups[0][0]}: " if len(groups) == 1 and groups[0][0] else ""
    metric, least = wording.metric_name(every[0].metric), min(item.ratio.n for item in every)
    trust = f"n={least}, {max(item.verdict for item in every)}"
    what = f"undecided whether {metric} differs between {contender} and {baseline} at any load from {list_loads(every)}"
    figures = f"ratios at single loads: {', '.join(spans)}, with intervals within {span_intervals(every)}; {trust}"
    return Clause(f"{where}{what} ({figures})", f"{where}it is {what}")


def span_intervals(group: Sequence[Comparison]) -> str:
    """The lowest and the highest end of the intervals of several ratios."""
    lows, highs = [item.ratio.low or 0.0 for item in group], [item.ratio.high or math.inf for item in group]
    return join_ratios(min(lows), max(highs))


def describe_span(group: Sequence[Comparison]) -> str:
    """The lowest and the highest ratio: `0.951–1.11`."""
    ratios = [item.ratio.value for item in group]
    return join_ratios(min(ratios), max(ratios))


def join_ratios(low: float, high: float) -> str:
    """Two ratios as a range; one number if both print the same."""
    return wording.DASH.join(dict.fromkeys(units.format_ratio(end).removesuffix("×") for end in (low, high)))


def describe_group(judgement: Judgement, contender: str, group: Sequence[Comparison]) -> Clause:
    """One contender over all numbers of clients: the range of its ratios, and the number of claims.

    If no claim is possible, the text has ranges of medians instead of ratios.
    """
    ranked = [item for item in group if item.claim not in ("refused", "unranked") and math.isfinite(item.ratio.value)]
    baseline = name_side(group[0], group[0].baseline)
    metric = wording.metric_name(group[0].metric)
    refused = [item for item in group if item not in ranked]
    missing = find_missing_loads(judgement, group)
    gaps = [f"not ranked at {list_loads(refused)}"] if refused else []
    gaps += [f"not compared at {', '.join(map(units.format_load, missing))} clients"] if missing else []
    unranked = ", ".join(gaps)
    if not ranked:
        text = f"{metric} with {contender} is not ranked against {baseline}"
        return Clause(text, text)
    ratios = [item.ratio.value for item in ranked]
    claims = sum(item.claim in CLAIMED for item in ranked)
    is_mixed = len({item.claim for item in ranked} & CONCLUSIONS.keys()) > 1
    least = min(item.ratio.n for item in ranked)
    is_ranked = any(item.claim != "descriptive" for item in ranked)
    trust = f"n={least}{f', claimed at {claims} of {len(group)} loads' if is_ranked else ''}"
    bound = "at least " if any(item.bound for item in ranked) else ""
    relation = describe_range(min(ratios), max(ratios), contender, baseline, bound)
    if least < REPEATS_MIN:
        trust = f"n={least}: no interval, no claim possible"
        sides = ((contender, [item.contender for item in ranked]), (baseline, [item.baseline for item in ranked]))
        relation = f"is {', '.join(f'{span_medians(judgement, cells)} with {name}' for name, cells in sides)}"
    verdict = str(max(item.verdict for item in group))
    ends = ", ".join(part for part in (trust, verdict, unranked) if part)
    statement = f"{metric} {relation}, at {list_loads(ranked)}"
    if is_mixed and least >= REPEATS_MIN:
        # A range of ratios alone would read as a claim at every load.
        statement = f"{metric}: {describe_conclusions(ranked, contender, baseline)}"
        ends = f"ratios {bound}{describe_span(ranked)}, {ends}"
    return Clause(f"{statement} ({ends})", f"{statement} ({unranked})" if unranked else statement)


def find_missing_loads(judgement: Judgement, group: Sequence[Comparison]) -> list[float]:
    """The numbers of clients that were planned for both sides but not compared, in ascending order."""
    first, results = group[0], judgement.results
    loads: list[set[float]] = []
    for cell in (first.contender, first.baseline):
        side = [pair for pair in cell.variant if pair[0] != CLIENTS]
        keys = {*results.variants, *(variant_key(config) for config in results.planned.values())}
        loads.append(
            {float(dict(key)[CLIENTS]) for key in keys if [pair for pair in key if pair[0] != CLIENTS] == side}
        )
    return sorted(set.intersection(*loads) - {float(dict(item.context)[CLIENTS]) for item in group})


def describe_conclusions(group: Sequence[Comparison], contender: str, baseline: str) -> str:
    """The loads of each conclusion, claims first: `57 % lower with rocksdb at 16 clients, undecided at 1 client`."""
    loads: dict[str, list[Comparison]] = {}
    for item in sorted(group, key=lambda item: item.claim not in CLAIMED):
        side = {"better": f"{contender} is better", "worse": f"{baseline} is better"}.get(item.claim)
        side = side and side + hedge_claim(item)
        loads.setdefault(side or CONCLUSIONS.get(item.claim, "not ranked"), []).append(item)
    parts = []
    for text, items in loads.items():
        if len(items) == 1 and items[0].claim in CLAIMED:
            change = wording.change_text(items[0].ratio, bound=items[0].bound)
            text = f"{change} with {contender}" if change.endswith("lower") else f"{change} as high with {contender}"
            text += hedge_claim(items[0])
        parts.append(f"{text} at {enumerate_loads(items)}")
    return ", ".join(parts)


def enumerate_loads(comparisons: Sequence[Comparison]) -> str:
    """The numbers of clients: `1, 2 and 8 clients`; only a count if there are many."""
    loads = sorted(float(dict(comparison.context)[CLIENTS]) for comparison in comparisons)
    if len(loads) > LOADS_NAMED:
        return f"{len(loads)} loads"
    return " and ".join(
        filter(None, [", ".join(map(units.format_load, loads[:-1])), units.load_over(loads[-1], CLIENTS)])
    )


def span_medians(judgement: Judgement, cells: Sequence[Cell]) -> str:
    """The lowest and the highest median of several cells: `3.90 to 40.2 ms`."""
    ends = [select(cells, key=lambda cell: cell.estimate.value) for select in (min, max)]
    low, high = (wording.estimate_text(cell.estimate, cell.unit, judgement.output_bound(cell)) for cell in ends)
    return low if low == high else wording.join_ends(low, high, " to ")


def describe_range(low: float, high: float, contender: str, baseline: str, bound: str = "") -> str:
    """The range of ratios: `is 73 to 78 % lower with A than with B`, or `is 1.2× to 1.4× as high with A as with B`.

    `bound` precedes ratios that are only bounds.
    """
    if wording.is_lower(low) and wording.is_lower(high):
        least, most = units.short_percent(1 - high), units.short_percent(1 - low)
        span = most if least == most else f"{least.removesuffix(' %')} to {most}"
        return f"is {bound}{span} lower with {contender} than with {baseline}"
    ends = dict.fromkeys(wording.short_change(end) for end in (low, high))
    if wording.is_lower(low):
        return f"with {contender} is {bound}{' to '.join(ends)}, relative to {baseline}"
    return f"is {bound}{' to '.join(ends)} as high with {contender} as with {baseline}"


def list_loads(comparisons: Sequence[Comparison]) -> str:
    """The range of the numbers of clients: `10 to 400 clients`."""
    loads = sorted(float(dict(comparison.context)[CLIENTS]) for comparison in comparisons)
    if len(loads) == 1:
        return units.load_over(loads[0], CLIENTS)
    return f"{units.format_load(loads[0])} to {units.load_over(loads[-1], CLIENTS)}"


def find_unequal_windows(results: ResultSet, settings: Settings) -> Iterator[Finding]:
    """A note if the loads of a sweep differ in the length of the window and in the number of operations.

    With a fixed number of operations, a load determines the length of its window.
    """
    points: dict[VariantKey, list[tuple[float, float]]] = {}
    for key, trials in results.variants.items():
        lengths = [length for trial in trials if (length := figures.window_seconds(trial))]
        counts = [count for trial in trials if (count := trial.value("operations"))]
        if CLIENTS in dict(key) and lengths and counts:
            context = tuple(pair for pair in key if pair[0] != CLIENTS)
            points.setdefault(context, []).append((median(lengths), median(counts)))
    limit = 1 + settings.check_threshold(sides_differ.NAME, "measured")
    sweeps = [zip(*loads, strict=True) for loads in points.values()]
    unequal = [lengths for lengths, counts in sweeps if min(map(find_spread, (lengths, counts))) > limit]
    if unequal:
        shortest, longest = (" ".join(units.rough_duration(end(map(end, unequal)))) for end in (min, max))
        ends = wording.join_ends(shortest, longest, " to ")
        message = f"the windows of the loads last {ends}: maxima of different loads cannot be compared"
        yield Finding(sides_differ.NAME, Severity.NOTE, message, "measure every load for the same time", ())


def find_spread(samples: Sequence[float]) -> float:
    """The ratio of the largest to the smallest figure."""
    return max(samples) / min(samples)


def fit_curves(variants: Mapping[VariantKey, Sequence[TrialResult]], *, interleaved: bool) -> Iterator[Curve]:
    """A curve for each context with enough different numbers of clients, up to CURVES_MAX.

    The caller excludes trials that do not count. If `interleaved`, trials with the same repeat number form a block.
    """
    points_of: dict[VariantKey, dict[float, list[tuple[int, float]]]] = {}
    for key, trials in variants.items():
        context = tuple(pair for pair in key if pair[0] != CLIENTS)
        for trial in trials:
            clients, throughput = figures.client_count(trial), trial.value(THROUGHPUT)
            # At a rate, throughput is the requested rate.
            if clients is not None and throughput and trial.loop != "open":
                points_of.setdefault(context, {}).setdefault(clients, []).append((trial.repeat, throughput))
    enough = {context: points for context, points in points_of.items() if len(points) >= COUNTS_MIN}
    for context, points in list(enough.items())[:CURVES_MAX]:
        yield fit_curve(context, points, interleaved=interleaved)


def fit_curve(context: VariantKey, points: Mapping[float, Sequence[tuple[int, float]]], *, interleaved: bool) -> Curve:
    """One curve; `points` has (block, throughput) by number of clients."""
    # Results of several experiments can contain the same repeat number twice.
    blocks = interleaved and all(len(dict(every)) == len(every) for every in points.values())
    cells = {
        clients: dict(every if blocks else enumerate(figure for _, figure in every))
        for clients, every in points.items()
    }
    law = fit_law([(clients, figure) for clients, every in points.items() for _, figure in every])
    return Curve(context, find_knee(cells, blocks=blocks), law)
