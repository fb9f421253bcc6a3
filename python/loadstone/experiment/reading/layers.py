"""What is laid over an experiment file: a scale, then each `--set`."""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.experiment.mistake import ExperimentError, Mistake, Place
from loadstone.experiment.model.experiment import LONG
from loadstone.experiment.reading.short_forms import write_out
from loadstone.experiment.reading.tree import Node, Scalar, Table, read_value

Path = tuple[str, ...]
# What replaces each other: the layer above decides.
ALTERNATIVES: dict[Path, tuple[str, ...]] = {("measure",): ("duration", "operations")}
# Mappings with names of the user's, or names with points in them, which `--set` takes as a whole.
OPEN = ("properties", "settings", "table", "matrix", "zip")
SET_RANK = 1_000_000_000


def lay_over(base: Node | None, over: Node, path: Path = ()) -> Node:
    """A tree of both: mappings are merged, everything else is replaced, null removes (as in RFC 7396)."""
    if isinstance(base, Scalar) and base.value is not None and path == ("repeats",) and isinstance(over, Table):
        base = Table.of("at_least", base)
    if not isinstance(over, Table):
        return over
    found = Table({}, {}, over.place)
    if isinstance(base, Table):
        gone = superseded(path, over)
        found.entries = {key: value for key, value in base.entries.items() if key not in gone}
        found.keys = {key: base.keys[key] for key in found.entries}
        found.place = base.place
    for key, value in over.entries.items():
        found.entries[key] = lay_over(found.entries.get(key), value, (*path, key))
        found.keys[key] = over.keys[key]
    return found


def superseded(path: Path, over: Table) -> set[str]:
    """The keys below that a layer replaces without naming them."""
    pair = set(ALTERNATIVES.get(path, ()))
    given = {key for key in pair & over.entries.keys() if getattr(over.entries[key], "value", key) is not None}
    return pair - given if given else set()


def lay_settings(tree: Table, settings: Sequence[str]) -> tuple[Table, list[Mistake]]:
    """The tree with each `key=value` over it, and what is wrong with those."""
    mistakes: list[Mistake] = []
    for i, setting in enumerate(settings):
        place = Place(SET_RANK + i, f"--set {setting}")
        name, equals, text = setting.partition("=")
        if not equals or not all(name.split(".")):
            mistakes.append(Mistake(place, "a setting needs a key and a value", "write --set measure.duration=2s"))
            continue
        try:
            value, wrong = read_value(text, place)
        except ExperimentError as error:
            mistakes += error.mistakes
            continue
        mistakes += wrong
        path = path_of(tree, name)
        if path[0] == "scales":
            mistakes.append(Mistake(place, "a scale cannot be set", "set the key itself, over the scale"))
            continue
        layer = value
        for key in reversed(path):
            layer = Table({key: layer}, {key: place}, place)
        assert isinstance(layer, Table), "a path has at least one key"
        merged = lay_over(tree, write_out(layer))
        assert isinstance(merged, Table), "a mapping over a mapping is one"
        tree = merged
    return tree, mistakes


def path_of(tree: Table, name: str) -> Path:
    """The keys of a dotted name. Where keys have points of their own, one that is there already wins."""
    rest = name
    path: Path = ()
    node: Node | None = tree
    while rest:
        key = rest.partition(".")[0]
        if path and path[-1] in OPEN and path[:-1] != ("systems",):
            key = rest
        elif path == ("vary",):
            # `vary.system` is short for `vary.matrix.system`, in the short form and in the long one.
            key = key if key in LONG else "matrix"
            if key == "matrix" and not rest.startswith("matrix."):
                rest = rest if rest == "matrix" else f"matrix.{rest}"
        elif isinstance(node, Table):
            there = [each for each in node.entries if rest == each or rest.startswith(f"{each}.")]
            key = max(there, key=len, default=key)
        path = (*path, key)
        rest = rest[len(key) + 1 :]
        node = node.entries.get(key) if isinstance(node, Table) else None
    return path
