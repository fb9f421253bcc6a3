"""The ledger of writes, on stores that may lose writes and on stores that must not."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import Engine
from ledger_support import RECORDS, WORK, Liar, Proof, await_start, proof
from scripted_redis import OOM, FakeRedis
from scripted_relay import Fault
from ycsb_support import USAGE, read_refusal

# The maximum number of kills until a server that may lose writes must have lost one.
KILLS_MAX = 20


def test_a_store_that_lives_has_lost_nothing(engine: Engine) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    line = lmdb.line(
        # The rate separates consecutive writes, because the order of writes close in time is unknown.
        "operationcount=20000",
        "target=10000",
        "updateproportion=0.4",
        "readmodifywriteproportion=0.3",
        "insertproportion=0.2",
        "deleteproportion=0.1",
        # An update of one field reads and rewrites the record: of two concurrent updates, one may undo the other, and
        # the ledger reports this loss.
        "writeallfields=true",
    )
    result = engine(*line)
    assert set(result.returns("READ-MODIFY-WRITE")) <= {"OK", "NOT_YET"}
    verdict = lmdb.judge(line)
    assert verdict.sound, verdict
    writes = verdict.output["writes"]
    assert sum(writes.values()) == 20_000
    assert writes["acknowledged"] >= 19_900
    assert verdict.output["read"]["records"] > 4_000


def test_a_ledger_outlives_its_engine(engine: Engine, running: list[subprocess.Popen[str]]) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    line = lmdb.line("operationcount=0", "maxexecutiontime=60", "writeallfields=true")
    process = engine.start(*line)
    running.append(process)
    await_start(process)
    time.sleep(1)
    process.kill()
    process.wait()
    verdict = lmdb.judge(line)
    assert verdict.sound, verdict
    assert not verdict.output["ledger"]["closed"]
    assert verdict.output["writes"]["acknowledged"] > 100


def test_segments_are_judged_together_and_in_order(engine: Engine) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    lines = [
        lmdb.line(f"segment={k}/2", "operationcount=20000", "target=10000", "writeallfields=true", "runnumber=9")
        for k in range(2)
    ]
    for line in lines:
        engine(*line)
    verdict = lmdb.judge(lines[0], *lmdb.runs)
    assert verdict.sound, verdict
    assert verdict.writes == {"acknowledged": 20_000}
    # A single ledger does not cover the writes of the other segment.
    for files in ([lmdb.runs[0]], lmdb.runs[::-1]):
        command = [str(engine.program), "ledger", "--spec", f"{lmdb.runs[-1]}.json", *files]
        done = subprocess.run(command, cwd=engine.home, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (USAGE, ""), files
        assert "segment" in done.stderr


def test_missed_foreign_insert_is_settled_by_its_ledger(engine: Engine) -> None:
    line = (
        f"run redis {WORK} versions=true operationcount=4000 updateproportion=0 readproportion=0.5 "
        "insertproportion=0.5 requestdistribution=zipfian target=1000 threadcount=4 redis.host=127.0.0.1"
    )
    with FakeRedis() as server:
        redis = Proof(engine, "redis", ("redis.host=127.0.0.1", f"redis.port={server.port}"))
        redis.load()
        # From here on 2 % of the inserts are acknowledged and forgotten.
        server.faults.append(Fault("forget", every=50))
        common = (line, f"redis.port={server.port}", "runnumber=9")
        lines = [(*common, f"segment={k}/2", f"ledger=part-{k}") for k in range(2)]
        engines = []
        for arguments in lines:
            spec = engine(*arguments, "--print-spec").out
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
        server.faults.clear()
        events = [word for k in range(2) for word in ("--events", f"events-{k}")]
        verdict = redis.judge(lines[0], "part-0", "part-1", *events)
        # An insert by the other engine that had not begun at the time of a read is not the store's failure.
        alone = redis.judge(lines[0], "part-0", "part-1")
    assert len(server.forgotten) > 20
    print(failed, unsettled, verdict.output["misses"])
    assert failed > 0, "a segment judges misses of its inserts itself"
    misses = verdict.output["misses"]
    assert misses["failed"] + misses["not_yet"] == unsettled
    assert misses["failed"] > 0
    assert {key.encode() for key in misses["first"]} <= set(server.forgotten)
    assert alone.output["misses"] == {"failed": 0, "not_yet": 0, "unlisted": 0, "first": []}
    # The read-back also finds lost inserts that no operation read.
    assert verdict.output["found"]["lost"] == 10 * len(server.forgotten)
    assert verdict.output["lost"]["writes"] == len(server.forgotten)


def test_redis_without_a_log_loses_everything(engine: Engine, running: list[subprocess.Popen[str]]) -> None:
    with proof(engine, "redis") as (redis, system):
        verdict = redis.crash(running, system.running)
    lost, read = verdict.output["lost"], verdict.output["read"]
    # Without a log Redis guarantees nothing: no write has to survive.
    assert (verdict.code, lost["allowed"], lost["window_ms"]) == (0, lost["writes"], None)
    assert verdict.output["found"]["lost"] == read["fields"] == 10 * read["records"] > 0
    assert lost["writes"] == verdict.output["writes"]["acknowledged"]
    assert len(lost["first"]) == 10
    assert all(place["key"].startswith("user") and place["what"] == "nothing" for place in lost["first"])
    assert lost["oldest"]["at_most_ms"] >= lost["oldest"]["at_least_ms"] > 0
    assert f"{lost['writes']} acknowledged writes are lost, which the store's guarantee allows" in verdict.err


@pytest.mark.parametrize("appendfsync", ["no", "everysec", "always"])
def test_redis_with_a_log_survives_a_kill(
    engine: Engine, running: list[subprocess.Popen[str]], appendfsync: str
) -> None:
    with proof(engine, "redis", appendonly="yes", appendfsync=appendfsync) as (redis, system):
        verdict = redis.crash(running, system.running)
    assert verdict.sound, verdict


def test_postgres_without_synchronous_commit_loses_the_last_writes(
    engine: Engine, running: list[subprocess.Popen[str]]
) -> None:
    with proof(engine, "postgres", synchronous_commit="off") as (postgres, system):
        verdict = postgres.crash(running, system.running)
        while not verdict.output["lost"]["writes"] and len(postgres.runs) < KILLS_MAX:
            assert verdict.sound, verdict
            verdict = postgres.crash(running, system.running)
    print(f"lost after {len(postgres.runs)} kills")
    output, lost = verdict.output, verdict.output["lost"]
    assert 0 < lost["writes"] < output["writes"]["acknowledged"], f"nothing was lost in {KILLS_MAX} kills"
    # The window is three times `wal_writer_delay`.
    assert (verdict.is_proven, lost["allowed"], lost["window_ms"]) == (True, lost["writes"], 600)
    assert output["found"]["phantom"] == output["found"]["corrupt"] == 0
    # Older writes are present: only the last writes are lost.
    assert output["found"]["fine"] > 0


def test_postgres_that_waits_for_its_log_loses_nothing(engine: Engine, running: list[subprocess.Popen[str]]) -> None:
    with proof(engine, "postgres", synchronous_commit="on") as (postgres, system):
        verdict = postgres.crash(running, system.running)
    assert verdict.sound, verdict


def test_dropped_update_is_named(engine: Engine) -> None:
    with proof(engine, "redis") as (redis, system):
        redis.load()
        # The last write, which no later write hides.
        liar = Liar(system.properties["redis.host"], int(system.properties["redis.port"]), {9_999})
        with liar.listening():
            line = redis.line("operationcount=10000", f"redis.port={liar.own_port}", "redis.timeout=10000")
            assert engine(*line).returns("UPDATE") == {"OK": 10_000}
        verdict = redis.judge(redis.line("operationcount=10000"), redis.runs[-2])
    lost = {(place["key"], place["field"]) for place in verdict.output["lost"]["first"]}
    assert verdict.code == 1
    assert lost == {(liar.keys[9_999].decode(), liar.fields[9_999].decode())}
    assert verdict.output["lost"]["writes"] == 1
    assert verdict.err.count("user") == 1


def run_on_fake(engine: Engine, server: FakeRedis) -> Proof:
    """Several runs on a small Redis, which refuses requests according to a script."""
    return Proof(engine, "redis", ("redis.host=127.0.0.1", f"redis.port={server.port}", "redis.timeout=10000"))


@pytest.mark.parametrize(("refusal", "state"), [(OOM, "refused"), (b"-ERR scripted\r\n", "maybe")])
def test_only_certain_refusals_count_as_refused(engine: Engine, refusal: bytes, state: str) -> None:
    with FakeRedis() as server:
        redis = run_on_fake(engine, server)
        redis.load()
        server.refusal, server.refused_commands = refusal, {b"HMSET"}
        line = redis.line("operationcount=2000")
        assert engine.run(*line).returns("UPDATE").get("OK") is None
        server.refused_commands = set()
        verdict = redis.judge(line)
    assert verdict.writes == {state: 2000}
    fields = verdict.output["found"]
    assert (verdict.code, verdict.err, fields["lost"], fields["phantom"], fields["corrupt"]) == (0, "", 0, 0, 0)
    # The loaded records are present.
    assert verdict.output["found"]["fine"] == verdict.output["read"]["fields"] > 0


def test_refused_updates_are_counted_and_hide_nothing(engine: Engine) -> None:
    with FakeRedis(Fault("oom", every=7)) as server:
        redis = run_on_fake(engine, server)
        redis.load()
        # Overlapping writes to a frequently used record cannot be proven.
        line = redis.line("operationcount=5000", "requestdistribution=uniform")
        assert engine.run(*line).returns("UPDATE")["NO_SPACE"] == server.refused_updates > 700
        server.faults.clear()
        verdict = redis.judge(line)
    refused = server.refused_updates
    assert verdict.writes == {"acknowledged": 5000 - refused, "refused": refused}
    assert verdict.sound, verdict
    assert verdict.output["found"]["came_true"] == 0


def test_executed_update_despite_refusal_is_detected(engine: Engine) -> None:
    with FakeRedis(Fault("phantom", every=100)) as server:
        redis = run_on_fake(engine, server)
        redis.load()
        line = redis.line("operationcount=5000")
        assert engine.run(*line).returns("UPDATE")["NO_SPACE"] == server.refused_updates > 40
        server.faults.clear()
        verdict = redis.judge(line)
    assert verdict.code == 1
    # Later updates of the same fields have hidden the other phantoms.
    assert verdict.output["found"]["phantom"] == len(server.phantoms) > 0
    assert verdict.output["writes"]["refused"] == server.refused_updates
    first = verdict.output["first_wrong"]
    assert (first["key"].encode(), first["field"].encode()) in server.phantoms
    assert first["key"] in verdict.err


def test_half_done_insert_was_not_refused(engine: Engine) -> None:
    # HMSET is executed, ZADD is refused: the record can be read.
    with FakeRedis() as server:
        redis = run_on_fake(engine, server)
        redis.load()
        server.refusal, server.refused_commands = OOM, {b"ZADD"}
        line = redis.line("operationcount=200", "updateproportion=0", "insertproportion=1")
        assert engine.run(*line).returns("INSERT") == {"NO_SPACE": 200}
        verdict = redis.judge(line)
    assert verdict.writes == {"maybe": 200}
    fields = verdict.output["found"]
    assert (verdict.code, fields["came_true"], fields["lost"], fields["corrupt"]) == (0, 10 * 200, 0, 0)


@pytest.mark.parametrize(
    ("line", "error", "hint"),
    [
        (f"run null {WORK} ledger=no/such/place operationcount=10", "no/such/place", "directory"),
        (f"run null {WORK} ledger=there operationcount=10", "there", "one run"),
        ("run null -P workloads/workloada recordcount=10 ledger=x operationcount=1", "seed", "seed=1"),
        (f"run null {WORK} ledger=x fieldlength=20 operationcount=1", "at least 21 bytes", "fieldlength"),
        (f"run null {WORK} ledger=x dataintegrity=true operationcount=1", "mutually exclusive", "dataintegrity"),
        (f"run null {WORK} ledger=x segment=0/2 -threads 2 operationcount=2", "number of their run", "runnumber="),
        (
            "run null workload=TimeSeriesWorkload recordcount=10 seed=1 ledger=x operationcount=1",
            "has no ledger",
            "leave ledger out",
        ),
    ],
)
def test_a_ledger_that_cannot_be_is_refused(engine: Engine, line: str, error: str, hint: str) -> None:
    (engine.home / "there").write_text("kept")
    messages = read_refusal(engine.run(line), USAGE)
    assert error in messages[0]
    assert hint in messages[1]
    assert (engine.home / "there").read_text() == "kept"


@pytest.mark.parametrize("other", [{"seed": 8}, {"clients": 9}, {"mix": {"update": 0.9, "read": 0.1}}])
def test_ledger_of_another_spec_is_refused(engine: Engine, tmp_path: Path, other: dict[str, Any]) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    line = lmdb.line("operationcount=10")
    engine(*line)
    spec = json.loads(engine(*line, "--print-spec").out)
    if mix := other.pop("mix", None):
        spec["work"]["mix"] |= mix
    (tmp_path / "spec.json").write_text(json.dumps({**spec, **other}))
    command = [str(engine.program), "ledger", "--spec", str(tmp_path / "spec.json")]
    done = subprocess.run(command, cwd=engine.home, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert f"the ledger {lmdb.runs[-1]} was made with a different spec" in done.stderr
    assert "hint: " in done.stderr


def test_dropped_updates_of_a_second_run_are_lost(engine: Engine) -> None:
    with FakeRedis() as server:
        redis = run_on_fake(engine, server)
        redis.load()
        engine(*redis.line("operationcount=5000"))
        # The same operations again, on the same data.
        server.faults.append(Fault("lose"))
        line = redis.line("operationcount=5000")
        assert engine(*line).returns("UPDATE") == {"OK": 5000}
        server.faults.clear()
        verdict = redis.judge(line)
    assert verdict.code == 1
    assert verdict.output["lost"]["writes"] == verdict.output["writes"]["acknowledged"] == 5000
    assert {place["what"] for place in verdict.output["lost"]["first"]} == {"another run"}


def test_second_run_on_the_same_data_is_proven(engine: Engine) -> None:
    lmdb = Proof(engine, "lmdb", ("lmdb.dir=data",))
    lmdb.load()
    for _ in range(2):
        line = lmdb.line("operationcount=5000", "writeallfields=true", "readproportion=0.3", "target=5000")
        assert engine(*line).returns("VERIFY").keys() == {"OK"}
    verdict = lmdb.judge(line)
    assert verdict.sound, verdict


def test_zeroed_remainders_are_corrupt(engine: Engine) -> None:
    with FakeRedis(Fault("zeros", every=50)) as server:
        redis = run_on_fake(engine, server)
        redis.load()
        line = redis.line("operationcount=5000", "readproportion=0.5", "updateproportion=0.5")
        result = engine.run(*line)
        server.faults.clear()
        verdict = redis.judge(line)
        zeroed = sum(value.endswith(b"0" * 19) for fields in server.hashes.values() for value in fields.values())
    assert verdict.code == 1
    assert verdict.output["found"]["corrupt"] == zeroed > 20
    # A sample of the reads compares whole values.
    verified = result.returns("VERIFY")
    assert 0 < verified["UNEXPECTED_STATE"] < sum(verified.values()) / 16


def test_records_never_loaded_are_not_lost(engine: Engine) -> None:
    with FakeRedis() as server:
        redis = run_on_fake(engine, server)
        # The load stopped early.
        engine(f"load redis {WORK} versions=true insertcount={RECORDS // 2}", *redis.properties)
        line = redis.line("operationcount=2000", "target=4000")
        assert engine(*line).returns("UPDATE") == {"OK": 2000}
        verdict = redis.judge(line)
        loaded = redis.judge(line, "--loaded")
    assert verdict.sound, verdict
    assert verdict.output["found"]["not_loaded"] == loaded.output["found"]["lost"] > 1000
    assert loaded.code == 1
    assert f"{loaded.output['lost']['loaded']} loaded records are lost" in loaded.err
    assert loaded.output["lost"]["writes"] == 0


@pytest.mark.parametrize(("kind", "missed"), [("lose", "corrupted"), ("keep", "removed")])
def test_checker_that_misses_a_planted_fault_proves_nothing(engine: Engine, kind: Any, missed: str) -> None:
    with FakeRedis() as server:
        redis = run_on_fake(engine, server)
        redis.load()
        line = redis.line("operationcount=2000", "target=4000")
        engine(*line)
        assert redis.judge(line).sound
        before = {key: dict(fields) for key, fields in server.hashes.items()}
        # Updates, or deletes, are acknowledged but not executed.
        server.faults.append(Fault(kind))
        verdict = redis.judge(line)
    assert (verdict.code, verdict.output["proved"], verdict.output["proof"][missed]) == (3, False, False)
    assert "the checker failed its self-test" in verdict.err
    assert server.hashes == before


def test_planted_faults_leave_the_data_as_they_were(engine: Engine) -> None:
    with FakeRedis() as server:
        redis = run_on_fake(engine, server)
        redis.load()
        line = redis.line("operationcount=2000", "target=4000")
        engine(*line)
        before = {key: dict(fields) for key, fields in server.hashes.items()}
        scores = dict(server.scores)
        assert redis.judge(line).sound
    assert (server.hashes, server.scores) == (before, scores)


def test_concurrent_writes_to_one_record_prove_nothing(engine: Engine) -> None:
    work = WORK.replace(f"recordcount={RECORDS}", "recordcount=1")
    with FakeRedis() as server:
        redis = run_on_fake(engine, server)
        engine(f"load redis {work} versions=true", *redis.properties)
        line = redis.line("recordcount=1", "fieldcount=1", "operationcount=40")
        engine(*line)
        verdict = redis.judge(line)
    assert verdict.code == 3
    assert verdict.output["proven"]["share"] < 0.95
    assert "acknowledged writes could be proven, less than 95 %" in verdict.err
