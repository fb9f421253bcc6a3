"""Command lines of cassandra-stress: their parts, and the spec that the engine's front end makes of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from loadstone.engine.trial import Spec
from loadstone.workloads.front_end import spec_of
from loadstone.workloads.pace import INTERVAL_MS

if TYPE_CHECKING:
    from loadstone.experiment.plan.plan import Variant
    from loadstone.workloads.cassandra_stress import CassandraStress

STORE = "cassandra"
# Properties of the store that the command does not set, because the experiment names the nodes.
OF_NODES = ("hosts", "port")
REPLICATION = "replication_factor"
# The commands that only write, with their other names.
WRITES = ("write", "counter_write", "insert", "counterwrite", "counter_add", "counteradd")
# The name of each operation, keyed by the aliases of its command.
OPERATIONS = {
    "insert": "write",
    **dict.fromkeys(("counterwrite", "counter_add", "counteradd"), "counter_write"),
    **dict.fromkeys(("counterread", "counter_get", "counterget"), "counter_read"),
}
COMMANDS = ("read", "mixed", "counter_read", "user", *WRITES, "counterread", "counter_get", "counterget")


def stores() -> Collection[str]:
    """The stores that can execute these commands."""
    return (STORE,)


def split_command(command: str) -> list[str]:
    """The arguments of a command as the tool reads them: without spaces around `,`, `=` and parentheses, and with the
    names of the command and of groups in lower case."""
    tokens = re.sub(r"\s*([,=(])\s*|\s+(?=\))", lambda match: match[1] or "", command).split()
    return [word.lower() if at == 0 or word.startswith("-") else word for at, word in enumerate(tokens)]


def split_groups(tokens: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The command with its parameters, and the groups of options."""
    start = next((at for at, word in enumerate(tokens) if word.startswith("-")), len(tokens))
    return tokens[:start], tokens[start:]


def drop_group(tokens: Sequence[str], group: str) -> list[str]:
    """The options, except for one group and its parameters."""
    remaining, inside = [], False
    for token in tokens:
        inside = token == group if token.startswith("-") else inside
        remaining += [] if inside else [token]
    return remaining


def profile_operations(command: str) -> list[str]:
    """The operations of a command with a profile, in lower case; none if the command has templates."""
    text = " ".join(split_command(command.lower()))
    match = re.match(r"user\s.*\bops\(([^(){}]*)\)", text)
    weights = [part.partition("=") for part in match[1].split(",")] if match else []
    return [name for name, _, weight in weights if weight != "0"]


def command_operations(command: str) -> list[str]:
    """The operations of a command, in lower case; none if the command has templates instead of operations."""
    text = " ".join(split_command(command.lower()))
    operation = text.partition(" ")[0]
    if operation == "user" or "{" in operation:
        return profile_operations(command)
    if operation != "mixed":
        return [OPERATIONS.get(operation, operation)]
    match = re.search(r"\sratio\(([^()]*)\)", text)
    weights = re.findall(r"(\w+)=([\d.]+)", match[1] if match else "read=1,write=1")
    return [OPERATIONS.get(name, name) for name, weight in weights if float(weight)]


def is_load(command: str) -> bool:
    """Whether a command defines new tables and reads nothing."""
    operation = (split_command(command) or ["read"])[0]
    is_load = operation == "user" and re.search(r"ops\(insert=[\d.]+\)", command.lower().replace(" ", "")) is not None
    return is_load or operation in WRITES


def translate_command(work: CassandraStress, *, clients: int, hosts: str, port: str, factor: str | None) -> Spec:
    """The spec of a command line. Raises LoadstoneError with the engine's message."""
    command, *rest = split_command(work.command) or [""]
    arguments = [command, f"n={work.population}", "no-warmup", *rest]
    # A profile defines its keyspace.
    if factor is not None and command != "user":
        if "-schema" not in arguments:
            arguments.append("-schema")
        arguments.insert(arguments.index("-schema") + 1, f"replication(factor={factor})")
    arguments += ["-rate", f"threads={clients}", "-node", hosts, "-port", f"native={port}"]
    (spec,) = spec_of("cassandra-stress", arguments)
    sequence = spec["work"]["population"].get("sequence")
    if sequence and "no-wrap" not in work.command.lower():
        # A run with `n=` may end with its sequence, but the experiment determines the length.
        sequence["wrap"] = True
    return spec


def translate_variant(variant: Variant, work: CassandraStress) -> Spec:
    """The spec of a command for a variant."""
    properties = variant.store_properties
    factor = variant.servers.options.get(REPLICATION) if variant.servers is not None else None
    spec = translate_command(
        work,
        clients=variant.clients,
        hosts=str(properties.get("hosts", "127.0.0.1")),
        port=str(properties.get("port", "9042")),
        factor=factor or None,
    )
    own = {name: text for name, text in spec["store"]["properties"].items() if name not in OF_NODES}
    store = {**spec["store"], "properties": {**properties, **own}, "durability": variant.durability}
    # The lab wrote all rows, so Apache Cassandra's tool wrote none of them.
    spec["work"].pop("written_by_tool", None)
    return {**spec, "store": store, "clients": variant.clients, "interval_ms": INTERVAL_MS}
