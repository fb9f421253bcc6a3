"""An experiment file as a tree in which everything knows its line.

YAML 1.1 (PyYAML, Ruby) and YAML 1.2 (most editors and schemas) read some words differently: `no`, `010`, `1e6`. Such a
word is refused here rather than taken for one or the other. Texts are kept beside values, since a version `10.10` must
not become 10.1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from loadstone.experiment.mistake import ExperimentError, Mistake, Place, refuse
from loadstone.experiment.reading.words import resolved, twofold
from loadstone.format import units
from loadstone.format.suggestion import near

# An alias that repeats an alias that repeats an alias… is a bomb, not an experiment.
NODES_MAX = 100_000


@dataclass(slots=True)
class Scalar:
    """A word: its value (None, bool, int, float or str) and its text as written."""

    value: Any
    text: str
    place: Place


@dataclass(slots=True)
class Items:
    """A list."""

    items: list[Node]
    place: Place


@dataclass(slots=True)
class Table:
    """A mapping; `keys` are the places of its keys."""

    entries: dict[str, Node]
    keys: dict[str, Place]
    place: Place

    @classmethod
    def of(cls, key: str, value: Node) -> Table:
        """A mapping with a single key, where its value stands."""
        return cls({key: value}, {key: value.place}, value.place)


Node = Scalar | Items | Table


class Loader(yaml.SafeLoader):
    """PyYAML's, with no opinion on what a plain word is."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's own name)


@dataclass(slots=True)
class Reader:
    """Makes a tree of PyYAML's nodes; mistakes that do not end the reading are collected."""

    source: str
    # The place of everything, for a text that has no lines of its own.
    fixed: Place | None = None
    mistakes: list[Mistake] = field(default_factory=list)
    _open: list[yaml.Node] = field(default_factory=list)
    _count: int = 0

    def place(self, line: int) -> Place:
        """The place of a line, counted from 0 as PyYAML does."""
        return self.fixed or Place(line, self.source, line + 1)

    def wrong(self, place: Place, message: str, hint: str) -> None:
        """Keeps a mistake."""
        self.mistakes.append(Mistake(place, message, hint))

    def compose(self, text: str) -> yaml.Node | None:
        """PyYAML's node of a text. Raises ExperimentError when it is not YAML."""
        try:
            return yaml.compose(text, Loader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line if error.problem_mark else 0
            begun = error.context_mark.line if error.context_mark else line
            message, hint = explained(error, text, line)
            # What is not closed shows only later, often on the last line of all.
            where = f" (begun on line {begun + 1})" if "not closed" in message and begun != line else ""
            refuse(self.place(line), message + where, hint)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position)
            refuse(self.place(line), "a character that YAML does not allow", "remove the control character")

    def tree(self, node: yaml.Node) -> Node:
        """Our node for PyYAML's. Raises ExperimentError when it would not end."""
        place = self.place(node.start_mark.line)
        self._count += 1
        if self._count > NODES_MAX:
            refuse(
                place, f"the file has more than {units.count(NODES_MAX)} values", "aliases that hold aliases multiply"
            )
        if any(node is each for each in self._open):
            refuse(place, "an alias holds itself", "an anchor cannot be used inside of what it names")
        if not node.tag.startswith("tag:yaml.org,2002:"):
            self.wrong(place, f"the tag {node.tag} means nothing here", "leave it out")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, place)
        self._open.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return Items([self.tree(each) for each in node.value], place)
            return self.table(node, place)
        finally:
            self._open.pop()

    def table(self, node: yaml.Node, place: Place) -> Table:
        """A mapping, with what its merge key `<<` brings below what it says itself."""
        found = Table({}, {}, place)
        merged: list[tuple[Place, Node]] = []
        for key, value in node.value:
            at = self.place(key.start_mark.line)
            if not isinstance(key, yaml.ScalarNode):
                self.wrong(at, "a key must be a word", 'quote it if it holds braces or brackets: "{letter}"')
            elif key.value == "<<" and key.style is None:
                tree = self.tree(value)
                merged += [(at, each) for each in (tree.items if isinstance(tree, Items) else [tree])]
            elif key.value in found.entries:
                first = found.keys[key.value]
                where = f" on line {first.line}" if first.line is not None else ""
                self.wrong(at, f'the key "{key.value}" is there already{where}', "keep one of them")
            else:
                found.keys[key.value] = at
                found.entries[key.value] = self.tree(value)
        for at, each in merged:
            if not isinstance(each, Table):
                self.wrong(at, "the merge key << needs a mapping", "write <<: *name, where &name names a mapping")
                continue
            for name, value in each.entries.items():
                if name not in found.entries:
                    found.entries[name], found.keys[name] = value, each.keys[name]
        return found

    def scalar(self, node: yaml.ScalarNode, place: Place) -> Scalar:
        """A word; one that has two meanings is a mistake and stays a text."""
        text: str = node.value
        if node.style is not None:
            return Scalar(text, text, place)
        if ambiguity := twofold(text):
            self.wrong(place, *ambiguity)
            # Its value is not known, and is not to be reported twice.
            return Scalar(Unclear(text), text, place)
        return Scalar(resolved(text), text, place)


class Unclear(str):
    """A word whose meaning is not known, which has been said already."""

    __slots__ = ()


# What PyYAML says, and what it means to somebody who does not write parsers.
PROBLEMS = (
    (r"found character '\\t'", "a tab where YAML wants spaces", "indent with spaces"),
    (
        r"found character '(.)' that cannot start",
        r"a plain word cannot start with {0}",
        'quote the text: "{0}…"',
    ),
    (
        r"mapping values are not allowed",
        "a colon where none may stand",
        'quote a text that holds ": ", and check the indentation of the line before',
    ),
    (r"could not find expected ':'", "a key without its colon", "write `key: value`, and indent what belongs below it"),
    (
        r"expected ',' or '(.)'",
        "a list or mapping in brackets is not closed, or a comma is missing",
        "write [a, b] or {{a: 1, b: 2}}; a text with brackets or braces in it needs quotes",
    ),
    (
        r"found unexpected end of stream|found unknown escape character|unexpected document separator",
        "a quoted text that is not closed, or holds an unknown escape",
        "close the quote; in double quotes a backslash is written twice",
    ),
    (r"found undefined alias", "an alias of an anchor that is not there", "name it before, with &name"),
    (r"found duplicate anchor", "an anchor's name is used twice", "give each anchor a name of its own"),
    (r"but found another document", "the file holds a second document", "remove the line ---"),
    (
        r"expected <block end>|expected the node content|sequence entries are not allowed",
        "a line that is indented unlike its neighbours",
        "indent the keys of one mapping alike; a list's items each start with `- `",
    ),
)


def explained(error: yaml.MarkedYAMLError, text: str, line: int) -> tuple[str, str]:
    """Message and hint for a text that is not YAML."""
    said = f"{error.context or ''} {error.problem or ''}"
    lines = text.splitlines()
    # A tab in the indentation shows as all kinds of problems.
    if line < len(lines) and "\t" in lines[line][: len(lines[line]) - len(lines[line].lstrip())]:
        return "a tab where YAML wants spaces", "indent with spaces"
    for pattern, message, hint in PROBLEMS:
        if match := re.search(pattern, said):
            return message.format(*match.groups()), hint.format(*match.groups())
    return f"this is not YAML: {error.problem}", "https://yaml.org/spec/1.1/ tells what is"


def read(path: Path) -> tuple[Table, list[Mistake]]:
    """The tree of a file and the mistakes that do not keep it from being looked at. Raises ExperimentError."""
    source = str(path)
    start = Place(0, source)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n")
        refuse(Place(line, source, line + 1), "the file is not UTF-8", "save it as UTF-8")
    except OSError as error:
        refuse(start, f"cannot read the experiment: {error.strerror}", "name a YAML file" + neighbour(path))
    reader = Reader(source)
    node = reader.compose(text)
    tree = reader.tree(node) if node is not None else None
    if isinstance(tree, Table):
        return tree, reader.mistakes
    if tree is None:
        refuse(start, "the file is empty", "an experiment needs at least `systems` and `workload`")
    raise ExperimentError(
        [
            *reader.mistakes,
            Mistake(tree.place, "an experiment is a mapping", "start it with `systems:` and `workload:`"),
        ]
    )


def read_value(text: str, place: Place) -> tuple[Node, list[Mistake]]:
    """The tree of a value on the command line. Raises ExperimentError when it is not YAML."""
    reader = Reader(place.source, place)
    node = reader.compose(text)
    return (Scalar(None, "", place) if node is None else reader.tree(node)), reader.mistakes


def neighbour(path: Path) -> str:
    """A hint at a file that is there, if one has a name like it."""
    try:
        names = [entry.name for entry in os.scandir(path.parent)]
    except OSError:
        return f"; there is no directory {path.parent}"
    guess = near(path.name, names)
    return f"; did you mean {path.parent / guess}?" if guess else ""


def places(node: Node) -> Iterator[Place]:
    """Every place in a tree, of keys and of values."""
    yield node.place
    if isinstance(node, Table):
        yield from node.keys.values()
    if not isinstance(node, Scalar):
        for each in node.entries.values() if isinstance(node, Table) else node.items:
            yield from places(each)
