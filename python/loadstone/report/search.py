"""A search as a table: its probes by load, each with the decision."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.format import units
from loadstone.judge.judgement import Search
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View
from loadstone.results.result_set import variant_name
from loadstone.search.outcome import Decision, SearchOutcome
from loadstone.search.probe import Probe
from loadstone.search.sentence import explain_search, probe_figure, short_of_rate
from loadstone.statistics.knee import TOLERANCE

DECISION = "decision"


def heads(search: Search) -> list[str]:
    """The titles of the columns."""
    objective = search.rule.objective
    metrics = () if objective is None else (term.metric.removeprefix("all.") for term in objective.terms)
    return [search.rule.over, "throughput", *metrics, "trials", DECISION]


def rows(search: Search) -> list[tuple[str, ...]]:
    """A row for each probe, in order of load."""
    return [tuple(row(search, Probe(load, samples))) for load, samples in sorted(search.samples.items())]


def row(search: Search, probe: Probe) -> Iterator[str]:
    """One probe: load, medians, trials, decision."""
    yield units.format_load(probe.load)
    done = probe.throughput
    yield "" if done is None else units.format_figure(done, "op/s", units.digit_carried(done, done))
    for term in () if search.rule.objective is None else search.rule.objective.terms:
        yield "" if probe.median_figure(term.key) is None else probe_figure(term, probe)
    yield f"{len(probe.samples)}"
    decision = None if search.outcome is None else search.outcome.decision_at(probe.load)
    yield describe_decision(search, probe, decision)


def describe_decision(search: Search, probe: Probe, decision: Decision | None) -> str:
    """The decision at a probe with its reasons, or the share of the plateau; then the excluded trials."""
    if probe.invalid:
        return f"invalid: {probe.invalid}"
    clauses = []
    if decision is not None:
        why = "" if decision.go else short_of_rate(search.rule, probe)
        because = "; ".join(reason for reason in (decision.votes, why) if reason)
        clauses.append(f"{'holds' if decision.go else 'does not hold'}{': ' if because else ''}{because}")
    elif search.outcome is not None and search.outcome.knee is not None and probe.throughput is not None:
        clauses.append(
            f"{units.short_percent(probe.throughput / search.outcome.knee.plateau, 1 - TOLERANCE)} of the plateau"
        )
    # The trials of a valid probe that do not count.
    if reasons := [sample.invalid for sample in probe.samples if sample.invalid]:
        count = units.count_noun(len(reasons), "invalid trial")
        clauses.append(f"{count} excluded ({units.join_names(list(dict.fromkeys(reasons)))})")
    return ", ".join(clauses)


def explanation(search: Search) -> list[str]:
    """How the search proceeded and why it stopped; sentences without their periods."""
    if isinstance(search.end, SearchOutcome):
        return list(explain_search(search.end))
    return [f"The search is not finished: the next load is {search.rule.format_load(search.end)}"]


def tables(view: View) -> list[Table]:
    """A table for each search."""
    results = []
    for search in view.judgement.searches:
        columns = [Column(head, "left" if head in (search.rule.over, DECISION) else "right") for head in heads(search)]
        entries = tuple(tuple(TableCell(text) for text in line) for line in rows(search))
        title = variant_name(search.context) if len(view.judgement.searches) > 1 else ""
        results.append(Table(title, tuple(columns), (Rows("", entries),), tuple(explanation(search))))
    return results
