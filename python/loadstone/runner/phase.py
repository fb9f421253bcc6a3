"""A phase: one engine from its start to its end, with everything that it says written down as it comes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loadstone.engine.events import Interval, Ready, Result, Summary
from loadstone.engine.trial import EngineError, Spec, Trial
from loadstone.results import hlog
from loadstone.results.trial_result import Loop, Series
from loadstone.runner.progress import Display, Phase
from loadstone.runner.series import Course


class Watcher(Protocol):
    """Whoever looks at the host meanwhile."""

    def watch(self, name: str, pid: int) -> None:
        """The engine has started."""

    def look(self) -> object:
        """About a second has passed."""


@dataclass(frozen=True)
class Finished:
    """What a phase came to."""

    spec: Spec
    result: Result
    series: Series
    # The engine's largest resident memory at the end of any interval, B.
    memory_max: int

    @property
    def loop(self) -> Loop:
        """Whether operations were due at times of their own; also without a `rate`, as by the property `rate.ramp`."""
        return "open" if self.spec["pace"]["mode"] == "open" else "closed"


def run(spec: Spec, name: str, files: Path, shown: Display, watcher: Watcher | None, timeout: float) -> Finished:
    """Runs an engine; its spec, events and histograms go to `<name>.json`, `.jsonl` and `.hlog` below `files`.

    Raises EngineError when it ends without a result, or gives none within `timeout` seconds.
    """
    until = spec["until"]
    phase = Phase(name, until.get("operations"), until.get("seconds"), spec["warmup_seconds"])
    course = Course()
    shown.begin(phase)
    with ExitStack() as stack:
        trial = stack.enter_context(Trial(spec))
        (files / f"{name}.spec.json").write_text(json.dumps(trial.spec) + "\n")
        events = stack.enter_context((files / f"{name}.events.jsonl").open("w"))
        histograms = hlog.Writer(stack.enter_context((files / f"{name}.hlog").open("w")))
        late = stack.enter_context(Deadline(timeout, trial))
        trial.heard = lambda line: events.write(f"{line}\n")
        if watcher is not None:
            watcher.watch("engine", trial.pid)
        try:
            for event in trial.events(None if watcher is None else watcher.look):
                match event:
                    case Ready():
                        phase.start()
                    case Interval():
                        phase.take(event)
                        histograms.take(event)
                        course.take(event)
                    case Summary():
                        phase.finish(event)
                        histograms.finish(event)
                shown.update()
        except EngineError as error:
            if late.passed:
                raise EngineError(
                    f"{name}: the engine did not end within {timeout:g} s",
                    "give the experiment a longer `timeout`, or find out what the store waits for",
                    error.status,
                ) from None
            raise
    return Finished(trial.spec, trial.record.result(), course.series(), course.memory_max)


class Deadline:
    """Kills an engine that takes too long: a store that hangs must not hang the lab."""

    def __init__(self, seconds: float, trial: Trial) -> None:
        self.passed = False
        self._kill: Callable[[], None] = trial.kill
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def _end(self) -> None:
        self.passed = True
        self._kill()

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
