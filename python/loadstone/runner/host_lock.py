"""One run at a time on a host: two that measure at once measure each other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadstone.errors import LoadstoneError

# Where every user may make a file, the first that is there.
DIRECTORIES = (Path("/run/lock"), Path("/tmp"))
NAME = "loadstone.lock"
SHARE = "--share-host"
HINT = f"wait for it, or add {SHARE} if neither is to be believed to a few percent"


@contextmanager
def host_locked(results: Path, directory: Path | None = None) -> Iterator[None]:
    """Keeps every other run off this host; the kernel lets go of the lock when this process ends, however it ends.

    Raises LoadstoneError, with the other one's pid and results, when there is one. Where no such file can be made,
    there is no lock.
    """
    path = (directory or next((each for each in DIRECTORIES if each.is_dir()), DIRECTORIES[-1])) / NAME
    try:
        # A file that is there is opened as it is: another user's may not be written.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if path.exists() else made(path)
    except OSError:
        yield
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(descriptor, 4096, 0).decode(errors="replace").strip()
            raise LoadstoneError(
                f"another run is measuring on this host{f' ({other})' if other else ''}", HINT
            ) from None
        note(path, f"pid {os.getpid()}, {results.resolve()}\n")
        yield
    finally:
        os.close(descriptor)


def made(path: Path) -> int:
    """A new lock file that every user may open."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    os.fchmod(descriptor, 0o666)
    return descriptor


def note(path: Path, text: str) -> None:
    """Says who holds the lock, where the file is ours to write."""
    try:
        path.write_text(text)
    except OSError:
        return
