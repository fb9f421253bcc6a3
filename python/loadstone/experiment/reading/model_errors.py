"""Translates pydantic's errors into messages: the problem, the line, and a remedy."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from loadstone.engine.describe import describe_engine
from loadstone.experiment.mistake import Location, Mistake
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.model.values import flow_yaml, quote_value
from loadstone.experiment.model.vary import LONG
from loadstone.experiment.model.ycsb_properties import KEYS
from loadstone.experiment.reading.path import Path, format_path, locate_path
from loadstone.experiment.reading.tree import MappingNode
from loadstone.format.suggestion import nearest_name, suggest_name, suggest_names

# Pydantic's errors about containers, and the expected type for each.
CONTAINERS = {"model_type": "a mapping", "dict_type": "a mapping", "tuple_type": "a list"}

# Keys whose values can be dimensions without a template.
VARIED = (("clients",), ("rate",), ("durability",), ("arrival",), ("measure", "operations"))


def translate_error(tree: MappingNode, error: ErrorDetails, path: Path) -> Mistake:
    """The message for a pydantic error at a path."""
    kind, value = error["type"], error["input"]
    location = locate_path(tree, path)
    context = error.get("ctx", {})
    if path in VARIED and isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        hint = f"write `vary: {{{path[-1]}: {flow_yaml(value)}}}` instead"
        return Mistake(location, f"{format_path(path)} must be a single value, got a list", hint)
    if path == ("systems",) and isinstance(value, list) and len({*map(str, value)}) < len(value):
        hint = "name each store once; another system with this store needs a name: `other: {store: lmdb}`"
        return Mistake(location, "systems lists a store twice", hint)
    if kind == "mistake":
        return Mistake(location, f"{format_path(path)} {context['what']}", context["hint"])
    if kind == "extra_forbidden":
        return unknown_key(location, path)
    if kind == "missing":
        return Mistake(location, f"`{format_path(path)}` is missing", example_hint(path))
    if path == ("systems",) and isinstance(value, list) and None in value:
        message = f"systems[{value.index(None) + 1}] is the value `null`, not a name"
        return Mistake(location, message, "write 'null' in quotes")
    if kind in CONTAINERS:
        hint = suggest_name(str(path[-1]), LONG) if path[:2] == ("vary", "matrix") else ""
        return Mistake(
            location,
            f"{format_path(path)} must be {CONTAINERS[kind]}, got {quote_value(value)}",
            hint or example_hint(path),
        )
    if kind == "literal_error":
        # "'none', 'os' or 'device'"
        listed = context["expected"].replace("'", "").lower()
        names = re.split(", | or ", listed)
        hint = (
            suggest_names(str(value), names, "the values are") if names[1:] else f"write {listed}, or leave the key out"
        )
        return Mistake(location, f"{format_path(path)} must be {listed}, got {quote_value(value)}", hint)
    if kind == "bool_type":
        hint = "write true or false, without quotes"
        return Mistake(location, f"{format_path(path)} must be true or false, got {quote_value(value)}", hint)
    if kind == "too_short":
        return Mistake(location, f"{format_path(path)} is empty", example_hint(path))
    return Mistake(location, f"{format_path(path)}: {error['msg'].lower()}", example_hint(path))


# Keys that users of other tools expect, with Loadstone's equivalents.
INSTEAD = {
    "search": "find: {over: rate, such_that: p99 < 10ms}",
    "ycsb": "workload: workloads/workloada",
    "threads": "clients: 8",
    "users": "clients: 8",
    "iterations": "repeats: 6",
    "runs": "repeats: 6",
}


def unknown_key(location: Location, path: Path) -> Mistake:
    """The message for an unknown key."""
    key, above = str(path[-1]), path[:-1]
    message = f'there is no key "{key}"' + (f" in {format_path(above)}" if above else "")
    if above == ("vary",):
        return Mistake(location, message, f"put dimensions into `matrix`; the other keys are {', '.join(LONG[1:])}")
    model = model_at(above)
    keys = [*(model.model_fields if model else ()), *([] if above else ["scales"])]
    # The key above the unknown key is not suggested.
    paths = [path for path in all_paths(Experiment) if path.rpartition(".")[2] == key]
    elsewhere = [path for path in paths if path.split(".") != [*above[:1]]]
    if elsewhere:
        hint = f"did you mean `{elsewhere[0]}`{' at the top of the file' if elsewhere[0] == key else ''}?"
        return Mistake(location, message, hint)
    if nearest_name(key, keys) is None:
        if key in INSTEAD:
            return Mistake(location, message, f"write `{INSTEAD[key]}`")
        if key in KEYS:
            return Mistake(location, message, f"write `{KEYS[key]}` instead of YCSB's {key}")
        if key in describe_engine().properties:
            hint = f"it is a property of the workload: write `workload: {{properties: {{{key}: …}}}}`"
            return Mistake(location, message, hint)
        if above[:1] == ("systems",) and "." in key:
            return Mistake(location, message, f"it is a property of the store: write `properties: {{{key}: …}}`")
    return Mistake(location, message, suggest_names(key, keys, "the keys are"))


def model_at(path: Iterable[str | int]) -> type[BaseModel] | None:
    """The model at a path, if there is one."""
    at: Any = Experiment
    for part in path:
        if isinstance(at, type) and issubclass(at, BaseModel):
            field = at.model_fields.get(str(part))
            at = type_without_none(field.annotation) if field else None
        elif typing.get_origin(at) is dict:
            at = typing.get_args(at)[1]
        elif typing.get_origin(at) is tuple:
            at = typing.get_args(at)[0]
        else:
            return None
    return at if isinstance(at, type) and issubclass(at, BaseModel) else None


def type_without_none(annotation: Any) -> Any:
    """The type of a key's value, without None; for a union of a value and a part, the part."""
    kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    if parts := [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]:
        kinds = parts
    return kinds[0] if isinstance(annotation, types.UnionType) and len(kinds) == 1 else annotation


def all_paths(model: type[BaseModel], above: str = "") -> list[str]:
    """Every key of a model that is not below a name chosen by the user, as a dotted path."""
    paths = []
    for key, field in model.model_fields.items():
        path = f"{above}{key}"
        paths.append(path)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            paths += all_paths(field.annotation, f"{path}.")
    return paths


def example_hint(path: Path) -> str:
    """A hint that shows an example of the key."""
    if path[:1] == ("systems",) and len(path) <= 2:
        return "write `systems: {rocksdb: {}, lmdb: {}}`"
    if path[:2] in (("vary", "matrix"), ("vary", "zip")) and len(path) == 3:
        return f"write `{path[2]}: [a, b]`"
    model = model_at(path[:-1])
    field = model.model_fields.get(str(path[-1])) if model else None
    if field is None:
        return example_hint(path[:-1])
    assert field.examples, "every key that can have a wrong type has an example"
    return f"write `{path[-1]}: {flow_yaml(field.examples[0])}`"
