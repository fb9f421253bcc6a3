"""The axis of percentile curves, and the operations that have a curve; for charts on the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadstone.engine.events import TIMED_STEPS
from loadstone.results.value import PERCENTILES

# The minimum number of percentiles in a curve; tables have no minimum.
POINTS_MIN = 3


def nines(percentile: str) -> float:
    """A percentile's position on the axis: 1 for p90, 2 for p99, 3 for p99.9."""
    return -math.log10(1 - PERCENTILES[percentile])


def list_operations(metrics: Sequence[str]) -> list[str]:
    """The operations of the measured window with percentiles; `all` only if there is no other operation."""
    names: dict[str, None] = {}
    for metric in metrics:
        operation, _, percentile = metric.partition(".")
        if percentile in PERCENTILES and operation.upper() not in TIMED_STEPS and operation != "load":
            names[operation] = None
    return [name for name in names if name != "all"] or list(names)
