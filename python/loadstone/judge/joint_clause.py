"""Several comparisons of one metric as one clause."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from loadstone.format import units, wording
from loadstone.judge.clause import (
    NO_CLAIM,
    UNDECIDED,
    Clause,
    capacity_clause,
    context_prefix,
    hold_verb,
    name_side,
    name_sides,
    qualify_verdict,
    refusal_reason,
    text_without_winner,
    too_few_text,
    worst_finding,
)
from loadstone.judge.judgement import Claim, Comparison, Judgement
from loadstone.results.value import THROUGHPUT
from loadstone.statistics.estimate import REPEATS_MIN

# The maximum number of clauses; the remaining ones are counted.
CLAUSES_MAX = 3


def drop_repeated_ends(clauses: Sequence[str]) -> list[str]:
    """The clauses, without ends such as `(n=3: no interval, no claim possible, valid)` that the next clause repeats."""
    ends = [clause[clause.rindex(" (n=") :] if " (n=" in clause else "" for clause in clauses]
    following = [*ends[1:], ""]
    return [
        clause.removesuffix(end) if end == after and NO_CLAIM in end else clause
        for clause, end, after in zip(clauses, ends, following, strict=True)
    ]


def merge_comparisons(
    judgement: Judgement, comparisons: Sequence[Comparison], varying: set[str], matters: float
) -> Clause:
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
    statement = f"{comparisons[0].condition}{'; '.join(parts)}"
    return Clause(f"{statement} ({', '.join(part for part in trust if part)})", statement)


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
    # Contenders without a ranking, by claim and by the reason for a refusal.
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
        sentences.append(f"{name} {hold_verb(name)} {change} the {metric} of {baseline}")
    elif more_than:
        parts = [f"{change} as high with {name}" for name, change in more_than]
        sentences.append(f"{metric} is {units.join_names(parts)} as with {baseline}")
    if less_than:
        parts = [f"{change} with {name}" for name, change in less_than]
        sentences.append(f"{metric} is {units.join_names(parts)}{'' if more_than else f' than with {baseline}'}")
    for (claim, why), names in unclaimed.items():
        if claim in ("refused", "unranked"):
            sentences.append(f"{units.join_names(names)} not ranked against {baseline}: {why}")
        elif claim in UNDECIDED:
            sentences.append(text_without_winner(claim, metric, [*names, baseline], matters))
        else:
            sentences.append(f"there is no ratio of {units.join_names(names)} to {baseline}")
    return ", ".join(sentences) + capacity_clause(comparisons)


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
                has_ratio = claim in ("better", "worse", "descriptive")
                between = f" ({' to '.join(ends)})" if has_ratio else ""
                where = f"all {len(every)}" if has_ratio or claim == "none" else str(len(every))
                where = "any of them" if claim == "same" else where
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
    "none": "undecided",
    "impossible": "too few repeats for a claim",
    "refused": "refused as invalid",
    "unranked": "not ranked, as operations failed or never completed",
    "descriptive": "a ratio that cannot be ranked",
}


def count_omitted(number: int) -> list[str]:
    """A last clause with the number of omitted clauses, if any are omitted."""
    return [f"and {number} more"] if number > 0 else []
