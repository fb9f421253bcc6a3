"""The rule of a search: the load to raise, its bounds, and the conditions for stopping."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Literal

from loadstone.format import units
from loadstone.search.objective import Objective, parse_objective

Over = Literal["clients", "rate"]

AT_LEAST, AT_MOST = 3, 6
# A bracket whose ends are within this ratio is not halved further.
RATIO = 1.1
# The number of trials at the highest load that meets the objective; the load above it gets half this number. With 12,
# the bracket contains the answer in at least 90 % of simulated searches (tests/unit/test_search_simulations.py), even
# if noise lasts for many trials or a server exits in one trial of four. With 10, the bracket contains the limit of such
# a server in 88 %.
CONFIRMATIONS = 12
CONFIDENCE = 0.9
# If less than this share of the operations completed, the rate is not held, however fast these operations were.
DELIVERED = 0.95
BOUNDS: dict[Over, tuple[float, float]] = {"clients": (1, 1024), "rate": (1_000, 1_000_000)}
# Rates are rounded to this number of digits.
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """The load to raise, and the aim: the knee, or the highest load that meets an objective."""

    over: Over = "clients"
    least: float = 1
    most: float = 1024
    objective: Objective | None = None
    # The minimum number of repeats of a load before a decision, and the maximum.
    at_least: int = AT_LEAST
    at_most: int = AT_MOST
    # The number of trials at the answer, interleaved with half as many at the load above it; 0 in older results.
    confirmations: int = CONFIRMATIONS

    @classmethod
    def from_find(cls, find: Mapping[str, object], at_least: int, at_most: int | None) -> Rule:
        """The rule from `find`, with all bounds. Raises KeyError, TypeError or ValueError if it is invalid."""
        such_that = find.get("such_that")
        over: Over = "rate" if find["over"] == "rate" else "clients"
        first, last = (find.get(key) or bound for key, bound in zip(("from", "to"), BOUNDS[over], strict=True))
        if not isinstance(first, int | float) or not isinstance(last, int | float) or not 0 < first <= last:
            raise ValueError(f"no search can go from {first} to {last}")
        objective = None if such_that is None else parse_objective(str(such_that))
        confirmed = find.get("confirmations", 0)
        confirmations = confirmed if isinstance(confirmed, int) else 0
        return cls(over, float(first), float(last), objective, at_least, max(at_most or 0, at_least), confirmations)

    def format_load(self, load: float) -> str:
        """A load with its unit: 37 clients, 12,300 op/s."""
        return units.load_over(load, self.over)

    def load_ladder(self) -> list[float]:
        """The loads of the ascent: doublings, and the upper bound if no doubling reaches it."""
        loads = list(takewhile(lambda load: load <= self.most, (self.least * 2.0**n for n in count())))
        return loads if loads[-1] == self.most else [*loads, float(self.most)]

    def middle_load(self, low: float, high: float) -> float | None:
        """The load halfway between two loads on a logarithmic scale; None if they are close enough."""
        if high / low <= RATIO or (self.over == "clients" and high - low <= 1):
            return None
        middle = math.sqrt(low * high)
        if self.over == "clients":
            return float(min(max(round(middle), low + 1), high - 1))
        rounded = float(f"{middle:.{DIGITS}g}")
        return rounded if low < rounded < high else middle

    def explain_closeness(self, low: float, high: float) -> str:
        """The reason why no load is tried between two loads."""
        ends = f"{units.format_load(low)} and {units.format_load(high)}"
        near = high - low <= 1 and self.over == "clients"
        return (
            f"{ends} are neighbours" if near else f"{ends} differ by a factor of at most {units.format_number(RATIO)}"
        )

    @property
    def halvings_most(self) -> int:
        """The maximum number of loads that are tried to narrow the bracket of one doubling.

        Whole numbers do not halve the bracket evenly, which can require another load. Halving the bracket of a knee can
        move the plateau, and the bracket with it; further trials of the ends of a bracket can move the answer.
        """
        return (2 if self.objective is None else 3) * (math.ceil(math.log2(math.log(2) / math.log(RATIO))) + 1)

    @property
    def trials_most(self) -> int:
        """The maximum number of trials: both ends of the bracket may move once before they are confirmed."""
        return self.probes_most * self.at_most + 3 * self.confirmations

    @property
    def probes_most(self) -> int:
        """The maximum number of loads tried."""
        return len(self.load_ladder()) + self.halvings_most
