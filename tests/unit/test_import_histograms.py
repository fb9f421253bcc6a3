"""fio's JSON and HDR histogram logs."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from imports_support import FIXTURES, YCSB, figures, read_single, refusal, write_file
from loadstone.engine.histogram import Histogram, encode_histogram
from loadstone.errors import LoadstoneError
from loadstone.importers.hlog_parser import decode_any_version
from loadstone.importers.processes import merge_logs
from loadstone.importers.read import read_file
from loadstone.importers.run import bucket_index, build_histogram
from loadstone.results import hlog
from results_support import intervals

# The log of `tests/unit/test_histogram.py`: five small values, a thousand times 5,000, and two large values.
ENCODED = "HISTFAAAADt4nJNpmSzMwMAgwwABzFCaEch0M9ixgMH+A0SAiemnPBPTX36mg8wX+E97MV08z8i0O7MBBBwAVH4O1g=="
HEADER = '#[Histogram log format version 1.3]\n"StartTimestamp","Interval_Length","Interval_Max","Compressed"\n'


# fio.


def report(name: str) -> dict[str, Any]:
    """One of fio's reports, as JSON."""
    return dict(json.loads((FIXTURES / name).read_text()))


def test_fio_job_gives_bandwidth_rate_and_latencies() -> None:
    job = report("fio-mixed.json")["jobs"][0]
    run = read_single(FIXTURES / "fio-mixed.json")
    assert figures(run, "read.bandwidth", "write.throughput", "throughput", "read.p99.9", "sync.mean", "runtime") == {
        "read.bandwidth": (job["read"]["bw_bytes"], "B/s", 1426),
        "write.throughput": (job["write"]["iops"], "op/s", 622),
        "throughput": (job["read"]["iops"] + job["write"]["iops"], "op/s", 2048),
        "read.p99.9": (205_824, "ns", 1426),
        "sync.mean": (265_063.2, "ns", 60),
        "runtime": (153_000_000, "ns", 1),
    }
    assert run.result.value("device.vda.util") == pytest.approx(0.41441441)
    assert run.result.facts == {
        "tool": "fio",
        "version": "fio-3.33",
        "job_name": "mixed",
        "jobs": 1,
        "io_engine": "psync",
        "block_size": "4k",
        "size": "8m",
        "iodepth": 1,
        "numjobs": 1,
        "fdatasync": 0,
        "work.sync": 0,
        "direct": "0",
        "fsync": 32,
        "mode": "randrw",
        "work.rwmixread": 70,
        "latency": "completion",
    }
    # iodepth × numjobs is a number of clients only if the engine is asynchronous and keeps its queue full.
    assert run.result.clients is None


@pytest.mark.parametrize(
    ("options", "level", "depth"),
    [
        ({"ioengine": "psync"}, 100.0, 1),
        ({"ioengine": "mmap"}, 100.0, 1),
        ({}, 100.0, 1),
        ({}, 0.1, 8),
        ({"ioengine": "io_uring"}, 0.1, 8),
        # At a low rate, too, few operations are in flight.
        ({"ioengine": "libaio"}, 100.0, 8),
        ({"ioengine": "psync", "io_submit_mode": "offload"}, 100.0, 8),
    ],
)
def test_iodepth_of_synchronous_fio_engine_is_one(
    options: dict[str, str], level: float, depth: int, tmp_path: Path
) -> None:
    document = report("fio-mixed.json")
    job = document["jobs"][0]
    del job["job options"]["ioengine"]
    job["job options"] |= {"iodepth": "8", **options}
    job["iodepth_level"] = {"1": level, "8": 100 - level}
    run = read_single(write_file(tmp_path, json.dumps(document), "fio.json"))
    assert run.result.facts["iodepth"] == depth
    assert [note.name for note in run.result.notes] == ["depth-capped"] * (depth == 1)


def test_iodepth_in_normal_fio_output_is_capped(tmp_path: Path) -> None:
    text = (FIXTURES / "fio-normal.txt").read_text().replace("iodepth=1", "iodepth=8")
    assert "ioengine=psync, iodepth=8" in text
    assert read_file(write_file(tmp_path, text, "fio.txt"), {})[0].result.facts["iodepth"] == 1


def test_equally_named_jobs_are_merged_by_their_bins() -> None:
    writer, reader = read_file(FIXTURES / "fio-two-jobs.json", {})
    assert [run.result.config["variant"] for run in (writer, reader)] == ["writer", "reader"]
    jobs = [job["read"] for job in report("fio-two-jobs.json")["jobs"] if job["jobname"] == "reader"]
    values = [int(value) for job in jobs for value, n in job["clat_ns"]["bins"].items() for _ in range(n)]
    assert len(values) == 4096
    exact = sorted(values)[int(4096 * 0.99)]
    assert reader.result.value("read.p99") == pytest.approx(exact, rel=2e-3)
    assert reader.result.value("read.bandwidth") == sum(job["bw_bytes"] for job in jobs)
    # fio's own percentiles are kept unchanged.
    assert writer.result.value("write.p99") == 292_864


def test_consecutive_jobs_of_one_name_stay_separate(tmp_path: Path) -> None:
    document = report("fio-two-jobs.json")
    document["jobs"][-1]["groupid"] += 1
    runs = read_file(write_file(tmp_path, json.dumps(document)), {})
    assert [run.result.config["variant"] for run in runs] == ["writer", "reader", "reader-2"]
    expected = [job["read"]["bw_bytes"] for job in document["jobs"][1:]]
    assert [run.result.value("read.bandwidth") for run in runs[1:]] == expected


def test_percentiles_of_jobs_without_bins_are_omitted(tmp_path: Path) -> None:
    document = report("fio-two-jobs.json")
    for job in document["jobs"]:
        for way in ("read", "write"):
            job[way]["clat_ns"].pop("bins", None)
    reader = read_file(write_file(tmp_path, json.dumps(document)), {})[1].result
    assert "read.p99" not in reader.values
    assert [note.name for note in reader.notes] == ["percentiles-left-out"]
    assert reader.value("read.max") == max(job["read"]["clat_ns"]["max"] for job in document["jobs"][1:])


def test_report_within_normal_output_is_read() -> None:
    result = read_single(FIXTURES / "fio-paced.txt").result
    assert (result.loop, result.values["write.mean"].n) == ("open", 64)


def test_a_failed_job_has_a_note(tmp_path: Path) -> None:
    document = report("fio-mixed.json")
    document["jobs"][0]["error"] = 5
    result = read_single(write_file(tmp_path, json.dumps(document))).result
    assert (result.end, [note.message for note in result.notes]) == ("failed", ["fio failed with error 5"])


def test_the_units_of_fio_2_are_known(tmp_path: Path) -> None:
    document = report("fio-mixed.json")
    for way in ("read", "write", "trim"):
        part = document["jobs"][0][way]
        del part["bw_bytes"]
        for name in ("clat", "lat", "slat"):
            old = part.pop(f"{name}_ns")
            part[name] = {key: value / 1000 for key, value in old.items() if key not in ("N", "percentile")}
            if "percentile" in old:
                part[name]["percentile"] = {key: value / 1000 for key, value in old["percentile"].items()}
    new, old_ = (
        read_single(FIXTURES / "fio-mixed.json").result,
        read_single(write_file(tmp_path, json.dumps(document))).result,
    )
    assert old_.value("read.p99") == pytest.approx(new.value("read.p99"))
    assert old_.value("write.mean") == pytest.approx(new.value("write.mean"))
    # KiB/s, rounded down.
    assert old_.value("read.bandwidth") == pytest.approx(new.value("read.bandwidth"), abs=1024)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"rw" : "randrw"', '"rw" : "read", "rw" : "randrw"'),
        ('"bw_dev" : 0.000000', '"bw_dev" : -nan'),
        ('"iops_stddev" : 0.000000', '"iops_stddev" : inf'),
    ],
)
def test_peculiarities_of_fios_json_change_nothing(before: str, after: str, tmp_path: Path) -> None:
    text = (FIXTURES / "fio-mixed.json").read_text()
    assert before in text
    run = read_single(write_file(tmp_path, text.replace(before, after), "fio-mixed.json"))
    assert run.result == read_single(FIXTURES / "fio-mixed.json").result


@pytest.mark.parametrize(("length", "message"), [("1m", "after 59 of 60 s"), ("60", "after 59 of 60 s"), ("59s", "")])
def test_length_of_a_timed_job_has_units(length: str, message: str, tmp_path: Path) -> None:
    document = report("fio-mixed.json")
    job = document["jobs"][0]
    job["job options"] |= {"time_based": "", "runtime": length}
    for way in ("read", "write"):
        factor = job[way]["runtime"] / 59_000
        job[way] |= {"runtime": 59_000, **{name: job[way][name] * factor for name in ("iops", "bw", "bw_bytes")}}
    path = write_file(tmp_path, json.dumps(document))
    if message:
        assert message in refusal(path)
    else:
        assert read_single(path).result.value("runtime") == 59e9


def test_terse_lines_follow_normal_output(tmp_path: Path) -> None:
    text = "".join((FIXTURES / name).read_text() for name in ("fio-normal.txt", "fio-terse.txt"))
    runs = read_file(write_file(tmp_path, text, "fio-normal.txt"), {})
    assert [run.result.values for run in runs] == [
        run.result.values for run in read_file(FIXTURES / "fio-normal.txt", {})
    ]


def test_jobs_of_different_lengths_share_the_longest(tmp_path: Path) -> None:
    document = report("fio-two-jobs.json")
    _, first, second = document["jobs"]
    second["read"] |= {name: second["read"][name] / 4 for name in ("iops", "bw", "bw_bytes")}
    second["read"]["runtime"] *= 4
    result = read_file(write_file(tmp_path, json.dumps(document)), {})[1].result
    done = first["read"]["total_ios"] + second["read"]["total_ios"]
    assert result.values["throughput"].value * result.values["runtime"].value / 1e9 == pytest.approx(done, rel=0.01)
    assert "processes-apart" in [note.name for note in result.notes]


def test_reads_that_verify_are_not_in_the_totals(tmp_path: Path) -> None:
    document = report("fio-mixed.json")
    document["jobs"][0]["job options"]["rw"] = "randwrite"
    result = read_single(write_file(tmp_path, json.dumps(document))).result
    assert result.value("throughput") == document["jobs"][0]["write"]["iops"]
    assert "verification" in [note.name for note in result.notes]


# HDR histogram logs.


@pytest.mark.parametrize("deflated", [False, True])
@pytest.mark.parametrize(("word", "size"), [("h", 2), ("i", 4), ("q", 8)])
@pytest.mark.parametrize("version", [0, 1])
def test_older_encodings_of_histograms_are_read(version: int, word: str, size: int, deflated: bool) -> None:
    # The values 1,000, 1,000 and 2,047, with 3 digits (AbstractHistogram.java: encodeIntoByteBuffer).
    counts = [0] * 2048
    counts[1000], counts[2047] = 2, 1
    data = struct.pack(f">2048{word}", *counts)
    bits = size << 4
    header = (
        struct.pack(">iiqqq", 0x1C849308 | bits, 3, 1, 1 << 40, 3)
        if version == 0
        else struct.pack(">iiiiqqd", 0x1C849301 | bits, len(data), 0, 3, 1, 1 << 40, 1.0)
    )
    data = header + data
    if deflated:
        packed = zlib.compress(data)
        data = struct.pack(">ii", (0x1C849309 if version == 0 else 0x1C849302) | bits, len(packed)) + packed
    assert decode_any_version(base64.b64encode(data).decode()).counts == {1000: 2, 2047: 1}


def test_ycsbs_histogram_log_agrees_with_its_report() -> None:
    log, text = read_single(YCSB / "hdr_READ.hdr"), read_single(YCSB / "hdrfile.out")
    # Only six of 600 values are above the 99th percentile; the judge, not the importer, reports this.
    for metric in ("read.p95", "read.p99", "read.min", "read.max", "read.count"):
        assert log.result.values[metric] == text.result.values[metric]
    assert log.result.value("read.mean") == pytest.approx(text.result.value("read.mean"), rel=1e-4)
    assert log.result.start_unix_ns == 1_795_253_945_951_000_000
    assert log.series is not None
    assert log.series.length_seconds == (0.461, 0.882, 0.249)
    assert log.series.throughput[:2] == pytest.approx((124 / 0.461, 476 / 0.882))


def test_our_own_log_has_response_times_as_headline(tmp_path: Path) -> None:
    lines = "".join(
        f"Tag={tag},{start}.000,1.000,1,{ENCODED}\n"
        for start in (0, 1)
        for tag in ("READ", "READ-response", "READ-ERROR", "VERIFY")
    )
    run = read_single(write_file(tmp_path, f"{hlog.UNIT}\n{HEADER}{lines}", "run.hlog"))
    expected = Histogram()
    for _, _, _, histogram in intervals(tmp_path / "run.hlog"):
        expected.counts += histogram.counts
    n = expected.count // 4
    # As many operations failed as succeeded; failed operations have only service times.
    assert figures(run, "read.p50", "read.service.p50", "read-error.max", "errors") == {
        "read.p50": (100_059_316_223, "ns", n),
        "read.service.p50": (100_059_316_223, "ns", 2 * n),
        "read-error.max": (100_059_316_223, "ns", n),
        "errors": (n, "operations", n),
    }
    assert (run.result.loop, run.result.facts["tool"]) == ("open", "loadstone")
    assert run.result.statuses == {"READ": {"OK": n, "ERROR": n}}


def test_unit_of_another_log_is_a_fact(tmp_path: Path) -> None:
    path = write_file(tmp_path, f"{HEADER}0.0,2.0,1,{ENCODED}\n", "a.hlog")
    assert refusal(path) == (
        "error: the unit of the log's values is unknown (a.hlog)\n"
        "hint: write `hlog_unit: us` (or ns, or ms) into a.hlog.facts.yaml"
    )
    ns, us = (read_single(path, hlog_unit=unit).result for unit in ("ns", "us"))
    assert us.value("all.max") == (ns.value("all.max") or 0) * 1000
    assert ns.value("throughput") == ns.values["all.max"].n / 2
    assert 'hlog_unit must be ns, us or ms, got "s" (a.hlog)' in refusal(path, {"hlog_unit": "s"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"0.0,1.0,1,{ENCODED[:50]}", "a line of the histogram log is damaged: not an HDR histogram"),
        ("0.0,1.0", "it has 2 fields instead of 4 (a.hlog:3)"),
        (f"0.0,1.0,1,{base64.b64encode(b'x' * 60).decode()}", "not an HDR histogram"),
        ("", "the histogram log has no values (a.hlog)"),
    ],
)
def test_a_damaged_log_is_refused(tmp_path: Path, line: str, message: str) -> None:
    assert message in refusal(write_file(tmp_path, f"{HEADER}{line}\n", "a.hlog"), {"hlog_unit": "ns"})


def test_buckets_are_those_of_the_layout() -> None:
    values = [0, 1, 2047, 2048, 2049, 4095, 4096, 123_456, 10**9, 2**40 + 17]
    highest = Histogram().layout.highest_equivalent
    lowest = Histogram().layout.lowest_equivalent
    assert all(lowest(bucket_index(value)) <= value <= highest(bucket_index(value)) for value in values)


# Tags have the meaning given by the tool that wrote them.

STRESS = "#Logging op latencies for Cassandra Stress\n"
CQL_STRESS = "#[Logged with Cql-stress 0.2]\n"


def intervals_of(*tags: str, comment: str = "", starts: tuple[float, ...] = (0, 1), length: float = 1.0) -> str:
    lines = (f"Tag={tag},{start:.3f},{length:.3f},1,{ENCODED}\n" for start in starts for tag in tags)
    return f"{comment}{HEADER}{''.join(lines)}"


@pytest.mark.parametrize("comment", [STRESS, CQL_STRESS])
def test_response_tags_of_cassandra_stress_are_headlines(comment: str, tmp_path: Path) -> None:
    text = intervals_of("READ-st", "READ-rt", "READ-wt", comment=comment)
    result = read_single(write_file(tmp_path, text, "a.hlog")).result
    n = result.values["read.p99"].n
    assert (result.loop, result.value("throughput"), result.statuses) == ("open", n / 2, {"READ": {"OK": n}})
    assert {"read.p99", "read.service.p99", "all.p99"} <= result.values.keys()
    assert not any("wt" in metric for metric in result.values)
    assert [note.message for note in result.notes] == ['unknown to this importer, and omitted: "READ-wt (wait)"']


def test_tags_of_scylla_bench_are_all_operations(tmp_path: Path) -> None:
    result = read_single(write_file(tmp_path, intervals_of("co-fixed", "raw", comment=STRESS), "a.hlog")).result
    n = result.values["all.p99"].n
    assert (result.facts["tool"], result.facts["latency"]) == ("scylla-bench", "response")
    assert (result.value("throughput"), result.values["all.service.p99"].n) == (n / 2, n)


def test_user_operations_with_hyphens_stay_whole(tmp_path: Path) -> None:
    result = read_single(write_file(tmp_path, intervals_of("by-user-st", comment=STRESS), "a.hlog")).result
    assert list(result.statuses) == ["by-user"]
    assert "by-user.p99" in result.values


def test_tags_of_an_unknown_tool_have_no_total(tmp_path: Path) -> None:
    path = write_file(tmp_path, intervals_of("get-user", "cycles"), "a.hlog")
    result = read_single(path, hlog_unit="us").result
    assert {"get-user.p99", "cycles.p99"} <= result.values.keys()
    assert {"throughput", "all.p99", "operations", "errors"}.isdisjoint(result.values)
    assert [note.name for note in result.notes] == ["unknown-tags"]


@pytest.mark.parametrize(
    ("starts", "length"),
    [((0, 1, 2), 1.5), ((0, 0.5), 1.0), ((0, 1, 0.2), 1.0)],
    ids=["ends as lengths", "shifted", "out of order"],
)
def test_overlapping_intervals_are_refused(starts: tuple[float, ...], length: float, tmp_path: Path) -> None:
    text = intervals_of("READ-st", comment=STRESS, starts=starts, length=length)
    assert "intervals of READ overlap" in refusal(write_file(tmp_path, text, "a.hlog"))


def test_intervals_of_shifted_tags_add_up_once(tmp_path: Path) -> None:
    text = intervals_of("READ-st", comment=STRESS) + intervals_of("WRITE-st", starts=(0.004, 1.004)).partition("\n")[2]
    result = read_single(write_file(tmp_path, text, "a.hlog"))
    n = result.result.values["read.p99"].n
    assert result.result.value("throughput") == pytest.approx(2 * n / 2.004)
    assert result.series is None


def test_invalid_times_give_no_throughput(tmp_path: Path) -> None:
    text = intervals_of(
        "raw", "co-fixed", comment=STRESS, starts=(-1_729_172_757.339, -1_729_172_757.338), length=0.001
    )
    result = read_single(write_file(tmp_path, text, "a.hlog")).result
    assert "throughput" not in result.values
    assert "all.p99" in result.values
    assert [note.name for note in result.notes] == ["times-unknown"]


# Processes of one run.


def write_process(folder: Path, number: int, seconds: int = 2) -> Path:
    """The log of a process whose operations take `number` ms, 10 in each second."""
    values = encode_histogram(build_histogram([(number * 1_000_000, 10)]))
    base = f"#[BaseTime: {1_730_000_000 + number / 1000:.3f} (seconds since epoch)]\n"
    lines = (f"Tag=WRITE-st,{start:.3f},1.000,1,{values}\n" for start in range(seconds))
    return write_file(folder, f"{STRESS}{base}{HEADER}{''.join(lines)}", f"process-{number}.hlog")


def test_logs_of_500_processes_are_one_trial(tmp_path: Path) -> None:
    paths = [write_process(tmp_path, number) for number in range(1, 501)]
    (imported,) = merge_logs(paths, {"clients": 500})
    result = imported.result
    assert (result.clients, result.facts["processes"], result.statuses) == (500, 500, {"WRITE": {"OK": 10_000}})
    # The percentile of all operations; the mean of the 500 processes' percentiles would be 250.5 ms.
    assert result.value("write.p95") == pytest.approx(475e6, rel=0.001)
    assert result.value("throughput") == pytest.approx(10_000 / 2.499)
    (note,) = result.notes
    assert (note.name, "2.50 s" in note.message, "1.50 s" in note.message) == ("processes-apart", True, True)


def test_percentiles_of_processes_are_not_merged(tmp_path: Path) -> None:
    paths = [write_process(tmp_path, 1), FIXTURES / "cassandra-stress-write.txt"]
    with pytest.raises(LoadstoneError, match=r"only percentiles.*\(cassandra-stress-write.txt\)") as caught:
        merge_logs(paths, {})
    assert "hdrfile" in str(caught.value.hint)


def test_later_log_in_a_file_is_another_run(tmp_path: Path) -> None:
    text = (FIXTURES / "cassandra-stress.hlog").read_text()
    later = text.replace("1730903661.000", "1730904000.000")
    runs = read_file(write_file(tmp_path, text + later, "cassandra-stress.hlog"), {})
    (whole,) = read_file(FIXTURES / "cassandra-stress.hlog", {})
    assert [run.result.values for run in runs] == [whole.result.values] * 2
    overlapping = text.replace("1730903661.000", "1730903662.000")
    assert "occurs twice" in refusal(write_file(tmp_path, text + overlapping, "cassandra-stress.hlog"))


def test_copied_log_of_a_process_is_refused(tmp_path: Path) -> None:
    original = write_process(tmp_path, 1)
    copy = write_file(tmp_path, original.read_text(), "copy.hlog")
    with pytest.raises(LoadstoneError, match=r"copy.hlog is a copy of .*process-1.hlog"):
        merge_logs([original, copy], {})


def test_logs_without_starts_have_a_note(tmp_path: Path) -> None:
    paths = [write_process(tmp_path, number) for number in (1, 2)]
    paths[1].write_text("".join(line for line in paths[1].read_text().splitlines(True) if "BaseTime" not in line))
    (imported,) = merge_logs(paths, {})
    assert [note.name for note in imported.result.notes] == ["starts-unknown"]


@pytest.mark.parametrize("comment", ["   # slow", " best of 3, or 4", "\tsee ticket 42"])
def test_comment_after_histogram_is_named(comment: str, tmp_path: Path) -> None:
    text = (FIXTURES / "cassandra-stress.hlog").read_text()
    lines = text.rstrip("\n").split("\n")
    lines[-1] += comment
    runs = read_file(write_file(tmp_path, "\n".join(lines) + "\n", "cassandra-stress.hlog"), {})
    assert [run.result.values for run in runs] == [
        run.result.values for run in read_file(FIXTURES / "cassandra-stress.hlog", {})
    ]
    assert comment.strip() in next(note.message for note in runs[0].result.notes if note.name == "unknown")
