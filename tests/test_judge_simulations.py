"""What the judge's claims are worth: experiments of known truth through the stopping rule and the judge, seeded.

`-rP` prints the figures that docs/concepts/statistics.md quotes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from judge_support import FACTS, asking, value
from loadstone.judge.judge import judge
from loadstone.judge.judgement import Claim
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.stopping import enough

EXPERIMENTS = 2_000
OPERATIONS = 100_000
# So many trials each have failed operations, a first attempt that failed, a clock that jumped.
FAULTS = 0.01


def trial(system: str, repeat: int, rate: float, faults: float, random: np.random.Generator) -> TrialResult:
    """A trial, with what goes wrong now and then in any system."""
    errors, failed, jumped = random.random(3) < faults
    figures = [
        value("throughput", rate),
        value("operations", OPERATIONS),
        value("errors", 200 if errors else 0),
        value("clock.jumps", int(jumped)),
        value("late.generator", 0),
    ]
    found = TrialResult(
        f"{system}-{repeat}", {"system": system}, repeat, {each.metric: each for each in figures}, 10, "closed", FACTS
    )
    return replace(found, failures=("crashed",) if failed else ())


def claim(
    random: np.random.Generator,
    ratio: float,
    variation: float,
    at_least: int,
    until: float | None,
    matters: float,
    faults: float,
) -> tuple[Claim, int]:
    """What is claimed of two systems in blocks that drift together, and after how many repeats."""
    trials: list[TrialResult] = []
    rates: dict[str, list[float]] = {"a": [], "b": []}
    repeat = 0
    while enough(rates.values(), at_least, 3 * at_least, until) is None:
        repeat += 1
        drift = 1 + 0.1 * repeat / at_least
        for system, level in (("a", 1000.0), ("b", 1000.0 * ratio)):
            rates[system].append(level * drift * float(random.lognormal(0, variation)))
            trials.append(trial(system, repeat, rates[system][-1], faults, random))
    question = replace(asking(metrics=("throughput",)), at_least=at_least, until=until, matters=matters)
    (found,) = judge(ResultSet("simulated", trials, question, interleaved=True)).comparisons
    return found.claim, repeat


def claims(
    ratio: float,
    variation: float,
    at_least: int = 6,
    until: float | None = None,
    matters: float = 0.01,
    faults: float = 0.0,
) -> Counter[Claim]:
    """What is claimed of so many experiments."""
    random = np.random.default_rng([17, int(ratio * 1000), at_least])
    found = [claim(random, ratio, variation, at_least, until, matters, faults) for _ in range(EXPERIMENTS)]
    counts = Counter(each for each, _ in found)
    repeats = sum(n for _, n in found) / EXPERIMENTS
    print(
        f"ratio {ratio}, variation {variation:.0%}, n≥{at_least}, until {until}: {dict(counts)}, {repeats:.1f} repeats"
    )
    return counts


@pytest.mark.parametrize("until", [None, 0.1])
def test_two_equal_systems_are_seldom_told_apart(until: float | None) -> None:
    counts = claims(1.0, 0.05, until=until, faults=FAULTS)
    assert (counts["better"] + counts["worse"]) / EXPERIMENTS <= 0.065


@pytest.mark.parametrize("until", [None, 0.1])
def test_a_tenth_more_is_found(until: float | None) -> None:
    counts = claims(1.1, 0.05, until=until)
    assert counts["worse"] == 0
    assert counts["better"] / EXPERIMENTS >= 0.75


def test_single_faults_do_not_hide_a_tenth_more() -> None:
    counts = claims(1.1, 0.05, at_least=10, faults=FAULTS)
    assert counts["worse"] == 0
    assert counts["better"] / EXPERIMENTS >= 0.75


@pytest.mark.parametrize("at_least", [6, 20])
def test_a_difference_at_the_margin_is_seldom_called_none(at_least: int) -> None:
    counts = claims(1.05, 0.02, at_least=at_least, matters=0.05, faults=FAULTS)
    assert (counts["same"] + counts["slight"]) / EXPERIMENTS <= 0.05


def test_two_equal_systems_are_found_to_be_alike() -> None:
    counts = claims(1.0, 0.02, at_least=20, matters=0.05)
    assert counts["same"] / EXPERIMENTS >= 0.9
