"""A flush: everything that was written to a directory's file system goes to its device, now."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from loadstone.errors import LoadstoneError


def flush(directory: Path) -> float:
    """Writes out the file system that a directory is on, and says how many seconds that took.

    Raises LoadstoneError when the directory cannot be opened or its device reports a failed write (since Linux 5.8).
    """
    start = time.monotonic()
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise LoadstoneError(
            f"cannot open {directory} to flush its file system: {error.strerror}",
            "name a directory that is there and that you may read",
        ) from error
    try:
        # syncfs(2), which Python does not have.
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise LoadstoneError(
                f"the file system of {directory} could not be flushed: {os.strerror(ctypes.get_errno())}",
                "the device lost writes; the kernel's log (dmesg) tells more",
            )
    finally:
        os.close(descriptor)
    return time.monotonic() - start
