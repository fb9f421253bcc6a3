"""The knee of a curve: on curves without noise, on broken ones, and its coverage over simulated sweeps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from loadstone.format import units
from loadstone.search.rule import Over
from loadstone.search.sentence import knee_text
from loadstone.statistics.knee import TOLERANCE, Knee, find_knee
from statistics_support import Floats, Generator
from test_statistics_usl import HBASE

TRIED = (1, 2, 4, 8, 12, 16, 20, 24, 32, 64, 128)
Curve = Callable[[Floats], Floats]


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def sweep(
    curve: Curve, tried: Sequence[float] = TRIED, blocks: int = 5, variation: float = 0.02, seed: int = 1
) -> dict[float, dict[int, float]]:
    """Throughput by load and block, in blocks that differ by 3 % among each other."""
    random = np.random.default_rng(seed)
    shared = np.exp(0.03 * random.normal(size=blocks))
    return {
        load: {
            block: float(curve(np.array([load], dtype=float))[0] * shared[block] * np.exp(variation * random.normal()))
            for block in range(blocks)
        }
        for load in tried
    }


def flat_from(saturation: float) -> Curve:
    """1,000 op/s for each client up to so many of them."""
    return lambda n: 1000 * np.minimum(n, saturation)


def law(peak: float, sigma: float) -> Curve:
    """The Universal Scalability Law with its peak at so many clients."""
    kappa = (1 - sigma) / peak**2
    return lambda n: 1000 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


@pytest.mark.parametrize(("blocks", "variation"), [(3, 0.01), (6, 0.02), (10, 0.02)])
def test_the_example_saturates_between_16_and_20_clients(blocks: int, variation: float) -> None:
    found = find_knee(sweep(flat_from(20), blocks=blocks, variation=variation))
    assert (found.lower, found.upper, found.collapse, found.unclaimed) == (16, 20, None, None)
    assert found.plateau == pytest.approx(20_000, rel=0.05)


def test_noiseless_bracket_is_the_gap_around_the_knee() -> None:
    found = find_knee(sweep(flat_from(20), variation=0))
    assert (found.lower, found.upper, found.unclaimed) == (16, 20, None)
    # Of what all loads of a block share nothing is left in the bracket.
    assert found.reached == 20


def test_throughput_that_collapses_late_has_both_brackets() -> None:
    found = find_knee(sweep(lambda n: 1000 * np.minimum(n, 8) * np.where(n > 32, 0.5, 1.0), variation=0.01))
    assert (found.lower, found.upper, found.unclaimed) == (4, 8, None)
    assert found.collapse == (32, 64)


def test_a_collapse_does_not_pull_the_plateau_down() -> None:
    found = find_knee(sweep(law(16, 0.02), (1, 2, 4, 8, 16, 32, 64, 128)))
    assert found.plateau == pytest.approx(law(16, 0.02)(np.array([16.0]))[0], rel=0.06)
    assert found.collapse is not None
    assert found.collapse[1] <= 64


@pytest.mark.parametrize("curve", [lambda n: 1000 * n, lambda n: 1000 * n**0.6, lambda n: 1000 * n / (1 + n / 100)])
@pytest.mark.parametrize("variation", [0, 0.02, 0.08])
def test_what_still_rises_has_no_knee(curve: Curve, variation: float) -> None:
    found = find_knee(sweep(curve, variation=variation))
    assert (found.upper, found.unclaimed) == (None, "rising")


def test_close_loads_at_the_end_are_no_plateau() -> None:
    assert find_knee(sweep(lambda n: 1000 * n, (64, 96, 120, 124, 128))).unclaimed == "rising"


def test_repeats_that_scatter_too_much_claim_nothing() -> None:
    found = find_knee(sweep(lambda n: 1000 * n / (16 + n), variation=0.05))
    assert (found.upper, found.unclaimed) == (None, "scatter")


def test_plateau_from_the_start_has_no_lower_end() -> None:
    found = find_knee(sweep(lambda n: 5000 + 0 * n, blocks=8, variation=0.01))
    assert (found.lower, found.upper, found.unclaimed) == (None, 1, None)


def test_falling_throughput_is_highest_at_the_first_load() -> None:
    found = find_knee(sweep(lambda n: 5000 / n))
    assert (found.lower, found.upper, found.collapse) == (None, 1, (1, 2))


def test_dent_on_the_way_up_is_no_knee() -> None:
    found = find_knee(sweep(lambda n: 1000 * np.minimum(n, 20) * np.where(n == 8, 0.45, 1.0)))
    assert (found.lower, found.upper, found.collapse) == (16, 20, None)


@pytest.mark.parametrize("seed", range(10))
def test_recovering_curve_has_not_collapsed(seed: int) -> None:
    found = find_knee(sweep(lambda n: 1000 * np.minimum(n, 20) * np.where((n > 20) & (n < 64), 0.6, 1.0), seed=seed))
    assert found.collapse is None
    assert found.departing


def test_noise_is_not_taken_for_a_second_rise() -> None:
    every = [find_knee(sweep(law(40, 0.1), variation=0.05, seed=seed)).departing for seed in range(200)]
    print(f"not monotone by noise alone: {np.mean([bool(each) for each in every]):.1%} of 200 sweeps")
    assert np.mean([bool(each) for each in every]) <= 0.05


@pytest.mark.parametrize("blocks", [1, 2])
def test_two_repeats_claim_nothing_but_give_an_estimate(blocks: int) -> None:
    found = find_knee(sweep(flat_from(20), blocks=blocks, variation=0.01))
    assert (found.lower, found.upper, found.unclaimed) == (None, None, "few-repeats")
    assert found.reached == 20
    assert found.plateau == pytest.approx(20_000, rel=0.1)


@pytest.mark.parametrize(
    "points",
    [
        {},
        {1: {0: 5.0}},
        {1: {}, 2: {}},
        {8: {0: 1.0, 1: 1.0, 2: 1.0}},
        {1: {0: 0.0, 1: -1.0}, 2: {0: math.nan}, 3: {0: math.inf}},
        {0: {0: 1.0}, -1: {0: 2.0}, math.inf: {0: 1.0}, math.nan: {0: 1.0}},
    ],
)
def test_no_curve_claims_nothing(points: Mapping[float, Mapping[int, float]]) -> None:
    found = find_knee(points)
    assert (found.lower, found.upper, found.unclaimed) == (None, None, "few-loads")


def test_missing_cells_and_failed_trials_are_left_out() -> None:
    points = sweep(flat_from(20), blocks=6)
    del points[12][0], points[16][3], points[32][5], points[32][4]
    points[24] = {0: 0.0, 1: math.nan}
    points[64] = {}
    found = find_knee(points)
    assert 24 not in found.loads
    assert 64 not in found.loads
    assert (found.lower, found.upper) == (16, 20)


def test_load_with_few_repeats_stays_uncertain() -> None:
    points = sweep(flat_from(20), blocks=5)
    # A single figure, 30 % too high: it must not become the plateau.
    points[128] = {0: 26_000.0}
    found = find_knee(points)
    assert found.plateau == pytest.approx(20_000, rel=0.05)
    assert (found.lower, found.upper) == (16, 20)


def test_real_sweep_ending_after_its_knee_claims_none() -> None:
    found = find_knee({clients: dict(enumerate(values)) for clients, values in HBASE.items()}, blocks=False)
    # Its author named 31 or 32 clients, the highest of the averages. 10 clients were measured once.
    assert list(found.loads) == [20, 25, 28, 30, 31, 32, 33, 35, 40]
    assert (found.lower, found.reached, found.unclaimed) == (20, 28, "scatter")


def test_unblocked_repeats_are_resampled_by_load() -> None:
    points = sweep(flat_from(20), blocks=6)
    assert (find_knee(points, blocks=False).lower, find_knee(points, blocks=False).upper) == (16, 20)
    # As a search has them: as many repeats as each load needed.
    for load in (1, 2, 64, 128):
        points[load] = dict(list(points[load].items())[:3])
    assert (find_knee(points, blocks=False).lower, find_knee(points, blocks=False).upper) == (16, 20)


def test_bracket_is_independent_of_point_order() -> None:
    points = sweep(law(40, 0.1), variation=0.06)
    turned = {load: dict(reversed(found.items())) for load, found in reversed(points.items())}
    assert find_knee(points) == find_knee(turned)


def test_the_unit_of_throughput_does_not_matter() -> None:
    points = sweep(flat_from(20), variation=0.05)
    small = {load: {block: value * 1e-9 for block, value in found.items()} for load, found in points.items()}
    one, other = find_knee(points), find_knee(small)
    assert (one.lower, one.upper, one.unclaimed) == (other.lower, other.upper, other.unclaimed)


def test_fit_is_monotone_on_both_sides() -> None:
    found = find_knee(sweep(law(16, 0.05), variation=0.08))
    top = found.fit.index(max(found.fit))
    assert list(found.fit[: top + 1]) == sorted(found.fit[: top + 1])
    assert list(found.fit[top:]) == sorted(found.fit[top:], reverse=True)
    assert found.plateau <= max(found.fit) * (1 + 1e-9)


def test_the_estimate_without_a_bracket_is_the_same() -> None:
    points = sweep(flat_from(20), variation=0.05)
    assert find_knee(points, resamples=0).reached == find_knee(points).reached


# Tried loads of simulated sweeps: doublings, finer ones, and evenly spaced ones.
GRIDS = (
    (1, 2, 4, 8, 16, 32, 64, 128),
    TRIED,
    (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    (10, 20, 30, 40, 50, 60, 80, 100, 120),
    (4, 8, 16, 32, 64, 128, 256),
)
CURVES = 2_000
SHAPES = ("linear-then-flat", "contention", "collapse", "step", "slow", "rising")


def drawn(shape: str, first: float, last: float, random: Generator) -> Curve:
    """A curve of a shape, over loads from `first` to `last`."""
    start, middle = math.log(first * 1.2), math.log(last / 3)
    match shape:
        case "linear-then-flat":
            return flat_from(math.exp(random.uniform(start, middle)))
        case "contention":
            # Near its peak at the end; at least 8 times one client's throughput.
            return law(last * random.uniform(0.8, 3), 10 ** random.uniform(math.log10(8 / last), math.log10(0.6)))
        case "collapse":
            return law(last * 10 ** random.uniform(-1, -0.4), 10 ** random.uniform(-2.5, -0.7))
        case "step":
            at, height = math.exp(random.uniform(start, middle)), random.uniform(1.3, 4)
            return lambda n: np.where(n >= at, height, 1.0) * 1000
        case "slow":
            half = last / math.exp(random.uniform(math.log(10), math.log(100)))
            return lambda n: 1000 * n / (half + n)
    power, half = random.uniform(0.4, 1), last * random.uniform(0.4, 3)
    return (lambda n: 1000 * n**power) if random.random() < 0.5 else (lambda n: 1000 * n / (half + n))


def covers(found: Knee, tried: Sequence[float], truth: Floats) -> bool:
    """Whether the true knee, on the true curve and relative to its highest tried load, lies in the bracket.

    Where nothing is claimed the bracket is open: above its lower end.
    """
    first = tried[int(np.argmax(truth >= (1 - TOLERANCE) * truth.max()))]
    return (found.lower or 0) < first <= (found.upper or math.inf)


def test_bracket_contains_the_knee_in_90_percent() -> None:
    random = np.random.default_rng(1972)
    held: dict[str, list[bool]] = {shape: [] for shape in SHAPES}
    gaps: dict[str, list[int]] = {shape: [] for shape in SHAPES}
    claimed: dict[str, list[bool]] = {shape: [] for shape in SHAPES}
    brackets: list[bool] = []
    fell: list[bool] = []
    false_falls: list[bool] = []
    for number in range(CURVES):
        shape = SHAPES[number % len(SHAPES)]
        tried = GRIDS[random.integers(len(GRIDS))]
        curve = drawn(shape, tried[0], tried[-1], random)
        variation = random.uniform(0.02, 0.08)
        found = find_knee(sweep(curve, tried, int(random.integers(3, 11)), variation, number))
        truth = curve(np.array(tried, dtype=float))
        claimed[shape].append(found.unclaimed is None)
        brackets.append(covers(found, tried, truth))
        if found.unclaimed is None and shape != "rising":
            held[shape].append(covers(found, tried, truth))
            assert found.upper is not None
            gaps[shape].append(tried.index(found.upper) - (tried.index(found.lower) if found.lower else -1))
        if shape == "collapse":
            last = int(np.nonzero(truth >= (1 - TOLERANCE) * truth.max())[0][-1])
            fell.append(found.collapse is not None)
            if found.collapse is not None:
                held["collapse"][-1] &= found.collapse[0] <= tried[last] < found.collapse[1]
        else:
            false_falls.append(found.collapse is not None and truth[-1] >= (1 - TOLERANCE) * truth.max())
    for shape in SHAPES:
        if shape != "rising":
            print(
                f"{shape}: claimed {np.mean(claimed[shape]):.1%}, held {np.mean(held[shape]):.1%} of the claims,"
                f" gaps between tried loads: {np.median(gaps[shape]):.0f} (median)"
            )
            assert np.mean(held[shape]) >= 0.9
    print(f"rising: claimed {np.mean(claimed['rising']):.1%}")
    print(f"collapse named in {np.mean(fell):.1%}, where there is none in {np.mean(false_falls):.1%}")
    assert np.mean(claimed["rising"]) <= 0.02
    assert np.mean(fell) >= 0.9
    assert np.mean(false_falls) <= 0.05
    every = [each for shape in SHAPES for each in held[shape]] + [not each for each in claimed["rising"]]
    print(f"right in {np.mean(every):.1%} of {len(every)} claims and refusals")
    assert np.mean(every) >= 0.9
    print(f"brackets of all {len(brackets)} curves, open ones too, hold the knee in {np.mean(brackets):.1%}")
    assert np.mean(brackets) >= 0.9
    for shape in ("linear-then-flat", "collapse", "step"):
        assert np.mean(claimed[shape]) >= 0.6


@pytest.mark.parametrize("saturation", [1, 3, 20])
def test_lower_end_of_scattered_repeats_is_reliable(saturation: float) -> None:
    least = min(load for load in TRIED if load >= 0.95 * saturation)
    found = [find_knee(sweep(flat_from(saturation), variation=0.2, seed=seed, blocks=4)) for seed in range(100)]
    scattered = [each for each in found if each.unclaimed == "scatter"]
    assert scattered
    # 2.5 % of all sweeps, and what chance makes of them.
    assert sum(each.lower is not None and each.lower >= least for each in scattered) <= 5
    assert all(each.reached is not None and each.reached > (each.lower or 0) for each in scattered)


@pytest.mark.parametrize(("over", "unit"), [("clients", "clients"), ("rate", "op/s")])
def test_sentence_on_scattered_repeats_has_only_lower_end(over: Over, unit: str) -> None:
    found = find_knee(sweep(lambda n: 1000 * n / (16 + n), variation=0.05))
    text = knee_text(found, over, "redis")
    least = units.load_over(found.lower or 0, over)
    assert text.startswith(
        f"throughput of redis reaches 95 % of its plateau above {least}; no upper end is named: the repeats"
        f" differ too much to decide whether throughput still rises at 128 {unit} ("
    )
    assert "between" not in text
    bare = knee_text(replace(found, lower=None), over)
    assert bare.startswith(
        f"no knee is named: the repeats differ too much to decide whether throughput still rises at 128 {unit} ("
    )
