"""Logs of cassandra-stress, TestDFSIO, PerformanceEvaluation and go-ycsb."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from imports_support import FIXTURES, figures, read_single, read_whole, refusal, write_file
from loadstone.importers.read import read_file

MEGA = 2**20


# cassandra-stress.


def test_cassandra_stress_summary_is_in_base_units() -> None:
    run = read_single(FIXTURES / "cassandra-stress-write.txt")
    assert run.result.clients == 20
    assert run.result.loop == "closed"
    assert run.result.facts == {
        "tool": "cassandra-stress",
        "consistency": "ONE",
        "replication": 2,
        "mix": "100 % write",
        "records": 200_000,
        "record_bytes": 170,
        "distribution": "sequential",
    }
    assert run.result.statuses == {"WRITE": {"OK": 200_000, "ERROR": 0}}
    every = {
        "mean": 11_300_000,
        "p50": 2_400_000,
        "p95": 48_900_000,
        "p99": 146_000_000,
        "p99.9": 334_800_000,
        "max": 1_059_600_000,
    }
    assert figures(run) == {
        "throughput": (1752, "op/s", 200_000),
        "runtime": (114_200_000_000, "ns", 1),
        "operations": (200_000, "operations", 200_000),
        "errors": (0, "operations", 200_000),
        **{
            f"{name}.{statistic}": (pytest.approx(value), "ns", 200_000)
            for statistic, value in every.items()
            for name in ("all", "write")
        },
    }


def test_its_rows_are_the_course() -> None:
    series = read_single(FIXTURES / "cassandra-stress-read.txt").series
    assert series is not None
    assert (len(series.throughput), series.throughput[:2], series.throughput[-1]) == (27, (93, 201), 3138)
    assert series.start_seconds[:3] == (0, 5, 10)
    assert series.length_seconds[-1] == pytest.approx(3.7)
    assert (series.p50_ns[0], series.p99_ns[0]) == pytest.approx((175_800_000, 572_000_000))


def test_a_rate_makes_it_an_open_loop() -> None:
    result = read_single(FIXTURES / "cassandra-stress-write-throttle.txt").result
    assert (result.loop, result.facts["target"], result.facts["consistency"]) == ("open", 500, "QUORUM")


def translate_log(text: str) -> str:
    """A log with a German JVM's decimal commas and thousands points; the commas between cells are unchanged."""
    swap = str.maketrans(",.", ".,")
    lines = []
    for line in text.split("\n"):
        if line.startswith("total,"):
            cells = [cell.strip() for cell in line.split(",")]
            lines.append(", ".join(cell.replace(".", ",") for cell in cells))
        elif " op/s" in line or " ms" in line or line.startswith("Total partitions"):
            before, colon, figures_ = line.partition(" : ")
            figures_ = ", ".join(part.translate(swap) for part in figures_.split(", "))
            lines.append(before + colon + figures_)
        else:
            lines.append(line)
    return "\n".join(lines)


def test_another_locale_changes_nothing(tmp_path: Path) -> None:
    text = (FIXTURES / "cassandra-stress-write.txt").read_text()
    german = translate_log(text)
    assert "1.752 op/s" in german
    assert "[WRITE: 1.059,6 ms]" in german
    here, there = read_single(write_file(tmp_path, text)), read_single(write_file(tmp_path, german))
    assert there.result == here.result
    assert there.series == here.series


def test_operations_have_separate_figures(tmp_path: Path) -> None:
    text = (FIXTURES / "cassandra-stress-read.txt").read_text()
    mixed = (
        text.replace("[READ: 1,495 op/s]", "[READ: 1,121 op/s, WRITE: 374 op/s]")
        .replace("[READ: 167.9 ms]", "[READ: 170.1 ms, WRITE: 99.0 ms]")
        .replace("[READ: 200,000]", "[READ: 150,000, WRITE: 50,000]")
        .replace("Total errors              :          0 [READ: 0]", "Total errors : 7 [READ: 0, WRITE: 7]")
    )
    run = read_single(write_file(tmp_path, mixed))
    assert figures(run, "all.p99", "read.p99", "write.p99", "write.throughput", "errors") == {
        "all.p99": (pytest.approx(167_900_000), "ns", 200_000),
        "read.p99": (pytest.approx(170_100_000), "ns", 150_000),
        "write.p99": (pytest.approx(99_000_000), "ns", 50_000),
        "write.throughput": (374, "op/s", 50_000),
        "errors": (7, "operations", 200_000),
    }
    assert run.result.statuses["WRITE"] == {"OK": 50_000, "ERROR": 7}


def test_latencies_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    text = (FIXTURES / "cassandra-stress-read.txt").read_text().replace("13.2 ms", "NaN ms")
    run = read_single(write_file(tmp_path, text))
    assert {"all.mean", "read.mean"}.isdisjoint(run.result.values)
    assert "read.p50" in run.result.values


def test_cassandra_stress_before_2_1_is_refused(tmp_path: Path) -> None:
    text = (
        "total,interval_op_rate,interval_key_rate,latency,95th,99.9th,elapsed_time\n45868,4586,4586,5.1,17.1,103.1,10\n"
    )
    assert "this version is not supported" in refusal(write_file(tmp_path, text))


def test_stepped_runs_differ_by_clients(tmp_path: Path) -> None:
    text = (FIXTURES / "cassandra-stress-read.txt").read_text()
    settings, _, run = text.partition("Sleeping 2s...\n")
    twice = "".join(run.replace("Running READ with 20 threads", f"Running with {n} threadCount") for n in (4, 8))
    assert [dict(entry.result.config) for entry in read_file(write_file(tmp_path, settings + twice), {})] == [
        {"variant": "bench", "clients": 4},
        {"variant": "bench", "clients": 8},
    ]


def test_failed_operations_are_subtracted_from_the_rate(tmp_path: Path) -> None:
    text = (FIXTURES / "cassandra-stress-docker.txt").read_text()
    for before, after in (
        ("[WRITE: 500,000]", "[WRITE: 490,000]"),
        ("    500,000 [", "    490,000 ["),
        (" 18,020 pk/s", " 17,660 pk/s"),
        (" 0 [WRITE: 0]", " 10,000 [WRITE: 10,000]"),
    ):
        assert before in text, before
        text = text.replace(before, after)
    result = read_single(write_file(tmp_path, text, "cassandra-stress-docker.txt")).result
    assert result.value("throughput") == pytest.approx(18_020 * 0.98)
    assert (result.value("operations"), result.value("errors")) == (500_000, 10_000)
    assert [note.name for note in result.notes] == ["counts-failures"]


# TestDFSIO.


def test_testdfsio_bandwidths_are_per_task_in_mib() -> None:
    write, read_ = read_file(FIXTURES / "TestDFSIO_results.log", {})
    assert figures(write) == {
        "write.bandwidth": (31.9 * MEGA, "B/s", 4),
        "write.io_rate": (32.53 * MEGA, "B/s", 4),
        "write.io_rate_stddev": (4.76 * MEGA, "B/s", 4),
        "runtime": (14_440_000_000, "ns", 1),
    }
    assert figures(read_, "read.bandwidth", "runtime") == {
        "read.bandwidth": (119.13 * MEGA, "B/s", 4),
        "runtime": (9_280_000_000, "ns", 1),
    }
    assert read_.result.config == {"variant": "TestDFSIO_results", "test": "read"}
    assert read_.result.facts == {
        "tool": "testdfsio",
        "bandwidth_of": "task",
        "action": "read",
        "files": 4,
        "bytes": 256 * MEGA,
        "file_bytes": 64 * MEGA,
    }
    # Maps are tasks, not clients in a closed loop.
    assert read_.result.clients is None


def test_its_log_agrees_with_its_results_file() -> None:
    log = read_single(FIXTURES / "testdfsio-read.txt")
    assert log.result.values == read_file(FIXTURES / "TestDFSIO_results.log", {})[1].result.values


def test_results_of_one_file_are_numbered_or_repeats(tmp_path: Path) -> None:
    path = write_file(tmp_path, (FIXTURES / "TestDFSIO_results.log").read_text() * 3)
    names = [run.result.config["variant"] for run in read_file(path, {})]
    assert names == ["bench-1", "bench-1", "bench-2", "bench-2", "bench-3", "bench-3"]
    named = [run.result for run in read_file(path, {"variant": "px"})]
    assert [(result.config["test"], result.repeat) for result in named[-2:]] == [("write", 3), ("read", 3)]


def test_decimal_comma_and_zero_time_are_read(tmp_path: Path) -> None:
    text = (FIXTURES / "TestDFSIO_results.log").read_text()
    text = text.replace("31.9\n", "31,9\n").replace("32.53\n", "NaN\n").replace("read", "random read")
    write, random = read_file(write_file(tmp_path, text), {})
    assert figures(write, "write.bandwidth") == {"write.bandwidth": (31.9 * MEGA, "B/s", 4)}
    assert "write.io_rate" not in write.result.values
    assert "random_read.bandwidth" in random.result.values


@pytest.mark.parametrize("number", ["1,280", "31,904"])
def test_ambiguous_comma_of_testdfsio_is_refused(number: str, tmp_path: Path) -> None:
    text = (FIXTURES / "TestDFSIO_results.log").read_text().replace("31.9\n", f"{number}\n")
    assert "a comma before three digits" in refusal(write_file(tmp_path, text))


def test_total_throughput_in_unclear_units_is_ignored(tmp_path: Path) -> None:
    text = (FIXTURES / "TestDFSIO_results.log").read_text().partition("\n\n")[0] + "\n"
    more = text.replace(" Average IO", "Total Throughput mb/sec: 0.02\n Average IO")
    assert more != text
    assert (
        read_single(write_file(tmp_path, more)).result.values == read_single(write_file(tmp_path, text)).result.values
    )


# HBase PerformanceEvaluation.


def test_performance_evaluation_gives_the_sum_of_its_clients() -> None:
    run = read_single(FIXTURES / "hbase-pe-sequentialWrite.txt")
    assert run.result.config == {"variant": "hbase-pe-sequentialWrite", "test": "sequentialwrite"}
    assert (run.result.clients, run.result.loop) == (4, "closed")
    mean = (3892.74 + 4004.76 + 4104.93 + 3847) / 4
    assert figures(run, "throughput", "runtime", "operations", "sequentialwrite.max", "sequentialwrite.min") == {
        "throughput": (100_000 / 103.199, "op/s", 100_000),
        "runtime": (103_199_000_000, "ns", 1),
        "operations": (100_000, "operations", 100_000),
        "sequentialwrite.max": (1_842_272_000, "ns", 99_996),
        "sequentialwrite.min": (442_000, "ns", 99_996),
    }
    assert run.result.value("sequentialwrite.mean") == pytest.approx(mean * 1e3, rel=1e-3)


def test_percentiles_of_several_clients_are_not_put_together() -> None:
    result = read_single(FIXTURES / "hbase-pe-randomRead.txt").result
    assert not any(".p9" in metric or ".p5" in metric for metric in result.values)
    assert [note.name for note in result.notes] == ["percentiles-left-out"]


def test_a_single_client_keeps_its_percentiles(tmp_path: Path) -> None:
    log = (FIXTURES / "hbase-pe-randomRead.txt").read_text().replace('"numClientThreads":4', '"numClientThreads":1')
    log = log.replace("[48232, 49374, 50590, 50536]", "[49374]")
    alone = "\n".join(line for line in log.split("\n") if "TestClient-" not in line or "TestClient-1" in line)
    run = read_single(write_file(tmp_path, alone))
    assert figures(run, "randomread.p50", "randomread.p99.99", "throughput") == {
        "randomread.p50": (650_000, "ns", 24_999),
        "randomread.p99.99": (148_315_000, "ns", 24_999),
        "throughput": (25_000 / 49.374, "op/s", 25_000),
    }


# go-ycsb.


def test_sizes_of_values_are_not_latencies(tmp_path: Path) -> None:
    lines = (FIXTURES / "hbase-pe-1.1.txt").read_text().split("\n")
    last = next(index for index, line in enumerate(lines) if " Max      = " in line)
    start = lines[last].partition("Max ")[0]
    sizes = [f"{start}{text}" for text in ("valueSize after 10000000 measures", "Avg      = 500.2", "99th     = 990.0")]
    path = write_file(tmp_path, "\n".join(lines[: last + 1] + sizes + lines[last + 1 :]))
    assert read_single(path).result.values == read_single(FIXTURES / "hbase-pe-1.1.txt").result.values


def test_performance_evaluation_without_its_options_is_read(tmp_path: Path) -> None:
    text = (FIXTURES / "hbase-pe-1.1.txt").read_text()
    headless = read_single(write_file(tmp_path, text.partition("\n")[2]))
    assert headless.result.values == read_single(FIXTURES / "hbase-pe-1.1.txt").result.values
    assert headless.result.config["test"] == "sequentialwrite"


def test_go_ycsb_lines_are_read_after_the_run() -> None:
    run = read_single(FIXTURES / "go-ycsb.txt")
    assert (run.result.clients, run.result.loop) == (4, "closed")
    assert run.result.facts == {
        "tool": "go-ycsb",
        "phase": "run",
        "records": 1000,
        "operationcount": 8000,
        "record_bytes": 1000,
        "readallfields": "true",
        "store.basicdb.simulatedelay": 2,
        "store.basicdb.verbose": "false",
        "store.measurement.interval": 1,
        "mix": "50 % read, 50 % update",
        "distribution": "uniform",
    }
    assert run.result.statuses == {"READ": {"OK": 4033}, "UPDATE": {"OK": 3967}}
    assert figures(run, "throughput", "runtime", "operations", "errors", "read.mean", "read.p99.9", "all.p99") == {
        "throughput": (6777.0, "op/s", 8000),
        "runtime": (pytest.approx(1_180_327_830), "ns", 1),
        "operations": (8000, "operations", 8000),
        "errors": (0, "operations", 8000),
        "read.mean": (583_000, "ns", 4033),
        "read.p99.9": (2_235_000, "ns", 4033),
        "all.p99": (1_294_000, "ns", 8000),
    }


@pytest.mark.parametrize(("name", "reads"), [("go-ycsb-json.txt", 992), ("go-ycsb-table.txt", 994)])
def test_its_other_styles_have_the_same_figures(name: str, reads: int) -> None:
    plain, result = read_single(FIXTURES / "go-ycsb.txt"), read_single(FIXTURES / name)
    assert (result.result.clients, result.result.loop, result.result.facts["target"]) == (2, "open", 1000)
    assert result.result.statuses["READ"] == {"OK": reads}
    # A mean truncated to 0 µs contains no information.
    assert plain.result.values.keys() - result.result.values.keys() == {"read.mean", "update.mean", "all.mean"}


def test_its_intervals_count_from_the_start(tmp_path: Path) -> None:
    text = (FIXTURES / "go-ycsb.txt").read_text()
    start, stars, rest = text.rpartition("**********************************************\nRun finished")
    second = start[start.index("READ   -") :].replace("Takes(s): 1.0, Count: 3", "Takes(s): 3.0, Count: 5")
    series = read_single(write_file(tmp_path, start + second + stars + rest)).series
    assert series is not None
    assert series.throughput == pytest.approx((6771.0, 4000 / 2.0))
    assert series.length_seconds == (1.0, 2.0)


def test_derived_rate_omits_failed_operations(tmp_path: Path) -> None:
    lines = (FIXTURES / "go-ycsb-runs.md").read_text().split("\n")
    row = next(index for index, line in enumerate(lines) if line.startswith("READ"))
    failed = lines[row].replace("READ  ", "READ_ERROR ")
    runs = read_file(write_file(tmp_path, "\n".join([*lines[: row + 1], failed, *lines[row + 1 :]]), "a.md"), {})
    before = read_file(FIXTURES / "go-ycsb-runs.md", {})
    assert [run.result.value("throughput") for run in runs] == [run.result.value("throughput") for run in before]


def test_its_failed_operations_are_errors(tmp_path: Path) -> None:
    text = (FIXTURES / "go-ycsb.txt").read_text()
    last = text.rstrip("\n").rpartition("\n")[2]
    run = read_single(write_file(tmp_path, text + last.replace("UPDATE -", "UPDATE_ERROR -") + "\n"))
    assert run.result.statuses["UPDATE"] == {"OK": 3967, "ERROR": 3967}
    assert run.result.value("errors") == 3967
    assert "update-error.p99" in run.result.values


def test_checkpoints_of_sysbench_are_one_run() -> None:
    (imported,) = read_whole(FIXTURES / "sysbench-checkpoints.txt")
    run = imported.result
    events = 58_496 + 75_671 + 66_851
    assert run.value("operations") == events
    assert run.value("runtime") == pytest.approx(3.0326e9)
    assert run.value("throughput") == pytest.approx(events / 3.0326)
    assert run.value("all.max") == 106.83e6
    # Percentiles of the run's parts cannot be combined.
    assert run.value("all.p95") is None
    assert "percentiles-left-out" in [note.name for note in run.notes]
    assert imported.series is not None
    assert imported.series.throughput == pytest.approx((58_496 / 1.0001, 75_671 / 1.0045, 66_851 / 1.028), rel=1e-3)


def test_lost_last_report_after_checkpoints_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "sysbench-checkpoints.txt").read_text()
    cut = text[: text.rindex("CPU speed:")]
    assert "the sysbench report is truncated" in refusal(write_file(tmp_path, cut))


def test_log_levels_of_sysbench_are_not_fields(tmp_path: Path) -> None:
    path = FIXTURES / "sysbench-oltp.txt"
    line = "Threads started!"
    text = path.read_text().replace(line, f"DEBUG: thread (#0) started\nDEBUG: thread (#1) started\n{line}")
    assert "DEBUG" in text
    runs = read_file(write_file(tmp_path, text), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole(path)]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Benchmark 1: true\n  Time (mean ± σ):      13.3 ms ±   0.6 ms\n", "normal output"),
        ("command,mean,stddev,median,user,system,min,max\ntrue,1,2,3,4,5,6,7\n", "CSV"),
        ("| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n|:---|---:|\n", "table"),
        ('[cols="<,>"]\n|===\n| Command \n| Mean [ms] \n', "table"),
    ],
)
def test_summaries_of_hyperfine_name_its_option(text: str, title: str, tmp_path: Path) -> None:
    message = refusal(write_file(tmp_path, text))
    assert f"hyperfine's {title}" in message
    assert "--export-json" in message


def test_interrupted_redis_benchmark_has_no_result(tmp_path: Path) -> None:
    text = "GET: rps=45596.8 (overall: 43359.4) avg_msec=0.715 (overall: 0.756)\r" + " " * 60
    assert "bench.log has no results in the format redis-benchmark" in refusal(write_file(tmp_path, text))


def test_nodes_of_a_redis_cluster_are_facts(tmp_path: Path) -> None:
    node = "  node [{}] configuration:\n    save: {}\n    appendonly: no\n"
    text = (FIXTURES / "redis-benchmark.txt").read_text()
    host = re.compile(r'(  host configuration "save":.*\n)(  host configuration "appendonly":.*\n)')
    assert host.search(text)
    nodes = node.format(0, "3600 1") + node.format(1, "60 1") + node.format(2, "3600 1")
    text = host.sub(f"  cluster mode: yes (3 masters)\n{nodes}", text)
    for run in read_file(write_file(tmp_path, text), {}):
        facts = {"cluster_mode": "yes (3 masters)", "save": "3600 1; 60 1", "appendonly": "no"}
        assert run.result.facts.items() >= facts.items()


def test_unreadable_rate_of_scylla_bench_changes_no_latency(tmp_path: Path) -> None:
    path = FIXTURES / "scylla-bench.txt"
    text = path.read_text().replace("6000 op/s", "6,000 op/s")
    (run,) = read_file(write_file(tmp_path, text), {})
    assert "target" not in run.result.facts
    assert (run.result.loop, run.result.values) == ("open", read_whole(path)[0].result.values)


@pytest.mark.parametrize(
    ("name", "lines", "note"),
    [
        (
            "memtier.txt",
            "server 127.0.0.1:1 handle error response: -OOM command not allowed\n" * 2,
            '2 error replies of the server, which the tool counts as operations: "-OOM command not allowed"',
        ),
        (
            "redis-benchmark.csv",
            "Error from server: NOAUTH Authentication required.\n",
            '1 error reply of the server, which the tool counts as operations: "NOAUTH Authentication required."',
        ),
        (
            "pgbench-progress.txt",
            "client 3 script 0 aborted in command 5 query 0: ERROR:  deadlock detected\n",
            "pgbench reports that clients stopped because of errors: its figures are incomplete",
        ),
    ],
)
def test_errors_outside_the_report_are_noted(name: str, lines: str, note: str, tmp_path: Path) -> None:
    run = read_file(write_file(tmp_path, lines + (FIXTURES / name).read_text(), name), {})[0]
    assert note in [message.message for message in run.result.notes]


def test_sysbench_1_0_counts_no_fsync_events(tmp_path: Path) -> None:
    text = (FIXTURES / "sysbench-fileio.txt").read_text()
    # 1,316.85 reads and writes per second for 2.0053 s are 2,641 events.
    events = text.replace("6030", "2641")
    run = read_single(write_file(tmp_path, events))
    assert run.result.value("throughput") == pytest.approx(2641 / 2.0053)
    assert run.result.value("sync.throughput") == pytest.approx(1690.22)
    assert "contradict" in refusal(write_file(tmp_path, text.replace("6030", "4000")))


def test_rate_over_another_time_has_a_resolution(tmp_path: Path) -> None:
    text = (FIXTURES / "sysbench-memory.txt").read_text()
    events = int(read_whole(FIXTURES / "sysbench-memory.txt")[0].result.value("operations") or 0)
    short = re.sub(r"total time: +[\d.]+s", "total time: 0.0055s", text)
    short = re.sub(r"\([\d.]+ per second", f"({events / 0.0076:.2f} per second", short)
    run = read_single(write_file(tmp_path, short))
    assert run.result.value("throughput") == pytest.approx(events / 0.0055)
    assert run.result.values["throughput"].resolution == pytest.approx(events / 0.0055 - 1.005 * events / 0.0076)
    whole = read_whole(FIXTURES / "sysbench-memory.txt")[0].result.values["throughput"]
    assert whole.resolution < 0.001 * whole.value


def test_zero_rates_of_memtier_are_not_figures(tmp_path: Path) -> None:
    text = (FIXTURES / "memtier.txt").read_text()
    for rate in ("3880.06", "38294.46", "42174.52"):
        text = text.replace(rate, "0.00".rjust(len(rate)))
    run = read_single(write_file(tmp_path, text))
    assert "throughput" not in run.result.values
    assert [note.name for note in run.result.notes] == ["not-a-number"]
    assert run.result.value("all.p99") == 383_000


def test_hundredth_percentile_is_the_maximum(tmp_path: Path) -> None:
    text = (FIXTURES / "memtier.txt").read_text().replace("p99.9 Latency", "p100 Latency ")
    run = read_single(write_file(tmp_path, text))
    assert run.result.value("set.max") == 16_511_000
    assert "set.p100" not in run.result.values


def test_commands_of_memtier_are_facts(tmp_path: Path) -> None:
    command = "memtier_benchmark -t 2 -c 3 -n 500 --command='GET __key__' --command='INCR __key__' --command-ratio=2\n"
    run = read_single(write_file(tmp_path, command + (FIXTURES / "memtier.txt").read_text()))
    assert run.result.facts["work.command"] == "GET __key__; INCR __key__"
    assert run.result.facts["work.command_ratio"] == 2


RETRIES = """Timeout:		 30s
Max error number at row: unlimited
Retries:
  number:		 10
  handler:		 sb
Order by:		 none
IN queries:		 true
"""


def test_all_settings_of_scylla_bench_are_facts(tmp_path: Path) -> None:
    text = (FIXTURES / "scylla-bench.txt").read_text().replace("Timeout:\t\t 5s\n", RETRIES)
    run = read_single(write_file(tmp_path, text.replace("Fixed(512)", "Uniform(min=1024, max=2048)")))
    facts = {
        "work.timeout": "30s", "work.retries_number": 10, "work.retries_handler": "sb", "work.in_queries": "true",
        "work.order_by": "none", "work.clustering_row_size": "Uniform(min=1024, max=2048)",
    }  # fmt: skip
    assert run.result.facts.items() >= facts.items()
    assert "record_bytes" not in run.result.facts


def test_lines_before_the_settings_are_no_facts(tmp_path: Path) -> None:
    text = "Date: 2026-11-28\nHost: db1\n" + (FIXTURES / "scylla-bench.txt").read_text()
    assert (
        read_single(write_file(tmp_path, text)).result.facts
        == read_whole(FIXTURES / "scylla-bench.txt")[0].result.facts
    )


def test_maximum_below_its_intervals_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "scylla-bench.txt").read_text()
    before, after = text.split("\nResults\n")
    # cql-stress prints its totals in the unit of its histograms, which an option changes.
    damaged = f"{before}\nResults\n{after.replace('µs', 'ns').replace('ms', 'µs')}"
    assert "the maximum of an interval (0.0054 s) exceeds the maximum of the run (5.40672e-06 s)" in refusal(
        write_file(tmp_path, damaged)
    )


def test_failed_cycles_of_latte_are_subtracted(tmp_path: Path) -> None:
    text = (FIXTURES / "latte.json").read_text().replace('"error_count": 0', '"error_count": 600', 1)
    run = read_single(write_file(tmp_path, text))
    assert run.result.value("throughput") == pytest.approx(1999.93 * 0.9)
    assert [note.name for note in run.result.notes] == ["counts-failures"]
    assert run.result.values["all.p99"].bound == "failed"


def test_null_mean_of_latte_is_no_damage(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "latte.json").read_text())
    result = document["result"]
    result["cycle_count"] = result["request_count"] = 0
    result["log"], result["cycle_latency_by_fn"] = [], {}
    for name in ("cycle_throughput", "req_throughput", "row_throughput"):
        result[name]["value"] = None
    for name in ("cycle_latency", "request_latency"):
        result[name]["mean"]["value"] = None
        del result[name]["histogram"]
    run = read_single(write_file(tmp_path, json.dumps(document)))
    assert list(run.result.values) == ["runtime", "operations", "errors"]
    assert [note.name for note in run.result.notes] == ["not-a-number"]


@pytest.mark.parametrize(
    ("name", "start"),
    [("latte.json", 1_795_666_238_100_000_000), ("memtier.json", 1_795_666_350_757_000_000)],
)
def test_start_in_a_report_is_read(name: str, start: int) -> None:
    assert read_whole(FIXTURES / name)[0].result.start_unix_ns == start
