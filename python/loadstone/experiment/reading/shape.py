"""From a tree to a model of its valid parts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from loadstone.experiment.mistake import Location, Mistake
from loadstone.experiment.model.experiment import Experiment
from loadstone.experiment.reading.path import Path, locate
from loadstone.experiment.reading.refusals import translate
from loadstone.experiment.reading.tree import Items, Node, Scalar, Table, Unclear

# Each round removes the values that the last one found invalid.
ROUNDS = 10
REPLACEMENT = "-"
# A version loses its last zero as a number: 7.10 becomes 7.1.
ENDS_IN_0 = re.compile(r"[-+]?[0-9]*\.[0-9]+0")
# Mappings whose values are taken as strings, exactly as written.
TEXTS = ("properties", "settings", "table")
REQUIRED: dict[str, Any] = {"systems": {"none": {}}, "workload": {}}


@dataclass
class Shaped:
    """A model of the valid parts of a file, and the paths of invalid parts, on which no further check depends."""

    tree: Table
    experiment: Experiment
    mistakes: list[Mistake] = field(default_factory=list)
    lost: set[Path] = field(default_factory=set)

    def knows(self, *path: str | int) -> bool:
        """Whether everything at and below this path is valid, so that further checks make sense."""
        return not any(lost[: len(path)] == path or path[: len(lost)] == lost for lost in self.lost)

    def location(self, path: Iterable[str | int]) -> Location:
        """The location of this path, or where it would have to be."""
        return locate(self.tree, tuple(path))


def shape(tree: Table) -> Shaped:
    """The model of a tree."""
    repeats = tree.entries.get("repeats")
    if isinstance(repeats, Scalar) and repeats.value is not None:
        # `at_most` then defaults to the same number.
        tree = replace(tree, entries={**tree.entries, "repeats": Table.of("at_least", repeats)})
    mistakes: list[Mistake] = []
    lost: set[Path] = set()
    document = plain(tree, (), mistakes, lost)
    if document.get("workloads"):
        document.setdefault("workload", {})
    for _ in range(ROUNDS):
        try:
            return Shaped(tree, Experiment.model_validate(document), mistakes, lost)
        except ValidationError as error:
            errors = [(shortened(document, each["loc"]), each) for each in error.errors(include_url=False)]
            for path, each in errors:
                if path not in lost:
                    mistakes.append(translate(tree, each, path))
                lost.add(path)
            # A part without a required key is invalid as a whole; what is inside it is removed before.
            wrong = {path[:-1] if each["type"] == "missing" and len(path) > 1 else path for path, each in errors}
            # Faults and stages are checked together; without one of them the numbers of later ones would change.
            wrong = {path[:1] if path[0] in ("faults", "rate") else path for path in wrong}
            for path in sorted(wrong, key=len, reverse=True):
                remove(document, path)
            # The next round needs the required keys.
            for key, minimal in REQUIRED.items():
                if not document.get(key):
                    lost.add((key,))
                    document[key] = minimal
    raise AssertionError(f"no model of {document}")


def plain(node: Node, path: Path, mistakes: list[Mistake], lost: set[Path]) -> Any:
    """The tree as dicts, lists and values. Null counts as not set; ambiguous words are recorded as lost."""
    if isinstance(node, Items):
        return [plain(each, (*path, i), mistakes, lost) for i, each in enumerate(node.items)]
    if isinstance(node, Table):
        every = {key: plain(each, (*path, key), mistakes, lost) for key, each in node.entries.items()}
        if path == ("systems",):
            # A system needs no keys.
            return {key: {} if each is None else each for key, each in every.items()}
        return {key: each for key, each in every.items() if each is not None}
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


def shortened(document: Any, loc: tuple[str | int, ...]) -> Path:
    """The part of pydantic's path that is in the document; pydantic appends the alternative that it tried."""
    path: list[str | int] = []
    for i, part in enumerate(loc):
        inside = isinstance(document, dict) or (isinstance(document, list) and isinstance(part, int))
        if not inside or (i < len(loc) - 1 and isinstance(document, dict) and part not in document):
            break
        path.append(part)
        document = document.get(part) if isinstance(document, dict) else document[part]
    return tuple(path)


def remove(document: Any, path: Path) -> None:
    """Removes a value. In a list it is replaced, so that the others keep their indexes."""
    for part in path[:-1]:
        document = document[part]
    if isinstance(document, dict):
        document.pop(path[-1], None)
    else:
        document[path[-1]] = {} if document[path[-1]] == REPLACEMENT else REPLACEMENT
