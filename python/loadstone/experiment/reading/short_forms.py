"""Expands the short forms of an experiment file."""

from __future__ import annotations

from dataclasses import replace

from loadstone.experiment.model.values import rate_number
from loadstone.experiment.model.vary import LONG
from loadstone.experiment.reading.path import Path
from loadstone.experiment.reading.tree import Items, MappingNode, Node, Scalar


def expand_tree(tree: MappingNode) -> MappingNode:
    """The document with its short forms expanded."""
    return expand_entries(tree, ())


def expand_entries(table: MappingNode, path: Path) -> MappingNode:
    """A mapping with the long form of each value."""
    return replace(table, entries={key: expand_value(value, (*path, key)) for key, value in table.entries.items()})


def expand_value(node: Node, path: Path) -> Node:
    """The long form of the value at a path."""
    match path, node:
        case ((("faults", int(), "at") | ("faults", int(), "lift")), Scalar()) if node.value is not None:
            return MappingNode.from_entry("from", node)
        case ("faults", int(), "server"), Scalar() if node.value is not None:
            return Items([node], node.location)
        case ("systems",), Items():
            return expand_system_list(node)
        case ((("workload",) | ("workloads", _)), Scalar(value=str())):
            return MappingNode.from_entry("file", node)
        case ("systems", _, "start"), Scalar(value=str()):
            return MappingNode.from_entry("system", node)
        case ("expect",), Scalar(value=str()):
            return Items([node], node.location)
        case ("vary", "matrix" | "zip", _), Scalar() if node.value is not None:
            return expand_value(Items([node], node.location), path)
        case ("vary", "matrix" | "zip", "rate"), Items():
            return replace(node, items=[plain_rate(item) for item in node.items])
        case ("vary",), MappingNode() if not any(name in LONG for name in node.entries):
            return expand_entries(MappingNode.from_entry("matrix", node), path)
        case _, MappingNode():
            return expand_entries(node, path)
        case ("faults",), Items():
            return replace(node, items=[expand_value(fault, (*path, i)) for i, fault in enumerate(node.items)])
    return node


def plain_rate(node: Node) -> Node:
    """A rate without its unit."""
    return replace(node, value=rate_number(node.value)) if isinstance(node, Scalar) else node


def expand_system_list(value: Items) -> Node:
    """Converts a list of names to a mapping; other lists remain unchanged, and the model rejects them."""
    systems = MappingNode({}, {}, value.location)
    for item in value.items:
        if not isinstance(item, Scalar) or not isinstance(item.value, str) or item.value in systems.entries:
            return value
        systems.entries[item.value] = MappingNode({}, {}, item.location)
        systems.keys[item.value] = item.location
    return systems
