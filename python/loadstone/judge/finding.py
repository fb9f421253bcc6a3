"""Findings, which are the results of checks, and the pairs of variants that some checks compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from loadstone.judge.figures import is_latency, split_metric
from loadstone.results.stage import prefix_of
from loadstone.results.trial_result import Scalar, TrialResult
from loadstone.results.value import THROUGHPUT


class Severity(IntEnum):
    """The severity of a finding, in ascending order.

    A note does not change the verdict. WITHHELD only suppresses one figure; all other figures are printed.
    """

    NOTE = 0
    WITHHELD = 1
    # Information that a comparison needs is unknown.
    UNCHECKED = 2
    SUSPECT = 3
    INVALID = 4


@dataclass(frozen=True)
class Effect:
    """The effect of a finding on the figures of its trials, used to build scenarios; by default, there is none."""

    # Whether the trial is excluded as evidence about the system.
    excludes: bool = False
    # Whether the trial was disturbed, perhaps by chance: in random order, the interval covers the resulting scatter.
    disturbs: bool = False
    # The factor by which the system may be faster than measured, so that its figures are bounds; infinite if unknown.
    understates: float = 1.0
    # The factor by which the figures drifted within the trial: 1 without a known drift, infinite if a level is 0.
    drifts: float = 1.0


# The figures that a finding concerns.
About = Literal["all", "latencies", "throughput"]


class Verdict(IntEnum):
    """Whether a trial or a comparison can be trusted."""

    VALID = 0
    # The claim has a condition: required information about the sides is unknown.
    UNCHECKED = 1
    SUSPECT = 2
    INVALID = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """One check's result on one trial, one variant or one comparison; message and hint have no final period."""

    check: str
    severity: Severity
    message: str
    hint: str
    # The ids of the affected trials.
    trials: tuple[str, ...] = ()
    # The only affected metric, or the prefix of a stage's metrics (`stage2.`); empty if all metrics are affected.
    metric: str = ""
    # The kind of figures that the finding concerns; figures of other kinds stay valid.
    about: About = "all"
    effect: Effect = Effect()
    # The magnitude, by which the worst of a check's findings is chosen; 0 if the effect contains it.
    size: float = 0.0


# The beginning of a message on unknown facts that a comparison needs; the names of the facts follow.
UNKNOWN_OF_BOTH = "unknown for at least one side: "
ORDER_OF_RUNS = "order of the runs"


@dataclass(frozen=True)
class NotLooked:
    """A check that could not examine a trial or a pair because data is missing, and therefore counts as not passed."""

    check: str
    # The missing data, as a clause: "the host was not observed".
    reason: str
    # Whether all of Loadstone's own trials have this data, so that a trial without them is suspect.
    always_known: bool = False
    # The figures that the check could not examine.
    about: About = "all"


# The results of a check.
Looks = Iterator[Finding | NotLooked]


def concerns_metric(finding: Finding, metric: str) -> bool:
    """Whether a finding concerns this metric. An invalid finding concerns all metrics of its kind (`about`)."""
    if finding.about == "latencies" and not is_latency(metric):
        return False
    if finding.about == "throughput" and split_metric(metric)[1] != THROUGHPUT:
        return False
    if finding.metric.endswith("."):
        # An invalid stage also affects figures of the whole window, but not figures of other stages.
        is_invalid = finding.severity == Severity.INVALID
        return metric.startswith(finding.metric) or (is_invalid and not prefix_of(metric))
    return finding.metric in ("", metric) or finding.severity == Severity.INVALID


def worst_verdict(findings: Iterable[Finding]) -> Verdict:
    """The verdict that follows from the most severe finding."""
    worst = max((finding.severity for finding in findings), default=Severity.NOTE)
    return Verdict[worst.name] if worst >= Severity.UNCHECKED else Verdict.VALID


@dataclass(frozen=True)
class Pair:
    """Two values of the compared dimension with their trials, all other dimensions being equal."""

    by: str
    baseline: Scalar
    contender: Scalar
    baselines: Sequence[TrialResult]
    contenders: Sequence[TrialResult]
    # The facts, and groups of facts, that the compared dimension determines or the user declares to differ.
    groups: frozenset[str] = frozenset()
    # Whether both sides ran in one experiment, and whether repeats with the same number form a block.
    is_one_run: bool = True
    blocks: bool = True

    @property
    def sides(self) -> tuple[Sequence[TrialResult], Sequence[TrialResult]]:
        """The trials of the baseline and of the contender."""
        return self.baselines, self.contenders

    @property
    def trials(self) -> tuple[str, ...]:
        """The ids of all trials."""
        return tuple(trial.trial for trial in (*self.baselines, *self.contenders))

    @property
    def ids(self) -> tuple[set[str], set[str]]:
        """The ids of each side's trials."""
        return {trial.trial for trial in self.baselines}, {trial.trial for trial in self.contenders}

    def fact_values(self, name: str) -> tuple[list[Scalar], list[Scalar]]:
        """Each side's values of a fact, in the order of first appearance."""
        return distinct_facts(self.baselines, name), distinct_facts(self.contenders, name)

    def is_compared(self, name: str) -> bool:
        """Whether a fact is compared: it is declared, it is the dimension, or its values equal the dimension's values.

        Values are compared as text, since a setting may be a number where a server reports text.
        """
        baseline, contender = self.fact_values(name)
        same = list(map(str, baseline)) == [str(self.baseline)] and list(map(str, contender)) == [str(self.contender)]
        return name in self.groups or name in self.by.split(",") or same


def distinct_facts(trials: Sequence[TrialResult], name: str) -> list[Scalar]:
    """Each value of a fact once; empty if no trial has the fact."""
    return list(dict.fromkeys(trial.facts[name] for trial in trials if name in trial.facts))
