"""Starts, observes, breaks and stops the systems on a host of the fleet, using the code for a single machine.

The lab (`loadstone.fleet.spread`) names an operation in `OPERATIONS`; the arguments and the result are JSON.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from loadstone.engine.document import read_document
from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.faults import PlannedFault
from loadstone.faults.fault import Fault
from loadstone.faults.site import StartedSite
from loadstone.observe.server_usage import ServerObserver, Watched, sum_ticks
from loadstone.observe.watch import Watch
from loadstone.results.value import Value
from loadstone.systems.base import jvm, process
from loadstone.systems.base.ownership import OWNER, hold_ownership, refuse_taken
from loadstone.systems.base.running_system import AT, RunningSystem
from loadstone.systems.base.system import SystemPlan

# The maximum length of an instance name.
NAME_MAX = 31
SAMPLE_SECONDS = 1.0
# The steps of a fault that the lab may order.
STEPS = frozenset(
    {"aim", "journal", "withdraw", "inject", "missing_effect", "lift", "remaining_effect", "facts", "prepare"}
)


class HostSystems:
    """The systems of one host. Any thread may perform operations."""

    def __init__(self, host: str, transport_pids: Mapping[str, int] | None = None) -> None:
        """`transport_pids` are the transport's processes, whose CPU time is not interference."""
        self._instance = instance_name(host)
        self._transport_pids = dict(transport_pids or {})
        # The mark of ownership of each system that was started.
        self._marks: dict[str, ExitStack] = {}
        self._observations: dict[str, Observation] = {}
        self._faults: dict[tuple[str, int], Fault] = {}

    def perform(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Performs an operation, and returns its result. Raises LoadstoneError."""
        if operation not in OPERATIONS:
            raise LoadstoneError(
                f"the agent does not support the operation {operation}", "install the same version everywhere"
            )
        return OPERATIONS[operation](self, **arguments)

    def find_watched(self) -> list[Watched]:
        """The servers that are running on this host."""
        return [server for system in list(self._marks) for server in self._running(system).find_watched()]

    def start(self, system: str, plan: Mapping[str, Any]) -> None:
        """Starts this host's nodes, and waits until they are ready. Servers of an earlier run are stopped first."""
        running = self._running(system)
        if system not in self._marks:
            self._take_ownership(running, system)
            running.down()
        running.start(read_document(SystemPlan, plan), owner=OWNER)

    def stop(self, system: str) -> None:
        """Stops the servers and deletes their data. Raises TakenError for servers of another owner."""
        running = self._running(system)
        if system not in self._marks:
            # An earlier agent started the servers.
            self._take_ownership(running, system)
        self.end_observation(system)
        running.down()
        self._marks.pop(system).close()

    def status(self, system: str) -> list[list[Any]]:
        """The name, address, pid, start and state of each server."""
        return [
            [server.name, server.address, server.pid, server.started_ticks, state.value]
            for server, state in self._running(system).status()
        ]

    def describe(self, system: str) -> dict[str, Any]:
        """The facts, the version, and the builds of the servers' JVMs."""
        running = self._running(system)
        return {
            "facts": dict(running.read_facts()),
            "version": running.server_version(),
            "jvm_releases": sorted(running.jvm_releases()),
        }

    def read_figures(self, system: str) -> dict[str, float]:
        """The current counters."""
        return dict(self._running(system).read_figures())

    def find_backlog(self, system: str) -> str | None:
        """The work that must finish before every reachable replica has all writes; None if there is none."""
        return self._running(system).find_backlog()

    def recreate_table(self, system: str, table: str, options: Mapping[str, str]) -> None:
        """Drops a store's table and creates it again."""
        self._running(system).recreate_table(table, options)

    def ticks(self, system: str) -> int:
        """The CPU time that the servers have used so far, in ticks."""
        return sum_ticks(self._running(system).find_watched())

    def begin_observation(self, system: str) -> None:
        """Flushes the file system with the data, and begins observing the host and its servers."""
        self.end_observation(system)
        self._observations[system] = Observation(self._running(system), self._transport_pids)
        self._observations[system].begin()

    def end_observation(self, system: str) -> list[list[Any]]:
        """The figures since `begin_observation`, each as metric, value, unit and number of samples."""
        observation = self._observations.pop(system, None)
        values = [] if observation is None else observation.end()
        return [[value.metric, value.value, value.unit, value.n] for value in values]

    def roles(self, system: str) -> dict[str, list[str]]:
        """The servers, keyed by role."""
        return {role: list(servers) for role, servers in StartedSite(self._running(system)).roles().items()}

    def identities(self, system: str) -> dict[str, Any]:
        """The identity of each running server's process; None for a paused server."""
        return dict(StartedSite(self._running(system)).identities())

    def start_times(self, system: str) -> dict[str, float]:
        """The start time of each server's process, s since the epoch by this host's clock."""
        return {server.name: process.start_time(server) for server in self._running(system).running_processes()}

    def data_bytes(self, system: str, server: str) -> int | None:
        """The size of a server's data."""
        return StartedSite(self._running(system)).data_bytes(server)

    def create_fault(self, system: str, number: int, planned: Mapping[str, Any], victims: Sequence[str]) -> None:
        """Creates a fault on servers of this host, for `perform_fault`."""
        fault = StartedSite(self._running(system)).action(read_document(PlannedFault, planned), victims)
        self._faults[system, number] = fault

    def perform_fault(self, system: str, number: int, step: str) -> Any:
        """Performs a step of a fault, and returns its result."""
        if step not in STEPS or (system, number) not in self._faults:
            raise LoadstoneError(
                f"this host has no fault {number} for the step {step}", "the agent of this host was restarted"
            )
        result = getattr(self._faults[system, number], step)()
        return dict(result) if isinstance(result, Mapping) else result

    def _take_ownership(self, running: RunningSystem, system: str) -> None:
        with ExitStack() as mark:
            mark.enter_context(hold_ownership(running.place.root))
            refuse_taken(running)
            self._marks[system] = mark.pop_all()

    def _running(self, system: str) -> RunningSystem:
        return RunningSystem(f"{system}{AT}{self._instance}")


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    operation.__name__: operation
    for operation in (
        HostSystems.start,
        HostSystems.stop,
        HostSystems.status,
        HostSystems.describe,
        HostSystems.read_figures,
        HostSystems.find_backlog,
        HostSystems.recreate_table,
        HostSystems.ticks,
        HostSystems.begin_observation,
        HostSystems.end_observation,
        HostSystems.roles,
        HostSystems.identities,
        HostSystems.start_times,
        HostSystems.data_bytes,
        HostSystems.create_fault,
        HostSystems.perform_fault,
    )
}


class Observation(threading.Thread):
    """Observes this host and the servers of a system, about once a second."""

    def __init__(self, running: RunningSystem, transport_pids: Mapping[str, int]) -> None:
        super().__init__(name=f"observe {running.name}", daemon=True)
        servers = ServerObserver(tuple(running.find_watched()), jvm.read_collections)
        self._transport_pids = transport_pids
        self._watch = Watch(next(iter(running.data_directories()), None), None, servers)
        self._is_over = threading.Event()

    def begin(self) -> None:
        """Begins the observation, and returns after the first sample."""
        self._watch.__enter__()
        for name, pid in self._transport_pids.items():
            self._watch.watch(name, pid)
        self.start()

    def run(self) -> None:
        """Takes samples."""
        while not self._is_over.wait(SAMPLE_SECONDS):
            self._watch.take_sample()

    def end(self) -> list[Value]:
        """Flushes the file system, takes the last sample, and returns the figures."""
        self._is_over.set()
        self.join()
        self._watch.__exit__(None, None, None)
        values = list(self._watch.values(0))
        transport = [value for value in values if value.metric in {f"{name}.cpu" for name in self._transport_pids}]
        if transport:
            values.append(Value("carrier.cpu", sum(value.value for value in transport), "processors", transport[0].n))
        return values


def instance_name(host: str) -> str:
    """The instance name of a system on a host. It contains the host's name, because hosts may share a file system."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", host).lstrip("_.-") or "host"
    if name == host and len(name) <= NAME_MAX:
        return name
    return f"{name[: NAME_MAX - 9]}-{hashlib.sha256(host.encode()).hexdigest()[:8]}"
