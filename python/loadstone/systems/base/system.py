"""The interface of a system: its servers in stages, its settings, and what can be observed while it runs.

A system's module defines its servers, how they are configured and when they are ready. Starting, stopping, killing,
verifying pids, and keeping state and logs are the same for all systems (`running_system.py`).
"""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from loadstone.errors import LoadstoneError


class SystemsError(LoadstoneError):
    """A system cannot be started, stopped or found."""


@dataclass(frozen=True)
class Setting:
    """A setting for `--set`: a name, its default as text, and its meaning."""

    name: str
    default: str
    meaning: str
    # Raises SystemsError if the plan has an invalid value for this setting (`loadstone.systems.base.plan`).
    check: Callable[[SystemPlan, str], object] | None = None


@dataclass(frozen=True)
class SystemPlan:
    """The nodes of a system, and its settings with defaults filled in."""

    nodes: int
    settings: Mapping[str, str]
    # The size of the file system that each node has for its directory; 0 if nodes share the host's file system.
    file_system_bytes: int = 0
    # The first three numbers of the nodes' addresses (`10.77.3`) if each node has a network namespace; otherwise empty.
    network: str = ""
    # The address of each node, if each runs on a separate host of a fleet; otherwise empty.
    addresses: tuple[str, ...] = ()
    # The nodes that run on this host, counted from 1; empty means all.
    here: tuple[int, ...] = ()

    @property
    def local_nodes(self) -> Sequence[int]:
        """The nodes that run on this host, counted from 1."""
        return self.here or range(1, self.nodes + 1)


@dataclass(frozen=True)
class Place:
    """A system's directories: `down` removes `data` and keeps `logs`; `cache` contains files that are fetched once."""

    root: Path
    cache: Path

    @property
    def data(self) -> Path:
        """The directory for the servers' configuration and data, with a subdirectory for each server."""
        return self.root / "data"

    @property
    def logs(self) -> Path:
        """The directory with a file for each server's standard output and error, and for its log if it writes one."""
        return self.root / "logs"


# A place for plans that are only checked.
NOWHERE = Place(Path("/nowhere"), Path("/nowhere"))


@dataclass(frozen=True)
class Server:
    """The definition of one process of a system. All paths are absolute.

    The server listens on a loopback address or, in a fleet, on its host's address.
    """

    # Unique within the system: `cassandra-1`, `master`, `region-server-2`.
    name: str
    argv: Sequence[str]
    # The address for clients, which the status shows: `127.0.0.1:9042`.
    host: str
    port: int
    # The working directory of the server, created if missing.
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    # The user that runs the server if Loadstone runs as root: PostgreSQL refuses to run as root.
    user: str | None = None
    # The signal for an orderly shutdown. (On SIGTERM, PostgreSQL waits for its clients.)
    stop: signal.Signals = signal.SIGTERM
    # The time that the server may take to exit before it is killed, in seconds.
    patience_s: float = 30.0
    # The garbage collection log (`-Xlog:gc`), if the server runs in a JVM.
    gc_log: Path | None = None
    # Further ports that the server needs; all ports must be free before the system starts.
    ports: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class ServerProcess:
    """A started server. `started_ticks`, field 22 of /proc/PID/stat, distinguishes it from a later process with the
    same pid."""

    name: str
    address: str
    pid: int
    started_ticks: int


@dataclass(frozen=True)
class StartEstimate:
    """The estimated time that the servers of a system take to start, in s."""

    fast_s: float
    usual_s: float
    slow_s: float


class System(ABC):
    """The base class of all systems."""

    # The system's name on command lines: `cassandra`.
    name: ClassVar[str]
    # A one-line description for `--help`.
    title: ClassVar[str]
    settings: ClassVar[Sequence[Setting]]
    # The possible numbers of nodes; the first is the default.
    nodes: ClassVar[Sequence[int]] = (1,)
    # Whether the servers are Java programs that Maven downloads; otherwise, they come from Debian packages.
    runs_in_java: ClassVar[bool] = True
    # The estimated time to start, for forecasts and for faults whose lift includes a start.
    start_estimate: ClassVar[StartEstimate] = StartEstimate(15.0, 45.0, 120.0)
    # Whether a host can run several instances.
    has_instances: ClassVar[bool] = True
    # Periodic activities of the servers, each with a regular expression for its first log line.
    activities: ClassVar[Mapping[str, str]] = {}
    # The time within which each stage of servers must become ready, in seconds.
    deadline_s: ClassVar[float] = 180.0
    # The time for which nodes may keep writes for other nodes before `find_backlog` reports them, in seconds.
    unseen_s: ClassVar[float] = 0.0

    # Settings that protect servers on hosts of a fleet, where an empty setting gets a random value.
    secrets: ClassVar[Sequence[str]] = ()

    def check_plan(self, plan: SystemPlan) -> None:  # noqa: B027
        """Raises SystemsError for settings that contradict each other or the nodes, even if each is valid alone.

        Called before anything is fetched, and also by the validation of an experiment, so it must not read files.
        """

    @abstractmethod
    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        """Fetches the files, writes the configuration, and returns the servers to start, stage by stage.

        It must be repeatable, because it is called again to restart servers on their existing data. Raises
        LoadstoneError.
        """

    @abstractmethod
    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """None if these servers of a stage are ready for clients (an open port is not enough); otherwise the missing
        condition.

        Called about twice a second. It may take a few seconds, but must not block for longer. It does not raise an
        error if the servers are merely not ready yet.
        """

    # Whether each node can have a network namespace; all addresses then begin with `SystemPlan.network`.
    isolatable: ClassVar[bool] = False
    # Whether each node can run on a separate host; it then listens on its address in `SystemPlan.addresses`.
    spreadable: ClassVar[bool] = False

    def node_directories(self, plan: SystemPlan) -> Sequence[str]:
        """The names of the nodes' directories in `place.data`, which are the servers' names.

        Each can be a mount point (`file_system_bytes`). Empty if servers share directories or write elsewhere.
        """
        return ()

    def plan_roles(self, plan: SystemPlan) -> Mapping[str, Sequence[str]]:
        """The servers of each role that the plan determines. A server's name without its number is always a role."""
        return {}

    def find_roles(self, place: Place, plan: SystemPlan) -> Mapping[str, Sequence[str]]:
        """The servers that currently have a role: `{"meta": ["region-server-2"]}`. Raises LoadstoneError."""
        return {}

    @abstractmethod
    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The properties with which the load generator connects: `{"hosts": "127.0.0.1,127.0.0.2", "port": "9042"}`."""

    def client_environment(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The environment variables that the system's client programs need to connect, including secrets and a `PATH`
        with these programs."""
        return {}

    def data_directories(self, place: Place, plan: SystemPlan) -> Sequence[Path]:
        """The directories on this host to which the system's servers write data; empty if another system stores the
        data."""
        return [place.data]

    def server_version(self, plan: SystemPlan) -> str:
        """The system's version, as recorded in results."""
        return plan.settings.get("version", "")

    def read_facts(self, place: Place, plan: SystemPlan) -> Mapping[str, str | int | float]:
        """The facts that results record in addition to version, nodes and settings: replication, durability, heap, …"""
        return {}

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """The current counters of the running system, such as regions per table and server, ring state and heap.

        Names are dotted and end with the unit: `regions.usertable`, `region-server-1.heap_bytes`. A call may take
        seconds, so it takes place before and after a trial's measured window, never during it. Empty if nothing can be
        counted.
        """
        return {}

    def find_backlog(self, place: Place, plan: SystemPlan) -> str | None:
        """The pending work, such as hints and compactions, that must finish before every reachable replica has all
        writes.

        None if there is none, as in a system whose replicas never lag.
        """
        return None

    def create_table(
        self, place: Place, plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool
    ) -> bool:
        """Creates the table that a store would use, with the system's options (`family`, `splits`).

        With `replace`, an existing table is dropped first; otherwise, it is kept. Returns whether the table was
        created. Raises LoadstoneError, for example if the system has no tables.
        """
        raise SystemsError(f"{self.name} has no tables to create", "request a fresh system instead")

    def is_reached(self, own: Mapping[str, str], properties: Mapping[str, str]) -> bool:
        """Whether a store with these properties uses this system; `own` contains the system's `store_properties()`."""
        return False

    def table_options(
        self, store: str, properties: Mapping[str, str], work: Mapping[str, Any]
    ) -> Mapping[str, str] | None:
        """The options of the table that a store needs; None if no table can be created for the store."""
        return None

    def clear_outside(self, place: Place) -> None:  # noqa: B027
        """Removes the files that the servers, which have exited, left outside `place.data`; `down` then removes
        `place.data`.

        Must do no harm if the configuration is missing or incomplete.
        """
