"""One figure of a trial, and what the names of figures mean.

A metric's name is `throughput`, `<operation>.<statistic>` (`read.p99`, `all.mean`), or one of the host
(`device.written_per_operation`, `cpu.steal`); figures of the load phase start with `load.`. A latency is the
headline one: response time with a rate set, service time in a closed loop; where both are known, the other is
added as `read.service.p99`. Units are base units: op/s, ns, B; a share is a number from 0 to 1.

A percentile covers everything that was due (loadstone.statistics.percentile), so it may be a lower bound, or beyond
every number.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any, ClassVar, Literal

from loadstone.statistics.percentile import Bound

Direction = Literal["higher", "lower"]

THROUGHPUT = "throughput"
# How pydantic reads figures: infinity is not valid.
FINITE = {"allow_inf_nan": False}
# The percentiles kept for each trial, by the name of their statistic: enough to draw a curve.
PERCENTILES = {
    f"p{percent}": float(Decimal(percent) / 100)
    for percent in ("10", "25", "50", "75", "90", "95", "99", "99.5", "99.9", "99.95", "99.99")
}
# Figures for which more is better; for all others less is.
HIGHER_IS_BETTER = frozenset({"throughput", "throughput_share", "yield", "succeeded", "bandwidth", "io_rate"})
# Figures that only describe a trial are neither better nor worse.
NO_DIRECTION = frozenset(
    {"operations", "due", "count", "runtime", "available_min", "cache", "regions", "deadline", "length"}
    | {"start", "rate_from", "rate_to"}
    | {"line", "median", "noise", "window", "hold", "held", "clock_offset", "clock_drift"}
)
# Figures that may be negative: a host's clock minus the lab's, ns, and its growth, ppm.
SIGNED = frozenset({"clock_offset", "clock_drift"})


@dataclass(frozen=True, slots=True)
class Value:
    """A figure: in base units, with the number `n` of samples that it rests on (operations, for a latency)."""

    __pydantic_config__: ClassVar = FINITE

    metric: str
    value: int | float
    unit: str
    n: int
    # Where the figure is not exact: `at_least` it, or `failed`, and then `value` cannot be ranked.
    bound: Bound | None = None
    # The step in which it was read: the width of its histogram's bucket, or the last digit printed by a tool.
    resolution: float = 0.0

    def below(self, name: str) -> Value:
        """The same figure of a part of the whole."""
        return replace(self, metric=f"{name}.{self.metric}")

    def to_json(self) -> dict[str, Any]:
        """The figure in the form of values.jsonl, without what is as usual."""
        found = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        return {name: value for name, (value, usual) in found.items() if value != usual}


def statistic(metric: str) -> str:
    """The last part of a metric's name: `p99.9` of `read.p99.9`, `throughput` of `load.throughput`."""
    head, point, tail = metric.rpartition(".")
    # "p99.9" itself contains a point.
    if tail.isdigit() and (parts := head.rpartition("."))[2].startswith("p") and parts[2][1:].isdigit():
        return f"{parts[2]}.{tail}"
    return tail if point else metric


def direction(metric: str, unit: str = "") -> Direction | None:
    """Which direction is better; None where neither is. Of a rate whose name is not known, more is better."""
    last = statistic(metric)
    if last in NO_DIRECTION:
        return None
    return "higher" if last in HIGHER_IS_BETTER or unit.endswith("/s") else "lower"
