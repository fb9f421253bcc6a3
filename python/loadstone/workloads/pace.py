"""The intervals of a window, and the pacing of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.experiment.plan.stages import rate_pieces

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Measure
    from loadstone.experiment.plan.plan import Variant

INTERVAL_MS = 1000
# Short windows have shorter intervals, since a time series needs at least this many intervals.
INTERVALS_MIN = 20
INTERVAL_MS_MIN = 100


def counting(measure: Measure) -> dict[str, object]:
    """The keys of a spec that govern counting in a window of fixed length: the interval and the deadline."""
    assert measure.duration is not None
    interval = measure.interval
    length = interval_ms(measure.duration) if interval is None else max(round(interval * 1e3), 1)
    deadline = {} if measure.deadline is None else {"deadline_ms": measure.deadline * 1e3}
    return {"interval_ms": length, **deadline}


def interval_ms(seconds: float) -> int:
    """The length of the intervals of a window, in ms."""
    return int(max(INTERVAL_MS_MIN, min(INTERVAL_MS, round(1000 * seconds / INTERVALS_MIN, -2))))


def pace(variant: Variant, measure: Measure, default: dict[str, object]) -> dict[str, object]:
    """The pacing of operations: the experiment's rate or stages, or else the workload's default."""
    pieces = [{"from": variant.rate, "to": variant.rate, "seconds": 1}] if variant.rate is not None else []
    if variant.stages:
        pieces = rate_pieces(variant.stages, measure.warmup or 0.0)
    if pieces:
        return {"mode": "open", "rate": pieces, "arrival": variant.arrival}
    return default if default["mode"] == "closed" else {**default, "arrival": variant.arrival}
