"""What a system is made of: servers in stages, settings, and what can be asked of it while it runs.

A system's own file says what its servers are, how they are configured and when they are ready. Starting, stopping,
killing, verifying pids and keeping state and logs is the same for all of them, and is in `running.py`.
"""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from loadstone.errors import LoadstoneError


class SystemsError(LoadstoneError):
    """A system that cannot be started, stopped or found."""


@dataclass(frozen=True)
class Setting:
    """What `--set` takes: a name, its default as text, and what it means."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Plan:
    """How many nodes of a system, and with which settings (defaults filled in)."""

    nodes: int
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Place:
    """Where a system lives: `data` goes with `down`, `logs` stays, `cache` holds files that are fetched once."""

    root: Path
    cache: Path

    @property
    def data(self) -> Path:
        """Configuration and data of the servers, a directory for each."""
        return self.root / "data"

    @property
    def logs(self) -> Path:
        """A file for each server: what it writes to standard output and error, and its own log if it has one."""
        return self.root / "logs"


@dataclass(frozen=True)
class Server:
    """One process of a system, before it runs. All paths are absolute; it listens on loopback only."""

    # Unique within the system: `cassandra-1`, `master`, `region-server-2`.
    name: str
    argv: Sequence[str]
    # The address that its clients use, for status: `127.0.0.1:9042`.
    host: str
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)
    # Its working directory, made if it is not there.
    directory: Path | None = None
    # The user it runs as when we are root: PostgreSQL refuses root.
    user: str | None = None
    # What asks it to end in good order: to PostgreSQL, SIGTERM means to wait for its clients.
    stop: signal.Signals = signal.SIGTERM
    # Seconds it may take to end after that before it is killed.
    patience_s: float = 30.0
    # The file its JVM writes collections to (`-Xlog:gc`), if it is one.
    gc_log: Path | None = None
    # Ports it needs beside `port`: all are checked to be free before anything starts.
    ports: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class Process:
    """A server that was started. The pid alone is not trusted: `started_ticks` is field 22 of /proc/PID/stat."""

    name: str
    address: str
    pid: int
    started_ticks: int


class System(ABC):
    """A kind of system."""

    # As users type it: `cassandra`.
    name: ClassVar[str]
    # One line for `--help`.
    title: ClassVar[str]
    settings: ClassVar[Sequence[Setting]]
    # How many nodes it can have; the first is the default.
    nodes: ClassVar[Sequence[int]] = (1,)
    # What its servers do now and then, and the line of a log with which that begins (a regular expression).
    activities: ClassVar[Mapping[str, str]] = {}
    # Seconds that each of its stages may take until it serves.
    deadline_s: ClassVar[float] = 180.0

    @abstractmethod
    def stages(self, place: Place, plan: Plan) -> Sequence[Sequence[Server]]:
        """Fetches the files, writes the configuration, and returns the servers to start, stage by stage.

        Must be repeatable: it is called again to start what has died, over the data that are there. Raises
        LoadstoneError.
        """

    @abstractmethod
    def ready(self, place: Place, plan: Plan, servers: Sequence[Server]) -> str | None:
        """None when these servers of a stage really serve (not: a port is open); what is missing otherwise.

        Called about twice a second; may take a few seconds, must not block for long. Never raises for "not yet".
        """

    @abstractmethod
    def properties(self, place: Place, plan: Plan) -> Mapping[str, str]:
        """The properties that a store needs to reach it: `{"hosts": "127.0.0.1,127.0.0.2", "port": "9042"}`."""

    def directories(self, place: Place, plan: Plan) -> Sequence[Path]:
        """The directories of this host that its servers write data to; none if these are on other systems."""
        return [place.data]

    def version(self, plan: Plan) -> str:
        """Its version, as results record it."""
        return plan.settings.get("version", "")

    def facts(self, place: Place, plan: Plan) -> Mapping[str, str | int | float]:
        """What the results record of it beside version, nodes and settings: replication, durability, heap …"""
        return {}

    def figures(self, place: Place, plan: Plan) -> Mapping[str, float]:
        """What can be counted on the running system now: regions per table and server, ring state, heap, memstore.

        Names are dotted, units last: `regions.usertable`, `region-server-1.heap_bytes`. Seconds are fine: it is asked
        before and after a trial's measured window, never within. An empty mapping when it cannot tell.
        """
        return {}

    def fresh(self, place: Place, plan: Plan, table: str, options: Mapping[str, str]) -> None:
        """Drops the table that a store would use and makes it anew, with the system's own options (`family`, `splits`).

        Raises LoadstoneError, also when the system has no such notion.
        """
        raise SystemsError(f"{self.name} has no tables to make", "ask for a fresh system instead")

    def is_reached(self, own: Mapping[str, str], properties: Mapping[str, str]) -> bool:
        """Whether a store with these properties works on this system, whose own are those of `properties()`."""
        return False

    def table_options(
        self, store: str, properties: Mapping[str, str], work: Mapping[str, Any]
    ) -> Mapping[str, str] | None:
        """The options of the table that a store needs for its work; None if none can be made for it."""
        return None

    def make(self, place: Place, plan: Plan, table: str, options: Mapping[str, str]) -> bool:
        """Makes a table as `fresh` does, unless there is one of its name: that is left alone. Whether it was made.

        Raises LoadstoneError.
        """
        return False

    def clear(self, place: Place) -> None:  # noqa: B027
        """Removes what its servers left outside of `place.data`, which `down` removes next. They have ended.

        Must do no harm when the configuration is not there, or only in part.
        """
