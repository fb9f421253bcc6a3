"""Displays progress on standard error: bars on a terminal, plain lines elsewhere.

The display is updated at most four times a second, to leave the processors to the engine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import ClassVar, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TaskID, TextColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

from loadstone.engine.events import Interval, Outcome, Summary, merge_service_times
from loadstone.format import units

SPARK_WIDTH = 10
# Without a terminal, the time between lines about a running phase.
PLAIN_SECONDS = 60.0


class PhaseProgress:
    """The progress of a phase whose length is a number of operations or of seconds (including the warm-up)."""

    def __init__(self, name: str, operations: int | None, seconds: float | None, warmup_seconds: float) -> None:
        self.name = name
        self.operations = operations
        self.seconds = (seconds or 0) + warmup_seconds
        self.warmup_seconds = warmup_seconds
        self.done = 0
        self.rates: list[float] = []
        self.latency = ""
        self.summary: Summary | None = None
        self.started: float | None = None

    def start(self) -> None:
        """Starts the clock, when the store is open."""
        self.started = time.monotonic()

    def take(self, interval: Interval) -> None:
        """Adds an interval."""
        self.done += interval.ended
        self.rates.append(interval.completed * 1e9 / max(interval.length_ns, 1))
        self.latency = p99(interval.outcomes)

    @property
    def share(self) -> float:
        """The completed fraction, from 0 to 1."""
        if self.started is None:
            return 0.0
        if self.summary:
            return 1.0
        if self.operations:
            return min(self.done / self.operations, 1.0)
        if not self.seconds:
            return 0.0
        return min((time.monotonic() - self.started) / self.seconds, 1.0)

    @property
    def state(self) -> str:
        """The current step, or the remaining or elapsed time."""
        if self.started is None:
            return "opening"
        if self.summary:
            settled = self.summary.settle_seconds
            return "done" if settled is None else f"settled {units.format_duration(settled * 1e9)}"
        elapsed = time.monotonic() - self.started
        if self.operations is not None:
            if self.done >= self.operations:
                return "settling"
            if not self.done:
                return "starting"
            return f"{units.format_clock(elapsed * (self.operations - self.done) / self.done)} left"
        if not self.seconds:
            return f"{units.format_clock(elapsed)} so far"
        left = f"{units.format_clock(max(self.seconds - elapsed, 0))} left"
        return f"{left}, warm-up" if elapsed < self.warmup_seconds else left

    @property
    def speed(self) -> str:
        """The rate in the last interval; once the phase has ended, the rate of the whole phase."""
        if self.summary:
            return units.format_rate(self.summary.throughput)
        return units.format_rate(self.rates[-1]) if self.rates else ""

    @property
    def spark(self) -> str:
        """A sparkline of the rates in the last few intervals."""
        return units.draw_sparkline(self.rates[-SPARK_WIDTH:], SPARK_WIDTH)

    def finish(self, summary: Summary) -> None:
        """Ends the phase: from now on, its summary is displayed."""
        self.summary = summary
        self.latency = p99(summary.outcomes)


def p99(outcomes: Iterable[Outcome]) -> str:
    """The 99th percentile of all operations, if there are enough of them."""
    histogram = merge_service_times(outcomes)
    return (
        f"p99 {units.format_duration(histogram.value_at_quantile(0.99))}" if histogram.supports_quantile(0.99) else ""
    )


class RunProgress:
    """The progress of a run, with the same attributes as PhaseProgress."""

    def __init__(self, name: str, trials: int, done: int, seconds_each: float, *, rough: bool = False) -> None:
        """`seconds_each` is an estimate, which is used until the first trial has ended. With `rough`, the number of
        trials is also an estimate."""
        self.name = name
        self.about = "about " if rough else ""
        self.latency = self.spark = ""
        self.trials = trials
        self.done = done
        self._seconds_each = seconds_each
        self._finished = 0
        self._started = self._last_end = time.monotonic()

    def finish(self) -> None:
        """Counts a finished trial."""
        self.done += 1
        self._finished += 1
        self._last_end = time.monotonic()

    @property
    def share(self) -> float:
        """The completed fraction, from 0 to 1."""
        return self.done / max(self.trials, 1)

    @property
    def speed(self) -> str:
        """The number of completed trials."""
        return f"{self.done:,}/{self.about}{units.count_noun(self.trials, 'trial')}"

    @property
    def state(self) -> str:
        """The remaining time."""
        if self.done >= self.trials:
            return "done"
        elapsed = time.monotonic() - self._last_end
        if self._finished:
            trial_seconds = (self._last_end - self._started) / self._finished
        else:
            # A first trial that takes longer than estimated corrects the estimate before it ends.
            trial_seconds = max(self._seconds_each, elapsed)
        left = trial_seconds * (self.trials - self.done) - min(elapsed, trial_seconds)
        return f"{self.about}{units.format_clock(left)} left"


class TrialProgress:
    """The progress of a trial, with the same attributes as PhaseProgress."""

    # The steps of a trial, each with the fraction of the trial that typically precedes it.
    SHARES: ClassVar = {
        "prepare": 0.0,
        "servers": 0.01,
        "load": 0.05,
        "copy": 0.1,
        "settle": 0.3,
        "flush": 0.35,
        "measure": 0.4,
        "verify": 0.9,
        "tear down": 0.95,
    }

    speed = latency = spark = ""
    state = "prepare"

    @property
    def share(self) -> float:
        """The completed fraction, from 0 to 1."""
        return self.SHARES[self.state]


class PlainLines(AbstractContextManager["PlainLines"]):
    """Prints plain lines, with a progress line per minute during long phases."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._trial = ""
        self._run: RunProgress | None = None
        self._phase: PhaseProgress | None = None
        self._printed = 0.0

    def __exit__(self, *_: object) -> None:
        pass

    def plan(self, progress: RunProgress) -> None:
        """Prints the number of trials to run."""
        self._run = progress
        left = progress.trials - progress.done
        every = units.count_noun(progress.trials, "trial")
        self.say(f"{progress.name}: {left:,} of {progress.about}{every} to run, {progress.state}")

    def trial(self, name: str) -> None:
        """Remembers the trial's name for later lines."""
        self._trial = name

    def step(self, name: str) -> None:
        """Does nothing."""

    def begin(self, phase: PhaseProgress) -> None:
        """Remembers the phase."""
        self._phase = phase
        self._printed = time.monotonic()

    def update(self) -> None:
        """Prints the progress of a long phase."""
        if (phase := self._phase) and time.monotonic() >= self._printed + PLAIN_SECONDS:
            self._printed = time.monotonic()
            parts = [f"{phase.share:.0%}" if phase.rates else "", phase.speed, phase.latency, phase.state]
            self.say(f"{self._trial} {phase.name}: {', '.join(part for part in parts if part)}")
            if self._run:
                self.say(f"{self._run.name}: {self._run.speed}, {self._run.state}")

    def say(self, line: str, *, bad: bool = False) -> None:
        """Prints a line."""
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)


class Bars:
    """Three bars, for the run, the trial and the phase, below permanent lines."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}", style="bold", markup=False),
            PhaseBar(bar_width=16),
            TextColumn("{task.fields[phase].speed:>14}", style="cyan", markup=False),
            TextColumn("{task.fields[phase].latency:<11}", style="magenta", markup=False),
            TextColumn(f"{{task.fields[phase].spark:<{SPARK_WIDTH}}}", style="cyan", markup=False),
            TextColumn("{task.fields[phase].state:<18}", style="dim", markup=False),
            console=console,
            refresh_per_second=4,
            transient=True,
        )
        self._steps: TrialProgress | None = None
        # The bars of the trial and the phase. The run's bar is not among them, because it is never removed.
        self._tasks: list[TaskID] = []

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def plan(self, progress: RunProgress) -> None:
        """Adds the run's bar."""
        self._progress.add_task(progress.name, total=1, phase=progress)

    def trial(self, name: str) -> None:
        """Replaces the bar of the trial."""
        self._drop(0)
        self._steps = TrialProgress()
        self._tasks.append(self._progress.add_task(name, total=1, phase=self._steps))

    def step(self, name: str) -> None:
        """Advances the trial's bar."""
        if self._steps:
            self._steps.state = name

    def begin(self, phase: PhaseProgress) -> None:
        """Replaces the phase's bar."""
        self._drop(1)
        self._tasks.append(self._progress.add_task(phase.name, total=1, phase=phase))

    def _drop(self, count: int) -> None:
        """Removes all bars below the run's bar, except the first `count`."""
        for task in self._tasks[count:]:
            self._progress.remove_task(task)
        del self._tasks[count:]

    def update(self) -> None:
        """Does nothing: the bars read the phase when they are drawn."""

    def say(self, line: str, *, bad: bool = False) -> None:
        """Prints a line above the bars."""
        self._progress.console.print(Text(line, style="yellow" if bad else ""), soft_wrap=True)


class PhaseBar(BarColumn):
    """A bar that moves smoothly, although events arrive only once a second."""

    def render(self, task: Task) -> ProgressBar:
        """The bar at the phase's current progress."""
        task.completed = task.fields["phase"].share
        return super().render(task)


# Displays the progress of a run, its current trial and its current phase.
Display = PlainLines | Bars


def display(console: Console) -> Display:
    """The display for a console."""
    return Bars(console) if console.is_terminal and not console.is_dumb_terminal else PlainLines(console)
