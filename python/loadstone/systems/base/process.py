"""Starts a server's process in a separate session, distinguishes it from any later process with the same pid, and stops
it.

A pid alone is never trusted here: its process may have exited, and the kernel reuses pids.
Processes are distinguished by their start time (field 22 of /proc/PID/stat, proc_pid_stat(5)).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from loadstone.observe import process as observed
from loadstone.observe.host_counters import TICKS_PER_SECOND
from loadstone.observe.kernel_file import PROC, list_pids
from loadstone.systems.base.files.program import run_as
from loadstone.systems.base.system import Server, ServerProcess, SystemsError

# Variables in each server's environment: the directory of its system, and its name. They identify a server that was
# started but not recorded, because the starting process was killed in between.
SYSTEM, SERVER = "LOADSTONE_SYSTEM", "LOADSTONE_SERVER"
PAUSED, ENDED = frozenset("Tt"), frozenset("ZXx")
# After SIGKILL, a process exits soon, unless it is in an uninterruptible wait for its disk, which may take a while.
KILL_PATIENCE_S = 30.0
POLL_S = 0.02

# Processes that this process started: an exited child stays in /proc until its exit status is collected.
_children: dict[int, subprocess.Popen[bytes]] = {}


def read_process(pid: int) -> observed.ProcessCounters | None:
    """The counters of a running or paused process; None if it does not exist, or has exited but not been reaped."""
    child = _children.get(pid)
    if child is not None:
        child.poll()
    stat = observed.read_stat(pid)
    # A process whose first thread has exited keeps its ports until the remaining threads have exited, too.
    return None if stat is None or (stat.state in ENDED and stat.threads <= 1) else stat


def is_alive(process: ServerProcess) -> bool:
    """Whether this very process still exists, paused or not."""
    return find_exact(process) is not None


def find_exact(process: ServerProcess) -> observed.ProcessCounters | None:
    """The counters of this very process; None if it has exited."""
    stat = read_process(process.pid)
    return stat if stat is not None and stat.start_ticks == process.started_ticks else None


def start_time(process: ServerProcess) -> float:
    """The start time of a process, s since the epoch."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + process.started_ticks / TICKS_PER_SECOND


def is_paused(process: ServerProcess) -> bool:
    """Whether a process exists and is stopped by a signal."""
    stat = find_exact(process)
    return stat is not None and stat.state in PAUSED


def user_environment(server: Server) -> dict[str, str]:
    """Environment variables for a server that runs as another user."""
    if server.user is None:
        return {}
    return {"HOME": str(server.directory), "USER": server.user, "LOGNAME": server.user}


def start_server(server: Server, root: Path, log: Path) -> ServerProcess:
    """Starts a server of the system in `root`; its output is appended to `log`. Raises SystemsError."""
    environment = {**os.environ, **server.environment, SYSTEM: str(root), SERVER: server.name}
    environment |= user_environment(server)
    server.directory.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as out:
            child = subprocess.Popen(
                [*server.argv],
                cwd=server.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                # A terminal's Ctrl-C and hang-up must not reach servers.
                start_new_session=True,
                **run_as(server.user),
            )
    except OSError as error:
        raise SystemsError(
            f"cannot start {server.name}: {server.argv[0]}: {error.strerror}",
            "check that the file exists and this user may run it",
        ) from error
    _children[child.pid] = child
    # The process has not been reaped, so its entry in /proc exists even if it has already exited.
    stat = observed.read_stat(child.pid)
    assert stat is not None
    return ServerProcess(server.name, f"{server.host}:{server.port}", child.pid, stat.start_ticks)


def exit_status(process: ServerProcess) -> int | None:
    """The exit status of a process, negative for a signal; None if it is running, or another process started it."""
    child = _children.get(process.pid)
    return None if child is None else child.poll()


def send_signal(process: ServerProcess, number: signal.Signals) -> bool:
    """Sends a signal to this very process, never to a later process with its pid; returns False if it has exited."""
    try:
        # A signal through this descriptor reaches the process that is checked next, or no process.
        handle = os.pidfd_open(process.pid)
    except (ProcessLookupError, FileNotFoundError):
        # ENOENT: the process is exiting.
        return False
    try:
        if not is_alive(process):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise SystemsError(
            f"cannot send {number.name} to {process.name} (pid {process.pid}): {error.strerror}",
            "it belongs to another user; run this command as the user who started it",
        ) from error
    finally:
        os.close(handle)
    return True


def process_tree(process: ServerProcess) -> list[ServerProcess]:
    """The process, its descendants and the remaining processes of its session; empty if the process has exited."""
    if not is_alive(process):
        return []
    table = {pid: stat for pid in list_pids(PROC) if (stat := read_process(pid)) is not None}
    inside = {process.pid}
    while more := {
        pid
        for pid, stat in table.items()
        if pid not in inside and (stat.parent in inside or stat.session == process.pid)
    }:
        inside |= more
    below = [
        ServerProcess(process.name, process.address, pid, table[pid].start_ticks) for pid in sorted(inside & {*table})
    ]
    return [process, *(member for member in below if member.pid != process.pid)]


def end_processes(processes: Sequence[ServerProcess], patience_s: float, stop: signal.Signals = signal.SIGTERM) -> None:
    """Stops processes and their descendants with the signal `stop`, then kills the survivors after `patience_s`.

    With a `patience_s` of 0, all are killed immediately. Raises SystemsError if a process cannot be killed.
    """
    everyone = [member for process in processes for member in process_tree(process)]
    if patience_s > 0:
        for process in processes:
            send_signal(process, stop)
            # A paused process does not handle signals.
            send_signal(process, signal.SIGCONT)
        wait_gone(processes, patience_s)
        # Adds processes that were started in the meantime.
        everyone += [member for process in processes for member in process_tree(process)]
    for member in everyone:
        send_signal(member, signal.SIGKILL)
    left = wait_gone(everyone, KILL_PATIENCE_S)
    if left:
        raise SystemsError(
            f"{left[0].name} (pid {left[0].pid}) still exists {KILL_PATIENCE_S:g} s after SIGKILL",
            f"it is blocked in the kernel: see /proc/{left[0].pid}/stack, then try again",
        )


def wait_gone(processes: Iterable[ServerProcess], seconds: float) -> list[ServerProcess]:
    """Waits until all processes have exited, for at most `seconds`; returns the processes that remain."""
    left, until = [*processes], time.monotonic() + seconds
    while left := [member for member in left if is_alive(member)]:
        if time.monotonic() >= until:
            break
        time.sleep(POLL_S)
    return left


def find_marked(root: Path) -> list[ServerProcess]:
    """The processes of the system in `root`, each with its server's name. They are identified by their environment, so
    unrecorded processes are included."""
    processes = []
    marker, name = f"{SYSTEM}={root}".encode(), f"{SERVER}=".encode()
    for pid in list_pids(PROC):
        stat = read_process(pid)
        with contextlib.suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if stat else []
            if stat and marker in variables:
                server = next(
                    (variable.removeprefix(name) for variable in variables if variable.startswith(name)), b"?"
                )
                processes.append(ServerProcess(server.decode(errors="replace"), "", pid, stat.start_ticks))
    return processes
