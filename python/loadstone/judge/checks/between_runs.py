"""between-runs: the sides ran at different times, so what changed meanwhile is in the difference."""

from __future__ import annotations

from loadstone.judge.finding import Finding, Looks, Pair, Severity
from loadstone.judge.settings import Settings

NAME = "between-runs"
MESSAGE = "between runs: order not randomised"


def check(pair: Pair, _: Settings) -> Looks:
    """For each pair of a result set whose variants were not interleaved; the judge knows which."""
    hint = "run both in one experiment, which interleaves them; hosts, data and neighbours change between runs"
    yield Finding(NAME, Severity.NOTE, MESSAGE, hint, pair.trials)
