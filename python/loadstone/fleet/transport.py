"""The transport between the lab and the agents of hosts: requests out, replies in. Ray is one carrier; tests script
other carriers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from loadstone.fleet.clock import ClockWatch, Reading


@dataclass(frozen=True)
class Host:
    """A host of the cluster."""

    # Unique in the fleet, and part of file names: its host name.
    name: str
    # The carrier's identifier of the host.
    node: str
    address: str
    labels: Mapping[str, str] = field(default_factory=dict)
    is_head: bool = False


@dataclass
class Link:
    """The lab's side of one host."""

    host: Host
    number: int
    clock: ClockWatch = field(default_factory=ClockWatch)
    heard_at: float = 0.0
    # Whether an agent runs there, as far as the lab knows.
    is_open: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """A reply of an agent, or the reason why there is none."""

    # The host's place in `Transport.hosts`.
    host: int
    sent_ns: int
    returned_ns: int
    body: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def reading(self) -> Reading | None:
        """The reading of the host's clock by this round trip."""
        if self.body is None:
            return None
        return Reading(self.sent_ns, self.body["received_ns"], self.body["replied_ns"], self.returned_ns)


class Transport(Protocol):
    """Carries requests to the agents of hosts."""

    @property
    def hosts(self) -> Sequence[Host]:
        """Every host of the cluster when the transport was opened."""

    def open(self, host: int) -> None:
        """Starts an agent on a host, in place of an earlier one. Returns at once; the first reply shows success."""

    def send(self, host: int, request: Mapping[str, Any]) -> None:
        """Sends a request. Its reply comes from `receive`, if one comes."""

    def ship(self, host: int, path: Path, sha256: str) -> None:
        """Sends a program to an agent, which installs it. Its reply comes from `receive`."""

    def receive(self, seconds: float) -> Sequence[Reply]:
        """The replies that have arrived, at the latest after this time. Raises LoadstoneError without a carrier."""

    def close(self) -> None:
        """Ends every agent."""
