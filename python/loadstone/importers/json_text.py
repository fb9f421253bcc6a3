"""JSON documents in text, which record the keys that were read: `import --explain` lists the remaining keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loadstone.importers.source import Source

# The text that represents every list element in the path of a key.
ELEMENTS = "[…]"
# fio 2 and 3.1 repeat this key in their lists of percentiles.
REPEATED = re.compile(r"0\.00")
# The results of divisions by zero in C, which are not JSON.
NOT_JSON = re.compile(r"(?<=[:,\[] )-?(?:nan|inf)(?=\s*[,\]}\n])")


NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Document(dict[str, Any]):
    """A JSON object that records the keys that were read."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        # An object with only strings lists options. fio prints an option each time it is set; the last value counts.
        if len(self) < len(pairs) and not all(isinstance(value, str) for _, value in pairs):
            names = [
                key
                for key, value in pairs
                if super(Document, self).__getitem__(key) != value and not REPEATED.fullmatch(key)
            ]
            if names:
                # If the lines between two objects are missing, the two objects look like one.
                raise ValueError(f'the key "{names[0]}" occurs twice')
        self.used: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.used.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Like `dict.get`, but the key counts as read."""
        self.used.add(key)
        return super().get(key, default)

    def items(self) -> Any:
        """Like `dict.items`, but every key counts as read."""
        self.used.update(self)
        return super().items()

    def list_keys(self, parent: str = "", prefix: str = "") -> Iterator[tuple[str, str, bool]]:
        """Yields each key's path, the path of its parent key, and whether the key was read."""
        for key, value in super().items():
            path = f"{prefix}{key}"
            yield path, parent, key in self.used
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, Document):
                    yield from part.list_keys(path, f"{path}{ELEMENTS if isinstance(value, list) else ''}.")


def list_numbered(part: Mapping[str, Any], known: re.Pattern[str]) -> Iterator[tuple[str, Any]]:
    """Yields the values whose keys are numbers, such as percentiles. Unknown keys stay unread.

    Raises ValueError for a key that the tool uses in other objects, because lines are then missing.
    """
    for key in part:
        if NUMBER.fullmatch(key):
            yield key, part[key]
        elif known.fullmatch(key):
            raise ValueError(f'"{key}" occurs among numbers')


def read_documents(source: Source, sign: str, hint: str, read: Callable[[Document], None], title: str) -> None:
    """Reads every document with the key `sign` at its top level, anywhere in the text.

    Raises LoadstoneError if a document is truncated or cannot be read.
    """
    text = NOT_JSON.sub(lambda match: "NaN".rjust(len(match[0])), source.text)
    decoder = json.JSONDecoder(object_pairs_hook=Document)
    at = text.find(sign)
    while at >= 0:
        start = opening_brace(text, at)
        line = text.count("\n", 0, start)
        with source.report_damage(f"the {title} is truncated or damaged: {{error}}", hint, line):
            document, end = decoder.raw_decode(text, start)
            if end <= at:
                raise ValueError("a key is outside any object")
            read(document)
        source.documents.append(document)
        source.used.update(range(line, text.count("\n", 0, end) + 1))
        at = text.find(sign, end)


def opening_brace(text: str, at: int) -> int:
    """The position of the opening brace of the object that contains the key at a position."""
    depth = 0
    for position in range(at - 1, max(at - 1_000_000, -1), -1):
        depth += {"}": 1, "]": 1, "{": -1, "[": -1}.get(text[position], 0)
        if depth < 0:
            return position
    return max(text.rfind("{", 0, at), 0)
