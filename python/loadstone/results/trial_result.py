"""What one trial came to: the line that it has in values.jsonl, and its course over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from loadstone.engine.events import Note
from loadstone.results.value import Value
from loadstone.statistics.percentile import BOUNDS

Scalar = str | int | float | bool
Loop = Literal["closed", "open"]
Kind = TypeVar("Kind")
# An interval shorter than this part of the first is not a whole one.
WHOLE = 0.9


@dataclass(frozen=True)
class Series:
    """The measured window in intervals: their starts in seconds since its own, and a figure for each.

    Throughput and `ended` are of what ended in the interval; latencies, `failed` and `due` of what was due in it (in a
    closed loop: sent), whenever that ended. A latency is of the operations that ended well, None where none did.
    Warm-up is not in it.
    """

    start_seconds: tuple[float, ...]
    length_seconds: tuple[float, ...]
    throughput: tuple[float, ...]
    p50_ns: tuple[float | None, ...] = ()
    p99_ns: tuple[float | None, ...] = ()
    failed: tuple[int, ...] = ()
    # Operations that were due, where there was a rate, and that ended, however.
    due: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()

    @property
    def whole_rates(self) -> tuple[float, ...]:
        """Throughput, without a last interval that is shorter than the first: a remainder has a rate of its own."""
        lengths = self.length_seconds
        cut = len(lengths) > 1 and lengths[-1] < WHOLE * lengths[0]
        return self.throughput[:-1] if cut else self.throughput

    def to_json(self) -> dict[str, Any]:
        """The series as in series.json."""
        columns = {name: list(getattr(self, name)) for name in SERIES_FIELDS}
        return {name: column for name, column in columns.items() if column or name not in SERIES_OPTIONAL}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Series:
        """Reads series.json. Raises TypeError, ValueError or OverflowError when it is none."""
        if missing := [name for name in SERIES_FIELDS if name not in document and name not in SERIES_OPTIONAL]:
            raise ValueError(f"a series without {missing[0]}")
        columns: dict[str, Any] = {
            name: tuple(optional(number, each) for each in document[name]) for name in SERIES_FIELDS if name in document
        }
        made = cls(**columns)
        plain = (made.start_seconds, made.length_seconds, made.throughput)
        if any(None in column or len(column) != len(made.throughput) for column in plain):
            raise ValueError("a series with holes")
        others = (made.p50_ns, made.p99_ns, made.failed, made.due, made.ended)
        if any(len(column) not in (0, len(made.throughput)) for column in others):
            raise ValueError("a series whose columns are of different lengths")
        return made


SERIES_FIELDS = tuple(Series.__dataclass_fields__)
# What results of version 1 have not.
SERIES_OPTIONAL = frozenset({"due", "ended"})


@dataclass(frozen=True)
class TrialResult:
    """One trial, run by us or read from another tool's output."""

    # Unique in its result set.
    trial: str
    # The variant: each dimension's value. Repeats of a variant have equal configs.
    config: Mapping[str, Scalar]
    # Which repeat of its variant it is, from 1; within an experiment that is also its block.
    repeat: int
    # By metric (loadstone.results.value).
    values: Mapping[str, Value]
    clients: int | None = None
    loop: Loop | None = None
    # What is known beside the figures: durability, version, cache_bytes, file_system, hosts, data_nodes, tool,
    # device_read_bps, network_bps…
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    # How often each operation ended with each status: {"READ": {"OK": 10, "ERROR": 1}}.
    statuses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # `done`, or why not: `stopped`, `lease`, `failed`, `lost` (the engine vanished).
    end: str = "done"
    # What the engine accuses itself of, what went wrong.
    notes: tuple[Note, ...] = ()
    # Where in the experiment's order it was run, from 0; None if unknown.
    order: int | None = None
    start_unix_ns: int | None = None
    # Which attempt at this trial it is, from 1, and why those before it failed (each has a line of its own).
    attempt: int = 1
    failures: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the system, or something around it, failed. What the lab itself ended did not."""
        return self.end in ("failed", "lost")

    @property
    def reason(self) -> str:
        """Why it did not end well: what its last note says, if it has one."""
        return self.notes[-1].message if self.notes else self.end

    def value(self, metric: str) -> float | None:
        """A figure, None if it was not measured."""
        found = self.values.get(metric)
        return None if found is None else found.value

    def fact(self, name: str) -> float | None:
        """A fact that is a number, None if there is none."""
        found = self.facts.get(name)
        try:
            return None if found is None or isinstance(found, bool) else float(found)
        except (ValueError, OverflowError):
            return None

    def to_json(self) -> dict[str, Any]:
        """The line in values.jsonl; `Folder` writes it."""
        return {
            "trial": self.trial,
            "config": dict(self.config),
            "repeat": self.repeat,
            "attempt": self.attempt,
            "order": self.order,
            "start_unix_ns": self.start_unix_ns,
            "end": self.end,
            "clients": self.clients,
            "loop": self.loop,
            "facts": dict(self.facts),
            "statuses": {operation: dict(counts) for operation, counts in self.statuses.items()},
            "notes": [{"name": note.name, "message": note.message, "hint": note.hint} for note in self.notes],
            "values": [value.to_json() for value in self.values.values()],
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> TrialResult:
        """Reads a line of values.jsonl. Raises KeyError, TypeError, ValueError or OverflowError when it is none."""
        values = [
            figure(
                each["metric"], each["value"], each["unit"], each["n"], each.get("bound"), each.get("resolution", 0.0)
            )
            for each in line["values"]
        ]
        return cls(
            trial=text(line["trial"]),
            config=scalars(line["config"]),
            repeat=whole(line["repeat"]),
            values={value.metric: value for value in values},
            clients=optional(whole, line.get("clients")),
            loop=line.get("loop"),
            facts=scalars(line.get("facts", {})),
            statuses={name: mapping(counts, whole) for name, counts in mapping(line.get("statuses", {}), dict).items()},
            end=text(line.get("end", "done")),
            notes=tuple(
                Note(text(note["name"]), text(note["message"]), text(note["hint"])) for note in line.get("notes", ())
            ),
            order=optional(whole, line.get("order")),
            start_unix_ns=optional(whole, line.get("start_unix_ns")),
            attempt=whole(line.get("attempt", 1)),
        )


def figure(metric: Any, value: Any, unit: Any, n: Any, bound: Any = None, resolution: Any = 0.0) -> Value:
    """A figure of a file. Raises TypeError or OverflowError when it is none."""
    # In one: there are a million of them in a large experiment.
    kinds = (type(metric), type(unit), type(n)) == (str, str, int) and type(value) in (int, float)
    read = type(resolution) in (int, float) and 0 <= resolution < math.inf
    if not kinds or not read or not math.isfinite(value) or not (bound is None or bound in BOUNDS):
        raise TypeError(f"{metric!r:.40} is not a figure")
    return Value(metric, value, unit, n, bound, resolution)


def text(value: Any) -> str:
    """A text. Raises TypeError when it is something else."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def number(value: Any) -> float:
    """A finite number, as it is. Raises TypeError or OverflowError when it is something else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r:.40} is not a number")
    return value


def whole(value: Any) -> int:
    """A whole number. Raises TypeError when it is something else."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r:.40} is not a whole number")
    return value


def optional(kind: Callable[[Any], Kind], value: Any) -> Kind | None:
    """A value of a kind, or none."""
    return None if value is None else kind(value)


def mapping(value: Any, kind: Callable[[Any], Kind]) -> dict[str, Kind]:
    """A mapping of texts to values of a kind. Raises TypeError or ValueError when it is something else."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.40} is not a mapping")
    return {name: kind(each) for name, each in value.items()}


def scalars(value: Any) -> dict[str, Scalar]:
    """A mapping of texts to single values. Raises TypeError when it is something else."""
    return mapping(value, scalar)


def scalar(value: Any) -> Scalar:
    """A single value. Raises TypeError when it is something else."""
    if not isinstance(value, str | int | float | bool):
        raise TypeError(f"{value!r:.40} is not a single value")
    return value


def values(*given: Value) -> dict[str, Value]:
    """Figures by their metric."""
    return {value.metric: value for value in given}
