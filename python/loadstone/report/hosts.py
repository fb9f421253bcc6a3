"""Tables of the hosts of a fleet: their hardware and roles, and their figures under load."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from loadstone.format import units, wording
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View

# Metrics of hosts with engines, commands, or servers that the lab started.
NAME = re.compile(r"host\.(.+)\.(?:clock_bound|servers\.cpu)")
# The figures of a host in each trial, in the order of the columns.
USED = {
    "throughput": "throughput",
    "p99": "p99",
    "time": "time",
    "late.generator": "sent late",
    "engines.cpu": "load generators",
    "servers.cpu": "servers",
    "carrier.cpu": "Ray",
    "cpu.busy": "busy",
    "cpu.others": "other processes",
    "memory.available_min": "free memory",
    "network.received": "received",
    "network.sent": "sent",
    "device.read": "read",
    "device.written": "written",
    "clock_offset": "clock",
    "clock_bound": "known within",
}
HOSTS_MAX = 40


def tables(view: View) -> list[Table]:
    """The table of the hosts' hardware and roles, and the table of their figures; none for a run on one machine."""
    names = list(dict.fromkeys(match[1] for metric in view.results.metrics if (match := NAME.fullmatch(metric))))
    if not names:
        return []
    return [table for table in (describe_hosts(view), compare_hosts(view, names)) if table]


def describe_hosts(view: View) -> Table:
    """A row for each host: role, processors, memory, disks, kernel."""
    hosts = [host for host in view.results.environment.get("hosts", ()) if "role" in host]
    rows = tuple(tuple(map(TableCell, describe(host))) for host in hosts[:HOSTS_MAX])
    heads = ("host", "role", "processors", "memory", "disks", "kernel")
    return Table("", tuple(map(Column, heads)), (Rows("", rows),), cut_note(len(hosts)))


def describe(host: Mapping[str, Any]) -> Iterator[str]:
    """The cells of a host."""
    cpu, memory = host.get("cpu", {}), host.get("memory", {})
    yield str(host.get("name", wording.DASH))
    yield str(host["role"])
    count, model = cpu.get("processors"), cpu.get("model")
    yield " × ".join(str(part) for part in (count, model) if part is not None) or wording.DASH
    yield units.format_size(memory["bytes"]) if "bytes" in memory else wording.DASH
    disks = [
        f"{disk.get('name')} {units.format_size(disk['bytes'])}" for disk in host.get("disks", ()) if "bytes" in disk
    ]
    yield ", ".join(disks) or wording.DASH
    yield str(host.get("kernel", wording.DASH))


def compare_hosts(view: View, names: list[str]) -> Table:
    """A row for each host, with medians over all trials; the host with the highest p99 comes first."""
    figures = {name: {key: middle(view, f"host.{name}.{key}") for key in USED} for name in names}
    known = [key for key in USED if any(figures[name][key] is not None for name in names)]
    ordered = sorted(names, key=lambda name: -(number_of(figures[name]["p99"])))
    rows = tuple(
        (TableCell(name), *(render_figure(figures[name][key]) for key in known)) for name in ordered[:HOSTS_MAX]
    )
    notes = ("Medians over the trials; the host with the highest p99 comes first", *cut_note(len(names)))
    return Table("", (Column("host"), *(Column(USED[key]) for key in known)), (Rows("", rows),), notes)


Figure = tuple[float, str] | None


def middle(view: View, metric: str) -> Figure:
    """The median of a figure over all trials, with its unit."""
    values = [value for trials in view.variants.values() for trial in trials if (value := trial.values.get(metric))]
    return (median(value.value for value in values), values[0].unit) if values else None


def number_of(figure: Figure) -> float:
    """A figure without its unit; 0 if it is missing."""
    return figure[0] if figure else 0.0


def render_figure(figure: Figure) -> TableCell:
    """A figure as a cell."""
    return TableCell(units.format_figure(*figure)) if figure else TableCell(wording.DASH, tone="muted")


def cut_note(count: int) -> tuple[str, ...]:
    """A note on the number of omitted rows."""
    return (f"{count - HOSTS_MAX:,} more hosts are in values.jsonl",) if count > HOSTS_MAX else ()
