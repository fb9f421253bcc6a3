"""A check: what is looked at, why it matters to a measurement, and what comes of it.

What it looks at is a machine as it was read, before anybody judges it. None is what could not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadstone.observe.listeners import Listener

# `warn`: figures may be worse, or not repeat; `fail`: something that Loadstone does cannot be done.
State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a process; None: none."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """A directory that Loadstone writes to, or would make."""

    # `results`, `data`, `state`, `cache`.
    name: str
    path: str
    free_bytes: int | None
    file_system: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A program on PATH (or of JAVA_HOME), with its major version where it is asked for."""

    path: str
    major: int | None = None


@dataclass(frozen=True)
class Machine:
    """Everything that the checks look at."""

    architecture: str = "x86_64"
    open_files: Limit = Limit(None, None)
    processes: Limit = Limit(None, None)
    threads_max: int | None = None
    pid_max: int | None = None
    # The tightest limit of the control groups that this process is in, and the name of the group that has it.
    group_processes_max: int | None = None
    group: str = ""
    mappings_max: int | None = None
    # First and last of the ports that connections come from.
    ephemeral_ports: tuple[int, int] | None = None
    connections_waiting_max: int | None = None
    listeners: tuple[Listener, ...] = ()
    swap_bytes: int | None = None
    swap_used_bytes: int | None = None
    swappiness: int | None = None
    memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    # Those of all processors, each once.
    governors: tuple[str, ...] = ()
    huge_pages: str = ""
    clock_source: str = ""
    clock_sources: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    programs: Mapping[str, Program] = field(default_factory=dict)
    # Where JAVA_HOME points; empty: it is not set.
    java_home: str = ""


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
