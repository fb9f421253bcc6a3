"""The types of values in an experiment file. Each type parses valid values, and refuses other values with a hint."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from loadstone.format import parsing

Scalar = bool | int | float | str
Read = TypeVar("Read")
NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


class FilePart(BaseModel):
    """A part of the file, in which unknown keys are errors. The docstring below a key is the key's description."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def refuse_value(what: str, hint: str) -> NoReturn:
    """Refuses a value; `what` completes a sentence that begins with the name of the key."""
    raise PydanticCustomError("mistake", "{what}", {"what": what, "hint": hint})


def quote_value(value: object) -> str:
    """A value as written in a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def flow_yaml(value: Any) -> str:
    """A value as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000).strip()
    return text.removesuffix("\n...").strip()


def parse_text(value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        hint = f'quote it: "{value}"'
        if isinstance(value, dict | list):
            hint = 'quote a string with braces or brackets, as in "{letter}"'
        refuse_value(f"must be a string, got {quote_value(value)}", hint)
    require_storable(value)
    return value


def require_storable(value: str) -> None:
    """Refuses characters that are invalid in a command, path or result file: NUL, and lone surrogates."""
    if NOT_STORABLE.search(value):
        refuse_value(f"must not contain NUL or a lone surrogate, got {ascii(value)[:60]}", "remove the character")


def parse_label(value: Any) -> str:
    """A label of hosts, `KEY=VALUE`."""
    if not isinstance(value, str) or not re.fullmatch(LABEL_PATTERN, value):
        refuse_value(
            f"must be a label KEY=VALUE, got {quote_value(value)}", "write a label of the hosts, such as role=clients"
        )
    return value


def parse_placement(value: Any) -> str:
    """A placement of engines on hosts."""
    if value not in PLACEMENTS and not (isinstance(value, str) and re.fullmatch(LABEL_PATTERN, value)):
        hint = "write `apart`, `beside` or a label of the hosts, such as role=clients"
        refuse_value(f"must be a placement, got {quote_value(value)}", hint)
    return str(value)


def property_value(value: Any) -> str:
    """A property's value, as a string."""
    if isinstance(value, dict | list):
        refuse_value(
            f"must be a single value, got {quote_value(value)}", 'quote a template or list: "{letter}", "[1, 2]"'
        )
    text = str(value).lower() if isinstance(value, bool) else str(value)
    require_storable(text)
    return text


def parse_scalar(value: Any) -> Scalar:
    """A dimension's value."""
    if not isinstance(value, Scalar) or (isinstance(value, float) and not parsing.is_finite(value)):
        hint = "write a list of single values, like [1, 2]"
        refuse_value(f"must be a string, a number, true or false, got {quote_value(value)}", hint)
    if isinstance(value, str):
        require_storable(value)
    return value


def number_validator(least: int, hint: str = "write digits only, like 12") -> PlainValidator:
    """A validator of integers that are at least `least`."""

    def check_number(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            if value >= least:
                return value
            refuse_value(f"must be a whole number of at least {least}, got {value}", f"write {least} or more")
        refuse_value(f"must be a whole number of at least {least}, got {quote_value(value)}", hint)

    return PlainValidator(check_number)


def parse_number(value: Any) -> float:
    """A number."""
    if not parsing.is_finite(value):
        refuse_value(f"must be a number, got {quote_value(value)}", "write it in digits, like 0.85")
    return float(value)


# The highest rate that the engine accepts (`Pace` in crates/load), op/s.
RATE_MAX = 1_000_000_000
# A rate with its unit.
PER_SECOND = re.compile(r"\s*([0-9][0-9,_]*(?:\.[0-9]+)?)\s*ops?/s\s*")


def rate_number(value: Any) -> Any:
    """The number in a rate with a unit, such as `3000 op/s`; any other value is returned unchanged."""
    match = PER_SECOND.fullmatch(value) if isinstance(value, str) else None
    return float(match[1].replace(",", "").replace("_", "")) if match else value


def parse_rate(value: Any) -> float:
    """Operations per second."""
    value = rate_number(value)
    if not parsing.is_finite(value) or value <= 0:
        closed = "leave `rate` out for a closed loop, in which a client sends when its last operation has completed"
        refuse_value(
            f"must be a number of operations per second above 0, got {quote_value(value)}", digits_hint(value) or closed
        )
    if value > RATE_MAX:
        hint = "find the highest rate with `find: {over: rate}`, or leave `rate` out for a closed loop"
        refuse_value(f"must be at most {RATE_MAX:,} operations per second, got {quote_value(value)}", hint)
    return float(value)


def digits_hint(value: Any) -> str:
    """A hint on how to write a load such as `10k`; empty for other values."""
    pattern = r"(\d[\d,]*(?:\.\d+)?)\s*([kKmM]?)(?:\s*\w*/s(?:ec)?|\s*(?:[oO][pP][sS]?|[rRtTqQ][pP][sS]))?"
    match = re.fullmatch(pattern, value) if isinstance(value, str) else None
    return f"write {float(match[1].replace(',', '')) * THOUSANDS.get(match[2].lower(), 1):.0f}" if match else ""


def parse_bound(value: Any) -> int | float:
    """A load at which a search begins or ends."""
    if not parsing.is_finite(value) or value <= 0:
        hint = digits_hint(value) or "write clients, or operations per second, as digits"
        refuse_value(f"must be a number above 0, got {quote_value(value)}", hint)
    return int(value) if value == int(value) else value


def parse_quantity(read: Callable[[Any], Read], value: Any, what: str, hint: str) -> Read:
    """A quantity, parsed by a function of `loadstone.format.parsing`."""
    try:
        return read(value)
    except ValueError:
        refuse_value(f"must be {what}, got {quote_value(value)}", hint)


def duration_validator(above: bool) -> PlainValidator:
    """A validator of durations, in seconds: greater than 0 if `above`, else at least 0."""

    def check_duration(value: Any) -> float:
        seconds = parse_quantity(
            parsing.parse_seconds, value, "a duration", "write 500ms, 5s, 2m, 1h or a number of seconds"
        )
        if seconds < 0 or (above and seconds == 0):
            refuse_value(
                f"must be {'longer than 0' if above else '0 or longer'}, got {quote_value(value)}",
                "write 500ms, 5s, 2m, 1h",
            )
        return seconds

    return PlainValidator(check_duration)


def parse_share(value: Any) -> float:
    """A fraction greater than 0 and less than 1."""
    fraction = parse_quantity(parsing.parse_share, value, "a fraction", "write 5% or 0.05")
    if not 0 < fraction < 1:
        likely = f"; for {value} percent write {value}%" if not isinstance(value, str) and 1 <= fraction < 100 else ""
        refuse_value(f"must be above 0 and below 100%, got {quote_value(value)}", f"write 5% or 0.05{likely}")
    return fraction


def parse_shares(value: Any) -> float | dict[str, float]:
    """A fraction, or a fraction for each figure."""
    if not isinstance(value, dict):
        return parse_share(value)
    if not value:
        refuse_value("names no figure", "write 5%, or {throughput: 5%, read.p99: 10%}")
    return {parse_text(metric): parse_share(share) for metric, share in value.items()}


def parse_size(value: Any) -> int:
    """A number of bytes."""
    return parse_quantity(parsing.parse_size, value, "a size", "write 64KB, 128MB, 1GB or a number of bytes")


class Varied:
    """Accepts a template instead of a value; the rendered value is validated at each point."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        unchanged = core_schema.plain_serializer_function_ser_schema(lambda value: value)
        return core_schema.no_info_wrap_validator_function(
            self.check_template, handler(source), serialization=unchanged
        )

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(core_schema), {"type": "string", "pattern": VARIED_PATTERN}]}

    @staticmethod
    def check_template(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        """Validates a value; a string of digits, such as a rendered template, is parsed as a number."""
        if isinstance(value, str):
            if "{" in value:
                return parse_text(value)
            value = (
                int(value) if value.isascii() and value.isdigit() else {"true": True, "false": False}.get(value, value)
            )
        return handler(value)


def value_schema(kind: str | list[str], **more: Any) -> WithJsonSchema:
    """The JSON Schema of a value."""
    return WithJsonSchema({"type": kind, **more})


# The syntax of Kubernetes, which Ray's labels follow.
LABEL_PATTERN = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?=[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
PLACEMENTS = ("apart", "beside")
VARIED_PATTERN = r"\{"
DURATION_PATTERN = r"^\s*([0-9.]+\s*(us|µs|ms|s|m|h|d)\s*)+$"
Text = Annotated[str, PlainValidator(parse_text), value_schema("string")]
Property = Annotated[str, PlainValidator(property_value), value_schema(["string", "number", "boolean"])]
Value = Annotated[Scalar, PlainValidator(parse_scalar), value_schema(["string", "number", "boolean"])]
THOUSANDS = {"k": 1e3, "m": 1e6}
Count = Annotated[int, number_validator(1), value_schema("integer", minimum=1)]
Natural = Annotated[int, number_validator(0), value_schema("integer", minimum=0)]
Number = Annotated[float, PlainValidator(parse_number), value_schema("number")]
RATE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^\s*[0-9][0-9,_.]*\s*ops?/s\s*$"},
    ]
}
Bound = Annotated[int | float, PlainValidator(parse_bound), value_schema("number", exclusiveMinimum=0)]
LENGTH_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": DURATION_PATTERN}]}
)
WRITTEN = PlainSerializer(parsing.format_seconds, when_used="json")
Length = Annotated[float, duration_validator(above=True), LENGTH_SCHEMA, WRITTEN]
LengthOrNone = Annotated[float, duration_validator(above=False), LENGTH_SCHEMA, WRITTEN]
SHARE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "string", "pattern": r"^[0-9.]+\s*%$"},
    ]
}
Share = Annotated[float, PlainValidator(parse_share), WithJsonSchema(SHARE_SCHEMA)]
SHARES_SCHEMA = {"anyOf": [*SHARE_SCHEMA["anyOf"], {"type": "object", "additionalProperties": SHARE_SCHEMA}]}
Shares = Annotated[float | dict[str, float], PlainValidator(parse_shares), WithJsonSchema(SHARES_SCHEMA)]
Label = Annotated[str, PlainValidator(parse_label), value_schema("string", pattern=f"^{LABEL_PATTERN}$")]
Placement = Annotated[
    str, PlainValidator(parse_placement), value_schema("string", pattern=f"^(apart|beside|{LABEL_PATTERN})$")
]
Boolean = StrictBool
Durability = Literal["none", "os", "device"]
Arrival = Literal["uniform", "poisson"]
Reuse = Literal[False, "copy", "shared"]
Fresh = Literal["system", "table", "none"]
SearchedLoad = Literal["clients", "rate"]
# The types of values in the keys of workload kinds; any of these values may vary.
SIZE_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^[0-9]+\s*[kKmMgGtT]?i?[bB]?$"}]
}
Size = Annotated[int, PlainValidator(parse_size), WithJsonSchema(SIZE_SCHEMA), Varied()]
VariedCount = Annotated[int, number_validator(1), value_schema("integer", minimum=1), Varied()]
VariedLength = Annotated[float, duration_validator(above=True), LENGTH_SCHEMA, WRITTEN, Varied()]
VariedBoolean = Annotated[StrictBool, Varied()]
