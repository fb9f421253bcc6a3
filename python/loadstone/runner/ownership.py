"""Which run uses the servers of a system: one at a time.

The mark is a file beside the system's state, written before the first server starts and locked while the run lives.
The kernel lets go of the lock however the run ends. Whether servers that are up without a run were started by one,
and may be taken down by the next, is written in their state (`OWNER`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any

from loadstone.errors import LoadstoneError

NAME = "experiment.json"
# Who started them, in the state of servers that a run starts.
OWNER = "experiment"


class TakenError(LoadstoneError):
    """The servers that an experiment would start are there already, and not for it to end."""


class Mark:
    """The mark of one system."""

    def __init__(self, root: Path) -> None:
        """`root` is the system's own directory of state."""
        self.path = root / NAME
        self._file: IO[str] | None = None

    def take(self, run: str) -> None:
        """Marks the servers as those of a run. Raises TakenError when another run that lives has them."""
        if self._file is not None:
            return
        file = self._locked()
        while not is_at(file, self.path):
            # The run that had it has removed it at its end, while we waited for nobody but the scheduler.
            file.close()
            file = self._locked()
        file.seek(0)
        file.truncate()
        json.dump({"run": run, "pid": os.getpid()}, file)
        file.flush()
        self._file = file

    def _locked(self) -> IO[str]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Kept open, for the lock is the open file's.
            file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+")
        except OSError as error:
            raise LoadstoneError(
                f"cannot write {self.path}: {error.strerror}", "set LOADSTONE_SYSTEMS to a directory of your own"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            other = owner(file)
            file.close()
            raise TakenError(
                f"another run uses the servers in {self.path.parent} (process {other.get('pid', 'unknown')})",
                "wait for its end",
            ) from None
        return file

    def release(self) -> None:
        """Lets go."""
        if self._file is None:
            return
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self._file.close()
        self._file = None


def is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one of this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def owner(file: IO[str]) -> dict[str, Any]:
    """Who wrote a mark, as far as it says."""
    try:
        found = json.load(file)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
