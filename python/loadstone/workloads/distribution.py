"""Distributions in the notation of cassandra-stress, `[~]NAME(MIN..MAX,…)`: their validity, range and mean.

The engine draws from them (`crates/stress/src/distribution`); the forecast needs only their means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import gamma, log

EXAMPLES = "uniform(1..10), gaussian(1..10), exp(1..10), fixed(3) or presets(70:1, 30:5)"
# For larger exponents, the gamma function can exceed the range of a float.
EXPONENT_MAX = 100
FACTORS = {"k": 1e3, "m": 1e6, "b": 1e9}
NUMBER = r"[+-]?\d+[kmb]?"
DECIMAL = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
RANGE = rf"({NUMBER})\.\.+({NUMBER})"
PRESET = rf"({DECIMAL}):({DECIMAL}[km]?)"
# The arguments of each distribution, and its other names.
ARGUMENTS = {
    "fixed": rf"({NUMBER})",
    "uniform|seq|exp": RANGE,
    "gaussian|gauss|normal|norm": rf"{RANGE}(?:,({DECIMAL}))?(?:,({DECIMAL}))?",
    "extreme|extr": rf"{RANGE},({DECIMAL})",
    "qextreme|qextr": rf"{RANGE},({DECIMAL}),(\d+)",
    "presets": rf"{PRESET}(?:,{PRESET})*",
}


@dataclass(frozen=True)
class Distribution:
    """A distribution of whole numbers."""

    least: float
    greatest: float
    mean: float


def parse_distribution(text: str) -> Distribution:
    """Parses a distribution. Raises ValueError if it is not valid."""
    plain = "".join(text.split()).lower()
    for names, arguments in ARGUMENTS.items():
        if match := re.fullmatch(rf"~?({names})\({arguments}\)", plain):
            break
    else:
        raise ValueError(f'"{text}" is not a distribution')
    if match[1] == "presets":
        pairs = [part.split(":") for part in plain[plain.index("(") + 1 : -1].split(",")]
        shares = [(float(share), parse_number(value)) for share, value in pairs]
        total = sum(share for share, _ in shares)
        if any(share <= 0 or value < 0 for share, value in shares):
            raise ValueError(f'"{text}" is not a distribution')
        mean = sum(share * value for share, value in shares) / total
        return Distribution(min(value for _, value in shares), max(value for _, value in shares), mean)
    least = parse_number(match[2])
    greatest = least if match[1] == "fixed" else parse_number(match[3])
    if least > greatest:
        raise ValueError(f'the range of "{text}" is empty')
    mean = find_mean(match, least, greatest)
    return Distribution(least, greatest, least + greatest - mean if plain.startswith("~") else mean)


def find_mean(match: re.Match[str], least: float, greatest: float) -> float:
    """The mean of a distribution with a range, as in the tool: `exp` and `extreme` fill their range."""
    name, middle, width = match[1], (least + greatest) / 2, greatest - least
    if name.startswith(("gauss", "norm")):
        return min(max(float(match[4]), least), greatest) if match[5] is not None else middle
    if width < 2 or not name.startswith(("exp", "extr", "qextr")):
        return middle
    bound = log(width) / 2
    shape = 1.0 if name == "exp" else float(match[4])
    if shape <= 0:
        raise ValueError(f'the shape of "{match[0]}" is not above 0')
    if 1 / shape > EXPONENT_MAX:
        return middle
    scale: float = width / bound ** (1 / shape)
    return min(least + scale * gamma(1 + 1 / shape), greatest)


def parse_number(text: str) -> float:
    """The value of a number, which may have the suffix k, m or b."""
    return float(text[:-1]) * FACTORS[text[-1]] if text[-1] in FACTORS else float(text)
