"""The fault `power`: the node's file system stops without writing its journal; then the node's processes are killed.

Data in the kernel that no process has synced is lost, as if the host had lost power. The fault emulates the loss of
power for one node's storage; it does not affect the device's volatile cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadstone.faults.fault import Fault, FaultError
from loadstone.faults.kill import Kill
from loadstone.systems.base import disks
from loadstone.systems.base.undo import Step


class Power(Kill):
    """A power cut on nodes that have separate file systems."""

    def prepare(self) -> None:
        """Checks that each victim has a mounted file system. Raises FaultError."""
        for name in self.victims:
            find_disk(self, name)

    def undo_steps(self) -> Sequence[Step]:
        """Unmounts each file system that has stopped; the next start mounts it again."""
        return [Step("unmount", name, text=str(find_disk(self, name))) for name in self.victims]

    def inject(self) -> None:
        """Stops the victims' file systems, then kills all their processes."""
        for name in self.victims:
            disks.shut_down(find_disk(self, name))
        self._writable = [name for name in self.victims if not disks.is_shut_down(find_disk(self, name))]
        super().inject()

    def missing_effect(self) -> str | None:
        """Also reports a file system that still accepted writes after its shutdown."""
        if self._writable:
            return f"the file system of {self._writable[0]} still accepts writes"
        return super().missing_effect()


def find_disk(fault: Fault, name: str) -> Path:
    """The mount point of a node's file system. Raises FaultError if the node has no separate file system."""
    directory = (fault.running.place.data / name).resolve()
    if not disks.is_mounted(directory):
        raise FaultError(f"{name} has no separate file system", "add `start: {file_system: 1GB}` to the system")
    return directory
