"""Traffic: bytes that servers sent and received over TCP, by server, between two samples and in total."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadstone.observe.kernel_file import PROC
from loadstone.observe.sockets import Address, Connection, Sockets, list_inodes

# Samples are less frequent if they would otherwise take more than this share of a processor.
SHARE_MAX = 0.02
# The time that the kernel may need to report the end of a connection.
LATE_SECONDS = 0.2
NOBODY = ""


@dataclass(slots=True)
class Bytes:
    """Received and sent."""

    received: int = 0
    sent: int = 0


class Traffic:
    """Adds up the bytes carried by connections of servers, from the first sample on."""

    def __init__(self, addresses: Mapping[str, Address | None], proc: Path = PROC) -> None:
        """Servers by name, with the address that their clients use."""
        self.totals = {name: Bytes() for name in addresses}
        self._addresses = {address: name for name, address in addresses.items() if address is not None}
        self._proc = proc
        self._sockets = Sockets()
        # By cookie: the connection's server, and the bytes it had carried at the last sample.
        self._owners: dict[int, str] = {}
        self._seen: dict[int, Bytes] = {}
        self._due = 0.0
        self._begun = False
        # Whether the kernel has answered up to the last sample.
        self.able = self._sockets.is_able

    def take_sample(self, pids: Mapping[str, Sequence[int]], *, last: bool = False) -> None:
        """Adds the bytes carried since the last sample; `pids` are each server's processes."""
        start = time.monotonic()
        if start < self._due and not last:
            return
        # In this order, a connection that ends between the two calls is in both lists, not in neither.
        there = list(self._sockets.list_connections())
        ended = self._list_ended({each.cookie for each in there}, last=last)
        for each in there:
            # A connection to a server's address belongs to it, even before the process that will serve it exists.
            if each.cookie not in self._owners and each.local in self._addresses:
                self._owners[each.cookie] = self._addresses[each.local]
        new = [each for each in there if each.inode and each.cookie not in self._owners]
        if new:
            every = ((name, pid) for name, members in pids.items() for pid in members)
            owned = {inode: name for name, pid in every for inode in list_inodes(pid, self._proc)}
            self._owners |= {each.cookie: owned.get(each.inode, NOBODY) for each in new}
        for each in there:
            self._add_connection(each, self._owners.get(each.cookie, NOBODY))
        for each in ended:
            # A connection that was opened and closed between two samples is identified by its address.
            self._add_connection(each, self._owners.pop(each.cookie, self._addresses.get(each.local, NOBODY)))
            self._seen.pop(each.cookie, None)
        gone = self._owners.keys() - {each.cookie for each in there}
        for cookie in gone:
            # Its end may still be reported, with its final bytes, so only connections of other processes are forgotten.
            if self._owners[cookie] == NOBODY:
                del self._owners[cookie]
                self._seen.pop(cookie, None)
        self._begun = True
        self.able = self._sockets.is_able
        now = time.monotonic()
        self._due = now + (now - start) / SHARE_MAX

    def close(self) -> None:
        """Ends it."""
        self._sockets.close()

    def _list_ended(self, there: Container[int], *, last: bool) -> list[Connection]:
        """Ended connections. The kernel reports them with a delay, so the last sample waits for it."""
        found = list(self._sockets.list_ended())
        until = time.monotonic() + LATE_SECONDS
        while last and time.monotonic() < until:
            time.sleep(LATE_SECONDS / 10)
            found += self._sockets.list_ended()
            ended = {each.cookie for each in found}
            if all(cookie in there or cookie in ended for cookie in self._seen):
                break
        return found

    def _add_connection(self, found: Connection, owner: str) -> None:
        if owner not in self.totals:
            return
        before = self._seen.get(found.cookie)
        if before is None and not self._begun:
            before = Bytes(found.received, found.sent)
        total, before = self.totals[owner], before or Bytes()
        total.received += max(found.received - before.received, 0)
        total.sent += max(found.sent - before.sent, 0)
        self._seen[found.cookie] = Bytes(found.received, found.sent)
