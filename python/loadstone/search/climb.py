"""The search for a knee: up by doublings until the plateau shows, then into the gap that the knee lies in."""

from __future__ import annotations

from loadstone.format import units
from loadstone.search.book import Book, WallError
from loadstone.search.outcome import Kind, Outcome
from loadstone.statistics import knee as statistics
from loadstone.statistics.knee import RESAMPLES, Knee

# Up to this many times the load that reaches the plateau is tried: two doublings. One may be a dent in a curve that
# keeps rising.
BEYOND = 4


class Climb:
    """One search from its first load to its outcome."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.rule = book.rule
        # The loads that were judged, ascending.
        self.tried: list[float] = []
        self.wall: WallError | None = None
        self.notes: list[str] = []

    def go(self) -> Outcome:
        """Raises WantedError."""
        stopped = self.ascend()
        if not self.tried:
            assert self.wall is not None, "the first load was judged or cannot be"
            return self.outcome("nothing", None, "the first load cannot be judged")
        stopped = self.halve() or stopped
        found = self.knee()
        self.repeat(found)
        if found.upper is None:
            return self.outcome("wall" if self.wall else "beyond", found, stopped)
        if self.wall is not None:
            where = self.rule.amount(self.wall.load)
            self.notes.append(f"nothing is known about {where}: the probe is invalid: {self.wall.reason}")
        return self.outcome("found" if found.lower is not None else "below", found, stopped)

    def ascend(self) -> str:
        """Doubles until the plateau shows; returns why it went no further."""
        for load in self.rule.ladder():
            if not self.judged(load):
                return f"{self.rule.amount(load)} cannot be judged"
            reached = self.knee(0).reached
            if reached is not None and load >= BEYOND * reached:
                return f"{units.load(load)} is {BEYOND} times what reaches the plateau"
        return "the upper bound is reached"

    def halve(self) -> str:
        """Halves the gap below the load that reaches the plateau; returns why it stopped."""
        ladder = self.rule.ladder()
        # Halvings for earlier estimates count as well.
        for load in [load for load in self.book.probes if load not in ladder]:
            self.judged(load)
        while True:
            reached = self.knee(0).reached
            if reached is None or reached in (self.tried[0], self.tried[-1]):
                return ""
            below = self.tried[self.tried.index(reached) - 1]
            middle = self.rule.middle(below, reached)
            if middle is None:
                return self.rule.closeness(below, reached)
            if sum(load not in ladder for load in self.book.probes) >= self.rule.halvings_most:
                return f"{units.many(self.rule.halvings_most, 'load')} between the doublings are the most"
            if not self.judged(middle):
                return f"{self.rule.amount(middle)} cannot be judged"

    def judged(self, load: float) -> bool:
        """Whether a load could be judged; notes it either way. Raises WantedError."""
        try:
            self.book.probe(load)
        except WallError as wall:
            self.wall = wall
            return False
        self.tried = sorted([*self.tried, load])
        return True

    def knee(self, resamples: int = RESAMPLES) -> Knee:
        """The knee of the loads tried. Their order was not random, so repeats of two loads never form a block."""
        samples = {load: self.book.probe(load).valid for load in self.tried}
        points = {load: dict(enumerate(each.throughput for each in found)) for load, found in samples.items()}
        return statistics.knee(points, blocks=False, resamples=resamples)

    def repeat(self, found: Knee) -> None:
        """Asks for more repeats where the bracket is wider than one gap between loads. Raises WantedError."""
        if found.unclaimed not in (None, "scatter"):
            return
        last = self.tried[-1] if found.upper is None else found.upper
        within = [load for load in self.tried if (found.lower or 0) <= load <= last]
        if len(within) > (1 if found.lower is None else 2):
            self.book.more(within)

    def outcome(self, kind: Kind, found: Knee | None, stopped: str) -> Outcome:
        """The end."""
        probes = list(self.book.probes.values())
        wall = (self.wall.load, self.wall.reason) if self.wall else None
        load = None if found is None else self.tried[-1] if found.upper is None else found.reached
        low, high = (found.lower, found.upper) if found else (None, None)
        return Outcome(self.rule, kind, load, low, high, (), probes, stopped, wall, tuple(self.notes), knee=found)
