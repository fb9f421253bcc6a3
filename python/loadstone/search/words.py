"""Loads and shares in the sentences of a search."""

from __future__ import annotations

from loadstone.search.rule import Rule

# Of a share: as many as a reader wants, up to those beyond which two shares are one.
DIGITS = range(2, 8)


def amount(load: float) -> str:
    """A load without its unit."""
    return f"{load:,.0f}" if float(load).is_integer() else f"{load:,.6g}"


def loads(rule: Rule, load: float) -> str:
    """A load with its unit: 1 client, 37 clients, 12,300 op/s."""
    unit = "op/s" if rule.over == "rate" else "client" if load == 1 else "clients"
    return f"{amount(load)} {unit}"


def percent(share: float, beside: float | None = None) -> str:
    """A share with two digits: 2.1 %, 0.34 %; with more where it would read like a bound that it is not: 94.85 %."""
    if abs(share) >= 0.995:
        return f"{share * 100:,.0f} %"
    apart = (n for n in DIGITS if beside is not None and rounded(share, n) != rounded(beside, n))
    return f"{rounded(share, next(apart, DIGITS[0]))} %"


def rounded(share: float, digits: int) -> str:
    """A share in percent with so many digits."""
    return f"{share * 100:.{digits}g}"


def many(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
