"""One run at a time on a host: two that measure at once measure each other."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loadstone.errors import LoadstoneError

# Where every user may make a file, the first that is there.
DIRECTORIES = (Path("/run/lock"), Path("/tmp"))
NAME = "loadstone.lock"
SHARE = "--share-host"
HINT = f"wait for it, or add {SHARE} if neither is to be believed to a few percent"


@contextmanager
def host_locked(results: Path, directory: Path | None = None) -> Iterator[Callable[[Path], None]]:
    """Keeps every other run off this host; the kernel lets go of the lock when this process ends, however it ends.

    What it gives takes the folder of the results as soon as it is known. Raises LoadstoneError, with the other one's
    pid and results, when there is one. Where no such file can be made, there is no lock.
    """
    path = (directory or next((each for each in DIRECTORIES if each.is_dir()), DIRECTORIES[-1])) / NAME
    descriptor = opened(path)
    if descriptor is None:
        yield lambda _: None
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = holder(descriptor)
            raise LoadstoneError(
                f"another run is measuring on this host{f' ({other})' if other else ''}", HINT
            ) from None
        note(descriptor, results)
        try:
            yield lambda folder: note(descriptor, folder)
        finally:
            note(descriptor, None)
    finally:
        os.close(descriptor)


def opened(path: Path) -> int | None:
    """The lock file, made if there is none; None where there can be none.

    Every user may put something else in its place: a link to a file of ours, a pipe that nobody reads.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    # A file that is there is opened without O_CREAT: of another user's the kernel may refuse it (protected_regular).
    for mode in (os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with suppress(OSError):
            descriptor = os.open(path, flags | mode, 0o666)
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                if found.st_uid == os.getuid():
                    os.fchmod(descriptor, 0o666)
                return descriptor
            os.close(descriptor)
            return None
    return None


def holder(descriptor: int) -> str:
    """Who says to hold the lock; empty if that was another run, which has ended."""
    text = os.pread(descriptor, 4096, 0).decode(errors="replace").strip()
    found = re.match(r"pid (\d+), ", text)
    return text if found and Path("/proc", found[1]).exists() else ""


def note(descriptor: int, results: Path | None) -> None:
    """Says who holds the lock, or that nobody does, where the file is ours to write."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        if results is not None:
            os.pwrite(descriptor, f"pid {os.getpid()}, {results.resolve()}\n".encode(), 0)
