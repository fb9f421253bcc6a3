"""The runner's interface to a fleet, which takes the specs of segments and returns the segments' events.

    with fleet.launch(split_spec(spec, engines), listener) as running:
        for part, event in running.events():
            ...

`loadstone.fleet.local` implements the interface for this machine, and `loadstone.fleet.remote` for many hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from loadstone.engine.events import Event, Note
from loadstone.engine.trial import EngineError, Spec
from loadstone.fleet.spread import SpreadSystem
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value

# A function that is called with a part's number and each unparsed event line.
LineListener = Callable[[int, str], object]
# A part's number and its next event, or an error in place of the summary if the part ended without a summary.
PartEvent = tuple[int, Event | EngineError]


@dataclass(frozen=True)
class Part:
    """Engines whose events arrive as one stream: one engine on this machine, or all engines on a host."""

    # The name in messages, such as `segment 1/3` or `host clients-1`.
    title: str
    # Distinguishes the names of this part's files.
    stem: str
    specs: Sequence[Spec]
    # The pid of the engine, if the engine runs on this machine.
    pid: int | None = None


@dataclass(frozen=True)
class Observations:
    """The figures, facts and notes of a launch's hosts, the number of segments lost on surviving hosts, and the exits
    of commands, keyed by part."""

    values: Sequence[Value] = ()
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    lost: int = 0
    exits: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


class Running(Protocol):
    """The engines of one launch."""

    @property
    def parts(self) -> Sequence[Part]:
        """Every stream of events."""

    def events(
        self, idle: Callable[[], object] | None = None, started: Callable[[int], object] | None = None
    ) -> Iterator[PartEvent]:
        """The events of all parts as they arrive, until the last part ends; `idle` is called about once a second.

        If engines wait for their start (`wait_for_start`), `started` is called with the start, ns since the epoch.
        Raises EngineError if a segment fails before all are ready, because nothing has been measured then.
        """

    def kill(self) -> None:
        """Kills every engine immediately. Any thread may call this."""

    def observations(self) -> Observations:
        """The observations of the hosts. Call this after the last event."""


class Fleet(Protocol):
    """The place where engines run."""

    # The fingerprint of the hosts, for results.
    facts: Mapping[str, Scalar]

    def hosts(self, placement: str) -> Sequence[str]:
        """The names of a placement's hosts."""

    def open_system(self, name: str) -> SpreadSystem:
        """A system whose nodes run on hosts of the fleet. Raises LoadstoneError if no host is reserved for servers."""

    def describe(self) -> Sequence[Mapping[str, Any]]:
        """The hardware, name and role of each host in use except this machine. Raises EngineError for a silent host."""

    def launch(
        self, specs: Sequence[Spec], listener: LineListener, placement: str = ""
    ) -> AbstractContextManager[Running]:
        """Starts an engine for each spec; all engines begin the load at the same instant.

        Leaving the `with` block stops the engines. Raises LoadstoneError if an engine cannot be started.
        """
