"""The in-memory Redis of the tests answers and fails as scripted, over plain sockets."""

from __future__ import annotations

import socket
import time

import pytest

from scripted_redis import FakeRedis, array
from scripted_relay import Fault, Relay, Scripted


def dial(server: Scripted) -> socket.socket:
    """A connection with a time limit."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def ask(line: socket.socket, *arguments: bytes) -> bytes:
    """The answer to one command, which fits into one packet."""
    line.sendall(array(list(arguments)))
    return line.recv(1 << 16)


def test_it_keeps_records_and_their_index() -> None:
    with FakeRedis() as server, dial(server) as line:
        assert ask(line, b"HMSET", b"k", b"a", b"1", b"b", b"2") == b"+OK\r\n"
        assert ask(line, b"HGETALL", b"k") == array([b"a", b"1", b"b", b"2"])
        assert ask(line, b"HMGET", b"k", b"b", b"c") == array([b"2", None])
        assert ask(line, b"ZADD", b"i", b"2", b"k") == b":1\r\n"
        assert ask(line, b"ZRANGEBYSCORE", b"i", b"1", b"inf", b"LIMIT", b"0", b"5") == array([b"k"])
        assert ask(line, b"ZREM", b"i", b"k") == b":1\r\n"
        server.lose_acknowledged(1)
        assert ask(line, b"DEL", b"k") == b":0\r\n"


def test_a_stall_ends_and_nothing_is_lost() -> None:
    with FakeRedis(Fault("stall", 0, 0.3)) as server, dial(server) as line:
        server.begin()
        assert ask(line, b"PING") == b"+PONG\r\n"
        assert server.zero is not None
        assert time.monotonic() >= server.zero + 0.3


def test_a_late_answer_is_late() -> None:
    with FakeRedis(Fault("late", seconds=0.2)) as server, dial(server) as line:
        server.begin()
        assert ask(line, b"PING") == b"+PONG\r\n"
        [log] = server.log
        assert log.answered is not None
        assert log.answered - log.received >= 0.2


def test_resets_halves_and_refusals() -> None:
    with FakeRedis(Fault("reset")) as server, dial(server) as line:
        server.begin()
        with pytest.raises(ConnectionResetError):
            ask(line, b"PING")
    with FakeRedis(Fault("half_close")) as server, dial(server) as line:
        server.begin()
        assert ask(line, b"PING") == b"+PO"
        assert line.recv(9) == b""
    with FakeRedis(Fault("refuse")) as server:
        server.begin()
        # The reset may come before the connection is established.
        with pytest.raises(ConnectionError), dial(server) as line:
            ask(line, b"PING")


@pytest.mark.parametrize("kind", ["drop", "silent"])
def test_silence(kind: str) -> None:
    with FakeRedis(Fault(kind)) as server, dial(server) as line:  # type: ignore[arg-type]
        server.begin()
        line.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(line, b"PING")


def test_scripted_relay_loses_updates_and_returns_errors() -> None:
    with FakeRedis(Fault("lose", every=2), Fault("error", every=5)) as server, dial(server) as line:
        server.begin()
        for value in (b"0", b"1", b"2"):
            assert ask(line, b"HMSET", b"k", b"a", value) == b"+OK\r\n"
        assert ask(line, b"HGETALL", b"k") == array([b"a", b"1"])
        assert ask(line, b"PING").startswith(b"-ERR")
        assert server.lost == 1


def test_a_relay_passes_on_and_stalls() -> None:
    with FakeRedis() as server, Relay(server.port, Fault("stall", 0, 0.3)) as relay, dial(relay) as line:
        assert ask(line, b"PING") == b"+PONG\r\n"
        relay.begin()
        assert ask(line, b"PING") == b"+PONG\r\n"
        assert relay.zero is not None
        assert time.monotonic() >= relay.zero + 0.3
