"""Error rates of the judge's claims: seeded experiments with a known truth pass through the stopping rule and the
judge.

`LOADSTONE_SIMULATIONS=1`, as in `make soak`, runs all of them, and `-rP` prints the figures that
docs/concepts/statistics.md quotes.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from judge_support import FACTS, asking, make_series, value
from loadstone.experiment.model.experiment import PILOT_CAP, PILOT_WINDOWS
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Claim
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult
from loadstone.runner.pilot import group, warm_up
from loadstone.statistics.stopping import stopping_reason
from statistics_support import chance, count_experiments

EXPERIMENTS = count_experiments(2_000)
OPERATIONS = 100_000
# The shares of trials with failed operations, with a failed first attempt, and with a clock jump.
FAULTS = 0.01
# The window of systems that warm up, s; the share of its speed that a cold system lacks, and the variation between
# seconds.
WINDOW = 10
COLD, SCATTER = 0.4, 0.05
# The part of a variation of 5 % that is constant within a window.
VARIATION_BETWEEN = math.sqrt(0.05**2 - SCATTER**2 / WINDOW)


def warming(seconds: int, warm_up: float, random: np.random.Generator) -> list[float]:
    """The time series of a system that warms up within some seconds, as shares of its steady throughput."""
    scatter = random.lognormal(0, SCATTER, seconds)
    return [float((1 - COLD * math.exp(-at / warm_up)) * scatter[at]) for at in range(seconds)]


def pilot_warm_up(warm_ups: tuple[float, float], random: np.random.Generator) -> int:
    """The warm-up that a pilot block finds for two systems, s."""
    long = round((PILOT_CAP + PILOT_WINDOWS) * WINDOW)
    pools = [
        [(system, make_series(tuple(warming(long, up, random))))] for system, up in zip("ab", warm_ups, strict=True)
    ]
    judged, _ = warm_up([group(pool, None) for pool in pools], PILOT_CAP * WINDOW)
    # Time series have a figure per second.
    return math.ceil(judged)


def trial(system: str, repeat: int, rate: float, faults: float, random: np.random.Generator) -> TrialResult:
    """A trial with failed operations, a failed first attempt and a clock jump, each with the probability `faults`."""
    errors, failed, jumped = random.random(3) < faults
    figures = [
        value("throughput", rate),
        value("operations", OPERATIONS),
        value("errors", 200 if errors else 0),
        value("clock.jumps", int(jumped)),
        value("late.generator", 0),
    ]
    judged = TrialResult(
        f"{system}-{repeat}",
        {"system": system},
        repeat,
        {figure.metric: figure for figure in figures},
        10,
        "closed",
        FACTS,
    )
    return replace(judged, failures=("crashed",) if failed else ())


def claim(
    random: np.random.Generator,
    ratio: float,
    variation: float,
    at_least: int,
    until: float | None,
    matters: float,
    faults: float,
    warms: bool = False,
) -> tuple[Claim, int]:
    """The claim about two systems in blocks with a common drift, and the number of repeats.

    With `warms` each system takes a different time to warm up, and a pilot block finds the warm-up.
    """
    warm_ups = tuple(float(seconds) for seconds in random.uniform(0.3, 4, 2))
    skip = pilot_warm_up((warm_ups[0], warm_ups[1]), random) if warms else 0
    trials: list[TrialResult] = []
    rates: dict[str, list[float]] = {"a": [], "b": []}
    repeat = 0
    while stopping_reason(rates.values(), at_least, 3 * at_least, until) is None:
        repeat += 1
        drift = 1 + 0.1 * repeat / at_least
        for system, level, seconds in zip("ab", (1000.0, 1000.0 * ratio), warm_ups, strict=True):
            window = float(np.mean(warming(skip + WINDOW, seconds, random)[skip:])) if warms else 1.0
            rates[system].append(level * drift * window * float(random.lognormal(0, variation)))
            trials.append(trial(system, repeat, rates[system][-1], faults, random))
    question = replace(asking(metrics=("throughput",)), at_least=at_least, until=until, matters=matters)
    (judged,) = judge_results(ResultSet("simulated", trials, question, interleaved=True)).comparisons
    return judged.claim, repeat


def claims(
    ratio: float,
    variation: float,
    at_least: int = 6,
    until: float | None = None,
    matters: float = 0.01,
    faults: float = 0.0,
    warms: bool = False,
) -> Counter[Claim]:
    """The number of simulated experiments with each claim."""
    random = np.random.default_rng([17, int(ratio * 1000), at_least])
    judged = [claim(random, ratio, variation, at_least, until, matters, faults, warms) for _ in range(EXPERIMENTS)]
    counts = Counter(name for name, _ in judged)
    repeats = sum(n for _, n in judged) / EXPERIMENTS
    print(
        f"ratio {ratio}, variation {variation:.0%}, n≥{at_least}, until {until}, with pilot {warms}:"
        f" {dict(counts)}, {repeats:.1f} repeats"
    )
    return counts


@pytest.mark.parametrize("until", [None, 0.1])
def test_two_equal_systems_are_seldom_claimed_to_differ(until: float | None) -> None:
    counts = claims(1.0, 0.05, until=until, faults=FAULTS)
    assert (counts["better"] + counts["worse"]) / EXPERIMENTS <= 0.065 + chance(0.065, EXPERIMENTS)


@pytest.mark.parametrize("until", [None, 0.1])
def test_a_tenth_more_is_found(until: float | None) -> None:
    counts = claims(1.1, 0.05, until=until)
    assert counts["worse"] == 0
    assert counts["better"] / EXPERIMENTS >= 0.75 - chance(0.75, EXPERIMENTS)


def test_pilot_prevents_claims_from_different_warm_ups() -> None:
    counts = claims(1.0, VARIATION_BETWEEN, faults=FAULTS, warms=True)
    assert (counts["better"] + counts["worse"]) / EXPERIMENTS <= 0.065 + chance(0.065, EXPERIMENTS)


def test_a_tenth_more_is_found_after_a_pilot() -> None:
    counts = claims(1.1, VARIATION_BETWEEN, warms=True)
    assert counts["worse"] == 0
    assert counts["better"] / EXPERIMENTS >= 0.75 - chance(0.75, EXPERIMENTS)


@pytest.mark.parametrize("at_least", [7, 10])
def test_single_faults_hide_no_difference_of_ten_percent(at_least: int) -> None:
    counts = claims(1.1, 0.05, at_least=at_least, faults=FAULTS)
    assert counts["worse"] == 0
    assert counts["better"] / EXPERIMENTS >= 0.75 - chance(0.75, EXPERIMENTS)


@pytest.mark.parametrize("at_least", [6, 20])
def test_marginal_difference_is_seldom_called_none(at_least: int) -> None:
    counts = claims(1.05, 0.02, at_least=at_least, matters=0.05, faults=FAULTS)
    assert (counts["same"] + counts["slight"]) / EXPERIMENTS <= 0.05 + chance(0.05, EXPERIMENTS)


@pytest.mark.parametrize(("ratio", "repeats", "hit"), [(1.0, 6, "a"), (1.0, 7, "a"), (1.1, 6, "b"), (1.1, 10, "b")])
def test_disturbed_third_of_one_side_decides_nothing(ratio: float, repeats: int, hit: str) -> None:
    random = np.random.default_rng([19, repeats])
    counts: Counter[Claim] = Counter()
    for _ in range(EXPERIMENTS):
        disturbed = set(random.permutation(repeats)[: repeats // 3])
        trials = []
        for repeat in range(repeats):
            for system, level in (("a", 1000.0), ("b", 1000.0 * ratio)):
                slow = system == hit and repeat in disturbed
                rate = level * (0.9 if slow else 1) * float(random.lognormal(0, 0.05))
                crafted = trial(system, repeat + 1, rate, 0, random)
                trials.append(replace(crafted, values={**crafted.values, "cpu.steal": value("cpu.steal", 0.1 * slow)}))
        (judged,) = judge_results(
            ResultSet("simulated", trials, asking(metrics=("throughput",)), interleaved=True)
        ).comparisons
        counts[judged.claim] += 1
    print(f"ratio {ratio}, n={repeats}, a third of {hit} is a tenth slower: {dict(counts)}")
    assert counts["worse"] / EXPERIMENTS <= 0.025 + chance(0.025, EXPERIMENTS)
    if ratio == 1:
        assert (counts["better"] + counts["worse"]) / EXPERIMENTS <= 0.065 + chance(0.065, EXPERIMENTS)


def test_two_equal_systems_are_found_to_be_alike() -> None:
    counts = claims(1.0, 0.02, at_least=20, matters=0.05)
    assert counts["same"] / EXPERIMENTS >= 0.9 - chance(0.9, EXPERIMENTS)


RUNS = count_experiments(1_000)
DAY_NS = 86_400 * 10**9
# Days vary by 4 %, and the repeats of a run by 5 %.
DAYS, REPEATS_OF_A_RUN = 0.04, 3


def alternate_runs(random: np.random.Generator, ratio: float) -> ResultSet:
    """Six alternating runs of each side, each on a separate day."""
    trials, runs = [], {}
    for day in range(12):
        side, level = "ab"[day % 2], 1000.0 * (ratio if day % 2 else 1.0) * float(random.lognormal(0, DAYS))
        for number in range(REPEATS_OF_A_RUN):
            repeat = day // 2 * REPEATS_OF_A_RUN + number + 1
            crafted = trial(side, repeat, level * float(random.lognormal(0, 0.05)), 0, random)
            trials.append(replace(crafted, start_unix_ns=day * DAY_NS + number, facts={**crafted.facts, **STATED}))
            runs[crafted.trial] = str(day)
    return ResultSet("simulated", trials, asking(by="system", metrics=("throughput",)), runs=runs)


# Facts that a comparison between runs needs.
STATED: dict[str, str | int] = {
    "records": 1000,
    "record_bytes": 1000,
    "mix": "100 % read",
    "distribution": "zipfian",
    "tool": "ycsb",
}


@pytest.mark.parametrize(("ratio", "least", "most"), [(1.0, 0.0, 0.065), (1.1, 0.6, 1.0)])
def test_alternating_runs_tell_days_from_systems(ratio: float, least: float, most: float) -> None:
    random = np.random.default_rng([23, int(ratio * 10)])
    counts: Counter[Claim] = Counter()
    for _ in range(RUNS):
        (judged,) = judge_results(alternate_runs(random, ratio)).comparisons
        counts[judged.claim] += 1
    claimed = (counts["better"] + counts["worse"]) / RUNS
    print(f"ratio {ratio}, six runs on days that differ by {DAYS:.0%}: {dict(counts)}, {claimed:.1%} claimed")
    assert least - chance(least, RUNS) <= claimed <= most + chance(most, RUNS)
    assert ratio == 1 or not counts["worse"]
