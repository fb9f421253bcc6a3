"""A phase: runs the engines of a fleet to their end and records every event as it arrives."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loadstone.engine import secrets
from loadstone.engine.describe import description
from loadstone.engine.events import Ready, Result
from loadstone.engine.trial import EngineError, Spec
from loadstone.fleet.fleet import Fleet, Launched, split
from loadstone.fleet.merge import Merger
from loadstone.results import hlog
from loadstone.results.trial_result import Loop, Series
from loadstone.runner.progress import Display, PhaseProgress
from loadstone.runner.series import SeriesBuilder


class Watcher(Protocol):
    """Observes the host during a phase."""

    def watch(self, name: str, pid: int) -> None:
        """The engine has started."""

    def look(self) -> object:
        """About a second has passed."""


@dataclass(frozen=True)
class Finished:
    """The result of a launch of engines."""

    name: str
    spec: Spec
    result: Result
    series: Series
    # The largest resident memory of all engines together at the end of any interval, B.
    memory_max: int
    engines: int = 1
    # Of those, how many ended without a result.
    lost: int = 0

    @property
    def loop(self) -> Loop:
        """`open` if operations had due times; they have them also without a `rate`, by the property `rate.ramp`."""
        return "open" if self.spec["pace"]["mode"] == "open" else "closed"


@dataclass(frozen=True)
class Launch:
    """How the phases of a trial are run."""

    fleet: Fleet
    engines: int
    # Where the files of the trial go.
    files: Path
    display: Display
    # The engines are killed after this many seconds.
    timeout: float


def run(launch: Launch, spec: Spec, name: str, watcher: Watcher | None) -> Finished:
    """Runs a phase on the engines of a fleet, and writes histograms to `<name>.hlog`.

    The spec and events of each engine go to `<name>.spec.json` and `<name>.events.jsonl`, or `<name>.<segment>.…` if
    there are several. Raises EngineError if none ends with a result within the timeout.
    """
    until = spec["until"]
    phase = PhaseProgress(name, until.get("operations"), until.get("seconds"), spec["warmup_seconds"])
    builder, merger, display = SeriesBuilder(), Merger(launch.engines), launch.display
    stems = [name] if launch.engines == 1 else [f"{name}.{segment}" for segment in range(launch.engines)]
    display.begin(phase)
    with ExitStack() as stack:
        logs = [stack.enter_context((launch.files / f"{stem}.events.jsonl").open("w")) for stem in stems]
        histograms = hlog.Writer(stack.enter_context((launch.files / f"{name}.hlog").open("w")))

        def keep(segment: int, line: str) -> None:
            logs[segment].write(f"{secrets.hidden(line)}\n")

        running = stack.enter_context(launch.fleet.launch(split(spec, launch.engines), keep))
        for stem, each in zip(stems, running.specs, strict=True):
            (launch.files / f"{stem}.spec.json").write_text(json.dumps(recorded(each)) + "\n")
        late = stack.enter_context(Deadline(launch.timeout, running))
        if watcher is not None:
            for stem, pid in zip(stems, running.pids, strict=False):
                watcher.watch(stem.replace(name, "engine"), pid)
        try:
            for segment, event in running.events(None if watcher is None else watcher.look):
                if isinstance(event, EngineError):
                    event = late.explained(name, event)
                for merged in merger.take(segment, event):
                    if isinstance(merged, Ready):
                        phase.start()
                    else:
                        phase.take(merged)
                        histograms.take(merged)
                        builder.take(merged)
                display.update()
            result = merger.result()
        except EngineError as error:
            raise late.explained(name, error) from None
        phase.finish(result.summary)
        histograms.finish(result.summary)
        display.update()
    return Finished(
        name, running.specs[0], result, builder.series(), builder.memory_max, launch.engines, len(merger.lost)
    )


def recorded(spec: Spec) -> Spec:
    """A spec without passwords, as it is recorded."""
    spec = json.loads(secrets.hidden(json.dumps(spec)))
    store = spec["store"]
    properties = description().without_secrets(store["properties"])
    properties = {name: secrets.hidden(text) if isinstance(text, str) else text for name, text in properties.items()}
    return {**spec, "store": {**store, "properties": properties}}


class Deadline:
    """Kills engines that take too long, so that a hanging store does not hang the lab."""

    def __init__(self, seconds: float, engines: Launched) -> None:
        self.passed = False
        self._seconds = seconds
        self._kill: Callable[[], None] = engines.kill
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def explained(self, phase: str, error: EngineError) -> EngineError:
        """The error of an engine that ended without a result: a timeout, if this killed it."""
        if not self.passed:
            return error
        return EngineError(
            f"{phase}: the engine did not end within {self._seconds:g} s",
            "set a longer `timeout` in the experiment, or find out what the store waits for",
            error.status,
        )

    def _end(self) -> None:
        self.passed = True
        self._kill()

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
