"""Stopping: whether the variants of an experiment have been repeated often enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from loadstone.statistics.intervals import summarize_samples

# `narrow`: every interval is narrow enough; `at-most`: the limit was reached first; `at-least`: no width was
# requested.
Reason = Literal["narrow", "at-most", "at-least"]


def stopping_reason(
    samples: Iterable[Sequence[float]],
    at_least: int,
    at_most: int | None = None,
    until: float | Sequence[float] | None = None,
) -> Reason | None:
    """The reason to stop after these repeats, or None to continue.

    `samples` has a sequence for each figure and variant, in block order. `until` limits the full width of the interval
    from `summarize_samples`, as a share of the figure; it is one share, or a share for each sequence. Stopping at the
    first narrow interval would favour intervals that are narrow by chance, so two successive intervals, one block
    apart, must be narrow. The interval after `at_least` repeats is not biased by such a choice, so this interval alone
    is sufficient. Simulated error rates are in docs/concepts/statistics.md.
    """
    variants = [list(sample) for sample in samples]
    fewest = min((len(sample) for sample in variants), default=0)
    most = max((len(sample) for sample in variants), default=0)
    if fewest >= at_least:
        if until is None:
            return "at-least"
        shares = [until] * len(variants) if isinstance(until, int | float) else until
        if all(
            is_narrow(sample, share) and (len(sample) == at_least or is_narrow(sample[:-1], share))
            for sample, share in zip(variants, shares, strict=True)
        ):
            return "narrow"
    return "at-most" if at_most is not None and most >= at_most else None


def is_narrow(samples: Sequence[float], until: float) -> bool:
    """Whether the interval of these repeats is at most `until` wide, as a share of the figure."""
    summary = summarize_samples(samples)
    if summary.low is not None and summary.low == summary.high:
        # Repeats that are all 0 have no relative width.
        return True
    return summary.relative_width is not None and summary.relative_width <= until
