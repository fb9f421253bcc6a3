"""The outcome of a search: its answer, the loads that enclose it, and the reason for stopping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loadstone.search.probe import Probe
from loadstone.search.rule import Rule
from loadstone.statistics.knee import Knee

# `found`: between two loads; `below`: below the lower bound; `beyond`: above the upper bound; `wall`: a load that
# cannot be judged ended the ascent; `nothing`: the first load cannot be judged.
Kind = Literal["found", "below", "beyond", "wall", "nothing"]
# The ratio of loads from which a contradiction is not due to chance.
FAR = 2.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the objective holds at a load, so that the search continues above it."""

    load: float
    go: bool
    # Whether the repeats agree; if not, their median decided.
    sure: bool


@dataclass(frozen=True)
class SearchOutcome:
    """The outcome of a search."""

    rule: Rule
    kind: Kind
    # The answer: the lowest tried load that reaches the plateau, or the highest that meets the objective; for `beyond`
    # and `wall`, the last load at which it held. None without such a load.
    load: float | None
    # Certain bounds of the answer, which is above `low` and at most `high`; None: no bound is certain.
    low: float | None
    high: float | None
    # With an objective, the decision on every load, in order of load.
    decisions: Sequence[Decision]
    probes: Sequence[Probe]
    # The reason for stopping, as text.
    stopped: str
    # The load that cannot be judged, with the reason.
    wall: tuple[float, str] | None = None
    # Notes on oddities, as text.
    notes: tuple[str, ...] = ()
    # Whether two consecutive loads ended the ascent, and not the upper bound or a load that cannot be judged.
    twice: bool = False
    # The knee, for a search without an objective, unless no load could be judged.
    knee: Knee | None = None

    @property
    def trials(self) -> int:
        """The number of trials."""
        return sum(len(probe.samples) for probe in self.probes)

    @property
    def unsure(self) -> list[Decision]:
        """The decision by the median."""
        return [decision for decision in self.decisions if not decision.sure]

    @property
    def contradictions(self) -> tuple[list[float], list[float]]:
        """Loads above the answer at which the objective held in most repeats, and below it at which it did not.

        Loads closer to the answer than a doubling differ by chance: there, the objective is nearly met.
        """
        answer = self.load or 0.0
        meeting = [decision.load for decision in self.decisions if decision.go and decision.load >= FAR * answer]
        missing = [decision.load for decision in self.decisions if not decision.go and decision.load * FAR <= answer]
        return meeting, missing

    def probe_at(self, load: float) -> Probe:
        """The probe of a load."""
        return next(probe for probe in self.probes if probe.load == load)

    def decision_at(self, load: float | None) -> Decision | None:
        """The decision on a load, or None."""
        return next((decision for decision in self.decisions if decision.load == load), None)
