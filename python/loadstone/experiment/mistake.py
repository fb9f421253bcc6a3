"""Mistakes: what is wrong with an experiment file, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from loadstone.errors import LoadstoneError


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something was said: a line of the file, or a `--set` on the command line, which come after all lines."""

    rank: int
    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong and what to do, for a warning as well; neither ends in a period."""

    place: Place
    message: str
    hint: str

    def text(self, severity: str) -> str:
        """Both lines, as the user sees them."""
        return f"{severity}: {self.message} ({self.place})\nhint: {self.hint}"

    def __str__(self) -> str:
        return self.text("warning")


class ExperimentError(LoadstoneError):
    """Everything that is wrong with an experiment, in the order of its lines."""

    exit_status = 2

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        # The same alias may stand in several places, and a mistake of the file shows in each of its scales.
        self.mistakes = tuple(sorted(dict.fromkeys(mistakes), key=lambda mistake: mistake.place))
        first = self.mistakes[0]
        super().__init__(f"{first.message} ({first.place})", first.hint)

    def __str__(self) -> str:
        return "\n".join(mistake.text("error") for mistake in self.mistakes)


def refuse(place: Place, message: str, hint: str) -> NoReturn:
    """Raises a single mistake, after which nothing else can be looked at."""
    raise ExperimentError([Mistake(place, message, hint)])
