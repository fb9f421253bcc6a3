"""Starts commands for the lab, one after another. It runs as a separate process, `python -I -S launcher.py`.

Requests and replies are lines of JSON on standard input and output. There are three reasons for a separate process:

- The kernel counts the resident memory of the parent as the peak of a new process (`setmax_mm_hiwater_rss` in
  fs/exec.c). The lab uses hundreds of MB, and this process about ten.
- As a subreaper (prctl(2)), it becomes the parent of daemons, and can kill them together with the command that started
  them.
- Its standard input is a lease: when the lab exits for any reason, the input ends, and the launcher stops the command.

To stay small, the launcher imports nothing from Loadstone.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
# The time limits for a command to exit after SIGTERM, and for its remaining processes to exit after the command.
ENDING_SECONDS, GRACE_SECONDS = 5.0, 0.1
READ_BYTES = 1 << 16
# Signals that Python ignores or handles, and that a command must not inherit.
DEFAULT_SIGNALS = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)


class LauncherProcess:
    """The process that runs the commands, at most one at a time."""

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.wake, writer = os.pipe()
        for end in (self.wake, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.requests = b""
        self.pid = 0
        self.started_ns = 0
        # CPU time of all children that have exited.
        self.cpu_s = 0.0
        self.memory_bytes = 0

    def run(self) -> None:
        """Handles requests until the input ends."""
        while True:
            ready, _, _ = select.select([0, self.wake], [], [])
            if self.wake in ready:
                self.clear_wake()
            if self.pid and (status := self.reap()) is not None:
                self.reply_end(status, time.monotonic_ns())
            if 0 in ready:
                received = os.read(0, READ_BYTES)
                if not received:
                    self.stop()
                    return
                *lines, self.requests = (self.requests + received).split(b"\n")
                for line in lines:
                    self.handle(json.loads(line))

    def handle(self, request: dict[str, Any]) -> None:
        """Starts a command, or stops the current command."""
        if "end" in request:
            if self.pid:
                self.reply_end(self.stop(), time.monotonic_ns())
            return
        self.cpu_s, self.memory_bytes = 0.0, 0
        try:
            os.chdir(request["directory"])
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            actions = [
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, request["stdout"], flags, 0o644),
                (os.POSIX_SPAWN_OPEN, 2, request["stderr"], flags, 0o644),
            ]
            argv, environment = request["argv"], request["environment"]
            self.started_ns = time.monotonic_ns()
            self.pid = os.posix_spawnp(
                argv[0], argv, environment, file_actions=actions, setpgroup=0, setsigdef=DEFAULT_SIGNALS
            )
        except (OSError, ValueError) as error:
            reply({"error": getattr(error, "strerror", None) or str(error)})
            return
        reply({"pid": self.pid})

    def clear_wake(self) -> None:
        """Empties the pipe that is written to when a child exits."""
        with suppress(BlockingIOError):
            while os.read(self.wake, READ_BYTES):
                pass

    def reap(self) -> int | None:
        """Reaps every child that has exited; returns the command's exit status if the command is among them."""
        exit_status = None
        with suppress(ChildProcessError):
            while True:
                pid, status, use = os.wait4(-1, os.WNOHANG)
                if not pid:
                    break
                self.cpu_s += use.ru_utime + use.ru_stime
                self.memory_bytes = max(self.memory_bytes, use.ru_maxrss * 1024)
                if pid == self.pid:
                    exit_status = os.waitstatus_to_exitcode(status)
        return exit_status

    def stop(self) -> int:
        """Sends SIGTERM to the command's process group, then SIGKILL; returns the command's exit status."""
        if not self.pid:
            return 0
        status = None
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)
            until = time.monotonic() + ENDING_SECONDS
            while status is None and (rest := until - time.monotonic()) > 0:
                select.select([self.wake], [], [], rest)
                self.clear_wake()
                status = self.reap()
        self.kill_survivors()
        self.pid = 0 if status is not None else self.pid
        return -signal.SIGKILL if status is None else status

    def reply_end(self, status: int, ended_ns: int) -> None:
        """Reports that the command has exited."""
        survivors = self.kill_survivors()
        self.pid = 0
        floor = own_memory()
        reply(
            {
                "status": status,
                "elapsed_ns": ended_ns - self.started_ns,
                "cpu_ns": round(self.cpu_s * 1e9),
                "memory_bytes": self.memory_bytes if self.memory_bytes > floor else None,
                "survivors": survivors,
            }
        )

    def kill_survivors(self) -> list[str]:
        """Kills the processes that the command left running, in any group or session; returns their names."""
        until = time.monotonic() + GRACE_SECONDS
        while has_children() and time.monotonic() < until:
            time.sleep(0.005)
            self.reap()
        names: list[str] = []
        while has_children():
            for pid, name in children():
                names.append(name)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            # Children of the killed processes become children of this process.
            time.sleep(0.005)
            self.reap()
        return list(dict.fromkeys(names))


def has_children() -> bool:
    """Whether there is a child, running or not yet reaped."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def children() -> Iterator[tuple[int, str]]:
    """The running children, with their names."""
    me = str(os.getpid())
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError), open(f"/proc/{entry}/stat", errors="replace") as file:
                head, _, tail = file.read().rpartition(")")
                state, parent = tail.split()[:2]
                if parent == me and state != "Z":
                    yield int(entry), head.partition("(")[2]


def own_memory() -> int:
    """The peak resident memory of this process, B; a command inherits it, so a smaller peak cannot be measured."""
    with open("/proc/self/status") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")), 0)


def reply(document: dict[str, Any]) -> None:
    """Writes a reply; fails silently if the lab has exited."""
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(document).encode() + b"\n")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    LauncherProcess().run()
    sys.exit()
