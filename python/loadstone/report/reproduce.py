"""The recipe for measuring again: command, seed and experiment file."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from loadstone.results.result_set import ResultSet


@dataclass(frozen=True)
class Recipe:
    """Everything that is needed to measure again."""

    command: str
    seed: str
    # The resolved experiment file; empty for `loadstone time`, which has none.
    experiment: str


def recipe(results: ResultSet) -> Recipe | None:
    """The recipe of a result set; None for imported results, whose command is not known."""
    is_measured = bool(results.experiment) or has_timed(results)
    return Recipe(command(results), seed(results), results.experiment) if is_measured else None


def has_timed(results: ResultSet) -> bool:
    """Whether the results are from `loadstone time`."""
    recorded = results.environment.get("command")
    return isinstance(recorded, list) and recorded[1:2] == ["time"]


def command(results: ResultSet) -> str:
    """The recorded command, or a command that runs the resolved file again."""
    file = "experiment.yaml" if results.path is None else str(results.path / "experiment.yaml")
    recorded = results.environment.get("command")
    return shlex.join(map(str, recorded) if isinstance(recorded, list) else ["loadstone", "run", file])


def seed(results: ResultSet) -> str:
    """The seed of keys, values and order, from the experiment file; empty if the file has no seed."""
    match = re.search(r"^seed:\s*(\S+)", results.experiment, re.MULTILINE)
    return match[1] if match else ""
