"""Figures in the judge's sentences."""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.format import units
from loadstone.results.trial_result import Scalar


def number(value: float) -> str:
    """With thousands separators and up to two decimals: 1,803.99, 1,690.2, 125."""
    text = f"{value:,.2f}"
    return text.rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """A share with three digits: 0.12 %."""
    return f"{share * 100:.3g} %"


def bandwidth(bytes_per_second: float) -> str:
    """Megabytes a second, so that figure and limit are in one unit: 1,803.99 MB/s."""
    return f"{number(bytes_per_second / 1e6)} MB/s"


def ratio(value: float) -> str:
    """A ratio with three digits: 4.56, 0.0123, 1,234."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def repeats(n: int) -> str:
    """A number of repeats."""
    return f"{n} repeat" if n == 1 else f"{n} repeats"


def listed(items: Sequence[str], most: int = 3) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def fact(name: str, value: Scalar) -> str:
    """A fact's value; sizes, which may be texts of an engine, scaled."""
    try:
        return units.size(float(value)) if name.endswith("_bytes") else str(value)
    except (ValueError, OverflowError):
        return str(value)
