"""The types of events. Generated from the schema of events by `python -m loadstone.engine`; do not edit.

The schema describes each field. Fields unknown to this version are ignored, so that an engine may report more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loadstone.engine.event_figures import FilesFigures, OutcomeFigures, SummaryFigures


@dataclass(frozen=True)
class Borders:
    """The borders of a trial, which are fixed before it starts."""

    warmup_ns: int
    interval_ns: int
    cutoff_ns: int | None = None
    window_ns: int | None = None


@dataclass(frozen=True)
class Carried:
    """Operations due (closed loop: sent) in the warm-up that had not finished when the window began."""

    ended: int
    unanswered: int
    unsent: int
    ns_max: int


@dataclass(frozen=True)
class Clock:
    """The clock of a trial."""

    source: str
    drift_ppm: float
    jumps: int
    offset_ns_max: int = 0
    reversals: int = 0


@dataclass(frozen=True)
class Collection:
    """The activity of a garbage collector in the engine's process, since the process started or while
    measuring."""

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
    """The operations of one step with one status, and their histograms."""

    operation: str
    status: str
    count: int
    service: str
    response: str | None = None
    response_lower: str | None = None
    response_ns_sum: int | None = None
    service_ns_sum: int | None = None


@dataclass(frozen=True)
class Executor:
    """A thread of the engine during the window."""

    name: str
    clients: int
    cpu_ns: int
    wall_ns: int
    busy: float
    lag: str
    held_ns: int = 0


@dataclass(frozen=True)
class Reached:
    """Number of files that reached a given state, and the times at which they reached it."""

    files: int
    bytes: int
    ns: int
    last_unix_ns: int | None = None


@dataclass(frozen=True)
class WrongByte:
    """A byte that differs from the byte written."""

    file: str
    offset: int
    found: int
    expected: int


@dataclass(frozen=True)
class SortProgress:
    """Progress of a sort's stage since its start."""

    rows: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class KeyRanges:
    """Operations by key range and by the interval in which they were due."""

    interval_ns: int
    shares: tuple[float, ...]
    sent: tuple[tuple[int, ...], ...]
    deadlines_ns: tuple[int, ...]
    good: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class Missed:
    """A read that did not find a record inserted by another segment."""

    index: int
    sent_unix_ns: int


@dataclass(frozen=True)
class MissingRows:
    """Reads that found no row."""

    reads: int
    number: int


@dataclass(frozen=True)
class Note:
    """An observation for the judge."""

    name: str
    message: str
    hint: str


@dataclass(frozen=True)
class Pauses:
    """Pauses of clients after failures."""

    count: int
    ns_sum: int


@dataclass(frozen=True)
class Ready:
    """The store is open, and every session is connected."""

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
class ServerEvent:
    """An event that a server reported, or that the load generator observed."""

    unix_ns: int
    server: str
    event: str


@dataclass(frozen=True)
class Validation:
    """The result of validation."""

    rows: int
    parts: int
    duplicates: int
    faults: int
    first_faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class StatementRows:
    """The rows that a statement wrote or read."""

    rows: int
    partitions: int


@dataclass(frozen=True)
class Earlier:
    """Recordings added to an earlier interval."""

    k: int
    completed: int
    ended: int
    good: int
    late: int
    failed: int
    not_yet: int
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Files(FilesFigures):
    """The files of a trial or of a segment."""

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
    """Reads that did not find a record inserted by another segment: `loadstone ledger --events` decides how
    they count."""

    count: int
    first: tuple[Missed, ...] = ()


@dataclass(frozen=True)
class Sorted:
    """The result of a sort's stage."""

    stage: str
    rows: int
    bytes_read: int
    bytes_written: int
    seconds: float
    checksum: str | None = None
    validation: Validation | None = None


@dataclass(frozen=True)
class Interval:
    """One interval of the window."""

    k: int
    start_ns: int
    length_ns: int
    unix_ns: int
    completed: int
    ended: int
    good: int
    late: int
    failed: int
    not_yet: int
    outcomes: tuple[Outcome, ...]
    in_flight: int
    late_generator: int
    late_client: int
    cpu_ns: tuple[int, int]
    memory_bytes: int
    earlier: tuple[Earlier, ...] = ()
    due: int | None = None
    sorted: SortProgress | None = None


@dataclass(frozen=True)
class Summary(SummaryFigures):
    """The result of a trial."""

    end: str
    profile: str
    start_unix_ns: int
    borders: Borders
    measured_ns: int
    completed: int
    operations: int
    succeeded: int
    warmup_operations: int
    in_flight: int
    unsent: int
    unclosed: int
    late_generator: int
    late_client: int
    executors: tuple[Executor, ...]
    clock: Clock
    cpu_ns: tuple[int, int]
    memory_bytes_max: int
    device_bytes: tuple[int, int]
    outcomes: tuple[Outcome, ...]
    words: dict[str, str]
    not_yet: int = 0
    retried: int = 0
    rows: int = 0
    bytes: int = 0
    carried: Carried = Carried(ended=0, ns_max=0, unanswered=0, unsent=0)
    collections: tuple[Collection, ...] = ()
    compared: int = 0
    connection_attempts: ConnectionAttempts | None = None
    due: int | None = None
    files: Files | None = None
    key_ranges: KeyRanges | None = None
    missing_rows: MissingRows | None = None
    overdue: int = 0
    pauses: Pauses = Pauses(count=0, ns_sum=0)
    reason: str | None = None
    retried_by_status: dict[str, int] = field(default_factory=dict)
    saturated_values: int = 0
    server_events: tuple[ServerEvent, ...] = ()
    settle_seconds: float | None = None
    sort: Sorted | None = None
    statements: dict[str, StatementRows] = field(default_factory=dict)
    unreached: int = 0
    unsettled: Unsettled = Unsettled(count=0)
    wait_client: str | None = None
    wait_generator: str | None = None
