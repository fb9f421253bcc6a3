"""Runs cassandra-stress's predefined commands: writes a population, then measures a command on it.

The engine's front end translates a command line to a spec, to which the lab adds its own settings.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from loadstone.engine.events import COMPOSED, TIMED_STEPS
from loadstone.engine.trial import Spec
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import Data, EndedLaunch, EngineLaunch, Kind, LaunchStages, Phase
from loadstone.experiment.model import template
from loadstone.experiment.model.values import FilePart, Text, VariedCount, VariedLength
from loadstone.format import units
from loadstone.results.stage import OF_STAGE
from loadstone.results.value import Value
from loadstone.workloads import ledger
from loadstone.workloads.distribution import parse_distribution
from loadstone.workloads.front_end import spec_of
from loadstone.workloads.pace import INTERVAL_MS, counting, pace
from loadstone.workloads.statement_figures import statement_figures, statement_metrics

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Experiment, Measure
    from loadstone.experiment.model.vary import Point
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context
    from loadstone.results.trial_result import Scalar

STORE = "cassandra"
# Properties of the store that the command does not set, because the experiment names the nodes.
OF_NODES = ("hosts", "port")
# Parameters of the command that the experiment sets, with a hint for each.
OF_EXPERIMENT = {
    "n=": "use `population`, and `measure: {operations: …}` or `measure: {duration: …}`",
    "duration=": "use `measure: {duration: …}`",
    "err<": "use `measure: {duration: …}`",
    "no-warmup": "use `measure: {warmup: 0}`",
    "truncate=": "remove it: the lab drops the keyspace before each load",
}
# Groups and other parameters that the experiment sets.
GROUPS_OF_EXPERIMENT = {
    "-rate": "use `clients` and `rate`",
    "-node": "use `systems: {cassandra: {properties: {hosts: …}}}`",
    "-port": "use `systems: {cassandra: {properties: {port: …}}}`",
    "-log": "remove it: the lab records all results",
    "-graph": "remove it: the lab writes a report",
    "-credentials-file": "use `systems: {cassandra: {properties: {cassandra.username: …}}}`",
    "-errors": "remove it: failures are counted, but do not end a trial",
    "-transport": "use `systems: {cassandra: {properties: {cassandra.tls.ca: …}}}`",
    "user=": "use `systems: {cassandra: {properties: {cassandra.username: …}}}`",
    "password=": "use `systems: {cassandra: {properties: {cassandra.password: …}}}`",
}
REPLICATION = "replication_factor"
# The mean size of a value without `size`, in bytes: text and blobs have 4 to 8 bytes, and numbers have 4 or 8.
VALUE_BYTES = 6
# The commands that only write, with their other names.
WRITES = ("write", "counter_write", "insert", "counterwrite", "counter_add", "counteradd")
# The name of each operation, keyed by the aliases of its command.
OPERATIONS = {
    "insert": "write",
    **dict.fromkeys(("counterwrite", "counter_add", "counteradd"), "counter_write"),
    **dict.fromkeys(("counterread", "counter_get", "counterget"), "counter_read"),
}
# Names that operations cannot have, because the names of other figures begin with them.
RESERVED = {"all", "load", "carried", *(name.lower() for name in TIMED_STEPS | COMPOSED)}
COMMANDS = ("read", "mixed", "counter_read", "user", *WRITES, "counterread", "counter_get", "counterget")


class CassandraStress(FilePart):
    """A command of cassandra-stress, on the tables that Apache Cassandra's tool uses."""

    command: Text = Field(examples=["mixed ratio(write=1,read=3) cl=LOCAL_ONE -col size=fixed(34)"])
    """A command line of cassandra-stress without the options that the experiment sets: clients, rate, nodes, length."""

    population: VariedCount = Field(default=1_000_000, examples=[1_000_000])
    """Number of partitions. They are written before a command that reads, so that every read finds its row."""

    written_for: VariedLength | None = Field(default=None, examples=["10s"])
    """Before a command that reads, write for this time instead of writing the whole population, with the command's
    clients, as the Hydra scale tests do. Reads of partitions that were not written fail."""

    writers: VariedCount = Field(default=1, examples=[5])
    """With `written_for`, the number of writers, all of which begin at the first partition, as processes of
    cassandra-stress do without `segment=`. Together, they write as many partitions as a single writer, in a fraction
    of the time."""


def stores() -> Collection[str]:
    """The stores that can execute these commands."""
    return (STORE,)


def check(context: Context, path: Keys, keys: Any) -> None:
    """Reports options in the command that the experiment sets, and keys that cannot be combined."""
    if keys.written_for is not None and context.experiment.load.reuse:
        message = "`written_for` and `load.reuse` cannot be combined: each trial reads its own writes"
        context.add_mistake((*path, "written_for"), message, "leave `load.reuse` out")
    tokens = split_command(str(keys.command))
    if context.experiment.measure.ledger and (tokens[:1] == ["user"] or "counter" in str(keys.command).lower()):
        message = "`measure.ledger` records rows of the predefined tables, not of profiles and counters"
        context.add_mistake((*path, "command"), message, "use the command `write` or `mixed`, or leave `ledger` out")
    if "".join(tokens[:1]).lower() not in COMMANDS and not any("{" in word for word in tokens[:1]):
        message = f'"{keys.command}" does not begin with a command of cassandra-stress'
        context.add_mistake((*path, "command"), message, f"begin with {', '.join(COMMANDS[:6])}")
    # A parameter of a group may have the name of a parameter of the command: `-col n=fixed(8)`.
    own, groups = split_groups(tokens)
    for part, options in ((own, OF_EXPERIMENT), (groups, GROUPS_OF_EXPERIMENT)):
        for option, hint in options.items():
            if any(word.lower().startswith(option) for word in part):
                context.add_mistake((*path, "command"), f"{option} cannot be set in the command", hint)
    for name in RESERVED.intersection(profile_operations(str(keys.command))):
        message = f'"{name}" cannot be the name of an operation: the names of other figures begin with it'
        context.add_mistake((*path, "command"), message, "give the query another name in the profile")
    if any(word.lower().startswith("replication(") for word in groups):
        hint = f"write `systems: {{cassandra: {{table: {{{REPLICATION}: 3}}}}}}`"
        context.add_mistake((*path, "command"), "the replication cannot be set in the command", hint)


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


def split_command(command: str) -> list[str]:
    """The arguments of a command as the tool reads them: without spaces around `,`, `=` and parentheses, and with the
    names of the command and of groups in lower case."""
    tokens = re.sub(r"\s*([,=(])\s*|\s+(?=\))", lambda match: match[1] or "", command).split()
    return [word.lower() if at == 0 or word.startswith("-") else word for at, word in enumerate(tokens)]


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


def split_groups(tokens: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The command with its parameters, and the groups of options."""
    start = next((at for at, word in enumerate(tokens) if word.startswith("-")), len(tokens))
    return tokens[:start], tokens[start:]


def writes(work: CassandraStress) -> bool:
    """Whether the command only writes."""
    return is_load(work.command)


def is_load(command: str) -> bool:
    """Whether a command defines new tables and reads nothing."""
    operation = (split_command(command) or ["read"])[0]
    is_load = operation == "user" and re.search(r"ops\(insert=[\d.]+\)", command.lower().replace(" ", "")) is not None
    return is_load or operation in WRITES


def changing(context: Context, path: Keys, keys: Any, point: Point) -> Iterator[str]:
    """Yields the command's name if the command may change data that other trials read."""
    command = template.render_partly(str(keys.command), point)
    operation = (split_command(command) or ["read"])[0]
    # A command that only writes defines new tables. Queries of a profile may write.
    if not operation.endswith("read") and not is_load(command):
        yield f"command: {operation}"


def title(work: CassandraStress) -> str:
    """The title in a plan: the tool and its command."""
    return f"cassandra-stress {work.command}"


def data(work: CassandraStress) -> Data:
    """The population, which is written before it is read."""
    spec = translate_command(work, clients=1, hosts="127.0.0.1", port="9042", factor=None)["work"]
    if spec["generator"] == "columns":
        tables = spec["tables"]
        size = round(sum(row_bytes(table) * row_count(table) for table in tables))
        profile = {name: spec.get(name) for name in ("compat", "tables", "definitions", "revisit")}
        identity = {**profile, "population": work.population}
        place = ",".join(sorted({table["keyspace"] for table in tables}))
        row_size = operation_bytes(spec)
        loaded = not writes(work)
        return Data(work.population, size, identity, place=place, loaded=loaded, operation_bytes=row_size)
    names = ("compat", "keyspace", "key_bytes", "columns", "size", "row_population_ratio", "revisit")
    identity = {**{name: spec[name] for name in names}, "population": work.population}
    identity |= {"written_for": work.written_for, "writers": work.writers} if work.written_for else {}
    size = len(spec["columns"]) * mean_size(spec["size"])
    return Data(work.population, size, identity, place=spec["keyspace"], loaded=not writes(work))


def row_bytes(table: Mapping[str, Any]) -> float:
    """The mean size of a row, in bytes. Includes only listed columns, because only the server knows all columns."""
    sizes = [mean_of(column["size"]) if "size" in column else VALUE_BYTES for column in table["columns"]]
    return max(sum(sizes), VALUE_BYTES)


def row_count(table: Mapping[str, Any]) -> float:
    """The expected number of rows in a partition: the product of the value counts of its clustering columns."""
    return prod(mean_of(column.get("cluster")) for column in table["columns"])


def operation_bytes(work: Mapping[str, Any]) -> int:
    """The mean size of the rows that an operation writes or reads, in bytes."""
    tables = {table["name"]: table for table in work["tables"]}
    weights = [float(operation["weight"]) for operation in work["operations"]]
    sizes = [
        rows_per_operation(operation["work"], tables[operation["table"]], work.get("visits", 1))
        * row_bytes(tables[operation["table"]])
        for operation in work["operations"]
    ]
    total = sum(weight * size for weight, size in zip(weights, sizes, strict=True))
    return round(total / sum(weights))


def rows_per_operation(operation: Any, table: Mapping[str, Any], visits: int) -> float:
    """The expected number of rows that an operation writes or reads.

    A query reads the rows of a partition, unless it has a limit or compares every clustering column with a value.
    """
    rows = row_count(table)
    if operation == "insert":
        insert = table.get("insert", {})
        select = insert.get("select")
        share = min(mean_of(select["distribution"]) / select["divisor"], 1.0) if select else 1.0
        return mean_of(insert.get("partitions")) * max(rows * share / visits, 1.0)
    if "token_range" in operation:
        return float(operation["token_range"]["page_rows"])
    text = operation["query"]["cql"] if "query" in operation else ""
    if limit := re.search(r"\blimit\s+(\d+)", text, re.IGNORECASE):
        return min(rows, int(limit[1]))
    clustering = [column["name"] for column in table["columns"] if column.get("cluster")]
    is_row = all(re.search(rf'\b{re.escape(name)}"?\s*=\s*\?', text, re.IGNORECASE) for name in clustering)
    return 1.0 if is_row else rows


def mean_of(distribution: str | None) -> float:
    """The mean of a distribution, at least 0; 1 without a distribution."""
    return 1.0 if distribution is None else max(parse_distribution(distribution).mean, 0.0)


def mean_size(size: str) -> int:
    """The mean size of a value, in bytes."""
    return int(mean_of(size))


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """The front end's checks, the replication of profiles, and the range of the partitions that the command reads."""
    yield partial(check_variant, variant)


def check_variant(variant: Variant) -> None:
    """Refuses profiles with another replication, and a command that reads partitions outside the population."""
    work, spec = variant.work, translate_variant(variant, variant.work)["work"]
    factor = variant.servers.options.get(REPLICATION) if variant.servers is not None else None
    if factor and spec["generator"] == "columns":
        # `replication_factor`, or the name of a data centre.
        maps = re.findall(r"\breplication\s*=\s*\{([^}]*)\}", " ".join(spec.get("definitions", ())), re.IGNORECASE)
        own = [number for text in maps for number in re.findall(r"""['"]\s*:\s*['"]?(\d+)""", text)]
        if set(own) != {str(factor)}:
            message = (
                f"the profiles define the replication factor {', '.join(own) or 'none'}, and the experiment {factor}"
            )
            hint = f"change keyspace_definition, or leave `table: {{{REPLICATION}: {factor}}}` out"
            raise LoadstoneError(message, hint)
    selection = spec["population"]
    first, last = selection_range(selection)
    if writes(work) or work.written_for or selection.get("sequence", {}).get("read_lookback"):
        return
    if first < 1 or last > work.population:
        message = f"the command reads partitions {first:,.0f} to {last:,.0f}, and `population` is {work.population:,}"
        raise LoadstoneError(message, "raise `population`, or remove -pop")


def selection_range(selection: Mapping[str, Any]) -> tuple[float, float]:
    """The first and the last partition that a spec selects."""
    if "sequence" in selection:
        return selection["sequence"]["first"], selection["sequence"]["last"]
    numbers = parse_distribution(selection["distribution"])
    return numbers.least, numbers.greatest


def phases(variant: Variant, experiment: Experiment) -> Sequence[Phase]:
    """Defines the tables, writes the population unless the command only writes, and runs the command.

    With a ledger, also reads back the writes of the command.
    """
    measure = experiment.measure
    load = EngineLaunch("load", "prepare", partial(load_specs, variant, measure.settle))
    run = EngineLaunch("run", "measure", partial(run_spec, variant, measure))
    return (load, run, ledger.read_back(experiment.fleet.engines, loaded=False)) if measure.ledger else (load, run)


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


def load_work(work: CassandraStress, command: str) -> CassandraStress:
    """A command that writes the population, with the options of the measured command that determine the data."""
    parameters, groups = split_groups(split_command(work.command))
    own = [token for token in parameters[1:] if token.lower().startswith(("cl=", "keysize="))]
    text = " ".join([command, *own, *drop_group(groups, "-pop")])
    return CassandraStress.model_construct(command=text, population=work.population)


def drop_group(tokens: Sequence[str], group: str) -> list[str]:
    """The options, except for one group and its parameters."""
    remaining, inside = [], False
    for token in tokens:
        inside = token == group if token.startswith("-") else inside
        remaining += [] if inside else [token]
    return remaining


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
    for at, load in enumerate(() if writes(variant.work) else specs):
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
    for at, insert in enumerate(inserts if not writes(variant.work) else ()):
        name = "load" if at == 0 else f"load{at + 1}"
        written = {**common, "operations": [insert]}
        stages.append((name, {**spec, "work": written, "until": {"operations": population}, "settle": settle}))
    return LaunchStages(stages, alone=("schema",))


def run_spec(variant: Variant, measure: Measure, directory: Path, seed: int) -> Spec:
    """The spec that measures a variant. Failed operations are counted, but do not end the trial."""
    spec = translate_variant(variant, variant.work)
    seconds = measure.duration
    until = {"seconds": seconds} if seconds is not None else {"operations": variant.operations}
    spec = {
        **spec,
        "work": {**spec["work"], "definitions": []},
        "seed": seed,
        "until": until,
        **({"interval_ms": INTERVAL_MS} if seconds is None else counting(measure)),
        "pace": pace(variant, measure, spec["pace"]),
        "warmup_seconds": measure.warmup or 0.0,
        "inserts": {**spec["inserts"], "keep_going": True},
        "settle": False,
    }
    # The timestamps of the writes count from the start of the run, so that the writes replace the loaded rows.
    return ledger.add_ledger(spec, directory, time.time_ns() // 1000) if measure.ledger else spec


def figures(phase: EngineLaunch, launched: Sequence[EndedLaunch]) -> Iterator[Value]:
    """After a load, the number of partitions written, from the first onwards, and the population; after a run, the
    figures of its statements, and the number of reads that found no row."""
    last = launched[-1]
    # A profile with several inserts has the launches `load`, `load2`, …, each for a table.
    if loads := [launch for launch in launched if launch.name.startswith("load")]:
        population = last.spec["work"]["population"]["sequence"]["last"]
        # Some writes may have failed, so the last operation determines the last partition.
        written = min(launch.result.summary.operations for launch in loads)
        yield Value("partitions_written", min(written, population), "", 1)
        yield Value("partitions", population, "", 1)
        return
    yield from statement_figures(phase, launched)
    if missing := last.result.summary.missing_rows:
        yield Value("rows_missing", missing.reads, "", 1)


def facts(launched: Sequence[EndedLaunch]) -> Mapping[str, Scalar]:
    """The mix of operations, the distribution of partitions and, for predefined tables, the mean size of a row."""
    work = launched[-1].spec["work"]
    if work["generator"] == "columns":
        weights = {operation["name"]: operation["weight"] for operation in work["operations"]}
        shares = [
            f"{units.format_percent(weight / sum(weights.values()))} {name}"
            for name, weight in weights.items()
            if weight
        ]
        numbers = work["population"].get("distribution", "sequence")
        return {"mix": ", ".join(shares), "distribution": numbers.partition("(")[0]}
    mix = sorted(work["mix"].items(), key=lambda part: (-part[1], part[0]))
    total = sum(share for _, share in mix)
    shares = [f"{units.format_percent(share / total)} {name.replace('_', '-')}" for name, share in mix if share]
    numbers = work["population"].get("distribution", "sequence")
    facts: dict[str, Scalar] = {
        "record_bytes": len(work["columns"]) * mean_size(work["size"]),
        "mix": ", ".join(shares),
        "distribution": numbers.partition("(")[0],
    }
    return facts


KIND = Kind(
    CassandraStress,
    True,
    stores,
    title,
    data,
    preflight,
    phases,
    check,
    changing,
    metrics=lambda work: statement_metrics(command_operations(str(work.command))),
    facts=facts,
    figures=figures,
    remote=True,
    ledger=True,
)
