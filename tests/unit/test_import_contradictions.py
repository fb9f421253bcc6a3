"""Reports whose parts contradict each other, or that contain lines from another run: nothing is imported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from imports_support import FIXTURES, read_single, refusal, try_read, write_file
from loadstone.importers.read import read_file


@pytest.mark.parametrize(
    ("name", "line", "twice"),
    [
        ("go-ycsb.txt", "READ   - Takes(s): 1.2, Count: 4033", "Count: 8066"),
        ("cassandra-stress-write.txt", "Total partitions", "[WRITE: 400,000]"),
        ("pgbench-scripts.txt", " - 3772 transactions", " - 8000 transactions"),
        ("memtier.txt", "Gets        38294.46", "Gets        78294.46"),
        ("sysbench-oltp.txt", "total number of events:              438", "total number of events:              876"),
        ("redis-benchmark.txt", "20000 requests completed", "40000 requests completed"),
        ("ycsb-cpp.txt", "Load operations(ops): 5000000", "Load operations(ops): 9000000"),
        ("scylla-bench.txt", "Total ops:\t 18000", "Total ops:\t 36000"),
        ("hbase-pe-1.1.txt", "on 10000000 measures", "on 20000000 measures"),
        ("latte.json", '"cycle_count": 6000', '"cycle_count": 9000'),
        ("ycsb-0.1.4-no-buckets.txt", "[READ], Return=0, 509", "[READ], Return=0, 9509"),
    ],
)
def test_operations_beyond_the_total_are_refused(name: str, line: str, twice: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    assert line in text
    more = re.sub(r"\[WRITE: [\d,]+\]$", twice, text, flags=re.M) if twice.startswith("[") else text
    more = text.replace(line, line.partition("Count")[0] + twice if twice.startswith("Count") else twice, 1) \
        if more == text else more  # fmt: skip
    assert more != text
    assert try_read(write_file(tmp_path, more, name)) is None


@pytest.mark.parametrize(
    ("name", "figure", "other"),
    [
        ("cassandra-stress-read.txt", "0 [READ: 0]", "7 [READ: 0]"),
        ("cassandra-stress-read.txt", "[READ: 1,495 op/s]", "[READ: 9,495 op/s]"),
        ("cassandra-stress-read.txt", "00:02:13", "00:22:13"),
        ("cassandra-stress-read.txt", "1,495 op/s", "4,495 op/s"),
        ("go-ycsb.txt", "Count: 8000, OPS: 6777.0", "Count: 8000, OPS: 1777.0"),
        ("fio-normal.txt", "total=1024,0,0,0", "total=9024,0,0,0"),
        ("fio-normal.txt", "max=12240", "max=12,240"),
        ("fio-normal.txt", "(4096KiB/45msec)", "(9096KiB/45msec)"),
        ("fio-normal.txt", "(4096KiB/45msec)", "(4096KiB/95msec)"),
        ("fio-2.2-normal.txt", "bw=409600B/s", "bw=909600B/s"),
        ("fio-mixed.json", '"iops" : 9320.261438', '"iops" : -9320.261438'),
        ("fio-mixed.json", '"iops" : 9320.261438', '"iops" : 1e300'),
        ("fio-mixed.json", '"total_ios" : 1426', '"total_ios" : 4426'),
        ("fio-mixed.json", '"N" : 1426', '"N" : 4426'),
        ("fio-mixed.json", '"bw_bytes" : 38175790', '"bw_bytes" : 98175790'),
        ("pgbench-progress.txt", "actually processed: 1026", "actually processed: 9026"),
        ("pgbench-progress.txt", "actually processed: 1026", "actually processed: 102"),
        ("pgbench-progress.txt", "tps = 341.554499", "tps = 941.554499"),
        ("pgbench-progress.txt", "duration: 3 s", "duration: 30 s"),
        ("pgbench-progress.txt", "latency average = 11.693 ms", "latency average = 11.693 ms\nlatency average = 1 ms"),
        ("pgbench-scripts.txt", "tps = 2360.030354", "tps = 3360.030354"),
        ("pgbench-scripts.txt", "<builtin: simple update>", "<builtin:"),
        ("hbase-pe-randomRead.txt", "Num measures (latency) : 24999", "Num measures (latency) : 24,999"),
        ("fio-two-jobs.json", '"99.990000" : ', '"181248" : '),
        ("pgbench-reconnect.txt", "number of failed transactions: 2 (0.474%)\n", ""),
        ("sysbench-fileio.txt", "2.0053s", "4.0053s"),
        ("scylla-bench.txt", "Concurrency:\t\t 7", "Concurrency:\t\t 7\nConcurrency:\t\t 9"),
        ("go-ycsb.txt", '"threadcount"="4"', '"threadcount"="4"\n"threadcount"="8"'),
        ("memtier.txt", "2         Threads", "2         Threads\n4         Threads"),
        (
            "cassandra-stress-read.txt",
            "Latency mean",
            "Latency mean              :   99.9 ms [READ: 99.9 ms]\nLatency mean",
        ),
        ("redis-benchmark-command.txt", "50000.00", "90000.00"),
        ("sysbench-oltp.txt", "(141.73 per sec.)", "(741.73 per sec.)"),
        ("sysbench-oltp.txt", "3.0899s", "9.0899s"),
        ("sysbench-1.1.txt", "99.9475", "19.9475"),
        ("hbase-pe-randomRead.txt", "Finished TestClient-1 in 49374ms", "Finished TestClient-1 in 99374ms"),
        ("memtier.json", '"Total duration": 71', '"Total duration": 171'),
        ("terasort.txt", "Reduce output records=1000000", "Reduce output records=100000"),
        ("hyperfine.json", '"median": 0.011481463', '"median": 0.911481463'),
        ("hyperfine.json", '"max": 0.011702371000000001', '"max": 0.0917'),
        ("hyperfine.json", "0.011309759,", "-0.011309759,"),
        ("latte.json", '"value": 1999.93', '"value": 9999.93'),
        ("latte.json", '"elapsed_time_s": 3.0001', '"elapsed_time_s": 30.0001'),
        ("TestDFSIO_results.log", "Number of files: 4", "Number of files: 0"),
        ("TestDFSIO_results.log", ": 31.9", ": -31.9"),
        ("../ycsb/run_a.out", "[UPDATE], MinLatency(us), 23", "[UPDATE], MinLatency(us), -23"),
        ("../ycsb/run_a.out", "[UPDATE], Operations, 296", "[UPDATE], Operations, 1,296"),
    ],
)
def test_contradicting_figures_are_refused(name: str, figure: str, other: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    assert figure in text
    assert try_read(write_file(tmp_path, text.replace(figure, other), Path(name).name)) is None


@pytest.mark.parametrize("name", ["cassandra-stress.hlog", "../ycsb/hdr_READ.hdr"])
@pytest.mark.parametrize("copies", ["one line", "every line"])
def test_repeated_intervals_of_histograms_are_refused(name: str, copies: str, tmp_path: Path) -> None:
    lines = (FIXTURES / name).read_text().rstrip("\n").split("\n")
    repeated = lines[-1:] if copies == "one line" else lines
    assert try_read(write_file(tmp_path, "\n".join([*lines, *repeated, ""]), Path(name).name)) is None


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("go-ycsb.txt", "Run finished"),
        ("pgbench-progress.txt", "transaction type"),
        ("sysbench-oltp.txt", "SQL statistics"),
        ("sysbench-rate.txt", "General statistics"),
        ("scylla-bench.txt", "\nResults"),
        ("ycsb-cpp.txt", "Load runtime"),
        ("cassandra-stress-write.txt", "Results:"),
        ("hbase-pe-randomRead.txt", "2026-11-21T09:51:05,701"),
        ("terasort.txt", "Counters: 36"),
        ("accelerated.log", "[OVERALL]"),
        ("redis-benchmark.txt", "Cumulative distribution"),
    ],
)
def test_interrupted_run_before_another_is_refused(name: str, end: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    assert end in text
    assert try_read(write_file(tmp_path, text[: text.index(end)] + text, name)) is None


def test_sign_outside_of_json_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "fio-mixed.json").read_text()
    assert try_read(write_file(tmp_path, text.replace("{", '{}, "', 1), "fio.json")) is None


def test_direction_within_the_options_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "fio-2.15.json").read_text()
    damaged = re.sub(r'"runtime": "180"\s*\},\s*"read": \{', '"runtime": "180",', text)
    assert damaged != text
    assert try_read(write_file(tmp_path, damaged, "fio.json")) is None


YCSB_LOAD = """[OVERALL], RunTime(ms), 200000
[OVERALL], Throughput(ops/sec), 5000.0
"""


def ycsb_block(name: str, count: int) -> str:
    figures = ("AverageLatency(us), 300.0", "MinLatency(us), 100", "MaxLatency(us), 9000",
               "95thPercentileLatency(us), 501", "99thPercentileLatency(us), 903", f"Return=OK, {count}")  # fmt: skip
    return "".join(f"[{name}], {figure}\n" for figure in (f"Operations, {count}", *figures))


@pytest.mark.parametrize("count", [20, 1000, 50_000])
def test_small_run_without_its_head_is_refused(count: int, tmp_path: Path) -> None:
    text = YCSB_LOAD + ycsb_block("INSERT", 1_000_000) + "workloada run\n" + ycsb_block("READ", count)
    message = f"cover {1_000_000 + count:,} operations, but its total is 1,000,000: lines of another report follow"
    assert message in refusal(write_file(tmp_path, text))


def test_operations_beyond_ycsb_core_do_not_count(tmp_path: Path) -> None:
    text = YCSB_LOAD + ycsb_block("INSERT", 1_000_000) + ycsb_block("TXN", 500_000)
    run = read_single(write_file(tmp_path, text))
    assert run.result.value("operations") == 1_000_000
    assert run.result.value("all.mean") == 300_000
    assert "[TXN]" in next(note.message for note in run.result.notes if note.name == "unknown")


def test_go_ycsb_rows_of_different_times_are_refused(tmp_path: Path) -> None:
    lines = (FIXTURES / "go-ycsb-runs.md").read_text().split("\n")
    first = next(index for index, line in enumerate(lines) if line.startswith("Run finished"))
    rows = [line for line in lines if " - Takes(s): 1" in line]
    text = "\n".join([lines[first], rows[0], rows[-1], ""])
    assert "the lines of two runs are mixed" in refusal(write_file(tmp_path, text))


def test_pgbench_without_transactions_is_not_truncated(tmp_path: Path) -> None:
    text = """pgbench (15.4)
transaction type: slow.sql
scaling factor: 1
query mode: simple
number of clients: 1
number of threads: 1
maximum number of tries: 1
duration: 1 s
number of transactions actually processed: 0
number of failed transactions: 0 (NaN%)
"""
    assert "the pgbench run completed no transactions (" in refusal(write_file(tmp_path, text))


@pytest.mark.parametrize(
    ("hours", "growth", "count"), [(3, 1.0, 2), (3, 2.0, 2), (0, 2.0, 1)], ids=["same", "longer", "cumulative"]
)
def test_fio_runs_with_one_process_id_stay_apart(hours: int, growth: float, count: int, tmp_path: Path) -> None:
    text = (FIXTURES / "fio-2.2-normal.txt").read_text()
    assert "Mon Jan  5 10:00:00 2026" in text
    date = "Mon Jan  5 10:00:00 2026" if hours else "Mon Jan  5 10:00:10 2026"
    later = text.replace("Mon Jan  5 10:00:00", "Mon Jan  5 13:00:00") if hours else text.replace(
        "Mon Jan  5 10:00:00 2026", date)  # fmt: skip
    assert growth == 1.0 or later != text
    assert len(read_file(write_file(tmp_path, text + later), {})) == count


def test_fio_reports_without_timestamps_are_unclear(tmp_path: Path) -> None:
    report = json.loads((FIXTURES / "fio-mixed.json").read_text())
    job = report["jobs"][0]
    for name in ("timestamp", "timestamp_ms", "time"):
        report.pop(name, None)
    job.get("job options", {}).pop("runtime", None)
    later = json.loads(json.dumps(report))
    later["jobs"][0]["elapsed"] = 2 * job["elapsed"]
    texts = [json.dumps(part, indent=1) for part in (report, later)]
    assert "two reports without timestamps" in refusal(write_file(tmp_path, "\n".join(texts)))
    # A smaller maximum cannot follow in the same run.
    for way in ("read", "write"):
        later["jobs"][0][way]["clat_ns"]["max"] -= 1
    assert len(read_file(write_file(tmp_path, "\n".join([texts[0], json.dumps(later, indent=1)])), {})) == 2


DFSIO = (FIXTURES / "testdfsio-annotated.txt").read_text()


def test_units_after_numbers_of_dfsio_are_read(tmp_path: Path) -> None:
    whole = read_single(write_file(tmp_path, DFSIO)).result.values
    text = DFSIO.replace("31.763", "31.763s").replace("# in MB", "MB/s").replace("# size", "MB").replace("# files", "")
    assert read_single(write_file(tmp_path, text)).result.values == whole


@pytest.mark.parametrize(
    ("number", "other"), [("31.763", "31.763 ms"), ("1280.0 # size", "1280.0 GB"), ("# in MB", "GB/s")]
)
def test_other_units_of_dfsio_are_refused(number: str, other: str, tmp_path: Path) -> None:
    assert number in DFSIO
    assert "is printed in" in refusal(write_file(tmp_path, DFSIO.replace(number, other)))


def test_unknown_test_of_dfsio_is_named(tmp_path: Path) -> None:
    text = DFSIO.replace("----- : write", "----- : TRUNCATE_2  best of 3")
    run = read_single(write_file(tmp_path, text))
    assert run.result.value("truncate_2.bandwidth")
    note = next(note.message for note in run.result.notes if note.name == "unknown")
    assert "the test TRUNCATE_2" in note
    assert "best of 3" in note
