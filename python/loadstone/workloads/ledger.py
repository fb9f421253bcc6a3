"""A ledger of a trial's writes, read back after it: which acknowledged writes does the store not show any more?

The engine records the outcome of each write, and reads everything back (docs/guides/proving-writes.md).
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
# The engine's exit statuses: nothing is lost, something is. Otherwise a record could not be read.
ANSWERED = (0, 1)
# Writes by their outcome, and fields by what was found in them; see the guide.
COUNTED = {"writes": ("acknowledged", "refused", "maybe", "unknown"), "found": ("phantom", "corrupt", "unsure")}


def refuse(store: str) -> None:
    """Raises LoadstoneError: a store without data."""
    raise LoadstoneError(f"`measure.ledger` cannot be used with {store}, which keeps no data", "leave `ledger` out")


def recorded(spec: Spec, directory: Path) -> Spec:
    """A run's spec with a ledger in the directory of the data, where the read-back finds the spec as well."""
    spec = {**spec, "ledger": {"file": str(directory / FILE)}}
    # It may contain passwords; the directory is removed after the trial.
    with open(directory / SPEC, "w", opener=partial(os.open, mode=0o600)) as file:
        json.dump(spec, file)
    return spec


def read_back(engines: int) -> ObservedCommand:
    """Reads every record that a run wrote."""
    return ObservedCommand(NAME, partial(arguments, engines), read, role="verify")


def arguments(engines: int, files: Path) -> Sequence[str]:
    """With the events of several engines: reads that missed the insert of another one are judged by its ledger."""
    ledgers = [f"{FILE}.{segment}" for segment in range(engines)]
    several = range(engines) if engines > 1 else ()
    events = [word for segment in several for word in ("--events", str(files / f"run.{segment}.events.jsonl"))]
    return [str(program.find()), "ledger", *ledgers, "--spec", SPEC, *events]


def read(ended: Ended) -> Run:
    """What the command found. Raises LoadstoneError where it could not read everything."""
    if ended.status not in ANSWERED:
        raise LoadstoneError("not every record could be read back", "see its output")
    try:
        found = json.loads(ended.stdout.read_text())
        return Run(list(figures(found)))
    except (ValueError, KeyError, TypeError) as error:
        raise LoadstoneError(f"the engine printed no result of a ledger: {error!r}", "see its output") from error


def figures(found: Any) -> Iterator[Value]:
    """Writes, and what became of them."""
    fields = found["read"]["fields"]
    for group, names in COUNTED.items():
        unit = "operations" if group == "writes" else "fields"
        for name in names:
            yield Value(f"{NAME}.{name}", found[group][name], unit, fields)
    yield Value(f"{NAME}.lost", found["lost"]["writes"], "fields", fields)
    yield Value(f"{NAME}.missed", found["misses"]["failed"], "operations", fields)
