"""The fault `pause` emulates a long garbage collection: it sends SIGSTOP to a server and all its descendants.

The server's sockets stay open, and the kernel accepts further connections, so a check of the port succeeds.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

from loadstone.faults.fault import Fault
from loadstone.observe.kernel_file import PROC, list_names, read_text
from loadstone.systems.base import process
from loadstone.systems.base.process import PAUSED
from loadstone.systems.base.system import ServerProcess
from loadstone.systems.base.undo import Step


class Pause(Fault):
    """A server keeps its connections but does not answer."""

    def undo_steps(self) -> Sequence[Step]:
        """Resumes each server."""
        return [Step("resume", name) for name in self.victims]

    def inject(self) -> None:
        """Stops all processes, including children that they start during the call."""
        sent: set[int] = set()
        while new := [member for member in self.members if member.pid not in sent]:
            for member in new:
                process.send_signal(member, signal.SIGSTOP)
                sent.add(member.pid)
            self.aim()

    def missing_effect(self) -> str | None:
        """Names the first process that has exited or has a running thread."""
        for member in self.members:
            if not process.is_alive(member):
                return f"{member.name} (pid {member.pid}) has exited"
            if states_of_threads(member) - PAUSED:
                return f"a thread of {member.name} (pid {member.pid}) is still running"
        return None

    def remaining_effect(self) -> str | None:
        """Names the first process with a stopped thread."""
        for member in self.members:
            if states_of_threads(member) & PAUSED:
                return f"a thread of {member.name} (pid {member.pid}) is still stopped"
        return None


def states_of_threads(member: ServerProcess) -> set[str]:
    """The distinct states of a process's threads, in the notation of ps."""
    tasks = PROC / str(member.pid) / "task"
    stats = (read_text(tasks / thread / "stat").rpartition(")")[2].split() for thread in list_names(tasks))
    return {stat[0] for stat in stats if stat}
