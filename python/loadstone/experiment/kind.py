"""The interface of a workload kind. The kinds are in `loadstone.workloads`; commands register them.

A kind defines its keys of the experiment file, the phases of a trial, the figures that they yield, and an estimate of
how long they take. The rest of the lab depends on no particular kind.
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
    from loadstone.experiment.model.points import Point
    from loadstone.experiment.model.values import Part
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context
    from loadstone.importers.run import Run
    from loadstone.results.trial_result import Scalar
    from loadstone.results.value import Value


# What a phase is for: it loads data, which trials may share; it warms up, and its output does not count; it is
# measured, with the host observed; or it checks what the measured phase wrote.
Role = Literal["prepare", "warmup", "measure", "verify"]


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """A phase that engines do: one launch, or several stages."""

    # The stem of its files: `<name>.hlog`.
    name: str
    role: Role
    # Makes the spec from the data directory and the seed; or the specs of consecutive stages, by the stems of their
    # files.
    spec: Callable[[Path, int], Spec | Stages]
    # Whether the data are evicted from the page cache first.
    cold: bool = False

    @property
    def prefix(self) -> str:
        """The prefix of its figures' names."""
        return "" if self.role == "measure" else f"{self.name}."

    def stages(self, directory: Path, seed: int) -> Stages:
        """Every launch of the engine, in order."""
        spec = self.spec(directory, seed)
        return spec if isinstance(spec, Stages) else Stages([(self.name, spec)])


@dataclass(frozen=True, slots=True)
class Stages:
    """Consecutive launches: each begins when the one before it has ended."""

    specs: Sequence[tuple[str, Spec]]
    # Those that a single engine does, whatever `fleet.engines` is.
    alone: Collection[str] = ()
    # What a single engine does after one of them has failed, if the first has not.
    after_failure: Sequence[tuple[str, Spec]] = ()


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch of the engine that has ended."""

    name: str
    spec: Spec
    result: Result


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The values available to a command at its start."""

    # The trial's folder, which the command's own files go to.
    files: Path
    # The data directory, in which it runs.
    directory: Path
    # Values of templates: the dimensions, and names that are known at run time.
    names: Mapping[str, Scalar] = field(default_factory=dict)
    # Added to its environment.
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """Its whole environment; paths are appended to the lab's."""
        variables = dict(os.environ)
        for name, text in self.environment.items():
            before = variables.get(name) if name in ("PATH", "LD_LIBRARY_PATH") else None
            variables[name] = f"{before}:{text}" if before else text
        return variables


@dataclass(frozen=True, slots=True)
class Use:
    """What a command used, with all the children that it waited for."""

    elapsed_ns: int
    cpu_ns: int
    # The largest resident memory of a single process; None where it was too small to be known.
    memory_bytes: int | None
    # Processes that were still running when it ended, and were killed.
    survivors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """An observed command that has ended, with the files of its output."""

    status: int
    stdout: Path
    stderr: Path
    use: Use
    context: CommandContext


@dataclass(frozen=True, slots=True)
class ObservedCommand:
    """A command that does the work of a trial, while the host is observed as it is for engines."""

    # The stem of its files: `<name>.stdout` and `<name>.stderr`.
    name: str
    # Makes its arguments.
    arguments: Callable[[CommandContext], Sequence[str]]
    # Parses its output. Raises LoadstoneError if it cannot be parsed.
    read: Callable[[Ended], Run]
    # How long it takes, if known.
    seconds: float | None = None
    role: Role = "measure"
    # Whether the servers must first have replicated and compacted all writes.
    settled: bool = False
    # The request, as results record it.
    requested: Mapping[str, Scalar] = field(default_factory=dict)


Phase = EngineLaunch | ObservedCommand


@dataclass(frozen=True, slots=True)
class Data:
    """The data of a variant, and how much work it does on them."""

    records: int
    record_bytes: int
    # The workload keys that determine which data are loaded.
    identity: Mapping[str, Any] = field(default_factory=dict, compare=False)
    # Their table on servers.
    table: str = field(default="", compare=False)
    # Their place on servers, such as a keyspace, if other data may be next to them.
    place: str = field(default="", compare=False)
    # Whether they are loaded before the work. Work that only writes defines empty tables instead, for each trial.
    loaded: bool = field(default=True, compare=False)
    # For work that ends by itself: the bytes that it moves, or how long it takes.
    moved_bytes: int = 0
    seconds: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of values."""
        return self.records * self.record_bytes


@dataclass(frozen=True)
class Kind:
    """A workload kind. `work`: its keys at one point of the experiment, with every template rendered."""

    # Its keys: below its name in `workload`, or for YCSB in `workload` itself.
    keys: type[Part]
    # Whether it can run for any length of time, so that `measure` determines its end.
    steady: bool
    # The stores that it can work on.
    stores: Callable[[], Collection[str]]
    # A short description of what a variant does.
    title: Callable[[Any], str]
    # What is loaded, and how much work is done on it.
    data: Callable[[Any], Data]
    # Checks that raise LoadstoneError if a variant cannot be run.
    preflight: Callable[[Variant], Iterator[Callable[[], object]]]
    # The phases of a trial, in order.
    phases: Callable[[Variant, Experiment], Sequence[Phase]]
    # Validates its keys, which are at this path, and fills in their defaults.
    check: Callable[[Context, Keys, Any], None] = lambda *_: None
    # The keys that make it, at a point, change data that later trials use.
    changing: Callable[[Context, Keys, Any, Point], Iterator[str]] = lambda *_: iter(())
    # Its keys combined with the rest of the experiment.
    work: Callable[[Any, Experiment], Any] = lambda keys, _: keys
    # The files that define what it does.
    files: Callable[[Any], Sequence[Path]] = lambda _: ()
    # The figures that are compared by default, by its keys; if empty: throughput and latencies.
    metrics: Callable[[Any], Sequence[str]] = lambda _: ()
    # The operations that it performs, by its keys; None: any.
    operations: Callable[[Any], Collection[str] | None] = lambda _: None
    # Facts about a phase, as results record them.
    facts: Callable[[Sequence[Launched]], Mapping[str, Scalar]] = lambda _: {}
    # Figures of an engine phase that only this kind has; they replace common ones of the same name.
    figures: Callable[[EngineLaunch, Sequence[Launched]], Iterator[Value]] = lambda *_: iter(())
    # Why a phase failed although its engines succeeded.
    failure: Callable[[Sequence[Launched]], Note | None] = lambda _: None
    # Whether clients of the engine do its work, so that each engine of a fleet needs one.
    clients: bool = True
    # Whether other hosts than this machine can do its work.
    remote: bool = False
    # Its keys that are shell commands: they may name values that are known at run time only.
    commands: Collection[str] = ()
    # Of work that ends when it is done: the keys of the file that its commands may name nevertheless.
    passed: Collection[str] = ()
    # Its keys in which braces are literal.
    literal: Collection[str] = ()


KINDS: dict[str, Kind] = {}
# The kind whose keys are directly in `workload`.
PLAIN = "ycsb"


def register(kinds: Mapping[str, Kind]) -> None:
    """Registers kinds, and adds their keys to experiment files."""
    from loadstone.experiment.model.experiment import add_kinds

    KINDS.update(kinds)
    add_kinds(PLAIN, {name: kind.keys for name, kind in kinds.items()})


def kind_of(variant: Variant) -> Kind:
    """The kind of work that a variant does."""
    return KINDS[variant.kind]


def default_metrics(experiment: Experiment) -> list[str]:
    """The figures that the workloads' kinds or the stages of a rate compare by default; empty: the judge's."""
    metrics = [
        metric
        for workload in experiment.each_workload.values()
        for kind in workload.kinds[:1]
        for metric in KINDS[kind].metrics(workload.keys(kind))
    ]
    return list(dict.fromkeys(metrics)) or stage_metrics(experiment.stages)
