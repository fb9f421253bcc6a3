"""The outcome of a search: its answer, the loads that enclose it, and the reason for stopping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loadstone.search.probe import Probe
from loadstone.search.rule import Rule
from loadstone.statistics.knee import Knee

# `found`: between two loads; `below`: below the lower bound; `beyond`: above the upper bound; `wall`: a load that
# cannot be judged stopped the ascent; `nothing`: the first load cannot be judged.
Kind = Literal["found", "below", "beyond", "wall", "nothing"]
# At this ratio of loads or above, a contradiction is not due to chance.
FAR = 2.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the objective is met at a load, in which case the search continues with higher loads."""

    load: float
    # The number of valid trials that met the objective, and the number of all valid trials.
    met: int
    trials: int
    # Whether the system failed in a trial, so that it cannot sustain the load.
    failed: bool = False
    # Whether trials that missed the objective were ignored because only the load generator was late.
    late: bool = False

    @property
    def go(self) -> bool:
        """Whether most trials met the objective, and the system never failed."""
        return self.met * 2 > self.trials and not self.failed

    @property
    def sure(self) -> bool:
        """Whether the trials agree, so that no majority had to decide. If misses were ignored, the trials do not count
        as unanimous in meeting the objective."""
        return self.failed or self.met == 0 or (self.met == self.trials and not self.late)

    @property
    def votes(self) -> str:
        """The number of trials that met the objective, if they disagree: `met in 4 of 6 trials`; else empty."""
        return "" if self.sure else f"met in {self.met} of {self.trials} trials"


@dataclass(frozen=True)
class SearchOutcome:
    """The outcome of a search."""

    rule: Rule
    kind: Kind
    # The answer: the lowest tried load that reaches the plateau, or the highest that meets the objective; for `beyond`
    # and `wall`, the highest load that was judged, or that met the objective. None without such a load.
    load: float | None
    # Certain bounds of the answer: a knee is above `low` and at most `high`; the highest load that meets an objective
    # is at least `low` and below `high`. None if a bound is not certain.
    low: float | None
    high: float | None
    # With an objective, the decision on every load, in order of load.
    decisions: Sequence[Decision]
    probes: Sequence[Probe]
    # The reason for stopping, as text.
    stopped: str
    # A load that cannot be judged, with the reason.
    wall: tuple[float, str] | None = None
    # Notes on oddities, as text.
    notes: tuple[str, ...] = ()
    # Whether the ascent stopped because two consecutive loads missed the objective.
    twice: bool = False
    # The knee, for a search without an objective, unless no load could be judged.
    knee: Knee | None = None

    @property
    def trials(self) -> int:
        """The number of trials in all probes."""
        return sum(len(probe.samples) for probe in self.probes)

    @property
    def unsure(self) -> list[Decision]:
        """The decisions that the majority made because trials disagreed."""
        return [decision for decision in self.decisions if not decision.sure]

    @property
    def load_above(self) -> float | None:
        """The lowest load above the answer at which the objective was not met; None without such a load."""
        above = (decision.load for decision in self.decisions if not decision.go)
        return next((load for load in above if load > (self.load or 0.0)), None)

    @property
    def ends(self) -> list[float]:
        """The loads on which the answer relies, the answer itself first."""
        return [load for load in (self.load, self.load_above, self.low, self.high) if load is not None]

    @property
    def contradictions(self) -> tuple[list[float], list[float]]:
        """The loads above the answer that met the objective in most repeats, and the loads below it that did not.

        Loads within a doubling of the answer are omitted: there, the objective is nearly met, so chance decides.
        """
        answer = self.load or 0.0
        meeting = [decision.load for decision in self.decisions if decision.go and decision.load >= FAR * answer]
        missing = [decision.load for decision in self.decisions if not decision.go and decision.load * FAR <= answer]
        return meeting, missing

    def probe_at(self, load: float) -> Probe:
        """The probe at a load."""
        return next(probe for probe in self.probes if probe.load == load)

    def decision_at(self, load: float | None) -> Decision | None:
        """The decision on a load; None if there is no decision."""
        return next((decision for decision in self.decisions if decision.load == load), None)
