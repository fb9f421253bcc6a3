"""The transport that delivers the lab's requests to the agents on hosts, and the agents' replies to the lab. Ray is one
transport; tests use scripted transports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from loadstone.fleet.clock import ClockWatch, Reading


@dataclass(frozen=True)
class Host:
    """A host of the cluster."""

    # The host name, which is unique in the fleet and part of file names.
    name: str
    # The transport's identifier for the host.
    node: str
    address: str
    labels: Mapping[str, str] = field(default_factory=dict)
    is_head: bool = False


@dataclass
class Link:
    """The lab's knowledge about one host."""

    host: Host
    number: int
    clock: ClockWatch = field(default_factory=ClockWatch)
    heard_at: float = 0.0
    # Whether an agent is running there, as far as the lab knows.
    is_open: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """A reply from an agent, or the reason why there is none."""

    # The host's index in `Transport.hosts`.
    host: int
    sent_ns: int
    returned_ns: int
    body: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def reading(self) -> Reading | None:
        """The reading of the host's clock that this round trip provides."""
        if self.body is None:
            return None
        return Reading(self.sent_ns, self.body["received_ns"], self.body["replied_ns"], self.returned_ns)


class Transport(Protocol):
    """Delivers requests to the agents on hosts."""

    @property
    def hosts(self) -> Sequence[Host]:
        """Every host that was in the cluster when the transport was opened."""

    def open(self, host: int) -> None:
        """Starts an agent on a host, in place of any earlier agent. Does not wait: the first reply shows success."""

    def send(self, host: int, request: Mapping[str, Any]) -> None:
        """Sends a request. `receive` returns the reply, if there is one."""

    def ship(self, host: int, path: Path, sha256: str) -> None:
        """Sends a program to an agent, which installs it. `receive` returns the reply."""

    def receive(self, seconds: float) -> Sequence[Reply]:
        """The replies that have arrived; waits for at most this time."""

    def close(self) -> None:
        """Stops every agent."""
