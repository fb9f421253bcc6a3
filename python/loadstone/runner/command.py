"""Runs an observed command, the program that does the work of a trial."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from loadstone.engine import secrets
from loadstone.engine.trial import EngineError
from loadstone.experiment.kind import CommandContext, CommandUse, Ended, ObservedCommand
from loadstone.format import units
from loadstone.observe.watch import Watch
from loadstone.runner import launcher
from loadstone.runner.progress import Display, PhaseProgress

POLL_SECONDS = 1.0
# The number of bytes read from the end of an output, and the number of characters that a message quotes.
TAIL_BYTES, TAIL_CHARS = 1000, 200
NOT_FOUND, NOT_EXECUTABLE = 127, 126
# The status of a pipeline whose writer was killed because its reader, such as `head`, had exited.
CLOSED_PIPE = 128 + signal.SIGPIPE
# Of a larger output, this number of bytes is kept at its beginning and at its end.
RETAINED_BYTES = 16 << 20
# The largest output, in bytes: a command without a limit could fill the disk.
OUTPUT_MAX = 4 << 30
CUT = b"\n[... loadstone: %d bytes were omitted here ...]\n"
# The time that the launcher has to kill a command.
KILL_SECONDS = 3 * launcher.ENDING_SECONDS


class CommandError(EngineError):
    """A command could not be run, or took too long."""


class Launcher(AbstractContextManager["Launcher"]):
    """The process that starts commands (`loadstone.runner.launcher`)."""

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


def run(
    phase: ObservedCommand, context: CommandContext, display: Display, watch: Watch | None, timeout: float
) -> Ended:
    """Runs a command in the data directory; its output goes to `<name>.stdout` and `<name>.stderr` of the trial.

    All its processes are killed when it exits, or if this function raises an error. Raises CommandError if the command
    cannot be started or takes more than `timeout` seconds.
    """
    with Launcher() as process:
        return run_by(process, phase, context, display, watch, timeout)


def run_by(
    process: Launcher,
    phase: ObservedCommand,
    context: CommandContext,
    display: Display,
    watch: Watch | None,
    timeout: float,
    output: Path | None = None,
) -> Ended:
    """Like `run`, with a launcher that serves several commands; `output` redirects the standard output."""
    files = context.files.absolute()
    arguments = list(phase.arguments(context))
    stdout, stderr = output or files / f"{phase.name}.stdout", files / f"{phase.name}.stderr"
    if shutil.which(arguments[0]) is None:
        raise CommandError(f"cannot run {arguments[0]}: it is not installed", "see `loadstone doctor`", NOT_FOUND)
    progress = PhaseProgress(phase.name, None, phase.seconds, 0.0)
    display.begin(progress)
    for path in (stdout, stderr):
        path.write_bytes(b"")
    process.start(arguments, context.directory, context.variables, stdout, stderr)
    progress.start()
    deadline = time.monotonic() + timeout
    while (ended := process.wait(min(POLL_SECONDS, max(deadline - time.monotonic(), 0)))) is None:
        outputs = [path for path in (stdout, stderr) if path.is_file()]
        if time.monotonic() >= deadline:
            end_command(process, outputs)
            hint = "set a longer `timeout` in the experiment, or give the command less work"
            raise CommandError(f"{phase.name} did not finish within {timeout:g} s", hint, -signal.SIGKILL)
        if any(path.stat().st_size > OUTPUT_MAX for path in outputs):
            end_command(process, outputs)
            message = f"{phase.name} printed more than {units.format_size(OUTPUT_MAX)} and was stopped"
            raise CommandError(message, "have it print less, or redirect its output to /dev/null", 1)
        if watch is not None:
            watch.take_sample()
        display.update()
    return Ended(ended[0], stdout, stderr, ended[1], context)


def end_command(process: Launcher, outputs: Iterable[Path]) -> None:
    """Terminates a running command, and truncates its output."""
    process.end()
    for path in outputs:
        cut_output(path)


def cut_output(path: Path) -> int:
    """Cuts the middle out of an output larger than twice RETAINED_BYTES; returns the number of omitted bytes."""
    size = path.stat().st_size
    if size <= 2 * RETAINED_BYTES:
        return 0
    omitted = size - 2 * RETAINED_BYTES
    with path.open("r+b") as file:
        file.seek(-RETAINED_BYTES, os.SEEK_END)
        tail = file.read()
        file.seek(RETAINED_BYTES)
        file.write(CUT % omitted + tail)
        file.truncate()
    return omitted


def failure(name: str, ended: Ended, message: str = "", hint: str = "") -> CommandError:
    """The error for a command that failed, with the end of its output."""
    how = f"was killed by signal {-ended.status}" if ended.status < 0 else f"exited with status {ended.status}"
    text = f"{name} {how}" if ended.status or not message else name
    text += f": {message}" if message else ""
    tails = [tail(path) for path in (ended.stderr, ended.stdout) if path.is_file()]
    silent = "it printed nothing" if ended.stdout.is_file() else "run it by hand: it printed no error"
    if ended.status == CLOSED_PIPE and not hint:
        hint = "the reader of a pipe exited before its writer, which SIGPIPE killed; write `(writer || true) | reader`"
    output = next((f"the end of its output: {text}" for text in tails if text), silent)
    return CommandError(text, f"{hint}; {output}" if hint else output, ended.status or 1)


def tail(path: Path) -> str:
    """The end of an output, as one line."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
        text = secrets.hide_secrets(file.read().decode(errors="replace"))
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.split())[-TAIL_CHARS:]
