"""An experiment file as a tree with line numbers.

YAML 1.1 (PyYAML, Ruby) and YAML 1.2 (most editors and schemas) read some words differently: `no`, `010`, `1e6`. These
words are refused. The tree also contains the text of each value, because a version `10.10` must not become 10.1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from loadstone.experiment.mistake import ExperimentError, Location, Mistake, raise_mistake
from loadstone.experiment.reading.scalars import explain_ambiguity, resolve_scalar
from loadstone.format import units
from loadstone.format.suggestion import nearest_name

# Protects against nested aliases that expand exponentially ("billion laughs").
NODES_MAX = 100_000


@dataclass(slots=True)
class Scalar:
    """A scalar: its value (None, bool, int, float or str) and its text."""

    value: Any
    text: str
    location: Location


@dataclass(slots=True)
class Items:
    """A list."""

    items: list[Node]
    location: Location


@dataclass(slots=True)
class MappingNode:
    """A mapping; `keys` has the location of each key."""

    entries: dict[str, Node]
    keys: dict[str, Location]
    location: Location

    @classmethod
    def from_entry(cls, key: str, value: Node) -> MappingNode:
        """A mapping with a single key, at the location of its value."""
        return cls({key: value}, {key: value.location}, value.location)


Node = Scalar | Items | MappingNode


class Loader(yaml.SafeLoader):
    """PyYAML's loader, without its resolution of plain scalars."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own name)


@dataclass(slots=True)
class Reader:
    """Converts PyYAML's nodes to a tree, and collects errors that do not stop the conversion."""

    source: str
    # The location of all nodes, if the text is not a file with lines.
    fixed: Location | None = None
    mistakes: list[Mistake] = field(default_factory=list)
    _count: int = 0

    def location_of(self, line: int) -> Location:
        """The location of a line, counted from 0 as in PyYAML."""
        return self.fixed or Location(line, self.source, line + 1)

    def add_mistake(self, location: Location, message: str, hint: str) -> None:
        """Records an error."""
        self.mistakes.append(Mistake(location, message, hint))

    def compose_yaml(self, text: str) -> yaml.Node | None:
        """Parses text with PyYAML. Raises ExperimentError if it is not YAML."""
        try:
            return yaml.compose(text, Loader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line if error.problem_mark else 0
            opening_line = error.context_mark.line if error.context_mark else line
            message, hint = explain_error(error, text, line)
            # PyYAML reports an unclosed bracket or quote where it stops parsing, often on the last line.
            where = f" (opened on line {opening_line + 1})" if "not closed" in message and opening_line != line else ""
            raise_mistake(self.location_of(line), message + where, hint)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position)
            raise_mistake(
                self.location_of(line), "there is a character that YAML does not allow", "remove the control character"
            )

    def read_node(self, node: yaml.Node, above: tuple[yaml.Node, ...] = ()) -> Node:
        """Converts a node whose ancestors are `above`. Raises ExperimentError if the node is too large or recursive."""
        location = self.location_of(node.start_mark.line)
        self._count += 1
        if self._count > NODES_MAX:
            message = f"the file has more than {units.format_count(NODES_MAX)} values"
            raise_mistake(location, message, "remove aliases that contain aliases: they multiply")
        if any(node is parent for parent in above):
            raise_mistake(location, "an alias contains itself", "do not use an anchor inside the value that it names")
        if not node.tag.startswith("tag:yaml.org,2002:"):
            self.add_mistake(location, f"the tag {node.tag} is not supported", "remove it")
        if isinstance(node, yaml.ScalarNode):
            return self.read_scalar(node, location)
        above = (*above, node)
        if isinstance(node, yaml.SequenceNode):
            return Items([self.read_node(item, above) for item in node.value], location)
        return self.read_table(node, location, above)

    def read_table(self, node: yaml.Node, location: Location, above: tuple[yaml.Node, ...]) -> MappingNode:
        """Converts a mapping, whose keys override the keys that it merges through `<<`."""
        table = MappingNode({}, {}, location)
        merged: list[tuple[Location, Node]] = []
        for key, value in node.value:
            at = self.location_of(key.start_mark.line)
            if not isinstance(key, yaml.ScalarNode):
                self.add_mistake(at, "a key must be a string", 'quote it if it has braces or brackets: "{letter}"')
            elif key.value == "<<" and key.style is None:
                tree = self.read_node(value, above)
                merged += [(at, item) for item in (tree.items if isinstance(tree, Items) else [tree])]
            elif key.value in table.entries:
                first = table.keys[key.value]
                where = f" on line {first.line}" if first.line is not None else ""
                self.add_mistake(at, f'the key "{key.value}" is already set{where}', "keep only one of the two lines")
            else:
                table.keys[key.value] = at
                table.entries[key.value] = self.read_node(value, above)
        for at, item in merged:
            if not isinstance(item, MappingNode):
                self.add_mistake(at, "the merge key << needs a mapping", "write <<: *name, where &name names a mapping")
                continue
            for name, value in item.entries.items():
                if name not in table.entries:
                    table.entries[name], table.keys[name] = value, item.keys[name]
        return table

    def read_scalar(self, node: yaml.ScalarNode, location: Location) -> Scalar:
        """Converts a scalar; an ambiguous word is an error."""
        text: str = node.value
        if node.style is not None:
            return Scalar(text, text, location)
        if ambiguity := explain_ambiguity(text):
            self.add_mistake(location, *ambiguity)
            # The value is unknown, and the error has been reported.
            return Scalar(Unclear(text), text, location)
        return Scalar(resolve_scalar(text), text, location)


class Unclear(str):
    """An ambiguous word, which has already been reported."""

    __slots__ = ()


# PyYAML's messages, with Loadstone's message and a hint for each.
PROBLEMS = (
    (r"found character '\\t'", "a line is indented with a tab", "indent with spaces"),
    (
        r"found character '(.)' that cannot start",
        r"an unquoted value cannot start with {0}",
        'quote it: "{0}…"',
    ),
    (
        r"mapping values are not allowed",
        "a colon is not allowed here",
        'quote a string with ": " in it, and check the indentation of the line before',
    ),
    (r"could not find expected ':'", "a key has no colon", "write `key: value`, and indent the lines below the key"),
    (
        r"expected ',' or '(.)'",
        "a list or mapping in brackets is not closed, or a comma is missing",
        "write [a, b] or {{a: 1, b: 2}}, and quote a string with brackets or braces in it",
    ),
    (
        r"found unexpected end of stream|found unknown escape character|unexpected document separator",
        "a quoted string is not closed, or has an unknown escape",
        "close the quote, and write a backslash in double quotes twice",
    ),
    (r"found undefined alias", "an alias has no anchor", "define the anchor before it, with &name"),
    (r"found duplicate anchor", "an anchor name is used twice", "give each anchor a different name"),
    (r"but found another document", "the file has a second document", "remove the line ---"),
    (
        r"expected <block end>|expected the node content|sequence entries are not allowed",
        "a line is not indented like its neighbours",
        "indent the keys of a mapping equally, and start each item of a list with `- `",
    ),
)


def explain_error(error: yaml.MarkedYAMLError, text: str, line: int) -> tuple[str, str]:
    """The message and hint for text that is not YAML."""
    problem = f"{error.context or ''} {error.problem or ''}"
    lines = text.splitlines()
    # PyYAML reports a tab in the indentation in many ways.
    if line < len(lines) and "\t" in lines[line][: len(lines[line]) - len(lines[line].lstrip())]:
        return "a line is indented with a tab", "indent with spaces"
    for pattern, message, hint in PROBLEMS:
        if match := re.search(pattern, problem):
            return message.format(*match.groups()), hint.format(*match.groups())
    return f"the file is not valid YAML: {error.problem}", "see https://yaml.org/spec/1.1/ for the syntax"


def read_tree(path: Path) -> tuple[MappingNode, list[Mistake]]:
    """The tree of a file, and the errors in it. Raises ExperimentError if an error prevents further checks."""
    source = str(path)
    start = Location(0, source)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n")
        raise_mistake(Location(line, source, line + 1), "the file is not UTF-8", "save it as UTF-8")
    except OSError as error:
        raise_mistake(start, f"cannot read the experiment: {error.strerror}", "name a YAML file" + similar_file(path))
    reader = Reader(source)
    node = reader.compose_yaml(text)
    tree = reader.read_node(node) if node is not None else None
    if isinstance(tree, MappingNode):
        return tree, reader.mistakes
    if tree is None:
        raise_mistake(start, "the file is empty", "write at least `systems` and `workload`")
    reader.add_mistake(tree.location, "an experiment must be a mapping", "start it with `systems:` and `workload:`")
    raise ExperimentError(reader.mistakes)


def read_value(text: str, location: Location) -> tuple[Node, list[Mistake]]:
    """The tree of a value on the command line. Raises ExperimentError if it is not YAML."""
    reader = Reader(location.source, location)
    node = reader.compose_yaml(text)
    return (Scalar(None, "", location) if node is None else reader.read_node(node)), reader.mistakes


def similar_file(path: Path) -> str:
    """A hint that names an existing file with a similar name, if any."""
    try:
        names = [entry.name for entry in os.scandir(path.parent)]
    except OSError:
        return f"; there is no directory {path.parent}"
    guess = nearest_name(path.name, names)
    return f"; did you mean {path.parent / guess}?" if guess else ""


def list_locations(node: Node) -> Iterator[Location]:
    """The locations of all keys and values in a tree."""
    yield node.location
    if isinstance(node, MappingNode):
        yield from node.keys.values()
    if not isinstance(node, Scalar):
        for child in node.entries.values() if isinstance(node, MappingNode) else node.items:
            yield from list_locations(child)
