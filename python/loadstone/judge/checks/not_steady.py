"""not-steady: the system changed during the measured window, so a mean would mix different states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import exp, inf, log, log1p, sqrt
from statistics import fmean, geometric_mean, median, pvariance, quantiles
from typing import TypeVar

import numpy as np

from loadstone.format import units
from loadstone.judge.figures import is_latency, percentile_rank, window_seconds
from loadstone.judge.finding import About, Effect, Finding, Looks, NotLooked, Severity
from loadstone.judge.settings import Settings
from loadstone.results.result_set import DEFAULT_METRICS
from loadstone.results.trial_result import Series, TrialResult
from loadstone.results.value import THROUGHPUT, metric_statistic
from loadstone.statistics.estimate import REPEATS_MIN
from loadstone.statistics.intervals import t_interval
from loadstone.statistics.steady import Steadiness, assess_steadiness, warm_up_end

NAME = "not-steady"
Point = TypeVar("Point")
HINT = "warm up longer, measure longer, or let the store settle first"
# The level outside a part of the window and inside it, by figure and part.
Levels = dict[tuple[str, str], tuple[float, float]]
# The parts that are compared: the halves reveal a trend, and the quarters reveal other changes.
HALVES = "from the first half of the window to the second"
QUARTERS = tuple(f"in the {name} quarter of the window" for name in ("first", "second", "third", "last"))
# The prefixes of the figures of servers that the lab started, and the suffix of figures with the period of a recurring
# activity.
SERVER, BEFORE, PERIOD = "server.", "server.before.", "_period_seconds"
# Series with fewer points than this are not tested.
POINTS_MIN = 5
# The p99 shows the drift of percentiles at this rank or above, and the p50 the drift of lower percentiles.
TAIL = 0.9
# The prefix of figures of the load phase, which has no time series.
LOAD = "load."
# This many drops or more indicate a periodic activity of the system.
DIPS_MIN = 3
# Drops are a separate state if their mean is this many standard deviations (the root mean square of both groups) below
# the mean of the other intervals (Ashman, Bird & Zepf, Astronomical Journal 108, 1994). In simulations with thresholds
# from 2.5 to 4.5, thresholds below 3.5 count the tail of lognormal, exponential and Poisson noise as drops, and
# thresholds above 3.5 miss drops in noise of 15 %.
SEPARATION = 3.5


def check_steadiness(trial: TrialResult, series: Series, settings: Settings) -> Looks:
    """Finds trends and changes of level in throughput and latencies, and repeated drops of throughput."""
    rates = series.complete_rates
    if len(rates) < POINTS_MIN:
        yield NotLooked(NAME, f"the window has fewer than {POINTS_MIN} intervals")
    parts, factor = find_unsteadiness(THROUGHPUT, rates, series, settings)
    share = settings.check_threshold(NAME, "dip")
    if drops := count_dips(rates, share, settings.matters):
        parts.append(f"is below {units.format_percent(share)} of its upper quartile {drops} times")
    if parts:
        hint = warm_up_hint(series, settings) or HINT
        message = f"throughput {' and '.join(parts)}"
        factor = 1.0 if drops else factor
        effect = Effect(disturbs=not drops, drifts=factor)
        yield Finding(NAME, Severity.SUSPECT, message, hint, (trial.trial,), effect=effect)
    for name, known in latencies_to_compare(series, settings):
        if len(known) < len(rates):
            yield NotLooked(NAME, f"some intervals have no {name}", about="latencies")
            continue
        parts, factor = find_unsteadiness(name, known, series, settings)
        if parts:
            message = f"the {name} of all operations {' and '.join(parts)}"
            here, effect = (trial.trial,), Effect(disturbs=True, drifts=factor)
            yield Finding(NAME, Severity.SUSPECT, message, HINT, here, about="latencies", effect=effect)


def latencies_to_compare(series: Series, settings: Settings) -> Iterator[tuple[str, Sequence[float]]]:
    """The time series of each compared percentile, ns, with its name; intervals without the percentile are omitted."""
    for name, column in (("p50", series.p50_ns), ("p99", series.p99_ns)):
        if column and name_compared(name, settings):
            yield name, [figure for figure in column[: len(series.complete_rates)] if figure is not None]


def window_levels(series: Series, settings: Settings) -> Levels:
    """The levels of throughput and of the compared percentiles in each part of the window; levels of 0 are omitted.

    Throughputs can be added, so their level is the mean, weighted by the lengths of the intervals. Percentiles have
    outliers, so their level is the geometric mean. A median would miss a change that affects less than half of a part.
    """
    rates = split_window([*zip(series.throughput, series.length_seconds, strict=True)])
    levels = {(THROUGHPUT, part): (fmean(*zip(*a, strict=True)), fmean(*zip(*b, strict=True))) for part, a, b in rates}
    for name, known in latencies_to_compare(series, settings):
        if len(known) == len(series.complete_rates) and min(known) > 0:
            levels |= {(name, part): (geometric_mean(a), geometric_mean(b)) for part, a, b in split_window(known)}
    return {key: both for key, both in levels.items() if min(both) > 0}


def split_window(points: Sequence[Point]) -> Iterator[tuple[str, Sequence[Point], Sequence[Point]]]:
    """Each part of the window, with the points outside it and inside it; nothing if there are too few points."""
    count = len(points)
    if count >= 2:
        yield HALVES, points[: count // 2], points[-(count // 2) :]
    if count >= len(QUARTERS):
        for part, (first, last) in zip(QUARTERS, pairwise(count * at // 4 for at in range(5)), strict=True):
            yield part, [*points[:first], *points[last:]], points[first:last]


def window_tests(settings: Settings) -> list[tuple[str, float]]:
    """The parts of the window, each with the significance level of its test.

    The quarters share one error rate (Bonferroni), and reveal a hump, or a step near an end, which the halves miss.
    """
    alpha = settings.check_threshold(NAME, "together")
    return [(HALVES, alpha), *((quarter, alpha / len(QUARTERS)) for quarter in QUARTERS)]


def find_common_drift(
    trials: Sequence[TrialResult], levels_of: Mapping[str, Levels], jumps: Collection[str], settings: Settings
) -> Iterator[Finding]:
    """A finding if the repeats drift in a common direction, which is not chance even if no single drift is significant.

    The test is a t test on the logarithms of the level inside a part of the window ÷ the level outside. The mean change
    must reach the threshold `effect`. A trend that changes by some share over the window changes by half of this share
    between the halves; a step in a quarter counts in full. Repeats that drift on their own (`jumps`) could hide a
    change common to the other repeats, so the other repeats are also tested alone.
    """
    effect = log1p(settings.check_threshold(NAME, "effect"))
    without_jumps = [trial for trial in trials if trial.trial not in jumps]
    for name in dict.fromkeys(name for trial in trials for name, _ in levels_of.get(trial.trial, ())):
        for (part, level), some in product(window_tests(settings), (trials, without_jumps)):
            known = [at[name, part] for trial in some if (name, part) in (at := levels_of.get(trial.trial, {}))]
            steps = [log(there / rest) for rest, there in known]
            least = effect / 2 if part == HALVES else effect
            # If all repeats drift by the same factor, p is nan.
            if len(known) < REPEATS_MIN or abs(fmean(steps)) < least or t_interval(np.array(steps))[1] >= level:
                continue
            first, second = (exp(fmean(log(both[at]) for both in known)) for at in (0, 1))
            about: About = "all" if name == THROUGHPUT else "latencies"
            subject = name if about == "all" else f"the {name} of all operations"
            change = part_text(part, subject, first, second, *level_formats(name))
            message = f"{change} (mean of {len(known)} repeats)"
            yield Finding(NAME, Severity.SUSPECT, message, HINT, tuple(trial.trial for trial in some), about=about)
            break


def part_text(
    part: str, subject: str, outside: float, inside: float, plain: Callable[[float], str], full: Callable[[float], str]
) -> str:
    """The levels of a figure in a part of the window and outside it, as text."""
    if part == HALVES:
        return f"{part}, {subject} {drift_text(outside, inside, plain, full)}"
    return f"{part}, {subject} is {full(inside)}, against {full(outside)} in the remainder"


def series_of(metric: str) -> tuple[str, ...]:
    """The time series that show a figure's drift: the figure's own series; p50 or p99 for other percentiles; both for a
    mean."""
    if metric.startswith(LOAD) or not is_latency(metric):
        return (THROUGHPUT,) if metric == THROUGHPUT else ()
    at = percentile_rank(metric_statistic(metric))
    return ("p50", "p99") if at is None else ("p50",) if at < TAIL else ("p99",)


def name_compared(name: str, settings: Settings) -> bool:
    """Whether a percentile shows the drift of a compared figure, or of a default metric if the question names none."""
    return any(name in series_of(metric) for metric in settings.metrics or DEFAULT_METRICS)


def level_formats(name: str) -> tuple[Callable[[float], str], Callable[[float], str]]:
    """The formats of the first and the second of two levels of a figure."""
    return (
        (units.format_number, units.format_rate)
        if name == THROUGHPUT
        else (units.format_duration, units.format_duration)
    )


def assess_points(points: Sequence[float], settings: Settings) -> Steadiness:
    """The tests of a series for a trend and for a change of level, with the thresholds of the settings."""
    return assess_steadiness(points, settings.check_threshold(NAME, "effect"), settings.check_threshold(NAME, "alpha"))


def find_unsteadiness(
    name: str, points: Sequence[float], series: Series, settings: Settings
) -> tuple[list[str], float]:
    """Descriptions of the drift of a series over the window, and the largest factor between two levels; no
    descriptions and 1 if the series is steady."""
    assessment = assess_points(points, settings)
    parts, ends = [], []
    plain, full = level_formats(name)
    if "trend" in assessment.reasons:
        # The ends of the fitted line are clipped at 0, because a figure cannot be negative.
        first, last = [max(assessment.level * (1 + side * assessment.trend_share / 2), 0.0) for side in (-1, 1)]
        ends.append((first, last))
        # Readers can verify means, but not the ends of a line, so the line is printed only if it contradicts the means.
        quarter = max(len(points) // 4, 1)
        levels = fmean(points[:quarter]), fmean(points[-quarter:])
        spans = "from the first quarter of the window to the last"
        if (levels[1] > levels[0]) != (last > first):
            levels, spans = (first or min(points), last or min(points)), "over the window, as a fitted line"
        parts.append(f"{drift_text(*levels, plain, full)} {spans}")
    if "change" in assessment.reasons and (at := assessment.change_at) is not None:
        first, last = median(points[:at]), median(points[at:])
        ends.append((first, last))
        when = f"{units.format_number(series.start_seconds[at])} s into"
        if parts:
            # Two statements about the same series would read as a contradiction if the directions differ.
            trend = "rising" if levels[1] > levels[0] else "falling"
            parts = [f"has a {trend} trend ({span_text(*levels, plain, full)} {spans})"]
            parts.append(f"a step {when} it (medians: {span_text(first, last, plain, full)})")
        else:
            parts.append(f"{drift_text(first, last, plain, full, fall='drops')} (medians), {when} the window")
    return parts, max((max(both) / min(both) if min(both) > 0 else inf for both in ends), default=1.0)


def count_dips(rates: Sequence[float], share: float, matters: float) -> int:
    """The number of drops of throughput below a share of its upper quartile, if they recur; else 0.

    A single drop is an outlier or the end of a window. Three or more indicate a periodic activity, such as flushes or
    checkpoints. The reference is the upper quartile, as drops can last for more than half of the time, so that the
    median would lie within them.
    """
    if len(rates) < DIPS_MIN:
        return 0
    level = share * quantiles(rates, n=4, method="inclusive")[2]
    low = [rate < level for rate in rates]
    count = sum(here and not before for before, here in pairwise([False, *low]))
    if count < DIPS_MIN:
        return 0
    below, above = [rate for rate in rates if rate < level], [rate for rate in rates if rate >= level]
    apart = fmean(above) - fmean(below)
    if apart < SEPARATION * sqrt((pvariance(above) + pvariance(below)) / 2):
        return 0
    # By chance, the window of one side may contain one more drop than the window of the other side.
    share_of_drop = apart * len(below) / count / sum(rates)
    return count if 2 * share_of_drop >= matters else 0


def find_rare_activity(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """A note for each server activity whose period exceeds the window, so that chance decides whether it occurs."""
    length = window_seconds(trial)
    for name, value in trial.values.items():
        periodic = name.startswith(SERVER) and name.endswith(PERIOD) and not name.startswith(BEFORE)
        if not periodic or not length or value.value <= length:
            continue
        activity = name.removeprefix(SERVER).removesuffix(PERIOD)
        system, _, work = activity.replace("_", " ").rpartition(".")
        period, window = (units.format_duration(seconds * 1e9) for seconds in (value.value, length))
        message = f"{system} begins a {work} every {period} (median), and the window is {window} long"
        hint = "measure for several of these periods, or start the activity in a hook at the beginning of each trial"
        yield Finding(NAME, Severity.NOTE, message, hint, (trial.trial,))


def warm_up_hint(series: Series, settings: Settings) -> str:
    """A hint with the additional warm-up that would have left a steady window (MSER-5); empty if there is none."""
    rates = series.complete_rates
    end = warm_up_end(rates)
    if not end or not assess_points(rates[end:], settings).steady:
        return ""
    return f"extend the warm-up by {series.start_seconds[end]:.2g} s: the remaining window was steady (MSER-5)"


def drift_text(
    first: float, last: float, plain: Callable[[float], str], full: Callable[[float], str], fall: str = "falls"
) -> str:
    """A change of level as text: `falls from 12,000 to 9,000 op/s`."""
    return f"{'rises' if last > first else fall} from {span_text(first, last, plain, full)}"


def span_text(first: float, last: float, plain: Callable[[float], str], full: Callable[[float], str]) -> str:
    """Two levels as text: `12,000 to 9,000 op/s`."""
    # A level is known to three digits at best.
    rounded = [float(f"{level:.3g}") for level in (first, last)]
    return f"{plain(rounded[0])} to {full(rounded[1])}"


def find_compilation(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """A finding on a JVM that was still compiling during the window."""
    share = trial.numeric_fact("jvm_compiling")
    if share is not None and share > settings.check_threshold(NAME, "compiling"):
        message = f"the JVM was still compiling during {units.format_percent(share)} of the window"
        yield Finding(NAME, Severity.SUSPECT, message, "warm up longer", (trial.trial,))
