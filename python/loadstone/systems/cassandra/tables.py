"""Creates the table of YCSB's Cassandra binding, with the statements from the README of that binding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from loadstone.systems.base.plan import read_choice, read_whole_number, table_plan
from loadstone.systems.base.system import SystemPlan, SystemsError
from loadstone.systems.cassandra.cql import Cql, RefusedError, UnreachableError
from loadstone.systems.cassandra.ring import await_schema_agreement, connect_node

# A schema change waits for all nodes and for the deletion of dropped data.
CHANGE_S = 60.0
COMPRESSORS = {
    "lz4": "LZ4Compressor",
    "snappy": "SnappyCompressor",
    "deflate": "DeflateCompressor",
    "zstd": "ZstdCompressor",
}
# The options of a table, with YCSB's names where they exist. An empty value means Cassandra's default.
OPTIONS = {
    "keyspace": "ycsb",
    "replication_factor": "",
    "fieldcount": "10",
    "fieldnameprefix": "field",
    "compression": "",
    "durable_writes": "true",
}


def create_table(plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool) -> bool:
    """Creates the table and its keyspace; with `replace`, first drops the keyspace with its contents.

    Without `replace`, creates them only if they are missing. Returns whether it created the table. Raises SystemsError.
    """
    statements = make_statements(plan.nodes, table, options)
    # CQL folds an unquoted name to lower case.
    names = (options.get("keyspace", OPTIONS["keyspace"]).lower(), table.lower())
    with connect_first(plan) as cql:
        if not replace:
            there = cql.run_query("SELECT keyspace_name, table_name FROM system_schema.tables")
            if any((row["keyspace_name"], row["table_name"]) == names for row in there):
                return False
            statements = [re.sub(r"^CREATE \w+", r"\g<0> IF NOT EXISTS", statement) for statement in statements[1:]]
        for statement in statements:
            define(cql, statement)
    await_schema_agreement(plan, CHANGE_S)
    return True


def define(cql: Cql, statement: str) -> None:
    """Executes a definition, with `NetworkTopologyStrategy` if the server refuses `SimpleStrategy`.

    ScyllaDB refuses `SimpleStrategy` for keyspaces with tablets. `NetworkTopologyStrategy` also accepts
    `replication_factor`. Raises SystemsError.
    """
    try:
        cql.run_query(statement)
    except RefusedError as error:
        if "SimpleStrategy" not in statement or "SimpleStrategy" not in str(error.args[0]):
            raise
        cql.run_query(statement.replace("SimpleStrategy", "NetworkTopologyStrategy"))


def connect_first(plan: SystemPlan) -> Cql:
    """Connects to the first node that answers."""
    for node in range(1, plan.nodes):
        with suppress(UnreachableError):
            return connect_node(plan, node, CHANGE_S)
    return connect_node(plan, plan.nodes, CHANGE_S)


def make_statements(nodes: int, table: str, options: Mapping[str, str]) -> list[str]:
    """The statements that recreate the keyspace and the table. Raises SystemsError for unknown or invalid options."""
    # The binding's name `cassandra.keyspace` is accepted, as well as `keyspace`.
    settings: Mapping[str, str] = {key.removeprefix("cassandra."): value for key, value in options.items() if value}
    chosen = table_plan("cassandra", settings, OPTIONS | {"replication_factor": str(nodes)})
    settings = chosen.settings
    keyspace = check_identifier("keyspace", settings["keyspace"])
    prefix = check_identifier("fieldnameprefix", settings["fieldnameprefix"])
    fields = range(read_whole_number(chosen, "fieldcount", 1))
    columns = ["y_id varchar PRIMARY KEY", *(f"{prefix}{field} varchar" for field in fields)]
    factor = read_whole_number(chosen, "replication_factor", 1)
    if factor > nodes:
        raise SystemsError(
            f"replication_factor {factor} needs {factor} nodes, got {nodes}", "lower the replication factor"
        )
    full_name = f"{keyspace}.{check_identifier('table', table)}"
    replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"
    durable = read_choice(chosen, "durable_writes", ("true", "false"))
    return [
        f"DROP KEYSPACE IF EXISTS {keyspace}",
        f"CREATE KEYSPACE {keyspace} WITH replication = {replication} AND durable_writes = {durable}",
        f"CREATE TABLE {full_name} ({', '.join(columns)}){compression_clause(chosen)}",
    ]


def compression_clause(chosen: SystemPlan) -> str:
    """The compression clause of a CREATE TABLE statement; empty for Cassandra's default."""
    if not chosen.settings["compression"]:
        return ""
    name = read_choice(chosen, "compression", ("none", *COMPRESSORS))
    parameters = "'enabled': 'false'" if name == "none" else f"'class': '{COMPRESSORS[name]}'"
    return f" WITH compression = {{{parameters}}}"


def check_identifier(option: str, text: str) -> str:
    """Checks that CQL accepts a name unquoted, as the binding writes it. Raises SystemsError."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,47}", text):
        raise SystemsError(f'{option} "{text}" is not a valid CQL identifier', "use at most 48 letters, digits and _")
    return text
