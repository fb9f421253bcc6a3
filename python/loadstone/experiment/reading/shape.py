"""From a tree to the model of all that can be understood of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from loadstone.experiment.mistake import Mistake, Place
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.reading.path import Path, locate
from loadstone.experiment.reading.refusals import translate
from loadstone.experiment.reading.tree import Items, Node, Scalar, Table, Unclear

# Each round removes what the last one found; what is left must fit in the end.
ROUNDS = 10
REPLACEMENT = "-"
# The last digit of a version is lost in a number: 7.10 is 7.1.
ZERO_AT_END = re.compile(r"[-+]?[0-9]*\.[0-9]+0")
# Mappings whose values are texts as they are written.
TEXTS = ("properties", "settings", "table")
WHOLE_FILE: dict[str, Any] = {"systems": {"none": {}}, "workload": {}}


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
    if document.get("workloads"):
        document.setdefault("workload", {})
    for _ in range(ROUNDS):
        try:
            return Shaped(tree, Experiment.model_validate(document), mistakes, lost)
        except ValidationError as error:
            for each in error.errors(include_url=False):
                path = shortened(document, each["loc"])
                if path not in lost:
                    mistakes.append(translate(tree, each, path))
                lost.add(path)
                # Without what it needs, a part cannot be understood at all.
                remove(document, path[:-1] if each["type"] == "missing" and len(path) > 1 else path)
            # What must be there must be there for the next round as well.
            for key, least in WHOLE_FILE.items():
                if not document.get(key):
                    lost.add((key,))
                    document[key] = least
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
