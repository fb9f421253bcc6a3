"""Expectations as text, and their exit status."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from loadstone.format import units, wording
from loadstone.judge.expectations import COUNTS
from loadstone.judge.judgement import Expectation
from loadstone.search.objective import parse_expectations

# The exit statuses if any expectation is false, or else if any is undecided, as it has not passed.
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
        return f"at most {units.count_noun(round(estimate.value), noun)} in a trial"
    if math.isinf(estimate.value):
        return "failed"
    text = (
        wording.estimate_text(estimate, expectation.unit)
        if is_finite(expectation)
        else units.format_figure(estimate.value, expectation.unit)
    )
    if estimate.low is None or estimate.high is None:
        return f"{text}, n={estimate.n}"
    ends = wording.interval_text(estimate, expectation.unit) if is_finite(expectation) else "one end is unknown"
    return f"{text} ({ends}), n={estimate.n}"


def is_finite(expectation: Expectation) -> bool:
    """Whether the figure and the ends of its interval are finite."""
    estimate = expectation.estimate
    return estimate is not None and all(
        math.isfinite(end or 0.0) for end in (estimate.value, estimate.low, estimate.high)
    )


def describe(expectation: Expectation) -> str:
    """The condition with its figure: `throughput >= 0.95x: false for new ÷ old: 0.90× (0.88–0.93), n=6`."""
    of = f" for {expectation.of}" if expectation.of else ""
    parts = [f"{expectation.answer}{of}", describe_figure(expectation), expectation.why]
    return f"{expectation.text}: " + "; ".join(part for part in parts if part)


def count(expectations: Sequence[Expectation]) -> str:
    """The numbers of true, false and undecided expectations as text."""
    counts = Counter(expectation.answer for expectation in expectations)
    return ", ".join(f"{counts[name]} {name}" for name in SIGNS if counts[name])
