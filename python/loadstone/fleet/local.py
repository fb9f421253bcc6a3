"""This machine as a fleet: each engine is a child process.

Every trial uses a fleet; a single engine is segment 0/1. All engines share the host's clock.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from loadstone.engine.events import Ready
from loadstone.engine.trial import EngineError, Spec, Trial, follow_trials
from loadstone.errors import LoadstoneError
from loadstone.fleet.interface import LineListener, Observations, Part, PartEvent
from loadstone.fleet.spread import SpreadSystem
from loadstone.observe.environment import describe_environment, environment_facts
from loadstone.results.trial_result import Scalar

# The delay between the readiness of all engines and their start, in which each engine must read its command. (A busy
# host once paused an engine for 0.3 s.)
START_NS = 1_000_000_000


class Local:
    """Engines on this machine."""

    def __init__(self) -> None:
        # The fingerprint of this host, for results. Each run reads it again: a resumed run may be on another host.
        self.facts: Mapping[str, Scalar] = environment_facts(describe_environment())

    def hosts(self, placement: str) -> Sequence[str]:
        """Always this machine."""
        return (platform.node(),)

    def open_system(self, name: str) -> SpreadSystem:
        """Raises LoadstoneError: servers on this machine need no fleet."""
        raise LoadstoneError(f"{name} cannot run on hosts: the fleet is this machine", "write `fleet: {on: ray}`")

    def describe(self) -> Sequence[Mapping[str, Any]]:
        """Always empty, because this machine is described separately."""
        return ()

    @contextmanager
    def launch(self, specs: Sequence[Spec], listener: LineListener, placement: str = "") -> Iterator[Engines]:
        """Starts an engine for each spec. Raises LoadstoneError if the engine is missing."""
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

    @cached_property
    def parts(self) -> Sequence[Part]:
        """One part for each engine."""
        count = len(self.trials)
        return [
            Part(f"segment {segment}/{count}", str(segment), (trial.spec,), trial.pid)
            for segment, trial in enumerate(self.trials)
        ]

    def events(
        self, idle: Callable[[], object] | None = None, started: Callable[[int], object] | None = None
    ) -> Iterator[PartEvent]:
        """The events of all segments as they arrive, until the last segment ends; `idle` is called about once a second.

        If engines wait for their start (`wait_for_start`), `started` is called with the start, ns since the epoch.
        Raises EngineError if a segment fails before all are ready, because nothing has been measured then.
        """
        segments = {trial: segment for segment, trial in enumerate(self.trials)}
        waiting = {trial for trial in segments if trial.spec.get("wait_for_start")}
        for trial, event in follow_trials(*segments, idle=idle):
            if isinstance(event, EngineError) and waiting:
                raise event
            if isinstance(event, Ready) and waiting:
                waiting.remove(trial)
                if not waiting:
                    start_ns = time.time_ns() + START_NS
                    for engine in segments:
                        engine.start_at(start_ns)
                    if started is not None:
                        started(start_ns)
            yield segments[trial], event

    def kill(self) -> None:
        """Kills every engine immediately."""
        for trial in self.trials:
            trial.kill()

    def observations(self) -> Observations:
        """No observations: the runner observes this machine."""
        return Observations()
