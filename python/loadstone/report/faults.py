"""The report's tables on faults: outage and recovery, windows, instants and losses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from loadstone.format import units, wording
from loadstone.judge.judgement import VariantKey
from loadstone.judge.outages import Outage, outage_text, ranges_text, recovery_text, trials_with_ranges
from loadstone.report.table import Column, Rows, Table, TableCell
from loadstone.report.view import View
from loadstone.results.fault import NONE as NO_FAULT
from loadstone.results.fault import FaultRecord
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.availability import WINDOWS

LATENCIES = ("p50", "p99", "p99.9", "max")
# The columns for a fault's instants, with the names of the record's fields.
INSTANTS = {
    "held": "held_ns",
    "no usable connection": "unusable_ns",
    "detected": "detected_ns",
    "lift ordered": "lift_ordered_ns",
    "lifted": "lifted_ns",
    "ready": "ready_ns",
    "usable again": "usable_ns",
    "settled": "settled_ns",
}
# The engine's figures in the same table.
FIRSTS = {"first error": "first_error", "first late": "first_late", "absorbed": "absorbed"}
INSTANTS_TITLE = "Instants"
# The fact that states the delays between a store's attempts to connect.
RECONNECT = "reconnect"
RANGES = (
    "A key range consists of the keys whose copies are on the same servers; it is interrupted if most of its operations"
    " fail for a second"
)
NO_RANGES = (
    "The outage by key range is unknown: the load generator did not count operations by the servers that hold their"
    " keys"
)
NONE = TableCell(wording.DASH, tone="muted")


def tables(view: View) -> Iterator[Table]:
    """All tables with rows."""
    outages = view.judgement.outages
    for table in (answers(view, outages), windows(view, outages), instants(view, outages), losses(view, outages)):
        if table:
            yield drop_empty(table)


def answers(view: View, outages: Sequence[Outage]) -> Table:
    """Outage and recovery by variant."""
    rows, has_ranges = [], any(map(trials_with_ranges, outages))
    for outage in outages:
        excess = (
            NONE if outage.excess_ns is None else TableCell(format_difference(outage.excess_ns), f"n={outage.blocks}")
        )
        depths = [value for trial in outage.trials if (value := trial.value("depth")) is not None]
        gaps = [value for trial in outage.trials if (value := trial.value("longest_gap")) is not None]
        rows.append(
            (
                TableCell(view.name(outage.variant), view.title(view.context(outage.variant))),
                TableCell(outage_text(outage) if outage.outage else wording.DASH),
                excess,
                TableCell(units.format_percent(median(depths)) if depths else wording.DASH),
                TableCell(length(median(gaps)) if gaps else wording.DASH),
                range_cell(outage) if has_ranges else NONE,
                TableCell(recovery_text(outage) or wording.DASH),
            )
        )
    heads = ("variant", "outage", "beyond the twin", "depth", "longest gap", "interrupted key ranges", "recovery")
    notes: tuple[str, ...] = (
        "Outage is the integral of 1 − yield over the time since the fault",
        "Depth, longest gap and the figures of key ranges are medians",
    )
    if any(outage.outage is not None for outage in outages):
        notes = (*notes, RANGES if has_ranges else NO_RANGES)
    return Table("Outage and recovery", columns(*heads), (Rows("", tuple(rows)),) if rows else (), notes)


def range_cell(outage: Outage) -> TableCell:
    """The number of interrupted key ranges, and their extent."""
    count, extent = ranges_text(outage)
    return TableCell(count, extent) if count else TableCell("unknown", tone="muted")


def columns(first: str, *figures: str) -> tuple[Column, ...]:
    """A column of names, and columns of figures."""
    return (Column(first), *(Column(title, "right") for title in figures))


def length(ns: float) -> str:
    """A length of time as text; zero is `0 s`, not `0 ns`."""
    return units.format_duration(ns) if ns else "0 s"


def drop_empty(table: Table) -> Table:
    """The table without the columns that are empty in all rows."""
    rows = [row for group in table.groups for row in group.rows]
    places = [at for at in range(len(table.columns)) if not at or any(row[at] != NONE for row in rows)]
    groups = (Rows(group.title, tuple(tuple(row[at] for at in places) for row in group.rows)) for group in table.groups)
    return Table(table.title, tuple(table.columns[at] for at in places), tuple(groups), table.notes)


def format_difference(ns: float) -> str:
    """A signed difference between times as text."""
    return f"{'−' if ns < 0 else '+'}{length(abs(ns))}"


def windows(view: View, outages: Sequence[Outage]) -> Table:
    """Counts and latencies of each window, as medians over the repeats that count."""
    groups = []
    for outage in outages:
        twin = view.variants.get(outage.twin, ()) if outage.twin is not None else ()
        rows = [row for name in WINDOWS if (row := window_row(name, outage.trials, twin)) is not None]
        if rows:
            groups.append(Rows(title_of(view, outage), tuple(rows)))
    heads = ("window", "length", "due", "in time", "late", "failed", "unanswered", *LATENCIES, "p99 of the twin")
    note = (
        "Each figure is a median of the repeats, so rows need not add up; latencies are response times of all"
        " operations, infinite for failed operations"
    )
    return Table("By window", columns(*heads), tuple(groups), (note,))


def title_of(view: View, outage: Outage) -> str:
    """The name of a variant with its context."""
    return title_of_variant(view, outage.variant)


def title_of_variant(view: View, key: VariantKey) -> str:
    """The name of a variant with its context."""
    return ", ".join(part for part in (view.name(key), view.title(view.context(key))) if part)


def window_row(name: str, trials: Sequence[TrialResult], twin: Sequence[TrialResult]) -> tuple[TableCell, ...] | None:
    """The row of one window; None if no trial has it."""
    of_window = [trial for trial in trials if f"{name}.due" in trial.values]
    if not of_window:
        return None
    yields = [value for trial in of_window if (value := trial.value(f"{name}.yield")) is not None]
    return (
        TableCell(name, f"{len(of_window)} of {len(trials)}" if len(of_window) < len(trials) else ""),
        TableCell(length(middle(of_window, f"{name}.length"))),
        TableCell(f"{middle(of_window, f'{name}.due'):,.0f}"),
        TableCell(units.format_percent(median(yields)) if yields else wording.DASH),
        *(TableCell(f"{middle(of_window, f'{name}.{status}'):,.0f}") for status in ("late", "failed", "unanswered")),
        *(latency(of_window, f"{name}.all.{statistic}") for statistic in LATENCIES),
        latency(twin, f"{name}.all.p99"),
    )


def middle(trials: Sequence[TrialResult], metric: str) -> float:
    """The median of a figure over the trials that have it; 0 if no trial has it."""
    values = [value for trial in trials if (value := trial.value(metric)) is not None]
    return median(values) if values else 0.0


def latency(trials: Sequence[TrialResult], metric: str) -> TableCell:
    """The median of a latency; failed operations count as infinite, and lower bounds are marked."""
    figures = [trial.values[metric] for trial in trials if metric in trial.values]
    if not figures:
        return NONE
    value = median(math.inf if figure.bound == "failed" else figure.value for figure in figures)
    if math.isinf(value):
        return TableCell("∞", aside="failed operations count as infinite")
    bounded = any(figure.bound for figure in figures)
    part = f"{len(figures)} of {len(trials)}" if len(figures) < len(trials) else ""
    return TableCell(f"{'≥ ' if bounded else ''}{length(value)}", part)


def instants(view: View, outages: Sequence[Outage]) -> Table:
    """The instants of each fault in each repeat, relative to the instant when the fault was ordered."""
    groups = []
    for outage in outages:
        rows = [instant_row(trial, fault) for trial in outage.trials for fault in trial.faults]
        groups.append(Rows(title_of(view, outage), tuple(rows)))
    heads = (
        "repeat",
        "victim",
        "ordered at",
        *INSTANTS,
        *FIRSTS,
        "recovered after lift ordered",
        "attempts to connect",
    )
    note = (
        "Times are measured from the order of the fault; `ordered at` is measured from the start of the measurement."
        " `ready` is when the lab's own check succeeded; clients may succeed earlier"
    )
    notes = (note, *describe_reconnection(outages))
    return Table(INSTANTS_TITLE, columns(*heads), tuple(groups), notes)


def describe_reconnection(outages: Sequence[Outage]) -> Iterator[str]:
    """The load generator's delays between attempts to connect, which may postpone the recovery; none if unknown."""
    trials = (trial for outage in outages for trial in outage.trials)
    if delays := dict.fromkeys(str(trial.facts[RECONNECT]) for trial in trials if RECONNECT in trial.facts):
        yield (
            f"The load generator reconnects with `{RECONNECT}={units.list_items([*delays])}`: each delay may postpone"
            " the recovery"
        )


def instant_row(trial: TrialResult, fault: FaultRecord) -> tuple[TableCell, ...]:
    """The instants of one fault."""
    order_ns = fault.planned_at_ns if fault.ordered_ns is None else fault.ordered_ns
    times = [getattr(fault, name) for name in INSTANTS.values()]
    recovered = trial.values.get("recovered")
    kept_ns = trial.value("recovered.held")
    share = fault.facts.get("share")
    role = ", ".join(
        part
        for part in (
            fault.role or "",
            f"{units.format_percent(share)} of the operations" if isinstance(share, float) else "",
            describe_cut(fault),
        )
        if part
    )
    return (
        TableCell(f"{trial.repeat}"),
        TableCell(units.list_items([*fault.servers]) or wording.DASH, role),
        TableCell(length(order_ns)),
        *(NONE if time is None else TableCell(length(time - order_ns)) for time in times),
        *(first_entry(trial, name) for name in FIRSTS.values()),
        NONE
        if recovered is None
        else TableCell(f"{'not within ' if recovered.bound else ''}{length(recovered.value)}")
        if kept_ns is None
        else TableCell(length(recovered.value), f"observed for {length(kept_ns)}"),
        attempts_entry(trial),
    )


def attempts_entry(trial: TrialResult) -> TableCell:
    """The number of attempts to connect in the window, and an upper bound on their rate while a victim was unusable."""
    attempted, rate = trial.value("connections.attempted"), trial.value("connections.attempt_rate")
    if attempted is None or not any(fault.kind != NO_FAULT for fault in trial.faults):
        return NONE
    return TableCell(
        f"{attempted:,.0f}", "" if rate is None else f"at most {units.format_number(rate)}/s while unusable"
    )


def describe_cut(fault: FaultRecord) -> str:
    """The part of a server's connections that a partial cut affected; empty for all connections and other faults."""
    peer, direction = (str(fault.facts.get(name, "")) for name in ("peer", "direction"))
    path = f"{fault.servers[0] if len(fault.servers) == 1 else 'servers'}", peer or "all"
    if direction:
        return "only packets from {} to {}".format(*(path if direction == "out" else path[::-1]))
    return f"only from {peer}" if peer else ""


def losses(view: View, outages: Sequence[Outage]) -> Table:
    """The losses of each variant next to the guarantee of its setting."""
    rows = []
    for outage in outages:
        summary = outage.losses
        if summary is None:
            continue
        low, high = (units.format_percent(end) for end in summary.probability)
        oldest = TableCell(summary.age.removeprefix("the oldest ").removesuffix(" old")) if summary.age else NONE
        writes = f"{min(summary.writes):,} to {max(summary.writes):,}" if summary.writes else "0"
        counts = {name: total(summary.ledgers, f"ledger.{name}") for name in COUNTS}
        rows.append(
            (
                TableCell(title_of(view, outage)),
                TableCell(f"{summary.with_loss} of {summary.trials}", f"{low} to {high}"),
                TableCell(writes),
                oldest,
                TableCell(summary.guarantee.text, summary.guarantee.setting),
                *(TableCell(f"{count:,.0f}") for count in counts.values()),
            )
        )
    heads = ("variant", "faults with a loss", "writes lost", "greatest age", "loss allowed", *COUNTS)
    note = (
        "The interval is for the probability of a loss per fault (Clopper and Pearson, 95 %); the writes lost are per"
        " fault, and further counts are totals. A loss is invisible in a record that was written again"
    )
    return Table("Losses", columns(*heads), (Rows("", tuple(rows)),) if rows else (), (note,))


def first_entry(trial: TrialResult, name: str) -> TableCell:
    """The time of a first event; its precision is the length of the interval in which the operation was due."""
    figure = trial.values.get(name)
    if figure is None:
        return NONE
    return TableCell(f"< {length(figure.resolution)}" if figure.value < figure.resolution else length(figure.value))


COUNTS = ("acknowledged", "refused", "maybe", "stale", "phantom", "corrupt")


def total(trials: Sequence[TrialResult], metric: str) -> float:
    """The sum of a figure over some trials."""
    return sum(trial.value(metric) or 0 for trial in trials)
