"""Compares the times of commands: interleaves executions until the interval of every ratio is narrow enough."""

from __future__ import annotations

import math
import shlex
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loadstone.engine.events import Note
from loadstone.experiment.kind import CommandContext, Ended, ObservedCommand
from loadstone.experiment.plan import order
from loadstone.fleet.command import CommandError, Launcher
from loadstone.observe.watch import Watch
from loadstone.results.folder import Folder
from loadstone.results.trial_result import TrialResult, values_by_metric
from loadstone.results.value import Value
from loadstone.runner import command
from loadstone.runner.progress import Display, RunProgress
from loadstone.statistics.comparison import compare_blocks
from loadstone.statistics.intervals import t_interval

NAME, DIMENSION, METRIC = "time", "command", "time"
NO_OUTPUT = Path("/dev/null")
# The maximum number of rounds; usually the time limit ends the run earlier.
ROUNDS_MAX = 1000


@dataclass(frozen=True)
class Timed:
    """A command to be timed."""

    name: str
    text: str
    # A command that runs before each execution, and is not timed.
    prepare: str = ""
    # A command that runs once, before the first execution.
    setup: str = ""


@dataclass
class Timing:
    """Executes commands in rounds; a round runs each command once, in random order.

    Every other round reverses the order of the previous round, so that no command always runs earlier than another.
    """

    commands: Sequence[Timed]
    folder: Folder
    display: Display
    seed: int = 1
    rounds_min: int = 6
    rounds_max: int = ROUNDS_MAX
    # The width of the ratio's 95 % interval, as a share of the ratio.
    width: float = 0.05
    limit_seconds: float = 300.0
    timeout_seconds: float = 3600.0
    ignore_failure: bool = False
    # The shell and its options; if empty, commands are programs with arguments.
    shell: Sequence[str] = ("sh",)
    figures: dict[str, dict[int, float]] = field(default_factory=dict)
    count: int = 0

    def run(self, warmups: int) -> str:
        """Runs the rounds; returns the reason why they stopped. Raises CommandError if a command fails."""
        progress = RunProgress(NAME, self.rounds_min * len(self.commands), 0, 0.0)
        self.display.plan(progress)
        with Launcher() as launcher:
            for timed in self.commands:
                if timed.setup:
                    with self.folder.open_attempt("setup", start=None) as files:
                        self.run_untimed(launcher, "setup", timed.setup, files)
                for number in range(warmups):
                    self.execute(launcher, timed, f"warmup-{number + 1}", 0)
            until = time.monotonic() + self.limit_seconds
            for number in range(1, self.rounds_max + 1):
                for timed in self.sequence(number):
                    self.execute(launcher, timed, f"{self.count:05}-{self.slug(timed)}-r{number}", number)
                    progress.finish()
                if number >= self.rounds_min:
                    if self.widest() <= self.width:
                        return f"the intervals are at most {self.width:.0%} wide"
                    if time.monotonic() >= until:
                        return f"the time limit of {self.limit_seconds:g} s has passed"
                progress.trials = max(progress.trials, (number + 1) * len(self.commands))
        return f"the limit of {self.rounds_max} rounds was reached"

    def sequence(self, number: int) -> list[Timed]:
        """The commands in the order of a round."""
        names = [timed.name for timed in self.commands]
        indexes = order.draw_order(names, self.seed, (number + 1) // 2)
        return [self.commands[index] for index in (indexes if number % 2 else reversed(indexes))]

    def slug(self, timed: Timed) -> str:
        """The part of a trial's name that identifies the command."""
        return str(self.commands.index(timed) + 1)

    def execute(self, launcher: Launcher, timed: Timed, trial: str, number: int) -> None:
        """Executes a command once, and records it unless the round's number is 0 (a warm-up)."""
        self.display.trial(trial)
        initial = TrialResult(
            trial,
            {DIMENSION: timed.name},
            number,
            {},
            facts={"work": DIMENSION},
            requested={"work.run": timed.text},
            end="interrupted",
            order=self.count,
            start_unix_ns=time.time_ns(),
        )
        failure: CommandError | None = None
        with self.folder.open_attempt(trial, start=initial if number else None) as files:
            if timed.prepare:
                self.run_untimed(launcher, "prepare", timed.prepare, files)
            with Watch(None, files / "observed.jsonl") as watch:
                try:
                    ended = self.launch(launcher, "command", timed.text, files, watch)
                except CommandError as error:
                    late = f"`{timed.text}` did not finish within {self.timeout_seconds:g} s"
                    is_late = error.status == -signal.SIGKILL
                    failure = CommandError(late, "set a longer `--timeout`", error.status) if is_late else error
            if failure is None:
                result = self.result(initial, ended)
                result = replace(result, values={**result.values, **values_by_metric(*watch.values(0))})
                failure = command.failure(f"`{timed.text}`", ended) if ended.status else None
            else:
                result = initial
            is_allowed = self.ignore_failure and METRIC in result.values
            if failure is not None:
                note = Note("exit-status" if is_allowed else "failed", str(failure.args[0]), failure.hint)
                result = replace(result, end="done" if is_allowed else "failed", notes=(*result.notes, note))
        if number:
            self.folder.append_trial(result)
            self.count += 1
        if failure is not None and not is_allowed:
            ignoring = "; `--ignore-failure` times failing commands as well" if METRIC in result.values else ""
            raise CommandError(str(failure.args[0]), f"{failure.hint}{ignoring}", failure.status)
        if number:
            self.figures.setdefault(timed.name, {})[number] = result.values[METRIC].value

    def result(self, initial: TrialResult, ended: Ended) -> TrialResult:
        """The result of an execution, with its figures."""
        use = ended.use
        memory = [] if use.memory_bytes is None else [Value("memory_max", use.memory_bytes, "B", 1)]
        measured = values_by_metric(
            Value(METRIC, use.elapsed_ns, "ns", 1), Value("cpu_time", use.cpu_ns, "ns", 1), *memory
        )
        notes: tuple[Note, ...] = ()
        if use.survivors:
            message = f"it left processes running, which were killed: {', '.join(use.survivors)}"
            notes = (Note("survivors", message, "have the command wait for its child processes"),)
        return replace(initial, end="done", values=measured, notes=notes)

    def run_untimed(self, launcher: Launcher, name: str, text: str, files: Path) -> None:
        """Runs a command that is not timed. Raises CommandError if it fails."""
        ended = self.launch(launcher, name, text, files, None)
        if ended.status:
            raise command.failure(f"`{text}`", ended)

    def launch(self, launcher: Launcher, name: str, text: str, files: Path, watch: Watch | None) -> Ended:
        """Runs a command in the current directory."""
        arguments = [*self.shell, "-c", text] if self.shell else shlex.split(text)
        phase = ObservedCommand(name, lambda _: arguments, lambda _: NotImplemented)
        context = CommandContext(files.absolute(), Path.cwd())
        return command.run_by(launcher, phase, context, self.display, watch, self.timeout_seconds, NO_OUTPUT)

    def widest(self) -> float:
        """The width of the widest interval among the ratios to the first command, or of a single command's mean."""
        return max(self.widths(), default=math.inf)

    def widths(self) -> Iterator[float]:
        """The width of each interval, as a share of its figure."""
        first, *contenders = (self.figures[timed.name] for timed in self.commands)
        for figures in contenders:
            ratio = compare_blocks(first, figures).ratio
            yield math.inf if ratio.low is None or ratio.high is None else (ratio.high - ratio.low) / ratio.value
        if not contenders:
            mean, low, high = t_interval([*first.values()])[0]
            yield float((high - low) / mean)
