"""A trial's specs: what the engine's own YCSB door makes of a variant, with what only the lab decides on top."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from loadstone.engine import program
from loadstone.engine.trial import Spec, failure
from loadstone.errors import LoadstoneError
from loadstone.runner import datasets

if TYPE_CHECKING:
    from loadstone.experiment.model import Measure
    from loadstone.experiment.plan import Variant

INTERVAL_MS = 1000
# Short windows get more intervals: the course of a window of fewer than this many says little.
INTERVALS_MIN = 20
INTERVAL_MS_MIN = 100
DOOR_SECONDS = 86_400


def door(variant: Variant, phase: Literal["load", "run"]) -> Spec:
    """The spec as the YCSB door prints it. Raises LoadstoneError with the engine's own words about the variant."""
    if phase == "load":
        variant = variant.loading
    # The directory is set for each trial; the door only wants to see that there is one.
    properties = {**datasets.properties(variant.store, Path("data")), **variant.store_properties, **variant.properties}
    command = [program.find(), "ycsb", phase, variant.store, "-P", str(variant.workload_file), "--print-spec"]
    for name, value in properties.items():
        command += ["-p", f"{name}={value}"]
    if phase == "run":
        # A file need not say when to end: here `measure` does, and the door wants to hear of an end.
        command += ["-p", f"maxexecutiontime={DOOR_SECONDS}"]
    command += ["-threads", str(variant.clients)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise failure(done.returncode, done.stderr.splitlines())
    try:
        spec: Spec = json.loads(done.stdout)
    except ValueError as error:
        raise LoadstoneError(
            "the engine printed no spec", "use the loadstone and loadstone-engine of one installation"
        ) from error
    return spec


def load_spec(variant: Variant, directory: Path, seed: int, *, settle: bool) -> Spec:
    """The spec that loads a variant's data: everything as fast as its clients can."""
    spec = common(door(variant, "load"), variant.loading, directory, seed)
    return {
        **spec,
        "pace": {"mode": "closed"},
        "until": {"operations": spec["work"]["insert_count"]},
        "warmup_seconds": 0,
        # A run on a store that still compacts what was loaded would be charged for it.
        "settle": settle,
    }


def run_spec(variant: Variant, directory: Path, seed: int, measure: Measure) -> Spec:
    """The spec that measures a variant."""
    spec = common(door(variant, "run"), variant, directory, seed)
    seconds = measure.duration
    if seconds is not None:
        per_interval = max(INTERVAL_MS_MIN, min(INTERVAL_MS, round(1000 * seconds / INTERVALS_MIN, -2)))
        spec = {**spec, "until": {"seconds": seconds}, "interval_ms": int(per_interval)}
    else:
        spec = {**spec, "until": {"operations": variant.operations}}
    # The file's operationcount says how many operations YCSB would do; here `measure` decides.
    spec["work"] = {**spec["work"], "operations": variant.operations}
    return {**spec, "pace": pace(variant, spec["pace"]), "warmup_seconds": measure.warmup, "settle": False}


def common(spec: Spec, variant: Variant, directory: Path, seed: int) -> Spec:
    """What holds for both phases."""
    properties = {**spec["store"]["properties"], **datasets.properties(variant.store, directory)}
    return {
        **spec,
        "store": {**spec["store"], "properties": properties, "durability": variant.durability},
        "clients": variant.clients,
        "seed": seed,
        "sinks": [{"sink": "hdr_ns"}],
        "interval_ms": INTERVAL_MS,
        "lease_ms": None,
    }


def pace(variant: Variant, given: dict[str, object]) -> dict[str, object]:
    """When operations are sent: at the rate of the file, else as the workload's properties have it."""
    if variant.rate is None:
        return given if given["mode"] == "closed" else {**given, "arrival": variant.arrival}
    piece = {"from": variant.rate, "to": variant.rate, "seconds": 1}
    return {"mode": "open", "rate": [piece], "arrival": variant.arrival}
