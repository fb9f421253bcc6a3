"""Many hosts as a fleet: agents start the engines at the same instant, converted to each host's clock."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from loadstone import __version__
from loadstone.engine import program
from loadstone.engine.trial import EngineError, Spec
from loadstone.errors import LoadstoneError
from loadstone.fleet.clock import ClockWatch, HostClock
from loadstone.fleet.interface import LineListener
from loadstone.fleet.launch import LOST_HINT, LOST_STATUS, RECEIVE_SECONDS, Launched
from loadstone.fleet.placement import APART, NEXT_TO_SERVERS
from loadstone.fleet.shipping import hash_file
from loadstone.fleet.spread import SpreadSystem
from loadstone.fleet.transport import Link, Reply, Transport
from loadstone.results.trial_result import Scalar

# The number of round trips that compare the clocks before each launch.
ROUNDS = 8
# A new agent first imports Loadstone; the first start on a busy host took 16 s.
CONNECT_SECONDS = 90.0
# The roles of hosts in tables, keyed by placement.
ROLES = {APART: "clients", NEXT_TO_SERVERS: "nodes"}
# The interval between attempts to start an agent.
RETRY_SECONDS = 2.0
# For operations on servers, which may take minutes: the interval between checks that an agent is alive, and the silence
# after which a host counts as lost.
SIGN_SECONDS = 2.0
CALL_SILENCE_SECONDS = 30.0
PENDING = object()


@dataclass(eq=False)
class Call:
    """An operation on a host, and its result."""

    host: int
    heard_at: float = 0.0
    result: Any = PENDING

    def take(self, body: Mapping[str, Any]) -> None:
        """Stores the result or the error in the reply."""
        if failed := body.get("failed"):
            self.result = LoadstoneError(failed["message"], failed["hint"])
        else:
            self.result = body["result"]


class Remote:
    """Engines on many hosts."""

    def __init__(
        self,
        transport: Transport,
        groups: Mapping[str, Sequence[int]],
        clock: HostClock | None = None,
        silence_seconds: float | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        servers: Sequence[int] = (),
    ) -> None:
        """`groups` contains the hosts of each placement, `servers` the host of each node that the lab starts.

        `silence_seconds` replaces the default limit of 3 silent intervals.
        """
        self.facts: Mapping[str, Scalar] = {}
        self.transport = transport
        self.clock = clock or HostClock()
        self.groups = groups
        self.silence_seconds = silence_seconds
        self.links = [Link(host, number) for number, host in enumerate(transport.hosts)]
        self.servers = servers
        self._connect_seconds = connect_seconds
        self._launches = 0
        # Only one thread receives at a time. It passes the reply to a call on to the caller, and other replies to
        # `receive`.
        self._receiving = threading.Lock()
        self._unread: deque[Reply] = deque()
        self._calls: dict[int, Call] = {}
        self._numbers = count(1)

    def hosts(self, placement: str) -> Sequence[str]:
        """The names of a placement's hosts."""
        return [self.links[number].host.name for number in self.groups[placement]]

    def open_system(self, name: str) -> SpreadSystem:
        """A system whose nodes run on the hosts for servers."""
        return SpreadSystem(self, name)

    def call(self, operations: Mapping[int, tuple[str, Mapping[str, Any]]]) -> dict[int, Any]:
        """Performs an operation on each host concurrently; returns each result, or a LoadstoneError in its place.

        Any thread may call this, even during a launch. A host whose agent does not respond counts as lost.
        """
        calls: dict[int, Call] = {}
        results: dict[int, Any] = {}
        for number, (operation, arguments) in operations.items():
            if not self.links[number].is_open:
                results[number] = self._unreachable(number, "the host is lost")
            else:
                calls[number] = self._send_call(number, operation, arguments)
        sign_at = self.clock.monotonic() + SIGN_SECONDS
        for call in calls.values():
            call.heard_at = self.clock.monotonic()
        signs: dict[int, Call] = {}
        while missing := [number for number, call in calls.items() if call.result is PENDING]:
            self._fetch(RECEIVE_SECONDS)
            now = self.clock.monotonic()
            for number in missing:
                if number in signs and signs[number].result is not PENDING:
                    calls[number].heard_at = now
                    del signs[number]
                if now - calls[number].heard_at > CALL_SILENCE_SECONDS:
                    calls[number].result = self._unreachable(number, f"silent for {CALL_SILENCE_SECONDS:g} s")
            if now >= sign_at:
                sign_at = now + SIGN_SECONDS
                signs |= {number: self._send_call(number, "", {}) for number in missing if number not in signs}
        return {number: results[number] if number in results else calls[number].result for number in operations}

    def _send_call(self, number: int, operation: str, arguments: Mapping[str, Any]) -> Call:
        identity = next(self._numbers)
        call = self._calls[identity] = Call(number)
        self.transport.send(number, {"call": identity, "operation": operation, "arguments": arguments})
        return call

    def receive(self, seconds: float) -> list[Reply]:
        """The replies that have arrived, except replies to calls; waits for at most this time."""
        if not self._unread:
            self._fetch(seconds)
        replies: list[Reply] = []
        while self._unread:
            replies.append(self._unread.popleft())
        return replies

    def _fetch(self, seconds: float) -> None:
        """Receives once, and distributes the replies."""
        with self._receiving:
            for reply in self.transport.receive(seconds):
                self._hear(reply)
                call = None if reply.body is None else self._calls.pop(reply.body.get("call", 0), None)
                if call is not None and reply.body is not None:
                    call.take(reply.body)
                    continue
                if reply.body is None:
                    # An agent that has exited answers no calls.
                    for identity, pending in list(self._calls.items()):
                        if pending.host == reply.host:
                            pending.result = self._unreachable(reply.host, reply.error)
                            self._calls.pop(identity, None)
                self._unread.append(reply)

    def describe(self) -> list[dict[str, Any]]:
        """The hardware, name, labels and (first) role of each host for servers or in a placement."""
        roles: dict[int, str] = dict.fromkeys(self.servers, ROLES[NEXT_TO_SERVERS])
        for placement, numbers in self.groups.items():
            for number in numbers:
                roles.setdefault(number, ROLES.get(placement, placement))
        self.connect(list(roles))
        rows = []
        for number, role in sorted(roles.items()):
            link = self.links[number]
            hardware: dict[str, Any] = next(iter(link.facts.get("hosts", ())), {})
            rows.append({**hardware, "name": link.host.name, "role": role, "labels": dict(link.host.labels)})
        return rows

    def connect(self, numbers: Sequence[int]) -> None:
        """Starts the missing agents, and reads the facts of their hosts. Raises EngineError for a silent host."""
        missing = {number for number in numbers if not self.links[number].is_open}
        for number in missing:
            self._open(number)
        self._await(missing, self._take_facts, is_opening=True)
        self._ship(missing)
        for number in missing:
            self.links[number].is_open = True

    def survey(self, *, is_examined: bool = False) -> dict[int, str]:
        """Reads the facts and the clock of every host, without running engines; returns why hosts are unfit, by host.

        With `is_examined`, also compares versions, installs the engine, and runs `doctor` on the hosts.
        """
        failures: dict[int, EngineError] = {}

        def list_fit() -> set[int]:
            return {link.number for link in self.links} - failures.keys()

        # All hosts work at the same time.
        for number in list_fit():
            self._open(number)
        self._await(list_fit(), self._take_facts if is_examined else self._note_facts, failures=failures)
        if is_examined:
            self._ship(list_fit(), failures)
            for number in list_fit():
                self.transport.send(number, {"doctor": True})
            self._await(list_fit(), self._note_facts, failures=failures)
        self.compare_clocks(list_fit(), failures)
        for number in list_fit():
            self.links[number].is_open = True
        return {number: str(error.args[0]) for number, error in failures.items()}

    @staticmethod
    def _note_facts(link: Link, body: Mapping[str, Any]) -> None:
        link.facts = {**link.facts, **body.get("facts", {})}

    def _open(self, number: int) -> None:
        self.links[number].clock = ClockWatch()
        self.transport.open(number)
        self.transport.send(number, {"facts": True})

    def compare_clocks(self, numbers: Iterable[int], failures: dict[int, EngineError] | None = None) -> None:
        """Measures the clock offset of each of these hosts with several round trips."""
        for _ in range(ROUNDS):
            fit = set(numbers) - (failures or {}).keys()
            for number in fit:
                self.transport.send(number, {})
            self._await(fit, lambda *_: None, failures=failures)

    @contextmanager
    def launch(self, specs: Sequence[Spec], listener: LineListener, placement: str = "") -> Iterator[Launched]:
        """Starts engines on a placement's hosts. Raises EngineError if a host is unfit or its clock too uncertain."""
        numbers = list(self.groups[placement])[: len(specs)]
        if not numbers:
            raise EngineError(f"no host for placement {placement}", "check the labels: `loadstone fleet status`", 1)
        self.connect(numbers)
        self.compare_clocks(numbers)
        self._launches += 1
        count = len(specs)
        shares: list[list[Spec]] = [[] for _ in numbers]
        for segment, spec in enumerate(specs):
            shares[segment * len(numbers) // count].append(spec)
        links = [self.links[number] for number in numbers]
        launched = Launched(self, self._launches, links, shares, listener, placement)
        launched.check_clocks()
        for link, share in zip(links, shares, strict=True):
            offset_ns = round(link.clock.estimate(self.clock.unix_ns()).offset_ns)
            command = {"launch": self._launches, "specs": share, "offset_ns": offset_ns}
            self.transport.send(link.number, {"commands": [command]})
            link.heard_at = self.clock.monotonic()
            launched.poll(link)
        try:
            yield launched
        finally:
            launched.leave()

    def _hear(self, reply: Reply) -> None:
        """Records that a host is alive, and the reading of its clock."""
        link = self.links[reply.host]
        if (reading := reply.reading) is not None:
            link.heard_at = self.clock.monotonic()
            link.clock.add(reading)

    def close(self) -> None:
        """Stops every agent."""
        self.transport.close()

    def _take_facts(self, link: Link, body: Mapping[str, Any]) -> None:
        if "facts" in body:
            link.facts = body["facts"]
            if (version := link.facts["loadstone"]) != __version__:
                message = f"host {link.host.name} has Loadstone {version}, this machine {__version__}"
                raise EngineError(message, "install the same version everywhere", 2)

    def _ship(self, numbers: Iterable[int], failures: dict[int, EngineError] | None = None) -> None:
        """Sends this machine's engine to hosts with a different engine. Raises EngineError if the engine cannot run
        there."""
        path = Path(program.find_engine())
        own = hash_file(path)
        missing = {number for number in numbers if self.links[number].facts["engine_sha256"] != own}
        for number in missing:
            self.transport.ship(number, path, own)
        self._await(missing, self._check_engine, failures=failures)

    @staticmethod
    def _check_engine(link: Link, body: Mapping[str, Any]) -> None:
        if error := body.get("error"):
            libc = link.facts["libc"] or "an unknown libc"
            hint = f"use hosts with the same processor type and libc as this machine; that host has {libc}"
            raise EngineError(f"host {link.host.name}: {error}", hint, 2)

    def _await(
        self,
        waiting: set[int],
        take: Callable[[Link, Mapping[str, Any]], object],
        *,
        is_opening: bool = False,
        failures: dict[int, EngineError] | None = None,
    ) -> None:
        """Waits for a reply from each of these hosts. A host that is restarting may refuse its agent for a while.

        With `failures`, stores each host's error there; otherwise, raises the first error.
        """
        waiting = set(waiting)
        deadline = self.clock.monotonic() + self._connect_seconds
        errors: dict[int, str] = {}
        retries: dict[int, float] = {}

        def fail(number: int, error: EngineError) -> None:
            if failures is None:
                raise error
            failures[number] = error
            waiting.discard(number)

        while waiting:
            for reply in self.receive(RECEIVE_SECONDS):
                if reply.body is not None:
                    waiting.discard(reply.host)
                    try:
                        take(self.links[reply.host], reply.body)
                    except EngineError as error:
                        fail(reply.host, error)
                elif reply.host in waiting:
                    errors[reply.host] = reply.error
                    if is_opening:
                        retries[reply.host] = self.clock.monotonic() + RETRY_SECONDS
                    else:
                        fail(reply.host, self._unreachable(reply.host, reply.error))
            now = self.clock.monotonic()
            for number, at in list(retries.items()):
                if now >= at and number in waiting:
                    del retries[number]
                    self._open(number)
            if now > deadline:
                silence = f"no reply within {self._connect_seconds:g} s"
                for number in sorted(waiting):
                    fail(number, self._unreachable(number, errors.get(number, silence)))

    def _unreachable(self, number: int, reason: str) -> EngineError:
        link = self.links[number]
        link.is_open = False
        return EngineError(f"host {link.host.name}: no agent is running there: {reason}", LOST_HINT, LOST_STATUS)
