"""Projections in the style of benchstat: the keys that form tables, rows and columns.

A key is a dimension or a fact. All other keys are pooled: trials that differ only in them count as repeats of one
variant. A warning then states that this mixes trials that the experiment separated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.format.suggestion import did_you_mean, nearest_names
from loadstone.results.filter import Filter, parse_filter
from loadstone.results.result_set import ResultSet, number_keys, variant_key
from loadstone.results.trial_result import Scalar, TrialResult

# The value of a pooled dimension becomes a fact of the trial, with this prefix before the dimension's name.
POOLED = "pooled."


@dataclass(frozen=True)
class Projection:
    """The user's request; None leaves the choice to the result set."""

    table: tuple[str, ...] | None = None
    row: tuple[str, ...] | None = None
    col: tuple[str, ...] | None = None
    filter: str = ""
    metrics: tuple[str, ...] = ()
    # Guarantees that differ on purpose between the compared columns.
    promises: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Projected:
    """A result set with the requested dimensions, and the dimensions that form the tables."""

    results: ResultSet
    table: tuple[str, ...]
    row: tuple[str, ...]
    col: str


def project_results(results: ResultSet, request: Projection) -> Projected:
    """Filters and regroups trials. Raises LoadstoneError if a key is unknown or no trial remains."""
    filtered = filter_results(results, request.filter)
    dimensions = list(filtered.dimensions)
    known = [*dimensions, *dict.fromkeys(name for trial in filtered.trials for name in trial.facts)]
    for key in (*(request.table or ()), *(request.row or ()), *(request.col or ())):
        if key not in known:
            raise LoadstoneError(
                f'there is no key "{key}" in {results.name}',
                f"{did_you_mean(key, known)}known keys: {', '.join(dimensions) or 'none'}",
            )
    metrics = select_metrics(filtered, request.metrics)
    # The default is the compared dimension, else the first dimension.
    usual = [name for name in dimensions if name == filtered.comparison_dimension] or dimensions[:1]
    col = request.col if request.col is not None else tuple(usual)
    table = request.table or ()
    row = request.row if request.row is not None else tuple(key for key in dimensions if key not in (*col, *table))
    name = ",".join(col)

    def regroup_config(own: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The requested keys; the keys of several columns become one dimension."""
        config = {key: own.get(key, "") for key in (*table, *row)}
        if col:
            config[name] = own.get(name, "") if len(col) == 1 else ",".join(str(own.get(key, "")) for key in col)
        return config

    trials = [replace(trial, config=regroup_config({**trial.facts, **trial.config})) for trial in filtered.trials]
    # Trials with equal variants and repeats were distinguished by a key that was dropped.
    pooled = len({(variant_key(trial.config), trial.repeat) for trial in trials}) < len(trials)
    warnings = filtered.warnings
    gone = [key for key in dimensions if key not in (*table, *row, *col) and len(filtered.dimensions[key]) > 1]
    if pooled:
        warnings += (f"pooled over {', '.join(gone)}: trials that differ only in dropped dimensions count as repeats",)
        repeats = number_keys(variant_key(trial.config) for trial in trials)
        own = ({f"{POOLED}{key}": old.config[key] for key in gone if key in old.config} for old in filtered.trials)
        trials = [
            replace(trial, repeat=repeat, facts={**trial.facts, **facts})
            for trial, repeat, facts in zip(trials, repeats, own, strict=True)
        ]
    elif gone:
        omitted = f"omitted {', '.join(gone)}"
        warnings += (f"{omitted}: variants also differ in omitted dimensions, which may cause the difference",)
    by_name = name if col else None
    # If the filter omits the baseline, the first remaining value replaces it.
    was, now = (set(map(str, data.dimensions.get(name, ()))) for data in (results, filtered))
    is_omitted = str(filtered.question.baseline) in was - now
    # Guarantees that may differ between the values compared in the question must not differ between other columns.
    promises = filtered.question.promises if filtered.comparison_dimension in (by_name, *col) else ()
    question = replace(
        filtered.question,
        by=by_name,
        baseline=filtered.question.baseline if filtered.question.by == by_name and not is_omitted else None,
        metrics=tuple(metrics),
        promises=promises if request.promises is None else request.promises,
    )
    # Planned trials have dimensions, but no facts.
    whole = not pooled and not gone and {*table, *row, *col} <= {*dimensions}
    planned = {trial: regroup_config(config) for trial, config in filtered.planned.items()} if whole else {}
    departures = [*find_omissions(results, filtered, request.filter)]
    if gone and not pooled:
        departures.append(f"omitted {', '.join(gone)}, in which the variants differ as well")
    projected = replace(
        filtered,
        recorded=results.recorded or results.question,
        departures=(*results.departures, *departures),
        trials=trials,
        question=question,
        planned=planned,
        pooled=pooled or filtered.pooled,
        warnings=warnings,
    )
    return Projected(projected, table, row, name)


def find_omissions(results: ResultSet, filtered_set: ResultSet, expression: str) -> Iterator[str]:
    """Finds repeats that a filter removes from a variant: unlike omitting variants, this removes evidence."""
    chosen = {key: len(filtered_set.variants[key]) for key in results.variants if key in filtered_set.variants}
    some = [key for key, count in chosen.items() if count < len(results.variants[key])]
    if some:
        repeats = units.count_noun(sum(len(results.variants[key]) - chosen[key] for key in some), "repeat")
        yield f"the filter `{expression}` omits {repeats} of {units.count_noun(len(some), 'variant')}"


def filter_results(results: ResultSet, expression: str) -> ResultSet:
    """The results with only the trials that match a filter, and their part of the plan, which includes the missing
    trials of each remaining variant. Raises LoadstoneError if no trial matches.
    """
    if not expression.strip():
        return results
    passes: Filter = parse_filter(expression)
    trials = [trial for trial in results.trials if passes(filter_keys(trial))]
    if not trials:
        raise LoadstoneError(
            f"no trial in {results.name} matches the filter `{expression}`",
            "`loadstone export` lists the keys of every trial",
        )
    variants, known = {variant_key(trial.config) for trial in trials}, {trial.trial for trial in trials}
    omitted = {trial.trial for trial in results.trials} - known
    planned = {
        trial: config
        for trial, config in results.planned.items()
        if trial not in omitted and (variant_key(config) in variants or passes({"trial": trial, **config}))
    }
    return replace(results, trials=trials, planned=planned)


def filter_keys(trial: TrialResult) -> dict[str, Scalar | None]:
    """The keys of a trial that a filter can use; dimensions take precedence over facts with the same name."""
    own: dict[str, Scalar | None] = {"trial": trial.trial, "repeat": trial.repeat, "end": trial.end}
    return {**trial.facts, **own, "clients": trial.clients, **trial.config}


def select_metrics(results: ResultSet, patterns: Sequence[str]) -> list[str]:
    """The metrics to show. Raises LoadstoneError if a requested metric was not measured."""
    if not patterns:
        return list(results.headline_metrics)
    measured = results.metrics
    metrics = [complete_metric(metric, measured) for metric in patterns]
    for metric in metrics:
        if metric not in measured:
            near = nearest_names(metric, measured, 3)
            raise LoadstoneError(
                f'there is no metric "{metric}" in {results.name}',
                f"did you mean {', '.join(near)}?" if near else f"known metrics: {', '.join(measured[:12])}…",
            )
    return metrics


def complete_metric(metric: str, measured: Collection[str]) -> str:
    """The name of a measured metric: `all.p99` for `p99`, as in objectives and expectations."""
    return f"all.{metric}" if metric not in measured and f"all.{metric}" in measured else metric
