"""Runs commands of `loadstone`, each in a fork of a process that has imported the lab.

A test file runs dozens of commands, and imports take most of a short command's processor time. Here each worker of
pytest imports the lab once. `LOADSTONE_FORK=0` starts an interpreter for each command instead.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ENABLED = os.environ.get("LOADSTONE_FORK") != "0"
LOADSTONE = (sys.executable, "-c", "import sys; from loadstone.cli import main; sys.exit(main())")
# The maximum size of a request, which contains the command's environment variables.
REQUEST_BYTES = 100_000
# A child must not inherit threads: OpenBLAS would start some with NumPy.
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# Packages that a command does not import, or imports on demand.
OMITTED = ("__main__", "api", "live", "ray")
LIBRARIES = ("altair", "numpy", "pyarrow", "pydantic", "rich.console", "scipy.stats", "vl_convert", "yaml")

COMMANDS = itertools.count()

Done = subprocess.CompletedProcess[str]


def run_command(
    arguments: Sequence[str | Path],
    cwd: Path | None,
    env: Mapping[str, str],
    timeout: float,
    prefix: Sequence[str] = (),
) -> Done:
    """Runs `loadstone …` to its end, without input. Raises subprocess.TimeoutExpired after `timeout` seconds."""
    line = [str(argument) for argument in arguments]
    request = json.dumps({"arguments": line, "cwd": str(cwd or Path.cwd()), "env": dict(env)}).encode()
    # The server's imports take as long as some commands, so a worker's first three commands run without it.
    if prefix or not ENABLED or len(request) > REQUEST_BYTES or next(COMMANDS) < 3:
        return subprocess.run(
            [*prefix, *LOADSTONE, *line],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        mine, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with mine:
            with child:
                descriptors = [child.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(connect(), [request], descriptors)
            pid = int(mine.recv(100))
            mine.settimeout(timeout)
            try:
                status = os.waitstatus_to_exitcode(int(mine.recv(100)))
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(line, timeout) from None
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return Done([*LOADSTONE, *line], status, *texts)


@cache
def connect() -> socket.socket:
    """Starts this worker's server and returns the connection to it. The server exits when the connection closes."""
    mine, inherited = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with inherited:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, inherited.fileno(), 3),
        ]
        line = [sys.executable, __file__, "3"]
        os.posix_spawn(sys.executable, line, {**os.environ, **SINGLE_THREADED}, file_actions=actions)
    return mine


def import_lab() -> None:
    """Imports the modules that commands use."""
    import loadstone

    for name in LIBRARIES:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(loadstone.__path__, "loadstone."):
        if not any(part in OMITTED for part in module.name.split(".")):
            importlib.import_module(module.name)


def bundle_program() -> str:
    """Returns the bundled JavaScript of a report. Bundling takes a third of the time that a report takes.

    A separate process bundles it, because the threads of vl-convert would not survive a fork.
    """
    from loadstone.report import html

    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        with open(sending, "w", encoding="utf-8") as pipe:
            pipe.write(html.program())
        os._exit(0)
    os.close(sending)
    with open(receiving, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Forks a process for each request. Returns the request in each child, and None when the connection closes."""
    children: dict[int, tuple[int, socket.socket]] = {}
    while True:
        readable, _, _ = select.select([connection.fileno(), *children], [], [])
        for handle in readable:
            if handle == connection.fileno():
                data, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 3)
                if not data:
                    return None
                reply = socket.socket(fileno=descriptors[0])
                pid = os.fork()
                if pid == 0:
                    for number, descriptor in enumerate(descriptors[1:], start=1):
                        os.dup2(descriptor, number)
                        os.close(descriptor)
                    for inherited in (reply, connection, *(client for _, client in children.values())):
                        inherited.close()
                    for inherited_handle in children:
                        os.close(inherited_handle)
                    request: dict[str, Any] = json.loads(data)
                    return request
                for descriptor in descriptors[1:]:
                    os.close(descriptor)
                reply.send(str(pid).encode())
                children[os.pidfd_open(pid)] = (pid, reply)
            else:
                pid, reply = children.pop(handle)
                os.close(handle)
                _, status = os.waitpid(pid, 0)
                # The client closed its connection after a timeout.
                with reply, suppress(BrokenPipeError):
                    reply.send(str(status).encode())


def main() -> int:
    """Serves the connection whose descriptor it inherited."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket.socket(fileno=int(sys.argv[1]))
    import_lab()
    program = bundle_program()
    setattr(importlib.import_module("loadstone.report.html"), "program", lambda: program)  # noqa: B010
    # A garbage collection in a child would copy memory pages that the child shares with this process.
    gc.collect()
    gc.freeze()
    request = serve(connection)
    if request is None:
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    # tempfile caches a directory from the old environment, and `python -c` puts the working directory first in the
    # path.
    tempfile.tempdir = None
    sys.path[0] = ""
    sys.argv = ["-c", *request["arguments"]]
    from loadstone.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
