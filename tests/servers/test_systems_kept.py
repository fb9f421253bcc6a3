"""Data that is kept after a system's servers stop, and records of servers from before a reboot."""

from __future__ import annotations

import json
import socket

import pytest

from loadstone.systems.base import state
from loadstone.systems.base.plan import plan_of
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.base.system import SystemsError
from loadstone.systems.registry import load_system
from systems_support import free_settings, temporary_root
from tiny_support import Tiny, tiny

__all__ = ["tiny"]


def test_data_can_be_kept(tiny: Tiny) -> None:
    tiny("up")
    tiny("down", "--keep-data")
    assert tiny.there() == []
    assert "is not up" in tiny("status", code=1).stderr
    assert "has kept data with other settings" in tiny("up", "--nodes", "2", code=1).stderr
    tiny("up")
    assert tiny.starts("tiny-1") == 2
    tiny("down")
    tiny("up")
    assert tiny.starts("tiny-1") == 1
    tiny("down")


def test_data_with_unknown_settings_are_left_alone(tiny: Tiny) -> None:
    tiny("up")
    tiny.state.write_text("{")
    stderr = tiny("down", "--keep-data", code=1).stderr
    assert "it is damaged" in stderr
    assert f"save what you need from {tiny.root}/tiny/data" in stderr
    assert tiny.there() == []
    assert tiny.starts("tiny-1") == 1
    tiny("down")
    assert tiny.is_clean()


@pytest.mark.parametrize("server", [(), ("tiny-2",)])
def test_servers_restarted_after_a_reboot_are_recognised(tiny: Tiny, server: tuple[str, ...]) -> None:
    tiny("up", "--nodes", "2")
    tiny("kill")
    written = json.loads(tiny.state.read_text())
    tiny.state.write_text(json.dumps(written | {"boot": "another"}))
    tiny("restart", *server)
    expected = server or ("tiny-1", "tiny-2")
    assert {name: state for name, (state, _) in tiny.states().items()} == dict.fromkeys(expected, "up")
    assert {process.pid for process in tiny.there()} == {*tiny.pids().values()}
    tiny("kill")
    assert tiny.there() == []
    tiny("down")


def test_failed_hbase_start_retains_the_file_systems_data() -> None:
    with temporary_root() as root:
        hdfs = RunningSystem("hdfs", root)
        plan = plan_of(load_system("hdfs"), 3, free_settings("hdfs"))
        block = hdfs.place.data / "data-node-1/blocks/block"
        block.parent.mkdir(parents=True)
        block.touch()
        state.save_state(hdfs.place.root / state.FILE, state.State(plan))
        with (
            socket.create_server(("127.0.0.1", int(plan.settings["port"]))),
            pytest.raises(SystemsError, match=f"{plan.settings['port']}"),
        ):
            RunningSystem("hbase", root).up(3, free_settings("hbase"))
        assert block.is_file()
        known = hdfs.load_state
        assert known is not None
        assert known.plan == plan
        # An explicit `down` deletes the data.
        hdfs.down()
        assert not block.exists()
