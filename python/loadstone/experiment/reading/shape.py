"""From a tree to the model: what is wrong with single values is told in the file's terms, by line."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from loadstone.engine.describe import description
from loadstone.experiment.mistake import Mistake, Place
from loadstone.experiment.model.experiment import LONG, Experiment
from loadstone.experiment.model.values import flow, shown
from loadstone.experiment.model.ycsb_properties import KEYS
from loadstone.experiment.reading.tree import Items, Node, Scalar, Table, Unclear
from loadstone.format.suggestion import guessed, near, suggestion

Path = tuple[str | int, ...]
# Each round removes what the last one found; what is left must fit in the end.
ROUNDS = 10
REPLACEMENT = "-"
# The last digit of a version is lost in a number: 7.10 is 7.1.
ZERO_AT_END = re.compile(r"[-+]?[0-9]*\.[0-9]+0")
# Mappings whose values are texts as they are written.
TEXTS = ("properties", "settings", "table")
WHOLE_FILE: dict[str, Any] = {"systems": {"none": {}}, "workload": {"file": "-"}}


@dataclass
class Shaped:
    """A model of what could be understood, and the paths of what could not: nothing else depends on those."""

    tree: Table
    experiment: Experiment
    mistakes: list[Mistake] = field(default_factory=list)
    lost: set[Path] = field(default_factory=set)

    def knows(self, *path: str | int) -> bool:
        """Whether everything at this path and below was understood, so that it may be judged."""
        return not any(lost[: len(path)] == path or path[: len(lost)] == lost for lost in self.lost)

    def place(self, path: Iterable[str | int]) -> Place:
        """Where this is said, or where it would belong."""
        return locate(self.tree, tuple(path))


def shape(tree: Table) -> Shaped:
    """The model of a tree."""
    repeats = tree.entries.get("repeats")
    if isinstance(repeats, Scalar) and repeats.value is not None:
        # At most as many is then the default.
        tree = replace(tree, entries={**tree.entries, "repeats": Table.of("at_least", repeats)})
    plainer = Plainer()
    document = plainer.plain(tree)
    mistakes, lost = plainer.mistakes, plainer.lost
    for _ in range(ROUNDS):
        try:
            return Shaped(tree, Experiment.model_validate(document), mistakes, lost)
        except ValidationError as error:
            for each in error.errors(include_url=False):
                path = shortened(document, each["loc"])
                if path not in lost:
                    mistakes.append(translate(tree, each, path))
                lost.add(path)
                remove(document, path)
            # What must be there must be there for the next round as well.
            for key in ("systems", "workload"):
                if not document.get(key):
                    lost.add((key,))
                    document[key] = WHOLE_FILE[key]
            if isinstance(document["workload"], dict):
                document["workload"].setdefault("file", "-")
    raise AssertionError(f"no model of {document}")


@dataclass
class Plainer:
    """Makes plain Python values of a tree. Null is not given; what is unclear is lost, and stands in for itself."""

    mistakes: list[Mistake] = field(default_factory=list)
    lost: set[Path] = field(default_factory=set)

    def plain(self, node: Node, path: Path = ()) -> Any:
        """The tree as dicts, lists and values."""
        match node:
            case Scalar():
                return self.scalar(node, path)
            case Items():
                return [self.plain(each, (*path, i)) for i, each in enumerate(node.items)]
            case Table():
                found = {}
                for key, value in node.entries.items():
                    each = self.plain(value, (*path, key))
                    if each is not None:
                        found[key] = each
                    elif path == ("systems",):
                        found[key] = {}
                return found

    def scalar(self, node: Scalar, path: Path) -> Any:
        """A single value; a property is a text as it is written."""
        if isinstance(node.value, Unclear):
            self.lost.add(path)
            return REPLACEMENT if isinstance(path[-1], int) else None
        if len(path) >= 2 and path[-2] in TEXTS and isinstance(node.value, int | float | str):
            return node.value if isinstance(node.value, bool) else node.text
        if path[:1] in (("vary",), ("compare",)) and isinstance(node.value, float) and ZERO_AT_END.fullmatch(node.text):
            message = f"`{node.text}` is the number {node.value}"
            self.mistakes.append(Mistake(node.place, message, f'write "{node.text}" if its last 0 counts'))
            self.lost.add(path)
        return node.value


def shortened(document: Any, loc: tuple[str | int, ...]) -> Path:
    """A path of the document: pydantic's may go on beyond it, where it says which alternative it tried."""
    found: list[str | int] = []
    for i, part in enumerate(loc):
        inside = isinstance(document, dict) or (isinstance(document, list) and isinstance(part, int))
        if not inside or (i < len(loc) - 1 and isinstance(document, dict) and part not in document):
            break
        found.append(part)
        document = document.get(part) if isinstance(document, dict) else document[part]
    return tuple(found)


def remove(document: Any, path: Path) -> None:
    """Takes a value out. In a list something that fits stands in for it, so that the others keep their numbers."""
    for part in path[:-1]:
        document = document[part]
    if isinstance(document, dict):
        document.pop(path[-1], None)
    else:
        document[path[-1]] = {} if document[path[-1]] == REPLACEMENT else REPLACEMENT


def locate(tree: Node, path: Path) -> Place:
    """The place of a path, or of the nearest above it."""
    place = tree.place
    for part in path:
        if isinstance(tree, Table) and isinstance(part, str) and part in tree.entries:
            place, tree = tree.keys[part], tree.entries[part]
        elif isinstance(tree, Items) and isinstance(part, int) and part < len(tree.items):
            tree = tree.items[part]
            place = tree.place
        else:
            return place
    return tree.place if isinstance(tree, Scalar) else place


def name(path: Iterable[str | int]) -> str:
    """A path as it is written: `vary.letter`, `hooks.before[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        elif text != "vary" or part != "matrix":
            text += f".{part}" if text else part
    return text


def translate(tree: Table, error: ErrorDetails, path: Path) -> Mistake:
    """A mistake in the file's terms."""
    kind, value = error["type"], error["input"]
    place = locate(tree, path)
    context = error.get("ctx", {})
    if kind == "mistake":
        return Mistake(place, f"{name(path)} {context['what']}", context["hint"])
    if kind == "extra_forbidden":
        return unknown_key(place, path)
    if kind == "missing":
        return Mistake(place, f"`{name(path)}` is missing", example(path))
    if kind in ("model_type", "dict_type"):
        return Mistake(place, f"{name(path)} must be a mapping, got {shown(value)}", example(path))
    if kind in ("tuple_type", "list_type"):
        hint = guessed(str(path[-1]), LONG) if path[:2] == ("vary", "matrix") else ""
        return Mistake(place, f"{name(path)} must be a list, got {shown(value)}", hint or example(path))
    if kind == "literal_error":
        # "'none', 'os' or 'device'"
        listed = context["expected"].replace("'", "").lower()
        words = re.split(", | or ", listed)
        hint = suggestion(str(value), words, "the values are") if words[1:] else f"write {listed}, or leave the key out"
        return Mistake(place, f"{name(path)} must be {listed}, got {shown(value)}", hint)
    if kind == "bool_type":
        hint = "write true or false, without quotes"
        return Mistake(place, f"{name(path)} must be true or false, got {shown(value)}", hint)
    if kind == "too_short":
        return Mistake(place, f"{name(path)} is empty", example(path))
    return Mistake(place, f"{name(path)}: {error['msg'].lower()}", example(path))


def unknown_key(place: Place, path: Path) -> Mistake:
    """What is said of a key that there is not."""
    key, above = str(path[-1]), path[:-1]
    message = f'there is no key "{key}"' + (f" in {name(above)}" if above else "")
    if above == ("vary",):
        return Mistake(place, message, f"beside {', '.join(LONG)} nothing may stand; put dimensions into `matrix`")
    model = model_at(above)
    keys = [*(model.model_fields if model else ()), *([] if above else ["scales"])]
    elsewhere = [each for each in all_paths(Experiment) if each.rpartition(".")[2] == key]
    if elsewhere:
        return Mistake(place, message, f"did you mean `{elsewhere[0]}`?")
    if near(key, keys) is None:
        if key in KEYS:
            return Mistake(place, message, f"YCSB's {key} is `{KEYS[key]}` here")
        if key in description().properties:
            return Mistake(
                place, message, f"it is a property of the workload: `workload: {{properties: {{{key}: …}}}}`"
            )
        if above[:1] == ("systems",) and "." in key:
            return Mistake(place, message, f"it is a property of the store: `properties: {{{key}: …}}`")
    return Mistake(place, message, suggestion(key, keys, "the keys are"))


def model_at(path: Iterable[str | int]) -> type[BaseModel] | None:
    """The model of what stands at a path, if it is one."""
    at: Any = Experiment
    for part in path:
        if isinstance(at, type) and issubclass(at, BaseModel):
            found = at.model_fields.get(str(part))
            at = present(found.annotation) if found else None
        elif typing.get_origin(at) is dict:
            at = typing.get_args(at)[1]
        else:
            return None
    return at if isinstance(at, type) and issubclass(at, BaseModel) else None


def present(annotation: Any) -> Any:
    """What a key that need not be there holds when it is."""
    kinds = [each for each in typing.get_args(annotation) if each is not type(None)]
    return kinds[0] if isinstance(annotation, types.UnionType) and len(kinds) == 1 else annotation


def all_paths(model: type[BaseModel], above: str = "") -> list[str]:
    """Every key of a model that does not depend on names of the user's, as a dotted path."""
    found = []
    for key, each in model.model_fields.items():
        path = f"{above}{key}"
        found.append(path)
        if isinstance(each.annotation, type) and issubclass(each.annotation, BaseModel):
            found += all_paths(each.annotation, f"{path}.")
    return found


def example(path: Path) -> str:
    """A hint that shows how it is written."""
    if path[:1] == ("systems",) and len(path) <= 2:
        return "write `systems: {rocksdb: {}, lmdb: {}}`"
    if path[:2] in (("vary", "matrix"), ("vary", "zip")) and len(path) == 3:
        return f"write `{path[2]}: [a, b]`"
    while len(path) > 1:
        model = model_at(path[:-1])
        if model is not None and path[-1] in model.model_fields:
            break
        path = path[:-1]
    model = model_at(path[:-1])
    assert model is not None, "the first key is the experiment's"
    examples = model.model_fields[str(path[-1])].examples
    assert examples, "what can have a wrong type has an example"
    return f"write `{path[-1]}: {flow(examples[0])}`"
