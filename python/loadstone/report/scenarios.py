"""The table of scenarios, each with the claim that it alone would allow, so that readers can dispute a verdict."""

from __future__ import annotations

import math

from loadstone.format import units, wording
from loadstone.judge.decision_table import CLAIMS
from loadstone.judge.judgement import Claim, Comparison, ScenarioRow
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View

# The maximum number of comparisons shown, so that a report stays readable.
COMPARISONS_MAX = 12
READINGS: dict[Claim, str] = {
    "better": "better",
    "worse": "worse",
    "same": "no difference that matters",
    "slight": "the difference is too small to matter",
    "none": "none",
}
COLUMNS = (
    Column("scenario"),
    Column("ratio", "right"),
    Column("interval", "right"),
    Column("n", "right"),
    Column("claim in this row"),
)
LEAD = (
    "Each row recomputes the comparison under one possible explanation of the findings; its last column shows the"
    " claim that this row alone would allow. To be valid, the claim of the answer must hold in every row, and no other"
    " finding may contest it. The first row in which it does not hold decides whether it becomes suspect, undecided or"
    " refused. The interval and the p of the answer cover all rows in which the claim holds. Without a claim, the"
    " answer states the interval as measured and over all rows, and the p is the largest p of all rows, or 1 if the"
    " rows point in different directions."
)


def table(view: View) -> Table:
    """The scenarios of every comparison that has several scenarios."""
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
    have = units.count_noun(max(more, 1), "more comparison has", "more comparisons have")
    notes = (f"{have} scenarios: `loadstone show --json` lists them",) if more > 0 else ()
    return Table("", COLUMNS, groups, notes)


def title(view: View, comparison: Comparison) -> str:
    """The metric, sides and context of a comparison."""
    left, right = (view.value(cell.variant) for cell in (comparison.contender, comparison.baseline))
    context = view.title(comparison.context)
    return f"{wording.metric_name(comparison.metric)}: {left} against {right}{f' · {context}' if context else ''}"


def consequence(claim: Claim) -> str:
    """The consequence of the first scenario in which the measured claim does not hold, as the mark of its row."""
    if claim in CLAIMS:
        return "so the claim is suspect"
    return "so no claim" if claim == "refused" else "so undecided"


def render_row(row: ScenarioRow, comparison: Comparison) -> tuple[TableCell, ...]:
    """One scenario; the scenario that decides is marked."""
    ratio = "" if math.isnan(row.ratio.value) else wording.change_text(row.ratio)
    between = wording.change_interval(row.ratio, f" {wording.DASH} ") or wording.DASH
    mark = f" ({consequence(comparison.claim)})" if row.decides else ""
    return (
        TableCell(row.name),
        TableCell(ratio),
        TableCell(between),
        TableCell(comparison.count_samples(row.n)),
        TableCell(READINGS.get(row.reading, row.reading) + mark),
    )
