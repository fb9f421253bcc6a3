"""Real servers for tests, on free ports and below a root of their own, through the command line that users have."""

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

from command_server import Done, run_command
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.registry import load_system


@dataclass(frozen=True)
class Up:
    """A system that is up."""

    running: RunningSystem
    root: Path
    # As a store takes them.
    properties: dict[str, str] = field(default_factory=dict)

    def systems(self, *words: str, code: int = 0, timeout: float = 300) -> Done:
        """`loadstone systems …` on it."""
        return systems(self.root, *words, code=code, timeout=timeout)

    def arguments(self) -> list[str]:
        """The properties as an engine's command line takes them."""
        return [word for name, value in self.properties.items() for word in ("-p", f"{name}={value}")]


@contextlib.contextmanager
def up(name: str, nodes: int | None = None, **settings: str | int) -> Iterator[Up]:
    """A system that is up until the end of the block; `_` in a setting's name stands for `-` and `.`, too.

    For a whole module: a fixture of scope `module` with `with up("redis") as redis: yield redis`. Ports that are not
    set are free ones.
    """
    given = exact(name, {key: str(value) for key, value in settings.items()})
    with temporary_root() as root:
        chosen = {**free_settings(name), **given}
        words = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
        many = [] if nodes is None else ["--nodes", str(nodes)]
        try:
            systems(root, "up", name, *many, *words, timeout=900)
            running = RunningSystem(name, root)
            yield Up(running, root, dict(running.store_properties()))
        finally:
            systems(root, "down", name)


@contextlib.contextmanager
def temporary_root() -> Iterator[Path]:
    """A root for systems. Short, as sockets have their names in it, and open to users that servers have to be."""
    root = Path(tempfile.mkdtemp(prefix="loadstone-"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root)


def systems(
    root: Path, *words: str, code: int = 0, timeout: float = 300, prefix: tuple[str, ...] = (), **variables: str
) -> Done:
    """Runs `loadstone systems …` below a root; it must end with this status."""
    done = run_command(["systems", *words], None, environment(root, **variables), timeout, prefix)
    assert done.returncode == code, f"{words}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def environment(root: Path, **variables: str) -> dict[str, str]:
    """Systems below `root`."""
    return {**os.environ, "LOADSTONE_SYSTEMS": str(root), "NO_COLOR": "1", "COLUMNS": "200", **variables}


def exact(name: str, settings: dict[str, str]) -> dict[str, str]:
    """Settings by their own names: a keyword has `_` where these have `-` or `.`."""
    names = [each.name for each in load_system(name).settings]
    known = {re.sub("[-.]", "_", each): each for each in names}
    # `conf.*` stands for many.
    begins = {re.sub("[-.]", "_", each[:-1]): each[:-1] for each in names if each.endswith("*")}
    found = {}
    for key, value in settings.items():
        begin = next((each for each in begins if key.startswith(each) and key not in known), None)
        found[known.get(key, key) if begin is None else begins[begin] + key.removeprefix(begin)] = value
    return found


def free_settings(name: str) -> dict[str, str]:
    """Free ports for every setting of a system that is a port."""
    names = [each.name for each in load_system(name).settings if each.name.lower().endswith("port")]
    first = free_port(offsets=range(SPAN * len(names)))
    return {each: str(first + SPAN * number) for number, each in enumerate(names)}


# How many ports a setting may stand for: some are the first of many.
SPAN = 40


def ports() -> range:
    """Ports for servers, below those that the kernel gives to connections, which come and go meanwhile.

    With `pytest -n` each worker has its own: what one finds free, the other may be about to take.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = 12_000 // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    # Some settings are the first of many.
    return range(20_000 + worker * share, 20_000 + (worker + 1) * share - SPAN)


def free_port(hosts: Sequence[str] = ("127.0.0.1",), offsets: Sequence[int] = (0,), after: int = 0) -> int:
    """A port that nothing has on any of these addresses, nor any of those that are `offsets` further on."""
    mine = ports()
    first = after + 1 if after else random.choice(mine[: len(mine) // 2])
    for port in range(first, mine.stop):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for host, offset in itertools.product(hosts, offsets):
                held.enter_context(socket.create_server((host, port + offset)))
            return port
    raise AssertionError("no port is free")
