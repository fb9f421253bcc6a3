"""A rate that changes during the window, with a stage for each ramp, step or spike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
    create_model,
)
from pydantic_core import CoreSchema, core_schema

from loadstone.experiment.model.values import (
    LENGTH_SCHEMA,
    RATE_SCHEMA,
    WRITTEN,
    FilePart,
    Varied,
    digits_hint,
    parse_rate,
    quote_value,
    rate_number,
    refuse_value,
)
from loadstone.format import parsing
from loadstone.results.value import THROUGHPUT

# The lengths of stages are multiples of this length, in ms, so that intervals can end with stages.
STEP_MS = 100


def stage_rate(value: Any) -> float:
    """Validates the operations per second in a stage; 0 is a pause."""
    value = rate_number(value)
    if not parsing.is_finite(value) or value < 0:
        hint = digits_hint(value) or "write digits, like 5000; 0 is a pause"
        refuse_value(f"must be a number of operations per second, got {quote_value(value)}", hint)
    return float(value)


def stage_length(value: Any) -> float:
    """Validates the length of a stage, and returns it in s."""
    hint = "write 500ms, 30s or 2m"
    try:
        seconds = parsing.parse_seconds(value)
    except ValueError:
        refuse_value(f"must be a duration, got {quote_value(value)}", hint)
    if seconds <= 0:
        refuse_value(
            f"must be longer than 0, got {quote_value(value)}",
            f"{hint}; a step is a stage that begins with `at` or `from`",
        )
    if round(seconds * 1e3, 3) % STEP_MS:
        refuse_value(
            f"must be a multiple of {STEP_MS}ms, got {quote_value(value)}",
            f"{hint}: each stage must end where a counting interval ends",
        )
    return seconds


StageLength = Annotated[float, PlainValidator(stage_length), LENGTH_SCHEMA, WRITTEN]
STAGE_RATE_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "number", "minimum": 0}, RATE_SCHEMA["anyOf"][1]]}
StageRate = Annotated[float, PlainValidator(stage_rate), WithJsonSchema(STAGE_RATE_SCHEMA), Varied()]


class StageKeys(FilePart):
    """A part of the window, with a constant rate (`at`) or a ramp (`to`)."""

    if TYPE_CHECKING:
        # `for` and `from` are keywords of Python.
        def __getattr__(self, key: str) -> Any: ...


KEYS: dict[str, tuple[Any, Any, str, object]] = {
    "for": (StageLength, ..., "The length of the stage, a multiple of `100ms`.", "30s"),
    "at": (StageRate | None, None, "The constant rate of the stage.", 5000),
    "to": (StageRate | None, None, "The rate at the end of a ramp.", 10000),
    "from": (
        StageRate | None,
        None,
        "The rate at the start of a ramp. Default: the rate at the end of the previous stage; 0 in the first stage.",
        1000,
    ),
}
if TYPE_CHECKING:
    Stage = StageKeys
else:
    fields = {
        key: (kind, Field(default=default, description=meaning, examples=[example]))
        for key, (kind, default, meaning, example) in KEYS.items()
    }
    Stage = create_model("Stage", __base__=StageKeys, __doc__=StageKeys.__doc__, **fields)


class Stages(FilePart):
    """A rate that changes during the window. The window is as long as all stages together. The warm-up has the first
    rate above 0."""

    stages: tuple[Stage, ...] = Field(
        json_schema_extra={"minItems": 1},
        examples=[[{"for": "30s", "at": 5000}, {"for": "10s", "to": 20000}, {"for": "30s", "at": 5000}]],
    )
    """The stages, in order."""


class NumberOrStages:
    """Accepts a number of operations per second, or stages."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        stages = handler.generate_schema(Stages)
        plain = core_schema.plain_serializer_function_ser_schema(write)
        return core_schema.no_info_wrap_validator_function(self.check, stages, serialization=plain)

    def __get_pydantic_json_schema__(self, stages: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [*RATE_SCHEMA["anyOf"], handler(stages), {"type": "null"}]}

    @staticmethod
    def check(value: Any, handler: Any) -> Any:
        """Validates a number, or stages."""
        if isinstance(value, list):
            refuse_value("must be a number or a mapping, got a list", "write `rate: {stages: [{for: 30s, at: 5000}]}`")
        return handler(value) if isinstance(value, dict | Stages) else parse_rate(value)


def write(value: Any) -> Any:
    """A rate as it is written in a file."""
    return value.model_dump(mode="json", exclude_none=True) if isinstance(value, Stages) else value


def stage_metrics(stages: Sequence[Stage]) -> list[str]:
    """The figures that are compared by default: the p99 of each stage except pauses, with the stage with the highest
    rate first; then throughput.

    A rate that varies between points counts as the highest rate.
    """

    def peak(stage: Stage) -> float:
        rates = (getattr(stage, key) for key in ("at", "from", "to"))
        return max(math.inf if isinstance(rate, str) else rate or 0.0 for rate in rates)

    numbered = [(number, peak(stage)) for number, stage in enumerate(stages, 1) if stage.at != 0]
    order = sorted(numbered, key=lambda item: -item[1])
    return [
        *(f"stage{number}.all.p99" for number, _ in [*order[:1], *sorted(order[1:])]),
        *([THROUGHPUT] * bool(stages)),
    ]
