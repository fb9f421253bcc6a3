"""Expectations as text, and their exit status."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from loadstone.format import units, wording
from loadstone.judge.expectations import COUNTS
from loadstone.judge.judgement import Expectation
from loadstone.search.objective import parse_expectations

# The exit status if an expectation is false, and the status if none is false but one is undecided.
EXIT_FALSE, EXIT_UNDECIDED = 1, 3
SIGNS = {"true": "✓", "false": "✗", "undecided": "?"}


def exit_status(expectations: Sequence[Expectation]) -> int:
    """1 if any expectation is false, else 3 if any is undecided, else 0."""
    answers = {expectation.holds for expectation in expectations}
    return EXIT_FALSE if False in answers else EXIT_UNDECIDED if None in answers else 0


def describe_figure(expectation: Expectation) -> str:
    """The figure with its interval, `0.90× (0.88–0.93)`; empty if nothing was measured."""
    estimate = expectation.estimate
    if estimate is None or math.isnan(estimate.value):
        return ""
    if expectation.unit in COUNTS and math.isfinite(estimate.value):
        is_errors = parse_expectations(expectation.text)[0][1].is_count
        noun = "failed operation" if is_errors else expectation.unit.removesuffix("s")
        low, high = round(estimate.value if estimate.low is None else estimate.low), round(estimate.value)
        if low == high:
            return f"{units.count_noun(high, noun)} in every trial"
        return f"{low:,} to {units.count_noun(high, noun)} in a trial"
    if math.isinf(estimate.value):
        return "failed" if expectation.bound is None else units.format_bound("", expectation.bound).strip()
    if estimate.low is None or estimate.high is None:
        return f"{wording.estimate_text(estimate, expectation.unit, expectation.bound)}, n={estimate.n}"
    if math.isfinite(estimate.low) and math.isfinite(estimate.high):
        ends = wording.interval_text(estimate, expectation.unit)
    else:
        # Infinite ends of the interval do not affect the number of digits of the figure.
        ends = describe_open_interval(estimate.low, estimate.high, expectation.unit)
        estimate = replace(estimate, low=None, high=None)
    return f"{wording.estimate_text(estimate, expectation.unit, expectation.bound)} ({ends}), n={estimate.n}"


def describe_open_interval(low: float, high: float, unit: str) -> str:
    """An interval with an infinite end as text."""
    if 0 < low < math.inf:
        return f"at least {units.format_figure(low, unit)}"
    return f"at most {units.format_figure(high, unit)}" if math.isfinite(high) else "no upper end"


def describe(expectation: Expectation) -> str:
    """The condition with its figure: `throughput >= 0.95x: false for new ÷ old: 0.90× (0.88–0.93), n=6`."""
    of = f" for {expectation.of}" if expectation.of else ""
    parts = [f"{expectation.answer}{of}", describe_figure(expectation), expectation.why]
    return f"{expectation.text}: " + "; ".join(part for part in parts if part)


def count(expectations: Sequence[Expectation]) -> str:
    """The numbers of true, false and undecided expectations as text."""
    counts = Counter(expectation.answer for expectation in expectations)
    return ", ".join(f"{counts[name]} {name}" for name in SIGNS if counts[name])
