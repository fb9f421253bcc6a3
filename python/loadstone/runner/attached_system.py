"""Checks and restarts servers that the user runs, with the user's commands."""

from __future__ import annotations

import time
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.experiment.model import template
from loadstone.experiment.plan.required_servers import Attached
from loadstone.results.trial_result import Scalar
from loadstone.runner import hooks

# The maximum time from `restart` until a server's `status` succeeds, and the interval between checks.
READY_SECONDS = 180.0
POLL_SECONDS = 1.0
# The time limit for a command.
COMMAND_SECONDS = 600.0


class AttachedServers:
    """Runs the commands of `attach`; their output goes to `log`."""

    def __init__(self, how: Attached, log: Path, table: str = "") -> None:
        self.how = how
        self._log = log
        self._table = table

    def up(self) -> bool:
        """Restarts each server whose `status` fails, and waits until it works; returns whether any was restarted.
        Raises LoadstoneError."""
        broken = self.dead()
        for host in broken:
            if not self.how.restart:
                hint = f"start it so that this succeeds, or add a `restart` command: {self.how.status}"
                raise LoadstoneError(f"the server at {host} is not working", hint)
            self._run(self.how.restart, "restart", host)
        deadline = time.monotonic() + READY_SECONDS
        while left := [host for host in broken if not self._works(host)]:
            if time.monotonic() >= deadline:
                raise LoadstoneError(
                    f"the server at {left[0]} is not working {READY_SECONDS:g} s after its restart",
                    f"find out why its status command fails: {self.how.status}",
                )
            time.sleep(POLL_SECONDS)
        return bool(broken)

    def dead(self) -> list[str]:
        """The hosts whose server is not working; empty if no `status` command is configured."""
        return [host for host in self.how.hosts if not self._works(host)]

    def recreate_table(self) -> None:
        """Recreates the table. Raises HookError."""
        self._run(self.how.fresh, "fresh", self.how.hosts[0])

    def run(self, key: str, host: str, limit_s: float = COMMAND_SECONDS) -> None:
        """Runs a command of `attach` for a host. Raises LoadstoneError if the command fails, takes longer than
        `limit_s`, or is not configured."""
        if not (command := getattr(self.how, key)):
            raise LoadstoneError(f"no `{key}` command is configured", f"add `attach: {{{key}: ssh {{host}} …}}`")
        self._run(command, key, host, limit_s)

    def command(self, key: str, host: str) -> str:
        """A command of `attach` for a host, as a shell command line."""
        return template.render_template(getattr(self.how, key), self._names(host), for_shell=True)

    def _works(self, host: str) -> bool:
        if not self.how.status:
            return True
        try:
            self._run(self.how.status, "status", host)
        except hooks.HookError:
            return False
        return True

    def _run(self, command: str, what: str, host: str, limit_s: float = COMMAND_SECONDS) -> None:
        names = self._names(host)
        hooks.run([template.render_template(command, names, for_shell=True)], what, names, self._log, limit_s)

    def _names(self, host: str) -> dict[str, Scalar]:
        return {"host": host, "port": "" if self.how.port is None else self.how.port, "table": self._table}
