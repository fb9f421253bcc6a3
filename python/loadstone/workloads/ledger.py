"""The ledger of a trial: which acknowledged writes are missing from the store afterwards?

The engine records the outcome of each write, and reads every record back (docs/guides/proving-writes.md).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from secrets import randbits
from typing import Any

from loadstone.engine import program
from loadstone.engine.trial import Spec
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import CommandContext, Ended, ObservedCommand
from loadstone.importers.run import ImportedRun
from loadstone.results.value import Value

NAME = "ledger"
CRASHES = "crashes_unix_ns"
FILE, SPEC = "writes.ledger", "ledger.spec.json"
# The engine's exit statuses: no losses, losses, nothing proven. The last status without a printed result means that
# some records could not be read.
ANSWERED = (0, 1, 3)
# Writes by outcome, and fields by their content; see the guide.
COUNTED = {
    "writes": ("acknowledged", "refused", "maybe", "unknown", "retried"),
    "found": ("phantom", "corrupt", "other_run", "not_loaded", "unsure"),
}
# The length of a run's number in bits, chosen so that JSON readers in any language represent the number exactly.
RUN_BITS = 53


def refuse(store: str) -> None:
    """Raises LoadstoneError, because the store keeps no data."""
    raise LoadstoneError(f"`measure.ledger` cannot be used with {store}, which keeps no data", "leave `ledger` out")


def add_ledger(spec: Spec, directory: Path, run: int | None = None) -> Spec:
    """The spec of a run with a ledger in the data directory. The spec is saved there as well, for the read-back.

    `run`: the number that marks the run's writes; random by default.
    """
    run = randbits(RUN_BITS) if run is None else run
    spec = {**spec, "run": run, "ledger": {"file": str(directory / FILE)}}
    # The spec may contain passwords; the directory is removed after the trial.
    with open(directory / SPEC, "w", opener=partial(os.open, mode=0o600)) as file:
        json.dump(spec, file)
    return spec


def read_back(engines: int, *, loaded: bool) -> ObservedCommand:
    """The command that reads back every record of a run. `loaded`: whether the load wrote all records."""
    return ObservedCommand(NAME, partial(arguments, engines, loaded), read, role="verify", settled=True)


def arguments(engines: int, loaded: bool, context: CommandContext) -> Sequence[str]:
    """The engine's arguments. With several engines, a read that missed an insert is judged by the ledger of the engine
    that made the insert."""
    ledgers = [f"{FILE}.{segment}" for segment in range(engines)]
    several = range(engines) if engines > 1 else ()
    events = [word for segment in several for word in ("--events", str(context.files / f"run.{segment}.events.jsonl"))]
    # The instants at which faults ended servers (Unix time, ns), which determine the ages of lost writes.
    crashes = [word for instant in str(context.names.get(CRASHES, "")).split() for word in ("--crash", instant)]
    return [
        str(program.find_engine()),
        "ledger",
        *ledgers,
        "--spec",
        SPEC,
        *(["--loaded"] if loaded else []),
        *crashes,
        *events,
    ]


def read(ended: Ended) -> ImportedRun:
    """Parses the result of the read-back. Raises LoadstoneError if not every record could be read."""
    if ended.status not in ANSWERED or not ended.stdout.stat().st_size:
        raise LoadstoneError("not every record could be read back", "see its output")
    try:
        document = json.loads(ended.stdout.read_text())
        return ImportedRun(list(figures(document)))
    except (ValueError, KeyError, TypeError) as error:
        raise LoadstoneError(f"the load generator printed no ledger result: {error!r}", "see its output") from error


def figures(document: Any) -> Iterator[Value]:
    """Yields the counts of writes and of their outcomes."""
    fields = document["read"]["fields"]
    for group, names in COUNTED.items():
        unit = "operations" if group == "writes" else "fields"
        for name in names:
            yield Value(f"{NAME}.{name}", document[group][name], unit, fields)
    lost, acknowledged = document["lost"], document["writes"]["acknowledged"]
    yield Value(f"{NAME}.lost", lost["writes"] - lost["allowed"], "operations", acknowledged)
    yield Value(f"{NAME}.lost_allowed", lost["allowed"], "operations", acknowledged)
    yield Value(f"{NAME}.lost_later", lost["later"], "operations", acknowledged)
    yield Value(f"{NAME}.lost_loaded", lost["loaded"], "records", document["read"]["records"])
    if (oldest := lost["oldest"]) is not None:
        # A write that was acknowledged after the kill has a negative age, which counts as 0.
        for metric, end in (("oldest", "at_least_ms"), ("oldest_max", "at_most_ms")):
            yield Value(f"{NAME}.{metric}", max(oldest[end], 0.0) * 1e6, "ns", lost["writes"])
    yield Value(f"{NAME}.undecided", lost["undecided"], "operations", acknowledged)
    yield Value(f"{NAME}.stale", document["stale"]["writes"], "operations", acknowledged)
    if document["proven"]["share"] is not None:
        yield Value(f"{NAME}.proven", document["proven"]["share"], "share", acknowledged)
    if document["proved"] is not None:
        yield Value(f"{NAME}.proved", int(document["proved"]), "", 1)
    yield Value(f"{NAME}.missed", document["misses"]["failed"], "operations", fields)
    # Writes that exceed the ledger's capacity, and misses that the events count but do not list.
    yield Value(
        f"{NAME}.unsettled", document["ledger"]["beyond"] + document["misses"]["unlisted"], "operations", fields
    )
