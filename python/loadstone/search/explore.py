"""The path of a search for a limit: up by doublings, then into the bracket by halves.

look(rule, samples) depends on the samples alone, so that a search continues where it was after any interruption.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadstone.search.book import Book, WallError, WantedError
from loadstone.search.climb import Climb
from loadstone.search.outcome import Decision, Kind, Outcome
from loadstone.search.probe import Sample
from loadstone.search.rule import Rule

# A throughput this much below the best counts as lower.
FALL = 0.05


def look(rule: Rule, samples: Mapping[float, Sequence[Sample]]) -> float | Outcome:
    """The load that needs another trial, or the outcome when none does."""
    book = Book(rule, samples)
    try:
        return Climb(book).go() if rule.objective is None else Way(book).go()
    except WantedError as wanted:
        return wanted.load


class Way:
    """One search for the highest load that meets an objective, from its first load to its outcome."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.rule = book.rule
        # The bracket: the highest load that holds, and the lowest that does not.
        self.low: float | None = None
        self.high: float | None = None
        self.wall: WallError | None = None
        # Whether two consecutive loads did not hold, on the way up.
        self.twice = False
        self.notes: list[str] = []

    def go(self) -> Outcome:
        """Raises WantedError."""
        self.climb()
        if self.low is None and self.high is None:
            assert self.wall is not None, "the first load was decided or cannot be"
            return self.outcome("nothing", None, "the first load cannot be judged")
        if self.high is None:
            if self.wall is not None:
                return self.outcome("wall", self.low, f"{self.rule.amount(self.wall.load)} cannot be judged")
            return self.outcome("beyond", self.low, "the upper bound is reached")
        if self.low is None:
            return self.outcome("below", None, "there is nothing lower to try")
        return self.outcome("found", *self.halve(self.low, self.high))

    def climb(self) -> None:
        """Doubles until two consecutive loads do not hold: one may be a dent in a curve that keeps rising."""
        for load in self.rule.ladder():
            try:
                go = self.book.decide(load).go
            except WallError as wall:
                self.wall = wall
                if self.high is not None:
                    self.notes.append(f"nothing is known about higher loads: {refusal(self.rule, wall)}")
                return
            if go:
                self.low, self.high = load, None
            elif self.high is None:
                self.high = load
            else:
                self.twice = True
                return

    def halve(self, low: float, high: float) -> tuple[float, str]:
        """Halves the bracket on a logarithmic scale; returns the answer and why it stopped."""
        while (middle := self.rule.middle(low, high)) is not None:
            try:
                go = self.book.decide(middle).go
            except WallError as wall:
                self.wall = wall
                stopped = refusal(self.rule, wall)
                break
            low, high = (middle, high) if go else (low, middle)
        else:
            stopped = self.rule.closeness(low, high)
        return low, stopped

    def outcome(self, kind: Kind, load: float | None, stopped: str) -> Outcome:
        """The outcome, with what is certain about it."""
        decisions = [self.book.decisions[each] for each in sorted(self.book.decisions)]
        low, high = bounds(decisions, load)
        probes = list(self.book.probes.values())
        wall = (self.wall.load, self.wall.reason) if self.wall else None
        notes = (*self.notes, *self.oddities(decisions, load))
        return Outcome(self.rule, kind, load, low, high, decisions, probes, stopped, wall, notes, self.twice)

    def oddities(self, decisions: Sequence[Decision], load: float | None) -> Iterator[str]:
        """What does not fit: decisions that are not monotone, throughput that falls."""
        sure = [decision for decision in decisions if decision.sure]
        for i, early in enumerate(sure):
            late = next((each for each in sure[i + 1 :] if each.go), None)
            if not early.go and late is not None:
                no, yes = self.rule.amount(early.load), self.rule.amount(late.load)
                what = f"the objective did not hold at {no} and held again at {yes}"
                yield f"not monotone: {what}; there may be more than one answer"
                break
        known = [(probe.throughput, probe) for probe in self.book.probes.values() if not probe.invalid]
        best, peak = max(((each, probe) for each, probe in known if each), key=lambda pair: pair[0], default=(0, None))
        if peak is None or self.rule.over == "rate":
            return
        at = next((pair for pair in known if pair[1].load == load), None)
        if at and at[0] and at[0] < best * (1 - FALL) and peak.load < at[1].load:
            yield (
                f"throughput is higher at {self.rule.amount(peak.load)}: more clients meet the objective, but do less"
            )


def bounds(decisions: Sequence[Decision], load: float | None) -> tuple[float | None, float | None]:
    """The nearest loads around the answer whose decisions are certain: it holds at the lower, not at the upper."""
    if load is None:
        return None, None
    low = max((each.load for each in decisions if each.sure and each.go and each.load <= load), default=None)
    return low, min((each.load for each in decisions if each.sure and not each.go and each.load > load), default=None)


def refusal(rule: Rule, wall: WallError) -> str:
    """Why a load cannot be judged."""
    return f"at {rule.amount(wall.load)} the probe is invalid: {wall.reason}"
