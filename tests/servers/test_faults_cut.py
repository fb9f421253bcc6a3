"""Cuts the network of tiny real servers: for whole nodes, in one direction, or between one pair."""

from __future__ import annotations

import errno
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from loadstone.faults.cut import Cut
from loadstone.systems.base import networks
from loadstone.systems.base.networks import drop_path, list_namespaces, name_prefix, probe_paths
from loadstone.systems.base.running_system import ServerState
from tiny_support import PLANNED, Tiny, injector_of, run_fault, running_of, until
from tiny_support import tiny as tiny


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("how", ["silence", "reset"])
def test_cut_node_is_not_reached(tiny: Tiny, how: str) -> None:
    running = running_of(tiny.root)
    running.up(2, {"port": str(tiny.port)}, isolated=True)
    assert all(server.address.startswith(f"{running.plan.network}.") for server in running.running_processes())
    record = run_fault(running, replace(PLANNED, kind="cut", how=how, lift_s=(0.5, 0.5)))
    assert record.unverified == {}
    assert record.held_ns is not None
    assert {state for _, state in running.status()} == {ServerState.UP}
    cut = Cut(running, ["tiny-2"], replace(PLANNED, kind="cut", how=how))
    cut.prepare()
    cut.aim()
    cut.journal()
    cut.inject()
    # The lab is killed here.
    running.up(2, {"port": str(tiny.port)}, isolated=True)
    assert cut.remaining_effect() is None
    running.down()
    assert tiny.is_clean()
    assert not any(name.startswith(name_prefix(running.place.root)) for name in list_namespaces())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(
    ("how", "peer", "direction", "cut"),
    [
        ("silence", "tiny-3", "both", {(2, 3), (3, 2)}),
        ("reset", "tiny-3", "out", {(2, 3)}),
        ("reset", "clients", "in", {(0, 2)}),
        ("silence", "", "out", {(2, 0), (2, 1), (2, 3)}),
    ],
)
def test_partial_cut_drops_only_its_packets(
    tiny: Tiny, how: str, peer: str, direction: str, cut: set[tuple[int, int]]
) -> None:
    running = running_of(tiny.root)
    running.up(3, {"port": str(tiny.port)}, isolated=True)
    root, every = running.place.root, {(a, b) for a in range(4) for b in range(4) if a != b}
    links = list_links()
    planned = replace(PLANNED, kind="cut", how=how, peer=peer, direction=direction)
    injector = injector_of(running, replace(planned, lift_s=(60.0, 60.0)))
    with injector:
        injector.begin(time.monotonic_ns(), time.time_ns())
        until(lambda: injector.records[0].held_ns is not None or injector.records[0].unverified, "cut")
        assert every - probe_paths(root, every, set()) == cut
    record = injector.records[0]
    assert record.unverified == {}
    assert record.facts.get("peer", "") == peer
    assert probe_paths(root, every, set()) == every
    fault = Cut(running, ["tiny-2"], planned)
    fault.prepare()
    fault.aim()
    fault.journal()
    fault.inject()
    assert probe_paths(root, every, cut) == every - cut
    # The lab is killed here.
    running.up(3, {"port": str(tiny.port)}, isolated=True)
    assert fault.remaining_effect() is None
    assert list_links() == links
    running.down()
    assert tiny.is_clean()
    assert not any(name.startswith(name_prefix(running.place.root)) for name in list_namespaces())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("how", ["silence", "reset"])
def test_client_of_a_reset_path_receives_an_error(tiny: Tiny, how: str) -> None:
    running = running_of(tiny.root)
    running.up(2, {"port": str(tiny.port)}, isolated=True)
    fault = Cut(running, ["tiny-2"], replace(PLANNED, kind="cut", how=how, peer="clients"))
    fault.prepare()
    fault.journal()
    server = running.running_processes()[1]
    host, _, port = server.address.rpartition(":")
    fault.inject()
    with socket.socket() as client:
        client.settimeout(0.5)
        assert client.connect_ex((host, int(port))) == (errno.EAGAIN if how == "silence" else errno.EHOSTUNREACH)
    fault.lift()
    assert fault.remaining_effect() is None
    running.down()


def list_links() -> list[str]:
    """The names of the host's network interfaces."""
    return sorted(name for _, name in socket.if_nameindex())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_unnoticed_cut_is_not_verified(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    running = running_of(tiny.root)
    running.up(2, {"port": str(tiny.port)}, isolated=True)
    monkeypatch.setattr(networks, "drop_path", lambda *_: None)
    record = run_fault(running, replace(PLANNED, kind="cut", peer="tiny-1", lift_s=(0.3, 0.3)))
    assert record.unverified == {"held": "packets from tiny-1 to tiny-2 still arrive"}

    def drop_too_much(root: Path, sender: int, receiver: int) -> None:
        drop_path(root, sender, receiver)
        drop_path(root, sender, 0)

    monkeypatch.setattr(networks, "drop_path", drop_too_much)
    record = run_fault(running, replace(PLANNED, kind="cut", peer="tiny-1", direction="out", lift_s=(0.3, 0.3)))
    assert record.unverified == {"held": "packets from tiny-2 to clients are lost, but were not cut off"}
    running.down()
