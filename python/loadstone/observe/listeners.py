"""Finds the processes that accept connections on this machine, from /proc/net/tcp (proc(5))."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.kernel_file import PROC, list_names, list_pids, parse_whole, read_text
from loadstone.observe.sockets import list_inodes

# TCP_LISTEN in the kernel's tcp_states.h.
LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Listener:
    """The process that accepts connections on a port; its name and pid are missing if /proc hides them."""

    port: int
    name: str = ""
    pid: int | None = None


def list_listeners(proc: Path = PROC) -> tuple[Listener, ...]:
    """The listener on every open port; if several processes share a port, only one of them."""
    sockets = listening_sockets(proc)
    owners = find_owners(set(sockets), proc) if sockets else {}
    listeners = {port: Listener(port, *owners.get(inode, ("", None))) for inode, port in sorted(sockets.items())}
    return tuple(listeners[port] for port in sorted(listeners))


def listening_sockets(proc: Path) -> dict[int, int]:
    """The listening ports, keyed by the inode of the socket."""
    ports: dict[int, int] = {}
    for name in ("tcp", "tcp6"):
        for line in read_text(proc / "net" / name).splitlines()[1:]:
            fields = line.split()
            # Number, local address, remote address, state, queues, timer, retransmits, user, timeout, inode.
            if len(fields) > 9 and fields[3] == LISTENING and (inode := parse_whole(fields[9])):
                ports[inode] = int(fields[1].rpartition(":")[2], 16)
    return ports


def find_owners(inodes: set[int], proc: Path) -> dict[int, tuple[str, int]]:
    """The name and pid of the process that owns each of these sockets, if /proc shows it."""
    owners: dict[int, tuple[str, int]] = {}
    for pid in list_pids(proc):
        if list_names(proc / str(pid) / "fd"):
            for inode in inodes & set(list_inodes(pid, proc)):
                owners.setdefault(inode, (read_text(proc / str(pid) / "comm"), pid))
    return owners
