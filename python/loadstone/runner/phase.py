"""Runs the engines of a fleet for one phase, and records every event as it arrives."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from loadstone.engine import secrets
from loadstone.engine.describe import describe_engine
from loadstone.engine.events import Ready
from loadstone.engine.trial import EngineError, Spec
from loadstone.experiment.kind import EndedLaunch
from loadstone.faults.injector import Injector
from loadstone.fleet.interface import Fleet, Observations, Running
from loadstone.fleet.launch import LOST_STATUS
from loadstone.fleet.merge import Merger
from loadstone.fleet.segments import split_spec
from loadstone.observe.watch import Watch
from loadstone.results import hlog
from loadstone.results.trial_result import Loop, Series
from loadstone.runner.progress import Display, PhaseProgress
from loadstone.runner.series import SeriesBuilder


@dataclass(frozen=True)
class Finished(EndedLaunch):
    """The result of one launch of engines."""

    series: Series
    # The largest total resident memory of all engines at the end of an interval, B.
    memory_max: int
    engines: int = 1
    # The number of engines that exited without a result.
    lost: int = 0
    observations: Observations = field(default_factory=Observations)

    @property
    def exit_status(self) -> int:
        """The exit status of a launch that lost engines: negative, as for a killed process, if other hosts ran them."""
        return LOST_STATUS if self.observations.facts else 1

    @property
    def loop(self) -> Loop:
        """`open` if operations had due times; the property `rate.ramp` sets due times even without a `rate`."""
        return "open" if self.spec["pace"]["mode"] == "open" else "closed"


def run(
    spec: Spec,
    name: str,
    watch: Watch | None,
    files: Path,
    display: Display,
    fleet: Fleet,
    engines: int,
    timeout: float,
    placement: str = "",
    injector: Injector | None = None,
) -> Finished:
    """Runs a phase on `engines` engines of a fleet, and writes histograms to `<name>.hlog` in the trial's `files`.

    The faults of an injector begin at their planned instants in the measured window. The spec of each engine goes to
    `<name>.spec.json`, or `<name>.<segment>.spec.json` if there are several; events go to `<name>.events.jsonl`, or to
    a separate file for each engine on this machine and for each other host. Raises EngineError if no engine delivers a
    result within `timeout` seconds.
    """
    if injector is not None:
        # With an injector, the engines start at a future instant, which the lab learns in advance.
        spec = {**spec, "wait_for_start": True}
    started = None if injector is None else partial(begin_faults, injector, spec["warmup_seconds"])
    until = spec["until"]
    phase = PhaseProgress(name, until.get("operations"), until.get("seconds"), spec["warmup_seconds"])
    builder = SeriesBuilder()
    logs: list[IO[str]] = []
    display.begin(phase)
    with ExitStack() as stack:
        histograms = hlog.Writer(stack.enter_context((files / f"{name}.hlog").open("w")))

        def keep(part: int, line: str) -> None:
            logs[part].write(f"{secrets.hide_secrets(line)}\n")
            merger.hear(part, line)

        running = stack.enter_context(fleet.launch(split_spec(spec, engines), keep, placement))
        merger = stack.enter_context(Merger([part.title for part in running.parts]))
        for part in running.parts:
            stem = name if len(running.parts) == 1 else f"{name}.{part.stem}"
            logs.append(stack.enter_context((files / f"{stem}.events.jsonl").open("w", buffering=1)))
            for segment in part.specs:
                stem = name if engines == 1 else f"{name}.{segment['segment']['k']}"
                (files / f"{stem}.spec.json").write_text(json.dumps(redact_spec(segment)) + "\n")
            if watch is not None and part.pid is not None:
                watch.watch("engine" if engines == 1 else f"engine.{part.stem}", part.pid)
        explain_error = stack.enter_context(deadline(timeout, name, "load generator", running))
        try:
            for number, event in running.events(None if watch is None else watch.take_sample, started):
                if isinstance(event, EngineError):
                    merger.lose(number, explain_error(event))
                for merged in merger.take(event):
                    if isinstance(merged, Ready):
                        phase.start()
                    else:
                        phase.take(merged)
                        histograms.write_interval(merged)
                        builder.take(merged)
                display.update()
            result = merger.result()
        except EngineError as error:
            raise explain_error(error) from None
        if injector is not None:
            injector.note_summary(result.summary.start_unix_ns, result.summary.server_events)
        phase.finish(result.summary)
        histograms.write_censored(result.summary)
        display.update()
    ran = running.parts[0].specs[0]
    observations = running.observations()
    lost = sum(len(running.parts[number].specs) for number in merger.lost) + observations.lost
    return Finished(name, ran, result, builder.series(), builder.memory_max, engines, lost, observations)


def begin_faults(injector: Injector, warmup_seconds: float, start_unix_ns: int) -> None:
    """Tells an injector when the measured window begins; `start_unix_ns` is the engines' start by the host's clock."""
    now_ns, now_unix_ns = time.monotonic_ns(), time.time_ns()
    zero_unix_ns = start_unix_ns + round(warmup_seconds * 1e9)
    injector.begin(zero_unix_ns - now_unix_ns + now_ns, zero_unix_ns)


def redact_spec(spec: Spec) -> Spec:
    """A copy of a spec without passwords, for recording."""
    spec = json.loads(secrets.hide_secrets(json.dumps(spec)))
    store = spec["store"]
    properties = describe_engine().hide_secrets(store["properties"])
    properties = {
        name: secrets.hide_secrets(text) if isinstance(text, str) else text for name, text in properties.items()
    }
    return {**spec, "store": {**store, "properties": properties}}


@contextmanager
def deadline(
    seconds: float, phase: str, subject: str, running: Running
) -> Iterator[Callable[[EngineError], EngineError]]:
    """Kills engines or commands that take too long, so that a hanging store does not hang the lab.

    Yields a function that replaces the error of an engine or command with a timeout error if the timeout killed it.
    """
    passed = threading.Event()

    def end() -> None:
        passed.set()
        running.kill()

    def explain_error(error: EngineError) -> EngineError:
        if not passed.is_set():
            return error
        return EngineError(
            f"{phase}: the {subject} did not finish within {seconds:g} s",
            "set a longer `timeout` in the experiment, or find out what the store is waiting for",
            error.status,
        )

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield explain_error
    finally:
        timer.cancel()
