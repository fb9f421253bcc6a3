"""Parses the parts of YCSB's workload files that the lab needs; the engine parses the files itself.

Source: java.util.Properties.load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

COMMENT = re.compile(r"[ \t\f]*[#!]")
ENTRY = re.compile(r"((?:[^\\:= \t\f]|\\.)*)(?:[ \t\f]*[:=][ \t\f]*|[ \t\f]+|$)(.*)", re.DOTALL)
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read(path: Path) -> Mapping[str, str]:
    """The properties in a file; the last value of a repeated key counts. Raises OSError."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    properties = {}
    for line in logical_lines(text):
        match = ENTRY.match(line)
        assert match is not None, "every part of the pattern may be empty"
        properties[unescape_text(match[1])] = unescape_text(match[2])
    return properties


def logical_lines(text: str) -> Iterator[str]:
    """Yields the lines except comments and blank lines, with continuation lines joined."""
    joined = ""
    for line in re.split(r"\r\n|\n|\r", text):
        if not joined and (not line.strip(" \t\f") or COMMENT.match(line)):
            continue
        joined += line.lstrip(" \t\f")
        if (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        yield joined
        joined = ""
    if joined:
        yield joined


def unescape_text(text: str) -> str:
    """A key or value with its escapes decoded."""
    return ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else CONTROLS.get(match[2], match[2]), text)
