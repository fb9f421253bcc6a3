"""The table of scenarios: what each of them alone would allow to claim, so that readers can dispute a verdict."""

from __future__ import annotations

import math

from loadstone.format import wording
from loadstone.judge.judgement import Claim, Comparison, ScenarioRow
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View

# The most comparisons shown: a report must stay readable.
COMPARISONS_MAX = 12
READINGS: dict[Claim, str] = {
    "better": "better",
    "worse": "worse",
    "same": "no difference that matters",
    "slight": "differs by less than matters",
    "none": "none",
}
COLUMNS = (
    Column("scenario"),
    Column("ratio", "right"),
    Column("interval", "right"),
    Column("n", "right"),
    Column("claim"),
)
LEAD = (
    "Alternatives that the findings leave open, each with the claim that it alone would allow. A claim is valid if"
    " it holds in every row; otherwise, the first row without it decides. The printed interval covers all rows in which"
    " the claim holds, and the printed p is the largest; it is 1 if the rows point in different directions."
)


def table(view: View) -> Table:
    """The scenarios of every comparison that has more than one."""
    open_ones = [
        comparison
        for comparison in view.judgement.comparisons
        if len(comparison.scenarios) > 1 and comparison.claim != "impossible"
    ]
    groups = tuple(
        Rows(title(view, comparison), tuple(render_row(row, comparison) for row in comparison.scenarios))
        for comparison in open_ones[:COMPARISONS_MAX]
    )
    more = len(open_ones) - COMPARISONS_MAX
    notes = (f"{more} more comparisons have scenarios: see `loadstone show --json`",) if more > 0 else ()
    return Table("", COLUMNS, groups, notes)


def title(view: View, comparison: Comparison) -> str:
    """Which comparison it is."""
    left, right = (view.value(cell.variant) for cell in (comparison.contender, comparison.baseline))
    context = view.title(comparison.context)
    return f"{wording.metric_name(comparison.metric)}: {left} against {right}{f' · {context}' if context else ''}"


def render_row(row: ScenarioRow, comparison: Comparison) -> tuple[TableCell, ...]:
    """One scenario; the scenario that decides is marked."""
    ratio = "" if math.isnan(row.ratio.value) else wording.change_text(row.ratio)
    between = wording.change_interval(row.ratio, f" {wording.DASH} ") or wording.DASH
    return (
        TableCell(row.name),
        TableCell(ratio),
        TableCell(between),
        TableCell(comparison.count_samples(row.n)),
        TableCell(f"{READINGS.get(row.reading, row.reading)}{' (decides)' if row.decides else ''}"),
    )
