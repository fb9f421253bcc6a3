"""`measure.ledger`: after each trial the lab reads back and counts missing acknowledged writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab_support import experiment, loadstone, single_folder, trials
from scripted_cassandra import VOID, Answer, Execution, FakeCassandra
from scripted_redis import FakeRedis
from scripted_relay import Fault

RECORDS = 100
CLEAN = ("lost", "lost_loaded", "undecided", "corrupt", "other_run", "phantom", "missed", "unsure")
UPDATES = """
systems: {lmdb: {store: lmdb, properties: {lmdb.mapsize: 64m}}}
workload: {file: %s/workloads/workloada, properties: {recordcount: 100, fieldlength: 40, writeallfields: true}}
clients: 4
repeats: 2
rate: 2500
measure: {warmup: 0s, operations: 5000, ledger: true}
"""
INSERTS = """
systems: {fake: {store: redis, properties: {redis.host: 127.0.0.1, redis.port: PORT}}}
workload:
  file: %s/workloads/workloada
  properties:
    recordcount: 100
    fieldlength: 40
    updateproportion: 0
    readproportion: 0.5
    insertproportion: 0.5
    requestdistribution: latest
clients: 4
rate: 1000
repeats: 2
fleet: {engines: 2}
measure: {warmup: 0s, duration: 3s, ledger: true}
"""


def test_durable_store_loses_no_writes(tmp_path: Path) -> None:
    loadstone(tmp_path, "run", experiment(tmp_path, UPDATES), "--no-report", timeout=300)
    for trial in trials(single_folder(tmp_path)):
        assert trial.end == "done", trial.notes
        updates = sum(trial.statuses["UPDATE"].values())
        assert trial.value("ledger.acknowledged") == updates > 2_000
        assert [trial.value(f"ledger.{name}") for name in CLEAN] == [0] * len(CLEAN)
        assert trial.value("ledger.proved") == 1
        assert (trial.value("ledger.proven") or 0) > 0.95
        assert trial.value("verified")
        assert 0 < (trial.value("verified.whole") or 0) < 0.2
    # Spec and ledger were in the data directory; the result remains.
    assert not list(tmp_path.rglob("ledger.spec.json"))
    assert list(single_folder(tmp_path).path.rglob("ledger.stdout"))


def test_forgotten_inserts_are_settled_as_lost_across_engines(tmp_path: Path) -> None:
    with FakeRedis() as server:
        # The server acknowledges and forgets these inserts; the first inserts belong to the load.
        server.faults.append(Fault("forget", every=RECORDS + 30))
        path = experiment(tmp_path, INSERTS.replace("PORT", str(server.port)))
        loadstone(tmp_path, "run", path, timeout=300)
        first, second = trials(single_folder(tmp_path))
        forgotten = len(server.forgotten)
    assert forgotten > 10
    lost = [trial.value("ledger.lost") or 0 for trial in (first, second)]
    # The second trial writes the same records.
    assert sum(lost) == forgotten
    assert (first.value("ledger.missed") or 0) + (second.value("ledger.missed") or 0) > 0
    report = (single_folder(tmp_path).path / "report.md").read_text()
    assert "acknowledged writes are lost" in report
    assert "another load generator's insert had been acknowledged" in report


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("ledger: true", "ledger: true, verify: true"), 2, "`measure.ledger` and `measure.verify` cannot be combined"),
        (("clients: 4", "clients: 4\nload: {reuse: copy}"), 2, "`measure.ledger` and `load.reuse` cannot be combined"),
        (("lmdb: {store: lmdb, properties: {lmdb.mapsize: 64m}}", 'engine: {store: "null"}'), 1, "keeps no data"),
        (("fieldlength: 40", "fieldlength: 10"), 1, "21"),
    ],
)
def test_a_ledger_that_cannot_be_kept_is_refused(
    tmp_path: Path, change: tuple[str, str], code: int, message: str
) -> None:
    path = experiment(tmp_path, UPDATES.replace(*change))
    done = loadstone(tmp_path, "run", path, code=code)
    assert message in done.stderr
    assert "hint: " in done.stderr


ROWS = """
systems: {fake: {store: cassandra, properties: {hosts: 127.0.0.1, port: PORT}}}
workload: {cassandra-stress: {command: "mixed ratio(write=1,read=1)", population: 50}}
clients: 2
repeats: 1
rate: 400
measure: {warmup: 0s, duration: 2s, ledger: true}
"""


@pytest.mark.parametrize("is_forgetful", [False, True])
def test_overwrites_of_cassandra_stress_have_a_ledger(tmp_path: Path, is_forgetful: bool) -> None:
    with FakeCassandra() as server:
        forgotten: list[int] = []

        def script(execution: Execution) -> Answer:
            # The last writes of the run: no later write replaces their rows.
            if execution.statement.kind != "WRITE" or execution.number < 800 or not is_forgetful:
                return None
            forgotten.append(execution.number)
            return VOID

        server.script = script
        path = experiment(tmp_path, ROWS.replace("PORT", str(server.port)))
        loadstone(tmp_path, "run", path, "--no-report", timeout=300)
        (trial,) = trials(single_folder(tmp_path))
    assert trial.end == "done", trial.notes
    assert (len(forgotten) > 10) == is_forgetful
    # On a busy host, some writes are unanswered at the end.
    assert sum(trial.statuses["WRITE"].values()) == 400
    assert trial.value("ledger.acknowledged") == trial.statuses["WRITE"]["OK"]
    assert trial.value("ledger.proved") == 1
    unanswered = 400 - trial.statuses["WRITE"]["OK"]
    assert len(forgotten) - unanswered <= (trial.value("ledger.lost") or 0) <= len(forgotten)
    assert (trial.value("ledger.proven"), trial.value("ledger.corrupt")) == (1.0, 0)


def test_inserts_of_profiles_continue_after_the_population(tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    query = '{cql: "SELECT * FROM standard1 WHERE key = ?", fields: samerow}'
    profile.write_text(f"keyspace: keyspace1\ntable: standard1\nqueries: {{one: {query}}}\n")
    with FakeCassandra() as server:
        text = ROWS.replace("mixed ratio(write=1,read=1)", f"user profile={profile} ops(insert=1)")
        text = text.replace(", ledger: true", "").replace("PORT", str(server.port))
        loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report")
        (trial,) = trials(single_folder(tmp_path))
    # A population of 50, at 400/s for 2 s. On a busy host, some inserts are unanswered at the end.
    counts = trial.statuses["insert"]
    assert counts["OK"] > 50
    assert counts["OK"] + counts.get("CENSORED", 0) == sum(counts.values()) == 800


def test_mixed_counters_and_rows_are_loaded(tmp_path: Path) -> None:
    command = "mixed ratio(write=1,read=1,counter_write=1,counter_read=1) -col n=FIXED(5)"
    with FakeCassandra() as server:
        text = ROWS.replace("mixed ratio(write=1,read=1)", command).replace(", ledger: true", "")
        loadstone(tmp_path, "run", experiment(tmp_path, text.replace("PORT", str(server.port))), "--no-report")
        (trial,) = trials(single_folder(tmp_path))
    operations = {name: set(counts) for name, counts in trial.statuses.items() if name != "CLEANUP"}
    names = ("READ", "WRITE", "COUNTER_READ", "COUNTER_WRITE")
    assert operations == {name: {"OK"} for name in names}


@pytest.mark.parametrize("command", ["counter_write", "user profile=a.yaml ops(insert=1)"])
def test_ledger_of_counters_and_profiles_is_refused(tmp_path: Path, command: str) -> None:
    path = experiment(tmp_path, ROWS.replace("mixed ratio(write=1,read=1)", command))
    done = loadstone(tmp_path, "run", path, code=2)
    assert "`measure.ledger` records rows of the predefined tables, not of profiles and counters" in done.stderr
