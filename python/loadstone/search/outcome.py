"""An outcome: what a search found, between which loads, and why it stopped there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loadstone.search.probe import Probe
from loadstone.search.rule import Rule
from loadstone.statistics.knee import Knee

# `found`: between two loads; `below`: the lower bound is too much already; `beyond`: the upper bound is not enough;
# `wall`: a load that cannot be judged ended the way up; `nothing`: not even the first load can be judged.
Kind = Literal["found", "below", "beyond", "wall", "nothing"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the objective holds at a load, so that the search goes on beyond it."""

    load: float
    go: bool
    # Whether its repeats agree; else their median decided.
    sure: bool


@dataclass(frozen=True)
class Outcome:
    """The end of a search."""

    rule: Rule
    kind: Kind
    # The answer: the least load tried that reaches the plateau, or the highest that meets the objective; of `beyond`
    # and `wall` the last load that was tried without. None where there is none.
    load: float | None
    # What is sure of it: at `low` it is not reached, at `high` it is; None: nothing is.
    low: float | None
    high: float | None
    # Of an objective, every load that was decided, in order of load.
    decisions: Sequence[Decision]
    probes: Sequence[Probe]
    # Why it stopped, in words.
    stopped: str
    # The load that cannot be judged, with the reason.
    wall: tuple[float, str] | None = None
    # What does not fit the picture, in words.
    notes: tuple[str, ...] = ()
    # Whether two loads in a row ended the way up; else it ended at the upper bound or at a load that cannot be judged.
    twice: bool = False
    # Of a search without an objective, unless no load could be judged.
    knee: Knee | None = None

    @property
    def trials(self) -> int:
        """How many there were."""
        return sum(len(probe.samples) for probe in self.probes)

    @property
    def unsure(self) -> list[Decision]:
        """What the median decided."""
        return [decision for decision in self.decisions if not decision.sure]

    def probe(self, load: float) -> Probe:
        """The probe of a load."""
        return next(probe for probe in self.probes if probe.load == load)

    def decision(self, load: float | None) -> Decision | None:
        """The decision on a load, None where there is none."""
        return next((decision for decision in self.decisions if decision.load == load), None)
