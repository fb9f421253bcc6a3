"""Conditions in human notation: `p99 < 10ms`, `read.p99.9 < 5ms and errors == 0`, `throughput >= 0.95x`.

Conditions form the objective of a search, or the expectations of an experiment.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loadstone.format import parsing
from loadstone.results.value import THROUGHPUT, metric_statistic

TERM = re.compile(r"\s*([a-z][a-z0-9_.-]*?)\s*(<=|>=|==|<|>|=)\s*(\S.*?)\s*")
# Short names for the latencies of all operations.
SHORT = re.compile(r"(p[0-9]+(\.[0-9]+)?|mean|min|max)")
LATENCY = re.compile(rf".*\.{SHORT.pattern}")
RATIO = re.compile(r"([0-9]*\.?[0-9]+)\s*[x×]")
# A number that is more likely a ratio without its `x` than a rate.
NEAR_ONE = re.compile(r"[01]?\.[0-9]+")
# A rate, or any other figure: `12000`, `12,000 op/s`, `12k`, `12k op/s`, `100 MB/s`, `100 MiB`.
AMOUNT = re.compile(r"([0-9][0-9,]*\.?[0-9]*|\.[0-9]+)\s*([kMGT]?|[KMGT]i(?=B))\s*(B/s|B/op|B|ops?/s(?:ec)?|/s|)")
THOUSANDS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}
ERRORS = "errors"
LATENCY_HINT = "a latency needs a unit: write p99 < 10ms"
ERRORS_HINT = "write errors == 0 or errors < 0.1%"
AMOUNT_HINT = "write throughput >= 12000, or throughput >= 0.95x for a ratio to the baseline"
LIMIT_HINT = "write < or <=, or errors == 0: a search finds the highest load that meets its objective"
HINT = "write p99 < 10ms, read.p99.9 < 5ms, errors == 0 or errors < 0.1%; join several conditions with `and`"
RATIO_HINT = "write throughput >= 0.95x, which is relative to the baseline, or read.p99 < 10ms"
EQUAL_HINT = "write >= or <=: only a count, such as errors, can be compared with =="


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on one figure."""

    # The name of the metric, as in results: `all.p99`, `errors`.
    metric: str
    sign: str
    # The bound: in the base unit of the metric, as a share of operations, or as a ratio.
    bound: float
    # Whether a count is compared as a share of all operations.
    share: bool = False
    # Whether the figure is divided by the baseline's figure.
    is_ratio: bool = False
    # The base unit in which the bound was written; empty for a plain number.
    unit: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """The key in a trial's figures: `all.p99`, `errors`, `errors%` for the share."""
        return f"{self.metric}%" if self.share else self.metric

    @property
    def is_count(self) -> bool:
        """Whether the condition counts failed operations, which is a fact and not an estimate."""
        return self.metric == ERRORS and not self.share and not self.is_ratio

    def fits(self, unit: str) -> bool:
        """Whether the bound fits a figure in this unit: a plain number is neither a time nor a percentage."""
        if not self.unit:
            return unit != "ns" and not (unit == "share" and self.bound > 1)
        return self.unit in {unit, *(("B",) if unit == "B/op" else ("op/s",) if unit.endswith("/s") else ())}

    def is_met_by(self, figure: float) -> bool:
        """Whether a figure meets the condition."""
        return COMPARISONS[self.sign](figure, self.bound)

    def decide_between(self, low: float, high: float) -> bool | None:
        """Whether all figures between two ends meet the condition; None if only some do."""
        if self.sign == "==" and low < self.bound < high:
            return None
        ends = self.is_met_by(low), self.is_met_by(high)
        return ends[0] if ends[0] == ends[1] else None


@dataclass(frozen=True, slots=True)
class Objective:
    """A condition on a load: all of its terms must be met."""

    # The text as written, with single spaces.
    text: str
    terms: tuple[Term, ...]

    def is_met_by(self, figures: Mapping[str, float]) -> bool:
        """Whether a trial's figures, by the terms' keys, meet every term. Raises KeyError for a missing figure."""
        return all(term.is_met_by(figures[term.key]) for term in self.terms)

    @property
    def about_errors(self) -> bool:
        """Whether the objective limits the number or share of failed operations."""
        return any(term.metric == ERRORS for term in self.terms)


def parse_objective(text: str) -> Objective:
    """Reads an objective. Raises ValueError with a message and a hint."""
    return Objective(" ".join(text.split()), tuple(read_limit(part) for part in split_conditions(text)))


def parse_expectations(text: str) -> list[tuple[str, Term]]:
    """Reads an expectation; returns each condition as written and as parsed.

    Raises ValueError with a message and a hint.
    """
    return [
        (" ".join(part.split()), read_condition(part, "expectation", RATIO_HINT)) for part in split_conditions(text)
    ]


def split_conditions(text: str) -> list[str]:
    """The conditions that `and` separates."""
    return re.split(r"\s+and\s+", text.strip())


def read_limit(text: str) -> Term:
    """Reads a condition that is met at low loads and fails at high loads, as a search assumes.

    Raises ValueError with a message and a hint.
    """
    name = TERM.fullmatch(text)
    if name is not None and name[1] == THROUGHPUT:
        raise ValueError("throughput is not an objective: a search finds its maximum anyway", "leave the condition out")
    if name is not None and not (name[1] == ERRORS or SHORT.fullmatch(name[1]) or LATENCY.fullmatch(name[1])):
        raise ValueError(f"{name[1]} is neither a latency nor errors", HINT)
    term = read_condition(text, "objective", HINT)
    if term.is_ratio:
        raise ValueError(f'"{text}" is a ratio, and a search has no baseline', HINT)
    if term.sign not in ("<", "<=") and not (term.sign == "==" and term.metric == ERRORS and term.bound == 0):
        raise ValueError(f'"{text}" is not a condition that holds at low loads and fails at high loads', LIMIT_HINT)
    return term


def read_condition(text: str, role: str, hint: str) -> Term:
    """Reads a condition on any figure. Raises ValueError with a message and a hint."""
    match = TERM.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not an {role}', hint)
    metric, sign, value = match[1], "==" if match[2] == "=" else match[2], match[3]
    if SHORT.fullmatch(metric):
        metric = f"all.{metric}"
    is_latency = LATENCY.fullmatch(metric) is not None
    try:
        if ratio := RATIO.fullmatch(value):
            term = Term(metric, sign, float(ratio[1]), is_ratio=True)
        elif metric == ERRORS:
            share = value.endswith("%")
            term = Term(metric, sign, parsing.parse_share(value) if share else float(value), share)
            if not 0 <= term.bound < math.inf:
                raise ValueError(value)
        elif is_latency and re.fullmatch(r"[0-9.]+", value):
            raise ValueError(value)
        elif is_latency:
            term = Term(metric, sign, parsing.parse_seconds(value) * 1e9, unit="ns")
        else:
            bound, unit = read_amount(value)
            term = Term(metric, sign, bound, unit=unit)
            if metric_statistic(metric) == THROUGHPUT and unit not in ("", "op/s", "B/s"):
                raise ValueError(value)
            if metric_statistic(metric) == THROUGHPUT and NEAR_ONE.fullmatch(value):
                # Probably a ratio without its `x`: every store meets `throughput >= 0.95`, which is 0.95 op/s.
                raise ValueError(value)
    except ValueError:
        advice = ERRORS_HINT if metric == ERRORS else LATENCY_HINT if is_latency else AMOUNT_HINT
        raise ValueError(f'{metric} cannot be compared with "{value}"', advice) from None
    is_positive = metric == ERRORS or is_latency or metric_statistic(metric) == THROUGHPUT
    if term.bound == 0 and sign in ("<", ">=") and is_positive:
        always = "true" if sign == ">=" else "false"
        raise ValueError(f'"{text}" is always {always}: {metric} is never negative', hint)
    # Any other plain number may be a count (`ledger.lost == 0`); only the figure shows the unit.
    may_be_count = term.is_count or not (
        term.is_ratio or term.share or term.unit or metric_statistic(metric) == THROUGHPUT
    )
    if role != "objective" and sign == "==" and not may_be_count:
        raise ValueError(f'"{text}" can never be decided: an estimate never equals a number exactly', EQUAL_HINT)
    return term


def read_amount(text: str) -> tuple[float, str]:
    """Parses a figure other than a latency; returns the number in its base unit, and the unit. Raises ValueError."""
    if text.endswith("%"):
        return parsing.parse_share(text), "share"
    match = AMOUNT.fullmatch(text)
    if match is None:
        return parsing.parse_seconds(text) * 1e9, "ns"
    power = (1024 if match[2].endswith("i") else 1000) ** THOUSANDS[match[2][:1]]
    return float(match[1].replace(",", "")) * power, match[3] if match[3][:1] in ("", "B") else "op/s"
