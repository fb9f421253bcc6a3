"""Generates parts of the reference page of experiment files; the text around them is written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.model.values import DURATION_PATTERN, VARIED_PATTERN, flow_yaml
from loadstone.experiment.model.ycsb_properties import KEYS

SCALES = (
    "| `scales` | mapping |  | Parts of a file that `--scale NAME` merges into it. "
    "Example: `scales: {small: {measure: {duration: 2s}}}` |"
)


def regenerate_page(page: str) -> str:
    """A page with its generated parts regenerated. Raises ValueError if a marker is missing."""
    parts = {
        "keys": f"\n\n{render_keys()}\n\n",
        "own keys": ", ".join(f"`{name}` (`{key}`)" for name, key in KEYS.items()),
    }
    for name, text in parts.items():
        head, begin, rest = page.partition(f"<!-- generated: {name} -->")
        _, end, tail = rest.partition("<!-- end of generated -->")
        if not end:
            raise ValueError(f"the page has no markers for the generated {name}")
        page = f"{head}{begin}{text}{end}{tail}"
    return page


def render_keys() -> str:
    """Every key of the file: a table for each part."""
    root = Experiment.model_json_schema()
    lines = [*render_table(Experiment, root, root), SCALES]
    for path, model in list_parts():
        lines += [f"\n### {path}\n", *render_table(model, root["$defs"][model.__name__], root)]
    return "\n".join(lines)


def list_parts() -> list[tuple[str, type[BaseModel]]]:
    """The parts of the file with their paths; a part that is used in several places has its shortest path."""
    every = list(parts_below(Experiment))
    return [(path, model) for path, model in every if path == min((p for p, other in every if other is model), key=len)]


def parts_below(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yields the parts below a model's keys, with their paths."""
    for key, field in model.model_fields.items():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                path = f"{above}{key}" + (".NAME" if get_origin(field.annotation) is dict else "")
                yield path, part
                yield from parts_below(part, f"{path}.")


def render_table(model: type[BaseModel], part: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """A table of the keys of one part."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key, field in model.model_fields.items():
        schema = part["properties"][key]
        meaning, _, worked_out = " ".join((field.description or "").split()).partition(" Default: ")
        default = worked_out.rstrip(".") or ("**required**" if field.is_required() else default_of(schema))
        if field.examples and not needs_no_example(schema):
            meaning += f" Example: `{key}: {flow_yaml(field.examples[0])}`"
        cells = (f"`{key}`", describe_type(schema), default, meaning)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def default_of(schema: dict[str, Any]) -> str:
    """A default, as a table cell."""
    default = schema.get("default")
    if isinstance(default, dict) or default is None or default in ("", [], {}) or "$ref" in schema:
        return ""
    return f"`{flow_yaml(default)}`"


def needs_no_example(schema: dict[str, Any]) -> bool:
    """Whether a key needs no example: it has a single value, or is a mapping whose keys have examples."""
    return (
        "enum" in schema
        or "const" in schema
        or describe_type(schema) in (LENGTH, SHARE, SIZE, PART, *TYPE_NAMES.values())
    )


LENGTH, SHARE, SIZE, PART = "duration", "share", "size", "keys below"
TYPE_NAMES = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}


def describe_type(schema: dict[str, Any], *, many: bool = False) -> str:
    """The type of a value as text; in the plural if `many`."""
    ending = "s" if many else ""
    if "$ref" in schema:
        return PART
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return " or ".join(f"`{flow_yaml(word)}`" for word in choices)
    if "anyOf" in schema:
        # Skips the pattern for templates: any value may be a template.
        alternatives = [
            alternative
            for alternative in schema["anyOf"]
            if alternative.get("type") != "null" and alternative.get("pattern") != VARIED_PATTERN
        ]
        kinds = [describe_type(other) for other in alternatives]
        if kinds == ["integer", "string"]:
            return SIZE
        if kinds[:2] == ["number", "string"]:
            pattern = alternatives[1]["pattern"]
            if "ops?/s" in pattern:
                kinds[:2] = ["rate"]
                return " or ".join(kinds)
            is_length = pattern.startswith(DURATION_PATTERN)
            kinds[:2] = [(LENGTH if is_length else SHARE) + ending]
            kinds += [SHARE] if is_length and "%" in pattern else ["`never`"] if "never" in pattern else []
        return " or ".join(kinds)
    if schema["type"] == "array":
        return f"list{ending} of {describe_type(schema['items'], many=True)}"
    if schema["type"] == "object":
        values = schema["additionalProperties"]
        return f"mapping{ending}" + (
            "" if isinstance(values.get("type"), list) else f" of {describe_type(values, many=True)}"
        )
    return ("value" if isinstance(schema["type"], list) else TYPE_NAMES[schema["type"]]) + ending
