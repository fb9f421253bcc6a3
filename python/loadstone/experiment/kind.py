"""The interface of a workload kind. The kinds are in `loadstone.workloads`; commands register them.

A kind defines its keys in the experiment file, the phases of a trial, the figures from these phases, and an estimate of
the time that they take. Apart from the judge, which also knows the work of other tools (`loadstone.judge.facts`), no
part of the lab depends on a particular kind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from loadstone.experiment.model.stages import stage_metrics

if TYPE_CHECKING:
    from loadstone.engine.events import Note, Result
    from loadstone.engine.trial import Spec
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.model.values import FilePart
    from loadstone.experiment.model.vary import Point
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context
    from loadstone.importers.run import ImportedRun
    from loadstone.results.trial_result import Scalar
    from loadstone.results.value import Value


# The name patterns of a command's HDR histogram logs in a trial's folder.
HISTOGRAM_LOGS = ("*.hlog", "*.hdr")
# The role of a phase. `prepare` loads data, which trials may share. The output of `warmup` does not count. `measure` is
# the measured phase, during which the host is observed. `verify` checks the writes of the measured phase.
Role = Literal["prepare", "warmup", "measure", "verify"]


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """A phase that engines run: one launch, or several stages."""

    # The stem of the phase's file names: `<name>.hlog`.
    name: str
    role: Role
    # Creates the spec, or the specs of consecutive stages, from the data directory and the seed.
    spec: Callable[[Path, int], Spec | LaunchStages]
    # Whether the data is evicted from the page cache before the launch.
    cold: bool = False

    @property
    def prefix(self) -> str:
        """The prefix of the phase's metric names."""
        return "" if self.role == "measure" else f"{self.name}."

    def list_stages(self, directory: Path, seed: int) -> LaunchStages:
        """Every launch of the engine, in order."""
        spec = self.spec(directory, seed)
        return spec if isinstance(spec, LaunchStages) else LaunchStages([(self.name, spec)])


@dataclass(frozen=True, slots=True)
class LaunchStages:
    """Consecutive launches: each launch begins when the preceding launch has finished."""

    # The stem of each stage's file names, and the stage's spec.
    specs: Sequence[tuple[str, Spec]]
    # The stages that a single engine runs, regardless of `fleet.engines`.
    alone: Collection[str] = ()
    # The stages that a single engine runs after a stage other than the first has failed.
    after_failure: Sequence[tuple[str, Spec]] = ()


@dataclass(frozen=True, slots=True)
class EndedLaunch:
    """A launch of the engine that has finished."""

    name: str
    spec: Spec
    result: Result


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The values available to a command at its start."""

    # The trial's folder, for files that the command writes.
    files: Path
    # The data directory, the command's working directory.
    directory: Path
    # Values for templates: the dimensions, and names whose values are known only at run time.
    names: Mapping[str, Scalar] = field(default_factory=dict)
    # Variables to add to the command's environment.
    environment: Mapping[str, str] = field(default_factory=dict)
    # Whether the command runs on another host. `files` is then the lab's folder for that host.
    is_remote: bool = False

    @property
    def variables(self) -> dict[str, str]:
        """The complete environment; search paths are appended to the lab's search paths."""
        variables = dict(os.environ)
        for name, text in self.environment.items():
            before = variables.get(name) if name in ("PATH", "LD_LIBRARY_PATH") else None
            variables[name] = f"{before}:{text}" if before else text
        return variables


@dataclass(frozen=True, slots=True)
class CommandUse:
    """The resources that a command used, including all the children that it waited for."""

    elapsed_ns: int
    cpu_ns: int
    # The largest resident memory of a single process; None if it was too small to be measured.
    memory_bytes: int | None
    # Child processes that were still running when the command exited, and were killed.
    survivors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """An observed command that has exited, with the files of its output."""

    status: int
    stdout: Path
    stderr: Path
    use: CommandUse
    context: CommandContext
    # The first line that the command `ObservedCommand.version` printed on another host.
    version: str = ""


@dataclass(frozen=True, slots=True)
class ObservedCommand:
    """A command that does the work of a trial. The host is observed, as during an engine phase."""

    # The stem of the command's file names: `<name>.stdout` and `<name>.stderr`.
    name: str
    # Creates the arguments of the command.
    arguments: Callable[[CommandContext], Sequence[str]]
    # Parses the output of the command. Raises LoadstoneError if the output cannot be parsed.
    read: Callable[[Ended], ImportedRun]
    # The duration of the command, if known.
    seconds: float | None = None
    role: Role = "measure"
    # Whether the servers must first have replicated and compacted all writes.
    settled: bool = False
    # The requested settings, as recorded in the results.
    requested: Mapping[str, Scalar] = field(default_factory=dict)
    # The place of the data, given the trial's directory: a directory, or None for a device without a file system.
    place: Callable[[Path], Path | None] = lambda directory: directory
    # Creates the arguments of a command that prints the tool's version; empty if there is none.
    version: Callable[[CommandContext], Sequence[str]] = lambda _: ()
    # Completes the combined run of several hosts with figures from all their files.
    merge: Callable[[ImportedRun, Sequence[Ended]], None] = lambda *_: None


Phase = EngineLaunch | ObservedCommand


@dataclass(frozen=True, slots=True)
class Data:
    """The data of a variant, and the amount of work on this data."""

    records: int
    record_bytes: int
    # The workload keys and values that identify the loaded data.
    identity: Mapping[str, Any] = field(default_factory=dict, compare=False)
    # The table of the data on servers.
    table: str = field(default="", compare=False)
    # The place of the data on servers, such as a keyspace, if there may be other data next to it.
    place: str = field(default="", compare=False)
    # Whether the data is loaded before the work. If the work only writes, each trial defines empty tables instead.
    loaded: bool = field(default=True, compare=False)
    # The bytes of all rows that an operation writes or reads, if an operation may have many rows.
    operation_bytes: int = field(default=0, compare=False)
    # For work of fixed size: the bytes that it transfers, or its duration.
    moved_bytes: int = 0
    seconds: float = 0.0
    # The size of the files that the work itself creates, in bytes.
    created_bytes: int = field(default=0, compare=False)

    @property
    def size(self) -> int:
        """The size of all values, in bytes."""
        return self.records * self.record_bytes


@dataclass(frozen=True)
class Kind:
    """A workload kind. Its functions receive `work`: the kind's keys at one point, with every template rendered."""

    # The model of the kind's keys, which are below its name in `workload`; YCSB's keys are directly in `workload`.
    keys: type[FilePart]
    # Whether the work can run for any length of time, so that `measure` determines its end.
    steady: bool
    # The stores that the kind can use.
    stores: Callable[[], Collection[str]]
    # A short description of a variant.
    title: Callable[[Any], str]
    # The loaded data, and the amount of work on this data.
    data: Callable[[Any], Data]
    # Checks that raise LoadstoneError if a variant cannot be run.
    preflight: Callable[[Variant], Iterator[Callable[[], object]]]
    # The phases of a trial, in order.
    phases: Callable[[Variant, Experiment], Sequence[Phase]]
    # Validates the kind's keys at a path, and fills in defaults.
    check: Callable[[Context, Keys, Any], None] = lambda *_: None
    # Yields the keys with which the workload, at a point, changes data that later trials use.
    changing: Callable[[Context, Keys, Any, Point], Iterator[str]] = lambda *_: iter(())
    # Returns the kind's keys, completed with values from other parts of the experiment.
    work: Callable[[Any, Experiment], Any] = lambda keys, _: keys
    # The files that define the work.
    files: Callable[[Any], Sequence[Path]] = lambda _: ()
    # The figures compared by default, which depend on the kind's keys; if empty, throughput and latencies.
    metrics: Callable[[Any], Sequence[str]] = lambda _: ()
    # The operations of the work, which depend on the kind's keys; None if the work may have any operation.
    operations: Callable[[Any], Collection[str] | None] = lambda _: None
    # Facts about a phase, for the results.
    facts: Callable[[Sequence[EndedLaunch]], Mapping[str, Scalar]] = lambda _: {}
    # Figures about an engine phase that only this kind has; they replace common figures with the same metric.
    figures: Callable[[EngineLaunch, Sequence[EndedLaunch]], Iterator[Value]] = lambda *_: iter(())
    # The reason why a phase failed although its engines succeeded.
    failure: Callable[[Sequence[EndedLaunch]], Note | None] = lambda _: None
    # The place of a trial's files: a directory, or None for a device without a file system.
    place: Callable[[Any, Path], Path | None] = lambda _, directory: directory
    # Whether the engine's clients do the work, so that each engine of a fleet needs at least one client.
    clients: bool = True
    # Whether hosts other than this machine can do the work.
    remote: bool = False
    # Whether another tool's program does the work: each host of a fleet runs the program once.
    is_program: bool = False
    # Whether a ledger can record the writes.
    ledger: bool = False
    # The keys that are shell commands, which may use names whose values are known only at run time.
    commands: Collection[str] = ()
    # The commands in which, on other hosts, each name in SHARED has the host's share of the load as its value.
    shared: Collection[str] = ()
    # For work of fixed size: the keys of the experiment file that are allowed, because commands may use them.
    passed: Collection[str] = ()
    # The keys in which braces are literal text.
    literal: Collection[str] = ()


# The template names for a trial's load, which the hosts of a fleet share.
SHARED = ("clients", "rate", "operations")
KINDS: dict[str, Kind] = {}
# The kind whose keys are directly in `workload`.
PLAIN = "ycsb"


def register_kinds(kinds: Mapping[str, Kind]) -> None:
    """Registers kinds, and adds their keys to experiment files."""
    from loadstone.experiment.model.experiment import add_kinds

    KINDS.update(kinds)
    add_kinds(PLAIN, {name: kind.keys for name, kind in kinds.items()})


def kind_of(variant: Variant) -> Kind:
    """The workload kind of a variant."""
    return KINDS[variant.kind]


def default_metrics(experiment: Experiment) -> list[str]:
    """The figures compared by default for the workload kinds or the stages of a rate; if empty, the judge chooses."""
    metrics = [
        metric
        for workload in experiment.all_workloads.values()
        for kind in workload.kinds[:1]
        for metric in KINDS[kind].metrics(workload.keys_of_kind(kind))
    ]
    return list(dict.fromkeys(metrics)) or stage_metrics(experiment.stages)
