"""too-few-samples: there are too few operations or repeats for a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadstone.format import units
from loadstone.judge.figures import ALL, OUTSIDE_LOAD, parse_percentile, split_metric
from loadstone.judge.finding import Finding, Severity
from loadstone.judge.settings import Settings
from loadstone.results.trial_result import TrialResult
from loadstone.statistics.estimate import REPEATS_MIN

NAME = "too-few-samples"
REPEAT = f"repeat at least {REPEATS_MIN} times: with fewer, no test of blocks can tell a difference from chance"


def check_samples(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """A variant's requested percentiles that are withheld, one finding per operation; and too few repeats."""
    ids = tuple(trial.trial for trial in trials)
    fewest = fewest_operations(trials)
    beyond = settings.check_threshold(NAME, "beyond")
    groups: dict[str, list[str]] = {}
    for metric, n in fewest.items():
        if has_few_samples(n, metric, beyond) and is_requested(metric, settings):
            groups.setdefault(split_metric(metric)[0], []).append(metric)
    for name, metrics in groups.items():
        named, n = ", ".join(split_metric(metric)[1] for metric in metrics), fewest[metrics[0]]
        message = f"{name}: {named} withheld, as fewer than {beyond:g} of {units.count_noun(n, 'operation')} lie beyond"
        yield Finding(NAME, Severity.WITHHELD, message, "measure longer", ids, metrics[0])
    # The figures are valid; only the interval and the claim are missing, which is not suspect.
    if len(trials) < REPEATS_MIN:
        yield Finding(NAME, Severity.NOTE, too_few(len(trials)), REPEAT, ids)


def is_requested(metric: str, settings: Settings) -> bool:
    """Whether a withheld figure is reported: a figure in the question; without any, a figure of the operations."""
    if settings.metrics:
        return metric in settings.metrics
    operation = split_metric(metric)[0]
    # Neither the load's, nor service times in addition to response times; the operations already cover `all`.
    return "." not in operation and operation not in OUTSIDE_LOAD | {ALL}


def too_few(n: int) -> str:
    """The conclusions that too few repeats do not allow."""
    return "n=1: no interval" if n == 1 else f"n={n}: no interval, no claim possible"


def fewest_operations(trials: Sequence[TrialResult]) -> dict[str, int]:
    """For each percentile, the smallest number of operations on which it is based in any trial, if known."""
    fewest: dict[str, int] = {}
    for trial in trials:
        for metric, value in trial.values.items():
            if value.n and parse_percentile(metric) is not None and value.n < fewest.get(metric, value.n + 1):
                fewest[metric] = value.n
    return fewest


def has_few_samples(n: int, metric: str, beyond: float) -> bool:
    """Whether fewer than `beyond` of `n` operations lie above a percentile; False for other metrics, and for n = 0."""
    p = parse_percentile(metric)
    # 1 - 0.999 is a little more than a thousandth in floats.
    return bool(n) and p is not None and n * (1 - p) < beyond * (1 - 1e-9)
