"""The base class of all faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from loadstone.errors import LoadstoneError
from loadstone.experiment.plan.faults import PlannedFault
from loadstone.systems.base import process
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.base.system import ServerProcess
from loadstone.systems.base.undo import Step, Undo


class FaultError(LoadstoneError):
    """A fault cannot be injected or lifted."""


class Fault(ABC):
    """One fault on servers that the lab started.

    Its methods are called in this order: `prepare` before the load; `journal` and `aim` shortly before the planned
    instant; `inject` at that instant, then `missing_effect` until it returns None; finally `lift`, then
    `remaining_effect` until it returns None.
    """

    # Whether the fault stops its servers. To lift such a fault, the servers are restarted.
    ending: bool = False

    def __init__(self, running: RunningSystem, victims: Sequence[str], planned: PlannedFault) -> None:
        self.running = running
        self.victims = tuple(victims)
        self.planned = planned
        # The victims' processes, as found by the last call of `aim`.
        self.members: list[ServerProcess] = []

    def prepare(self) -> None:  # noqa: B027
        """Makes the checks and preparations that may fail, before the load. Raises LoadstoneError."""

    def aim(self) -> None:
        """Finds the processes of the victims. Raises FaultError if a victim has exited.

        This is the last step before `inject` that may take milliseconds.
        """
        servers = [server for server in self.running.running_processes() if server.name in self.victims]
        self.members = [member for server in servers for member in process.process_tree(server)]
        missing = {*self.victims} - {server.name for server in servers}
        if missing:
            raise FaultError(f"{', '.join(sorted(missing))} exited before the fault", "see the server's log")

    def journal(self) -> None:
        """Records on disk the steps that undo the fault. Raises LoadstoneError."""
        name = f"{self.planned.kind} of {', '.join(self.victims)}"
        self.running.record_undo(Undo(name, tuple(self.undo_steps())))

    def withdraw(self) -> None:
        """Removes the record of a fault that was never injected. Raises LoadstoneError."""
        self.running.undo_fault()

    def undo_steps(self) -> Sequence[Step]:
        """The steps that undo the fault; empty if a restart of the servers undoes it."""
        return ()

    @abstractmethod
    def inject(self) -> None:
        """Gives the order to inject the fault. Raises LoadstoneError."""

    @abstractmethod
    def missing_effect(self) -> str | None:
        """The reason why the effect is not verified yet; None once it is verified."""

    def lift(self) -> None:
        """Lifts the fault. If a victim was stopped or has exited, restarts it and returns when all servers are ready.

        Raises LoadstoneError.
        """
        self.running.undo_fault()
        alive = {server.name for server in self.running.running_processes()}
        if self.ending or not alive.issuperset(self.victims):
            self.running.revive_servers()

    def remaining_effect(self) -> str | None:
        """The reason why the lift is not verified yet; None once it is verified."""
        if not self.ending:
            return None
        alive = {server.name for server in self.running.running_processes()}
        ended = [name for name in self.victims if name not in alive]
        return f"{ended[0]} is not running" if ended else None

    def facts(self) -> Mapping[str, str | int | float | bool]:
        """Facts about the fault, for its record."""
        return {}
