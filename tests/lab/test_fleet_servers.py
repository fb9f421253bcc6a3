"""Servers on hosts of a fleet: placed, observed, broken and stopped by agents in this process, without Ray."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tiny_system
from experiment_support import message_of
from fleet_support import InProcess, ScriptedHost, Simulation, spec_of
from lab_support import ROOT, experiment, single_folder, trials
from loadstone.commands import run as run_command
from loadstone.engine import program
from loadstone.engine.trial import EngineError
from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.faults import PlannedFault
from loadstone.fleet.clock import HostClock, ShiftedClock
from loadstone.fleet.host_systems import HostSystems, instance_name
from loadstone.fleet.merge import Merger
from loadstone.fleet.placement import select_servers
from loadstone.fleet.remote import Remote
from loadstone.fleet.segments import split_spec
from loadstone.fleet.spread import SpreadSystem
from loadstone.fleet.spread_faults import SpreadSite
from loadstone.fleet.transport import Host
from loadstone.judge import judge
from loadstone.runner import run as runner
from loadstone.runner.server_pool import DIED
from loadstone.systems import registry
from loadstone.systems.base.running_system import RunningSystem, ServerState
from loadstone.systems.redis.client import RedisClient, RedisError
from systems_support import free_port, systems, temporary_root

ROLES = ("lab", "servers", "clients", "clients")
TEXT = f"""
systems:
  redis: {{start: {{system: redis, settings: {{port: PORT, appendonly: "yes"}}}}}}
workload: {{file: {ROOT}/workloads/workloada, properties: {{recordcount: 100, fieldcount: 1}}}}
clients: 4
rate: 100
measure: {{warmup: 0, duration: 1s, settle: false}}
fleet:
  on: ray
  per_host: 1
  hosts: {{clients: {{label: role=clients}}, servers: {{label: role=servers}}}}
repeats: 1
"""


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The state directory for the servers of all hosts, which must be empty at the end."""
    with temporary_root() as path:
        monkeypatch.setenv("LOADSTONE_SYSTEMS", str(path))
        yield path
        left = [file.parent.name for file in path.glob("*/state.json")]
        for name in left:
            systems(path, "down", name)
        assert left == []


@pytest.fixture
def fleet(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """Three hosts for servers, with different clocks, and the tiny system."""
    monkeypatch.setitem(registry.SYSTEMS, "tiny", "Tiny")
    monkeypatch.setitem(__import__("sys").modules, "loadstone.systems.tiny.system", tiny_system)
    transport = InProcess([HostClock(), ShiftedClock(500_000_000), HostClock()])
    hosts = Remote(transport, {"": range(3)}, silence_seconds=60, servers=range(3))
    yield hosts
    hosts.close()


def run_experiment(home: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> list[Any]:
    """Runs an experiment in this process, on agents instead of Ray; returns its trials."""
    file = experiment(home, text.replace("PORT", str(free_port())))
    monkeypatch.chdir(home)
    monkeypatch.setenv("LOADSTONE_SHARE_HOST", "1")
    monkeypatch.setattr(runner, "RayTransport", lambda address: InProcess([HostClock()] * len(ROLES), ROLES))
    assert run_command.main([str(file), "--no-report"]) == 0
    return trials(single_folder(home))


def test_placements_are_variants_of_one_experiment(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = run_experiment(tmp_path, monkeypatch, TEXT + "vary: {placement: [apart, beside]}\n")
    by_placement = {trial.config["placement"]: trial for trial in results}
    assert {name: trial.facts["host_names"] for name, trial in by_placement.items()} == {
        "apart": "host2, host3",
        "beside": "host1",
    }
    for placement, trial in by_placement.items():
        # Some operations have no answer if the machine stalls at the end.
        assert (trial.end, trial.value("due"), trial.value("errors")) == ("done", 100, 0), trial.notes
        assert (trial.facts["placement"], trial.facts["server_hosts"]) == (placement, "host1")
        assert (trial.facts["machines"], trial.facts["durability"]) == (1, "interval")
        assert trial.value("server.redis.memory_max") == trial.value("server.memory_max") > 0
        assert trial.value("host.host1.servers.cpu") is not None
        assert trial.value("host.host1.cpu.busy") is not None
        assert trial.value("server.redis.keys") >= 100
    assert by_placement["apart"].facts["machines_shared"] == "yes"
    assert "machines_shared" not in by_placement["beside"].facts
    judged = judge.judge_results(single_folder(tmp_path).load_results())
    messages = [finding.message for finding in judged.findings if finding.check == "sides-differ"]
    assert any("clients and servers compete for the same processors" in message for message in messages), messages
    assert not any("differ in" in message for message in messages), messages
    roles = {host["name"]: host["role"] for host in single_folder(tmp_path).load_results().environment["hosts"]}
    assert {name: roles[name] for name in ("host1", "host2", "host3")} == {
        "host1": "nodes",
        "host2": "clients",
        "host3": "clients",
    }


def test_fault_hits_a_server_on_its_host(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("duration: 1s", "duration: 4s, deadline: 100ms")
    text += "faults: [{do: kill, at: 600ms, lift: 400ms, recovered: {window: 50ms, hold: 0}}]\n"
    (trial,) = run_experiment(tmp_path, monkeypatch, text)
    (fault,) = trial.faults
    assert (fault.kind, fault.servers, fault.unverified) == ("kill", ("redis",), {})
    assert fault.planned_at_ns <= fault.ordered_ns <= fault.held_ns <= fault.lift_ordered_ns <= fault.ready_ns
    assert trial.value("errors") > 0
    assert not [note for note in trial.notes if note.name == DIED]


def plan_fault(kind: str) -> PlannedFault:
    return PlannedFault(kind, 0, ("any",), 1, (1.0, 1.0), None, 1.0, "", 0.9, 1.0, 1.0)


def states(running: SpreadSystem) -> dict[str, str]:
    return {server.name: state.value for server, state in running.status()}


def test_system_starts_a_node_on_each_host(fleet: Remote) -> None:
    running = SpreadSystem(fleet, "tiny")
    running.up(3, {"port": str(free_port())})
    servers = running.running_processes()
    assert [server.address.rpartition(":")[0] for server in servers] == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    assert [RunningSystem(f"tiny@host{k}").status()[0][0].name for k in range(3)] == ["tiny-1", "tiny-2", "tiny-3"]
    running.begin_observation()
    values = {value.metric: value for value in running.end_observation()}
    assert {f"server.tiny-{k}.memory_max" for k in (1, 2, 3)} <= values.keys()
    total = sum(values[f"server.tiny-{k}.memory_max"].value for k in (1, 2, 3))
    assert values["server.memory_max"].value == total
    running.down()
    assert running.status() == []


@pytest.mark.parametrize(("kind", "state"), [("kill", "dead"), ("pause", "paused"), ("stop", "dead")])
def test_fault_leaves_other_hosts_alone(fleet: Remote, kind: str, state: str) -> None:
    running = SpreadSystem(fleet, "tiny")
    running.up(3, {"port": str(free_port())})
    site = SpreadSite(running)
    before = site.identities()
    fault = site.action(plan_fault(kind), ["tiny-2"])
    for step in (fault.prepare, fault.journal, fault.aim, fault.inject):
        step()
    await_none(fault.missing_effect)
    assert states(running) == {"tiny-1": "up", "tiny-2": state, "tiny-3": "up"}
    assert (RunningSystem("tiny@host1").place.root / "undo.json").exists()
    fault.lift()
    await_none(fault.remaining_effect)
    assert set(states(running).values()) == {"up"}
    after = site.identities()
    assert {name for name in before if before[name] != after[name]} == ({"tiny-2"} if fault.ending else set())
    start_ns = site.find_start_ns("tiny-2")
    assert start_ns is not None
    running.down()


def await_none(check: Any) -> None:
    """Polls a check as the injector does."""
    for _ in range(5000):
        if check() is None:
            return
    raise AssertionError(check())


def test_ended_server_is_started_again(fleet: Remote) -> None:
    running = SpreadSystem(fleet, "tiny")
    settings = {"port": str(free_port())}
    running.up(3, settings)
    RunningSystem("tiny@host2").kill()
    assert states(running)["tiny-3"] == ServerState.DEAD
    first = {server.name: server.pid for server in running.running_processes()}
    running.up(3, settings)
    second = {server.name: server.pid for server in running.running_processes()}
    assert first.items() < second.items()
    running.down()


def test_new_agent_starts_its_server_again(fleet: Remote) -> None:
    running = SpreadSystem(fleet, "tiny")
    settings = {"port": str(free_port())}
    running.up(3, settings)
    first = {server.name: server.pid for server in running.running_processes()}
    assert isinstance(fleet.transport, InProcess)
    # The kernel releases the mark of an agent that has exited.
    fleet.transport.agents[1].systems._marks.pop("tiny").close()
    fleet.links[1].is_open = False
    assert states(running) == {"tiny-1": "up", "tiny-2": "dead", "tiny-3": "up"}
    running.up(3, settings)
    second = {server.name: server.pid for server in running.running_processes()}
    assert {name for name in first if first[name] != second[name]} == {"tiny-2"}
    running.down()


def test_servers_of_another_owner_are_refused(fleet: Remote) -> None:
    RunningSystem("tiny@host1").up(1, {"port": str(free_port())})
    with pytest.raises(LoadstoneError, match="host host1: tiny@host1 is up, and no experiment started it"):
        SpreadSystem(fleet, "tiny").up(3, {"port": str(free_port())})
    assert [RunningSystem(f"tiny@host{k}").status() for k in (0, 2)] == [[], []]
    RunningSystem("tiny@host1").down()


def test_redis_on_hosts_needs_a_password(fleet: Remote) -> None:
    running = SpreadSystem(fleet, "redis")
    settings = {"port": str(free_port(offsets=range(3))), "maxclients": "100"}
    running.up(1, settings)
    try:
        properties = running.store_properties()
        address = (properties["redis.host"], int(properties["redis.port"]))
        with RedisClient(*address) as client, pytest.raises(RedisError, match="NOAUTH"):
            client.send_command("PING")
        with RedisClient(*address, properties["redis.password"]) as client:
            assert client.send_command("PING") == "PONG"
            assert client.send_command("CONFIG", "GET", "protected-mode") == ["protected-mode", "yes"]
        running.up(1, settings)
        assert running.store_properties() == properties, "an ended server returns with its password"
    finally:
        running.down()


def test_failed_start_names_the_host(fleet: Remote) -> None:
    port = free_port()
    with (
        socket.create_server(("127.0.0.3", port + 2)),
        pytest.raises(LoadstoneError, match=r"host host2: port 127\.0\.0\.3:\d+, which tiny-3 needs, is in use"),
    ):
        SpreadSystem(fleet, "tiny").up(3, {"port": str(port)})


def test_call_of_a_silent_host_fails() -> None:
    simulation = Simulation([ScriptedHost(), ScriptedHost(silent_from=1010)])
    hosts = Remote(simulation, {"": range(2)}, simulation.clock, servers=range(2))
    hosts.connect([0, 1])
    simulation.now = 1010
    results = hosts.call({1: ("status", {"system": "tiny"})})
    assert isinstance(results[1], LoadstoneError)
    assert results[1].args[0] == "host host1: no agent is running there: silent for 30 s"
    assert not hosts.links[1].is_open


def test_instants_are_by_the_clock_of_the_lab() -> None:
    spec = spec_of("-p", "operationcount=301", "-target", "1000", "-threads", "2")
    hosts = Remote(InProcess([ShiftedClock(-500_000_000), HostClock()]), {"": range(2)}, silence_seconds=60)
    starts: list[int] = []
    with (
        hosts.launch(split_spec(spec, 2), lambda part, line: merger.hear(part, line)) as running,
        Merger([part.title for part in running.parts]) as merger,
    ):
        for _, event in running.events(started=starts.append):
            assert not isinstance(event, EngineError), event
            for _ in merger.take(event):
                pass
        (start_ns,) = starts
        bounds = [value.value for value in running.observations().values if value.metric.endswith("clock_bound")]
        assert abs(merger.result().summary.start_unix_ns - start_ns) <= max(bounds) + 1_000_000


def test_unknown_operation_is_refused() -> None:
    with pytest.raises(LoadstoneError, match="does not support the operation kill_all"):
        HostSystems("host0").perform("kill_all", {})


@pytest.mark.parametrize("host", ["node-1.example.org", "x" * 60, "_odd name"])
def test_instance_of_a_host_is_valid(host: str) -> None:
    assert RunningSystem(f"redis@{instance_name(host)}").name.startswith("redis@")
    assert instance_name(host) != instance_name(f"{host}x")


def test_too_few_hosts_for_the_nodes_are_refused() -> None:
    hosts = [Host(f"h{k}", str(k), "", {"role": "servers"}) for k in range(2)]
    assert select_servers(hosts, "role=servers", 2) == [0, 1]
    with pytest.raises(LoadstoneError, match="need 3 hosts, but the cluster has 2 with the label role=servers"):
        select_servers(hosts, "role=servers", 3)


START = TEXT.replace("PORT", "6379")
SERVER = 'redis: {start: {system: redis, settings: {port: 6379, appendonly: "yes"}}}'
POSTGRES = START.replace(SERVER, "postgres: {start: {system: postgres}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (START.replace(", servers: {label: role=servers}", ""), "no hosts are named for the servers of redis"),
        (START.replace("system: redis", "system: redis, keep: true"), "`keep` and servers on hosts"),
        (START.replace("port: 6379", 'port: 6379, tls: "yes"'), "certificates of servers on hosts"),
        (START + "faults: [{do: cut, at: 200ms}]", "the fault cut cannot be injected on hosts of a fleet"),
        (START.replace(SERVER, "hbase: {attach: {hosts: [10.0.0.1]}}"), "hbase needs jars on every host"),
        (POSTGRES, "postgres cannot run on hosts of a fleet; cassandra, redis can"),
    ],
)
def test_servers_on_hosts_refuse_with_a_reason(tmp_path: Path, text: str, message: str) -> None:
    assert message in message_of(experiment(tmp_path, text))


def test_profile_travels_in_the_spec() -> None:
    folder = ROOT / "tests/fixtures/cassandra-stress"
    line = [program.find_engine(), "cassandra-stress", "user", f"profile={folder}/simple.yaml", "ops(insert=1)", "n=10"]
    done = subprocess.run([*line, "-node", "127.0.0.1", "--print-spec"], check=True, capture_output=True, text=True)
    assert "CREATE TABLE t (id bigint PRIMARY KEY" in done.stdout
    assert str(folder) not in done.stdout, "other hosts have no such file"
