"""A check: what is looked at, why it matters to a measurement, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from loadstone.doctor.machine import Machine

# `warn`: figures may be worse, or not repeat; `fail`: something that Loadstone does cannot be done.
State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a check found; `fix` is the one command that mends it, empty where nothing is to be done."""

    state: State
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at."""

    name: str
    # When it is ok, in words.
    wanted: str
    why: str
    # A machine, and the clients that it is to carry.
    look: Callable[[Machine, int], Seen]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A check with what it found."""

    check: Check
    seen: Seen


UNKNOWN = "not told by this machine"


def unknown(what: str = UNKNOWN) -> Seen:
    """What cannot be read is nothing to complain of."""
    return Seen("ok", what)
