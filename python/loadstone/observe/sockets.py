"""Lists this host's TCP connections and the bytes that they carried, using sock_diag(7), which needs no permissions.

The kernel does not count bytes by process. It counts them by connection (tcp_info, since Linux 4.1), reports each
connection's inode, and sends the final counts of a closed connection to subscribers (as for `ss --events`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.kernel_file import PROC, list_names

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, netinet/tcp.h.
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
INET_DIAG_INFO = 2
TCP_DESTROYED = 1 << 0  # SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY, as bits of nl_groups
TCP6_DESTROYED = 1 << 2
# Excludes connections that carry no data: TIME_WAIT, LISTEN, and connections not yet accepted (NEW_SYN_RECV).
STATES = 0xFFF & ~(1 << 6 | 1 << 10 | 1 << 12)
HEADER = struct.Struct("=IHHII")
REQUEST = struct.Struct("=BBBBI48s")
# family, state, timer, retransmits, ports, addresses, interface, cookie, expires, queues, user, inode.
DIAG = struct.Struct("=4B2s2s16s16sIQIIIII")
ATTRIBUTE = struct.Struct("=HH")
# tcpi_bytes_acked and tcpi_bytes_received.
BYTES, BYTES_AT = struct.Struct("=QQ"), 120
RECEIVE_BYTES = 1 << 18
# The buffer size for reports of connections that are closed between two samples, which may be thousands.
EVENTS_BYTES = 4 << 20
MAPPED = bytes(10) + b"\xff\xff"

# An address of four or sixteen bytes, and a port.
Address = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class Connection:
    """One end of a connection; the bytes are counted since the connection was opened."""

    # Unique among all connections since boot.
    cookie: int
    # 0 if no process owns the connection.
    inode: int
    local: Address
    received: int
    sent: int


class Sockets:
    """Queries connections. Connections that the kernel refuses to list are omitted."""

    def __init__(self) -> None:
        self._ask = open_netlink(0)
        self._ends = open_netlink(TCP_DESTROYED | TCP6_DESTROYED)
        if self._ends is not None:
            self._ends.setblocking(False)
            self._ends.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, EVENTS_BYTES)

    @property
    def is_able(self) -> bool:
        """Whether the kernel answers queries."""
        return self._ask is not None

    def list_connections(self) -> Iterator[Connection]:
        """Every open connection; empty once the kernel refuses to list them."""
        if self._ask is None:
            return
        try:
            for family in (socket.AF_INET, socket.AF_INET6):
                request = REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0, STATES, bytes(48))
                flags = NLM_F_REQUEST | NLM_F_DUMP
                header = HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, flags, family, 0)
                self._ask.sendto(header + request, (0, 0))
                yield from self._read_answers(self._ask, family)
        except OSError:
            self._ask.close()
            self._ask = None

    def list_ended(self) -> Iterator[Connection]:
        """Every connection that was closed since the last call, with its final counts."""
        while self._ends is not None:
            try:
                data = self._ends.recv(RECEIVE_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                # More connections were closed than the buffer can hold; the reports that did not fit are lost.
                if error.errno == errno.ENOBUFS:
                    continue
                return
            for kind, _, body in split_messages(data):
                if kind == SOCK_DIAG_BY_FAMILY and (connection := parse_connection(body)):
                    yield connection

    def close(self) -> None:
        """Closes the sockets."""
        for handle in (self._ask, self._ends):
            if handle is not None:
                handle.close()
        self._ask = self._ends = None

    def _read_answers(self, ask: socket.socket, sequence: int) -> Iterator[Connection]:
        while True:
            for kind, number, body in split_messages(ask.recv(RECEIVE_BYTES)):
                if number != sequence:
                    continue
                if kind in (NLMSG_DONE, NLMSG_ERROR):
                    return
                if kind == SOCK_DIAG_BY_FAMILY and (connection := parse_connection(body)):
                    yield connection


def open_netlink(groups: int) -> socket.socket | None:
    """A netlink socket; None if it cannot be opened."""
    try:
        handle = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
    except OSError:
        return None
    try:
        handle.bind((0, groups))
        handle.settimeout(1.0)
    except OSError:
        handle.close()
        return None
    return handle


def split_messages(data: bytes) -> Iterator[tuple[int, int, memoryview]]:
    """The messages in one datagram, each as type, sequence number and body."""
    view, at = memoryview(data), 0
    while at + HEADER.size <= len(data):
        length, kind, _, sequence, _ = HEADER.unpack_from(data, at)
        if length < HEADER.size:
            return
        yield kind, sequence, view[at + HEADER.size : at + length]
        at += (length + 3) & ~3


def parse_connection(body: memoryview) -> Connection | None:
    """The connection in a message from the kernel; None if it has no byte counts."""
    if len(body) < DIAG.size:
        return None
    family, _, _, _, port, _, source, _, _, cookie, _, _, _, _, inode = DIAG.unpack_from(body)
    at = DIAG.size
    while at + ATTRIBUTE.size <= len(body):
        length, kind = ATTRIBUTE.unpack_from(body, at)
        if length < ATTRIBUTE.size:
            return None
        if kind == INET_DIAG_INFO and length >= ATTRIBUTE.size + BYTES_AT + BYTES.size:
            sent, received = BYTES.unpack_from(body, at + ATTRIBUTE.size + BYTES_AT)
            local = (unmap_address(source if family == socket.AF_INET6 else source[:4]), int.from_bytes(port, "big"))
            return Connection(cookie, inode, local, received, sent)
        at += (length + 3) & ~3
    return None


def unmap_address(address: bytes) -> bytes:
    """Converts an IPv4-mapped address to four bytes, for servers that listen on IPv6."""
    return address[12:] if address.startswith(MAPPED) else address


def parse_address(text: str) -> Address | None:
    """Parses an address such as `127.0.0.1:9042`; None if it contains a host name."""
    host, _, port = text.rpartition(":")
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):
            return unmap_address(socket.inet_pton(family, host.strip("[]"))), int(port)
    return None


def list_inodes(pid: int, proc: Path = PROC) -> Iterator[int]:
    """The inodes of the open sockets of a process, if they are visible."""
    for name in list_names(proc / str(pid) / "fd"):
        with contextlib.suppress(OSError, ValueError):
            target = os.readlink(proc / str(pid) / "fd" / name)
            if target.startswith("socket:["):
                yield int(target[8:-1])
