"""The table for a rate that changes during the window: counts and latencies of each stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadstone.format import units, wording
from loadstone.judge.checks.not_steady import NAME as NOT_STEADY
from loadstone.judge.judgement import VariantKey
from loadstone.report.faults import drop_empty, title_of_variant
from loadstone.report.table import Column, Rows, Table, TableCell, render_cell
from loadstone.report.view import View
from loadstone.results.stage import Stage, stages_of
from loadstone.results.trial_result import TrialResult

# The figures of a stage, by the names of their columns.
COLUMNS = {
    "due": "due",
    "throughput": "throughput",
    "errors": "failed",
    "unanswered": "unanswered",
    "all.p50": "p50",
    "all.p99": "p99",
    "all.max": "max",
    "wait.mean": "mean wait",
}
NONE = TableCell(wording.DASH, tone="muted")
LEAD = (
    "Operations belong to the stage in which they were due; throughput counts completions within the stage. Medians"
    " over the repeats; latencies are response times of all operations."
)


def create_table(view: View) -> Table:
    """One row for each stage of each variant; empty at a constant rate."""
    heads = (Column("stage"), *(Column(title, "right") for title in ("rate", "length", *COLUMNS.values())))
    groups = tuple(
        Rows(title_of_variant(view, key), tuple(render_stage(view, key, stage) for stage in stages))
        for key, trials in view.variants.items()
        if (stages := find_stages(trials))
    )
    return drop_empty(Table("", (*heads, Column("steady")), groups))


def find_stages(trials: Sequence[TrialResult]) -> list[Stage]:
    """The stages of the first trial that has any."""
    return next((stages for trial in trials if (stages := stages_of(trial))), [])


def render_stage(view: View, key: VariantKey, stage: Stage) -> tuple[TableCell, ...]:
    """The row of a stage."""
    return (
        TableCell(f"{stage.number}"),
        TableCell(stage.rate),
        TableCell(units.format_duration(stage.length_ns)),
        *(render_cell(view, key, f"{stage.prefix}{metric}") for metric in COLUMNS),
        render_steadiness(view, key, stage),
    )


def render_steadiness(view: View, key: VariantKey, stage: Stage) -> TableCell:
    """Whether a stage with a constant rate was steady in all repeats; empty if no operation succeeded."""
    trials = view.variants[key]
    if not stage.is_constant or not any(trial.value(f"{stage.prefix}throughput") for trial in trials):
        return NONE
    unsteady = [message for trial in trials for message in find_drifts(view, trial.trial, stage)]
    count = len({trial for trial, _ in unsteady})
    if not count:
        return TableCell("yes")
    message = unsteady[0][1].partition(": ")[2]
    return TableCell(f"no, in {count} of {len(trials)}" if len(trials) > 1 else "no", aside=message)


def find_drifts(view: View, trial: str, stage: Stage) -> Iterator[tuple[str, str]]:
    """The trial and the message of each finding on drift in a stage."""
    for finding in view.judgement.trials.get(trial, ()):
        if finding.check == NOT_STEADY and finding.metric == stage.prefix:
            yield trial, finding.message
