"""fio's jobs, run by fio itself: any job file that it documents (fio(1)). Each job has figures of its own."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import Data, Ended, Kind, ObservedCommand
from loadstone.experiment.model import template
from loadstone.experiment.model.values import Part, Text
from loadstone.format.quantity import seconds
from loadstone.importers import fio as importer
from loadstone.importers.run import Run
from loadstone.importers.source import Source, text_of

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context

PROGRAM = "fio"
STORE = "fio"
HINT = "install fio (Debian's package fio)"
# What is asked of fio beside the user's own options. `json+` has histograms, from which jobs are put together.
OPTIONS = ("--output-format=json+",)
DIRECTIONS = {"read": ("read",), "write": ("write",), "trim": ("trim",), "rw": ("read", "write")}
# What is compared of each job unless the experiment says otherwise.
COMPARED = ("bandwidth", "throughput", "p99")


class Fio(Part):
    """Jobs of fio, which must be installed. It runs in a new directory below `directory`."""

    job: Text = Field(examples=["[global]\nsize=64m\n[write]\nrw=write\ndirect=1\n"])
    """A job file, or the text of one."""

    options: tuple[Text, ...] = Field(default=(), examples=[["--section=write"]])
    """Options of fio's command line."""


def stores() -> Collection[str]:
    """None of the engine's."""
    return (STORE,)


def is_text(job: str) -> bool:
    """Whether it is a job file's content, not its path."""
    return "\n" in job or job.lstrip().startswith("[")


def check(context: Context, path: Keys, keys: Any) -> None:
    """Finds the job file, and makes the path to it absolute."""
    if not context.knows(*path, "job") or is_text(keys.job) or template.names(keys.job):
        return
    name = template.render(keys.job, {})
    found = next((base / name for base in context.bases if (base / name).is_file()), None)
    if found is None:
        tried = " and ".join(dict.fromkeys(str((base / name).parent) for base in context.bases))
        hint = f"it was looked for in {tried}; the text of a job file begins with a section, like [write]"
        context.wrong((*path, "job"), f"there is no job file {name}", hint)
        return
    whole = keys.model_copy(update={"job": template.escape(os.path.abspath(found))})
    workload = context.experiment.each_workload[path[:-1]]
    context.complete_workload(path[:-1], workload.model_copy(update={"fio": whole}))


def title(work: Fio) -> str:
    """The jobs' names."""
    return " ".join(jobs(work)) or "fio"


def files(work: Fio) -> Sequence[Path]:
    """The job file."""
    return () if is_text(work.job) else (Path(work.job),)


def jobs(work: Fio) -> dict[str, dict[str, str]]:
    """The options of each job, by its name, those of [global] among them; empty where they cannot be read.

    Only to say what is to come: fio reads the file for itself.
    """
    parser = configparser.RawConfigParser(
        strict=False, allow_no_value=True, default_section="global", comment_prefixes=("#", ";"), delimiters=("=",)
    )
    try:
        parser.read_string(work.job if is_text(work.job) else Path(work.job).read_text())
    except (configparser.Error, OSError, UnicodeDecodeError):
        return {}
    return {name: {key: text or "" for key, text in parser.items(name)} for name in parser.sections()}


def data(work: Fio) -> Data:
    """How long its jobs take, where they say so; their files are made by fio itself."""
    lengths = []
    for options in jobs(work).values():
        try:
            lengths.append(sum(seconds(options[key]) for key in ("runtime", "ramp_time") if key in options))
        except ValueError:
            digits = [options[key] for key in ("runtime", "ramp_time") if options.get(key, "").isdigit()]
            lengths.append(float(sum(map(int, digits))))
    return Data(0, 0, {"job": work.job, "options": list(work.options)}, seconds=max(lengths, default=0.0))


def metrics(work: Fio) -> Sequence[str]:
    """Bandwidth, operations and the 99th percentile of each job, one after the other."""
    found = []
    every = {} if template.names(work.job) and not is_text(work.job) else jobs(work)
    for name, options in every.items():
        prefix = "" if len(every) == 1 else f"{slug(name)}."
        kind = options.get("rw", options.get("readwrite", "read")).partition(":")[0].removeprefix("rand")
        for direction in DIRECTIONS.get(kind, DIRECTIONS["rw"]):
            found += [f"{prefix}{direction}.{figure}" for figure in COMPARED]
    return found


def slug(name: str) -> str:
    """A job's name as part of a figure's."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "job"


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """fio's own look at the jobs."""
    yield partial(parsed, variant.work)


def parsed(work: Fio) -> None:
    """Has fio read the jobs. Raises LoadstoneError with what it says."""
    if shutil.which(PROGRAM) is None:
        raise LoadstoneError("cannot run fio: it is not installed", HINT)
    with tempfile.TemporaryDirectory() as directory:
        words = arguments(work, Path(directory))
        done = subprocess.run([*words, "--parse-only"], capture_output=True, text=True, cwd=directory)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise LoadstoneError(f"fio refuses the job: {said[0] if said else 'without a word'}", "see fio(1)")


def arguments(work: Fio, files: Path) -> list[str]:
    """fio's command line; a copy of the job file is left in the trial's folder."""
    copy = files / "job.fio"
    copy.write_text(work.job if is_text(work.job) else Path(work.job).read_text())
    # A job file may include others, which are looked for beside it.
    return [PROGRAM, *OPTIONS, *work.options, str(copy if is_text(work.job) else work.job)]


def phases(variant: Variant, experiment: Experiment) -> Sequence[ObservedCommand]:
    """fio, once."""
    return (ObservedCommand("fio", partial(arguments, variant.work), read, variant.data.seconds or None),)


def read(ended: Ended) -> Run:
    """What fio's report says of all jobs: each has its figures below its name, if there are several."""
    runs = importer.runs(Source(ended.stdout, text_of(ended.stdout), {}))
    if not runs:
        raise LoadstoneError("fio wrote no report", "see its output")
    found = runs[0] if len(runs) == 1 else joined(runs)
    found.facts["store"] = STORE
    # As of all work on files: bytes in a second. Operations in a second are those of each direction.
    known = {value.metric: value for value in found.values}
    moved = [known[metric] for metric in ("returned", "stored") if metric in known]
    # Jobs may follow each other: over the sum of their times it is never too fast.
    seconds = sum(value.value for run in runs for value in run.values if value.metric == "runtime") / 1e9
    found.values = [value for value in found.values if value.metric != "throughput"]
    if seconds:
        found.add("throughput", sum(value.value for value in moved) / seconds, "B/s", sum(value.n for value in moved))
    # How many operations are under way at once is between fio and its engines.
    found.clients = None
    return found


def joined(runs: Sequence[Run]) -> Run:
    """Several jobs as one run: sums, and below their names everything else."""
    whole = Run(facts={"tool": importer.NAME, "version": runs[0].facts["version"]}, loop=runs[0].loop)
    for metric in ("operations", "errors"):
        each = [value for run in runs for value in run.values if value.metric == metric]
        whole.add(metric, sum(value.value for value in each), "operations", sum(value.n for value in each))
    for metric in ("returned", "stored"):
        if each := [value for run in runs for value in run.values if value.metric == metric]:
            whole.add(metric, sum(value.value for value in each), "B", sum(value.n for value in each))
    for run in runs:
        name = slug(str(run.variant))
        whole.values += [value.below(name) for value in run.values if value.metric != "throughput"]
        whole.facts |= {f"{name}.{fact}": value for fact, value in run.facts.items() if fact not in whole.facts}
        whole.histograms |= {f"{name}-{tag}": histogram for tag, histogram in run.histograms.items()}
        whole.notes += run.notes
        if run.end != "done":
            whole.end = run.end
    return whole


KIND = Kind(Fio, False, stores, title, data, preflight, phases, check, files=files, metrics=metrics, clients=False)
