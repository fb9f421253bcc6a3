"""The faults `stop` and `restart`: an orderly shutdown with the system's own signal, as in maintenance."""

from __future__ import annotations

from collections.abc import Mapping

from loadstone.faults.fault import FaultError
from loadstone.faults.kill import Kill
from loadstone.systems.base import process


class Stop(Kill):
    """An orderly shutdown. It is an error if a server has to be killed."""

    def inject(self) -> None:
        """Sends the shutdown signal, and waits for the servers. Raises FaultError if a server had to be killed."""
        if not self.running.stop_servers(self.victims):
            raise FaultError("a server ignored the shutdown signal and was killed", "see the server's log")

    def facts(self) -> Mapping[str, str | int | float | bool]:
        """The exit status of each server, if it is known."""
        servers = {member.name: member for member in reversed(self.members)}
        statuses = {name: process.exit_status(server) for name, server in servers.items()}
        return {f"{name}.exit_status": status for name, status in statuses.items() if status is not None}


class Restart(Stop):
    """An orderly shutdown and an immediate start."""
