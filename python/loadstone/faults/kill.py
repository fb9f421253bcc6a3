"""The fault `kill` emulates a crash or the OOM killer: it sends SIGKILL to a server and all its descendants."""

from __future__ import annotations

import signal
import socket

from loadstone.faults.fault import Fault
from loadstone.systems.base import process

CONNECT_S = 0.2


class Kill(Fault):
    """A crash of processes. Data that they have already passed to the kernel is not lost."""

    ending = True

    def inject(self) -> None:
        """Kills all processes, each through a pidfd."""
        for member in self.members:
            process.send_signal(member, signal.SIGKILL)

    def missing_effect(self) -> str | None:
        """Names the first process that still exists, or the first port that still accepts connections."""
        for member in self.members:
            if process.is_alive(member):
                return f"{member.name} (pid {member.pid}) still exists"
        for address in dict.fromkeys(member.address for member in self.members):
            host, _, port = address.rpartition(":")
            if accepts(host, int(port)):
                return f"port {address} still accepts connections"
        return None


def accepts(host: str, port: int) -> bool:
    """Whether a port accepts connections."""
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError:
        return False
    return True
