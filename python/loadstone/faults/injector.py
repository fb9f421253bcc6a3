"""Runs the faults of a trial, each in a thread of the lab, at instants relative to the start of the measured window.

    injector = Injector(site, planned, seed, repeat)
    injector.prepare()
    with injector:
        …                     # start engines
        injector.begin(…)     # the start of the measured window is known
        …                     # wait for the engines
    injector.records

Leaving the block lifts every fault, even after an error.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from loadstone.engine.events import ServerEvent
from loadstone.errors import LoadstoneError
from loadstone.experiment.model.faults import ALL, ANY, CLIENTS
from loadstone.experiment.plan.faults import Draw, PlannedFault, draw_instants, draw_servers
from loadstone.faults.fault import FaultError
from loadstone.format.suggestion import suggest_names
from loadstone.results.fault import ENDING_SERVERS, FaultRecord

# The time within which an ordered fault must take effect, and a lifted fault must lose its effect.
EFFECT_SECONDS = 10.0
# The minimum time for verification, because after a stall of this process, the effect may not be visible at once.
GRACE_SECONDS = 0.1
POLL_SECONDS = 0.002
# The interval between readings of the servers' backlog; each reading costs the servers some CPU time.
SETTLED_POLL_SECONDS = 1.0
# A fault records facts and finds its victims' processes this long before its planned instant.
AHEAD_SECONDS = 0.5

Facts = Mapping[str, str | int | float | bool]


class Action(Protocol):
    """A fault of any kind on its servers (`loadstone.faults.fault`)."""

    @property
    def ending(self) -> bool: ...
    def prepare(self) -> None: ...
    def aim(self) -> None: ...
    def journal(self) -> None: ...
    def withdraw(self) -> None: ...
    def inject(self) -> None: ...
    def missing_effect(self) -> str | None: ...
    def lift(self) -> None: ...
    def remaining_effect(self) -> str | None: ...
    def facts(self) -> Facts: ...


class Site(Protocol):
    """The interface through which faults access a trial's servers."""

    def servers(self) -> Sequence[str]:
        """The names of all servers."""

    def roles(self) -> Mapping[str, Sequence[str]]:
        """The servers, keyed by role."""

    def addresses(self) -> Mapping[str, str]:
        """The address of each server, as clients know it: `127.0.0.1:9042`."""

    def action(self, planned: PlannedFault, victims: Sequence[str]) -> Action:
        """Creates a fault for these servers. Raises LoadstoneError."""

    def identities(self) -> Mapping[str, object]:
        """The identity of each running server's process; None for a paused server."""

    def find_start_ns(self, server: str) -> int | None:
        """The start of a server's current process, on the monotonic clock; None if unknown."""

    def backlog(self) -> str | None:
        """The work that must finish before every server has all writes; None if there is none."""

    def data_bytes(self, server: str) -> int | None:
        """The size of a server's data on this host; None if unknown."""


class Injector:
    """The faults of one trial."""

    def __init__(
        self,
        site: Site,
        planned: Sequence[PlannedFault],
        seed: int,
        repeat: int,
        report: Callable[[int, FaultRecord], None] = lambda number, record: None,
    ) -> None:
        """`report` is called after each step of a fault, in the fault's thread, with the fault's number and record."""
        # The start of the measured window, ns since the epoch; 0 before it is known.
        self.zero_unix_ns = 0
        self._start_unix_ns: int | None = None
        self._events: Sequence[ServerEvent] = ()
        self._runs = [
            FaultRun(site, fault, draw_instants(fault, seed, repeat), seed, repeat, partial(report, number))
            for number, fault in enumerate(planned)
        ]

    @property
    def records(self) -> tuple[FaultRecord, ...]:
        """The record of each fault, ordered by planned instant."""
        return tuple(sorted((run.record for run in self._runs), key=lambda record: record.planned_at_ns))

    @property
    def crashes_unix_ns(self) -> tuple[int, ...]:
        """The instants of orders to end servers, ns since the epoch; the servers' last writes may be lost."""
        ended = (record.ordered_ns for record in self.records if record.kind in ENDING_SERVERS)
        return tuple(self.zero_unix_ns + ordered_ns for ordered_ns in ended if ordered_ns is not None)

    def prepare(self) -> None:
        """Draws the servers, and prepares each fault. Raises LoadstoneError."""
        for run in self._runs:
            run.prepare()

    def begin(self, zero_ns: int, zero_unix_ns: int) -> None:
        """Starts every fault's thread: the measured window begins at `zero_ns` on the monotonic clock.

        `zero_unix_ns` is the same instant in ns since the epoch.
        """
        self.zero_unix_ns = zero_unix_ns
        for run in self._runs:
            run.begin(zero_ns)

    def note_summary(self, start_unix_ns: int, events: Sequence[ServerEvent]) -> None:
        """Stores the engine's final report: the window's start by the engine's clock, ns since the epoch, and server
        events.

        The records can then state the offset of the engine's clock from the lab's, when a victim was first considered
        down, and when the load generator had no usable connection to the victim.
        """
        self._start_unix_ns, self._events = start_unix_ns, events

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for run in self._runs:
            run.finish()
        if self._start_unix_ns is None:
            return
        events = [replace(event, unix_ns=event.unix_ns - self.zero_unix_ns) for event in self._events]
        for run in self._runs:
            run.add_facts({"clock_offset_ns": self._start_unix_ns - self.zero_unix_ns})
            run.note_events(events)


class FaultRun:
    """One fault, and the thread that runs it."""

    def __init__(
        self,
        site: Site,
        planned: PlannedFault,
        draw: Draw,
        seed: int,
        repeat: int,
        report: Callable[[FaultRecord], None],
    ) -> None:
        self._site = site
        self._report = report
        self._planned = planned
        self._draw = draw
        self._seed, self._repeat = seed, repeat
        self._action: Action | None = None
        self._thread: threading.Thread | None = None
        # Set when the window has ended or the trial has failed.
        self._over = threading.Event()
        self._zero_ns = 0
        self._before: Mapping[str, object] = {}
        self._addresses: Mapping[str, str] = {}
        self.record = FaultRecord(planned.kind, (), draw.at_ns, draw.lift_ns)

    def prepare(self) -> None:
        """Draws the servers, and prepares the fault. Raises LoadstoneError."""
        victims, role = choose_servers(self._site, self._planned, self._seed, self._repeat)
        self._planned = replace(
            self._planned, peer=choose_peer(self._site, self._planned, victims, self._seed, self._repeat)
        )
        self.record = replace(self.record, servers=tuple(victims), role=role)
        self._addresses = self._site.addresses()
        if self._planned.kind != "none":
            self._action = self._site.action(self._planned, victims)
            self._action.prepare()

    def begin(self, zero_ns: int) -> None:
        """Starts the thread."""
        self._zero_ns = zero_ns
        if self._action is not None:
            self._thread = threading.Thread(target=self._run, args=(self._action,), name=f"fault-{self._planned.kind}")
            self._thread.start()

    def finish(self) -> None:
        """Lifts the fault if it is in effect, and waits for the thread."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def note_events(self, events: Sequence[ServerEvent]) -> None:
        """Records when, after the fault was ordered, a victim was first down or unusable, and when all unusable victims
        were usable again. The instants of `events` are ns since the start of the window."""
        ordered_ns = self.record.ordered_ns
        if ordered_ns is None:
            return
        # Either end of a cut connection may be considered down.
        victims = {self._addresses.get(name) for name in (*self.record.servers, self._planned.peer) if name}

        def find_instants(name: str, since: Mapping[str, int] | None = None) -> dict[str, int]:
            """The instant of the first event `name` for each victim, keyed by address.

            With `since`, only events at or after the address's instant in `since` count; otherwise, only events at or
            after the order. Victims without such an event are omitted.
            """
            instants: dict[str, int] = {}
            for event in events:
                # The address of a victim may have no port.
                if event.event == name and victims & {event.server, event.server.rpartition(":")[0].strip("[]")}:
                    from_ns = ordered_ns if since is None else since.get(event.server)
                    if from_ns is not None and event.unix_ns >= from_ns:
                        instants.setdefault(event.server, event.unix_ns)
            return instants

        unusable = find_instants("unusable")
        usable = find_instants("usable", unusable)
        self.record = replace(
            self.record,
            detected_ns=min(find_instants("down").values(), default=None),
            unusable_ns=min(unusable.values(), default=None),
            usable_ns=max(usable.values(), default=None) if len(usable) == len(unusable) else None,
        )

    def add_facts(self, facts: Facts) -> None:
        """Adds facts to the record."""
        self.record = replace(self.record, facts={**self.record.facts, **facts})

    def _run(self, action: Action) -> None:
        at_ns = self._zero_ns + self._draw.at_ns
        if not self._wait_until(at_ns - round(AHEAD_SECONDS * 1e9)):
            self._fail("held", "the trial ended before the fault")
            return
        ordered = False
        try:
            self._before = self._site.identities()
            sizes = {f"{name}.data_bytes": self._site.data_bytes(name) for name in self.record.servers}
            self.add_facts({name: size for name, size in sizes.items() if size is not None})
            # Writes the journal before the instant, so that a slow device does not delay the fault.
            action.journal()
            action.aim()
            if not self._wait_until(at_ns):
                self._fail("held", "the trial ended before the fault")
                action.withdraw()
                return
            # From here on, the fault may be in effect, even if the next call fails.
            ordered = True
            self._stamp("ordered_ns")
            action.inject()
            self._verify("held", "held_ns", action.missing_effect, self._draw.lift_ns)
            self.add_facts(action.facts())
            if self._draw.lift_ns is None:
                self._over.wait()
            else:
                self._wait_until(self._zero_ns + self._draw.lift_ns)
        except (LoadstoneError, OSError) as error:
            self._fail("held", message_of(error))
        finally:
            if ordered:
                self._lift(action)

    def _lift(self, action: Action) -> None:
        self._stamp("lift_ordered_ns")
        try:
            action.lift()
            if action.ending:
                self._stamp("ready_ns")
            self._verify("lifted", "lifted_ns", action.remaining_effect)
            if not action.ending:
                self.record = replace(self.record, ready_ns=self.record.lifted_ns)
            started = [self._site.find_start_ns(name) for name in self.record.servers] if action.ending else []
            known = [start for start in started if start is not None]
            if known and "lifted" not in self.record.unverified:
                # The fault is over when the last new process starts; `lift` returns only when all servers are ready.
                self.record = replace(self.record, lifted_ns=max(known) - self._zero_ns)
            self._check_bystanders()
            self._await_settled()
        except (LoadstoneError, OSError) as error:
            self._fail("lifted", message_of(error))

    def _verify(self, step: str, instant: str, check: Callable[[], str | None], lift_ns: int | None = None) -> None:
        """Waits until a check returns None, and records the instant, or at the time limit, the check's reason.

        If a lift is planned for a later instant than the fault, the wait delays the lift by at most
        GRACE_SECONDS.
        """
        now = time.monotonic()
        until = now + EFFECT_SECONDS
        if lift_ns is not None and lift_ns > self._draw.at_ns:
            until = min(until, max((self._zero_ns + lift_ns) / 1e9, now + GRACE_SECONDS))
        while (reason := check()) is not None:
            if time.monotonic() >= until:
                self._fail(step, reason)
                return
            time.sleep(POLL_SECONDS)
        self._stamp(instant)

    def _check_bystanders(self) -> None:
        """Checks that every server outside the fault still runs as the same process."""
        after = self._site.identities()
        for name, identity in self._before.items():
            if name not in self.record.servers and after.get(name) != identity:
                self._fail("bystanders", f"{name} was also affected")

    def _await_settled(self) -> None:
        while True:
            with contextlib.suppress(LoadstoneError):
                if self._site.backlog() is None:
                    self._stamp("settled_ns")
                    return
            if self._over.wait(SETTLED_POLL_SECONDS):
                return

    def _wait_until(self, instant_ns: int) -> bool:
        """Waits for an instant of the monotonic clock; returns False if the trial ends first."""
        while (remaining_ns := instant_ns - time.monotonic_ns()) > 0:
            if self._over.wait(remaining_ns / 1e9):
                return False
        return not self._over.is_set()

    def _stamp(self, instant: str) -> None:
        now: dict[str, Any] = {instant: time.monotonic_ns() - self._zero_ns}
        self.record = replace(self.record, **now)
        self._report(self.record)

    def _fail(self, step: str, reason: str) -> None:
        self.record = replace(self.record, unverified={step: reason, **self.record.unverified})


def message_of(error: LoadstoneError | OSError) -> str:
    """The message of an error, without its hint."""
    return str(error.args[0]) if isinstance(error, LoadstoneError) else str(error)


def choose_servers(site: Site, planned: PlannedFault, seed: int, repeat: int) -> tuple[list[str], str | None]:
    """The servers of a fault, and the role, if any, from which they were drawn. Raises FaultError for unknown names."""
    every, request = [*site.servers()], tuple(dict.fromkeys(planned.servers))
    if request == (ALL,):
        return every, None
    if request == (ANY,):
        return draw_servers(planned, seed, repeat, every), None
    if len(request) == 1 and request[0] not in every:
        roles = site.roles()
        if roles.get(request[0]):
            return draw_servers(planned, seed, repeat, roles[request[0]]), request[0]
        raise unknown(request[0], [*every, *roles])
    for name in request:
        if name not in every:
            raise unknown(name, every)
    return [*request], None


def choose_peer(site: Site, planned: PlannedFault, victims: Sequence[str], seed: int, repeat: int) -> str:
    """The only peer from which victims are cut off, a server or the clients; empty for all peers.

    Raises FaultError if a `cut` names a peer that does not exist.
    """
    peers = [name for name in site.servers() if name not in victims]
    if planned.kind != "cut" or planned.peer in ("", CLIENTS, *peers):
        return planned.peer
    if planned.peer == ANY and peers:
        return draw_servers(replace(planned, count=1), seed, repeat, peers)[0]
    raise unknown(planned.peer, [*peers, CLIENTS], "peer")


def unknown(name: str, known: Sequence[str], key: str = "server") -> FaultError:
    """The error for a server that does not exist."""
    return FaultError(f'faults.{key} names "{name}", which does not exist', suggest_names(name, [*known], "there are"))
