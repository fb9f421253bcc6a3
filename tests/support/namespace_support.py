"""Hosts with real Ray, as Linux namespaces of this machine. Requires root, Ray, ip, unshare and nsenter."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from command_server import LOADSTONE
from lab_support import ROOT, environment

SCRIPT = ROOT / "tests/support/namespace_hosts.sh"
# A small Redis for all hosts; it exits at the end of its standard input.
SERVER = """
import sys
from scripted_redis import FakeRedis
from scripted_relay import Fault
server = FakeRedis(*(Fault("late", seconds=float(text)) for text in sys.argv[1:]))
server.address, server.port = "10.77.0.1", 6399
with server:
    print("up", flush=True)
    sys.stdin.read()
"""
# A process may have several clusters.
NUMBERS = count()


@dataclass(frozen=True)
class Cluster:
    """Hosts with Ray."""

    home: Path
    variables: dict[str, str]

    def hosts(self, *arguments: object) -> str:
        """Runs the script of the hosts."""
        line = [str(SCRIPT), *map(str, arguments)]
        done = subprocess.run(line, env=self.variables, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def boot(self, host: int, role: str = "clients") -> None:
        """Starts a host with Ray; host 1 is the lab's."""
        program = Path(sys.executable).parent / "ray"
        common = f"--node-ip-address=10.77.0.{host} --num-cpus=1 --object-store-memory=100000000 --disable-usage-stats"
        if host == 1:
            options = f"--head --port=6379 --include-dashboard=false {common} --labels=role=lab"
            # On a busy machine the host may not be up within Ray's limit.
            line = f"until {program} start {options}; do {program} stop --force; sleep 1; done"
        else:
            # The head may start slowly, and a failed start costs seconds of processor time.
            wait = "until (exec 3<> /dev/tcp/10.77.0.1/6379) 2> /dev/null; do sleep 0.5; done"
            options = f"--address=10.77.0.1:6379 {common} --labels=role={role}"
            line = f"{wait}; until {program} start {options}; do sleep 1; done"
        self.hosts("boot", host, "bash", "-c", line)

    def start(self, *command: str, **more: str) -> subprocess.Popen[str]:
        """Starts a command on the lab's host."""
        line = [str(SCRIPT), "in", "1", "bash", "-c", 'cd "$0" && exec "$@"', str(self.home), *command]
        pipe = subprocess.PIPE
        variables = {**environment(self.home), **self.variables, **more}
        return subprocess.Popen(line, env=variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run(self, file: Path, *arguments: str, timeout: float = 170, **more: str) -> str:
        """Runs an experiment; returns its messages."""
        process = self.start(*LOADSTONE, "run", str(file), "--no-report", *arguments, **more)
        _, stderr = process.communicate(timeout=timeout)
        assert process.returncode == 0, stderr
        return stderr

    def processes(self, host: int, name: str) -> list[int]:
        """The ids of a host's processes whose names start with `name`, as this machine numbers them."""
        space = os.readlink(f"/proc/{self.hosts('pid', host)}/ns/pid")
        return [pid for pid in pids() if name_of(pid).startswith(name) and space_of(pid) == space]


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def space_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def wait_for(condition: Callable[[], Any], seconds: float = 300) -> None:
    """Waits until a condition holds. While other tests ran, the start of four hosts, or of their agents, took over
    100 s."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.1)


@contextmanager
def boot_cluster(home: Path, clients: int, late_seconds: float | None = None, servers: int = 0) -> Iterator[Cluster]:
    """Host 1 with the lab and the scripted server, then hosts for clients, then hosts for the lab's servers.

    The scripted server answers `late_seconds` late.
    """
    prefix = f"lh{os.getpid() % 10_000}{chr(97 + next(NUMBERS) % 26)}-"
    variables = {
        **os.environ,
        "HOSTS_PREFIX": prefix,
        "HOSTS_DIR": str(home / "hosts"),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "t" * 64,
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": str(ROOT / "tests/support"),
        "LOADSTONE_SYSTEMS": str(home / "systems"),
    }
    cluster = Cluster(home, variables)
    server = None
    numbers = range(1, clients + servers + 2)
    try:
        cluster.hosts("up", clients + servers + 1)
        for number in numbers:
            cluster.boot(number, "clients" if number <= clients + 1 else "servers")
        logs = [home / f"hosts/{number}/boot.log" for number in numbers]
        wait_for(lambda: all("Ray runtime started" in log.read_text() for log in logs))
        late = [] if late_seconds is None else [str(late_seconds)]
        server = cluster.start(sys.executable, "-c", SERVER, *late)
        assert server.stdout is not None
        assert server.stdout.readline() == "up\n"
        yield cluster
    finally:
        if server is not None:
            server.communicate(timeout=30)
        cluster.hosts("down")
    rest = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert prefix not in rest
