"""The load of a trial of cassandra-stress: drops and defines its tables, and writes the population."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine.trial import Spec
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import LaunchStages
from loadstone.workloads.stress_command import drop_group, is_load, split_command, split_groups, translate_variant

if TYPE_CHECKING:
    from loadstone.experiment.plan.plan import Variant
    from loadstone.workloads.cassandra_stress import CassandraStress


def load_work(work: CassandraStress, command: str) -> CassandraStress:
    """A command that writes the population, with the options of the measured command that determine the data."""
    parameters, groups = split_groups(split_command(work.command))
    own = [token for token in parameters[1:] if token.lower().startswith(("cl=", "keysize="))]
    text = " ".join([command, *own, *drop_group(groups, "-pop")])
    return work.model_copy(update={"command": text})


def load_specs(variant: Variant, settle: bool, directory: Path, seed: int) -> LaunchStages:
    """Drops and defines the tables and writes one row; then writes the population, unless the command only writes."""
    if split_command(variant.work.command)[0] == "user":
        return load_profiles(variant, settle, seed)
    mix = translate_variant(variant, variant.work)["work"]["mix"]
    counters = {name.startswith("counter") for name, weight in mix.items() if weight}
    commands = ["counter_write" if is_counter else "write" for is_counter in sorted(counters)]
    specs = [
        {**translate_variant(variant.loading, load_work(variant.work, command)), "seed": seed, "settle": settle}
        for command in commands
    ]
    spec, work = specs[0], specs[0]["work"]
    if not work.get("definitions"):
        hint = "use loadstone and loadstone-engine from the same installation"
        raise LoadstoneError("the load generator's spec defines no table", hint)
    drop = f'DROP KEYSPACE IF EXISTS "{work["keyspace"]}"'
    schema = {
        **spec,
        "work": {**work, "definitions": [drop, *work["definitions"]]},
        "clients": 1,
        "until": {"operations": 1},
    }
    stages = [("schema", schema)]
    until: Spec = {"until": {"operations": variant.work.population}}
    if variant.work.written_for:
        seconds = variant.work.written_for / variant.work.writers
        until = {"clients": variant.clients, "until": {"seconds": seconds}}
    for at, load in enumerate(() if is_load(variant.work.command) else specs):
        name = "load" if at == 0 else f"load{at + 1}"
        stages.append((name, {**load, "work": {**load["work"], "definitions": []}, **until}))
    return LaunchStages(stages, alone=("schema",))


def load_profiles(variant: Variant, settle: bool, seed: int) -> LaunchStages:
    """Drops and defines the tables of profiles and executes an insert for each table; then writes the population,
    unless the command only writes."""
    spec = {**translate_variant(variant.loading, variant.work), "seed": seed}
    population = variant.work.population
    work = spec["work"]
    sequence = {"sequence": {"first": 1, "last": population, "wrap": True, "read_lookback": None}}
    # Writes whole partitions, even if the command's operations write parts of them.
    omitted = ("select", "partitions", "batch")
    tables = [
        {**table, "insert": {name: value for name, value in table["insert"].items() if name not in omitted}}
        for table in work["tables"]
    ]
    for table in tables:
        table["insert"]["batch"] = "unlogged"
    inserts = [
        {"name": f"insert {table['name']}", "weight": 1.0, "table": table["name"], "work": "insert"} for table in tables
    ]
    common = {**work, "tables": tables, "visits": 1, "population": sequence, "clustering": None, "definitions": []}
    drops = [
        f'DROP KEYSPACE IF EXISTS "{keyspace}"' for keyspace in dict.fromkeys(table["keyspace"] for table in tables)
    ]
    schema = {
        **spec,
        "work": {**common, "operations": inserts, "definitions": [*drops, *work.get("definitions", [])]},
        "clients": 1,
        "until": {"operations": len(tables)},
    }
    stages = [("schema", schema)]
    for at, insert in enumerate(inserts if not is_load(variant.work.command) else ()):
        name = "load" if at == 0 else f"load{at + 1}"
        written = {**common, "operations": [insert]}
        stages.append((name, {**spec, "work": written, "until": {"operations": population}, "settle": settle}))
    return LaunchStages(stages, alone=("schema",))
