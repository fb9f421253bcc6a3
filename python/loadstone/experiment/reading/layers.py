"""The layers that override an experiment file: a scale, then each `--set`."""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.experiment.mistake import ExperimentError, Location, Mistake
from loadstone.experiment.model.vary import LONG
from loadstone.experiment.reading.short_forms import expand_tree
from loadstone.experiment.reading.tree import MappingNode, Node, Scalar, read_value

Path = tuple[str, ...]
# Keys of `measure` that cannot be combined: a key in a later layer removes the other key.
WINDOW = {"duration", "operations"}
# Mappings whose keys are chosen by the user or contain dots: `--set` uses the remainder of the name as one key.
OPEN = ("properties", "settings", "table", "matrix", "zip")
SET_RANK = 1_000_000_000


def merge_trees(base: MappingNode, over: MappingNode, path: Path = ()) -> MappingNode:
    """Merges two trees: mappings are merged, other values are replaced, and null removes a key (as in RFC 7396)."""
    merged = MappingNode({**base.entries}, {**base.keys, **over.keys}, base.location)
    if path == ("measure",):
        window_keys = {
            key for key in WINDOW & over.entries.keys() if getattr(over.entries[key], "value", key) is not None
        }
        for key in WINDOW - window_keys if window_keys else ():
            merged.entries.pop(key, None)
    for key, value in over.entries.items():
        below = merged.entries.get(key)
        if isinstance(below, Scalar) and below.value is not None and (*path, key) == ("repeats",):
            below = MappingNode.from_entry("at_least", below)
        if isinstance(below, MappingNode) and isinstance(value, MappingNode):
            value = merge_trees(below, value, (*path, key))
        merged.entries[key] = value
    return merged


def apply_settings(tree: MappingNode, settings: Sequence[str]) -> tuple[MappingNode, list[Mistake]]:
    """The tree with each `key=value` merged into it, and the errors in these settings."""
    mistakes: list[Mistake] = []
    for i, setting in enumerate(settings):
        location = Location(SET_RANK + i, f"--set {setting}")
        name, equals, text = setting.partition("=")
        if not equals or not all(name.split(".")):
            mistakes.append(Mistake(location, "a setting needs a key and a value", "write --set measure.duration=2s"))
            continue
        try:
            value, wrong = read_value(text, location)
        except ExperimentError as error:
            mistakes += error.mistakes
            continue
        mistakes += wrong
        path = path_of(tree, name)
        if path[0] == "scales":
            mistakes.append(Mistake(location, "a scale cannot be set", "set the key itself: --set overrides the scale"))
            continue
        layer = value
        for key in reversed(path):
            layer = MappingNode.from_entry(key, layer)
        assert isinstance(layer, MappingNode), "a path has at least one key"
        tree = merge_trees(tree, expand_tree(layer))
    return tree, mistakes


def path_of(tree: MappingNode, name: str) -> Path:
    """The keys of a dotted name. A key that contains dots is recognised if the tree contains it."""
    rest = name
    path: Path = ()
    node: Node | None = tree
    while rest:
        key = rest.partition(".")[0]
        if path and path[-1] in OPEN and path[:-1] != ("systems",):
            key = rest
        elif path == ("vary",):
            # `vary.system` means `vary.matrix.system`, both in the short form and in the long form.
            key = key if key in LONG else "matrix"
            if key == "matrix" and not rest.startswith("matrix."):
                rest = rest if rest == "matrix" else f"matrix.{rest}"
        elif isinstance(node, MappingNode):
            existing = [entry for entry in node.entries if rest == entry or rest.startswith(f"{entry}.")]
            key = max(existing, key=len, default=key)
        path = (*path, key)
        rest = rest[len(key) + 1 :]
        node = node.entries.get(key) if isinstance(node, MappingNode) else None
    return path
