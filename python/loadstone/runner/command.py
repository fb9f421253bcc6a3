"""An observed command: the program that does the work of a trial, from its start to its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from loadstone.engine.trial import EngineError
from loadstone.experiment.kind import Ended, ObservedCommand
from loadstone.runner.phase import Watcher
from loadstone.runner.progress import Display, PhaseProgress

LOOK_SECONDS = 1.0
# How long it may take to end by itself once it is asked to.
ENDING_SECONDS = 5.0
TAIL_BYTES = 400
NOT_FOUND, NOT_EXECUTABLE = 127, 126
# As an engine is by its lease: a command is ended when the lab is killed.
LEASE = ("setpriv", "--pdeathsig", "TERM", "--")


class CommandError(EngineError):
    """A command cannot be run, or took too long."""


def run(
    phase: ObservedCommand, directory: Path, files: Path, shown: Display, watcher: Watcher | None, timeout: float
) -> Ended:
    """Runs a command in `directory`, its output in `<name>.stdout` and `<name>.stderr` of the trial's `files`.

    It has a process group of its own, which ends with it, however this ends. Raises CommandError when it cannot be
    started, or takes more than `timeout` seconds.
    """
    words = list(phase.arguments(files.absolute()))
    ended = Ended(0, files / f"{phase.name}.stdout", files / f"{phase.name}.stderr")
    if shutil.which(words[0]) is None:
        raise CommandError(f"cannot run {words[0]}: it is not installed", "`loadstone doctor` says how", NOT_FOUND)
    progress = PhaseProgress(phase.name, None, phase.seconds, 0.0)
    shown.begin(progress)
    with ended.stdout.open("wb") as out, ended.stderr.open("wb") as errors:
        try:
            process = subprocess.Popen(
                [*(LEASE if shutil.which(LEASE[0]) else ()), *words],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            raise CommandError(f"cannot run {words[0]}: {error}", "look at its words", NOT_EXECUTABLE) from error
        if watcher is not None:
            watcher.watch(phase.name, process.pid)
        progress.start()
        until = time.monotonic() + timeout
        try:
            while (status := waited(process, min(LOOK_SECONDS, max(until - time.monotonic(), 0)))) is None:
                if time.monotonic() >= until:
                    hint = "give the experiment a longer `timeout`, or the command less to do"
                    message = f"{phase.name}: {words[0]} did not end within {timeout:g} s"
                    raise CommandError(message, hint, -signal.SIGKILL)
                if watcher is not None:
                    watcher.look()
                shown.update()
        finally:
            end(process)
    return Ended(status, ended.stdout, ended.stderr)


def waited(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit status, None while it still runs."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends what is left of a command: first by SIGTERM, at which fio ends its jobs, then for certain."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if waited(process, ENDING_SECONDS) is not None and number == signal.SIGTERM and not group_lives(process.pid):
            return


def group_lives(group: int) -> bool:
    """Whether there is a process in a group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def failure(name: str, ended: Ended, message: str = "") -> CommandError:
    """What is said of a command that failed, with the end of its errors."""
    said = ended.stderr.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
    how = f"signal {-ended.status}" if ended.status < 0 else f"exit status {ended.status}"
    told = f"{name} ended with {how}" + (f": {message}" if message else "")
    hint = f"the end of its output: {said}" if said else f"see {ended.stdout.name}"
    return CommandError(told, hint, ended.status or 1)
