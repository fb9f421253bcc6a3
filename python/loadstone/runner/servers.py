"""The servers of a run: up when a trial wants them, with the table that it wants, and gone at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from loadstone.engine import secrets
from loadstone.engine.events import Note
from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.plan import Variant
from loadstone.experiment.plan.servers import Attached, Servers, Started
from loadstone.observe.servers import Servers as Observed
from loadstone.observe.servers import Watched
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value
from loadstone.runner import settling
from loadstone.runner.attached import Hosts
from loadstone.runner.ownership import TakenError
from loadstone.runner.started import Stack, collections
from loadstone.systems.base.plan import plan_of
from loadstone.systems.base.running import Running

# What a server of ours that ended during a trial is called in its notes, and in the judge's checks.
DIED = "server-died"
UNITS = {"bytes": "B", "ns": "ns", "seconds": "s"}
FIGURES = "server."


class ServersError(LoadstoneError):
    """The servers that a trial wants cannot be had: the trial has failed."""


@dataclass
class At:
    """The servers that a trial works on."""

    wanted: Servers
    stack: Stack | None
    hosts: Hosts | None
    # Whether the trial must load its data.
    loads: bool
    # Those that the trial began with.
    there: tuple[Watched, ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)
    # After the load.
    waited: settling.Waited | None = None

    @property
    def data(self) -> Path | None:
        """Where they keep their data on this host; None where that is elsewhere, or not known."""
        return self.stack.data if self.stack else None

    @property
    def directories(self) -> list[Path]:
        """Every directory of their data on this host."""
        return self.stack.directories if self.stack else []

    def settle(self) -> None:
        """Waits until servers of ours have done what the load has left them to do."""
        if self.stack is not None:
            self.waited = settling.wait(tuple(self.stack.watched()))

    def begin(self) -> Observed | None:
        """Counts what can be counted before the measured window; whom to observe in it."""
        if self.stack is None:
            return None
        self.before = self.stack.figures()
        return Observed(tuple(self.stack.watched()), collections)

    def end(self) -> None:
        """Counts again."""
        if self.stack is not None:
            self.after = self.stack.figures()

    def died(self) -> Iterator[Note]:
        """A note for each server that has ended."""
        for who in self.stack.dead() if self.stack else self.hosts.dead() if self.hosts else ():
            how = self.wanted.how
            where = f"`loadstone systems logs {how.system.system}`" if isinstance(how, Started) else "its own log"
            yield Note(DIED, f"{who} ended during the trial", f"{where} may tell why; the next trial has it again")

    def restless(self) -> Iterator[Note]:
        """That they would not settle."""
        if self.waited is not None and not self.waited.idle:
            said = f"the servers were still busy {self.waited.seconds:.0f} s after the load"
            yield Note("not-steady", said, "load fewer records, or warm up for longer")

    def values(self) -> Iterator[Value]:
        """What was counted before and after."""
        if self.waited is not None:
            yield Value("load.settle", self.waited.seconds * 1e9, "ns", 1)
        for prefix, found in ((f"{FIGURES}before.", self.before), (FIGURES, self.after)):
            for name, number in self._with_regions(found).items():
                unit = UNITS.get(name.rpartition("_")[2], "") if "_" in name else ""
                yield Value(prefix + name, float(number), unit, 1)

    def _with_regions(self, found: Mapping[str, float]) -> dict[str, float]:
        """With the number of regions of the table under load by a name that is the same whatever the table's is."""
        own = found.get(f"regions.{self.wanted.table}")
        return {**found, **({} if own is None else {"regions": own})}

    def facts(self) -> dict[str, Scalar]:
        """What results record of them."""
        how = self.wanted.how
        found: dict[str, Scalar] = {"data_nodes": len(how.hosts)} if isinstance(how, Attached) else {}
        if self.stack is not None:
            found |= self.stack.facts()
        found |= {f"table.{name}": text for name, text in self.wanted.options.items()}
        if (copies := self.wanted.options.get("replication_factor", "")).isdigit():
            found["replication"] = int(copies)
        return found

    def write(self, path: Path) -> None:
        """Leaves all of that as a file."""
        document = {
            "facts": self.facts(),
            "servers": [{"name": each.name, "address": each.address, "pid": each.pid} for each in self.there],
            "figures": {"before": self.before, "after": self.after},
        }
        path.write_text(secrets.hidden(json.dumps(document, indent=1)) + "\n")


class RunServers:
    """All servers of one run."""

    def __init__(self, run: str, root: Path | None = None) -> None:
        """`run` tells this run from others; the servers' state is below `root`, or where `systems` has it."""
        self._stack = Stack(run, root)
        # What is on the servers that are up, by the key of what was loaded; attached ones by their hosts.
        self._held: dict[object, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.leave()

    def prepare(self, variant: Variant, log: Path, *, reuse: bool) -> At | None:
        """Has the servers of a variant up, with a fresh table if the trial is to load; None if it names none.

        A trial has the host for itself: servers that it does not want are ended first. Raises ServersError when they
        are not to be had, TakenError when they are not ours to take.
        """
        wanted = variant.servers
        if wanted is None or isinstance(wanted.how, Attached):
            self._stack.down()
        if wanted is None:
            return None
        try:
            return self._prepare(wanted, variant, log, reuse=reuse)
        except TakenError:
            raise
        except LoadstoneError as error:
            raise ServersError(f"servers: {error.args[0]}", error.hint) from error

    def loaded(self, variant: Variant) -> None:
        """The data of a variant are on its servers now, all of them."""
        if variant.servers is not None:
            self._held[place(variant.servers)] = variant.load_key

    def _prepare(self, wanted: Servers, variant: Variant, log: Path, *, reuse: bool) -> At:
        where = place(wanted)
        there = reuse and self._held.pop(where, None) == variant.load_key
        hosts = Hosts(wanted.how, log, wanted.table) if isinstance(wanted.how, Attached) else None
        if isinstance(wanted.how, Started):
            fresh = wanted.fresh == "system" and not there
            if fresh:
                self._stack.down()
            anew = self._stack.up(wanted.how, fresh=fresh)
        else:
            anew = hosts is not None and hosts.up()
        at = At(wanted, None if hosts else self._stack, hosts, loads=not there or anew)
        if not at.loads:
            self.loaded(variant)
        elif wanted.fresh == "table" and hosts is not None:
            hosts.fresh()
        elif wanted.fresh == "table":
            self._stack.fresh(wanted.table, wanted.options)
        elif wanted.fresh == "system" and there:
            # A server had ended, and took what was loaded with it.
            self._stack.again()
        return replace(at, there=tuple(at.stack.watched()) if at.stack else ())


def place(servers: Servers) -> object:
    """What tells the servers of one variant from another's: only one stack is up at a time."""
    return servers.how.hosts if isinstance(servers.how, Attached) else "started"


def completed(variant: Variant, at: At | None) -> Variant:
    """A variant whose store knows how to reach its servers; what the file says itself comes first."""
    if at is None:
        return variant
    how = at.wanted.how
    found = dict(at.stack.properties()) if at.stack else {}
    if isinstance(how, Attached):
        found = how.properties(variant.store)
    return replace(variant, store_properties={**found, **variant.store_properties})


def foreseen(variant: Variant) -> Variant:
    """A variant as it will be when its servers are up, as far as that is known before."""
    if variant.servers is None:
        return variant
    how = variant.servers.how
    if isinstance(how, Attached):
        return completed(variant, At(variant.servers, None, None, loads=True))
    asked = how.system
    running = Running(asked.system)
    try:
        found = running.system.properties(running.place, plan_of(running.system, asked.nodes, asked.settings))
    except (LoadstoneError, OSError):
        # It tells only once it runs.
        return variant
    return replace(variant, store_properties={**found, **variant.store_properties})
