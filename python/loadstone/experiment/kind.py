"""What a kind of workload must tell. The kinds are in `loadstone.workloads`; commands register them.

A kind knows its keys of the experiment file, what a trial does, phase by phase, which figures that yields, and how long
it takes. The rest of the lab knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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


# What a phase is for: it makes data, which trials with the same data may share; it is what the trial measures, with the
# host observed; or it looks at what that has left.
Role = Literal["prepare", "measure", "verify"]


@dataclass(frozen=True, slots=True)
class EngineLaunch:
    """Launches of the engine in a trial: one, unless its work has stages."""

    # Of its files: `<name>.hlog`.
    name: str
    role: Role
    # The spec for data in this directory, and this seed; where there are several, stages that follow each other, by the
    # names of their files.
    spec: Callable[[Path, int], Spec | Stages]
    # Whether what the page cache holds of the data is dropped first.
    cold: bool = False

    @property
    def prefix(self) -> str:
        """What the names of its figures begin with."""
        return "" if self.role == "measure" else f"{self.name}."

    def stages(self, directory: Path, seed: int) -> Stages:
        """Each launch of the engine."""
        made = self.spec(directory, seed)
        return made if isinstance(made, Stages) else Stages([(self.name, made)])


@dataclass(frozen=True, slots=True)
class Stages:
    """Launches of which each begins when the one before it has ended."""

    specs: Sequence[tuple[str, Spec]]
    # Those that one engine does, however many there are for the others.
    alone: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch of the engine that has ended."""

    name: str
    spec: Spec
    result: Result


@dataclass(frozen=True, slots=True)
class Ended:
    """An observed command that has ended, with the files that hold its output."""

    status: int
    stdout: Path
    stderr: Path


@dataclass(frozen=True, slots=True)
class ObservedCommand:
    """A command that does the work of a trial, while the host is observed as beside an engine."""

    # Of its files: `<name>.stdout` and `<name>.stderr`.
    name: str
    # Its words; it runs in the directory of the data, and files of its own are in the trial's folder, the argument.
    arguments: Callable[[Path], Sequence[str]]
    # What its output says. Raises LoadstoneError when that cannot be read.
    read: Callable[[Ended], Run]
    # How long it takes, as far as that is known.
    seconds: float | None = None
    role: Role = "measure"


Phase = EngineLaunch | ObservedCommand


@dataclass(frozen=True, slots=True)
class Data:
    """What a variant works on, and how much it does with it."""

    records: int
    record_bytes: int
    # What decides, of the keys of the workload, which data are loaded.
    identity: Mapping[str, Any] = field(default_factory=dict, compare=False)
    # The table on servers that holds them.
    table: str = field(default="", compare=False)
    # Where the work itself says when it ends: bytes that it moves, or how long it takes.
    moved_bytes: int = 0
    seconds: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of values."""
        return self.records * self.record_bytes


def no_check(context: Context, path: Keys, keys: Any) -> None:
    """Nothing more than the types of its keys."""


def no_change(context: Context, path: Keys, keys: Any, point: Point) -> Iterator[str]:
    """Nothing that later trials use is changed."""
    yield from ()


def as_given(keys: Any, experiment: Experiment) -> Any:
    """The keys alone say what is done."""
    return keys


def none(_: Any) -> Sequence[Any]:
    """None."""
    return ()


def no_figures(phase: EngineLaunch, launched: Sequence[Launched]) -> Iterator[Value]:
    """No figures of its own."""
    yield from ()


@dataclass(frozen=True)
class Kind:
    """One kind of work. `work` is its keys at a point of the experiment, with every name in them replaced."""

    # Its keys: below its name in `workload`, or for YCSB in `workload` itself.
    keys: type[Part]
    # Whether its operations are of one sort for as long as one asks, so that `measure` says when it ends.
    steady: bool
    # The stores that it can work on.
    stores: Callable[[], Collection[str]]
    # What a variant does, in a word or two.
    title: Callable[[Any], str]
    # What is loaded, and how much is done with it.
    data: Callable[[Any], Data]
    # Calls that raise LoadstoneError where a variant cannot be run.
    preflight: Callable[[Variant], Iterator[Callable[[], object]]]
    # What a trial does, in order.
    phases: Callable[[Variant, Experiment], Sequence[Phase]]
    # Looks at its keys, which stand at this path, and resolves them.
    check: Callable[[Context, Keys, Any], None] = no_check
    # What it is at a point that makes it change data which later trials use.
    changing: Callable[[Context, Keys, Any, Point], Iterator[str]] = no_change
    # Its keys with what else the experiment says of it.
    work: Callable[[Any, Experiment], Any] = as_given
    # The files that say what it does.
    files: Callable[[Any], Sequence[Path]] = none
    # By its keys, the figures that are compared unless the experiment names others; none: throughput and latencies.
    metrics: Callable[[Any], Sequence[str]] = none
    # What engines did in a phase, as results record it.
    facts: Callable[[Sequence[Launched]], Mapping[str, Scalar]] = lambda _: {}
    # The figures of a phase of engines that only this kind has; those of the same name as others replace them.
    figures: Callable[[EngineLaunch, Sequence[Launched]], Iterator[Value]] = no_figures
    # Why a phase whose engines ended well has failed all the same.
    failure: Callable[[Sequence[Launched]], Note | None] = lambda _: None
    # Whether clients of the engine do its work, so that each engine of a fleet needs one.
    clients: bool = True


KINDS: dict[str, Kind] = {}
# The kind whose keys stand in `workload` itself.
PLAIN = "ycsb"


def register(kinds: Mapping[str, Kind]) -> None:
    """Makes kinds known, and their keys part of experiment files."""
    from loadstone.experiment.model.experiment import add_kinds

    KINDS.update(kinds)
    add_kinds(PLAIN, {name: kind.keys for name, kind in kinds.items()})


def kind_of(variant: Variant) -> Kind:
    """The kind of work that a variant does."""
    return KINDS[variant.kind]
