"""Crafted results for the checks of how many samples there are and how far they spread, both ways, at their edges."""

from __future__ import annotations

from dataclasses import replace

from judge_support import REPEATS, Case, asking, experiment, given
from loadstone.judge.finding import Severity
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult

NOTE, WITHHELD, SUSPECT = Severity.NOTE, Severity.WITHHELD, Severity.SUSPECT


def spread(width: float) -> ResultSet:
    """Six repeats of which the extremes, the interval's ends, are `width` of the median apart."""
    steps = (-0.5, -0.1, -0.01, 0.01, 0.1, 0.5)

    def spoil(trial: TrialResult) -> TrialResult:
        return given(throughput=1000 * (1 + width * steps[trial.repeat - 1]), all__mean=9.8e6)(trial)

    return experiment(spoil, question=asking(until=0.2, at_most=REPEATS))


CASES = [
    Case("noisy", "as narrow as asked", spread(0.2)),
    Case(
        "noisy",
        "wider",
        spread(0.25),
        SUSPECT,
        "the interval of throughput is 25 % wide after 6 repeats, not 20 % as requested",
    ),
    Case(
        "noisy",
        "a latency at a rate, where throughput is constant",
        replace(
            experiment(lambda trial: replace(given(read__p99=3e7 * (1 + trial.repeat / 10))(trial), loop="open")),
            question=asking(until=0.2),
        ),
        SUSPECT,
        "the interval of read.p99 is 37 % wide after 6 repeats, not 20 % as requested",
    ),
    Case("noisy", "wider, with repeats left", replace(spread(0.25), question=asking(until=0.2, at_most=7))),
    Case("noisy", "wider, nothing asked", replace(spread(0.25), question=asking())),
    Case("too-few-samples", "ten beyond", experiment(given(n=10_000, read__p99__9=5e7))),
    Case(
        "too-few-samples",
        "fewer",
        experiment(given(n=9_999, read__p99__9=5e7)),
        WITHHELD,
        "read: p99.9 withheld, as fewer than 10 of 9,999 operations lie beyond",
    ),
    Case(
        "too-few-samples",
        "fewer, and asked for",
        experiment(given(n=9_999, read__p99__9=5e7), question=asking(metrics=("throughput", "read.p99.9"))),
        WITHHELD,
        "read: p99.9 withheld, as fewer than 10 of 9,999 operations lie beyond",
    ),
    Case(
        "too-few-samples",
        "fewer, and not asked for",
        experiment(given(n=9_999, read__p99__9=5e7), question=asking(metrics=("throughput", "read.p99"))),
    ),
    Case("too-few-samples", "of the load", experiment(given(n=9_999, load__insert__p99__9=5e7))),
    Case("too-few-samples", "of what is not an operation", experiment(given(n=2, cleanup__p99=5e7))),
    Case("too-few-samples", "nobody knows of how many", experiment(given(n=0, read__p99__9=5e7))),
    Case("too-few-samples", "three repeats", experiment(repeats=3), NOTE, "n=3: no interval, no claim possible"),
    Case("too-few-samples", "five repeats", experiment(repeats=5), NOTE, "n=5: no interval, no claim possible"),
    Case("too-few-samples", "one repeat", experiment(repeats=1), NOTE, "n=1: no interval"),
]
