"""Runs cassandra-stress's predefined commands: writes a population, then measures a command on it.

The engine's front end translates a command line to a spec, to which the lab adds its own settings.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from loadstone.engine.trial import Spec
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import Data, EndedLaunch, EngineLaunch, Kind, Phase
from loadstone.experiment.model import template
from loadstone.experiment.model.values import FilePart, Text, VariedCount, VariedLength
from loadstone.format import units
from loadstone.results.value import Value
from loadstone.workloads import ledger
from loadstone.workloads.distribution import parse_distribution
from loadstone.workloads.generated_rows import mean_size, operation_bytes, row_bytes, row_count
from loadstone.workloads.pace import INTERVAL_MS, counting, pace
from loadstone.workloads.statement_figures import RESERVED, statement_figures, statement_metrics
from loadstone.workloads.stress_command import (
    COMMANDS,
    REPLICATION,
    command_operations,
    is_load,
    profile_operations,
    split_command,
    split_groups,
    stores,
    translate_command,
    translate_variant,
)
from loadstone.workloads.stress_load import load_specs

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Experiment, Measure
    from loadstone.experiment.model.vary import Point
    from loadstone.experiment.plan.plan import Variant
    from loadstone.experiment.reading.path import Path as Keys
    from loadstone.experiment.validation.context import Context
    from loadstone.results.trial_result import Scalar

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
        loaded = not is_load(work.command)
        return Data(work.population, size, identity, place=place, loaded=loaded, operation_bytes=row_size)
    names = ("compat", "keyspace", "key_bytes", "columns", "size", "row_population_ratio", "revisit")
    identity = {**{name: spec[name] for name in names}, "population": work.population}
    identity |= {"written_for": work.written_for, "writers": work.writers} if work.written_for else {}
    size = len(spec["columns"]) * mean_size(spec["size"])
    return Data(work.population, size, identity, place=spec["keyspace"], loaded=not is_load(work.command))


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
    if is_load(work.command) or work.written_for or selection.get("sequence", {}).get("read_lookback"):
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
