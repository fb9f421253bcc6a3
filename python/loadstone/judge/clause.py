"""One comparison as a clause: which side is better, by how much, and whether to trust the claim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from loadstone.format import units, wording
from loadstone.judge.decision_table import excludes_one
from loadstone.judge.figures import is_latency
from loadstone.judge.finding import Finding, Severity, Verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, Judgement
from loadstone.results.result_set import name_value, variant_name
from loadstone.results.value import THROUGHPUT
from loadstone.statistics.comparison import ALPHA
from loadstone.statistics.estimate import REPEATS_MIN, Estimate

NO_CLAIM = "no claim possible"
CORRECTED = ", not significant after Holm's correction"
# An interval over all scenarios is not printed if its ends differ by more than this factor.
RATIO_MAX = 100


class Clause(NamedTuple):
    """The clause for one comparison: with figures, and as a statement without figures for use next to a table."""

    text: str
    statement: str


def comparison_clause(judgement: Judgement, comparison: Comparison, matters: float) -> Clause:
    """The clause for one comparison; the better side comes first."""
    first, second, ratio = comparison.contender, comparison.baseline, comparison.ratio
    if comparison.claim == "worse":
        first, second, ratio = second, first, inverse_ratio(ratio)
    left, right = (name_side(comparison, cell) for cell in (first, second))
    metric = wording.metric_name(comparison.metric)
    trust = trust_of(comparison, ratio, judgement.coverage)
    if comparison.claim in ("refused", "unranked"):
        verb = "refused to rank" if comparison.claim == "refused" else "cannot rank"
        more = f"; {comparison.why}" if comparison.why and comparison.claim == "refused" else ""
        text = f"{verb} {left} and {right}: {refusal_reason(comparison)}{more}"
        return Clause(text, text)
    figures = figures_of(judgement, first, second)
    if comparison.claim == "impossible":
        # Without a claim, no ratio is printed either.
        figures = figures_of(judgement, first, second, (left, right))
        why = f" ({comparison.why or too_few_text(ratio.n)}, {qualify_verdict(comparison.verdict, judgement.coverage)})"
        statement = f"{metric} is {figures}"
        return Clause(f"{statement}{'' if comparison.exploratory else why}", statement)
    is_open = comparison.claim == "none" and comparison.exploratory
    is_open |= comparison.claim == "descriptive" and not excludes_one(ratio)
    if is_open and (ends := ratio_ends(comparison, ratio)):
        medians = figures_of(judgement, first, second, (left, right))
        statement = f"{metric} is undecided"
        return Clause(f"{statement}: {medians} (interval of the ratio {ends})", statement)
    if comparison.claim in UNDECIDED:
        ratio_clause = f"ratio {wording.ratio_text(ratio).removesuffix('×')}, " if math.isfinite(ratio.value) else ""
        trust = ratio_clause + trust_of(comparison, ratio, judgement.coverage, ratio_ends(comparison, ratio))
        # For a latency, the values matter, not only the factor.
        trust = f"{figures}, {trust}" if is_latency(comparison.metric) else trust
        what = text_without_winner(comparison.claim, metric, (left, right), matters)
        clause = add_figures(comparison, what, trust)
        return clause._replace(statement=f"it is {clause.statement}") if comparison.claim == "none" else clause
    if math.isfinite(ratio.value):
        change = wording.change_text(ratio, bound=comparison.bound)
        relation = f"{metric} is {change} as high with {left} as with {right}"
        if wording.is_lower(ratio.value):
            relation = f"{metric} is {change} with {left} than with {right}"
        elif comparison.metric == THROUGHPUT:
            relation = f"{left} {hold_verb(left)} {change} the {metric} of {right}"
        relation = comparison.condition + relation + hedge_claim(comparison)
        figures = f"{figures}, " if is_latency(comparison.metric) else ""
    elif comparison.claim == "descriptive":
        relation, figures = f"{metric} of {left} and {right} is {figures}", ""
    else:
        # A figure of 0 has no ratio; the better side comes first.
        change = "higher" if comparison.direction == "higher" else "lower"
        relation = f"{comparison.condition}{metric} is {change} with {left} than with {right}"
        figures = f"{figures}, "
    return add_figures(comparison, relation, f"{figures}{trust}")


def hedge_claim(comparison: Comparison) -> str:
    """The first scenario in which a suspect claim does not hold: ` as measured (not with drift at either extreme)`."""
    lost = [row.name for row in comparison.scenarios if row.reading != comparison.claim]
    is_ranked = comparison.claim in ("better", "worse") and comparison.verdict >= Verdict.SUSPECT
    return f" as measured (not with {lost[0]})" if lost and is_ranked else ""


def hold_verb(name: str) -> str:
    """The verb for a side: `rocksdb holds`, `4 clients hold`."""
    return "hold" if name.endswith(" clients") else "holds"


def add_figures(comparison: Comparison, statement: str, figures: str) -> Clause:
    """A statement with figures in brackets; a missed rate is part of the statement."""
    capacity = capacity_clause([comparison])
    return Clause(f"{statement} ({figures}){capacity}", f"{statement}{capacity}")


def ratio_ends(comparison: Comparison, ratio: Estimate) -> str:
    """The interval of a ratio without a claim: as measured, and over all scenarios, with their names.

    Intervals are not corrected. If the interval as measured excludes 1, and only Holm's correction leaves the claim
    undecided, the text states this.
    """
    measured, wider = split_interval(comparison, ratio)
    p, alone = comparison.p_adjusted, comparison.scenarios[0].ratio if comparison.scenarios else ratio
    is_corrected = p is not None and p >= ALPHA and math.isfinite(ratio.value) and excludes_one(alone)
    corrected = CORRECTED if measured and is_corrected else ""
    return f"{measured} as measured{corrected}, {wider}" if wider else measured + corrected


def split_interval(comparison: Comparison, ratio: Estimate) -> tuple[str, str]:
    """A ratio's interval as measured and, if wider, over all scenarios, with the names of scenarios that widen it."""
    every = wording.ratio_interval(ratio)
    alone = comparison.scenarios[0].ratio if comparison.scenarios else ratio
    measured = wording.ratio_interval(alone)
    if not measured or (alone.low, alone.high) == (ratio.low, ratio.high) or measured == every:
        return every, ""
    rows = [row.name for row in comparison.scenarios[1:] if widens(alone, row.ratio)]
    # A scenario may exist for each side; it is named once, without the side.
    for cell in (comparison.baseline, comparison.contender):
        rows = [name.removesuffix(f" ({name_side(comparison, cell)})") for name in rows]
    names = [f'"{name}"' for name in dict.fromkeys(rows)]
    among = f"scenario{'s' if len(names) > 1 else ''} {units.join_names(names)}" if names else "all scenarios"
    is_bounded = ratio.low and ratio.high and ratio.high / ratio.low <= RATIO_MAX
    return measured, f"{every if is_bounded else 'almost any ratio'} with {among}"


def widens(interval: Estimate, other: Estimate) -> bool:
    """Whether the other interval extends beyond the first."""
    if interval.low is None or interval.high is None or other.low is None or other.high is None:
        return False
    return other.low < interval.low or other.high > interval.high


def trust_of(comparison: Comparison, ratio: Estimate, coverage: str, ends: str = "") -> str:
    """Interval, n and verdict; for an exploratory metric, without the level and the coverage, which the first metric
    states."""
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


def text_without_winner(claim: Claim, metric: str, sides: Sequence[str], matters: float) -> str:
    """The text for two or more sides of which none is better."""
    among, least = units.join_names(sides), units.format_percent(matters)
    if claim == "none":
        return f"undecided whether {metric} differs between {among}"
    difference = f"no difference of {least} or more" if claim == "same" else f"a difference of less than {least}"
    return f"{difference} in {metric} between {among}"


def explain_undecided(comparisons: Sequence[Comparison], varying: set[str]) -> Iterator[str]:
    """For each comparison without a winner, the difference that its repeats could detect, with the contender's name if
    there are several contenders."""
    several = len(set(name_sides(comparisons))) > 1
    for comparison in comparisons:
        if comparison.claim in UNDECIDED and comparison.why:
            side = f"{name_side(comparison, comparison.contender)}: " if several else ""
            yield context_prefix(comparison, varying) + side + comparison.why


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
    """The largest finding of the highest severity, among the findings of the first check that reached it."""
    first = max(comparison.findings, key=lambda finding: finding.severity)
    alike = [item for item in comparison.findings if (item.check, item.severity) == (first.check, first.severity)]
    return max(alike, key=lambda finding: finding.size)


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
    """`95 % interval 2.1–2.5, `; empty without an interval. `ends`, if not empty, replaces the ends of the interval."""
    change = wording.change_interval(estimate)
    content = change and (ends or change)
    return f"{estimate.level * 100:.3g} % interval {content}, " if content and estimate.level is not None else ""


def inverse_ratio(ratio: Estimate) -> Estimate:
    """The ratio of baseline to contender, with its interval."""
    low, high = (None if end is None else 1 / end if end else math.inf for end in (ratio.high, ratio.low))
    return replace(ratio, value=1 / ratio.value if ratio.value else math.nan, low=low, high=high)


def qualify_verdict(verdict: Verdict, coverage: str) -> str:
    """The verdict; if it is valid and some checks could not run, also the number of checks that ran."""
    return f"{verdict}; {coverage}" if coverage and verdict == Verdict.VALID else str(verdict)
