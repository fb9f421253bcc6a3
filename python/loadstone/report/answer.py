"""The answer of a report: a sentence, and a table of the figures behind it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from loadstone.format import units, wording
from loadstone.judge.answer import name_contexts
from loadstone.judge.clause import name_side
from loadstone.judge.decision_table import excludes_one
from loadstone.judge.finding import Finding, Verdict
from loadstone.judge.judgement import Cell, Claim, Comparison, Search, VariantKey
from loadstone.judge.sweep import describe_span, is_sweep, list_loads, span_intervals, span_medians
from loadstone.report.comparison import describe_undecided, refusal
from loadstone.report.table import Column, Rows, Table, TableCell, render_cell
from loadstone.report.view import View
from loadstone.report.warnings import count_trials, describe_extent, magnitude, name_source
from loadstone.results.result_set import LOADS
from loadstone.search.outcome import SearchOutcome
from loadstone.search.probe import Probe
from loadstone.search.sentence import count_judged, format_throughput, probe_figure, short_of_rate

# With more comparisons than this, each metric after the first has one row for all contexts. In the rows of the first
# metric, the loads of a sweep then share a row.
ROWS_MAX = 12
MISSING = TableCell(wording.DASH, tone="muted")
# The advice that a verdict gives to readers.
MEANING = {
    Verdict.VALID: "No check found a problem",
    Verdict.UNCHECKED: "State the missing facts, or treat the answer as conditional on them",
    Verdict.SUSPECT: "Read the warnings before you rely on the answer",
    Verdict.INVALID: "Part of the answer must not be relied on: see the warnings",
}
# The maximum number of metrics that a verdict names.
NAMED_MAX = 3
# The conclusions without a better side.
CONCLUSIONS: dict[Claim, str] = {
    "none": "undecided",
    "same": "no difference that matters",
    "slight": "too small to matter",
    "refused": "not ranked",
    "unranked": "not ranked",
}


def sentence(view: View, *, with_figures: bool = False) -> str:
    """The answer based on the deciding metric, as a sentence; a name at its start keeps its case.

    Figures that `table` states are included only on request.
    """
    short = None if with_figures else view.judgement.short
    if text := short.statement if short else view.judgement.answer:
        first = text.partition(" ")[0].rstrip(":,")
        # A metric such as read.p99 keeps its case, too.
        is_name = (
            "=" in first or "." in first or first in {str(value) for key in view.results.variants for _, value in key}
        )
        return text if is_name else text[:1].upper() + text[1:]
    return "No answer: there are no trials." if not view.results.trials else "No answer was given."


def remarks(view: View) -> Sequence[str]:
    """The clauses that follow the answer and its table."""
    return view.judgement.short.remarks if view.judgement.short else view.judgement.further


def table(view: View) -> Table | None:
    """The figures of two compared sides, or the loads around the answer of each search; None without a short answer."""
    if view.judgement.short is None:
        return None
    return surround_answers(view.judgement.searches) if view.judgement.searches else compare_sides(view)


def compare_sides(view: View) -> Table:
    """The medians of all sides, their differences and the conclusions, for each metric and context.

    A sweep, or a comparison in many contexts, has a row for each context of the first metric, and one row for each
    further metric.
    """
    metrics = view.judgement.short.metrics if view.judgement.short else ()
    by_metric = [[pair for pair in view.judgement.comparisons if pair.metric == metric] for metric in metrics]
    every = [pair for pairs in by_metric for pair in pairs]
    contenders = [*dict.fromkeys(name_column(view, pair, pair.contender) for pair in every)]
    sides = [name_column(view, every[0], every[0].baseline), *contenders]
    heads = [Column("metric"), *(Column(side, "right") for side in sides)]
    if len(contenders) > 1:
        groups = list(several_groups(view, every, contenders))
        return Table("", (*heads, Column("verdict")), tuple(groups), tuple(describe_method(view, every)))
    is_joint = is_sweep(every) or (len(every) > ROWS_MAX and len({pair.context for pair in every}) > 1)
    if is_joint:
        rows = [row for pairs in by_metric for row in joint_rows(view, pairs, sides, is_first=pairs is by_metric[0])]
        groups = [Rows("", tuple(rows))]
    else:
        groups = [
            Rows(view.title(context), tuple(compare_row(view, pair, sides) for pair in pairs))
            for context, pairs in group_by(every, lambda pair: pair.context).items()
        ]
    columns = (*heads, Column(f"{sides[1]} against {sides[0]}", width=30), Column("conclusion", width=22))
    has_ranges = sum(len(group.rows) for group in groups) < len(every)
    return Table("", columns, tuple(groups), tuple(describe_method(view, every, has_ranges=has_ranges)))


def name_column(view: View, pair: Comparison, cell: Cell) -> str:
    """The name of a side in the head of its column; a load has its unit."""
    return name_side(pair, cell) if pair.by in LOADS else view.name(cell.variant)


def several_groups(view: View, every: Sequence[Comparison], contenders: Sequence[str]) -> Iterator[Rows]:
    """For each context, a row for each metric: the baseline, and each contender with its difference."""
    for context, of_context in group_by(every, lambda pair: pair.context).items():
        keys = {view.name(key): key for key in view.keys_by_context.get(context, ())}
        rows = []
        for pairs in group_by(of_context, lambda pair: (("metric", pair.metric),)).values():
            metric, verdicts = pairs[0].metric, {pair.verdict for pair in pairs}
            by_name = {name_column(view, pair, pair.contender): pair for pair in pairs}
            cells = []
            for name in contenders:
                if pair := by_name.get(name):
                    cells.append(contender_cell(view, pair, with_verdict=len(verdicts) > 1))
                else:
                    cells.append(render_cell(view, keys[name], metric) if name in keys else MISSING)
            first = median_cell(view, pairs[0].baseline)
            end = TableCell("", describe_condition(pairs[0]), verdict=max(verdicts))
            rows.append((TableCell(wording.metric_name(metric)), first, *cells, end))
        yield Rows(view.title(context), tuple(rows))


def contender_cell(view: View, pair: Comparison, *, with_verdict: bool) -> TableCell:
    """A contender's median, and its difference from the baseline."""
    between = wording.change_interval(pair.ratio)
    parts = [wording.change_text(pair.ratio, bound=pair.bound), between]
    if pair.claim in ("better", "worse"):
        parts += [] if math.isfinite(pair.ratio.value) else [pair.claim]
    elif pair.claim == "none":
        parts = ["undecided", describe_undecided(pair)]
    elif pair.claim in CONCLUSIONS:
        parts = [CONCLUSIONS[pair.claim], reason(pair)]
    parts += [str(pair.verdict)] if with_verdict else []
    return replace(median_cell(view, pair.contender), note=", ".join(filter(None, parts)))


def reason(pair: Comparison) -> str:
    """The reason why sides are not ranked; empty for ranked sides."""
    if pair.claim == "refused":
        return refusal(pair).removeprefix("invalid: ")
    return pair.why.partition("; ")[0] if pair.claim == "unranked" else ""


def describe_condition(pair: Comparison) -> str:
    """The condition of a claim: `if the number of records were equal`; empty if the claim has no condition."""
    return pair.condition.removesuffix(", ")


def median_cell(view: View, cell: Cell) -> TableCell:
    """A median, unless it is withheld."""
    return TableCell("withheld", tone="muted", aside=cell.withheld) if cell.withheld else TableCell(view.figure(cell))


def joint_rows(
    view: View, pairs: Sequence[Comparison], sides: Sequence[str], *, is_first: bool
) -> Iterator[tuple[TableCell, ...]]:
    """The rows of one metric: for the first metric, a row for each context; for any other metric, one row.

    The loads of a sweep share a row if the metric has more than ROWS_MAX comparisons.
    """
    has_loads = len(pairs) <= ROWS_MAX

    def series(pair: Comparison) -> VariantKey:
        return tuple(item for item in pair.context if has_loads or item[0] != view.load) if is_first else ()

    for context, group in group_by(pairs, series).items():
        title = view.title(context)
        name = wording.metric_name(pairs[0].metric) + (f" · {title}" if title else "")
        if len(group) == 1:
            yield TableCell(name), *compare_row(view, group[0], sides)[1:]
            continue
        medians = [span_medians(view.judgement, [pair.baseline for pair in group])]
        medians.append(span_medians(view.judgement, [pair.contender for pair in group]))
        ranked = [
            pair for pair in group if pair.claim not in ("refused", "unranked") and math.isfinite(pair.ratio.value)
        ]
        difference = MISSING
        if ranked:
            least = "at least " if any(pair.bound for pair in ranked) else ""
            difference = TableCell(f"{least}{describe_span(ranked)}×", f"intervals within {span_intervals(ranked)}")
        counts = Counter(text for pair in group if (text := conclude(pair, sides)))
        number = units.count_noun(len(group), "comparison")
        every = "both comparisons" if len(group) == 2 else f"all {number}"
        parts = [f"{text} in {every if count == len(group) else count}" for text, count in counts.items()]
        conclusion = units.list_items(parts) + (f" of {number}" if len(counts) > 1 else "")
        verdict = max(pair.verdict for pair in group)
        yield TableCell(name), *map(TableCell, medians), difference, TableCell(conclusion, verdict=verdict)


def group_by(
    pairs: Sequence[Comparison], key: Callable[[Comparison], VariantKey]
) -> dict[VariantKey, list[Comparison]]:
    """The comparisons grouped by a key, in their original order."""
    groups: dict[VariantKey, list[Comparison]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return groups


def conclude(pair: Comparison, sides: Sequence[str]) -> str:
    """The conclusion of a comparison in a few words; empty if there is none."""
    better = {"better": sides[1], "worse": sides[0]}.get(pair.claim)
    if pair.claim == "descriptive" and not excludes_one(pair.ratio):
        return "undecided"
    return f"{better} is better" if better else CONCLUSIONS.get(pair.claim, "")


def describe_method(view: View, pairs: Sequence[Comparison], *, has_ranges: bool = False) -> Iterator[str]:
    """Notes on the table of compared sides; `has_ranges`: whether some rows have ranges over several contexts."""
    levels = dict.fromkeys(f"{pair.ratio.level * 100:.3g} %" for pair in pairs if pair.ratio.level is not None)
    counts = units.list_items([*dict.fromkeys(pair.n_text for pair in pairs)])
    between = f", with {units.join_names([*levels])} intervals" if levels else ""
    if has_ranges:
        varying = sorted({name for pair in pairs for name, _ in pair.context if name not in view.constants})
        cover = list_loads(pairs) if is_sweep(pairs) else f"every {' and '.join(varying) or 'context'}"
        yield f"Medians and ratios{between}; a range covers {cover}; {counts}"
    else:
        within = " within blocks" if all("within blocks" in pair.test for pair in pairs if pair.test) else ""
        yield f"Medians, and ratios{within}{between}; {counts}"
    cells = [cell for pair in pairs for cell in (pair.baseline, pair.contender)]
    if any(view.judgement.output_bound(cell) == "at_most" for cell in cells):
        yield "At most: an upper bound, because it includes the load generator's lateness; the true figure is lower"
    if any(pair.exploratory for pair in pairs):
        yield "Only the first metric decides; all other metrics are exploratory"


def compare_row(view: View, pair: Comparison, sides: Sequence[str]) -> tuple[TableCell, ...]:
    """The row of one comparison."""
    medians = [median_cell(view, cell) for cell in (pair.baseline, pair.contender)]
    difference = MISSING
    if pair.claim not in ("refused", "unranked"):
        difference = TableCell(wording.change_text(pair.ratio, bound=pair.bound), wording.change_interval(pair.ratio))
        if pair.claim == "none":
            difference = TableCell(wording.ratio_text(pair.ratio), describe_undecided(pair))
    name = TableCell(wording.metric_name(pair.metric))
    why = reason(pair) or describe_condition(pair)
    return name, *medians, difference, TableCell(conclude(pair, sides), why, verdict=pair.verdict)


def surround_answers(every: Sequence[Search]) -> Table:
    """For each search, the probes from its answer to the upper end of its bracket."""
    names = name_contexts([search.context for search in every])
    outcomes = [(name, search.outcome) for name, search in zip(names, every, strict=True) if search.outcome]
    rule = outcomes[0][1].rule
    assert rule.objective is not None, "the searches have an objective"
    metrics = [wording.metric_name(term.metric.removeprefix("all.")) for term in rule.objective.terms]
    # At a rate, the throughput at a load that meets the objective equals the rate.
    metrics += [] if rule.over == "rate" else ["throughput"]
    columns = (Column(rule.over), *(Column(metric, "right") for metric in metrics), Column("objective"))
    groups = tuple(Rows(name, tuple(surround_answer(outcome))) for name, outcome in outcomes)
    notes = ["Loads from the answer to the upper end of the bracket, with medians of the trials"]
    if any(term.metric.startswith("all.") for term in rule.objective.terms):
        notes.append("Percentiles without the name of an operation cover all operations")
    if any(outcome.unsure for _, outcome in outcomes):
        notes.append("The objective holds at a load if most of the judged trials meet it")
    if any(sample.sparse for _, outcome in outcomes for probe in outcome.probes for sample in probe.usable):
        notes.append("About: some trials have too few operations for this percentile")
    return Table("", columns, groups, tuple(notes))


def surround_answer(outcome: SearchOutcome) -> Iterator[tuple[TableCell, ...]]:
    """The probes of one search from its answer to the upper end of its bracket."""
    assert outcome.load is not None, "the search found a load"
    assert outcome.rule.objective is not None, "the search has an objective"
    above = [decision.load for decision in outcome.decisions if decision.load > outcome.load]
    most = outcome.high or min(above, default=outcome.load)
    for probe in sorted(outcome.probes, key=lambda probe: probe.load):
        if outcome.load <= probe.load <= most:
            figures = [probe_figure(term, probe) for term in outcome.rule.objective.terms]
            if outcome.rule.over != "rate":
                figures.append("" if probe.throughput is None else format_throughput(probe.throughput))
            load = TableCell(outcome.rule.format_load(probe.load))
            yield load, *map(TableCell, figures), TableCell(describe_votes(outcome, probe))


def describe_votes(outcome: SearchOutcome, probe: Probe) -> str:
    """The number of trials of a probe that met the objective, or the reason why there is no decision."""
    decision, every = outcome.decision_at(probe.load), len(probe.samples)
    if decision is None:
        count, judged = sum(sample.meets is True for sample in probe.valid), len(probe.valid)
        check = f" ({probe.invalid.partition(':')[0]})" if probe.invalid else ""
        return (
            f"could not be judged: {every - judged} of {every} trials are not valid{check}; met in {count} of"
            f" {units.count_noun(judged, 'valid trial')}"
        )
    if decision.failed:
        return "the system failed"
    votes = count_judged(outcome, probe.load) or f"met in all {every} trials"
    if not decision.met:
        unjudged = f"; {every - decision.trials} of {every} not valid" if every > decision.trials else ""
        votes = f"not met in any of {units.count_noun(decision.trials, 'trial')}{unjudged}"
    missed = "" if decision.go else short_of_rate(outcome.rule, probe)
    return "; ".join(part for part in (votes, missed) if part)


def describe_verdict(view: View) -> str:
    """The verdict in sentences: its main cause, the advice to readers, and the number of checks that ran."""
    if not view.results.trials:
        return "Nothing was measured."
    coverage = view.judgement.coverage
    # If the claim is valid, the answer already states this number.
    coverage = "" if coverage in sentence(view) else coverage
    text = MEANING[view.verdict]
    further = ""
    if view.judgement.verdict > view.verdict:
        worse = [pair.metric for pair in view.judgement.comparisons if pair.verdict == view.judgement.verdict]
        named = [*dict.fromkeys(wording.metric_name(metric) for metric in worse)]
        names = units.join_names(named) if len(named) <= NAMED_MAX else units.list_items(named)
        every = sum(pair.metric in worse for pair in view.judgement.comparisons)
        claim = f"The comparison{'s' if len(worse) > 1 else ''} of {names} {'are' if len(worse) > 1 else 'is'}"
        claim = claim if names else "A further claim is"
        if len(worse) < every:
            verb = "is" if len(worse) == 1 else "are"
            claim = f"{len(worse)} of {units.count_noun(every, 'comparison')} of {names} {verb}"
        further = f"{claim} {view.judgement.verdict}: see the warnings"
    if view.verdict is Verdict.VALID and view.warnings:
        text = "No warning concerns the first claim" if further else "No warning concerns a claim"
    if view.verdict is Verdict.VALID and view.is_description:
        text = "Nothing is compared"
        text += "; see the warnings for what was not checked" if coverage else "; no check found a problem"
    return " ".join(f"{part}." for part in (name_cause(view), text, further, coverage) if part)


def name_cause(view: View) -> str:
    """The message of the check behind the verdict; of several checks, the check with the most trials.

    Empty without such a check, and if the answer already states the message.
    """
    by_check: dict[str, list[Finding]] = {}
    for finding in dict.fromkeys(view.judgement.answer_findings):
        if finding.severity.name.lower() == str(view.verdict) and finding.message:
            by_check.setdefault(finding.check, []).append(finding)
    if not by_check:
        return ""

    def rank(check: str) -> float:
        # A finding on the whole result set has no trials, and comes first.
        return count_trials(by_check[check]) or math.inf

    most = max(by_check, key=rank)
    remaining = [check for check in by_check if check != most]
    more = f". Also found: {units.list_items(remaining)}" if remaining else ""
    # If a comparison is refused, the answer already states the cause.
    if any(finding.message in view.judgement.answer for finding in by_check[most]):
        return ""
    owners = view.owners
    findings = sorted(by_check[most], key=magnitude)[::-1]
    texts = [name_source(finding, owners.get(finding, "")) for finding in findings]
    # The worst message that is also among the warnings, if there is one; otherwise the worst message.
    groups = [group for group in view.warnings if (group.check, group.label) == (most, str(view.verdict))]
    lines = [line for group in groups for line in group.messages]
    message = next((text for text in texts if any(line.startswith(text) for line in lines)), texts[0])
    every = None if view.judgement.searches else len(view.results.trials)
    extent = describe_extent(findings[texts.index(message)], findings, every)
    return f"{message} ({most}{f', {extent}' if extent else ''}){more}"
