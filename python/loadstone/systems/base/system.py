"""The interface of a system: servers in stages, settings, and observations while it runs.

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
    """A system that cannot be started, stopped or found."""


@dataclass(frozen=True)
class Setting:
    """A setting for `--set`: a name, its default as text, and its meaning."""

    name: str
    default: str
    meaning: str
    # Raises SystemsError for an invalid value of this name in a plan (`loadstone.systems.base.plan`).
    check: Callable[[SystemPlan, str], object] | None = None


@dataclass(frozen=True)
class SystemPlan:
    """The nodes of a system and its settings (defaults filled in)."""

    nodes: int
    settings: Mapping[str, str]
    # The size of the file system that each node has for its directory; 0: none.
    file_system_bytes: int = 0
    # The first three numbers of the nodes' addresses, if each node has a network namespace: `10.77.3`; else empty.
    network: str = ""
    # The address of each node, if each runs on a separate host of a fleet; else empty.
    addresses: tuple[str, ...] = ()
    # The nodes that run on this host, from 1; empty: all.
    here: tuple[int, ...] = ()

    @property
    def local_nodes(self) -> Sequence[int]:
        """The nodes that run on this host, from 1."""
        return self.here or range(1, self.nodes + 1)


@dataclass(frozen=True)
class Place:
    """A system's directories: `down` removes `data` and keeps `logs`; `cache` has files that are fetched once."""

    root: Path
    cache: Path

    @property
    def data(self) -> Path:
        """Configuration and data of the servers, a directory for each."""
        return self.root / "data"

    @property
    def logs(self) -> Path:
        """A file for each server with its standard output and error, and its log if it writes one."""
        return self.root / "logs"


# A place for plans that are only checked.
NOWHERE = Place(Path("/nowhere"), Path("/nowhere"))


@dataclass(frozen=True)
class Server:
    """One process of a system, before it runs. All paths are absolute.

    It listens on loopback, or on its host's address in a fleet.
    """

    # Unique within the system: `cassandra-1`, `master`, `region-server-2`.
    name: str
    argv: Sequence[str]
    # The address for clients, shown as status: `127.0.0.1:9042`.
    host: str
    port: int
    # The working directory of the server, created if missing.
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    # The user it runs as when Loadstone runs as root: PostgreSQL refuses root.
    user: str | None = None
    # The signal for an orderly shutdown: on SIGTERM, PostgreSQL waits for its clients.
    stop: signal.Signals = signal.SIGTERM
    # Time to end before it is killed, seconds.
    patience_s: float = 30.0
    # The log of its JVM's collections (`-Xlog:gc`), if it runs in one.
    gc_log: Path | None = None
    # Further ports that it needs: all ports must be free before the system starts.
    ports: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class ServerProcess:
    """A started server. `started_ticks`, field 22 of /proc/PID/stat, distinguishes it from a later process with its
    pid."""

    name: str
    address: str
    pid: int
    started_ticks: int


class System(ABC):
    """A kind of system."""

    # Its name on command lines: `cassandra`.
    name: ClassVar[str]
    # A description in one line for `--help`.
    title: ClassVar[str]
    settings: ClassVar[Sequence[Setting]]
    # The possible numbers of nodes; the first is the default.
    nodes: ClassVar[Sequence[int]] = (1,)
    # Periodic activities of its servers, with a regular expression for the log line that begins each.
    activities: ClassVar[Mapping[str, str]] = {}
    # Time for each of its stages to become ready, seconds.
    deadline_s: ClassVar[float] = 180.0
    # The longest time for which nodes may hold writes for other nodes before `find_backlog` reports them, seconds.
    unseen_s: ClassVar[float] = 0.0

    # Settings that protect servers on hosts of a fleet: an empty one gets a random value there.
    secrets: ClassVar[Sequence[str]] = ()

    def check_plan(self, plan: SystemPlan) -> None:  # noqa: B027
        """Raises SystemsError for settings that contradict each other or the nodes; each is valid alone.

        Called before anything is fetched, also by the validation of an experiment: it must not read files.
        """

    @abstractmethod
    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        """Fetches the files, writes the configuration, and returns the servers to start, stage by stage.

        Must be repeatable: it is called again to restart ended servers, over the existing data. Raises
        LoadstoneError.
        """

    @abstractmethod
    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """None if these servers of a stage are ready for clients (an open port is not enough); else the missing
        condition.

        Called about twice a second; may take a few seconds, must not block for long. Never raises for "not yet".
        """

    # Whether each of its nodes can have a network namespace: all addresses then begin with `Plan.network`.
    isolatable: ClassVar[bool] = False
    # Whether each node can run on a separate host: it then listens on its address in `Plan.addresses`.
    spreadable: ClassVar[bool] = False

    def node_directories(self, plan: SystemPlan) -> Sequence[str]:
        """The names of its nodes' directories in `place.data`, which are the servers' names.

        Each can be a file system (`file_system_bytes`). Empty: servers share directories, or write elsewhere.
        """
        return ()

    def find_roles(self, place: Place, plan: SystemPlan) -> Mapping[str, Sequence[str]]:
        """The servers that have a role at present: `{"meta": ["region-server-2"]}`. Raises LoadstoneError."""
        return {}

    @abstractmethod
    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The properties with which a store connects: `{"hosts": "127.0.0.1,127.0.0.2", "port": "9042"}`."""

    def client_environment(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """Variables with which its own client programs connect, with secrets; and the programs' directory as `PATH`."""
        return {}

    def data_directories(self, place: Place, plan: SystemPlan) -> Sequence[Path]:
        """The directories of this host that its servers write data to; none if another system keeps the data."""
        return [place.data]

    def server_version(self, plan: SystemPlan) -> str:
        """Its version in results."""
        return plan.settings.get("version", "")

    def read_facts(self, place: Place, plan: SystemPlan) -> Mapping[str, str | int | float]:
        """Its facts in results, in addition to version, nodes and settings: replication, durability, heap …"""
        return {}

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """Current counters of the running system: regions per table and server, ring state, heap, memstore.

        Names are dotted, units last: `regions.usertable`, `region-server-1.heap_bytes`. It may take seconds, so it is
        called before and after a trial's measured window, never within. Empty when nothing can be counted.
        """
        return {}

    def find_backlog(self, place: Place, plan: SystemPlan) -> str | None:
        """Pending work, after which every reachable replica has all writes: hints, compactions; None: no work.

        A system whose replicas never lag has none.
        """
        return None

    def create_table(
        self, place: Place, plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool
    ) -> bool:
        """Creates the table that a store would use, with the system's options (`family`, `splits`).

        With `replace`, an existing table is dropped first, else it stays; returns whether it was created. Raises
        LoadstoneError, also when the system has no tables.
        """
        raise SystemsError(f"{self.name} has no tables to create", "ask for a fresh system instead")

    def is_reached(self, own: Mapping[str, str], properties: Mapping[str, str]) -> bool:
        """Whether a store with these properties works on this system; `own` are the system's `store_properties()`."""
        return False

    def table_options(
        self, store: str, properties: Mapping[str, str], work: Mapping[str, Any]
    ) -> Mapping[str, str] | None:
        """The options of the table that a store needs; None if none can be created for it."""
        return None

    def clear_outside(self, place: Place) -> None:  # noqa: B027
        """Removes files that its ended servers left outside `place.data`, which `down` removes next.

        Must do no harm when the configuration is missing or incomplete.
        """
