"""Figures are printed in the right form."""

from __future__ import annotations

import pytest

from loadstone.format import units, wording
from loadstone.format.units import short_percent
from loadstone.statistics.estimate import Estimate


@pytest.mark.parametrize(
    ("numbers", "unit", "expected"),
    [
        ([1_234_000.0, 12_345_600.0], "ns", ["1.234 ms", "12.346 ms"]),
        ([1630.4, 212.3], "B/op", ["1,630 B/op", "212 B/op"]),
        ([16_304.0, 2123.0], "B/op", ["16.304 kB/op", "2.123 kB/op"]),
        ([1770.7, 388.46], "op/s", ["1,770.70 op/s", "388.46 op/s"]),
        ([0.4], "B/op", ["0.4 B/op"]),
        ([0.4, 0.0, 1.234], "B/op", ["0.40 B/op", "none", "1.23 B/op"]),
        ([0.4, 96.26], "B/op", ["0.4 B/op", "96.3 B/op"]),
        ([7.0, 12.0], "B/op", ["7 B/op", "12 B/op"]),
        ([0.0, 0.05], "B/op", ["none", "none"]),
    ],
)
def test_figures_of_one_metric_share_unit_and_decimals(numbers: list[float], unit: str, expected: list[str]) -> None:
    assert units.format_alike(numbers, unit) == expected


@pytest.mark.parametrize(
    ("value", "side", "unit", "expected"),
    [
        (48_285.54, 16_369.0, "op/s", "48,300 op/s"),
        (1_158_832.51, 300_000.0, "op/s", "1,160,000 op/s"),
        (1_158_832.51, 1_200.0, "op/s", "1,159,000 op/s"),
        (32_655.0, 11_000.0, "ns", "32.7 µs"),
        (32_655.0, 40.0, "ns", "32.66 µs"),
        (0.338, 0.1, "×", "0.338×"),
        (1.3329, 0.004, "×", "1.333×"),
        (0.0215, 0.004, "share", "2.15 %"),
        # An interval of zero width has no more than the usual three digits.
        (30_000_000.0, 0.0, "ns", "30.0 ms"),
        (4.0, 1e-9, "ns", "4.00000 ns"),
        (0.4, 0.1, "B/op", "0.400 B/op"),
        (0.0, 1.0, "ns", "0 s"),
    ],
)
def test_figure_has_the_digits_of_its_interval(value: float, side: float, unit: str, expected: str) -> None:
    assert units.format_figure(value, unit, units.digit_carried(value, side)) == expected


def test_figure_interval_and_table_share_the_last_digit() -> None:
    estimate = Estimate(32_655.0, 6, 21_400.0, 1_044_000.0)
    assert wording.estimate_text(estimate, "ns") == "32.7 µs"
    assert wording.interval_text(estimate, "ns") == "21.4 µs – 1.04 ms"
    assert units.format_alike([32_655.0, 5165.0], "ns", [wording.last_digit(estimate), None]) == ["32.7 µs", "5.165 µs"]


def test_large_percentages_have_no_exponent() -> None:
    assert [units.format_percent(share) for share in (0.0012, 0.05, 1, 18.4)] == ["0.12 %", "5 %", "100 %", "1,840 %"]


@pytest.mark.parametrize("number", [0.4, 1.23, 9.99, 10.0, 12.0, 999.0, 1230.0])
def test_table_and_report_show_equal_small_bytes(number: float) -> None:
    (text,) = units.format_alike([number], "B/op")
    output = units.format_figure(number, "B/op")
    assert float(text.split()[0]) == pytest.approx(float(output.split()[0]), rel=0.005)
    assert text.split()[1] == output.split()[1]


@pytest.mark.parametrize(
    ("share", "beside", "expected"),
    [
        (0.021, None, "2.1 %"),
        (0.0496, None, "5 %"),
        (0.0496, 0.05, "4.96 %"),
        (0.0504, 0.05, "5.04 %"),
        (0.9485, 0.95, "94.8 %"),
        (0.94996, 0.95, "94.996 %"),
        # A value that equals the bound within float precision is printed like the bound.
        (0.05, 0.05, "5 %"),
        (1.05 - 1, 0.05, "5 %"),
        (0.21, 0.05, "21 %"),
        (1.2, 0.05, "120 %"),
    ],
)
def test_share_next_to_a_bound_has_distinguishing_digits(share: float, beside: float | None, expected: str) -> None:
    assert short_percent(share, beside) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(4096, "4.10 kB"), ("4096", "4.10 kB"), (10**400, str(10**400)), (float("inf"), "inf")]
)
def test_unrepresentable_size_is_written_unchanged(value: object, expected: str) -> None:
    assert wording.fact_value("memory_bytes", value) == expected
