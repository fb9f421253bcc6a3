"""A port: whether it is free, and which process listens on it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable

from loadstone.observe.listeners import listeners
from loadstone.systems.base.system import Server, SystemsError


def require_free(servers: Iterable[Server]) -> None:
    """Raises SystemsError for the first port that a server needs and that is in use."""
    wanted: dict[tuple[str, int], str] = {}
    for server in servers:
        for address in [(server.host, server.port), *server.ports]:
            other = wanted.setdefault(address, server.name)
            if other != server.name:
                raise SystemsError(
                    f"{other} and {server.name} both want port {address[0]}:{address[1]}",
                    "give one of them another port with --set",
                )
            require(server.name, *address)


def require(name: str, host: str, port: int) -> None:
    """Raises SystemsError when `name` cannot listen there."""
    if not 0 < port < 65536:
        raise SystemsError(f"{name} cannot have port {port}", "ports are 1 to 65535")
    # As servers do: connections in TIME_WAIT do not matter.
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
            # Only this detects a listener that shares its port.
            trial.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                who = holder(port)
                raise SystemsError(
                    f"port {host}:{port}, which {name} needs, is in use" + (f" by {who}" if who else ""),
                    "stop that process, or choose another port: --help lists the settings for ports",
                ) from error
            raise SystemsError(
                f"{name} cannot listen on {host}:{port}: {error.strerror}", "choose another port or address with --set"
            ) from error


def holder(port: int) -> str | None:
    """The process that listens on a port, such as `redis-server (pid 12)`; None if unknown."""
    found = (f"{each.name} (pid {each.pid})" for each in listeners() if each.port == port and each.pid)
    return next(found, None)
