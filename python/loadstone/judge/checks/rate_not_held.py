"""rate-not-held: the system did not keep up with the rate, so its latencies depend on the window's length."""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.engine.events import CENSORED
from loadstone.format import units
from loadstone.judge.figures import attempted, censored, due
from loadstone.judge.finding import Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import Series, TrialResult
from loadstone.statistics.steady import rise

NAME = "rate-not-held"
HINT = "lower the rate, or search for the highest one that is held: `find: {over: rate}`; throughput stands"


def check(trial: TrialResult, settings: Settings) -> Looks:
    """Operations that were due and never ended."""
    if trial.loop is None:
        yield NotLooked(NAME, "it is not known whether a rate was set")
    if trial.loop != "open":
        return
    target, done = trial.fact("target"), attempted(trial)
    missed = 1 - done / target if target and done is not None else 0.0
    uncounted = trial.value("censored") is None and not any(CENSORED in counts for counts in trial.statuses.values())
    if uncounted:
        yield NotLooked(NAME, "operations that never ended were not counted", ours=True)
    grew = uncounted and missed > settings.threshold(NAME, "queue") and queued(trial, missed)
    if target and done is not None and (grew or missed > settings.threshold(NAME, "missed")):
        yield found(trial, f"{units.rate(done)} was done of the {units.rate(target)} asked for")
        return
    overdue, every = trial.value("overdue") or 0, due(trial)
    share = (censored(trial) + overdue) / every if every else 0.0
    if share > settings.threshold(NAME, "censored"):
        outcome = "were sent after the cut-off" if overdue else "never ended"
        yield found(trial, f"{units.percent(share)} of the {every:,.0f} operations that were due {outcome}")


def queued(trial: TrialResult, missed: float) -> bool:
    """Whether response times are those of a queue that grew by the operations not done.

    At the end such a queue takes the missed share of the run to answer; the p99 is nearly that. Operations missed
    because the tool started late or ended early delay no others.
    """
    backlog_ns = missed * (trial.value("runtime") or 0.0)
    slowest_ns = max((value.value for metric, value in trial.values.items() if metric.endswith(".p99")), default=0.0)
    return 0 < backlog_ns < 2 * slowest_ns


def course(trial: TrialResult, series: Series, settings: Settings) -> Looks:
    """Response times that rise over the window: the queue grows by the operations not done."""
    if trial.loop != "open" or not series.length_seconds:
        return
    if not series.p50_ns and not series.p99_ns:
        yield NotLooked(NAME, "there are no latencies over time", ours=True)
    whole = len(series.whole_rates)
    seconds = series.start_seconds[whole - 1] + series.length_seconds[whole - 1]
    for name, column in (("p50", series.p50_ns), ("p99", series.p99_ns)):
        if message := rises([each for each in column[:whole] if each is not None], seconds, settings):
            # Where the median rises, so does every percentile above.
            yield found(trial, f"the {name} of the response times {message}")
            return


def rises(latencies: Sequence[float], seconds: float, settings: Settings) -> str:
    """How response times (ns) rise over a window; empty where they do not, or where that cannot be decided."""
    line = rise(latencies)
    if line is None or line.p >= settings.threshold(NAME, "alpha"):
        return ""
    behind = line.rise / 1e9 / seconds
    if behind <= settings.threshold(NAME, "behind") or line.rise <= settings.threshold(NAME, "rise") * line.first:
        return ""
    return f"rises by {units.duration(line.rise)} over the window of {seconds:.3g} s, from {units.duration(line.first)}"


def found(trial: TrialResult, message: str) -> Finding:
    """About latencies alone: the throughput of the window stands."""
    return Finding(NAME, Severity.INVALID, message, HINT, (trial.trial,), about="latencies")
