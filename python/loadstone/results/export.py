"""The table of values for other tools: a row for each figure of each trial, its dimensions as columns."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from loadstone.errors import LoadstoneError
from loadstone.results.projection import filtered
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar

# The fixed columns, with the names of their Arrow types.
OWN = {
    "trial": "string",
    "repeat": "int64",
    "order": "int64",
    "clients": "int64",
    "end": "string",
    "metric": "string",
    "value": "float64",
    "unit": "string",
    "n": "int64",
    "bound": "string",
}


def write(results: ResultSet, expression: str, path: Path | None) -> None:
    """Writes CSV or Parquet, by the file's name; CSV to standard output without one. Raises LoadstoneError."""
    kept = filtered(results, expression)
    if path is None:
        write_csv(kept, sys.stdout)
        return
    try:
        match path.suffix:
            case ".csv":
                with path.open("w", newline="") as file:
                    write_csv(kept, file)
            case ".parquet":
                write_parquet(kept, path)
            case other:
                raise LoadstoneError(
                    f'cannot export to "{other}" files ({path})', "name a file that ends in .csv or .parquet"
                )
    except OSError as error:
        raise LoadstoneError(f"cannot write {path}: {error.strerror}", "name another file with --output") from error


def columns(results: ResultSet) -> list[str]:
    """The columns: dimensions first; one with the name of a fixed column gets an underscore after it."""
    return [f"{name}_" if name in OWN else name for name in results.dimensions] + list(OWN)


def rows(results: ResultSet) -> Iterator[list[Scalar | None]]:
    """The rows, in the order of trials."""
    dimensions = list(results.dimensions)
    for trial in results.trials:
        config = [trial.config.get(name) for name in dimensions]
        own: list[Scalar | None] = [trial.trial, trial.repeat, trial.order, trial.clients, trial.end]
        for value in trial.values.values():
            yield [*config, *own, value.metric, value.value, value.unit, value.n, value.bound]


def write_csv(results: ResultSet, file: IO[str]) -> None:
    """Writes CSV by RFC 4180, with a header."""
    writer = csv.writer(file)
    writer.writerow(columns(results))
    writer.writerows(rows(results))


def write_parquet(results: ResultSet, path: Path) -> None:
    """Writes Parquet; a dimension whose values are not of one type is text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, lines = columns(results), list(rows(results))
    made = [column([line[at] for line in lines], OWN.get(name)) for at, name in enumerate(names)]
    pq.write_table(pa.table(made, names), path)


def column(values: Sequence[Scalar | None], kind: str | None) -> Any:
    """An Arrow array of that type; without one, of the type that holds all values."""
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])
