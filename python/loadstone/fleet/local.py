"""This machine as a fleet, the hosts that the engines of a phase run on: each engine is a child process.

    with fleet.launch(split(spec, engines), listener) as engines:
        for segment, event in engines.events():
            ...

Every trial uses a fleet: with one engine, it is the segment 0/1. All engines share the host's clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from loadstone.engine.events import Event, Ready
from loadstone.engine.trial import EngineError, Spec, Trial, follow
from loadstone.observe.environment import environment, fingerprint
from loadstone.results.trial_result import Scalar

# The delay between all engines being ready and their start, so that each has read its command by then: a busy host
# has paused one for 0.3 s.
START_NS = 1_000_000_000

# Called with a segment's number and each event line of its engine, unparsed.
LineListener = Callable[[int, str], object]
# A segment's number and its next event; an error instead of the summary if it ended without one.
SegmentEvent = tuple[int, Event | EngineError]


class Local:
    """Engines on this machine."""

    def __init__(self) -> None:
        # The fingerprint of this host, for results. Taken anew, since a resumed run may be on another host or kernel.
        self.facts: Mapping[str, Scalar] = fingerprint(environment())

    @contextmanager
    def launch(self, specs: Sequence[Spec], listener: LineListener) -> Iterator[Engines]:
        """Starts an engine for each spec; all begin the load at the same instant.

        Leaving the `with` block ends those still running. Raises LoadstoneError if no engine is found.
        """
        with ExitStack() as stack:
            trials = []
            for segment, spec in enumerate(specs):
                trials.append(stack.enter_context(Trial(spec)))
                trials[-1].heard = partial(listener, segment)
            yield Engines(trials)


@dataclass(frozen=True)
class Engines:
    """The engines of one phase, by segment."""

    trials: Sequence[Trial]

    def events(
        self, idle: Callable[[], object] | None = None, started: Callable[[int], object] | None = None
    ) -> Iterator[SegmentEvent]:
        """The events of all segments as they arrive, until the last ends; `idle` is called about once a second.

        If engines wait for their start (`wait_for_start`), `started` is called with it, ns since the epoch.
        Raises EngineError if a segment fails before all are ready, since nothing was measured then.
        """
        segments = {trial: segment for segment, trial in enumerate(self.trials)}
        waiting = {trial for trial in segments if trial.spec.get("wait_for_start")}
        for trial, event in follow(*segments, idle=idle):
            if isinstance(event, EngineError) and waiting:
                raise event
            if isinstance(event, Ready) and waiting:
                waiting.remove(trial)
                if not waiting:
                    start_ns = time.time_ns() + START_NS
                    for each in segments:
                        each.start_at(start_ns)
                    if started is not None:
                        started(start_ns)
            yield segments[trial], event


def split(spec: Spec, engines: int) -> list[Spec]:
    """The specs of the segments 0/n to (n - 1)/n. Each has the clients, rate and operations of the whole trial."""
    synchronised = {"wait_for_start": True} if engines > 1 else {}
    return [{**spec, **synchronised, **ledger(spec, k), "segment": {"k": k, "n": engines}} for k in range(engines)]


def ledger(spec: Spec, segment: int) -> Spec:
    """Each engine records its writes in its own file, `<file>.<segment>`."""
    return {"ledger": {"file": f"{spec['ledger']['file']}.{segment}"}} if spec.get("ledger") else {}
