"""What is going on, on standard error: bars on a terminal, plain lines anywhere else.

Drawn four times a second at most: the engine has better uses for the processors.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskID
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

from loadstone import units
from loadstone.event import Interval, Outcome, Summary, merged

SPARK_WIDTH = 10


class Phase:
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
        self.done += interval.operations
        self.rates.append(interval.operations * 1e9 / max(interval.length_ns, 1))
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
        left = f"{units.clock(max(self.seconds - elapsed, 0))} left"
        return f"{left}, warm-up" if elapsed < self.warmup_seconds else left

    @property
    def speed(self) -> str:
        """The rate of the last second; at the end that of the whole."""
        if self.summary:
            return units.rate(self.summary.operations_per_second)
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


class Display(Protocol):
    """Shows phases, one after the other."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...
    def begin(self, phase: Phase) -> None:
        """A phase is about to start."""

    def update(self) -> None:
        """Something has changed in it."""


class PlainLines:
    """A line whenever something has changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._phase: Phase | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def begin(self, phase: Phase) -> None:
        """Names the phase."""
        self._phase = phase
        self.update()

    def update(self) -> None:
        """Writes a line."""
        if phase := self._phase:
            parts = [f"{phase.share:.0%}" if phase.rates else "", phase.speed, phase.latency, phase.state]
            words = ", ".join(part for part in parts if part)
            self._console.print(f"{phase.name}: {words}", soft_wrap=True, highlight=False, markup=False)


class Bars:
    """A bar a phase, all of which stay."""

    def __init__(self, console: Console) -> None:
        self._phase: Phase | None = None
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            PhaseColumn("name", style="bold"),
            PhaseBar(bar_width=10),
            PhaseColumn("speed", style="cyan", width=13, right=True),
            PhaseColumn("latency", style="magenta", width=11),
            PhaseColumn("spark", style="cyan", width=SPARK_WIDTH),
            PhaseColumn("state", style="dim"),
            console=console,
            refresh_per_second=4,
        )
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def begin(self, phase: Phase) -> None:
        """Adds a bar."""
        self._phase = phase
        self._task = self._progress.add_task(phase.name, total=1, phase=phase)

    def update(self) -> None:
        """Lets the last bar have its tick; what it shows, it looks up when it is drawn."""
        if self._phase and self._phase.summary:
            self._progress.update(self._task, completed=1)


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
