"""A sort that is killed, interrupted, out of disk space or abandoned by its parent leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tera_support import CHECKSUM, HANGS_SECONDS, LITTLE, MIB, run_stage, small_disks, stage_spec, tera
from tera_support import rows as rows


@pytest.fixture(scope="module")
def row_files(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough rows for every stage to last for several of its cancellation checks, which are 200 ms apart."""
    directory = tmp_path_factory.mktemp("many") / "in"
    tera(program, "teragen", "--parts", "2", "6m", directory)
    return directory


KILLED = {
    "generate": (["teragen", "6m"], "output/part-m-*"),
    "sort in memory": (["terasort", "--memory", "1GiB"], "output/part-r-*"),
    "sort": (["terasort", "--memory", LITTLE], "run-*"),
    "merge": (["terasort", "--memory", LITTLE], "output/part-r-*"),
}


def start_stage(
    program: Path, rows: Path, stage: str, out: Path, *before: str
) -> tuple[list[str | Path], subprocess.Popen[str]]:
    """Starts a command, and returns it as soon as it has reached the stage or ended."""
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
        # The command ended before the kill.
        shutil.rmtree(out)
    else:
        pytest.fail("no kill reached the stage in time")
    assert [path.name for path in tmp_path.iterdir()] == [".out.loadstone"]
    tera(program, *line)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    tera(program, "teravalidate", out, code=1 if stage == "generate" else 0)


@pytest.mark.parametrize(
    ("stage", "numbers"),
    # The kernel and the shell may both send SIGHUP when a terminal closes.
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
        pytest.fail("no signal reached the stage in time")
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
        pytest.fail("the job always ended before the signal")
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
    """Mounts a file system of the requested size, which requires root."""
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


def test_a_disk_that_was_full_before(program: Path, rows: Path, small_disk: Any) -> None:
    disk = small_disk(MIB)
    (disk / "filler").write_bytes(bytes(MIB))
    lines: list[list[str | Path]] = [["teragen", "1"], ["terasort", rows], ["teravalidate", rows]]
    for line in lines:
        stderr = tera(program, *line, disk / "out", code=1).err
        assert "No space left on device" in stderr
        assert [path.name for path in disk.iterdir()] == ["filler"]


# Starts engines as a lab does: runs all stages but the last in sequence, then starts the last stage and waits forever.
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
    job |= {"rows": 6_000_000} if stages == ["generate"] else {"input": str(row_files)}
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
    # The next job removes the engines' files.
    tera(program, "teragen", "10", out)
    assert not scratch.exists()


def test_sort_with_separate_engines_is_undisturbed_between_stages(program: Path, tmp_path: Path, rows: Path) -> None:
    job = {"input": str(rows), "output": str(tmp_path / "out")}
    run_stage(program, "prepare", 1, job)
    # The engine of the stage has exited, but its parent, this process, still runs.
    stderr = tera(program, "terasort", rows, tmp_path / "out", code=1).err
    assert f"process {os.getpid()} on " in stderr
    for stage in ("sample", "sort", "merge", "commit"):
        run_stage(program, stage, 1, job)
    assert tera(program, "teravalidate", tmp_path / "out").checksum == CHECKSUM
    # The stage `abandon` removes the files that the job has written so far.
    run_stage(program, "prepare", 1, {**job, "output": str(tmp_path / "again")})
    run_stage(program, "prepare", 1, {**job, "output": str(tmp_path / "again")})
    run_stage(program, "abandon", 1, {**job, "output": str(tmp_path / "again")})
    assert [*tmp_path.iterdir()] == [tmp_path / "out"]
