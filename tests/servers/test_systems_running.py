"""Starting, finding and stopping servers of any system: tested with tiny real servers, through the command line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadstone.commands.systems import VERBS, choose_port
from loadstone.systems import registry
from loadstone.systems.base import process
from loadstone.systems.base.running_system import RunningSystem
from systems_support import free_port, systems, temporary_root
from tiny_support import LINE, TINY, Tiny, tiny, until

__all__ = ["tiny"]


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that no command may touch."""
    with subprocess.Popen(["sleep", "600"]) as sleeping:
        yield sleeping
        sleeping.kill()


def test_up_status_down(tiny: Tiny) -> None:
    up = tiny("up", "--nodes", "3")
    lines = [LINE.fullmatch(line) for line in up.stdout.splitlines()]
    assert [(line[1], line[2], int(line[3]) - tiny.port) for line in lines if line] == [
        ("tiny-1", "up", 0),
        ("tiny-2", "up", 1),
        ("tiny-3", "up", 2),
    ]
    assert [line.split(" on ")[0] for line in up.stderr.splitlines() if "starting" in line] == [
        f"tiny: starting tiny-{number}" for number in (1, 2, 3)
    ]
    assert tiny("status").stdout == up.stdout
    every = subprocess.run(
        [sys.executable, str(TINY), "systems", "status"], env=tiny.environment(), capture_output=True, text=True
    )
    assert (every.returncode, every.stdout) == (0, up.stdout)
    assert {server.pid for server in tiny.there()} == {*tiny.pids().values()}
    assert tiny("properties").stdout == f"tiny.port={tiny.port}\n"
    down = tiny("down")
    # The last stage first.
    assert down.stderr.splitlines() == [f"tiny: stopping tiny-{number}" for number in (3, 2, 1)]
    assert tiny.is_clean()
    assert tiny("logs").stdout.count("serving in the manner of serve") == 3
    assert "is not up" in tiny("status", code=1).stderr
    assert "is not up" in tiny("down").stderr


def test_second_instance_leaves_first_alone(tiny: Tiny) -> None:
    first = tiny("up").stdout
    hint = "start another instance with `--name second`, or use the same settings"
    assert hint in tiny("up", "--nodes", "2", code=1).stderr
    port = free_port()
    second = tiny("up", "--name", "second", "--set", f"port={port}").stdout
    assert second.startswith(f"tiny@second/tiny-1 up 127.0.0.1:{port} ")
    assert tiny("properties", "--name", "second").stdout == f"tiny.port={port}\n"
    every = [sys.executable, str(TINY), "systems", "status"]
    done = subprocess.run(every, env=tiny.environment(), capture_output=True, text=True, check=True)
    assert done.stdout == first + second
    tiny("down", "--name", "second")
    assert tiny("status").stdout == first
    tiny("down")


def test_instance_gets_free_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        (port,) = choose_port(RunningSystem("redis@second", tmp_path)).values()
        assert int(port) > 6379
        assert int(port) != server.getsockname()[1]


@pytest.mark.parametrize(
    ("name", "message"), [("a b", "not a valid instance name"), ("../x", "not a valid instance name")]
)
def test_invalid_instance_name_is_refused(tiny: Tiny, name: str, message: str) -> None:
    assert message in tiny("up", "--name", name, code=2).stderr


def test_server_is_in_a_separate_session_without_input(tiny: Tiny) -> None:
    tiny("up")
    pid = tiny.pids()["tiny-1"]
    result = process.read_process(pid)
    assert result is not None
    assert result.session == pid
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    # The server inherits no open file of the lab: otherwise it would hold the lab's lock.
    opened = [os.readlink(f"/proc/{pid}/fd/{handle}") for handle in os.listdir(f"/proc/{pid}/fd")]
    assert not [path for path in opened if path.endswith("/lock")]
    tiny("down")


def test_up_twice_changes_nothing(tiny: Tiny) -> None:
    first = tiny("up", "--nodes", "2").stdout
    assert tiny("up", "--nodes", "2").stdout == first
    assert tiny.starts("tiny-1") == 1
    tiny("down")


def test_up_starts_only_what_has_died(tiny: Tiny) -> None:
    tiny("up", "--nodes", "3")
    before = tiny.pids()
    os.kill(before["tiny-2"], signal.SIGKILL)
    until(lambda: tiny.states()["tiny-2"][0] == "dead", "it is dead")
    assert tiny("status", code=1).stdout.count(" up ") == 2
    tiny("up", "--nodes", "3")
    after = tiny.pids()
    assert {name for name in after if after[name] != before[name]} == {"tiny-2"}
    assert [tiny.starts(f"tiny-{number}") for number in (1, 2, 3)] == [1, 2, 1]
    tiny("down")


def test_other_settings_are_refused(tiny: Tiny) -> None:
    tiny("up", "--set", "tiny.a=1")
    before = tiny.states()
    stderr = tiny("up", "--set", "tiny.a=2", "--nodes", "2", "--set", "password=secret", code=1).stderr
    assert "error: tiny is up with other settings: 1 node, not 2; password; tiny.a=1, not 2\n" in stderr
    assert "`loadstone systems down tiny` deletes it and its data" in stderr
    assert "secret" not in stderr
    assert tiny.states() == before
    tiny("down")


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["up", "--set", "prot=1"], 'tiny has no setting "prot"\nhint: did you mean "port"?', 1),
        (["up", "--set", "port"], '--set takes NAME=VALUE, got "port"', 2),
        (["up", "--set", "port=x"], 'port must be a whole number of at least 1, got "x"', 1),
        (["up", "--nodes", "4"], "tiny cannot have 4 nodes\nhint: it can have 1 to 3", 1),
        (["up", "--nodes", "x"], "invalid int value", 2),
        (["upp"], 'there is no verb "upp"\nhint: did you mean "up"?', 2),
        (["restart"], "tiny is not up", 1),
        (["properties"], "tiny is not up", 1),
        (["kill", "tiny-1"], "tiny is not up", 1),
    ],
)
def test_mistakes(tiny: Tiny, arguments: list[str], message: str, code: int) -> None:
    assert message in tiny(*arguments, code=code).stderr
    assert tiny.is_clean() if (tiny.root / "tiny").exists() else True


def test_occupied_port_is_named_with_its_owner(tiny: Tiny) -> None:
    with socket.create_server(("127.0.0.1", tiny.port + 1)):
        stderr = tiny("up", "--nodes", "3", code=1).stderr
    name = Path("/proc/self/comm").read_text().strip()
    assert f"port 127.0.0.1:{tiny.port + 1}, which tiny-2 needs, is in use by {name} (pid {os.getpid()})" in stderr
    assert "starting" not in stderr
    assert tiny.is_clean()


def test_failed_server_stops_its_siblings(tiny: Tiny) -> None:
    stderr = tiny("up", "--nodes", "2", "--set", "manner=exit", code=1).stderr
    assert "error: tiny: tiny-2 exited with status 7 before it was ready\n" in stderr
    assert f"hint: {tiny.root}/tiny/logs/tiny-2.log ends:\n" in stderr
    assert stderr.endswith("  no way\n")
    assert tiny.is_clean()
    assert "no way" in tiny.log("tiny-2")


def test_failed_restart_leaves_the_running_servers(tiny: Tiny) -> None:
    """Only servers started by this command are stopped; earlier servers keep running, with their data."""
    tiny("up", "--nodes", "2")
    before = tiny.pids()
    tiny("kill", "tiny-2")
    with socket.create_server(("127.0.0.1", tiny.port + 1)):
        assert "is in use by" in tiny("up", "--nodes", "2", code=1).stderr
    assert tiny.states()["tiny-1"] == ("up", before["tiny-1"])
    assert tiny.states()["tiny-2"][0] == "dead"
    tiny("up", "--nodes", "2")
    assert (tiny.starts("tiny-1"), tiny.starts("tiny-2")) == (1, 2)
    tiny("down")


def test_a_server_that_never_serves_has_a_deadline(tiny: Tiny) -> None:
    stderr = tiny("up", "--nodes", "2", "--set", "manner=never", code=1, TINY_DEADLINE_S="5").stderr
    assert "error: tiny was not ready within 5 s: tiny-2 is not ready\n" in stderr
    assert "serving in the manner of never" in stderr
    assert tiny.is_clean()


def test_a_server_that_is_killed_while_it_starts(tiny: Tiny) -> None:
    up = tiny.start("up", "--nodes", "2", "--set", "manner=never")
    until(lambda: tiny.states().get("tiny-2", ("", 0))[0] == "starting", "the second starts")
    os.kill(tiny.pids()["tiny-1"], signal.SIGKILL)
    _, stderr = up.communicate(timeout=60)
    assert up.returncode == 1
    assert "tiny-1 exited on signal 9 before it was ready" in stderr
    assert tiny.is_clean()


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("then", ["up", "down"])
def test_a_lab_that_is_killed_leaks_nothing(tiny: Tiny, number: int, then: str) -> None:
    """The lab is killed just before it writes its state: its servers are found, including unrecorded servers."""
    tiny("up", "--nodes", "2", code=-9, TINY_DIES_AT_SAVE=str(number))
    # The saves: no server has started, the first has started, it is ready, the second has started, it is ready.
    there = {1: 0, 2: 1, 3: 1, 4: 2, 5: 2}[number]
    assert len(tiny.there()) == there
    if then == "up":
        tiny("up", "--nodes", "2")
        assert {server.pid for server in tiny.there()} == {*tiny.pids().values()}
        assert [state for state, _ in tiny.states().values()] == ["up", "up"]
    tiny("down")
    assert tiny.is_clean()


def test_interrupted_while_it_starts(tiny: Tiny) -> None:
    up = tiny.start("up", "--nodes", "2", "--set", "manner=never")
    until(lambda: "tiny-2" in tiny.states(), "the second starts")
    up.send_signal(signal.SIGINT)
    _, stderr = up.communicate(timeout=60)
    assert (up.returncode, stderr.splitlines()[-1]) == (130, "interrupted")
    assert tiny.is_clean()


def test_two_at_once(tiny: Tiny) -> None:
    both = [tiny.start("up", "--nodes", "2") for _ in range(2)]
    outputs = [command.communicate(timeout=60) for command in both]
    assert [command.returncode for command in both] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert len(tiny.there()) == 2
    assert [tiny.starts(f"tiny-{number}") for number in (1, 2)] == [1, 1]
    tiny("down")


def test_down_waits_for_up_and_stops_its_servers(tiny: Tiny) -> None:
    up = tiny.start("up", "--nodes", "2", "--set", "manner=never")
    until(lambda: "tiny-2" in tiny.states(), "the second starts")
    down = tiny.start("down")
    assert down.stderr
    assert any("another loadstone process is using it; waiting" in line for line in down.stderr)
    up.kill()
    for command in (up, down):
        command.communicate(timeout=60)
    assert down.returncode == 0
    assert tiny.is_clean()


def test_reused_pid_is_left_alone(tiny: Tiny, bystander: subprocess.Popen[bytes]) -> None:
    tiny("up")
    document = json.loads(tiny.state.read_text())
    server = document["started"][0]
    os.kill(server["pid"], signal.SIGKILL)
    server["pid"] = bystander.pid
    tiny.state.write_text(json.dumps(document))
    assert tiny.states() == {"tiny-1": ("dead", bystander.pid)}
    for verb in ("kill", "pause", "resume", "restart"):
        tiny(verb)
        result = process.read_process(bystander.pid)
        assert result is not None, f"{verb} ended the bystander"
        assert result.state == "S", f"{verb} stopped the bystander"
    tiny("down")
    assert bystander.poll() is None
    assert tiny.is_clean()


def test_pids_of_another_boot_mean_nothing(tiny: Tiny, bystander: subprocess.Popen[bytes]) -> None:
    tiny("up")
    document = json.loads(tiny.state.read_text())
    os.kill(document["started"][0]["pid"], signal.SIGKILL)
    result = process.read_process(bystander.pid)
    assert result is not None
    # After a reboot, another process could have the same pid and start time by chance.
    document["started"][0] |= {"pid": bystander.pid, "started_ticks": result.start_ticks}
    document["boot"] = "another"
    tiny.state.write_text(json.dumps(document))
    assert tiny.states()["tiny-1"][0] == "dead"
    tiny("up")
    assert tiny.starts("tiny-1") == 2
    tiny("down")
    assert bystander.poll() is None


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"state": 1}', b'{"state": 2}', b"\xff\xfe", b'{"state": 1, "plan": 3}', b"null"]
)
def test_a_damaged_state(tiny: Tiny, damage: bytes) -> None:
    tiny("up", "--nodes", "2")
    tiny.state.write_bytes(damage)
    for verb in ("status", "up", "kill", "restart", "properties"):
        stderr = tiny(verb, code=1).stderr
        assert f"error: {tiny.state}: " in stderr
        assert "hint: `loadstone systems down tiny` stops every server that was started there" in stderr
    assert len(tiny.there()) == 2
    tiny("down")
    assert tiny.is_clean()


def test_pause_resume_kill_restart(tiny: Tiny) -> None:
    tiny("up", "--nodes", "2")
    before = tiny.pids()
    tiny("pause", "tiny-1")
    assert tiny.states() == {"tiny-1": ("paused", before["tiny-1"]), "tiny-2": ("up", before["tiny-2"])}
    tiny("status", code=1)
    tiny("resume", "tiny-1")
    assert tiny.states()["tiny-1"][0] == "up"
    tiny("kill", "tiny-2")
    assert tiny.states()["tiny-2"] == ("dead", before["tiny-2"])
    tiny("restart", "tiny-2")
    assert tiny.states()["tiny-1"] == ("up", before["tiny-1"])
    tiny("pause")
    # This also restarts paused servers.
    tiny("restart")
    assert {state for state, _ in tiny.states().values()} == {"up"}
    assert (tiny.starts("tiny-1"), tiny.starts("tiny-2")) == (2, 3)
    assert 'tiny has no server "tinny-2"\nhint: did you mean "tiny-2"?' in tiny("kill", "tinny-2", code=1).stderr
    tiny("kill")
    assert {state for state, _ in tiny.states().values()} == {"dead"}
    # Only one server is restarted; the other server has exited and may remain down.
    tiny("restart", "tiny-1", code=1)
    assert tiny.states()["tiny-1"][0] == "up"
    tiny("down")
    assert tiny.is_clean()


def test_a_server_that_does_not_want_to_end(tiny: Tiny) -> None:
    tiny("up", "--set", "manner=stubborn")
    tiny("restart")
    tiny("down")
    assert tiny.is_clean()


@pytest.mark.parametrize("manner", ["family", "household"])
@pytest.mark.parametrize("verb", ["down", "kill"])
def test_what_a_server_started_ends_with_it(tiny: Tiny, verb: str, manner: str) -> None:
    tiny("up", "--set", f"manner={manner}")
    child = tiny.child()
    # The child is not an unknown process: it belongs to a running server.
    tiny("up", "--set", f"manner={manner}")
    assert process.read_process(child) is not None
    tiny(verb)
    assert process.read_process(child) is None
    tiny("down")


@pytest.mark.parametrize("manner", ["family", "household"])
@pytest.mark.parametrize("verb", ["down", "up"])
def test_what_a_dead_server_has_left(tiny: Tiny, verb: str, manner: str) -> None:
    """A server that was killed by hand could not stop its children."""
    tiny("up", "--set", f"manner={manner}")
    child = tiny.child()
    os.kill(tiny.pids()["tiny-1"], signal.SIGKILL)
    until(lambda: tiny.states()["tiny-1"][0] == "dead", "it is dead")
    assert process.read_process(child) is not None
    tiny(verb, *(["--set", f"manner={manner}"] if verb == "up" else []))
    assert process.read_process(child) is None
    tiny("down")
    assert tiny.is_clean()


def test_down_that_cannot_finish_can_be_repeated(tiny: Tiny) -> None:
    tiny("up")
    mark = tiny.root / "tiny/data/no-clear"
    mark.touch()
    assert "tiny cannot be cleared" in tiny("down", code=1).stderr
    assert tiny.there() == []
    assert tiny.states()["tiny-1"][0] == "dead"
    mark.unlink()
    tiny("down")
    assert tiny.is_clean()


def test_a_place_where_nothing_can_be_written(tiny: Tiny) -> None:
    stderr = tiny("up", code=1, LOADSTONE_SYSTEMS="/proc/nowhere").stderr
    assert "error: /proc/nowhere" in stderr
    assert "LOADSTONE_SYSTEMS" in stderr


def test_a_full_disk(tiny: Tiny) -> None:
    """A state that cannot be written starts nothing; logs and data of servers are unaffected."""
    stderr = tiny("up", code=1, prefix=("prlimit", "--fsize=0", "--")).stderr
    assert "File too large" in stderr
    assert tiny.is_clean()


@pytest.mark.parametrize("server", ["name-node", "hdfs/name-node"])
def test_logs_are_selected_by_the_names_of_status(server: str) -> None:
    with temporary_root() as root:
        logs = root / "hdfs/logs"
        logs.mkdir(parents=True)
        for name in ("name-node", "data-node-1"):
            (logs / f"{name}.log").write_text(f"{name} is serving\n")
        output = systems(root, "logs", "hdfs", server).stdout
        assert output == f"==> {logs.resolve()}/name-node.log <==\nname-node is serving\n"
        stderr = systems(root, "logs", "hdfs", f"{server}-2", code=2).stderr
        assert stderr == (
            'error: hdfs has no log for a server "name-node-2"\n'
            "hint: the servers with logs are: data-node-1, name-node\n"
        )


def test_help() -> None:
    with temporary_root() as root:
        output = systems(root, "--help").stdout
        assert [name for name in (*VERBS, *registry.SYSTEMS) if f"\n  {name} " not in output] == []
        output = systems(root, "up", "redis", "--help").stdout
        assert "appendfsync=everysec" in output
        assert "shared_buffers" not in output
        assert "shared_buffers" in systems(root, "up", "--help").stdout
        assert "create-table" in systems(root, "hbase", "--help").stdout
        assert "error: a verb is missing" in systems(root, code=2).stderr
        assert (
            'hbase has no verb "region"\nhint: did you mean "regions"?'
            in systems(root, "hbase", "region", code=2).stderr
        )
        assert "error: hbase is not up" in systems(root, "hbase", "regions", code=1).stderr
        stderr = systems(root, "up", "rediss", code=2).stderr
        assert 'there is no system "rediss"\nhint: did you mean "redis"?' in stderr
        assert systems(root, "status").stderr == "no system is up\n"


def test_the_state_is_for_its_owner_only(tiny: Tiny) -> None:
    tiny("up", "--set", "password=secret")
    assert tiny.state.stat().st_mode & 0o077 == 0
    assert "secret" not in tiny("status").stdout
    tiny("down")
