"""Kills a command just before the n-th of its system calls with certain names, so that any call can be the last.

A separate program: `python killed_at.py N NAMES COMMAND…`. It traces all threads of the command with ptrace(2) and
counts their calls together. It prints the count, and exits with the status of the command, or 137 if it killed the
command.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Numbers of system calls on x86-64 (arch/x86/entry/syscalls/syscall_64.tbl).
NUMBERS = {
    "pread64": 17,
    "pwrite64": 18,
    "writev": 20,
    "sendto": 44,
    "sendmsg": 46,
    "fsync": 74,
    "fdatasync": 75,
    "rename": 82,
    "mkdir": 83,
    "rmdir": 84,
    "unlink": 87,
    "create": 257,  # openat with O_CREAT
    "unlinkat": 263,
    "renameat2": 316,
}
# Calls that change directories or wait for the disk.
CHANGES = "create,mkdir,rename,renameat2,unlink,unlinkat,rmdir,fsync,fdatasync"
TRACEABLE = platform.machine() == "x86_64"

KILLED = 137
HANGS_SECONDS = 300.0
# linux/ptrace.h
TRACE_ME, SYSCALL, SET_OPTIONS, SYSCALL_INFO = 0, 24, 0x4200, 0x420E
SYSTEM_CALL_GOOD, CLONE, EXIT_KILL = 0x1, 0x8, 0x100000
ENTRY = 1
ALL_THREADS = 0x40000000


def kill_at(n: int, names: str, command: Sequence[str | Path]) -> tuple[bool, int]:
    """Whether a command was killed at its n-th call, and its number of calls.

    A command that was not killed must succeed.
    """
    line = [sys.executable, __file__, str(n), names, *map(str, command)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=HANGS_SECONDS)
    assert done.returncode in (0, KILLED), done.stderr
    return done.returncode == KILLED, int(done.stdout.splitlines()[-1])


def main(n: int, names: str, command: list[str]) -> int:
    """Runs the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    expected = {NUMBERS[name] for name in names.split(",")}
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        libc.ptrace(TRACE_ME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(command[0], command)
    os.waitpid(child, ALL_THREADS)
    assert libc.ptrace(SET_OPTIONS, child, None, SYSTEM_CALL_GOOD | CLONE | EXIT_KILL) == 0
    libc.ptrace(SYSCALL, child, None, None)
    buffer, count, threads = ctypes.create_string_buffer(88), 0, {child}
    while True:
        thread, status = os.waitpid(-1, ALL_THREADS)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if thread == child:
                print(count)
                return os.waitstatus_to_exitcode(status) % 256 if os.WIFEXITED(status) else KILLED
            continue
        stop = os.WSTOPSIG(status)
        if stop == signal.SIGTRAP | 0x80:
            libc.ptrace(SYSCALL_INFO, thread, len(buffer), ctypes.addressof(buffer))
            kind, number, *arguments = struct.unpack_from("=B23xQ6Q", buffer)
            created = number != NUMBERS["create"] or arguments[2] & os.O_CREAT
            if kind == ENTRY and number in expected and created:
                count += 1
                if count == n:
                    os.kill(child, signal.SIGKILL)
                    continue
        # A new thread begins with a SIGSTOP and an exec with a SIGTRAP; the command must receive neither.
        own = stop & 0x7F == signal.SIGTRAP or (stop == signal.SIGSTOP and thread not in threads)
        threads.add(thread)
        libc.ptrace(SYSCALL, thread, None, 0 if own else int(stop))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
