"""What was asked for, as plain data, as a rule."""

from __future__ import annotations

from collections.abc import Mapping

from loadstone.search.objective import objective
from loadstone.search.rule import BOUNDS, Over, Rule


def rule(find: Mapping[str, object], at_least: int, at_most: int | None) -> Rule:
    """The rule of `find` with all its bounds. Raises KeyError, TypeError or ValueError when it is none."""
    such_that = find.get("such_that")
    over: Over = "rate" if find["over"] == "rate" else "clients"
    first, last = (find.get(key) or bound for key, bound in zip(("from", "to"), BOUNDS[over], strict=True))
    if not isinstance(first, int | float) or not isinstance(last, int | float) or not 0 < first <= last:
        raise ValueError(f"no search can go from {first} to {last}")
    asked = None if such_that is None else objective(str(such_that))
    return Rule(over, float(first), float(last), asked, at_least, max(at_most or 0, at_least))
