"""Each repeat with the average, as in manual reports; the evidence is in the last columns."""

from __future__ import annotations

from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.table import Table

from loadstone.format import units
from loadstone.judge.finding import worst_verdict
from loadstone.judge.judgement import Cell, Judgement
from loadstone.report.terminal.tables import change
from loadstone.report.view import View
from loadstone.results.result_set import natural_key


def repeats(judgement: Judgement, metric: str) -> Table | None:
    """A row for each variant: its repeats, their average, the largest deviation, and the difference from the baseline.

    None if the metric was not measured.
    """
    cells = {variant: cell for (variant, item), cell in judgement.cells.items() if item == metric and not cell.withheld}
    if not cells:
        return None
    view = View(judgement)
    compared = {item.contender.variant: item for item in judgement.comparisons if item.metric == metric}
    numbers = sorted({number for cell in cells.values() for number, _ in cell.samples})
    order = [name for name in judgement.results.dimensions if any(name in dict(variant) for variant in cells)]
    table = Table(title=f"{metric}: each repeat", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for name in order:
        table.add_column(name, style="cyan", no_wrap=True)
    for title in (*map(str, numbers), "average", "variation", "difference"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("evidence", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for variant, cell in sorted(
        cells.items(), key=lambda item: natural_key(tuple(dict(item[0]).get(n, "") for n in order))
    ):
        comparison = compared.get(variant)
        baseline = cells.get(comparison.baseline.variant) if comparison else None
        table.add_row(
            *(str(dict(variant).get(name, "")) for name in order),
            *figures(cell, numbers),
            f"{fmean_of(cell) / fmean_of(baseline) - 1:+.2%}" if baseline and fmean_of(baseline) else "",
            change(comparison),
            str(worst_verdict(view.findings_of(variant))),
        )
    return table


def figures(cell: Cell, numbers: list[int]) -> list[str]:
    """The repeats of a cell, their average, and the largest deviation from the average."""
    samples, mean = dict(cell.samples), fmean_of(cell)
    texts = dict(zip([*samples, 0], units.format_alike([*samples.values(), mean], cell.unit), strict=True))
    variation = max(abs(value / mean - 1) for value in samples.values()) if mean else 0.0
    return [*(texts.get(number, "") for number in numbers), texts[0], f"± {variation:.1%}"]


def fmean_of(cell: Cell) -> float:
    """The arithmetic mean of the repeats."""
    return fmean(value for _, value in cell.samples)
