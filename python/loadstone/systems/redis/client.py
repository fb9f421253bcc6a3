"""A client for Redis's protocol (RESP 2), limited to simple queries.

https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

from __future__ import annotations

import socket
import ssl
from contextlib import AbstractContextManager
from typing import BinaryIO

# A paused server must not block the caller.
TIMEOUT_S = 3.0

Reply = str | int | None | list["Reply"]


def encrypt_connection(connection: socket.socket) -> socket.socket:
    """Wraps the connection in TLS. The server is Loadstone's own, so its certificate is not verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        return context.wrap_socket(connection)
    except BaseException:
        connection.close()
        raise


class RedisError(Exception):
    """The server answered with an error, such as `NOAUTH Authentication required.`"""


class RedisClient(AbstractContextManager["RedisClient"]):
    """One connection. Raises OSError if the server cannot be reached or does not answer."""

    def __init__(
        self, host: str, port: int, password: str = "", timeout_s: float = TIMEOUT_S, *, encrypted: bool = False
    ) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        if encrypted:
            self._socket = encrypt_connection(self._socket)
        self._answers: BinaryIO = self._socket.makefile("rb")
        try:
            if password:
                self.send_command("AUTH", password)
        except BaseException:
            self.close()
            raise

    def send_command(self, *arguments: str) -> Reply:
        """Sends a command and returns its reply. Raises RedisError."""
        parts = [argument.encode() for argument in arguments]
        command = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self._socket.sendall(b"*%d\r\n%s" % (len(parts), command))
        return self._read_reply()

    def read_section(self, section: str) -> dict[str, str]:
        """The fields of a section of INFO."""
        text = self.send_command("INFO", section)
        assert isinstance(text, str)
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def _read_reply(self) -> Reply:
        line = self._answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("the server closed the connection")
        kind, text = line[:1], line[1:-2].decode(errors="replace")
        if kind == b"-":
            raise RedisError(text)
        if kind == b"+":
            return text
        if kind == b":":
            return int(text)
        if kind == b"*":
            return [self._read_reply() for _ in range(int(text))]
        if kind != b"$":
            raise RedisError(f"the answer is not in Redis's protocol: {line[:40]!r}")
        size = int(text)
        return None if size < 0 else self._answers.read(size + 2)[:-2].decode(errors="replace")

    def close(self) -> None:
        """Closes the connection."""
        self._answers.close()
        self._socket.close()

    def __exit__(self, *_: object) -> None:
        self.close()
