"""Allows one run at a time on a host: concurrent runs would disturb each other's measurements."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from loadstone.errors import LoadstoneError

# Directories that every user may write to; the first existing one is used.
DIRECTORIES = (Path("/run/lock"), Path("/tmp"))
NAME = "loadstone.lock"
SHARE = "--share-host"
HINT = f"wait until it ends, or add {SHARE} if neither run has to be accurate to a few percent"


@contextmanager
def host_locked(results: Path, directory: Path | None = None) -> Iterator[Callable[[Path], None]]:
    """Holds this host's lock; the kernel releases it when this process exits, for whatever reason.

    Yields a function to record the results folder once it is known. If another run holds the lock, raises
    LoadstoneError with that run's pid and results folder. If the file cannot be created, there is no lock.
    """
    descriptor = open_lock_file(lock_path(directory))
    if descriptor is None:
        yield lambda _: None
        return
    with open(descriptor, "rb"):
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


def find_holder(directory: Path | None = None) -> str:
    """The pid and the results of another run that is measuring on this host; empty if there is none."""
    descriptor = open_lock_file(lock_path(directory))
    if descriptor is None:
        return ""
    with open(descriptor, "rb"):
        return holder(descriptor)


def lock_path(directory: Path | None) -> Path:
    """The lock file in a directory, by default in the first directory of `DIRECTORIES` that exists."""
    return (directory or next((folder for folder in DIRECTORIES if folder.is_dir()), DIRECTORIES[-1])) / NAME


def open_lock_file(path: Path) -> int | None:
    """Opens the lock file, creating it if needed; returns None if it cannot be opened.

    Any user may put something else in the file's place, such as a link to another file or a pipe without a reader.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    # The first attempts omit O_CREAT, which the kernel may refuse for another user's existing file
    # (`protected_regular`).
    for mode in (os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with suppress(OSError):
            descriptor = os.open(path, flags | mode, 0o666)
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                if status.st_uid == os.getuid():
                    os.fchmod(descriptor, 0o666)
                return descriptor
            os.close(descriptor)
            return None
    return None


def holder(descriptor: int) -> str:
    """The holder that the file names; empty if that process has exited."""
    text = os.pread(descriptor, 4096, 0).decode(errors="replace").strip()
    match = re.match(r"pid (\d+), ", text)
    return text if match and Path("/proc", match[1]).exists() else ""


def note(descriptor: int, results: Path | None) -> None:
    """Records this process as the lock's holder, or empties the file if `results` is None; ignores write errors."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        if results is not None:
            os.pwrite(descriptor, f"pid {os.getpid()}, {results.resolve()}\n".encode(), 0)
