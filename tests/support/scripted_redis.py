"""A small in-memory Redis whose faults follow a script that begins with the first command on a record."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, insort

from scripted_relay import Fault, Line, Log, Scripted

OOM = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
# The number of bytes at the start of a value that identify its write.
STAMP = 21
# Commands on a record in YCSB's layout.
ON_RECORDS = frozenset({b"HMSET", b"HSET", b"HGETALL", b"HMGET", b"ZRANGEBYSCORE", b"DEL"})


class FakeRedis(Scripted):
    """The subset of Redis that YCSB's layout uses, in memory."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.hashes: dict[bytes, dict[bytes, bytes]] = {}
        self.scores: dict[bytes, float] = {}
        self.order: list[tuple[float, bytes]] = []
        self.lost = 0
        # Keys whose insert was acknowledged and forgotten.
        self.forgotten: list[bytes] = []
        # The number of updates that were answered with OOM, and the fields that nevertheless contain such an update.
        self.refused_updates = 0
        self.phantoms: set[tuple[bytes, bytes]] = set()
        # Commands that are answered with an error and do nothing.
        self.refused_commands: set[bytes] = set()
        self.refusal = b"-ERR scripted\r\n"
        self._before: list[tuple[bytes, dict[bytes, bytes] | None]] = []

    def line(self) -> Line:
        return RedisLine(self)

    def lose_acknowledged(self, count: int) -> None:
        """Undoes the last `count` writes of fields."""
        done = threading.Event()

        def take_back() -> None:
            for _ in range(min(count, len(self._before))):
                key, old = self._before.pop()
                if old is None:
                    self.hashes.pop(key, None)
                else:
                    self.hashes[key] = old
            done.set()

        self._loop.call_soon_threadsafe(take_back)
        done.wait()

    def run(self, arguments: list[bytes]) -> bytes:
        """Executes one command."""
        name, key = arguments[0].upper(), arguments[1] if len(arguments) > 1 else b""
        if name in (b"HMSET", b"HSET"):
            if key in self.hashes and self.active("lose"):
                self.lost += 1
                return b"+OK\r\n"
            if key not in self.hashes and self.active("forget"):
                self.forgotten.append(key)
                return b"+OK\r\n"
            refusal = self.active("oom", "phantom") if key in self.hashes else None
            fields = {(key, name) for name in arguments[2::2]}
            if refusal is None:
                self.phantoms -= fields
            else:
                self.refused_updates += 1
                if refusal.kind == "oom":
                    return OOM
                self.phantoms |= fields
            old = self.hashes.get(key)
            self._before.append((key, old))
            values = arguments[3::2]
            if old is not None and self.active("zeros"):
                values = [value[:STAMP].ljust(len(value), b"0") for value in values]
            self.hashes[key] = {**(old or {}), **dict(zip(arguments[2::2], values, strict=True))}
            if refusal is not None:
                return OOM
            return b"+OK\r\n" if name == b"HMSET" else b":%d\r\n" % (len(self.hashes[key]) - len(old or {}))
        if name == b"HGETALL":
            return array([word for pair in self.hashes.get(key, {}).items() for word in pair])
        if name == b"HMGET":
            return array([self.hashes.get(key, {}).get(word) for word in arguments[2:]])
        if name == b"DEL" and self.active("keep"):
            return b":1\r\n"
        if name == b"DEL":
            return b":%d\r\n" % sum(self.hashes.pop(argument, None) is not None for argument in arguments[1:])
        if name in (b"ZADD", b"ZREM"):
            member = arguments[3] if name == b"ZADD" else arguments[2]
            old_score = self.scores.pop(member, None)
            if old_score is not None:
                del self.order[bisect_left(self.order, (old_score, member))]
            if name == b"ZADD":
                self.scores[member] = float(arguments[2])
                insort(self.order, (self.scores[member], member))
            return b":%d\r\n" % ((old_score is None) == (name == b"ZADD"))
        if name == b"ZRANGEBYSCORE":
            low = float(arguments[2].lstrip(b"("))
            at = bisect_left(self.order, (low, b""))
            results = [m for s, m in self.order[at:] if s > low or not arguments[2].startswith(b"(")]
            return array(results[: int(arguments[6])] if len(arguments) > 6 else results)
        if name == b"INFO":
            return bulk(b"redis_version:7.0.0\r\n")
        if name == b"CONFIG":
            return array([])
        return {b"PING": b"+PONG\r\n", b"AUTH": b"+OK\r\n"}.get(name, b"-ERR unknown command\r\n")


class RedisLine(Line):
    """One client of the small Redis."""

    owner: FakeRedis

    def handle_open(self) -> None:
        self.rest = b""

    def data_received(self, data: bytes) -> None:
        received = time.monotonic()
        self.rest += data
        while (result := command(self.rest)) is not None:
            arguments, used = result
            self.rest = self.rest[used:]
            log = Log(received)
            self.owner.log.append(log)
            if self.owner.zero is None and arguments[0].upper() in ON_RECORDS:
                self.owner.zero = received
            if self.owner.active("silent"):
                continue
            refused = self.owner.active("error") or arguments[0].upper() in self.owner.refused_commands
            self.answer(self.owner.refusal if refused else self.owner.run(arguments), log)


def bulk(word: bytes | None) -> bytes:
    """A bulk string of RESP 2."""
    return b"$-1\r\n" if word is None else b"$%d\r\n%b\r\n" % (len(word), word)


def array(arguments: list[bytes | None] | list[bytes]) -> bytes:
    """An array of bulk strings."""
    return b"*%d\r\n%b" % (len(arguments), b"".join(map(bulk, arguments)))


def command(data: bytes) -> tuple[list[bytes], int] | None:
    """The first command and its length; None if it is incomplete."""
    at = data.find(b"\r\n")
    if at < 0:
        return None
    arguments, count, at = [], int(data[1:at]), at + 2
    for _ in range(count):
        end = data.find(b"\r\n", at)
        if end < 0 or len(data) < (after := end + 4 + int(data[at + 1 : end])):
            return None
        arguments.append(data[end + 2 : after - 2])
        at = after
    return arguments, at
