"""Parses durations, shares, sizes and truth values as people write them: `500ms`, `1m30s`, `5%`, `128MB`, `yes`."""

from __future__ import annotations

import math
import re
from typing import TypeGuard

UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PART = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?|\.[0-9]+)\s*(us|µs|ms|s|m|h|d)\s*")
# The powers of 1024, as in Hadoop, fio and the options of storage engines.
SIZES = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
SIZE = re.compile(r"([0-9]+)\s*([kKmMgGtT]?)(?:i?[bB])?")
TRUTHS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
# Separates the parts of a name (`LOCAL_QUORUM` equals `LocalQuorum`), or a number from its unit (`200 ms`, `200ms`).
SEPARATOR = re.compile(r"(?<=[a-z])[_-](?=[a-z])|(?<=\d) (?=[a-zµ]+(?:$|[\s,;]))")
# A word or number within a text.
WORD = re.compile(r"[\w.]+")
SHARE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*%")


def is_finite(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number; bool does not count as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def parse_seconds(value: object) -> float:
    """The seconds in `500ms`, `1m30s` or a number of seconds. Raises ValueError."""
    if isinstance(value, str):
        parts = PART.findall(value)
        if not parts or "".join(match.group() for match in PART.finditer(value)) != value:
            raise ValueError(value)
        # 100 ms is 0.1 s, but 100 × 0.001 is not exactly 0.1.
        return sum(float(number) / 1e3 if unit == "ms" else float(number) * UNITS[unit] for number, unit in parts)
    if not is_finite(value):
        raise ValueError(value)
    return float(value)


def format_seconds(length: float) -> str:
    """A number of seconds as text that parses to exactly this value."""
    if length.is_integer():
        unit = next((unit for unit in "dhm" if length and length % UNITS[unit] == 0), "s")
        return f"{length / UNITS[unit]:.0f}{unit}"
    milliseconds = round(length * 1e3)
    return f"{milliseconds}ms" if milliseconds / 1e3 == length else f"{length!r}s"


def share_written(number: float) -> str:
    """A share with at most three digits, in the notation of `parse_share`: `5%`."""
    return f"{number * 100:.3g}%"


def parse_share(value: object) -> float:
    """The share in `5%` or 0.05. Raises ValueError."""
    if isinstance(value, str):
        match = SHARE.fullmatch(value)
        if match is None:
            raise ValueError(value)
        return float(match[1]) / 100
    if not is_finite(value):
        raise ValueError(value)
    return float(value)


def parse_size(value: object) -> int:
    """The bytes in `128MB`, `64k` or a number of bytes. Raises ValueError."""
    match = SIZE.fullmatch(value if isinstance(value, str) else str(value))
    if match is None or isinstance(value, bool):
        raise ValueError(value)
    return int(match[1]) << 10 * SIZES[match[2].upper()]


def normalize_spelling(value: object) -> str:
    """Normalises the spelling of values, also within longer text: `TRUE` equals `1`, and fio's `4k` equals 4096."""
    text = SEPARATOR.sub("", str(value).casefold().strip())
    return WORD.sub(lambda word: normalize_word(word[0]), text)


def normalize_word(text: str) -> str:
    """Converts a truth value in lower case to `1` or `0`, and a size to bytes; returns any other word unchanged."""
    if text in TRUTHS:
        return str(int(TRUTHS[text]))
    try:
        return str(parse_size(text))
    except ValueError:
        return text
