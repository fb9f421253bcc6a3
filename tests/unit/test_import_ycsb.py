"""YCSB's reports and the text around them."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from imports_support import FIXTURES, YCSB, figures, read_single, write_file
from loadstone.importers.read import read_file
from loadstone.importers.ycsb_command import parse_command

# The report on accelerated writes: two logs pasted into Markdown.


def test_logs_within_text_compare_by_their_reports() -> None:
    fast, slow = read_single(FIXTURES / "accelerated.log"), read_single(FIXTURES / "regular.log")
    assert figures(fast, "throughput", "insert.p95") == {
        "throughput": (1770.7012685303887, "op/s", 1_000_000),
        "insert.p95": (3_623_000, "ns", 1_000_000),
    }
    assert figures(slow, "throughput", "insert.p95") == {
        "throughput": (388.45918828344935, "op/s", 1_000_000),
        "insert.p95": (18_751_000, "ns", 1_000_000),
    }
    ratio = (fast.result.value("throughput") or 0) / (slow.result.value("throughput") or 1)
    assert round(ratio, 2) == 4.56
    assert fast.result.config == {"variant": "accelerated"}
    # The pasted command line has -p threadcount=4; the other log has no command line.
    assert (fast.result.clients, slow.result.clients) == (4, None)
    assert (fast.result.loop, fast.result.repeat) == ("closed", 1)
    assert fast.result.statuses == {"INSERT": {"OK": 1_000_000}}


def test_markdown_report_gives_both_logs_and_no_tables() -> None:
    runs = read_file(FIXTURES / "hbase-accelerated-writes.md", {})
    assert [run.result.config["variant"] for run in runs] == [
        "hbase-accelerated-writes-1",
        "hbase-accelerated-writes-2",
    ]
    assert [run.result.value("throughput") for run in runs] == [1770.7012685303887, 388.45918828344935]
    assert [run.result.clients for run in runs] == [4, None]


def test_report_figures_are_converted_to_base_units() -> None:
    assert figures(read_single(FIXTURES / "accelerated.log")) == {
        "throughput": (1770.7012685303887, "op/s", 1_000_000),
        "runtime": (564_748_000_000, "ns", 1),
        "operations": (1_000_000, "operations", 1_000_000),
        "errors": (0, "operations", 1_000_000),
        "insert.count": (1_000_000, "operations", 1_000_000),
        "insert.mean": (2_248_752.362, "ns", 1_000_000),
        "insert.min": (1_120_000, "ns", 1_000_000),
        "insert.max": (498_687_000, "ns", 1_000_000),
        "insert.p95": (3_623_000, "ns", 1_000_000),
        "insert.p99": (7_375_000, "ns", 1_000_000),
        "all.mean": (2_248_752.362, "ns", 1_000_000),
    }


# Status lines.


def test_status_lines_with_a_gap_are_one_series() -> None:
    series = read_single(FIXTURES / "accelerated.log").series
    assert series is not None
    # The last line has the clock time of another run; the count of seconds is used instead.
    assert series.length_seconds == pytest.approx((10, 10, 500, 10.001, 34))
    assert series.throughput == pytest.approx((1545.1, 1856.1, 938036 / 500, 15957 / 10.001, 11995 / 34))
    # The line after the gap has percentiles of the last 10 s only; no percentile covers the 500 s.
    assert series.p99_ns == (7_915_000, 5_975_000, None, 8_303_000, 6_743_000)


def test_first_status_line_gives_the_start() -> None:
    start = read_single(FIXTURES / "accelerated.log").result.start_unix_ns
    text = (FIXTURES / "accelerated.log").read_text(encoding="utf-8", errors="replace")
    match = re.search(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d):\d+ (\d+) sec:", text)
    assert match is not None
    assert start is not None
    at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").timestamp() - int(match[2])
    assert start / 1e9 == pytest.approx(at, abs=1)


def test_standard_output_and_error_may_be_swapped(tmp_path: Path) -> None:
    out, err = (YCSB / "gbu_both.out").read_text(), (YCSB / "gbu_both.err").read_text()
    before, after = (read_single(write_file(tmp_path, text)) for text in (err + out, out + err))
    assert before.result == after.result
    assert before.series == after.series
    assert before.series is not None
    assert before.series.throughput == pytest.approx(
        (66 / 4, 15 / 0.026, 121 / 1.55, 460 / 2.437, 138 / 1.906), rel=0.03
    )
    # The percentiles of two operations cannot be combined.
    assert before.series.p99_ns == ()


# Rates: intended and actual times.


def test_intended_times_are_headlines_next_to_actual_ones(tmp_path: Path) -> None:
    text = (YCSB / "gbu_both.err").read_text() + (YCSB / "gbu_both.out").read_text()
    run = read_single(write_file(tmp_path, text))
    assert (run.result.loop, run.result.clients, run.result.facts["target"]) == ("open", 2, 300)
    assert figures(run, "update.p99", "update.service.mean", "update.p99.9") == {
        "update.p99": (7_143_423_000, "ns", 400),
        "update.service.mean": (4_773_872.5, "ns", 400),
        "update.p99.9": (7_151_615_000, "ns", 400),
    }
    assert run.result.statuses == {"READ": {"OK": 800}, "UPDATE": {"OK": 400}}


def test_a_rate_without_intended_times_has_a_note(tmp_path: Path) -> None:
    run = read_single(write_file(tmp_path, (YCSB / "maxtime.err").read_text() + (YCSB / "maxtime.out").read_text()))
    assert run.result.loop == "open"
    assert [note.name for note in run.result.notes] == ["service-time"]


# Failures.


def test_failures_are_kept_with_their_latencies() -> None:
    run = read_single(YCSB / "err.out")
    assert run.result.statuses == {
        "READ": {"TIMEOUT": 52, "OK": 576, "NOT_FOUND": 287, "ERROR": 85},
        "UPDATE": {"TIMEOUT": 29, "OK": 277, "NOT_FOUND": 146, "ERROR": 47},
    }
    assert figures(run, "errors", "read.p99", "read-failed.p99") == {
        "errors": (646, "operations", 1000),
        "read.p99": (41_000, "ns", 576),
        "read-failed.p99": (9_000, "ns", 424),
    }
    note, coarse = run.result.notes
    assert coarse.name == "coarse"
    assert note.name == "counts-failures"
    # The number of failures among operations that read and then update is unknown.
    assert note.hint.startswith("they are not subtracted")
    assert run.result.value("throughput") == 328.83919763235775


def test_throughput_without_failures_is_distinguished(tmp_path: Path) -> None:
    # The output of Loadstone's front end: 600 successes and 50 failures.
    failed = "[READ], Return=NOT_FOUND, 40\n[READ], Return=NOT_YET, 10\n[READ-FAILED], Operations, 50\n" + "".join(
        f"[READ-FAILED], {name}Latency(us), 1000\n" for name in ("Average", "Min", "Max", "95thPercentile")
    )
    run = read_single(write_file(tmp_path, (YCSB / "run_c.out").read_text() + failed))
    assert run.result.notes == ()
    mean = (600 * 330_695 + 50 * 1_000_000) / 650
    assert figures(run, "operations", "errors", "all.mean") == {
        "operations": (650, "operations", 650),
        "errors": (40, "operations", 650),
        "all.mean": (pytest.approx(mean, rel=1e-5), "ns", 650),
    }


def test_overall_mean_counts_composed_operations_by_their_parts() -> None:
    run = read_single(YCSB / "run_f.out")
    values = run.result.values
    parts = sum(values[f"{name}.mean"].value * values[f"{name}.mean"].n for name in ("read", "update"))
    assert values["all.mean"].value == pytest.approx(parts / 600)
    assert values["read-modify-write.mean"].n == 293


def test_checked_values_are_counted_and_are_no_operations() -> None:
    run = read_single(YCSB / "integ.out")
    assert figures(run, "verified", "wrong", "errors") == {
        "verified": (5, "values", 5),
        "wrong": (5, "values", 5),
        "errors": (0, "operations", 5),
    }


def test_cleanup_and_jvm_metrics_are_no_operations() -> None:
    names = {metric.partition(".")[0] for metric in read_single(YCSB / "run_a.out").result.values}
    assert names == {"throughput", "runtime", "operations", "errors", "read", "update", "all"}


# Measurement types and exporters.


@pytest.mark.parametrize("path", [YCSB / "json.txt", YCSB / "jsonarr.out"])
def test_both_json_exporters_are_read(path: Path) -> None:
    run = read_single(path)
    assert run.result.statuses == {"READ": {"OK": 10}}
    assert {"throughput", "runtime", "read.mean", "read.p99", "read.max"} <= run.result.values.keys()


def test_json_among_other_lines_finds_its_command(tmp_path: Path) -> None:
    log = f"$ ycsb run basic -threads 3 -s\n{(YCSB / 'jsonarr.out').read_text()}$ exit\n"
    run = read_single(write_file(tmp_path, log))
    assert (run.result.clients, run.result.value("read.max")) == (3, 8_191_000)


def test_text_and_json_reports_are_equal(tmp_path: Path) -> None:
    lines = [line.split(", ") for line in (YCSB / "run_a.out").read_text().splitlines() if line.startswith("[")]
    objects = " ".join(
        f'{{"metric" : "{metric.strip("[]")}", "measurement" : "{name}", "value" : {value}}}'
        for metric, name, value in lines
    )
    text, json = read_single(YCSB / "run_a.out"), read_single(write_file(tmp_path, objects, "run_a.json"))
    assert json.result.values == text.result.values


def test_histogram_type_has_coarse_percentiles_with_a_note() -> None:
    run = read_single(YCSB / "hist.out")
    assert figures(run, "read.p95", "update.p99") == {
        "read.p95": (8_000_000, "ns", 290),
        "update.p99": (10_000_000, "ns", 310),
    }
    # The percentile was in the overflow bucket, so YCSB printed no line.
    assert "read.p99" not in run.result.values
    assert [note.name for note in run.result.notes] == ["coarse"]


def test_a_verbose_report_has_its_histogram() -> None:
    run = read_single(YCSB / "verbose.out")
    assert {name: run.result.values[f"{name}.p99.99"].n for name in ("read", "update")} == {
        "read": 491,
        "update": 509,
    }
    assert run.result.value("read.p50") == 0


def test_timeseries_and_raw_have_what_they_print() -> None:
    assert read_single(YCSB / "timeseries.out").result.value("update.max") == 8_525_000
    raw = read_single(YCSB / "raw.out")
    assert figures(raw, "read.p50", "read.p99.9", "read.mean") == {
        "read.p50": (1_157_000, "ns", 8),
        "read.p99.9": (5_490_000, "ns", 8),
        "read.mean": (1_449_750, "ns", 8),
    }
    # Of two simultaneous measurement types, the first is imported under the operations' names.
    assert read_single(YCSB / "raw2.out").result.value("read.max") == 4_711_000


# Command lines.


@pytest.mark.parametrize(
    ("line", "clients", "target"),
    [
        (
            "$ bin/ycsb run hbase14 -P workloads/workload_readonly -threads 20 -p operationcount=5000000 -s > a.log",
            20,
            None,
        ),
        ("bin/ycsb load hbase12 -p threadcount=4 -cp /etc/hbase/conf -s | tee -a workloada.dat -threads 9", 4, None),
        # YCSB has no property `threads`: this command runs with one client, or with the workload file's number.
        ("./bin/ycsb load hbase14 -P workloads/workloada -p threads=10 -p table=usertable", None, None),
        ("Command line: -db site.ycsb.BasicDB -threads 2 -target 300 -p threadcount=8 -t", 8, 300),
        ("java -cp x site.ycsb.Client -t -db site.ycsb.BasicDB -p target=50 -threads 16", 16, 50),
        ("./bin/go-ycsb run mysql -P workloads/workloada --threads 64 --target 1000", 64, 1000),
        ("$ loadstone ycsb run rocksdb -threads 7", 7, None),
        ("ycsb run basic -threads many", None, None),
    ],
)
def test_clients_and_rate_come_from_the_command_line(line: str, clients: int | None, target: int | None) -> None:
    result = parse_command(line)
    assert result is not None
    assert (result.clients, result.target) == (clients, target)


def test_command_continued_by_a_backslash_is_one_command(tmp_path: Path) -> None:
    log = "$ bin/ycsb run basic \\\n    -P workloads/workloada \\\n    -threads 12\n"
    assert read_single(write_file(tmp_path, log + (YCSB / "run_a.out").read_text())).result.clients == 12


def test_last_command_before_a_report_belongs_to_it(tmp_path: Path) -> None:
    report = (YCSB / "run_a.out").read_text()
    commands = ("bin/ycsb load basic -threads 50\nbin/ycsb run basic -threads 2\n", "bin/ycsb run basic -threads 3\n")
    log = "".join(f"{command}{report}" for command in commands)
    assert [command.result.clients for command in read_file(write_file(tmp_path, log), {})] == [2, 3]


# The text around a log.


@pytest.mark.parametrize("prefix", ["> ", "    ", "ycsb-1  | ", "2024-05-01T10:00:00.123456789Z ", "\x1b[32m"])
def test_quotes_and_collectors_of_logs_are_seen_through(tmp_path: Path, prefix: str) -> None:
    report = "".join(f"{prefix}{line}\r\n" for line in (YCSB / "run_a.out").read_text().splitlines())
    assert read_single(write_file(tmp_path, report)).result.values == read_single(YCSB / "run_a.out").result.values


def test_prose_that_names_a_figure_is_no_report(tmp_path: Path) -> None:
    prose = "We saw [OVERALL], Throughput(ops/sec), 99\n - [INSERT], Operations: Total number\n"
    run = read_single(write_file(tmp_path, prose + (YCSB / "run_a.out").read_text()))
    assert run.result.value("throughput") == 1339.2857142857142


def test_a_log_that_windows_wrote_is_read(tmp_path: Path) -> None:
    text = (YCSB / "run_a.out").read_text().replace("\n", "\r\n")
    assert read_single(write_file(tmp_path, text.encode("utf-16"))).result.value("errors") == 0


def test_not_a_number_is_no_figure(tmp_path: Path) -> None:
    # With operationcount=0, YCSB 0.17.0 does nothing.
    log = "[OVERALL], RunTime(ms), 1\n[OVERALL], Throughput(ops/sec), NaN\n[CLEANUP], Operations, 0\n"
    run = read_single(write_file(tmp_path, log))
    assert "throughput" not in run.result.values
    assert [note.name for note in run.result.notes] == ["not-a-number"]
