"""A system of tiny real servers, for the functions of `loadstone systems` that every system shares.

Each server answers `ready` on its port. `python -m tiny_system systems up tiny` is the command line of a Loadstone that
knows this system.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadstone import cli
from loadstone.systems import registry
from loadstone.systems.base.plan import read_whole_number
from loadstone.systems.base.system import Place, Server, Setting, System, SystemPlan, SystemsError

HOST = "127.0.0.1"


class Tiny(System):
    """Up to three servers, each in a separate stage."""

    name = "tiny"
    isolatable = True
    spreadable = True
    title = "servers of a few lines"
    nodes = (1, 2, 3)
    deadline_s = float(os.environ.get("TINY_DEADLINE_S", "60"))
    settings = (
        Setting("port", "0", "of the first server"),
        Setting("password", "", "means nothing"),
        Setting("manner", "serve", "what the last server does"),
        Setting("tiny.*", "", "whatever"),
    )

    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        return [[server(place, plan, number)] for number in range(plan.nodes)]

    def node_directories(self, plan: SystemPlan) -> Sequence[str]:
        return [f"tiny-{number + 1}" for number in range(plan.nodes)]

    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        for listener in servers:
            try:
                with socket.create_connection((listener.host, listener.port), timeout=5) as connection:
                    if connection.recv(5) != b"ready":
                        return f"{listener.name} is not ready"
            except OSError as error:
                return f"{listener.name}: {error.strerror}"
        return None

    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        return {"tiny.port": plan.settings["port"]}

    def clear_outside(self, place: Place) -> None:
        """Fails if the test has created the file `no-clear`."""
        if (place.data / "no-clear").exists():
            raise SystemsError("tiny cannot be cleared", "remove no-clear")


def server(place: Place, plan: SystemPlan, number: int) -> Server:
    """The server of this number, from 0."""
    name, port = f"tiny-{number + 1}", read_whole_number(plan, "port", 1) + number
    manner = plan.settings["manner"] if number == plan.nodes - 1 else "serve"
    directory = place.data / name
    host = f"{plan.network}.{number + 1}" if plan.network else HOST
    host = plan.addresses[number] if plan.addresses else host
    argv = [sys.executable, str(Path(__file__)), "serve", str(port), manner, host]
    return Server(name, argv, host, port, directory=directory, patience_s=0.5 if manner == "stubborn" else 30)


def serve(port: int, manner: str, host: str) -> None:
    """A server's work in its directory."""
    with Path("starts").open("a") as file:
        file.write("x")
    print(f"serving in the manner of {manner}", flush=True)
    if manner == "exit":
        print("no way", file=sys.stderr)
        sys.exit(7)
    if manner == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if manner == "busy":
        threading.Thread(target=spin, daemon=True).start()
    if manner == "writing":
        threading.Thread(target=write_and_sync, daemon=True).start()
    if manner in ("family", "household"):
        ready, done = os.pipe()
        if os.fork() == 0:
            if manner == "family":
                # PostgreSQL's processes also have separate sessions.
                os.setsid()
            Path("child").write_text(str(os.getpid()))
            os.close(done)
            time.sleep(600)
        os.close(done)
        # The server waits for its child, so the child exists before any client is served.
        os.read(ready, 1)
    with socket.create_server((host, port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"never" if manner == "never" else b"ready")


def spin() -> None:
    """Uses processor time."""
    while True:
        pass


def write_and_sync() -> None:
    """Writes as fast as the disk allows."""
    with Path("written").open("wb") as file:
        while True:
            file.seek(0)
            file.write(b"x" * (1 << 18))
            file.flush()
            os.fsync(file.fileno())


def main() -> int:
    """The command line."""
    # A signal handler that a test changed must not affect this process.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    register()
    if at := os.environ.get("TINY_DIES_AT_SAVE"):
        die_at_save(int(at))
    return cli.main()


def register() -> None:
    """Makes the system known to this process."""
    sys.modules["loadstone.systems.tiny.system"] = sys.modules[__name__]
    registry.SYSTEMS["tiny"] = "Tiny"


def die_at_save(number: int) -> None:
    """Kills this process just before it writes its state for the n-th time."""
    from loadstone.systems.base import state
    from loadstone.systems.base.state import State

    save, saved = state.save_state, []

    def dying(path: Path, state: State) -> None:
        saved.append(path)
        if len(saved) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        save(path, state)

    state.save_state = dying


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), *sys.argv[3:5])
    sys.exit(main())
