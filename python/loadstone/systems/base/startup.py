"""Starts the servers of a system stage by stage, and waits until each stage is ready for clients."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from loadstone.observe.listeners import list_listeners
from loadstone.observe.server_usage import file_size
from loadstone.systems.base import process, state
from loadstone.systems.base.activity import read_tail
from loadstone.systems.base.system import Place, Server, ServerProcess, System, SystemsError

# The first wait is short, because a small server is ready almost immediately.
FIRST_POLL_S, POLL_S = 0.05, 0.5
# Waits shorter than this are not reported.
REPORT_AFTER_S = 3.0
LINES = 12
# The number of bytes at the end of a log that are searched for its last lines.
END_BYTES = 64 * 1024

Say = Callable[[str], None]


def say_nothing(_: str) -> None:
    """Discards a message."""


class Starting:
    """Starts missing servers, and records them, so that exactly these servers can be stopped if a start fails."""

    def __init__(self, system: System, place: Place, begin: state.State, say: Say) -> None:
        self._system = system
        self._place = place
        self._say = say
        self.state = begin
        # The processes started here.
        self.new_processes: list[ServerProcess] = []
        # The length of each log before this start.
        self._logged: dict[str, int] = {}
        # If one of these processes exits, the start has failed. Other servers may have exited earlier.
        self._watched = [member for member in begin.processes if process.is_alive(member)]

    def start_stages(self, stages: Sequence[Sequence[Server]], names: Sequence[str]) -> None:
        """Starts the named servers, and waits until their stages are ready. Raises LoadstoneError."""
        if not self.state.plan.network:
            require_free(server for servers in stages for server in servers if server.name in names)
        for number, servers in enumerate(stages):
            chosen = [server for server in servers if server.name in names]
            for server in chosen:
                self._start_server(server, number)
            ready = {entry.process.name for entry in self.state.started if entry.ready}
            if chosen or not ready.issuperset(server.name for server in servers):
                there = {member.name for member in self._watched}
                self._wait_for_stage([server for server in servers if server.name in there])
                self.state = self.state.mark_ready([server.name for server in servers])
                self.save_state()

    def save_state(self) -> None:
        """Writes the state to its file."""
        state.save_state(self._place.root / state.FILE, self.state)

    def _start_server(self, server: Server, stage: int) -> None:
        self._say(f"{self._system.name}: starting {server.name} on {server.host}:{server.port}")
        log = log_of(self._place, server.name)
        self._logged[server.name] = file_size(log)
        new = process.start_server(server, self._place.root, log)
        self.new_processes.append(new)
        self._watched.append(new)
        gc_log = None if server.gc_log is None else str(server.gc_log)
        self.state = self.state.with_started(state.StartedServer(new, stage, server.patience_s, server.stop, gc_log))
        self.save_state()

    def _wait_for_stage(self, servers: Sequence[Server]) -> None:
        plan, begin = self.state.plan, time.monotonic()
        reported, pause_s = "", FIRST_POLL_S
        while True:
            for member in self._watched:
                if not process.is_alive(member):
                    raise self._exit_error(member)
            missing = self._system.missing_readiness(self._place, plan, servers)
            if missing is None:
                return
            waited_s = time.monotonic() - begin
            if waited_s >= self._system.deadline_s:
                late = f"{self._system.name} was not ready within {self._system.deadline_s:g} s: {missing}"
                raise SystemsError(late, self._log_hint(servers[0].name))
            if missing != reported and waited_s >= REPORT_AFTER_S:
                self._say(f"{self._system.name}: {missing}")
                reported = missing
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, POLL_S)

    def _exit_error(self, member: ServerProcess) -> SystemsError:
        status = process.exit_status(member)
        how = "" if status is None else f" on signal {-status}" if status < 0 else f" with status {status}"
        return SystemsError(
            f"{self._system.name}: {member.name} exited{how} before it was ready", self._log_hint(member.name)
        )

    def _log_hint(self, server: str) -> str:
        """A hint with the end of a server's output."""
        log = log_of(self._place, server)
        lines = last_lines(log, LINES, self._logged.get(server, 0))
        return "\n  ".join([f"{log} ends:", *lines]) if lines else f"{log} is empty"


def log_of(place: Place, server: str) -> Path:
    """The path of the file with a server's output."""
    return place.logs / f"{server}.log"


def last_lines(log: Path, count: int, since: int = 0) -> list[str]:
    """The last lines of a file after byte `since`; empty if the file does not exist."""
    lines = read_tail(log, END_BYTES, since).decode(errors="replace").splitlines()
    return lines[-count:] if count > 0 else []


def require_free(servers: Iterable[Server]) -> None:
    """Raises SystemsError for the first required port that is in use."""
    owners: dict[tuple[str, int], str] = {}
    for server in servers:
        for address in [(server.host, server.port), *server.ports]:
            other = owners.setdefault(address, server.name)
            if other != server.name:
                raise SystemsError(
                    f"{other} and {server.name} have the same port {address[0]}:{address[1]}",
                    "give one of them another port with --set",
                )
            require_port(server.name, *address)


def require_port(name: str, host: str, port: int) -> None:
    """Raises SystemsError if `name` cannot listen at this address."""
    if not 0 < port < 65536:
        raise SystemsError(f"{name} cannot have port {port}", "ports are 1 to 65535")
    # Connections in TIME_WAIT do not prevent servers from listening.
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
            # Only this call detects a listener that shares its port.
            trial.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                who = find_listener(port)
                raise SystemsError(
                    f"port {host}:{port}, which {name} needs, is in use" + (f" by {who}" if who else ""),
                    "stop that process, or choose another port: --help lists the settings for ports",
                ) from error
            raise SystemsError(
                f"{name} cannot listen on {host}:{port}: {error.strerror}", "choose another port or address with --set"
            ) from error


def find_listener(port: int) -> str | None:
    """The process that listens on a port, such as `redis-server (pid 12)`; None if unknown."""
    owners = (
        f"{listener.name} (pid {listener.pid})"
        for listener in list_listeners()
        if listener.port == port and listener.pid
    )
    return next(owners, None)
