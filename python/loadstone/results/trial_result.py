"""The result of one trial: its line in values.jsonl, and its time series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from loadstone.engine.document import Integer, LongInteger, parse_document, read_document
from loadstone.engine.events import Note
from loadstone.results.fault import FaultRecord
from loadstone.results.value import FINITE, Value

Scalar = str | int | float | bool
RecordedScalar = str | LongInteger | float | bool
# The prefix for a logged value that a stated fact overrides.
LOGGED = "logged."
Loop = Literal["closed", "open"]
ROUNDED_SECONDS = 0.002
# An interval shorter than this share of the first interval is incomplete.
WHOLE = 0.9


@dataclass(frozen=True)
class Series:
    """The measured window in intervals: their starts in seconds since the window's start, and their figures.

    Throughput and `ended` count operations that completed in the interval; latencies, `failed` and `due` cover
    operations due in it (in a closed loop: sent in it), whenever they completed. Latencies cover only successful
    operations, and are None if there were none. The warm-up is not included.
    """

    start_seconds: tuple[float, ...]
    length_seconds: tuple[float, ...]
    throughput: tuple[float, ...]
    p50_ns: tuple[float | None, ...] = ()
    p99_ns: tuple[float | None, ...] = ()
    failed: tuple[int, ...] = ()
    # Operations that were due, if a rate was set, and operations that completed, successfully or not.
    due: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    # In trials with faults and a rate: operations due in the interval that succeeded, before and after their deadline.
    good: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    # The time for which garbage collectors paused servers, summed over the servers.
    gc_ns: tuple[int, ...] = ()

    @property
    def complete_rates(self) -> tuple[float, ...]:
        """Throughput without a shorter last interval, whose figures are not comparable."""
        lengths = self.length_seconds
        cut = len(lengths) > 1 and lengths[-1] < WHOLE * lengths[0]
        return self.throughput[:-1] if cut else self.throughput

    def drop_start(self, seconds: float) -> Series | None:
        """The intervals that begin after a number of seconds, with start times relative to the first of them; None if
        there are none."""
        # Tools round their times to milliseconds.
        later = (start >= seconds - ROUNDED_SECONDS for start in self.start_seconds)
        first = next((index for index, is_later in enumerate(later) if is_later), None)
        if first is None:
            return None
        columns = {field.name: getattr(self, field.name)[first:] for field in fields(self)}
        begin = self.start_seconds[first]
        return Series(**{**columns, "start_seconds": tuple(start - begin for start in columns["start_seconds"])})

    def to_json(self) -> dict[str, Any]:
        """The series in the form of series.json."""
        return {name: column for name, column in asdict(self).items() if column or name not in SERIES_OPTIONAL}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Series:
        """Reads series.json. Raises ValueError if it is invalid."""
        series = read_document(Series, document)
        further = [column for field in fields(series)[3:] if (column := getattr(series, field.name))]
        if len({*map(len, (series.start_seconds, series.length_seconds, series.throughput, *further))}) > 1:
            raise ValueError("a series whose columns have different lengths")
        return series


# Fields that results of version 1, or trials without faults, lack.
SERIES_OPTIONAL = frozenset({"due", "ended", "good", "late", "gc_ns"})


class FileName:
    """Makes pydantic refuse strings that are not file names, because they may lead to another directory."""

    @staticmethod
    def __get_pydantic_core_schema__(_: Any, __: Any) -> Any:
        """The schema: at least one character is not a dot, and none is a slash."""
        from pydantic_core import core_schema

        return core_schema.str_schema(pattern=r"^[^/\x00]*[^/.\x00][^/\x00]*$")


# The name of a trial, which is also the name of the directory with its files.
TrialName = Annotated[str, FileName]


class ByMetric:
    """Makes pydantic write figures as a list and read them by metric."""

    @staticmethod
    def __get_pydantic_core_schema__(_: Any, handler: Any) -> Any:
        """The schema of the list, with its conversion to a mapping."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(index_by_metric, handler.generate_schema(list[Value]))


METRIC, NUMBER = attrgetter("metric"), attrgetter("value")


def index_by_metric(figures: Sequence[Value]) -> dict[str, Value]:
    """The figures, keyed by metric. Raises OverflowError if a figure is beyond the range of a float."""
    # Avoids Python loops, which would take a fifth of the reading time. Pydantic refuses infinity and nan.
    for _ in map(float, map(NUMBER, figures)):
        pass
    return dict(zip(map(METRIC, figures), figures, strict=True))


@dataclass(frozen=True)
class TrialResult:
    """One trial, run by Loadstone or read from another tool's output."""

    __pydantic_config__: ClassVar = FINITE

    # The name of the trial, which is unique in its result set.
    trial: TrialName
    # The variant: each dimension's value. Repeats of a variant have equal configs.
    config: Mapping[str, RecordedScalar]
    # The repeat number, from 1; in an experiment, also the block number.
    repeat: Integer
    # Keyed by metric (loadstone.results.value).
    values: Annotated[Mapping[str, Value], ByMetric]
    clients: Integer | None = None
    loop: Loop | None = None
    # Facts in addition to the figures: durability, version, cache_bytes, file_system, hosts, data_nodes, tool,
    # device_read_bps, network_bps…
    facts: Mapping[str, RecordedScalar] = field(default_factory=dict)
    # Every requested setting, by its path in the engine's spec: `work.field_count`, `store.rocksdb.options`.
    requested: Mapping[str, RecordedScalar] = field(default_factory=dict)
    # The names of facts that the store or its servers state, and that therefore belong to the system.
    of_system: tuple[str, ...] = ()
    # The number of operations by operation and status: {"READ": {"OK": 10, "ERROR": 1}}.
    statuses: Mapping[str, Mapping[str, Integer]] = field(default_factory=dict)
    # `done`, `stopped`, `lease`, `failed`, `lost` (the engine disappeared) or `interrupted` (the lab exited).
    end: str = "done"
    # The engine's notes on its own errors and on other problems.
    notes: tuple[Note, ...] = ()
    # Position in the experiment's order, from 0; None if unknown.
    order: Integer | None = None
    start_unix_ns: Integer | None = None
    # The number of the attempt, from 1, and the reasons why earlier attempts failed (each has a separate line).
    attempt: Integer = 1
    failures: tuple[str, ...] = ()
    # The number of interrupted attempts.
    interruptions: Integer = 0
    # The faults of the trial, in the order of their planned instants.
    faults: tuple[FaultRecord, ...] = ()

    @property
    def is_failure(self) -> bool:
        """Whether the system or its environment failed. A trial ended by the lab itself did not fail."""
        return self.end in ("failed", "lost")

    @property
    def was_interrupted(self) -> bool:
        """Whether the lab exited during this attempt, which then reveals nothing about the system and never counts."""
        return self.end == "interrupted"

    @property
    def reason(self) -> str:
        """The reason why the trial did not finish: the text of its last note, if any."""
        return self.notes[-1].message if self.notes else self.end

    def value(self, metric: str) -> float | None:
        """The value of a figure; None if it was not measured."""
        entry = self.values.get(metric)
        return None if entry is None else entry.value

    def numeric_fact(self, name: str) -> float | None:
        """A fact as a number; None if it is missing or not a number."""
        fact = self.facts.get(name)
        try:
            return None if fact is None or isinstance(fact, bool) else float(fact)
        except (ValueError, OverflowError):
            return None

    def to_json(self) -> dict[str, Any]:
        """The line in values.jsonl; `Folder` writes it."""
        return {
            **{
                field.name: getattr(self, field.name)
                for field in fields(self)
                if field.name not in ("failures", "interruptions", "faults")
            },
            **({"faults": [fault.to_json() for fault in self.faults]} if self.faults else {}),
            "notes": [asdict(note) for note in self.notes],
            "values": [value.to_json() for value in self.values.values()],
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> TrialResult:
        """Reads a line of values.jsonl. Raises ValueError or OverflowError if it is invalid."""
        return read_document(cls, line)

    @classmethod
    def from_line(cls, line: bytes) -> TrialResult:
        """Reads a line four times as fast as `from_json`. Raises ValueError or OverflowError if it is invalid."""
        if b"NaN" in line or b"Infinity" in line:
            raise ValueError("NaN and Infinity are neither JSON nor figures")
        return parse_document(cls, line)


def values_by_metric(*values: Value) -> dict[str, Value]:
    """The figures, keyed by metric."""
    return {value.metric: value for value in values}
