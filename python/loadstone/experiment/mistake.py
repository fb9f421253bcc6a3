"""Errors and warnings about an experiment file: the problem, the place, and a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from loadstone.errors import LoadstoneError


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A line of the file, or a `--set` on the command line; settings are sorted after all lines."""

    rank: int
    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Mistake:
    """An error or a warning: the problem and a remedy. Neither ends in a period."""

    location: Location
    message: str
    hint: str

    def describe_mistake(self, severity: str) -> str:
        """The message and the hint, as they are printed."""
        return f"{severity}: {self.message} ({self.location})\nhint: {self.hint}"

    def __str__(self) -> str:
        return self.describe_mistake("warning")


class ExperimentError(LoadstoneError):
    """All errors in an experiment, in the order of the file's lines."""

    exit_status = 2

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        # Removes duplicates: an alias may be used several times, and an error in the file recurs in each scale.
        self.mistakes = tuple(sorted(dict.fromkeys(mistakes), key=lambda mistake: mistake.location))
        first = self.mistakes[0]
        super().__init__(f"{first.message} ({first.location})", first.hint)

    def __str__(self) -> str:
        return "\n".join(mistake.describe_mistake("error") for mistake in self.mistakes)


def raise_mistake(location: Location, message: str, hint: str) -> NoReturn:
    """Raises a single error that prevents any further checks."""
    raise ExperimentError([Mistake(location, message, hint)])
