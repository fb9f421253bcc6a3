"""The servers of a run, which are started for the trials that need them, with a fresh table, and stopped at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadstone.engine import secrets
from loadstone.engine.describe import describe_engine
from loadstone.engine.events import Note
from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.plan import Variant
from loadstone.experiment.plan.required_servers import Attached, StartedSystems, StartRequest, VariantServers
from loadstone.faults.attached import AttachedSite
from loadstone.faults.injector import Site
from loadstone.faults.site import StartedSite
from loadstone.fleet.spread import SpreadSystem
from loadstone.fleet.spread_faults import SpreadSite
from loadstone.observe.server_usage import ServerObserver as Observed
from loadstone.observe.server_usage import Watched
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value
from loadstone.runner import settling
from loadstone.runner.attached_system import AttachedServers
from loadstone.runner.started_system import SpreadOpener, Stack, plan_request
from loadstone.systems.base import jvm
from loadstone.systems.base.ownership import TakenError
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.base.system import SystemsError

# The name, in notes and in the judge's checks, for a server that exited during a trial.
DIED = "server-died"
UNITS = {"bytes": "B", "ns": "ns", "seconds": "s"}
FIGURES = "server."
# The suffix of counters that count from the server's start; results contain their growth in the measured phase.
TOTAL = "_total"


class ServersError(LoadstoneError):
    """The servers that a trial needs are not available, so the trial failed."""


@dataclass
class TrialServers:
    """The servers of a trial."""

    requested: VariantServers
    # Empty for servers that the user runs.
    stack: Stack
    hosts: AttachedServers | None
    # Whether the trial must load its data.
    must_load: bool
    # The servers that were running when the trial began.
    initial: tuple[Watched, ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)
    # The figures of servers on hosts of the fleet, and of the hosts themselves.
    of_hosts: Sequence[Value] = ()
    # The wait after the load, if there was one.
    waited: settling.Waited | None = None

    def site(self, journal: Path) -> Site:
        """The site that injects faults into these servers; `journal` records how to undo faults on servers that the
        user runs."""
        if self.hosts is not None:
            return AttachedSite(self.hosts, journal)
        running = self.stack.last
        return SpreadSite(running) if isinstance(running, SpreadSystem) else StartedSite(running)

    def settle(self) -> None:
        """Waits until servers that the lab started are idle after the load."""
        if self.hosts is None:
            self.waited = settling.wait(tuple(self.stack.find_watched()), self.stack.ticks)

    def await_replication(self) -> settling.Replicated | None:
        """Waits until servers that the lab started have replicated all writes; None if the user runs the servers."""
        return None if self.hosts else settling.await_replication(self.stack.find_backlog, self.stack.unseen_s)

    def begin(self) -> Observed | None:
        """Reads the servers' counters before the measured window; returns the servers to observe in it."""
        self.before = self.stack.figures()
        self.stack.begin_observation()
        return None if self.hosts else Observed(tuple(self.stack.find_watched()), jvm.read_collections)

    def list_pauses(self) -> Iterator[tuple[int, int]]:
        """The garbage-collection pauses of servers on this host: their ends and lengths (see `jvm.list_pauses`)."""
        for server in () if self.hosts else self.stack.find_watched():
            if server.gc_log is not None:
                yield from jvm.list_pauses(server.gc_log)

    def end(self) -> None:
        """Reads the counters again."""
        self.of_hosts = self.stack.end_observation()
        self.after = self.stack.figures()

    def exit_notes(self) -> Iterator[Note]:
        """A note for each server that has exited."""
        for server in self.hosts.dead() if self.hosts else self.stack.dead():
            how = self.requested.how
            log = f"`loadstone systems logs {how.system.system}`" if isinstance(how, StartedSystems) else "its log"
            hint = f"see {log} for the reason; the server is restarted for the next trial"
            yield Note(DIED, f"{server} exited during the trial", hint)

    def still_busy(self) -> Iterator[Note]:
        """A note if the servers did not become idle."""
        if self.waited is not None and not self.waited.idle:
            message = f"the servers were still busy {self.waited.seconds:.0f} s after the load"
            yield Note("not-steady", message, "load fewer records, or warm up for longer")

    def values(self) -> Iterator[Value]:
        """The counters before and after the measured window, the growth of totals, and the time to settle."""
        if self.waited is not None:
            yield Value("load.settle", self.waited.seconds * 1e9, "ns", 1)
        for prefix, counters in ((f"{FIGURES}before.", self.before), (FIGURES, self.after)):
            for name, number in self._with_regions(counters).items():
                if name.endswith(TOTAL):
                    continue
                unit = UNITS.get(name.rpartition("_")[2], "") if "_" in name else ""
                yield Value(prefix + name, float(number), unit, 1)

        for name, number in self.after.items():
            # A restarted server counts from 0 again, so the growth is unknown.
            if name.endswith(TOTAL) and number >= self.before.get(name, number + 1):
                yield Value(FIGURES + name.removesuffix(TOTAL), number - self.before[name], "", 1)

    def _with_regions(self, counters: Mapping[str, float]) -> dict[str, float]:
        """Adds the number of regions of the tested table, under a name that does not depend on the table's name."""
        regions = counters.get(f"regions.{self.requested.table}")
        return {**counters, **({} if regions is None else {"regions": regions})}

    def names(self) -> dict[str, Scalar]:
        """The names that a command can use: host, port, hosts and table; for started servers, also settings and
        properties."""
        how = self.requested.how
        if not isinstance(how, Attached):
            return {**self.stack.names(), "table": self.requested.table}
        port: dict[str, Scalar] = {} if how.port is None else {"port": how.port}
        return {"host": how.hosts[0], "hosts": ",".join(how.hosts), **port, "table": self.requested.table}

    def client_environment(self) -> Mapping[str, str]:
        """The environment variables with which the system's client programs connect; empty if the user runs the
        servers."""
        return {} if isinstance(self.requested.how, Attached) else self.stack.client_environment()

    def facts(self) -> dict[str, Scalar]:
        """The facts about the servers that results record."""
        how = self.requested.how
        facts: dict[str, Scalar] = {"data_nodes": len(how.hosts)} if isinstance(how, Attached) else self.stack.facts()
        facts |= {f"table.{name}": text for name, text in self.requested.options.items()}
        if (copies := self.requested.options.get("replication_factor", "")).isdigit():
            facts["replication"] = int(copies)
        return facts

    def write(self, path: Path) -> None:
        """Writes facts, servers and counters to a file."""
        document = {
            "facts": self.facts(),
            "servers": [{"name": server.name, "address": server.address, "pid": server.pid} for server in self.initial],
            "figures": {"before": self.before, "after": self.after},
        }
        path.write_text(secrets.hide_secrets(json.dumps(document, indent=1)) + "\n")


class RunServers(AbstractContextManager["RunServers"]):
    """All servers of one run."""

    def __init__(self, root: Path | None = None, open_spread: SpreadOpener | None = None) -> None:
        """Keeps the servers' state below `root`; without `root`, in the directory that `loadstone systems` uses.

        `open_spread` opens systems whose nodes run on hosts of the fleet.
        """
        self._stack = Stack(root, open_spread)
        # The load keys of the data on the servers, keyed by `server_key`, then by place.
        self._loaded: dict[object, dict[str, str]] = {}

    def __exit__(self, *_: object) -> None:
        self._stack.leave()

    def prepare(self, variant: Variant, log: Path, *, reuse: bool) -> TrialServers | None:
        """Starts a variant's servers, with a fresh table if the trial must load data; None if there are no servers.

        Servers that the trial does not need are stopped first. Raises ServersError if the servers are not available,
        and TakenError if another run or the user owns them.
        """
        requested = variant.servers
        if requested is None or isinstance(requested.how, Attached):
            self._stack.down()
        if requested is None:
            return None
        try:
            return self._prepare(requested, variant, log, reuse=reuse)
        except TakenError:
            raise
        except LoadstoneError as error:
            raise ServersError(f"servers: {error.args[0]}", error.hint) from error

    def record_load(self, variant: Variant) -> None:
        """Records that all data of a variant is on its servers."""
        if variant.servers is not None:
            key, data = server_key(variant.servers), variant.data
            next_to = {place: own for place, own in self._loaded.get(key, {}).items() if place and data.place}
            self._loaded[key] = {**next_to, **({data.place: variant.load_key} if data.loaded else {})}

    def _prepare(self, requested: VariantServers, variant: Variant, log: Path, *, reuse: bool) -> TrialServers:
        key = server_key(requested)
        places = self._loaded.setdefault(key, {})
        # The record is removed until the trial's load has succeeded.
        has_data = reuse and places.pop(variant.data.place, None) == variant.load_key
        hosts: AttachedServers | None = None
        if isinstance(requested.how, Attached):
            hosts = AttachedServers(requested.how, log, requested.table)
            started = hosts.up()
        else:
            fresh = requested.fresh == "system" and not has_data
            if fresh:
                self._stack.down()
            started = self._stack.up(requested.how, fresh=fresh)
            if started and has_data and requested.fresh == "system":
                # A server had exited, and its data was lost.
                self._stack.down()
                self._stack.up(requested.how)
        must_load = not has_data or started
        if started:
            places.clear()
        if not must_load:
            self.record_load(variant)
        elif requested.fresh == "table" and hosts is not None:
            hosts.recreate_table()
        elif requested.fresh == "table" and requested.table:
            self._stack.recreate_table(requested.table, requested.options)
        return TrialServers(requested, self._stack, hosts, must_load, tuple(self._stack.find_watched()))


def server_key(servers: VariantServers) -> object:
    """Identifies attached servers by their hosts. Started servers share a key: only one stack is up at a time."""
    return servers.how.hosts if isinstance(servers.how, Attached) else "started"


def with_address(variant: Variant, servers: TrialServers | None) -> Variant:
    """Adds the address of its servers to a variant's store properties; properties in the file take precedence."""
    if servers is None:
        return variant
    how = servers.requested.how
    address = how.store_properties(variant.store) if isinstance(how, Attached) else servers.stack.properties()
    return add_address(variant, address)


def with_expected_address(variant: Variant) -> Variant:
    """Like `with_address`, but before the servers are up, if their address is already known."""
    if variant.servers is None:
        return variant
    how = variant.servers.how
    try:
        address = how.store_properties(variant.store) if isinstance(how, Attached) else expected(how.system)
    except (LoadstoneError, OSError):
        # The address is known only once the system is running.
        return variant
    return add_address(variant, address)


def add_address(variant: Variant, address: Mapping[str, str]) -> Variant:
    """Adds an address to a variant, except the properties that only the system's other stores read."""
    engine = describe_engine()
    read = {name: text for name, text in address.items() if not engine.is_property_of_others(variant.store, name)}
    return replace(variant, store_properties={**read, **variant.store_properties})


def expected(start: StartRequest) -> Mapping[str, str]:
    """The address, as store properties, of a system that is not up yet. Raises SystemsError if its hosts are not
    known."""
    if start.on_hosts:
        raise SystemsError(f"the hosts of {start.system} are not known yet", "run the experiment")
    running = RunningSystem(start.system)
    return running.system.store_properties(running.place, plan_request(running, start))
