"""Results as Arrow tables, for other tools: trials, figures, facts, intervals, hosts and samples of hosts; figures also
as CSV and Parquet.
"""

from __future__ import annotations

import csv
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.results import lines
from loadstone.results.projection import filter_results
from loadstone.results.result_set import ResultSet
from loadstone.results.stage import output_bound
from loadstone.results.trial_result import Scalar, Series, TrialResult

if TYPE_CHECKING:
    import pyarrow as pa

# The columns of each table after the dimensions, with the names of their Arrow types.
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
TRIAL: dict[str, tuple[str, Callable[[TrialResult], Any]]] = {
    "trial": ("string", lambda trial: trial.trial),
    "repeat": ("int64", lambda trial: trial.repeat),
    "order": ("int64", lambda trial: trial.order),
    "attempt": ("int64", lambda trial: trial.attempt),
    "interruptions": ("int64", lambda trial: trial.interruptions),
    "failures": ("int64", lambda trial: len(trial.failures)),
    "clients": ("int64", lambda trial: trial.clients),
    "loop": ("string", lambda trial: trial.loop),
    "end": ("string", lambda trial: trial.end),
    "reason": ("string", lambda trial: "" if trial.end == "done" else trial.reason),
    "start_unix_ns": ("int64", lambda trial: trial.start_unix_ns),
}
FACT = {"trial": "string", "fact": "string", "value": "string", "of_system": "bool"}
INTERVAL = {
    "trial": "string",
    "repeat": "int64",
    "start_seconds": "float64",
    "length_seconds": "float64",
    "throughput": "float64",
    "p50_ns": "float64",
    "p99_ns": "float64",
    "failed": "int64",
    "due": "int64",
    "ended": "int64",
}
HOST = {"run": "string", "host": "string", "fact": "string", "value": "string"}
OBSERVED = "observed.jsonl"
# The number of trials whose rows are converted together: Python lists take several times the memory of Arrow arrays.
TRIALS_AT_ONCE = 250
# The Arrow type of each type that `pack_column` can convert.
PACKED: dict[type | None, str] = {str: "string", int: "int64", float: "float64"}
# The counters that are lists in observed.jsonl.
COUNTERS = {
    "processors": ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"),
    "disks": ("read", "written", "discarded", "busy_ms", "reads"),
    "network": ("received", "sent"),
    "pressure": ("some_us", "full_us"),
}


def write_figures(results: ResultSet, expression: str, path: Path | None) -> None:
    """Writes CSV or Parquet, according to the file's suffix; without a file, CSV to standard output.

    Raises LoadstoneError if the file cannot be written, or if its suffix is neither .csv nor .parquet.
    """
    exported = filter_results(results, expression)
    if path is None:
        write_csv(exported, sys.stdout)
        return
    try:
        match path.suffix:
            case ".csv":
                with path.open("w", newline="") as file:
                    write_csv(exported, file)
            case ".parquet":
                import pyarrow.parquet as pq

                pq.write_table(figures_table(exported), path)
            case other:
                raise LoadstoneError(
                    f'cannot export to "{other}" files ({path})',
                    "name a file that ends in .csv, .parquet or .zip (the whole folder), or a directory",
                )
    except OSError as error:
        raise LoadstoneError(f"cannot write {path}: {error.strerror}", "name another file with --output") from error


def column_names(results: ResultSet, own: Iterable[str] = OWN) -> list[str]:
    """The columns: dimensions first; a dimension with the name of a fixed column gets an underscore."""
    return [f"{name}_" if name in own else name for name in results.dimensions] + list(own)


def figure_rows(results: ResultSet) -> Iterator[list[Scalar | None]]:
    """The rows of the table of figures, in the order of trials."""
    dimensions = list(results.dimensions)
    for trial in results.trials:
        config = [trial.config.get(name) for name in dimensions]
        own: list[Scalar | None] = [trial.trial, trial.repeat, trial.order, trial.clients, trial.end]
        for value in trial.values.values():
            yield [*config, *own, value.metric, value.value, value.unit, value.n, output_bound(trial, value)]


def write_csv(results: ResultSet, file: IO[str]) -> None:
    """Writes CSV according to RFC 4180, with a header."""
    writer = csv.writer(file)
    writer.writerow(column_names(results))
    writer.writerows(figure_rows(results))


def figures_table(results: ResultSet) -> pa.Table:
    """A row for each figure of each trial. If a dimension has values of several types, its column is text."""

    def list_rows(trial: TrialResult) -> list[tuple[Any, ...]]:
        # Arrow refuses integers that a float cannot represent exactly.
        figures = trial.values.values()
        return [(item.metric, float(item.value), item.unit, item.n, output_bound(trial, item)) for item in figures]

    return spread_rows(results, OWN, ("trial", "repeat", "order", "clients", "end"), list_rows)


def trials_table(results: ResultSet) -> pa.Table:
    """A row for each trial that counts."""
    kinds = {name: kind for name, (kind, _) in TRIAL.items()}
    return spread_rows(results, kinds, tuple(TRIAL), lambda _: [()])


def facts_table(results: ResultSet) -> pa.Table:
    """A row for each fact of each trial; values are text."""

    def list_rows(trial: TrialResult) -> list[tuple[Any, ...]]:
        return [(name, str(value), name in trial.of_system) for name, value in trial.facts.items()]

    return spread_rows(results, FACT, ("trial",), list_rows)


def intervals_table(results: ResultSet) -> pa.Table:
    """A row for each interval of each measured window; rates in op/s, latencies in ns, counts in operations."""
    names = list(INTERVAL)[2:]

    def list_rows(trial: TrialResult) -> list[tuple[Any, ...]]:
        series = results.series(trial.trial) or Series((), (), ())
        count = len(series.start_seconds)
        return list(zip(*(getattr(series, name) or (None,) * count for name in names), strict=True))

    return spread_rows(results, INTERVAL, ("trial", "repeat"), list_rows)


def spread_rows(
    results: ResultSet,
    kinds: Mapping[str, str],
    of_trial: Sequence[str],
    list_rows: Callable[[TrialResult], Sequence[tuple[Any, ...]]],
) -> pa.Table:
    """A table with the rows of each trial. Each row begins with the trial's dimensions and its fields `of_trial`."""
    import numpy as np
    import pyarrow as pa

    own = list(kinds.values())[len(of_trial) :]
    counts: list[int] = []
    chunks: list[list[Any]] = [[] for _ in own]
    for first in range(0, len(results.trials), TRIALS_AT_ONCE):
        rows = [list_rows(trial) for trial in results.trials[first : first + TRIALS_AT_ONCE]]
        counts += map(len, rows)
        columns = zip(*chain.from_iterable(rows), strict=True)
        for chunk, values, kind in zip(chunks, columns, own, strict=False):
            chunk.append(build_column(values, kind))
    heads = [build_column([trial.config.get(name) for trial in results.trials], None) for name in results.dimensions]
    heads += [build_column([TRIAL[name][1](trial) for trial in results.trials], kinds[name]) for name in of_trial]
    if {*counts} - {1}:
        places = build_column(np.repeat(np.arange(len(counts)), counts).tolist(), "int64")
        heads = [head.take(places) for head in heads]
    cells = [join_chunks(chunk, kind) for chunk, kind in zip(chunks, own, strict=True)]
    return pa.table([*heads, *cells], column_names(results, kinds))


def join_chunks(chunks: Sequence[Any], kind: str) -> Any:
    """Joins arrays into a column; if their types differ, all become text."""
    import pyarrow as pa

    kinds = {chunk.type for chunk in chunks} or {pa.type_for_alias(kind)}
    common = kinds.pop() if len(kinds) == 1 else pa.string()
    return pa.chunked_array([chunk.cast(common) for chunk in chunks], common)


def build_column(values: Sequence[Any], kind: str | None) -> Any:
    """An Arrow array of the type `kind`, or if None, of a type that fits all values; text if no such type fits."""
    import pyarrow as pa

    try:
        packed = pack_column(values, kind)
        return pa.array(values, kind) if packed is None else packed
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], "string")


def pack_column(values: Sequence[Any], kind: str | None) -> pa.Array | None:
    """An Arrow array of strings, integers or floats, built from its buffers; None for other types or mixed types.

    `pyarrow.array` imports pandas if it is installed, which takes a third of a second. The layout of the buffers is
    specified in Arrow Columnar Format, "Fixed-Size Primitive Layout" and "Variable-size Binary Layout". Raises
    OverflowError if a value does not fit its type.
    """
    import numpy as np
    import pyarrow as pa

    types = {*map(type, values)} - {type(None)}
    if not types:
        return pa.nulls(len(values), None if kind is None else pa.type_for_alias(kind))
    of_type = types.pop() if len(types) == 1 else None
    if of_type not in PACKED or kind not in (None, PACKED[of_type]):
        return None
    is_known = np.array([value is not None for value in values])
    validity = None if is_known.all() else pa.py_buffer(np.packbits(is_known, bitorder="little").tobytes())
    if of_type is str:
        texts = [b"" if value is None else value.encode() for value in values]
        ends = array("i", accumulate(map(len, texts), initial=0))
        buffers = [validity, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    else:
        numbers = (0 if value is None else value for value in values)
        buffers = [validity, pa.py_buffer(array("q" if of_type is int else "d", numbers))]
    return pa.Array.from_buffers(pa.type_for_alias(PACKED[of_type]), len(values), buffers)


def hosts_table(results: ResultSet) -> pa.Table:
    """A row for each fact of each host (`cpu.model`, `memory.bytes`, `kernel`); values are text."""
    runs = results.environment.get("runs")
    environments = runs if isinstance(runs, dict) else {results.name: results.environment}
    every = [
        (run, str(host.get("name", number)), fact, str(value))
        for run, environment in environments.items()
        for number, host in enumerate(list_documents(environment, "hosts"), 1)
        for fact, value in flatten_document(host)
        if fact != "name"
    ]
    return transpose_rows(every, HOST)


def list_documents(document: Any, key: str) -> list[dict[str, Any]]:
    """The documents in the list that a document contains under a key; empty if the list is damaged."""
    parts = document.get(key) if isinstance(document, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def flatten_document(document: Any, prefix: str = "") -> Iterator[tuple[str, Scalar]]:
    """Yields each value in nested documents with its path (`disks.vda.bytes`); named parts appear under their names."""
    if isinstance(document, dict):
        for key, part in document.items():
            yield from flatten_document(part, f"{prefix}.{key}" if prefix else key)
    elif isinstance(document, list):
        for number, part in enumerate(document):
            name = part.get("name", number) if isinstance(part, dict) else number
            yield from flatten_document(part, f"{prefix}.{name}")
    elif document is not None:
        yield prefix, document


def transpose_rows(every: Sequence[Sequence[Any]], kinds: Mapping[str, str]) -> pa.Table:
    """Converts rows to a table."""
    import pyarrow as pa

    return pa.table(
        [build_column([row[at] for row in every], kind) for at, kind in enumerate(kinds.values())], names=list(kinds)
    )


def host_samples(results: ResultSet) -> pa.Table:
    """A row for each sample of a trial's host. The counters have the units of observed.jsonl: ticks, B, ms, µs."""
    import pyarrow as pa

    samples: list[dict[str, Any]] = []
    for trial in results.trials:
        directory = results.files(trial.trial)
        documents = lines.read_lines(directory / OBSERVED).documents if directory is not None else []
        phase = ""
        for document in documents:
            phase = str(document.pop("mark", phase))
            for name, labels in COUNTERS.items():
                if isinstance(document.get(name), dict):
                    document[name] = {
                        key: dict(zip(labels, counts, strict=False)) if isinstance(counts, list) else counts
                        for key, counts in document[name].items()
                    }
            samples.append({"trial": trial.trial, "phase": phase, **dict(flatten_document(document))})
    names = list(dict.fromkeys(name for sample in samples for name in sample)) or ["trial", "phase"]
    return pa.table([build_column([sample.get(name) for sample in samples], None) for name in names], names=names)
