"""Which run uses the servers of a system: only one at a time.

The mark is a file next to the system's state, written before the first server starts and locked while the run lives.
The kernel releases the lock however the run ends. The state records whether a run started the servers (`OWNER`): only
then may a later run stop them.
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
# The owner, in the state of servers that a run starts.
OWNER = "experiment"


class TakenError(LoadstoneError):
    """The servers that an experiment would start are already running, and it must not stop them."""


class Mark:
    """The mark of one system."""

    def __init__(self, root: Path) -> None:
        """`root` is the system's state directory."""
        self.path = root / NAME
        self._file: IO[str] | None = None

    def take(self, run: str) -> None:
        """Marks the servers as those of a run. Raises TakenError if another live run has them."""
        if self._file is not None:
            return
        file = self._locked()
        while not is_at(file, self.path):
            # The run that held it removed the file between our open and our lock.
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
            # Kept open: the lock belongs to the open file (flock(2)).
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
                "wait until it ends",
            ) from None
        return file

    def release(self) -> None:
        """Removes the mark."""
        if self._file is None:
            return
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self._file.close()
        self._file = None


def is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def owner(file: IO[str]) -> dict[str, Any]:
    """The contents of a mark; empty if it is not readable."""
    try:
        document = json.load(file)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
