"""Faults on servers that the user runs, through the user's commands (`attach`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from loadstone.errors import LoadstoneError
from loadstone.experiment.model.system import ATTACH_FAULTS
from loadstone.experiment.plan.faults import PlannedFault
from loadstone.experiment.plan.required_servers import Attached
from loadstone.results.fault import VERIFIED_BY
from loadstone.systems.base import undo

# The time limit for `verify`. It also applies before the fault, so that a slow command is not mistaken for an effect.
VERIFY_SECONDS = 10.0


class Commands(Protocol):
    """The commands of `attach`."""

    how: Attached

    def run(self, key: str, host: str, limit_s: float = ...) -> None:
        """Runs a command for a host. Raises LoadstoneError if it fails or takes longer than `limit_s`."""

    def command(self, key: str, host: str) -> str:
        """The command for a host, as a shell command line."""


class AttachedSite:
    """Servers that the user runs, each identified by its host."""

    def __init__(self, commands: Commands, journal: Path) -> None:
        self.commands = commands
        self.journal = journal

    def servers(self) -> Sequence[str]:
        """The names of all hosts."""
        return self.commands.how.hosts

    def roles(self) -> Mapping[str, Sequence[str]]:
        """Always empty: the roles of attached servers are unknown."""
        return {}

    def addresses(self) -> Mapping[str, str]:
        """The address of each host; without a port if the store's default port is used."""
        port = self.commands.how.port
        return {host: host if port is None else f"{host}:{port}" for host in self.servers()}

    def action(self, planned: PlannedFault, victims: Sequence[str]) -> AttachedFault:
        """Creates a fault for these hosts."""
        return AttachedFault(self, victims, planned.kind)

    def identities(self) -> Mapping[str, object]:
        """Whether each host is unaffected by faults."""
        return {host: self.is_unaffected(host) for host in self.servers()}

    def is_unaffected(self, host: str) -> bool:
        """Whether the command `verify` succeeds in time."""
        try:
            self.verify(host)
        except LoadstoneError:
            return False
        return True

    def verify(self, host: str) -> None:
        """Runs `verify` with a time limit, because a check of a paused server may never end. Raises LoadstoneError."""
        self.commands.run("verify", host, VERIFY_SECONDS)

    def find_start_ns(self, server: str) -> int | None:
        """Always None: the start is unknown."""
        return None

    def backlog(self) -> str | None:
        """The backlog of attached servers is unknown, so it never counts as finished."""
        return "the pending work of attached servers is unknown"

    def data_bytes(self, server: str) -> int | None:
        """Always None: the size is unknown."""
        return None


class AttachedFault:
    """A fault that is injected by one command, lifted by a second and verified by a third."""

    def __init__(self, site: AttachedSite, victims: Sequence[str], kind: str) -> None:
        self._site = site
        self._victims = tuple(victims)
        self._kind = kind
        self._inject, self._lift, _ = ATTACH_FAULTS[kind]
        self.ending = self._lift == "restart"

    def prepare(self) -> None:
        """Checks before the fault that every victim is unaffected. Raises LoadstoneError."""
        for host in self._victims:
            self._site.verify(host)

    def aim(self) -> None:
        """Does nothing: commands find their processes themselves."""

    def journal(self) -> None:
        """Records the commands that lift the fault. Raises LoadstoneError."""
        steps = [
            undo.Step("run", command=("sh", "-c", self._site.commands.command(self._lift, host)), volatile=False)
            for host in self._victims
        ]
        undo.write_journal(self._site.journal, undo.Undo(f"{self._kind} of {', '.join(self._victims)}", tuple(steps)))

    def withdraw(self) -> None:
        """Removes the record of a fault that was never injected."""
        undo.clear_journal(self._site.journal)

    def inject(self) -> None:
        """Runs the command for each host. Raises LoadstoneError."""
        for host in self._victims:
            self._site.commands.run(self._inject, host)

    def missing_effect(self) -> str | None:
        """Names the first host on which `verify` still succeeds; None if there is none."""
        unaffected = [host for host in self._victims if self._site.is_unaffected(host)]
        return f"`verify` still succeeds on {unaffected[0]}" if unaffected else None

    def lift(self) -> None:
        """Runs the lifting command for each host, even after a failure on another host. Raises LoadstoneError."""
        undo.try_all(partial(self._site.commands.run, self._lift, host) for host in self._victims)
        undo.clear_journal(self._site.journal)

    def remaining_effect(self) -> str | None:
        """Names the first host on which `verify` fails; None if there is none."""
        affected = [host for host in self._victims if not self._site.is_unaffected(host)]
        return f"`verify` fails on {affected[0]}" if affected else None

    def facts(self) -> Mapping[str, str | int | float | bool]:
        """The commands report no facts; `verified_by` states that only a command verified the effect."""
        return {VERIFIED_BY: "command"}
