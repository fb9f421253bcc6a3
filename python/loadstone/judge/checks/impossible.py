"""impossible: figures that contradict arithmetic, or exceed the limits of the device and the link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from loadstone.format import units
from loadstone.judge.checks.not_steady import Levels
from loadstone.judge.figures import (
    ALL,
    bytes_in_window,
    count_failed_operations,
    is_latency,
    percentile_rank,
    split_metric,
    window_seconds,
)
from loadstone.judge.finding import Finding, Pair, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult
from loadstone.results.value import SIGNED, Value, metric_statistic
from loadstone.statistics.estimate import REPEATS_MIN

NAME = "impossible"
BANDWIDTH = "bandwidth"
READS = frozenset({"read"})
LIMITS = {"read": "device_read_bps", "write": "device_write_bps", "append": "device_write_bps"}
VERBS = {"read": "read", "write": "wrote", "append": "appended"}
# Two repeats are copies of one run if all their figures are equal, and there are at least this many figures, one of
# them with at least this many digits.
FIGURES_MIN, DIGITS_MIN = 3, 9
# In at least this many repeats, a figure with at least this many digits is not constant by chance.
CONSTANT_MIN, CONSTANT_DIGITS_MIN = 3, 5
# A measured rate that is at least this many times its resolution varies between repeats.
ROUND_STEPS_MIN = 1000
MEMORY = "the data came from the page cache: read several times more than memory holds, or drop the caches first"
WRONG = "the figure or the stated speed is wrong: measure the device again, and check which processes moved these bytes"
MIXED = "the figures are from several runs, or not in the stated unit: copy them again from a single log"


# The fact that marks a trial whose percentiles were computed from several processes' percentiles, not their histograms.
PERCENTILES_OF = "percentiles_of"
MERGE = "merge the histograms of the processes (cassandra-stress -log hdrfile=…, YCSB hdrhistogram.fileoutput=true)"


LevelsOfTrials = Mapping[str, Levels]


@dataclass(frozen=True)
class Speed:
    """The speed at which bytes were moved, and the speed limit; B/s."""

    metric: str
    verb: str
    measured: float
    limit: float
    what: str
    hint: str

    def find_excess(self, settings: Settings, trials: tuple[str, ...], suffix: str = "") -> Iterator[Finding]:
        """A finding if the speed exceeds the limit."""
        if self.measured > self.limit * settings.check_threshold(NAME, "speed"):
            measured, limit = units.format_bandwidth(self.measured), units.format_bandwidth(self.limit)
            message = f"{self.verb} at {measured}, but the {self.what} {limit}{suffix}"
            # If the device or the link cannot have moved the bytes, every figure of the trial is invalid.
            metric = self.metric if self.metric.endswith(BANDWIDTH) else ""
            yield Finding(NAME, Severity.INVALID, message, self.hint, trials, metric)


def check_plausibility(trial: TrialResult, settings: Settings) -> Iterator[Finding]:
    """Finds speeds beyond the limits that facts state, and figures that contradict each other."""
    here = (trial.trial,)
    for speed in list_speeds(trial):
        yield from speed.find_excess(settings, here)
    if parts := trial.facts.get(PERCENTILES_OF):
        message = (
            f"the percentiles were computed from the percentiles of {parts}: they are not percentiles of the operations"
        )
        yield Finding(NAME, Severity.WITHHELD, message, MERGE, here, about="latencies")
    for message in find_contradictions(trial, settings.check_threshold(NAME, "rounding")):
        yield Finding(NAME, Severity.INVALID, message, MIXED, here)


def check_mean(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """Compares the mean speed of a variant, which is the figure that users publish, with the limit."""
    speeds_by_metric: dict[str, list[Speed]] = {}
    for trial in trials:
        for speed in list_speeds(trial):
            speeds_by_metric.setdefault(speed.metric, []).append(speed)
    ids = tuple(trial.trial for trial in trials)
    for every in (every for every in speeds_by_metric.values() if len(every) > 1):
        limit = max(speed.limit for speed in every)
        average = replace(every[0], measured=fmean(speed.measured for speed in every), limit=limit)
        yield from average.find_excess(settings, ids, f" (mean of {units.count_noun(len(every), 'repeat')})")


def find_duplicate_repeats(trials: Sequence[TrialResult], levels: LevelsOfTrials) -> Iterator[Finding]:
    """Findings on repeats of a variant that are equal to the last digit, as if one run had been counted twice."""
    for first, again in find_copies(trials, levels):
        message = f"repeats {first.repeat} and {again.repeat} have the same figures to the last digit"
        hint = "one run is counted twice: import each run once"
        yield Finding(NAME, Severity.INVALID, message, hint, (first.trial, again.trial))


def find_constant_figures(trials: Sequence[TrialResult]) -> Iterator[Finding]:
    """Findings on figures that are equal in all repeats, with too many digits to be chance: a mean was copied.

    If only the first repeat differs, all later repeats may have printed a stored result.
    """
    if len(trials) < CONSTANT_MIN or any(trial.loop == "open" for trial in trials):
        return
    for metric in trials[0].values:
        later = {trial.value(metric) for trial in trials[1:]}
        figure, is_first_equal = trials[-1].value(metric), trials[0].value(metric) in later
        if len(later) > 1 or figure is None or (not is_first_equal and len(trials) < REPEATS_MIN):
            continue
        resolution = trials[0].values[metric].resolution
        # A figure with few digits can be equal by chance.
        copied = (
            len(significant_digits(figure).rstrip("0")) >= CONSTANT_DIGITS_MIN
            and resolution * 10 ** (CONSTANT_DIGITS_MIN - 1) <= figure
        )
        # A round rate that never varies is a setting, or a constant that the command prints.
        is_round = len(trials) >= REPEATS_MIN and is_first_equal and 0 < resolution * ROUND_STEPS_MIN <= figure
        kind = split_metric(metric)[1]
        if (copied and kind in ("throughput", BANDWIDTH, "mean")) or (is_round and kind in ("throughput", BANDWIDTH)):
            unit = trials[0].values[metric].unit
            repeats = f"all {len(trials)} repeats" if is_first_equal else f"all {len(trials)} repeats except the first"
            message = f"{metric} is {figure:,.10g} {unit} in {repeats}"
            hint = "a mean is not a repeat: import the figure of each repeat"
            severity = Severity.INVALID if copied else Severity.SUSPECT
            yield Finding(NAME, severity, message, hint, tuple(trial.trial for trial in trials), metric)


def find_shared_runs(pair: Pair, levels: LevelsOfTrials) -> Iterator[Finding]:
    """A finding if both sides of a comparison have equal figures, as if a run were compared with itself."""
    baselines = {trial.trial for trial in pair.baselines}
    copied_trials = find_copies([*pair.baselines, *pair.contenders], levels)
    shared = [
        (first, again) for first, again in copied_trials if first.trial in baselines and again.trial not in baselines
    ]
    # In one experiment, every trial ran, so individual equal trials can be due to chance.
    in_blocks = sum(first.repeat == again.repeat for first, again in shared)
    if shared and (not pair.is_one_run or in_blocks == len(pair.contenders)):
        of = "" if len(shared) == len(pair.contenders) else f" in {units.count_noun(len(shared), 'repeat')}"
        message = f"{pair.baseline} and {pair.contender} have the same figures to the last digit{of}"
        yield Finding(NAME, Severity.INVALID, message, "one run is compared with itself: name two runs", pair.trials)


def find_copies(trials: Sequence[TrialResult], levels: LevelsOfTrials) -> Iterator[tuple[TrialResult, TrialResult]]:
    """Pairs of trials with equal figures: the earlier trial and its copy.

    In logs of other tools, equal latencies and levels suffice, because the total of a copied log may have been edited.
    """
    trial_of: dict[tuple[tuple[str, float], ...], TrialResult] = {}
    for trial in trials:
        figures = tuple(sorted((metric, value.value) for metric, value in trial.values.items()))
        parts = [figures]
        if "tool" in trial.facts:
            # At a set rate, equal levels are no evidence, because the rate determines the time series.
            series = levels.get(trial.trial, {}).items() if trial.loop != "open" else ()
            known = ((f"{name} {part}", level) for (name, part), both in series for level in both)
            parts.append((*(figure for figure in figures if is_latency(figure[0])), *known))
        firsts = [
            first for part in filter(is_distinctive, parts) if (first := trial_of.setdefault(part, trial)) is not trial
        ]
        if firsts:
            yield firsts[0], trial


def is_distinctive(figures: Sequence[tuple[str, float]]) -> bool:
    """Whether figures are unlikely to be equal by chance: there are enough, and they are not all round."""
    return len(figures) >= FIGURES_MIN and any(len(significant_digits(figure)) >= DIGITS_MIN for _, figure in figures)


def significant_digits(figure: float) -> str:
    """The significant digits of a number."""
    return repr(figure).replace(".", "").partition("e")[0].strip("-0")


def list_speeds(trial: TrialResult) -> Iterator[Speed]:
    """Every speed that has a known limit."""
    for metric, value in trial.values.items():
        yield from limit_bandwidth(trial, metric, value)
    length = window_seconds(trial)
    if not length:
        return
    for metric, verb, limit in (
        ("device.read", "the device was read", "device_read_bps"),
        ("device.written", "the device was written", "device_write_bps"),
    ):
        size, most = bytes_in_window(trial, metric), trial.numeric_fact(limit)
        if size is not None and most is not None:
            yield Speed(metric, verb, size / length, most * count_data_nodes(trial), "device's limit is", WRONG)
    returned, link = trial.value("returned"), trial.numeric_fact("network_bps")
    # A system in the engine's process, or a copy of the data on the reader's own host, uses no network link.
    if returned is not None and link is not None and trial.facts.get("networked") == "yes":
        yield Speed(
            "returned",
            "values were returned",
            returned / length,
            link * count_data_nodes(trial),
            "link's limit is",
            WRONG,
        )


def limit_bandwidth(trial: TrialResult, metric: str, value: Value) -> Iterator[Speed]:
    """A bandwidth with the device's limit in its direction; without a direction, with the higher of the two limits."""
    operation, last = split_metric(metric)
    if last != BANDWIDTH or operation.startswith("load."):
        return
    known = [trial.numeric_fact(limit) for limit in ([LIMITS[operation]] if operation in LIMITS else LIMITS.values())]
    limits = [limit for limit in known if limit is not None]
    # A bandwidth without a direction is impossible only if it exceeds both limits.
    if len(limits) != len(known):
        return
    share = count_data_nodes(trial) if trial.facts.get("bandwidth_of") == "cluster" else 1
    limit, link = max(limits) * share, trial.numeric_fact("network_bps")
    hint = MEMORY if operation in READS else WRONG
    if link is not None and value.value > link * share:
        hint += f"; the link of {units.format_bandwidth(link * share)} cannot have carried the data either"
    yield Speed(metric, VERBS.get(operation, "moved data"), value.value, limit, "device's limit is", hint)


def count_data_nodes(trial: TrialResult) -> float:
    """The number of nodes that hold the data; 1 if unknown."""
    return max(trial.numeric_fact("data_nodes") or 1, 1)


def find_contradictions(trial: TrialResult, rounding: float) -> Iterator[str]:
    """Negative figures, decreasing percentiles (at most one per operation), and means outside the extremes."""
    ladders: dict[str, list[tuple[float, Value]]] = {}
    means: dict[str, Value] = {}
    for metric, value in trial.values.items():
        if value.value < 0 and metric_statistic(metric) not in SIGNED:
            yield f"{metric} is negative: {units.format_figure(value.value, value.unit)}"
            continue
        name, last = split_metric(metric)
        if last == "mean":
            means[name] = value
        # A percentile that is only a bound cannot contradict other percentiles.
        elif value.bound is None and (height := percentile_rank(last)) is not None:
            ladders.setdefault(name, []).append((height, value))
    for name, ladder in ladders.items():
        ladder.sort(key=lambda step: step[0])
        for (_, low), (_, high) in pairwise(ladder):
            if low.value - low.resolution > high.value * (1 + rounding) + high.resolution:
                yield f"{figure_text(low)}, above {figure_text(high)}"
                break
        # The mean of all operations includes failures; the extremes cover only operations that succeeded.
        if name in means and not (
            ALL in name.split(".") and count_failed_operations(trial, "load." * name.startswith("load."))
        ):
            yield from find_outside_mean(means[name], ladder, rounding)


def find_outside_mean(mean: Value, ladder: list[tuple[float, Value]], rounding: float) -> Iterator[str]:
    """A mean below the minimum or above the maximum."""
    (lowest, low), (highest, high) = ladder[0], ladder[-1]
    if lowest == 0 and mean.value * (1 + rounding) + mean.resolution < low.value - low.resolution:
        yield f"{figure_text(mean)}, below {figure_text(low)}"
    if highest == 1 and mean.value - mean.resolution > high.value * (1 + rounding) + high.resolution:
        yield f"{figure_text(mean)}, above {figure_text(high)}"


def figure_text(value: Value) -> str:
    """A figure with its name: `read.p99 of 1.23 ms`."""
    return f"{value.metric} of {units.format_figure(value.value, value.unit)}"
