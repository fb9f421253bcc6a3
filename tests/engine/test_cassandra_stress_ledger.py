"""The ledger of cassandra-stress: the timestamp of a row names its write, on a scripted server that loses some."""

from __future__ import annotations

import json
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
)
from stress_support import Stress, fail_every


@pytest.fixture
def stress(program: Path) -> Stress:
    """Runs a command line on a server."""
    return Stress(program)


@dataclass
class Ledger:
    """Runs a command line with a ledger, and reads its writes back."""

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

    def read_back(self, spec: Path) -> tuple[int, dict[str, Any], str]:
        """Exit status, findings and message of the read-back."""
        command = [str(self.program), "ledger", "--spec", str(spec)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.fixture
def ledger(program: Path, tmp_path: Path) -> Ledger:
    """Runs command lines with a ledger."""
    return Ledger(program, tmp_path)


# Two rounds over 20 partitions, by one client: execution and operation have the same number.
ROUNDS = "write n=40 no-warmup -pop seq=1..20 -errors retries=0 ignore -rate threads=1"


def test_ledger_proves_every_acknowledged_write(ledger: Ledger) -> None:
    with FakeCassandra() as server:
        spec = ledger.write_spec(server, "mixed ratio(write=1,read=1) n=200 no-warmup -pop seq=1..20 -rate threads=4")
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


def test_ledger_finds_a_forgotten_overwrite(ledger: Ledger) -> None:
    # Acknowledged and not done: the last write of partition 6, and both writes of partition 8.
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


def test_ledger_finds_writes_older_than_the_rows(ledger: Ledger, stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=20 no-warmup -rate threads=1").check_end()
        # Timestamps before the loaded rows: the server acknowledges the writes and keeps the rows.
        spec = ledger.write_spec(server, ROUNDS, run=1)
        ledger.run(spec)
        status, findings, _ = ledger.read_back(spec)
    assert status == 1
    assert findings["lost"]["writes"] == 40


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("read n=10", "is for runs that write rows"),
        ("counter_write n=10", "is for runs that write rows"),
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
