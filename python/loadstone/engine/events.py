"""Events: what an engine reports about its trial, line by line.

The engine's Rust types are the source (`loadstone-engine schema` writes their JSON Schema). Fields unknown to this
version are ignored, so that an engine may report more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from loadstone.engine.document import read
from loadstone.engine.histogram import Histogram, decode

VERSION = 2
# Steps that are timed, but are not operations.
BESIDE = frozenset({"CLEANUP", "VERIFY", "OPEN", "FLUSH", "SYNC", "CLOSE", "GENERATE"})
# The engine also reports their parts, so in sums over operations they would count twice.
COMPOSED = frozenset({"READ-MODIFY-WRITE"})
# How an operation can end, beside failures, which have other statuses: it ended well (a buffered write is
# accepted, and proven by the final flush); the record read was still being written, so it cannot be judged; or, in a
# summary only, it never ended, and its latency is known only from below.
WELL = frozenset({"OK", "BATCHED_OK"})
NOT_YET = "NOT_YET"
CENSORED = "CENSORED"


@dataclass(frozen=True)
class Outcome:
    """One kind of operation with one status; histograms in ns, as `loadstone.engine.histogram.decode` takes them.

    With the status CENSORED they hold the times for which operations were waited for: `response` for all such
    operations, `service` for those that had been sent.
    """

    operation: str
    status: str
    count: int
    service: str
    response: str | None = None
    # Response less the generator's own lateness: the true response lies between the two.
    response_lower: str | None = None
    # Exact, in a summary only.
    service_ns_sum: int | None = None
    response_ns_sum: int | None = None

    @property
    def failed(self) -> bool:
        """Whether these operations failed."""
        return self.status not in WELL and self.status not in (NOT_YET, CENSORED)


@dataclass(frozen=True)
class Counts:
    """What is counted in the interval `k`, from 0."""

    k: int
    # Operations that ended in this interval, whenever they were due: well, and however.
    completed: int
    ended: int
    # Operations of this interval that have ended so far: well and in time, well but after their deadline, failed, …
    good: int
    late: int
    failed: int
    not_yet: int
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Earlier(Counts):
    """An addition to an earlier interval since the last event."""


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
class Interval(Counts):
    """One interval of the measured window, from `start_ns` for `length_ns`.

    Completions belong to the interval in which they happened. Everything else belongs to the interval in which the
    operation was due (in a closed loop: sent), so it is not yet complete: `earlier` of later intervals adds to it.
    """

    start_ns: int
    length_ns: int
    unix_ns: int
    in_flight: int
    late_generator: int
    late_client: int
    cpu_ns: tuple[int, int]
    memory_bytes: int
    # At a rate, how many operations were due in it.
    due: int | None = None
    earlier: tuple[Earlier, ...] = ()


@dataclass(frozen=True)
class Note:
    """A remark for the judge."""

    name: str
    message: str
    hint: str


@dataclass(frozen=True)
class Executor:
    """One thread that drives clients, or the one that conducts the trial, which has none."""

    name: str
    clients: int
    cpu_ns: int
    wall_ns: int
    # cpu_ns ÷ wall_ns.
    busy: float
    # How late ticks of 1 ms woke this thread: a histogram, ns.
    lag: str
    # The longest time for which it was not run although it was due, ns.
    held_ns: int = 0


@dataclass(frozen=True)
class Clock:
    """The measuring clock, and how it compared with the kernel's."""

    source: str
    drift_ppm: float
    jumps: int


@dataclass(frozen=True)
class Carried:
    """Operations due (in a closed loop: sent) in the warm-up that had not ended when the window began.

    They ended in the window, were never answered, or were never sent; the last lasted `ns_max` into the window.
    """

    ended: int = 0
    unanswered: int = 0
    unsent: int = 0
    ns_max: int = 0


@dataclass(frozen=True)
class Pauses:
    """Pauses of clients after failures in a closed loop, over all clients."""

    count: int = 0
    ns_sum: int = 0


@dataclass(frozen=True)
class ConnectionAttempts:
    """Attempts to connect to servers while measuring."""

    attempted: int
    failed: int


@dataclass(frozen=True)
class ServerEvent:
    """A report of a server, or of the whole cluster if `server` is empty: `up`, `down`, `joined`, or a sentence."""

    unix_ns: int
    server: str
    event: str


@dataclass(frozen=True)
class MissingRows:
    """Reads of cassandra-stress that found no row, and the number of one of the rows in the population."""

    reads: int
    number: int


@dataclass(frozen=True)
class Borders:
    """The instants of the trial, ns: the warm-up's since the start, the others since the first counted instant.

    A window that is not timed has neither end nor cut-off.
    """

    warmup_ns: int
    interval_ns: int
    window_ns: int | None = None
    cutoff_ns: int | None = None


@dataclass(frozen=True)
class Reached:
    """How many files reached a guarantee: their bytes, the sum of the times that it took each, and the last instant."""

    files: int = 0
    bytes: int = 0
    ns: int = 0
    last_unix_ns: int | None = None


@dataclass(frozen=True)
class Files:
    """The files of a trial that works on files. Rates are MB (2^20 bytes) a second; bytes are those of files done."""

    done: int
    failed: int
    unfinished: int
    unverified: int
    bytes: int
    lost_bytes: int
    task_ns: int
    rate_sum: float
    rate_square_sum: float
    returned: Reached
    flushed: Reached
    durable: Reached
    closed: Reached
    rate_min: float | None = None
    rate_max: float | None = None
    first_start_unix_ns: int | None = None
    first_done_unix_ns: int | None = None
    last_done_unix_ns: int | None = None
    foreign: int = 0
    retried: int = 0
    data_node_failures: int = 0

    @property
    def guarantees(self) -> dict[str, Reached]:
        """What a write assures, the weakest first."""
        return {"returned": self.returned, "flushed": self.flushed, "durable": self.durable, "closed": self.closed}


@dataclass(frozen=True)
class Validation:
    """What a look at sorted rows found; `faults` are rows out of order, or not what was generated."""

    rows: int
    parts: int
    duplicates: int
    faults: int
    first_faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sorted:
    """What a stage of a sort did."""

    stage: str
    rows: int
    bytes_read: int
    bytes_written: int
    seconds: float
    checksum: str | None = None
    validation: Validation | None = None


@dataclass(frozen=True)
class Summary:
    """The whole measured window; `end` is `done`, `stopped`, `lease` or `failed`."""

    end: str
    profile: str
    start_unix_ns: int
    # The divisor of throughput, and the operations that it counts: those that ended well within it, at a rate no more
    # than were due in it and did not fail.
    measured_ns: int
    completed: int
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
    # Clients whose session did not close: writes that they buffered may be lost.
    unclosed: int
    executors: tuple[Executor, ...]
    clock: Clock
    borders: Borders
    # Latencies longer than a histogram can hold.
    saturated_values: int
    outcomes: tuple[Outcome, ...]
    words: dict[str, str]
    # At a rate, how many operations were due in the window.
    due: int | None = None
    reason: str | None = None
    wait_client: str | None = None
    wait_generator: str | None = None
    settle_seconds: float | None = None
    not_yet: int = 0
    # Reads whose whole values were compared, and not their versions alone.
    compared: int = 0
    carried: Carried = Carried()
    # Failed attempts that were retried; they are not operations.
    retried: int = 0
    retried_by_status: dict[str, int] = field(default_factory=dict)
    # Operations that failed unsent, because no server could be reached.
    unreached: int = 0
    # Operations sent after the cut-off, at a rate with a limit of operations.
    overdue: int = 0
    pauses: Pauses = Pauses()
    connection_attempts: ConnectionAttempts | None = None
    # Since the store was opened.
    server_events: tuple[ServerEvent, ...] = ()
    files: Files | None = None
    sort: Sorted | None = None
    missing_rows: MissingRows | None = None

    @property
    def failed(self) -> int:
        """Operations that failed; a read of a record whose insert or delete was under way does not count."""
        return self.operations - self.succeeded - self.not_yet

    @property
    def censored(self) -> int:
        """Operations that never ended: sent and not answered, or never sent."""
        return self.in_flight + self.unsent

    @property
    def throughput(self) -> float:
        """Operations that ended well per second of the measured window."""
        return self.completed * 1e9 / self.measured_ns if self.measured_ns else 0.0


Event = Ready | Interval | Note | Summary
KINDS: dict[str, type[Event]] = {"ready": Ready, "interval": Interval, "note": Note, "summary": Summary}


@dataclass(frozen=True)
class Result:
    """The result of a trial."""

    ready: Ready
    notes: tuple[Note, ...]
    summary: Summary


def parse(line: str) -> Event:
    """Reads one line. Raises ValueError when it is not an event of this version."""
    fields = json.loads(line)
    kind = KINDS.get(str(fields.get("event"))) if isinstance(fields, dict) else None
    if kind is None:
        raise ValueError("it has no known `event`")
    # Checked first: another version may have different fields.
    if fields["event"] == "ready" and fields.get("events", VERSION) != VERSION:
        raise ValueError(f"its version is {fields['events']}, expected {VERSION}")
    return read(kind, fields)


def merged(outcomes: Iterable[Outcome]) -> Histogram:
    """Service times, ns, of all operations that ended well, added over the outcomes of any intervals or engines."""
    histogram = Histogram()
    for outcome in outcomes:
        if outcome.operation not in BESIDE and outcome.status in WELL:
            histogram.add(decode(outcome.service))
    return histogram
