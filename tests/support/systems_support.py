"""Starts real servers for tests through the users' command line, on free ports and with files below a separate root."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from command_server import Done, run_command
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.registry import load_system


@dataclass(frozen=True)
class Up:
    """A running system."""

    running: RunningSystem
    root: Path
    # Properties for a store.
    properties: dict[str, str] = field(default_factory=dict)

    def systems(self, *arguments: str, code: int = 0, timeout: float = 300) -> Done:
        """Runs `loadstone systems …` on this system."""
        return systems(self.root, *arguments, code=code, timeout=timeout)

    def arguments(self) -> list[str]:
        """The properties as arguments of the engine's command line."""
        return [word for name, value in self.properties.items() for word in ("-p", f"{name}={value}")]


@contextlib.contextmanager
def up(name: str, nodes: int | None = None, **settings: str | int) -> Iterator[Up]:
    """A system that runs until the end of the block; `_` in a setting's name also means `-` and `.`.

    For a whole module: a fixture of scope `module` with `with up("redis") as redis: yield redis`. Unset ports are free
    ports.
    """
    options = exact(name, {key: str(value) for key, value in settings.items()})
    with temporary_root() as root:
        chosen = {**free_settings(name), **options}
        command = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
        many = [] if nodes is None else ["--nodes", str(nodes)]
        try:
            systems(root, "up", name, *many, *command, timeout=900)
            running = RunningSystem(name, root)
            yield Up(running, root, dict(running.store_properties()))
        finally:
            systems(root, "down", name)


@contextlib.contextmanager
def temporary_root() -> Iterator[Path]:
    """A root for systems: short, because names of sockets contain it, and accessible to the users of servers."""
    root = Path(tempfile.mkdtemp(prefix="loadstone-"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root)


def systems(
    root: Path, *arguments: str, code: int = 0, timeout: float = 300, prefix: tuple[str, ...] = (), **variables: str
) -> Done:
    """Runs `loadstone systems …` below a root; it must exit with this status."""
    done = run_command(["systems", *arguments], None, environment(root, **variables), timeout, prefix)
    assert done.returncode == code, f"{arguments}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def environment(root: Path, **variables: str) -> dict[str, str]:
    """The environment variables of a command whose systems are below `root`."""
    return {**os.environ, "LOADSTONE_SYSTEMS": str(root), "NO_COLOR": "1", "COLUMNS": "200", **variables}


@pytest.fixture(name="root")
def redis_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The servers' state directory; servers that are up at the end are stopped."""
    with temporary_root() as path:
        monkeypatch.setenv("LOADSTONE_SYSTEMS", str(path))
        yield path
        systems(path, "down", "redis")


def exact(name: str, settings: dict[str, str]) -> dict[str, str]:
    """Settings by their exact names: a keyword has `_` in place of `-` or `.`."""
    names = [setting.name for setting in load_system(name).settings]
    known = {re.sub("[-.]", "_", setting): setting for setting in names}
    # `conf.*` matches many names.
    begins = {re.sub("[-.]", "_", setting[:-1]): setting[:-1] for setting in names if setting.endswith("*")}
    entries = {}
    for key, value in settings.items():
        begin = next((setting for setting in begins if key.startswith(setting) and key not in known), None)
        entries[known.get(key, key) if begin is None else begins[begin] + key.removeprefix(begin)] = value
    return entries


def free_settings(name: str) -> dict[str, str]:
    """A free port for each setting of a system that is a port."""
    names = [setting.name for setting in load_system(name).settings if setting.name.lower().endswith("port")]
    first = free_port(offsets=range(SPAN * len(names)))
    return {setting: str(first + SPAN * number) for number, setting in enumerate(names)}


# The number of ports reserved for a setting, which may name the first of many ports.
SPAN = 40


def ports() -> range:
    """Ports for servers, below the kernel's ephemeral ports, which connections occupy and release during a test.

    With `pytest -n` each worker has a separate range: otherwise two workers could choose the same free port.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = 12_000 // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return range(20_000 + worker * share, 20_000 + (worker + 1) * share - SPAN)


def free_port(hosts: Sequence[str] = ("127.0.0.1",), offsets: Sequence[int] = (0,), after: int = 0) -> int:
    """A port that is free on all of these addresses, as are the ports at `offsets` after it."""
    mine = ports()
    first = after + 1 if after else random.choice(mine[: len(mine) // 2])
    for port in range(first, mine.stop):
        with contextlib.ExitStack() as sockets, contextlib.suppress(OSError):
            for host, offset in itertools.product(hosts, offsets):
                sockets.enter_context(socket.create_server((host, port + offset)))
            return port
    raise AssertionError("no port is free")
