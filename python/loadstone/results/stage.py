"""The stages of a trial whose rate changes, and the names of their figures: `stage2.read.p99`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from loadstone.results.trial_result import TrialResult
from loadstone.results.value import Value
from loadstone.statistics.percentile import UNANSWERED

OF_STAGE = re.compile(r"stage([1-9]\d*)\.")


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the measured window in which the rate was constant or changed linearly."""

    # The number of the stage, from 1.
    number: int
    # The start of the stage, as the time since the start of the window.
    start_ns: int
    length_ns: int
    # The requested operations per second at the start and at the end of the stage.
    rate_from: float
    rate_to: float

    @property
    def prefix(self) -> str:
        """The prefix of the stage's metrics."""
        return f"stage{self.number}."

    @property
    def end_ns(self) -> int:
        """The end, as the time since the start of the window."""
        return self.start_ns + self.length_ns

    @property
    def is_constant(self) -> bool:
        """Whether the rate of the stage is constant and above 0."""
        return self.rate_from == self.rate_to > 0

    @property
    def is_pause(self) -> bool:
        """Whether no operation is due in the stage."""
        return self.rate_from == self.rate_to == 0

    @property
    def rate(self) -> str:
        """The rate of the stage as text: `5,000 op/s`, `1,000 to 5,000 op/s`, `pause`."""
        if self.is_pause:
            return "pause"
        if self.is_constant:
            return f"{self.rate_from:,.10g} op/s"
        return f"{self.rate_from:,.10g} to {self.rate_to:,.10g} op/s"

    @property
    def title(self) -> str:
        """The name of the stage as text: `stage 2 (5,000 op/s)`."""
        return f"stage {self.number} ({self.rate})"

    def values(self) -> Iterator[Value]:
        """Yields the definition of the stage as figures of a trial."""
        yield Value(f"{self.prefix}start", self.start_ns, "ns", 1)
        yield Value(f"{self.prefix}length", self.length_ns, "ns", 1)
        yield Value(f"{self.prefix}rate_from", self.rate_from, "op/s", 1)
        yield Value(f"{self.prefix}rate_to", self.rate_to, "op/s", 1)


def stages_of(trial: TrialResult) -> list[Stage]:
    """The stages of a trial, in order; empty at a constant rate and in a closed loop."""
    stages: list[Stage] = []
    while (length := trial.value(f"stage{len(stages) + 1}.length")) is not None:
        prefix = f"stage{len(stages) + 1}."
        start, rate_from, rate_to = (
            trial.value(f"{prefix}{name}") or 0.0 for name in ("start", "rate_from", "rate_to")
        )
        stages.append(Stage(len(stages) + 1, int(start), int(length), rate_from, rate_to))
    return stages


def output_bound(trial: TrialResult, figure: Value) -> str | None:
    """A figure's bound for output: an infinite latency is `unanswered` in a stage without failures."""
    stage = prefix_of(figure.metric) if figure.bound == "failed" else ""
    return UNANSWERED if stage and trial.value(f"{stage}errors") == 0 else figure.bound


def prefix_of(metric: str) -> str:
    """The prefix of a stage's figure, `stage2.` for `stage2.read.p99`; empty for figures of the whole window."""
    match = OF_STAGE.match(metric)
    return match[0] if match else ""
