"""How to measure it again: the command, the seed, the file."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from loadstone.results.result_set import ResultSet


@dataclass(frozen=True)
class Recipe:
    """What it takes."""

    command: str
    seed: str
    # The resolved experiment file.
    experiment: str


def recipe(results: ResultSet) -> Recipe | None:
    """The recipe of a result set; None for imports, whose command is not known."""
    return Recipe(command(results), seed(results), results.experiment) if results.experiment else None


def command(results: ResultSet) -> str:
    """The command that was given, or one that runs the resolved file again."""
    file = "experiment.yaml" if results.path is None else str(results.path / "experiment.yaml")
    given = results.environment.get("command")
    return shlex.join(map(str, given) if isinstance(given, list) else ["loadstone", "run", file])


def seed(results: ResultSet) -> str:
    """The seed of keys, values and order, from the file."""
    found = re.search(r"^seed:\s*(\S+)", results.experiment, re.MULTILINE)
    return found[1] if found else ""
