"""Runs a command with io_uring forbidden, as it is in containers by default: `without_uring.py COMMAND …`."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

# linux/prctl.h, linux/seccomp.h, linux/filter.h.
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ERRNO, ALLOW = 0x00050000, 0x7FFF0000
# The number is the same on every architecture except Alpha.
IO_URING_SETUP = 425
INSTRUCTION = struct.Struct("=HBBI")
# The number of the system call is the first word of seccomp's data.
FILTER = b"".join(
    INSTRUCTION.pack(*fields)
    for fields in (
        (LOAD_WORD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, IO_URING_SETUP),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    )
)


class Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def main() -> None:
    """Sets the filter, and becomes the command."""
    kernel = ctypes.CDLL(None, use_errno=True)
    program = Program(len(FILTER) // INSTRUCTION.size, FILTER)
    # An unprivileged process may set a filter only if it can no longer gain privileges.
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if kernel.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
