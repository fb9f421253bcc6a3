"""The parts of the reference page of experiment files that are made of the model; people write what stands around."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from loadstone.engine.describe import description
from loadstone.experiment.model.experiment import (
    Compare,
    Experiment,
    Find,
    Fleet,
    Load,
    Measure,
    Repeats,
    Vary,
    Workload,
)
from loadstone.experiment.model.system import Attach, Hooks, Over, Start, System
from loadstone.experiment.model.values import flow
from loadstone.experiment.model.ycsb_properties import KEYS

PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("systems.NAME", System),
    ("systems.NAME.start", Start),
    ("systems.NAME.start.over", Over),
    ("systems.NAME.attach", Attach),
    ("workload", Workload),
    ("vary", Vary),
    ("find", Find),
    ("measure", Measure),
    ("load", Load),
    ("fleet", Fleet),
    ("repeats", Repeats),
    ("hooks", Hooks),
    ("compare", Compare),
)

SCALES = (
    "| `scales` | mapping of names to parts of a file |  | Documents that `--scale NAME` lays over the file. "
    "| `scales: {small: {measure: {duration: 2s}}}` |"
)


def renewed(page: str) -> str:
    """A page with its generated parts made anew. Raises ValueError when it has no place for one."""
    parts = {
        "keys": f"\n\n{keys()}\n\n",
        "stores": ", ".join(f"[{store}](stores/{store}.md)" for store in description().stores),
        "own keys": ", ".join(f"`{name}` (`{key}`)" for name, key in KEYS.items()),
    }
    for name, text in parts.items():
        head, begin, rest = page.partition(f"<!-- generated: {name} -->")
        _, end, tail = rest.partition("<!-- end of generated -->")
        if not end:
            raise ValueError(f"the page has no place for the {name}")
        page = f"{head}{begin}{text}{end}{tail}"
    return page


def keys() -> str:
    """Every key of the file: a table for each part."""
    root = Experiment.model_json_schema()
    lines = [*table(Experiment, root, root), SCALES]
    for title, model in PARTS:
        part = root["$defs"][model.__name__]
        lines += [f"\n### {title}\n\n{part['description']}\n", *table(model, part, root)]
    return "\n".join(lines)


def table(model: type[BaseModel], part: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """The keys of one part."""
    lines = ["| key | type | default | meaning | example |", "|---|---|---|---|---|"]
    for key, field in model.model_fields.items():
        schema = part["properties"][key]
        meaning, _, worked_out = " ".join((field.description or "").split()).partition(" Default: ")
        default = worked_out.rstrip(".") or ("**required**" if field.is_required() else default_of(schema))
        example = f"`{key}: {flow(field.examples[0])}`" if field.examples else ""
        cells = (f"`{key}`", kind(schema), default, meaning, example)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def default_of(schema: dict[str, Any]) -> str:
    """A default in a cell."""
    default = schema.get("default")
    if default is None or default in ("", [], {}) or "$ref" in schema:
        return ""
    return f"`{flow(default)}`"


LENGTH, SHARE = "length of time", "share"
WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`"}


def kind(schema: dict[str, Any], *, many: bool = False) -> str:
    """What a value is, in words; `many` in the plural."""
    ending = "s" if many else ""
    if "$ref" in schema:
        return "keys below"
    if words := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return " or ".join(f"`{flow(word)}`" for word in words)
    if "anyOf" in schema:
        kinds = [kind(other) for other in schema["anyOf"] if other.get("type") != "null"]
        if kinds == ["number", "text"]:
            return SHARE if "%" in schema["anyOf"][1]["pattern"] else LENGTH
        return " or ".join(kinds)
    if schema["type"] == "array":
        return f"list{ending} of {kind(schema['items'], many=True)}"
    if schema["type"] == "object":
        return f"mapping{ending} of names to {kind(schema['additionalProperties'], many=True)}"
    return ("single value" if isinstance(schema["type"], list) else WORDS[schema["type"]]) + ending
