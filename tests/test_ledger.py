"""The ledger of writes, on stores that lose some and on stores that must not."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conftest import Engine
from scripted_relay import OOM, FakeRedis, Fault
from systems_support import Up, up
from ycsb_support import USAGE, refused

RECORDS = 1_000
# Every operation is an update of one field. Load and run have one seed: it is in every value.
WORK = f"-P workloads/workloada recordcount={RECORDS} fieldlength=40 seed=7 readproportion=0 updateproportion=1"
PROPERTIES = {"redis": "redis.", "postgres": "db."}
# How often a server may be killed before it has lost something that it may lose.
KILLS_MAX = 20


@dataclass(frozen=True)
class Verdict:
    """What the command `ledger` says."""

    code: int
    found: dict[str, Any]
    err: str

    @property
    def sound(self) -> bool:
        """Nothing is lost, and nothing is there that nobody wrote."""
        found = self.found["found"]
        assert found["unsure"] == 0
        return (self.code, self.err, found["lost"], found["phantom"], found["corrupt"]) == (0, "", 0, 0, 0)


@dataclass
class Proof:
    """Runs on one store, each with a ledger of its own."""

    engine: Engine
    store: str
    properties: tuple[str, ...]
    runs: list[str] = field(default_factory=list)

    def load(self) -> None:
        """Loads records whose values name their writes."""
        result = self.engine(f"load {self.store} {WORK} versions=true -threads 4", *self.properties)
        assert result.returns("INSERT") == {"OK": RECORDS}

    def line(self, *more: str) -> tuple[str, ...]:
        """A run with a new ledger."""
        self.runs.append(f"ledger-{len(self.runs)}")
        return (f"run {self.store} {WORK} -threads 8 ledger={self.runs[-1]}", *self.properties, *more)

    def judge(self, line: tuple[str, ...], *more: str) -> Verdict:
        """What is there after a run of this line."""
        spec = self.engine.home / f"{self.runs[-1]}.json"
        spec.write_text(self.engine(*line, "--print-spec").out)
        done = subprocess.run(
            [str(self.engine.program), "ledger", "--spec", str(spec), *more],
            cwd=self.engine.home,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode in (0, 1), done.stderr
        return Verdict(done.returncode, json.loads(done.stdout), done.stderr)

    def crash(self, running: list[subprocess.Popen[str]], system: Up) -> Verdict:
        """Loads, kills the server under load, starts it again over its data and reads back."""
        system.running.fresh("usertable")
        self.load()
        line = self.line("operationcount=0", "maxexecutiontime=60")
        process = self.engine.start(*line)
        running.append(process)
        started(process)
        time.sleep(1.5)
        system.running.kill()
        crashed = time.time_ns()
        process.send_signal(signal.SIGINT)
        process.wait(60)
        system.running.restart()
        verdict = self.judge(line, "--crash", str(crashed))
        assert verdict.found["writes"]["acknowledged"] > 100
        assert verdict.found["ledger"] == {"closed": True, "beyond": 0, "ticks_lost": 0, "exceptions_lost": 0}
        print(json.dumps({name: verdict.found[name] for name in ("writes", "found", "lost")}))
        return verdict


def started(process: subprocess.Popen[str]) -> None:
    """Waits until the run measures."""
    assert process.stderr
    for line in process.stderr:
        if line == "Starting test.\n":
            return
    pytest.fail("the run did not start")


@contextmanager
def proof(engine: Engine, system: str, **settings: str | int) -> Iterator[tuple[Proof, Up]]:
    """A real server, and runs on it."""
    with up(system, None, **settings) as found:
        words = [f"{n}={v}" for n, v in found.properties.items() if n.startswith(PROPERTIES[system])]
        yield Proof(engine, system, tuple(words)), found


def test_a_store_that_lives_has_lost_nothing(engine: Engine) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    line = lmdb.line(
        "operationcount=20000",
        "updateproportion=0.4",
        "readmodifywriteproportion=0.3",
        "insertproportion=0.2",
        "deleteproportion=0.1",
        # Its update of one field is a read and a write: two of one record undo each other, and the ledger says so.
        "writeallfields=true",
    )
    result = engine(*line)
    assert set(result.returns("READ-MODIFY-WRITE")) <= {"OK", "NOT_YET"}
    verdict = lmdb.judge(line)
    assert verdict.sound, verdict
    writes = verdict.found["writes"]
    assert sum(writes.values()) == 20_000
    assert writes["acknowledged"] >= 19_900
    assert verdict.found["read"]["records"] > 4_000


def test_a_ledger_outlives_its_engine(engine: Engine, running: list[subprocess.Popen[str]]) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    line = lmdb.line("operationcount=0", "maxexecutiontime=60", "writeallfields=true")
    process = engine.start(*line)
    running.append(process)
    started(process)
    time.sleep(1)
    process.kill()
    process.wait()
    verdict = lmdb.judge(line)
    assert verdict.sound, verdict
    assert not verdict.found["ledger"]["closed"]
    assert verdict.found["writes"]["acknowledged"] > 100


def test_segments_are_judged_together_and_in_order(engine: Engine) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    lines = [lmdb.line(f"segment={k}/2", "operationcount=20000", "writeallfields=true") for k in range(2)]
    for line in lines:
        engine(*line)
    verdict = lmdb.judge(lines[0], *lmdb.runs)
    assert verdict.sound, verdict
    assert verdict.found["writes"] == {"acknowledged": 20_000, "refused": 0, "maybe": 0, "unknown": 0}
    # One alone does not know what the other wrote.
    for files in ([lmdb.runs[0]], lmdb.runs[::-1]):
        words = [str(engine.program), "ledger", "--spec", f"{lmdb.runs[-1]}.json", *files]
        done = subprocess.run(words, cwd=engine.home, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (USAGE, ""), files
        assert "segment" in done.stderr


def test_a_read_that_misses_another_segments_insert_is_settled_by_its_ledger(engine: Engine) -> None:
    line = (
        f"run redis {WORK} versions=true operationcount=4000 updateproportion=0 readproportion=0.5 "
        "insertproportion=0.5 requestdistribution=zipfian target=1000 threadcount=4 redis.host=127.0.0.1"
    )
    with FakeRedis() as server:
        redis = Proof(engine, "redis", ("redis.host=127.0.0.1", f"redis.port={server.port}"))
        redis.load()
        # From here on one insert of fifty is acknowledged and forgotten.
        server.faults.append(Fault("forget", every=50))
        lines = [(line, f"redis.port={server.port}", f"segment={k}/2", f"ledger=part-{k}") for k in range(2)]
        engines = []
        for words in lines:
            spec = engine(*words, "--print-spec").out
            program = subprocess.Popen(
                [str(engine.program), "trial"],
                cwd=engine.home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert program.stdin
            program.stdin.write(spec)
            program.stdin.flush()
            engines.append(program)
        unsettled = failed = 0
        for k, program in enumerate(engines):
            output, _ = program.communicate(timeout=60)
            (engine.home / f"events-{k}").write_text(output)
            summary = json.loads(output.splitlines()[-1])
            unsettled += summary["unsettled"]["count"]
            failed += summary["operations"] - summary["succeeded"] - summary["not_yet"]
        redis.runs.append("segments")
        events = [word for k in range(2) for word in ("--events", f"events-{k}")]
        verdict = redis.judge(lines[0], "part-0", "part-1", *events)
        # What the other engine had not begun when a read came early is not a failure of the store.
        alone = redis.judge(lines[0], "part-0", "part-1")
    assert len(server.forgotten) > 20
    print(failed, unsettled, verdict.found["misses"])
    assert failed > 0, "misses of its own inserts a segment judges itself"
    misses = verdict.found["misses"]
    assert misses["failed"] + misses["not_yet"] == unsettled
    assert misses["failed"] > 0
    assert {key.encode() for key in misses["first"]} <= set(server.forgotten)
    assert alone.found["misses"] == {"failed": 0, "not_yet": 0, "unlisted": 0, "first": []}
    # Inserts that nobody read are found by the read-back.
    assert verdict.found["found"]["lost"] == 10 * len(server.forgotten)


def test_redis_without_a_log_loses_everything(engine: Engine, running: list[subprocess.Popen[str]]) -> None:
    with proof(engine, "redis") as (redis, system):
        verdict = redis.crash(running, system)
    lost, read = verdict.found["lost"], verdict.found["read"]
    assert verdict.code == 1
    assert verdict.found["found"]["lost"] == read["fields"] == 10 * read["records"] > 0
    assert lost["writes"] == verdict.found["writes"]["acknowledged"]
    assert len(lost["first"]) == 10
    assert all(each["key"].startswith("user") and each["what"] == "nothing" for each in lost["first"])
    assert lost["oldest"]["at_most_ms"] >= lost["oldest"]["at_least_ms"] > 0
    assert f"{lost['writes']} acknowledged writes are lost" in verdict.err
    assert lost["first"][0]["key"] in verdict.err


@pytest.mark.parametrize("appendfsync", ["no", "everysec", "always"])
def test_redis_with_a_log_loses_nothing_when_its_process_dies(
    engine: Engine, running: list[subprocess.Popen[str]], appendfsync: str
) -> None:
    with proof(engine, "redis", appendonly="yes", appendfsync=appendfsync) as (redis, system):
        verdict = redis.crash(running, system)
    assert verdict.sound, verdict


def test_postgres_that_does_not_wait_for_its_log_loses_the_last_writes(
    engine: Engine, running: list[subprocess.Popen[str]]
) -> None:
    with proof(engine, "postgres", synchronous_commit="off") as (postgres, system):
        verdict = postgres.crash(running, system)
        while verdict.sound and len(postgres.runs) < KILLS_MAX:
            verdict = postgres.crash(running, system)
    print(f"lost after {len(postgres.runs)} kills")
    assert verdict.code == 1, f"nothing was lost in {KILLS_MAX} kills"
    found = verdict.found
    assert 0 < found["lost"]["writes"] < found["writes"]["acknowledged"]
    assert found["found"]["phantom"] == found["found"]["corrupt"] == 0
    # Older writes are there: what is lost is the end.
    assert found["found"]["fine"] > 0


def test_postgres_that_waits_for_its_log_loses_nothing(engine: Engine, running: list[subprocess.Popen[str]]) -> None:
    with proof(engine, "postgres", synchronous_commit="on") as (postgres, system):
        verdict = postgres.crash(running, system)
    assert verdict.sound, verdict


@dataclass
class Liar:
    """Stands before a Redis server, answers one update of so many with OK, and keeps it to itself."""

    host: str
    port: int
    one_of: int
    own_port: int = 0
    updates: int = 0
    dropped: list[tuple[str, str]] = field(default_factory=list)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Until the end of the block."""
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
        answers = asyncio.ensure_future(pump(back, answer))
        try:
            while True:
                raw, words = await request(client)
                if words[0] == b"HMSET":
                    self.updates += 1
                    if self.updates % self.one_of == 0:
                        self.dropped.append((words[1].decode(), words[2].decode()))
                        answer.write(b"+OK\r\n")
                        continue
                server.write(raw)
        except asyncio.IncompleteReadError:
            server.close()
            await answers


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Hands on what comes."""
    while data := await source.read(1 << 16):
        sink.write(data)
    sink.close()


async def request(source: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
    """A request, as it came and as words."""
    raw = head = await source.readuntil(b"\r\n")
    words = []
    for _ in range(int(head[1:])):
        size = await source.readuntil(b"\r\n")
        word = await source.readexactly(int(size[1:]) + 2)
        raw += size + word
        words.append(word[:-2])
    return raw, words


def test_one_update_of_ten_thousand_that_was_dropped_is_named(engine: Engine) -> None:
    with proof(engine, "redis") as (redis, system):
        redis.load()
        liar = Liar(system.properties["redis.host"], int(system.properties["redis.port"]), 10_000)
        with liar.listening():
            # The last one is dropped as well: no later one hides that.
            line = redis.line("operationcount=20000", f"redis.port={liar.own_port}", "redis.timeout=10000")
            assert engine(*line).returns("UPDATE") == {"OK": 20_000}
            verdict = redis.judge(line)
    lost = {(each["key"], each["field"]) for each in verdict.found["lost"]["first"]}
    print(liar.dropped, verdict.found["lost"])
    assert len(liar.dropped) == 2
    assert verdict.code == 1
    # The earlier one's field may have been written again.
    assert liar.dropped[1] in lost <= {*liar.dropped}
    assert verdict.found["lost"]["writes"] == len(lost)
    assert verdict.err.count("user") == 1


def on_fake(engine: Engine, server: FakeRedis) -> Proof:
    """Runs on a small Redis that refuses by a script."""
    return Proof(engine, "redis", ("redis.host=127.0.0.1", f"redis.port={server.port}", "redis.timeout=10000"))


@pytest.mark.parametrize(("refusal", "state"), [(OOM, "refused"), (b"-ERR scripted\r\n", "maybe")])
def test_only_a_refusal_that_is_certain_counts_as_one(engine: Engine, refusal: bytes, state: str) -> None:
    with FakeRedis() as server:
        redis = on_fake(engine, server)
        redis.load()
        server.refusal, server.refused_commands = refusal, {b"HMSET"}
        line = redis.line("operationcount=2000")
        assert engine.run(*line).returns("UPDATE").get("OK") is None
        verdict = redis.judge(line)
    assert verdict.found["writes"] == {"acknowledged": 0, "refused": 0, "maybe": 0, "unknown": 0, state: 2000}
    assert verdict.sound, verdict
    # What was loaded is there.
    assert verdict.found["found"]["fine"] == verdict.found["read"]["fields"] > 0


def test_refused_updates_among_others_are_counted_and_hide_nothing(engine: Engine) -> None:
    with FakeRedis(Fault("oom", every=7)) as server:
        redis = on_fake(engine, server)
        redis.load()
        line = redis.line("operationcount=5000")
        assert engine.run(*line).returns("UPDATE")["NO_SPACE"] == server.refused_updates > 700
        verdict = redis.judge(line)
    refused = server.refused_updates
    assert verdict.found["writes"] == {"acknowledged": 5000 - refused, "refused": refused, "maybe": 0, "unknown": 0}
    assert verdict.sound, verdict
    assert verdict.found["found"]["came_true"] == 0


def test_a_refused_update_that_was_done_all_the_same_is_found(engine: Engine) -> None:
    with FakeRedis(Fault("phantom", every=100)) as server:
        redis = on_fake(engine, server)
        redis.load()
        line = redis.line("operationcount=5000")
        assert engine.run(*line).returns("UPDATE")["NO_SPACE"] == server.refused_updates > 40
        verdict = redis.judge(line)
    assert verdict.code == 1
    # Later updates of the same fields have covered the others.
    assert verdict.found["found"]["phantom"] == len(server.phantoms) > 0
    assert verdict.found["writes"]["refused"] == server.refused_updates
    first = verdict.found["first_wrong"]
    assert (first["key"].encode(), first["field"].encode()) in server.phantoms
    assert first["key"] in verdict.err


def test_an_insert_that_was_half_done_was_not_refused(engine: Engine) -> None:
    # HMSET is done, ZADD is refused: the record can be read.
    with FakeRedis() as server:
        redis = on_fake(engine, server)
        redis.load()
        server.refusal, server.refused_commands = OOM, {b"ZADD"}
        line = redis.line("operationcount=200", "updateproportion=0", "insertproportion=1")
        assert engine.run(*line).returns("INSERT") == {"NO_SPACE": 200}
        verdict = redis.judge(line)
    assert verdict.found["writes"] == {"acknowledged": 0, "refused": 0, "maybe": 200, "unknown": 0}
    assert verdict.found["found"]["came_true"] == 10 * 200
    assert verdict.sound, verdict


@pytest.mark.parametrize(
    ("line", "error", "hint"),
    [
        (f"run null {WORK} ledger=no/such/place operationcount=10", "no/such/place", "directory"),
        (f"run null {WORK} ledger=there operationcount=10", "there", "one run"),
        ("run null -P workloads/workloada recordcount=10 ledger=x operationcount=1", "seed", "seed=1"),
        (f"run null {WORK} ledger=x fieldlength=20 operationcount=1", "at least 21 bytes", "fieldlength"),
        (f"run null {WORK} ledger=x dataintegrity=true operationcount=1", "exclude each other", "dataintegrity"),
        (
            f"run null {WORK} ledger=x core_workload_insertion_retry_limit=1 operationcount=1",
            "without retries",
            "core_workload_insertion_retry_limit",
        ),
        (
            "run null workload=TimeSeriesWorkload recordcount=10 seed=1 ledger=x operationcount=1 "
            "dataintegrity=true querytimespan=60",
            "records only",
            "leave ledger out",
        ),
    ],
)
def test_a_ledger_that_cannot_be_is_refused(engine: Engine, line: str, error: str, hint: str) -> None:
    (engine.home / "there").write_text("kept")
    messages = refused(engine.run(line), USAGE)
    assert error in messages[0]
    assert hint in messages[1]
    assert (engine.home / "there").read_text() == "kept"


def test_the_ledger_of_another_seed_is_refused(engine: Engine, tmp_path: Path) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    line = lmdb.line("operationcount=10")
    engine(*line)
    spec = json.loads(engine(*line, "--print-spec").out)
    (tmp_path / "spec.json").write_text(json.dumps({**spec, "seed": 8}))
    words = [str(engine.program), "ledger", "--spec", str(tmp_path / "spec.json")]
    done = subprocess.run(words, cwd=engine.home, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "the ledger has seed 7, the spec has seed 8" in done.stderr
