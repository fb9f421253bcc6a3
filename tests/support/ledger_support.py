"""Runs with a ledger on real servers, a relay that drops writes, and the read-back."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from conftest import Engine
from loadstone.runner.settling import await_replication
from loadstone.systems.base.process import process_tree, send_signal
from loadstone.systems.base.running_system import RunningSystem
from systems_support import Up, up

RECORDS = 1_000
# Every operation updates one field. Load and run share a seed, which is part of every value.
WORK = f"-P workloads/workloada recordcount={RECORDS} fieldlength=40 seed=7 readproportion=0 updateproportion=1"
PROPERTIES = {"redis": "redis.", "postgres": "db."}
# Three nodes of Cassandra may start slowly on a busy machine.
PATIENT = ("cassandra.readtimeoutmillis=60000", "cassandra.connecttimeoutmillis=60000")


@dataclass(frozen=True)
class Verdict:
    """The answer of the command `ledger`."""

    code: int
    output: dict[str, Any]
    err: str

    @property
    def sound(self) -> bool:
        """The checker proved enough writes, and no write is lost, phantom or corrupt."""
        fields = self.output["found"]
        assert fields["unsure"] == 0
        return self.is_proven and (self.err, fields["lost"], fields["phantom"], fields["corrupt"]) == ("", 0, 0, 0)

    @property
    def is_proven(self) -> bool:
        """The checker proved enough writes for exit status 0."""
        return self.code == 0 and self.has_proof

    @property
    def has_proof(self) -> bool:
        """The checker found and repaired its planted faults."""
        return bool(self.output.get("proof") == {"corrupted": True, "removed": True, "restored": True})

    @property
    def writes(self) -> dict[str, int]:
        """Writes by outcome, without zero counts."""
        return {outcome: count for outcome, count in self.output["writes"].items() if count}


@dataclass
class Proof:
    """Several runs on one store, each with a ledger."""

    engine: Engine
    store: str
    properties: tuple[str, ...]
    runs: list[str] = field(default_factory=list)
    # False if clients may be blocked in a library when a run is stopped: the last notes of the run are then missing.
    closes: bool = True

    def load(self) -> None:
        """Loads records in which each value identifies the write that produced it."""
        result = self.engine(f"load {self.store} {WORK} versions=true -threads 4", *self.properties)
        assert result.returns("INSERT") == {"OK": RECORDS}

    def line(self, *more: str, clients: int = 8) -> tuple[str, ...]:
        """The command line of a run with a new ledger."""
        self.runs.append(f"ledger-{len(self.runs)}")
        return (f"run {self.store} {WORK} -threads {clients} ledger={self.runs[-1]}", *self.properties, *more)

    def judge(self, line: tuple[str, ...], *more: str) -> Verdict:
        """Reads back the writes of the run with this command line."""
        spec = self.engine.home / f"{self.runs[-1]}.json"
        spec.write_text(self.engine(*line, "--print-spec").out)
        done = subprocess.run(
            [str(self.engine.program), "ledger", "--spec", str(spec), *more],
            cwd=self.engine.home,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode in (0, 1, 3), done.stderr
        assert done.stdout, done.stderr
        return Verdict(done.returncode, json.loads(done.stdout), done.stderr)

    def crash(
        self,
        running: list[subprocess.Popen[str]],
        system: RunningSystem,
        server: str | None = None,
        table: Mapping[str, str] | None = None,
    ) -> Verdict:
        """Loads, kills a server (or all) at a random instant, starts it again and reads the writes back."""
        system.recreate_table("usertable", table)
        self.load()
        line = self.line("operationcount=0", "maxexecutiontime=60")
        process = self.engine.start(*line)
        running.append(process)
        await_start(process)
        time.sleep(1 + Random(len(self.runs)).random())
        victims = [victim for victim in system.running_processes() if server in (None, victim.name)]
        members = [member for victim in victims for member in process_tree(victim)]
        # The time is read just before the signals, as in the lab's fault: `kill` waits for the end of all processes,
        # which takes seconds on a busy host.
        crashed = time.time_ns()
        for member in members:
            send_signal(member, signal.SIGKILL)
        system.kill(server)
        process.send_signal(signal.SIGINT)
        process.wait(60)
        system.restart(server)
        waited = await_replication(system.find_backlog, system.unseen_s)
        assert waited.backlog is None, waited
        verdict = self.judge(line, "--crash", str(crashed), "--loaded")
        assert verdict.output["writes"]["acknowledged"] > 100
        facts = {"beyond": 0, "ticks_lost": 0, "exceptions_lost": 0} | ({"closed": True} if self.closes else {})
        assert verdict.output["ledger"].items() >= facts.items(), verdict
        print(json.dumps({name: verdict.output[name] for name in ("writes", "found", "lost")}))
        return verdict


def await_start(process: subprocess.Popen[str]) -> None:
    """Waits until the run measures."""
    assert process.stderr
    for line in process.stderr:
        if line == "Starting test.\n":
            return
    pytest.fail("the run did not start")


@contextmanager
def proof(engine: Engine, system: str, **settings: str | int) -> Iterator[tuple[Proof, Up]]:
    """A real server, and runs on it."""
    with up(system, None, **settings) as server:
        properties = [f"{n}={v}" for n, v in server.properties.items() if n.startswith(PROPERTIES[system])]
        yield Proof(engine, system, tuple(properties)), server


@dataclass
class Liar:
    """A relay to a Redis server that replies to some writes without passing them on."""

    host: str
    port: int
    # Indices of writes that the relay acknowledges but drops.
    drops: Collection[int] = ()
    # Indices of inserts whose first attempt ends with an error, and whether the relay passes this attempt on.
    errors: Mapping[int, bool] = field(default_factory=dict)
    own_port: int = 0
    # The key and the first field of each write that the relay received, by index, and the keys of inserts.
    keys: dict[int, bytes] = field(default_factory=dict)
    fields: dict[int, bytes] = field(default_factory=dict)
    inserted: set[bytes] = field(default_factory=set)
    dropped: Counter[int] = field(default_factory=Counter)
    failed: set[int] = field(default_factory=set)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listens until the end of the block."""
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.own_port = server.sockets[0].getsockname()[1]
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(server.close)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    async def _serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        back, server = await asyncio.open_connection(self.host, self.port)
        try:
            while True:
                raw, arguments = await request(client)
                reply = self._decide(arguments)
                if reply is None or reply == ERROR:
                    server.write(raw)
                    answered = await response(back)
                    answer.write(reply or answered)
                else:
                    answer.write(reply[1:])
        except asyncio.IncompleteReadError:
            server.close()

    def _decide(self, arguments: list[bytes]) -> bytes | None:
        """Returns None to pass the request on, ERROR to also reply ERROR, or `!` and the reply to send instead."""
        if arguments[0] == b"ZADD":
            self.inserted.add(arguments[3])
        if arguments[0] != b"HMSET" or not arguments[3].startswith(b"R"):
            return None
        index = int(arguments[3][1:13], 16)
        self.keys[index], self.fields[index] = arguments[1], arguments[2]
        if index in self.errors and index not in self.failed:
            self.failed.add(index)
            return ERROR if self.errors[index] else b"!" + ERROR
        if index in self.drops:
            self.dropped[index] += 1
            return b"!+OK\r\n"
        return None


# An error after which the write may have been executed.
ERROR = b"-ERR scripted\r\n"


async def request(source: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
    """A request: its bytes and its arguments."""
    raw = head = await source.readuntil(b"\r\n")
    arguments = []
    for _ in range(int(head[1:])):
        size = await source.readuntil(b"\r\n")
        word = await source.readexactly(int(size[1:]) + 2)
        raw += size + word
        arguments.append(word[:-2])
    return raw, arguments


async def response(source: asyncio.StreamReader) -> bytes:
    """A reply as received."""
    head = await source.readuntil(b"\r\n")
    count = int(head[1:]) if head[:1] in b"$*" else -1
    if head[:1] == b"$" and count >= 0:
        return head + await source.readexactly(count + 2)
    if head[:1] == b"*":
        return head + b"".join([await response(source) for _ in range(count)])
    return head
