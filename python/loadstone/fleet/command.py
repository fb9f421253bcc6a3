"""Starts commands, on this machine and on the hosts of a fleet, through a launcher that exits with this process."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from loadstone.engine.trial import EngineError
from loadstone.experiment.kind import CommandUse
from loadstone.fleet import launcher

NOT_EXECUTABLE = 126
# The time limit for the launcher to kill a command.
KILL_SECONDS = 3 * launcher.ENDING_SECONDS


class CommandError(EngineError):
    """A command could not be run, or took too long."""


class Launcher(AbstractContextManager["Launcher"]):
    """The process that starts commands (`loadstone.fleet.launcher`)."""

    def __init__(self) -> None:
        # The launcher runs in a separate session, so that Ctrl-C does not kill it before its command.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", launcher.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._received = b""
        self._pid = 0

    def start(
        self, argv: Sequence[str], directory: Path, environment: Mapping[str, str], stdout: Path, stderr: Path
    ) -> int:
        """Starts a command; returns its pid. Raises CommandError if it cannot be started."""
        request = {
            "argv": argv,
            "directory": str(directory),
            "environment": dict(environment),
            "stdout": str(stdout.absolute()),
            "stderr": str(stderr.absolute()),
        }
        self._send(request)
        reply = self._receive(None)
        if reply is None or "pid" not in reply:
            reason = reply.get("error") if reply else "the launcher has exited"
            raise CommandError(f"cannot run {argv[0]}: {reason}", "check its arguments", NOT_EXECUTABLE)
        self._pid = int(reply["pid"])
        return self._pid

    def wait(self, seconds: float) -> tuple[int, CommandUse] | None:
        """The exit status and the resource usage of the command; None if it is still running after `seconds`."""
        reply = self._receive(seconds)
        if reply is None:
            return None
        self._pid = 0
        use = CommandUse(reply["elapsed_ns"], reply["cpu_ns"], reply["memory_bytes"], tuple(reply["survivors"]))
        return int(reply["status"]), use

    def end(self) -> None:
        """Terminates the command, if one is running, and all processes that it started."""
        if self._pid:
            with suppress(CommandError):
                self._send({"end": True})
                self.wait(KILL_SECONDS)

    def __exit__(self, *_: object) -> None:
        self.end()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _send(self, request: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure() from None

    def _receive(self, seconds: float | None) -> dict[str, Any] | None:
        """The next reply; None if none arrives within `seconds`. Raises CommandError if the launcher has exited."""
        assert self._process.stdout is not None
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._received:
            rest = None if until is None else max(until - time.monotonic(), 0.0)
            ready, _, _ = select.select([self._process.stdout], [], [], rest)
            if not ready:
                return None
            received = os.read(self._process.stdout.fileno(), 1 << 16)
            if not received:
                raise self._failure()
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _failure(self) -> CommandError:
        """The error for a killed launcher; also kills the launcher's command, which must not outlive it."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
            self._pid = 0
        return CommandError("the process that starts commands was killed", "see the kernel log", -signal.SIGKILL)
