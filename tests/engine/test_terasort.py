"""TeraGen, TeraSort and TeraValidate on local files: the golden rows, bounded memory, and faults."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tera_support import HANGS_SECONDS, MIB, ROW_BYTES, parts, read_rows, small_disks, tera

MILLION = 1_000_000
# The checksum of the first million rows, as Hadoop 3.4.2 prints it.
CHECKSUM = "7a27e2d0d55de"
# The checksum of the first ten million rows, as Hadoop 3.4.2 prints it, sorted here.
CHECKSUM_10M = "4c49607ac53602"
# With this memory, a sort of a million rows is external.
LITTLE = "64MiB"
EXTERNAL = ["prepare", "sample", "sort", "merge", "commit"]


@pytest.fixture(scope="module")
def rows(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A million rows in two files."""
    directory = tmp_path_factory.mktemp("rows") / "in"
    tera(program, "teragen", "--parts", "2", "1m", directory)
    return directory


@pytest.fixture(scope="module")
def row_files(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough rows for every stage to last for several of its cancellation checks, which are 200 ms apart."""
    directory = tmp_path_factory.mktemp("many") / "in"
    tera(program, "teragen", "--parts", "2", "6m", directory)
    return directory


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
        # A flipped digit of its number turns a row into another row, which differs earlier.
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
    assert f"{second}: row {at // ROW_BYTES} (offset {at}): it differs from the row that TeraGen makes" in error
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
        assert f"{out} is incomplete: part-r-00001 is missing, and part-r-00002 is there" in error
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


KILLED = {
    "generate": (["teragen", "6m"], "output/part-m-*"),
    "sort in memory": (["terasort", "--memory", "1GiB"], "output/part-r-*"),
    "sort": (["terasort", "--memory", LITTLE], "run-*"),
    "merge": (["terasort", "--memory", LITTLE], "output/part-r-*"),
}


def start_stage(
    program: Path, rows: Path, stage: str, out: Path, *before: str
) -> tuple[list[str | Path], subprocess.Popen[str]]:
    """A command that is in this stage now, unless it was too fast."""
    arguments, sign = KILLED[stage]
    line: list[str | Path] = [*arguments, *([rows] if arguments[0] == "terasort" else []), out]
    pipe = subprocess.PIPE
    process = subprocess.Popen([*before, program, *map(str, line)], stdout=pipe, stderr=pipe, text=True)
    scratch = out.parent / f".{out.name}.loadstone"
    until = time.monotonic() + HANGS_SECONDS
    while process.poll() is None and not [*scratch.glob(sign)]:
        assert time.monotonic() < until
        time.sleep(0.001)
    return line, process


@pytest.mark.parametrize("stage", KILLED)
def test_killed_job_leaves_no_output_for_the_next(program: Path, tmp_path: Path, row_files: Path, stage: str) -> None:
    out = tmp_path / "out"
    for _ in range(20):
        line, process = start_stage(program, row_files, stage, out)
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL and not out.exists():
            break
        # It ended before its message was read.
        shutil.rmtree(out)
    else:
        pytest.fail("it was never killed in time")
    assert [path.name for path in tmp_path.iterdir()] == [".out.loadstone"]
    tera(program, *line)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    tera(program, "teravalidate", out, code=1 if stage == "generate" else 0)


@pytest.mark.parametrize(
    ("stage", "numbers"),
    # The kernel and the shell may both send SIGHUP when a terminal ends.
    [*((stage, [signal.SIGINT]) for stage in KILLED), ("merge", [signal.SIGTERM]), ("sort", [signal.SIGHUP] * 2)],
)
def test_a_signal_leaves_nothing(
    program: Path, tmp_path: Path, row_files: Path, stage: str, numbers: list[signal.Signals]
) -> None:
    out = tmp_path / "out"
    for _ in range(20):
        _, process = start_stage(program, row_files, stage, out)
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.01)
        _, stderr = process.communicate(timeout=HANGS_SECONDS)
        if process.returncode == 130:
            break
        shutil.rmtree(out)
    else:
        pytest.fail("it was never interrupted in time")
    assert "was interrupted; its files were removed" in stderr
    assert [*tmp_path.iterdir()] == []


def test_a_job_under_nohup_outlives_its_terminal(program: Path, tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "out"
    for _ in range(20):
        _, process = start_stage(program, rows, "sort", out, "nohup")
        still = process.poll() is None
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=HANGS_SECONDS)
        assert process.returncode == 0
        if still:
            break
        shutil.rmtree(out)
    else:
        pytest.fail("it had always ended before the signal")
    assert tera(program, "teravalidate", out).checksum == CHECKSUM


def test_a_job_under_way_is_not_disturbed(program: Path, tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "out"
    _, process = start_stage(program, rows, "sort", out)
    try:
        process.send_signal(signal.SIGSTOP)
        if process.poll() is None:
            stderr = tera(program, "terasort", rows, out, code=1).err
            assert f"process {process.pid} on " in stderr
            assert f"is writing {out}" in stderr
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=HANGS_SECONDS)
        assert process.returncode == 0
    finally:
        process.kill()
    tera(program, "teravalidate", out)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Any]:
    """Mounts a file system of a size, which requires root."""
    with small_disks(tmp_path / "disk") as mounted:
        yield mounted


FULL = {
    "generate": (50, ["teragen", "1m"]),
    "sort in memory": (50, ["terasort", "--memory", "1GiB"]),
    "sort": (50, ["terasort", "--memory", LITTLE]),
    "merge": (150, ["terasort", "--memory", LITTLE]),
}


@pytest.mark.parametrize("stage", FULL)
@pytest.mark.parametrize("direct", [False, True])
def test_full_disk_is_one_message_and_leaves_nothing(
    program: Path, rows: Path, small_disk: Any, stage: str, direct: bool
) -> None:
    size, arguments = FULL[stage]
    disk = small_disk(size * MIB)
    line = [
        *arguments,
        *(["--direct"] if direct else []),
        *([rows] if arguments[0] == "terasort" else []),
        disk / "out",
    ]
    error, hint = tera(program, *line, code=1).err.splitlines()
    assert error.startswith(f'error: {arguments[0]} failed in the stage "{stage}": cannot write {disk}/.out.loadstone/')
    assert "No space left on device" in error
    assert hint.startswith("hint: free some space")
    assert [*disk.iterdir()] == []


def test_disk_without_direct_io_is_used(program: Path, tmp_path: Path, rows: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("to mount a disk takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    # Linux creates a file on it before it refuses O_DIRECT.
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


def test_a_disk_that_was_full_before(program: Path, rows: Path, small_disk: Any) -> None:
    disk = small_disk(MIB)
    (disk / "filler").write_bytes(bytes(MIB))
    lines: list[list[str | Path]] = [["teragen", "1"], ["terasort", rows], ["teravalidate", rows]]
    for line in lines:
        stderr = tera(program, *line, disk / "out", code=1).err
        assert "No space left on device" in stderr
        assert [path.name for path in disk.iterdir()] == ["filler"]


def stage_spec(stage: str, segment: tuple[int, int], job: dict[str, Any]) -> dict[str, Any]:
    """The spec of a stage of a sort, as a lab starts it."""
    return {
        "spec": 2,
        "store": {"name": "files"},
        "phase": "run",
        "work": {"type": "sort", "stage": stage, "job": {"memory_bytes": 64 * MIB, "threads": 2, **job}},
        "clients": 1,
        "pace": {"mode": "closed"},
        "until": {},
        "segment": {"k": segment[0], "n": segment[1]},
        "seed": 1,
        "sinks": [],
        "interval_ms": 50,
        "wait_for_start": True,
    }


def run_stage(program: Path, stage: str, n: int, job: dict[str, Any], code: int = 0) -> list[list[dict[str, Any]]]:
    """Runs a stage with n engines simultaneously. Returns the events of each engine."""
    pipe = subprocess.PIPE
    engines = [subprocess.Popen([program, "trial"], stdin=pipe, stdout=pipe, text=True) for _ in range(n)]
    try:
        for k, engine in enumerate(engines):
            assert engine.stdin
            engine.stdin.write(json.dumps(stage_spec(stage, (k, n), job)) + "\n")
            engine.stdin.flush()
        streams = []
        for engine in engines:
            assert engine.stdout
            streams.append([json.loads(engine.stdout.readline())])
            assert streams[-1][0]["event"] == "ready"
        start = time.time_ns() + 500_000_000
        for engine in engines:
            assert engine.stdin
            engine.stdin.write(json.dumps({"start_at": start}) + "\n")
            engine.stdin.flush()
        for engine, events in zip(engines, streams, strict=True):
            assert engine.stdout
            events += [json.loads(line) for line in engine.stdout]
            assert engine.wait(HANGS_SECONDS) == code
            assert events[-1]["event"] == "summary"
        return streams
    finally:
        for engine in engines:
            engine.kill()
            engine.communicate()


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
    """All rows or half of them are in one part, whose engine receives more than its memory."""
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


# Starts engines as a lab does: all but the last stage in sequence. Waits forever with the last.
PARENT = """
import json, subprocess, sys, time
program, log, *stages = sys.argv[1:]
for stage in stages:
    specs = json.loads(stage)
    engines = [subprocess.Popen([program, "trial"], stdin=subprocess.PIPE, stdout=open(f"{log}-{k}", "w"), text=True)
               for k in range(len(specs))]
    for engine, spec in zip(engines, specs):
        print(json.dumps(spec), file=engine.stdin, flush=True)
    start = time.time_ns() + 500_000_000
    for engine in engines:
        print(json.dumps({"start_at": start}), file=engine.stdin, flush=True)
    for engine in engines:
        if stage != stages[-1]:
            assert engine.wait() == 0
for engine in engines:
    print(engine.pid, flush=True)
time.sleep(1e6)
"""


@pytest.mark.parametrize(
    ("stages", "sign"),
    [
        (["generate"], "output/part-m-*"),
        (["sample", "sort_in_memory"], "output/part-r-*"),
        (["sample", "sort"], "run-*"),
        (["sample", "sort", "merge"], "output/part-r-*"),
    ],
    ids=["generate", "sort in memory", "sort", "merge"],
)
def test_stage_engines_end_with_their_parent(
    program: Path, tmp_path: Path, row_files: Path, stages: list[str], sign: str
) -> None:
    out, scratch, log = tmp_path / "out", tmp_path / ".out.loadstone", tmp_path / "events"
    job: dict[str, Any] = {"output": str(out), "parts": 4}
    job |= {"rows": 6 * MILLION} if stages == ["generate"] else {"input": str(row_files)}
    job |= {"memory_bytes": 1024 * MIB} if "sort_in_memory" in stages else {}
    specs = [[stage_spec("prepare", (0, 1), job)]]
    specs += [[stage_spec(stage, (k, 2), job) for k in (0, 1)] for stage in stages]
    command = [json.dumps([{**spec, "lease_ms": 60_000} for spec in stage]) for stage in specs]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, program, log, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout
        pids = [int(parent.stdout.readline()) for _ in (0, 1)]
        until = time.monotonic() + HANGS_SECONDS
        while not [*scratch.glob(sign)]:
            assert time.monotonic() < until
            time.sleep(0.001)
    finally:
        parent.kill()
        parent.communicate()
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.01)
    ends = [json.loads(Path(f"{log}-{k}").read_text().splitlines()[-1]) for k in (0, 1)]
    assert [(stage["event"], stage["end"], stage["reason"]) for stage in ends] == [
        ("summary", "lease", "stdin closed")
    ] * 2
    assert not out.exists()
    # The next job removes their files.
    tera(program, "teragen", "10", out)
    assert not scratch.exists()


def test_sort_with_separate_engines_is_undisturbed_between_stages(program: Path, tmp_path: Path, rows: Path) -> None:
    job = {"input": str(rows), "output": str(tmp_path / "out")}
    run_stage(program, "prepare", 1, job)
    # The engine has ended; its parent has not.
    stderr = tera(program, "terasort", rows, tmp_path / "out", code=1).err
    assert f"process {os.getpid()} on " in stderr
    for stage in ("sample", "sort", "merge", "commit"):
        run_stage(program, stage, 1, job)
    assert tera(program, "teravalidate", tmp_path / "out").checksum == CHECKSUM
    # It removes its own files.
    run_stage(program, "prepare", 1, {**job, "output": str(tmp_path / "again")})
    run_stage(program, "prepare", 1, {**job, "output": str(tmp_path / "again")})
    run_stage(program, "abandon", 1, {**job, "output": str(tmp_path / "again")})
    assert [*tmp_path.iterdir()] == [tmp_path / "out"]


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
