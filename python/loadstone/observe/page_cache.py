"""Writes the page cache to the device, or evicts files from it, so that an observation begins in a known state.

Unlike the other modules of this package, this module changes the host.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from loadstone.errors import LoadstoneError


def flush_file_system(directory: Path) -> float:
    """Flushes a directory's file system to its device, and returns the duration in seconds.

    Raises LoadstoneError if the directory cannot be opened or its device reports a failed write (since Linux 5.8).
    """
    start = time.monotonic()
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise LoadstoneError(
            f"cannot open {directory} to flush its file system: {error.strerror}",
            "name an existing directory that you are allowed to read",
        ) from error
    try:
        # Python has no function for syncfs(2).
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise LoadstoneError(
                f"the file system of {directory} could not be flushed: {os.strerror(ctypes.get_errno())}",
                "the device lost writes; see the kernel's log (dmesg)",
            )
    finally:
        os.close(descriptor)
    return time.monotonic() - start


def drop_cache(directories: Iterable[Path]) -> None:
    """Evicts the files below directories from the page cache, after writing data that is not yet on its device.

    Unlike `/proc/sys/vm/drop_caches`, this requires only permission to read the files. Files that are deleted during
    the call, or that may not be read, are skipped.
    """
    for directory in directories:
        if not directory.exists():
            continue
        flush_file_system(directory)
        for file in (path for path in directory.rglob("*") if path.is_file()):
            with suppress(OSError):
                descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)
