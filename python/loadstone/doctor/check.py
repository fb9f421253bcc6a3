"""A check: the examined setting, the reason why it matters for measurements, and the result.

The input of a check is the raw state of a machine, in which None means that a value is unlimited or could not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadstone.observe.listeners import Listener

# `warn`: figures may be worse, or not repeatable; `fail`: a part of Loadstone will not work.
State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a process; None means unlimited."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory to which Loadstone writes, or which it would create."""

    # One of `results`, `data`, `state` and `cache`.
    name: str
    path: str
    free_bytes: int | None
    file_system: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A program on PATH or in JAVA_HOME, with its major version if the version matters."""

    path: str
    major: int | None = None


@dataclass(frozen=True)
class Machine:
    """The input of all checks."""

    architecture: str = "x86_64"
    open_files: Limit = Limit(None, None)
    processes: Limit = Limit(None, None)
    threads_max: int | None = None
    pid_max: int | None = None
    # The tightest limit on processes in this process's control groups, and the name of the group that sets it.
    group_processes_max: int | None = None
    group: str = ""
    mappings_max: int | None = None
    # The first and the last port for outgoing connections.
    ephemeral_ports: tuple[int, int] | None = None
    connections_waiting_max: int | None = None
    listeners: tuple[Listener, ...] = ()
    swap_bytes: int | None = None
    swap_used_bytes: int | None = None
    swappiness: int | None = None
    memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    # The distinct governors of all processors.
    governors: tuple[str, ...] = ()
    huge_pages: str = ""
    clock_source: str = ""
    clock_sources: tuple[str, ...] = ()
    directories: tuple[Directory, ...] = ()
    programs: Mapping[str, Program] = field(default_factory=dict)
    # The value of JAVA_HOME; empty if it is not set.
    java_home: str = ""
    # The faults that this host does not support, each with the reason; None if no fault was tried.
    unsupported_faults: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check, as text. `fix` is the command that fixes a problem, if there is one; otherwise empty."""

    state: State
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a machine."""

    name: str
    # The condition for `ok`, as text.
    condition: str
    why: str
    # Called with a machine and the number of clients that the machine must support.
    examine: Callable[[Machine, int], CheckResult]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A check with its result."""

    check: Check
    result: CheckResult


def unknown_result(what: str = "not reported by this machine") -> CheckResult:
    """The result `ok`, for a setting that cannot be read."""
    return CheckResult("ok", what)
