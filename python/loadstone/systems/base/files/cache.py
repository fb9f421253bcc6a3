"""The cache: one directory for files that are downloaded only once. An entry is either complete or absent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

# Readable by other users, because a server that refuses to run as root runs as a different user.
READABLE = 0o755


def cache_root() -> Path:
    """`$LOADSTONE_CACHE`, otherwise `$XDG_CACHE_HOME/loadstone`, otherwise `~/.cache/loadstone`; the engine's stores
    use the same order."""
    named = os.environ.get("LOADSTONE_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "loadstone"


def fill_entry(path: Path, fill: Callable[[Path], None]) -> Path:
    """The directory `path`; if it is missing, `fill` fills an empty directory, which is then renamed to `path`.

    A second process waits for the first, so that files are downloaded only once.
    """
    if path.is_dir():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(path.with_name(f".{path.name}.lock")):
        if path.is_dir():
            return path
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            fill(draft)
            draft.chmod(READABLE)
            draft.rename(path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return path


@contextlib.contextmanager
def hold_lock(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds the exclusive lock on this file; the kernel releases it when the process exits, for whatever reason.

    If another process has the lock, calls `waiting` once, then waits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
