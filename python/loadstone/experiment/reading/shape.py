"""Builds a model from the valid parts of a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from loadstone.experiment.mistake import Location, Mistake
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.reading.model_errors import translate_error
from loadstone.experiment.reading.path import Path, locate_path
from loadstone.experiment.reading.tree import Items, MappingNode, Node, Scalar, Unclear

# Each round removes the values that the previous round found invalid.
ROUNDS = 10
REPLACEMENT = "-"
# A version loses its last zero if it is read as a number: 7.10 becomes 7.1.
ENDS_IN_0 = re.compile(r"[-+]?[0-9]*\.[0-9]+0")
# Mappings whose values are read as strings, exactly as written.
TEXTS = ("properties", "settings", "table")
REQUIRED: dict[str, Any] = {"systems": {"none": {}}, "workload": {}}


@dataclass
class Shaped:
    """A model of the valid parts of a file, and the paths of the invalid parts, which further checks ignore."""

    tree: MappingNode
    experiment: Experiment
    mistakes: list[Mistake] = field(default_factory=list)
    lost: set[Path] = field(default_factory=set)

    def is_valid(self, *path: str | int) -> bool:
        """Whether everything at and below a path is valid, so that further checks make sense."""
        return not any(lost[: len(path)] == path or path[: len(lost)] == lost for lost in self.lost)

    def location_of(self, path: Iterable[str | int]) -> Location:
        """The location of a path, or the location where it is expected."""
        return locate_path(self.tree, tuple(path))


def shape_tree(tree: MappingNode) -> Shaped:
    """The model of a tree."""
    repeats = tree.entries.get("repeats")
    if isinstance(repeats, Scalar) and repeats.value is not None:
        # A single number is `at_least`; `at_most` then defaults to the same number.
        tree = replace(tree, entries={**tree.entries, "repeats": MappingNode.from_entry("at_least", repeats)})
    mistakes: list[Mistake] = []
    lost: set[Path] = set()
    document = plain_values(tree, (), mistakes, lost)
    if document.get("workloads"):
        document.setdefault("workload", {})
    for _ in range(ROUNDS):
        try:
            return Shaped(tree, Experiment.model_validate(document), mistakes, lost)
        except ValidationError as error:
            errors = [(shorten_path(document, detail["loc"]), detail) for detail in error.errors(include_url=False)]
            for path, detail in errors:
                if path not in lost:
                    mistakes.append(translate_error(tree, detail, path))
                lost.add(path)
            # A part without a required key is invalid as a whole, so its contents are removed first.
            wrong = {path[:-1] if detail["type"] == "missing" and len(path) > 1 else path for path, detail in errors}
            # Faults and stages are removed only as a whole list, since removing one would renumber its successors.
            wrong = {path[:1] if path[0] in ("faults", "rate") else path for path in wrong}
            for path in sorted(wrong, key=len, reverse=True):
                remove_value(document, path)
            # The model requires these keys, so the next round needs at least a minimal value for each.
            for key, minimal in REQUIRED.items():
                if not document.get(key):
                    lost.add((key,))
                    document[key] = minimal
    raise AssertionError(f"no model of {document}")


def plain_values(node: Node, path: Path, mistakes: list[Mistake], lost: set[Path]) -> Any:
    """The tree as dicts, lists and values. Null counts as not set. Adds the paths of unusable values to `lost`."""
    if isinstance(node, Items):
        return [plain_values(item, (*path, i), mistakes, lost) for i, item in enumerate(node.items)]
    if isinstance(node, MappingNode):
        every = {key: plain_values(item, (*path, key), mistakes, lost) for key, item in node.entries.items()}
        if path == ("systems",):
            # A system needs no keys, so its value may be null.
            return {key: {} if item is None else item for key, item in every.items()}
        return {key: item for key, item in every.items() if item is not None}
    if isinstance(node.value, Unclear):
        lost.add(path)
        return REPLACEMENT if isinstance(path[-1], int) else None
    if len(path) >= 2 and path[-2] in TEXTS and isinstance(node.value, int | float | str):
        return node.value if isinstance(node.value, bool) else node.text
    if path[:1] in (("vary",), ("compare",)) and isinstance(node.value, float) and ENDS_IN_0.fullmatch(node.text):
        message = f"`{node.text}` is read as the number {node.value}"
        mistakes.append(Mistake(node.location, message, f'quote it to keep the last 0: "{node.text}"'))
        lost.add(path)
    return node.value


def shorten_path(document: Any, loc: tuple[str | int, ...]) -> Path:
    """The part of pydantic's path that is in the document: pydantic appends the alternatives that it tried."""
    path: list[str | int] = []
    for i, part in enumerate(loc):
        inside = isinstance(document, dict) or (isinstance(document, list) and isinstance(part, int))
        if not inside or (i < len(loc) - 1 and isinstance(document, dict) and part not in document):
            break
        path.append(part)
        document = document.get(part) if isinstance(document, dict) else document[part]
    return tuple(path)


def remove_value(document: Any, path: Path) -> None:
    """Removes a value. In a list, the value is replaced instead, so that the other elements keep their indices."""
    for part in path[:-1]:
        document = document[part]
    if isinstance(document, dict):
        document.pop(path[-1], None)
    else:
        document[path[-1]] = {} if document[path[-1]] == REPLACEMENT else REPLACEMENT
