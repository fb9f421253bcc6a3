"""The figures of statements and their names, which `cassandra-stress` and `statements` share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loadstone.engine.events import CENSORED, COMPOSED, TIMED_STEPS
from loadstone.experiment.kind import EndedLaunch, EngineLaunch
from loadstone.results.stage import OF_STAGE
from loadstone.results.value import THROUGHPUT, Value

if TYPE_CHECKING:
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context

# The status of a read whose row differs from the row written.
DIFFERENT = "UNEXPECTED_STATE"
# Names that operations cannot have, because the names of other figures begin with them.
RESERVED = {"all", "load", "carried", *(name.lower() for name in TIMED_STEPS | COMPOSED)}


def check_figure_names(context: Context, path: Keys, names: Iterable[str]) -> None:
    """Refuses statements whose figures would have the same names as other figures."""
    figures: set[str] = set()
    for name in names:
        figure = name.lower()
        if figure in figures:
            message = f'two statements would share the figure "{figure}.p99": figure names ignore case'
            context.add_mistake((*path, name), message, "use different names")
        elif figure in RESERVED or OF_STAGE.match(f"{figure}."):
            message = f'"{name}" cannot be the name of a statement: the names of other figures begin with it'
            context.add_mistake((*path, name), message, "use another name")
        figures.add(figure)


def statement_metrics(names: Iterable[str]) -> list[str]:
    """The figures compared by default: throughput, and the p99 and the median of each statement."""
    figures = [name.lower() for name in names]
    latencies = [f"{name}.{statistic}" for statistic in ("p99", "p50") for name in figures]
    return [THROUGHPUT, *latencies] if figures else []


def list_compared(work: Mapping[str, Any]) -> set[str]:
    """The operations of a spec whose rows are compared with the rows written."""
    if work["generator"] != "columns":
        return {"READ"} if work["validates"] else set()
    return {
        operation["name"]
        for operation in work["operations"]
        if operation["work"] == "validate"
        or (isinstance(operation["work"], Mapping) and operation["work"].get("query", {}).get("validates"))
    }


def statement_figures(phase: EngineLaunch, launched: Sequence[EndedLaunch]) -> Iterator[Value]:
    """The number of rows that were compared with the rows written, the number of rows that differed, and, for each
    statement, the mean number of rows that an operation wrote or read."""
    if phase.prefix:
        return
    summary = launched[-1].result.summary
    names = list_compared(launched[-1].spec["work"])
    counts = Counter[str]()
    for outcome in summary.outcomes:
        counts[outcome.status] += outcome.count if outcome.operation in names else 0
    if compared := counts["OK"] + counts[DIFFERENT]:
        yield Value("verified", compared, "values", compared)
        yield Value("wrong", counts[DIFFERENT], "values", compared)
    for name, counted in summary.statements.items():
        outcomes = [outcome for outcome in summary.outcomes if outcome.operation == name and not outcome.is_failure]
        if count := sum(outcome.count for outcome in outcomes if outcome.status != CENSORED):
            yield Value(f"{name.lower()}.rows", counted.rows / count, "rows", count)
