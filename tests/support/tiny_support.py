"""Runs the system of tiny servers through the command line, with its files below a separate root."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from command_server import Done
from loadstone.experiment.plan.faults import PlannedFault
from loadstone.faults.injector import Injector
from loadstone.faults.site import StartedSite
from loadstone.results.fault import FaultRecord
from loadstone.systems.base import process
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.base.system import ServerProcess
from systems_support import environment, free_port, temporary_root
from tiny_system import Tiny as TinySystem

TINY = Path(__file__).parent / "tiny_system.py"
LINE = re.compile(r"(tiny-\d) (up|starting|paused|dead) 127\.0\.0\.1:(\d+) (\d+)")


@dataclass(frozen=True)
class Tiny:
    """The tiny system below a separate root."""

    root: Path
    port: int

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Starts a command without waiting for it."""
        return subprocess.Popen(
            self.arguments(*arguments),
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, code: int = 0, prefix: tuple[str, ...] = (), **variables: str) -> Done:
        """Runs a command, which must exit with this status."""
        done = subprocess.run(
            [*prefix, *self.arguments(*arguments)],
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, f"{arguments}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def arguments(self, verb: str, *args: str) -> list[str]:
        options = ["--set", f"port={self.port}"] if verb == "up" else []
        return [sys.executable, str(TINY), "systems", verb, "tiny", *options, *args]

    def environment(self, **variables: str) -> dict[str, str]:
        return environment(self.root, **variables)

    def states(self) -> dict[str, tuple[str, int]]:
        """The output of `status`: state and pid by server."""
        out = subprocess.run(self.arguments("status"), env=self.environment(), capture_output=True, text=True).stdout
        matches = [LINE.fullmatch(line) for line in out.splitlines()]
        return {match[1]: (match[2], int(match[4])) for match in matches if match}

    def pids(self) -> dict[str, int]:
        return {name: pid for name, (_, pid) in self.states().items()}

    def there(self) -> list[ServerProcess]:
        """The servers that are running, identified by their environment variables."""
        return process.find_marked(self.root / "tiny")

    @property
    def state(self) -> Path:
        return self.root / "tiny/state.json"

    def starts(self, server: str) -> int:
        """The number of starts of a server with its current data."""
        return len((self.root / "tiny/data" / server / "starts").read_text())

    def log(self, server: str) -> str:
        return (self.root / f"tiny/logs/{server}.log").read_text()

    def child(self) -> int:
        """The child process of the first server."""
        return int((self.root / "tiny/data/tiny-1/child").read_text())

    def is_clean(self) -> bool:
        """Whether no process, port or data remain, only logs and the lock file."""
        assert self.there() == []
        for number in range(3):
            with socket.create_server(("127.0.0.1", self.port + number)):
                pass
        left = {path.name for path in (self.root / "tiny").iterdir()}
        assert left <= {"logs", "lock"}, left
        return True


@pytest.fixture
def tiny() -> Iterator[Tiny]:
    with temporary_root() as root:
        tiny_system = Tiny(root, free_port(offsets=range(3)))
        yield tiny_system
        for server in tiny_system.there():
            process.end_processes([server], 0)


def until(true: Callable[[], object], what: str) -> None:
    """Waits for a condition."""
    for _ in range(3000):
        if true():
            return
        time.sleep(0.02)
    pytest.fail(f"never: {what}")


PLANNED = PlannedFault("kill", 0, ("tiny-2",), 1, (0.2, 0.2), (0.2, 0.2), 0.1, "silence", 0.95, 0.0, 0.1)


def running_of(root: Path) -> RunningSystem:
    """The tiny system below a root."""
    return RunningSystem(TinySystem(), root)


def injector_of(running: RunningSystem, *faults: PlannedFault) -> Injector:
    """An injector that has prepared these faults for a trial."""
    injector = Injector(StartedSite(running), faults, 1, 1)
    injector.prepare()
    return injector


def run_fault(running: RunningSystem, planned: PlannedFault, seconds: float = 20.0) -> FaultRecord:
    """Injects a fault into a trial that lasts until the fault is settled, but at most for `seconds`."""
    injector = injector_of(running, planned)
    with injector:
        injector.begin(time.monotonic_ns(), time.time_ns())
        until_s = time.monotonic() + seconds
        while injector.records[0].settled_ns is None and time.monotonic() < until_s:
            time.sleep(0.01)
    return injector.records[0]


def is_lifted(injector: Injector) -> bool:
    """Whether the first fault was lifted."""
    return injector.records[0].lifted_ns is not None
