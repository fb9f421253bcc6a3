"""Suggestions: the known names that are most similar to an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

# The minimum similarity (difflib's ratio) of a helpful suggestion.
LIKENESS = 0.6
SHOWN_AT_MOST = 24


def nearest_names(name: str, known: Iterable[str], most: int) -> list[str]:
    """The known names that are similar to a name, the most similar first."""
    folded = {candidate.lower(): candidate for candidate in known}
    return [folded[match] for match in difflib.get_close_matches(name.lower(), folded, most, LIKENESS)]


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The most similar known name; None if no name is similar."""
    return next(iter(nearest_names(name, known, 1)), None)


def suggest_name(name: str, known: Iterable[str], written: Callable[[str], object] = str) -> str:
    """The probable name, formatted by `written`, as a hint; empty if no name is similar."""
    guess = nearest_name(name, known)
    return f'did you mean "{written(guess)}"?' if guess else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The probable name as the beginning of a hint, `did you mean …? `; empty if no name is similar."""
    hint = suggest_name(name, known)
    return f"{hint} " if hint else ""


def suggest_names(name: str, known: Sequence[str], what: str) -> str:
    """A hint with the most similar name, and then the first known names after `what`, such as "the keys are"."""
    listed = ", ".join(known[:SHOWN_AT_MOST]) + (" …" if len(known) > SHOWN_AT_MOST else "")
    if hint := did_you_mean(name, known):
        return f"{hint}{what[0].upper()}{what[1:]} {listed}" if len(known) > 1 else hint.strip()
    return f"{what} {listed}" if listed else "there are none"
