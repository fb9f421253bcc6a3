"""Comments, unknown lines and unread figures in output of every format are named and have no effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imports_support import FIXTURES, OUTPUTS, for_every_output, format_of, is_json, read_whole, try_read, write_file
from loadstone.importers import read as reading
from loadstone.importers.explain import explain_file
from loadstone.importers.read import read_file


@pytest.mark.parametrize("comment", ["   # our first run", "  // slow", " <-- best", " ##慢", " <=== 2 ms!", " -- slow",
                                     " => best", " ⬅️ best"])  # fmt: skip
@pytest.mark.parametrize("path", [path for path in OUTPUTS if path.stat().st_size < 4000], ids=lambda path: path.name)
def test_comments_after_figures_change_nothing(path: Path, comment: str, tmp_path: Path) -> None:
    if is_json(path) or format_of(path) in ("csv", "hlog", "fio-terse"):
        pytest.skip("lines of this format are documents or rows")
    lines = path.read_text().split("\n")
    text = "\n".join(f"{line}{comment}" if line.strip() and not line.endswith("\\") else line for line in lines)
    runs = read_file(write_file(tmp_path, text, path.name), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole(path)]
    assert all(
        comment.strip() in next(note.message for note in run.result.notes if note.name == "unknown") for run in runs
    )


# The texts after which the test adds a comment without a mark such as `#`.
UNMARKED = [
    ("ycsb-0.3.txt", "[READ], 99thPercentileLatency(us), 4000"),
    ("cassandra-stress-docker.txt", "[WRITE: 47.6 ms]"),
    ("cassandra-stress-3.0-auto.txt", ": 00:00:54"),
    ("sysbench-oltp.txt", "total number of events:"),
    ("sysbench-oltp.txt", "total time:"),
    ("pgbench-rate.txt", "number of clients: 4"),
    ("redis-benchmark-5.txt", "73529.41 requests per second"),
    ("redis-benchmark.csv", '"SET",'),
    ("memtier.txt", "3         Connections per thread"),
    ("scylla-bench.txt", "Total ops:"),
    ("go-ycsb-runs.md", "INSERT - Takes(s): 15.3"),
    ("go-ycsb-table.txt", "| READ "),
    ("ycsb-cpp.txt", "Load runtime(sec):"),
    ("TestDFSIO_results.log", "Number of files:"),
    ("hbase-pe-1.1.txt", "99th "),
    ("teragen.txt", "Map input records="),
    ("fio-normal.txt", "  read: IOPS="),
    ("scylla-bench.txt", "Concurrency:"),
    ("go-ycsb-measurements.csv", "UPDATE,1764200000001330"),
    ("sysbench-1.1-fileio.txt", "read:  IOPS="),
]


COMMENTS = [" (slow run)", "    our best", "\uff08\u6162\uff09", " best of 3", "  see ticket 42", " [1]", " | 3 nodes",
            " @ 4 clients", " >2x slower", ' "slow"', " +12%", " - 2nd run", " == 4 ms", "\uff08\u7b2c3\u6b21\uff09",
            " ~5 % off", " ; max: 7", ": cold", "; 2nd run"]  # fmt: skip


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize(("name", "figure"), UNMARKED)
def test_unmarked_comment_is_named(name: str, figure: str, comment: str, tmp_path: Path) -> None:
    lines = (FIXTURES / name).read_text().split("\n")
    index = next(index for index, line in enumerate(lines) if figure in line)
    lines[index] += comment
    runs = read_file(write_file(tmp_path, "\n".join(lines), name), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole(FIXTURES / name)]
    assert comment.strip() in next(note.message for note in runs[0].result.notes if note.name == "unknown")


CLEAN_SCYLLA = (FIXTURES / "scylla-bench.txt").read_text()
FAILURES = {
    "cassandra-stress": re.sub(
        r"(Total errors +: +)0 \[WRITE: 0\]",
        r"\g<1>10,000 [WRITE: 10,000]",
        re.sub(
            r"500,000(?= \[)|(?<=WRITE: )500,000", "490,000", (FIXTURES / "cassandra-stress-docker.txt").read_text()
        ).replace(" 18,020 pk/s", " 17,660 pk/s"),
    ),
    "scylla-bench": CLEAN_SCYLLA.replace("Total rows:", "Total errors:\t 7\nTotal rows:"),
    "sysbench": (FIXTURES / "sysbench-oltp.txt").read_text(),
    "pgbench": (FIXTURES / "pgbench-reconnect.txt").read_text(),
}
FAILURE = re.compile(r"(?m)^.*(?:Total errors|ignored errors|failed transactions).*$")


@pytest.mark.parametrize("tool", FAILURES)
def test_comment_hides_no_failures(tool: str, tmp_path: Path) -> None:
    (whole,) = read_file(write_file(tmp_path, FAILURES[tool], "a.log"), {})
    assert whole.result.value("errors")
    for comment in COMMENTS:
        text = FAILURE.sub(rf"\g<0>{comment}", FAILURES[tool])
        (run,) = read_file(write_file(tmp_path, text, "a.log"), {})
        assert run.result.values == whole.result.values
        assert comment.strip() in next(note.message for note in run.result.notes if note.name == "unknown")


@pytest.mark.parametrize(("name", "figure"), UNMARKED)
def test_number_after_figure_is_unclear(name: str, figure: str, tmp_path: Path) -> None:
    lines = (FIXTURES / name).read_text().split("\n")
    index = next(index for index, line in enumerate(lines) if figure in line)
    lines[index] += " 300 of 5"
    path = write_file(tmp_path, "\n".join(lines), name)
    runs = try_read(path)
    if runs is None:
        return
    notes = [note.message for run in runs for note in run.result.notes if note.name == "unknown"]
    assert any("300 of 5" in note for note in notes)
    for run, whole in zip(runs, read_whole(FIXTURES / name), strict=True):
        values, known = ({(name, part.value) for name, part in side.result.values.items()} for side in (run, whole))
        assert values <= known


@pytest.mark.parametrize("end", [" \\", "<br>", "  <br/>"])
def test_line_breaks_of_markdown_are_removed(end: str, tmp_path: Path) -> None:
    text = (FIXTURES / "ycsb-0.3.txt").read_text()
    runs = read_file(write_file(tmp_path, "\n".join(f"{line}{end}" for line in text.split("\n")), "ycsb-0.3.txt"), {})
    assert [run.result for run in runs] == [run.result for run in read_whole(FIXTURES / "ycsb-0.3.txt")]


@for_every_output
def test_unknown_lines_and_keys_change_nothing(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    if is_json(path):
        more = re.sub(r"([{]\s*)(?=\"(?!metric))", r'\1"frobnication": 42, ', text, count=1)
        more = more if more != text else text.replace("{", '{"frobnication": 42, ', 1)
    else:
        lines = text.split("\n")
        # Unknown lines are added only at the ends: within continued shell lines or tables, they would be damage.
        more = "\n".join(["frobnication 42 frob", *lines, "frobnication 42 frob", ""])
    changed = read_file(write_file(tmp_path, more, path.name), {})
    assert [run.result.values for run in changed] == [run.result.values for run in read_whole(path)]
    assert any("frobnication" in line for line in explain_file(tmp_path / path.name, {})) or path.suffix in (
        ".hlog",
        ".hdr",
    )


@pytest.mark.parametrize(
    "name",
    ["fio-mixed.json", "fio-two-jobs.json", "fio-client.json", "fio-2.15.json", "memtier.json", "latte.json",
     "hyperfine.json", "go-ycsb-json.txt", "../ycsb/json.txt", "../ycsb/jsonarr.out"],
)  # fmt: skip
def test_unknown_key_in_any_object_is_named(name: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    # A job's options are strings, and each option becomes a fact.
    more = re.sub(r'("job options"\s*:\s*)?([{]\s*)(?=")', lambda match: match[0] if match[1] else match[0]
                  + '"frobnication": 42, ', text)  # fmt: skip
    path = write_file(tmp_path, more, name.rpartition("/")[2])
    assert [run.result.values for run in read_file(path, {})] == [
        run.result.values for run in read_file(FIXTURES / name, {})
    ]
    assert any("frobnication" in line.lower() for line in explain_file(path, {}))


UNKNOWN_NAMES = [
    ("cassandra-stress-read.txt", "Total partitions", "Latency 42 ms\nLatency spread : 3.1 ms\nTotal partitions"),
    ("../ycsb/run_a.out", "[READ], AverageLatency(us)", "[READ], SpreadLatency(us), 42\n[READ], AverageLatency(us)"),
    ("go-ycsb.txt", ", 99.99th(us):", ", Spread(us): 7, 99.99th(us):"),
    ("hbase-pe-sequentialWrite.txt", "mean=", "spread=7, mean="),
    ("memtier.json", '"Average Latency": 0.227', '"Spread Latency": 0.1, "Average Latency": 0.227'),
    ("sysbench-oltp.txt", "         sum: ", "         spread:  7.00\n         sum: "),
    ("ycsb-cpp.txt", " 99.99=10248.19]", " 99.99=10248.19 Spread=3]"),
    ("testdfsio-annotated.txt", "# size", "# spread"),
]


@pytest.mark.parametrize(("name", "line", "more"), UNKNOWN_NAMES, ids=lambda value: value[:30])
def test_unknown_figures_are_named(name: str, line: str, more: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    assert line in text
    runs = read_file(write_file(tmp_path, text.replace(line, more)), {})
    assert [run.result.values for run in runs] == [run.result.values for run in read_whole((FIXTURES / name).resolve())]
    notes = [note for run in runs for note in run.result.notes if note.name == "unknown"]
    assert any("spread" in note.message.lower() for note in notes)


def test_damaged_mode_names_no_operation(tmp_path: Path) -> None:
    text = (FIXTURES / "scylla-bench.txt").read_text().replace("Mode:\t\t\t read", "Mode:\t\t\t re}d")
    (run,) = read_file(write_file(tmp_path, text), {})
    assert not [metric for metric in run.result.values if metric.startswith("re")]
    assert "Mode: re}d" in next(note.message for note in run.result.notes if note.name == "unknown")


def test_unknown_columns_of_redis_are_named(tmp_path: Path) -> None:
    lines = (FIXTURES / "redis-benchmark.csv").read_text().rstrip("\n").split("\n")
    text = "".join(f'{line},"{cell}"\n' for line, cell in zip(lines, ("spread_ms", "1.5", "2.5"), strict=True))
    for run, whole in zip(
        read_file(write_file(tmp_path, text), {}), read_whole(FIXTURES / "redis-benchmark.csv"), strict=True
    ):
        assert run.result.values == whole.result.values
        assert "spread_ms" in next(note.message for note in run.result.notes if note.name == "unknown")


@for_every_output
def test_explanation_covers_figures_and_lines(path: Path) -> None:
    lines = list(explain_file(path, {}))
    text = "\n".join(lines)
    for imported in read_whole(path):
        assert all(metric in text for metric in imported.result.values)
    source, chosen, _ = reading.open_source(path, {}, None)
    reading.read_source(source, chosen)
    assert len(source.unread) + len(source.used) >= sum(bool(line.strip()) for line in source.lines)
    assert source.used
    assert f"not read, because they contain no figures or facts: {len(source.unread)}" in text


@pytest.mark.parametrize(
    ("name", "omitted"),
    [
        ("cassandra-stress-write.txt", "avg gc time"),
        ("cassandra-stress-write.txt", "rows: stderr"),
        ("memtier.txt", "Hits/sec"),
        ("memtier.json", "Histogram log format"),
        ("sysbench-oltp.txt", "sum"),
        ("sysbench-oltp.txt", "reconnects"),
        ("sysbench-oltp.txt", "intervals, except throughput"),
        ("hbase-pe-1.1.txt", "StdDev"),
        ("pgbench-reconnect.txt", "latency stddev"),
        ("pgbench-reconnect.txt", "total number of retries"),
        ("pgbench-rate.txt", "rate limit schedule lag"),
        ("pgbench-progress.txt", "progress, except throughput"),
        ("scylla-bench.txt", "Rows/s"),
        ("scylla-bench.txt", "rows: 99.9th"),
        ("go-ycsb.txt", "dotransactions"),
        ("go-ycsb.txt", "intervals, except throughput"),
        ("terasort.txt", "GC time elapsed (ms)"),
        ("accelerated.log", "status lines, except throughput and p99"),
        ("ycsb-cpp.txt", "status lines before the last one"),
        ("../ycsb/run_a.out", "[CLEANUP]"),
        ("ycsb-timeseries.txt", "[READ], points of its time series"),
        ("ycsb-0.1.4.txt", "[READ], points of its time series or buckets of 1 ms"),
    ],
)
def test_known_figures_without_a_name_are_listed(name: str, omitted: str) -> None:
    lines = [line for line in explain_file(FIXTURES / name, {}) if "omitted, because results lack such figures" in line]
    assert lines
    assert all(omitted in line for line in lines)


def test_keys_read_in_one_document_are_not_omitted() -> None:
    text = "\n".join(explain_file(FIXTURES / "fio-status.json", {}))
    assert "jobs[…].read.clat_ns.stddev" in text
    assert "    jobs[…].read.clat_ns.mean\n" not in text
    assert "job options.rw\n" not in text


def test_read_keys_of_memtier_are_not_listed() -> None:
    lines = list(explain_file(FIXTURES / "memtier.json", {}))
    assert "    ALL STATS.Runtime.Finish time" in lines
    assert "    ALL STATS.Waits.Average Latency" in lines
    assert "    ALL STATS.Sets.Average Latency" not in lines


def test_ignored_json_keys_are_listed() -> None:
    text = "\n".join(explain_file(FIXTURES / "fio-mixed.json", {}))
    assert "jobs[…].usr_cpu" in text
    assert "jobs[…].read.slat_ns" in text


@pytest.mark.parametrize("mark", ["...", "\u2026", "[...]", "<snip>"])
@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("pgbench-progress.txt", r"progress: "),
        ("cassandra-stress-read.txt", r"total,"),
        ("scylla-bench.txt", r" +\ds  "),
        ("sysbench-oltp.txt", r"\[ \ds \]"),
    ],
)
def test_removed_rows_give_no_series(name: str, row: str, mark: str, tmp_path: Path) -> None:
    lines = (FIXTURES / name).read_text().split("\n")
    rows = [index for index, line in enumerate(lines) if re.match(row, line)]
    lines[rows[1]] = mark
    (imported,) = read_file(write_file(tmp_path, "\n".join(lines)), {})
    (whole,) = read_whole(FIXTURES / name)
    assert whole.series is not None
    assert imported.series is None
    assert any(note.name == "rows-left-out" for note in imported.result.notes)
    assert imported.result.values == whole.result.values
