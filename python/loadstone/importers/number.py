"""Numbers as other tools print them: in the formats of Java, Python and Go, and in the tool's locale."""

from __future__ import annotations

import math
import re

PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# Results of a division by zero in various tools; U+FFFD is Java 8's NaN with a broken encoding.
NOT_A_NUMBER = frozenset({"nan", "-nan", "∞", "-∞", "\ufffd", "inf", "-inf", "+inf", "infinity", "-infinity", "-", ""})
# The characters that may separate digits: full stop, comma, and the apostrophes and spaces that locales use.
SEPARATORS = re.compile(r"[.,'\u2019\u00a0\u202f\s]")


def parse_number(text: str) -> float | None:
    """Parses a number with a decimal point; None for NaN or infinity. Raises ValueError for any other text."""
    text = text.strip()
    if PLAIN.fullmatch(text):
        number = float(text)
        # 1e999 overflows a float.
        return number if math.isfinite(number) else None
    if text.lower() in NOT_A_NUMBER:
        return None
    raise ValueError(f"not a number: {text[:40]!r}")


def number_or_text(text: str) -> int | float | str:
    """The number that `text` represents, or else `text` itself."""
    number = float(text) if PLAIN.fullmatch(text) else math.inf
    if not math.isfinite(number):
        return text
    return int(text) if text.lstrip("+-").isdigit() else number


def parse_decimal_comma(text: str) -> float | None:
    """Like `parse_number`, but also accepts a decimal comma."""
    return parse_number(text.replace(",", ".", 1) if text.count(",") == 1 and "." not in text else text)


def parse_grouped(text: str, decimals: int) -> float | None:
    """Parses a number with the thousands separators of any locale, and with the stated number of decimals.

    Without decimals, 1,752 and 1.752 are both 1752. Raises ValueError for anything else.
    """
    text = text.strip()
    if text.lower() in NOT_A_NUMBER:
        return None
    digits = SEPARATORS.sub("", text)
    if not re.fullmatch(r"-?\d+", digits):
        raise ValueError(f"not a number: {text[:40]!r}")
    fraction = re.search(r"[.,](\d+)$", text)
    if decimals and (fraction is None or len(fraction[1]) != decimals):
        # Older versions of a tool may print a whole number.
        return float(digits) if fraction is None else parse_number(text)
    return float(int(digits) / 10**decimals)


def last_digit(text: str) -> float:
    """The place value of a number's last digit: 0.01 for 388.46; 0 for other notations, such as 1e3."""
    match = re.fullmatch(r"[+-]?\d+(?:[.,](\d+))?", text.strip())
    return 10.0 ** -len(match[1] or "") if match else 0.0


GO_DURATION = re.compile(r"([\d.]+)(h|ms|m|s|µs|μs|us|ns)")
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ns": 1e-9}


def go_duration(text: str) -> tuple[float, float]:
    """Parses a Go duration (1m2.5s); returns it and its last digit's place value, in s. Raises ValueError for any other
    text."""
    if text == "0":
        return 0.0, 0.0
    if not re.fullmatch(rf"(?:{GO_DURATION.pattern})+", text):
        raise ValueError(f"not a duration: {text[:40]!r}")
    parts = GO_DURATION.findall(text)
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    return seconds, last_digit(parts[-1][0]) * SECONDS[parts[-1][1]]
