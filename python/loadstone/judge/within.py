"""How well one run's own throughput is known, from its course: for a single run that is all there is."""

from __future__ import annotations

from loadstone.results.trial_result import Series
from loadstone.statistics.autocorrelation import run_mean
from loadstone.statistics.estimate import Estimate


def within(series: Series | None) -> Estimate | None:
    """The mean rate with error bars that respect autocorrelation; None without enough of a course.

    It says nothing of what another run would show: that takes repeats.
    """
    if series is None:
        return None
    found = run_mean(series.whole_rates)
    return found if found.low is not None else None
