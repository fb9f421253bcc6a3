"""Converts documents parsed from JSON to their types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

Kind = TypeVar("Kind")
# The maximum number of digits of an integer in a document, so that it fits in a float.
DIGITS_MAX = 300


@dataclass(frozen=True)
class Limits:
    """Makes pydantic refuse integers below `low`, or from `high` on."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, _: Any, __: Any) -> Any:
        """The schema of the integers within the limits."""
        from pydantic_core import core_schema

        return core_schema.int_schema(ge=self.low, lt=self.high)


# Counts and instants have 64 bits, as in the engine and in Arrow; seeds and values of dimensions may have more.
Integer = Annotated[int, Limits(-(2**63), 2**64)]
LongInteger = Annotated[int, Limits(-(10**DIGITS_MAX), 10**DIGITS_MAX)]
# The validator of each type.
_ADAPTERS: dict[Any, Any] = {}


def read_document(kind: type[Kind], document: Any) -> Kind:
    """Converts a document to a type; unknown fields are ignored. Raises ValueError with the first error."""
    return _validate_document(kind, "validate_python", document)


def parse_document(kind: type[Kind], text: bytes) -> Kind:
    """Converts JSON text to a type; unknown fields are ignored. Raises ValueError with the first error."""
    return _validate_document(kind, "validate_json", text)


def _validate_document(kind: type[Kind], method: str, document: Any) -> Kind:
    # Imported late, because the import takes a tenth of a second.
    from pydantic import TypeAdapter, ValidationError

    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    try:
        validated: Kind = getattr(_ADAPTERS[kind], method)(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        *inside, last = ["it", *map(str, first["loc"])]
        if first["type"] == "missing":
            raise ValueError(f"{'.'.join(inside[1:]) or 'it'} has no `{last}`") from error
        kind_of = f"valid {last}" if inside else "document"
        raise ValueError(f"{first['input']!r:.40} is not a {kind_of} ({first['msg']})") from error
    return validated
