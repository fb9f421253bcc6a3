"""What overrides an experiment file: a scale, then each `--set`."""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.experiment.mistake import ExperimentError, Location, Mistake
from loadstone.experiment.model.experiment import LONG
from loadstone.experiment.reading.short_forms import expand
from loadstone.experiment.reading.tree import Node, Scalar, Table, read_value

Path = tuple[str, ...]
# Keys of which only one may be set: one in a later layer removes the others.
ALTERNATIVES: dict[Path, tuple[str, ...]] = {("measure",): ("duration", "operations")}
# Mappings whose keys the user chooses or that contain dots: `--set` takes the rest of the name as one key.
OPEN = ("properties", "settings", "table", "matrix", "zip")
SET_RANK = 1_000_000_000


def merge(base: Node | None, over: Node, path: Path = ()) -> Node:
    """Both trees in one: mappings are merged, everything else is replaced, null removes (as in RFC 7396)."""
    if isinstance(base, Scalar) and base.value is not None and path == ("repeats",) and isinstance(over, Table):
        base = Table.of("at_least", base)
    if not isinstance(over, Table):
        return over
    merged = Table({}, {}, over.location)
    if isinstance(base, Table):
        removed = superseded(path, over)
        merged.entries = {key: value for key, value in base.entries.items() if key not in removed}
        merged.keys = {key: base.keys[key] for key in merged.entries}
        merged.location = base.location
    for key, value in over.entries.items():
        merged.entries[key] = merge(merged.entries.get(key), value, (*path, key))
        merged.keys[key] = over.keys[key]
    return merged


def superseded(path: Path, over: Table) -> set[str]:
    """The keys of `base` that a layer removes by setting an alternative to them."""
    pair = set(ALTERNATIVES.get(path, ()))
    given = {key for key in pair & over.entries.keys() if getattr(over.entries[key], "value", key) is not None}
    return pair - given if given else set()


def apply_settings(tree: Table, settings: Sequence[str]) -> tuple[Table, list[Mistake]]:
    """The tree with each `key=value` merged into it, and the mistakes in them."""
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
            layer = Table({key: layer}, {key: location}, location)
        assert isinstance(layer, Table), "a path has at least one key"
        merged = merge(tree, expand(layer))
        assert isinstance(merged, Table), "two mappings merge into a mapping"
        tree = merged
    return tree, mistakes


def path_of(tree: Table, name: str) -> Path:
    """The keys of a dotted name. A key that itself contains dots is recognised if the tree has it."""
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
            existing = [each for each in node.entries if rest == each or rest.startswith(f"{each}.")]
            key = max(existing, key=len, default=key)
        path = (*path, key)
        rest = rest[len(key) + 1 :]
        node = node.entries.get(key) if isinstance(node, Table) else None
    return path
