"""Hosts without Ray: agents in this process, and scripted agents in simulated time."""

from __future__ import annotations

import heapq
import itertools
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from event_support import SECOND, interval, outcome, ready, summary
from lab_support import ROOT
from loadstone import __version__
from loadstone.engine import program
from loadstone.fleet.agent import Agent
from loadstone.fleet.clock import HostClock
from loadstone.fleet.shipping import hash_file
from loadstone.fleet.transport import Host, Reply


def name_hosts(count: int, roles: Sequence[str] = ()) -> list[Host]:
    """Hosts `host0`, `host1` and so on, each with a loopback address, and with a label `role` if `roles` are set."""
    labels = [{"role": role} for role in roles] or [{}] * count
    return [Host(f"host{number}", str(number), f"127.0.0.{number + 1}", labels[number]) for number in range(count)]


class InProcess:
    """Real agents with real engines, each call on a thread."""

    def __init__(self, clocks: Sequence[HostClock], roles: Sequence[str] = ()) -> None:
        self.hosts: Sequence[Host] = name_hosts(len(clocks), roles)
        self.agents: dict[int, Agent] = {}
        self._clocks = clocks
        self._replies: queue.Queue[Reply] = queue.Queue()

    def open(self, host: int) -> None:
        self.agents[host] = Agent(self._clocks[host], name=self.hosts[host].name)

    def send(self, host: int, request: Mapping[str, Any]) -> None:
        self._call(host, lambda: self.agents[host].exchange(json.loads(json.dumps(request))))

    def ship(self, host: int, path: Path, sha256: str) -> None:
        self._call(host, lambda: self.agents[host].install(path.read_bytes(), sha256))

    def receive(self, seconds: float) -> Sequence[Reply]:
        try:
            first = self._replies.get(timeout=seconds)
        except queue.Empty:
            return []
        replies = [first]
        while not self._replies.empty():
            replies.append(self._replies.get())
        return replies

    def close(self) -> None:
        for agent in self.agents.values():
            agent.close()

    def _call(self, host: int, call: Callable[[], Mapping[str, Any]]) -> None:
        def answer() -> None:
            sent_ns = time.time_ns()
            body = call()
            self._replies.put(Reply(host, sent_ns, time.time_ns(), json.loads(json.dumps(body))))

        threading.Thread(target=answer, daemon=True).start()


@dataclass(frozen=True)
class SimulatedClock(HostClock):
    """The lab's clock in simulated time, which begins at 1,000 s."""

    simulation: Simulation

    def unix_ns(self) -> int:
        return round(self.simulation.now * 1e9)

    def monotonic(self) -> float:
        return self.simulation.now


@dataclass
class ScriptedHost:
    """The behaviour of one agent."""

    # The network delay in each direction, s.
    there: float = 0.001
    back: float = 0.001
    offset: float = 0.0
    drift: float = 0.0
    # The instant from which the host neither receives nor replies.
    silent_from: float = float("inf")
    # The instants at which the host's clock jumps, and the size of each jump, s.
    jumps: dict[float, float] = field(default_factory=dict)
    # The time from a launch until the host's engines are ready, s.
    opening: float = 0.1
    # If set, the host's engines fail with this message instead of becoming ready.
    failure: str = ""
    ignores_stop: bool = False
    started_at: float | None = None
    stopped_at: float | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    polls: list[float] = field(default_factory=list)
    launch: int = 0
    engines: int = 0


class Simulation:
    """A transport whose agents are scripted, and whose time passes only in `receive`."""

    def __init__(self, scripts: Sequence[ScriptedHost], seconds: int = 3) -> None:
        self.hosts: Sequence[Host] = name_hosts(len(scripts))
        self.scripts = scripts
        self.now = 1000.0
        self.clock = SimulatedClock(self)
        self._seconds = seconds
        self._hash = hash_file(Path(program.find_engine()))
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._replies: list[Reply] = []

    def open(self, host: int) -> None:
        pass

    def ship(self, host: int, path: Path, sha256: str) -> None:
        raise AssertionError("every host has the engine")

    def send(self, host: int, request: Mapping[str, Any]) -> None:
        sent = self.now
        self._schedule(sent + self.scripts[host].there, lambda: self._arrive(host, request, sent))

    def receive(self, seconds: float) -> Sequence[Reply]:
        deadline = self.now + seconds
        while self._events and self._events[0][0] <= deadline and not self._replies:
            at, _, happen = heapq.heappop(self._events)
            self.now = max(self.now, at)
            happen()
        if not self._replies:
            self.now = deadline
        replies, self._replies = self._replies, []
        return replies

    def close(self) -> None:
        pass

    def _schedule(self, when: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), happen))

    def _time(self, script: ScriptedHost) -> int:
        """The host's clock, ns."""
        jumped = sum(size for at, size in script.jumps.items() if at <= self.now)
        return round((self.now + script.offset + (self.now - 1000) * script.drift + jumped) * 1e9)

    def _arrive(self, host: int, request: Mapping[str, Any], sent: float) -> None:
        script = self.scripts[host]
        if self.now >= script.silent_from:
            return
        received_ns = self._time(script)
        for command in request.get("commands", ()):
            self._obey(host, script, command)
        body: dict[str, Any] = {"received_ns": received_ns}
        if request.get("facts"):
            body["facts"] = {"loadstone": __version__, "engine_sha256": self._hash, "libc": "", "hosts": []}
        if request.get("poll") and not script.messages:
            wait = request["wait_seconds"]
            token = self.now
            script.polls.append(token)
            self._schedule(self.now + wait, lambda: self._answer_poll(host, body, sent, token))
            return
        self._reply(host, body, sent, poll=bool(request.get("poll")))

    def _answer_poll(self, host: int, body: dict[str, Any], sent: float, token: float) -> None:
        script = self.scripts[host]
        if token in script.polls:
            script.polls.remove(token)
            self._reply(host, body, sent, poll=True)

    def _reply(self, host: int, body: dict[str, Any], sent: float, *, poll: bool) -> None:
        script = self.scripts[host]
        if self.now >= script.silent_from:
            return
        if poll:
            body |= {"poll": True, "messages": script.messages}
            script.messages = []
        body["replied_ns"] = self._time(script)
        sent_ns = round(sent * 1e9)

        def return_reply() -> None:
            self._replies.append(Reply(host, sent_ns, round(self.now * 1e9), body))

        self._schedule(self.now + script.back, return_reply)

    def _obey(self, host: int, script: ScriptedHost, command: Mapping[str, Any]) -> None:
        match command:
            case {"launch": number, "specs": specs}:
                script.launch, script.engines = number, len(specs)
                script.started_at = script.stopped_at = None
                self._schedule(self.now + script.opening, lambda: self._open_engines(script))
            case {"start_at": unix_ns}:
                ahead = (unix_ns - self._time(script)) / 1e9 / (1 + script.drift)
                assert ahead > 0, "the command came too late"
                script.started_at = self.now + ahead
                self._schedule(script.started_at, lambda: self._count(script, 0))
            case {"stop": _} if script.ignores_stop:
                pass
            case {"stop": _} | {"kill": _}:
                self._finish(script, "stopped")

    def _open_engines(self, script: ScriptedHost) -> None:
        if script.failure:
            self._say(script, failed={"message": script.failure, "hint": "", "status": 1})
            self._say(script, end=True)
        else:
            self._say(script, line=json.dumps(ready(clients=script.engines)))

    def _count(self, script: ScriptedHost, k: int) -> None:
        if script.stopped_at is not None:
            return
        if k == self._seconds:
            self._finish(script, "done")
            return
        self._say(script, line=json.dumps(interval(k, [outcome("READ", "OK", [1000] * script.engines)])))
        self._schedule(self.now + 1, lambda: self._count(script, k + 1))

    def _finish(self, script: ScriptedHost, end: str) -> None:
        if script.stopped_at is not None:
            return
        script.stopped_at = self.now
        operations = [outcome("READ", "OK", [1000] * script.engines * self._seconds)]
        self._say(script, line=json.dumps(summary(operations, end=end)))
        starts = [self._start_ns(script)] * script.engines if script.started_at is not None else []
        self._say(script, starts=starts, figures=[])
        self._say(script, end=True)

    def _start_ns(self, script: ScriptedHost) -> int:
        assert script.started_at is not None
        at = script.started_at
        return round((at + script.offset + (at - 1000) * script.drift) * SECOND)

    def _say(self, script: ScriptedHost, **message: Any) -> None:
        script.messages.append({"launch": script.launch, **message})


def specs(engines: int, interval_ms: int = 1000, lease_ms: int = 2000) -> list[dict[str, Any]]:
    """Specs of segments. Scripted agents do not read them."""
    common = {"interval_ms": interval_ms, "lease_ms": lease_ms, "wait_for_start": engines > 1}
    return [{**common, "segment": {"k": k, "n": engines}} for k in range(engines)]


def spec_of(*arguments: str) -> dict[str, Any]:
    """The spec of a YCSB run on the store `null`, with intervals of a second."""
    line = [
        program.find_engine(),
        "ycsb",
        "run",
        "null",
        "-P",
        str(ROOT / "workloads/workloada"),
        *arguments,
        "--print-spec",
    ]
    return {**json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout), "interval_ms": 1000}
