"""The ledger of cassandra-stress: a row's timestamp identifies its write. A scripted server loses some writes."""

from __future__ import annotations

import json
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripted_cassandra import (
    UNAVAILABLE,
    VOID,
    WRITE_TIMEOUT,
    Answer,
    Execution,
    FakeCassandra,
    error,
    rows,
)
from stress_support import Stress, fail_every


@dataclass
class Ledger:
    """Runs a command line with a ledger, and reads the writes back."""

    program: Path
    home: Path

    def write_spec(self, server: FakeCassandra, line: str, run: int | None = None) -> Path:
        """The spec of a command line, with a ledger."""
        command = [str(self.program), "cassandra-stress", *line.split(), "-node", "127.0.0.1", "--print-spec"]
        printed = subprocess.run(
            [*command, "-port", f"native={server.port}"], check=True, capture_output=True, text=True
        ).stdout
        run = time.time_ns() // 1000 if run is None else run
        spec = {**json.loads(printed), "run": run, "ledger": {"file": str(self.home / "writes.ledger")}}
        path = self.home / "spec.json"
        path.write_text(json.dumps(spec))
        return path

    def run(self, spec: Path) -> dict[str, Any]:
        """Runs the trial; returns its summary."""
        done = subprocess.run(
            [str(self.program), "trial"], input=spec.read_text(), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return summary

    def read_back(self, spec: Path, *more: str) -> tuple[int, dict[str, Any], str]:
        """Exit status, findings and message of the read-back."""
        command = [str(self.program), "ledger", "--spec", str(spec), *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.fixture
def ledger(program: Path, tmp_path: Path) -> Ledger:
    """Runs command lines with a ledger."""
    return Ledger(program, tmp_path)


def test_missing_rows_of_the_warmup_are_not_counted(ledger: Ledger) -> None:
    with FakeCassandra() as server:
        line = "read n=100 no-warmup -pop seq=1..20 -errors ignore retries=0 -rate threads=1 throttle=100/s"
        spec = json.loads(ledger.write_spec(server, line).read_text())
        changed = {**spec, "ledger": None, "run": None, "warmup_seconds": 0.5, "until": {"operations": 50}}
        path = ledger.home / "reads.json"
        path.write_text(json.dumps(changed))
        summary = ledger.run(path)
        sent = server.kinds["READ"]
    # A number of operations, not a time, ends the window, so the counts do not depend on stalls of the host.
    assert summary["operations"] == summary["missing_rows"]["reads"] == 50
    assert 50 < sent <= 100


# Two rounds over 20 partitions by one client, so executions and operations have the same numbers.
ROUNDS = "write n=40 no-warmup -pop seq=1..20 -errors retries=0 ignore -rate threads=1"


def test_ledger_proves_every_acknowledged_write(ledger: Ledger) -> None:
    with FakeCassandra() as server:
        spec = ledger.write_spec(
            server, "mixed ratio(write=1,read=1) n=200 no-warmup -pop seq=1..20 -errors ignore -rate threads=4"
        )
        ledger.run(spec)
        written = server.kinds["WRITE"]
        status, findings, message = ledger.read_back(spec)
    assert (status, message) == (0, "")
    assert written == 100
    assert findings["writes"]["acknowledged"] == findings["proven"]["writes"] == 100
    assert findings["found"]["fine"] == findings["read"]["fields"] == 5 * len(server.rows)
    assert (findings["proved"], findings["read"]["level"]) == (True, "ALL")


def test_ledger_keeps_values_and_stamps_operations(ledger: Ledger, stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=20 no-warmup -rate threads=1").check_end()
        plain = dict(server.rows)
        spec = ledger.write_spec(server, ROUNDS)
        ledger.run(spec)
    run = json.loads(spec.read_text())["run"]
    assert server.rows == plain
    assert sorted(server.stamps_us.values()) == [run + index for index in range(20, 40)]


@pytest.mark.parametrize("count", [0, 1, 7])
def test_ledger_counts_every_dropped_write(ledger: Ledger, count: int) -> None:
    with FakeCassandra(lambda execution: VOID if 40 - count <= execution.number < 40 else None) as server:
        spec = ledger.write_spec(server, ROUNDS)
        ledger.run(spec)
        status, findings, _ = ledger.read_back(spec)
    assert status == (count > 0)
    assert (findings["lost"]["writes"], findings["proven"]["writes"]) == (count, 40 - count)
    assert (findings["found"]["lost"], findings["found"]["fine"]) == (5 * count, 5 * (20 - count))


@pytest.mark.parametrize(("minutes", "later"), [((-2, -1), 7), ((-1, 1), 0)], ids=["before", "during"])
def test_crash_explains_only_earlier_writes(ledger: Ledger, minutes: tuple[int, int], later: int) -> None:
    with FakeCassandra(lambda execution: VOID if 33 <= execution.number < 40 else None) as server:
        spec = ledger.write_spec(server, ROUNDS)
        crashes = [time.time_ns() + minute * 60_000_000_000 for minute in minutes]
        ledger.run(spec)
        _, findings, _ = ledger.read_back(spec, *(word for crash in crashes for word in ("--crash", str(crash))))
    lost = findings["lost"]
    assert (lost["writes"], lost["later"]) == (7, later)
    assert (lost["oldest"] is None) == (later > 0)
    assert later or 50_000 < lost["oldest"]["at_least_ms"] < 60_000


@pytest.mark.parametrize("is_ordered", [True, False], ids=["by timestamp", "by arrival"])
def test_late_writes_are_judged_by_timestamp(ledger: Ledger, is_ordered: bool) -> None:
    # Writes 0 to 4 and 35 to 39 time out. The server executes them after the run.
    late: list[Execution] = []

    def script(execution: Execution) -> Answer:
        if 5 <= execution.number < 35:
            return None
        late.append(execution)
        return error(WRITE_TIMEOUT)

    with FakeCassandra(script) as server:
        spec = ledger.write_spec(server, ROUNDS)
        ledger.run(spec)
        server.script = None
        for execution in late:
            if not is_ordered:
                server.stamps_us[execution.key] = 0
            server.execute(execution, has_metadata=False)
        status, findings, _ = ledger.read_back(spec)
    assert (findings["writes"]["acknowledged"], findings["writes"]["maybe"]) == (30, 10)
    # Writes 20 to 24 were acknowledged. A server that orders writes by arrival replaces them with older writes.
    lost = 0 if is_ordered else 5
    assert (status, findings["lost"]["writes"], findings["proven"]["writes"]) == (lost > 0, lost, 30 - lost)
    assert (findings["found"]["lost"], findings["found"]["came_true"], findings["found"]["phantom"]) == (
        5 * lost,
        25,
        0,
    )


def test_ledger_names_the_older_write(ledger: Ledger) -> None:
    # Acknowledged but not executed: the last write of partition 6, and both writes of partition 8.
    with FakeCassandra(lambda execution: VOID if execution.number in (25, 7, 27) else None) as server:
        spec = ledger.write_spec(server, ROUNDS)
        ledger.run(spec)
        status, findings, message = ledger.read_back(spec)
    assert status == 1
    assert findings["lost"]["writes"] == 3
    places = {(place["expected"], place["shown"], place["what"]) for place in findings["lost"]["first"]}
    assert places == {(25, 5, "write"), (27, None, "nothing")}
    assert "3 acknowledged writes are lost" in message


def apply(server: FakeCassandra, code: int) -> Callable[[Execution], Answer]:
    """A script that carries out every write, and reports an error for numbers 30 to 34."""

    def script(execution: Execution) -> Answer:
        if not 30 <= execution.number < 35:
            return None
        server.execute(execution, has_metadata=False)
        return error(code)

    return script


@pytest.mark.parametrize(
    ("code", "status", "outcome", "finding"),
    [(WRITE_TIMEOUT, 0, "maybe", "came_true"), (UNAVAILABLE, 1, "refused", "phantom")],
)
def test_ledger_distinguishes_refusals_from_uncertain_writes(
    ledger: Ledger, code: int, status: int, outcome: str, finding: str
) -> None:
    with FakeCassandra() as server:
        server.script = apply(server, code)
        spec = ledger.write_spec(server, ROUNDS)
        ledger.run(spec)
        server.script = None
        result, findings, _ = ledger.read_back(spec)
    assert result == status
    assert (findings["writes"]["acknowledged"], findings["writes"][outcome]) == (35, 5)
    assert findings["found"][finding] == 5 * 5
    assert findings["lost"]["writes"] == 0


def test_ledger_counts_a_retried_write_once(ledger: Ledger) -> None:
    line = "write n=40 no-warmup -pop seq=1..20 -errors retries=3 min-delay-ms=1 -rate threads=2"
    with FakeCassandra(fail_every(3, error(WRITE_TIMEOUT))) as server:
        spec = ledger.write_spec(server, line)
        ledger.run(spec)
        server.script = None
        status, findings, _ = ledger.read_back(spec)
    assert status == 0
    assert findings["writes"] == {"acknowledged": 40, "refused": 0, "maybe": 0, "unknown": 0, "retried": 0}


def test_ledger_finds_corrupt_and_foreign_values(ledger: Ledger) -> None:
    with FakeCassandra() as server:
        spec = ledger.write_spec(server, ROUNDS)
        ledger.run(spec)
        first, second, third = list(server.rows)[:3]
        server.rows[first] = {**server.rows[first], "C2": b"other"}
        server.stamps_us[second] += 1
        server.stamps_us[third] = 1
        status, findings, _ = ledger.read_back(spec)
    assert status == 1
    fields = findings["found"]
    assert (fields["corrupt"], fields["phantom"], fields["lost"]) == (1, 5, 5)


def test_partitions_with_equal_keys_are_one_row(ledger: Ledger) -> None:
    # Keys of one byte: most partitions share their key with partitions that have other values.
    with FakeCassandra() as server:
        line = "write n=2000 keysize=1 no-warmup -pop seq=1..1000 -errors retries=0 ignore -rate threads=1"
        spec = ledger.write_spec(server, line)
        ledger.run(spec)
        status, findings, message = ledger.read_back(spec)
        assert len(server.rows) <= 256
    assert (status, message) == (0, "")
    assert findings["proven"]["writes"] == 2000
    assert findings["found"]["fine"] == 5 * len(server.rows)


def test_ledger_finds_writes_older_than_the_rows(ledger: Ledger, stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=20 no-warmup -rate threads=1").check_end()
        # The writes have earlier timestamps than the loaded rows: the server acknowledges the writes, but keeps the
        # rows.
        spec = ledger.write_spec(server, ROUNDS, run=1)
        ledger.run(spec)
        status, findings, message = ledger.read_back(spec)
    # The server was right to keep the newer rows, so they are not phantoms: nothing is proven.
    assert status == 3
    assert (findings["found"]["other_run"], findings["lost"]["writes"], findings["proven"]["writes"]) == (100, 0, 0)
    assert findings["found"]["phantom"] == 0
    assert "100 fields hold values of other runs" in message


def test_ledger_outlives_its_engine(ledger: Ledger) -> None:
    with FakeCassandra() as server:
        line = "write n=1M no-warmup -pop seq=1..20 -rate threads=2 throttle=200/s"
        spec = ledger.write_spec(server, line)
        with subprocess.Popen(
            [str(ledger.program), "trial"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdin
            process.stdin.write(spec.read_text() + "\n")
            process.stdin.flush()
            end = time.monotonic() + 30
            while len(server.executions) < 50 and time.monotonic() < end:
                time.sleep(0.01)
            process.kill()
        status, findings, _ = ledger.read_back(spec)
    assert status == 0
    assert not findings["ledger"]["closed"]
    assert findings["writes"]["acknowledged"] >= 45


def test_write_in_flight_is_no_phantom(ledger: Ledger) -> None:
    # Writes are rare, so that the last write is hundreds of operations after the preceding write.
    with FakeCassandra() as server:
        spec = ledger.write_spec(
            server, "mixed ratio(write=1,read=400) n=1M no-warmup -pop seq=1..1 -errors ignore -rate threads=1"
        )
        with subprocess.Popen(
            [str(ledger.program), "trial"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as process:

            def script(execution: Execution) -> Answer:
                if execution.statement.kind == "READ" or server.kinds["WRITE"] < 3:
                    return None
                process.kill()
                server.execute(execution, has_metadata=False)
                return "silence"

            server.script = script
            assert process.stdin
            process.stdin.write(spec.read_text() + "\n")
            process.stdin.flush()
            process.wait(30)
        server.script = None
        status, findings, message = ledger.read_back(spec)
    assert (status, findings["found"]["phantom"]) == (0, 0), message
    assert (findings["writes"]["acknowledged"], findings["found"]["came_true"]) == (2, 5)
    assert findings["lost"]["writes"] == 0


COUNTERS = "counter_write n=40 add=fixed(3) no-warmup -pop seq=1..20 -errors retries=0 ignore -rate threads=1"


@pytest.mark.parametrize("count", [0, 1, 7])
def test_ledger_counts_every_dropped_increment(ledger: Ledger, count: int) -> None:
    with FakeCassandra(lambda execution: VOID if execution.number < count else None) as server:
        spec = ledger.write_spec(server, COUNTERS)
        ledger.run(spec)
        status, findings, message = ledger.read_back(spec)
    assert status == (count > 0)
    assert (findings["lost"]["writes"], findings["proven"]["writes"]) == (count, 40 - count)
    assert (findings["found"]["lost"], findings["found"]["fine"]) == (5 * count, 5 * (20 - count))
    assert findings["proved"]
    if count > 0:
        assert f"{count} acknowledged writes are lost: the counter " in message
        assert "should be at least 6, but is 3" in message


def test_uncertain_increments_widen_the_bounds(ledger: Ledger) -> None:
    # Numbers 30 to 34 time out; the server executes 30 to 32.
    def script(execution: Execution) -> Answer:
        if not 30 <= execution.number < 35:
            return None
        if execution.number < 33:
            server.execute(execution, has_metadata=False)
        return error(WRITE_TIMEOUT)

    with FakeCassandra() as server:
        server.script = script
        spec = ledger.write_spec(server, COUNTERS)
        ledger.run(spec)
        server.script = None
        status, findings, message = ledger.read_back(spec)
    assert (status, message) == (0, "")
    assert (findings["writes"]["acknowledged"], findings["writes"]["maybe"]) == (35, 5)
    assert (findings["found"]["fine"], findings["found"]["came_true"]) == (5 * 17, 5 * 3)


def test_retried_increments_may_count_twice(ledger: Ledger) -> None:
    # With more threads, all attempts at one operation could fail.
    line = "counter_write n=40 no-warmup -pop seq=1..20 -errors retries=2 min-delay-ms=1 -rate threads=1"

    def script(execution: Execution) -> Answer:
        if execution.number % 3:
            return None
        server.execute(execution, has_metadata=False)
        return error(WRITE_TIMEOUT)

    with FakeCassandra() as server:
        server.script = script
        spec = ledger.write_spec(server, line)
        ledger.run(spec)
        server.script = None
        total = sum(counts["C0"] for counts in server.counters.values())
        status, findings, message = ledger.read_back(spec)
    assert total > 40
    assert (status, message) == (0, "")
    assert (findings["writes"]["acknowledged"], findings["lost"]["writes"]) == (40, 0)
    # An operation may have several uncertain attempts.
    assert 0 < findings["writes"]["retried"] <= total - 40


def test_increments_of_other_runs_are_found(ledger: Ledger, stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, "counter_write n=20 no-warmup -rate threads=1").check_end()
        spec = ledger.write_spec(server, COUNTERS)
        ledger.run(spec)
        status, findings, message = ledger.read_back(spec)
    assert (status, findings["found"]["phantom"]) == (1, 100)
    assert "or were not 0 at the start of the run" in message


def answer_reads(server: FakeCassandra, change: Callable[[list[bytes | None]], list[list[bytes | None]]]) -> None:
    """Changes the rows of the read-back."""

    def script(execution: Execution) -> Answer:
        names = [name for name in execution.statement.result_columns if name.startswith("WRITETIME")]
        stamp = struct.pack(">q", server.stamps_us[execution.key])
        values: list[bytes | None] = [*server.rows[execution.key].values(), *(stamp for _ in names)]
        columns = [execution.statement.column(name) for name in execution.statement.result_columns]
        return rows(columns, change(values), has_metadata=False)

    server.script = script


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda row: [row], 0),
        (lambda row: [row, row], 3),
        (lambda row: [[*row[:-1], None]], 3),
        (lambda row: [[*row[:-1], b"short"]], 3),
        # All cells of a column are absent: the write is lost.
        (lambda row: [[*row[:4], None, *row[5:-1], None]], 1),
    ],
    ids=["whole", "two rows", "no timestamp", "a short timestamp", "no value"],
)
def test_malformed_answers_prove_nothing(
    ledger: Ledger, change: Callable[[list[bytes | None]], list[list[bytes | None]]], status: int
) -> None:
    with FakeCassandra() as server:
        spec = ledger.write_spec(server, ROUNDS)
        ledger.run(spec)
        answer_reads(server, change)
        result, findings, message = ledger.read_back(spec)
    assert result == status, message
    assert bool(findings) == (status != 3)


def test_losses_below_the_strongest_level_are_undecided(ledger: Ledger) -> None:
    with FakeCassandra(lambda execution: VOID if execution.number >= 37 else None) as server:
        spec = ledger.write_spec(server, ROUNDS)
        ledger.run(spec)
        # The first pass, at the workload's level, reads 20 partitions; no later read is answered.
        server.script = lambda execution: error(UNAVAILABLE) if execution.number >= 60 else None
        status, findings, message = ledger.read_back(spec)
    assert status == 3
    assert (findings["lost"]["writes"], findings["lost"]["undecided"]) == (0, 3)
    assert "3 acknowledged writes are missing at the strongest readable level" in message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("read n=10", "is for runs that write rows"),
        ("mixed ratio(write=1,counter_write=1) n=10", "is for runs that write rows"),
        ("counter_write add=uniform(0..3) n=10", "needs increments above 0"),
        ("write n=10 -col timestamp=5", "sets the timestamps of writes"),
        ("write n=10 -insert row-population-ratio=fixed(40)/100", "needs a value in every column"),
    ],
)
def test_ledger_without_evidence_is_refused(ledger: Ledger, line: str, message: str) -> None:
    with FakeCassandra() as server:
        spec = ledger.write_spec(server, line)
        done = subprocess.run(
            [str(ledger.program), "trial"], input=spec.read_text(), capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 2
    assert message in done.stderr
