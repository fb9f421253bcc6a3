"""`python -m loadstone.workloads` writes the JSON Schema of experiment files, and their reference page.

Both are generated from the model, and a test checks that the committed files are up to date. Only the parts of the page
between markers are generated.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from loadstone.errors import LoadstoneError
from loadstone.experiment.kind import KINDS
from loadstone.experiment.model import reference
from loadstone.experiment.model.experiment import KIND_OF_KEY, Experiment
from loadstone.experiment.model.vary import LONG

Schema = dict[str, Any]
SCHEMA, PAGE = "docs/reference/schemas/experiment.json", "docs/reference/experiment-file.md"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def experiment_schema() -> Schema:
    """The JSON Schema of an experiment file, with its short forms and its scales."""
    result = tidy_schema(Experiment.model_json_schema())
    parts: Schema = result["$defs"]
    for key, field in Experiment.model_fields.items():
        # Pydantic omits a key's description if it equals the part's, but editors show only the key's description.
        result["properties"][key] = {"description": field.description, **result["properties"][key]}
    short_forms(result["properties"], parts)
    result["required"].remove("workload")
    result["oneOf"] = [{"required": [key]} for key in ("workload", "workloads")]
    whole = {key: value for key, value in result.items() if key not in ("$defs", "title", "description")}
    parts |= {f"Scaled{name}": as_overlay(part) for name, part in parts.items()}
    differing = "Keys that `--scale` overrides when it names this scale; null removes a key."
    parts["Scale"] = {"description": differing, **as_overlay(whole)}
    result["properties"]["scales"] = {
        "description": "Documents that `--scale NAME` merges into the file.",
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Scale"},
    }
    return {"$schema": DIALECT, "title": "A Loadstone experiment", **result}


def short_forms(keys: Schema, parts: Schema) -> None:
    """Adds the short forms of keys."""
    for name, short in (
        ("workload", {"type": "string"}),
        ("repeats", {"type": "integer", "minimum": parts["Repeats"]["properties"]["at_least"]["minimum"]}),
        ("systems", {"type": "array", "items": {"enum": list_stores()}, "minItems": 1}),
    ):
        long = {
            key: keys[name].pop(key) for key in list(keys[name]) if key not in ("description", "examples", "default")
        }
        keys[name]["anyOf"] = [short, long]
    keys["workloads"]["additionalProperties"] = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Workload"}]}
    # Exactly one kind is required; the first key of the kind identifies it.
    first = {KIND_OF_KEY[key]: key for key in reversed(parts["Workload"]["properties"])}
    parts["Workload"]["oneOf"] = [{"required": [key]} for key in reversed(first.values())]
    for name, span in (("at", "AtSpan"), ("lift", "LiftSpan")):
        plain = parts["FaultKeys"]["properties"][name]
        described = {key: plain[key] for key in plain if key not in ("$ref", "anyOf")}
        exact = parts[span]["properties"]["from"]["anyOf"]
        described = {"description": parts[span]["description"], **described}
        parts["FaultKeys"]["properties"][name] = {**described, "anyOf": [*exact, {"$ref": f"#/$defs/{span}"}]}
    servers = parts["FaultKeys"]["properties"]["server"]
    parts["FaultKeys"]["properties"]["server"] = {
        **{key: servers.pop(key) for key in ("description", "default", "examples")},
        "anyOf": [{"type": "string"}, servers],
    }
    parts["SystemKeys"]["type"] = ["object", "null"]
    parts["SystemKeys"]["properties"]["start"]["anyOf"].insert(0, {"type": "string"})
    parts["SystemKeys"]["properties"]["store"] = {**parts["SystemKeys"]["properties"]["store"], "enum": list_stores()}
    parts["Attach"]["required"] = ["hosts"]
    parts["Attach"]["properties"]["hosts"]["minItems"] = 1
    for name in ("matrix", "zip"):
        values = parts["Vary"]["properties"][name]["additionalProperties"]
        parts["Vary"]["properties"][name]["additionalProperties"] = {"anyOf": [values, values["items"]]}
        values["minItems"] = 1
    matrix = {key: parts["Vary"]["properties"]["matrix"][key] for key in ("type", "additionalProperties")}
    long = {"$ref": "#/$defs/Vary"}
    keys["vary"].pop("$ref")
    keys["vary"]["anyOf"] = [{**matrix, "propertyNames": {"not": {"enum": [*LONG]}}}, long]


def list_stores() -> list[str]:
    """Every store that any workload kind can use."""
    return list(dict.fromkeys(name for kind in KINDS.values() for name in kind.stores()))


def as_overlay(node: Schema) -> Schema:
    """The schema of a scale: nothing is required, and null removes any key."""
    result = {key: value for key, value in node.items() if key != "required"}
    if "properties" in node:
        result["properties"] = {key: allow_null(as_overlay(value)) for key, value in node["properties"].items()}
    if isinstance(node.get("additionalProperties"), dict):
        result["additionalProperties"] = allow_null(as_overlay(node["additionalProperties"]))
    # The alternatives of `oneOf` only require keys, and a scale may omit any key, so `oneOf` is dropped.
    result.pop("oneOf", None)
    if "anyOf" in node:
        result["anyOf"] = [as_overlay(alternative) for alternative in node["anyOf"]]
    if "$ref" in node:
        result["$ref"] = node["$ref"].replace("#/$defs/", "#/$defs/Scaled")
    return result


def allow_null(node: Schema) -> Schema:
    """A schema that also accepts null; keywords that editors show remain at the top level."""
    labels: Schema = {key: node[key] for key in ("description", "default", "examples") if key in node}
    rest = {key: value for key, value in node.items() if key not in labels}
    return {**labels, "anyOf": [rest, {"type": "null"}]}


def tidy_schema(node: Any) -> Any:
    """Removes titles, which only repeat the keys, and puts each description on one line."""
    if isinstance(node, dict):
        schema = {
            key: tidy_schema(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))
        }
        if isinstance(description := schema.get("description"), str):
            schema["description"] = " ".join(description.split())
        return schema
    return [tidy_schema(item) for item in node] if isinstance(node, list) else node


def render_schema() -> str:
    """The content of the schema file."""
    return json.dumps(experiment_schema(), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Writes both files below a repository's root (default: the current directory)."""
    base = Path(arguments[0] if arguments else ".")
    try:
        page = (base / PAGE).read_text()
    except OSError as error:
        hint = "name the root of the repository: python -m loadstone.workloads DIRECTORY"
        print(LoadstoneError(f"cannot read {base / PAGE}: {error.strerror}", hint), file=sys.stderr)
        return 2
    (base / PAGE).write_text(reference.regenerate_page(page))
    (base / SCHEMA).write_text(render_schema())
    return 0
