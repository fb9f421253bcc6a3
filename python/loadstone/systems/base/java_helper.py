"""Keeps a Java program running, because each start takes one to two seconds. The program answers line by line."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO

ENDING_S = 2.0


class ResidentError(Exception):
    """The program exited instead of answering; the message is the last line of its error output, or its status."""


class SilentError(ResidentError):
    """The program did not answer in time, and was stopped."""


class Resident:
    """Runs at most one program at a time: a program with a different command line replaces the previous one.

    The program exits at the end of its standard input, and therefore whenever this process exits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._argv: tuple[str, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        atexit.register(self.end_program)

    def ask_program(self, argv: Sequence[str], line: str, timeout_s: float) -> str:
        """Sends a line to the program and returns its answer. Raises SilentError after `timeout_s`, and ResidentError
        if the program exits."""
        with self._lock:
            process = self._start_program(tuple(argv))
            try:
                return self._read_answer(process, line, time.monotonic() + timeout_s)
            except BaseException:
                # A late answer would be mistaken for the answer to the next request.
                self._end_process()
                raise

    def end_program(self) -> None:
        """Stops the program; does nothing if none is running."""
        with self._lock:
            self._end_process()

    def _start_program(self, argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None and self._argv == argv:
            return self._process
        self._end_process()
        self._argv, self._errors = argv, tempfile.TemporaryFile()  # noqa: SIM115
        # In a separate session, because the program is needed for cleaning up after Ctrl-C.
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0, start_new_session=True
        )
        return self._process

    def _read_answer(self, process: subprocess.Popen[bytes], line: str, deadline: float) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{line}\n".encode())
        answer = bytearray()
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise SilentError("it did not answer")
            if not (part := os.read(process.stdout.fileno(), 1 << 16)):
                raise ResidentError(self._last_error(process.wait()))
            answer += part
        return answer.decode().rstrip("\n")

    def _last_error(self, status: int) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {status}"

    def _end_process(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        for end in (process.stdin, process.stdout):
            if end is not None:
                end.close()
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
