"""Servers that the lab starts: a system, and any system on which it stores its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from loadstone.engine.describe import SECRET_NAME, describe_engine
from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.forecast import count_shared
from loadstone.experiment.plan.required_servers import StartedSystems, StartRequest
from loadstone.fleet.spread import SpreadSystem
from loadstone.observe.server_usage import Watched, sum_ticks
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value
from loadstone.runner import hooks
from loadstone.systems.base.ownership import OWNER, hold_ownership, refuse_taken
from loadstone.systems.base.running_system import RunningSystem, ServerState
from loadstone.systems.base.system import SystemPlan

# The time limit for the commands that run before a system starts and after it stops.
HOOK_SECONDS = 600.0
# Opens a system whose nodes run on hosts of the fleet.
SpreadOpener = Callable[[str], SpreadSystem]


class Stack:
    """Systems that depend on each other. At most one stack is up, so that no other servers disturb a trial."""

    def __init__(self, root: Path | None = None, open_spread: SpreadOpener | None = None) -> None:
        self._root = root
        self._open_spread = open_spread
        # Each system with its mark of ownership.
        self._up: list[tuple[StartRequest, RunningSystem | SpreadSystem, ExitStack]] = []
        self._keep = False

    def up(self, requested: StartedSystems, *, fresh: bool = False) -> bool:
        """Starts these systems, stops all other systems, and restarts dead servers; returns whether any was started.

        Servers that an earlier run kept are taken over, unless `fresh`. Raises TakenError if the servers are running
        and no experiment started them, and LoadstoneError if a server does not start.
        """
        self._keep = requested.keep
        same = count_shared([start for start, _, _ in self._up], requested.systems)
        self._end(same)
        started = bool(self.dead())
        for start, running, _ in self._up:
            bring_up(running, start)
        for start in requested.systems[same:]:
            self._begin(start, fresh=fresh)
            started = True
        return started

    def down(self) -> None:
        """Stops all systems."""
        self._end(0)

    def leave(self) -> None:
        """Stops the servers at the end of the run, unless the experiment keeps them."""
        if not self._keep:
            self.down()
        for _, _, mark in self._up:
            mark.close()
        self._up.clear()

    def recreate_table(self, table: str, options: Mapping[str, str]) -> None:
        """Recreates the table."""
        self.last.recreate_table(table, options)

    def find_backlog(self) -> str | None:
        """The first pending work that must finish before every reachable replica has all writes; None if there is
        none."""
        return next(filter(None, (running.find_backlog() for _, running, _ in self._up)), None)

    @property
    def unseen_s(self) -> float:
        """The longest time for which pending work may remain unreported, in seconds."""
        return max((running.unseen_s for _, running, _ in self._up), default=0.0)

    def properties(self) -> Mapping[str, str]:
        """The address of the servers, as store properties."""
        return self.last.store_properties()

    def dead(self) -> list[str]:
        """A description of each server that is no longer running."""
        return [
            f"{process.name} ({process.address}, pid {process.pid})"
            for _, running, _ in self._up
            for process, state in running.status()
            if state is ServerState.DEAD
        ]

    def names(self) -> dict[str, Scalar]:
        """The names that a command can use: address, nodes, settings and store properties, without secrets."""
        servers = self.last.running_processes()
        hosts = [process.address.rpartition(":")[0] for process in servers]
        plan = self.last.plan
        named = {**plan.settings, **self.last.store_properties()}
        return {
            **{name: text for name, text in named.items() if not describe_engine().is_secret(name)},
            **({"host": hosts[0], "port": servers[0].address.rpartition(":")[2]} if servers else {}),
            "hosts": ",".join(dict.fromkeys(hosts)),
            "nodes": plan.nodes,
        }

    def client_environment(self) -> Mapping[str, str]:
        """The environment variables with which the last system's client programs connect."""
        return self.last.client_environment()

    @property
    def directories(self) -> list[Path]:
        """The data directories of all systems."""
        return [path for _, running, _ in self._up for path in running.data_directories()]

    @property
    def data(self) -> Path | None:
        """A directory on the file system of the data; None if there are several file systems, or none on this host."""
        return common(self.directories)

    def find_watched(self) -> Iterator[Watched]:
        """The servers to observe."""
        for _, running, _ in self._up:
            yield from running.find_watched()

    def ticks(self, servers: Sequence[Watched]) -> int:
        """The CPU time, in ticks, that these servers and all servers on other hosts have used so far."""
        return sum_ticks(servers) + sum(
            running.ticks() for _, running, _ in self._up if isinstance(running, SpreadSystem)
        )

    def begin_observation(self) -> None:
        """Begins observing servers on other hosts."""
        for _, running, _ in self._up:
            if isinstance(running, SpreadSystem):
                running.begin_observation()

    def end_observation(self) -> list[Value]:
        """The figures of servers on other hosts, and of the hosts themselves; none for servers on this machine."""
        return [
            value
            for _, running, _ in self._up
            if isinstance(running, SpreadSystem)
            for value in running.end_observation()
        ]

    def facts(self) -> dict[str, Scalar]:
        """The facts that results record: the system, its version, nodes, configured settings, guarantees."""
        facts: dict[str, Scalar] = {}
        for start, running, _ in self._up:
            top = running is self.last
            prefix = "" if top else f"{start.system}."
            facts[f"{prefix}system" if top else start.system] = start.system if top else running.server_version()
            if top:
                facts["system_version"] = running.server_version()
            facts["data_nodes" if top else f"{prefix}nodes"] = start.nodes
            reported = running.read_facts()
            facts |= {f"{prefix}{name}": value for name, value in reported.items()}
            if "replication" in reported:
                # The underlying system replicates the data of the system on top of it.
                facts.setdefault("replication", reported["replication"])
            known = {*reported, *filter(SECRET_NAME.search, start.settings)}
            facts |= {f"{prefix}set.{name}": text for name, text in start.settings.items() if name not in known}
        if builds := {build for _, running, _ in self._up for build in running.jvm_releases()}:
            facts["server_jvm"] = " + ".join(sorted(builds))
        return facts

    def figures(self) -> dict[str, float]:
        """The current values of the servers' counters."""
        counters: dict[str, float] = {}
        for _, running, _ in self._up:
            # Servers that have exited have no counters; the trial keeps its other figures.
            with suppress(LoadstoneError):
                counters |= running.read_figures()
        return counters

    @property
    def last(self) -> RunningSystem | SpreadSystem:
        """The system that the store connects to."""
        return self._up[-1][1]

    def _begin(self, start: StartRequest, *, fresh: bool) -> None:
        running = self._open(start)
        with ExitStack() as mark:
            mark.enter_context(hold_ownership(running.place.root))
            if isinstance(running, RunningSystem):
                known = running.load_state
                refuse_taken(running)
                if known is not None and (fresh or not (self._keep and matches(running, start))):
                    # The servers belong to a killed run, or to a run that kept its servers.
                    running.down()
            if not running.status():
                prepare(start.before, "before", running)
            bring_up(running, start)
            self._up.append((start, running, mark.pop_all()))

    def _open(self, start: StartRequest) -> RunningSystem | SpreadSystem:
        if not start.on_hosts:
            return RunningSystem(start.system, self._root)
        assert self._open_spread is not None, "validation requires a fleet"
        return self._open_spread(start.system)

    def _end(self, count: int) -> None:
        """Stops all systems except the first `count`, in reverse order."""
        while len(self._up) > count:
            start, running, mark = self._up[-1]
            running.down()
            mark.close()
            self._up.pop()
            prepare(start.after, "after", running)


def prepare(commands: Sequence[str], when: str, running: RunningSystem | SpreadSystem) -> None:
    """Runs the commands before a system starts or after it stops. Raises HookError."""
    if commands:
        log = running.place.root.with_name(f"{running.name}-hooks.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        hooks.run(commands, when, {"system": running.name}, log, HOOK_SECONDS)


def common(directories: Sequence[Path]) -> Path | None:
    """The first existing directory, if all existing directories are on one file system."""
    existing = [path for path in directories if path.exists()]
    return existing[0] if len({path.stat().st_dev for path in existing}) == 1 else None


def matches(running: RunningSystem, start: StartRequest) -> bool:
    """Whether a system is running with the requested nodes and settings."""
    return bool(running.status()) and running.plan == plan_request(running, start)


def plan_request(running: RunningSystem, start: StartRequest) -> SystemPlan:
    """The system plan for a request."""
    return running.plan_for(start.nodes, start.settings, start.file_system_bytes, isolated=start.isolated)


def bring_up(running: RunningSystem | SpreadSystem, start: StartRequest) -> None:
    """Starts a system, or restarts its servers that have exited."""
    if isinstance(running, SpreadSystem):
        running.up(start.nodes, start.settings, start.file_system_bytes)
        return
    running.up(
        start.nodes,
        start.settings,
        owner=OWNER,
        file_system_bytes=start.file_system_bytes,
        isolated=start.isolated,
    )
