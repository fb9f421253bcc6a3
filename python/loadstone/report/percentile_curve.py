"""The axis of a curve of percentiles, and the operations that have one; for the page's charts and the terminal's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadstone.engine.events import TIMED_STEPS
from loadstone.results.value import PERCENTILES

# Fewer percentiles are not a curve; the tables have them.
POINTS_MIN = 3


def nines(percentile: str) -> float:
    """A percentile's place on the axis: p90 1, p99 2, p99.9 3."""
    return -math.log10(1 - PERCENTILES[percentile])


def list_operations(metrics: Sequence[str]) -> list[str]:
    """The operations of the measured window that have percentiles; `all` only where there is nothing else."""
    names: dict[str, None] = {}
    for metric in metrics:
        operation, _, percentile = metric.partition(".")
        if percentile in PERCENTILES and operation.upper() not in TIMED_STEPS and operation != "load":
            names[operation] = None
    return [name for name in names if name != "all"] or list(names)
