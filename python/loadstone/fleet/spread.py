"""The lab's handle on a system with a node on each of several hosts, similar to `RunningSystem` for this machine.

The agents do the work (`loadstone.fleet.host_systems`). Addresses and properties name the hosts.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from loadstone.errors import LoadstoneError
from loadstone.fleet.transport import Link
from loadstone.format import units
from loadstone.results.value import Value
from loadstone.systems import registry
from loadstone.systems.base.activity import PERIOD
from loadstone.systems.base.files.cache import cache_root
from loadstone.systems.base.plan import plan_of
from loadstone.systems.base.running_system import AT, ServerState
from loadstone.systems.base.system import Place, ServerProcess, SystemPlan, SystemsError
from loadstone.systems.prerequisites import systems_root

# The figures of a host that are recorded with the prefix `host.NAME.`.
HOST_FIGURES = (
    "cpu.busy",
    "cpu.steal",
    "cpu.others",
    "carrier.cpu",
    "memory.available_min",
    "network.received",
    "network.sent",
    "device.read",
    "device.written",
)
SERVER = "server."
# The length of a generated password.
SECRET_BYTES = 24
# An operation and its arguments.
Operation = tuple[str, Mapping[str, Any]]


class ServerHosts(Protocol):
    """The parts of the fleet that servers use."""

    links: list[Link]
    # The hosts for servers, in the order of their nodes.
    servers: Sequence[int]

    def connect(self, numbers: Sequence[int]) -> None:
        """Starts the missing agents."""

    def call(self, operations: Mapping[int, Operation]) -> dict[int, Any]:
        """Performs an operation on each host; returns each result, or a LoadstoneError in its place."""


class SpreadSystem:
    """One system on several hosts; its servers need not exist yet."""

    def __init__(self, hosts: ServerHosts, name: str) -> None:
        self.system = registry.load_system(name)
        self.name = name
        # Only for the mark of ownership and the logs of commands; the data is on the hosts.
        self.place = Place(Path(systems_root()).resolve() / f"{name}{AT}fleet", cache_root())
        self.hosts = hosts
        self._plan: SystemPlan | None = None
        # The servers that each host last reported, for hosts that fall silent.
        self._known: dict[int, list[ServerProcess]] = {}

    def up(self, nodes: int, settings: Mapping[str, str], file_system_bytes: int = 0) -> None:
        """Starts the system, or restarts servers that have exited. Raises a LoadstoneError that names the host."""
        numbers = self.hosts.servers[:nodes]
        if len(numbers) < nodes:
            raise SystemsError(
                f"{self.name} needs {units.count_noun(nodes, 'host')}, but the cluster has {len(numbers)} for servers",
                "give more hosts the label in `fleet.hosts.servers`, or use fewer nodes",
            )
        addresses = tuple(self.hosts.links[number].host.address for number in numbers)
        if any(":" in address for address in addresses):
            raise SystemsError(f"{self.name} needs IPv4 addresses, got {addresses[0]}", "start Ray with IPv4 addresses")
        is_new = self._plan is None
        # Passwords stay the same until the end of the run, so that a server is restarted with the same password.
        known = self._plan.settings if self._plan else {}
        generated = {
            name: known.get(name) or secrets.token_urlsafe(SECRET_BYTES)
            for name in self.system.secrets
            if not settings.get(name)
        }
        plan = plan_of(self.system, nodes, {**settings, **generated}, file_system_bytes)
        plan = self._plan = replace(plan, addresses=addresses)
        self.hosts.connect(numbers)
        plans = [asdict(replace(plan, here=(node,))) for node in range(1, nodes + 1)]
        try:
            self.call_hosts({number: ("start", {"plan": own}) for number, own in zip(numbers, plans, strict=True)})
        except BaseException:
            if is_new:
                with suppress(LoadstoneError):
                    self.down()
            raise

    def down(self) -> None:
        """Stops every server and deletes its data. Servers that remain on a lost host are stopped by the next run."""
        if self._plan is not None:
            results = self._try("stop")
            self._plan = None
            for number, result in results.items():
                if isinstance(result, LoadstoneError) and self.hosts.links[number].is_open:
                    raise result

    def status(self) -> list[tuple[ServerProcess, ServerState]]:
        """Each server with its state; the servers of a silent host count as dead."""
        rows: list[tuple[ServerProcess, ServerState]] = []
        for number, result in self._try("status").items():
            if isinstance(result, LoadstoneError):
                rows += [(server, ServerState.DEAD) for server in self._known.get(number, ())]
                continue
            servers = [(ServerProcess(*row[:4]), ServerState(row[4])) for row in result]
            self._known[number] = [server for server, _ in servers]
            rows += servers
        return rows

    def running_processes(self) -> list[ServerProcess]:
        """The servers that are running or paused."""
        return [server for server, state in self.status() if state is not ServerState.DEAD]

    @property
    def plan(self) -> SystemPlan:
        """The nodes, settings and addresses. Raises SystemsError if the system is not up."""
        if self._plan is None:
            raise SystemsError(f"{self.name} is not up", "start it first")
        return self._plan

    @property
    def numbers(self) -> Sequence[int]:
        """The hosts of the system's nodes, in the order of the nodes."""
        return self.hosts.servers[: self.plan.nodes]

    def store_properties(self) -> Mapping[str, str]:
        """The properties with which a store connects."""
        return self.system.store_properties(self.place, self.plan)

    def client_environment(self) -> Mapping[str, str]:
        """Empty, because the client programs are on other hosts."""
        return {}

    def data_directories(self) -> Sequence[Path]:
        """Empty: no data is on this machine."""
        return ()

    def find_watched(self) -> list[Any]:
        """Empty: no servers are on this machine."""
        return []

    def server_version(self) -> str:
        """The version of the started servers."""
        return str(self._describe().get("version") or self.plan.settings.get("version", ""))

    def read_facts(self) -> Mapping[str, str | int | float]:
        """The facts about the system that results record, and the names of its hosts."""
        names = ", ".join(self.hosts.links[number].host.name for number in self.numbers)
        return {**self._describe()["facts"], "server_hosts": names}

    def jvm_releases(self) -> set[str]:
        """The builds of the JVMs in which the servers run."""
        results = self._try("describe").values()
        return {text for result in results if isinstance(result, Mapping) for text in result["jvm_releases"]}

    def read_figures(self) -> Mapping[str, float]:
        """The current counters, added up over all hosts; for periods, the median over the hosts."""
        samples: dict[str, list[float]] = {}
        for result in self._try("read_figures").values():
            if isinstance(result, Mapping):
                for name, number in result.items():
                    samples.setdefault(name, []).append(number)
        return {name: median(values) if name.endswith(PERIOD) else sum(values) for name, values in samples.items()}

    def find_backlog(self) -> str | None:
        """The work that must finish before every reachable replica has all writes; None if there is none."""
        try:
            text = self._call_first("find_backlog")
        except LoadstoneError as error:
            return str(error.args[0])
        return None if text is None else str(text)

    @property
    def unseen_s(self) -> float:
        """The longest time for which pending work may remain unreported, in seconds."""
        return self.system.unseen_s if self.plan.nodes > 1 else 0.0

    def recreate_table(self, table: str, options: Mapping[str, str] | None = None) -> None:
        """Drops a store's table and creates it again."""
        self._call_first("recreate_table", table=table, options=dict(options or {}))

    def ticks(self) -> int:
        """The CPU time that all servers have used so far, in ticks; silent hosts add nothing."""
        return sum(result for result in self._try("ticks").values() if isinstance(result, int))

    def begin_observation(self) -> None:
        """Begins observing the hosts that answer, and their servers."""
        self._try("begin_observation")

    def end_observation(self) -> list[Value]:
        """The figures of each server, of all servers together, and of each host."""
        values: list[Value] = []
        sums: dict[tuple[str, str], list[Value]] = {}
        names = self.system.node_directories(self.plan)
        for (number, result), server in zip(self._try("end_observation").items(), names, strict=True):
            if isinstance(result, LoadstoneError):
                continue
            host = f"host.{self.hosts.links[number].host.name}."
            for value in (Value(*row) for row in result):
                if value.metric.startswith(f"{SERVER}{server}."):
                    values.append(value)
                elif value.metric.startswith(SERVER):
                    sums.setdefault((value.metric, value.unit), []).append(value)
                    if value.metric == f"{SERVER}cpu":
                        values.append(replace(value, metric=f"{host}servers.cpu"))
                elif value.metric in HOST_FIGURES:
                    values.append(replace(value, metric=host + value.metric))
        for (metric, unit), parts in sums.items():
            values.append(Value(metric, sum(part.value for part in parts), unit, max(part.n for part in parts)))
        return values

    def host_of(self, server: str) -> int:
        """The host of a server."""
        return self.numbers[list(self.system.node_directories(self.plan)).index(server)]

    def call_host(self, number: int, operation: str, **arguments: Any) -> Any:
        """The result of an operation on one host. Raises LoadstoneError."""
        return self.call_hosts({number: (operation, arguments)})[number]

    def call_all(self, operation: str, **arguments: Any) -> dict[int, Any]:
        """The results of an operation on each host. Raises LoadstoneError."""
        return self.call_hosts(dict.fromkeys(self.numbers, (operation, arguments)))

    def call_hosts(self, operations: Mapping[int, Operation]) -> dict[int, Any]:
        """The results of an operation for each host. Raises a LoadstoneError that names the host."""
        named = {number: (name, {"system": self.name, **more}) for number, (name, more) in operations.items()}
        results = self.hosts.call(named)
        for number, result in results.items():
            if isinstance(result, LoadstoneError):
                raise SystemsError(f"host {self.hosts.links[number].host.name}: {result.args[0]}", result.hint)
        return results

    def _try(self, operation: str) -> dict[int, Any]:
        """The result or the error of an operation on each host; empty before the system has been started."""
        if self._plan is None:
            return {}
        return self.hosts.call({number: (operation, {"system": self.name}) for number in self.numbers})

    def _describe(self) -> Mapping[str, Any]:
        """The facts and the version, from the first host that answers."""
        try:
            return dict(self._call_first("describe"))
        except LoadstoneError as error:
            return {"facts": {"durability_unknown": str(error.args[0])}}

    def _call_first(self, operation: str, **arguments: Any) -> Any:
        """The result of an operation on the first host that can perform it. Raises LoadstoneError."""
        error: LoadstoneError | None = None
        for number in self.numbers:
            try:
                return self.call_host(number, operation, **arguments)
            except LoadstoneError as failure:
                error = error or failure
        assert error is not None, "a system has a node"
        raise error
