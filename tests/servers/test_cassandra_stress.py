"""`loadstone cassandra-stress` on a real Cassandra: data, output, exit statuses; and as the workload of an experiment.

The vectors are the data written by cassandra-stress 3.11.5 and 4.0-alpha2.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import Engine
from lab_support import experiment, loadstone, single_folder, trials
from loadstone.systems.base.jvm import read_collections
from loadstone.systems.cassandra.cql import Cql
from scripted_relay import LosingCassandra
from systems_support import Up, environment, up

POPULATION = 2_000
# The first partition, by the version that generates the data: its key, and its column C0.
FIRST = {
    "3.11": ("0P37709P21", "85182fdfe7f86306cd58ce81aa53cca24c193841d6ae8a91646a4c304dd9f47892f9"),
    "4": ("708PK46680", "041c6a27dc0dcdfd65fec10f8598138934413aa47badd9942cd9987024c746219625"),
}


@dataclass(frozen=True)
class Target:
    """A Cassandra, and the program that loads it."""

    up: Up
    program: Path

    def run(self, line: str, *options: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs a command line of cassandra-stress, which must exit with this status."""
        address = ["-node", self.up.properties["hosts"], "-port", f"native={self.up.properties['port']}"]
        arguments = [str(self.program), "cassandra-stress", *line.split(), *options, *address]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        assert done.returncode == code, f"{line}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr}"
        return done

    def query(self, text: str) -> list[dict[str, object]]:
        """The rows selected by a statement."""
        host, port = self.up.properties["hosts"].split(",")[0], int(self.up.properties["port"])
        with Cql(host, port, timeout_s=60) as cql:
            return [dict(row) for row in cql.run_query(text)]


@pytest.fixture(scope="module")
def target(program: Path) -> Iterator[Target]:
    # A node with these settings accepts both encrypted and plain connections.
    with up("cassandra", tls="yes") as cassandra:
        target = Target(cassandra, program)
        target.run(f"write n={POPULATION} no-warmup -rate threads=8")
        yield target


def result(output: str, label: str) -> int:
    """A count from the block `Results:`, parsed as in scylla-ccm: label, colon, value, brackets removed."""
    lines = output[output.index("Results:") :].splitlines()
    values = dict(line.split(":", 1) for line in lines if " : " in line)
    values_by_label = {
        name.strip().lower(): value.split("[")[0].replace(",", "").strip() for name, value in values.items()
    }
    return int(values_by_label[label])


def test_written_rows_are_read_and_valid(target: Target) -> None:
    done = target.run(f"read n={POPULATION} no-warmup -pop seq=1..{POPULATION} -rate threads=8")
    assert result(done.stdout, "total partitions") == POPULATION
    assert result(done.stdout, "total errors") == 0
    assert done.stdout.endswith("\n\nEND\n")


@pytest.mark.parametrize(
    "mode", ["compression=lz4", "compression=lz4 protocolVersion=4", "compression=snappy protocolVersion=4"]
)
def test_compressed_rows_are_read_and_valid(target: Target, mode: str) -> None:
    line = f"read n=200 no-warmup -pop seq=1..{POPULATION} -rate threads=4 -mode native cql3 {mode}"
    algorithm = mode.split()[0].removeprefix("compression=")
    assert f'"cassandra.compression":"{algorithm}"' in target.run(line, "--print-spec").stdout
    done = target.run(line)
    assert result(done.stdout, "total errors") == 0
    assert "compression" not in done.stderr


def test_gc_columns_have_the_nodes_pauses(target: Target, tmp_path: Path) -> None:
    """Writes enough values for several garbage collections on the node."""
    program = str(Path(sys.executable).with_name("loadstone"))
    line = "write n=20000 no-warmup -rate threads=8 -col size=fixed(4096) -schema keyspace=collected -node"
    command = [program, "cassandra-stress", *line.split(), target.up.properties["hosts"]]
    command += ["-port", f"native={target.up.properties['port']}"]
    (log,) = target.up.running.gc_logs().values()
    before = read_collections(log)
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120, env=environment(target.up.root)
    )
    after = read_collections(log, before.offset)
    rows = [row.split(",")[-5:] for row in done.stdout.splitlines() if row.startswith("total,")]
    count = result(done.stdout, "total gc count")
    # Pauses before the first operation, or during the schema's creation, do not count.
    assert 0 < count == sum(int(row[0]) for row in rows) <= after.pauses
    assert sum(int(row[2]) for row in rows) <= after.pause_ns / 1e6 + len(rows)
    assert "gc-unknown" not in done.stderr
    assert "gc-unknown" in target.run("write n=1 no-warmup -rate threads=1").stderr


@pytest.mark.parametrize("compat", FIRST)
def test_keys_and_values_match_the_tool(target: Target, compat: str) -> None:
    keyspace = f"compat_{compat.replace('.', '_')}"
    target.run(f"write n=1 no-warmup -schema keyspace={keyspace} -rate threads=1 -compat {compat}")
    (row,) = target.query(f'SELECT key, "C0" FROM {keyspace}.standard1')
    key, value = FIRST[compat]
    assert (row["key"], row["C0"]) == (key.encode(), bytes.fromhex(value))


def test_mixed_commands_and_counters_are_counted(target: Target) -> None:
    line = "mixed ratio(write=1,read=3) n=400 no-warmup"
    done = target.run(f"{line} -pop seq=1..{POPULATION} -rate threads=4")
    assert "[READ: 300, WRITE: 100]" in done.stdout or "[WRITE: 100, READ: 300]" in done.stdout
    for _ in range(2):
        target.run("counter_write n=100 add=fixed(3) no-warmup -rate threads=4")
    rows = target.query("SELECT * FROM keyspace1.counter1")
    assert [row["C0"] for row in rows] == [6] * 100
    target.run("counter_read n=100 no-warmup -pop seq=1..100 -rate threads=4")


def test_reads_of_unwritten_rows_are_explained(target: Target) -> None:
    last = POPULATION * 10
    done = target.run(f"read n=50 no-warmup -pop seq={POPULATION}..{last} -rate threads=1", code=1)
    # The first row exists, the second does not.
    assert f"seed {POPULATION + 1} was never written; the write covered 2,000..2,000" in done.stderr
    assert re.search(
        r"Operation x0 on key\(s\) \[[0-9a-f]{20}\]: Data returned was not validated\n\nFAILURE", done.stdout
    )
    assert "Results:" not in done.stdout
    ignored = target.run(f"read n=50 no-warmup -pop seq=1..{last} -rate threads=1 -errors ignore")
    assert result(ignored.stdout, "total errors") == 0


def test_a_level_without_replicas_fails_after_all_tries(target: Target) -> None:
    done = target.run("write n=10 cl=TWO no-warmup -errors retries=2 -rate threads=1", code=1)
    assert "Operation x3 on key(s)" in done.stdout
    assert "Unavailable" in done.stdout
    assert "2 failed attempts were retried" in done.stderr


def test_reads_at_any_are_refused(target: Target) -> None:
    target.run("write n=10 cl=ANY no-warmup -rate threads=1")
    done = target.run("read n=10 cl=ANY no-warmup -pop seq=1..10 -rate threads=1", code=1)
    assert 'got "ANY"' in done.stderr


def test_a_rate_records_service_and_response_times(target: Target, tmp_path: Path) -> None:
    log = tmp_path / "stress.hlog"
    line = f"write n=200 no-warmup -pop seq=1..{POPULATION} -rate threads=4 fixed=200/s"
    target.run(line, "-log", f"hdrfile={log}")
    tags = set(re.findall(r"^Tag=([\w-]+),", log.read_text(), re.MULTILINE))
    assert tags == {"WRITE-st", "WRITE-rt"}


def test_transport_encrypts_the_connections(target: Target, tmp_path: Path) -> None:
    line = f"read n=100 no-warmup -pop seq=1..{POPULATION} -rate threads=2"
    done = target.run(line, "-transport", f"truststore={target.up.properties['cassandra.tls.ca']}")
    assert result(done.stdout, "total errors") == 0
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    refused = target.run(line, "-transport", f"truststore={store}", code=1)
    assert "is a Java keystore (JKS or PKCS#12), not PEM" in refused.stderr


@pytest.mark.parametrize("version", ["3", "4", "5"])
def test_every_protocol_version_reads_its_writes(target: Target, engine: Engine, version: str) -> None:
    target.up.systems("fresh", "cassandra", "usertable")
    line = f"cassandra -P workloads/workloada recordcount=200 cassandra.protocol={version} dataintegrity=true"
    arguments = target.up.arguments()
    loaded = engine.run(f"load {line}", *arguments)
    assert f"protocol {version}," in loaded.err
    # The lab does not know the settings of a server that it did not start.
    assert "commitlog_sync_period 10000ms" in loaded.err
    ran = engine.run(f"run {line} operationcount=400", *arguments)
    assert ran.returns("READ") == {"OK": 200}
    assert ran.returns("VERIFY") == {"OK": 200}


@dataclass(frozen=True)
class Proof:
    """The read-back of a ledger: exit status, findings and message."""

    status: int
    findings: dict[str, Any]
    message: str

    def count_lost_writes(self) -> int:
        """Acknowledged writes that are missing."""
        count: int = self.findings["lost"]["writes"]
        return count


def prove_writes(target: Target, home: Path, line: str, dropped: Collection[int]) -> Proof:
    """Runs a command line with a ledger, through a relay that drops writes, and reads the writes back."""
    address = ["-node", "127.0.0.1", "-mode", "native", "cql3", "protocolVersion=4"]
    program = str(target.program)
    with LosingCassandra(int(target.up.properties["port"]), dropped) as relay:
        command = [program, "cassandra-stress", *line.split(), *address, "-port", f"native={relay.port}"]
        printed = subprocess.run([*command, "--print-spec"], check=True, capture_output=True, text=True).stdout
        run = time.time_ns() // 1000
        spec = {**json.loads(printed), "run": run, "ledger": {"file": str(home / "writes.ledger")}}
        done = subprocess.run([program, "trial"], input=json.dumps(spec), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    spec["store"]["properties"]["port"] = target.up.properties["port"]
    (home / "spec.json").write_text(json.dumps(spec))
    back = subprocess.run(
        [program, "ledger", "--spec", str(home / "spec.json")], capture_output=True, text=True, timeout=60
    )
    return Proof(back.returncode, json.loads(back.stdout or "{}"), back.stderr)


# Three rounds over 200 partitions by one client; the drops are in the last round.
WRITTEN = "n=600 no-warmup -pop seq=1..200 -errors retries=0 ignore -rate threads=1"


@pytest.mark.parametrize("count", [0, 1, 7])
def test_ledger_finds_every_dropped_write(target: Target, tmp_path: Path, count: int) -> None:
    line = f"write {WRITTEN} -schema keyspace=proven_{count}"
    proof = prove_writes(target, tmp_path, line, range(450, 450 + count))
    assert (proof.status, proof.count_lost_writes()) == (count > 0, count), proof
    assert proof.findings["writes"]["acknowledged"] == 600
    assert proof.findings["proven"]["writes"] == 600 - count
    assert proof.findings["found"]["fine"] == 5 * (200 - count)
    # Dropped overwrites leave the values of the preceding write.
    target.run(f"read n=200 no-warmup -pop seq=1..200 -schema keyspace=proven_{count} -rate threads=2")


@pytest.mark.parametrize("count", [0, 1, 7])
def test_ledger_finds_dropped_writes_among_reads(target: Target, tmp_path: Path, count: int) -> None:
    target.run(f"write n=200 no-warmup -schema keyspace=mixed_{count} -rate threads=4")
    line = f"mixed ratio(write=1,read=1) {WRITTEN} -schema keyspace=mixed_{count}"
    proof = prove_writes(target, tmp_path, line, range(300 - count, 300))
    assert (proof.status, proof.count_lost_writes()) == (count > 0, count), proof
    assert proof.findings["writes"]["acknowledged"] == 300
    target.run(f"read n=200 no-warmup -pop seq=1..200 -schema keyspace=mixed_{count} -rate threads=2")


@pytest.mark.parametrize("count", [0, 1, 7])
def test_ledger_finds_every_dropped_increment(target: Target, tmp_path: Path, count: int) -> None:
    line = f"counter_write add=fixed(3) {WRITTEN} -schema keyspace=counted_{count}"
    proof = prove_writes(target, tmp_path, line, range(count))
    assert (proof.status, proof.count_lost_writes()) == (count > 0, count), proof
    assert proof.findings["found"]["fine"] == 5 * (200 - count)
    values = [row["C0"] for row in target.query(f"SELECT * FROM counted_{count}.counter1")]
    assert sorted(map(int, map(str, values))) == [6] * count + [9] * (200 - count)


def test_read_timestamps_are_the_ledgers(target: Target, tmp_path: Path) -> None:
    proof = prove_writes(target, tmp_path, f"write {WRITTEN} -schema keyspace=stamped", ())
    run = json.loads((tmp_path / "spec.json").read_text())["run"]
    rows = target.query('SELECT WRITETIME("C0") AS stamp FROM stamped.standard1')
    assert proof.status == 0
    assert sorted(int(str(row["stamp"])) for row in rows) == [run + index for index in range(400, 600)]


EXPERIMENT = """
question: Do reads take longer than writes?
systems: {cassandra: {store: cassandra, properties: {hosts: %s, port: %s}}}
vary: {command: [read, write]}
workload:
  cassandra-stress: {command: "{command} -schema keyspace=lab", population: 300}
clients: 2
measure: {warmup: 0, duration: 500ms}
repeats: 2
"""


def test_commands_are_the_workload_of_an_experiment(target: Target, tmp_path: Path) -> None:
    text = EXPERIMENT % (target.up.properties["hosts"], target.up.properties["port"])
    loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report")
    folder = single_folder(tmp_path)
    assert [(trial.end, trial.is_failure) for trial in trials(folder)] == [("done", False)] * 4
    statuses = {trial.config["command"]: trial.statuses for trial in trials(folder)}
    assert {name: set(counts) - {"CLEANUP"} for name, counts in statuses.items()} == {
        "read": {"READ"},
        "write": {"WRITE"},
    }
    assert all(set(counts[str(name).upper()]) == {"OK"} for name, counts in statuses.items())
    (specs,) = {
        json.loads(path.read_bytes())["work"]["keyspace"] for path in folder.path.glob("trials/*/run.spec.json")
    }
    assert specs == "lab"


SHARED = """
question: Do more clients read faster?
systems: {cassandra: {attach: {hosts: [%s], port: %s}, fresh: none}}
vary:
  matrix: {operation: [read, write], clients: [1, 2]}
  named: {setting: {first: {place: a}, second: {place: b}}}
workload:
  cassandra-stress: {command: "{operation} -schema keyspace={operation}_{place}", population: 300}
load: {reuse: copy, clients: 2}
measure: {warmup: 0, duration: 300ms}
pilot: false
repeats: 2
"""


def test_reads_share_populations_loaded_before_the_first_trial(target: Target, tmp_path: Path) -> None:
    text = SHARED % (target.up.properties["hosts"], target.up.properties["port"])
    loadstone(tmp_path, "run", experiment(tmp_path, text), "--no-report")
    folder = single_folder(tmp_path)
    done = trials(folder)
    assert [trial.end for trial in done] == ["done"] * 16
    assert all(set(trial.statuses[str(trial.config["operation"]).upper()]) == {"OK"} for trial in done)
    loads = [json.loads(path.read_bytes()) for path in folder.path.glob("loads/*/load.spec.json")]
    assert sorted(spec["work"]["keyspace"] for spec in loads) == ["read_a", "read_b"]
    assert {spec["clients"] for spec in loads} == {2}
    # Writes define their tables for each trial; reads load nothing.
    defining = {
        trial.config["operation"] for trial in done if (folder.files_of(trial.trial, 1) / "schema.spec.json").exists()
    }
    assert defining == {"write"}
