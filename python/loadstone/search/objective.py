"""Objectives as people write them: `p99 < 10ms`, `read.p99.9 < 5ms and errors == 0`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadstone.experiment import quantity

TERM = re.compile(r"\s*([a-z][a-z0-9_.-]*?)\s*(<=|>=|==|<|>|=)\s*(\S.*?)\s*")
PERCENTILE = re.compile(r"p[0-9]+(\.[0-9]+)?")
LATENCY = re.compile(r".*\.(p[0-9]+(\.[0-9]+)?|mean|min|max)")
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
# Latencies of all operations, for short.
SHORT = ("mean", "min", "max")
COUNTS = ("errors", "throughput")
LATENCY_HINT = "a latency has a unit: write p99 < 10ms"
HINT = "write p99 < 10ms, read.p99.9 < 5ms, errors == 0 or errors < 0.1%, with `and` between several"


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on one figure."""

    # As in results: `all.p99`, `errors`.
    metric: str
    sign: str
    # In the base unit of the metric, or a share of the operations.
    bound: float
    # Whether a count is compared as a share of all operations.
    share: bool = False

    def holds(self, figure: float) -> bool:
        """Whether a figure meets it."""
        return COMPARISONS[self.sign](figure, self.bound)


@dataclass(frozen=True, slots=True)
class Objective:
    """What must hold at a load, all of it."""

    # As it was written, with single blanks.
    text: str
    terms: tuple[Term, ...]

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Whether a trial's figures meet all of it. Raises KeyError for a metric that is not there."""
        return all(term.holds(figures[term.metric]) for term in self.terms)


def objective(text: str) -> Objective:
    """Reads an objective. Raises ValueError with what is wrong and a hint."""
    parts = re.split(r"\s+and\s+", text.strip())
    return Objective(" ".join(text.split()), tuple(term(part) for part in parts))


def term(text: str) -> Term:
    """Reads one condition. Raises ValueError with what is wrong and a hint."""
    found = TERM.fullmatch(text)
    if found is None:
        raise ValueError(f'"{text}" is no objective', HINT)
    metric, sign, value = found[1], found[2].replace("==", "=").replace("=", "=="), found[3]
    sign = {"<==": "<=", ">==": ">="}.get(sign, sign)
    if PERCENTILE.fullmatch(metric) or metric in SHORT:
        metric = f"all.{metric}"
    if metric in COUNTS:
        return counted(metric, sign, value)
    if not LATENCY.fullmatch(metric):
        raise ValueError(f"{metric} is no latency, and neither errors nor throughput", HINT)
    try:
        if re.fullmatch(r"[0-9.]+", value):
            raise ValueError(value)
        return Term(metric, sign, quantity.seconds(value) * 1e9)
    except ValueError:
        raise ValueError(f'{metric} cannot be compared with "{value}"', LATENCY_HINT) from None


def counted(metric: str, sign: str, value: str) -> Term:
    """A condition on a number of operations, or of errors as a share of them."""
    hint = "write errors == 0 or errors < 0.1%" if metric == "errors" else "write operations per second as digits only"
    try:
        if value.endswith("%") and metric == "errors":
            return Term(metric, sign, quantity.share(value), share=True)
        return Term(metric, sign, float(value))
    except ValueError:
        raise ValueError(f'{metric} cannot be compared with "{value}"', hint) from None
