"""`loadstone fio JOBFILE [fio's options]` runs fio once, then judges and keeps the results."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from loadstone import workloads
from loadstone.commands import run
from loadstone.commands.parser import CommandParser, UsageError, guard_command
from loadstone.experiment.file import Loaded, load_command
from loadstone.experiment.model.template import escape_braces
from loadstone.format import units
from loadstone.judge.finding import worst_verdict
from loadstone.judge.judgement import Judgement
from loadstone.report.terminal import tables
from loadstone.results.result_set import variant_key
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import metric_statistic
from loadstone.workloads import fio

COLUMNS = ("bandwidth", "throughput", "mean", "p50", "p99", "p99.9", "max")
WRITTEN = {"B/s": units.format_bandwidth, "op/s": units.format_rate, "ns": units.format_duration}


@guard_command
def main(arguments: list[str]) -> int:
    """Runs fio. The exit status is 1 if fio failed."""
    parser = CommandParser(
        "fio",
        "Run fio with JSON output, show its figures by job with the judge's verdict, and keep the results.",
        "All other options are passed to fio. The jobs run in a temporary directory below the current one.",
    )
    parser.add_argument("job", metavar="JOBFILE", help="a job file of fio")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and run nothing")
    parser.add_argument("--share-host", action="store_true", help="allow another run on this host at the same time")
    parser.add_argument("--no-report", action="store_true", help="do not write a report at the end")
    parser.results_option()
    options, fio_options = parser.parse_known_args(arguments)
    for word in fio_options:
        if fio.is_reserved(word) or not word.startswith("-"):
            hint = "write fio's options with =, as in --runtime=10; the lab sets the options for fio's output"
            raise UsageError(f"{word} cannot be used here", hint)
    workloads.register()
    options = Namespace(resume=False, retry_failed=False, print_results=print_figures, **vars(options))
    return run.carry_out(job_experiment(options.job, fio_options), f"fio-{Path(options.job).stem}", options)


def job_experiment(job: str, options: Sequence[str]) -> Loaded:
    """An experiment with a single trial, which runs a job file. Raises ExperimentError."""
    document = {
        "systems": {fio.STORE: {}},
        "workload": {"fio": {"job": escape_braces(job), "options": [escape_braces(option) for option in options]}},
        "directory": escape_braces(str(Path.cwd())),
    }
    loaded = load_command(document, "fio")
    once = loaded.experiment.repeats.model_copy(update={"at_least": 1, "at_most": 1})
    return replace(loaded, experiment=loaded.experiment.model_copy(update={"repeats": once}))


def print_figures(console: Console, judgement: Judgement) -> None:
    """Prints the figures of each job, with one row per direction and one for syncs, and the judge's findings."""
    for trial in judgement.results.trials:
        console.print(jobs_table(judgement, trial))
        console.print(f"verdict: {worst_verdict(judgement.trials[trial.trial])}")
    for renderable in tables.findings(judgement):
        console.print(renderable, soft_wrap=True)


def jobs_table(judgement: Judgement, trial: TrialResult) -> Table:
    """The table of a trial's jobs, without the figures that the judge withheld."""
    jobs = Table(box=SIMPLE_HEAD, pad_edge=False)
    jobs.add_column("job", style="cyan", no_wrap=True)
    for column in COLUMNS:
        jobs.add_column("IOPS" if column == "throughput" else column, justify="right", no_wrap=True)
    rows = dict.fromkeys(
        metric.removesuffix(f".{metric_statistic(metric)}")
        for metric in trial.values
        if metric.endswith((".bandwidth", "sync.mean"))
    )

    def cell_text(metric: str) -> str:
        value, cell = trial.values.get(metric), judgement.cells.get((variant_key(trial.config), metric))
        if cell is not None and cell.withheld:
            return "withheld"
        return WRITTEN[value.unit](value.value) if value else ""

    for row in rows:
        jobs.add_row(row, *(cell_text(f"{row}.{column}") for column in COLUMNS))
    return jobs
