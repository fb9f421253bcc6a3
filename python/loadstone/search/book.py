"""The book of a search: its samples, and the decisions made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadstone.search.outcome import Decision
from loadstone.search.probe import Probe, Sample
from loadstone.search.rule import DELIVERED, Rule
from loadstone.statistics.knee import REPEATS_MIN


@dataclass(eq=False)
class WantedError(Exception):
    """Nothing can be decided before this load has one more trial."""

    load: float


@dataclass(eq=False)
class WallError(Exception):
    """This load cannot be judged: its trials are invalid."""

    load: float
    reason: str


class Book:
    """Decides on loads, and keeps the decisions."""

    def __init__(self, rule: Rule, samples: Mapping[float, Sequence[Sample]]) -> None:
        self.rule = rule
        self.probes = {load: Probe(load, tuple(found)) for load, found in sorted(samples.items())}
        self.decisions: dict[float, Decision] = {}

    def decide(self, load: float) -> Decision:
        """Whether a load meets the objective, by most of its repeats. Raises WantedError or WallError."""
        if load not in self.decisions:
            probe = self.probe(load)
            votes = [self._holds(load, sample) for sample in probe.valid]
            decision = Decision(load, sum(votes) * 2 > len(votes), len(set(votes)) == 1)
            if not decision.sure:
                self.more([load])
            self.decisions[load] = decision
        return self.decisions[load]

    def probe(self, load: float) -> Probe:
        """A probe with at least the required repeats. Raises WantedError or WallError."""
        probe = self.probes.get(load, Probe(load))
        if probe.invalid:
            raise WallError(load, probe.invalid)
        # With fewer repeats, a knee has no bracket.
        enough = REPEATS_MIN if self.rule.objective is None else 1
        if len(probe.valid) < min(max(self.rule.at_least, enough), self.rule.at_most):
            raise WantedError(load)
        return probe

    def more(self, loads: Sequence[float]) -> None:
        """Raises WantedError for the load that has the fewest repeats, while more are allowed."""
        fewest = min(loads, key=lambda load: len(self.probes[load].samples))
        if len(self.probes[fewest].samples) < self.rule.at_most:
            raise WantedError(fewest)

    def _holds(self, load: float, sample: Sample) -> bool:
        # The check rate-not-held decides; what it misses in a short window, a throughput far below the rate shows.
        if self.rule.over == "rate" and (sample.missed or sample.throughput < DELIVERED * load):
            return False
        return bool(sample.meets)
