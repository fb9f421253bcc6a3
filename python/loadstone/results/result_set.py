"""A result set: trials with the question that they answer. It is the input of all later steps: the judge, tables,
reports and exports treat Loadstone's own trials and files from other tools in the same way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from loadstone.results.trial_result import Scalar, Series, TrialResult
from loadstone.results.value import FINITE, HIGHER_IS_BETTER, THROUGHPUT, Value, better_direction, metric_statistic

# The dimensions that set the load.
LOADS = ("clients", "rate")
# The metrics of a comparison, unless the experiment sets other metrics.
DEFAULT_METRICS = (
    *("throughput", "read.p99", "update.p99", "insert.p99", "write.p99", "sync.p99"),
    *("read.p50", "update.p50", "insert.p50", "write.p50", "sync.p50"),
)
# The latencies that are shown if no default latency was measured, or for a single variant.
ALL_OPERATIONS = ("all.p99", "all.p50")
# The statistics of a latency, for operations without any of the default metrics; older tools print few statistics.
LATENCIES = (("p99", "p50"), ("p95",), ("p90",), ("mean",))
# The maximum width of an interval, as a share of the figure: for the first compared metric, or for each named metric.
Until = float | Mapping[str, float] | None
# The default compared dimension is the first of these dimensions that varies.
USUAL = ("system", "variant", "run", "store")
AT_LEAST = 6
# The smallest difference that a comparison claims, as a share, unless the question sets another share.
MATTERS = 0.01


@dataclass(frozen=True)
class Question:
    """The question of an experiment: the part of its resolved file that the judge and the report need."""

    __pydantic_config__: ClassVar = FINITE

    text: str = ""
    # The compared dimension, and the value that is the baseline (None: the first value seen).
    by: str | None = None
    baseline: Scalar | None = None
    # The compared metrics; if empty, the DEFAULT_METRICS that were measured.
    metrics: tuple[str, ...] = ()
    # The minimum and maximum number of repeats, and the maximum width of the intervals (0.05: ±2.5 %).
    at_least: int = AT_LEAST
    at_most: int | None = None
    until: Until = None
    # `device`: the claim that the results measure the device, not the page cache.
    claims: str | None = None
    # Whether the experiment requested that trials verify the data that they read.
    verify: bool = False
    # Thresholds of checks that differ from the defaults: {"littles-law": {"low": 0.9}}.
    checks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    # The search: {"such_that": "p99 < 10ms", "over": "clients", "from": 1, "to": 1024}; None if there is no search.
    find: Mapping[str, Scalar | None] | None = None
    # Guarantees in which the compared values differ on purpose: `durability`, `consistency` …
    promises: tuple[str, ...] = ()
    # The facts, or groups of facts, that each dimension sets: {"cl": ("consistency",), "letter": ("work",)}.
    guarantees: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Whether to show each repeat in addition to the medians.
    repeats: bool = False
    # The smallest difference that matters, as a share of the baseline's figure (0.01: 1 %).
    matters: float = MATTERS
    # Conditions that decide whether the results pass: `read.p99 < 10ms`, `throughput >= 0.95x`.
    expect: tuple[str, ...] = ()

    def require_valid(self) -> None:
        """Raises ValueError for a value that no experiment can have, so that it must come from a damaged folder."""
        widths = self.until if isinstance(self.until, Mapping) else {"until": self.until}
        least = {"at_least": (self.at_least, 1), "at_most": (self.at_most, 1), "matters": (self.matters, 0)}
        for name, (number, bound) in {**least, **{name: (width, 0) for name, width in widths.items()}}.items():
            if number is not None and number < bound:
                raise ValueError(f"{name} must be at least {bound}, got {number}")


@dataclass(frozen=True)
class ResultSet:
    """Trials that belong together."""

    name: str
    trials: Sequence[TrialResult]
    question: Question = field(default_factory=Question)
    # Every planned trial, by id, with its variant; empty for results without a plan (imports).
    planned: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    # Whether the variants' trials were interleaved in random order, so that repeats are blocks.
    interleaved: bool = False
    # environment.json: hosts, versions, limits.
    environment: Mapping[str, Any] = field(default_factory=dict)
    # The resolved experiment file as text, to show and to reproduce.
    experiment: str = ""
    # Returns a trial's time series by its id, if one was recorded; read on demand.
    series: Callable[[str], Series | None] = lambda _: None
    # Returns the directory with the files of a trial's attempt, by the trial's id; None if there is no directory.
    files: Callable[[str], Path | None] = lambda _: None
    # Returns the histogram log from which a trial was read, by the trial's id; None for any other trial.
    log: Callable[[str], Path | None] = lambda _: None
    # The folder or file from which the set was read.
    path: Path | None = None
    # Warnings for the user about data that had to be omitted while reading.
    warnings: tuple[str, ...] = ()
    # The question of each trial's original set, by the trial's id, if this set joins several sets.
    own: Mapping[str, Question] = field(default_factory=dict)
    # pilot.json: the warm-up that a pilot block found; empty without a pilot block.
    pilot: Mapping[str, Any] = field(default_factory=dict)
    # The trials of the pilot block, which never count.
    pilots: Sequence[TrialResult] = ()
    # Whether trials that differ in a dropped dimension count as repeats; repeats are then not blocks.
    pooled: bool = False
    # Evidence for the recorded question that this view of the results omits.
    departures: tuple[str, ...] = ()
    # The question recorded with the results, if this view has a different one; its metrics are confirmatory.
    recorded: Question | None = None
    # The run of each trial, by the trial's id; if empty, each trial is a separate run, or all are one run.
    runs: Mapping[str, str] = field(default_factory=dict)

    @property
    def confirmatory(self) -> tuple[str, ...]:
        """The metrics of the recorded question, or of the view if none was recorded."""
        recorded = None if self.recorded is None else replace(self, question=self.recorded, recorded=None)
        return self.headline_metrics if recorded is None else recorded.headline_metrics

    @property
    def is_one_run(self) -> bool:
        """Whether all trials belong to one run of one experiment."""
        return self.interleaved or self.question.find is not None

    def run_of(self, trial: str) -> str:
        """The run of a trial; each imported trial is a run."""
        return self.runs.get(trial, "" if self.is_one_run else trial)

    @cached_property
    def dimensions(self) -> dict[str, list[Scalar]]:
        """Each dimension, with its values in order of first appearance."""
        dimensions: dict[str, dict[Scalar, None]] = {}
        for trial in self.trials:
            for name, value in trial.config.items():
                dimensions.setdefault(name, {})[value] = None
        return {name: list(values) for name, values in dimensions.items()}

    @cached_property
    def variants(self) -> dict[tuple[tuple[str, Scalar], ...], list[TrialResult]]:
        """The trials of each variant in order of their repeats, keyed by the variant's config as sorted pairs."""
        variants: dict[tuple[tuple[str, Scalar], ...], list[TrialResult]] = {}
        for trial in self.trials:
            variants.setdefault(variant_key(trial.config), []).append(trial)
        return {key: sorted(trials, key=lambda trial: trial.repeat) for key, trials in variants.items()}

    @cached_property
    def metrics(self) -> list[str]:
        """Every metric of any trial, in the order of first appearance."""
        return list(dict.fromkeys(metric for trial in self.trials for metric in trial.values))

    @property
    def comparison_dimension(self) -> str | None:
        """The compared dimension: the question's, else the first of the USUAL dimensions that varies, else the first
        dimension that varies; None if none varies."""
        if self.question.by is not None:
            return self.question.by
        varying = [name for name, values in self.dimensions.items() if len(values) > 1]
        return next((name for name in USUAL if name in varying), varying[0] if varying else None)

    @cached_property
    def headline_metrics(self) -> tuple[str, ...]:
        """The compared metrics, the deciding metric first (`order_metrics`)."""
        return order_metrics(self.trials, self.question.metrics)

    @property
    def deciding_metric(self) -> str:
        """The first compared metric."""
        return next(iter(self.headline_metrics), THROUGHPUT)

    @property
    def is_at_rate(self) -> bool:
        """Whether every trial had a target rate."""
        return is_open(self.trials)


def order_metrics(trials: Iterable[TrialResult], requested: Sequence[str]) -> tuple[str, ...]:
    """The measured metrics to compare; the first is confirmatory and determines stopping, the claim and the chart.

    The result is the `requested` metrics, else the DEFAULT_METRICS of at least two variants, else the figures for which
    more is better, else means, else the first figure that can be compared. If block sizes differ, bandwidths are added.
    At a set rate, every system's throughput equals the rate, so a latency decides and throughput is last.
    """
    every = list(trials)
    known = {metric: value for trial in every for metric, value in trial.values.items()}
    metrics = [metric for metric in requested if metric in known]
    if not requested:
        shared = {metric: known[metric] for metric in list_shared(every)}
        # Variants may share only figures without a better direction.
        known = shared if any(better_direction(metric, value.unit) for metric, value in shared.items()) else known
        metrics = [metric for metric in DEFAULT_METRICS if metric in known]
        if len({trial.facts.get("block_size") for trial in every}) > 1:
            metrics += [metric for metric in known if metric_statistic(metric) == "bandwidth" and metric not in metrics]
    if not metrics:
        measured = [metric for metric in known if not metric.startswith("load.")]
        metrics = [metric for metric in measured if metric_statistic(metric) in HIGHER_IS_BETTER]
        metrics = metrics or [metric for metric in measured if metric_statistic(metric) == "mean"]
        metrics = metrics or [metric for metric in measured if better_direction(metric, known[metric].unit)][:1]
    is_at_rate = is_open(every)
    if is_at_rate and metrics == [THROUGHPUT] and THROUGHPUT not in requested:
        # The requested metrics were not measured, or the operations (such as scans) are not among the default metrics.
        metrics += [metric for metric in DEFAULT_METRICS[1:] if metric in known] or list_latencies(known)
    return sort_metrics(metrics, is_at_rate=is_at_rate)


def list_latencies(known: Mapping[str, Value]) -> list[str]:
    """The latencies of all operations, else of each operation type, with the first statistics in LATENCIES that were
    measured."""
    plain = [name for name, value in known.items() if name.count(".") == 1 and value.unit == "ns"]
    for statistics in LATENCIES:
        names = [f"{name.partition('.')[0]}.{statistic}" for statistic in statistics for name in plain]
        names = [name for name in dict.fromkeys(names) if name in known and not name.startswith("load.")]
        if names:
            return [name for name in names if name.startswith("all.")] or names
    return []


def list_shared(trials: Sequence[TrialResult]) -> list[str]:
    """The metrics that at least two variants have, or all metrics of the only variant, in order of first appearance."""
    metrics_of: dict[tuple[tuple[str, Scalar], ...], dict[str, None]] = {}
    for trial in trials:
        if trial.values:
            metrics_of.setdefault(variant_key(trial.config), {}).update(dict.fromkeys(trial.values))
    counts = Counter(metric for metrics in metrics_of.values() for metric in metrics)
    least = min(2, len(metrics_of))
    return [metric for metric, count in counts.items() if count >= least]


def sort_metrics(metrics: Iterable[str], *, is_at_rate: bool) -> tuple[str, ...]:
    """The metrics in their order; at a rate, throughput is last."""
    return tuple(sorted(metrics, key=lambda metric: is_at_rate and metric == THROUGHPUT))


def is_open(trials: Iterable[TrialResult]) -> bool:
    """Whether every trial had a target rate; false without trials."""
    loops = {trial.loop for trial in trials}
    return loops == {"open"}


def first_metric(trials: Iterable[TrialResult], requested: Sequence[str]) -> str:
    """The metric that decides whether there are enough repeats: the first compared metric."""
    return next(iter(order_metrics(trials, requested)), THROUGHPUT)


def deciding_metrics(trials: Iterable[TrialResult], metrics: Sequence[str], until: Until) -> dict[str, float]:
    """The figures whose intervals must be narrow, with the requested width as a share of the figure."""
    if until is None:
        return {}
    known = list(trials)
    if not isinstance(until, Mapping):
        return {first_metric(known, metrics): until}
    measured = {metric for trial in known for metric in trial.values}
    return {metric: share for metric, share in until.items() if metric in measured}


def number_keys(keys: Iterable[Hashable]) -> list[int]:
    """For each key, its number among equal keys, from 1."""
    counts: Counter[Hashable] = Counter()
    numbers = []
    for key in keys:
        counts[key] += 1
        numbers.append(counts[key])
    return numbers


def variant_key(config: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
    """Converts a config to a key that can be hashed."""
    return tuple(sorted(config.items()))


def variant_name(config: Mapping[str, Scalar] | tuple[tuple[str, Scalar], ...]) -> str:
    """A config as text: `system=lmdb clients=2`."""
    return " ".join(f"{name}={value}" for name, value in dict(config).items()) or "all"


def name_value(dimension: str, value: object) -> str:
    """A value of a dimension as text; a number needs the name of its dimension: `splits 20`, `4 clients`."""
    text = str(value)
    if not re.fullmatch(r"[\d.,]+ ?[A-Za-z%]{0,2}", text):
        return text
    return f"{text} client{'' if text == '1' else 's'}" if dimension == "clients" else f"{dimension} {text}"


def natural_key(value: object) -> list[tuple[int, float, str]]:
    """A sort key that orders numbers by value, even within text: 2 before 16, `v9` before `v10`."""
    if isinstance(value, tuple):
        return [part for item in value for part in natural_key(item)]
    if isinstance(value, int | float):
        return [(0, float(value), "")]
    parts = re.split(r"(\d+)", str(value))
    return [(0, float(part[:300]), "") if part.isdecimal() else (1, 0.0, part) for part in parts if part]
