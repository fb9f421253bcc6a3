"""Reports whose parts contradict each other, or that contain lines of another run: nothing is imported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imports_support import FIXTURES, try_read, write_file


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
