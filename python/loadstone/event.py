"""Events: what an engine tells about its trial, line by line, and the record that they add up to.

The engine's Rust types are the source (`loadstone-engine schema` writes their JSON Schema). Fields that this version
does not know are left alone, so that an engine may say more.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from loadstone.histogram import Histogram, decode

VERSION = 1
# Steps that are timed beside the operations and are none themselves.
BESIDE = frozenset({"CLEANUP", "VERIFY"})


@dataclass(frozen=True)
class Outcome:
    """One kind of operation with one status; histograms in ns, as `loadstone.histogram.decode` takes them."""

    operation: str
    status: str
    count: int
    service: str
    response: str | None = None


@dataclass(frozen=True)
class Ready:
    """The store is open and every client connected."""

    events: int
    engine: str
    pid: int
    store: str
    durability: str
    how: str
    facts: dict[str, str]
    clients: int
    driver_ns: float
    connect_seconds: float


@dataclass(frozen=True)
class Interval:
    """One interval of the measured window."""

    start_ns: int
    length_ns: int
    unix_ns: int
    operations: int
    succeeded: int
    in_flight: int
    late_generator: int
    late_client: int
    cpu_ns: tuple[int, int]
    memory_bytes: int
    outcomes: tuple[Outcome, ...]
    not_yet: int = 0


@dataclass(frozen=True)
class Note:
    """Something that the judge should know."""

    name: str
    message: str
    hint: str


@dataclass(frozen=True)
class Summary:
    """The whole measured window; `end` is `done`, `stopped`, `lease` or `failed`."""

    end: str
    profile: str
    start_unix_ns: int
    measured_ns: int
    operations: int
    succeeded: int
    warmup_operations: int
    in_flight: int
    unsent: int
    late_generator: int
    late_client: int
    cpu_ns: tuple[int, int]
    memory_bytes_max: int
    device_bytes: tuple[int, int]
    outcomes: tuple[Outcome, ...]
    words: dict[str, str]
    reason: str | None = None
    wait_client: str | None = None
    wait_generator: str | None = None
    settle_seconds: float | None = None
    not_yet: int = 0

    @property
    def failed(self) -> int:
        """Operations that ended badly; a read of a record whose insert or delete was under way is none."""
        return self.operations - self.succeeded - self.not_yet

    @property
    def operations_per_second(self) -> float:
        """Operations done per second of the measured window."""
        return self.operations * 1e9 / self.measured_ns if self.measured_ns else 0.0


Event = Ready | Interval | Note | Summary
KINDS: dict[str, type[Event]] = {"ready": Ready, "interval": Interval, "note": Note, "summary": Summary}


@dataclass(frozen=True)
class Result:
    """What a trial came to."""

    ready: Ready
    notes: tuple[Note, ...]
    summary: Summary


@dataclass
class Record:
    """What a trial has said so far, without its intervals: an hour of those is for a file, not for memory."""

    ready: Ready | None = None
    notes: list[Note] = field(default_factory=list)
    summary: Summary | None = None

    def add(self, event: Event) -> None:
        """Keeps an event."""
        match event:
            case Ready():
                self.ready = event
            case Note():
                self.notes.append(event)
            case Summary():
                self.summary = event
            case Interval():
                pass

    def result(self) -> Result:
        """The result of a trial that has ended. Raises ValueError before."""
        if self.ready is None or self.summary is None:
            raise ValueError("the trial has no result yet")
        return Result(self.ready, tuple(self.notes), self.summary)


def parse(line: str) -> Event:
    """Reads one line. Raises ValueError when it is no event of this version."""
    fields = json.loads(line)
    kind = KINDS.get(str(fields.get("event"))) if isinstance(fields, dict) else None
    if kind is None:
        raise ValueError("it has no known `event`")
    for pair in {"cpu_ns", "device_bytes"} & fields.keys():
        fields[pair] = tuple(fields[pair])
    if "outcomes" in fields:
        fields["outcomes"] = tuple(Outcome(**known(Outcome, outcome)) for outcome in fields["outcomes"])
    event = kind(**known(kind, fields))
    if isinstance(event, Ready) and event.events != VERSION:
        raise ValueError(f"its version is {event.events}, this is {VERSION}")
    return event


def known(kind: type[Event | Outcome], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a kind. Raises ValueError when one is missing."""
    wanted = {each.name: each for each in dataclasses.fields(kind)}
    for name, each in wanted.items():
        if name not in fields and each.default is dataclasses.MISSING:
            raise ValueError(f"it has no `{name}`")
    return {name: value for name, value in fields.items() if name in wanted}


def merged(outcomes: Iterable[Outcome], operation: str | None = None, status: str = "OK") -> Histogram:
    """Service times, ns, of an operation, or of all: added over the outcomes of any intervals, segments or engines."""
    histogram = Histogram()
    for outcome in outcomes:
        wanted = outcome.operation not in BESIDE if operation is None else outcome.operation == operation
        if wanted and outcome.status == status:
            histogram.add(decode(outcome.service))
    return histogram
