"""Expands the short forms of an experiment file."""

from __future__ import annotations

from dataclasses import replace

from loadstone.experiment.model.experiment import LONG
from loadstone.experiment.reading.tree import Items, Node, Scalar, Table


def expand(tree: Table) -> Table:
    """The document with its short forms expanded."""
    return replace(tree, entries={key: expand_key(key, value) for key, value in tree.entries.items()})


def expand_key(key: str, value: Node) -> Node:
    """The long form of one key's value."""
    if key == "systems":
        return listed_systems(value) if isinstance(value, Items) else started_by_name(value)
    if key == "vary" and isinstance(value, Table):
        if not any(name in LONG for name in value.entries):
            value = Table.of("matrix", value)
        both = {name: dimensions(each) for name, each in value.entries.items() if name in ("matrix", "zip")}
        return replace(value, entries={**value.entries, **both})
    if key == "workload":
        return by_file(value)
    if key == "workloads" and isinstance(value, Table):
        return replace(value, entries={name: by_file(each) for name, each in value.entries.items()})
    return value


def by_file(value: Node) -> Node:
    """A workload that is given as a file name."""
    return Table.of("file", value) if isinstance(value, Scalar) and isinstance(value.value, str) else value


def listed_systems(value: Items) -> Node:
    """A list of names as a mapping; anything else is left to the model to reject."""
    systems = Table({}, {}, value.location)
    for each in value.items:
        if not isinstance(each, Scalar) or not isinstance(each.value, str) or each.value in systems.entries:
            return value
        systems.entries[each.value] = Table({}, {}, each.location)
        systems.keys[each.value] = each.location
    return systems


def started_by_name(value: Node) -> Node:
    """Systems whose servers are given as a name: `start: redis`."""
    if not isinstance(value, Table):
        return value
    systems = dict(value.entries)
    for name, each in systems.items():
        start = each.entries.get("start") if isinstance(each, Table) else None
        if isinstance(each, Table) and isinstance(start, Scalar) and isinstance(start.value, str):
            systems[name] = replace(each, entries={**each.entries, "start": Table.of("system", start)})
    return replace(value, entries=systems)


def dimensions(value: Node) -> Node:
    """Dimensions, with each single value wrapped in a list."""
    if not isinstance(value, Table):
        return value
    lists: dict[str, Node] = {
        name: Items([each], each.location) if isinstance(each, Scalar) and each.value is not None else each
        for name, each in value.entries.items()
    }
    return replace(value, entries=lists)
