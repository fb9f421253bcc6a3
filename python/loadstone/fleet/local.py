"""This machine as a fleet: each engine is a child process, and all share the host's clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from loadstone.engine.events import Ready
from loadstone.engine.trial import EngineError, Spec, Trial, follow
from loadstone.fleet.fleet import LineListener, SegmentEvent
from loadstone.observe.environment import environment, fingerprint
from loadstone.results.trial_result import Scalar

# The delay between all engines being ready and their start, so that each has read its command by then: a busy host
# has paused one for 0.3 s.
START_NS = 1_000_000_000


class Local:
    """Engines on this machine."""

    def __init__(self) -> None:
        # Taken anew, since a resumed run may be on another host or kernel.
        self._facts = fingerprint(environment())

    def facts(self) -> Mapping[str, Scalar]:
        """The fingerprint of this host."""
        return self._facts

    def launch(self, specs: Sequence[Spec], listener: LineListener) -> Processes:
        """Starts an engine for each spec. Raises LoadstoneError if no engine is found."""
        return Processes(specs, listener)


class Processes:
    """The engines of one phase."""

    def __init__(self, specs: Sequence[Spec], listener: LineListener) -> None:
        self._trials: list[Trial] = []
        with ExitStack() as starting:
            for segment, spec in enumerate(specs):
                trial = starting.enter_context(Trial(spec))
                trial.heard = partial(listener, segment)
                self._trials.append(trial)
            self._running = starting.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._running.close()

    @property
    def specs(self) -> Sequence[Spec]:
        """The spec of each engine."""
        return [trial.spec for trial in self._trials]

    @property
    def pids(self) -> Sequence[int]:
        """The engines' processes."""
        return [trial.pid for trial in self._trials]

    def events(self, idle: Callable[[], object] | None = None) -> Iterator[SegmentEvent]:
        """The events of all segments; see `loadstone.fleet.fleet.Launched.events`."""
        segments = {trial: segment for segment, trial in enumerate(self._trials)}
        waiting = set(segments) if len(segments) > 1 else set()
        for trial, event in follow(*segments, idle=idle):
            if isinstance(event, EngineError) and waiting:
                raise event
            if isinstance(event, Ready) and waiting:
                waiting.remove(trial)
                if not waiting:
                    start_ns = time.time_ns() + START_NS
                    for each in segments:
                        each.start_at(start_ns)
            yield segments[trial], event

    def kill(self) -> None:
        """Kills all engines."""
        for trial in self._trials:
            trial.kill()
