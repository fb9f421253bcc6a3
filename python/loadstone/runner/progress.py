"""What is going on, on standard error: bars on a terminal, plain lines anywhere else.

Drawn four times a second at most: the engine has better uses for the processors.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import ClassVar, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

from loadstone.engine.events import Interval, Outcome, Summary, merged
from loadstone.format import units

SPARK_WIDTH = 10
# Without a terminal, how often a phase under way is worth a line.
PLAIN_SECONDS = 60.0


class PhaseProgress:
    """How far one trial is. Ends after a number of operations, or of seconds, of which the first few are a warm-up."""

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
        """The store is open: the clock runs."""
        self.started = time.monotonic()

    def take(self, interval: Interval) -> None:
        """A second has passed."""
        self.done += interval.ended
        self.rates.append(interval.completed * 1e9 / max(interval.length_ns, 1))
        self.latency = p99(interval.outcomes)

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
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
        """What it does now, or how long it takes yet."""
        if self.started is None:
            return "opening"
        if self.summary:
            settled = self.summary.settle_seconds
            return "done" if settled is None else f"settled {units.duration(settled * 1e9)}"
        elapsed = time.monotonic() - self.started
        if self.operations is not None:
            if self.done >= self.operations:
                return "settling"
            if not self.done:
                return "starting"
            return f"{units.clock(elapsed * (self.operations - self.done) / self.done)} left"
        if not self.seconds:
            return f"{units.clock(elapsed)} so far"
        left = f"{units.clock(max(self.seconds - elapsed, 0))} left"
        return f"{left}, warm-up" if elapsed < self.warmup_seconds else left

    @property
    def speed(self) -> str:
        """The rate of the last second; at the end that of the whole."""
        if self.summary:
            return units.rate(self.summary.throughput)
        return units.rate(self.rates[-1]) if self.rates else ""

    @property
    def spark(self) -> str:
        """The last seconds' rates."""
        return units.sparkline(self.rates[-SPARK_WIDTH:], SPARK_WIDTH)

    def finish(self, summary: Summary) -> None:
        """It is over; what is shown from now on is of the whole."""
        self.summary = summary
        self.latency = p99(summary.outcomes)


def p99(outcomes: Iterable[Outcome]) -> str:
    """The 99th percentile of all operations together, if there are enough of them."""
    histogram = merged(outcomes)
    return f"p99 {units.duration(histogram.quantile(0.99))}" if histogram.supports(0.99) else ""


class Whole:
    """How far the experiment is, in the shape of a phase."""

    def __init__(self, name: str, trials: int, done: int, seconds_each: float) -> None:
        """`seconds_each` is a guess, used until the first trial has shown how long one takes."""
        self.name = name
        self.latency = self.spark = ""
        self.trials = trials
        self.done = done
        self._seconds_each = seconds_each
        self._here = 0
        self._started = time.monotonic()

    def finish(self) -> None:
        """One more trial is done."""
        self.done += 1
        self._here += 1

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return self.done / max(self.trials, 1)

    @property
    def speed(self) -> str:
        """How many trials are done."""
        return f"{self.done:,}/{self.trials:,} trials"

    @property
    def state(self) -> str:
        """How long it takes yet."""
        elapsed = time.monotonic() - self._started
        each = elapsed / self._here if self._here else self._seconds_each
        # The trial under way has used some of its time, which the last one's end does not show.
        left = each * (self.trials - self.done) - (0 if self._here else elapsed)
        return f"{units.clock(max(left, 0))} left" if self.done < self.trials else "done"


class Steps:
    """How far one trial is, in the shape of a phase: its steps are of unlike length, so each has its share."""

    # What a trial goes through, with the share of it that is done when that begins.
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

    def __init__(self, name: str) -> None:
        self.name = name
        self.speed = self.latency = self.spark = ""
        self.state = "prepare"

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return self.SHARES[self.state]


class Display(Protocol):
    """Shows an experiment: all of it, the trial and the phase under way."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...
    def plan(self, whole: Whole) -> None:
        """The experiment, which may grow by more repeats."""

    def trial(self, name: str) -> None:
        """A trial is about to start."""

    def step(self, name: str) -> None:
        """It goes on with one of `Steps.SHARES`."""

    def begin(self, phase: PhaseProgress) -> None:
        """A phase is about to start."""

    def update(self) -> None:
        """Something has changed in it."""

    def say(self, line: str, *, bad: bool = False) -> None:
        """A line that stays: what a trial came to, or what went wrong."""


class PlainLines:
    """A line for each phase and each trial's end, and one a minute in between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._trial = ""
        self._phase: PhaseProgress | None = None
        self._said = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def plan(self, whole: Whole) -> None:
        """Says how much there is to do."""
        self.say(f"{whole.name}: {whole.trials - whole.done:,} of {whole.trials:,} trials to run, {whole.state}")

    def trial(self, name: str) -> None:
        """Takes note of the trial, which gets its line at its end."""
        self._trial = name

    def step(self, name: str) -> None:
        """Nothing."""

    def begin(self, phase: PhaseProgress) -> None:
        """Takes note of the phase."""
        self._phase = phase
        self._said = time.monotonic()

    def update(self) -> None:
        """Says where a long phase is."""
        if (phase := self._phase) and time.monotonic() >= self._said + PLAIN_SECONDS:
            self._said = time.monotonic()
            parts = [f"{phase.share:.0%}" if phase.rates else "", phase.speed, phase.latency, phase.state]
            words = ", ".join(part for part in parts if part)
            self.say(f"{self._trial} {phase.name}: {words}")

    def say(self, line: str, *, bad: bool = False) -> None:
        """Writes a line."""
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)


class Bars:
    """Three bars, the experiment's, the trial's and the phase's, below the lines of what is done."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            PhaseColumn("name", style="bold"),
            PhaseBar(bar_width=16),
            PhaseColumn("speed", style="cyan", width=14, right=True),
            PhaseColumn("latency", style="magenta", width=11),
            PhaseColumn("spark", style="cyan", width=SPARK_WIDTH),
            PhaseColumn("state", style="dim", width=18),
            console=console,
            refresh_per_second=4,
            transient=True,
        )
        self._steps: Steps | None = None
        # The trial's and the phase's; the experiment's bar stays.
        self._tasks: list[TaskID] = []

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def plan(self, whole: Whole) -> None:
        """Adds the experiment's bar."""
        self._progress.add_task(whole.name, total=1, phase=whole)

    def trial(self, name: str) -> None:
        """Puts the trial's bar in the place of the last one's."""
        self._drop(0)
        self._steps = Steps(name)
        self._tasks.append(self._progress.add_task(name, total=1, phase=self._steps))

    def step(self, name: str) -> None:
        """Moves the trial's bar on."""
        if self._steps:
            self._steps.state = name

    def begin(self, phase: PhaseProgress) -> None:
        """Puts the phase's bar in the place of the last one's."""
        self._drop(1)
        self._tasks.append(self._progress.add_task(phase.name, total=1, phase=phase))

    def _drop(self, kept: int) -> None:
        """Takes bars away, but the first few below the experiment's."""
        for task in self._tasks[kept:]:
            self._progress.remove_task(task)
        del self._tasks[kept:]

    def update(self) -> None:
        """Nothing: what is shown is looked up when it is drawn."""

    def say(self, line: str, *, bad: bool = False) -> None:
        """Writes a line above the bars."""
        self._progress.console.print(Text(line, style="yellow" if bad else ""), soft_wrap=True)


class PhaseColumn(ProgressColumn):
    """One thing about a phase."""

    def __init__(self, what: str, style: str, width: int = 0, *, right: bool = False) -> None:
        super().__init__(Column(no_wrap=True))
        self._what, self._style, self._width, self._right = what, style, width, right

    def render(self, task: Task) -> Text:
        """Looks it up."""
        text: str = getattr(task.fields["phase"], self._what)
        return Text(text.rjust(self._width) if self._right else text.ljust(self._width), style=self._style)


class PhaseBar(BarColumn):
    """A bar that moves with the clock, though events come once a second."""

    def render(self, task: Task) -> ProgressBar:
        """Sets the bar to where the phase is."""
        task.completed = task.fields["phase"].share
        return super().render(task)


def display(console: Console) -> Display:
    """The display for a console."""
    return Bars(console) if console.is_terminal and not console.is_dumb_terminal else PlainLines(console)
