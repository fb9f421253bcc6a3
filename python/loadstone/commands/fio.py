"""`loadstone fio JOBFILE [fio's options]`: runs the real fio once, judges it, and keeps the results."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from loadstone import workloads
from loadstone.commands import run
from loadstone.commands.parser import Parser, UsageError, guarded
from loadstone.experiment.file import ExperimentError, Loaded
from loadstone.experiment.mistake import Place
from loadstone.experiment.model.template import escape
from loadstone.experiment.reading import resolved
from loadstone.experiment.reading.tree import Table as Tree
from loadstone.experiment.reading.tree import read_value
from loadstone.experiment.validation.examination import examine
from loadstone.format import units
from loadstone.judge.finding import verdict
from loadstone.judge.judgement import Judgement
from loadstone.report.terminal import tables
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import statistic
from loadstone.workloads import fio

# What the lab itself asks of fio.
OWN = ("--output", "--output-format", "--append-terse", "--minimal", "--client", "--server", "--daemonize")
COLUMNS = ("bandwidth", "throughput", "mean", "p50", "p99", "p99.9", "max")
WRITTEN = {"B/s": units.bandwidth, "op/s": units.rate, "ns": units.duration}


@guarded
def main(arguments: list[str]) -> int:
    """Runs fio; exit status 1 if it failed."""
    parser = Parser(
        "fio",
        "Run fio with its JSON output, show its figures by job with the judge's verdict, and keep the results.",
        "Every other option is fio's own. The jobs run in a new directory below the current one, which is removed.",
    )
    parser.add_argument("job", metavar="JOBFILE", help="a job file of fio's")
    parser.add_argument("--dry-run", action="store_true", help="show the plan; run nothing")
    parser.add_argument("--share-host", action="store_true", help="run beside another run on this host")
    parser.add_argument("--no-report", action="store_true", help="write no report at the end")
    parser.results_option()
    options, others = parser.parse_known_args(arguments)
    for word in others:
        if word.partition("=")[0] in OWN or not word.startswith("-"):
            hint = "fio's options are written with =, as in --runtime=10; its output is the lab's to read"
            raise UsageError(f"{word} cannot be used here", hint)
    workloads.register()
    options = Namespace(resume=False, retry_failed=False, shown=show, **vars(options))
    return run.carry_out(experiment(options.job, others), f"fio-{Path(options.job).stem}", options)


def experiment(job: str, options: Sequence[str]) -> Loaded:
    """One trial of a job file. Raises ExperimentError."""
    document = {
        "systems": {fio.STORE: {}},
        "workload": {"fio": {"job": escape(job), "options": [escape(each) for each in options]}},
        "directory": escape(str(Path.cwd())),
    }
    tree, mistakes = read_value(json.dumps(document), Place(0, "fio"))
    assert isinstance(tree, Tree), "a document is a mapping"
    examined = examine(tree, (Path(),))
    if found := [*mistakes, *examined.mistakes]:
        raise ExperimentError(found)
    once = examined.experiment.repeats.model_copy(update={"at_least": 1, "at_most": 1})
    made = examined.experiment.model_copy(update={"repeats": once})
    return Loaded(made, tuple(examined.warnings), resolved.text(made))


def show(console: Console, judgement: Judgement) -> None:
    """The figures of each job, a row a direction, and what the judge says of them."""
    for trial in judgement.results.trials:
        console.print(table(trial))
        console.print(f"verdict: {verdict(judgement.trials[trial.trial])}")
    for renderable in tables.findings(judgement):
        console.print(renderable, soft_wrap=True)


def table(trial: TrialResult) -> Table:
    """A trial's jobs."""
    found = Table(box=SIMPLE_HEAD, pad_edge=False)
    found.add_column("job", style="cyan", no_wrap=True)
    for column in COLUMNS:
        found.add_column("IOPS" if column == "throughput" else column, justify="right", no_wrap=True)
    rows = dict.fromkeys(
        metric.removesuffix(f".{statistic(metric)}") for metric in trial.values if metric.endswith(".bandwidth")
    )
    for row in rows:
        values = (trial.values.get(f"{row}.{column}") for column in COLUMNS)
        found.add_row(row, *(WRITTEN[value.unit](value.value) if value else "" for value in values))
    return found
