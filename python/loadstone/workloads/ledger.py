"""The ledger of a trial: which acknowledged writes are missing from the store afterwards?

The engine records the outcome of each write, and reads every record back (docs/guides/proving-writes.md).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from loadstone.engine import program
from loadstone.engine.trial import Spec
from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import Ended, ObservedCommand
from loadstone.importers.run import Run
from loadstone.results.value import Value

NAME = "ledger"
FILE, SPEC = "writes.ledger", "ledger.spec.json"
# The engine's exit statuses: nothing is lost, something is. With any other, not every record could be read.
ANSWERED = (0, 1)
# Writes by outcome, and fields by what they contain; see the guide.
COUNTED = {"writes": ("acknowledged", "refused", "maybe", "unknown"), "found": ("phantom", "corrupt", "unsure")}


def refuse(store: str) -> None:
    """Raises LoadstoneError: the store keeps no data."""
    raise LoadstoneError(f"`measure.ledger` cannot be used with {store}, which keeps no data", "leave `ledger` out")


def recorded(spec: Spec, directory: Path) -> Spec:
    """The spec of a run with a ledger in the data directory. The spec is saved there as well, for the read-back."""
    spec = {**spec, "ledger": {"file": str(directory / FILE)}}
    # The spec may contain passwords; the directory is removed after the trial.
    with open(directory / SPEC, "w", opener=partial(os.open, mode=0o600)) as file:
        json.dump(spec, file)
    return spec


def read_back(engines: int) -> ObservedCommand:
    """Reads every record that a run wrote."""
    return ObservedCommand(NAME, partial(arguments, engines), read, role="verify")


def arguments(engines: int, files: Path) -> Sequence[str]:
    """Several engines: reads that missed an insert of another engine are judged by that engine's ledger."""
    ledgers = [f"{FILE}.{segment}" for segment in range(engines)]
    several = range(engines) if engines > 1 else ()
    events = [word for segment in several for word in ("--events", str(files / f"run.{segment}.events.jsonl"))]
    return [str(program.find()), "ledger", *ledgers, "--spec", SPEC, *events]


def read(ended: Ended) -> Run:
    """Parses the findings. Raises LoadstoneError if not every record could be read."""
    if ended.status not in ANSWERED:
        raise LoadstoneError("not every record could be read back", "see its output")
    try:
        found = json.loads(ended.stdout.read_text())
        return Run(list(figures(found)))
    except (ValueError, KeyError, TypeError) as error:
        raise LoadstoneError(f"the engine printed no result of a ledger: {error!r}", "see its output") from error


def figures(found: Any) -> Iterator[Value]:
    """Writes and their outcomes."""
    fields = found["read"]["fields"]
    for group, names in COUNTED.items():
        unit = "operations" if group == "writes" else "fields"
        for name in names:
            yield Value(f"{NAME}.{name}", found[group][name], unit, fields)
    yield Value(f"{NAME}.lost", found["lost"]["writes"], "fields", fields)
    yield Value(f"{NAME}.missed", found["misses"]["failed"], "operations", fields)
    # Writes beyond the room of the ledger, and misses that the events count and do not list.
    yield Value(f"{NAME}.unsettled", found["ledger"]["beyond"] + found["misses"]["unlisted"], "operations", fields)
