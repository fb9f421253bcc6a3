"""TeraGen, TeraSort and TeraValidate as their users run them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROW_BYTES = 100
MIB = 1 << 20
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
    """Runs a command to its end, which must have this code."""
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
    """Mounts a file system in memory, or changes its limits: bytes, and files and directories. Requires root."""
    if os.geteuid() != 0:
        pytest.skip("to mount a small disk takes root")
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
