"""Error rates of a search: 500 simulated systems of known saturation for each figure, seeded.

`LOADSTONE_SIMULATIONS=1`, as in `make soak`, runs all of them, and `-rP` prints the figures that
docs/guides/finding-saturation.md quotes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from loadstone.search.next_step import next_step
from loadstone.search.objective import parse_objective
from loadstone.search.outcome import SearchOutcome
from loadstone.search.probe import ProbeSample
from loadstone.search.rule import CONFIDENCE, Rule
from loadstone.statistics.knee import TOLERANCE
from loadstone.statistics.usl import law_curve
from statistics_support import chance, count_experiments

CASES = count_experiments(500)
# Fewer searches for a knee run, because each takes milliseconds.
KNEES = count_experiments(200)
NOISE = (0.005, 0.02, 0.05)


@dataclass(frozen=True)
class System:
    """A system that scales according to the Universal Scalability Law, op/s."""

    lam: float
    sigma: float
    kappa: float

    @classmethod
    def draw_system(cls, random: np.random.Generator) -> System:
        """A system that saturates at a number of clients between a few and thousands."""
        return cls(1000.0, 10 ** random.uniform(-3, -0.7), 10 ** random.uniform(-7, -2.5))

    def throughput(self, clients: float) -> float:
        return float(law_curve(np.array([clients], dtype=float), self.lam, self.sigma, self.kappa)[0])

    def latency_ns(self, clients: float) -> float:
        """A percentile of latency: three times the mean latency by Little's law."""
        return 3e9 * clients / self.throughput(clients)

    def knee(self, loads: Sequence[float]) -> float:
        """The lowest number of clients that reaches 95 % of the highest throughput of these loads."""
        best = max(loads, key=self.throughput)
        # Throughput drops beyond its peak.
        return first(lambda n: self.throughput(n) >= (1 - TOLERANCE) * self.throughput(best), round(best))

    def limit(self, bound_ns: float, most: int) -> int:
        """The highest number of clients with a latency below a bound."""
        return first(lambda n: self.latency_ns(n) >= bound_ns, most) - 1


def first(holds: Callable[[int], bool], most: int) -> int:
    """The smallest number for which a condition holds, if it also holds for all larger numbers."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def run_search(rule: Rule, draw: Callable[[float], ProbeSample]) -> SearchOutcome:
    """A search from its first trial to its end."""
    samples: dict[float, list[ProbeSample]] = {}
    while not isinstance(step := next_step(rule, samples), SearchOutcome):
        assert rule.least <= step <= rule.most
        samples.setdefault(step, []).append(draw(step))
        assert len(samples[step]) <= max(rule.at_most, rule.confirmations)
        assert len(samples) <= rule.probes_most
    assert step.trials == sum(map(len, samples.values()))
    return step


@pytest.mark.parametrize("noise", NOISE)
def test_the_knee_lies_in_the_bracket(noise: float) -> None:
    random = np.random.default_rng([1, round(noise * 1000)])
    rule = Rule(most=2048)
    hits, trials, widths = [], [], []
    for _ in range(KNEES):
        system = System.draw_system(random)

        def draw(load: float, at: System = system) -> ProbeSample:
            return ProbeSample(at.throughput(load) * float(np.exp(noise * random.normal())))

        outcome = run_search(rule, draw)
        trials.append(outcome.trials)
        if outcome.high is None:
            continue
        low, high = outcome.low or rule.least, outcome.high
        hits.append(low <= system.knee([probe.load for probe in outcome.probes]) <= high)
        widths.append(high / low)
    print(
        f"noise {noise:.1%}: a knee in {len(hits) / KNEES:.0%} of {KNEES}, {np.mean(hits):.1%} of them in the bracket,"
        f" its ends a ratio of {np.median(widths):.2f} apart (median), {np.mean(trials):.0f} trials on average"
    )
    assert np.mean(hits) >= 0.9 - chance(0.9, KNEES)
    assert len(hits) >= 0.6 * KNEES


@pytest.mark.parametrize("noise", NOISE)
def test_bracket_contains_the_limit_of_an_objective(noise: float) -> None:
    random = np.random.default_rng([2, round(noise * 1000)])
    hits, trials = [], []
    kinds: Counter[str] = Counter()
    for _ in range(CASES):
        system = System.draw_system(random)
        bound = system.latency_ns(1) * float(10 ** random.uniform(0, 1.5))
        objective = parse_objective(f"p99 < {bound / 1e6}ms")
        rule = Rule(most=1000, objective=objective)

        def draw(load: float, at: System = system, rule: Rule = rule) -> ProbeSample:
            latency = at.latency_ns(load) * float(np.exp(noise * random.normal()))
            assert rule.objective is not None
            return ProbeSample(at.throughput(load), rule.objective.is_met_by({"all.p99": latency}))

        outcome = run_search(rule, draw)
        kinds[outcome.kind] += 1
        trials.append(outcome.trials)
        truth = min(system.limit(bound, 100_000), 1000)
        if outcome.kind == "below":
            hits.append(truth <= 1)
        elif outcome.kind == "beyond":
            hits.append(truth >= (outcome.low or 0))
        else:
            hits.append((outcome.low or 0) <= truth < (outcome.high or rule.most + 1))
    share = sum(hits) / CASES
    print(f"noise {noise:.1%}: {share:.1%} in the bracket, {np.mean(trials):.0f} trials on average, {dict(kinds)}")
    assert share >= 0.9 - chance(0.9, CASES)
    assert kinds["found"] > CASES / 2


@pytest.mark.parametrize(("noise", "exits_from"), [(0.02, 0), (0.05, 0), (0.02, 64), (0.02, 256)])
def test_lasting_noise_and_crashes_keep_the_bracket(noise: float, exits_from: int) -> None:
    # Noise with an autocorrelation of 0.9 from trial to trial; or a server that exits in one trial of four.
    random = np.random.default_rng([4, round(noise * 1000), exits_from])
    correlation = 0.0 if exits_from else 0.9
    hits = []
    for _ in range(CASES):
        system = System.draw_system(random)
        bound = system.latency_ns(1) * float(10 ** random.uniform(0, 1.5))
        rule = Rule(most=1000, objective=parse_objective(f"p99 < {bound / 1e6}ms"))
        level = [float(random.normal())]

        def draw(load: float, at: System = system, rule: Rule = rule, level: list[float] = level) -> ProbeSample:
            level.append(correlation * level[-1] + float(random.normal()) * (1 - correlation**2) ** 0.5)
            if exits_from and load >= exits_from and random.random() < 0.25:
                return ProbeSample(meets=False, failed=True)
            assert rule.objective is not None
            latency = at.latency_ns(load) * float(np.exp(noise * level[-1]))
            return ProbeSample(at.throughput(load), rule.objective.is_met_by({"all.p99": latency}))

        outcome = run_search(rule, draw)
        truth = min(system.limit(bound, 100_000), 1000, exits_from - 1 if exits_from else 1000)
        low, high = outcome.low or 0, outcome.high or rule.most + 1
        hits.append(low <= truth < high if outcome.kind != "beyond" else truth >= low)
    print(f"noise {noise:.0%}, lasting or exiting from {exits_from}: {np.mean(hits):.1%} in the bracket")
    assert np.mean(hits) >= CONFIDENCE - chance(CONFIDENCE, CASES)


def test_rate_is_held_up_to_the_capacity() -> None:
    random = np.random.default_rng(3)
    hits = []
    for _ in range(KNEES):
        capacity = 10 ** random.uniform(3.5, 5.5)

        def draw(load: float, capacity: float = capacity) -> ProbeSample:
            return ProbeSample(min(load, capacity * float(np.exp(0.01 * random.normal()))))

        outcome = run_search(Rule("rate", 1000, 1_000_000), draw)
        assert outcome.load is not None
        truth = capacity * (1 - TOLERANCE)
        hits.append((outcome.low or 1000) <= truth <= (outcome.high or 1_000_000))
    assert np.mean(hits) >= 0.9 - chance(0.9, KNEES)
