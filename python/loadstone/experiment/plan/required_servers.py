"""The servers that a variant needs: the systems to start or attach, and the starting point of a load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from loadstone.engine.describe import describe_engine
from loadstone.experiment.model import template
from loadstone.experiment.model.system import ATTACH_COMMANDS, OVER, Over, Start, SystemKeys
from loadstone.experiment.model.values import Scalar
from loadstone.format import parsing

# YCSB's default table.
TABLE = "usertable"


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A system to start."""

    system: str
    nodes: int
    # Only the explicit settings; all other settings have their defaults.
    settings: Mapping[str, str]
    # Commands to run before the system starts, and after it has stopped.
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    # The size of each node's file system; 0 if the node's data is in a directory of the host.
    file_system_bytes: int = 0
    # Whether each node has a network namespace.
    isolated: bool = False
    # Whether each node runs on a separate host of the fleet, and not on this machine.
    on_hosts: bool = False


@dataclass(frozen=True, slots=True)
class StartedSystems:
    """Systems that the lab starts, in order: the store's system is last, after the systems on which it depends."""

    systems: tuple[StartRequest, ...]
    # Whether the systems stay up after the run.
    keep: bool

    @property
    def system(self) -> StartRequest:
        """The system to which the store connects."""
        return self.systems[-1]


@dataclass(frozen=True, slots=True)
class Attached:
    """Servers that the user runs. Commands are templates, because `{host}` is different for each server; an empty
    string means that there is no command."""

    hosts: tuple[str, ...]
    port: int | None
    status: str
    restart: str
    kill: str
    fresh: str
    stop: str = ""
    pause: str = ""
    resume: str = ""
    cut: str = ""
    uncut: str = ""
    verify: str = ""

    def store_properties(self, store: str) -> dict[str, str]:
        """The store properties that contain the servers' address."""
        address = describe_engine().address_properties(store)
        if address is None:
            return {}
        hosts, port = address
        return {hosts: ",".join(self.hosts), **({} if self.port is None else {port: str(self.port)})}


@dataclass(frozen=True, slots=True)
class VariantServers:
    """A variant's servers."""

    how: StartedSystems | Attached
    # The starting point of a load: `system`, `table` or `none`.
    fresh: str
    table: str
    # Options of a new table.
    options: Mapping[str, str]

    @property
    def key(self) -> tuple[object, ...]:
        """The properties of the servers that determine the loaded data."""
        how = self.how
        where: tuple[object, ...] = (how.hosts, how.port, how.fresh) if isinstance(how, Attached) else ()
        if isinstance(how, StartedSystems):
            where = tuple(
                (
                    system.system,
                    system.nodes,
                    dict(system.settings),
                    system.before,
                    system.after,
                    system.file_system_bytes,
                    system.isolated,
                )
                for system in how.systems
            )
        return (*where, self.fresh, self.table, dict(self.options))


def start_request(name: str, start: Start | Over, render: Callable[[str], str]) -> StartRequest:
    """The request to start a system for a variant. Validation has filled in the number of nodes."""
    settings = {key: render(text) for key, text in start.settings.items()}
    before, after = (tuple(map(render, getattr(start, when, ()))) for when in ("before", "after"))
    size, isolate = getattr(start, "file_system", None), getattr(start, "isolate", None)
    size_bytes = 0 if size is None else parsing.parse_size(render(str(size)))
    return StartRequest(name, int(render(start.nodes or "1")), settings, before, after, size_bytes, isolate is not None)


def resolve_servers(
    system: SystemKeys,
    names: Mapping[str, Scalar],
    table: str,
    render: Callable[[str], str],
    *,
    on_hosts: bool = False,
) -> VariantServers | None:
    """The servers of a variant; None if the system has no servers. `table` is the workload's table."""
    how: StartedSystems | Attached
    if system.start is not None:
        start = system.start
        below = () if start.over is None else (start_request(OVER[start.system], start.over, render),)
        own = replace(start_request(start.system, start, render), on_hosts=on_hosts)
        how = StartedSystems((*below, own), start.keep)
    elif system.attach is not None:
        attach = system.attach
        commands = (template.render_partly(getattr(attach, key), names) for key in ATTACH_COMMANDS)
        how = Attached(tuple(map(render, attach.hosts)), attach.port, *commands)
    else:
        return None
    options = {key: render(text) for key, text in system.table.items()}
    return VariantServers(how, system.fresh or "none", table, options)
