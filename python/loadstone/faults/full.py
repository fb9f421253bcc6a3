"""The fault `full`: a ballast file occupies all free space on the node's file system."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadstone.faults.fault import Fault
from loadstone.faults.power import find_disk
from loadstone.systems.base.undo import Step

BALLAST = "loadstone-ballast"
PROBE, PROBE_BYTES = "loadstone-probe", 4096


class Full(Fault):
    """Fills disks. A server that exits because its disk is full is restarted when there is space again."""

    def prepare(self) -> None:
        """Checks that each victim has a mounted file system. Raises FaultError."""
        for name in self.victims:
            find_disk(self, name)

    def undo_steps(self) -> Sequence[Step]:
        """Removes each ballast file."""
        return [Step("remove", str(path), volatile=False) for path in self.paths()]

    def paths(self) -> list[Path]:
        """The ballast files."""
        return [find_disk(self, name) / BALLAST for name in self.victims]

    def inject(self) -> None:
        """Allocates all free space. Raises OSError."""
        for path in self.paths():
            fill(path)

    def missing_effect(self) -> str | None:
        """Fills any space freed since the injection, then names the first file system that still has free space."""
        for path in self.paths():
            if has_room(path):
                fill(path)
            if has_room(path):
                return f"{path.parent} still has free space"
        return None

    def remaining_effect(self) -> str | None:
        """Names the first file system that has no free space or still contains its ballast file."""
        for path in self.paths():
            if path.exists() or not has_room(path):
                return f"{path.parent} still has no free space"
        return None

    def facts(self) -> Mapping[str, str | int | float | bool]:
        """The size of each ballast file."""
        return {f"{path.parent.name}.ballast_bytes": path.stat().st_size for path in self.paths()}


def has_room(path: Path) -> bool:
    """Whether a block can be allocated on a path's file system. (ext4 reserves free blocks for metadata.) Raises
    OSError."""
    probe = path.with_name(PROBE)
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, PROBE_BYTES)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    finally:
        os.close(descriptor)
        probe.unlink()
    return True


def free_bytes(path: Path) -> int:
    """The free space on a path's file system."""
    status = os.statvfs(path.parent)
    return status.f_bfree * status.f_frsize


def fill(path: Path) -> None:
    """Allocates all free space to a file. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        length, piece = os.fstat(descriptor).st_size, free_bytes(path)
        while piece >= 1024:
            try:
                os.posix_fallocate(descriptor, length, piece)
                length += piece
                piece = free_bytes(path)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                # Metadata needs some of the space.
                length, piece = os.fstat(descriptor).st_size, piece // 2
    finally:
        os.close(descriptor)
