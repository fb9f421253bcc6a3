"""A relay to a real server whose faults follow a script.

The times of a script count from `begin()`. The answers are recorded with times, so that a test can compute
its expectations from the actual events.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Self

Kind = Literal[
    "stall",
    "drop",
    "reset",
    "half_close",
    "half_stall",
    "late",
    "refuse",
    "error",
    "silent",
    "lose",
    "forget",
    "oom",
    "phantom",
    "gone",
    "mute",
    "zeros",
    "keep",
]
# Thousands of clients may connect at once.
BACKLOG = 4096
RESETS = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Fault:
    """The treatment of each `every`-th answer from `start` to `end`, in seconds.

    These require the small Redis: `error`, `silent` (no answer), for inserts only `forget`, and for updates only `lose`
    (both answer OK and do nothing), `oom` (answers that it has no memory, does nothing), `phantom` (the same answer,
    but the update is done) and `zeros` (keeps the bytes that identify the write, then zeros). For deletes only `keep`
    (OK, not done). These require `begin()` before their start: `gone` closes the port and every connection, `mute`
    reads nothing until the end, then the requests of the clients that still wait.
    """

    kind: Kind
    start: float = 0.0
    end: float = float("inf")
    seconds: float = 0.0
    every: int = 1


@dataclass
class Log:
    """The times of one answer by the monotonic clock: `received` is when its request (at a relay: the answer) arrived.

    `answered` is when the answer, or half of it, was sent; None if nothing was sent.
    """

    received: float
    answered: float | None = None


class Scripted:
    """A server on a loopback port, in a separate thread."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = list(faults)
        self.zero: float | None = None
        self.log: list[Log] = []
        self.address = "127.0.0.1"
        self.port = 0
        self.lines: set[Line] = set()
        self.refused = 0
        # Times by the monotonic clock: when the port was closed, when its last connection ended, and just before and
        # just after the port was opened again.
        self.closed: float | None = None
        self.emptied: float | None = None
        self.reopened: float | None = None
        self.listening: float | None = None
        self.resets = 0
        self.muted = False
        # The number of answers that did not reach the client as a whole.
        self.broken = 0
        self._seen: Counter[Fault] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve)
        self._started = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def begin(self, zero: float | None = None, reset_at: float | None = None) -> None:
        """Sets the script's zero to now, or to a time of the monotonic clock.

        If `reset_at` is set, every connection is reset this many seconds after zero.
        """
        self.zero = time.monotonic() if zero is None else zero
        changes = [] if reset_at is None else [(reset_at, self._reset_all)]
        for fault in self.faults:
            if fault.kind == "gone":
                changes += [(fault.start, self._close_port), (fault.end, self._reopen_port)]
            elif fault.kind == "mute":
                changes += [(fault.start, self._mute), (fault.end, self._unmute)]
        for at, change in changes:
            wait = self.zero + at - time.monotonic()
            self._loop.call_soon_threadsafe(self._loop.call_later, wait, change)

    def _reset_all(self) -> None:
        for line in list(self.lines):
            line.reset()

    def _close_port(self) -> None:
        self.closed = time.monotonic()
        self._server.close()
        self._reset_all()

    def _reopen_port(self) -> None:
        self._opening = self._loop.create_task(self._open_port())

    async def _open_port(self) -> None:
        self.reopened = time.monotonic()
        self._server = await self._loop.create_server(self.line, self.address, self.port, backlog=BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]
        self.listening = time.monotonic()

    def _mute(self) -> None:
        self.muted = True
        for line in self.lines:
            line.transport.pause_reading()
        self._discard_abandoned()

    def _unmute(self) -> None:
        self.muted = False
        for line in self.lines:
            line.transport.resume_reading()

    def _discard_abandoned(self) -> None:
        """Closes the connections whose client has left: thousands of them would delay the first answer by a second."""
        polled = select.poll()
        lines = {line.transport.get_extra_info("socket").fileno(): line for line in self.lines}
        for file in lines:
            polled.register(file, select.POLLRDHUP)
        for file, _ in polled.poll(0):
            lines[file].transport.abort()
        if self.muted:
            self._loop.call_later(0.1, self._discard_abandoned)

    def line(self) -> Line:
        """The handler of one connection."""
        raise NotImplementedError

    def active(self, *kinds: Kind) -> Fault | None:
        """The first active fault of these types; a fault with `every` counts each call."""
        if self.zero is None:
            return None
        now = time.monotonic() - self.zero
        for fault in self.faults:
            if fault.kind in kinds and fault.start <= now < fault.end:
                self._seen[fault] += 1
                if self._seen[fault] % fault.every == 0:
                    return fault
        return None

    def _serve(self) -> None:
        self._loop.run_until_complete(self._open_port())
        self._started.set()
        self._loop.run_forever()
        self._server.close()
        for line in list(self.lines):
            line.reset()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()


class Line(asyncio.Protocol):
    """One connection from a client."""

    def __init__(self, owner: Scripted) -> None:
        self.owner = owner
        self.transport: Any = None
        self.dead = False
        self._free = 0.0
        self._waiting: deque[tuple[bytes, Log]] = deque()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if self.owner.active("refuse"):
            self.owner.refused += 1
            self.reset()
            return
        self.owner.lines.add(self)
        if self.owner.muted:
            transport.pause_reading()
        self.handle_open()

    def connection_lost(self, _: Exception | None) -> None:
        self.dead = True
        self.owner.lines.discard(self)
        if self.owner.closed is not None and self.owner.emptied is None and not self.owner.lines:
            self.owner.emptied = time.monotonic()

    def handle_open(self) -> None:
        """Handles a new connection."""

    def reset(self) -> None:
        """Ends the connection with RST."""
        self.dead = True
        self.owner.resets += 1
        sock = self.transport.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        self.transport.abort()

    def answer(self, data: bytes, log: Log) -> None:
        """Sends an answer after its predecessors: now, later, in part or never."""
        if self.dead:
            return
        fault = self.owner.active("drop", "reset", "half_close", "half_stall", "stall", "late")
        now = time.monotonic()
        when = now
        if fault is not None:
            self.owner.broken += fault.kind not in ("stall", "late")
            if fault.kind == "drop":
                self.dead = True
                return
            if fault.kind == "reset":
                self.reset()
                return
            if fault.kind in ("half_close", "half_stall"):
                self.dead = True
                # Half of a relayed chunk may be a whole answer.
                log.answered = now
                self.transport.write(data[: len(data) // 2])
                if fault.kind == "half_close":
                    self.transport.close()
                return
            assert self.owner.zero is not None
            when = self.owner.zero + fault.end if fault.kind == "stall" else now + fault.seconds
        if when <= now and not self._waiting:
            self._waiting.append((data, log))
            self._send()
        elif when != float("inf"):
            self._waiting.append((data, log))
            self._free = max(when, self._free)
            self.owner._loop.call_later(max(self._free - now, 0), self._send)

    def _send(self) -> None:
        # Timers of one instant fire in any order; the queue preserves the order of answers.
        data, log = self._waiting.popleft()
        if not self.dead:
            log.answered = time.monotonic()
            self.transport.write(data)


class Relay(Scripted):
    """A relay between a client and a real server; an answer is one chunk of the server's output."""

    def __init__(self, port: int, *faults: Fault) -> None:
        super().__init__(*faults)
        self.target = port

    def line(self) -> Line:
        return RelayLine(self)


class RelayLine(Line):
    """One client of the real server."""

    owner: Relay

    def handle_open(self) -> None:
        self.requests: asyncio.Queue[bytes] = asyncio.Queue()
        self._task = self.owner._loop.create_task(self._pass_on())

    def data_received(self, data: bytes) -> None:
        self.requests.put_nowait(data)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if hasattr(self, "_task"):
            self._task.cancel()

    async def _pass_on(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.owner.target)
        answers = self.owner._loop.create_task(self._answers(reader))
        try:
            while True:
                data = await self.requests.get()
                while not self.dead and (fault := self.owner.active("stall")) and self.owner.zero is not None:
                    await asyncio.sleep(min(1.0, max(self.owner.zero + fault.end - time.monotonic(), 0.001)))
                if self.dead:
                    continue
                writer.write(data)
        finally:
            answers.cancel()
            writer.close()

    async def _answers(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(1 << 16):
            log = Log(time.monotonic())
            self.owner.log.append(log)
            self.answer(data, log)
        if not self.dead:
            self.transport.close()


class LosingCassandra(Relay):
    """A relay to Cassandra: it acknowledges writes with these numbers (from 0) but drops them. It reads protocol 4."""

    def __init__(self, port: int, dropped: Collection[int]) -> None:
        super().__init__(port)
        self.dropped = dropped
        self.writes = 0

    def line(self) -> Line:
        return LosingLine(self)


class LosingLine(RelayLine):
    """One client of the real server: frames of native_protocol_v4.spec, section 2."""

    owner: LosingCassandra

    def handle_open(self) -> None:
        super().handle_open()
        self.rest = b""

    def data_received(self, data: bytes) -> None:
        self.rest += data
        while len(self.rest) >= 9 and len(self.rest) >= (end := 9 + int.from_bytes(self.rest[5:9])):
            frame, self.rest = self.rest[:end], self.rest[end:]
            if self._is_write(frame):
                self.owner.writes += 1
                if self.owner.writes - 1 in self.owner.dropped:
                    # A RESULT of the kind Void.
                    acknowledged = b"\x84\0" + frame[2:4] + b"\x08\0\0\0\x04\0\0\0\x01"
                    self.answer(acknowledged, Log(time.monotonic()))
                    continue
            self.requests.put_nowait(frame)

    def _is_write(self, frame: bytes) -> bool:
        """Whether a frame is an EXECUTE with several values: a read binds only the key."""
        # The identifier, the level and the flags precede the number of values.
        at = 9 + 2 + int.from_bytes(frame[9:11]) + 3
        return frame[4] == 10 and int.from_bytes(frame[at : at + 2]) > 1
