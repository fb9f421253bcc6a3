"""A pair: two variants, or several of each, that differ in the compared dimension only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.results.trial_result import Scalar, TrialResult


@dataclass(frozen=True)
class Pair:
    """Two values of the compared dimension with their trials, all other dimensions being equal."""

    by: str
    baseline: Scalar
    contender: Scalar
    baselines: Sequence[TrialResult]
    contenders: Sequence[TrialResult]
    # Facts that are to differ: their price is what is compared.
    differs: Sequence[str] = ()

    @property
    def trials(self) -> tuple[str, ...]:
        """The ids of all."""
        return tuple(trial.trial for trial in (*self.baselines, *self.contenders))

    def facts(self, name: str) -> tuple[list[Scalar], list[Scalar]]:
        """What each side says of a fact, in the order of first sight."""
        return known(self.baselines, name), known(self.contenders, name)

    def asked(self, name: str) -> bool:
        """Whether the fact is what is compared: said so, as the dimension, or by its values on both sides."""
        return name in self.differs or self.by == name or self.facts(name) == ([self.baseline], [self.contender])


def known(trials: Sequence[TrialResult], name: str) -> list[Scalar]:
    """Each value of a fact once; nothing where no trial has it."""
    found: dict[Any, None] = {}
    for trial in trials:
        if name in trial.facts:
            found[trial.facts[name]] = None
    return list(found)
