"""The rule that ends the repeats; test_statistics_simulations.py tests its effect on coverage."""

from __future__ import annotations

import pytest

from loadstone.statistics.intervals import summarize_samples
from loadstone.statistics.stopping import is_narrow, stopping_reason

CALM = [100.0, 101, 99, 100.5, 99.5, 100, 100.2, 99.8]
WILD = [100.0, 150, 60, 120, 80, 100, 140, 70]


def test_minimum_of_repeats_suffices_without_a_width() -> None:
    assert stopping_reason([CALM[:5], WILD[:6]], at_least=6) is None
    assert stopping_reason([CALM[:6], WILD[:6]], at_least=6) == "at-least"


def test_every_variant_has_to_be_narrow() -> None:
    assert summarize_samples(CALM[:6]).relative_width == pytest.approx(0.02)
    assert stopping_reason([CALM[:6], CALM[:6]], 6, 20, 0.02) == "narrow"
    assert stopping_reason([CALM[:6], CALM[:6]], 6, 20, 0.0199) is None
    assert stopping_reason([CALM[:6], WILD[:6]], 6, 20, 0.02) is None


def test_the_limit_ends_what_stays_wide() -> None:
    assert stopping_reason([CALM, WILD], 6, 9, 0.02) is None
    assert stopping_reason([CALM, WILD], 6, 8, 0.02) == "at-most"
    # A variant whose trials fail must not prolong the other variants forever.
    assert stopping_reason([CALM, []], 6, 8, 0.02) == "at-most"
    assert stopping_reason([CALM, WILD], 6, None, 0.02) is None
    assert stopping_reason([], 6, 8, 0.02) is None


def test_narrow_interval_must_persist_for_one_block() -> None:
    # Eight repeats whose interval runs from the minimum to the maximum; with the ninth it is one rank narrower.
    samples = [100.0, 101, 99, 120, 100, 100, 101, 100, 99, 100]
    assert [is_narrow(samples[:n], 0.03) for n in (6, 7, 8, 9, 10)] == [False, False, False, True, True]
    assert [stopping_reason([samples[:n]], 6, 20, 0.03) for n in (8, 9, 10)] == [None, None, "narrow"]
    # The first evaluation is not a choice among evaluations.
    assert stopping_reason([samples[:9]], 9, 20, 0.03) == "narrow"


def test_too_few_repeats_are_never_narrow() -> None:
    assert stopping_reason([CALM[:3]], at_least=3, at_most=10, until=10.0) is None
    assert stopping_reason([CALM[:3]], at_least=3) == "at-least"
    assert stopping_reason([CALM[:3]], at_least=3, at_most=3, until=0.01) == "at-most"


def test_zero_figures_have_the_narrowest_interval() -> None:
    assert stopping_reason([[0.0] * 6], 6, 20, 0.01) == "narrow"
    # A median of 0 has no relative width.
    assert stopping_reason([[0.0, 0, 0, 0, 1, 2]], 6, 20, 0.5) is None
