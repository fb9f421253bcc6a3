"""Faults on tiny real servers are verified and lifted; if the lab was killed, the next command undoes them."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from loadstone.engine.events import ServerEvent
from loadstone.experiment.plan.required_servers import Attached
from loadstone.faults import attached
from loadstone.faults.fault import FaultError
from loadstone.faults.injector import Injector, choose_peer, choose_servers
from loadstone.faults.pause import Pause, states_of_threads
from loadstone.faults.power import Power
from loadstone.faults.site import StartedSite
from loadstone.faults.slow import Slow, throttle_parent
from loadstone.observe.device import list_mounts
from loadstone.observe.kernel_file import PROC
from loadstone.results.lines import draft_of
from loadstone.runner.attached_system import AttachedServers
from loadstone.systems.base import disks, state, undo
from loadstone.systems.base.running_system import RunningSystem, ServerState
from loadstone.systems.base.system import SystemsError
from tiny_support import PLANNED, Tiny, injector_of, is_lifted, run_fault, running_of, until
from tiny_support import tiny as tiny

MS = 1_000_000
DISK_BYTES = 32 << 20
# A lab in a separate process: pauses a server of the system in a root, prints a line, and waits.
LAB = """
import sys, time
sys.path[:] = {path!r}
from pathlib import Path
from tiny_support import PLANNED, injector_of, running_of
from dataclasses import replace
injector = injector_of(running_of(Path(sys.argv[1])), replace(PLANNED, kind="pause", lift_s=(60.0, 60.0)))
with injector:
    print("ready", flush=True)
    injector.begin(time.monotonic_ns(), time.time_ns())
    time.sleep(600)
"""


@pytest.fixture
def up(tiny: Tiny) -> Iterator[RunningSystem]:
    """Three running tiny servers."""
    running = running_of(tiny.root)
    running.up(3, {"port": str(tiny.port)})
    yield running
    running.down()
    assert tiny.is_clean()


@pytest.mark.parametrize("kind", ["kill", "stop", "restart", "pause"])
def test_fault_is_verified_and_lifted(up: RunningSystem, tiny: Tiny, kind: str) -> None:
    before = tiny.pids()
    record = run_fault(up, replace(PLANNED, kind=kind))
    assert record.unverified == {}
    assert record.is_verified
    instants = [record.ordered_ns, record.held_ns, record.lift_ordered_ns, record.lifted_ns, record.ready_ns]
    known = [instant for instant in instants if instant is not None]
    assert len(known) == 5
    # The start of a process is known to within 10 ms.
    assert all(after >= before - 10 * MS for before, after in pairwise(known)), known
    assert known[0] >= record.planned_at_ns
    states = tiny.states()
    assert {state for state, _ in states.values()} == {"up"}
    assert (tiny.pids()["tiny-2"] == before["tiny-2"]) == (kind == "pause")
    assert {name: pid for name, pid in tiny.pids().items() if name != "tiny-2"} == {
        name: pid for name, pid in before.items() if name != "tiny-2"
    }
    assert not (tiny.root / "tiny" / undo.FILE).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("kind", ["power", "full", "slow"])
def test_fault_of_a_host_is_verified(tiny: Tiny, kind: str) -> None:
    running = running_of(tiny.root)
    running.up(2, {"port": str(tiny.port), "manner": "busy"}, file_system_bytes=DISK_BYTES)
    data = running.place.data
    (data / "tiny-2/unsynced").write_bytes(b"x" * 100_000)
    synced = data / "tiny-2/synced"
    with synced.open("wb") as file:
        file.write(b"y" * 100_000)
        file.flush()
        os.fsync(file.fileno())
    (data / "tiny-1/unsynced").write_bytes(b"z" * 100_000)
    # The smallest quota, which the spinning server uses up on any host.
    record = run_fault(running, replace(PLANNED, kind=kind, cpu=0.01, lift_s=(2.0, 2.0)))
    assert record.unverified == {}
    assert record.held_ns is not None
    assert {state for _, state in running.status()} == {ServerState.UP}
    assert synced.read_bytes() == b"y" * 100_000
    lost = not (data / "tiny-2/unsynced").exists() or (data / "tiny-2/unsynced").stat().st_size == 0
    assert lost == (kind == "power")
    assert (data / "tiny-1/unsynced").stat().st_size == 100_000
    running.down()
    assert tiny.is_clean()
    assert not any(str(tiny.root) in mount.point for mount in list_mounts(PROC))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_throttled_disk_limits_only_its_server(tiny: Tiny) -> None:
    running = running_of(tiny.root)
    running.up(2, {"port": str(tiny.port), "manner": "writing"}, file_system_bytes=DISK_BYTES)
    planned = replace(PLANNED, kind="slow", cpu=0.0, disk_bytes=1 << 20, lift_s=(60.0, 60.0))
    parent = throttle_parent()
    assert parent is not None
    groups = {path.name for path in parent.glob("loadstone-tiny-*")}
    injector = injector_of(running, planned)
    with injector:
        injector.begin(time.monotonic_ns(), time.time_ns())
        until(lambda: injector.records[0].held_ns is not None or injector.records[0].unverified, "throttled")
        (group,) = (path for path in parent.glob("loadstone-tiny-*") if path.name not in groups)
        pids = {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
        assert pids == {tiny.pids()["tiny-2"]}
    record = injector.records[0]
    assert record.unverified == {}
    assert record.facts == {**record.facts, "mechanism": "disk throttle", "disk_bytes_per_s": 1 << 20}
    # The other server writes nothing, so it is never throttled.
    record = run_fault(running, replace(planned, servers=("tiny-1",), lift_s=(1.0, 1.0)))
    assert record.unverified == {
        "held": "loadstone-tiny-tiny-1 has not been throttled: the server reads and writes less than its limit"
    }
    fault = Slow(running, ["tiny-2"], planned)
    fault.prepare()
    fault.aim()
    fault.journal()
    fault.inject()
    # The lab is killed here.
    running.up(2, {"port": str(tiny.port), "manner": "writing"}, file_system_bytes=DISK_BYTES)
    assert {path.name for path in parent.glob("loadstone-tiny-*")} == groups
    running.down()
    assert tiny.is_clean()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_stopped_disk_is_mounted_again(tiny: Tiny, error: int) -> None:
    running = running_of(tiny.root)
    running.up(1, {"port": str(tiny.port)}, file_system_bytes=DISK_BYTES)
    directory = running.place.data / "tiny-1"
    if error == errno.EROFS:
        # ext4 itself remounts read-only after an error, which a shutdown under load may cause.
        subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
    else:
        disks.shut_down(directory)
    assert disks.is_shut_down(directory)
    running.kill()
    running.up(1, {"port": str(tiny.port)}, file_system_bytes=DISK_BYTES)
    assert not disks.is_shut_down(directory)
    running.down()
    assert tiny.is_clean()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_down_after_a_power_cut_removes_disks(tiny: Tiny) -> None:
    running = running_of(tiny.root)
    running.up(2, {"port": str(tiny.port)}, file_system_bytes=DISK_BYTES)
    cut = Power(running, ["tiny-2"], replace(PLANNED, kind="power"))
    cut.journal()
    cut.aim()
    # The lab is killed in between.
    disks.shut_down(running.place.data / "tiny-2")
    running.down()
    assert tiny.is_clean()
    assert not any(str(tiny.root) in mount.point for mount in list_mounts(PROC))


def test_twin_has_instants_and_touches_nothing(up: RunningSystem, tiny: Tiny) -> None:
    before = tiny.states()
    record = run_fault(up, replace(PLANNED, kind="none"), 0.5)
    assert (record.planned_at_ns, record.planned_lift_ns) == (200 * MS, 400 * MS)
    assert record.ordered_ns is None
    assert tiny.states() == before


def test_all_servers_are_paused_at_once(up: RunningSystem) -> None:
    record = run_fault(up, replace(PLANNED, kind="pause", servers=("all",)))
    assert record.servers == ("tiny-1", "tiny-2", "tiny-3")
    assert record.unverified == {}


def test_server_that_ignores_its_signal_was_not_stopped(tiny: Tiny) -> None:
    running = running_of(tiny.root)
    running.up(1, {"port": str(tiny.port), "manner": "stubborn"})
    record = run_fault(running, replace(PLANNED, kind="stop", servers=("tiny-1",)))
    assert not record.is_verified
    assert "was killed" in record.unverified["held"]
    assert record.lifted_ns is not None
    running.down()


def test_harm_to_another_server_is_reported(up: RunningSystem) -> None:
    injector = injector_of(up, replace(PLANNED, kind="pause", lift_s=(1.0, 1.0)))
    with injector:
        injector.begin(time.monotonic_ns(), time.time_ns())
        until(lambda: injector.records[0].held_ns is not None, "paused")
        up.pause("tiny-3")
        until(lambda: injector.records[0].lifted_ns is not None, "lifted")
    assert injector.records[0].unverified == {"bystanders": "tiny-3 was also affected"}
    up.resume()


def test_fault_after_the_end_did_not_happen(up: RunningSystem) -> None:
    record = run_fault(up, replace(PLANNED, at_s=(60.0, 60.0)), 0.1)
    assert not record.is_verified
    assert record.unverified == {"held": "the trial ended before the fault"}
    record = run_fault(up, replace(PLANNED, at_s=(0.4, 0.4)), 0.1)
    assert not record.is_verified
    assert not (up.place.root / undo.FILE).exists()


def test_failed_trial_lifts_the_fault(up: RunningSystem) -> None:
    injector = injector_of(up, replace(PLANNED, kind="pause", lift_s=(60.0, 60.0)))

    def fail() -> None:
        with injector:
            injector.begin(time.monotonic_ns(), time.time_ns())
            until(lambda: injector.records[0].held_ns is not None, "paused")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert {state for _, state in up.status()} == {ServerState.UP}


def test_fault_without_lift_ends_with_the_trial(up: RunningSystem) -> None:
    record = run_fault(up, replace(PLANNED, lift_s=None), 0.6)
    assert record.planned_lift_ns is None
    assert record.held_ns is not None
    assert record.lifted_ns is not None
    assert {state for _, state in up.status()} == {ServerState.UP}


@pytest.mark.parametrize("name", [undo.FILE, state.FILE])
def test_down_removes_drafts_of_a_killed_process(tiny: Tiny, name: str) -> None:
    running = running_of(tiny.root)
    running.up(3, {"port": str(tiny.port)})
    draft_of(tiny.root / "tiny" / name).write_text("{")
    running.down()
    assert tiny.is_clean()


@pytest.mark.parametrize("command", ["up", "down", "restart"])
def test_next_command_undoes_a_killed_lab(tiny: Tiny, command: str) -> None:
    running = running_of(tiny.root)
    running.up(3, {"port": str(tiny.port)})
    chooser = random.Random(command)
    for _ in range(2):
        lab = subprocess.Popen(
            [sys.executable, "-c", LAB.format(path=sys.path), str(tiny.root)],
            stdout=subprocess.PIPE,
            text=True,
        )
        with lab:
            assert lab.stdout is not None
            assert lab.stdout.readline() == "ready\n"
            time.sleep(chooser.uniform(0, 0.4))
            lab.send_signal(signal.SIGKILL)
        if command == "up":
            running.up(3, {"port": str(tiny.port)})
        elif command == "restart":
            running.restart()
        else:
            running.down()
            assert tiny.is_clean()
            running.up(3, {"port": str(tiny.port)})
        assert {state for _, state in running.status()} == {ServerState.UP}
        assert not (tiny.root / "tiny" / undo.FILE).exists()
        assert all(states_of_threads(process) & {"T"} == set() for process in running.running_processes())
    running.down()
    assert tiny.is_clean()


def test_undo_is_on_disk_before_the_fault(up: RunningSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[bool] = []
    inject = Pause.inject

    def check_journal(fault: Pause) -> None:
        recorded.append(undo.load_journal(up.place.root / undo.FILE) is not None)
        inject(fault)

    monkeypatch.setattr(Pause, "inject", check_journal)
    run_fault(up, replace(PLANNED, kind="pause"))
    assert recorded == [True]


def test_full_device_prevents_the_fault(up: RunningSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, _: undo.Undo) -> None:
        raise SystemsError(f"cannot write {path}: No space left on device", "make room")

    monkeypatch.setattr(undo, "write_journal", refuse)
    record = run_fault(up, replace(PLANNED, kind="pause"), 0.5)
    assert "No space left" in record.unverified["held"]
    assert record.ordered_ns is None
    assert {state for _, state in up.status()} == {ServerState.UP}


def test_unknown_server_is_refused_before_the_load(up: RunningSystem) -> None:
    with pytest.raises(FaultError, match='names "tiny-9", which does not exist') as raised:
        injector_of(up, replace(PLANNED, servers=("tiny-9",)))
    assert "tiny-" in raised.value.hint


def test_steps_on_files_are_repeatable(tmp_path: Path) -> None:
    ballast = tmp_path / "ballast"
    ballast.write_text("x")
    steps = (
        undo.Step("remove", str(ballast)),
        undo.Step("leave_group", str(tmp_path / "group"), text=str(tmp_path)),
        undo.Step("run", command=("true",)),
    )
    journal = tmp_path / undo.FILE
    messages: list[str] = []
    for _ in range(2):
        undo.write_journal(journal, undo.Undo("test", steps))
        assert undo.carry_out_all(journal, messages.append)
        assert not ballast.exists()
    assert not undo.carry_out_all(journal, messages.append)
    assert messages == ["undoing a fault: test"] * 2


def test_failed_step_does_not_prevent_the_next(tmp_path: Path) -> None:
    journal, ballast = tmp_path / undo.FILE, tmp_path / "ballast"
    ballast.touch()
    steps = (undo.Step("run", command=("false",)), undo.Step("remove", str(ballast)))
    undo.write_journal(journal, undo.Undo("test", steps))
    with pytest.raises(SystemsError, match="`false` failed"):
        undo.carry_out_all(journal, str)
    assert journal.exists()
    assert not ballast.exists()


def test_undo_does_not_wait_for_a_started_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "COMMAND_SECONDS", 5.0)
    started = tmp_path / "pid"
    undo.carry_out(undo.Step("run", command=("sh", "-c", f"sleep 600 & echo $! > {started}")))
    os.kill(int(started.read_text()), signal.SIGKILL)


def test_unresponsive_verification_shows_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached, "VERIFY_SECONDS", 0.5)
    commands = dict.fromkeys(("resume", "pause"), "true") | {"verify": f"test ! -e {tmp_path}/paused || sleep 600"}
    hosts = AttachedServers(Attached(("a", "b"), None, "", "", "", "", **commands), tmp_path / "log")
    site = attached.AttachedSite(hosts, tmp_path / undo.FILE)
    fault = site.action(replace(PLANNED, kind="pause"), ["a"])
    fault.prepare()
    assert fault.missing_effect() == "`verify` still succeeds on a"
    (tmp_path / "paused").touch()
    assert fault.missing_effect() is None


def test_reboot_undoes_volatile_steps(tmp_path: Path) -> None:
    lasting = undo.Step("remove", "/x", volatile=False)
    fault = undo.Undo("test", (undo.Step("resume", "a"), lasting))
    assert undo.pending_steps(fault) == fault.steps
    assert undo.pending_steps(replace(fault, boot="another")) == [lasting]


def test_report_of_a_survivor_is_recorded(up: RunningSystem) -> None:
    addresses = StartedSite(up).addresses()
    reports = [(-1, "tiny-2", "down"), (6, "tiny-2", "up"), (4, "tiny-1", "down"), (9, "tiny-2", "down")]
    for count, detected_ns in ((3, None), (4, 9 * 10**9)):
        zero_unix_ns = time.time_ns()
        injector = injector_of(up, replace(PLANNED, kind="pause"))
        events = [ServerEvent(zero_unix_ns + at * 10**9, addresses[name], event) for at, name, event in reports]
        with injector:
            injector.begin(time.monotonic_ns(), zero_unix_ns)
            until(partial(is_lifted, injector), "lifted")
            injector.note_summary(zero_unix_ns + 5, events[:count])
        assert injector.records[0].detected_ns == detected_ns
        assert injector.records[0].facts["clock_offset_ns"] == 5


def test_report_about_a_host_without_port_is_recorded(tmp_path: Path) -> None:
    paused = f"{tmp_path}/{{host}}"
    commands = {"pause": f"touch {paused}", "resume": f"rm {paused}", "verify": f"test ! -e {paused}"}
    hosts = AttachedServers(Attached(("10.0.0.1", "10.0.0.2"), None, "", "", "", "", **commands), tmp_path / "log")
    planned = replace(PLANNED, kind="pause", servers=("10.0.0.2",))
    injector = Injector(attached.AttachedSite(hosts, tmp_path / undo.FILE), [planned], 1, 1)
    injector.prepare()
    zero_unix_ns = time.time_ns()
    with injector:
        injector.begin(time.monotonic_ns(), zero_unix_ns)
        until(partial(is_lifted, injector), "lifted")
        events = [ServerEvent(zero_unix_ns + 9 * 10**9, f"10.0.0.{host}:9042", "down") for host in (1, 2)]
        injector.note_summary(zero_unix_ns, events[1:])
    (record,) = injector.records
    assert (record.detected_ns, record.unverified) == (9 * 10**9, {})


@pytest.mark.parametrize(
    ("reports", "unusable", "usable"),
    [
        ([(-2, "tiny-2", "unusable"), (-1, "tiny-2", "usable")], None, None),
        ([(7, "tiny-1", "unusable"), (8, "tiny-2", "usable")], None, None),
        ([(7, "tiny-2", "unusable")], 7, None),
        ([(7, "tiny-2", "unusable"), (8, "tiny-1", "usable"), (9, "tiny-2", "usable")], 7, 9),
        ([(7, "tiny-2", "unusable"), (9, "tiny-2", "usable"), (11, "tiny-2", "unusable")], 7, 9),
    ],
)
def test_usability_of_the_victim_is_recorded(
    up: RunningSystem, reports: list[tuple[int, str, str]], unusable: int | None, usable: int | None
) -> None:
    addresses = StartedSite(up).addresses()
    zero_unix_ns = time.time_ns()
    injector = injector_of(up, replace(PLANNED, kind="pause"))
    with injector:
        injector.begin(time.monotonic_ns(), zero_unix_ns)
        until(partial(is_lifted, injector), "lifted")
        events = [ServerEvent(zero_unix_ns + at * 10**9, addresses[name], event) for at, name, event in reports]
        injector.note_summary(zero_unix_ns, events)
    (record,) = injector.records
    instants = [None if at is None else at * 10**9 for at in (unusable, usable)]
    assert [record.unusable_ns, record.usable_ns] == instants


def test_servers_by_role_are_drawn_among_them(up: RunningSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    site = StartedSite(up)
    assert site.roles() == {"tiny": ["tiny-1", "tiny-2", "tiny-3"]}
    monkeypatch.setattr(site, "roles", lambda: {"replica": ["tiny-3", "tiny-1"]})
    planned = replace(PLANNED, kind="cut", servers=("any",), peer="any")
    draws = [(choose_servers(site, planned, 1, repeat)[0], repeat) for repeat in range(1, 7)]
    pairs = {(*victims, choose_peer(site, planned, victims, 1, repeat)) for victims, repeat in draws}
    assert len(pairs) == len({(a, b) for a, b in pairs if a != b}) >= 4
    with pytest.raises(FaultError, match=r'faults.peer names "tiny-2", which does not exist'):
        choose_peer(site, replace(planned, peer="tiny-2"), ["tiny-2"], 1, 1)
    victims = {tuple(choose_servers(site, replace(PLANNED, servers=("replica",)), 1, repeat)[0]) for repeat in (1, 2)}
    assert victims == {("tiny-1",), ("tiny-3",)}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_unmounting_waits_for_another_namespaces_process(tiny: Tiny) -> None:
    running = running_of(tiny.root)
    running.up(1, {"port": str(tiny.port)}, file_system_bytes=DISK_BYTES)
    directory = (running.place.data / "tiny-1").resolve()
    busy = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'cd "$0"; sleep 2; cd /; exec cat']
    with subprocess.Popen([*busy, str(directory)], stdin=subprocess.PIPE) as other:
        until(lambda: os.readlink(f"/proc/{other.pid}/cwd") == str(directory), "a process in the copy")
        running.down()
        assert other.poll() is None
        other.kill()
    assert tiny.is_clean()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_mount_namespace_does_not_keep_a_stopped_disk(tiny: Tiny) -> None:
    running = running_of(tiny.root)
    running.up(2, {"port": str(tiny.port)}, file_system_bytes=DISK_BYTES)
    # The process has a copy of the mount, which an unmount on the host does not remove.
    command = ["unshare", "--mount", "--propagation", "private", "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as other:
        device = (running.place.data / "tiny-2").stat().st_dev
        until(lambda: disks.find_copies(device), "a copy of the mount")
        record = run_fault(running, replace(PLANNED, kind="power"))
        assert record.unverified == {}
        assert not disks.is_shut_down(running.place.data / "tiny-2")
        running.down()
        assert other.poll() is None
        other.kill()
    assert tiny.is_clean()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_disk_of_an_unreachable_directory_is_removed(tiny: Tiny) -> None:
    tiny.root.chmod(0o700)
    running = running_of(tiny.root)
    running.up(1, {"port": str(tiny.port)}, file_system_bytes=DISK_BYTES)
    directory = (running.place.data / "tiny-1").resolve()
    # Other users cannot enter the root, so the directory is elsewhere.
    assert not directory.is_relative_to(tiny.root)
    assert disks.is_mounted(directory)
    running.down()
    assert not directory.exists()
    assert tiny.is_clean()
