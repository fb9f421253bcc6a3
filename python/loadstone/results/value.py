"""One figure of a trial, and the meanings of metric names.

A metric's name is `throughput`, `<operation>.<statistic>` (`read.p99`, `all.mean`), or a figure of the host
(`device.written_per_operation`, `cpu.steal`); figures of the load phase start with `load.`. A latency is the
headline latency: response time if a rate is set, service time in a closed loop; if both are known, service time is also
stored as `read.service.p99`. Units are base units: op/s, ns, B; a share is a number from 0 to 1.

A percentile covers all operations that were due (loadstone.statistics.percentile), so it may be a lower bound or
infinite.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any, ClassVar, Literal

from loadstone.engine.document import Integer
from loadstone.statistics.percentile import Bound

Direction = Literal["higher", "lower"]

THROUGHPUT = "throughput"
# Pydantic's settings for figures: infinity is invalid.
FINITE = {"allow_inf_nan": False}
# The percentiles stored for each trial, by the name of their statistic: enough to draw a curve.
PERCENTILES = {
    f"p{percent}": float(Decimal(percent) / 100)
    for percent in ("10", "25", "50", "75", "90", "95", "99", "99.5", "99.9", "99.95", "99.99")
}
# Figures for which more is better.
HIGHER_IS_BETTER = frozenset({"throughput", "throughput_share", "yield", "succeeded", "bandwidth", "io_rate"})
# The units of figures whose better direction depends on the name, and the names for which less is better. A share or
# count with another name may be good or bad (hits).
UNDIRECTED_UNITS = frozenset({"share", "operations"})
LOWER_IS_BETTER = frozenset(
    {"errors", "failed", "misses", "not_found", "late", "unanswered", "censored", "missed", "overdue", "refused"}
    | {"retried", "service_unavailable", "timeout", "unsent", "unreached", "carried", "interrupted", "reads", "writes"}
    | {"lost", "lost_allowed", "lost_later", "lost_loaded", "stale", "undecided", "unsettled", "unknown", "maybe"}
    | {"busy", "busy_max", "cpu", "depth", "engine_share", "io", "iowait", "memory", "others", "steal", "throttled"}
    | {"util", "utilisation"}
)
# Figures that only describe a trial are neither better nor worse.
NO_DIRECTION = frozenset(
    {"operations", "due", "count", "runtime", "available_min", "cache", "regions", "deadline", "length", "rows"}
    | {"start", "rate_from", "rate_to", "attempt_rate"}
    | {"line", "median", "noise", "window", "hold", "held", "clock_offset", "clock_drift"}
)
# Figures of a trial with a fault.
OF_FAULTS = frozenset({"outage", "recovered", "depth", "width", "longest_gap"})
# Figures that may be negative: a host's clock minus the lab's, ns, and the growth rate of this difference, ppm.
SIGNED = frozenset({"clock_offset", "clock_drift"})


@dataclass(frozen=True, slots=True)
class Value:
    """A figure: in base units, with the number `n` of samples on which it is based (operations, for a latency)."""

    __pydantic_config__: ClassVar = FINITE

    metric: str
    value: int | float
    unit: str
    n: Integer
    # If the figure is not exact: `at_least` (`value` is a lower bound), or `failed` (`value` cannot be ranked).
    bound: Bound | None = None
    # The resolution of the value: the width of a histogram bucket, or the value of the last digit that a tool printed.
    resolution: float = 0.0

    def prefix_metric(self, name: str) -> Value:
        """The figure with `name`, which states the part of a run, as a prefix of its metric."""
        return replace(self, metric=f"{name}.{self.metric}")

    def to_json(self) -> dict[str, Any]:
        """The figure as in values.jsonl, without default values."""
        entries = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, usual) in entries.items() if value != usual}


def metric_statistic(metric: str) -> str:
    """The last part of a metric's name: `p99.9` for `read.p99.9`, `throughput` for `load.throughput`."""
    head, point, tail = metric.rpartition(".")
    # "p99.9" itself contains a dot.
    if tail.isdigit() and (parts := head.rpartition("."))[2].startswith("p") and parts[2][1:].isdigit():
        return f"{parts[2]}.{tail}"
    return tail if point else metric


def better_direction(metric: str, unit: str = "") -> Direction | None:
    """The better direction; None if there is none.

    If the name is unknown, the unit decides: more of a rate is better, and less of a time or size.
    """
    last = metric_statistic(metric)
    if last in NO_DIRECTION:
        return None
    if last in HIGHER_IS_BETTER or unit.endswith("/s"):
        return "higher"
    return None if unit in UNDIRECTED_UNITS and last not in LOWER_IS_BETTER else "lower"
