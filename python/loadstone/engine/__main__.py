"""`python -m loadstone.engine` generates the types of events from the engine's schema."""

from __future__ import annotations

import json
import sys
import textwrap
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "docs/reference/schemas/event.json"
TYPES = Path(__file__).parent / "event_types.py"

# The lab's names for types whose engine names would be ambiguous without their modules.
NAMES = {"FilesSummary": "Files", "SortSummary": "Sorted", "Sorted": "SortProgress"}
FIGURES = {"Outcome": "OutcomeFigures", "FilesSummary": "FilesFigures", "Summary": "SummaryFigures"}
# Fields that the engine always writes, but that imported or synthetic events lack.
DEFAULTS = {
    "Clock": {"offset_ns_max": "0", "reversals": "0"},
    "Interval": {"earlier": "()"},
    "Summary": {"not_yet": "0", "retried": "0", "rows": "0", "bytes": "0"},
}
SIMPLE = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}
HEAD = '''"""The types of events. Generated from the schema of events by `python -m loadstone.engine`; do not edit.

The schema describes each field. Fields unknown to this version are ignored, so that an engine may report more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loadstone.engine.event_figures import {figures}
'''


def name_type(reference: str) -> str:
    """The lab's name for a definition."""
    name = reference.rsplit("/", 1)[-1]
    return NAMES.get(name, name)


def annotate_type(schema: dict[str, Any]) -> str:
    """The Python type for a JSON schema."""
    if "$ref" in schema:
        return name_type(schema["$ref"])
    if "anyOf" in schema:
        return " | ".join(annotate_type(part) for part in schema["anyOf"])
    kind = schema["type"]
    if isinstance(kind, list):
        return " | ".join("None" if part == "null" else annotate_type({**schema, "type": part}) for part in kind)
    if kind == "null":
        return "None"
    if kind == "object":
        return f"dict[str, {annotate_type(schema['additionalProperties'])}]"
    if kind != "array":
        return SIMPLE[kind]
    item = annotate_type(schema["items"])
    length = schema.get("maxItems")
    return f"tuple[{', '.join([item] * length)}]" if length else f"tuple[{item}, ...]"


def field_default(schema: dict[str, Any], annotation: str) -> str:
    """The default of an optional field, as an expression."""
    if annotation.startswith("tuple"):
        return "()"
    if annotation.startswith("dict"):
        return "field(default_factory=dict)"
    value = schema.get("default")
    if isinstance(value, dict):
        arguments = ", ".join(f"{name}={part!r}" for name, part in sorted(value.items()))
        return f"{annotation}({arguments})"
    return repr(value)


def render_type(name: str, schema: dict[str, Any]) -> str:
    """The code of a definition as a dataclass, with required fields first, in the engine's order."""
    required, optional = [], []
    # `required` keeps the order of the Rust type; properties are sorted by name.
    order = dict.fromkeys([*schema["required"], *schema["properties"]])
    for field in order:
        part = schema["properties"][field]
        annotation = annotate_type(part)
        known = DEFAULTS.get(name, {}).get(field)
        if field in schema["required"] and known is None:
            required.append(f"    {field}: {annotation}")
        else:
            optional.append(f"    {field}: {annotation} = {known or field_default(part, annotation)}")
    base = f"({FIGURES[name]})" if name in FIGURES else ""
    sentence = schema["description"].replace("\n", " ").split(". ")[0].rstrip(".")
    text = textwrap.fill(f'"""{sentence}."""', 112, initial_indent="    ", subsequent_indent="    ")
    lines = [text, "", *required, *optional]
    return "\n".join([f"@dataclass(frozen=True)\nclass {name_type(name)}{base}:", *lines])


def render_module(schema: dict[str, Any]) -> str:
    """The code of the module with the types of a schema."""
    definitions: dict[str, dict[str, Any]] = schema["$defs"]
    # Types are sorted so that a type follows the types that its defaults use.
    uses = {
        name: [other for other in definitions if f'"#/$defs/{other}"' in json.dumps(part)]
        for name, part in definitions.items()
    }
    order = TopologicalSorter(uses).static_order()
    head = HEAD.format(figures=", ".join(sorted(FIGURES.values())))
    return "\n\n".join([head, *(render_type(name, definitions[name]) + "\n" for name in order)])


if __name__ == "__main__":
    TYPES.write_text(render_module(json.loads(SCHEMA.read_text())))
    sys.stdout.write(f"{TYPES}\n")
