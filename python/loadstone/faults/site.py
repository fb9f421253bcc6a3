"""The interface through which faults access servers that the lab started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadstone.experiment.plan.faults import PlannedFault
from loadstone.faults.cut import Cut
from loadstone.faults.fault import Fault
from loadstone.faults.full import Full
from loadstone.faults.kill import Kill
from loadstone.faults.pause import Pause
from loadstone.faults.power import Power
from loadstone.faults.slow import Slow
from loadstone.faults.stop import Restart, Stop
from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.server_usage import file_size
from loadstone.systems.base import process
from loadstone.systems.base.running_system import RunningSystem

FAULTS: Mapping[str, type[Fault]] = {
    "kill": Kill,
    "stop": Stop,
    "restart": Restart,
    "pause": Pause,
    "power": Power,
    "full": Full,
    "slow": Slow,
    "cut": Cut,
}


class StartedSite:
    """The servers of one system."""

    def __init__(self, running: RunningSystem) -> None:
        self._running = running

    def servers(self) -> Sequence[str]:
        """The names of all servers."""
        return [server.name for server, _ in self._running.status()]

    def roles(self) -> Mapping[str, Sequence[str]]:
        """The servers, keyed by role. A server's name without its number, such as `region-server`, is also a role.

        Raises LoadstoneError.
        """
        roles: dict[str, list[str]] = {}
        for name in self.servers():
            stem, _, number = name.rpartition("-")
            if number.isdecimal():
                roles.setdefault(stem, []).append(name)
        system, plan = self._running.system, self._running.plan
        return {**roles, **system.plan_roles(plan), **system.find_roles(self._running.place, plan)}

    def addresses(self) -> Mapping[str, str]:
        """The address of each server."""
        return {server.name: server.address for server, _ in self._running.status()}

    def action(self, planned: PlannedFault, victims: Sequence[str]) -> Fault:
        """Creates a fault for these servers."""
        return FAULTS[planned.kind](self._running, victims, planned)

    def identities(self) -> Mapping[str, object]:
        """The pid and start time of each running server; None for a paused server."""
        return {
            server.name: None if process.is_paused(server) else (server.pid, server.started_ticks)
            for server in self._running.running_processes()
        }

    def find_start_ns(self, server: str) -> int | None:
        """The start of a server's current process, on the monotonic clock, to within 10 ms (unless the host was
        suspended)."""
        ticks = [running.started_ticks for running in self._running.running_processes() if running.name == server]
        return round(ticks[0] * 1e9 / TICKS_PER_SECOND) if ticks else None

    def backlog(self) -> str | None:
        """The work that must finish before every server has all writes. Raises LoadstoneError."""
        return self._running.find_backlog()

    def data_bytes(self, server: str) -> int | None:
        """The size of the files in a server's directory; None if the server has no directory."""
        directory = self._running.place.data / server
        if not directory.exists():
            return None
        return sum(file_size(Path(where, file)) for where, _, files in os.walk(directory.resolve()) for file in files)
