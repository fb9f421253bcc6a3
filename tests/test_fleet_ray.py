"""A fleet on real Ray, on hosts that are Linux namespaces: equal counts, shifted clocks, lost hosts.

Needs root and Ray, and is skipped without them. Host 1 is the head and the lab, hosts 2 to 4 have the clients.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from lab_support import LOADSTONE, ROOT, environment, experiment, trials
from loadstone.results.folder import Folder, find
from loadstone.results.trial_result import TrialResult

SCRIPT = ROOT / "tests/namespace_hosts.sh"
WORKERS = (2, 3, 4)
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or util.find_spec("ray") is None or not all(map(shutil.which, ("ip", "unshare", "nsenter"))),
    reason="needs root, Ray, and the commands ip, unshare and nsenter",
)
EXPERIMENT = """
systems: {{scripted: {{store: redis, properties: {{redis.host: {host}, redis.timeout: "20000"}}}}}}
workload: {{file: {root}/workloads/workloada, properties: {{recordcount: 200, fieldcount: 2}}}}
clients: 6
rate: 150
measure: {{warmup: 0, duration: {seconds}s, settle: false}}
fleet: {fleet}
repeats: {repeats}
"""
FLEET = "{on: ray, address: '10.77.0.1:6379', engines: 3, hosts: {clients: {label: role=clients}}}"
# A small Redis for all hosts; it ends with its standard input.
SERVER = """
import sys
from scripted_relay import FakeRedis
server = FakeRedis()
server.address, server.port = "10.77.0.1", 6399
with server:
    print("up", flush=True)
    sys.stdin.read()
"""


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

    def boot(self, host: int) -> None:
        """Starts a host with Ray."""
        program = Path(sys.executable).parent / "ray"
        common = f"--node-ip-address=10.77.0.{host} --num-cpus=1 --object-store-memory=100000000 --disable-usage-stats"
        if host == 1:
            line = f"{program} start --head --port=6379 --include-dashboard=false {common} --labels=role=lab"
        else:
            # The head may need a while.
            line = f"until {program} start --address=10.77.0.1:6379 {common} --labels=role=clients; do sleep 1; done"
        self.hosts("boot", host, "bash", "-c", line)

    def start(self, *command: str, **more: str) -> subprocess.Popen[str]:
        """Starts a command on the lab's host."""
        line = [str(SCRIPT), "in", "1", "bash", "-c", 'cd "$0" && exec "$@"', str(self.home), *command]
        pipe = subprocess.PIPE
        variables = {**environment(self.home), **self.variables, **more}
        return subprocess.Popen(line, env=variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def run(self, file: Path, *arguments: str, **more: str) -> str:
        """Runs an experiment to its end; returns its messages."""
        process = self.start(*LOADSTONE, "run", str(file), "--no-report", *arguments, **more)
        _, stderr = process.communicate(timeout=170)
        assert process.returncode == 0, stderr
        return stderr

    def processes(self, host: int, name: str) -> list[int]:
        """The processes of a host by their names, as this host numbers them."""
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


def wait_for(condition: Callable[[], Any], seconds: float = 100) -> None:
    """Waits until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four hosts with Ray, and the scripted server."""
    home = tmp_path_factory.mktemp("fleet")
    prefix = f"lh{os.getpid() % 10_000}-"
    variables = {
        **os.environ,
        "HOSTS_PREFIX": prefix,
        "HOSTS_DIR": str(home / "hosts"),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "t" * 64,
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": str(ROOT / "tests"),
    }
    cluster = Cluster(home, variables)
    server = None
    try:
        cluster.hosts("up", 4)
        for host in (1, *WORKERS):
            cluster.boot(host)
        wait_for(
            lambda: all("Ray runtime started" in (home / f"hosts/{k}/boot.log").read_text() for k in (1, *WORKERS))
        )
        server = cluster.start(sys.executable, "-c", SERVER)
        assert server.stdout is not None
        assert server.stdout.readline() == "up\n"
        yield cluster
    finally:
        if server is not None:
            server.communicate(timeout=30)
        cluster.hosts("down")
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert prefix not in left


def results(cluster: Cluster, name: str) -> Folder:
    """The only result folder of an experiment."""
    (folder,) = [folder for folder in find(cluster.home / "results") if folder.name == name]
    return folder


def write(cluster: Cluster, name: str, fleet: str = FLEET, seconds: int = 3, repeats: int = 2) -> Path:
    """Writes an experiment on the scripted server."""
    text = EXPERIMENT.format(
        host="10.77.0.1, redis.port: '6399'", root=ROOT, fleet=fleet, seconds=seconds, repeats=repeats
    )
    return experiment(cluster.home, text, f"{name}.yaml")


def counts(trial: TrialResult) -> dict[str, Any]:
    """Everything that does not depend on time."""
    names = (
        "operations",
        "due",
        "errors",
        "load.operations",
        "segments",
        "segments.lost",
        "read.count",
        "update.count",
    )
    return {"statuses": trial.statuses, "end": trial.end, **{name: trial.value(name) for name in names}}


def test_three_hosts_equal_three_segments(cluster: Cluster) -> None:
    clocks = {"host2": {"offset_ns": 80_000_000}, "host3": {"drift": 200e-6}}
    cluster.run(write(cluster, "hosts"), LOADSTONE_FLEET_CLOCKS=json.dumps(clocks))
    cluster.run(write(cluster, "segments", "{engines: 3}"))
    pairs = zip(trials(results(cluster, "hosts")), trials(results(cluster, "segments")), strict=True)
    for trial, local in pairs:
        assert counts(trial) == counts(local)
        assert trial.facts["hosts"] == 3
        offset, bound = trial.value("host.host2.clock_offset"), trial.value("host.host2.clock_bound")
        assert offset is not None
        assert bound is not None
        assert abs(offset - 80e6) <= bound
        assert not any(note.name == "clock" for note in trial.notes), trial.notes
        assert sum(trial.value(f"host.host{host}.operations") or 0 for host in WORKERS) == 450


def test_lost_hosts_are_repeated(cluster: Cluster) -> None:
    file = write(cluster, "faults", seconds=12, repeats=4)
    lab = cluster.start(*LOADSTONE, "run", str(file), "--no-report")

    def await_load(number: int) -> None:
        """Waits until the engines of the n-th attempt run."""
        folder = cluster.home / "results/faults"
        wait_for(lambda: len(list(folder.glob("*/trials/*/run.2.spec.json"))) >= number)
        wait_for(lambda: cluster.processes(4, "loadstone-engin"))
        # The start follows the connection of every client by 2 s.
        time.sleep(3)

    # A pulled cable.
    await_load(1)
    cluster.hosts("cut", 2)
    time.sleep(6)
    cluster.hosts("uncut", 2)
    # A suspended host.
    await_load(3)
    cluster.hosts("pause", 3)
    time.sleep(6)
    cluster.hosts("resume", 3)
    # A killed actor.
    await_load(5)
    for pid in cluster.processes(4, "ray::Actor"):
        os.kill(pid, signal.SIGKILL)
    # A power failure.
    await_load(7)
    cluster.hosts("kill-host", 4)
    time.sleep(1)
    cluster.boot(4)
    _, stderr = lab.communicate(timeout=170)
    assert lab.returncode == 0, stderr
    rows = [json.loads(line) for line in (results(cluster, "faults").path / "values.jsonl").read_text().splitlines()]
    lost = [row for row in rows if row["end"] == "lost"]
    named = ["".join(note["message"] for note in row["notes"] if note["name"] == "lost-segment") for row in lost]
    for host in ("host2", "host3", "host4"):
        assert any(f"host {host} " in message for message in named), named
    assert [trial.end for trial in trials(results(cluster, "faults"))] == ["done"] * 4
    assert all(trial.value("operations") == 1800 for trial in trials(results(cluster, "faults")))


def test_nothing_is_left_running(cluster: Cluster) -> None:
    wait_for(lambda: not any(cluster.processes(host, "loadstone-engin") for host in WORKERS), 30)
    wait_for(lambda: not any(cluster.processes(host, "ray::Actor") for host in WORKERS), 30)
