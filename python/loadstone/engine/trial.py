"""A trial on this machine: an engine process, its spec and its events.

    with Trial(spec) as trial:
        for _, event in follow_trials(trial):
            ...

There is only one thread: while `follow_trials` waits for events, it also sends heartbeats to the engines. If the lab
hangs or exits, the heartbeats therefore stop, and the engines end the load.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, Any, Self

from loadstone.engine import program
from loadstone.engine.events import Event, Summary, parse_event
from loadstone.errors import LoadstoneError

# The time for which an engine continues without a heartbeat, unless the spec sets a different time; the lab sends four
# heartbeats in this time.
LEASE_MS = 10_000
# When its lease ends, an engine gives its clients 5 s to finish, and then closes its store. An engine that exceeds
# GRACE_SECONDS is killed.
GRACE_SECONDS = 10.0
LOG_LINES = 200
# The interval between calls to `idle` while waiting for events.
IDLE_SECONDS = 1.0

Spec = dict[str, Any]


class EngineError(LoadstoneError):
    """An engine exited without a result; `status` is its exit status, negative for a signal."""

    def __init__(self, message: str, hint: str, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


class Trial:
    """One running engine. Leaving the `with` block terminates the engine, whatever its state."""

    def __init__(self, spec: Spec) -> None:
        """Starts the engine and sends it the spec. Raises LoadstoneError if no engine is found."""
        self.spec: Spec = {**spec, "lease_ms": spec.get("lease_ms") or LEASE_MS}
        line = json.dumps(self.spec)
        # The engine's last event, once it has arrived.
        self.summary: Summary | None = None
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.status: int | None = None
        # Called with each event line from the engine, unchanged.
        self.heard: Callable[[str], object] | None = None
        self._beat_seconds = self.spec["lease_ms"] / 4000
        self._beat_at = time.monotonic() + self._beat_seconds
        self._parts: dict[int, bytes] = {}
        self._revoked = False
        path = program.find_engine()
        try:
            # The engine runs in a separate process group: Ctrl-C reaches only the lab, which decides how to stop it.
            self._process = subprocess.Popen(
                [path, "trial"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
            )
        except OSError as error:
            raise program.cannot_run(path, error) from error
        self._send_line(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The pid of the engine."""
        return self._process.pid

    def start_at(self, unix_ns: int) -> None:
        """Starts a waiting load (`wait_for_start`) at this time; a common time synchronises several engines."""
        self._send_line(json.dumps({"start_at": unix_ns}))

    def stop_load(self) -> None:
        """Ends the load now; the engine still reports its summary."""
        self._send_line(json.dumps("stop"))

    def revoke_lease(self) -> None:
        """Revokes the lease: the engine ends the load, and still reports its summary."""
        self._revoked = True
        with contextlib.suppress(OSError):
            self._pipe_named("stdin").close()

    def close(self) -> None:
        """Terminates a running engine: revokes its lease, waits, and kills the engine if it does not exit."""
        # The pipes for output are closed first, because an engine that writes to a full pipe would never exit.
        for stream in (self._pipe_named("stdout"), self._pipe_named("stderr"), self._pipe_named("stdin")):
            with contextlib.suppress(OSError):
                stream.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_SECONDS)
        finally:
            self.kill()
            self.status = self._process.wait()

    def kill(self) -> None:
        """Kills the engine, so that its events end without a result. Any thread may call this."""
        self._process.kill()

    def _pipe_named(self, name: str) -> IO[bytes]:
        stream: IO[bytes] | None = getattr(self._process, name)
        assert stream is not None, "all three streams are pipes"
        return stream

    def _send_line(self, line: str) -> None:
        if self._revoked:
            return
        stdin = self._pipe_named("stdin")
        # If the pipe is broken, the engine has exited; its other streams contain the reason.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(f"{line}\n".encode())
            stdin.flush()

    def _send_heartbeat(self, now: float) -> None:
        if now >= self._beat_at:
            self._beat_at = now + self._beat_seconds
            self._send_line('"heartbeat"')

    def _split_lines(self, descriptor: int, chunk: bytes) -> list[str]:
        """The lines that a chunk completes; an empty chunk marks the end, and completes the last line."""
        *whole, rest = (self._parts.pop(descriptor, b"") + chunk).split(b"\n")
        if chunk:
            self._parts[descriptor] = rest
        elif rest:
            whole.append(rest)
        return [line.decode(errors="replace") for line in whole]

    def _parse_event(self, line: str) -> Event:
        try:
            event = parse_event(line)
        except ValueError as error:
            raise EngineError(
                f"the load generator wrote an invalid event: {error}: {line[:80]}",
                "use loadstone and loadstone-engine from the same installation",
                1,
            ) from error
        if isinstance(event, Summary):
            self.summary = event
        if self.heard is not None:
            self.heard(line)
        return event

    def _finish_trial(self) -> EngineError | None:
        self.close()
        assert self.status is not None, "close() waits for the process"
        if self.summary is None or (self.status != 0 and self.summary.end == "done"):
            return engine_error(self.status, list(self.log))
        return None


def follow_trials(
    *trials: Trial, idle: Callable[[], object] | None = None
) -> Iterator[tuple[Trial, Event | EngineError]]:
    """The events of several trials as they arrive, until the last trial ends; a failed trial ends with its error.

    A trial that ended early (`stopped`, `lease`, `failed`) has a summary and is a result, not an error. Raises
    EngineError if an engine writes an invalid event.
    """
    idle_at = time.monotonic()
    with selectors.DefaultSelector() as selector:
        open_streams = dict.fromkeys(trials, 2)
        for trial in trials:
            for name in ("stdout", "stderr"):
                selector.register(trial._pipe_named(name), selectors.EVENT_READ, (trial, name))
        while open_streams:
            wait = min(trial._beat_at for trial in open_streams) - time.monotonic()
            if idle is not None:
                wait = min(wait, idle_at + IDLE_SECONDS - time.monotonic())
            for key, _ in selector.select(max(wait, 0)):
                trial, name = key.data
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fileobj)
                    open_streams[trial] -= 1
                for line in trial._split_lines(key.fd, chunk):
                    if name == "stdout":
                        yield trial, trial._parse_event(line)
                    else:
                        trial.log.append(line)
            now = time.monotonic()
            if idle is not None and now >= idle_at + IDLE_SECONDS:
                idle_at = now
                idle()
            for trial in list(open_streams):
                trial._send_heartbeat(now)
                if open_streams[trial] == 0:
                    del open_streams[trial]
                    if (error := trial._finish_trial()) is not None:
                        yield trial, error


def engine_error(status: int, log: list[str]) -> EngineError:
    """The reason why an engine exited without a result: its error message, if it wrote one."""
    fields = {name: text for name, separator, text in (line.partition(": ") for line in log) if separator}
    last = f"last line of its log: {log[-1]}" if log else "its log is empty"
    if status < 0:
        name = signal.Signals(-status).name
        hint = f"{last}; the kernel log (dmesg) shows whether memory ran out" if name == "SIGKILL" else last
        return EngineError(f"the load generator was killed by {name}", hint, status)
    if "error" in fields:
        return EngineError(
            fields["error"], fields.get("hint", "the message above comes from the load generator"), status
        )
    return EngineError(f"the load generator exited without a result, with status {status}", last, status)
