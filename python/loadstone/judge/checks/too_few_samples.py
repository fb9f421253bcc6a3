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
REPEAT = f"run at least {REPEATS_MIN} repeats: with fewer, no claim is made"


def check_samples(trials: Sequence[TrialResult], settings: Settings) -> Iterator[Finding]:
    """Findings on withheld percentiles that were requested, one finding per operation type, and on too few repeats."""
    ids = tuple(trial.trial for trial in trials)
    fewest = fewest_operations(trials)
    beyond = settings.check_threshold(NAME, "beyond")
    groups: dict[str, list[str]] = {}
    for metric, n in fewest.items():
        if has_few_samples(n, metric, beyond) and is_requested(metric, settings):
            groups.setdefault(split_metric(metric)[0], []).append(metric)
    for name, metrics in groups.items():
        named, n = units.join_names([split_metric(metric)[1] for metric in metrics]), fewest[metrics[0]]
        are, them = ("is", "it") if len(metrics) == 1 else ("are", "each of them")
        few = f"fewer than {beyond:g} of {units.count_noun(n, 'operation')} exceed {them}"
        message = f"{name}: {named} {are} withheld, because {few}"
        yield Finding(NAME, Severity.WITHHELD, message, "measure longer", ids, metrics[0])
    # With too few repeats, the figures are valid: only the interval and the claim are missing.
    if len(trials) < REPEATS_MIN:
        yield Finding(NAME, Severity.NOTE, too_few(len(trials)), REPEAT, ids)


def is_requested(metric: str, settings: Settings) -> bool:
    """Whether a withheld figure is reported: a metric of the question or, if the question names no metrics, a
    percentile of an operation."""
    if settings.metrics:
        return metric in settings.metrics
    operation = split_metric(metric)[0]
    # Omits the load phase, service times next to response times, and `all`, which the operations already cover.
    return "." not in operation and operation not in OUTSIDE_LOAD | {ALL}


def too_few(n: int) -> str:
    """The conclusions that this number of repeats does not allow, as text."""
    return "n=1: no interval" if n == 1 else f"n={n}: no interval, no claim possible"


def fewest_operations(trials: Sequence[TrialResult]) -> dict[str, int]:
    """For each percentile, the smallest known number of operations behind it in any trial."""
    fewest: dict[str, int] = {}
    for trial in trials:
        for metric, value in trial.values.items():
            if value.n and parse_percentile(metric) is not None and value.n < fewest.get(metric, value.n + 1):
                fewest[metric] = value.n
    return fewest


def has_few_samples(n: int, metric: str, beyond: float) -> bool:
    """Whether fewer than `beyond` of `n` operations lie above a percentile; False for other metrics, and for n = 0."""
    p = parse_percentile(metric)
    # In floating point, 1 - 0.999 is slightly more than a thousandth.
    return bool(n) and p is not None and n * (1 - p) < beyond * (1 - 1e-9)
