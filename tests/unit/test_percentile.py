"""The percentile rule: failures are infinitely slow, and unanswered operations have a lower bound."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from loadstone.engine.histogram import Histogram
from loadstone.importers.run import build_histogram
from loadstone.statistics.percentile import BOUNDS, Bound, Percentile, Population, weakest_bound


def population(well: int, failed: int = 0, censored: int = 0, bound: int = 5_000) -> Population:
    """Latencies of 1 to `well`, failures, and operations without an answer after `bound`."""
    return Population(
        build_histogram((value, 1) for value in range(1, well + 1)),
        failed,
        Histogram(counts=Counter({bound_index(bound): censored} if censored else {})),
    )


def bound_index(value: int) -> int:
    """The bucket of a value."""
    (index,) = build_histogram([(value, 1)]).counts
    return index


def percentile(of: Population, share: float) -> tuple[int, Bound | None]:
    """A percentile of a population, and its bound."""
    (percentiles,) = of.read_percentiles([share])
    return percentiles.value, percentiles.bound


def test_without_failures_it_is_the_histograms_own_quantile() -> None:
    of = population(1_000)
    shares = [0.1, 0.5, 0.999, 1.0]
    assert [(entry.value, entry.bound) for entry in of.read_percentiles(shares)] == [
        (value, None) for value in map(of.well.value_at_quantile, shares)
    ]


@pytest.mark.parametrize(
    ("failed", "share", "expected"),
    [
        # With 1,000 successes and ten failures, the p99 is the 1,000th operation, the last success.
        (10, 0.99, (1_000, None)),
        # With eleven failures it is the 1,001st, whose latency is unknown.
        (11, 0.99, (1_000, "failed")),
        (11, 0.5, (506, None)),
        (11, 1.0, (1_000, "failed")),
    ],
)
def test_failures_are_beyond_every_number(failed: int, share: float, expected: tuple[int, Bound | None]) -> None:
    assert percentile(population(1_000, failed), share) == expected


@pytest.mark.parametrize(
    ("censored", "bound", "share", "expected"),
    [
        # All unanswered operations are above the rank, so their latencies do not matter.
        (10, 5_000, 0.99, (1_000, None)),
        (11, 5_000, 0.99, (5_003, "at_least")),
        # A bound below the rank's value may hide any latency.
        (100, 5, 0.5, (450, "at_least")),
        (100, 5, 1.0, (1_000, "at_least")),
    ],
)
def test_unended_operations_count_at_bound_and_infinity(
    censored: int, bound: int, share: float, expected: tuple[int, Bound | None]
) -> None:
    assert percentile(population(1_000, censored=censored, bound=bound), share) == expected


def test_rank_among_failures_is_failed_despite_censoring() -> None:
    of = population(900, failed=50, censored=50)
    assert [percentile(of, share)[1] for share in (0.9, 0.901, 0.95, 0.951, 1.0)] == [
        None,
        "at_least",
        "at_least",
        "failed",
        "failed",
    ]


def test_percentiles_never_fall() -> None:
    of = population(500, failed=20, censored=300, bound=77)
    values = [percentile.value for percentile in of.read_percentiles([share / 1000 for share in range(1, 1001)])]
    assert values == sorted(values)


def test_only_failures_have_no_latency_at_all() -> None:
    assert percentile(Population(failed=3), 0.5) == (0, "failed")
    with pytest.raises(ValueError, match="without operations"):
        Population().read_percentiles([0.5])


def test_decimal_percentile_has_its_exact_rank() -> None:
    for count in (1_000, 9_999):
        for share in (0.999, 0.9995):
            (percentiles,) = population(count).read_percentiles([share])
            assert percentiles == Percentile(population(count).well.value_at_quantile(float(Fraction(str(share)))))


def test_populations_add_up() -> None:
    whole, part = population(1_000, 3, 4), population(1_000, 3, 4)
    whole.add_population(part)
    assert (whole.count, whole.failed, whole.censored.count) == (2_014, 6, 8)
    assert part.count == 1_007


@pytest.mark.parametrize(
    ("bounds", "expected"), [([], None), ([None, "at_least"], "at_least"), ([*BOUNDS, None], "failed")]
)
def test_several_figures_are_as_certain_as_the_worst(bounds: list[Bound | None], expected: Bound | None) -> None:
    assert weakest_bound(bounds) == expected
