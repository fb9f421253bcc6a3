"""An observed command: the program that does the work of a trial, from its start to its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loadstone.engine.trial import EngineError
from loadstone.experiment.kind import Ended, ObservedCommand
from loadstone.runner.progress import Display, PhaseProgress
from loadstone.runner.watch import Watch

POLL_SECONDS = 1.0
# How long it may take to end after SIGTERM.
ENDING_SECONDS = 5.0
TAIL_BYTES = 400
NOT_FOUND, NOT_EXECUTABLE = 127, 126
# Ends the command if the lab is killed, as its lease does for an engine: standard input then ends without a line. A
# signal on the parent's death would reach one process only, and fio misses SIGTERM while it starts its jobs.
GUARD = 'read -r line || { kill -s TERM -- "-$1"; sleep "$2"; kill -s KILL -- "-$1"; }'


class CommandError(EngineError):
    """A command could not be run, or took too long."""


def run(
    phase: ObservedCommand, directory: Path, files: Path, display: Display, watch: Watch | None, timeout: float
) -> Ended:
    """Runs a command in `directory`, its output in `<name>.stdout` and `<name>.stderr` of the trial's `files`.

    Its process group is killed when it ends, or this raises. Raises CommandError if it cannot be started or takes more
    than `timeout` seconds.
    """
    arguments = list(phase.arguments(files.absolute()))
    ended = Ended(0, files / f"{phase.name}.stdout", files / f"{phase.name}.stderr")
    if shutil.which(arguments[0]) is None:
        raise CommandError(f"cannot run {arguments[0]}: it is not installed", "see `loadstone doctor`", NOT_FOUND)
    progress = PhaseProgress(phase.name, None, phase.seconds, 0.0)
    display.begin(progress)
    with ended.stdout.open("wb") as out, ended.stderr.open("wb") as errors:
        try:
            process = subprocess.Popen(
                arguments,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            raise CommandError(f"cannot run {arguments[0]}: {error}", "check its arguments", NOT_EXECUTABLE) from error
        with guarded(process):
            if watch is not None:
                watch.watch(phase.name, process.pid)
            progress.start()
            deadline = time.monotonic() + timeout
            while (status := wait(process, min(POLL_SECONDS, max(deadline - time.monotonic(), 0)))) is None:
                if time.monotonic() >= deadline:
                    hint = "set a longer `timeout` in the experiment, or give the command less work"
                    message = f"{phase.name}: {arguments[0]} did not end within {timeout:g} s"
                    raise CommandError(message, hint, -signal.SIGKILL)
                if watch is not None:
                    watch.look()
                display.update()
    return Ended(status, ended.stdout, ended.stderr)


@contextmanager
def guarded(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ends the group of a process at the end, also if this process is killed before."""
    arguments = ["sh", "-c", GUARD, "sh", str(process.pid), f"{ENDING_SECONDS:g}"]
    guard = None
    try:
        # In a session of its own: Ctrl-C on the terminal must not end it first.
        guard = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        yield
    finally:
        end(process)
        if guard is not None:
            guard.communicate(b"ended\n")


def wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit status; None if it still runs after so many seconds."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process group: by SIGTERM, so that fio can end its jobs, then by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        wait(process, ENDING_SECONDS)


def failure(name: str, ended: Ended, message: str = "") -> CommandError:
    """The error for a command that failed, with the end of its standard error."""
    tail = ended.stderr.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
    how = f"signal {-ended.status}" if ended.status < 0 else f"exit status {ended.status}"
    text = f"{name} ended with {how}" + (f": {message}" if message else "")
    hint = f"the end of its output: {tail}" if tail else f"see {ended.stdout.name}"
    return CommandError(text, hint, ended.status or 1)
