"""The answer: one sentence that names the better side, by how much, and whether to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from loadstone.format import units, wording
from loadstone.judge.checks.too_few_samples import too_few
from loadstone.judge.claim import above, rank_sides
from loadstone.judge.finding import Severity, Verdict
from loadstone.judge.judgement import Claim, Comparison, Judgement, Search, VariantKey
from loadstone.results.result_set import variant_name
from loadstone.results.value import THROUGHPUT
from loadstone.search.sentence import reached, sentence
from loadstone.statistics.estimate import REPEATS_MIN, Estimate

# Beyond this many comparisons, they no longer get a clause each.
CLAUSES_MAX = 3
# Beyond this many, they are only counted.
PARTS_MAX, CONTEXTS_MAX = 12, 4


def answer(judgement: Judgement, metric: str, matters: float) -> str:
    """Built from the comparisons by the first metric; without any, from the curves, else from the only figure."""
    comparisons, curves = judgement.comparisons, judgement.curves
    # For a sweep over clients the question is where it levels off, not how each point compares with the first.
    if comparisons and not (curves and comparisons[0].by == "clients"):
        first = [each for each in comparisons if each.metric == comparisons[0].metric]
        varying = {name for each in first for name, value in each.context if (name, value) not in first[0].context}
        contexts = {each.context for each in first}
        if len(first) == 1 or (len(first) <= CLAUSES_MAX and len(contexts) == len(first)):
            return "; ".join(where(each, varying) + clause(each, matters, judgement.coverage) for each in first)
        if len(first) <= PARTS_MAX and len(contexts) <= CONTEXTS_MAX:
            return together(first, varying, matters, judgement.coverage)
        return "; ".join(counted(first))
    if curves:
        names = apart([curve.context for curve in curves]) if len(curves) > 1 else [""]
        clauses = [reached(curve.knee, whose=name) for curve, name in zip(curves[:CLAUSES_MAX], names, strict=False)]
        return "; ".join([*clauses, *more(len(curves) - CLAUSES_MAX)])
    return single(judgement, metric)


def searched(searches: Sequence[Search]) -> str:
    """The searches, a clause each; empty without any."""
    clauses = []
    for each, name in zip(searches[:PARTS_MAX], apart([each.context for each in searches]), strict=False):
        found = sentence(each.outcome) if each.outcome else "the search is not finished: continue with --resume"
        clauses.append(f"{name}: {found}" if len(searches) > 1 else found)
    return "; ".join([*clauses, *more(len(searches) - PARTS_MAX)])


def apart(contexts: Sequence[VariantKey]) -> list[str]:
    """Each context's name, without what all of them have in common."""
    shared = set.intersection(*map(set, contexts)) if contexts else set()
    return [variant_name(tuple(pair for pair in each if pair not in shared)) for each in contexts]


def more(number: int) -> list[str]:
    """A last clause that counts those left out, if any."""
    return [f"and {number} more"] if number > 0 else []


def qualify(verdict: Verdict, coverage: str) -> str:
    """A verdict; a valid one with the number of checks that could run, where some could not."""
    return f"{verdict}; {coverage}" if coverage and verdict == Verdict.VALID else str(verdict)


def clause(comparison: Comparison, matters: float, coverage: str) -> str:
    """One comparison, the better side first, even where there are too few repeats to claim that it is better."""
    first, second, ratio = comparison.contender, comparison.baseline, comparison.ratio
    tentative = comparison.claim == "impossible"
    seems = rank_sides(above(comparison), comparison.direction) if tentative else comparison.claim
    if seems == "worse":
        first, second, ratio = second, first, inverse(ratio)
    left, right = (str(dict(cell.variant)[comparison.by]) for cell in (first, second))
    metric, verdict = comparison.metric, qualify(comparison.verdict, coverage)
    if comparison.claim in ("refused", "unranked"):
        verb = "refused to rank" if comparison.claim == "refused" else "cannot rank"
        more = f"; {comparison.why}" if comparison.why and comparison.claim == "refused" else ""
        return f"{verb} {left} and {right}: {reason(comparison)}{more}"
    if comparison.claim in UNDECIDED:
        shown = f"ratio {wording.ratio(ratio).removesuffix('×')}, " if math.isfinite(ratio.value) else ""
        trust = f"{shown}{interval(ratio, wording.ratio_interval(ratio))}n={ratio.n}, {verdict}"
        what = undecided(comparison.claim, matters)
        why = f"; {comparison.why}" if comparison.why else ""
        return f"{what} in {metric} between {left} and {right} ({trust}){capacities([comparison])}{why}"
    if math.isfinite(ratio.value):
        change = wording.change(ratio, bound=comparison.bound)
        relation = f"{left} {'holds' if metric == THROUGHPUT else 'has'} {change} the {metric} of {right}"
        if wording.is_lower(ratio.value):
            relation = f"{metric} of {left} is {change} than that of {right}"
        relation = comparison.condition + relation
    else:
        figures = " against ".join(wording.figure(cell.estimate, cell.unit) for cell in (first, second))
        relation = f"{metric} of {left} and {right} is {figures}"
    if tentative:
        return f"{relation} ({comparison.why or impossible(ratio.n)}, {verdict})"
    return f"{relation} ({interval(ratio)}n={ratio.n}, {verdict}){capacities([comparison])}"


def capacities(comparisons: Sequence[Comparison]) -> str:
    """A clause where a side's throughput is its capacity, not the rate that was set."""
    names = dict.fromkeys(name for each in comparisons if each.claim != "refused" for name in each.capacity)
    return f"; the rate is above the capacity of {units.join_names([*names])}" if names else ""


UNDECIDED = ("none", "same", "slight")


def undecided(claim: Claim, matters: float) -> str:
    """The words for two sides of which neither is better."""
    if claim == "same":
        return f"no difference of {units.percent(matters)} or more"
    return f"a difference of less than {units.percent(matters)}" if claim == "slight" else "no evidence of a difference"


def together(comparisons: Sequence[Comparison], varying: set[str], matters: float, coverage: str) -> str:
    """Several comparisons with one baseline: `letter=a: rocksdb holds 1.75× (1.6–1.9) the throughput of lmdb; …`."""
    # What holds in several contexts is written once.
    same: dict[str, list[str]] = {}
    for _, of_context in groupby(comparisons, key=lambda each: each.context):
        every = list(of_context)
        same.setdefault(side_by_side(every, matters), []).append(where(every[0], varying).removesuffix(": "))
    parts = [f"{units.join_names(names)}: {text}" if any(names) else text for text, names in same.items()]
    least, most = min(each.ratio.n for each in comparisons), max(each.ratio.n for each in comparisons)
    level = next((each.ratio.level for each in comparisons if each.ratio.level is not None), None)
    trust = [
        "" if level is None else f"{level * 100:.3g} % intervals",
        impossible(least) if least < REPEATS_MIN else f"n={least}" if least == most else f"n={least} to {most}",
        qualify(max(each.verdict for each in comparisons), coverage),
    ]
    return f"{comparisons[0].condition}{'; '.join(parts)} ({', '.join(part for part in trust if part)})"


def side_by_side(comparisons: Sequence[Comparison], matters: float) -> str:
    """All contenders of one context."""
    first = comparisons[0]
    baseline = str(dict(first.baseline.variant)[first.by])
    more_than: list[tuple[str, str]] = []
    less_than: list[tuple[str, str]] = []
    # By claim, and refused ones by their reason.
    others: dict[tuple[Claim, str], list[str]] = {}
    verb = "holds" if first.metric == THROUGHPUT else "has"
    for each in comparisons:
        name = str(dict(each.contender.variant)[each.by])
        if each.claim in (*UNDECIDED, "refused", "unranked") or not math.isfinite(each.ratio.value):
            why = reason(each) if each.claim in ("refused", "unranked") else ""
            others.setdefault((each.claim, why), []).append(name)
        else:
            ends = wording.change_interval(each.ratio)
            change = f"{wording.change(each.ratio, bound=each.bound)}{f' ({ends})' if ends else ''}"
            (less_than if wording.is_lower(each.ratio.value) else more_than).append((name, change))
    sentences = []
    if more_than:
        # The verb stands once, with the first.
        parts = [f"{name} {change}" if at else f"{name} {verb} {change}" for at, (name, change) in enumerate(more_than)]
        sentences.append(f"{units.join_names(parts)} the {first.metric} of {baseline}")
    if less_than:
        parts = [f"{change} with {name}" for name, change in less_than]
        sentences.append(f"{first.metric} is {units.join_names(parts)}{'' if more_than else f' than with {baseline}'}")
    for (claim, why), names in others.items():
        if claim in ("refused", "unranked"):
            sentences.append(f"{units.join_names(names)} not ranked with {baseline}: {why}")
        elif claim in UNDECIDED:
            sentences.append(f"{undecided(claim, matters)} between {units.join_names([*names, baseline])}")
        else:
            sentences.append(f"{units.join_names(names)} and {baseline} have no ratio")
    return ", ".join(sentences) + capacities(comparisons)


def where(comparison: Comparison, varying: set[str]) -> str:
    """The part of the context that not all comparisons share."""
    context = tuple(pair for pair in comparison.context if pair[0] in varying)
    return f"{variant_name(context)}: " if context else ""


def reason(comparison: Comparison) -> str:
    """The first thing that makes it invalid, or why it has no rank."""
    if comparison.why and comparison.claim == "unranked":
        return comparison.why
    worst = max(comparison.findings, key=lambda finding: finding.severity)
    return f"{worst.message} ({worst.check})" if worst.severity == Severity.INVALID else "a side is invalid"


def impossible(n: int) -> str:
    """Why nothing can be claimed from so few repeats, in full."""
    return f"n={n}{': no interval' if n < REPEATS_MIN else ''}, no claim possible"


def interval(estimate: Estimate, ends: str = "") -> str:
    """`95 % interval 2.1–2.5, `, or nothing; `ends`: how it is written, if not as a change."""
    change = wording.change_interval(estimate)
    shown = change and (ends or change)
    return f"{estimate.level * 100:.3g} % interval {shown}, " if shown and estimate.level is not None else ""


def inverse(ratio: Estimate) -> Estimate:
    """The ratio seen from the other side."""
    low, high = (None if end is None else 1 / end if end else math.inf for end in (ratio.high, ratio.low))
    return replace(ratio, value=1 / ratio.value if ratio.value else math.nan, low=low, high=high)


def counted(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Many comparisons: for each contender how many made each claim, and the range of the ratios claimed."""
    contenders: dict[object, list[Comparison]] = {}
    for each in comparisons:
        contenders.setdefault(dict(each.contender.variant)[each.by], []).append(each)
    baseline = dict(comparisons[0].baseline.variant)[comparisons[0].by]
    for contender, every in list(contenders.items())[:CLAUSES_MAX]:
        parts = []
        for claim, name in CLAIMS.items():
            found = [each.ratio.value for each in every if each.claim == claim]
            if found:
                ends = dict.fromkeys(wording.short_change(end) for end in (min(found), max(found)))
                between = f" ({' to '.join(ends)})" if claim in ("better", "worse") else ""
                parts.append(f"{name} in {len(found)}{between}")
        contexts = "1 context" if len(every) == 1 else f"{len(every)} contexts"
        for name in dict.fromkeys(name for each in every for name in each.capacity):
            over = sum(name in each.capacity for each in every)
            parts.append(f"the rate is above the capacity of {name} in {over}")
        yield f"{comparisons[0].metric} of {contender} against {baseline} in {contexts}: {', '.join(parts)}"
    yield from more(len(contenders) - CLAUSES_MAX)


CLAIMS = {
    "better": "better",
    "worse": "worse",
    "same": "no difference that matters",
    "slight": "a difference that does not matter",
    "none": "no evidence of a difference",
    "impossible": "too few repeats for a claim",
    "refused": "refused as invalid",
    "unranked": "not ranked, as operations failed or never ended",
    "descriptive": "reported without a rank",
}


def single(judgement: Judgement, metric: str) -> str:
    """Without anything to compare: the figure of the only variant, or why there is no answer."""
    keys = [key for key in judgement.cells if key[1] == metric]
    if len(keys) != 1:
        return "nothing to compare" if keys else "nothing was measured"
    cell, worst = judgement.cells[keys[0]], judgement.verdict
    if cell.withheld:
        return f"{metric} is withheld: {cell.withheld}"
    estimate, unit = cell.estimate, cell.unit
    if estimate.low is None or estimate.high is None or estimate.level is None:
        between = too_few(estimate.n)
    else:
        ends = wording.span(estimate.low, estimate.high, unit, wording.last_digit(estimate), " to ")
        between = f"{estimate.level * 100:.3g} % interval {ends}, n={estimate.n}"
    # A valid verdict needs no mention beside a single figure.
    trust = "" if worst == Verdict.VALID else f", {worst}"
    return f"{metric} is {wording.figure(estimate, unit, cell.bound)} ({between}{trust})"
