"""A file to be imported: its text, and errors with their place in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.results.trial_result import Scalar

# No log has longer lines; a JSON document may, and is read from the whole text.
LINE_MAX = 1 << 18
SNIFFED = 1 << 16
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
# What log collectors put before a line: a container's name, or a time and perhaps a level.
COLLECTED = re.compile(r"^\S+\s*\|$|\d\d:\d\d:\d\d")


@dataclass(frozen=True)
class Source:
    """A text with its path, and the facts known about it."""

    path: Path
    text: str
    facts: Mapping[str, Scalar] = field(default_factory=dict)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines without ends, colours, and what was overwritten on a terminal."""
        return [tidy(line) for line in self.text.split("\n")]

    @property
    def torn(self) -> bool:
        """Whether its last line has no end."""
        return not self.text.endswith("\n")

    @property
    def last(self) -> int:
        """The index of the last line that is not empty."""
        return max((index for index, line in enumerate(self.lines) if line.strip()), default=0)

    @contextmanager
    def reading(self, message: str, hint: str, line: int | None = None) -> Iterator[None]:
        """Makes an error about this file of whatever is wrong with a part of it; `{error}` in the message names it."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self.error(message.replace("{error}", str(error)), hint, line) from None

    def error(self, message: str, hint: str, line: int | None = None) -> LoadstoneError:
        """An error about this file, at a line counted from 0."""
        location = self.path.name if line is None else f"{self.path.name}:{line + 1}"
        return LoadstoneError(f"{message} ({location})", hint)


def tidy(line: str) -> str:
    """A line without colours and overwritten parts."""
    if len(line) > LINE_MAX:
        return ""
    if "\x1b" in line:
        line = ANSI.sub("", line)
    line = line.rstrip("\r")
    return line.rpartition("\r")[2] if "\r" in line else line


def text_of(path: Path) -> str:
    """Reads a file as text. Raises LoadstoneError when it cannot be read, is empty or is not text."""
    if path.exists() and not path.is_file() and not path.is_dir():
        # Reading a pipe may block forever.
        hint = "name a file with results; save a pipe's output to a file first"
        raise LoadstoneError(f"{path} is not a file", hint)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LoadstoneError(f"cannot read {path}: {error.strerror}", "name a file with results") from error
    encoding = next((name for mark, name in MARKS if data.startswith(mark)), "utf-8")
    if encoding != "utf-16" and b"\0" in data[:SNIFFED]:
        raise LoadstoneError(
            f"{path.name} is a binary file, not a log",
            "unpack it if it is compressed; `loadstone import` reads text, JSON, CSV and .hlog",
        )
    text = data.decode(encoding, errors="replace")
    if not text.strip():
        raise LoadstoneError(f"{path.name} is empty", "did the tool write its results to standard output elsewhere?")
    return text


def unwrapped(before: str) -> bool:
    """Whether a log line's prefix comes only from quoting or from a log collector."""
    before = before.strip(" \t>")
    return not before or COLLECTED.search(before) is not None
