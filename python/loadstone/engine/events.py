"""Events: an engine's report on its trial, line by line.

The engine's Rust types are the source: `loadstone-engine schema` writes their JSON Schema, from which `python -m
loadstone.engine` generates the types in `event_types`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from loadstone.engine.document import read_document
from loadstone.engine.event_figures import CENSORED, NOT_YET, WELL
from loadstone.engine.event_types import (
    Borders,
    Carried,
    Clock,
    ConnectionAttempts,
    Earlier,
    Executor,
    Files,
    Interval,
    KeyRanges,
    MissingRows,
    Note,
    Outcome,
    Pauses,
    Reached,
    Ready,
    ServerEvent,
    Sorted,
    Summary,
    Validation,
)
from loadstone.engine.histogram import Histogram, decode_histogram

# The counts of an interval, from the interval's event or from later additions.
Counts = Interval | Earlier

__all__ = [
    "CENSORED",
    "COMPOSED",
    "NOT_YET",
    "TIMED_STEPS",
    "VERSION",
    "WELL",
    "Borders",
    "Carried",
    "Clock",
    "ConnectionAttempts",
    "Counts",
    "Earlier",
    "Event",
    "Executor",
    "Files",
    "Interval",
    "KeyRanges",
    "MissingRows",
    "Note",
    "Outcome",
    "Pauses",
    "Reached",
    "Ready",
    "Result",
    "ServerEvent",
    "Sorted",
    "Summary",
    "Validation",
    "merge_service_times",
    "parse_event",
]

VERSION = 2
# Steps that are timed, although they are not operations.
TIMED_STEPS = frozenset({"CLEANUP", "VERIFY", "OPEN", "FLUSH", "SYNC", "CLOSE", "GENERATE"})
# Operations whose parts the engine also reports, so a sum over all operations would count the parts twice.
COMPOSED = frozenset({"READ-MODIFY-WRITE"})
Event = Ready | Interval | Note | Summary
KINDS: dict[str, type[Event]] = {"ready": Ready, "interval": Interval, "note": Note, "summary": Summary}


@dataclass(frozen=True)
class Result:
    """The result of a trial."""

    ready: Ready
    notes: tuple[Note, ...]
    summary: Summary


def parse_event(line: str) -> Event:
    """Parses one line. Raises ValueError if it is not an event of this version."""
    fields = json.loads(line)
    kind = KINDS.get(str(fields.get("event"))) if isinstance(fields, dict) else None
    if kind is None:
        raise ValueError("it has no known `event`")
    # The version is checked first, because another version may have different fields.
    if fields["event"] == "ready" and fields.get("events", VERSION) != VERSION:
        raise ValueError(f"its version is {fields['events']}, expected {VERSION}")
    return read_document(kind, fields)


def merge_service_times(outcomes: Iterable[Outcome]) -> Histogram:
    """The merged service times, ns, of all successful operations; outcomes may be from several intervals or engines."""
    histogram = Histogram()
    for outcome in outcomes:
        if outcome.operation not in TIMED_STEPS and outcome.status in WELL:
            histogram.add_histogram(decode_histogram(outcome.service))
    return histogram
