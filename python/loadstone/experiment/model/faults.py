"""The faults of an experiment: their kinds, servers, instants and lengths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, create_model

from loadstone.experiment.model.values import (
    DURATION_PATTERN,
    FilePart,
    Length,
    LengthOrNone,
    Share,
    Size,
    Text,
    VariedCount,
    parse_quantity,
    quote_value,
    refuse_value,
)
from loadstone.format import parsing

# The kinds of faults; `none` is the twin of a trial with a fault.
KINDS = ("none", "kill", "stop", "pause", "restart", "power", "cut", "full", "slow")
ANY, ALL, NEVER = "any", "all", "never"
# The share of a processor that a slow server may use, unless the file sets a limit.
CPU_SHARE = 0.1
# The value of `peer` for all clients.
CLIENTS = "clients"
# The time after which a fault is lifted, unless the file sets a time.
LIFT_SECONDS = 10.0
FRACTION = re.compile(r"([0-9]+)\s*/\s*([0-9]+)")
HINT = "write a length such as 20s, or a share of the window: 1/3 or 33%"


def parse_instant(value: Any) -> str:
    """Validates an instant in the window: a length since its start (`20s`), or a share of the window (`1/3`, `33%`)."""
    if isinstance(value, str) and (match := FRACTION.fullmatch(value)) and int(match[2]):
        share = int(match[1]) / int(match[2])
    elif isinstance(value, str) and value.endswith("%"):
        share = parse_quantity(parsing.parse_share, value, "an instant in the window", HINT)
    else:
        seconds = parse_quantity(parsing.parse_seconds, value, "an instant in the window", HINT)
        if seconds < 0:
            refuse_value(f"must be 0 or later, got {quote_value(value)}", HINT)
        return parsing.format_seconds(seconds)
    if not 0 <= share < 1:
        refuse_value(f"must be within the window, got {quote_value(value)}", HINT)
    return str(value)


def seconds_of(written: str, window_s: float) -> float:
    """Converts an instant that `parse_instant` returned to seconds since the start of a window."""
    if match := FRACTION.fullmatch(written):
        return window_s * int(match[1]) / int(match[2])
    return parsing.parse_share(written) * window_s if written.endswith("%") else parsing.parse_seconds(written)


INSTANT_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": rf"{DURATION_PATTERN}|^[0-9.]+\s*%$|^[0-9]+\s*/\s*[0-9]+$"},
    ]
}
Instant = Annotated[str, PlainValidator(parse_instant), WithJsonSchema(INSTANT_SCHEMA)]


def length_or_never(value: Any) -> float | str:
    """Validates a length or `never`; returns a length in seconds."""
    if value == NEVER:
        return NEVER
    seconds = parse_quantity(parsing.parse_seconds, value, "a length", "write 30s, or never")
    if seconds < 0:
        refuse_value(f"must be 0 or longer, got {quote_value(value)}", "write 30s, or never")
    return seconds


def format_length(value: float | str) -> str:
    """A length or `never`, as text."""
    return value if isinstance(value, str) else parsing.format_seconds(value)


NEVER_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": rf"{DURATION_PATTERN}|^never$"},
    ]
}
LengthOrNever = Annotated[
    float | Literal["never"],
    PlainValidator(length_or_never),
    WithJsonSchema(NEVER_SCHEMA),
    PlainSerializer(format_length, when_used="json"),
]


class At(FilePart):
    """The start of the fault: drawn between two instants. A single value is an exact instant."""

    if TYPE_CHECKING:
        # `from` is a keyword of Python.
        def __getattr__(self, key: str) -> Any: ...


class Lift(FilePart):
    """Time after which the fault is lifted: drawn between two lengths. A single value is an exact length."""

    if TYPE_CHECKING:

        def __getattr__(self, key: str) -> Any: ...


if TYPE_CHECKING:
    AtSpan = At
    LiftSpan = Lift
else:
    AtSpan = create_model(
        "AtSpan",
        __base__=At,
        __doc__=At.__doc__,
        **{
            "from": (Instant, Field(description="The earliest instant.", examples=["1/3"])),
            "to": (
                Instant | None,
                Field(default=None, description="The latest instant. Default: `from`.", examples=["2/3"]),
            ),
        },
    )
    LiftSpan = create_model(
        "LiftSpan",
        __base__=Lift,
        __doc__=Lift.__doc__,
        **{
            "from": (
                LengthOrNever,
                Field(description="The shortest length; `never`: until the end of the window.", examples=["30s"]),
            ),
            "to": (
                Length | None,
                Field(default=None, description="The longest length. Default: `from`.", examples=["40s"]),
            ),
        },
    )


class Recovered(FilePart):
    """The conditions under which the service counts as recovered."""

    share: Share = Field(default=0.95, examples=["95%"])
    """The share of the pre-fault level that must be reached."""

    window: Length = Field(default=5.0, examples=["5s"])
    """The length of the windows that are compared; at least 12 windows must fit before the fault."""

    hold: LengthOrNone = Field(default=30.0, examples=["30s"])
    """Time for which the service must stay at that level."""


class FaultKeys(FilePart):
    """A fault in the measured window of each trial."""

    do: Text = Field(examples=["kill"])
    """The kind: `kill`, `stop`, `pause`, `restart`, `power`, `cut`, `full`, `slow`, or `none` for a trial without a
    fault, the twin. A template makes it a dimension: `"{fault}"`."""

    server: tuple[Text, ...] = Field(default=(ANY,), examples=[["cassandra-1"]])
    """The servers: `any` (drawn), `all`, names as in `loadstone systems status`, hosts of `attach`, or a role from
    whose servers they are drawn (a name without its number, such as `region-server`, or `meta` for HBase)."""

    count: VariedCount = Field(default=1, examples=[2])
    """Number of servers that are drawn at once from `any` or a role."""

    at: AtSpan = Field(description=str(At.__doc__), examples=[{"from": "1/3", "to": "2/3"}])
    lift: LiftSpan | None = Field(
        default=None, description=f"{Lift.__doc__} Default: `10s`.", examples=[{"from": "30s"}]
    )
    cpu: Share | None = Field(default=None, examples=["10%"])
    """For `slow`: the share of a processor that each server may use. Default: 10%, or no limit with `disk`."""

    disk: Size | None = Field(default=None, examples=["4MB"])
    """For `slow`: the bytes per second that each server may read from its file system, and the bytes per second that it
    may write to it."""

    how: Literal["silence", "reset"] = Field(default="silence", examples=["reset"])
    """For `cut`: whether packets are dropped (silence) or refused immediately (reset)."""

    peer: Text | None = Field(default=None, examples=["cassandra-2"])
    """For `cut`: the only server to which the connection is cut, `any` (drawn from the other servers), or `clients`.
    Default: all servers and clients."""

    direction: Literal["both", "out", "in"] = Field(default="both", examples=["out"])
    """For `cut`: `out` cuts only the packets that the server sends, `in` only the packets that it receives."""

    recovered: Recovered = Field(default=Recovered(), description=str(Recovered.__doc__), examples=[{"hold": "30s"}])
