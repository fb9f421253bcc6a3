"""`loadstone cassandra-stress` on a scripted server: its output, compared with the requests that arrived."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadstone.engine.events import Summary
from loadstone.engine.histogram import decode_histogram
from loadstone.engine.trial import Spec, Trial, follow_trials
from loadstone.systems.redis.system import allow_connections
from scripted_cassandra import (
    BLOB,
    INVALID,
    NAMES,
    OVERLOADED,
    READ_TIMEOUT,
    SERVER_ERROR,
    UNAVAILABLE,
    VOID,
    WRITE_TIMEOUT,
    Answer,
    Column,
    Execution,
    FakeCassandra,
    Message,
    error,
    rows,
    string,
)
from stress_support import Stress, count_retries, fail_every

COLUMNS: list[Column] = [(name, BLOB) for name in NAMES]
DELAY_S = 0.05


@pytest.mark.parametrize("code", [WRITE_TIMEOUT, SERVER_ERROR, UNAVAILABLE, OVERLOADED])
def test_every_failed_attempt_is_retried_once(stress: Stress, code: int) -> None:
    with FakeCassandra(fail_every(11, error(code))) as server:
        outcome = stress(server, "write n=40 no-warmup -rate threads=3")
    outcome.check_end()
    # Of 44 executions, numbers 0, 11, 22 and 33 fail.
    assert server.kinds == {"WRITE": 44}
    assert count_retries(outcome) == 4
    assert outcome.totals("partitions") == {"WRITE": 40, "total": 40}
    assert outcome.totals("errors") == {"WRITE": 0, "total": 0}
    assert len(server.rows) == 40


def test_ignored_errors_are_counted_by_operation(stress: Stress) -> None:
    def script(execution: Execution) -> Answer:
        return error(READ_TIMEOUT) if execution.statement.kind == "READ" else None

    with FakeCassandra(script) as server:
        line = "mixed ratio(write=1,read=3) n=40 no-warmup -pop seq=1..10 -errors ignore retries=0 -rate threads=2"
        outcome = stress(server, line)
    outcome.check_end()
    assert server.kinds == {"READ": 30, "WRITE": 10}
    assert outcome.totals("errors") == {"READ": 30, "WRITE": 0, "total": 30}
    assert outcome.totals("partitions") == {"READ": 0, "WRITE": 10, "total": 10}


def test_a_persistent_error_ends_the_run(stress: Stress) -> None:
    def script(execution: Execution) -> Answer:
        return error(WRITE_TIMEOUT) if execution.number >= 7 else None

    with FakeCassandra(script) as server:
        outcome = stress(server, "write n=1000 no-warmup -errors retries=2 -rate threads=1")
    outcome.check_failure()
    assert server.kinds == {"WRITE": 7 + 3}
    key = server.executions[-1].key.hex()
    assert f"Operation x3 on key(s) [{key}]: Error executing: (TIMEOUT): WriteTimeout: scripted" in outcome.stdout


def test_all_attempts_are_counted_when_all_fail(stress: Stress) -> None:
    with FakeCassandra(lambda _: error(WRITE_TIMEOUT)) as server:
        outcome = stress(server, "write n=6 no-warmup -errors retries=2 ignore -rate threads=4")
    outcome.check_end()
    assert server.kinds == {"WRITE": 6 * 3}
    assert outcome.totals("errors") == {"WRITE": 6, "total": 6}
    assert count_retries(outcome) == 6 * 2


def test_forgotten_statements_are_prepared_again(stress: Stress) -> None:
    def script(execution: Execution) -> Answer:
        return execution.refuse_statement() if execution.number % 2 == 0 else None

    with FakeCassandra(script) as server:
        outcome = stress(server, "write n=50 no-warmup -rate threads=1")
    outcome.check_end()
    assert server.kinds == {"WRITE": 100}
    assert len(server.prepares) == 1 + 50
    assert outcome.totals("errors")["total"] == count_retries(outcome) == 0
    assert len(server.rows) == 50


@pytest.mark.parametrize("answer", ["close", "reset", "half", "stray", "twice"])
def test_damaged_connections_lose_no_writes(stress: Stress, answer: str) -> None:
    with FakeCassandra(lambda execution: answer if execution.number == 20 else None) as server:
        outcome = stress(server, "write n=60 no-warmup -errors retries=200 -rate threads=2")
    outcome.check_end()
    assert outcome.totals("partitions") == {"WRITE": 60, "total": 60}
    assert outcome.totals("errors")["total"] == 0
    assert (count_retries(outcome) > 0) == (answer not in ("stray", "twice")) == ("connection" in outcome.stderr)
    assert len(server.rows) == 60


def test_wrong_checksums_replace_the_connection(stress: Stress) -> None:
    with FakeCassandra(lambda execution: "corrupt" if execution.number == 20 else None, versions=(5,)) as server:
        outcome = stress(server, "write n=60 no-warmup -errors retries=200 -rate threads=2")
    outcome.check_end()
    assert "the checksum of a segment is wrong" in outcome.stderr
    assert outcome.totals("partitions") == {"WRITE": 60, "total": 60}
    assert len(server.rows) == 60


@pytest.mark.parametrize("versions", [(4,), (5,)])
def test_warnings_are_no_errors(stress: Stress, versions: tuple[int, ...]) -> None:
    with FakeCassandra(lambda _: "warned", versions=versions) as server:
        stress(server, "write n=20 no-warmup -rate threads=2").check_end()
        outcome = stress(server, "read n=20 no-warmup -pop seq=1..20 -rate threads=2")
    outcome.check_end()
    assert server.kinds == {"WRITE": 20, "READ": 20}
    assert count_retries(outcome) == 0


def read_row(execution: Execution, server: FakeCassandra) -> list[bytes | None]:
    """The row that a read requests."""
    return [server.rows[execution.key][name] for name in NAMES]


DAMAGES: dict[str, Callable[[list[bytes | None]], Message]] = {
    "no row": lambda row: rows(COLUMNS, []),
    "wrong value": lambda row: rows(COLUMNS, [[b"wrong", *row[1:]]]),
    "null": lambda row: rows(COLUMNS, [[None, *row[1:]]]),
    "two rows": lambda row: rows(COLUMNS, [row, row]),
    "swapped columns": lambda row: rows(COLUMNS, [row[::-1]]),
    "a second page": lambda row: rows(COLUMNS, [row], next_page=b"more"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_wrong_rows_end_the_run_unretried(stress: Stress, damage: str) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=10 no-warmup -rate threads=1").check_end()
        first = len(server.executions)

        def script(execution: Execution) -> Answer:
            is_damaged = execution.number == first + 5
            return DAMAGES[damage](read_row(execution, server)) if is_damaged else None

        server.script = script
        outcome = stress(server, "read n=10 no-warmup -pop seq=1..10 -rate threads=1")
    outcome.check_failure()
    key = server.executions[first + 5].key.hex()
    assert f"Operation x0 on key(s) [{key}]: Data returned was not validated" in outcome.stdout
    # A second page is another request.
    assert server.kinds["READ"] == 6 + (damage == "a second page")


def test_missing_rows_are_counted_as_errors(stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=10 no-warmup -rate threads=1")
        outcome = stress(server, "read n=15 no-warmup -pop seq=1..15 -errors ignore -rate threads=2")
    outcome.check_end()
    assert server.kinds["READ"] == 15
    assert outcome.totals("errors") == {"READ": 5, "total": 5}
    assert outcome.totals("partitions") == {"READ": 10, "total": 10}


def test_an_empty_page_is_followed(stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=10 no-warmup -rate threads=1")
        server.script = fail_every(2, rows(COLUMNS, [], next_page=b"more"))
        outcome = stress(server, "read n=10 no-warmup -pop seq=1..10 -rate threads=1")
    outcome.check_end()
    assert server.kinds["READ"] == 20
    assert outcome.totals("partitions") == {"READ": 10, "total": 10}


@pytest.mark.parametrize(
    "damage",
    [
        (VOID[0], rows(COLUMNS, [[b"x"] * 5])[1][:-3]),
        (VOID[0], rows(COLUMNS, [])[1][:-4] + struct.pack(">i", 2**31 - 1)),
        (VOID[0], rows(COLUMNS, [])[1][:-4] + struct.pack(">i", -5)),
        (VOID[0], struct.pack(">iii", 2, 1, 2**31 - 1)),
        rows([*COLUMNS, ("D", BLOB)], [[b"x"] * 6]),
        VOID,
    ],
    ids=["short", "too many rows", "negative rows", "too many columns", "an unannounced column", "no rows at all"],
)
def test_malformed_results_are_retried(stress: Stress, damage: Message) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=10 no-warmup -rate threads=1")
        first = len(server.executions)
        server.script = lambda execution: damage if execution.number == first + 5 else None
        outcome = stress(server, "read n=10 no-warmup -pop seq=1..10 -rate threads=1")
    outcome.check_end()
    assert server.kinds["READ"] == 11
    assert outcome.totals("errors") == {"READ": 0, "total": 0}


@pytest.mark.parametrize("line", ["n=103 -rate threads=7", "n=3 -rate threads=50", "n=1 -rate threads=1"])
def test_every_requested_operation_runs_once(stress: Stress, line: str) -> None:
    count = int(line.split()[0].removeprefix("n="))
    with FakeCassandra() as server:
        outcome = stress(server, f"write no-warmup {line}")
    outcome.check_end()
    assert server.kinds == {"WRITE": count}
    assert len(server.rows) == count
    assert outcome.totals("partitions") == {"WRITE": count, "total": count}


def test_segments_are_disjoint_and_complete(stress: Stress) -> None:
    parts = []
    for part in range(4):
        with FakeCassandra() as server:
            population = f"-pop seq=1..103 no-wrap segment={part}/4"
            outcome = stress(server, f"write n=1000 no-warmup {population} -rate threads=3")
        outcome.check_end()
        assert outcome.totals("partitions")["total"] == len(server.rows)
        parts.append(set(server.rows))
    assert [len(part) for part in parts] == [25, 26, 26, 26]
    assert len(set.union(*parts)) == 103


def test_late_answers_are_in_every_latency(stress: Stress) -> None:
    with FakeCassandra() as server:
        server.delay_s = DELAY_S
        outcome = stress(server, "write n=20 no-warmup -rate threads=4")
    outcome.check_end()
    # The limit is a tenth below the delay, because timers may fire early and latencies are rounded.
    for label in ("mean", "median", "99th percentile", "max"):
        assert outcome.latency_ms(label) >= DELAY_S * 1e3 * 0.9


def test_a_retry_is_part_of_the_latency(stress: Stress) -> None:
    with FakeCassandra(fail_every(2, error(WRITE_TIMEOUT))) as server:
        server.delay_s = DELAY_S
        outcome = stress(server, "write n=5 no-warmup -errors min-delay-ms=1 -rate threads=1")
    outcome.check_end()
    assert server.kinds == {"WRITE": 10}
    assert outcome.latency_ms("median") >= 2 * DELAY_S * 1e3 * 0.9


def test_a_stall_delays_the_responses_behind_it(stress: Stress, tmp_path: Path) -> None:
    log, stall_s, rate, count = tmp_path / "stress.hlog", 0.5, 100, 100
    with FakeCassandra() as server:

        def script(execution: Execution) -> Answer:
            server.delay_s = stall_s if execution.number == 20 else 0.0
            return None

        server.script = script
        line = f"write n={count} no-warmup -rate threads=1 fixed={rate}/s -log hdrfile={log}"
        stress(server, line).check_end()
    histograms: dict[str, list[float]] = {}
    for tag, text in re.findall(r"^Tag=([\w-]+),(?:[\d.]+,){3}(\S+)$", log.read_text(), re.MULTILINE):
        histogram = decode_histogram(text)
        late_ns = [histogram.value_at_quantile(rank / histogram.count) for rank in range(1, histogram.count + 1)]
        histograms.setdefault(tag, []).extend(late_ns)
    assert {tag: len(values) for tag, values in histograms.items()} == {"WRITE-st": count, "WRITE-rt": count}
    # Of the 50 operations due in the stall, each waited at least until the end of the stall: a ramp in steps of 10 ms.
    responses = sorted(histograms["WRITE-rt"], reverse=True)
    for position in range(0, 40, 10):
        assert responses[position] >= (stall_s - position / rate) * 1e9 * 0.9
    assert max(histograms["WRITE-st"]) >= stall_s * 1e9 * 0.9


def test_histogram_times_begin_with_the_run(stress: Stress, tmp_path: Path) -> None:
    log = tmp_path / "stress.hlog"
    with FakeCassandra() as server:
        server.delay_s = DELAY_S
        # The warm-up takes at least 1.25 s.
        stress(server, f"write n=100 -rate threads=1 -log hdrfile={log}").check_end()
        end_s = time.time()
    (base_s,) = map(float, re.findall(r"^#\[BaseTime: ([\d.]+)", log.read_text(), re.MULTILINE))
    spans = re.findall(r"^Tag=WRITE-st,([\d.]+),([\d.]+),", log.read_text(), re.MULTILINE)
    assert end_s - 1 < base_s + sum(map(float, spans[-1])) < end_s


def test_histogram_times_grow_over_steps(stress: Stress, tmp_path: Path) -> None:
    log = tmp_path / "stress.hlog"
    with FakeCassandra() as server:
        line = f"read n=50 no-warmup -errors ignore retries=0 -rate threads>=2 threads<=4 -log hdrfile={log}"
        assert stress(server, line).code == 0
    first, second = map(float, re.findall(r"^Tag=READ-st,([\d.]+),", log.read_text(), re.MULTILINE))
    assert first < second


def test_interrupted_warm_up_has_the_status_130(stress: Stress) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, "write n=1M -rate threads=2", interrupt=(50, signal.SIGINT))
    assert outcome.code == 130
    assert "note: the run was interrupted during the warm-up" in outcome.stderr
    assert "Results:" not in outcome.stdout


def test_interrupted_pause_keeps_the_results(program: Path) -> None:
    with FakeCassandra() as server:
        line = "write n=20 no-warmup -rate threads>=2 threads<=4 -node 127.0.0.1"
        arguments = [str(program), "cassandra-stress", *line.split(), "-port", f"native={server.port}"]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            lines = list(iter(process.stdout.readline, "Sleeping for 15s\n"))
            process.send_signal(signal.SIGINT)
            table = process.communicate(timeout=10)[0]
    assert process.returncode == 130
    assert "Results:\n" in lines
    assert "2 threadCount, total," in table
    assert server.kinds == {"WRITE": 20}


@pytest.mark.parametrize("refused", [("COMPACT STORAGE", "SimpleStrategy"), ("SimpleStrategy",)])
def test_refused_parts_of_definitions_are_replaced(stress: Stress, refused: tuple[str, ...]) -> None:
    def refuse(text: str) -> Answer:
        return next((error(INVALID, f"{part} is not supported") for part in refused if part in text), None)

    with FakeCassandra() as server:
        server.refuse = refuse
        outcome = stress(server, "write n=5 no-warmup -compat 3.11 -rate threads=1")
    outcome.check_end()
    assert outcome.stderr.count("note: the server refuses") == len(refused)


def test_the_histogram_log_has_every_operation(stress: Stress, tmp_path: Path) -> None:
    log = tmp_path / "stress.hlog"
    with FakeCassandra(fail_every(3, error(WRITE_TIMEOUT))) as server:
        line = f"write n=30 no-warmup -errors ignore retries=0 -rate threads=2 -log hdrfile={log} interval=100ms"
        outcome = stress(server, line)
    outcome.check_end()
    assert outcome.totals("errors") == {"WRITE": 10, "total": 10}
    entries = re.findall(r"^Tag=WRITE-st,(?:[\d.]+,){3}(\S+)$", log.read_text(), re.MULTILINE)
    assert sum(decode_histogram(entry).count for entry in entries) == server.kinds["WRITE"] == 30


def test_graph_has_every_run(stress: Stress, tmp_path: Path) -> None:
    page = tmp_path / "graph.html"
    with FakeCassandra() as server:
        for revision in ("first", "second"):
            stress(server, f"write n=30 no-warmup -rate threads=2 -graph file={page} revision={revision} title=Title")
    text = page.read_text().partition("/* stats start */")[2].partition("/* stats end */")[0]
    stats = json.loads(text.strip().removeprefix("stats = ").removesuffix(";"))
    assert [run["revision"] for run in stats["stats"]] == ["first", "second"]
    for run in stats["stats"]:
        assert sum(row[0] is None for row in run["intervals"]) == len(run["intervals"]) > 0
        assert run["intervals"][-1][run["metrics"].index("total ops")] == 30
        assert run["total partitions"].split()[0] == "30"


def test_failed_step_keeps_graph_of_earlier_steps(stress: Stress, tmp_path: Path) -> None:
    page = tmp_path / "graph.html"
    with FakeCassandra() as server:
        stress(server, "write n=60 no-warmup -rate threads=2").check_end()
        # The first step takes 60 further requests.
        server.script = lambda execution: error(SERVER_ERROR) if execution.number > 130 else None
        line = "read n=60 no-warmup -pop seq=1..60 -errors retries=0 -rate threads>=2 threads<=4"
        outcome = stress(server, f"{line} -graph file={page}")
    assert outcome.code == 1
    text = page.read_text().partition("/* stats start */")[2].partition("/* stats end */")[0]
    stats = json.loads(text.strip().removeprefix("stats = ").removesuffix(";"))
    assert [run["total partitions"].split()[0] for run in stats["stats"]] == ["60"]


def test_an_interrupted_run_prints_its_results(stress: Stress) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, "write n=1M no-warmup -rate threads=2 throttle=300/s", interrupt=(50, signal.SIGINT))
    assert outcome.code == 130
    assert 50 <= outcome.totals("partitions")["WRITE"] == server.kinds["WRITE"] == len(server.rows)


def test_events_and_absent_peers_lose_nothing(stress: Stress) -> None:
    with FakeCassandra() as server:
        server.peers = ["127.0.0.99"]
        address = bytes([4, 127, 0, 0, 1]) + struct.pack(">i", server.port)

        def script(execution: Execution) -> Answer:
            if execution.number == 20:
                for kind, change in (("STATUS_CHANGE", "DOWN"), ("STATUS_CHANGE", "UP"), ("NONSENSE", "SIDEWAYS")):
                    server.announce(string(kind) + string(change) + address)
                server.announce(b"\xff\xff")
            return None

        server.script = script
        outcome = stress(server, "write n=60 no-warmup -rate threads=2 throttle=300/s")
    outcome.check_end()
    assert server.listeners
    assert server.kinds == {"WRITE": 60}
    assert outcome.totals("errors") == {"WRITE": 0, "total": 0}


@pytest.mark.parametrize("versions", [(4,), (3, 4, 5)])
def test_reads_validate_in_every_version(stress: Stress, versions: tuple[int, ...]) -> None:
    with FakeCassandra(versions=versions) as server:
        stress(server, "write n=20 no-warmup -rate threads=2").check_end()
        outcome = stress(server, "read n=20 no-warmup -pop seq=1..20 -rate threads=2")
    outcome.check_end()
    assert server.spoken == {max(versions)}


def test_counters_add_up(stress: Stress) -> None:
    with FakeCassandra(fail_every(7, error(WRITE_TIMEOUT))) as server:
        for _ in range(2):
            stress(server, "counter_write n=12 add=fixed(3) no-warmup -rate threads=2").check_end()
        outcome = stress(server, "counter_read n=12 no-warmup -pop seq=1..12 -rate threads=2")
    outcome.check_end()
    assert outcome.totals("partitions") == {"COUNTER_READ": 12, "total": 12}
    assert [dict(counts) for counts in server.counters.values()] == [dict.fromkeys(NAMES, 6)] * 12


@pytest.mark.parametrize(("password", "code"), [("right", 0), ("wrong", 1)])
def test_a_password_decides_on_access(stress: Stress, password: str, code: int) -> None:
    with FakeCassandra() as server:
        server.login = ("user", "right")
        outcome = stress(server, f"write n=5 no-warmup -mode native cql3 user=user password={password} -rate threads=1")
    assert outcome.code == code
    assert ("BadCredentials" in outcome.stderr) == (code == 1)
    assert len(server.rows) == (5 if code == 0 else 0)


def test_further_challenges_of_a_login_are_refused(stress: Stress) -> None:
    with FakeCassandra() as server:
        server.login, server.has_challenge = ("user", "right"), True
        outcome = stress(server, "write n=5 no-warmup -mode native cql3 user=user password=right -rate threads=1")
    assert outcome.code == 1
    assert "requires more than a user name and a password" in outcome.stderr
    assert not server.executions


@pytest.mark.parametrize("verb", ["UPDATE", "CREATE TABLE"])
def test_a_refused_statement_ends_the_run(stress: Stress, verb: str) -> None:
    with FakeCassandra() as server:
        server.refuse = lambda text: error(INVALID, "no such column") if text.startswith(verb) else None
        outcome = stress(server, "write n=5 no-warmup -rate threads=1")
    assert outcome.code == 1
    assert "Invalid: no such column" in outcome.stderr
    assert "Results:" not in outcome.stdout
    assert not server.executions


# Limits in bytes: peak resident memory of an engine with 10,000 clients, and memory of a client with a connection.
MEMORY_MAX, CLIENT_MEMORY_MAX = 150_000_000, 10_000


def write_spec(program: Path, server: FakeCassandra, clients: int, operations: int, pace: str = "") -> Spec:
    """The spec of a trial that writes."""
    line = ["cassandra-stress", "write", f"n={operations}", "no-warmup", "-rate", f"threads={clients}", *pace.split()]
    options = ["-node", "127.0.0.1", "-port", f"native={server.port}", "-errors", "ignore", "retries=0", "--print-spec"]
    printed = subprocess.run([str(program), *line, *options], check=True, capture_output=True, text=True).stdout
    return {**json.loads(printed.splitlines()[-1]), "wait_for_start": False}


@pytest.fixture
def raise_file_limit() -> Iterator[None]:
    """Allows the scripted server of a test to accept 10,000 connections."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    allow_connections(10_100)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[0], resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@pytest.mark.usefixtures("raise_file_limit")
@pytest.mark.parametrize(
    ("engines", "connections", "pace"), [(1, "shared", ""), (4, "shared", ""), (1, "client", "fixed=2000/s")]
)
def test_ten_thousand_clients_are_counted_exactly(program: Path, engines: int, connections: str, pace: str) -> None:
    """The clients share a few connections, or each has one. One engine performs all operations, or four engines perform
    a share each."""
    with FakeCassandra(fail_every(1000, error(INVALID))) as server:
        spec = write_spec(program, server, 10_000, 12_000, pace)
        spec["store"]["properties"] |= {"cassandra.connections": connections, "cassandra.connecttimeoutmillis": "60000"}
        specs = [{**spec, "segment": {"k": k, "n": engines}} for k in range(engines)]
        with ExitStack() as stack:
            trials = [stack.enter_context(Trial(share)) for share in specs]
            summaries = [event for _, event in follow_trials(*trials) if isinstance(event, Summary)]
    assert len(summaries) == engines
    assert (len(server.startups) >= 10_000) == (connections == "client")
    assert server.kinds == {"WRITE": 12_000}
    assert sum(summary.operations for summary in summaries) == 12_000
    # Execution 0 and every thousandth after it.
    assert sum(summary.failures for summary in summaries) == 12
    assert sum(summary.in_flight + summary.unsent for summary in summaries) == 0
    assert max(summary.memory_bytes_max for summary in summaries) < MEMORY_MAX


@pytest.mark.parametrize("version", [4, 5])
def test_each_clients_connection_needs_little_memory(program: Path, version: int) -> None:
    counts, peaks = (200, 2_200), []
    for clients in counts:
        with FakeCassandra(versions=(version,)) as server:
            spec = write_spec(program, server, clients, 3 * clients)
            spec["store"]["properties"]["cassandra.connections"] = "client"
            with Trial(spec) as trial:
                peaks += [event.memory_bytes_max for _, event in follow_trials(trial) if isinstance(event, Summary)]
        assert len(server.startups) >= clients
        # Each executor prepares the statement once.
        assert len(server.prepares) <= (os.cpu_count() or 1)
    assert (peaks[1] - peaks[0]) / (counts[1] - counts[0]) < CLIENT_MEMORY_MAX
