"""A fleet on real Ray, with Linux namespaces as hosts: equal counts, shifted clocks, lost hosts.

Requires root and Ray, and is skipped without them. Host 1 is the head and the lab; hosts 2 to 4 have the clients.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from command_server import LOADSTONE
from lab_support import ROOT, experiment, loadstone, trials
from loadstone.results.folder import Folder, find_folders
from loadstone.results.trial_result import TrialResult
from namespace_support import Cluster, boot_cluster, wait_for

WORKERS = (2, 3, 4)
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or util.find_spec("ray") is None or not all(map(shutil.which, ("ip", "unshare", "nsenter"))),
    reason="needs root, Ray, and the commands ip, unshare and nsenter",
)
EXPERIMENT = """
systems: {{scripted: {{store: redis, properties: {{redis.host: {host}, redis.timeout: "20000",
  redis.password: "${{FLEET_PASSWORD}}"}}}}}}
workload: {{file: {root}/workloads/workloada, properties: {{recordcount: 200, fieldcount: 2}}}}
clients: {clients}
rate: {rate}
measure: {{warmup: 0, duration: {seconds}s, settle: false}}
fleet: {fleet}
repeats: {repeats}
"""
FLEET = "{on: ray, address: '10.77.0.1:6379', engines: 3, hosts: {clients: {label: role=clients}}}"
# Set by `make soak`: the number of kills, and whether to run the long tests.
KILLS = int(os.environ.get("LOADSTONE_FLEET_KILLS", "0"))
soak = pytest.mark.skipif(KILLS == 0, reason="LOADSTONE_FLEET_KILLS is not set")
PASSWORD = "fl33t-s3cret"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The lab's host and three hosts for clients, with Ray and the scripted server."""
    with boot_cluster(tmp_path_factory.mktemp("fleet"), len(WORKERS)) as hosts:
        hosts.variables["FLEET_PASSWORD"] = PASSWORD
        yield hosts


def results(cluster: Cluster, name: str) -> Folder:
    """The only result folder of an experiment."""
    (folder,) = [folder for folder in find_folders(cluster.home / "results") if folder.name == name]
    return folder


def write(cluster: Cluster, name: str, fleet: str = FLEET, **fields: object) -> Path:
    """Writes an experiment on the scripted server."""
    defaults = {"clients": 6, "rate": 150, "seconds": 3, "repeats": 2}
    text = EXPERIMENT.format(host="10.77.0.1, redis.port: '6399'", root=ROOT, fleet=fleet, **{**defaults, **fields})
    return experiment(cluster.home, text, f"{name}.yaml")


def counts(trial: TrialResult) -> dict[str, Any]:
    """The data that do not depend on time."""
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
    loadstone(cluster.home, "report", results(cluster, "hosts").path)
    page = (results(cluster, "hosts").path / "report.md").read_text()
    assert all(f"| host{host} | clients | " in page for host in WORKERS), page


def test_passwords_are_in_no_file(cluster: Cluster) -> None:
    files = [path for path in cluster.home.rglob("*") if path.is_file()]
    assert any(path.match("hosts/2/tmp/**/*") for path in files), "Ray's logs on a host are missing"
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


def test_lost_hosts_are_repeated(cluster: Cluster) -> None:
    file = write(cluster, "faults", seconds=8, repeats=4)
    lab = cluster.start(*LOADSTONE, "run", str(file), "--no-report")

    def await_load(number: int) -> None:
        """Waits until the engines of the n-th attempt run."""
        folder = cluster.home / "results/faults"
        wait_for(lambda: len(list(folder.glob("*/trials/*/run.2.spec.json"))) >= number)
        wait_for(lambda: cluster.processes(4, "loadstone-engin"))
        # The load starts 2 s after the last client has connected.
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
    assert all(trial.value("due") == 1200 for trial in trials(results(cluster, "faults")))


def test_slow_host_is_named(cluster: Cluster) -> None:
    file = write(cluster, "slow", seconds=6, repeats=1)
    lab = cluster.start(*LOADSTONE, "run", str(file), "--no-report")
    while lab.poll() is None:
        # Two thirds of the processor time of a host are stolen.
        for sent, seconds in ((signal.SIGSTOP, 0.2), (signal.SIGCONT, 0.1)):
            for pid in cluster.processes(4, "loadstone-engin"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sent)
            time.sleep(seconds)
    _, stderr = lab.communicate(timeout=10)
    assert lab.returncode == 0, stderr
    (trial,) = trials(results(cluster, "slow"))
    assert (trial.end, trial.value("due"), trial.value("operations")) == ("done", 900, 900)
    (note,) = [note for note in trial.notes if note.name == "slowest-host"]
    assert note.message.startswith("host host4 is the slowest: p99 ")
    late = [trial.value(f"host.host{host}.late.generator") or 0 for host in WORKERS]
    assert late[2] > late[0] + late[1], late


@soak
def test_random_kills_keep_results_intact(cluster: Cluster) -> None:
    draw = random.Random(KILLS)
    file = write(cluster, "kills", seconds=6, repeats=max(KILLS // 2, 2))
    done = 0
    lab = cluster.start(*LOADSTONE, "run", str(file), "--no-report")
    for _ in range(KILLS):
        wait_for(lambda: lab.poll() is not None or all(engines_of(cluster)))
        if lab.poll() is not None:
            break
        time.sleep(draw.uniform(0, 5))
        host = draw.choice(WORKERS)
        victims = draw.choice(
            [
                cluster.processes(host, "ray::Actor"),
                cluster.processes(host, "loadstone-engin"),
                [pid for pid in cluster.processes(1, "python") if b"loadstone.fleet.ray" in command_of(pid)],
            ]
        )
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        done += bool(victims)
    _, stderr = lab.communicate(timeout=1000)
    while lab.returncode:
        lab = cluster.start(*LOADSTONE, "run", str(file), "--no-report", "--resume", "--retry-failed")
        _, stderr = lab.communicate(timeout=1000)
        assert "error:" not in stderr or lab.returncode, stderr
    rows = [json.loads(line) for line in (results(cluster, "kills").path / "values.jsonl").read_text().splitlines()]
    attempts = [(row["trial"], row.get("attempt", 1)) for row in rows]
    assert len(attempts) == len(set(attempts)), "no attempt counts twice"
    finished = [row["trial"] for row in rows if row["end"] == "done"]
    assert len(finished) == len(set(finished)) == max(KILLS // 2, 2)
    assert done


def engines_of(cluster: Cluster) -> list[list[int]]:
    """The engines of each host."""
    return [cluster.processes(host, "loadstone-engin") for host in WORKERS]


def command_of(pid: int) -> bytes:
    """The command line of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_nothing_is_left_running(cluster: Cluster) -> None:
    wait_for(lambda: not any(cluster.processes(host, "loadstone-engin") for host in WORKERS), 30)
    wait_for(lambda: not any(cluster.processes(host, "ray::Actor") for host in WORKERS), 30)


@soak
def test_lab_survives_the_loss_of_the_head(tmp_path: Path) -> None:
    with boot_cluster(tmp_path, clients=2) as hosts:
        hosts.variables["FLEET_PASSWORD"] = PASSWORD
        file = write(hosts, "head", FLEET.replace("engines: 3", "engines: 2"), seconds=8, repeats=40)
        lab = hosts.start(*LOADSTONE, "run", str(file), "--no-report")
        values = hosts.home / "results/head"
        wait_for(lambda: any('"done"' in path.read_text() for path in values.glob("*/values.jsonl")))
        for pid in hosts.processes(1, "gcs_server"):
            os.kill(pid, signal.SIGKILL)
        # Ray terminates its driver after 60 s.
        _, stderr = lab.communicate(timeout=400)
        assert lab.returncode == 1, stderr
        assert "Traceback" not in stderr
        assert "cannot connect to the Ray cluster" in stderr
        rows = [json.loads(line) for path in values.glob("*/values.jsonl") for line in path.read_text().splitlines()]
        assert rows[0]["end"] == "done"
        wait_for(lambda: not any(hosts.processes(host, "loadstone-engin") for host in (2, 3)), 30)


@soak
def test_ten_hosts_carry_ten_thousand_clients(tmp_path: Path) -> None:
    with boot_cluster(tmp_path, clients=10) as hosts:
        hosts.variables["FLEET_PASSWORD"] = PASSWORD
        fleet = FLEET.replace("engines: 3", "engines: 10")
        file = write(hosts, "ten", fleet, clients=10_000, rate=1_000, seconds=10, repeats=2)
        hosts.run(file, timeout=600)
        for trial in trials(results(hosts, "ten")):
            assert (trial.end, trial.value("due"), trial.value("errors")) == ("done", 10_000, 0), trial.notes
            assert trial.facts["hosts"] == 10
            shares = [trial.value(f"host.host{host}.operations") for host in range(2, 12)]
            assert shares == [1_000] * 10


@soak
def test_cassandra_runs_on_three_hosts(tmp_path: Path) -> None:
    with boot_cluster(tmp_path, clients=2, servers=3) as hosts:
        heap = "systems.cassandra.start.settings={heap: 384M}"
        common = ("--set", "fleet.address=10.77.0.1:6379", "--set", heap, "--set", "repeats=2")
        file = ROOT / "experiments/cassandra-scale.yaml"
        hosts.run(file, "--scale", "placement", *common, "--set", "vary.matrix.clients=[100]", timeout=1500)
        for trial in trials(results(hosts, "cassandra-scale")):
            assert (trial.end, trial.value("errors")) == ("done", 0), trial.notes
            names = {"apart": "host2, host3", "beside": "host4, host5, host6"}
            assert trial.facts["host_names"] == names[str(trial.config["placement"])]
            assert trial.facts["server_hosts"] == names["beside"]
            assert (trial.facts["machines"], trial.value("server.ring.nodes_up")) == (1, 3)
        file = ROOT / "experiments/cassandra-hydra-ha.yaml"
        hosts.run(file, "--scale", "on-nodes", *common, timeout=1500)
        kills = [trial for trial in trials(results(hosts, "cassandra-hydra-ha")) if trial.config["fault"] == "kill"]
        assert [trial.faults[0].unverified for trial in kills] == [{}, {}]
        wait_for(lambda: not any(hosts.processes(host, "java") for host in (4, 5, 6)), 60)
