"""YCSB's core workloads: a trial loads records, then measures operations drawn from a mix.

The engine's YCSB front end translates properties to a spec, to which the lab adds its own settings.
"""

from __future__ import annotations

import operator
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from loadstone.engine import program, secrets
from loadstone.engine.describe import describe_engine
from loadstone.engine.events import WELL
from loadstone.engine.trial import Spec
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import Data, EndedLaunch, EngineLaunch, Kind, Phase
from loadstone.experiment.model.values import FilePart, Property, Text
from loadstone.experiment.model.ycsb_properties import OF_A_RUN
from loadstone.experiment.plan.required_servers import TABLE
from loadstone.format import units
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value
from loadstone.workloads import front_end, ledger
from loadstone.workloads.pace import INTERVAL_MS, counting, pace
from loadstone.workloads.properties import read
from loadstone.workloads.ycsb_check import changing, check

if TYPE_CHECKING:
    from loadstone.experiment.model.experiment import Experiment, Measure
    from loadstone.experiment.plan.plan import Variant

WINDOW_SECONDS = 86_400
# With this property, a load continues after failed inserts, and so may not write all its records.
KEEPS_GOING = "core_workload_insertion_keep_going_on_error"
# The properties that determine the size of a record, with YCSB's defaults.
DEFAULTS = {"fieldcount": 10, "fieldlength": 100}
# Theta of YCSB's zipfian lengths: the i-th shortest length is i^-theta times as frequent as the shortest length.
ZIPFIAN_THETA = 0.99


# The operations of a mix, and YCSB's default shares other than 0 (CoreWorkload).
MIX = ("read", "update", "insert", "scan", "delete", "readmodifywrite")
SHARES = {"read": "0.95", "update": "0.05"}
# Time limit for writing one record; a slower store is not refused.
OPEN_SECONDS = 60.0


class Ycsb(FilePart):
    """A YCSB core workload: a file, properties, or both."""

    file: Text | None = Field(default=None, examples=["../workloads/workload{letter}"])
    """A YCSB workload file. Default: none; `properties` then set `recordcount`."""

    properties: dict[str, Property] = Field(default={}, examples=[{"recordcount": 100000}])
    """YCSB properties; they override the file's."""


def stores() -> Collection[str]:
    """The stores that hold records."""
    return [name for name in describe_engine().stores if name not in front_end.stores()]


def work(keys: Any, experiment: Experiment) -> Ycsb:
    """The keys, with the properties that `measure` sets."""
    verify = {"dataintegrity": "true"} if experiment.measure.verify else {}
    versions = {"versions": "true"} if experiment.measure.ledger else {}
    return Ycsb(file=keys.file, properties={**keys.properties, **verify, **versions})


def title(work: Ycsb) -> str:
    """The title in a plan: the file's name, or `properties` without a file."""
    return Path(work.file).name if work.file else "properties"


def files(work: Ycsb) -> Sequence[Path]:
    """The workload file, if there is one."""
    return (Path(work.file),) if work.file else ()


def all_properties(work: Ycsb) -> dict[str, str]:
    """The properties in the file, overridden by `properties`. Raises OSError if the file is missing."""
    return {**(read(Path(work.file)) if work.file else {}), **work.properties}


def data(work: Ycsb) -> Data:
    """The records and their size. All properties identify the data, except properties that affect only the run.

    The engine rejects values that are not numbers. Raises OSError if the file is missing.
    """
    properties = all_properties(work)
    records = parse_count(properties, "insertcount", 0) or parse_count(properties, "recordcount", 0)
    sizes = (parse_count(properties, name, default) for name, default in DEFAULTS.items())
    identity = {key: text for key, text in properties.items() if key not in OF_A_RUN}
    return Data(records, reduce(operator.mul, sizes, 1), identity, properties.get("table", TABLE))


def preflight(variant: Variant) -> Iterator[Callable[[], object]]:
    """The front end's checks for both phases, and checks of the store."""
    yield partial(translate_variant, variant, "load")
    yield partial(translate_variant, variant, "run")
    if not describe_engine().is_networked(variant.store) and not variant.hooks_before:
        yield partial(require_store, variant)
    if variant.work.properties.get("versions") and not describe_engine().keeps_data(variant.store):
        yield partial(ledger.refuse, variant.store)


def require_store(variant: Variant) -> None:
    """Opens a new store with a variant's settings, some of which only the store can check. Raises LoadstoneError."""
    if failure := store_failure(variant.store, variant.durability, tuple(sorted(variant.store_properties.items()))):
        raise LoadstoneError(f"{variant.system}: {failure[0]}", failure[1])


@cache
def store_failure(store: str, durability: str, properties: tuple[tuple[str, str], ...]) -> tuple[str, str] | None:
    """Writes one record to a new store in a temporary directory; returns the engine's error and its hint, if any."""
    phase = "load" if describe_engine().keeps_data(store) else "run"
    with tempfile.TemporaryDirectory(prefix="loadstone-") as directory:
        own = {**dict(properties), **directory_properties(store, Path(directory)), "durability": durability}
        own |= {"recordcount": "1", "operationcount": "1"}
        lines = "".join(f"{name}={escape_value(value)}\n" for name, value in own.items())
        command = [program.find_engine(), "ycsb", phase, store, "-P", "/dev/stdin"]
        try:
            done = subprocess.run(
                command, input=lines, capture_output=True, text=True, timeout=OPEN_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            # A timeout is not an error: the machine may be slow.
            return None
    message, _, hint = done.stderr.rpartition("\nhint: ")
    return (message.rpartition("error: ")[2], hint.strip()) if done.returncode and "error: " in message else None


def operations(work: Ycsb) -> Collection[str] | None:
    """The operations with a share in the mix; None if a share is not a number, and for other workload classes."""
    properties = all_properties(work)
    if not properties.get("workload", "CoreWorkload").endswith("CoreWorkload"):
        return None
    try:
        shares = {name: float(properties.get(f"{name}proportion", SHARES.get(name, "0"))) for name in MIX}
    except ValueError:
        return None
    performed = {name for name, share in shares.items() if share > 0}
    if "readmodifywrite" in performed:
        performed = performed - {"readmodifywrite"} | {"read", "update", "read-modify-write"}
    return performed


def phases(variant: Variant, experiment: Experiment) -> Sequence[Phase]:
    """Loads the data unless the store keeps none, and measures the run; with a ledger, reads the writes back."""
    measure = experiment.measure
    run = EngineLaunch("run", "measure", partial(run_spec, variant, measure))
    if not describe_engine().keeps_data(variant.store):
        return (run,)
    load = EngineLaunch("load", "prepare", partial(load_spec, variant, measure.settle))
    if not measure.ledger:
        return (load, run)
    properties = all_properties(variant.work)
    loaded = str(properties.get(KEEPS_GOING, "")).lower() != "true"
    return (load, run, ledger.read_back(experiment.fleet.engines, loaded=loaded))


def parse_count(properties: Mapping[str, str], name: str, default: int) -> int:
    """The value of a property as an integer; the default if it is missing or not a number."""
    text = properties.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() else default


def directory_properties(store: str, directory: Path) -> dict[str, Any]:
    """The property that sets a store's data directory."""
    known = describe_engine().stores.get(store)
    return {known.directories[0]: str(directory / store)} if known is not None and known.directories else {}


def translate_variant(variant: Variant, phase: Literal["load", "run"]) -> Spec:
    """The spec of a variant from the YCSB front end. Raises LoadstoneError with the engine's message."""
    if phase == "load":
        variant = variant.loading
    # The front end requires a directory, which each trial replaces.
    properties = {
        **directory_properties(variant.store, Path("data")),
        **variant.store_properties,
        **variant.work.properties,
    }
    arguments = [phase, variant.store, *(["-P", variant.work.file] if variant.work.file else [])]
    known = describe_engine()
    texts = {name: str(value) for name, value in properties.items()}
    hidden = {name: text for name, text in texts.items() if known.is_secret(name) or secrets.has_secret(text)}
    if hidden:
        # Any user of the host can read command-line arguments.
        arguments += ["-P", "/dev/stdin"]
    for name, value in properties.items():
        if name not in hidden:
            arguments += ["-p", f"{name}={value}"]
    if phase == "run":
        # The front end requires a limit on the run; `measure` sets the actual limit.
        arguments += ["-p", f"maxexecutiontime={WINDOW_SECONDS}"]
    if properties.get("versions"):
        # The front end requires a seed; each trial replaces it with a separate seed.
        arguments += ["-p", "seed=0"]
    arguments += ["-threads", str(variant.clients)]
    lines = "".join(f"{name}={escape_value(value)}\n" for name, value in hidden.items())
    (spec,) = front_end.spec_of("ycsb", arguments, lines)
    return spec


def escape_value(value: str) -> str:
    """Escapes a value for a properties file (java.util.Properties.load)."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"\\{text}" if text[:1].isspace() else text


def load_spec(variant: Variant, settle: bool, directory: Path, seed: int) -> Spec:
    """The spec that loads a variant's data, in a closed loop."""
    spec = common(translate_variant(variant, "load"), variant.loading, directory, seed)
    return {
        **spec,
        "pace": {"mode": "closed"},
        "until": {"operations": spec["work"]["insert_count"]},
        "warmup_seconds": 0,
        # Otherwise, compactions of the loaded data would slow down the run.
        "settle": settle,
    }


def run_spec(variant: Variant, measure: Measure, directory: Path, seed: int) -> Spec:
    """The spec that measures a variant."""
    spec = common(translate_variant(variant, "run"), variant, directory, seed)
    seconds = measure.duration
    if seconds is not None:
        spec = {**spec, "until": {"seconds": seconds}, **counting(measure)}
        if variant.faults:
            spec["key_ranges"] = True
    else:
        spec = {**spec, "until": {"operations": variant.operations}}
    # `measure` replaces the file's operationcount.
    spec["work"] = {**spec["work"], "operations": variant.operations}
    spec = {
        **spec,
        "pace": pace(variant, measure, spec["pace"]),
        "warmup_seconds": measure.warmup or 0.0,
        "settle": False,
    }
    return ledger.add_ledger(spec, directory) if measure.ledger else spec


def common(spec: Spec, variant: Variant, directory: Path, seed: int) -> Spec:
    """Adds the settings that both phases share."""
    properties = {**spec["store"]["properties"], **directory_properties(variant.store, directory)}
    return {
        **spec,
        "store": {**spec["store"], "properties": properties, "durability": variant.durability},
        "clients": variant.clients,
        "seed": seed,
        "sinks": [{"sink": "hdr_ns"}],
        "interval_ms": INTERVAL_MS,
    }


def facts(launched: Sequence[EndedLaunch]) -> Mapping[str, Scalar]:
    """The number and size of records, the mix of operations, and how requests choose records."""
    work = launched[-1].spec["work"]
    mix = sorted(work.get("mix", {}).items(), key=lambda part: (-part[1], part[0]))
    total = sum(share for _, share in mix)
    shares = [
        f"{units.format_percent(share / total)} {name.replace('_', '-')}" for name, share in mix if share and total
    ]
    field = mean_length(work["field_length"]) if "field_length" in work else 0
    facts = {
        "records": work.get("records"),
        "record_bytes": round(work.get("field_count", 0) * field),
        "mix": ", ".join(shares),
        "distribution": work.get("keys", {}).get("distribution"),
    }
    return {name: value for name, value in facts.items() if value}


def figures(phase: EngineLaunch, launched: Sequence[EndedLaunch]) -> Iterator[Value]:
    """The bytes of values, without keys, that operations transferred: estimated from the workload's mean sizes.

    `returned` covers reads and scans; `stored` covers inserts and updates. A store that keeps no data has neither.
    """
    spec, result = launched[-1].spec, launched[-1].result
    work = spec["work"]
    if work.get("type") != "records" or not describe_engine().keeps_data(spec["store"]["name"]):
        return
    field = mean_length(work["field_length"])
    record = work["field_count"] * field
    read = record if work["read_all_fields"] else field
    update = record if work["write_all_fields"] else field
    scanned = mean_length(work["scan_length"]) * read
    counts: dict[str, int] = defaultdict(int)
    for outcome in result.summary.outcomes:
        if outcome.status in WELL:
            counts[outcome.operation] += outcome.count
    # A read-modify-write is also counted as a read and an update.
    returned = counts["READ"] * read + counts["SCAN"] * scanned
    stored = counts["INSERT"] * record + counts["UPDATE"] * update
    yield Value(f"{phase.prefix}returned", returned, "B", counts["READ"] + counts["SCAN"])
    yield Value(f"{phase.prefix}stored", stored, "B", counts["INSERT"] + counts["UPDATE"])


def mean_length(length: dict[str, Any]) -> float:
    """The mean of a length's distribution."""
    if "bytes" in length:
        return float(length["bytes"])
    if "counts" in length:
        sizes = [(i + 1) * length["block"] for i in range(len(length["counts"]))]
        return float(sum(map(operator.mul, sizes, length["counts"])) / max(sum(length["counts"]), 1))
    if length.get("distribution") == "zipfian":
        weights = [rank**-ZIPFIAN_THETA for rank in range(1, length["max"] - length["min"] + 2)]
        return float(sum(map(operator.mul, range(length["min"], length["max"] + 1), weights)) / sum(weights))
    return float(length["min"] + length["max"]) / 2


KIND = Kind(
    Ycsb,
    True,
    stores,
    title,
    data,
    preflight,
    phases,
    check,
    changing,
    work,
    files,
    facts=facts,
    figures=figures,
    operations=operations,
    remote=True,
    ledger=True,
)
