"""A CQL client that can only query a node's state and create a table: it has no prepared statements or bound values.

It uses version 4 of the native protocol (Apache Cassandra's native_protocol_v4.spec), which Cassandra 3.0 to 5.0
support.
"""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from io import BytesIO

from loadstone.systems.base.system import SystemsError

Value = str | int | float | bool | bytes | None | list["Value"]
Row = Mapping[str, Value]

REQUEST, RESPONSE = 0x04, 0x84
ERROR, STARTUP, READY, AUTHENTICATE, QUERY, RESULT, AUTH_RESPONSE, AUTH_SUCCESS = 0, 1, 2, 3, 7, 8, 0x0F, 0x10
ROWS = 2
CONSISTENCY = {"ONE": 1, "TWO": 2, "THREE": 3, "QUORUM": 4, "ALL": 5, "LOCAL_QUORUM": 6, "LOCAL_ONE": 0x0A}
# The error codes, from section 9 of the specification.
NAMES = {
    0x0000: "ServerError",
    0x000A: "ProtocolError",
    0x0100: "BadCredentials",
    0x1000: "Unavailable",
    0x1001: "Overloaded",
    0x1002: "IsBootstrapping",
    0x1100: "WriteTimeout",
    0x1200: "ReadTimeout",
    0x1300: "ReadFailure",
    0x2000: "SyntaxError",
    0x2100: "Unauthorized",
    0x2200: "Invalid",
    0x2300: "ConfigError",
    0x2400: "AlreadyExists",
}


class UnreachableError(SystemsError):
    """A node does not answer: the connection failed, or the answer did not arrive in time."""


class RefusedError(SystemsError):
    """A node answered with an error."""

    def __init__(self, address: str, name: str, message: str, alive: int | None = None) -> None:
        super().__init__(f"{address} answered {name}: {message}", "see the log of that node")
        self.name = name
        # For the error `Unavailable`: the number of required replicas that the node considers alive.
        self.alive = alive


class Cql(AbstractContextManager["Cql"]):
    """A logged-in connection to one node. Raises UnreachableError and RefusedError, and so does `run_query`."""

    def __init__(
        self, host: str, port: int, credentials: tuple[str, str] | None = None, timeout_s: float = 5.0
    ) -> None:
        self.address = f"{host}:{port}"
        self.timeout_s = timeout_s
        try:
            self.socket = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise self.unreachable_error(error) from error
        self.answers = self.socket.makefile("rb")
        try:
            self.log_in(credentials)
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self.answers.close()
        self.socket.close()

    def log_in(self, credentials: tuple[str, str] | None) -> None:
        """Starts the session, with a password if the server requires one."""
        opcode, body = self.exchange_frames(
            STARTUP, struct.pack(">H", 1) + encode_string("CQL_VERSION") + encode_string("3.0.0")
        )
        if opcode == AUTHENTICATE:
            if credentials is None:
                wants = Body(body).read_string()
                raise RefusedError(self.address, "BadCredentials", f"{wants} requires a user name and a password")
            # SASL PLAIN (RFC 4616) without an authorization identity.
            token = "\0".join(("", *credentials)).encode()
            opcode, _ = self.exchange_frames(AUTH_RESPONSE, struct.pack(">i", len(token)) + token)
        if opcode not in (READY, AUTH_SUCCESS):
            raise RefusedError(self.address, "ProtocolError", f"message {opcode:#04x} at the start")

    def run_query(self, text: str, consistency: str = "ONE") -> list[Row]:
        """Runs a statement; only a SELECT returns rows."""
        encoded = text.encode()
        body = struct.pack(">i", len(encoded)) + encoded + struct.pack(">HB", CONSISTENCY[consistency], 0)
        opcode, answer = self.exchange_frames(QUERY, body)
        if opcode != RESULT:
            raise RefusedError(self.address, "ProtocolError", f"message {opcode:#04x} instead of a result")
        return Body(answer).read_rows()

    def exchange_frames(self, opcode: int, body: bytes) -> tuple[int, bytes]:
        """Sends a frame; returns the opcode and the body of the answer."""
        try:
            self.socket.sendall(struct.pack(">BBhBi", REQUEST, 0, 0, opcode, len(body)) + body)
            version, flags, _, answer, length = struct.unpack(">BBhBi", self.receive_exactly(9))
            # The listener may be a different program, whose answers have no length field.
            if version != RESPONSE or flags & 0x01:
                raise RefusedError(self.address, "ProtocolError", f"a frame begins with {version:#04x} {flags:#04x}")
            content = self.receive_exactly(length)
        except OSError as error:
            raise self.unreachable_error(error) from error
        # Warnings precede the result. They are skipped, because the server's log contains them, too.
        reader = Body(content)
        if flags & 0x08:
            for _ in range(reader.read_number(">H")):
                reader.read_string()
        if answer == ERROR:
            raise reader.read_error(self.address)
        return answer, reader.read()

    def receive_exactly(self, length: int) -> bytes:
        """Receives exactly this number of bytes. Raises OSError."""
        content = self.answers.read(length)
        if len(content) < length:
            raise ConnectionError("it closed the connection")
        return content

    def unreachable_error(self, error: OSError) -> UnreachableError:
        """The error for a failed system call."""
        reason = f"timeout after {self.timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
        return UnreachableError(f"{self.address} does not answer CQL: {reason}", "check that it is up, and see its log")


def encode_string(text: str) -> bytes:
    """Encodes a [string] of the protocol."""
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded


class Body(BytesIO):
    """The body of a message, which is read from its beginning."""

    def read_number(self, form: str) -> int:
        """The next number; `form` is its format in `struct`'s notation."""
        (value,) = struct.unpack(form, self.read(struct.calcsize(form)))
        return int(value)

    def read_string(self) -> str:
        """A [string] of the protocol."""
        return self.read(self.read_number(">H")).decode()

    def read_cell(self) -> bytes | None:
        """A [bytes] of the protocol; None is null."""
        length = self.read_number(">i")
        return None if length < 0 else self.read(length)

    def read_error(self, address: str) -> RefusedError:
        """Reads the body of an ERROR message."""
        code = self.read_number(">i")
        name, message, alive = NAMES.get(code, f"{code:#06x}"), self.read_string(), None
        if name == "Unavailable":
            self.read(2 + 4)
            alive = self.read_number(">i")
        return RefusedError(address, name, message, alive)

    def read_rows(self) -> list[Row]:
        """Reads the body of a RESULT message without paging."""
        if self.read_number(">i") != ROWS:
            return []
        flags, columns = self.read_number(">i"), self.read_number(">i")
        if flags & 0x01:
            self.read_string(), self.read_string()
        names, decoders = [], []
        for _ in range(columns):
            if not flags & 0x01:
                self.read_string(), self.read_string()
            names.append(self.read_string())
            decoders.append(self.read_decoder())
        count = self.read_number(">i")
        columns_read = list(zip(names, decoders, strict=True))
        return [{name: decode_cell(self.read_cell(), decode) for name, decode in columns_read} for _ in range(count)]

    def read_decoder(self) -> Callable[[bytes], Value]:
        """The decoder for the type in an [option]. Raises SystemsError for a type that the lab's queries do not use."""
        kind = self.read_number(">H")
        match kind:
            case 0x0001 | 0x000A | 0x000D:
                return bytes.decode
            case 0x0003:
                return bytes
            case 0x0002 | 0x0005 | 0x0009:
                return lambda raw: int.from_bytes(raw, signed=True)
            case 0x0004:
                return lambda raw: raw != b"\0"
            case 0x000C | 0x000F:
                return lambda raw: str(uuid.UUID(bytes=raw))
            case 0x0020 | 0x0022:
                return decode_elements(self.read_decoder())
        raise SystemsError(
            f"a column has CQL type {kind:#06x}, which is not supported", "select only the columns you need"
        )


def decode_cell(raw: bytes | None, decode: Callable[[bytes], Value]) -> Value:
    """The decoded value of a cell; None for null."""
    return None if raw is None else decode(raw)


def decode_elements(decode: Callable[[bytes], Value]) -> Callable[[bytes], Value]:
    """A decoder for lists and sets."""

    def read(raw: bytes) -> Value:
        body = Body(raw)
        return [decode_cell(body.read_cell(), decode) for _ in range(body.read_number(">i"))]

    return read
