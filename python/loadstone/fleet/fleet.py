"""A fleet: the hosts that the engines of a phase run on. The smallest is this machine.

    with fleet.launch(split(spec, engines), listener) as launched:
        for segment, event in launched.events():
            ...

Every trial uses a fleet: with one engine, it is the segment 0/1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from loadstone.engine.events import Event
from loadstone.engine.trial import EngineError, Spec
from loadstone.results.trial_result import Scalar

# Called with a segment's number and each event line of its engine, unparsed.
LineListener = Callable[[int, str], object]
# A segment's number and its next event; an error instead of the summary if it ended without one.
SegmentEvent = tuple[int, Event | EngineError]


class Launched(Protocol):
    """The engines of one phase. Leaving the `with` block ends those still running."""

    @property
    def specs(self) -> Sequence[Spec]:
        """The spec of each engine, by segment."""

    @property
    def pids(self) -> Sequence[int]:
        """The engines' processes on this host, by segment; empty if they run elsewhere."""

    def events(self, idle: Callable[[], object] | None = None) -> Iterator[SegmentEvent]:
        """The events of all segments as they arrive, until the last ends; `idle` is called about once a second.

        Raises EngineError if a segment fails before all are ready, since nothing was measured then.
        """

    def kill(self) -> None:
        """Kills all engines; the events then end with an error for each. Any thread may call this."""


class Fleet(Protocol):
    """Hosts on which engines can be launched."""

    def facts(self) -> Mapping[str, Scalar]:
        """The facts about its hosts that results record."""

    def launch(self, specs: Sequence[Spec], listener: LineListener) -> AbstractContextManager[Launched]:
        """Starts an engine for each spec; all begin the load at the same instant. Raises LoadstoneError."""


def split(spec: Spec, engines: int) -> list[Spec]:
    """The specs of the segments 0/n to (n - 1)/n. Each has the clients, rate and operations of the whole trial."""
    synchronised = {"wait_for_start": True} if engines > 1 else {}
    return [{**spec, **synchronised, **ledger(spec, k), "segment": {"k": k, "n": engines}} for k in range(engines)]


def ledger(spec: Spec, segment: int) -> Spec:
    """Each engine records its writes in its own file, `<file>.<segment>`."""
    return {"ledger": {"file": f"{spec['ledger']['file']}.{segment}"}} if spec.get("ledger") else {}
