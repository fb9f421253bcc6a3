"""Damaged and foreign files: one error with the problem, the place and the next step."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from imports_support import FIXTURES, YCSB, figures, read_single, refusal, write_file
from loadstone.errors import LoadstoneError
from loadstone.importers.read import FORMATS, read_file

RUN = (YCSB / "run_a.out").read_text()
STATUS = "2026-11-21 09:30:06:491 1 sec: 110 operations; \n"
LOGS = sorted(
    path for path in [*FIXTURES.iterdir(), *(YCSB / name for name in ("run_a.out", "json.txt", "hdr_READ.hdr"))]
    if ".facts." not in path.name
)  # fmt: skip


def is_refused(path: Path) -> bool:
    """Whether a file is refused with a proper message; any other exception fails the test."""
    try:
        read_file(path, {})
    except LoadstoneError as error:
        text = error
    else:
        return False
    assert text.hint
    assert "\n" not in text.args[0]
    return True


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone.log") == (
        f"error: cannot read {tmp_path / 'gone.log'}: No such file or directory\nhint: name a file with results"
    )
    assert "Is a directory" in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    assert refusal(write_file(tmp_path, content)).startswith("error: bench.log is empty\nhint: ")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    assert refusal(write_file(tmp_path, b"\x7fELF\0\0" + RUN.encode())) == (
        "error: bench.log is a binary file, not a log\n"
        "hint: unpack it if it is compressed; `loadstone import` reads text, JSON, CSV and .hlog"
    )


def test_foreign_file_is_refused_with_the_known_formats(tmp_path: Path) -> None:
    assert refusal(write_file(tmp_path, "Running 10s test @ http://localhost/\n")) == (
        "error: the format of bench.log is not known\n"
        f"hint: known are {', '.join(format_.TITLE for name, format_ in FORMATS.items() if name != 'json')}; "
        "for JSON of other tools, state paths: loadstone import --json"
    )


# A line of 200 MB is garbage like a line of 20 MB.
GARBAGE = "x" * 20_000_000


@pytest.mark.parametrize(
    "start", ["", "{", '{"metric" : "OVERALL", "', '{"fio version" : "', "[OVERALL], ", "metric,unit,value,"]
)
def test_a_line_of_garbage_is_refused(tmp_path: Path, start: str) -> None:
    assert is_refused(write_file(tmp_path, start + GARBAGE))


def test_garbage_line_within_a_log_is_skipped(tmp_path: Path) -> None:
    head, overall, rest = RUN.partition("[OVERALL]")
    run = read_single(write_file(tmp_path, f"{head}{GARBAGE}\n{overall}{rest}"))
    assert run.result.values == read_single(YCSB / "run_a.out").result.values


def test_json_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    assert is_refused(write_file(tmp_path, '{"fio version" : ' + "[" * 1_000_000))


# Truncated logs.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STATUS, "has no report"),
        (RUN.partition("[OVERALL], Throughput")[0], "its report has no Throughput(ops/sec) (bench.log:1)"),
        (RUN.partition("[READ]")[0], "0 of 600 operations have lines in the report (bench.log:1)"),
        (RUN.partition("[READ], Max")[0], "is cut within the lines of [READ] (bench.log:1)"),
        (RUN.partition("[UPDATE]")[0], "304 of 600 operations have lines in the report (bench.log:1)"),
        (RUN[: RUN.index("[UPDATE], 95th") + 19], 'within its last line: "[UPDATE], 95thPerce" (bench.log:29)'),
        (RUN[: RUN.index("[UPDATE], 99th") + 38], "within its last line"),
        (RUN.rstrip("\n")[:-1], "is cut within the lines of [UPDATE] (bench.log:31)"),
        (RUN.replace("1339.2857142857142", "13x"), "[OVERALL], Throughput(ops/sec) is not a number: 13x (bench.log:2)"),
        (RUN.partition("[UPDATE]")[0] + RUN.partition("[CLEANUP]")[0][-60:], "twice"),
        (f"{STATUS}{RUN}{STATUS}", "the last run of the YCSB log has status lines but no report"),
    ],
)  # fmt: skip
def test_truncated_ycsb_log_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    output = refusal(write_file(tmp_path, text))
    assert message in output
    assert output.count("\n") == 1


def test_a_part_is_imported_when_that_is_said(tmp_path: Path) -> None:
    path = write_file(tmp_path, RUN.partition("[UPDATE]")[0])
    run = read_single(path, partial=True)
    assert figures(run, "read.p99") == {"read.p99": (7_527_000, "ns", 304)}
    assert [note.name for note in run.result.notes] == ["partial"]
    # A mean of all operations would be based on half of them.
    assert "all.mean" not in run.result.values


@pytest.mark.parametrize(
    ("name", "end", "message"),
    [
        ("cassandra-stress-read.txt", "Results:", "the cassandra-stress log is cut: it has no results"),
        ("cassandra-stress-read.txt", "Latency max", 'it has no "latency max"'),
        ("cassandra-stress-read.txt", "Total operation time", 'it has no "total operation time"'),
        ("testdfsio-read.txt", "2026-11-21 09:41:53,914 INFO fs.TestDFSIO: -----", "log is cut: it has no result"),
        ("TestDFSIO_results.log", "  IO rate std", 'it has no "IO rate std deviation" (TestDFSIO_results.log:1)'),
        ("hbase-pe-randomRead.txt", "2026-11-21T09:51:05,701", "the log ends before the test randomread"),
        ("hbase-pe-randomRead.txt", '"presplitRegions"', "the options of the test are cut"),
        ("go-ycsb.txt", "Run finished", "the go-ycsb log is cut: no report follows `Run finished`"),
        ("go-ycsb-json.txt", '"Takes(s)":"2.0"}]', "a row of the go-ycsb report is cut or damaged"),
        ("fio-mixed.json", '"disk_util"', "the fio report is cut or damaged"),
        ("../ycsb/json.txt", '"value" : 50559', "the YCSB JSON report is cut or damaged"),
    ],
)
def test_other_cut_logs_are_refused_with_their_place(tmp_path: Path, name: str, end: str, message: str) -> None:
    text = (FIXTURES / name).read_text()
    assert end in text
    assert message in refusal(write_file(tmp_path, text.partition(end)[0], Path(name).name))


def test_a_client_that_did_not_finish_is_missed(tmp_path: Path) -> None:
    lines = (FIXTURES / "hbase-pe-randomRead.txt").read_text().split("\n")
    text = "\n".join(line for line in lines if "Finished TestClient-2 in" not in line)
    assert "3 of 4 clients finished the test randomread" in refusal(write_file(tmp_path, text))


# A file that is truncated or overwritten anywhere is read or refused.


# Damaged files for each of 3 files; `make soak` reads 10,000 here and 10,000 in test_import_rules.
ROUNDS = int(os.environ.get("LOADSTONE_DAMAGED", "900")) // 3 // len(LOGS)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_damage_ends_in_results_or_one_error(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    dice = random.Random(path.name)
    for _ in range(ROUNDS):
        cut = data[: dice.randrange(len(data))]
        is_refused(write_file(tmp_path, cut, path.name))
        at = dice.randrange(len(data))
        noise = bytes(dice.randrange(1, 256) for _ in range(dice.choice((1, 4, 40))))
        is_refused(write_file(tmp_path, data[:at] + noise + data[at + len(noise) :], path.name))
        spliced = data[: dice.randrange(len(data))] + data[dice.randrange(len(data)) :]
        is_refused(write_file(tmp_path, spliced, path.name))
