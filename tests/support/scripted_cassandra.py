"""An in-memory, single-node Cassandra that executes the statements of cassandra-stress, with answers that follow a
script.

Frames: Apache Cassandra's native_protocol_v4.spec and native_protocol_v5.spec. Every request is recorded, so that a
test can compare the client's figures with the requests that arrived.
"""

from __future__ import annotations

import re
import struct
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scripted_relay import Fault, Line, Log, Scripted

AUTH_CHALLENGE, WARNING = 14, 0x08
ERROR, STARTUP, READY, AUTHENTICATE, OPTIONS, SUPPORTED, QUERY, RESULT = 0, 1, 2, 3, 5, 6, 7, 8
PREPARE, EXECUTE, REGISTER, EVENT, BATCH, AUTH_RESPONSE, AUTH_SUCCESS = 9, 10, 11, 12, 13, 15, 16
SERVER_ERROR, PROTOCOL_ERROR, BAD_CREDENTIALS, INVALID = 0x0000, 0x000A, 0x0100, 0x2200
UNAVAILABLE, OVERLOADED, WRITE_TIMEOUT, READ_TIMEOUT, UNPREPARED = 0x1000, 0x1001, 0x1100, 0x1200, 0x2500
# Fields after the message of an ERROR (section 9 of version 4).
ERROR_FIELDS = {
    UNAVAILABLE: struct.pack(">Hii", 1, 1, 0),
    WRITE_TIMEOUT: struct.pack(">HiiH6s", 1, 0, 1, 6, b"SIMPLE"),
    READ_TIMEOUT: struct.pack(">Hii?", 1, 0, 1, False),
}
TEXT, BLOB, BOOLEAN, COUNTER, UUID, INET, INT, BIGINT = 0x000D, 0x0003, 0x0004, 0x0005, 0x000C, 0x0010, 0x0009, 0x0002
SET_OF_TEXT, MAP_OF_TEXT = (0x0022, TEXT), (0x0021, TEXT, TEXT)
Type = int | tuple[int, ...]
Column = tuple[str, Type]
Message = tuple[int, bytes]
# `close`, `reset`, `half` (half an answer, then the end), `silence`, `stray` (preceded by an answer that belongs to no
# request), `twice`, `warned` (the answer has a warning) and `corrupt` (its last byte is changed).
Answer = Message | str | None
NAMES = [f"C{at}" for at in range(5)]
# The name of the partition key in predefined statements, and in statements of profiles.
KEYS = ("KEY", "key")
METADATA = b"metadata-1"
# The number of a stream that no request uses: clients have fewer requests in flight.
UNUSED_STREAM = 0x7000
# Flags of a query (section 4.1.4 of version 4).
PAGE_SIZE, PAGING_STATE, TIMESTAMP = 0x04, 0x08, 0x20


def string(text: str) -> bytes:
    """A [string]."""
    return short_bytes(text.encode())


def short_bytes(data: bytes) -> bytes:
    """A [short bytes]."""
    return struct.pack(">H", len(data)) + data


def cell(data: bytes | None) -> bytes:
    """A [bytes]; None is null."""
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def text_set(*values: str) -> bytes:
    """A set<text>; with alternating keys and values and half the count, a map<text, text>."""
    return struct.pack(">i", len(values)) + b"".join(cell(value.encode()) for value in values)


def multimap(options: Mapping[str, str]) -> bytes:
    """A [string multimap] with one value for each key."""
    pairs = b"".join(string(name) + struct.pack(">H", 1) + string(value) for name, value in options.items())
    return struct.pack(">H", len(options)) + pairs


def error(code: int, message: str = "scripted", fields: bytes | None = None) -> Message:
    """An ERROR, with the fields that its code requires."""
    return ERROR, struct.pack(">i", code) + string(message) + (fields or ERROR_FIELDS.get(code, b""))


def columns_of(columns: list[Column], table: str) -> bytes:
    """The columns of a metadata block that has one table."""
    block = string("keyspace1") + string(table)
    for name, kind in columns:
        kinds = kind if isinstance(kind, tuple) else (kind,)
        block += string(name) + struct.pack(f">{len(kinds)}H", *kinds)
    return block


def rows(
    columns: list[Column],
    values: list[list[bytes | None]],
    table: str = "standard1",
    *,
    has_metadata: bool = True,
    next_page: bytes | None = None,
) -> Message:
    """A RESULT of rows; `next_page` states that more rows follow."""
    flags = (1 if has_metadata else 4) | (2 if next_page is not None else 0)
    body = struct.pack(">iii", 2, flags, len(columns)) + (b"" if next_page is None else cell(next_page))
    body += columns_of(columns, table) if has_metadata else b""
    return RESULT, body + struct.pack(">i", len(values)) + b"".join(cell(value) for row in values for value in row)


VOID: Message = (RESULT, struct.pack(">i", 1))


@dataclass(frozen=True)
class Statement:
    """A prepared statement of cassandra-stress."""

    text: str
    id: bytes

    @property
    def table(self) -> str:
        return "counter1" if "counter1" in self.text else "standard1"

    @property
    def kind(self) -> str:
        """Its operation: READ, WRITE, COUNTER_READ or COUNTER_WRITE."""
        verb = "READ" if self.text.startswith("SELECT") else "WRITE"
        return f"COUNTER_{verb}" if self.table == "counter1" else verb

    @property
    def markers(self) -> list[str]:
        """The column of each bind marker (`?`)."""
        return re.findall(r'"?(\w+)"?\s*=\s*(?:"?\w+"?\s*\+\s*)?\?', self.text)

    @property
    def result_columns(self) -> list[str]:
        """The columns that a SELECT returns; empty for other statements."""
        match = re.match(r"SELECT (.*?) FROM", self.text)
        if match is None:
            return []
        all_names = NAMES if self.table == "counter1" else ["key", *NAMES]
        return all_names if match[1] == "*" else [name.strip('"') for name in match[1].split(",")]

    def column(self, name: str) -> Column:
        """A column with its type."""
        if name.startswith("WRITETIME"):
            return name, BIGINT
        return name, BLOB if name in KEYS or self.table == "standard1" else COUNTER


@dataclass
class Execution:
    """One EXECUTE: its number from 0, its statement and values, its arrival on the monotonic clock, its timestamp."""

    number: int
    statement: Statement
    values: Mapping[str, bytes]
    received: float
    stamp_us: int

    @property
    def key(self) -> bytes:
        return next(self.values[name] for name in KEYS if name in self.values)

    def refuse_statement(self) -> Message:
        """UNPREPARED: the server has forgotten the statement."""
        return error(UNPREPARED, "forgotten", short_bytes(self.statement.id))


Script = Callable[[Execution], Answer]


class FakeCassandra(Scripted):
    """One node.

    `script` answers an EXECUTE, and `refuse` the text of a QUERY or PREPARE; None selects the correct answer.
    """

    def __init__(self, script: Script | None = None, *faults: Fault, versions: tuple[int, ...] = (4,)) -> None:
        super().__init__(*faults)
        self.script = script
        self.versions = versions
        self.refuse: Callable[[str], Answer] | None = None
        self.delay_s = 0.0
        # The delay of the answer to each PREPARE, and the largest number of such requests in flight on a connection.
        self.prepare_delay_s = 0.0
        self.preparing_max = 0
        self.login: tuple[str, str] | None = None
        # Whether the login requires more than a user name and a password.
        self.has_challenge = False
        # Whether connections are accepted, but no request is answered.
        self.is_mute = False
        self.peers: list[str] = []
        self.prepared: dict[bytes, Statement] = {}
        self.rows: dict[bytes, dict[str, bytes]] = {}
        self.stamps_us: dict[bytes, int] = {}
        self.counters: dict[bytes, Counter[str]] = {}
        # Requests in order of arrival: bodies of STARTUP, texts of QUERY and PREPARE, executions; then the number of
        # executions by operation.
        self.startups: list[bytes] = []
        self.queries: list[str] = []
        self.prepares: list[str] = []
        self.executions: list[Execution] = []
        self.kinds: Counter[str] = Counter()
        # Rows in batches, which are not stored.
        self.batched = 0
        # Versions of the protocol in which statements were executed.
        self.spoken: set[int] = set()
        self.listeners: list[CassandraLine] = []
        # The connections on which statements were executed.
        self.executing: set[CassandraLine] = set()

    def line(self) -> Line:
        return CassandraLine(self)

    def announce(self, body: bytes) -> None:
        """Sends an EVENT to every connection that registered; call it from a script."""
        for line in self.listeners:
            line.send(-1, (EVENT, body))

    def execute(self, execution: Execution, *, has_metadata: bool) -> Message:
        """Executes a statement."""
        statement = execution.statement
        cells = {name: value for name, value in execution.values.items() if name not in KEYS}
        if statement.kind == "WRITE":
            if execution.stamp_us >= self.stamps_us.get(execution.key, 0):
                self.rows[execution.key], self.stamps_us[execution.key] = cells, execution.stamp_us
            return VOID
        if statement.kind == "COUNTER_WRITE":
            increments = {name: int.from_bytes(value, signed=True) for name, value in cells.items()}
            self.counters.setdefault(execution.key, Counter()).update(increments)
            return VOID
        row: Mapping[str, bytes] | None = self.rows.get(execution.key)
        if row is not None:
            stamp = struct.pack(">q", self.stamps_us[execution.key])
            row = {**row, "key": execution.key, **{f'WRITETIME("{name}")': stamp for name in row}}
        if statement.kind == "COUNTER_READ":
            counts = self.counters.get(execution.key)
            row = None if counts is None else {name: struct.pack(">q", count) for name, count in counts.items()}
        columns = [statement.column(name) for name in statement.result_columns]
        values: list[list[bytes | None]] = [] if row is None else [[row.get(name) for name, _ in columns]]
        return rows(columns, values, statement.table, has_metadata=has_metadata)

    def query(self, text: str) -> Message:
        """Answers a statement that is not prepared."""
        match = re.match(r'SELECT (.*?) FROM ([\w."]+)', text)
        if match is None:
            # CREATE, USE and TRUNCATE: cassandra-stress does not read their answers.
            return VOID
        names, table = match[1].split(", "), match[2]
        if table == "system.local":
            described = [describe_node("127.0.0.1", 1)]
        elif table == "system.peers":
            described = [describe_node(address, at) for at, address in enumerate(self.peers, 2)]
        elif table == "system_schema.columns":
            described = [describe_column(name) for name in ("key", *NAMES)]
        elif match[1] == "key" and text.endswith("LIMIT 1"):
            described = [{"key": (BLOB, key)} for key in list(self.rows)[:1]]
        elif match[1] == "key":
            key = bytes.fromhex(text.partition("key = 0x")[2])
            described = [{"key": (BLOB, key)}] if key in self.rows else []
        elif table == "system_schema.keyspaces":
            strategy = text_set("class", "org.apache.cassandra.locator.SimpleStrategy", "replication_factor", "1")
            replication = struct.pack(">i", 2) + strategy[4:]
            described = [{"durable_writes": (BOOLEAN, b"\1"), "replication": (MAP_OF_TEXT, replication)}]
        elif table == "system_schema.tables":
            strategy = text_set("class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy")
            described = [{"compaction": (MAP_OF_TEXT, struct.pack(">i", 1) + strategy[4:])}]
        else:
            return error(INVALID, f"unconfigured table {table}")
        types: list[Column] = [(name, described[0][name][0] if described else TEXT) for name in names]
        return rows(types, [[node[name][1] for name in names] for node in described], table)


def describe_column(name: str) -> dict[str, tuple[Type, bytes]]:
    """A column's row in `system_schema.columns`."""
    kind, position = ("partition_key", 0) if name in KEYS else ("regular", -1)
    return {
        "column_name": (TEXT, name.encode()),
        "kind": (TEXT, kind.encode()),
        "position": (INT, struct.pack(">i", position)),
        "type": (TEXT, b"blob"),
    }


def describe_node(address: str, number: int) -> dict[str, tuple[Type, bytes]]:
    """A node's row in `system.local` or `system.peers`."""
    raw = bytes(map(int, address.split(".")))
    return {
        "cluster_name": (TEXT, b"scripted"),
        "data_center": (TEXT, b"dc1"),
        "rack": (TEXT, b"rack1"),
        "release_version": (TEXT, b"4.1.0"),
        "partitioner": (TEXT, b"org.apache.cassandra.dht.Murmur3Partitioner"),
        "tokens": (SET_OF_TEXT, text_set(str(number * 1000))),
        "host_id": (UUID, uuid.UUID(int=number).bytes),
        "schema_version": (UUID, uuid.UUID(int=0).bytes),
        "rpc_address": (INET, raw),
        "peer": (INET, raw),
    }


class CassandraLine(Line):
    """One connection."""

    owner: FakeCassandra

    def __init__(self, owner: FakeCassandra) -> None:
        super().__init__(owner)
        self.received = b""
        # The envelopes taken from segments. Protocol 5 uses segments after STARTUP.
        self.frames = b""
        self.version = 4
        self.segments = False
        self.preparing = 0

    def data_received(self, data: bytes) -> None:
        self.received += data
        while self._take_segment() if self.segments else self._move_bytes():
            while self._take_frame():
                pass

    def _move_bytes(self) -> bool:
        length = len(self.received)
        self.frames, self.received = self.frames + self.received, b""
        return length > 0

    def _take_segment(self) -> bool:
        header = int.from_bytes(self.received[:3], "little")
        end = 6 + (header & 0x1FFFF)
        if len(self.received) < end + 4:
            return False
        self.frames += self.received[6:end]
        self.received = self.received[end + 4 :]
        return True

    def _take_frame(self) -> bool:
        if len(self.frames) < 9:
            return False
        version, _, stream, opcode, length = struct.unpack(">BBhBi", self.frames[:9])
        if len(self.frames) < 9 + length:
            return False
        body, self.frames = self.frames[9 : 9 + length], self.frames[9 + length :]
        self._serve(version, stream, opcode, body)
        return True

    def frame(self, stream: int, message: Message, flags: int = 0) -> bytes:
        """The bytes of an answer's frame."""
        opcode, body = message
        data = struct.pack(">BBhBi", 0x80 | self.version, flags, stream, opcode, len(body)) + body
        if not self.segments:
            return data
        header = (len(data) | 1 << 17).to_bytes(3, "little")
        # The checksum begins with four fixed bytes (native_protocol_v5.spec, section 2).
        checksum = zlib.crc32(data, zlib.crc32(b"\xfa\x2d\x55\xca"))
        return header + crc24(header).to_bytes(3, "little") + data + checksum.to_bytes(4, "little")

    def send(self, stream: int, message: Message) -> None:
        """Sends an answer, subject to the server's faults."""
        self.answer(self.frame(stream, message), Log(time.monotonic()))

    def list_options(self) -> Mapping[str, str]:
        """The options that the server supports on this connection."""
        return {}

    def _serve(self, version: int, stream: int, opcode: int, body: bytes) -> None:
        owner = self.owner
        if owner.is_mute:
            return
        if version not in owner.versions:
            self.version = max(owner.versions)
            self.send(stream, error(PROTOCOL_ERROR, f"Invalid or unsupported protocol version ({version})"))
            self.transport.close()
            return
        self.version = version
        if opcode == OPTIONS:
            self.send(stream, (SUPPORTED, multimap(self.list_options())))
        elif opcode == STARTUP:
            owner.startups.append(body)
            self.send(stream, (READY, b"") if owner.login is None else (AUTHENTICATE, string("PasswordAuthenticator")))
            self.segments = version >= 5
        elif opcode == AUTH_RESPONSE and owner.has_challenge:
            self.send(stream, (AUTH_CHALLENGE, cell(b"another password")))
        elif opcode == AUTH_RESPONSE and owner.login is not None:
            is_right = body[4:].decode() == "\0".join(("", *owner.login))
            self.send(stream, (AUTH_SUCCESS, cell(None)) if is_right else error(BAD_CREDENTIALS, "wrong password"))
        elif opcode == REGISTER:
            owner.listeners.append(self)
            self.send(stream, (READY, b""))
        elif opcode in (QUERY, PREPARE):
            text = body[4 : 4 + int.from_bytes(body[:4])].decode()
            (owner.queries if opcode == QUERY else owner.prepares).append(text)
            right = owner.query if opcode == QUERY else self._prepare
            answer = owner.refuse(text) if owner.refuse else None
            if opcode == QUERY or not owner.prepare_delay_s:
                self._respond(stream, answer, lambda: right(text))
                return
            self.preparing += 1
            owner.preparing_max = max(owner.preparing_max, self.preparing)

            def respond() -> None:
                self.preparing -= 1
                self._respond(stream, answer, lambda: right(text))

            owner._loop.call_later(owner.prepare_delay_s, respond)
        elif opcode == BATCH:
            owner.batched += int.from_bytes(body[1:3])
            self._respond(stream, None, lambda: VOID)
        elif opcode == EXECUTE:
            self._execute(stream, body)
        else:
            self.send(stream, error(PROTOCOL_ERROR, f"opcode {opcode}"))

    def _prepare(self, text: str) -> Message:
        statement = Statement(text, f"{zlib.crc32(text.encode()):016x}".encode())
        self.owner.prepared[statement.id] = statement
        markers = [statement.column(name) for name in statement.markers]
        selected = [statement.column(name) for name in statement.result_columns]
        body = struct.pack(">i", 4) + short_bytes(statement.id) + (short_bytes(METADATA) if self.version >= 5 else b"")
        key = [at for at, name in enumerate(statement.markers) if name in KEYS]
        body += struct.pack(f">iii{len(key)}H", 1, len(markers), len(key), *key)
        body += columns_of(markers, statement.table)
        body += struct.pack(">ii", 1 if selected else 4, len(selected))
        return RESULT, body + (columns_of(selected, statement.table) if selected else b"")

    def _execute(self, stream: int, body: bytes) -> None:
        owner = self.owner
        at = 2 + int.from_bytes(body[:2])
        statement = owner.prepared[body[2:at]]
        if self.version >= 5:
            at += 2 + int.from_bytes(body[at : at + 2])
        width = 4 if self.version >= 5 else 1
        flags, at = int.from_bytes(body[at + 2 : at + 2 + width]), at + 2 + width + 2
        values = {}
        for name in statement.markers:
            length = int.from_bytes(body[at : at + 4], signed=True)
            values[name] = body[at + 4 : at + 4 + length]
            at += 4 + max(length, 0)
        at += 4 if flags & PAGE_SIZE else 0
        at += 4 + int.from_bytes(body[at : at + 4]) if flags & PAGING_STATE else 0
        stamp_us = int.from_bytes(body[at : at + 8], signed=True) if flags & TIMESTAMP else 0
        execution = Execution(len(owner.executions), statement, values, time.monotonic(), stamp_us)
        owner.zero = execution.received if owner.zero is None else owner.zero
        owner.executions.append(execution)
        owner.kinds[statement.kind] += 1
        owner.spoken.add(self.version)
        owner.executing.add(self)
        answer = owner.script(execution) if owner.script else None

        def respond() -> None:
            self._respond(stream, answer, lambda: owner.execute(execution, has_metadata=not flags & 2))

        owner._loop.call_later(owner.delay_s, respond) if owner.delay_s else respond()

    def _respond(self, stream: int, answer: Answer, right: Callable[[], Message]) -> None:
        if self.dead or answer == "silence":
            return
        if answer == "reset":
            self.reset()
            return
        message = answer if isinstance(answer, tuple) else right()
        if answer == "half":
            data = self.frame(stream, message)
            self.transport.write(data[: len(data) // 2])
        if answer in ("half", "close"):
            self.dead = True
            self.transport.close()
            return
        if answer == "warned":
            warned = (message[0], struct.pack(">H", 1) + string("a scripted warning") + message[1])
            self.transport.write(self.frame(stream, warned, WARNING))
            return
        if answer == "corrupt":
            data = self.frame(stream, message)
            self.transport.write(data[:-1] + bytes([data[-1] ^ 1]))
            return
        if answer == "stray":
            self.send(UNUSED_STREAM, message)
        for _ in range(2 if answer == "twice" else 1):
            self.send(stream, message)


def crc24(data: bytes) -> int:
    """The checksum of a segment's header (native_protocol_v5.spec, section 2)."""
    crc = 0x875060
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc = crc << 1 ^ (0x1974F0B if crc & 0x800000 else 0)
    return crc & 0xFFFFFF
