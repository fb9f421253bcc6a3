"""Many hosts: clocks, a simultaneous start, lost hosts and leases, with agents in this process or in simulated time."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from event_support import outcome, summary
from experiment_support import message_of
from fleet_support import InProcess, ScriptedHost, Simulation, spec_of, specs
from lab_support import experiment
from loadstone import __version__
from loadstone.commands.fleet import describe_hosts, render_row
from loadstone.engine import program
from loadstone.engine.events import Event, Interval, Result, Summary, parse_event
from loadstone.engine.trial import EngineError
from loadstone.errors import LoadstoneError
from loadstone.fleet.agent import Agent
from loadstone.fleet.clock import ClockWatch, HostClock, Reading, ShiftedClock
from loadstone.fleet.host_figures import add_disturbances, slowest_host
from loadstone.fleet.interface import Fleet, Observations
from loadstone.fleet.local import Local
from loadstone.fleet.merge import Merger
from loadstone.fleet.placement import select_hosts
from loadstone.fleet.remote import Remote
from loadstone.fleet.segments import split_spec
from loadstone.fleet.shipping import elf_mismatch, install_engine
from loadstone.fleet.transport import Host
from loadstone.observe.device import IN_MEMORY, file_system_of
from loadstone.results.value import Value

MS = 1_000_000
SECOND = 1_000_000_000


def reading(at_s: float, offset_ns: float, there_ns: float, back_ns: float) -> Reading:
    """A round trip to a host whose clock is ahead by `offset_ns`."""
    sent = round(at_s * SECOND)
    received = sent + round(there_ns + offset_ns)
    return Reading(sent, received, received + 5000, sent + round(there_ns + back_ns) + 5000)


def run(fleet: Fleet, segments: Sequence[dict[str, Any]]) -> tuple[Result, Observations]:
    """Launches segments, and follows them as the runner does."""
    with (
        fleet.launch(segments, lambda part, line: merger.hear(part, line)) as running,
        Merger([part.title for part in running.parts]) as merger,
    ):
        for part, event in running.events():
            if isinstance(event, EngineError):
                merger.lose(part, event)
            for _ in merger.take(event):
                pass
        return merger.result(), running.observations()


def remote(simulation: Simulation) -> Remote:
    return Remote(simulation, {"": range(len(simulation.hosts))}, simulation.clock)


# Clocks.


@pytest.mark.parametrize("seed", range(20))
def test_offset_lies_within_its_bound(seed: int) -> None:
    draw = random.Random(seed)
    offset = draw.uniform(-1e9, 1e9)
    watch = ClockWatch()
    for k in range(20):
        watch.add(reading(k * 0.1, offset, draw.expovariate(1 / MS), draw.expovariate(1 / (5 * MS))))
        estimate = watch.estimate(k * 0.1 * SECOND)
        assert abs(estimate.offset_ns - offset) <= estimate.bound_ns + 1
    assert watch.jumps == []


@pytest.mark.parametrize("ppm", [200, -200, 400])
def test_drift_is_measured_and_corrected(ppm: float) -> None:
    draw = random.Random(ppm)
    watch = ClockWatch()
    for k in range(600):
        at = k * 0.1
        delays = draw.uniform(0.1, 2) * MS, draw.uniform(0.1, 2) * MS
        watch.add(reading(at, 80 * MS + ppm * 1e-6 * at * SECOND, *delays))
    drift = watch.drift
    assert drift is not None
    assert abs(drift.offset_ns - ppm * 1e-6) <= drift.bound_ns < 50e-6
    ahead = watch.estimate(62 * SECOND)
    assert abs(ahead.offset_ns - (80 * MS + ppm * 1e-6 * 62 * SECOND)) <= ahead.bound_ns
    assert watch.jumps == []


@pytest.mark.parametrize("ppm", [0, 200])
@pytest.mark.parametrize("there_s", [0.5, 30])
def test_drift_ignores_a_slow_first_reading(ppm: float, there_s: float) -> None:
    """The first reply waits for the start of the agent, so the first clock reading is inaccurate."""
    watch = ClockWatch()
    watch.add(reading(0, 80 * MS, there_s * SECOND, MS))
    for k in range(200):
        at = there_s + k * 0.1
        watch.add(reading(at, 80 * MS + ppm * 1e-6 * at * SECOND, MS, MS))
        if watch.drift is not None:
            assert abs(watch.drift.offset_ns - ppm * 1e-6) <= watch.drift.bound_ns <= 500e-6
    assert watch.drift is not None
    assert watch.jumps == []


@pytest.mark.parametrize("jump_ms", [20, -20, 3_600_000])
def test_jump_of_a_clock_is_detected(jump_ms: float) -> None:
    watch = ClockWatch()
    for k in range(100):
        watch.add(reading(k * 0.1, jump_ms * MS * (k >= 50), MS, MS))
    (jump_ns,) = watch.jumps
    assert abs(jump_ns - jump_ms * MS) < 10 * MS
    assert abs(watch.estimate(10 * SECOND).offset_ns - jump_ms * MS) < 10 * MS


def test_slow_round_trip_is_no_jump() -> None:
    watch = ClockWatch()
    for k in range(100):
        watch.add(reading(k * 0.1, 0, 2000 * MS if k % 10 == 5 else MS, MS))
    assert watch.jumps == []
    assert watch.estimate(10 * SECOND).bound_ns < 2 * MS


def test_shifted_clock_converts_both_ways() -> None:
    clock = ShiftedClock(80 * MS, 200e-6, 5 * SECOND)
    assert clock.from_kernel_ns(15 * SECOND) == 15 * SECOND + 82 * MS
    assert clock.to_kernel_ns(clock.from_kernel_ns(15 * SECOND)) == 15 * SECOND


# The lab's deadlines, in simulated time.


def test_hosts_start_at_one_instant() -> None:
    offsets = (0.0, 0.08, -3600.0)
    scripts = [ScriptedHost(offset=offset, drift=drift) for offset, drift in zip(offsets, (0, 2e-4, 0), strict=True)]
    result, observed = run(remote(Simulation(scripts)), specs(6))
    starts = [script.started_at or 0 for script in scripts]
    assert max(starts) - min(starts) < 0.002
    assert (result.summary.operations, result.notes) == (18, ())
    values = {value.metric: value.value for value in observed.values}
    assert abs(values["host.host1.clock_offset"] - 80 * MS) < 2 * MS
    assert values["fleet.start_skew"] < 2 * MS
    assert observed.notes == []


def test_imprecise_clock_refuses_the_launch() -> None:
    scripts = [ScriptedHost(), ScriptedHost(there=0.15, back=0.15)]
    with pytest.raises(EngineError, match=r"host host1: its clock is known only to within ±15\d ms; .* is 100 ms"):
        run(remote(Simulation(scripts)), specs(2))
    assert run(remote(Simulation(scripts)), specs(2, interval_ms=2000))[0].summary.end == "done"


@pytest.mark.parametrize("engines", [1, 2])
def test_fault_needs_a_known_start(engines: int) -> None:
    """A single engine, too, waits for its start if the lab injects faults, because the lab's clock times the faults."""
    segments = [{**spec, "wait_for_start": True} for spec in specs(engines)]
    simulation = Simulation([ScriptedHost(opening=1)])
    starts: list[int] = []
    with remote(simulation).launch(segments, lambda *_: None) as running:
        assert [event for _, event in running.events(started=starts.append) if isinstance(event, Summary)]
    assert starts == [round((simulation.scripts[0].started_at or 0) * 1e9)]
    imprecise = remote(Simulation([ScriptedHost(there=0.15, back=0.15)]))
    with imprecise.launch(segments, lambda *_: None) as running, pytest.raises(EngineError, match="known only to"):
        list(running.events(started=starts.append))


def test_clock_jump_invalidates_the_trial() -> None:
    scripts = [ScriptedHost(), ScriptedHost(jumps={1003.5: 0.25})]
    result, observed = run(remote(Simulation(scripts)), specs(2))
    assert result.summary.end == "done"
    assert [note.name for note in observed.notes] == ["clock"]
    assert re.search(r"host host1: its clock jumped by 2[45]\d ms", observed.notes[0].message)


def test_silent_host_ends_the_load_everywhere() -> None:
    simulation = Simulation([ScriptedHost(), ScriptedHost(silent_from=1005), ScriptedHost()], seconds=60)
    result, observed = run(remote(simulation), specs(3))
    (note,) = result.notes
    assert note.name == "lost-segment"
    assert note.message.startswith("host host1: host host1 is lost: silent for 3.")
    assert result.summary.end == "stopped"
    assert simulation.now < 1010
    assert all((script.stopped_at or 0) < 1009 for script in simulation.scripts if script.silent_from > 1e9)
    assert observed.lost == 0


def test_host_that_ignores_the_stop_is_lost() -> None:
    scripts = [ScriptedHost(), ScriptedHost(silent_from=1005), ScriptedHost(ignores_stop=True)]
    simulation = Simulation(scripts, seconds=60)
    result, _ = run(remote(simulation), specs(3, lease_ms=2000))
    assert [note.message.partition(" is lost: ")[2][:12] for note in result.notes] == ["silent for 3", "did not stop"]
    # The limits add up: 3 s of silence, the lease of 2 s, and 1 s; another second is slack.
    assert simulation.now < 1005 + 3 + 2 + 1 + 1


def test_host_silent_before_the_start_raises() -> None:
    simulation = Simulation([ScriptedHost(), ScriptedHost(silent_from=1000.5, opening=10)])
    with pytest.raises(EngineError, match="host host1 is lost: silent") as caught:
        run(remote(simulation), specs(2))
    assert caught.value.status < 0
    assert simulation.scripts[0].stopped_at is not None, "its engines were ended"


def test_hosts_are_checked_concurrently() -> None:
    scripts = [ScriptedHost(there=0.5, back=0.5) for _ in range(10)]
    scripts[3].silent_from = 0
    simulation = Simulation(scripts)
    fleet = Remote(simulation, {"": range(10)}, simulation.clock, connect_seconds=20)
    problems = {row["host"]: row["problems"] for row in describe_hosts(fleet, is_checked=True)}
    assert problems.pop("host3") == ["host host3: no agent is running there: no reply within 20 s"]
    assert {*map(str, problems.values())} == {"['its clock is known only to within ±500 ms']"}
    # 20 s of silence, then the installation, `doctor` and the round trips of all hosts at once. One host after another
    # would take 100 s more.
    assert simulation.now < 1000 + 20 + 12


def test_status_prints_versions_and_limits() -> None:
    fleet = Remote(InProcess([HostClock(), HostClock()]), {"": range(2)})
    for row in describe_hosts(fleet, is_checked=False):
        row["limits"] = {"nofile": 20_000, "nproc": "unlimited", "memlock": 1}
        text = render_row(row)
        assert f"Loadstone {__version__}" in text
        assert "20,000 open files  unlimited processes" in text
        assert row["problems"] == []


def test_engine_failure_before_the_start_raises() -> None:
    simulation = Simulation([ScriptedHost(), ScriptedHost(failure="no memory")])
    with pytest.raises(EngineError, match="host host1: no memory"):
        run(remote(simulation), specs(2))


def test_lost_host_is_connected_again() -> None:
    scripts = [ScriptedHost(), ScriptedHost(silent_from=1005)]
    fleet = remote(simulation := Simulation(scripts, seconds=20))
    assert run(fleet, specs(2))[0].notes
    scripts[1].silent_from = float("inf")
    result, observed = run(fleet, specs(2))
    assert (result.summary.end, result.notes, observed.notes) == ("done", (), [])
    scripts[1].silent_from = simulation.now
    scripts[1].messages.clear()
    with pytest.raises(EngineError, match=r"host host1 is lost|no agent is running there: no reply within"):
        run(fleet, specs(2))


@pytest.mark.parametrize("lost", [0, 3])
def test_hundred_hosts_start_together(lost: int) -> None:
    draw = random.Random(lost)
    scripts = [
        ScriptedHost(
            there=draw.uniform(0.0002, 0.02),
            back=draw.uniform(0.0002, 0.02),
            offset=draw.uniform(-1, 1),
            drift=draw.uniform(-1e-4, 1e-4),
        )
        for _ in range(100)
    ]
    for script in scripts[:lost]:
        script.silent_from = 1015
    simulation = Simulation(scripts, seconds=5 if not lost else 60)
    result, _ = run(remote(simulation), specs(1000))
    starts = [script.started_at or 0 for script in scripts]
    assert max(starts) - min(starts) < 0.1
    assert len(result.notes) == lost
    if not lost:
        assert result.summary.operations == 5 * 1000
    else:
        stopped = [script.stopped_at or 0 for script in scripts[lost:]]
        assert max(stopped) < 1015 + 3 + 1


# Agents of this process, with real engines.


PACED = ("-p", "operationcount=3001", "-target", "1500", "-threads", "6")


def test_engine_share_is_of_the_busiest_machine() -> None:
    """Hosts on one kernel share its processors."""
    fleet = remote(Simulation([ScriptedHost() for _ in range(3)]))
    with fleet.launch(specs(3), lambda *_: None) as running:
        events = list(running.events())
        for link, boot, processors in zip(fleet.links, "aab", (4, 4, 8), strict=True):
            link.facts = {"hosts": [{"cpu": {"processors": processors}}], "boot_sha256": boot}
        used = [sum(event.cpu_ns) / event.measured_ns for _, event in events if isinstance(event, Summary)]
        values = {value.metric: value.value for value in running.observations().values}
    assert values["cpu.engine_share"] == pytest.approx(2 * used[0] / 4)
    assert used[0] > 0


def test_hosts_count_what_segments_do() -> None:
    spec = spec_of(*PACED)
    local, _ = run(Local(), split_spec(spec, 3))
    clocks = [HostClock(), ShiftedClock(500 * MS), ShiftedClock(0, 200e-6, time.time_ns())]
    transport = InProcess(clocks)
    # A busy machine may delay an agent for seconds; the time limits are tested in simulated time.
    hosts, observed = run(Remote(transport, {"": range(3)}, silence_seconds=60), split_spec(spec, 3))
    assert counts(hosts.summary) == counts(local.summary)
    assert [note for note in observed.notes if note.name == "clock"] == []
    values = {value.metric: value.value for value in observed.values}
    assert abs(values["host.host1.clock_offset"] - 500 * MS) <= values["host.host1.clock_bound"]
    assert sum(values[f"host.host{number}.operations"] for number in range(3)) == 3001
    if file_system_of(Path(tempfile.gettempdir())) not in IN_MEMORY:
        assert all(f"host.host{number}.device.written" in values for number in range(3))
    assert observed.facts["hosts"] == 3


def test_killed_engine_is_a_lost_segment() -> None:
    spec = spec_of("-p", "operationcount=4001", "-target", "1000", "-threads", "4")
    transport = InProcess([HostClock(), HostClock()])
    fleet = Remote(transport, {"": range(2)}, silence_seconds=60)
    is_killed = False
    with (
        fleet.launch(split_spec(spec, 4), lambda part, line: merger.hear(part, line)) as running,
        Merger([part.title for part in running.parts]) as merger,
    ):
        for _, event in running.events():
            launch = transport.agents[1]._launch
            if isinstance(event, Interval) and not is_killed and launch is not None:
                os.kill(launch._trials[0].pid, signal.SIGKILL)
                is_killed = True
            assert not isinstance(event, EngineError), "the other engine of the host continues"
            for _ in merger.take(event):
                pass
        end = merger.result().summary
        observed = running.observations()
    assert observed.lost == 1
    (note,) = [note for note in observed.notes if note.name == "lost-segment"]
    assert note.message == "host host1, segment 2/4: the load generator was killed by SIGKILL"
    assert end.operations == 3001


def counts(end: Summary) -> dict[str, Any]:
    """The parts of a summary that do not depend on time."""
    outcomes = {(part.operation, part.status): part.count for part in end.outcomes}
    return {"outcomes": outcomes, "operations": end.operations, "due": end.due, "end": end.end}


def test_agent_revokes_leases_of_a_silent_lab() -> None:
    clock = LeapingClock()
    agent = Agent(clock)
    spec = {**spec_of("-p", "operationcount=1000000", "-target", "10", "-threads", "2"), "lease_ms": 60_000}
    agent.exchange({"commands": [{"launch": 1, "specs": split_spec(spec, 1)}]})
    messages: list[dict[str, Any]] = []
    collect(agent, messages, "line")
    clock.leap = 61.0
    end = collect(agent, messages, "starts", poll=False)
    (last,) = [event for event in end if isinstance(event, Summary)]
    assert (last.end, last.reason) == ("lease", "stdin closed")


class LeapingClock(HostClock):
    """A clock whose seconds can leap ahead."""

    leap = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.leap


def collect(agent: Agent, messages: list[dict[str, Any]], key: str, *, poll: bool = True) -> list[Event]:
    """Waits for a message with a key, and returns all events. Without `poll`, the agent hears nothing from the lab."""
    deadline = time.monotonic() + 60
    while not any(key in message for message in messages):
        assert time.monotonic() < deadline, messages
        if poll:
            messages += agent.exchange({"poll": True, "wait_seconds": 1.0})["messages"]
        else:
            messages += agent._collect(1.0)
    return [parse_event(message["line"]) for message in messages if "line" in message]


def test_damaged_engine_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADSTONE_CACHE", str(tmp_path))
    assert install_engine(b"#!/bin/sh\n", "0" * 64) == "the load generator was damaged in transit"
    assert [*tmp_path.iterdir()] == []


def test_engine_for_another_processor_is_refused() -> None:
    header = b"\x7fELF" + bytes(14) + (183).to_bytes(2, "little")
    assert elf_mismatch(header, "x86_64") == "the load generator is built for aarch64, but this host is x86_64"
    assert elf_mismatch(header, "aarch64") == ""


def test_engine_of_another_libc_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    monkeypatch.setenv("LOADSTONE_CACHE", str(tmp_path))
    monkeypatch.delenv(program.VARIABLE, raising=False)
    script = b"#!/bin/sh\necho \"version 'GLIBC_2.99' not found\" >&2\nexit 1\n"
    message = install_engine(script, hashlib.sha256(script).hexdigest())
    assert message == "the load generator does not run on this host: version 'GLIBC_2.99' not found"


# Hosts by placement and label, and their figures.

CLUSTER = [
    Host("head", "0", "", {"role": "lab"}, is_head=True),
    *(Host(f"c{k}", f"{k}", "", {"role": "clients"}) for k in (1, 2)),
    Host("s1", "3", "", {"role": "servers", "disk": "nvme"}),
]


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (("apart",), [1, 2, 3]),
        (("apart", None, "role=servers"), [1, 2]),
        (("apart", "role=clients", "role=servers"), [1, 2]),
        (("beside", "role=clients", "role=servers"), [3]),
        (("disk=nvme",), [3]),
        (("role=lab",), [0]),
    ],
)
def test_placement_selects_hosts_by_label(arguments: tuple[Any, ...], places: list[int]) -> None:
    assert select_hosts(CLUSTER, *arguments) == places


def test_placement_without_hosts_names_the_labels() -> None:
    with pytest.raises(LoadstoneError, match=r"no host with the label role=client\n.*disk=nvme, role=clients"):
        select_hosts(CLUSTER, "apart", "role=client")
    assert select_hosts(CLUSTER[:1], "apart") == [0], "a head alone"


def test_slowest_host_is_named() -> None:
    def end(ms: int) -> Summary:
        event = parse_event(json.dumps(summary([outcome("READ", "OK", [ms * MS] * 99, [ms * MS] * 99)], due=99)))
        assert isinstance(event, Summary)
        return event

    clients = dict.fromkeys("abc", 1)
    note = slowest_host({"a": end(2), "b": end(9), "c": end(2)}, clients)
    assert note is not None
    assert note.message == "host b is the slowest: p99 9.00 ms, median of hosts 2.00 ms"
    assert slowest_host({"a": end(2), "b": end(2), "c": end(2)}, clients) is None


def test_host_with_fewer_clients_is_not_slow() -> None:
    def end(completed: int) -> Summary:
        event = parse_event(json.dumps(summary([], completed=completed)))
        assert isinstance(event, Summary)
        return event

    ends = {"a": end(300), "b": end(300), "c": end(100)}
    assert slowest_host(ends, {"a": 3, "b": 3, "c": 1}) is None
    note = slowest_host(ends, {"a": 3, "b": 3, "c": 3})
    assert note is not None
    assert note.message == "host c is the slowest: 3.33 op/s for each client, median of hosts 10 op/s"


@pytest.mark.parametrize(("of_host", "worst"), [(0.3, 0.3), (0.05, 0.1)])
def test_interference_on_servers_hosts_counts(of_host: float, worst: float) -> None:
    measured = [Value("cpu.others", 0.7, "share", 5), Value("cpu.others", 0.1, "share", 5)]
    of_hosts = [Value("host.s1.cpu.others", of_host, "share", 4), Value("host.s1.cpu.busy", 0.9, "share", 4)]
    assert [value.value for value in add_disturbances(measured, of_hosts)] == [worst]
    assert list(add_disturbances(measured, [])) == []


HEAD = """
systems: {nothing: {store: "null"}}
workload: {file: %s/workloads/workloada, properties: {recordcount: 1000}}
clients: 6
measure: {warmup: 0, duration: 1s}
"""
RAY = "fleet: {on: ray, engines: 3}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "fleet: {per_host: 1}", "fleet.per_host has no meaning on this machine"),
        (HEAD + "fleet: {on: spark}", 'fleet.on must be local or ray, got "spark"'),
        (HEAD + "fleet: {on: ray, engines: 2, per_host: 1}", "fleet.engines and fleet.per_host cannot be combined"),
        (HEAD + "fleet: {on: ray, placement: near}", 'fleet.placement must be a placement, got "near"'),
        (HEAD + "fleet: {on: ray, placement: beside}", "placement `beside` needs the label of the servers' hosts"),
        (HEAD + RAY + "vary: {placement: [apart, near]}", 'placement cannot be "near"'),
        (HEAD.replace('"null"', "lmdb") + RAY, "lmdb has no server that several hosts could reach"),
        (HEAD.replace("duration: 1s", "operations: 100") + RAY, "the slowest host determines the end"),
        (HEAD.replace("duration: 1s", "duration: 1s, ledger: true") + RAY, "ledgers on several hosts"),
        ("systems: [file]\nworkload: {sort: {rows: 1000}}\n" + RAY, "sort runs only on this machine"),
        (
            "systems: [file]\nworkload: {dfsio: {operation: write, files: 3, file_size: 1MB}}\n" + RAY,
            "file has no server that several hosts could reach",
        ),
        (
            "systems: [file]\nworkload: {sort: {rows: 1000}}\n" + RAY,
            "leave `fleet.on` out; other hosts can run cassandra-stress, command, dfsio, fio, statements, ycsb",
        ),
    ],
)
def test_invalid_fleet_of_hosts_is_refused(tmp_path: Path, text: str, message: str) -> None:
    text = message_of(experiment(tmp_path, text))
    assert message in text
    assert "hint: " in text
