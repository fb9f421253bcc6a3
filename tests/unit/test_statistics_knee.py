"""The knee of a curve: without noise, on disturbed curves, and its coverage over simulated sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from loadstone.format import units
from loadstone.search.rule import Over
from loadstone.search.sentence import knee_text
from loadstone.statistics.knee import TOLERANCE, Knee, find_knee
from statistics_support import Floats, Generator
from test_statistics_usl import HBASE

pytestmark = pytest.mark.filterwarnings("error")

TRIED = (1, 2, 4, 8, 12, 16, 20, 24, 32, 64, 128)
Curve = Callable[[Floats], Floats]


def sweep(
    curve: Curve, tried: Sequence[float] = TRIED, blocks: int = 5, variation: float = 0.02, seed: int = 1
) -> dict[float, dict[int, float]]:
    """Throughput by load and block; blocks vary by 3 %."""
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
    """1,000 op/s for each client, up to this many clients."""
    return lambda n: 1000 * np.minimum(n, saturation)


def law(peak: float, sigma: float) -> Curve:
    """The Universal Scalability Law with its peak at this many clients."""
    kappa = (1 - sigma) / peak**2
    return lambda n: 1000 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


@pytest.mark.parametrize(("blocks", "variation"), [(3, 0.01), (6, 0.02), (10, 0.02)])
def test_the_example_saturates_between_16_and_20_clients(blocks: int, variation: float) -> None:
    knee = find_knee(sweep(flat_from(20), blocks=blocks, variation=variation))
    assert (knee.lower, knee.upper, knee.collapse, knee.unclaimed) == (16, 20, None, None)
    assert knee.plateau == pytest.approx(20_000, rel=0.05)


def test_noiseless_bracket_is_the_gap_around_the_knee() -> None:
    knee = find_knee(sweep(flat_from(20), variation=0))
    assert (knee.lower, knee.upper, knee.unclaimed) == (16, 20, None)
    # The variation common to all loads of a block does not affect the bracket.
    assert knee.reached == 20


def test_throughput_that_collapses_late_has_both_brackets() -> None:
    knee = find_knee(sweep(lambda n: 1000 * np.minimum(n, 8) * np.where(n > 32, 0.5, 1.0), variation=0.01))
    assert (knee.lower, knee.upper, knee.unclaimed) == (4, 8, None)
    assert knee.collapse == (32, 64)


def test_a_collapse_does_not_pull_the_plateau_down() -> None:
    knee = find_knee(sweep(law(16, 0.02), (1, 2, 4, 8, 16, 32, 64, 128)))
    assert knee.plateau == pytest.approx(law(16, 0.02)(np.array([16.0]))[0], rel=0.06)
    assert knee.collapse is not None
    assert knee.collapse[1] <= 64


@pytest.mark.parametrize("curve", [lambda n: 1000 * n, lambda n: 1000 * n**0.6, lambda n: 1000 * n / (1 + n / 100)])
@pytest.mark.parametrize("variation", [0, 0.02, 0.08])
def test_what_still_rises_has_no_knee(curve: Curve, variation: float) -> None:
    knee = find_knee(sweep(curve, variation=variation))
    assert (knee.upper, knee.unclaimed) == (None, "rising")


def test_close_loads_at_the_end_are_no_plateau() -> None:
    assert find_knee(sweep(lambda n: 1000 * n, (64, 96, 120, 124, 128))).unclaimed == "rising"


def test_repeats_that_scatter_too_much_claim_nothing() -> None:
    knee = find_knee(sweep(lambda n: 1000 * n / (16 + n), variation=0.05))
    assert (knee.upper, knee.unclaimed) == (None, "scatter")


def test_plateau_from_the_start_has_no_lower_end() -> None:
    knee = find_knee(sweep(lambda n: 5000 + 0 * n, blocks=8, variation=0.01))
    assert (knee.lower, knee.upper, knee.unclaimed) == (None, 1, None)


def test_falling_throughput_is_highest_at_the_first_load() -> None:
    knee = find_knee(sweep(lambda n: 5000 / n))
    assert (knee.lower, knee.upper, knee.collapse) == (None, 1, (1, 2))


def test_dent_on_the_way_up_is_no_knee() -> None:
    knee = find_knee(sweep(lambda n: 1000 * np.minimum(n, 20) * np.where(n == 8, 0.45, 1.0)))
    assert (knee.lower, knee.upper, knee.collapse) == (16, 20, None)


@pytest.mark.parametrize("seed", range(10))
def test_recovering_curve_has_not_collapsed(seed: int) -> None:
    knee = find_knee(sweep(lambda n: 1000 * np.minimum(n, 20) * np.where((n > 20) & (n < 64), 0.6, 1.0), seed=seed))
    assert knee.collapse is None
    assert knee.departing


def test_noise_is_not_taken_for_a_second_rise() -> None:
    every = [find_knee(sweep(law(40, 0.1), variation=0.05, seed=seed)).departing for seed in range(200)]
    print(f"not monotone by noise alone: {np.mean([bool(series) for series in every]):.1%} of 200 sweeps")
    assert np.mean([bool(series) for series in every]) <= 0.05


@pytest.mark.parametrize("blocks", [1, 2])
def test_two_repeats_claim_nothing_but_give_an_estimate(blocks: int) -> None:
    knee = find_knee(sweep(flat_from(20), blocks=blocks, variation=0.01))
    assert (knee.lower, knee.upper, knee.unclaimed) == (None, None, "few-repeats")
    assert knee.reached == 20
    assert knee.plateau == pytest.approx(20_000, rel=0.1)


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
    knee = find_knee(points)
    assert (knee.lower, knee.upper, knee.unclaimed) == (None, None, "few-loads")


def test_missing_cells_and_failed_trials_are_left_out() -> None:
    points = sweep(flat_from(20), blocks=6)
    del points[12][0], points[16][3], points[32][5], points[32][4]
    points[24] = {0: 0.0, 1: math.nan}
    points[64] = {}
    knee = find_knee(points)
    assert 24 not in knee.loads
    assert 64 not in knee.loads
    assert (knee.lower, knee.upper) == (16, 20)


def test_load_with_few_repeats_stays_uncertain() -> None:
    points = sweep(flat_from(20), blocks=5)
    # A single figure, 30 % too high, must not become the plateau.
    points[128] = {0: 26_000.0}
    knee = find_knee(points)
    assert knee.plateau == pytest.approx(20_000, rel=0.05)
    assert (knee.lower, knee.upper) == (16, 20)


def test_real_sweep_ending_after_its_knee_claims_none() -> None:
    knee = find_knee({clients: dict(enumerate(values)) for clients, values in HBASE.items()}, blocks=False)
    # The report's author named 31 or 32 clients, the maximum of the averages. The knee excludes 10 clients, a load that
    # was measured only once.
    assert list(knee.loads) == [20, 25, 28, 30, 31, 32, 33, 35, 40]
    assert (knee.lower, knee.reached, knee.unclaimed) == (20, 28, "scatter")


def test_unblocked_repeats_are_resampled_by_load() -> None:
    points = sweep(flat_from(20), blocks=6)
    assert (find_knee(points, blocks=False).lower, find_knee(points, blocks=False).upper) == (16, 20)
    # In a search each load has as many repeats as it needs.
    for load in (1, 2, 64, 128):
        points[load] = dict(list(points[load].items())[:3])
    assert (find_knee(points, blocks=False).lower, find_knee(points, blocks=False).upper) == (16, 20)


def test_bracket_is_independent_of_point_order() -> None:
    points = sweep(law(40, 0.1), variation=0.06)
    reordered = {load: dict(reversed(blocks.items())) for load, blocks in reversed(points.items())}
    assert find_knee(points) == find_knee(reordered)


def test_the_unit_of_throughput_does_not_matter() -> None:
    points = sweep(flat_from(20), variation=0.05)
    small = {load: {block: value * 1e-9 for block, value in blocks.items()} for load, blocks in points.items()}
    first, other = find_knee(points), find_knee(small)
    assert (first.lower, first.upper, first.unclaimed) == (other.lower, other.upper, other.unclaimed)


def test_fit_is_monotone_on_both_sides() -> None:
    knee = find_knee(sweep(law(16, 0.05), variation=0.08))
    top = knee.fit.index(max(knee.fit))
    assert list(knee.fit[: top + 1]) == sorted(knee.fit[: top + 1])
    assert list(knee.fit[top:]) == sorted(knee.fit[top:], reverse=True)
    assert knee.plateau <= max(knee.fit) * (1 + 1e-9)


def test_the_estimate_without_a_bracket_is_the_same() -> None:
    points = sweep(flat_from(20), variation=0.05)
    assert find_knee(points, resamples=0).reached == find_knee(points).reached


# Tested loads of simulated sweeps: doublings, finer steps, and even steps.
GRIDS = (
    (1, 2, 4, 8, 16, 32, 64, 128),
    TRIED,
    (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    (10, 20, 30, 40, 50, 60, 80, 100, 120),
    (4, 8, 16, 32, 64, 128, 256),
)
CURVES = 2_000
SHAPES = ("linear-then-flat", "contention", "collapse", "step", "slow", "rising")


def draw_curve(shape: str, first: float, last: float, random: Generator) -> Curve:
    """A random curve of this shape, over loads from `first` to `last`."""
    start, middle = math.log(first * 1.2), math.log(last / 3)
    match shape:
        case "linear-then-flat":
            return flat_from(math.exp(random.uniform(start, middle)))
        case "contention":
            # The last load is near the peak; its throughput is at least 8 times one client's.
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


def covers(knee: Knee, tried: Sequence[float], truth: Floats) -> bool:
    """Whether the bracket contains the true knee: the lowest tested load within TOLERANCE of the true maximum.

    Without a claim the bracket is open: the knee must be above its lower end.
    """
    first = tried[int(np.argmax(truth >= (1 - TOLERANCE) * truth.max()))]
    return (knee.lower or 0) < first <= (knee.upper or math.inf)


def test_bracket_contains_the_knee_in_90_percent() -> None:
    random = np.random.default_rng(1972)
    covered: dict[str, list[bool]] = {shape: [] for shape in SHAPES}
    gaps: dict[str, list[int]] = {shape: [] for shape in SHAPES}
    claimed: dict[str, list[bool]] = {shape: [] for shape in SHAPES}
    brackets: list[bool] = []
    fell: list[bool] = []
    false_falls: list[bool] = []
    for number in range(CURVES):
        shape = SHAPES[number % len(SHAPES)]
        tried = GRIDS[random.integers(len(GRIDS))]
        curve = draw_curve(shape, tried[0], tried[-1], random)
        variation = random.uniform(0.02, 0.08)
        knee = find_knee(sweep(curve, tried, int(random.integers(3, 11)), variation, number))
        truth = curve(np.array(tried, dtype=float))
        claimed[shape].append(knee.unclaimed is None)
        brackets.append(covers(knee, tried, truth))
        if knee.unclaimed is None and shape != "rising":
            covered[shape].append(covers(knee, tried, truth))
            assert knee.upper is not None
            gaps[shape].append(tried.index(knee.upper) - (tried.index(knee.lower) if knee.lower else -1))
        if shape == "collapse":
            last = int(np.nonzero(truth >= (1 - TOLERANCE) * truth.max())[0][-1])
            fell.append(knee.collapse is not None)
            if knee.collapse is not None:
                covered["collapse"][-1] &= knee.collapse[0] <= tried[last] < knee.collapse[1]
        else:
            false_falls.append(knee.collapse is not None and truth[-1] >= (1 - TOLERANCE) * truth.max())
    for shape in SHAPES:
        if shape != "rising":
            print(
                f"{shape}: claimed {np.mean(claimed[shape]):.1%}, held {np.mean(covered[shape]):.1%} of the claims,"
                f" gaps between tried loads: {np.median(gaps[shape]):.0f} (median)"
            )
            assert np.mean(covered[shape]) >= 0.9
    print(f"rising: claimed {np.mean(claimed['rising']):.1%}")
    print(f"collapse named in {np.mean(fell):.1%}, where there is none in {np.mean(false_falls):.1%}")
    assert np.mean(claimed["rising"]) <= 0.02
    assert np.mean(fell) >= 0.9
    assert np.mean(false_falls) <= 0.05
    every = [is_covered for shape in SHAPES for is_covered in covered[shape]] + [
        not is_covered for is_covered in claimed["rising"]
    ]
    print(f"right in {np.mean(every):.1%} of {len(every)} claims and refusals")
    assert np.mean(every) >= 0.9
    print(f"brackets of all {len(brackets)} curves, open ones too, hold the knee in {np.mean(brackets):.1%}")
    assert np.mean(brackets) >= 0.9
    for shape in ("linear-then-flat", "collapse", "step"):
        assert np.mean(claimed[shape]) >= 0.6


@pytest.mark.parametrize("saturation", [1, 3, 20])
def test_lower_end_of_scattered_repeats_is_reliable(saturation: float) -> None:
    least = min(load for load in TRIED if load >= 0.95 * saturation)
    results = [find_knee(sweep(flat_from(saturation), variation=0.2, seed=seed, blocks=4)) for seed in range(100)]
    scattered = [result for result in results if result.unclaimed == "scatter"]
    assert scattered
    # 2.5 % of all sweeps, with a tolerance for chance.
    assert sum(result.lower is not None and result.lower >= least for result in scattered) <= 5
    assert all(result.reached is not None and result.reached > (result.lower or 0) for result in scattered)


@pytest.mark.parametrize(("over", "unit"), [("clients", "clients"), ("rate", "op/s")])
def test_sentence_on_scattered_repeats_has_only_lower_end(over: Over, unit: str) -> None:
    knee = find_knee(sweep(lambda n: 1000 * n / (16 + n), variation=0.05))
    text = knee_text(knee, over, "redis")
    least = units.load_over(knee.lower or 0, over)
    assert text.startswith(
        f"throughput of redis reaches 95 % of its plateau above {least}; no upper end is named: the repeats"
        f" differ too much to decide whether throughput still rises at 128 {unit} ("
    )
    assert "between" not in text
    bare = knee_text(replace(knee, lower=None), over)
    assert bare.startswith(
        f"no knee is named: the repeats differ too much to decide whether throughput still rises at 128 {unit} ("
    )


def test_collapse_sentence_states_medians() -> None:
    # Two loads share the plateau; with four repeats, the median lies between two figures.
    throughputs = {1.0: 1000, 2.0: 2000, 4.0: 4000, 8.0: 7800, 16.0: 8100, 32.0: 4000, 64.0: 4200}
    scatter = (0.94, 0.97, 1.03, 1.06)
    points = {
        load: {block: most * scatter[(block + at) % 4] for block in range(4)}
        for at, (load, most) in enumerate(throughputs.items())
    }
    knee = find_knee(points)
    assert knee.peak == pytest.approx((16, 8100))
    assert knee.plateau < 8100
    text = knee_text(knee)
    assert text.startswith(
        "throughput is highest at 16 clients, 8,100 op/s; 95 % of its plateau (the adjusted mean of 8 to 16"
        " clients, 7,880"
    )
    # The fit averages the last two loads.
    assert text.endswith("to 4,200 op/s at 64 clients")


def test_uncertain_fall_is_stated() -> None:
    throughputs = {1.0: 603, 2.0: 385, 4.0: 340, 8.0: 335, 16.0: 360, 32.0: 350}
    scatter = (0.8, 1.0, 1.2)
    points = {
        load: {block: most * 1000 * scatter[(block + 2 * at) % 3] for block in range(3)}
        for at, (load, most) in enumerate(throughputs.items())
    }
    text = knee_text(find_knee(points))
    assert text.startswith("throughput levels off at 603,000 op/s; ")
    assert text.endswith("whether throughput falls from 603,000 op/s at 1 client to 350,000 op/s at 32 clients")


def test_median_above_the_plateau_is_stated() -> None:
    throughputs = {1.0: 2000, 2.0: 4900, 4.0: 5000, 8.0: 4800, 16.0: 5500, 32.0: 4700, 64.0: 4900}
    points = {
        load: {block: most * (1 + ((block * 7 + at * 3) % 5 - 2) / 5) for block in range(5)}
        for at, (load, most) in enumerate(throughputs.items())
    }
    text = knee_text(find_knee(points))
    assert (
        "levels off at 4,960 op/s, the adjusted mean of 2 to 64 clients (the highest median is 5,500 op/s, at 16"
        " clients); 95 %" in text
    )
