"""Rules for every importer, each tested on real or re-created output in every format."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from imports_support import (
    ENDLESS,
    FIXTURES,
    OUTPUTS,
    WITHOUT_END,
    for_every_output,
    format_of,
    read_whole,
    try_read,
    write_file,
)
from loadstone.errors import LoadstoneError
from loadstone.importers import read as reading
from loadstone.importers.read import FORMATS, Imported, read_file

CUTS_MAX = 24


def assert_figures_are_those_of(runs: list[Imported] | None, whole: list[Imported]) -> None:
    """Asserts that figures from a damaged file have the values of the undamaged file."""
    for imported in runs or ():
        assert [] in [differences(imported, run) for run in whole]


def differences(imported: Imported, whole: Imported) -> list[str]:
    """The figures whose values differ by more than the sum of their resolutions, or that the undamaged file lacks."""
    known = whole.result.values
    return [
        f"{name}: {value.value}, not {known[name].value if name in known else None}"
        for name, value in imported.result.values.items()
        if name not in known or abs(value.value - known[name].value) > value.resolution + known[name].resolution
    ]


def test_every_format_has_an_output() -> None:
    assert {format_of(path) for path in OUTPUTS} == FORMATS.keys() - {"json"}


# A run ends at its tool's end mark.


@for_every_output
def test_truncation_changes_no_figure(path: Path, tmp_path: Path) -> None:
    if format_of(path) in ENDLESS or path.name in WITHOUT_END:
        pytest.skip("this output has no end mark")
    lines = path.read_text(errors="replace").split("\n")
    cuts = list(range(1, len(lines)))
    for cut in sorted(random.Random(1).sample(cuts, min(CUTS_MAX, len(cuts)))):
        text = "\n".join(lines[:cut]) + "\n"
        assert_figures_are_those_of(try_read(write_file(tmp_path, text, path.name)), read_whole(path))


# Outputs whose consecutive runs cannot be distinguished: such a file is refused.
REFUSED_TWICE = {"fio-terse.txt", "cassandra-stress.hlog", "hdr_READ.hdr", "hdfs-read.csv", "hbase-read-only.csv",
                 "cassandra-scale.csv"}  # fmt: skip


@for_every_output
def test_runs_that_follow_stay_apart(path: Path, tmp_path: Path) -> None:
    text = path.read_text().rstrip("\n") + "\n\n"
    runs = try_read(write_file(tmp_path, text + text, path.name))
    if path.name in REFUSED_TWICE or format_of(path) == "csv":
        return
    whole = read_whole(path)
    assert runs is not None
    if format_of(path).startswith("fio") and len(runs) == len(whole):
        # Reports with the same time are one report.
        assert [run.result.values for run in runs] == [run.result.values for run in whole]
        return
    assert len(runs) == 2 * len(whole)
    for half in (runs[: len(whole)], runs[len(whole) :]):
        assert [run.result.values for run in half] == [run.result.values for run in whole]


def test_csv_rows_that_follow_are_not_read(tmp_path: Path) -> None:
    text = (FIXTURES / "hdfs-read.csv").read_text() + "\n"
    assert len(read_file(write_file(tmp_path, text * 2, "a.csv"), {})) == len(read_whole(FIXTURES / "hdfs-read.csv"))


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("go-ycsb-runs.md", 3),
        ("cassandra-stress-3.0-auto.txt", 2),
        ("ycsb-cpp.txt", 2),
        ("redis-benchmark.txt", 2),
        ("fio-status.json", 1),
        ("pgbench-scripts.txt", 1),
        ("hyperfine.json", 10),
        ("TestDFSIO_results.log", 2),
    ],
)
def test_runs_are_counted_as_printed(name: str, runs: int) -> None:
    assert len(read_whole(FIXTURES / name)) == runs


@pytest.mark.parametrize(
    ("name", "first"), [("cassandra-stress-2.1.7.txt", "Results:"), ("sysbench-oltp.txt", "SQL statistics:")]
)
def test_copied_results_are_runs(name: str, first: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    results = text[text.index(first) :].rstrip("\n")
    runs = read_file(write_file(tmp_path, f"4 threads\n{results}\n\n8 threads\n{results}\n"), {})
    assert len(runs) == 2
    for run in runs:
        assert run.result.clients is None
        assert differences(run, read_whole(FIXTURES / name)[0]) == []


def test_seconds_of_memtier_are_the_series(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "memtier.json").read_text())
    totals = document["ALL STATS"]["Totals"]
    totals["Time-Serie"] = {"0": {"Count": 2400, "p50.00": 0.1, "p99.00": 0.5}, "1": {"Count": 600}}
    totals["Ops/sec"] = 2500
    document["ALL STATS"]["Sets"]["Ops/sec"], document["ALL STATS"]["Gets"]["Ops/sec"] = 230, 2270
    document["ALL STATS"]["Runtime"]["Total duration"] = 1200
    (run,) = read_file(write_file(tmp_path, json.dumps(document)), {})
    assert run.series is not None
    assert run.series.throughput == pytest.approx((2400, 3000))
    assert run.series.length_seconds == pytest.approx((1, 0.2))


def test_seconds_without_operations_are_in_the_series(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "memtier.json").read_text())
    totals = document["ALL STATS"]["Totals"]
    totals["Time-Serie"] = {"0": {"Count": 1500}, "3": {"Count": 1500}}
    totals["Ops/sec"] = 750
    document["ALL STATS"]["Sets"]["Ops/sec"], document["ALL STATS"]["Gets"]["Ops/sec"] = 69, 681
    document["ALL STATS"]["Runtime"]["Total duration"] = 4000
    (run,) = read_file(write_file(tmp_path, json.dumps(document)), {})
    assert run.series is not None
    assert run.series.throughput == pytest.approx((1500, 0, 0, 1500))


@pytest.mark.parametrize("table", ["spaces", "tabs"])
def test_first_report_of_memtier_has_one_table(table: str, tmp_path: Path) -> None:
    text = re.sub(r"ALL STATS\n=+\n", "", (FIXTURES / "memtier.txt").read_text())
    text = re.sub(" {2,}", "\t", text) if table == "tabs" else text
    (run,) = read_file(write_file(tmp_path, text), {})
    assert run.result.values == read_whole(FIXTURES / "memtier.txt")[0].result.values


def test_raw_report_of_ycsb_ends_with_its_statuses(tmp_path: Path) -> None:
    percentiles = [
        ("p1", 6),
        ("p5", 7),
        ("p50", 100),
        ("p90", 200),
        ("p95", 250),
        ("p99", 300),
        ("p99.9", 400),
        ("p99.99", 1833),
    ]
    rows = [
        ("Total Operations", 1000),
        ("Average", 123.4),
        ("Min", 5),
        ("Max", 1834),
        *percentiles,
        ("Return=OK", 1000),
    ]
    text = "[OVERALL], RunTime(ms), 1000\n[OVERALL], Throughput(ops/sec), 1000.0\n"
    lines = [f"[READ], {name}, {value}\n" for name, value in rows]
    (run,) = read_file(write_file(tmp_path, text + "".join(lines)), {})
    assert run.result.value("read.p99") == 300_000
    for end in range(len(lines)):
        assert try_read(write_file(tmp_path, text + "".join(lines[:end]))) is None


@pytest.mark.parametrize(
    ("name", "run", "metric", "value"),
    [
        ("go-ycsb-runs.md", 0, "throughput", 65_264.8),
        ("go-ycsb-runs.md", 1, "throughput", 91_467.1),
        ("go-ycsb-runs.md", 2, "read.p99", 20_000),
        ("cassandra-stress-3.0-auto.txt", 0, "throughput", 1846),
        ("cassandra-stress-3.0-auto.txt", 1, "insert.p99", 11.3e6),
        ("cassandra-stress.hlog", 0, "throughput", 2000),
        ("ycsb-timeseries.txt", 0, "throughput", 5000),
        ("ycsb-cpp.txt", 1, "update.p99.9", 99_470),
        ("fio-fdatasync.json", 0, "sync.mean", 572_063.967033),
        ("fio-fdatasync.json", 0, "sync.count", 455),
        ("fio-2.1.11.json", 0, "throughput", 15),
        ("fio-unified.json", 0, "mixed.p99", 400_000),
        ("fio-unified.json", 0, "moved", 409_600_000),
        ("fio-terse.txt", 1, "read.bandwidth", 75_851 * 1024),
        ("hbase-pe-1.1.txt", 0, "sequentialwrite.mean", 38_037.4684),
        ("hbase-pe-1.1.txt", 0, "sequentialwrite.max", 998_877_000),
        ("testdfsio-annotated.txt", 0, "runtime", 31.763e9),
        ("pgbench-scripts.txt", 0, "builtin_simple_update.mean", 3.431e6),
        ("pgbench-progress.txt", 0, "throughput", 341.554499),
        ("sysbench-oltp.txt", 0, "errors", 9),
        ("redis-benchmark.csv", 1, "get.p99", 239_000),
        ("memtier.json", 0, "get.p99.9", 9_855_000),
        ("hyperfine.json", 5, "time", 21_507_731),
        ("latte.json", 0, "throughput", 1999.93),
        ("scylla-bench.txt", 0, "all.service.p99", 1_703_935),
        ("terasort.txt", 0, "spilled", 3_000_000),
        ("fio-2.2-normal.txt", 0, "read.mean", 9_871_250),
        ("fio-2.2-normal.txt", 0, "returned", 24_000 * 1024),
        ("fio-client.json", 0, "read.throughput", 400),
        ("pgbench-reconnect.txt", 0, "throughput", 209.912345),
        ("pgbench-reconnect.txt", 0, "errors", 2),
        ("pgbench-15-scripts.txt", 0, "write_sql.mean", 16.9e6),
        ("sysbench-1.1.txt", 0, "runtime", 10.0053e9),
        ("sysbench-fileio.txt", 0, "read.bandwidth", 12.35 * (1 << 20)),
        ("cql-stress-settings.txt", 0, "throughput", 4750),
        ("cql-stress-settings.txt", 0, "errors", 1000),
        ("sysbench-1.1-fileio.txt", 0, "throughput", 1080),
        ("sysbench-1.1-fileio.txt", 0, "write.bandwidth", 6.25 * (1 << 20)),
        ("sysbench-0.4-fileio.txt", 0, "read.throughput", 6000 / 10.0002),
        ("sysbench-memory.txt", 0, "write.bandwidth", 4999.9 * (1 << 20)),
        ("fio-both.txt", 0, "throughput", 512_000),
        ("hbase-pe-0.98.txt", 0, "throughput", 2000 / 1.7),
        ("terasort-hadoop-1.txt", 0, "throughput", 1_000_000 * 100 / 70),
        ("redis-benchmark-command.txt", 0, "hset.p99", 879_000),
        ("go-ycsb-runs.md", 1, "operations", 1_000_000),
    ],
)
def test_figures_are_the_printed_ones(name: str, run: int, metric: str, value: float) -> None:
    assert read_whole(FIXTURES / name)[run].result.value(metric) == pytest.approx(value)


def test_repeated_command_of_hyperfine_has_more_repeats(tmp_path: Path) -> None:
    document = json.loads((FIXTURES / "hyperfine.json").read_text())
    document["results"] = [document["results"][0]] * 2
    runs = read_file(write_file(tmp_path, json.dumps(document), "hyperfine.json"), {})
    assert [run.result.repeat for run in runs] == list(range(1, len(runs) + 1))


def test_clients_of_an_automatic_sweep_are_a_dimension() -> None:
    configs = [run.result.config for run in read_whole(FIXTURES / "cassandra-stress-3.0-auto.txt")]
    assert [config["clients"] for config in configs] == [4, 8]


def test_cumulative_reports_are_the_series() -> None:
    series = read_whole(FIXTURES / "fio-status.json")[0].series
    assert series is not None
    assert len(series.throughput) == 4
    assert sum(rate * length for rate, length in zip(series.throughput, series.length_seconds, strict=True)) == (
        pytest.approx(600)
    )


def test_cumulative_terse_lines_are_one_run(tmp_path: Path) -> None:
    fields = (FIXTURES / "fio-terse.txt").read_text().split("\n")[0].split(";")
    lines = []
    for interval in (1, 2, 3, 3.5):
        for begin in (5, 46):
            if int(fields[begin]):
                fields[begin], fields[begin + 3] = str(int(1000 * interval)), str(int(1000 * interval))
                fields[begin + 1], fields[begin + 2] = "1000", "250"
        lines.append(";".join(fields))
    (run,) = read_file(write_file(tmp_path, "\n".join(lines) + "\n", "fio-terse.txt"), {})
    assert run.result.value("runtime") == 3.5e9
    assert run.series is not None
    assert list(run.series.length_seconds) == [1, 1, 1, 0.5]
    assert try_read(write_file(tmp_path, f"{lines[0]}\n{lines[1]}\n", "fio-terse.txt")) is None


INTERRUPTED = "[RUN #1] Interrupted by user (Ctrl+C) after 5.0 secs, stopping threads...\n2         Threads"


@pytest.mark.parametrize(
    ("name", "before", "after", "end"),
    [
        ("memtier.txt", "2         Threads", INTERRUPTED, "stopped"),
        ("memtier.json", '"Interrupted": "false"', '"Interrupted": "true"', "stopped"),
        ("scylla-bench.txt", "\nResults", "\ninterrupted\n\nResults", "stopped"),
        ("teravalidate.txt", "output records=1\n", "output records=3\n", "failed"),
        ("fio-normal.txt", "jobs=1): err= 0", "jobs=1): err= 5", "failed"),
        ("fio-normal.txt", "\nwriter: (groupid", "\nfio: terminating on signal 2\n\nwriter: (groupid", "stopped"),
        ("fio-mixed.json", "{", "fio: terminating on signal 15\n{", "stopped"),
        ("go-ycsb-table.txt", "Run finished", "Got signal [interrupt] to exit.\nRun finished", "stopped"),
    ],
)
def test_interrupts_and_failures_end_a_run(name: str, before: str, after: str, end: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    assert before in text
    assert read_file(write_file(tmp_path, text.replace(before, after, 1), name), {})[0].result.end == end


def test_wrapped_status_line_of_ycsb_cpp_is_read(tmp_path: Path) -> None:
    text = (FIXTURES / "ycsb-cpp.txt").read_text()
    (*_, run) = read_file(write_file(tmp_path, text.replace(" operations; [", " operations; \n[")), {})
    assert run.result.values == read_whole(FIXTURES / "ycsb-cpp.txt")[-1].result.values


def test_properties_of_ycsb_cpp_are_facts(tmp_path: Path) -> None:
    text = (FIXTURES / "ycsb-cpp.txt").read_text()
    properties = "-p recordcount=1000 -p readproportion=1 -p fieldcount=2 -p fieldlength=50 -p limit.ops=500 -s"
    load, run = read_file(write_file(tmp_path, text.replace(" -s\n", f" {properties}\n", 1), "ycsb-cpp.txt"), {})
    facts = {"records": 1000, "record_bytes": 100, "mix": "100 % read", "target": 500}
    assert facts.items() <= run.result.facts.items()
    assert (run.result.clients, run.result.loop, load.result.loop) == (4, "open", "closed")


def test_parts_of_operations_are_no_operations(tmp_path: Path) -> None:
    text = (FIXTURES / "go-ycsb-runs.md").read_text()
    row = next(line for line in text.split("\n") if line.startswith("INSERT"))
    text = text.replace(row, f"{row}\n{row.replace('INSERT', 'Commit')}", 1)
    run = read_file(write_file(tmp_path, text), {})[0].result
    assert run.values == read_whole(FIXTURES / "go-ycsb-runs.md")[0].result.values
    assert '"Commit"' in next(note.message for note in run.notes if note.name == "unknown")


def test_mapreduce_mode_of_performance_evaluation_is_named(tmp_path: Path) -> None:
    text = (FIXTURES / "hbase-pe-randomRead.txt").read_text()
    options = next(line for line in text.split("\n") if "test run options=" in line)
    counters = "\tHBase Performance Evaluation\n\t\tElapsed time in milliseconds=1234\n\t\tRow count=1000\n"
    with pytest.raises(LoadstoneError, match="ran as a MapReduce job"):
        read_file(write_file(tmp_path, f"{options}\n{counters}"), {})


def test_interrupted_timed_job_of_fio_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "fio-status.json").read_text()
    first = text[: text.index('"fio version"', text.index('"fio version"') + 1)].rpartition("{")[0]
    assert try_read(write_file(tmp_path, first, "fio.json")) is None


def test_unprinted_options_of_fio_are_no_facts() -> None:
    facts = read_whole(FIXTURES / "fio-normal.txt")[0].result.facts
    assert facts["iodepth"] == 1
    assert not {"direct", "fsync", "fdatasync", "work.sync", "numjobs"} & facts.keys()


def test_capital_k_of_fio_is_a_thousand(tmp_path: Path) -> None:
    text = (FIXTURES / "fio-2.2-normal.txt").read_text()
    latency = next(line for line in text.split("\n") if " clat (" in line)
    text = text.replace(latency, re.sub(r"max= *[\d.]+k?", "max=9411.7K", latency))
    result = read_file(write_file(tmp_path, text, "fio.txt"), {})[0].result
    assert (result.value("read.max"), result.values["read.max"].resolution) == (9411.7e6, 0.1e6)


# An unknown figure is neither damage nor a failure.


# Facts about the work.


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("cassandra-stress-3.0-auto.txt", {"mix": "100 % insert", "consistency": "LOCAL_ONE"}),
        ("cassandra-stress-write-throttle.txt", {"target": 500, "consistency": "QUORUM", "record_bytes": 170}),
        ("cassandra-stress-2.1.txt", {"records": 100_000, "distribution": "sequential", "mix": "100 % write"}),
        ("cql-stress.txt", {"tool": "cql-stress", "records": 100_000}),
        ("cassandra-stress.hlog", {"tool": "cassandra-stress", "latency": "service"}),
        ("ycsb-timeseries.txt", {"phase": "run", "operationcount": 512_000}),
        ("go-ycsb.txt", {"records": 1000, "mix": "50 % read, 50 % update", "distribution": "uniform"}),
        ("ycsb-cpp.txt", {"latency": "service"}),
        ("fio-fdatasync.json", {"fdatasync": 1, "block_size": "2300", "mode": "write"}),
        ("fio-normal.txt", {"mode": "write", "block_size": "4k", "iodepth": 1}),
        ("pgbench-progress.txt", {"scale": 1, "records": 100_000, "query_mode": "simple", "version": "15.18"}),
        ("pgbench-rate.txt", {"latency": "response"}),
        ("sysbench-rate.txt", {"target": 50, "latency": "response"}),
        ("scylla-bench-first.txt", {"record_bytes": 4, "work.page_size": 1000, "work.timeout": "5s"}),
        (
            "cql-stress-settings.txt",
            {
                "consistency": "LOCAL_QUORUM",
                "replication": 3,
                "records": 20_000,
                "record_bytes": 1024,
                "target": 5000,
                "latency": "response",
                "distribution": "sequential",
                "mix": "100 % read",
            },
        ),
        (
            "sysbench-1.1-fileio.txt",
            {"block_size": "16KiB", "work.files": "4", "work.io_mode": "synchronous", "work.fsync_every": "50"},
        ),
        ("sysbench-0.4-fileio.txt", {"block_size": "16KiB", "size": "1GiB", "mode": "random r/w"}),
        ("sysbench-memory.txt", {"block_size": "1024KiB", "work.operation": "write", "work.scope": "global"}),
        ("redis-benchmark.txt", {"record_bytes": 3, "appendonly": "no", "latency": "service"}),
        ("memtier.json", {"record_bytes": 32, "records": 10_000_001, "mix": "90.8 % get, 9.2 % set"}),
        ("scylla-bench.txt", {"records": 10_000, "record_bytes": 512, "target": 6000, "latency": "response"}),
        ("latte.json", {"target": 2000, "consistency": "LocalQuorum", "latency": "response"}),
        ("testdfsio-annotated.txt", {"files": 10, "file_bytes": 128 << 20, "action": "write"}),
        ("teragen.txt", {"rows": 1_000_000, "row_bytes": 100, "checksum": "7a27e2d0d55de"}),
        ("hbase-pe-1.1.txt", {"rows": 10_000_000, "value_bytes": 20, "compression": "LZO"}),
        ("hyperfine.json", {"store.command": "sleep 0.01"}),
    ],
)
def test_facts_of_the_work_are_read(name: str, facts: dict[str, object]) -> None:
    assert facts.items() <= read_whole(FIXTURES / name)[0].result.facts.items()


@pytest.mark.parametrize(
    ("name", "command", "facts"),
    [
        (
            "cassandra-stress-2.1.7.txt",
            r"cassandra-stress write n=9 'cl=ONE' \ -schema compaction\(strategy=L\) \ -col 'size=FIXED(8)'"
            " -pop seq=1..7 | tee -rate fixed=9/s",
            {"work.schema": "compaction(strategy=L)", "record_bytes": 40, "records": 7, "consistency": "ONE"},
        ),
        (
            "fio-normal.txt",
            r"fio --direct=1 \ --name=writer --size 8M --rate_iops=5000 --group_reporting --output=x",
            {"direct": "1", "fsync": 0, "size": "8M", "rate_iops": "5000"},
        ),
        ("fio-terse.txt", r"fio \ --minimal --name=writer --direct=1", {"direct": "1"}),
        (
            "pgbench-rate.txt",
            r"PGPASSWORD=x pgbench -nP1 --latency-limit 20 \ > -R100 -D 'k=1' -Dj=2 bench | tee -R 9",
            {"target": 100.0, "work.define": "k=1 j=2", "work.latency_limit": 20, "work.connect": "false"},
        ),
        (
            "sysbench-rate.txt",
            r"sysbench '/opt/my lua/oltp_point_select.lua' \ --tables=4 --table-size=500 run | tee --tables=7",
            {"script": "oltp_point_select", "records": 2000},
        ),
        (
            "redis-benchmark.csv",
            r"redis-benchmark \ -c 7 -d 99 --csv -k 0 --threads 2 eval 'return 1' 0 -c 9",
            {"record_bytes": 99, "keep_alive": 0, "threads": "2", "pipeline": 1, "keyspace": 1},
        ),
        (
            "memtier.txt",
            r"memtier_benchmark -t 2 -c 3 \ --pipeline 4 \ -d 100 --key-maximum=99 --rate-limiting=5",
            {"pipeline": 4, "record_bytes": 100, "records": 100, "target": 30},
        ),
        (
            "TestDFSIO_results.log",
            r"hadoop jar t.jar TestDFSIO -D dfs.replication=2 \ -write -bufferSize 4096 -resFile r",
            {"work.dfs.replication": 2, "work.bufferSize": 4096},
        ),
        ("teragen.txt", r"hadoop jar e.jar teragen -Ddfs.replication=1 \ 1000000 /in", {"work.dfs.replication": 1}),
    ],
)
def test_facts_of_a_command_are_read(name: str, command: str, facts: dict[str, object], tmp_path: Path) -> None:
    text = re.sub(r"(?m)^\$ .*\n", "", (FIXTURES / name).read_text())
    if name == "TestDFSIO_results.log":
        text = text.partition("\n\n")[0] + "\n"
    log = "$ " + command.replace("\\ ", "\\\n  ") + "\n" + text
    result = read_file(write_file(tmp_path, log, name), {})[0].result
    assert facts.items() <= result.facts.items()
    assert "\\" not in str(result.facts["store.command"]).replace("\\(", "").replace("\\)", "")
    assert "work.D" not in result.facts


@pytest.mark.parametrize(
    ("command", "fact"),
    [
        ("cassandra-stress write n=10 -mode user=u password=s3cret -rate threads=1", "password=***"),
        ("ycsb run jdbc -p db.passwd=s3cret -threads 2", "db.passwd=***"),
        ("redis-benchmark -a s3cret -n 10", "-a ***"),
        ("redis-benchmark -n 10 | tee -a run.log", "tee -a run.log"),
        ("pgbench -c 2 postgres://u:s3cret@h/bench", "postgres://u:***@h/bench"),
        ("sysbench oltp_read_only --mysql-password='a s3cret' run", "password=*** run"),
        ("ycsb run jdbc -p db.pwd=s3cret", "db.pwd=***"),
    ],
)
def test_passwords_in_commands_are_hidden(command: str, fact: str) -> None:
    from loadstone.importers.command_line import command_fact

    assert fact in command_fact(command)
    assert "s3cret" not in command_fact(command)


# Nothing is omitted silently.


def hint_sources() -> Iterator[tuple[Path, str]]:
    for path in Path(reading.__file__).parent.glob("*.py"):
        for match in re.finditer(r"[^\n]*--(?:fact|format|json)(?![-\w])[^\n]*", path.read_text()):
            yield path, match[0]


def test_hints_name_the_command_of_an_option() -> None:
    sources = list(hint_sources())
    assert sources
    for path, line in sources:
        is_import = (
            "loadstone import" in line or path.name in ("facts.py", "json_paths.py") or line.lstrip().startswith("#")
        )
        assert is_import or '"""' in line or "`--format`" in line, f"{path.name}: {line}"
