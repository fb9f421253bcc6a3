"""The observer's figures of real server processes and connections agree with the kernel's counters."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadstone.observe import traffic
from loadstone.observe.process import read_stat
from loadstone.observe.server_usage import ServerObserver, Watched, resident_memory
from loadstone.observe.sockets import Sockets, list_inodes, parse_address
from loadstone.observe.watch import Watch
from loadstone.systems.base.jvm import read_collections
from systems_support import free_port

SERVER = Path(__file__).parents[1] / "support/forking_server.py"
MILLION = 1_000_000


@dataclass
class Running:
    """A running server."""

    port: int
    pid: int

    @property
    def to_watched(self) -> Watched:
        """The server as the lab observes it."""
        usage = read_stat(self.pid)
        assert usage is not None
        return Watched("one", f"127.0.0.1:{self.port}", self.pid, usage.start_ticks)

    def children(self) -> list[str]:
        """The pids of its child processes."""
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()

    def connect(self) -> socket.socket:
        """A client's connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


@contextlib.contextmanager
def running(file: Path | None = None) -> Iterator[Running]:
    """A server that runs until the end of the block."""
    port = free_port()
    process = subprocess.Popen([sys.executable, SERVER, str(port), *([str(file)] if file else [])])
    try:
        server = Running(port, process.pid)
        until = time.monotonic() + 60
        while True:
            try:
                server.connect().close()
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)
        # The child that answered the probe has ended.
        while server.children():
            assert time.monotonic() < until
            time.sleep(0.01)
        yield server
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as result:
        yield result


def exchange(client: socket.socket, data: bytes) -> None:
    """Sends data and receives the echo."""
    client.sendall(data)
    left = len(data)
    while left:
        left -= len(client.recv(left))


def wait_for_ends(sockets: Sockets, server: Running, received: int) -> None:
    """Waits until the kernel has reported ended connections with at least this many received bytes."""
    until = time.monotonic() + 30
    while received > 0:
        assert time.monotonic() < until
        time.sleep(0.02)
        received -= sum(
            connection.received for connection in sockets.list_ended() if connection.local[1] == server.port
        )


def figures(observed: ServerObserver) -> dict[str, float]:
    """The observed figures by name."""
    return {value.metric: value.value for value in observed.list_values()}


def test_existing_connections_count_from_the_first_sample(server: Running) -> None:
    with server.connect() as client:
        exchange(client, bytes(3 * MILLION))
        observed = ServerObserver([server.to_watched], read_collections)
        observed.begin_observation()
        exchange(client, bytes(MILLION))
        observed.end_observation()
    values = figures(observed)
    # The end of the probe's connection may be reported only now, and counts as a byte.
    assert values["server.one.network.received"] == pytest.approx(MILLION, abs=10)
    # Sent bytes count when they are acknowledged, up to one TCP window later.
    assert values["server.one.network.sent"] == pytest.approx(MILLION, rel=0.2)
    assert values["server.network.received"] == values["server.one.network.received"]


def test_ended_connections_count_to_their_last_sample(server: Running) -> None:
    observed = ServerObserver([server.to_watched], read_collections)
    observed.begin_observation()
    with contextlib.closing(Sockets()) as sockets:
        with server.connect() as client:
            exchange(client, bytes(MILLION))
            observed.take_sample()
            exchange(client, bytes(MILLION))
        with server.connect() as unseen:
            exchange(unseen, bytes(MILLION))
        # The server's side of a connection disappears when the server's process has read the end of the stream.
        wait_for_ends(sockets, server, 3 * MILLION)
    observed.end_observation()
    values = figures(observed)
    assert values["server.one.network.received"] == pytest.approx(3 * MILLION, abs=10)
    assert values["server.one.network.sent"] == pytest.approx(3 * MILLION, abs=10)


def test_busy_host_does_not_delay_samples(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock advances by 0.2 s at each reading, but the samples need no CPU time.
    clock = itertools.count(step=0.2)
    fake = SimpleNamespace(monotonic=lambda: next(clock), thread_time=lambda: 0.0, sleep=time.sleep)
    monkeypatch.setattr(traffic, "time", fake)
    observed = ServerObserver([server.to_watched], read_collections)
    with server.connect() as client:
        observed.begin_observation()
        exchange(client, bytes(MILLION))
        observed.take_sample()
        values = figures(observed)
    assert values["server.one.network.received"] == pytest.approx(MILLION, abs=10)


def test_bytes_of_strangers_do_not_count(server: Running) -> None:
    with running() as stranger, stranger.connect() as client, server.connect() as connection:
        observed = ServerObserver([server.to_watched], read_collections)
        observed.begin_observation()
        exchange(client, bytes(MILLION))
        exchange(connection, bytes(1000))
        observed.end_observation()
    assert figures(observed)["server.one.network.received"] == pytest.approx(1000, abs=10)


def test_work_of_children_belongs_to_the_server(server: Running) -> None:
    observed = ServerObserver([server.to_watched], read_collections)
    start = time.monotonic()
    observed.begin_observation()
    with server.connect() as lives:
        exchange(lives, b"work")
        with server.connect() as ends:
            exchange(ends, b"work")
        time.sleep(0.3)
        observed.end_observation()
    used = figures(observed)["server.one.cpu"] * (time.monotonic() - start)
    assert used > 1.6


def test_memory_counts_shared_pages_of_all_processes_once(server: Running) -> None:
    alone = ServerObserver([server.to_watched], read_collections)
    alone.begin_observation()
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            exchange(stack.enter_context(server.connect()), b"x")
        eight = ServerObserver([server.to_watched], read_collections)
        eight.begin_observation()
        children = server.children()
        assert len(children) == 8
        whole = sum(resident_memory(pid)[0] for pid in (server.pid, *map(int, children)))
        with_children, without = figures(eight)["server.memory_max"], figures(alone)["server.memory_max"]
        alone.end_observation()
        eight.end_observation()
    assert without < with_children < whole


def test_written_bytes_include_child_processes(tmp_path: Path) -> None:
    with running(tmp_path / "written") as server:
        observed = ServerObserver([server.to_watched], read_collections)
        observed.begin_observation()
        with server.connect() as client:
            exchange(client, bytes(MILLION))
            observed.end_observation()
    values = figures(observed)
    on_device = os.stat(tmp_path).st_dev >> 8 != 0
    assert values["server.one.written"] >= (MILLION if on_device else 0)
    assert values["server.one.read"] >= 0


def test_server_ended_in_the_window_retains_its_usage(server: Running) -> None:
    observed = ServerObserver([server.to_watched], read_collections)
    observed.begin_observation()
    with contextlib.closing(Sockets()) as sockets:
        with server.connect() as client:
            exchange(client, bytes(MILLION))
            observed.take_sample()
        os.kill(server.pid, 9)
        until = time.monotonic() + 30
        while (usage := read_stat(server.pid)) is not None and usage.memory_bytes:
            assert time.monotonic() < until
            time.sleep(0.02)
        wait_for_ends(sockets, server, MILLION)
    observed.end_observation()
    # The end of a connection counts as a byte.
    assert figures(observed)["server.one.network.received"] == pytest.approx(MILLION, abs=10)
    assert figures(observed)["server.memory_max"] > 0


def test_another_process_with_the_pid_is_another_server(server: Running) -> None:
    watched = server.to_watched
    observed = ServerObserver([Watched("one", watched.address, watched.pid, watched.start_ticks - 1)], read_collections)
    observed.begin_observation()
    observed.end_observation()
    assert figures(observed) == {}


def test_collections_count_from_first_to_last_sample(server: Running, tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    pause = "[{}s][info][gc] GC({}) Pause Young (Normal) (G1 Evacuation Pause) 24M->1M(64M) {}ms\n"
    log.write_text(pause.format("0.5", 0, "7.500"))
    watched = server.to_watched
    observed = ServerObserver(
        [Watched("one", watched.address, watched.pid, watched.start_ticks, log)], read_collections
    )
    observed.begin_observation()
    with log.open("a") as out:
        out.write(pause.format("1.5", 1, "2.250") + pause.format("2.5", 2, "1.250"))
    observed.end_observation()
    values = figures(observed)
    assert values["server.one.gc.count"] == values["server.gc.count"] == 2
    assert values["server.gc.pause"] == 3_500_000


def test_our_servers_are_no_strangers_to_the_host(server: Running, tmp_path: Path) -> None:
    start = time.monotonic()
    with (
        Watch(None, tmp_path / "observed.jsonl", ServerObserver([server.to_watched], read_collections)) as watch,
        server.connect() as client,
    ):
        exchange(client, b"work")
        watch.take_sample()
    entries = {value.metric: value.value for value in watch.values(1)}
    processors = os.cpu_count() or 1
    # A second of work, which counts as busy time but not as foreign time.
    assert entries["server.one.cpu"] * (time.monotonic() - start) > 0.9
    assert entries["cpu.busy"] - entries["cpu.others"] > 0.5 * entries["server.one.cpu"] / processors
    # Watched servers have no figure for page faults, unlike other watched processes.
    assert "server.one.faults_major" not in entries


def test_sockets_of_this_process_have_inode_and_bytes(server: Running) -> None:
    with server.connect() as client, contextlib.closing(Sockets()) as sockets:
        exchange(client, bytes(5000))
        mine = set(list_inodes(os.getpid()))
        (own,) = [
            connection
            for connection in sockets.list_connections()
            if connection.inode in mine and connection.received == 5000
        ]
        assert own.local == parse_address("{}:{}".format(*client.getsockname()))
        # The kernel counts the connection's first packet as a byte.
        assert own.sent in (5000, 5001)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9042", (bytes([127, 0, 0, 1]), 9042)),
        ("[::ffff:127.0.0.2]:80", (bytes([127, 0, 0, 2]), 80)),
        ("[::1]:80", (bytes(15) + b"\x01", 80)),
        ("db.example:80", None),
        ("127.0.0.1", None),
    ],
)
def test_addresses_are_read_as_the_kernel_has_them(text: str, expected: object) -> None:
    assert parse_address(text) == expected
