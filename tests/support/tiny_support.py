"""The system of tiny servers, below a root of its own and through the command line."""

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
from loadstone.systems.base import process
from loadstone.systems.base.system import ServerProcess
from systems_support import environment, free_port, temporary_root

TINY = Path(__file__).parent / "tiny_system.py"
LINE = re.compile(r"(tiny-\d) (up|starting|paused|dead) 127\.0\.0\.1:(\d+) (\d+)")


@dataclass(frozen=True)
class Tiny:
    """The tiny system below a root of its own."""

    root: Path
    port: int

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """A command that is not waited for."""
        return subprocess.Popen(
            self.words(*words),
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str, code: int = 0, prefix: tuple[str, ...] = (), **variables: str) -> Done:
        """Runs a command, which must end with this status."""
        done = subprocess.run(
            [*prefix, *self.words(*words)],
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, f"{words}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def words(self, verb: str, *words: str) -> list[str]:
        given = ["--set", f"port={self.port}"] if verb == "up" else []
        return [sys.executable, str(TINY), "systems", verb, "tiny", *given, *words]

    def environment(self, **variables: str) -> dict[str, str]:
        return environment(self.root, **variables)

    def states(self) -> dict[str, tuple[str, int]]:
        """What `status` prints: state and pid by server."""
        out = subprocess.run(self.words("status"), env=self.environment(), capture_output=True, text=True).stdout
        matches = [LINE.fullmatch(line) for line in out.splitlines()]
        return {match[1]: (match[2], int(match[4])) for match in matches if match}

    def pids(self) -> dict[str, int]:
        return {name: pid for name, (_, pid) in self.states().items()}

    def there(self) -> list[ServerProcess]:
        """Servers by their environment."""
        return process.find_marked(self.root / "tiny")

    @property
    def state(self) -> Path:
        return self.root / "tiny/state.json"

    def starts(self, server: str) -> int:
        """How often a server was started over the data that are there."""
        return len((self.root / "tiny/data" / server / "starts").read_text())

    def log(self, server: str) -> str:
        return (self.root / f"tiny/logs/{server}.log").read_text()

    def child(self) -> int:
        """What the first server has started."""
        return int((self.root / "tiny/data/tiny-1/child").read_text())

    def nothing_left(self) -> bool:
        """No process, no port, no data; only logs."""
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
        found = Tiny(root, free_port(offsets=range(3)))
        yield found
        for each in found.there():
            process.end_processes([each], 0)


def until(true: Callable[[], object], what: str) -> None:
    """Waits for something that must come."""
    for _ in range(3000):
        if true():
            return
        time.sleep(0.02)
    pytest.fail(f"never: {what}")
