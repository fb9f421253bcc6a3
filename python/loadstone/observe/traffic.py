"""Traffic: the bytes that each server sent and received over TCP."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.kernel_file import PROC
from loadstone.observe.sockets import Address, Connection, Sockets, list_inodes

# The largest share of a processor that sampling may use; samples become less frequent to stay below it.
SHARE_MAX = 0.02
# The longest wait for the kernel to report closed connections: a server on a busy host may close its side late.
LATE_SECONDS = 2.0
NOBODY = ""


@dataclass(slots=True)
class Bytes:
    """The bytes received and sent."""

    received: int = 0
    sent: int = 0


class Traffic:
    """Adds up the bytes that the servers' connections carry from the first sample onwards."""

    def __init__(self, addresses: Mapping[str, Address | None], proc: Path = PROC) -> None:
        """`addresses` contains the address that clients use for each server, keyed by the server's name."""
        self.totals = {name: Bytes() for name in addresses}
        self._addresses = {address: name for name, address in addresses.items() if address is not None}
        self._proc = proc
        self._sockets = Sockets()
        # The server of each connection, and the bytes carried up to the last sample, both keyed by cookie.
        self._owners: dict[int, str] = {}
        self._seen: dict[int, Bytes] = {}
        self._due = 0.0
        self._begun = False
        # Whether the kernel has answered all queries up to the last sample.
        self.able = self._sockets.is_able

    def take_sample(self, pids: Mapping[str, Sequence[int]], *, last: bool = False) -> None:
        """Adds the bytes carried since the last sample; `pids` contains the processes of each server."""
        if time.monotonic() < self._due and not last:
            return
        # On a busy host, a sample takes much longer than its CPU time.
        start = time.thread_time()
        # In this order, a connection that is closed between the two calls is in both lists, rather than in neither.
        there = list(self._sockets.list_connections())
        ended = self._list_ended({connection.cookie for connection in there}, last=last)
        for connection in there:
            # A connection to a server's address belongs to that server, even before the process that will serve it
            # exists.
            if connection.cookie not in self._owners and connection.local in self._addresses:
                self._owners[connection.cookie] = self._addresses[connection.local]
        new = [connection for connection in there if connection.inode and connection.cookie not in self._owners]
        if new:
            every = ((name, pid) for name, members in pids.items() for pid in members)
            owned = {inode: name for name, pid in every for inode in list_inodes(pid, self._proc)}
            self._owners |= {connection.cookie: owned.get(connection.inode, NOBODY) for connection in new}
        for connection in there:
            self._add_connection(connection, self._owners.get(connection.cookie, NOBODY))
        for connection in ended:
            # A connection that was opened and closed between two samples is identified by its address.
            self._add_connection(
                connection, self._owners.pop(connection.cookie, self._addresses.get(connection.local, NOBODY))
            )
            self._seen.pop(connection.cookie, None)
        gone = self._owners.keys() - {connection.cookie for connection in there}
        for cookie in gone:
            # The kernel may still report the final bytes, so only connections of other processes are forgotten.
            if self._owners[cookie] == NOBODY:
                del self._owners[cookie]
                self._seen.pop(cookie, None)
        self._begun = True
        self.able = self._sockets.is_able
        self._due = time.monotonic() + (time.thread_time() - start) / SHARE_MAX

    def close(self) -> None:
        """Closes the sockets."""
        self._sockets.close()

    def _list_ended(self, there: Container[int], *, last: bool) -> list[Connection]:
        """The closed connections. The kernel reports them with a delay, so the last sample waits for the reports."""
        ended_connections = list(self._sockets.list_ended())
        until = time.monotonic() + LATE_SECONDS
        while last and time.monotonic() < until:
            time.sleep(LATE_SECONDS / 100)
            ended_connections += self._sockets.list_ended()
            ended = {connection.cookie for connection in ended_connections}
            if all(cookie in there or cookie in ended for cookie in self._seen):
                break
        return ended_connections

    def _add_connection(self, connection: Connection, owner: str) -> None:
        if owner not in self.totals:
            return
        before = self._seen.get(connection.cookie)
        if before is None and not self._begun:
            before = Bytes(connection.received, connection.sent)
        total, before = self.totals[owner], before or Bytes()
        total.received += max(connection.received - before.received, 0)
        total.sent += max(connection.sent - before.sent, 0)
        self._seen[connection.cookie] = Bytes(connection.received, connection.sent)
