"""A fleet: the hosts on which the engines of a phase run. This machine is the smallest one.

    with fleet.launch(split(spec, engines), listener) as launched:
        for segment, event in launched.events():
            ...

Every trial takes this path: a trial with one engine is the segment 0/1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from loadstone.engine.events import Event
from loadstone.engine.trial import EngineError, Spec
from loadstone.results.trial_result import Scalar

# Called with a segment's number and each event line of its engine, as written.
LineListener = Callable[[int, str], object]
# A segment's number and its next event; an error in place of the summary when it ended without one.
SegmentEvent = tuple[int, Event | EngineError]


class Launched(Protocol):
    """The engines of one phase. Leaving the `with` block ends those still running."""

    @property
    def specs(self) -> Sequence[Spec]:
        """The spec of each engine, by segment."""

    @property
    def pids(self) -> Sequence[int]:
        """The engines on this host, by segment; empty where they run elsewhere."""

    def events(self, idle: Callable[[], object] | None = None) -> Iterator[SegmentEvent]:
        """The events of every segment as they come, up to the end of the last; `idle` is called about once a second.

        Raises EngineError when a segment fails before all are ready: then nothing was measured.
        """

    def kill(self) -> None:
        """Ends all engines immediately; the events then end with an error for each. Any thread may call this."""


class Fleet(Protocol):
    """Hosts on which engines can be launched."""

    def facts(self) -> Mapping[str, Scalar]:
        """The facts about its hosts, as results record them."""

    def launch(self, specs: Sequence[Spec], listener: LineListener) -> AbstractContextManager[Launched]:
        """Starts an engine for each spec; they begin to load at the same instant. Raises LoadstoneError."""


def split(spec: Spec, engines: int) -> list[Spec]:
    """The specs of the segments 0/n to (n - 1)/n. Clients, rate and operations are those of the whole trial in each."""
    together = {"wait_for_start": True} if engines > 1 else {}
    return [{**spec, **together, **ledger(spec, k), "segment": {"k": k, "n": engines}} for k in range(engines)]


def ledger(spec: Spec, segment: int) -> Spec:
    """Each engine records its writes in a file of its own, `<file>.<segment>`."""
    return {"ledger": {"file": f"{spec['ledger']['file']}.{segment}"}} if spec.get("ledger") else {}
