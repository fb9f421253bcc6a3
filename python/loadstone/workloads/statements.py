"""Runs named CQL statements on a table with generated rows, to measure indexes, views, collections and conditional
writes.

The lab writes the spec itself. Each column has a generator of values, as in user profiles of cassandra-stress.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PlainValidator

from loadstone.experiment.kind import Data, EndedLaunch, EngineLaunch, Kind, LaunchStages
from loadstone.experiment.model.values import (
    FilePart,
    Text,
    Varied,
    VariedBoolean,
    VariedCount,
    parse_number,
    value_schema,
)
from loadstone.format import units
from loadstone.format.suggestion import suggest_name
from loadstone.workloads.distribution import EXAMPLES, parse_distribution
from loadstone.workloads.generated_rows import operation_bytes, row_bytes, row_count
from loadstone.workloads.pace import INTERVAL_MS, counting, pace
from loadstone.workloads.statement_figures import check_figure_names, statement_figures, statement_metrics
from loadstone.workloads.stress_command import REPLICATION, STORE, stores

# Statements that repeat the values of a row. They have no time to live, which would remove rows.
_COLUMN, _USING = r'(?:"[^"]+"|\w+)', r"(?: using (?:(?:timeout|timestamp) \S+(?: and )?)+)?"
REPEATS = (
    re.compile(rf"update \S+{_USING} set {_COLUMN} ?= ?\?(?: ?, ?{_COLUMN} ?= ?\?)* where .*", re.IGNORECASE),
    re.compile(rf"insert into [^()]*\([^()]*\) values ?\([?, ]*\)(?: if not exists)?{_USING} ?;?", re.IGNORECASE),
)

if TYPE_CHECKING:
    from loadstone.engine.trial import Spec
    from loadstone.experiment.model.experiment import Experiment, Measure
    from loadstone.experiment.model.vary import Point
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context
    from loadstone.results.trial_result import Scalar

INDEX_CLASSES = {"sai": "StorageAttachedIndex", "sasi": "org.apache.cassandra.index.sasi.SASIIndex"}


class StatementColumn(FilePart):
    """The generator of a column's values. Distributions are written as in cassandra-stress: `uniform(1..100)`."""

    population: Text | None = Field(default=None, examples=["uniform(1..1000)"])
    """The numbers from which values are generated: a range of 1,000 gives 1,000 different values. Default: 10^11."""

    size: Text | None = Field(default=None, examples=["gaussian(10..100)"])
    """Length of a value: characters of text, bytes of a blob, or elements of a collection. Default: 4 to 8."""

    cluster: Text | None = Field(default=None, examples=["presets(70:1, 20:2.5, 10:3.5)"])
    """Number of values of a clustering column for each value of the preceding column. Together, these numbers determine
    the rows of a partition. Default: 1."""


class Statement(FilePart):
    """A statement. Its values belong to one partition of the population."""

    cql: Text | None = Field(default=None, examples=["SELECT * FROM users WHERE city = ?"])
    """The text of the statement, with `?` for each value of a column. Default: a write of the rows of a partition."""

    weight: Annotated[float, PlainValidator(parse_number), value_schema("number", minimum=0), Varied()] = Field(
        default=1.0, examples=[3]
    )
    """The frequency of the statement, relative to the other statements."""

    values: Annotated[Literal["one-row", "many-rows"], Varied()] = Field(default="one-row", examples=["many-rows"])
    """Whether the statement's values come from one row of the partition, or from different rows."""

    compare: VariedBoolean = Field(default=False, examples=[True])
    """Compare the rows that the statement reads with the rows that were written."""


class Statements(FilePart):
    """Named CQL statements on a table of Apache Cassandra or ScyllaDB."""

    define: list[Text] = Field(examples=[["CREATE TABLE users (id bigint PRIMARY KEY, city int, name text)"]])
    """Statements that define the table and its objects. The lab creates the keyspace for them."""

    table: Text = Field(examples=["users"])
    """The table."""

    keyspace: Text = Field(default="loadstone", examples=["shop"])
    """The keyspace. It is dropped before each load."""

    indexes: dict[str, Annotated[Literal["none", "sai", "sasi", "secondary"], Varied()]] = Field(
        default_factory=dict, examples=[{"city": "sai"}]
    )
    """The columns that have an index, and the type of each index."""

    population: VariedCount = Field(default=100_000, examples=[1_000_000])
    """Number of partitions. They are written before the statements are measured."""

    columns: dict[str, StatementColumn] = Field(
        default_factory=dict, examples=[{"city": {"population": "uniform(1..1000)"}}]
    )
    """The generators of values, by column."""

    statements: dict[str, Statement] = Field(
        examples=[{"by_city": {"cql": "SELECT * FROM users WHERE city = ?", "weight": 3}, "write": {}}]
    )
    """The statements, by name."""


def check(context: Context, path: Keys, keys: Any) -> None:
    """Checks names, texts and distributions."""
    if not keys.statements:
        context.add_mistake((*path, "statements"), "there is no statement", 'add one: `read: {cql: "SELECT …"}`')
    weights = [statement.weight for statement in keys.statements.values()]
    if weights and all(not isinstance(weight, str) and weight <= 0 for weight in weights):
        hint = "write a weight of 1 or more, or leave it out"
        context.add_mistake((*path, "statements"), "no statement has a weight above 0", hint)
    if not re.fullmatch(r"[A-Za-z]\w*", keys.keyspace) and "{" not in keys.keyspace:
        hint = "use letters, digits and _, a letter first"
        context.add_mistake((*path, "keyspace"), f'"{keys.keyspace}" cannot be the name of a keyspace', hint)
    for name, column in keys.columns.items():
        for key in ("population", "size", "cluster"):
            text = getattr(column, key)
            if text is not None and "{" not in text:
                try:
                    parse_distribution(text)
                except ValueError as error:
                    context.add_mistake((*path, "columns", name, key), str(error), f"write {EXAMPLES}")
    check_names(context, path, keys)
    check_comparisons(context, (*path, "statements"), keys.statements)
    check_figure_names(context, (*path, "statements"), keys.statements)
    for name, statement in keys.statements.items():
        place = (*path, "statements", name)
        if not re.fullmatch(r"[A-Za-z][\w-]*", name):
            context.add_mistake(place, f'"{name}" cannot be the name of a statement', "use letters, digits, _ and -")
        if not isinstance(statement.weight, str) and statement.weight < 0:
            context.add_mistake(
                (*place, "weight"), f"weight must not be negative, got {statement.weight:g}", "write 0 or more"
            )
        if statement.compare is True and statement.cql is None:
            context.add_mistake(
                (*place, "compare"), "a write reads no rows", "remove `compare`, or set `cql: SELECT …`"
            )


def check_comparisons(context: Context, path: Keys, statements: Mapping[str, Statement]) -> None:
    """Refuses comparisons of rows that other statements change: rows would differ although the store is correct."""
    changes = [name for name, statement in statements.items() if statement.weight != 0 and changes_values(statement)]
    for name, statement in statements.items():
        if statement.compare is True and statement.cql is not None and changes:
            message = f'"{changes[0]}" overwrites rows with other values, so rows cannot be compared'
            hint = f'in "{changes[0]}", set each column to a `?` of one row, or omit `compare`'
            context.add_mistake((*path, name, "compare"), message, hint)


def changes_values(statement: Statement) -> bool:
    """Whether a statement changes the rows that were written: only a `?` of the same row repeats its value."""
    if not is_write(statement) or statement.cql is None:
        return False
    text = " ".join(statement.cql.split())
    return statement.values != "one-row" or not any(pattern.fullmatch(text) for pattern in REPEATS)


def check_names(context: Context, path: Keys, keys: Any) -> None:
    """Checks that the statements in `define` contain the names of the table and of the columns."""
    text = " ".join(keys.define)
    if "{" in re.sub(r"\{[^{}]*:[^{}]*\}", "", text):
        return
    names_in_text = list(dict.fromkeys(name.strip('"') for name in re.findall(r'"[^"]+"|\w+', text)))
    known = {word.lower() for word in names_in_text}
    names = [((*path, "table"), keys.table), *(((*path, "columns", name), name) for name in keys.columns)]
    names += [((*path, "indexes", name), name) for name in keys.indexes]
    for place, name in names:
        if "{" not in name and name.lower() not in known:
            hint = suggest_name(name, names_in_text) or "use a name that `define` contains"
            context.add_mistake(place, f'`define` does not contain "{name}"', hint)


def is_write(statement: Statement) -> bool:
    """Whether a statement writes."""
    return statement.cql is None or not statement.cql.lstrip().lower().startswith("select")


def changing(context: Context, path: Keys, keys: Any, point: Point) -> Iterator[str]:
    """Yields statements that write, because they change data that other trials may read."""
    for name, statement in keys.statements.items():
        if is_write(statement):
            yield f"statements: {name}"


def title(work: Statements) -> str:
    """The title in a plan, with the names of the statements."""
    return f"statements {', '.join(work.statements)}"


def data(work: Statements) -> Data:
    """The population, with the expected rows of its partitions."""
    table, operations = generator_work(work)
    names = ("define", "table", "keyspace", "indexes", "population")
    identity = {name: getattr(work, name) for name in names}
    identity["columns"] = {name: column.model_dump(exclude_none=True) for name, column in work.columns.items()}
    size = round(row_count(table) * row_bytes(table))
    row_size = operation_bytes({"tables": [table], "operations": operations})
    return Data(work.population, size, identity, place=work.keyspace, operation_bytes=row_size)


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """Checks that the spec can be created; only the server can check the types."""
    yield partial(statements_spec, variant, variant.work)


def phases(variant: Variant, experiment: Experiment) -> Sequence[EngineLaunch]:
    """Defines the table, writes the population, and executes the statements."""
    load = EngineLaunch("load", "prepare", partial(load_specs, variant, experiment.measure.settle))
    return (load, EngineLaunch("run", "measure", partial(run_spec, variant, experiment.measure)))


def definitions(variant: Variant, work: Statements) -> list[str]:
    """The statements that create keyspace, table and indexes, after dropping the old keyspace."""
    copies = (variant.servers.options.get(REPLICATION) if variant.servers is not None else None) or "1"
    replication = f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}}"
    keyspace = f'"{work.keyspace}"'
    statements = [
        f"DROP KEYSPACE IF EXISTS {keyspace}",
        f"CREATE KEYSPACE {keyspace} WITH replication = {replication}",
        f"USE {keyspace}",
        *(text for text in work.define if text.strip()),
    ]
    for column, kind in work.indexes.items():
        if kind in INDEX_CLASSES:
            statements.append(f"CREATE CUSTOM INDEX ON {work.table} ({column}) USING '{INDEX_CLASSES[kind]}'")
        elif kind == "secondary":
            statements.append(f"CREATE INDEX ON {work.table} ({column})")
    return statements


def generator_work(work: Statements) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The table and the operations of the spec."""
    operations = []
    for name, statement in work.statements.items():
        fields = "samerow" if statement.values == "one-row" else "multirow"
        query = {"query": {"cql": statement.cql, "fields": fields, "validates": statement.compare}}
        operation = "insert" if statement.cql is None else query
        operations.append({"name": name, "weight": statement.weight, "table": work.table, "work": operation})
    columns = [{"name": name, **column.model_dump(exclude_none=True)} for name, column in work.columns.items()]
    for column in columns:
        column.update({key: text.replace(" ", "") for key, text in column.items() if key != "name"})
    return {"name": work.table, "keyspace": work.keyspace, "table": work.table, "columns": columns}, operations


def statements_spec(variant: Variant, work: Statements) -> Spec:
    """The spec of a variant, without a seed or a phase length."""
    table, operations = generator_work(work)
    return {
        "spec": 2,
        "store": {
            "name": STORE,
            "properties": {**variant.store_properties, "cassandra.keyspace": work.keyspace},
            "durability": variant.durability,
        },
        "phase": "run",
        "work": {
            "type": "statements",
            "generator": "columns",
            # Only unlogged batches are split; a logged batch larger than the server's limit would be refused.
            "tables": [{**table, "insert": {"batch": "unlogged"}}],
            "operations": operations,
            "population": {"distribution": f"uniform(1..{work.population})"},
        },
        "clients": variant.clients,
        "pace": {"mode": "closed"},
        "inserts": {"retries": 0, "retry_seconds": 0.05, "keep_going": True},
        "sinks": [{"sink": "hdr_ns"}],
        "warmup_seconds": 0.0,
        "interval_ms": INTERVAL_MS,
    }


def load_specs(variant: Variant, settle: bool, directory: Path, seed: int) -> LaunchStages:
    """Defines the table and writes one partition; then writes the population."""
    loading, work = variant.loading, variant.work
    spec = {**statements_spec(loading, work), "seed": seed}
    insert = {"name": "insert", "weight": 1.0, "table": work.table, "work": "insert"}
    sequence = {"sequence": {"first": 1, "last": work.population, "wrap": True, "read_lookback": None}}
    written = {**spec["work"], "operations": [insert], "population": sequence}
    schema = {
        **spec,
        "work": {**written, "definitions": definitions(loading, work)},
        "clients": 1,
        "until": {"operations": 1},
    }
    inserts = {**spec["inserts"], "retries": 9}
    load = {**spec, "work": written, "until": {"operations": work.population}, "inserts": inserts, "settle": settle}
    return LaunchStages([("schema", schema), ("load", load)], alone=("schema",))


def run_spec(variant: Variant, measure: Measure, directory: Path, seed: int) -> Spec:
    """The spec that measures a variant. Failed operations are counted, but do not end the trial."""
    spec = statements_spec(variant, variant.work)
    seconds = measure.duration
    return {
        **spec,
        "seed": seed,
        "until": {"seconds": seconds} if seconds is not None else {"operations": variant.operations},
        **({"interval_ms": INTERVAL_MS} if seconds is None else counting(measure)),
        "pace": pace(variant, measure, spec["pace"]),
        "warmup_seconds": measure.warmup or 0.0,
    }


def facts(launched: Sequence[EndedLaunch]) -> Mapping[str, Scalar]:
    """The mix of statements, the distribution of partitions, and the text of each statement."""
    work = launched[-1].spec["work"]
    total = sum(operation["weight"] for operation in work["operations"])
    shares = [
        f"{units.format_percent(operation['weight'] / total)} {operation['name']}" for operation in work["operations"]
    ]
    facts: dict[str, Scalar] = {"mix": ", ".join(shares), "distribution": "uniform"}
    for operation in work["operations"]:
        if operation["work"] != "insert":
            facts[f"statement.{operation['name']}"] = operation["work"]["query"]["cql"]
    return facts


def metrics(work: Statements) -> Sequence[str]:
    """Throughput, and the p99 and the median of each statement."""
    return statement_metrics(name for name, statement in work.statements.items() if statement.weight != 0)


KIND = Kind(
    Statements,
    True,
    stores,
    title,
    data,
    preflight,
    phases,
    check,
    changing,
    metrics=metrics,
    facts=facts,
    figures=statement_figures,
    remote=True,
)
