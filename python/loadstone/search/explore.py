"""The way of a search: up by doublings, then into the bracket by halves.

look(rule, samples) is a function of the samples alone, so that a search goes on after any interruption where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadstone.format import units
from loadstone.search.book import Book, WallError, WantedError
from loadstone.search.decision import Decision
from loadstone.search.outcome import Kind, Outcome
from loadstone.search.probe import Sample
from loadstone.search.rule import GAIN, RATIO, Rule

# So much below the best throughput is less.
FALL = 0.05


def look(rule: Rule, samples: Mapping[float, Sequence[Sample]]) -> float | Outcome:
    """The load that needs another trial, or the outcome when none does."""
    book = Book(rule, samples)
    try:
        return Way(book).go()
    except WantedError as wanted:
        return wanted.load


class Way:
    """One search from its first load to its outcome."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.rule = book.rule
        # The bracket: the last load to go on from, the first one not to.
        self.low: float | None = None
        self.high: float | None = None
        self.wall: WallError | None = None
        # Whether two loads in a row said no, on the way up.
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
            return self.outcome("below", None if self.rule.objective else self.high, "there is nothing lower to try")
        return self.outcome("found", *self.halve(self.low, self.high))

    def climb(self) -> None:
        """Doubles until two loads in a row say no: one alone may be a dent in a curve that goes on rising."""
        ladder = self.rule.ladder()
        for load in ladder if self.rule.objective else ladder[:-1]:
            try:
                go = self.book.decide(load).go
            except WallError as wall:
                self.wall = wall
                if self.high is not None:
                    self.notes.append(f"nothing is known of what comes beyond: {words(self.rule, wall)}")
                return
            if go:
                self.low, self.high = load, None
            elif self.high is None:
                self.high = load
            else:
                self.twice = True
                return

    def halve(self, low: float, high: float) -> tuple[float, str]:
        """Halves the bracket on a logarithmic scale; returns the answer and why it is not looked for more closely."""
        while (middle := self.rule.middle(low, high)) is not None:
            try:
                go = self.book.decide(middle).go
            except WallError as wall:
                self.wall = wall
                stopped = words(self.rule, wall)
                break
            low, high = (middle, high) if go else (low, middle)
        else:
            near = high - low <= 1 and self.rule.over == "clients"
            ends = f"{units.load(low)} and {units.load(high)}"
            stopped = f"{ends} are neighbours" if near else f"{ends} are within a ratio of {RATIO:g}"
        return (low if self.rule.objective else high), stopped

    def outcome(self, kind: Kind, load: float | None, stopped: str) -> Outcome:
        """The end, with what is sure of it."""
        decisions = [self.book.decisions[each] for each in sorted(self.book.decisions)]
        low, high = bounds(decisions, load, knee=self.rule.objective is None)
        return Outcome(
            self.rule,
            kind,
            load,
            low,
            high,
            decisions,
            list(self.book.probes.values()),
            stopped,
            (self.wall.load, self.wall.reason) if self.wall else None,
            (*self.notes, *self.oddities(decisions, load)),
            self.twice,
        )

    def oddities(self, decisions: Sequence[Decision], load: float | None) -> Iterator[str]:
        """What does not fit: a way that is not monotone, throughput that falls."""
        sure = [decision for decision in decisions if decision.sure]
        for i, early in enumerate(sure):
            late = next((each for each in sure[i + 1 :] if each.go), None)
            if not early.go and late is not None:
                no, yes = self.rule.amount(early.load), self.rule.amount(late.load)
                what = (
                    f"throughput grew by less than {units.short_percent(GAIN)} a doubling at {no}, more again at {yes}"
                    if self.rule.objective is None
                    else f"the objective did not hold at {no} and held again at {yes}"
                )
                yield f"not monotone: {what}; there may be more than one answer"
                break
        known = [(probe.throughput, probe) for probe in self.book.probes.values() if not probe.invalid]
        best, peak = max(((each, probe) for each, probe in known if each), key=lambda pair: pair[0], default=(0, None))
        if peak is None or self.rule.over == "rate":
            return
        last = next((pair for pair in reversed(known) if pair[0]), None)
        at = next((pair for pair in known if pair[1].load == load), None)
        if self.rule.objective is not None and at and at[0] and at[0] < best * (1 - FALL) and peak.load < at[1].load:
            yield (
                f"throughput is higher at {self.rule.amount(peak.load)}: more clients meet the objective, and do less"
            )
        elif last and last[0] and last[0] < best * (1 - FALL):
            fall = units.short_percent(1 - last[0] / best)
            yield f"throughput falls by {fall} from {units.load(peak.load)} to {self.rule.amount(last[1].load)}"


def bounds(decisions: Sequence[Decision], load: float | None, *, knee: bool) -> tuple[float | None, float | None]:
    """The nearest loads around the answer whose decisions are sure: not yet at the lower, surely at the upper."""
    if load is None:
        return None, None
    below = [each.load for each in decisions if each.sure and each.go and (each.load < load or not knee)]
    low = max((each for each in below if each <= load), default=None)
    above = [each.load for each in decisions if each.sure and not each.go and (each.load > load or knee)]
    return low, min((each for each in above if each >= load), default=None)


def words(rule: Rule, wall: WallError) -> str:
    """Why a load cannot be judged."""
    return f"at {rule.amount(wall.load)} the probe is invalid: {wall.reason}"
