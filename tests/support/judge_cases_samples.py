"""Crafted results on both sides of the thresholds for checks of sample count and spread."""

from __future__ import annotations

from dataclasses import replace

from judge_support import REPEATS, Case, asking, experiment, set_figures
from loadstone.judge.finding import Severity
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import TrialResult

NOTE, WITHHELD, SUSPECT = Severity.NOTE, Severity.WITHHELD, Severity.SUSPECT


def spread(width: float) -> ResultSet:
    """Six repeats whose interval has the width `width`, as a share of the median."""
    steps = (-0.5, -0.1, -0.01, 0.01, 0.1, 0.5)

    def change_trial(trial: TrialResult) -> TrialResult:
        return set_figures(throughput=1000 * (1 + width * steps[trial.repeat - 1]), all__mean=9.8e6)(trial)

    return experiment(change_trial, question=asking(until=0.2, at_most=REPEATS))


CASES = [
    Case("noisy", "as narrow as requested", spread(0.2)),
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
            experiment(lambda trial: replace(set_figures(read__p99=3e7 * (1 + trial.repeat / 10))(trial), loop="open")),
            question=asking(until=0.2),
        ),
        SUSPECT,
        "the interval of read.p99 is 37 % wide after 6 repeats, not 20 % as requested",
    ),
    Case("noisy", "wider, with remaining repeats", replace(spread(0.25), question=asking(until=0.2, at_most=7))),
    Case("noisy", "wider, without a request", replace(spread(0.25), question=asking())),
    Case("too-few-samples", "ten beyond", experiment(set_figures(n=10_000, read__p99__9=5e7))),
    Case(
        "too-few-samples",
        "fewer",
        experiment(set_figures(n=9_999, read__p99__9=5e7)),
        WITHHELD,
        "read: p99.9 is withheld, because fewer than 10 of 9,999 operations exceed it",
    ),
    Case(
        "too-few-samples",
        "fewer, as requested",
        experiment(set_figures(n=9_999, read__p99__9=5e7), question=asking(metrics=("throughput", "read.p99.9"))),
        WITHHELD,
        "read: p99.9 is withheld, because fewer than 10 of 9,999 operations exceed it",
    ),
    Case(
        "too-few-samples",
        "fewer, without a request",
        experiment(set_figures(n=9_999, read__p99__9=5e7), question=asking(metrics=("throughput", "read.p99"))),
    ),
    Case("too-few-samples", "of the load", experiment(set_figures(n=9_999, load__insert__p99__9=5e7))),
    Case("too-few-samples", "without an operation", experiment(set_figures(n=2, cleanup__p99=5e7))),
    Case("too-few-samples", "unknown number of samples", experiment(set_figures(n=0, read__p99__9=5e7))),
    Case("too-few-samples", "three repeats", experiment(repeats=3), NOTE, "n=3: no interval, no claim possible"),
    Case("too-few-samples", "five repeats", experiment(repeats=5), NOTE, "n=5: no interval, no claim possible"),
    Case("too-few-samples", "one repeat", experiment(repeats=1), NOTE, "n=1: no interval"),
]
