"""Merges the segments of a trial as if one engine had run it. Counts and histograms are added exactly.

Segments begin at the same instant and have intervals of the same length, so intervals with the same number are
simultaneous. Outcomes of one operation and status stay separate: readers add them up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from loadstone.engine.events import Carried, Event, Files, Interval, Note, Reached, Ready, Result, Sorted, Summary
from loadstone.engine.trial import EngineError

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
                    yield ready(self._ready)
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
            yield interval(self._intervals.pop(k))

    def result(self) -> Result:
        """The merged result, after the last segment has ended. Raises EngineError if none has a result."""
        if not self._summaries:
            raise next(iter(self.lost.values()))
        lost = [
            self._of_segment(segment, Note("lost-segment", str(error.args[0]), error.hint))
            for segment, error in sorted(self.lost.items())
        ]
        summaries = [self._summaries[segment] for segment in sorted(self._summaries)]
        return Result(ready(self._ready), (*self._notes, *lost), summary(summaries))

    def _of_segment(self, segment: int, note: Note) -> Note:
        """The note, with its segment's number if there are several."""
        if self._segments == 1:
            return note
        return replace(note, message=f"segment {segment}/{self._segments}: {note.message}")


def ready(parts: Sequence[Ready]) -> Ready:
    """Merged `ready` events: times are those of the slowest segment."""
    return replace(
        parts[0],
        clients=sum(each.clients for each in parts),
        driver_ns=max(each.driver_ns for each in parts),
        connect_seconds=max(each.connect_seconds for each in parts),
    )


def interval(parts: Sequence[Interval]) -> Interval:
    """An interval of all segments; a segment that ended within it reported a shorter one."""
    due = [each.due for each in parts if each.due is not None]
    return replace(
        max(parts, key=lambda each: each.length_ns),
        **sums(parts, "completed ended good late failed not_yet in_flight late_generator late_client memory_bytes"),
        cpu_ns=pair(each.cpu_ns for each in parts),
        outcomes=tuple(chain.from_iterable(each.outcomes for each in parts)),
        due=sum(due) if len(due) == len(parts) else None,
        earlier=tuple(chain.from_iterable(each.earlier for each in parts)),
    )


def summary(parts: Sequence[Summary]) -> Summary:
    """The summary of the whole trial, whose window is as long as the longest segment's.

    How long operations waited for a client or the generator is only in the events of each segment.
    """
    if len(parts) == 1:
        return parts[0]
    worst = min(parts, key=lambda each: ENDS.index(each.end) if each.end in ENDS else 0)
    due = [each.due for each in parts if each.due is not None]
    settled = [each.settle_seconds for each in parts if each.settle_seconds is not None]
    carried = [each.carried for each in parts]
    return replace(
        worst,
        **sums(
            parts,
            "completed operations succeeded warmup_operations in_flight unsent late_generator late_client"
            " memory_bytes_max unclosed saturated_values not_yet",
        ),
        start_unix_ns=min(each.start_unix_ns for each in parts),
        measured_ns=max(each.measured_ns for each in parts),
        cpu_ns=pair(each.cpu_ns for each in parts),
        device_bytes=pair(each.device_bytes for each in parts),
        executors=tuple(chain.from_iterable(each.executors for each in parts)),
        clock=max((each.clock for each in parts), key=lambda clock: (clock.jumps, abs(clock.drift_ppm))),
        outcomes=tuple(chain.from_iterable(each.outcomes for each in parts)),
        due=sum(due) if len(due) == len(parts) else None,
        wait_client=None,
        wait_generator=None,
        settle_seconds=max(settled, default=None),
        files=files([each.files for each in parts if each.files is not None]),
        sort=stage([each.sort for each in parts if each.sort is not None]),
        carried=Carried(**sums(carried, "ended unanswered unsent"), ns_max=max(each.ns_max for each in carried)),
    )


def files(parts: Sequence[Files]) -> Files | None:
    """The files of all segments: sums, first starts and last ends."""
    if not parts:
        return None
    extremes: dict[str, Any] = {}
    for choose, names in (
        (min, "rate_min first_start_unix_ns first_done_unix_ns"),
        (max, "rate_max last_done_unix_ns"),
    ):
        for name in names.split():
            known = [value for each in parts if (value := getattr(each, name)) is not None]
            extremes[name] = choose(known) if known else None
    for name in parts[0].guarantees:
        reached = [each.guarantees[name] for each in parts]
        last = max((each.last_unix_ns for each in reached if each.last_unix_ns is not None), default=None)
        extremes[name] = Reached(**sums(reached, "files bytes ns"), last_unix_ns=last)
    counted = "done failed unfinished unverified foreign retried data_node_failures bytes lost_bytes task_ns"
    return Files(**sums(parts, f"{counted} rate_sum rate_square_sum"), **extremes)


def stage(parts: Sequence[Sorted]) -> Sorted | None:
    """A sort stage of all segments. Its checksum is a sum over all rows, and so the sum of the segments'."""
    if not parts:
        return None
    seconds = max(each.seconds for each in parts)
    moved = sums(parts, "rows bytes_read bytes_written")
    known = [int(each.checksum, 16) for each in parts if each.checksum is not None]
    checksum = f"{sum(known):x}" if len(known) == len(parts) else None
    return replace(parts[0], **moved, seconds=seconds, checksum=checksum, validation=None)


def sums(parts: Iterable[object], names: str) -> dict[str, Any]:
    """The sum of each of these fields."""
    return {name: sum(getattr(each, name) for each in parts) for name in names.split()}


def pair(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The element-wise sums of pairs."""
    first, second = map(sum, zip(*parts, strict=True))
    return first, second
