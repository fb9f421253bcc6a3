"""The YCSB front end prints what YCSB 0.17.0 prints, line by line.

tests/fixtures/ycsb has outputs of the original (JDK 17). A fixture and the front end's output are compared as
skeletons: the same lines in the same order, with each number replaced by its type.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import time
import zlib
from itertools import groupby
from pathlib import Path

import pytest

from conftest import FIXTURES, CommandResult, Engine, check_on_time, report

SAMPLES = FIXTURES / "ycsb"
# Restores YCSB's percentiles: Loadstone's default is 50, 95 and 99.
YCSB = "hdrhistogram.percentiles=95,99"
# YCSB prints a percentile only if it is within the buckets.
CUT = re.compile(r"percentile", re.IGNORECASE)

SUMMARY = (
    r"\[[\w-]+: Count=\d+, Max=\d+, Min=\d+, Avg=(NaN|\d+(\.\d{1,2})?), "
    r"90=\d+, 99=\d+, 99\.9=\d+, 99\.99=\d+\]"
)
STATUS = (
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3} \d+ sec: \d+ operations; "
    r"((\d+(\.\d{1,2})?|∞|NaN) current ops/sec; )?"
    r"(est completion in ((\d+ days? )?(\d+ hours? )?(\d+ minutes? )?|\d second |\d\d+ seconds ))?"
)


def java_double(value: float) -> str:
    """`Double.toString`, based on Python's shortest digits."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(value, "f") if "e" in repr(value) else repr(value)
    digits, exponent = f"{value:.17e}".split("e")
    shortest = next(t for n in range(1, 18) if float(t := f"{value:.{n}e}") == value)
    digits, exponent = shortest.split("e")
    return f"{digits}E{int(exponent)}"


def kind(value: str) -> str:
    """The type of a report's value, for a parser."""
    if re.fullmatch(r"-?\d+", value):
        return "whole"
    assert java_double(float(value)) == value, f"Java would not write {value}"
    return "real"


def skeleton(text: str) -> list[tuple[str, str, str]]:
    """A report without its numbers: all bucket and time lines of a metric count as one."""
    lines = [(m, re.sub(r"^>?\d+$", "N", k), kind(v)) for m, k, v in report(text)]
    return [line for line, _ in groupby(lines)]


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def blocks(text: str) -> dict[str, list[tuple[str, str, str]]]:
    """The skeleton of each metric."""
    lines = skeleton(text)
    return {metric: [line for line in lines if line[0] == metric] for metric, _, _ in lines}


def plain(text: str) -> set[str]:
    """The lines outside reports."""
    return {re.sub(r"\d+(\.\d+)?", "0", line) for line in text.splitlines() if line and not line.startswith("[")}


@pytest.fixture(scope="module")
def engine_with_data(module_engine: Engine) -> Engine:
    """A RocksDB with the 1,000 records of `load`, and one with 500 records that runs treat as 1,000."""
    module_engine("load rocksdb -P workloads/workloada rocksdb.dir=db recordcount=1000")
    module_engine("load rocksdb -P workloads/workloada rocksdb.dir=half recordcount=500")
    return module_engine


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("load", "load rocksdb -P workloads/workloada rocksdb.dir=fresh recordcount=1000 -threads 3 -s"),
        ("run_a", "run rocksdb -P workloads/workloada rocksdb.dir=db operationcount=600 -threads 3"),
        ("run_b", "run rocksdb -P workloads/workloadb rocksdb.dir=db operationcount=600 -threads 3"),
        ("run_c", "run rocksdb -P workloads/workloadc rocksdb.dir=db operationcount=600 -threads 3"),
        ("run_d", "run rocksdb -P workloads/workloadd rocksdb.dir=db operationcount=600"),
        ("run_e", "run rocksdb -P workloads/workloade rocksdb.dir=db operationcount=600 maxscanlength=10 -threads 3"),
        ("run_f", "run rocksdb -P workloads/workloadf rocksdb.dir=db operationcount=600 -threads 3"),
        ("timeseries", "run rocksdb -P workloads/workloada rocksdb.dir=db measurementtype=timeseries"),
        ("verbose", "run rocksdb -P workloads/workloada rocksdb.dir=db measurement.histogram.verbose=true"),
        ("intended", "run null -P workloads/workloadc operationcount=300 -target 3000 measurement.interval=intended"),
        ("raw_nosummary", "run null -P workloads/workloada measurementtype=raw measurement.raw.no_summary=true"),
        ("raw", "run null -P workloads/workloada operationcount=10 seed=1 measurementtype=raw -s"),
        ("raw2", "run null -P workloads/workloada measurementtype=hdrhistogram+raw measurement.raw.output_file=r2.txt"),
        (
            "hdrhist",
            "run null -P workloads/workloada measurementtype=hdrhistogram+histogram histogram.buckets=5 "
            "measurement.histogram.verbose=true",
        ),
        ("maxtime", "run null -P workloads/workloadc operationcount=1000000 maxexecutiontime=1 -target 500"),
        ("hdrfile", "run null -P workloads/workloadc hdrhistogram.fileoutput=true hdrhistogram.output.path=hdr_"),
        ("integ_wrong", "run rocksdb -P workloads/workloadc rocksdb.dir=db dataintegrity=true failures.tolerated=1"),
        ("integ", "run null -P workloads/workloadc operationcount=5 dataintegrity=true failures.tolerated=1"),
    ],
)
def test_report_lines_have_the_order_of_ycsb(engine_with_data: Engine, name: str, command: str) -> None:
    assert skeleton(engine_with_data(command, YCSB).out) == skeleton(sample(f"{name}.out"))


def test_the_histogram_type_has_ycsbs_lines_and_buckets(engine_with_data: Engine) -> None:
    result = engine_with_data(
        "run null -P workloads/workloada measurementtype=histogram histogram.buckets=12 "
        "measurement.histogram.verbose=true operationcount=600"
    )
    lines = [line for line in skeleton(result.out) if not CUT.search(line[1])]
    assert lines == [line for line in skeleton(sample("hist.out")) if not CUT.search(line[1])]
    buckets = [k for m, k, _ in result.report() if m == "READ" and re.fullmatch(r">?\d+", k)]
    assert buckets == [*map(str, range(12)), ">12"]
    counts = [int(v) for m, k, v in result.report() if m == "READ" and k in buckets]
    assert sum(counts) == result.value("READ", "Operations")


def test_percentile_beyond_the_last_bucket_has_no_line(engine_with_data: Engine) -> None:
    result = engine_with_data(
        "run rocksdb -P workloads/workloadc rocksdb.dir=db measurementtype=histogram histogram.buckets=1 "
        "measurement.interval=intended -target 1000000000 operationcount=50000"
    )
    keys = [k for m, k, _ in result.report() if m == "READ"]
    figures = ("Operations", "AverageLatency(us)", "LatencyVariance(us)", "MinLatency(us)", "MaxLatency(us)")
    assert keys == [*figures, "Return=OK"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("half_f", "-P workloads/workloadf rocksdb.dir=half operationcount=600"),
        ("half_f_each", "-P workloads/workloadf rocksdb.dir=half operationcount=600 reportlatencyforeacherror=true"),
        (
            "half_f_tracked",
            "-P workloads/workloadf rocksdb.dir=half operationcount=600 latencytrackederrors=NOT_FOUND,TIMEOUT",
        ),
        ("missing_c", "-P workloads/workloadc rocksdb.dir=half recordcount=6000 insertstart=5000 operationcount=100"),
        (
            "missing_c_hist",
            "-P workloads/workloadc rocksdb.dir=half recordcount=6000 insertstart=5000 measurementtype=histogram",
        ),
        (
            "missing_c_series",
            "-P workloads/workloadc rocksdb.dir=half recordcount=6000 insertstart=5000 measurementtype=timeseries",
        ),
        (
            "missing_c_raw",
            "-P workloads/workloadc rocksdb.dir=half recordcount=6000 insertstart=5000 measurementtype=raw",
        ),
    ],
)
def test_failures_stand_where_ycsb_puts_them(engine_with_data: Engine, name: str, options: str) -> None:
    result = engine_with_data.run(f"run rocksdb {options}", YCSB)
    assert result.code == 1
    # Metrics that share a bucket of Java's hash map are printed in the order of their first operation.
    assert blocks(result.out) == blocks(sample(f"{name}.out"))


def test_metric_without_successes_has_the_values_of_ycsb(engine_with_data: Engine) -> None:
    for name in ("missing_c", "missing_c_hist", "missing_c_series", "missing_c_raw"):
        kind = {"hist": "histogram", "series": "timeseries", "raw": "raw"}.get(name.removeprefix("missing_c_"))
        more = [f"measurementtype={kind}"] if kind else []
        result = engine_with_data.run(
            "run rocksdb -P workloads/workloadc rocksdb.dir=half recordcount=6000 insertstart=5000 operationcount=100",
            YCSB,
            *more,
        )
        lines = [line for line in result.report() if line[0] == "READ"]
        expected = [line for line in report(sample(f"{name}.out")) if line[0] == "READ"]
        assert [o[1:] for o in lines if "Return" not in o[1]] == [t[1:] for t in expected if "Return" not in t[1]], name


def test_both_intervals_are_listed_consecutively(engine_with_data: Engine) -> None:
    result = engine_with_data(
        "run null -P workloads/workloadf operationcount=800 -target 8000 -threads 2 -s measurement.interval=both "
        "hdrhistogram.percentiles=50,95,99,99.9,99.99,1,2,3,11,21,100"
    )
    assert skeleton(result.out) == skeleton(sample("gbu_both.out"))


def test_percentiles_default_to_50_95_and_99(engine_with_data: Engine) -> None:
    def labels(result: CommandResult) -> list[str]:
        return [k for m, k, _ in result.report() if m == "READ" and k.endswith("PercentileLatency(us)")]

    names = ["50thPercentileLatency(us)", "95thPercentileLatency(us)", "99thPercentileLatency(us)"]
    assert labels(engine_with_data("run null -P workloads/workloadc")) == names
    assert labels(engine_with_data("run null -P workloads/workloadc", YCSB)) == names[1:]
    assert labels(engine_with_data("run null -P workloads/workloadc", "hdrhistogram.percentiles=abc")) == names


def test_raw_operations_are_listed_before_the_report(engine_with_data: Engine) -> None:
    result = engine_with_data("run null -P workloads/workloada operationcount=10 seed=1 measurementtype=raw")
    lines = result.out.splitlines()
    # YCSB prints this line at the first occurrence of each metric.
    announced = [line for line in lines if line.startswith("Raw data measurement: ")]
    assert announced == ["Raw data measurement: will output to stdout."] * 3
    assert lines[:3] == announced
    points = lines[3 : lines.index(next(line for line in lines if line.startswith("[OVERALL]")))]
    heads = [line for line in points if line.endswith(" latency raw data: op, timestamp(ms), latency(us)")]
    assert [head.split()[0] for head in heads] == result.metrics()
    for line in points:
        assert line in heads or re.fullmatch(r"(READ|UPDATE|CLEANUP),\d{13},\d+", line), line
    assert len(points) == len(heads) + 10 + 1


def test_a_raw_file_is_named_and_appended_to(engine_with_data: Engine) -> None:
    command = "run null -P workloads/workloada operationcount=10 seed=1 measurementtype=hdrhistogram+raw"
    for times in (1, 2):
        result = engine_with_data(command, "measurement.raw.output_file=appended.txt")
        assert result.out.splitlines()[:3] == ["Raw data measurement: will output to result file: appended.txt"] * 3
        text = (engine_with_data.home / "appended.txt").read_text()
        assert len(re.findall(r"^Raw(READ|UPDATE|CLEANUP),\d{13},\d+$", text, re.M)) == times * 11
        assert len(re.findall(r"^RawREAD latency raw data: op, timestamp\(ms\), latency\(us\)$", text, re.M)) == times
        assert len(text.splitlines()) == times * 14


def test_series_are_means_from_the_first_operation_on(engine_with_data: Engine) -> None:
    def check_units(result: CommandResult) -> None:
        for metric in ("READ", "UPDATE"):
            units = [int(k) for m, k, _ in result.report() if m == metric and k.isdigit()]
            assert units[0] == 0
            assert units == sorted(set(units))
            assert 3 <= len(units) <= 5
            assert all(unit % 200 == 0 for unit in units)
            assert [k for m, k, _ in result.report() if m == metric][:5] == [
                *("Operations", "AverageLatency(us)", "MinLatency(us)", "MaxLatency(us)", "Return=OK")
            ]

    command = "run rocksdb -P workloads/workloada rocksdb.dir=db operationcount=600 -target 1000"
    check_on_time(engine_with_data, f"{command} measurementtype=timeseries timeseries.granularity=200", check_units)


@pytest.mark.parametrize(("exporter", "name"), [("JSON", "json.txt"), ("JSONArray", "jsonarr.out")])
def test_json_equals_the_bytes_of_ycsb(engine_with_data: Engine, exporter: str, name: str) -> None:
    result = engine_with_data(
        "run null -P workloads/workloadc operationcount=10",
        YCSB,
        f"exporter=site.ycsb.measurements.exporter.{exporter}MeasurementsExporter",
    )

    def scrub(text: str) -> str:
        return re.sub(r'"value" : (-?[\d.E]+)', lambda m: f'"value" : {kind(m[1])}', text)

    assert scrub(result.out) == scrub(sample(name))


def test_json_array_is_valid_without_numbers(engine_with_data: Engine) -> None:
    result = engine_with_data.run(
        "run rocksdb -P workloads/workloadc rocksdb.dir=half recordcount=6000 insertstart=5000 operationcount=5",
        YCSB,
        "exporter=site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter",
    )
    objects = json.loads(result.out)
    expected = json.loads(sample("missing_c_json.out"))
    assert [(o["metric"], o["measurement"], type(o["value"])) for o in objects] == [
        (o["metric"], o["measurement"], type(o["value"])) for o in expected
    ]
    (mean,) = [o["value"] for o in objects if (o["metric"], o["measurement"]) == ("READ", "AverageLatency(us)")]
    assert mean == "NaN"


@pytest.mark.parametrize(("exporter", "same"), [("json", "JSON"), ("jsonarray", "JSONArray"), ("text", "Text")])
def test_exporters_have_short_names(engine_with_data: Engine, exporter: str, same: str) -> None:
    def shape(name: str) -> str:
        return re.sub(r"[\d.E-]+", "0", engine_with_data("run null -P workloads/workloadc", f"exporter={name}").out)

    assert shape(exporter) == shape(f"site.ycsb.measurements.exporter.{same}MeasurementsExporter")


def test_unknown_exporter_is_a_warning_and_text_results(engine_with_data: Engine) -> None:
    result = engine_with_data("run null -P workloads/workloadc exporter=com.example.Mine")
    assert result.out.startswith("[OVERALL], RunTime(ms), ")
    assert any("com.example.Mine" in warning for warning in result.messages("warning: "))


def test_status_lines_of_fixtures_match_the_patterns() -> None:
    """Shows that the patterns describe YCSB's output."""
    result = 0
    for name in ("load.err", "maxtime.err", "hdrfile.err", "gbu_both.err", "err.err"):
        for line in sample(name).splitlines():
            if " operations; " in line:
                result += 1
                assert re.fullmatch(rf"(LBL )?{STATUS}({SUMMARY} )*", line), line
    assert result > 10


def test_status_lines_are_ycsbs(engine_with_data: Engine) -> None:
    def ycsbs(result: CommandResult) -> None:
        lines = [line for line in result.err.splitlines() if " operations; " in line]
        assert len(lines) == 4, "a line at the start, after each full second, and at the end"
        for line in lines:
            assert line.startswith("my label:20"), "YCSB prints nothing after the label"
            assert re.fullmatch(rf"my label:{STATUS}({SUMMARY} )*", line), line
            assert line.endswith(" "), "YCSB prints a space at the end"
        done = [int(re.search(r"sec: (\d+) operations", line)[1]) for line in lines]  # type: ignore[index]
        assert done == sorted(done)
        assert done[-1] == 5000
        intervals = [sum(map(int, re.findall(r"\[(?:READ|UPDATE): Count=(\d+)", line))) for line in lines]
        assert sum(intervals) == 5000, "each line covers only its interval"
        assert "est completion" not in lines[-1]

    command = "run rocksdb -P workloads/workloada rocksdb.dir=db operationcount=5000 -target 2000"
    check_on_time(engine_with_data, f"{command} -s status.interval=1 -l", ycsbs, "my label:")


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("histogram", r"(\[[\w-]+ AverageLatency\(us\)=[\d.]+\] | )*"),
        ("timeseries", r"(\[[\w-]+ AverageLatency\(us\)=[\d.]+\] | )*"),
        ("raw", r"([\w-]+ count: \d+, average latency\(us\): \d+\.\d\d | )*"),
        ("hdrhistogram+histogram", rf"({SUMMARY}\n(\[Bucket[\w-]+ AverageLatency\(us\)=[\d.]+\])? )*"),
        ("hdrhistogram+raw", rf"({SUMMARY}\n(Raw[\w-]+ count: \d+, average latency\(us\): \d+\.\d\d)? )*"),
    ],
)
def test_measurement_types_have_their_own_status_summaries(engine_with_data: Engine, kind: str, pattern: str) -> None:
    def check_summaries(result: CommandResult) -> None:
        text = result.err[result.err.index("Starting test.\n") :].removeprefix("Starting test.\n")
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("note: "))
        assert re.fullmatch(rf"({STATUS}{pattern}\n)+", text), text
        assert text.count(" operations; ") == 3

    command = "run null -P workloads/workloada operationcount=1500 -target 1000 -s status.interval=1"
    check_on_time(
        engine_with_data,
        command,
        check_summaries,
        f"measurementtype={kind}",
        "measurement.raw.output_file=status-raw.txt",
    )


def test_timeseries_puts_its_status_lines_on_stdout_too(engine_with_data: Engine) -> None:
    result = engine_with_data("run null -P workloads/workloada measurementtype=timeseries -s")
    lines = [line for line in result.err.splitlines() if " operations; " in line]
    assert lines
    assert result.out.splitlines()[: len(lines)] == lines
    expected = sample("timeseries.err").splitlines()[-2:]
    assert sample("timeseries.out").splitlines()[:2] == expected, "as YCSB does"


def test_nothing_but_the_report_is_on_stdout(engine_with_data: Engine) -> None:
    for command in (
        "load rocksdb -P workloads/workloada rocksdb.dir=db -s -threads 3",
        "run rocksdb -P workloads/workloadd rocksdb.dir=db -s -threads 2000",
        "run null -P workloads/workloada maxexecutiontime=1 threads=10",
    ):
        result = engine_with_data.run(command)
        assert plain(result.out) == set(), command


def test_the_banner_comes_in_ycsbs_order_on_stderr(engine_with_data: Engine) -> None:
    result = engine_with_data("run rocksdb -P workloads/workloadc rocksdb.dir=db -s")
    starts = ("Command line: ", "Loadstone ", "Loading workload...", "Starting test.", "20")
    at = [next(i for i, line in enumerate(result.err.splitlines()) if line.startswith(start)) for start in starts]
    assert at == sorted(at)
    assert "-P " in result.err.splitlines()[0]
    assert "rocksdb.dir=db" in result.err.splitlines()[0]


def test_run_time_and_throughput_agree_with_the_operations(engine_with_data: Engine) -> None:
    def agreeing(result: CommandResult) -> None:
        ms, rate = result.value("OVERALL", "RunTime(ms)"), result.value("OVERALL", "Throughput(ops/sec)")
        assert 980 <= ms <= 1100
        assert abs(rate * ms / 1000 - 1000) < 2

    check_on_time(engine_with_data, "run null -P workloads/workloadc operationcount=1000 -target 1000", agreeing)


def test_export_file_holds_the_whole_report(engine_with_data: Engine) -> None:
    target = engine_with_data.home / "report.txt"
    target.write_text("old\n" * 10_000)
    result = engine_with_data("run null -P workloads/workloadc exportfile=report.txt", YCSB)
    assert result.out == ""
    assert skeleton(target.read_text()) == skeleton(sample("run_c.out"))
    assert [path.name for path in engine_with_data.home.glob("report.txt*")] == ["report.txt"]


# A histogram in HdrHistogram's V2 form: a cookie, the length of a deflated body, and within it a header and counts in
# ZigZag LEB128, with runs of zeros as negative counts. Source: HdrHistogram's AbstractHistogram.java.
def hdr_counts(text: str) -> dict[int, int]:
    """Counts by the lowest value of each bucket, with 3 significant digits."""
    data = base64.b64decode(text)
    cookie, length = struct.unpack(">II", data[:8])
    assert cookie == 0x1C849314, f"{cookie:#x}: HdrHistogram's readers take the compressed form only"
    body = zlib.decompress(data[8 : 8 + length])
    cookie, size, offset, digits, lowest, highest, ratio = struct.unpack(">IIIIQQd", body[:40])
    assert (cookie, offset, digits, lowest, ratio) == (0x1C849313, 0, 3, 1, 1.0)
    counts, index, at = {}, 0, 40
    while at < 40 + size:
        value = shift = 0
        while True:
            byte, at = body[at], at + 1
            value |= (byte & 0x7F if shift < 56 else byte) << shift
            shift += 7
            if byte < 0x80 or shift > 56:
                break
        value = (value >> 1) ^ -(value & 1)
        if value < 0:
            index -= value
            continue
        bucket, sub = (index >> 10) - 1, (index & 1023) + 1024
        if bucket < 0:
            bucket, sub = 0, sub - 1024
        if value:
            counts[sub << bucket] = value
        index += 1
    assert all(low <= highest for low in counts)
    return counts


def test_test_decoder_reads_the_output_of_hdrhistogram() -> None:
    """HdrHistogram 2.2.2 for Java wrote 0, 1, 2047, 2048, 5000 three times, and 1234567; then 7, 300 million times."""
    few = {0: 1, 1: 1, 2047: 1, 2048: 1, 5000: 3, 1233920: 1}
    assert hdr_counts("HISTFAAAACt42pNpmSzMwMDAwwABzFCaEUzK//9v/wEiwMT0U56J6aAw2+J6JgCajgfB") == few
    many = "HISTFAAAADN42pNpmSzMwMAgxAABzFCaEch0M9ixgMH+A0SAiYmzoad3HtNbeSamg8Jsi+uZANAXCbE="
    assert hdr_counts(many) == {**few, 7: 300_000_000}


def test_hdr_files_follow_the_published_format(engine_with_data: Engine) -> None:
    result = engine_with_data(
        "run rocksdb -P workloads/workloada rocksdb.dir=db operationcount=2500 -target 1000 -s status.interval=1 "
        "hdrhistogram.fileoutput=true hdrhistogram.output.path=log_"
    )
    assert sorted(path.name for path in engine_with_data.home.glob("log_*")) == [
        *("log_CLEANUP.hdr", "log_READ.hdr", "log_UPDATE.hdr")
    ]
    expected = sample("hdr_READ.hdr").splitlines()
    for metric in ("READ", "UPDATE", "CLEANUP"):
        head, lines = split_log(engine_with_data.home / f"log_{metric}.hdr")
        assert head[0] == f"#[Logging for: {metric}]"
        assert re.fullmatch(r"#\[Histogram log format version 1\.[1-3]\]", head[1])
        assert re.match(r"#\[StartTime: \d{10}\.\d{3} \(seconds since epoch\)", head[2])
        assert head[3] == expected[3]
        assert len(head) == 4
        total = 0
        start = 0.0
        for line in lines:
            match = re.fullmatch(r"(\d+\.\d{3}),(\d+\.\d{3}),(\d+\.\d{3}),([\w+/=]+)", line)
            assert match, line
            counts = hdr_counts(match[4])
            assert float(match[1]) >= start - 0.002, "intervals follow one another"
            start = float(match[1]) + float(match[2])
            assert abs(max(counts, default=0) / 1e6 - float(match[3])) < 0.002
            total += sum(counts.values())
        assert total == result.value(metric, "Operations")


def test_hdr_files_start_after_the_warm_up(engine_with_data: Engine) -> None:
    begin = time.time()
    engine_with_data(
        "run rocksdb -P workloads/workloada rocksdb.dir=db operationcount=2000 -target 1000 warmuptime=1 "
        "hdrhistogram.fileoutput=true hdrhistogram.output.path=warm_"
    )
    head, _ = split_log(engine_with_data.home / "warm_READ.hdr")
    start = re.match(r"#\[StartTime: (\d+\.\d+)", head[2])
    assert start
    assert float(start[1]) >= begin + 1


def split_log(path: Path) -> tuple[list[str], list[str]]:
    lines = path.read_text().splitlines()
    return [line for line in lines if line[0] in '#"'], [line for line in lines if line[0] not in '#"']


def test_numbers_are_written_as_java_writes_them() -> None:
    """Tests this file's reference implementation on values printed by JDK 17."""
    for text in ("0.0", "1.0", "100.0", "0.001", "1.0E-4", "9.999E-4", "1.0E7", "1.23456789E7", "9999999.999", "NaN"):
        assert java_double(float(text)) == text
    for path in SAMPLES.glob("*.out"):
        for _, _, value in report(path.read_text()):
            assert kind(value) in ("whole", "real"), path
