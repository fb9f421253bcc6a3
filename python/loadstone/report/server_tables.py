"""Tables of the servers under load: the resources that they used, by variant and by server."""

from __future__ import annotations

import re
from statistics import median

from loadstone.format import wording
from loadstone.judge.judgement import VariantKey
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View
from loadstone.results.value import THROUGHPUT

# The observed figures of a server, and of all servers together, in the order of the columns.
USED = {
    "cpu": "CPU",
    "memory_max": "memory",
    "read": "read from storage",
    # /proc/<pid>/io counts dirtied pages, which may never be written to a device.
    "written": "pages dirtied",
    "network.received": "received",
    "network.sent": "sent",
    "gc.count": "collections",
    "gc.pause": "paused",
}
NAME = re.compile(r"server\.(.+)\.memory_max")
# Counts over all servers of a system, such as regions of the table or nodes of the ring.
COUNTED = re.compile(r"server\.(regions|ring\..+)")
# The period of a recurring activity of a system, such as checkpoints.
PERIODIC = re.compile(r"server\.((?!before\.).+)_period_seconds")
COUNTED_MAX = 8
# With more variants than this, the figures of individual servers are only in values.jsonl.
VARIANTS_MAX = 12


def tables(view: View) -> list[Table]:
    """The tables by variant and by server."""
    return [table for table in (tabulate_variants(view), tabulate_servers(view)) if table]


def tabulate_variants(view: View) -> Table:
    """A row for each variant: its throughput, the resources that its servers used, and counts such as regions."""
    keys = [key for key in view.variants if middle(view, key, "server.memory_max") is not None]
    # The metrics by column title.
    metrics = {"throughput": THROUGHPUT}
    used = {head: f"server.{name}" for name, head in USED.items()}
    metrics |= {head: metric for head, metric in used.items() if any(middle(view, key, metric) for key in keys)}
    counted = [metric for metric in view.results.metrics if COUNTED.fullmatch(metric)]
    metrics |= {wording.metric_name(metric.removeprefix("server.")): metric for metric in counted[:COUNTED_MAX]}
    periodic = {match[1]: metric for metric in view.results.metrics if (match := PERIODIC.fullmatch(metric))}
    if periodic:
        # If a period is longer than the window, chance decides whether the window contains the activity.
        metrics["window"] = "runtime"
        metrics |= {f"{wording.metric_name(name)} every": metric for name, metric in periodic.items()}
    rows = tuple((TableCell(view.varying(key)), *(entry(view, key, name) for name in metrics.values())) for key in keys)
    notes = ("Medians over the trials; all servers of a system are combined",)
    return Table("", columns("variant", *metrics), (Rows("", rows),), notes)


def tabulate_servers(view: View) -> Table:
    """A row for each server of each variant."""
    names = [match[1] for metric in view.results.metrics if (match := NAME.fullmatch(metric))]
    if len(names) < 2 or len(view.variants) > VARIANTS_MAX:
        return Table("", (), ())
    every = {**USED, "regions": "regions"}
    used = [figure for figure in every if any(f"server.{name}.{figure}" in view.results.metrics for name in names)]
    groups = []
    for key in view.variants:
        rows = tuple(
            (TableCell(name), *(entry(view, key, f"server.{name}.{figure}") for figure in used))
            for name in names
            if middle(view, key, f"server.{name}.memory_max") is not None
        )
        groups.append(Rows(view.varying(key), rows))
    heads = columns("server", *(every[figure] for figure in used))
    notes = ("Medians over the trials of each server: they do not add up if servers differ between trials",)
    return Table("", heads, tuple(group for group in groups if group.rows), notes)


def columns(*heads: str) -> tuple[Column, ...]:
    """A column for the names of the rows, and columns for figures."""
    return tuple(Column(head, "right" if at else "left") for at, head in enumerate(heads))


def middle(view: View, key: VariantKey, metric: str) -> tuple[float, str] | None:
    """The median of a figure over the trials of a variant, with its unit."""
    values = [value for trial in view.variants[key] if (value := trial.values.get(metric))]
    return (median(value.value for value in values), values[0].unit) if values else None


def entry(view: View, key: VariantKey, metric: str) -> TableCell:
    """The median of a figure as a cell."""
    cell = view.cell(key, metric)
    if cell is None:
        return TableCell(wording.DASH, tone="muted")
    return TableCell(view.figure(cell).removesuffix(" processors").removesuffix(" collections"))
