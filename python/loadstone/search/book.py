"""The book of a search: its samples, and the decisions that they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadstone.search.decision import Decision, growing, meeting
from loadstone.search.probe import Probe, Sample
from loadstone.search.rule import DELIVERED, GAIN, Rule


class WantedError(Exception):
    """Nothing can be decided before this load has one more trial."""

    def __init__(self, load: float) -> None:
        super().__init__(load)
        self.load = load


class WallError(Exception):
    """This load cannot be judged: its trials are invalid."""

    def __init__(self, load: float, reason: str) -> None:
        super().__init__(load, reason)
        self.load = load
        self.reason = reason


class Book:
    """Decides on loads; what was decided is kept."""

    def __init__(self, rule: Rule, samples: Mapping[float, Sequence[Sample]]) -> None:
        self.rule = rule
        self.probes = {load: Probe(load, tuple(found)) for load, found in sorted(samples.items())}
        self.decisions: dict[float, Decision] = {}

    def decide(self, load: float) -> Decision:
        """Whether to go on beyond a load. Raises WantedError or WallError."""
        if load not in self.decisions:
            self.decisions[load] = self._grows(load) if self.rule.objective is None else self._meets(load)
        return self.decisions[load]

    def _grows(self, load: float) -> Decision:
        partner = self.rule.partner(load)
        pair = self._probe(load), self._probe(partner)
        here, there = ([sample.throughput for sample in probe.valid] for probe in pair)
        decision = growing(load, partner, here, there, GAIN)
        if not decision.sure:
            self._more(*pair)
        return decision

    def _meets(self, load: float) -> Decision:
        probe = self._probe(load)
        decision = meeting(load, [self._holds(load, sample) for sample in probe.valid])
        if not decision.sure:
            self._more(probe)
        return decision

    def _holds(self, load: float, sample: Sample) -> bool:
        # The check rate-not-held decides. What it cannot see in a short window, much less than the rate tells.
        if self.rule.over == "rate" and (sample.missed or sample.throughput < DELIVERED * load):
            return False
        return bool(sample.meets)

    def _probe(self, load: float) -> Probe:
        """A probe with as many repeats as there are to be at least."""
        probe = self.probes.get(load, Probe(load))
        if probe.invalid:
            raise WallError(load, probe.invalid)
        if len(probe.valid) < self.rule.at_least:
            raise WantedError(load)
        return probe

    def _more(self, *probes: Probe) -> None:
        """Asks for one more repeat of the probe that has the fewest, as long as any is allowed."""
        fewest = min(probes, key=lambda probe: len(probe.samples))
        if len(fewest.samples) < self.rule.at_most:
            raise WantedError(fewest.load)
