"""Faults on servers that run on the fleet's hosts: the agent on the victims' host performs each step.

The journal of a fault is on that host, next to the servers' state, and the next start on the host undoes the fault.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.faults import PlannedFault
from loadstone.faults.site import FAULTS
from loadstone.fleet.spread import SpreadSystem

_numbers = count(1)


class SpreadSite:
    """The servers of one system."""

    def __init__(self, running: SpreadSystem) -> None:
        self._running = running

    def servers(self) -> Sequence[str]:
        """The names of all servers."""
        return [server.name for server, _ in self._running.status()]

    def roles(self) -> Mapping[str, Sequence[str]]:
        """The servers, keyed by role. Raises LoadstoneError."""
        roles: dict[str, list[str]] = {}
        for result in self._running.call_all("roles").values():
            for role, servers in result.items():
                roles[role] = list(dict.fromkeys([*roles.get(role, ()), *servers]))
        return roles

    def addresses(self) -> Mapping[str, str]:
        """The address of each server."""
        return {server.name: server.address for server, _ in self._running.status()}

    def action(self, planned: PlannedFault, victims: Sequence[str]) -> SpreadFault:
        """Creates a fault for these servers. Raises LoadstoneError."""
        return SpreadFault(self._running, planned, victims)

    def identities(self) -> Mapping[str, object]:
        """The identity of each running server's process; None for a paused server."""
        return {
            name: tuple(identity) if isinstance(identity, list) else identity
            for result in self._running.call_all("identities").values()
            for name, identity in result.items()
        }

    def find_start_ns(self, server: str) -> int | None:
        """The start of a server's current process, on the lab's monotonic clock, to within 10 ms plus the error of the
        clock offset."""
        number = self._running.host_of(server)
        unix_s = self._running.call_host(number, "start_times").get(server)
        if unix_s is None:
            return None
        now_ns = time.time_ns()
        offset_ns = self._running.hosts.links[number].clock.estimate(now_ns).offset_ns
        return round(float(unix_s) * 1e9 - offset_ns) - now_ns + time.monotonic_ns()

    def backlog(self) -> str | None:
        """The work that must finish before every server has all writes. Raises LoadstoneError."""
        return self._running.find_backlog()

    def data_bytes(self, server: str) -> int | None:
        """The size of a server's data; None if its host does not answer."""
        with suppress(LoadstoneError):
            size = self._running.call_host(self._running.host_of(server), "data_bytes", server=server)
            return None if size is None else int(size)
        return None


class SpreadFault:
    """One fault; if its victims are on several hosts, each step is performed on all of these hosts concurrently."""

    def __init__(self, running: SpreadSystem, planned: PlannedFault, victims: Sequence[str]) -> None:
        self.ending = FAULTS[planned.kind].ending
        self._running = running
        self._number = next(_numbers)
        by_host: dict[int, list[str]] = {}
        for victim in victims:
            by_host.setdefault(running.host_of(victim), []).append(victim)
        self._hosts = list(by_host)
        arguments = {"number": self._number, "planned": asdict(planned)}
        running.call_hosts(
            {number: ("create_fault", {**arguments, "victims": names}) for number, names in by_host.items()}
        )

    def prepare(self) -> None:
        """Checks the parts of the fault that may fail, before the load. Raises LoadstoneError."""
        self._perform("prepare")

    def aim(self) -> None:
        """Finds the processes of the victims. Raises LoadstoneError."""
        self._perform("aim")

    def journal(self) -> None:
        """Records on the hosts the steps that undo the fault. Raises LoadstoneError."""
        self._perform("journal")

    def withdraw(self) -> None:
        """Removes the record of a fault that was never injected. Raises LoadstoneError."""
        self._perform("withdraw")

    def inject(self) -> None:
        """Gives the order to inject the fault. Raises LoadstoneError."""
        self._perform("inject")

    def missing_effect(self) -> str | None:
        """The reason why the effect is not verified yet; None once it is verified."""
        return self._first_reason("missing_effect")

    def lift(self) -> None:
        """Lifts the fault. Raises LoadstoneError."""
        self._perform("lift")

    def remaining_effect(self) -> str | None:
        """The reason why the lift is not verified yet; None once it is verified."""
        return self._first_reason("remaining_effect")

    def facts(self) -> Mapping[str, str | int | float | bool]:
        """The facts that the hosts observed about the fault."""
        return {name: fact for facts in self._perform("facts") for name, fact in facts.items()}

    def _perform(self, step: str) -> Sequence[Any]:
        arguments = {"number": self._number, "step": step}
        results = self._running.call_hosts(dict.fromkeys(self._hosts, ("perform_fault", arguments)))
        return list(results.values())

    def _first_reason(self, step: str) -> str | None:
        return next((str(reason) for reason in self._perform(step) if reason is not None), None)
