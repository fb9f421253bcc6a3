"""Any command as a trial: it is run and observed, and its output provides the figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from loadstone.engine.describe import describe_engine
from loadstone.engine.trial import EngineError
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import HISTOGRAM_LOGS, SHARED, CommandContext, Data, Ended, Kind, ObservedCommand
from loadstone.experiment.model import template
from loadstone.experiment.model.values import FilePart, Natural, Text, refuse_value
from loadstone.experiment.model.values import quote_value as render_value
from loadstone.experiment.plan.required_servers import TABLE
from loadstone.format import units
from loadstone.format.suggestion import suggest_names
from loadstone.importers import hlog, hlog_parser, json_paths, patterns, unit
from loadstone.importers.read import FORMATS, Format, read_source
from loadstone.importers.run import OPERATIONS, ImportedRun
from loadstone.importers.source import Source, decode_file, text_of
from loadstone.workloads.shell_command import (
    ask_version,
    check_program,
    check_syntax,
    program_of,
    shell_arguments,
    version_command,
)

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.model.vary import Point
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context

NAME, LOAD = "command", "load"
# The store of a system without servers.
STORE = "command"
# Figures that can also be computed from a time series.
COUNTED = ("throughput", "runtime", "operations")
# The figures that are compared if the file names no figures. Memory is excluded, because small peaks are unknown.
TIMES = ("time", "cpu_time")
BY_PATHS = ("json", "regex")
# The minimum share of the requested operations; it is below 1, because tools round down the operations per client.
DONE_MIN = 0.9
# Larger outputs are not searched for figures.
FIGURES_MAX = 64 << 20
# Keys of the experiment file that have an effect only if the command uses them.
PASSED = {"clients": ("clients",), "rate": ("rate",), "duration": ("measure", "duration"),
          "operations": ("measure", "operations")}  # fmt: skip
# `warmup` has an effect even if the command does not use it: the warm-up is excluded from a time series.
WARMUP = "warmup"
# YCSB has no option for its version; it prints the version to standard error when it starts (Client.java).
YCSB_VERSION = re.compile(r"^YCSB Client (\d\S*)", re.MULTILINE)
UNIT_HINT = "add `hlog_unit: us` (or ns, or ms) to `command` in the experiment file"
METRIC_HINT = "write `throughput: [$.tps, op/s]`: a metric, then its path and its unit"


def figures_of(value: Any) -> str | dict[str, dict[str, tuple[str, str]]] | None:
    """Validates the key `figures`: an importer's name, or paths or patterns with their units, keyed by metric."""
    known = [name for name in FORMATS if name != json_paths.NAME]
    if value is None:
        return None
    if isinstance(value, str):
        if value not in known:
            refuse_value(f'has no importer "{value}"', suggest_names(value, known, "the importers are"))
        return value
    if not isinstance(value, dict) or len(value) != 1 or not {*value} <= {*BY_PATHS}:
        refuse_value(
            f"must be an importer's name, or `json:` or `regex:` with figures, got {render_value(value)}", METRIC_HINT
        )
    ((way, figures),) = value.items()
    if not isinstance(figures, dict) or not figures:
        refuse_value(f"has no figures below `{way}`", METRIC_HINT)
    return {way: {str(metric): parse_figure(way, str(metric), pair) for metric, pair in figures.items()}}


def parse_figure(way: str, metric: str, pair: Any) -> tuple[str, str]:
    """The path or pattern of a figure, and its unit."""
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        refuse_value(f"must be [path or pattern, unit] for {metric}, got {render_value(pair)}", METRIC_HINT)
    where, name = pair
    if unit.base_unit(name) is None:
        refuse_value(f'has an unknown unit "{name}" for {metric}', f"the units are {unit.KNOWN}")
    try:
        if way == "json":
            json_paths.parse_figure(f"{metric}={where} {name}")
        elif re.compile(where).groups > 1:
            refuse_value(
                f"has a pattern with several groups for {metric}", "put the number in one group: `tps = ([0-9.]+)`"
            )
    except LoadstoneError as error:
        refuse_value(f"has an invalid path: {error.args[0]}", error.hint)
    except re.error as error:
        refuse_value(f"has an invalid pattern for {metric}: {error}", "write a Python regular expression")
    return where, name


FIGURES_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "null"},
        {"type": "string"},
        {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
            },
        },
    ]
}
Figures = Annotated[Any, PlainValidator(figures_of), WithJsonSchema(FIGURES_SCHEMA)]


HlogUnit = Literal["ns", "us", "ms"]


class Command(FilePart):
    """A shell command that does the work of a trial: any benchmark that prints its figures, or work to be timed."""

    run: Text = Field(examples=["pgbench -n -c {clients} -T {duration}"])
    """The command. A trial executes it once, or once on each host of a fleet. It fails if the exit status is not
    zero."""

    prepare: Text = Field(default="", examples=["pgbench -i -s 10"])
    """The load phase: a command that creates the data."""

    figures: Figures = Field(default=None, examples=["pgbench"])
    """The source of the figures, which are read from standard output: the name of an importer (`loadstone import
    --format`), `json: {throughput: [$.tps, op/s]}` or `regex: {throughput: ['tps = ([0-9.]+)', op/s]}`. Default:
    `time`, `cpu_time` and, for processes larger than the lab's launcher, `memory_max`."""

    warmups: Natural = 0
    """Unrecorded executions before each trial."""

    hlog_unit: HlogUnit | None = None
    """The unit of the values in the HDR logs of a tool unknown to Loadstone: `ns`, `us` or `ms`. Default: the unit that
    the log states."""

    version: Text = Field(default="", examples=["mybench --version"])
    """A command whose first line of output is the tool's version. Default: the version option of a known tool."""


def stores() -> Collection[str]:
    """The stores of systems with servers, and the store of commands without servers."""
    return (STORE, *(name for name in describe_engine().stores if describe_engine().is_networked(name)))


def check(context: Context, path: Keys, keys: Any) -> None:
    """Reports keys of the experiment file that no command uses."""
    texts = [keys.run, keys.prepare]
    try:
        named = {name for text in texts for name in template.template_names(text)}
    except ValueError:
        # The check of templates reports this error.
        return
    for key, place in PASSED.items():
        if key not in named and (key in context.dimensions or context.is_set(*map(str, place))):
            where = ("vary",) if key in context.dimensions else place
            message = f"`{'.'.join(map(str, where))}` sets {key}, but the command does not use it"
            context.add_mistake(where, message, f"write {{{key}}} in `{path[-1]}.run`, or leave it out")
    if context.experiment.measure.warmup and not isinstance(keys.figures, str):
        message = "measure.warmup has no effect: the warm-up can only be excluded from an importer's time series"
        context.add_mistake(("measure", WARMUP), message, f"set `{path[-1]}.figures` to the name of an importer")
    if not keys.run.strip() and context.is_valid(*path, "run"):
        context.add_mistake((*path, "run"), "the command is empty", "write the command of a trial")


def changing(context: Context, path: Keys, keys: Any, point: Point) -> Iterator[str]:
    """Yields the command's key, because any command may change data that other trials read."""
    yield "command.run"


def title(work: Command) -> str:
    """The title in a plan: the program's name."""
    return program_of(work.run) or "command"


def data(work: Command) -> Data:
    """The data that `prepare` loads is unknown."""
    return Data(0, 0, {"prepare": work.prepare}, TABLE)


def metrics(work: Command) -> Sequence[str]:
    """The figures that the file names, otherwise the times; none for an importer, whose figures depend on the tool."""
    if work.figures is None:
        return TIMES
    return () if isinstance(work.figures, str) else [metric.lower() for way in work.figures.values() for metric in way]


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """Checks that the shell can parse the commands, and that their programs exist."""
    for text in (variant.work.run, variant.work.prepare):
        if text:
            yield partial(check_syntax, text, shell_arguments())
            if variant.servers is None and not variant.is_remote:
                # A started system may provide its own programs. Other hosts may have other programs.
                yield partial(check_program, text)


def phases(variant: Variant, experiment: Experiment) -> Sequence[ObservedCommand]:
    """The load, unrecorded executions, and the measured execution."""
    work: Command = variant.work
    written: Any = experiment.all_workloads[experiment.workload_at(variant.config)].keys_of_kind(NAME)
    requested = {f"work.{key}": getattr(written, key) for key in ("run", "prepare") if getattr(written, key)}
    plan = []
    if work.prepare:
        plan.append(ObservedCommand(LOAD, partial(shell, work.prepare), partial(read_times, LOAD), role="prepare"))
    for number in range(work.warmups):
        plan.append(ObservedCommand(f"warmup-{number + 1}", partial(shell, work.run), read_warmup, role="warmup"))
    names = template.template_names(written.run)
    warmup, seconds = experiment.warmup_seconds, experiment.measure.duration
    read = partial(read_figures, work, variant.store, "clients" in names, warmup)
    merge, version = partial(merge_logs, work, warmup), partial(version_arguments, work)
    arguments = partial(shell, work.run)
    measured = ObservedCommand(NAME, arguments, read, seconds, requested=requested, version=version, merge=merge)
    return [*plan, measured]


def shell(text: str, context: CommandContext) -> Sequence[str]:
    """The arguments that execute a command in the shell; records the command in the trial's folder.

    Raises LoadstoneError if the command uses an unknown name, and EngineError if the load is too small for the hosts.
    """
    if empty := [name for name in template.template_names(text) if name in SHARED and context.names.get(name) == 0]:
        message = f"there are fewer {empty[0]} than hosts: {context.names['host_count']}"
        raise EngineError(message, f"use more {empty[0]} or fewer hosts", 2)
    try:
        command = template.render_template(text, context.names, for_shell=True)
    except KeyError as error:
        known = ", ".join(sorted(context.names))
        raise LoadstoneError(f"{{{error.args[0]}}} in `{text}` is not defined", f"the names are {known}") from error
    with (context.files / "commands.sh").open("a") as file:
        file.write(f"{command}\n")
    return [*shell_arguments(), "-c", command]


def read_warmup(ended: Ended) -> ImportedRun:
    """Reads nothing. Raises LoadstoneError if the command failed."""
    if ended.status:
        raise LoadstoneError("a warm-up failed", "correct the command")
    return ImportedRun()


def read_times(prefix: str, ended: Ended) -> ImportedRun:
    """The time, CPU time and peak memory of a command, with a prefix unless it is empty."""
    run = ImportedRun()
    use = ended.use
    for metric, value, name in (
        ("time", use.elapsed_ns, "ns"),
        ("cpu_time", use.cpu_ns, "ns"),
        ("memory_max", use.memory_bytes, "B"),
    ):
        run.add_figure(f"{prefix}.{metric}" if prefix else metric, value, name, 1)
    return run


def read_figures(
    work: Command,
    store: str,
    has_clients: bool,
    warmup: float,
    ended: Ended,
) -> ImportedRun:
    """The figures in the output, without the first `warmup` seconds, and the times.

    The names in the context state the load; on other hosts, they state each host's share. Raises LoadstoneError if
    figures are missing.
    """
    run = ImportedRun() if work.figures is None or ended.status else read_output(work, ended, warmup)
    known = {value.metric for value in run.values}
    run.values += [value for value in read_times("", ended).values if value.metric not in known]
    # The command's text is a request, not an observation: it contains names that differ in each trial.
    run.facts.pop("command", None)
    run.facts.setdefault("work", run.facts.get("tool", NAME))
    if store != STORE:
        run.facts["store"] = store
    names: Mapping[str, Any] = ended.context.names
    operations = names.get("operations")
    run.clients = names["clients"] if has_clients and run.clients is None else run.clients
    if (rate := names.get("rate")) is not None:
        # The rate is in the command, whether or not the output repeats it.
        run.loop = "open"
        run.facts.setdefault("target", float(rate))
    done = next((value.value for value in run.values if value.metric == "operations"), None)
    if operations and done is not None and done < DONE_MIN * operations:
        message = f"it completed only {units.format_count(int(done))} of {units.format_count(operations)} operations"
        run.add_note("incomplete", message, "have the command perform all operations: `{operations}`")
    if (version := find_version(work, ended)) and "version" not in run.facts:
        run.facts["version"] = version
    if logged := read_logs(run, work, warmup, [ended]):
        known = {value.metric for value in run.values}
        run.values += [value for value in logged.figures_with_bounds() if value.metric not in known]
        run.histograms |= logged.histograms
    return run


def read_output(work: Command, ended: Ended, warmup: float = 0.0) -> ImportedRun:
    """The figures in the standard output, without the first `warmup` seconds. Raises LoadstoneError if they cannot be
    read."""
    figures, path = work.figures, ended.stdout
    size = path.stat().st_size
    if not size:
        hint = "write `2>&1` after the command" if ended.stderr.stat().st_size else "have the command print its figures"
        raise LoadstoneError("it printed nothing to standard output, from which the figures are read", hint)
    if size > FIGURES_MAX:
        most = units.format_size(FIGURES_MAX)
        raise LoadstoneError(
            f"it printed {units.format_size(size)}; figures are read from at most {most}", "have the command print less"
        )
    try:
        # Paths and patterns describe the output itself, which may have the form of a collector's log.
        text = text_of(path) if isinstance(figures, str) else decode_file(path)
    except LoadstoneError as error:
        raise LoadstoneError(f"no figures can be read: {error.args[0]}", "have the command print text") from error
    if isinstance(figures, str):
        source = Source(path, text, {hlog_parser.WARMUP: warmup})
        if figures == hlog.NAME:
            source = state_unit(source, work)
            if "hlog_unit" not in source.facts and not hlog_parser.has_unit(source):
                raise LoadstoneError("the unit of the log's values is unknown", UNIT_HINT)
        read = single_run(read_source(source, FORMATS[figures]), FORMATS[figures])
        if warmup and figures != hlog.NAME:
            exclude_warmup(read, warmup)
        return read
    ((way, named),) = figures.items()
    if way == "json":
        lines = "\n".join(f"{metric}={where} {name}" for metric, (where, name) in named.items())
        chosen: Format = FORMATS[json_paths.NAME]
        return single_run(read_source(Source(path, text, {"json": lines}), chosen), chosen)
    return patterns.read_figures(text, named)


def exclude_warmup(run: ImportedRun, seconds: float) -> None:
    """Limits a run to its time series after the warm-up, and omits other figures that cover the warm-up, except errors.

    Raises LoadstoneError if there is no time series after the warm-up.
    """
    series = run.series and run.series.drop_start(seconds)
    if series is None:
        hint = (
            "have the tool print figures at intervals, beyond the warm-up (pgbench -P 1), or leave out `measure.warmup`"
        )
        raise LoadstoneError("its output has no time series after the warm-up", hint)
    window = sum(series.length_seconds)
    done = sum(rate * length for rate, length in zip(series.throughput, series.length_seconds, strict=True))
    omitted = [value.metric for value in run.values if value.metric not in (*COUNTED, "errors")]
    run.values = [value for value in run.values if value.metric == "errors"]
    run.add_figure("throughput", done / window, "op/s", round(done))
    run.add_figure("runtime", window * 1e9, "ns", 1)
    run.add_figure("operations", round(done), OPERATIONS, round(done))
    run.series = series
    run.facts["warmup_ns"] = round(seconds * 1e9)
    message = (
        f"throughput covers the {units.format_duration(window * 1e9)} after the warm-up; figures of the whole run are "
        f"omitted: {units.list_items(omitted, 6) or 'none'}"
    )
    run.add_note("warmup-excluded", message, "have the tool write its latencies as an HDR log into {results}")


def single_run(runs: Sequence[ImportedRun], chosen: Format) -> ImportedRun:
    """The run in a report. The parts of one report (tests, stages) become one run, each part with a prefix.

    Raises LoadstoneError if there are several reports.
    """
    if len(runs) == 1:
        return runs[0]
    names = [re.sub(r"[^a-z0-9]+", "_", part_name(run).lower()).strip("_") for run in runs]
    if "" in names or len(set(names)) < len(names):
        raise LoadstoneError(
            f"it printed {len(runs)} results of {chosen.TITLE}, but a trial has one", "run the tool once in the command"
        )
    whole = replace(runs[0], values=[], facts={}, notes=[], statuses={}, histograms={}, series=None, dimensions={})
    for name, run in zip(names, runs, strict=True):
        whole.values += [value.prefix_metric(name) for value in run.figures_with_bounds()]
        whole.facts |= {fact: value for fact, value in run.facts.items() if fact not in whole.facts}
        whole.notes += run.notes
        whole.end = whole.end if run.end == "done" else run.end
    # Percentiles already have their bounds.
    whole.of_all = True
    return whole


def part_name(run: ImportedRun) -> str:
    """A run's name within its report."""
    return " ".join([*filter(None, [run.variant]), *map(str, run.dimensions.values())])


def merge_logs(work: Command, warmup: float, whole: ImportedRun, ends: Sequence[Ended]) -> None:
    """Adds the latencies in the logs of all hosts, if every host has logs, to the combined run of the hosts."""
    if len(ends) == 1 or not all(list_logs(end) for end in ends):
        return
    # The note on an unknown unit is already in the run.
    if logged := read_logs(ImportedRun(), work, warmup, ends):
        values = [value for value in logged.figures_with_bounds() if value.unit == "ns" and value.metric != "runtime"]
        metrics = {value.metric for value in values}
        whole.values = [*(value for value in whole.values if value.metric not in metrics), *values]
        whole.histograms |= logged.histograms


def list_logs(ended: Ended) -> list[Path]:
    """The HDR logs that the tool's processes wrote."""
    return [path for ending in HISTOGRAM_LOGS for path in sorted(ended.context.files.glob(ending))]


def read_logs(run: ImportedRun, work: Command, warmup: float, ends: Sequence[Ended]) -> ImportedRun | None:
    """The merged histograms that the tool's processes wrote, and their figures; None if there are none.

    Logs of unknown tools without a unit are omitted, with a note in `run`.
    """
    paths = [path for ended in ends for path in list_logs(ended)]
    sources = [Source(path, text_of(path), {hlog_parser.WARMUP: warmup}) for path in paths]
    if unknown := [source.path.name for source in sources if not (work.hlog_unit or hlog_parser.has_unit(source))]:
        message = f"the unit of the values in {units.list_items(unknown, 6)} is unknown, so these latencies are omitted"
        run.add_note("unknown", message, UNIT_HINT)
    known_units = [state_unit(source, work) for source in sources if source.path.name not in unknown]
    return hlog.merge_runs(known_units) if known_units else None


def state_unit(source: Source, work: Command) -> Source:
    """An HDR log with the unit from the experiment's file, if the log does not state its unit."""
    if work.hlog_unit is None or hlog_parser.has_unit(source):
        return source
    return replace(source, facts={**source.facts, "hlog_unit": work.hlog_unit})


def find_version(work: Command, ended: Ended) -> str:
    """The tool's version: from the file's command, the option of a known tool, or the output; empty if unknown."""
    context = ended.context
    if question := version_question(work, context):
        return ended.version if context.is_remote else ask_version(question, context.directory, context.variables)
    match = YCSB_VERSION.search(ended.stderr.read_text(errors="replace")) if ended.stderr.is_file() else None
    return match[1] if match else ""


def version_question(work: Command, context: CommandContext) -> str:
    """The command that prints the tool's version: the file's, or a known tool's option; empty if unknown."""
    text = template.render_template(work.version or work.run, context.names, for_shell=True)
    return text if work.version else version_command(text)


def version_arguments(work: Command, context: CommandContext) -> Sequence[str]:
    """The arguments of the command that prints the tool's version; empty if there is none."""
    question = version_question(work, context)
    return [*shell_arguments(), "-c", question] if question else ()


KIND = Kind(
    Command,
    False,
    stores,
    title,
    data,
    preflight,
    phases,
    check,
    changing,
    metrics=metrics,
    clients=False,
    remote=True,
    is_program=True,
    commands=("run", "prepare", "version"),
    shared=("run", "version"),
    literal=("figures",),
    passed=(*PASSED, WARMUP),
)
