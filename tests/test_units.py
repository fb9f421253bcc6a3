"""Figures as people read them."""

from __future__ import annotations

import pytest

from loadstone.format import units
from loadstone.format.units import short_percent


@pytest.mark.parametrize(
    ("numbers", "unit", "expected"),
    [
        ([1_234_000.0, 12_345_600.0], "ns", ["1.234 ms", "12.346 ms"]),
        ([1630.4, 212.3], "B/op", ["1,630 B/op", "212 B/op"]),
        ([16_304.0, 2123.0], "B/op", ["16.304 kB/op", "2.123 kB/op"]),
        ([1770.7, 388.46], "op/s", ["1,770.70 op/s", "388.46 op/s"]),
        ([0.4], "B/op", ["0.4 B/op"]),
        ([0.4, 0.0, 1.234], "B/op", ["0.40 B/op", "0 B/op", "1.23 B/op"]),
        ([0.4, 96.26], "B/op", ["0.4 B/op", "96.3 B/op"]),
        ([7.0, 12.0], "B/op", ["7 B/op", "12 B/op"]),
        ([0.0, 0.0], "B/op", ["0 B/op", "0 B/op"]),
    ],
)
def test_figures_of_one_kind_have_one_unit_and_as_many_decimals(
    numbers: list[float], unit: str, expected: list[str]
) -> None:
    assert units.together(numbers, unit) == expected


@pytest.mark.parametrize("number", [0.00123, 0.04, 0.4, 1.23, 9.99, 10.0, 12.0, 999.0, 1230.0])
def test_a_table_shows_of_few_bytes_an_operation_what_a_report_shows(number: float) -> None:
    (text,) = units.together([number], "B/op")
    shown = units.figure(number, "B/op")
    assert float(text.split()[0]) == pytest.approx(float(shown.split()[0]), rel=0.005)
    assert text.split()[1] == shown.split()[1]


@pytest.mark.parametrize(
    ("share", "beside", "expected"),
    [
        (0.021, None, "2.1 %"),
        (0.0496, None, "5 %"),
        (0.0496, 0.05, "4.96 %"),
        (0.0504, 0.05, "5.04 %"),
        (0.9485, 0.95, "94.8 %"),
        (0.94996, 0.95, "94.996 %"),
        # What is the bound, but for what floats lose, reads like it.
        (0.05, 0.05, "5 %"),
        (1.05 - 1, 0.05, "5 %"),
        (0.21, 0.05, "21 %"),
        (1.2, 0.05, "120 %"),
    ],
)
def test_a_share_beside_a_bound_has_as_many_digits_as_tell_it_apart(
    share: float, beside: float | None, expected: str
) -> None:
    assert short_percent(share, beside) == expected
