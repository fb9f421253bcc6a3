"""Tables of facts: the guarantees of each system, and the observations of its hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from loadstone.format import units, wording
from loadstone.judge.judgement import VariantKey
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View

# The maximum number of columns in a table.
COLUMNS_MAX = 6
# The most important facts come first; the remaining facts follow in recorded order.
FIRST = (
    "version",
    "durability",
    "how",
    "replication",
    "consistency",
    "compaction",
    "cache_bytes",
    "compression",
    "file_system",
)
# Facts that the environment also lists, which have a row only if they differ; and facts that are not guarantees.
ELSEWHERE = frozenset({"hosts", "host_names", "cpu_model", "cpus", "memory_bytes", "kernel", "engine", "profile"})
NO_GUARANTEE = frozenset({"directory", "store"})
# Units whose name repeats the name of the metric.
COUNTS = frozenset({"operations", "faults"})
# Observations under load (docs/reference/observation.md); device bytes per operation have a chart.
HOST = re.compile(r"(cpu|memory|device|io|network|pressure|engine)\.(?!.*per_operation$)")


def guarantees(view: View) -> tuple[Table, Table]:
    """The facts (durability, cache, version …) of each compared value: one table of facts that differ, and one of facts
    that are equal."""
    columns = list(group_variants(view))
    facts = {name: [fact_text(view, keys, name) for _, keys in columns] for name in list_facts(view)}
    differing, common = [], []
    for name, values in facts.items():
        is_differing = len(set(values)) > 1
        is_unknown = len({*values} - {wording.DASH}) == 1
        note = ("known for some" if is_unknown else "differs") if is_differing else ""
        row = (TableCell(wording.fact_name(name), note), *(TableCell(value) for value in values))
        if is_differing:
            differing.append(row)
        elif name not in ELSEWHERE:
            common.append(row)
    return create_table(view, differing), create_table(view, common)


def list_facts(view: View) -> list[str]:
    """The names of all facts except `directory` and `store`, the most important facts first."""
    names = dict.fromkeys(name for trials in view.variants.values() for trial in trials for name in trial.facts)
    return [
        *(name for name in FIRST if name in names),
        *(name for name in names if name not in (*FIRST, *NO_GUARANTEE)),
    ]


def fact_text(view: View, keys: Sequence[VariantKey], name: str) -> str:
    """A fact of some variants as text; several values if the trials differ."""
    values = dict.fromkeys(
        wording.fact_value(name, trial.facts[name])
        for key in keys
        for trial in view.variants[key]
        if name in trial.facts
    )
    first = list(values)[:3]
    # Values such as a mix of operations contain commas.
    return "; ".join([*first, *(["…"] if len(values) > len(first) else [])]) or wording.DASH


def host(view: View) -> Table:
    """The observations of the hosts: the median over the trials, and the range."""
    rows = []
    for metric in view.results.metrics:
        if not HOST.match(metric) or (not metric.startswith("cpu.") and idle(view, metric)):
            continue
        if metric == "engine.cpu" and "cpu.engine" in view.results.metrics:
            # The load generator's own figure covers exactly the window; samples miss parts of short phases.
            continue
        rows.append(
            (
                TableCell(wording.metric_name(metric)),
                *(render_observation(view, keys, metric) for _, keys in group_variants(view)),
            )
        )
    return create_table(view, rows)


def idle(view: View, metric: str) -> bool:
    """Whether a metric is zero or missing in every trial."""
    return not any(trial.value(metric) for trials in view.variants.values() for trial in trials)


def render_observation(view: View, keys: Iterable[VariantKey], metric: str) -> TableCell:
    """The median of the figures of some variants, with their range."""
    values = [value for key in keys for trial in view.variants[key] if (value := trial.values.get(metric))]
    if not values:
        return TableCell(wording.DASH, tone="muted")
    numbers, unit = [value.value for value in values], values[0].unit
    low, middle, high = (render_number(number, unit) for number in (min(numbers), median(numbers), max(numbers)))
    return TableCell(middle, wording.join_ends(low, high, f" {wording.DASH} ") if low != high else "")


def render_number(number: float, unit: str) -> str:
    """An observation with three digits, however small it is; a count without its unit."""
    last = units.digit_carried(number, number) if unit == "share" and number else None
    return units.format_figure(number, "" if unit in COUNTS else unit, last)


def group_variants(view: View) -> Iterable[tuple[str, list[VariantKey]]]:
    """The variants of each compared value, for at most COLUMNS_MAX values."""
    for value in view.values[:COLUMNS_MAX]:
        yield value, [key for key in view.variants if view.value(key) == value]


def create_table(view: View, rows: Sequence[tuple[TableCell, ...]]) -> Table:
    """A table with a column for each compared value, and a note on omitted columns."""
    heads = (Column(""), *(Column(view.short[value]) for value, _ in group_variants(view)))
    more = len(view.values) - COLUMNS_MAX
    notes = (f"{more:,} more columns are not shown here: values.jsonl has all of them",) if more > 0 else ()
    return Table("", heads, (Rows("", tuple(rows)),), notes)
