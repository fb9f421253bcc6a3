"""TeraGen, TeraSort and TeraValidate as their users run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROW_BYTES = 100
MIB = 1 << 20
# The checksum of the first million rows, as Hadoop 3.4.2 prints it.
CHECKSUM = "7a27e2d0d55de"
# With this memory, a sort of a million rows is external.
LITTLE = "64MiB"
# Much longer than any command takes on a busy machine.
HANGS_SECONDS = 300.0


@dataclass(frozen=True)
class Ran:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def memory_bytes_max(self) -> float:
        """The peak memory of the program, VmHWM. wait4 may report the peak of pytest, which started it."""
        return float(self.match_output(r"^memory +([\d.]+) MB")) * 1e6

    @property
    def checksum(self) -> str:
        """The checksum as TeraValidate prints it."""
        return self.match_output(r"^checksum\t([0-9a-f]+)$")

    @property
    def stages(self) -> list[str]:
        """The names of the stages, in order."""
        lines = self.out.splitlines()[1:]
        return [
            line[:16].strip() for line in lines[: next(i for i, text in enumerate(lines) if text.startswith("total"))]
        ]

    def match_output(self, pattern: str) -> str:
        """The group of a pattern that must match the output once."""
        (text,) = re.findall(pattern, self.out, re.MULTILINE)
        return str(text)


def tera(program: Path, *arguments: str | Path, code: int = 0) -> Ran:
    """Runs a command to its end; it must exit with this code."""
    line: list[str | Path] = [program, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=HANGS_SECONDS)
    ran = Ran(done.returncode, done.stdout, done.stderr)
    assert "panicked" not in ran.err, ran.err
    assert ran.code == code, f"{arguments}\n{ran.out}\n{ran.err}"
    return ran


def start_together(program: Path, lines: Sequence[Sequence[str | Path]]) -> list[Ran]:
    """Runs commands that begin simultaneously: each waits in a shell until a pipe is closed."""
    reader, writer = os.pipe()
    pipe, processes = subprocess.PIPE, []
    try:
        for arguments in lines:
            line = ["sh", "-c", 'read _; exec "$@" </dev/null', "sh", str(program), *map(str, arguments)]
            processes.append(subprocess.Popen(line, stdin=reader, stdout=pipe, stderr=pipe, text=True))
        os.close(reader)
        os.close(writer)
        outputs = [process.communicate(timeout=HANGS_SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [Ran(process.returncode, out, err) for process, (out, err) in zip(processes, outputs, strict=True)]


@contextmanager
def small_disks(disk: Path) -> Iterator[Callable[..., Path]]:
    """Yields a function that mounts a file system in memory, or changes its maximum size and inodes. Requires root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk requires root")
    disk.mkdir()

    def mount_disk(size: int, inodes: int = 0) -> Path:
        options = f"size={size},nr_inodes={inodes}" + (",remount" if disk.is_mount() else "")
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], check=True)
        return disk

    try:
        yield mount_disk
    finally:
        subprocess.run(["umount", disk], check=False)


def parts(directory: Path) -> list[Path]:
    """The files of an output, in order."""
    return sorted(directory.glob("part-*"))


def read_rows(directory: Path) -> bytes:
    """The rows of all parts."""
    return b"".join(path.read_bytes() for path in parts(directory))


@pytest.fixture(scope="module")
def rows(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A million rows in two files."""
    directory = tmp_path_factory.mktemp("rows") / "in"
    tera(program, "teragen", "--parts", "2", "1m", directory)
    return directory


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
