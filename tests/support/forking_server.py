"""An echo server with a process per client, like PostgreSQL: `python forking_server.py PORT [FILE]`.

It also appends received bytes to FILE, and syncs the file to the device. For a client that sends `work` first, the
process uses a second of processor time.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path


def serve(port: int, file: str | None) -> None:
    """Serves forever."""
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                answer(connection, file)
                os._exit(0)
            connection.close()


def reap() -> None:
    """Reaps children that have exited."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def answer(connection: socket.socket, file: str | None) -> None:
    """Sends received bytes back."""
    while data := connection.recv(1 << 16):
        if data.startswith(b"work"):
            start = time.process_time()
            while time.process_time() < start + 1:
                pass
        if file:
            with Path(file).open("ab") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
        connection.sendall(data)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
