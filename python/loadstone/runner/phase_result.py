"""The result of a phase: figures, facts and notes from its engines or from its command's output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadstone.engine.describe import describe_engine
from loadstone.engine.events import Note
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import Ended, EngineLaunch, ObservedCommand, Role, kind_of
from loadstone.experiment.plan.plan import Variant
from loadstone.fleet.interface import Observations
from loadstone.format import units
from loadstone.importers.processes import combine_hosts
from loadstone.importers.run import ImportedRun
from loadstone.observe.watch import Watch
from loadstone.results import hlog
from loadstone.results.trial_result import Loop, Scalar, Series, values_by_metric
from loadstone.results.value import Value
from loadstone.runner import command, engine_figures, guarantees
from loadstone.runner.command import HostsEnded
from loadstone.runner.phase import Finished

ENDED_EARLY_HINT = "remove the cause stated above; the message comes from the store or from the load generator"


@dataclass(frozen=True)
class PhaseResult:
    """The result of a phase, as values and facts."""

    role: Role
    values: Sequence[Value]
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    end: str = "done"
    clients: int | None = None
    loop: Loop | None = None
    statuses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    series: Series | None = None
    # The beginning of the measured window, ns since the epoch; 0 if unknown.
    began_unix_ns: int = 0
    requested: Mapping[str, Scalar] = field(default_factory=dict)
    of_system: tuple[str, ...] = ()


def parse_output(observed: ObservedCommand, ended: Ended | HostsEnded) -> ImportedRun:
    """Parses the output of a command. Raises CommandError if it cannot be parsed."""
    if isinstance(ended, HostsEnded):
        runs = {host: parse_host(observed, host, end) for host, end in ended.hosts.items()}
        whole = combine_hosts(runs, {host: end.use.elapsed_ns for host, end in ended.hosts.items()})
        observed.merge(whole, list(ended.hosts.values()))
        return whole
    return parse_host(observed, "", ended)


def parse_host(observed: ObservedCommand, host: str, ended: Ended) -> ImportedRun:
    """Parses the output of a command on one host. Raises CommandError if it cannot be parsed."""
    try:
        return observed.read(ended)
    except LoadstoneError as error:
        name = f"host {host}: {observed.name}" if host else observed.name
        raise command.failure(name, ended, str(error.args[0]), error.hint) from error
    finally:
        for path in (ended.stdout, ended.stderr):
            command.cut_output(path)


def command_result(
    observed: ObservedCommand, ended: Ended | HostsEnded, files: Path, watch: Watch, server_facts: Mapping[str, Scalar]
) -> PhaseResult:
    """The result of a command, parsed from its output. Raises CommandError if it cannot be parsed."""
    ends = ended.hosts.values() if isinstance(ended, HostsEnded) else (ended,)
    observations = ended.observations if isinstance(ended, HostsEnded) else Observations()
    printed = {path: path.stat().st_size for end in ends for path in (end.stdout, end.stderr)}
    run = parse_output(observed, ended)
    measured = values_by_metric(*run.figures_with_bounds())
    operations = measured.get("operations")
    notes = list(run.notes)
    for path, size in printed.items():
        if path.stat().st_size < size:
            message = f"{path.name} was {units.format_size(size)} long; only its beginning and end are kept"
            notes.append(Note("output-cut", message, "have the command print less"))
    notes += survivor_notes(observed, ended)
    has_failed = isinstance(ended, Ended) and ended.status
    if isinstance(ended, Ended) and ended.status:
        failed = command.failure(observed.name, ended)
        notes.append(Note("failed", str(failed.args[0]), failed.hint))
    hlog.write_histograms(files / f"{observed.name}.hlog", run.histograms)
    watched = watch.values(int(operations.value) if operations else 0)
    return PhaseResult(
        observed.role,
        [*measured.values(), *watched, *observations.values],
        {**server_facts, **watch.facts, **observations.facts, **run.facts},
        [*notes, *observations.notes],
        "failed" if has_failed else run.end,
        run.clients,
        run.loop,
        run.statuses,
        run.series,
        requested=observed.requested,
        of_system=tuple(server_facts),
    )


def survivor_notes(phase: ObservedCommand, ended: Ended | HostsEnded) -> Iterator[Note]:
    """A note on processes that outlived their command and were killed."""
    ends = ended.hosts.values() if isinstance(ended, HostsEnded) else (ended,)
    if survivors := dict.fromkeys(name for end in ends for name in end.use.survivors):
        message = f"processes of {phase.name} were killed because they outlived it: {', '.join(survivors)}"
        yield Note("survivors", message, "start servers in `hooks.before` or with `systems: {…: {start: …}}`")


def engine_result(
    launch: EngineLaunch,
    variant: Variant,
    runs: Sequence[Finished],
    watch: Watch,
    server_facts: Mapping[str, Scalar],
    processors: Scalar | None,
) -> PhaseResult:
    """The result of a measured engine phase."""
    # If there are several stages, the time series is taken from the longest stage.
    run = max(runs, key=lambda item: item.result.summary.measured_ns)
    ready, lost = run.result.ready, sum(item.lost for item in runs)
    engines = max(item.engines for item in runs)
    networked = describe_engine().is_networked(variant.store)
    operations = sum(item.result.summary.operations + item.result.summary.warmup_operations for item in runs)
    measured = [*figures_of(launch, variant, runs), *watch.values(operations), *run.observations.values]
    if networked:
        # If engines run on other hosts, the fleet has observed their share, and `processors` is None.
        measured += engine_share(measured, processors)
    if engines > 1:
        measured += [Value("segments", engines, "segments", 1), Value("segments.lost", lost, "segments", 1)]
    facts = {
        **{name: value for name, value in server_facts.items() if name not in guarantees.ANSWERS},
        **ready.facts,
        **watch.facts,
        **run.observations.facts,
        "store": ready.store,
        **guarantees.guarantee_facts(ready.durability, ready.how, ready.facts, server_facts),
        "engine": ready.engine,
        "engines": engines,
        "profile": run.result.summary.profile,
        "networked": "yes" if networked else "no",
        **kind_of(variant).facts(runs),
    }
    of_system = tuple(name for name in dict.fromkeys((*server_facts, *ready.facts)) if name in facts)
    return PhaseResult(
        launch.role,
        measured,
        facts,
        [*notes_of(runs)],
        "lost" if lost else end_of(runs),
        # A trial with several stages has no single number of clients.
        variant.clients if len(runs) == 1 else None,
        run.loop if len(runs) == 1 else None,
        engine_figures.statuses(run.result.summary),
        run.series,
        run.result.summary.start_unix_ns,
        select_common_settings(item.spec for item in runs),
        of_system,
    )


# Parts of a spec that differ between trials of one variant, or that concern only reporting.
NOT_REQUESTED = frozenset(
    {"spec", "seed", "run", "segment", "sinks", "interval_ms", "lease_ms", "wait_for_start", "ledger"}
)


def select_common_settings(specs: Iterable[Mapping[str, Any]]) -> dict[str, Scalar]:
    """The settings that all stages of a phase have in common."""
    first, *further = map(flatten_spec, specs)
    return {path: value for path, value in first.items() if all(spec.get(path) == value for spec in further)}


def flatten_spec(spec: Mapping[str, Any]) -> dict[str, Scalar]:
    """The settings of a spec, keyed by path, such as `work.field_count`; without secrets and directories."""
    known = describe_engine()
    flat: dict[str, Scalar] = {}

    def flatten(part: Any, *path: str) -> None:
        if isinstance(part, Mapping):
            for key, setting in part.items():
                flatten(setting, *path, str(key))
        elif isinstance(part, list):
            flat[".".join(path)] = json.dumps(part)
        elif part is not None and path[-1] not in known.directories and not known.is_secret(path[-1]):
            flat[".".join(path)] = part

    for key, part in spec.items():
        if key not in NOT_REQUESTED:
            # Properties belong to the store, so their path needs no prefix.
            flatten(part["properties"] if key == "store" else part, key)
    return flat


def figures_of(launch: EngineLaunch, variant: Variant, runs: Sequence[Finished]) -> list[Value]:
    """The figures of an engine phase. The workload kind's figures come last, so that they replace common figures with
    the same name."""
    measured: list[Value] = []
    for run in runs:
        prefix = launch.prefix if len(runs) == 1 else f"{run.name}."
        measured += engine_figures.summarize_run(run.result, run.memory_max, prefix)
    return [*measured, *kind_of(variant).figures(launch, runs)]


def end_of(runs: Sequence[Finished]) -> str:
    """How several launches ended: the first end other than `done`."""
    return next((run.result.summary.end for run in runs if run.result.summary.end != "done"), "done")


def notes_of(runs: Sequence[Finished]) -> Iterator[Note]:
    """The engines' notes, and notes on latencies too long for a histogram and on phases that ended early."""
    for run in runs:
        yield from run.result.notes
        yield from run.observations.notes
        if saturated := run.result.summary.saturated_values:
            latencies = units.count_noun(saturated, "latency", "latencies")
            message = f"{latencies} exceeded the histogram's range; each counts as the range's maximum"
            yield Note("saturated", message, "treat the highest percentiles and the maximum as lower bounds")
        if reason := run.result.summary.reason:
            yield Note("incomplete", f"it ended early: {reason}", ENDED_EARLY_HINT)


def engine_share(measured: Iterable[Value], processors: Scalar | None) -> Iterator[Value]:
    """The share of the host's processors that the engine used; if it is high, the engine may limit the load."""
    used = next((value.value for value in measured if value.metric == "cpu.engine"), None)
    if used is not None and isinstance(processors, int | float) and processors > 0:
        yield Value("cpu.engine_share", used / processors, "share", 1)
