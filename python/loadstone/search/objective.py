"""Objectives as people write them: `p99 < 10ms`, `read.p99.9 < 5ms and errors == 0`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadstone.format import quantity
from loadstone.results.value import THROUGHPUT

TERM = re.compile(r"\s*([a-z][a-z0-9_.-]*?)\s*(<=|>=|==|<|>|=)\s*(\S.*?)\s*")
# Latencies of all operations, for short.
SHORT = re.compile(r"(p[0-9]+(\.[0-9]+)?|mean|min|max)")
LATENCY = re.compile(rf".*\.{SHORT.pattern}")
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {"<": operator.lt, "<=": operator.le, "==": operator.eq}
ERRORS = "errors"
LATENCY_HINT = "a latency has a unit: write p99 < 10ms"
ERRORS_HINT = "write errors == 0 or errors < 0.1%"
LIMIT_HINT = "write < or <=, or errors == 0: a search looks for the highest load at which its objective holds"
HINT = "write p99 < 10ms, read.p99.9 < 5ms, errors == 0 or errors < 0.1%, with `and` between several"


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on one figure."""

    # Named as in results: `all.p99`, `errors`.
    metric: str
    sign: str
    # In the base unit of the metric, or a share of the operations.
    bound: float
    # Whether a count is compared as a share of all operations.
    share: bool = False

    @property
    def key(self) -> str:
        """The key in a trial's figures: `all.p99`, `errors`, `errors%` for the share."""
        return f"{self.metric}%" if self.share else self.metric

    def holds(self, figure: float) -> bool:
        """Whether a figure meets it."""
        return COMPARISONS[self.sign](figure, self.bound)


@dataclass(frozen=True, slots=True)
class Objective:
    """What must hold at a load: all of its terms."""

    # As written, with single blanks.
    text: str
    terms: tuple[Term, ...]

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Whether a trial's figures, by the terms' keys, meet every term. Raises KeyError for a missing one."""
        return all(term.holds(figures[term.key]) for term in self.terms)

    @property
    def about_errors(self) -> bool:
        """Whether it limits how many operations may fail."""
        return any(term.metric == ERRORS for term in self.terms)


def objective(text: str) -> Objective:
    """Reads an objective. Raises ValueError with a message and a hint."""
    parts = re.split(r"\s+and\s+", text.strip())
    return Objective(" ".join(text.split()), tuple(term(part) for part in parts))


def term(text: str) -> Term:
    """Reads one condition. Raises ValueError with a message and a hint.

    A search assumes that an objective holds at low loads and fails at high ones, so every condition has to be of that
    kind.
    """
    found = TERM.fullmatch(text)
    if found is None:
        raise ValueError(f'"{text}" is not an objective', HINT)
    metric, sign, value = found[1], "==" if found[2] == "=" else found[2], found[3]
    if SHORT.fullmatch(metric):
        metric = f"all.{metric}"
    if metric == THROUGHPUT:
        raise ValueError("throughput is not an objective: a search finds its maximum anyway", "leave the condition out")
    if metric != ERRORS and not LATENCY.fullmatch(metric):
        raise ValueError(f"{metric} is neither a latency nor errors", HINT)
    try:
        if metric == ERRORS:
            share = value.endswith("%")
            read = Term(metric, sign, quantity.share(value) if share else float(value), share)
        elif re.fullmatch(r"[0-9.]+", value):
            raise ValueError(value)
        else:
            read = Term(metric, sign, quantity.seconds(value) * 1e9)
    except ValueError:
        hint = ERRORS_HINT if metric == ERRORS else LATENCY_HINT
        raise ValueError(f'{metric} cannot be compared with "{value}"', hint) from None
    if sign not in COMPARISONS or (sign == "==" and (metric != ERRORS or read.bound != 0)):
        raise ValueError(f'"{text}" does not hold at low loads and fail at high ones', LIMIT_HINT)
    return read
