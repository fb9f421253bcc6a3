"""How figures, intervals, ratios and metrics are written."""

from __future__ import annotations

import re

from loadstone.format import units
from loadstone.judge.judgement import Comparison
from loadstone.statistics.estimate import Estimate

DASH = "–"
# Facts whose names say less than they should.
FACTS = {
    "how": "how",
    "durability": "writes survive",
    "cache_bytes": "cache",
    "file_system": "file system",
    "device_read_bps": "device reads at most",
    "network_bps": "network carries at most",
}
SURVIVES = {
    "none": "nothing (durability none)",
    "os": "the end of the process (durability os)",
    "device": "the end of the machine (durability device)",
}


def span(low: float, high: float, unit: str) -> str:
    """An interval; a unit that both ends share is written once."""
    left, right = units.figure(low, unit), units.figure(high, unit)
    number, _, mark = left.rpartition(" ")
    if mark and right.endswith(f" {mark}"):
        left = number
    return f"{left} {DASH} {right}"


def interval(estimate: Estimate, unit: str) -> str:
    """An estimate's interval, or why there is none."""
    if estimate.low is None or estimate.high is None:
        return f"n={estimate.n}: no interval"
    return span(estimate.low, estimate.high, unit)


def half_width(estimate: Estimate) -> str:
    """The larger side of an interval as a share of the figure, in benchstat's manner: ± 2 %."""
    side = estimate.larger_side
    return "" if side is None else f"± {side * 100:.{0 if side >= 0.0995 else 1}f} %"


def ratio(estimate: Estimate) -> tuple[str, str]:
    """A ratio and its interval; the latter empty where there is none."""
    if estimate.low is None or estimate.high is None:
        return units.times(estimate.value), ""
    low = units.times(estimate.low).removesuffix("×")
    return units.times(estimate.value), f"{low} {DASH} {units.times(estimate.high)}"


def chance(comparison: Comparison) -> str:
    """The p that counts: Holm's where there is one."""
    p = comparison.p if comparison.p_adjusted is None else comparison.p_adjusted
    if p is None:
        return ""
    return "p<0.001" if p < 0.001 else f"p={p:.3f}"


def metric(name: str) -> str:
    """A metric's name in words: `read p99`, `device written per operation`."""
    # The point of p99.9 stays.
    return re.sub(r"\.(?!\d)", " ", name).replace("_", " ")


def fact(name: str) -> str:
    """A fact's name in words."""
    return FACTS.get(name, name.replace("_", " "))


def fact_value(name: str, value: object) -> str:
    """A fact as people read it; how long names end tells their unit."""
    if name == "durability":
        return SURVIVES.get(str(value), str(value))
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else digits(value)
    if number == 0 and name == "cache_bytes":
        return "none but the kernel's"
    if number is not None:
        if name == "bytes" or name.endswith("_bytes"):
            return units.size(number)
        if name.endswith("_bps"):
            return f"{units.size(number)}/s"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def digits(value: object) -> int | None:
    """A text that is a whole number, as facts from an engine are."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else None
