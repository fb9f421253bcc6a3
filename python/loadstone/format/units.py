"""Figures as text. Internally, all figures are in ns, bytes and operations; only this module scales them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal

DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
LENGTHS = ((86400, "days"), (3600, "h"), (60, "min"), (1, "s"))
SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
SCALED = {"ns": DURATIONS, "B": SIZES, "B/s": SIZES, "B/op": SIZES}
# Fewer bytes per operation than this come from occasional writes by the file system, not from operations.
TRACE = 0.1
LEVELS = "▁▂▃▄▅▆▇█"
# The minimum and the maximum number of digits of a figure with an interval.
DIGITS_MIN, DIGITS_MAX = 3, 6
# The prefixes of lower and upper bounds.
BOUNDS = {"at_least": "at least", "at_most": "at most"}
# The space after the counted noun in a phrase.
PHRASE = re.compile(r" (?=of |outside )")
# The digit counts to try until a share and its limit look different.
SHARE_DIGITS = range(2, 8)


def format_count(number: float) -> str:
    """A whole number: 1,234,567."""
    return f"{number:,.0f}"


def format_rate(operations_per_second: float) -> str:
    """A rate: 123,456 op/s; rates below 100 have at most three digits."""
    number = format_count(operations_per_second) if operations_per_second >= 100 else f"{operations_per_second:.3g}"
    return f"{number} op/s"


def exact_rate(operations_per_second: float) -> str:
    """A single measured rate; below 10,000 with two decimals, unless both are 0: 1,770.70, 7, 152,416 op/s."""
    decimals = 2 if abs(operations_per_second) < 10 ** (DIGITS_MAX - 2) else 0
    return f"{operations_per_second:,.{decimals}f}".removesuffix(".00") + " op/s"


def format_share(number: float) -> str:
    """A share in percent with three digits, but at most two decimals: 21.5 %, 2.15 %, 0.02 %."""
    percent = number * 100
    digits = 0 if abs(percent) >= 99.95 or percent == 0 else 1 if abs(percent) >= 9.995 else 2
    return f"{percent:.{digits}f} %"


def format_percent(number: float) -> str:
    """A share with at most three digits: 0.12 %, 5 %."""
    return f"{format_number(number * 100)} %"


def short_percent(number: float, limit: float | None = None) -> str:
    """A share with two digits: 2.1 %, 0.34 %; with more digits if it would round to the bound `limit`: 94.8 %."""
    if abs(number) >= 0.995:
        return f"{number * 100:,.0f} %"
    written = [(f"{number * 100:.{n}g}", "" if limit is None else f"{limit * 100:.{n}g}") for n in SHARE_DIGITS]
    return f"{next((text for text, other in written if limit is not None and text != other), written[0][0])} %"


def format_load(number: float) -> str:
    """A load without its unit: 37, 12,300."""
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.6g}"


def load_over(number: float, over: str) -> str:
    """A load with its unit: 1 client, 37 clients, 12,300 op/s."""
    return f"{format_load(number)} {'op/s' if over == 'rate' else 'client' if number == 1 else 'clients'}"


def format_bandwidth(bytes_per_second: float) -> str:
    """A bandwidth in megabytes per second, so that figures and limits have the same unit: 1,803.99 MB/s."""
    return f"{bytes_per_second / 1e6:,.2f}".rstrip("0").rstrip(".") + " MB/s"


def format_duration(ns: float) -> str:
    """A duration with three digits: 1.23 µs. Zero is `0 s`, because `0 ns` would look precise."""
    return scale_number(ns, DURATIONS) if ns else "0 s"


def format_size(number_of_bytes: float) -> str:
    """A number of bytes with three digits, in powers of 1,000: 1.23 GB."""
    return scale_number(number_of_bytes, SIZES)


def digit_carried(number: float, side: float | None) -> int | None:
    """The power of ten of a figure's last digit: the place of the first digit of `side`, the interval's larger half.

    The figure has at least DIGITS_MIN and at most DIGITS_MAX digits. None without an interval, or if the number is 0 or
    either number is not finite.
    """
    if side is None or not number or not math.isfinite(number) or not math.isfinite(side):
        return None
    first = math.floor(math.log10(abs(number)))
    carried = first - math.floor(math.log10(side)) + 1 if side > 0 else DIGITS_MIN
    return first + 1 - min(max(carried, DIGITS_MIN), DIGITS_MAX)


def format_figure(number: float, unit: str, last: int | None = None) -> str:
    """Any figure in its base unit, formatted for human readers: op/s unscaled, ns and B scaled, shares in percent.

    `last` is the power of ten of the last digit, from `digit_carried`.
    """
    if unit == "B/op" and abs(number) < TRACE:
        return "none"
    if last is not None:
        return to_digit(number, unit, last)
    match unit:
        case "op/s":
            return exact_rate(number)
        case "ns":
            return format_duration(number)
        case "B/op" if 0 < abs(number) < 10:
            return f"{number:.3g} B/op"
        case "B" | "B/s" | "B/op":
            return f"{format_size(number)}{unit[1:]}"
        case "share":
            return format_share(number)
        case "operations" | "values":
            return format_count(number)
        case "×":
            return format_ratio(number)
    return f"{format_number(number)} {unit}".strip()


def to_digit(number: float, unit: str, last: int) -> str:
    """A figure in its unit, rounded to a multiple of 10 to the power of `last`."""
    factor, name = 1.0, unit
    if unit in SCALED and (unit != "B/op" or abs(number) >= 10):
        factor, name = next((scale for scale in SCALED[unit] if abs(number) >= scale[0] * 0.9995), SCALED[unit][-1])
        name += unit[1:] if unit.startswith("B/") else ""
    elif unit == "share":
        factor, name = 0.01, "%"
    return digits_of(number, factor, name, last)


def digits_of(number: float, factor: float, name: str, last: int) -> str:
    """A figure as a multiple of `factor`, a power of ten whose unit is `name`."""
    decimals = round(math.log10(factor)) - last
    space = "" if name in ("", "×") else " "
    return f"{round(number / factor, decimals):,.{max(decimals, 0)}f}{space}{name}"


def format_bound(text: str, bound: str | None) -> str:
    """A formatted figure with its bound: `at least 1.20 s`; only `failed` or `unanswered` for an infinite figure."""
    return bound if bound in ("failed", "unanswered") else f"{BOUNDS[bound]} {text}" if bound else text


def format_number(number: float) -> str:
    """A number without a unit: whole from 1,000, otherwise with at most three digits: 1,234, 12.3, 0.00123."""
    return f"{number:,.0f}" if abs(number) >= 999.5 or number == 0 else f"{number:.3g}"


def format_ratio(ratio: float) -> str:
    """A ratio with three digits: 4.56×, 0.219×; `no ratio` if it is not a number."""
    if math.isnan(ratio):
        return "no ratio"
    digits = next(digits for limit, digits in ((99.95, 0), (9.995, 1), (0.9995, 2), (0, 3)) if abs(ratio) >= limit)
    return f"{ratio:,.{digits}f}×"


def count_noun(number: float, noun: str, plural: str = "") -> str:
    """A count with its noun: 1 trial, 36 trials, 2 operations of the load; `plural` is an irregular plural."""
    count, head = f"{number:,.0f}", PHRASE.split(noun)[0]
    return f"{count} {noun if count == '1' else plural or f'{head}s{noun.removeprefix(head)}'}"


def list_items(items: Sequence[str], most: int = 3) -> str:
    """The first items as text, with the number of further items."""
    listed = ", ".join(items[:most])
    return f"{listed} and {len(items) - most} more" if len(items) > most else listed


def join_names(names: Sequence[str], last: str = "and") -> str:
    """The names as an enumeration: `a`, `a and b`, `a, b and c`; `last` is the word before the last name."""
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def format_alike(numbers: Sequence[float], unit: str, last: Sequence[int | None] = ()) -> list[str]:
    """Figures with the same unit and number of decimals; the smallest nonzero figure sets the unit.

    The smallest figure has four digits, or no decimals in ns and bytes. Figures with an interval have the digits that
    `last` gives, as in `format_figure`.
    """
    last = last or [None] * len(numbers)
    least = min((abs(number) for number in numbers if number), default=0.0)
    if unit not in SCALED or not least:
        return [format_figure(number, unit, digit) for number, digit in zip(numbers, last, strict=True)]
    factor, name = next((scale for scale in SCALED[unit] if least >= scale[0]), SCALED[unit][-1])
    digits = 0 if factor == 1 else 3 if least < 10 * factor else 2 if least < 100 * factor else 1
    if unit == "B/op" and least < 10:
        # As in `format_figure`, fractions of a byte are shown if operations move few bytes.
        digits = max(count_decimals(number) for number in numbers if 0 < abs(number) < 10)
    name += unit[1:] if unit.startswith("B/") else ""
    return [
        "none"
        if unit == "B/op" and abs(number) < TRACE
        else f"{number / factor:,.{digits if number else 0}f} {name}"
        if digit is None
        else digits_of(number, factor, name, digit)
        for number, digit in zip(numbers, last, strict=True)
    ]


def count_decimals(number: float) -> int:
    """The number of decimals of a number that is rounded to three digits."""
    exponent = Decimal(f"{number:.3g}").as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def scale_number(number: float, units: Sequence[tuple[float, str]]) -> str:
    """A number with three digits, in the largest unit that it reaches."""
    # 999.7 would be printed as 1000 with three digits.
    factor, unit = next((scale for scale in units if number >= scale[0] * 0.9995), units[-1])
    value = number / factor
    digits = 0 if value >= 99.95 or factor == 1 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f} {unit}"


def rough_span(low: float, high: float) -> str:
    """A forecast in seconds as text: `about 2 min`, `2 to 5 min`, `8 min to 13 h`."""
    (first, unit), (last, last_unit) = (rough_duration(seconds) for seconds in (low, high))
    if unit != last_unit:
        return f"{first} {unit} to {last} {last_unit}"
    return f"about {last} {unit}" if first == last else f"{first} to {last} {unit}"


def rough_duration(seconds: float) -> tuple[str, str]:
    """A duration in the largest unit that it contains at least twice."""
    length, unit = next((scale for scale in LENGTHS if seconds >= 2 * scale[0]), LENGTHS[-1])
    return f"{seconds / length:.0f}" if seconds >= 2 * length else f"{seconds / length:.1g}", unit


def format_clock(seconds: float) -> str:
    """A remaining time: 0:07, 12:34, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def draw_sparkline(numbers: Sequence[float], width: int) -> str:
    """A chart with one block per number; the block's height is the number's share of the maximum.

    If there are more than `width` numbers, each block shows a mean.
    """
    bucket_size = max(-(-len(numbers) // width), 1)
    means = [
        sum(part) / len(part) for part in (numbers[at : at + bucket_size] for at in range(0, len(numbers), bucket_size))
    ]
    top = max(means, default=0) or 1
    return "".join(LEVELS[round(mean / top * (len(LEVELS) - 1))] for mean in means)
