"""Paths in an experiment file: locating and formatting them."""

from __future__ import annotations

from collections.abc import Iterable

from loadstone.experiment.mistake import Location
from loadstone.experiment.reading.tree import Items, MappingNode, Node, Scalar

Path = tuple[str | int, ...]


def locate_path(tree: Node, path: Path) -> Location:
    """The location of a path, or of its nearest ancestor in the tree."""
    location = tree.location
    for part in path:
        if isinstance(tree, MappingNode) and isinstance(part, str) and part in tree.entries:
            location, tree = tree.keys[part], tree.entries[part]
        elif isinstance(tree, Items) and isinstance(part, int) and part < len(tree.items):
            tree = tree.items[part]
            location = tree.location
        else:
            return location
    return tree.location if isinstance(tree, Scalar) else location


def format_path(path: Iterable[str | int]) -> str:
    """A path as it is printed: `vary.letter`, `hooks.before[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        elif text != "vary" or part != "matrix":
            text += f".{part}" if text else part
    return text
