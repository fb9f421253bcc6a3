"""The types of events. Generated from the schema of events by `python -m loadstone.engine`; do not edit.

The schema describes each field. Fields unknown to this version are ignored, so that an engine may report more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loadstone.engine.event_figures import FilesFigures, OutcomeFigures, SummaryFigures


@dataclass(frozen=True)
class Borders:
    """The borders of a trial, which are fixed before it starts."""

    interval_ns: int
    warmup_ns: int
    cutoff_ns: int | None = None
    window_ns: int | None = None


@dataclass(frozen=True)
class Carried:
    """Operations due (closed loop: sent) in the warm-up that had not ended when the window began: they are in
    no histogram, but measured operations had to wait for them."""

    ended: int
    ns_max: int
    unanswered: int
    unsent: int


@dataclass(frozen=True)
class Clock:
    """The clock that a trial was measured with."""

    drift_ppm: float
    jumps: int
    source: str
    offset_ns_max: int = 0
    reversals: int = 0


@dataclass(frozen=True)
class Collection:
    """What a garbage collector in the engine's process did while measuring."""

    collector: str
    count: int
    time_ms: int


@dataclass(frozen=True)
class ConnectionAttempts:
    """Attempts to connect to servers."""

    attempted: int
    failed: int


@dataclass(frozen=True)
class Outcome(OutcomeFigures):
    """Histograms of one step with one outcome."""

    count: int
    operation: str
    service: str
    status: str
    response: str | None = None
    response_lower: str | None = None
    response_ns_sum: int | None = None
    service_ns_sum: int | None = None


@dataclass(frozen=True)
class Executor:
    """A thread of the engine during the window."""

    busy: float
    clients: int
    cpu_ns: int
    lag: str
    name: str
    wall_ns: int
    held_ns: int = 0


@dataclass(frozen=True)
class Reached:
    """How many files reached a guarantee, and when."""

    bytes: int
    files: int
    ns: int
    last_unix_ns: int | None = None


@dataclass(frozen=True)
class WrongByte:
    """A byte that differs from what was written."""

    expected: int
    file: str
    found: int
    offset: int


@dataclass(frozen=True)
class SortProgress:
    """Progress of a stage of a sort, since its start."""

    bytes_read: int
    bytes_written: int
    rows: int


@dataclass(frozen=True)
class Missed:
    """A read that found nothing where another segment inserts."""

    index: int
    sent_unix_ns: int


@dataclass(frozen=True)
class MissingRows:
    """Reads that found no row."""

    number: int
    reads: int


@dataclass(frozen=True)
class Note:
    """An observation for the judge."""

    hint: str
    message: str
    name: str


@dataclass(frozen=True)
class Pauses:
    """Pauses of clients after failures."""

    count: int
    ns_sum: int


@dataclass(frozen=True)
class Ready:
    """The store is open, every session connected."""

    clients: int
    connect_seconds: float
    driver_ns: float
    durability: str
    engine: str
    events: int
    facts: dict[str, str]
    how: str
    pid: int
    store: str


@dataclass(frozen=True)
class ServerEvent:
    """A report of a server."""

    event: str
    server: str
    unix_ns: int


@dataclass(frozen=True)
class Validation:
    """The result of validation."""

    duplicates: int
    faults: int
    parts: int
    rows: int
    first_faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Earlier:
    """What was added to an earlier interval."""

    completed: int
    ended: int
    failed: int
    good: int
    k: int
    late: int
    not_yet: int
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Files(FilesFigures):
    """The files of a trial or of a segment."""

    bytes: int
    closed: Reached
    done: int
    durable: Reached
    failed: int
    flushed: Reached
    lost_bytes: int
    rate_square_sum: float
    rate_sum: float
    returned: Reached
    task_ns: int
    unfinished: int
    unverified: int
    data_node_failures: int = 0
    first_done_bytes: int = 0
    first_done_unix_ns: int | None = None
    first_start_unix_ns: int | None = None
    foreign: int = 0
    foreign_file: str | None = None
    last_done_unix_ns: int | None = None
    rate_max: float | None = None
    rate_min: float | None = None
    retried: int = 0
    wrong: tuple[WrongByte, ...] = ()


@dataclass(frozen=True)
class Unsettled:
    """Reads that found nothing where another segment inserts: `loadstone ledger --events` decides how they
    count."""

    count: int
    first: tuple[Missed, ...] = ()


@dataclass(frozen=True)
class Sorted:
    """What a stage of a sort did."""

    bytes_read: int
    bytes_written: int
    rows: int
    seconds: float
    stage: str
    checksum: str | None = None
    validation: Validation | None = None


@dataclass(frozen=True)
class Interval:
    """One interval of the window."""

    completed: int
    cpu_ns: tuple[int, int]
    ended: int
    failed: int
    good: int
    in_flight: int
    k: int
    late: int
    late_client: int
    late_generator: int
    length_ns: int
    memory_bytes: int
    not_yet: int
    outcomes: tuple[Outcome, ...]
    start_ns: int
    unix_ns: int
    due: int | None = None
    earlier: tuple[Earlier, ...] = ()
    sorted: SortProgress | None = None


@dataclass(frozen=True)
class Summary(SummaryFigures):
    """The end of a trial."""

    borders: Borders
    clock: Clock
    completed: int
    cpu_ns: tuple[int, int]
    device_bytes: tuple[int, int]
    end: str
    executors: tuple[Executor, ...]
    in_flight: int
    late_client: int
    late_generator: int
    measured_ns: int
    memory_bytes_max: int
    operations: int
    outcomes: tuple[Outcome, ...]
    profile: str
    start_unix_ns: int
    succeeded: int
    unclosed: int
    unsent: int
    warmup_operations: int
    words: dict[str, str]
    bytes: int = 0
    carried: Carried = Carried(ended=0, ns_max=0, unanswered=0, unsent=0)
    collections: tuple[Collection, ...] = ()
    compared: int = 0
    connection_attempts: ConnectionAttempts | None = None
    due: int | None = None
    files: Files | None = None
    missing_rows: MissingRows | None = None
    not_yet: int = 0
    overdue: int = 0
    pauses: Pauses = Pauses(count=0, ns_sum=0)
    reason: str | None = None
    retried: int = 0
    retried_by_status: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    saturated_values: int = 0
    server_events: tuple[ServerEvent, ...] = ()
    settle_seconds: float | None = None
    sort: Sorted | None = None
    unreached: int = 0
    unsettled: Unsettled = Unsettled(count=0)
    wait_client: str | None = None
    wait_generator: str | None = None
