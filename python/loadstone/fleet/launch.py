"""Runs one launch of engines on many hosts: collects events, starts all engines simultaneously, and detects lost hosts.

A transport may take a minute to detect a lost host (Ray: `ActorDiedError` 16 s after a power failure, 65 s after a
pulled cable). Here, every agent replies once a second, and a host counts as lost after 3 intervals of silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from loadstone.engine.events import Note, Ready, Summary, parse_event
from loadstone.engine.trial import LEASE_MS, EngineError, Spec
from loadstone.fleet.clock import HostClock
from loadstone.fleet.host_figures import host_values, slowest_host, worst_values
from loadstone.fleet.interface import LineListener, Observations, Part, PartEvent
from loadstone.fleet.transport import Link, Reply, Transport
from loadstone.format import units
from loadstone.observe.environment import environment_facts
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value

# A host counts as lost after this many intervals without a reply; agents reply at least once a second.
SILENT_INTERVALS = 3
REPLY_SECONDS = 1.0
# The delay between the readiness of all engines and their start, in which the command must reach every engine
# (measured with Ray: the start skew and the time to deliver the command grow by 3.6 ms for each host).
START_NS = 2_000_000_000
START_NS_PER_HOST = 10_000_000
# Clocks and starts must agree to within this share of an interval.
SHARE = 0.1
LEAVE_SECONDS = 5.0
RECEIVE_SECONDS = 0.2
LOST_STATUS = -9
LOST_HINT = "check the host and its network; the trial is repeated"


class Lab(Protocol):
    """The parts of the fleet that a launch uses."""

    clock: HostClock
    transport: Transport
    links: list[Link]
    silence_seconds: float | None

    # The hosts of the servers that the lab started.
    servers: Sequence[int]

    def receive(self, seconds: float) -> Sequence[Reply]:
        """The replies that have arrived; waits for at most this time."""


class Launched:
    """The engines started by one launch, one part per host."""

    def __init__(
        self,
        fleet: Lab,
        number: int,
        links: Sequence[Link],
        shares: Sequence[Sequence[Spec]],
        listener: LineListener,
        placement: str = "",
    ) -> None:
        self.parts: Sequence[Part] = [
            Part(f"host {link.host.name}", link.host.name, share) for link, share in zip(links, shares, strict=True)
        ]
        self._fleet = fleet
        self._placement = placement
        self._number = number
        self._links = links
        self._listener = listener
        self._places = {link.number: place for place, link in enumerate(links)}
        self._active = set(self._places)
        first = shares[0][0]
        self._waiting = set(self._places) if first.get("wait_for_start") else set[int]()
        self._interval_seconds = float(first["interval_ms"]) / 1e3
        self._lease_seconds = (first.get("lease_ms") or LEASE_MS) / 1e3
        limit = SILENT_INTERVALS * max(self._interval_seconds, REPLY_SECONDS)
        self._silence_seconds = fleet.silence_seconds or limit
        # The deadline for hosts that are still running.
        self._deadline = math.inf
        self._start_ns: int | None = None
        self._started: Callable[[int], object] | None = None
        self._clients: dict[int, int] = {}
        self._summaries: dict[int, Summary] = {}
        self._figures: dict[int, list[Value]] = {}
        self._starts: dict[int, list[int]] = {}
        self._errors: dict[int, EngineError] = {}
        # For each part, the exit of its command, as reported by the agent.
        self._exits: dict[int, Mapping[str, Any]] = {}
        self._notes: list[Note] = []
        self._lost_segments = 0
        self._jumps = {link.number: len(link.clock.jumps) for link in links}

    def check_clocks(self) -> None:
        """Raises EngineError if a clock is too uncertain for a simultaneous start."""
        at_ns = self._fleet.clock.unix_ns() + self._margin_ns
        worst = max(self._links, key=lambda link: link.clock.estimate(at_ns).bound_ns)
        bound_ns, limit_ns = worst.clock.estimate(at_ns).bound_ns, self._limit_ns
        # With a single host, only the lab's clock matters, and only if the lab injects faults at instants of its clock.
        is_timed = len(self._links) > 1 or self._started is not None
        if bound_ns > limit_ns and is_timed:
            raise EngineError(
                f"host {worst.host.name}: its clock is known only to within ±{units.format_duration(bound_ns)}; "
                f"the limit is {units.format_duration(limit_ns)} (a tenth of an interval)",
                "reduce the load on the network and on the lab's machine, or measure with longer intervals",
                1,
            )

    def poll(self, link: Link) -> None:
        """Requests the next messages from a host."""
        self._fleet.transport.send(link.number, {"wait_seconds": REPLY_SECONDS / 2, "poll": True})

    def events(
        self, idle: Callable[[], object] | None = None, started: Callable[[int], object] | None = None
    ) -> Iterator[PartEvent]:
        """The events of all hosts; each agent merges its engines' events. A lost host yields an error and stops the
        load."""
        self._started = started
        clock = self._fleet.clock
        idle_at = clock.monotonic()
        while self._active:
            for reply in self._fleet.receive(RECEIVE_SECONDS):
                yield from self._take(reply)
            now = clock.monotonic()
            for number in sorted(self._active):
                link = self._fleet.links[number]
                silent = now - link.heard_at
                if silent > self._silence_seconds or now > self._deadline:
                    reason = f"silent for {silent:.1f} s" if now <= self._deadline else "did not stop"
                    yield self._lose(link, reason)
            if idle is not None and now >= idle_at + REPLY_SECONDS:
                idle_at = now
                idle()

    def kill(self) -> None:
        """Kills every engine immediately."""
        for number in list(self._active):
            self._command(self._fleet.links[number], {"kill": True})

    def leave(self) -> None:
        """Kills the engines that are still running, and waits until they have exited; their events are dropped."""
        self.kill()
        deadline = self._fleet.clock.monotonic() + LEAVE_SECONDS
        while self._active and self._fleet.clock.monotonic() < deadline:
            for reply in self._fleet.receive(RECEIVE_SECONDS):
                messages = reply.body.get("messages", ()) if reply.body else ({"launch": self._number, "end": True},)
                if any("end" in message for message in messages if message["launch"] == self._number):
                    self._active.discard(reply.host)
                elif reply.body and reply.body.get("poll") and reply.host in self._active:
                    self.poll(self._fleet.links[reply.host])
        for number in self._active:
            self._fleet.links[number].is_open = False

    def observations(self) -> Observations:
        """The figures, facts and notes of the hosts."""
        values: list[Value] = []
        names = {number: self._fleet.links[number].host.name for number in self._places}
        for number, name in names.items():
            values += host_values(name, self._summaries.get(number), self._figures.get(number, ()))
            values += self._clock_values(self._fleet.links[number])
        values += worst_values(self._figures.values())
        values += self._engine_share()
        skew_ns = self._skew_ns()
        if skew_ns is not None:
            values.append(Value("fleet.start_skew", skew_ns, "ns", len(self._places)))
        bounds = [value.value for value in values if value.metric.endswith(".clock_bound")]
        values.append(Value("fleet.clock_bound", max(bounds), "ns", len(bounds)))
        notes = [*self._notes, *self._clock_notes(skew_ns)]
        summaries = {names[number]: summary for number, summary in self._summaries.items()}
        if slow := slowest_host(summaries, {names[number]: count for number, count in self._clients.items()}):
            notes.append(slow)
        hardware = [host for link in self._links for host in link.facts.get("hosts", ())]
        facts = {
            **environment_facts({"hosts": hardware}),
            "host_names": ", ".join(names.values()),
            "placement": self._placement,
            **self._machine_facts(),
        }
        exits = {self._places[number]: end for number, end in self._exits.items()}
        return Observations(values, facts, notes, self._lost_segments, exits)

    @property
    def _margin_ns(self) -> int:
        return START_NS + START_NS_PER_HOST * len(self._links)

    @property
    def _limit_ns(self) -> float:
        return float(SHARE * self._interval_seconds * 1e9)

    def _command(self, link: Link, *commands: Mapping[str, Any]) -> None:
        self._fleet.transport.send(link.number, {"commands": commands})

    def _take(self, reply: Reply) -> Iterator[PartEvent]:
        """The events in a reply."""
        place = self._places.get(reply.host)
        link = self._fleet.links[reply.host]
        if place is None or reply.host not in self._active:
            return
        if reply.body is None:
            yield self._lose(link, reply.error)
            return
        for message in reply.body.get("messages", ()):
            if message.get("launch") == self._number:
                yield from self._handle(link, place, message)
        if reply.body.get("poll") and reply.host in self._active:
            self.poll(link)

    def _handle(self, link: Link, place: int, message: Mapping[str, Any]) -> Iterator[PartEvent]:
        match message:
            case {"line": line}:
                self._listener(place, line)
                event = parse_event(line)
                if isinstance(event, Summary):
                    self._summaries[link.number] = event
                elif isinstance(event, Ready):
                    self._clients[link.number] = event.clients
                yield place, event
                if isinstance(event, Ready):
                    self._take_ready(link)
            case {"ready": _}:
                self._take_ready(link)
            case {"exited": end}:
                self._exits[link.number] = end
                if end["status"]:
                    # The trial has failed.
                    self._stop_others(link)
            case {"note": note}:
                name, text = note["name"], f"host {link.host.name}: {note['message']}"
                self._notes.append(Note(name, text, note["hint"]))
            case {"lost": title, "message": reason, "hint": hint, "status": status}:
                self._errors[link.number] = EngineError(f"{title}: {reason}", hint, status)
                self._lost_segments += 1
                self._notes.append(Note("lost-segment", f"host {link.host.name}, {title}: {reason}", hint))
            case {"failed": {"message": reason, "hint": hint, "status": status}}:
                self._errors[link.number] = EngineError(f"host {link.host.name}: {reason}", hint, status)
            case {"starts": starts, "figures": figures}:
                self._starts[link.number] = starts
                self._figures[link.number] = [Value(*figure) for figure in figures]
            case {"end": _}:
                self._active.discard(link.number)
                if link.number not in self._summaries and link.number not in self._exits:
                    yield self._end_without_result(link, place)

    def _end_without_result(self, link: Link, place: int) -> PartEvent:
        ended = EngineError(f"host {link.host.name}: its load generators exited without a result", LOST_HINT, 1)
        error = self._errors.get(link.number, ended)
        if self._waiting:
            raise error
        # The whole part is lost, so its segments are not counted again.
        part = self.parts[place]
        self._lost_segments -= min(self._lost_segments, len(part.specs))
        return place, error

    def _lose(self, link: Link, reason: str) -> PartEvent:
        """Treats a host as lost, and stops the load on the remaining hosts. Before the start, raises EngineError."""
        self._active.discard(link.number)
        link.is_open = False
        error = EngineError(f"host {link.host.name} is lost: {reason}", LOST_HINT, LOST_STATUS)
        if self._waiting:
            raise error
        self._stop_others(link)
        return self._places[link.number], error

    def _stop_others(self, link: Link) -> None:
        """Stops the load on the remaining hosts."""
        for number in self._active - {link.number}:
            self._command(self._fleet.links[number], {"stop": True})
        self._deadline = min(self._deadline, self._fleet.clock.monotonic() + self._lease_seconds + REPLY_SECONDS)

    def _take_ready(self, link: Link) -> None:
        """Starts the load when the last host is ready."""
        if link.number in self._waiting:
            self._waiting.discard(link.number)
            if not self._waiting:
                self._start()

    def _start(self) -> None:
        """Starts the load on all hosts at the same instant, converted to each host's clock."""
        self.check_clocks()
        self._start_ns = self._fleet.clock.unix_ns() + self._margin_ns
        if self._started is not None:
            self._started(self._start_ns)
        for link in self._links:
            offset_ns = link.clock.estimate(self._start_ns).offset_ns
            self._command(link, {"start_at": self._start_ns + round(offset_ns)})

    def _skew_ns(self) -> float | None:
        """The time between the first and the last engine's start, by the lab's clock."""
        instants = []
        for number, starts in self._starts.items():
            clock = self._fleet.links[number].clock
            for start_ns in starts:
                instants.append(start_ns - clock.estimate(start_ns).offset_ns)
        return max(instants) - min(instants) if len(instants) > 1 else None

    def _clock_values(self, link: Link) -> Iterator[Value]:
        estimate = link.clock.estimate(self._fleet.clock.unix_ns())
        name = f"host.{link.host.name}"
        yield Value(f"{name}.clock_offset", estimate.offset_ns, "ns", 1)
        yield Value(f"{name}.clock_bound", estimate.bound_ns, "ns", 1)
        if (drift := link.clock.drift) is not None:
            yield Value(f"{name}.clock_drift", drift.offset_ns * 1e6, "ppm", 1)

    def _engine_share(self) -> Iterator[Value]:
        """The largest share of a machine's processors that its engines used; none if a processor count is unknown.

        Hosts that are namespaces or containers on the same kernel share its processors.
        """
        used: dict[str, float] = {}
        processors: dict[str, int] = {}
        for number, summary in self._summaries.items():
            facts = self._fleet.links[number].facts
            hardware: dict[str, Any] = next(iter(facts.get("hosts", ())), {})
            count = hardware.get("cpu", {}).get("processors")
            if count is None or not summary.measured_ns:
                return
            boot = facts["boot_sha256"]
            used[boot] = used.get(boot, 0.0) + sum(summary.cpu_ns) / summary.measured_ns
            processors[boot] = count
        if used:
            yield Value("cpu.engine_share", max(used[boot] / processors[boot] for boot in used), "share", len(used))

    def _machine_facts(self) -> Mapping[str, Scalar]:
        """The number of machines behind the hosts, and whether engines and servers share a machine.

        Hosts that are namespaces or containers on the same kernel share its processors. Empty if a host does not report
        its machine.
        """
        servers = [self._fleet.links[number] for number in self._fleet.servers]
        boots = {link.number: link.facts.get("boot_sha256") for link in (*self._links, *servers)}
        if None in boots.values():
            return {}
        facts: dict[str, Scalar] = {"machines": len({*boots.values()})}
        # With `placement: beside`, clients share the servers' machines intentionally.
        if servers and any(link not in servers for link in self._links):
            apart = {boots[link.number] for link in self._links if link not in servers}
            is_shared = not apart.isdisjoint(boots[link.number] for link in servers)
            facts["machines_shared"] = "yes" if is_shared else "no"
        return facts

    def _clock_notes(self, skew_ns: float | None) -> Iterator[Note]:
        """Notes on clock jumps during the launch, and on a start that was not simultaneous; both invalidate a trial."""
        jumps = {link.number: link.clock.jumps[self._jumps[link.number] :] for link in self._links}
        for link in self._links:
            if jumps[link.number]:
                yield clock_note(link, max(jumps[link.number], key=abs))
        # After a jump, the offsets at the start are no longer known.
        is_known = not any(jumps.values())
        if is_known and skew_ns is not None and skew_ns > self._limit_ns:
            limit = f"the limit is {units.format_duration(self._limit_ns)} (a tenth of an interval)"
            message = f"load generators started {units.format_duration(skew_ns)} apart; {limit}"
            yield Note("clock", message, "check the clocks of the hosts: `loadstone fleet check`")


def clock_note(link: Link, jump_ns: float) -> Note:
    """A note on a jump of a host's clock, which makes the trial invalid."""
    message = f"host {link.host.name}: its clock jumped by {units.format_duration(jump_ns)} relative to the lab's"
    return Note("clock", message, "synchronise the clocks by slewing, without steps (chrony)")
