"""Converts documents parsed from JSON to their types."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

Kind = TypeVar("Kind")


class Bits64:
    """Makes pydantic refuse integers that need more than 64 bits: neither a float nor Arrow may represent them."""

    @staticmethod
    def __get_pydantic_core_schema__(_: Any, __: Any) -> Any:
        """The schema of signed and unsigned integers."""
        from pydantic_core import core_schema

        return core_schema.int_schema(ge=-(2**63), lt=2**64)


Integer = Annotated[int, Bits64]
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
