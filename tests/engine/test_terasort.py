"""TeraGen, TeraSort and TeraValidate on local files: they produce known rows, limit their memory, and report faults."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tera_support import CHECKSUM, HANGS_SECONDS, LITTLE, MIB, ROW_BYTES, parts, read_rows, run_stage, tera
from tera_support import rows as rows

MILLION = 1_000_000
# The checksum of the first ten million rows, as Hadoop 3.4.2 prints it.
CHECKSUM_10M = "4c49607ac53602"
EXTERNAL = ["prepare", "sample", "sort", "merge", "commit"]


def test_rows_are_the_same_whatever_the_parts(program: Path, tmp_path: Path, rows: Path) -> None:
    for count in (1, 7):
        ran = tera(program, "teragen", f"-Dmapreduce.job.maps={count}", "1000k", tmp_path / str(count))
        assert ran.checksum == CHECKSUM
        assert [path.name for path in parts(tmp_path / str(count))] == [f"part-m-{i:05}" for i in range(count)]
        assert read_rows(tmp_path / str(count)) == read_rows(rows)
    assert (tmp_path / "7/_SUCCESS").read_bytes() == b""


@pytest.mark.parametrize("count", [1, 2, 7])
def test_rows_are_sorted_within_the_memory_limit(program: Path, tmp_path: Path, rows: Path, count: int) -> None:
    ran = tera(program, "terasort", "--memory", LITTLE, f"-Dmapreduce.job.reduces={count}", rows, tmp_path / "out")
    assert (ran.checksum, ran.stages) == (CHECKSUM, EXTERNAL)
    assert ran.memory_bytes_max < 64 * MIB
    assert len(parts(tmp_path / "out")) == count
    unsorted = read_rows(rows)
    keys = sorted(unsorted[at : at + ROW_BYTES] for at in range(0, len(unsorted), ROW_BYTES))
    assert read_rows(tmp_path / "out") == b"".join(keys)
    assert [*tmp_path.iterdir()] == [tmp_path / "out"]


def test_in_memory_and_external_are_the_same(program: Path, tmp_path: Path, rows: Path) -> None:
    ran = tera(program, "terasort", "--memory", "1GiB", "--parts", "3", rows, tmp_path / "memory")
    assert ran.stages == ["prepare", "sample", "sort in memory", "commit"]
    assert ran.memory_bytes_max < 1024 * MIB
    tera(program, "terasort", "--memory", LITTLE, "--direct", "--parts", "3", rows, tmp_path / "external")
    for left, other in zip(parts(tmp_path / "memory"), parts(tmp_path / "external"), strict=True):
        assert left.read_bytes() == other.read_bytes()
    validated = tera(program, "teravalidate", "--memory", LITTLE, tmp_path / "external", tmp_path / "report")
    assert (validated.checksum, validated.match_output(r"duplicate keys +(\d+)")) == (CHECKSUM, "0")
    assert validated.memory_bytes_max < 64 * MIB
    assert (tmp_path / "report/part-r-00000").read_text() == f"checksum\t{CHECKSUM}\n"


def test_ten_million_rows_are_sorted_in_little_memory(program: Path, tmp_path: Path) -> None:
    rows, out = tmp_path / "in", tmp_path / "out"
    assert tera(program, "teragen", "10m", rows).checksum == CHECKSUM_10M
    ran = tera(program, "terasort", "--memory", LITTLE, rows, out)
    assert (ran.checksum, ran.stages) == (CHECKSUM_10M, EXTERNAL)
    assert ran.memory_bytes_max < 64 * MIB
    shutil.rmtree(rows)
    assert tera(program, "teravalidate", out).checksum == CHECKSUM_10M
    shutil.rmtree(out)


def test_output_within_input_is_refused(program: Path, tmp_path: Path, rows: Path) -> None:
    (tmp_path / "link").symlink_to(rows)
    before = sorted(rows.iterdir())
    for output in (rows / "sub", tmp_path / "link/sub", tmp_path / "link/../in/sub"):
        for command in ("terasort", "teravalidate"):
            ran = tera(program, command, rows, output, code=2)
            assert (
                ran.err
                == f"error: the output {output} is within the input {rows}\nhint: choose an output next to the input\n"
            )
    assert sorted(rows.iterdir()) == before


def test_an_output_that_is_there_is_left_alone(program: Path, tmp_path: Path, rows: Path) -> None:
    (tmp_path / "out").mkdir()
    out = tmp_path / "out"
    lines: list[list[str | Path]] = [["terasort", rows, out], ["teragen", "1", out]]
    for line in lines:
        ran = tera(program, *line, code=2)
        assert ran.err.startswith(f"error: output directory {tmp_path}/out already exists\nhint: ")
    assert [*tmp_path.rglob("*")] == [tmp_path / "out"]


def test_a_bad_command_line_is_refused(program: Path, tmp_path: Path) -> None:
    assert "there is no directory" in tera(program, "terasort", tmp_path / "none", tmp_path / "out", code=2).err
    ran = tera(program, "teragen", "-Dmy.own=1", "-Dmapreduce.map.memory.mb=1", "1", tmp_path / "one")
    assert ran.err == "warning: -Dmy.own is not known here and has no effect\n"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_file_in_place_of_a_directory_is_named(program: Path, tmp_path: Path, rows: Path) -> None:
    file = rows / "part-m-00000"
    lines: list[tuple[list[str | Path], Path]] = [
        (["terasort", file, tmp_path / "out"], file),
        (["teragen", "1", file / "out"], file / "out"),
    ]
    for line, named in lines:
        error, hint = tera(program, *line, code=1).err.splitlines()
        assert f"{named}: Not a directory" in error
        assert hint.startswith("hint: use a directory")
    assert [*tmp_path.iterdir()] == []


def test_no_rows_and_one_row(program: Path, tmp_path: Path) -> None:
    for count, checksum in ((0, "0"), (1, None)):
        place = tmp_path / str(count)
        result = tera(program, "teragen", str(count), place / "in").checksum
        tera(program, "terasort", "--parts", "3", place / "in", place / "out")
        assert tera(program, "teravalidate", place / "out").checksum == result == (checksum or result)
        assert read_rows(place / "out") == read_rows(place / "in")


def test_damage_is_named_with_file_and_offset(program: Path, tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "out"
    tera(program, "terasort", "--parts", "2", rows, out)
    second = out / "part-r-00001"
    good = second.read_bytes()
    bits = random.Random(7)
    for _ in range(5):
        at = bits.randrange(len(good))
        damaged = bytearray(good)
        damaged[at] ^= 1 << bits.randrange(8)
        second.write_bytes(damaged)
        stderr = tera(program, "teravalidate", out, code=1).err
        row = at // ROW_BYTES
        # A flipped digit in the row number turns the row into another row, which may differ at an earlier offset.
        assert f"{second}: row {row} (offset " in stderr
        offset = int(stderr.split(f"{second}: row {row} (offset ")[1].split(")")[0])
        assert row * ROW_BYTES <= offset <= at
    second.write_bytes(good[:-1])
    lines: list[list[str | Path]] = [["teravalidate", out], ["terasort", out, tmp_path / "again"]]
    for line in lines:
        stderr = tera(program, *line, code=1).err
        assert (
            f"{second} is truncated: its last row begins at offset {len(good) - ROW_BYTES} and has 99 of 100" in stderr
        )
    # Parts in the wrong order: the fault is at the beginning of the second part.
    second.write_bytes((out / "part-r-00000").read_bytes())
    (out / "part-r-00000").write_bytes(good)
    assert f"{second}: row 0 (offset 0): its key" in tera(program, "teravalidate", out, code=1).err
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("memory", [LITTLE, "1GiB"])
def test_flipped_input_bit_is_named_by_its_offset(program: Path, tmp_path: Path, memory: str) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    checksum = tera(program, "teragen", "--parts", "2", "400k", source).checksum
    command: list[str | Path] = ["terasort", "--memory", memory, "--verify", source, out]
    assert tera(program, *command).checksum == checksum
    shutil.rmtree(out)
    second, at = source / "part-m-00001", 12_345_678
    damaged = bytearray(second.read_bytes())
    damaged[at] ^= 4
    second.write_bytes(damaged)
    error, hint = tera(program, *command, code=1).err.splitlines()
    assert f"{second}: row {at // ROW_BYTES} (offset {at}): it differs from the row that TeraGen generates" in error
    assert hint.startswith("hint: generate or copy the file again; without --verify")
    assert [*tmp_path.iterdir()] == [source]
    command.remove("--verify")
    tera(program, *command)
    assert "1 of 400000 rows are wrong" in tera(program, "teravalidate", out, code=1).err


def test_output_with_missing_parts_is_refused(program: Path, tmp_path: Path, rows: Path) -> None:
    out, report = tmp_path / "out", tmp_path / "report"
    tera(program, "terasort", "--parts", "3", rows, out)
    (out / "part-r-00001").unlink()
    lines: list[list[str | Path]] = [[out], [out, report]]
    for line in lines:
        error, hint = tera(program, "teravalidate", *line, code=1).err.splitlines()
        assert f"{out} is incomplete: part-r-00001 is missing, but part-r-00002 is present" in error
        assert hint == "hint: copy the missing parts, or run the job again"
    for part in parts(out):
        part.unlink()
    error, hint = tera(program, "teravalidate", out, code=1).err.splitlines()
    assert f"there are no parts in {out}" in error
    assert hint.startswith("hint: ")
    assert [*tmp_path.iterdir()] == [out]


def test_output_without_its_job_marker_is_a_warning(program: Path, tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "out"
    tera(program, "terasort", "--parts", "2", rows, out)
    assert tera(program, "teravalidate", out).err == ""
    (out / "_SUCCESS").unlink()
    lines: list[list[str | Path]] = [[out], [out, tmp_path / "report"]]
    for line in lines:
        ran = tera(program, "teravalidate", *line)
        warning, hint = ran.err.splitlines()
        assert warning == f"warning: {out} has no _SUCCESS: the job that wrote it may not have finished"
        assert hint.startswith("hint: compare the number of rows and the checksum")
        assert ran.checksum == CHECKSUM
    job = {"input": str(out)}
    for n in (1, 2):
        streams = run_stage(program, "validate", n, job)
        notes = [event["name"] for events in streams for event in events if event["event"] == "note"]
        assert notes == ["incomplete"]


def test_disk_without_direct_io_is_used(program: Path, tmp_path: Path, rows: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a disk requires root")
    disk = tmp_path / "disk"
    disk.mkdir()
    # Linux creates a file on this disk before it refuses O_DIRECT.
    subprocess.run(["mount", "-t", "ramfs", "ramfs", disk], check=True)
    try:
        with pytest.raises(OSError, match="Invalid argument"):
            os.open(disk / "file", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
        for memory in (LITTLE, "1GiB"):
            out = disk / memory
            assert tera(program, "terasort", "--direct", "--memory", memory, rows, out).checksum == CHECKSUM
            assert tera(program, "teravalidate", "--direct", out).checksum == CHECKSUM
    finally:
        subprocess.run(["umount", disk], check=False)


@pytest.mark.parametrize("what", ["a link that leads to nothing", "a pipe", "a directory"])
def test_input_directory_may_hold_only_files_and_links(program: Path, tmp_path: Path, rows: Path, what: str) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    for part in parts(rows):
        (inputs / part.name).symlink_to(part)
    (inputs / "_logs").symlink_to(tmp_path / "nowhere")
    assert tera(program, "terasort", inputs, tmp_path / "out").checksum == CHECKSUM
    odd = inputs / "odd"
    if what == "a pipe":
        os.mkfifo(odd)
    elif what == "a directory":
        odd.mkdir()
    else:
        odd.symlink_to(tmp_path / "nowhere")
    error, hint = tera(program, "terasort", inputs, tmp_path / "again", code=2).err.splitlines()
    assert f"{odd} is {'a directory within the input' if what == 'a directory' else 'not a regular file'}" in error
    assert hint.startswith("hint: ")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_stages_run_as_separate_engines_for_every_segment(program: Path, tmp_path: Path, n: int) -> None:
    unsorted: dict[str, Any] = {"output": str(tmp_path / "in"), "rows": 300_000, "parts": 3}
    job: dict[str, Any] = {"input": str(tmp_path / "in"), "output": str(tmp_path / "out"), "parts": 4}
    report: dict[str, Any] = {"input": str(tmp_path / "out"), "output": str(tmp_path / "report")}
    plan = [(unsorted, ["generate"]), (job, ["sample", "sort", "merge"]), (report, ["validate"])]
    sums = {}
    for program_stages, stages in plan:
        run_stage(program, "prepare", 1, program_stages)
        for stage in stages:
            streams = run_stage(program, stage, n, program_stages)
            done = [events[-1]["sort"] for events in streams]
            for events in streams:
                assert (events[-1]["end"], events[-1]["sort"]["stage"]) == ("done", stage)
                assert events[-2]["sorted"]["rows"] == events[-1]["sort"]["rows"]
                assert events[-1]["memory_bytes_max"] < 64 * MIB
            if stage != "sample":
                assert sum(summary["rows"] for summary in done) == 300_000
        sums[stages[-1]] = run_stage(program, "commit", 1, program_stages)[0][-1]["sort"]
    assert sums["merge"]["checksum"] == sums["validate"]["checksum"]
    verdict = sums["validate"]["validation"]
    assert (verdict["rows"], verdict["parts"], verdict["faults"]) == (300_000, 4, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "report"]


@pytest.mark.parametrize(
    ("keys", "memory", "sorting"),
    [
        ("all equal", 64 * MIB, ["sort", "merge"]),
        ("Zipf", 256 * MIB, ["sort_in_memory"]),
        pytest.param("Zipf", 64 * MIB, ["sort", "merge"], marks=pytest.mark.soak),
        pytest.param("all equal", 256 * MIB, ["sort_in_memory"], marks=pytest.mark.soak),
    ],
)
def test_engine_memory_is_limited_for_any_keys(
    program: Path, tmp_path: Path, keys: str, memory: int, sorting: list[str]
) -> None:
    """All rows or half of them are in one part, so this part's engine receives more than fits into its memory."""
    numbers = random.Random(1)
    heads = [7 if keys == "all equal" else int(1 / (numbers.random() + 1e-4)) for _ in range(900_000)]
    unsorted = [head.to_bytes(10) + at.to_bytes(90) for at, head in enumerate(heads)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/rows").write_bytes(b"".join(unsorted))
    for n in (1, 2, 7):
        out = tmp_path / f"out-{n}"
        job = {"input": str(tmp_path / "in"), "output": str(out), "parts": 7, "memory_bytes": memory}
        run_stage(program, "prepare", 1, job)
        for stage in ("sample", *sorting):
            summaries = [events[-1] for events in run_stage(program, stage, n, job)]
            assert max(summary["memory_bytes_max"] for summary in summaries) < memory
        assert sum(summary["sort"]["rows"] for summary in summaries) == len(unsorted)
        run_stage(program, "commit", 1, job)
        everything = read_rows(out)
        shutil.rmtree(out)
        results = [everything[at : at + ROW_BYTES] for at in range(0, len(everything), ROW_BYTES)]
        assert [row[:10] for row in results] == sorted(row[:10] for row in unsorted)
        assert sorted(results) == sorted(unsorted)


def test_a_printed_spec_is_what_a_trial_runs(program: Path, tmp_path: Path) -> None:
    printed = tera(program, "teragen", "--print-spec", "--parts", "2", "100", tmp_path / "out").out.splitlines()
    assert not (tmp_path / "out").exists()
    for line in printed:
        done = subprocess.run([program, "trial"], input=line, capture_output=True, text=True, timeout=HANGS_SECONDS)
        assert done.returncode == 0, done.stderr
    assert len(read_rows(tmp_path / "out")) == 100 * ROW_BYTES


def test_failed_stage_states_its_reason_in_the_summary(program: Path, tmp_path: Path) -> None:
    job = {"input": str(tmp_path), "output": str(tmp_path / "out"), "parts": 4}
    ((_, *_, summary),) = run_stage(program, "sort", 1, job, code=1)
    assert summary["end"] == "failed"
    assert 'run the stage "prepare" first' in summary["reason"]
