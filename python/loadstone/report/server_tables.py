"""Tables of the servers under load: what each variant's servers used, with its regions, and what each server used."""

from __future__ import annotations

import re
from statistics import median

from loadstone.format import wording
from loadstone.judge.judgement import VariantKey
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View
from loadstone.results.value import THROUGHPUT

# What is observed of a server, and of all together, in the order of the columns.
USED = {
    "cpu": "CPU",
    "memory_max": "memory",
    "read": "read from storage",
    # /proc/<pid>/io counts pages, which may never be written.
    "written": "pages dirtied",
    "network.received": "received",
    "network.sent": "sent",
    "gc.count": "collections",
    "gc.pause": "paused",
}
NAME = re.compile(r"server\.(.+)\.memory_max")
# What a system counts over all its servers: regions of the table, the ring.
COUNTED = re.compile(r"server\.(regions|ring\..+)")
# The time between two starts of what a system does periodically, such as checkpoints.
PERIODIC = re.compile(r"server\.((?!before\.).+)_period_seconds")
COUNTED_MAX = 8
# With more variants than this, their servers are only in values.jsonl.
VARIANTS_MAX = 12


def tables(view: View) -> list[Table]:
    """By variant, and by server."""
    return [table for table in (tabulate_variants(view), tabulate_servers(view)) if table]


def tabulate_variants(view: View) -> Table:
    """A row for each variant: its throughput, what its servers used, how many regions there were."""
    keys = [key for key in view.variants if middle(view, key, "server.memory_max") is not None]
    # By their heads.
    metrics = {"throughput": THROUGHPUT}
    used = {head: f"server.{name}" for name, head in USED.items()}
    metrics |= {head: metric for head, metric in used.items() if any(middle(view, key, metric) for key in keys)}
    counted = [metric for metric in view.results.metrics if COUNTED.fullmatch(metric)]
    metrics |= {wording.metric_name(metric.removeprefix("server.")): metric for metric in counted[:COUNTED_MAX]}
    periodic = {match[1]: metric for metric in view.results.metrics if (match := PERIODIC.fullmatch(metric))}
    if periodic:
        # A period longer than the window makes it a matter of chance what the window contains.
        metrics["window"] = "runtime"
        metrics |= {f"{wording.metric_name(name)} every": metric for name, metric in periodic.items()}
    rows = tuple((TableCell(view.varying(key)), *(entry(view, key, name) for name in metrics.values())) for key in keys)
    notes = ("medians over the trials; all servers of a system together",)
    return Table("", columns("variant", *metrics), (Rows("", rows),), notes)


def tabulate_servers(view: View) -> Table:
    """Each server of each variant."""
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
    return Table("", heads, tuple(group for group in groups if group.rows))


def columns(*heads: str) -> tuple[Column, ...]:
    """The first heading is for the rows' names, the remaining headings for figures."""
    return tuple(Column(head, "right" if at else "left") for at, head in enumerate(heads))


def middle(view: View, key: VariantKey, metric: str) -> tuple[float, str] | None:
    """The median of a figure over the trials of a variant, with its unit."""
    values = [value for trial in view.variants[key] if (value := trial.values.get(metric))]
    return (median(value.value for value in values), values[0].unit) if values else None


def entry(view: View, key: VariantKey, metric: str) -> TableCell:
    """That figure in its cell."""
    cell = view.cell(key, metric)
    if cell is None:
        return TableCell(wording.DASH, tone="muted")
    return TableCell(view.figure(cell).removesuffix(" processors").removesuffix(" collections"))
