"""Precision is part of an imported figure, and filler values are not figures."""

from __future__ import annotations

import pytest

from imports_support import FIXTURES, read_whole

# Formats that print every latency with few digits.
PRINTED = [
    "cassandra-stress-write",
    "cassandra-stress-2.1",
    "cql-stress",
    "scylla-bench",
    "go-ycsb",
    "pgbench-progress",
    "sysbench-oltp",
    "redis-benchmark",
    "redis-benchmark-5",
    "memtier",
    "ycsb-cpp",
    "fio-normal",
]


@pytest.mark.parametrize("name", PRINTED)
def test_printed_latencies_have_a_resolution(name: str) -> None:
    for imported in read_whole(FIXTURES / f"{name}.txt"):
        latencies = [value for value in imported.result.values.values() if value.unit == "ns" and "." in value.metric]
        assert latencies
        assert [value.metric for value in latencies if value.resolution <= 0] == []


@pytest.mark.parametrize(
    ("name", "metric", "value", "resolution"),
    [
        ("cassandra-stress-2.1.7.txt", "all.mean", 0.1e6, 0.1e6),
        ("ycsb-0.1.4.txt", "read.p95", 15e6, 1e6),
        ("ycsb-0.1.4.txt", "read.min", 83e3, 0),
        ("ycsb-0.1.4-no-buckets.txt", "update.p99", 138e3, 1e6),
        ("ycsb-0.3.txt", "update.p99", 158e3, 1e6),
        ("fio-2.2-normal.txt", "read.p1", 3e6, 1e6),
        ("fio-2.2-normal.txt", "read.min", 131e3, 1e3),
        ("fio-2.15.json", "returned", 2_552_320 * 1024, 1024),
        ("fio-2.15.json", "read.p99", 60e6, 60e6 / 64),
        ("fio-2.1.11.json", "read.throughput", 15, 3),
        ("fio-normal.txt", "write.bandwidth", 7728 * 1024, 1024),
        ("fio-normal.txt", "sync.p99", 12_256_000, 12_256_000 / 64),
        ("redis-benchmark-5.txt", "set.p99", 2e6, 1e6),
        ("redis-benchmark.txt", "set.p99", 255e3, 1e3),
        ("scylla-bench.txt", "read.p99", 2_031_615, 1),
        ("cql-stress-scylla-bench.txt", "write.p99", 2e6, 1e6),
        ("sysbench-oltp.txt", "all.p95", 12.98e6, 0.01e6),
        ("teragen.txt", "runtime", 4.091e9, 1e6),
        ("TestDFSIO_results.log", "write.bandwidth", 31.9 * (1 << 20), 0.1 * (1 << 20)),
        ("ycsb-0.3.txt", "throughput", 790.5138339920949, 790.5138339920949 / 1265),
        ("hbase-pe-1.1.txt", "runtime", 390.622e9, 1e6),
        ("fio-mixed.json", "runtime", 153e6, 1e6),
        ("fio-client.json", "read.bandwidth", 1_638_400, 163.84),
    ],
)
def test_last_digit_is_the_resolution(name: str, metric: str, value: float, resolution: float) -> None:
    figure = read_whole(FIXTURES / name)[0].result.values[metric]
    assert (figure.value, figure.resolution) == pytest.approx((value, resolution))


@pytest.mark.parametrize(
    "name", ["ycsb-0.1.4.txt", "ycsb-0.1.4-no-buckets.txt", "cassandra-stress-2.1.7.txt", "redis-benchmark-5.txt"]
)
def test_rounded_percentiles_have_the_note_coarse(name: str) -> None:
    assert "coarse" in [note.name for note in read_whole(FIXTURES / name)[0].result.notes]


# Filler values are not figures.


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("fio-3.1.json", "read.p0"),
        ("fio-2.1.11.json", "write.p99"),
        ("fio-terse.txt", "read.p99"),
        ("fio-terse.txt", "write.p0"),
        ("memtier.json", "wait.p99"),
        ("memtier.txt", "wait.throughput"),
        ("go-ycsb-json.txt", "read.mean"),
        ("cassandra-stress-2.1.txt", "errors"),
        ("cassandra-stress.hlog", "errors"),
        ("cql-stress-scylla-bench.txt", "write.p99.9"),
    ],
)
def test_fillers_are_not_figures(name: str, metric: str) -> None:
    assert metric not in read_whole(FIXTURES / name)[0].result.values


def test_mean_of_memtier_is_no_filler() -> None:
    mean = (276 * 0.227 + 2724 * 0.130) / 3000
    assert read_whole(FIXTURES / "memtier.json")[0].result.value("all.mean") == pytest.approx(mean * 1e6)
