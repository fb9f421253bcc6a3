"""What a variant wants of its servers: which to start or to attach to, and what its load begins with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadstone.engine.describe import description
from loadstone.experiment.model import template
from loadstone.experiment.model.system import ATTACH_COMMANDS, OVER, Over, Start, System
from loadstone.experiment.model.values import Scalar

# YCSB's own default.
TABLE = "usertable"


@dataclass(frozen=True, slots=True)
class Asked:
    """A system that is to be up."""

    system: str
    nodes: int
    # As given; the others have their defaults.
    settings: Mapping[str, str]
    # Commands before it is started, and after it has ended.
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """Systems that the lab starts, in their order: the last is the store's, those before are what it works on."""

    asked: tuple[Asked, ...]
    # Whether they stay up at the end of the run.
    keep: bool

    @property
    def system(self) -> Asked:
        """The one that the store talks to."""
        return self.asked[-1]


@dataclass(frozen=True, slots=True)
class Attached:
    """Servers of the user's own. Commands are templates yet: `{host}` is different for each; empty: there is none."""

    hosts: tuple[str, ...]
    port: int | None
    status: str
    restart: str
    kill: str
    fresh: str

    def properties(self, store: str) -> dict[str, str]:
        """The store's properties that lead to them."""
        address = description().address(store)
        if address is None:
            return {}
        hosts, port = address
        return {hosts: ",".join(self.hosts), **({} if self.port is None else {port: str(self.port)})}


@dataclass(frozen=True, slots=True)
class Servers:
    """A variant's servers."""

    how: Started | Attached
    # What a load begins with: `system`, `table` or `none`.
    fresh: str
    table: str
    # How a table is made.
    options: Mapping[str, str]

    @property
    def key(self) -> tuple[object, ...]:
        """What decides, beside the load itself, what is loaded."""
        how = self.how
        where: tuple[object, ...] = (how.hosts, how.port, how.fresh) if isinstance(how, Attached) else ()
        if isinstance(how, Started):
            where = tuple((each.system, each.nodes, dict(each.settings), each.before, each.after) for each in how.asked)
        return (*where, self.fresh, self.table, dict(self.options))


def asked(name: str, given: Start | Over, render: Callable[[str], str]) -> Asked:
    """A system as a variant wants it; nodes were filled in."""
    settings = {key: render(text) for key, text in given.settings.items()}
    before, after = (tuple(map(render, getattr(given, when, ()))) for when in ("before", "after"))
    return Asked(name, int(render(given.nodes or "1")), settings, before, after)


def servers(system: System, names: Mapping[str, Scalar], table: str, render: Callable[[str], str]) -> Servers | None:
    """The servers of a variant; None where the system names none. `table` is the workload's."""
    how: Started | Attached
    if system.start is not None:
        given = system.start
        below = () if given.over is None else (asked(OVER[given.system], given.over, render),)
        how = Started((*below, asked(given.system, given, render)), given.keep)
    elif system.attach is not None:
        own = system.attach
        commands = (template.render_partly(getattr(own, key), names) for key in ATTACH_COMMANDS)
        how = Attached(tuple(map(render, own.hosts)), own.port, *commands)
    else:
        return None
    options = {key: render(text) for key, text in system.table.items()}
    return Servers(how, system.fresh or "none", table, options)
