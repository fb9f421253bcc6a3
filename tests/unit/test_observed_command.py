"""Observed commands: output and exit status are recorded, and no process outlives the trial."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from lab_support import is_running
from loadstone.experiment.kind import CommandContext, Ended, ObservedCommand
from loadstone.fleet.command import CommandError
from loadstone.importers.run import ImportedRun
from loadstone.observe.watch import Watch
from loadstone.runner import command
from loadstone.runner.progress import PlainLines

PROGRESS = PlainLines(Console(file=io.StringIO()))


class Seen(Watch):
    """Counts the samples that a watch is asked to take."""

    def __init__(self) -> None:
        self.looks = 0

    def take_sample(self) -> None:
        """Counts a sample."""
        self.looks += 1


def run(directory: Path, script: str, timeout: float = 60.0, samples: Seen | None = None) -> Ended:
    phase = ObservedCommand("work", lambda _: ["sh", "-c", script], lambda _: ImportedRun())
    return command.run(phase, CommandContext(directory, directory), PROGRESS, samples, timeout)


def wait_for_end(path: Path) -> None:
    """Waits until the process whose pid is in a file has exited."""
    pid = int(path.read_text())
    until = time.monotonic() + 60
    while is_running(pid):
        assert time.monotonic() < until, "the process outlived its trial"
        time.sleep(0.01)


def test_output_and_exit_status_are_kept(tmp_path: Path) -> None:
    ended = run(tmp_path, "pwd; echo wrong >&2; exit 3")
    assert ended.status == 3
    assert ended.stdout.read_text() == f"{tmp_path}\n"
    assert ended.stderr.read_text() == "wrong\n"
    failure = command.failure("work", ended)
    assert (failure.args[0], failure.hint) == ("work exited with status 3", "the end of its output: wrong")


def test_slow_command_is_killed_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"work did not finish within 0\.5 s"):
        run(tmp_path, "sleep 600 & echo $! > child; wait", timeout=0.5)
    wait_for_end(tmp_path / "child")


def test_children_left_by_a_command_are_killed(tmp_path: Path) -> None:
    assert run(tmp_path, "trap '' TERM; sleep 600 & echo $! > child").status == 0
    wait_for_end(tmp_path / "child")


def test_an_interrupt_kills_a_command_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"

    def interrupt() -> None:
        until = time.monotonic() + 60
        while not (child.exists() and child.read_text().strip()) and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "sleep 600 & echo $! > child; wait")
    wait_for_end(child)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    phase = ObservedCommand("work", lambda _: ["no-such-program"], lambda _: ImportedRun())
    with pytest.raises(CommandError, match="cannot run no-such-program: it is not installed"):
        command.run(phase, CommandContext(tmp_path, tmp_path), PROGRESS, None, 1.0)


def test_the_host_is_observed_during_a_command(tmp_path: Path) -> None:
    samples = Seen()
    assert run(tmp_path, "sleep 2.5", samples=samples).status == 0
    assert samples.looks >= 1
