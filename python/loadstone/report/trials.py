"""The table of all trials, or of at most ROWS_MAX of them."""

from __future__ import annotations

import heapq

from loadstone.format import units, wording
from loadstone.report.comparison import render_verdict
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View
from loadstone.results.result_set import variant_key
from loadstone.results.stage import output_bound
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import THROUGHPUT

ROWS_MAX = 300
METRICS_MAX = 5
PILOT_TITLE = "Pilot block (excluded from the results)"


def table(view: View) -> Table:
    """Trials in the order in which they ran; if there are too many, the trials with the worst verdicts, and of these
    the earliest."""
    trials = view.results.trials
    metrics = columns(view)
    notes: tuple[str, ...] = ()
    if len(trials) > ROWS_MAX:
        judgement = view.judgement
        worst = heapq.nsmallest(ROWS_MAX, trials, key=lambda item: (-judgement.trial_verdict(item.trial), order(item)))
        title = f"{ROWS_MAX} of {len(trials):,} trials, invalid and suspect ones first: values.jsonl has all of them"
        notes, trials = (title,), worst
    dimensions = [name for name, values in view.results.dimensions.items() if len(values) > 1]

    def row(trial: TrialResult, repeat: str, verdict: TableCell) -> tuple[TableCell, ...]:
        return (
            TableCell(trial.trial),
            *(TableCell(str(trial.config.get(name, wording.DASH))) for name in dimensions),
            TableCell(repeat),
            *(number(view, trial, name) for name in metrics),
            TableCell(trial.end, tone="" if trial.end == "done" else "worse"),
            verdict,
        )

    def verdict(trial: TrialResult) -> TableCell:
        return render_verdict(sorted(view.judgement.trials.get(trial.trial, ()), key=lambda finding: -finding.severity))

    groups = [Rows("", tuple(row(item, str(item.repeat), verdict(item)) for item in sorted(trials, key=order)))]
    if pilots := view.results.pilots[:ROWS_MAX]:
        uncounted = TableCell("excluded", tone="muted")
        groups.append(Rows(PILOT_TITLE, tuple(row(item, wording.DASH, uncounted) for item in pilots)))
    heads = (
        Column("trial"),
        *(Column(name) for name in dimensions),
        Column("repeat", "right"),
        *(Column(wording.metric_name(name), "right") for name in metrics),
        Column("end"),
        Column("verdict"),
    )
    return Table("", heads, tuple(groups), notes)


def columns(view: View) -> list[str]:
    """The metrics shown: the headline metrics, throughput and two latencies, up to METRICS_MAX."""
    metrics = dict.fromkeys([*view.headline, THROUGHPUT, "all.p50", "all.p99"])
    return [name for name in metrics if name in view.results.metrics][:METRICS_MAX]


def number(view: View, trial: TrialResult, metric: str) -> TableCell:
    """A figure of a trial; throughput with its interval within the run."""
    value = trial.values.get(metric)
    if value is None:
        return TableCell(wording.DASH, tone="muted")
    cell = view.cell(variant_key(trial.config), metric)
    if cell is not None and cell.withheld:
        return TableCell("withheld", tone="muted", aside=cell.withheld)
    run = view.judgement.within.get(trial.trial) if metric == THROUGHPUT else None
    return TableCell(
        units.format_bound(units.format_figure(value.value, value.unit), output_bound(trial, value)),
        "" if run is None else f"{wording.interval_text(run, value.unit)} within the run",
    )


def order(trial: TrialResult) -> tuple[int, int, str]:
    """The sort key of a trial: the order in which trials ran, if it is known."""
    return (trial.order is None, trial.order or 0, trial.trial)
