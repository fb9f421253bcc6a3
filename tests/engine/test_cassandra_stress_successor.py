"""Each of the 21 known bugs of cassandra-stress has a test, here or in another file, and a line in the guide."""

from __future__ import annotations

import os
import re
import signal
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from scripted_cassandra import (
    BLOB,
    INVALID,
    NAMES,
    OVERLOADED,
    UNAVAILABLE,
    WRITE_TIMEOUT,
    Answer,
    Execution,
    FakeCassandra,
    error,
    rows,
    string,
)
from stress_support import Stress, fail_every

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guides/coming-from-cassandra-stress.md"
HERE = "tests/engine/test_cassandra_stress_successor.py"
SCRIPTED = "tests/engine/test_cassandra_stress_faults.py"
COLLECTIONS = "tests/engine/test_cassandra_stress_collections.py"
# For each fault: a file, a test in it, and the beginning of a line in the guide.
FAULTS = {
    1: (HERE, "test_retried_insert_of_a_profile_sends_its_rows", "a retried `insert` of a profile"),
    2: (HERE, "test_unwritten_seeds_are_named_with_the_range", "`read` after a `duration=` write"),
    3: (HERE, "test_small_revisit_range_is_warned_about", "`-insert revisit=` of at most 1,084 values"),
    4: (SCRIPTED, "test_the_histogram_log_has_every_operation", "with `hdrfile=` on Java 11 and later"),
    5: (HERE, "test_truncate_names_only_existing_tables", "`truncate=once` names a table"),
    6: (SCRIPTED, "test_segments_are_disjoint_and_complete", "`no-wrap` ends in an exception"),
    7: (HERE, "test_lookback_reads_only_written_rows", "`read-lookback=` reads keys"),
    8: (HERE, "test_counters_are_incremented_on_every_round", "`counter_write` hangs"),
    9: ("tests/servers/test_profiles.py", "test_rows_with_clustering_columns_are_validated", "`validate` ends in"),
    10: (HERE, "test_slice_reads_are_validated", "`-col slice` fails every validation"),
    11: ("tests/servers/test_profiles.py", "test_rows_with_clustering_columns_are_validated", "`date` in `multirow`"),
    12: (HERE, "test_retries_pause_before_each_attempt", "retries follow immediately"),
    13: (HERE, "test_every_contact_point_is_tried", "one random contact point"),
    14: (COLLECTIONS, "test_gc_columns_agree_with_the_lab", "JMX is given"),
    15: (HERE, "test_failed_runs_end_before_their_duration", "hangs after connection errors"),
    16: (HERE, "test_refused_compact_storage_is_omitted", "servers from version 4.0 on refuse"),
    17: (HERE, "test_mode_of_generation_5_keeps_prepared_statements", "in version 5.0, any `-mode`"),
    18: (HERE, "test_output_frequency_is_a_duration", "in version 5.0, `output-frequency=`"),
    19: (HERE, "test_intervals_begin_with_the_run", "the first interval begins"),
    20: (SCRIPTED, "test_ten_thousand_clients_are_counted_exactly", "more than 1,024 requests"),
    21: ("tests/unit/test_import_histograms.py", "test_logs_of_500_processes_are_one_trial", "percentiles of several"),
}


@pytest.mark.parametrize("number", range(1, 22))
def test_every_fault_has_a_test_and_a_line(number: int) -> None:
    file, test, line = FAULTS[number]
    assert f"def {test}(" in (ROOT / file).read_text(), file
    assert f"\n| {line}" in GUIDE.read_text()


PROFILE = """
keyspace: keyspace1
table: standard1
columnspec:
  - {name: key, size: fixed(10)}
insert: {partitions: fixed(1)}
queries:
  one: {cql: "SELECT * FROM standard1 WHERE key = ?", fields: samerow}
"""


def test_retried_insert_of_a_profile_sends_its_rows(stress: Stress, tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE)
    with FakeCassandra(fail_every(2, error(WRITE_TIMEOUT))) as server:
        line = f"user profile={profile} ops(insert=1) n=10 no-warmup -rate threads=1 -errors min-delay-ms=1"
        outcome = stress(server, line)
    outcome.check_end()
    assert server.kinds == {"WRITE": 20}
    # Each row is sent twice: the attempt that failed, and the retry.
    sent = [dict(execution.values) for execution in server.executions]
    assert sent[::2] == sent[1::2]
    assert len(server.rows) == 10


def test_hidden_queries_of_profiles_are_warned_about(stress: Stress, tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE.replace("  one:", "  insert:"))
    with FakeCassandra() as server:
        outcome = stress(server, f"user profile={profile} ops(insert=1) n=10 no-warmup -rate threads=1")
    outcome.check_end()
    assert server.kinds == {"WRITE": 10}
    assert "warning: the query insert of the profile is not used" in outcome.stderr


def test_refused_insert_of_a_profile_is_an_error(stress: Stress, tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE)
    with FakeCassandra(lambda _: error(UNAVAILABLE)) as server:
        line = f"user profile={profile} ops(insert=1) n=10 no-warmup -rate threads=2 -errors retries=1 min-delay-ms=1"
        outcome = stress(server, f"{line} ignore")
    outcome.check_end()
    assert outcome.totals("errors")["total"] == 10
    assert not server.rows


def test_unwritten_seeds_are_named_with_the_range(stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=60 no-warmup -rate threads=2").check_end()
        outcome = stress(server, "read n=200 no-warmup -pop seq=1..1000 -rate threads=1")
    outcome.check_failure()
    reason = "seed 61 was never written; the write covered 1..60; use -pop seq=1..60"
    assert outcome.stderr.count(reason) == 1
    assert f"1 reads found no row: {reason}" in outcome.stderr


@pytest.mark.parametrize("line", ["read n=9 -pop seq=1..40", "read n=9 -pop seq=1..20", "read n=9 -compat 3.11"])
def test_rows_of_other_seeds_are_not_denied(stress: Stress, line: str) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=20 no-warmup -pop seq=21..40 -rate threads=2").check_end()
        outcome = stress(server, f"{line} -rate threads=1")
    outcome.check_failure()
    assert "nothing was written" not in outcome.stderr
    assert ("the table has rows, but none of these partitions" in outcome.stderr) == ("1..40" not in line)
    assert "loadstone-engine --help" not in outcome.stderr


def test_small_revisit_range_is_warned_about(stress: Stress) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, "write n=50 no-warmup -insert revisit=uniform(1..1000) -rate threads=2")
    outcome.check_end()
    # As with the tool, all partitions have the same key.
    assert len(server.rows) == 1
    assert "every partition has the same key" in outcome.stderr


@pytest.mark.parametrize("partitions", ["fixed(3)", "uniform(1..50)", "fixed(1)"])
@pytest.mark.parametrize("no_wrap", ["", "-pop seq=1..100 no-wrap"])
def test_partitions_of_inserts_are_counted_exactly(
    stress: Stress, tmp_path: Path, partitions: str, no_wrap: str
) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE.replace("fixed(1)", f"{partitions}, batchtype: UNLOGGED"))
    with FakeCassandra() as server:
        line = f"user profile={profile} ops(insert=1) n=100 no-warmup -rate threads=2"
        outcome = stress(server, f"{line} {no_wrap}")
    outcome.check_end()
    assert outcome.totals("partitions")["total"] == server.batched + server.kinds["WRITE"] == 100


@pytest.mark.parametrize("command", ["write", "counter_write"])
@pytest.mark.parametrize("truncate", ["once", "always"])
def test_truncate_names_only_existing_tables(stress: Stress, command: str, truncate: str) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, f"{command} n=5 no-warmup truncate={truncate} -rate threads=1")
    outcome.check_end()
    table = "standard1" if command == "write" else "counter1"
    assert [text for text in server.queries if text.startswith("TRUNCATE")] == [f"TRUNCATE keyspace1.{table}"]


def test_lookback_reads_only_written_rows(stress: Stress) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=1 no-warmup -rate threads=1").check_end()
        population = "-pop seq=1..500 read-lookback=uniform(1..20)"
        outcome = stress(server, f"mixed ratio(write=1,read=1) n=400 no-warmup {population} -rate threads=4")
    outcome.check_end()
    assert outcome.totals("errors") == {"READ": 0, "WRITE": 0, "total": 0}
    assert server.kinds["READ"] == 200


def test_counters_are_incremented_on_every_round(stress: Stress) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, "counter_write n=35 no-warmup -pop seq=1..10 -rate threads=4")
    outcome.check_end()
    assert sorted(counts["C0"] for counts in server.counters.values()) == [3] * 5 + [4] * 5


@pytest.mark.parametrize("is_damaged", [False, True])
def test_slice_reads_are_validated(stress: Stress, is_damaged: bool) -> None:
    with FakeCassandra() as server:
        stress(server, "write n=10 no-warmup -rate threads=1").check_end()

        def script(execution: Execution) -> Answer:
            if not is_damaged or execution.number != 15:
                return None
            row = server.rows[execution.key]
            values: list[bytes | None] = [execution.key, b"other", *(row[name] for name in NAMES[1:])]
            return rows([(name, BLOB) for name in ("key", *NAMES)], [values])

        server.script = script
        outcome = stress(server, "read n=10 no-warmup -pop seq=1..10 -col slice -rate threads=1")
    assert server.executions[-1].statement.text.startswith("SELECT * FROM")
    if is_damaged:
        outcome.check_failure()
        assert "Data returned was not validated" in outcome.stdout
    else:
        outcome.check_end()
        assert outcome.totals("partitions")["READ"] == 10


def test_insert_options_of_profiles_need_no_ratio(stress: Stress) -> None:
    with FakeCassandra() as server:
        line = "write n=10 no-warmup -insert partitions=fixed(2) batchtype=unlogged -rate threads=1"
        outcome = stress(server, line)
    outcome.check_end()
    assert len(server.rows) == 10
    assert "have no effect: the predefined commands write one row at a time" in outcome.stderr


def test_retries_pause_before_each_attempt(stress: Stress) -> None:
    with FakeCassandra(lambda _: error(OVERLOADED)) as server:
        stress(server, "write n=1 no-warmup -rate threads=1 -errors retries=3").check_failure()
    received = [execution.received for execution in server.executions]
    assert len(received) == 4
    # The pauses are 50 ms on average, and at least 40 ms.
    assert all(later - earlier > 0.03 for earlier, later in pairwise(received))


# The options of `-errors`, with the shortest pause before each of four retries, ms.
DELAYS = [
    ("delay-policy=constant min-delay-ms=100", [100, 100, 100, 100]),
    ("delay-policy=linear min-delay-ms=100 max-delay-ms=600", [100, 150, 225, 300]),
    ("delay-policy=exponential min-delay-ms=50", [50, 75, 150, 300]),
]


@pytest.mark.parametrize("code", [OVERLOADED, WRITE_TIMEOUT])
@pytest.mark.parametrize(("options", "shortest_ms"), DELAYS, ids=["constant", "linear", "exponential"])
def test_delays_between_retries_follow_policy(stress: Stress, options: str, shortest_ms: list[int], code: int) -> None:
    with FakeCassandra(lambda _: error(code)) as server:
        stress(server, f"write n=1 no-warmup -rate threads=1 -errors retries=4 {options}").check_failure()
    received = [execution.received for execution in server.executions]
    assert len(received) == 5
    # Pauses are never shorter than their minimum. The limit is lower, because the server may notice a request late.
    assert received[-1] - received[0] > 0.8 * sum(shortest_ms) / 1e3


def test_delays_never_exceed_their_maximum(stress: Stress) -> None:
    # Without the maximum, the last pause would be 17 years.
    options = "retries=40 delay-policy=exponential min-delay-ms=1 max-delay-ms=2"
    with FakeCassandra(lambda _: error(OVERLOADED)) as server:
        stress(server, f"write n=1 no-warmup -rate threads=1 -errors {options}").check_failure()
    assert len(server.executions) == 41


def test_every_contact_point_is_tried(stress: Stress) -> None:
    with FakeCassandra() as server:
        for _ in range(3):
            stress(server, "write n=5 no-warmup -rate threads=1", nodes="127.0.0.77,127.0.0.1").check_end()
    assert server.kinds == {"WRITE": 15}


def test_contact_points_have_ports(stress: Stress) -> None:
    with FakeCassandra() as server:
        line = "write n=5 no-warmup -rate threads=1"
        outcome = stress(server, line, nodes=f"127.0.0.1:{server.port}")
    outcome.check_end()
    assert "JMX" not in outcome.stderr
    # No garbage collections are measured, so there is no collection time.
    assert re.search(r"^Avg GC time +: +NaN ms", outcome.stdout, re.MULTILINE)


@pytest.mark.parametrize("length", ["duration=1h", "n=1M"])
def test_failed_runs_end_before_their_duration(stress: Stress, length: str) -> None:
    with FakeCassandra(lambda execution: error(INVALID) if execution.number >= 20 else None) as server:
        line = f"write {length} no-warmup -rate threads=4 throttle=100/s -errors retries=0"
        stress(server, line).check_failure()
    assert 20 < len(server.executions) <= 24


def test_unreachable_cluster_ends_the_run(stress: Stress) -> None:
    with FakeCassandra() as server:
        # No server listens on this address.
        outcome = stress(server, "write duration=1h no-warmup -rate threads=2", nodes="127.0.0.78")
    assert outcome.code == 1
    assert "Connection refused" in outcome.stderr


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("write n=9 -rate threads=0", "-rate threads="),
        ("counter_write n=9 keysize=0", "keysize="),
        ("write n=9 -col timestamp=9999999999999999999", "-col timestamp="),
        ("write duration=213503982334602d", "the length of the run"),
    ],
)
def test_refused_runs_create_no_tables(stress: Stress, line: str, option: str) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, line)
    assert outcome.code == 1
    assert f"error: {option}" in outcome.stderr
    assert not server.queries


def test_refused_compact_storage_is_omitted(stress: Stress) -> None:
    with FakeCassandra() as server:
        reason = "COMPACT STORAGE tables are not allowed starting with version 4.0"
        server.refuse = lambda text: error(INVALID, reason) if "COMPACT STORAGE" in text else None
        outcome = stress(server, "write n=5 no-warmup -rate threads=1 -compat 3.11")
    outcome.check_end()
    assert len(server.rows) == 5
    assert outcome.stderr.count("the server refuses COMPACT STORAGE") == 1


@pytest.mark.parametrize(("mode", "is_prepared"), [("maxPending=9", True), ("unprepared", False)])
def test_mode_of_generation_5_keeps_prepared_statements(stress: Stress, mode: str, is_prepared: bool) -> None:
    with FakeCassandra() as server:
        # An unprepared statement is a QUERY, for which the scripted server has no rows.
        outcome = stress(server, f"write n=5 no-warmup -compat 5 -mode {mode} -rate threads=1")
    outcome.check_end()
    assert (len(server.executions) == 5) == is_prepared
    assert ("-mode without prepared" in outcome.stderr) == is_prepared


def count_lines(stdout: str, start: str) -> int:
    """The number of lines that begin with `start`."""
    return sum(line.startswith(start) for line in stdout.splitlines())


@pytest.mark.parametrize(
    ("reporting", "row_count", "header_counts"),
    [
        # One row for the whole run, and one header.
        ("output-frequency=1h", range(1, 2), range(1, 2)),
        # Rows and headers every 100 ms.
        ("output-frequency=100ms header-frequency=100ms", range(3, 99), range(3, 99)),
        ("output-frequency=100ms", range(3, 99), range(1, 2)),
    ],
)
def test_output_frequency_is_a_duration(stress: Stress, reporting: str, row_count: range, header_counts: range) -> None:
    with FakeCassandra() as server:
        line = "write n=100 no-warmup -compat 5 -log interval=100ms -rate threads=1 throttle=100/s"
        outcome = stress(server, f"{line} -reporting {reporting}")
    outcome.check_end()
    assert count_lines(outcome.stdout, "total,") in row_count
    assert count_lines(outcome.stdout, "type") in header_counts


def test_intervals_begin_with_the_run(stress: Stress) -> None:
    with FakeCassandra() as server:
        line = "write n=100 no-warmup -log interval=100ms -rate threads=1 throttle=100/s"
        outcome = stress(server, line, environment={**os.environ, "LC_ALL": "de_DE.UTF-8"})
    outcome.check_end()
    cells = [line.split(",") for line in outcome.stdout.splitlines() if line.startswith("total,")]
    # The tool's first interval begins up to 1 s before the run. Whole intervals end at tenths of a second.
    seconds = [float(row[11]) for row in cells]
    assert seconds == sorted(seconds)
    assert 0.1 <= seconds[0] < 1.0
    assert int(cells[-1][1]) == 100
    # A locale with decimal commas would add columns.
    assert {len(row) for row in cells} == {19}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_results_survive_every_signal(stress: Stress, number: signal.Signals) -> None:
    with FakeCassandra() as server:
        line = "write n=1M no-warmup -rate threads=2 throttle=300/s"
        outcome = stress(server, line, interrupt=(20, number))
    assert outcome.code == 130
    assert outcome.totals("partitions")["WRITE"] == len(server.rows) >= 20


def test_summary_can_be_omitted(stress: Stress) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, "write n=10 no-warmup -log no-summary -rate threads=1")
    assert outcome.code == 0
    # The blank line before END belongs to the summary (StressMetrics.summarise).
    assert outcome.stdout.splitlines()[-1] == "END"
    assert "Results:" not in outcome.stdout
    assert count_lines(outcome.stdout, "total,") == 1


@pytest.mark.parametrize("compat", ["3.0", "3.11", "4", "5"])
def test_failure_has_a_status_in_every_generation(stress: Stress, compat: str) -> None:
    with FakeCassandra(lambda _: error(INVALID)) as server:
        outcome = stress(server, f"write n=10 no-warmup -compat {compat} -errors retries=0 -rate threads=1")
    outcome.check_failure()


def test_unavailable_replicas_are_named_with_counts(stress: Stress) -> None:
    address = bytes([4, 127, 0, 0, 99])
    unavailable = error(UNAVAILABLE, "Cannot achieve consistency level TWO", struct.pack(">Hii", 2, 2, 1))
    with FakeCassandra() as server:
        server.peers = ["127.0.0.99"]

        def script(execution: Execution) -> Answer:
            place = address + struct.pack(">i", server.port)
            if execution.number in (20, 40):
                change = "DOWN" if execution.number == 20 else "UP"
                server.announce(string("STATUS_CHANGE") + string(change) + place)
            return unavailable if 20 <= execution.number < 40 else None

        server.script = script
        line = "write n=100 cl=TWO no-warmup -errors ignore retries=0 -rate threads=1 throttle=100/s"
        outcome = stress(server, line)
    outcome.check_end()
    assert outcome.totals("errors") == {"WRITE": 20, "total": 20}
    (failure,) = re.findall(r"^WRITE: SERVICE_UNAVAILABLE.*$", outcome.stderr, re.MULTILINE)
    assert ", 20 operations: Unavailable: Cannot achieve consistency level TWO (2 required but only 1 alive)" in failure
    down = rf"127\.0\.0\.99:{server.port} was considered down from ([\d.]+) s to ([\d.]+) s"
    start, end = map(float, re.search(down, failure).groups())  # type: ignore[union-attr]
    assert 0 < start < end
    assert len(re.findall(down, outcome.stderr)) == 1


def test_silent_control_node_hides_no_event(stress: Stress) -> None:
    unavailable = error(UNAVAILABLE, "Cannot achieve consistency level TWO", struct.pack(">Hii", 2, 2, 1))
    with FakeCassandra() as first:
        second = FakeCassandra()
        second.address, second.port = "127.0.0.2", first.port
        first.peers = [second.address]
        place = bytes([4, 127, 0, 0, 99]) + struct.pack(">i", first.port)

        def announce(change: str, *servers: FakeCassandra) -> None:
            for server in servers:
                body = string("STATUS_CHANGE") + string(change) + place
                server._loop.call_soon_threadsafe(server.announce, body)

        def script(_: Execution) -> Answer:
            number = len(first.executions) + len(second.executions)
            if number == 20:
                # The first node reports nothing, like a paused node.
                announce("DOWN", second)
            if number == 40:
                announce("UP", first, second)
            return unavailable if 20 <= number < 40 else None

        first.script = second.script = script
        with second:
            outcome = stress(first, "write n=100 no-warmup -errors ignore retries=0 -rate threads=1 throttle=100/s")
    outcome.check_end()
    assert len(re.findall(r"127\.0\.0\.99:\d+ was considered down from [\d.]+ s to [\d.]+ s", outcome.stderr)) == 1
    assert first.listeners
    assert second.listeners


def test_credentials_come_from_a_file(stress: Stress, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("# CQL\ncql.username=user\ncql.password=right\njmx.password=other\n")
    with FakeCassandra() as server:
        server.login = ("user", "right")
        outcome = stress(server, f"write n=5 no-warmup -compat 5 -credentials-file {file} -rate threads=1")
    outcome.check_end()
    assert "right" not in outcome.stdout + outcome.stderr


def test_refused_login_names_the_options(stress: Stress) -> None:
    with FakeCassandra() as server:
        server.login = ("user", "right")
        outcome = stress(server, "write n=5 no-warmup -mode native cql3 user=user password=wrong -rate threads=1")
    assert outcome.code == 1
    assert "hint: set -mode native cql3 user= and password= for a role that may log in" in outcome.stderr


@pytest.mark.parametrize("group", ["-compat 5 -credentials-file {}", "-log file={}/log", "-graph file={}/page"])
def test_missing_files_are_named(stress: Stress, tmp_path: Path, group: str) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, f"write n=5 no-warmup -rate threads=1 {group.format(tmp_path / 'missing')}")
    assert outcome.code == 1
    assert "missing" in outcome.stderr
    assert "hint: " in outcome.stderr


@pytest.mark.parametrize("option", ["file", "hdrfile"])
def test_incomplete_logs_have_a_status(stress: Stress, option: str) -> None:
    with FakeCassandra() as server:
        outcome = stress(server, f"write n=5 no-warmup -rate threads=1 -log {option}=/dev/full")
    assert outcome.code == 1
    assert "error: cannot write /dev/full" in outcome.stderr
    assert outcome.stdout.endswith("\n\nEND\n")


def test_log_has_the_lines_of_every_step(stress: Stress, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with FakeCassandra() as server:
        assert stress(server, f"write n=8 -rate threads>=2 threads<=2 -log file={log}").code == 0
        lines = log.read_text().splitlines()
        outcome = stress(server, "write err<0.9 n>1 n<2 no-warmup -rate threads>=1 threads<=1 -log interval=100ms")
    assert outcome.code == 0
    assert {"Warming up WRITE with 2 iterations...", "Thread count was not specified"} <= set(lines)
    assert "\nWARNING: uncertainty mode (err<) results in uneven workload between thread runs" in outcome.stdout
    assert "WARNING" not in log.read_text()
