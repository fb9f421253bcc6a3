"""Jobs run by fio itself: any job file that fio(1) allows. Each job has separate figures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import CommandContext, Data, Ended, Kind, ObservedCommand
from loadstone.experiment.model import template
from loadstone.experiment.model.values import FilePart, Text
from loadstone.format.parsing import parse_seconds, parse_size
from loadstone.importers import fio as importer
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import Source, text_of

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context

PROGRAM = "fio"
STORE = "fio"
HINT = "install the package fio"
# Options in addition to the user's. `json+` includes the histograms that combining jobs requires.
OPTIONS = ("--output-format=json+",)
# Options that the lab sets, or that change fio's output.
RESERVED = ("output", "output-format", "append-terse", "minimal", "status-interval", "client", "server", "daemonize")
# Options with which a job begins a new group of results.
NEW_GROUP = ("stonewall", "wait_for_previous", "new_group")
# Engines that create no files.
WITHOUT_FILES = ("null", "cpuio", "net", "netsplice", "exec")
DIRECTIONS = {"read": ("read",), "write": ("write",), "trim": ("trim",), "rw": ("read", "write")}
# The bytes read, the bytes written, and, with `unified_rw_reporting`, both together.
BYTE_METRICS = ("returned", "stored", "moved")
# The figures of each direction of a job that are compared by default, and the figures of syncs, which fio reports for
# the options in SYNCING.
COMPARED = ("bandwidth", "throughput", "p99")
COMPARED_SYNCS = ("p99", "p50")
SYNCING = ("fsync", "fdatasync", "sync_file_range")


class Fio(FilePart):
    """Jobs of fio, which must be installed. They run in a new directory below `directory`."""

    job: Text = Field(examples=["[global]\nsize=64m\n[write]\nrw=write\ndirect=1\n"])
    """The path of a job file, or its content."""

    options: tuple[Text, ...] = Field(default=(), examples=[["--section=write"]])
    """Command-line options of fio."""


def stores() -> Collection[str]:
    """The store `fio`, which is not a store of the engine."""
    return (STORE,)


def is_text(job: str) -> bool:
    """Whether `job` is the content of a job file rather than a path."""
    return "\n" in job or job.lstrip().startswith("[")


def is_reserved(option: str) -> bool:
    """Whether a command-line option, which fio lets the user abbreviate, is reserved for the lab."""
    name = option.partition("=")[0].lstrip("-")
    return any(reserved.startswith(name) for reserved in RESERVED)


def check(context: Context, path: Keys, keys: Any) -> None:
    """Reports options that the lab sets; finds the job file, and makes its path absolute."""
    for i, option in enumerate(keys.options if context.is_valid(*path, "options") else ()):
        if is_reserved(option):
            hint = "remove it: the lab sets the options for fio's output"
            context.add_mistake((*path, "options", i), f"{option} cannot be used here", hint)
    if not context.is_valid(*path, "job"):
        return
    if is_text(keys.job):
        refuse_own_place(context, path, keys)
        return
    if template.template_names(keys.job):
        return
    name = template.render_template(keys.job, {})
    file = next((base / name for base in context.bases if (base / name).is_file()), None)
    if file is None:
        tried = " or ".join(dict.fromkeys(str((base / name).parent) for base in context.bases))
        hint = f"put it in {tried}, or write its content instead, beginning with a section such as [write]"
        context.add_mistake((*path, "job"), f"there is no job file {name}", hint)
        return
    refuse_own_place(context, path, Fio(job=str(file)))
    completed = keys.model_copy(update={"job": template.escape_braces(os.path.abspath(file))})
    workload = context.experiment.all_workloads[path[:-1]]
    context.complete_workload(path[:-1], workload.model_copy(update={"fio": completed}))


def refuse_own_place(context: Context, path: Keys, work: Fio) -> None:
    """Refuses jobs that state their directory or file, if the experiment varies `directory`: all variants would use the
    same files."""
    places = list_places(work)
    if places and template.template_names(context.experiment.directory or ""):
        hint = "remove `directory` and `filename` from the jobs: they then run in the experiment's `directory`"
        context.add_mistake((*path, "job"), f"the jobs use {places[0]}, so varying `directory` has no effect", hint)


def list_places(work: Fio) -> list[Path]:
    """The absolute paths of directories and files that the jobs state."""
    texts = [options.get(key, "") for options in jobs(work).values() for key in ("filename", "directory")]
    return [Path(path) for text in texts for path in text.split(":") if path.startswith("/")]


def place_of(work: Fio, directory: Path) -> Path | None:
    """The directory of the jobs' files, by default the trial's; None for a block device."""
    place = next(iter(list_places(work)), directory)
    return None if place.is_block_device() else place if place.is_dir() else place.parent


def title(work: Fio) -> str:
    """The title in a plan: the jobs' names."""
    return " ".join(jobs(work)) or "fio"


def files(work: Fio) -> Sequence[Path]:
    """The job file, unless the experiment contains its content."""
    return () if is_text(work.job) else (Path(work.job),)


def jobs(work: Fio) -> dict[str, dict[str, str]]:
    """The options of each job, including those in [global], keyed by the job's name in the results.

    Empty if the file is unreadable. The lab uses these options for forecasts, titles, default metrics and checks; fio
    parses the file itself.
    """
    try:
        text = work.job if is_text(work.job) else Path(work.job).read_text()
    except (OSError, UnicodeDecodeError):
        return {}
    shared: dict[str, str] = {}
    options = shared
    sections: list[tuple[str, dict[str, str]]] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            name = line[1:].partition("]")[0]
            options = shared if name == "global" else dict(shared)
            if name != "global":
                sections.append((name, options))
        elif line and line[0] not in "#;":
            key, _, value = line.partition("=")
            options[key.strip()] = value.strip()
    options_by_job: dict[tuple[str, int], dict[str, str]] = {}
    group = 0
    for name, options in sections:
        group += any(options.get(key, "0") != "0" for key in NEW_GROUP)
        options_by_job.setdefault((name, group), {}).update(options)
    return dict(
        zip(importer.number_names((name for name, _ in options_by_job), "-"), options_by_job.values(), strict=True)
    )


def data(work: Fio) -> Data:
    """The longest duration that a job states, and the size of the files, which fio creates itself."""
    lengths = []
    for options in jobs(work).values():
        try:
            lengths.append(sum(parse_seconds(options[key]) for key in ("runtime", "ramp_time") if key in options))
        except ValueError:
            digits = [options[key] for key in ("runtime", "ramp_time") if options.get(key, "").isdigit()]
            lengths.append(float(sum(map(int, digits))))
    identity = {"job": work.job, "options": list(work.options)}
    return Data(0, 0, identity, seconds=max(lengths, default=0.0), created_bytes=sum(list_sizes(work).values()))


def list_sizes(work: Fio) -> dict[str, int]:
    """The total size of each job's files, or of each file that a job names, in bytes, if the job file states a size."""
    sizes: dict[str, int] = {}
    for name, options in jobs(work).items():
        if options.get("ioengine", "") in WITHOUT_FILES:
            continue
        try:
            size = parse_size(options.get("size", options.get("filesize", "0")))
            # Each process of a job has separate files, unless the job names its files.
            count = 1 if "filename" in options else int(options.get("numjobs", "1"))
        except ValueError:
            continue
        file = options.get("filename", name)
        sizes[file] = max(sizes.get(file, 0), size * count)
    return sizes


def metrics(work: Fio) -> Sequence[str]:
    """Bandwidth, throughput and p99 of each job, and the latency of its syncs."""
    figures = []
    every = {} if template.template_names(work.job) and not is_text(work.job) else jobs(work)
    for name, options in zip(slugs(every), every.values(), strict=True):
        prefix = "" if len(every) == 1 else f"{name}."
        kind = options.get("rw", options.get("readwrite", "read")).partition(":")[0].removeprefix("rand")
        unified = options.get("unified_rw_reporting", "none") not in ("none", "0", "both", "2")
        for direction in (importer.UNIFIED,) if unified else DIRECTIONS.get(kind, DIRECTIONS["rw"]):
            figures += [f"{prefix}{direction}.{figure}" for figure in COMPARED]
        if any(options.get(option, "0") != "0" for option in SYNCING):
            figures += [f"{prefix}sync.{figure}" for figure in COMPARED_SYNCS]
    return figures


def slugs(names: Iterable[str]) -> list[str]:
    """The names of jobs in the form of metric prefixes."""
    return importer.number_names((re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "job" for name in names), "_")


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """fio's own check of the jobs, and a check of their directories, which fio does not create."""
    if not variant.is_remote or shutil.which(PROGRAM) is not None:
        yield partial(check_by_fio, variant.work)
    if not variant.hooks_before and not variant.is_remote:
        yield partial(check_directories, variant.work)


def check_directories(work: Fio) -> None:
    """Raises LoadstoneError if a directory that a job states does not exist."""
    for options in jobs(work).values():
        for path in options.get("directory", "").split(":"):
            if path.startswith("/") and not Path(path).is_dir():
                raise LoadstoneError(f"the jobs use {path}, which is not a directory", "create it, or correct the job")


def check_by_fio(work: Fio) -> None:
    """Lets fio parse the jobs. Raises LoadstoneError with fio's message."""
    if shutil.which(PROGRAM) is None:
        raise LoadstoneError("cannot run fio: it is not installed", HINT)
    with tempfile.TemporaryDirectory() as directory:
        argv = arguments(work, CommandContext(Path(directory), Path(directory)))
        done = subprocess.run([*argv, "--parse-only"], capture_output=True, text=True, cwd=directory)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        message = lines[0] if lines else f"exit status {done.returncode}"
        raise LoadstoneError(f"fio refuses the job: {message}", "correct the job file (see fio(1))")


def arguments(work: Fio, context: CommandContext) -> list[str]:
    """fio's command line; a copy of the job file is kept in the trial's folder."""
    copy = context.files / "job.fio"
    copy.write_text(work.job if is_text(work.job) else Path(work.job).read_text())
    # On this machine, fio reads the file at its original path, since it may include neighbouring files.
    return [PROGRAM, *OPTIONS, *work.options, str(copy if is_text(work.job) or context.is_remote else work.job)]


def phases(variant: Variant, experiment: Experiment) -> Sequence[ObservedCommand]:
    """One run of fio."""
    return (
        ObservedCommand(
            "fio",
            partial(arguments, variant.work),
            read,
            variant.data.seconds or None,
            place=partial(place_of, variant.work),
        ),
    )


def read(ended: Ended) -> ImportedRun:
    """The results in fio's report; if there are several jobs, each job's figures have its name as a prefix."""
    runs = importer.read_runs(Source(ended.stdout, text_of(ended.stdout), {}))
    if not runs:
        raise LoadstoneError("fio wrote no report", f"see its output in {ended.stderr}")
    run = runs[0] if len(runs) == 1 else combine_jobs(runs)
    run.facts["store"] = STORE
    # As for all file workloads, `throughput` is in bytes per second; operations per second have separate figures for
    # reads and writes.
    known = {value.metric: value for value in run.values}
    byte_values = [known[metric] for metric in BYTE_METRICS if metric in known]
    # Jobs may run one after the other, so the sum of their times is used, which never overstates the throughput.
    times = [value for run in runs for value in run.values if value.metric == "runtime"]
    seconds = sum(value.value for value in times) / 1e9
    run.values = [value for value in run.values if value.metric != "throughput"]
    if seconds:
        speed = sum(value.value for value in byte_values) / seconds
        step = sum(value.resolution for value in times) / 1e9 / seconds * speed
        run.add_figure("throughput", speed, "B/s", sum(value.n for value in byte_values), step)
    # The number of operations in flight depends on fio's I/O engine.
    run.clients = None
    return run


def combine_jobs(runs: Sequence[ImportedRun]) -> ImportedRun:
    """Combines several jobs into one run: adds totals, and prefixes all other figures with the jobs' names."""
    whole = ImportedRun(facts={"tool": importer.NAME, "version": runs[0].facts["version"]}, loop=runs[0].loop)
    for metric in ("operations", "errors"):
        values = [value for run in runs for value in run.values if value.metric == metric]
        whole.add_figure(metric, sum(value.value for value in values), "operations", sum(value.n for value in values))
    for metric in BYTE_METRICS:
        if values := [value for run in runs for value in run.values if value.metric == metric]:
            whole.add_figure(metric, sum(value.value for value in values), "B", sum(value.n for value in values))
    for name, run in zip(slugs(str(run.variant) for run in runs), runs, strict=True):
        whole.values += [value.prefix_metric(name) for value in run.values if value.metric != "throughput"]
        whole.facts |= {f"{name}.{fact}": value for fact, value in run.facts.items() if fact not in whole.facts}
        whole.histograms |= {f"{name}-{tag}": histogram for tag, histogram in run.histograms.items()}
        whole.notes += run.notes
        if run.end != "done":
            whole.end = run.end
    return whole


KIND = Kind(
    Fio,
    False,
    stores,
    title,
    data,
    preflight,
    phases,
    check,
    files=files,
    metrics=metrics,
    place=place_of,
    clients=False,
    remote=True,
    is_program=True,
)
