"""What a kind of workload must tell. The kinds are in `loadstone.workloads`; commands register them.

A kind knows what a trial does, phase by phase, which figures that yields, and how long it takes. The rest of the lab
knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from loadstone.engine.events import Result
    from loadstone.engine.trial import Spec
    from loadstone.experiment.model.experiment import Experiment
    from loadstone.experiment.model.points import Point
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.validation.context import Context
    from loadstone.results.trial_result import Scalar
    from loadstone.results.value import Value


@dataclass(frozen=True, slots=True)
class Phase:
    """One launch of the engine in a trial."""

    # Of its files: `<name>.hlog`.
    name: str
    # Whether its figures are the trial's. If not, it prepares the data, its figures begin with `<name>.`, and trials
    # with the same data may share what it did.
    measured: bool
    # The spec for data in this directory, and this seed.
    spec: Callable[[Path, int], Spec]

    @property
    def prefix(self) -> str:
        """What the names of its figures begin with."""
        return "" if self.measured else f"{self.name}."


@dataclass(frozen=True, slots=True)
class Data:
    """What a variant works on."""

    records: int
    record_bytes: int

    @property
    def size(self) -> int:
        """Bytes of values."""
        return self.records * self.record_bytes


class Kind(Protocol):
    """One kind of workload."""

    def check(self, context: Context) -> None:
        """Looks at the keys of `workload`, and resolves them."""

    def changing(self, context: Context, point: Point) -> Iterator[str]:
        """The properties by which the workload of a point changes data."""

    def properties(self, file: Path) -> Mapping[str, str]:
        """What the workload's file says, in properties. Raises OSError."""

    def of_data(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Of these properties, those that decide which data are loaded."""

    def data(self, properties: Mapping[str, str]) -> Data:
        """What is loaded."""

    def preflight(self, variant: Variant) -> Iterator[Callable[[], object]]:
        """Calls that raise LoadstoneError where the engine refuses the variant."""

    def phases(self, variant: Variant, experiment: Experiment) -> Sequence[Phase]:
        """What a trial does, in order."""

    def facts(self, spec: Spec) -> Mapping[str, Scalar]:
        """What was done, as results record it."""

    def figures(self, phase: Phase, spec: Spec, result: Result) -> Iterator[Value]:
        """The figures of a phase that only this kind has."""


KINDS: dict[str, Kind] = {}


def kind_of(_: Experiment) -> Kind:
    """The kind of an experiment's workload. There is one so far."""
    return KINDS["ycsb"]
