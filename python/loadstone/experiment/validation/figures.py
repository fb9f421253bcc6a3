"""Validates the names of figures: their syntax, operations and percentiles."""

from __future__ import annotations

import re

from loadstone.experiment.kind import default_metrics
from loadstone.experiment.validation.context import Context
from loadstone.format import units
from loadstone.format.suggestion import suggest_name, suggest_names
from loadstone.results.result_set import DEFAULT_METRICS
from loadstone.results.stage import OF_STAGE, prefix_of
from loadstone.results.value import (
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    NO_DIRECTION,
    OF_FAULTS,
    PERCENTILES,
    metric_statistic,
)
from loadstone.search.objective import parse_expectations

METRIC = re.compile(r"[a-z][a-z0-9_]*([-.][a-z0-9_]+)*")
OPERATIONS = ("all", "read", "update", "insert", "scan", "delete", "read-modify-write")
# Figures without an operation.
SINGLE = ("throughput", "write_amplification", "operations", "errors", "runtime", "time", "cpu_time", "memory_max")
# All known figures without an operation, including figures of faults and figures with a known direction.
KNOWN = frozenset(SINGLE) | HIGHER_IS_BETTER | LOWER_IS_BETTER | NO_DIRECTION | OF_FAULTS
STATISTICS = ("mean", "min", "max", "count")


def check_metrics(context: Context) -> None:
    """Checks the names of the compared figures, and of the figures that decide when there are enough repeats."""
    until = context.experiment.repeats.until
    for metric in until if isinstance(until, dict) else ():
        if context.is_valid("repeats", "until", metric):
            check_metric(context, ("repeats", "until", metric), metric)
    for i, metric in enumerate(context.experiment.compare.metrics):
        if context.is_valid("compare", "metrics", i):
            check_metric(context, ("compare", "metrics", i), metric)


def check_expectations(context: Context) -> None:
    """Checks that each expectation can be parsed, that its figure is valid, and that a ratio has a baseline."""
    for i, text in enumerate(context.experiment.expect):
        path = ("expect", i)
        if not context.is_valid(*path):
            continue
        try:
            terms = parse_expectations(text)
        except ValueError as error:
            message, hint = error.args
            context.add_mistake(path, message, hint)
            continue
        for condition, term in terms:
            check_metric(context, path, term.metric)
            if term.is_ratio and (context.experiment.find is not None or context.experiment.compare.by is None):
                message = f'"{condition}" is relative to a baseline, but nothing is compared here'
                hint = "vary the compared dimension, such as `system`, or use `loadstone compare BASE NEW`"
                context.add_warning(path, message, hint)


def check_metric(context: Context, path: tuple[str | int, ...], metric: str) -> None:
    """Checks that the name of a figure is valid, and that its percentile is recorded."""
    if metric in default_metrics(context.experiment):
        return
    last = metric_statistic(metric)
    stages = len(context.experiment.stages)
    if (match := OF_STAGE.match(metric)) and int(match[1]) > stages and context.is_valid("rate"):
        has = f"the rate has {units.count_noun(stages, 'stage')}" if stages else "the rate has no stages"
        context.add_mistake(path, f"there is no stage {match[1]}: {has}", "write `rate: {stages: [{for: 30s, at: 5}]}`")
        return
    bare = metric.removeprefix("load.").removeprefix(prefix_of(metric))
    operation = bare.removesuffix(f".{last}").partition(".")[0]
    if not METRIC.fullmatch(metric):
        context.add_mistake(
            path, f'"{metric}" is not the name of a figure', "write throughput, read.p99 or load.insert.mean"
        )
    elif re.fullmatch(r"p[0-9.]+", last):
        if last not in PERCENTILES:
            hint = suggest_names(last, list(PERCENTILES), "the percentiles are")
            context.add_mistake(path, f"the percentile {last} is not recorded", hint)
        elif bare == last:
            context.add_mistake(path, f'"{metric}" does not name an operation', f"write read.{last} or all.{last}")
        else:
            check_operation(context, path, metric, operation)
    elif last in STATISTICS and bare != last:
        check_operation(context, path, metric, operation)
    elif "." not in bare and bare not in SINGLE and (hint := suggest_name(bare, SINGLE)):
        context.add_mistake(path, f'there is no figure "{bare}"', hint)
    elif "." not in bare and bare not in KNOWN and not names_own_figures(context):
        message = f'the figure "{bare}" is unknown; if no trial has it, it is not compared'
        defaults = default_metrics(context.experiment) or DEFAULT_METRICS
        context.add_warning(path, message, f"the default figures are {', '.join(defaults)}")


def names_own_figures(context: Context) -> bool:
    """Whether a workload is a command, whose figures can have any name."""
    return any("command" in workload.kinds for workload in context.experiment.all_workloads.values())


def check_operation(context: Context, path: tuple[str | int, ...], metric: str, operation: str) -> None:
    """Reports an operation that looks like a misspelt operation of the workload; a store may have other operations."""
    defaults = default_metrics(context.experiment)
    known = dict.fromkeys(name.removesuffix(f".{metric_statistic(name)}") for name in defaults if "." in name)
    names = [*known, *OPERATIONS]
    hint = suggest_name(operation, names, lambda guess: metric.replace(operation, guess))
    hint = hint or suggest_name(operation.replace("_", "-"), names, lambda guess: metric.replace(operation, guess))
    if operation not in names and hint:
        context.add_mistake(path, f'there is no operation "{operation}"', hint)
