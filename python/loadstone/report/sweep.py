"""The table of a sweep: operations, throughput and latencies of each series and load, as in older tools."""

from __future__ import annotations

from dataclasses import replace

from loadstone.judge.checks.impossible import PERCENTILES_OF
from loadstone.judge.judgement import VariantKey
from loadstone.report.charts import figure
from loadstone.report.charts.scaling import Line, group_lines, read_probe
from loadstone.report.table import Column, Rows, Table, TableCell, render_cell
from loadstone.report.view import View
from loadstone.results.result_set import natural_key, variant_name
from loadstone.results.value import THROUGHPUT

# The columns of cassandra-stress and of the Hydra report, in their order, each with both names.
COLUMNS = {
    "operations": "operations (total_ops)",
    "throughput": "throughput (op/s)",
    "all.p50": "median (med)",
    "all.p95": "p95 (.95)",
    "all.p99": "p99 (.99)",
    "all.max": "max",
    "runtime": "window (op_time)",
    "errors": "failed",
}
COUNTS = ("operations", "errors")
# If there are more loads than this, only the chart shows them.
ROWS_MAX = 200
LOADS_MIN = 3
MERGED = "Percentiles come from the merged histograms of each trial; percentiles are never averaged."


def describe_table(view: View) -> str:
    """The origin of the figures. Nothing is stated about imported percentiles, which a tool may have merged."""
    is_merged = not any("tool" in trial.facts or PERCENTILES_OF in trial.facts for trial in view.results.trials)
    return f"Medians of the repeats. {MERGED}" if is_merged else "Medians of the repeats."


def create_table(view: View) -> Table:
    """One row for each load of each series; empty without a sweep of at least LOADS_MIN loads."""
    grouped = group_lines(view)
    names = [*figure.domain(view)]
    lines = [
        (context, line)
        for context in sorted(grouped, key=natural_key)
        for line in sorted(grouped[context], key=lambda line: names.index(line.name))
    ]
    metrics = [metric for metric in COLUMNS if metric in view.results.metrics]
    loads = sum(len(line.variants) for _, line in lines)
    if max((len(line.variants) for _, line in lines), default=0) < LOADS_MIN or loads > ROWS_MAX or not metrics:
        return Table("", (), ())
    heads = (Column(f"# {view.load}"), *(Column(COLUMNS[metric], "right") for metric in metrics))
    rows = tuple(
        Rows(
            name_series(view, context, line),
            tuple(
                (TableCell(f"{load:g}"), *(render_figure(view, line, load, metric) for metric in metrics))
                for load in line.variants
            ),
        )
        for context, line in lines
    )
    return Table("", heads, rows)


def render_figure(view: View, line: Line, load: float, metric: str) -> TableCell:
    """A figure, as in the table of a search; counts are shown without their unit, which is in the column title."""
    probed = None if line.search is None or metric == THROUGHPUT else read_probe(line.search, load, metric)
    if probed is not None:
        return TableCell(probed[1])
    cell = render_cell(view, line.variants[load], metric)
    return replace(cell, text=cell.text.removesuffix(f" {metric}")) if metric in COUNTS else cell


def name_series(view: View, context: VariantKey, line: Line) -> str:
    """The heading of a series: its compared value and its context."""
    varying = tuple(pair for pair in context if pair[0] not in view.constants)
    return " · ".join(filter(None, (line.name, variant_name(varying) if varying else "")))
