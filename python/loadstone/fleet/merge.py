"""Merges the segments of a trial as if one engine had run it. Counts and histograms are added exactly.

Segments begin at the same instant and have intervals of the same length, so intervals with the same number are
simultaneous. Outcomes of one operation and status stay separate: readers add them up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import chain
from typing import Any, TypeVar

from loadstone.engine.events import Event, Interval, Note, Ready, Result, Summary
from loadstone.engine.trial import EngineError

Part = TypeVar("Part", Ready, Interval, Summary)
Values = Sequence[Any]
# Worst first: the whole trial ends as its worst segment did.
ENDS = ("failed", "lease", "stopped", "done")


class Merger:
    """Merges the events of all segments into those of the whole trial."""

    def __init__(self, segments: int) -> None:
        self._segments = segments
        self._ready: list[Ready] = []
        self._notes: list[Note] = []
        self._intervals: dict[int, list[Interval]] = {}
        self._summaries: dict[int, Summary] = {}
        # Segments that ended without a result, and why.
        self.lost: dict[int, EngineError] = {}
        # The number of the newest interval of each segment still running.
        self._newest = dict.fromkeys(range(segments), -1)

    def take(self, segment: int, event: Event | EngineError) -> Iterator[Ready | Interval]:
        """The merged events that this event completes: `ready`, and intervals in order."""
        match event:
            case Ready():
                self._ready.append(event)
                if len(self._ready) == self._segments:
                    yield merged(self._ready, self._ready[0])
            case Note():
                self._notes.append(self._of_segment(segment, event))
            case Interval():
                self._newest[segment] = event.k
                self._intervals.setdefault(event.k, []).append(event)
            case Summary():
                self._newest.pop(segment, None)
                self._summaries[segment] = event
            case EngineError():
                self._newest.pop(segment, None)
                # An engine that fails after its summary may not have written everything.
                self._summaries.pop(segment, None)
                self.lost[segment] = event
        # An interval is complete once every running segment has reported it or a later one.
        until = min(self._newest.values(), default=max(self._intervals, default=-1))
        for k in sorted(k for k in self._intervals if k <= until):
            parts = self._intervals.pop(k)
            # A segment that ended within it reported a shorter one.
            yield merged(parts, max(parts, key=lambda each: each.length_ns))

    def result(self) -> Result:
        """The merged result, after the last segment has ended. Raises EngineError if none has a result."""
        if not self._summaries:
            raise next(iter(self.lost.values()))
        lost = [
            self._of_segment(segment, Note("lost-segment", str(error.args[0]), error.hint))
            for segment, error in sorted(self.lost.items())
        ]
        summaries = [self._summaries[segment] for segment in sorted(self._summaries)]
        return Result(merged(self._ready, self._ready[0]), (*self._notes, *lost), summary(summaries))

    def _of_segment(self, segment: int, note: Note) -> Note:
        """The note, with its segment's number if there are several."""
        if self._segments == 1:
            return note
        return replace(note, message=f"segment {segment}/{self._segments}: {note.message}")


def summary(parts: Sequence[Summary]) -> Summary:
    """The summary of the whole trial, whose window is as long as the longest segment's.

    How long operations waited for a client or the generator is only in the events of each segment.
    """
    worst = min(parts, key=lambda each: ENDS.index(each.end) if each.end in ENDS else 0)
    return merged(parts, worst) if len(parts) > 1 else worst


def merged(parts: Sequence[Part], base: Part) -> Part:
    """Events of all segments as one; what has no rule is as in `base`."""
    rules = {each.name: RULES[each.name] for each in fields(base) if each.name in RULES}
    return replace(base, **{name: rule([getattr(each, name) for each in parts]) for name, rule in rules.items()})


def known(values: Values) -> list[Any]:
    """Those that are known."""
    return [each for each in values if each is not None]


def together(values: Values) -> Any:
    """The sum; of parts of events, their fields as by `merged`."""
    if not (there := known(values)):
        return None
    return merged(there, there[0]) if is_dataclass(there[0]) else sum(there)


def add_counts(values: Values) -> dict[str, int]:
    """Counts by name, added up."""
    return dict(sum((Counter(counts) for counts in values), Counter()))


def checksum(values: Values) -> str | None:
    """Of all rows: it is a sum over them, and so the sum of the segments'."""
    return None if None in values else f"{sum(int(each, 16) for each in values):x}"


# How a field of all segments is made of theirs.
RULES: dict[str, Callable[[Values], Any]] = {
    name: rule
    for names, rule in (
        (
            "clients completed ended good late failed not_yet in_flight late_generator late_client memory_bytes",
            together,
        ),
        ("unreached overdue pauses count ns_sum connection_attempts attempted", together),
        ("retried_by_status", add_counts),
        ("compared operations succeeded warmup_operations unsent memory_bytes_max unclosed saturated_values", together),
        ("carried unanswered files sort rows bytes_read bytes_written", together),
        ("done unfinished unverified foreign retried data_node_failures bytes lost_bytes task_ns", together),
        ("rate_sum rate_square_sum returned flushed durable closed ns", together),
        ("driver_ns connect_seconds measured_ns seconds ns_max", max),
        ("settle_seconds rate_max last_done_unix_ns last_unix_ns", lambda each: max(known(each), default=None)),
        ("start_unix_ns", min),
        ("rate_min first_start_unix_ns first_done_unix_ns", lambda each: min(known(each), default=None)),
        ("cpu_ns device_bytes", lambda each: tuple(map(sum, zip(*each, strict=True)))),
        ("executors outcomes earlier", lambda each: tuple(chain.from_iterable(each))),
        ("due", lambda each: None if None in each else sum(each)),
        ("clock", lambda each: max(each, key=lambda clock: (clock.jumps, abs(clock.drift_ppm)))),
        ("checksum", checksum),
        ("wait_client wait_generator validation", lambda _: None),
    )
    for name in names.split()
}
