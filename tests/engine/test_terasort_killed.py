"""Sorts that are killed at any moment, fill the disk at any file, or start together leave no partial output."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from killed_at import CHANGES, TRACEABLE, kill_at
from tera_support import HANGS_SECONDS, MIB, parts, read_rows, small_disks, start_together, tera

traced = pytest.mark.skipif(not TRACEABLE, reason="system calls are counted by their numbers on x86-64")

# A file of the scratch directory that marks the end of each stage, in order. The output marks the end of the last
# stage.
MARKS: dict[str, Mapping[str, str]] = {
    "teragen": {"prepare": "output", "generate": "output/_SUCCESS"},
    "in memory": {"prepare": "output", "sample": "sample-0", "sort in memory": "sum-written-0"},
    "external": {"prepare": "output", "sample": "sample-0", "sort": "sum-read-0", "merge": "sum-written-0"},
    "teravalidate": {"prepare": "output", "validate": "spans-0"},
}
OPTIONS = ["--threads", "1", "--memory", "64MiB"]


@pytest.fixture(scope="module")
def inputs(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three inputs: a few rows, more rows than fit into the minimum memory, and a few sorted rows."""
    directory = tmp_path_factory.mktemp("inputs")
    tera(program, "teragen", "--parts", "2", "3000", directory / "few")
    tera(program, "teragen", "--parts", "2", "400k", directory / "many")
    tera(program, "terasort", *OPTIONS, "--parts", "2", directory / "few", directory / "sorted")
    return directory


def line(job: str, inputs: Path, out: Path) -> list[str | Path]:
    """The command line of a job."""
    lines: dict[str, list[str | Path]] = {
        "teragen": ["teragen", *OPTIONS, "--parts", "2", "3000", out],
        "in memory": ["terasort", *OPTIONS, "--parts", "2", inputs / "few", out],
        "external": ["terasort", *OPTIONS, "--parts", "2", inputs / "many", out],
        "teravalidate": ["teravalidate", *OPTIONS, inputs / "sorted", out],
    }
    return lines[job]


def stage(job: str, out: Path) -> str:
    """The stage in which a job was killed."""
    scratch = out.parent / f".{out.name}.loadstone"
    if not scratch.exists():
        return "commit" if out.exists() else "prepare"
    return next((stage for stage, mark in MARKS[job].items() if not (scratch / mark).exists()), "commit")


@traced
@pytest.mark.parametrize(
    ("job", "calls", "step"),
    [
        ("teragen", f"{CHANGES},pwrite64", 1),
        ("in memory", CHANGES, 1),
        ("teravalidate", CHANGES, 1),
        # The remaining stages of an external sort are the same as for a sort in memory.
        ("external", CHANGES, 3),
    ],
)
def test_job_killed_at_any_file_change_restarts_cleanly(
    program: Path, tmp_path: Path, inputs: Path, job: str, calls: str, step: int
) -> None:
    home, expected = tmp_path / "home", tmp_path / "expected"
    home.mkdir()
    out, arguments = home / "out", line(job, inputs, home / "out")
    tera(program, *line(job, inputs, expected))
    result = set()
    for n in range(1, 1_000, step):
        killed, _ = kill_at(n, calls, [program, *arguments])
        if not killed:
            break
        result.add(stage(job, out))
        if out.exists():
            assert (out / "_SUCCESS").exists(), n
            assert "already exists" in tera(program, *arguments, code=2).err
        else:
            tera(program, *arguments)
        assert [path.name for path in home.iterdir()] == ["out"], n
        assert [path.name for path in parts(out)] == [path.name for path in parts(expected)]
        assert read_rows(out) == read_rows(expected), n
        shutil.rmtree(out)
    else:
        pytest.fail("the job was killed 1,000 times and never ended")
    stages = {*MARKS[job], "commit"}
    assert result <= stages
    assert result >= (stages if step == 1 else {"sort", "merge"})
    assert [path.name for path in home.iterdir()] == ["out"]


@traced
def test_killed_validation_without_report_leaves_nothing(program: Path, inputs: Path) -> None:
    before = sorted(inputs.rglob("*"))
    killed, _ = kill_at(1, "pread64", [program, "teravalidate", *OPTIONS, inputs / "sorted"])
    assert killed
    assert sorted(inputs.rglob("*")) == before
    tera(program, "teravalidate", inputs / "sorted")


@pytest.mark.parametrize("job", MARKS)
def test_disk_full_at_any_file_leaves_nothing(program: Path, tmp_path: Path, inputs: Path, job: str) -> None:
    """Each attempt has room for one more file, until the job succeeds: each stage has then failed at least once."""
    stages: list[str] = []
    with small_disks(tmp_path / "disk") as mounted:
        for inodes in range(2, 1_000):
            home = mounted(200 * MIB, inodes)
            arguments = line(job, inputs, home / "out")
            done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=HANGS_SECONDS)
            if done.returncode == 0:
                break
            assert (done.returncode, [*home.iterdir()]) == (1, [])
            error, hint = done.stderr.splitlines()
            assert "No space left on device" in error
            assert hint.startswith("hint: free some space")
            stage = error.removeprefix(f'error: {arguments[0]} failed in the stage "').split('"')[0]
            stages += [stage] if stage not in stages else []
        else:
            pytest.fail("the job never succeeded")
        assert stages == [*MARKS[job], "commit"]
        assert [*home.iterdir()] == [home / "out"]


@traced
@pytest.mark.parametrize("left", [False, True], ids=["nothing left", "left by a killed job"])
def test_of_jobs_started_together_one_writes_the_output(
    program: Path, tmp_path: Path, inputs: Path, left: bool
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    out, arguments = home / "out", line("in memory", inputs, home / "out")
    scratch = home / ".out.loadstone"
    for n in range(3, 1_000) if left else ():
        assert kill_at(n, CHANGES, [program, *arguments])[0]
        if stage("in memory", out) == "sort in memory":
            break
        shutil.rmtree(scratch, ignore_errors=True)
    if left:
        shutil.copytree(scratch, tmp_path / "left")
    refused = 0
    for _ in range(40):
        if left:
            shutil.copytree(tmp_path / "left", scratch, dirs_exist_ok=True)
        ended = start_together(program, [arguments] * 4)
        assert sorted(run.code for run in ended).count(0) == 1, ended
        for run in ended:
            if run.code:
                error, hint = run.err.splitlines()
                assert f"is writing {out}" in error or f"output directory {out} already exists" in error
                assert hint.startswith("hint: wait until it exits" if "is writing" in error else "hint: remove it")
                refused += "is writing" in error
        assert [path.name for path in home.iterdir()] == ["out"]
        assert read_rows(out) == read_rows(inputs / "sorted")
        shutil.rmtree(out)
    assert refused, "the jobs never ran at the same time"
