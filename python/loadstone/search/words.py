"""Loads and shares in the sentences of a search."""

from __future__ import annotations

from loadstone.search.rule import Rule


def amount(load: float) -> str:
    """A load without its unit."""
    return f"{load:,.0f}" if float(load).is_integer() else f"{load:,.6g}"


def loads(rule: Rule, load: float) -> str:
    """A load with its unit: 1 client, 37 clients, 12,300 op/s."""
    unit = "op/s" if rule.over == "rate" else "client" if load == 1 else "clients"
    return f"{amount(load)} {unit}"


def percent(share: float) -> str:
    """A share with two digits: 2.1 %, 0.34 %."""
    return f"{share * 100:.2g} %" if abs(share) < 0.995 else f"{share * 100:,.0f} %"


def many(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
