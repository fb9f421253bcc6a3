"""The wording of figures, intervals, ratios, metrics and facts, and safe printing of text from files."""

from __future__ import annotations

import math
import re
import sys
from typing import Protocol

from loadstone.format import units

DASH = "–"
# Control characters (ECMA-48) except tabs and line ends, marks that change the direction of text, and characters that
# XML 1.0 does not allow.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]|\r(?!\n)")
# Names of facts that are not clear without their documentation.
FACTS = {
    "how": "how writes are stored",
    "map_bytes": "memory-map size",
    "durability": "writes survive",
    "cache_bytes": "cache",
    "file_system": "file system",
    "device_read_bps": "maximum device read rate",
    "network_bps": "maximum network rate",
}
SURVIVES = {
    "none": "nothing (durability none)",
    "interval": "a process crash, except for the last moments (durability interval)",
    "os": "a process crash, not a power loss (durability os)",
    "device": "a power failure or kernel crash (durability device)",
}


def replace_controls(text: str) -> str:
    """Replaces control characters in text from a file or a command line; they could change a terminal's contents."""
    return CONTROL.sub("\ufffd", text)


LOWER_MIN = 0.01
# For processes, the kernel counts pages, not device requests (`/proc/<pid>/io`).
PROCESS_IO = re.compile(r"^((?:load )?(?:engine|server).*) (read|written)$")
# In a label, "engine" would be read as a storage engine.
ENGINE = re.compile(r"^(load )?engine(?= )")
PAGES = {"read": "read from storage", "written": "pages dirtied"}
# Metrics of the host whose names are not clear without docs/reference/observation.md.
HOST = {
    "cpu.busy": "CPU busy",
    "cpu.iowait": "CPU waiting for I/O",
    "cpu.steal": "CPU time given to other machines",
    "cpu.others": "CPU time used by other processes",
    "cpu.throttled": "CPU time withheld by a limit",
    "cpu.engine": "processors used by the load generator in the window",
    "cpu.engine_share": "CPU time used by the load generator",
    "engine.cpu": "processors used by the load generator",
    "device.written_after": "bytes written to the device after the window",
    "io.others": "disks busy for other processes",
    "io.others_bytes": "bytes read and written by other processes",
}
# If the ends of an interval differ by more than this factor, each end is written with three digits.
WIDE = 10


class IntervalLike(Protocol):
    """A figure with the ends of its interval; both ends are None without an interval."""

    @property
    def value(self) -> float: ...
    @property
    def n(self) -> int: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def last_digit(estimate: IntervalLike) -> int | None:
    """The power of ten of the last digit of an estimate and its interval; None without an interval."""
    if estimate.low is None or estimate.high is None:
        return None
    return units.digit_carried(estimate.value, max(estimate.high - estimate.value, estimate.value - estimate.low))


def estimate_text(estimate: IntervalLike, unit: str, bound: str | None = None) -> str:
    """An estimate with as many digits as its interval justifies, and its bound: `at least 1.20 s`."""
    return units.format_bound(units.format_figure(estimate.value, unit, figure_digit(estimate, unit)), bound)


def figure_digit(estimate: IntervalLike, unit: str) -> int | None:
    """The power of ten of an estimate's last digit; None if the unit determines the digits."""
    last = last_digit(estimate)
    if last is None and unit == "op/s":
        # Without an interval, a figure has no more digits than with a wide interval.
        return units.digit_carried(estimate.value, estimate.value)
    return last


def span_text(low: float, high: float, unit: str, last: int | None = None, dash: str = f" {DASH} ") -> str:
    """An interval as text; a unit that both ends share is written once."""
    left, right = (units.format_figure(end, unit, ends_digit(end, low, high, last)) for end in (low, high))
    return join_ends(left, right, dash)


def ends_digit(end: float, low: float, high: float, last: int | None) -> int | None:
    """The power of ten of the last digit of one end of an interval; in a wide interval, each end has three digits.

    If both ends had the same last digit, the small end would lose its digits, or the large end would show noise.
    """
    return units.digit_carried(end, end) if high > WIDE * low >= 0 else last


def join_ends(left: str, right: str, dash: str = DASH) -> str:
    """Two formatted figures as an interval; a unit that both share is written once."""
    number, _, mark = left.rpartition(" ")
    if mark and right.endswith(f" {mark}"):
        left = number
    return f"{left.removesuffix('×')}{dash}{right}"


def interval_text(estimate: IntervalLike, unit: str) -> str:
    """An estimate's interval, or the reason why it has none."""
    if estimate.low is None or estimate.high is None:
        return f"n={estimate.n}: no interval"
    return span_text(estimate.low, estimate.high, unit, last_digit(estimate))


def ratio_text(estimate: IntervalLike) -> str:
    """A ratio as text: 1.46×."""
    return "no ratio" if math.isnan(estimate.value) else estimate_text(estimate, "×")


def ratio_interval(estimate: IntervalLike, dash: str = DASH) -> str:
    """A ratio's interval without the ×, with the digits of the ratio: 1.27–1.67; empty without an interval."""
    if estimate.low is None or estimate.high is None:
        return ""
    return span_text(estimate.low, estimate.high, "×", last_digit(estimate), dash).removesuffix("×")


def change_text(estimate: IntervalLike, *, bound: bool = False) -> str:
    """A ratio as a change: `1.46×`, or `61 % lower` for a ratio below 1; preceded by `at least` if it is a bound."""
    least = "at least " if bound and not math.isnan(estimate.value) else ""
    if not is_lower(estimate.value):
        return f"{least}{ratio_text(estimate)}"
    return f"{least}{units.short_percent(1 - estimate.value)} lower"


def short_change(ratio: float) -> str:
    """A ratio without an interval as a change, with three digits: `1.46×`, or `61 % lower` for a ratio below 1."""
    # A ratio closer to 1 than this is written as 1.00×.
    return (
        f"{units.short_percent(1 - ratio)} lower" if is_lower(ratio) and ratio < 0.9995 else units.format_ratio(ratio)
    )


def is_lower(ratio: float) -> bool:
    """Whether a ratio is written as `61 % lower`; below LOWER_MIN, every ratio would be 99 or 100 % lower."""
    return LOWER_MIN <= ratio < 1


def change_interval(estimate: IntervalLike, dash: str = DASH) -> str:
    """The interval that follows `change_text`: `1.27–1.67`, or for a ratio below 1 `58–64 %` or `98 % lower to 4.64×`.

    Empty if an end is missing, 0 or infinite.
    """
    low, high = estimate.low, estimate.high
    if low is None or high is None or not (low > 0 and math.isfinite(high)):
        return ""
    if not is_lower(estimate.value):
        return ratio_interval(estimate, dash)
    if high >= 1:
        return f"{short_change(low)} to {units.format_ratio(high)}"
    least = units.short_percent(1 - high, 1 - low).removesuffix(" %")
    if low < LOWER_MIN:
        return f"{least} to over {units.short_percent(1 - LOWER_MIN)}"
    return f"{least}{dash}{units.short_percent(1 - low, 1 - high)}"


def p_text(p: float | None, p_adjusted: float | None) -> str:
    """The reported p as text: the p adjusted by Holm's method, if there is one."""
    p = p if p_adjusted is None else p_adjusted
    if p is None:
        return ""
    return "p<0.001" if p < 0.001 else f"p={p:.3f}"


def metric_name(name: str) -> str:
    """A metric's name in words: `read p99`, `device written per operation`; `all` is omitted, as in objectives."""
    if name == "all.mean":
        return "mean latency"
    if name in HOST:
        return HOST[name]
    name = re.sub(r"^stage(\d+)\.(all\.)?", r"stage \1 ", name)
    # Keeps the decimal point of p99.9.
    text = re.sub(r"\.(?!\d)", " ", name.removeprefix("all.")).replace("_", " ")
    text = PROCESS_IO.sub(lambda match: f"{match[1]} {PAGES[match[2]]}", text)
    return ENGINE.sub(lambda match: f"{'load phase: ' if match[1] else ''}load generator", text)


def fact_name(name: str) -> str:
    """A fact's name in words."""
    return FACTS.get(name, name.replace("_", " "))


def fact_value(name: str, value: object) -> str:
    """A fact's value for human readers; the suffix of the name determines the unit."""
    if name == "durability":
        return SURVIVES.get(str(value), str(value))
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else parse_digits(value)
    if number == 0 and name == "cache_bytes":
        return "only the kernel's page cache"
    if number is not None and abs(number) <= sys.float_info.max:
        if name == "bytes" or name.endswith("_bytes"):
            return units.format_size(number)
        if name.endswith("_bps"):
            return f"{units.format_size(number)}/s"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def parse_digits(value: object) -> int | None:
    """The number in a string of digits, as in facts from an engine; None for any other value."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else None
