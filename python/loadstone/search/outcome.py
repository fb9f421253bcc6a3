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
class SearchOutcome:
    """The end of a search."""

    rule: Rule
    kind: Kind
    # The answer: the least load tried that reaches the plateau, or the highest that meets the objective; of `beyond`
    # and `wall` the last load that held. None without one.
    load: float | None
    # What is certain about it: at `low` it is not reached, at `high` it is; None: nothing is certain.
    low: float | None
    high: float | None
    # With an objective, every load that was decided, in order of load.
    decisions: Sequence[Decision]
    probes: Sequence[Probe]
    # Why it stopped, in words.
    stopped: str
    # The load that cannot be judged, with the reason.
    wall: tuple[float, str] | None = None
    # What does not fit the picture, in words.
    notes: tuple[str, ...] = ()
    # Whether two consecutive loads ended the way up; else the upper bound did, or a load that cannot be judged.
    twice: bool = False
    # For a search without an objective, unless no load could be judged.
    knee: Knee | None = None

    @property
    def trials(self) -> int:
        """How many trials there were."""
        return sum(len(probe.samples) for probe in self.probes)

    @property
    def unsure(self) -> list[Decision]:
        """What the median decided."""
        return [decision for decision in self.decisions if not decision.sure]

    def probe_at(self, load: float) -> Probe:
        """The probe of a load."""
        return next(probe for probe in self.probes if probe.load == load)

    def decision_at(self, load: float | None) -> Decision | None:
        """The decision on a load, or None."""
        return next((decision for decision in self.decisions if decision.load == load), None)
