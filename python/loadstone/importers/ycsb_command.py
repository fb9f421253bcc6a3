"""Command lines of YCSB, go-ycsb and our front end: the clients and the rate, which a report does not contain."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile, zip_longest

# The shell command, the Java command that bin/ycsb echoes, and the client's first line.
STARTS = re.compile(
    r"(?:^|[\s/`$])(?:go-)?ycsb(?:\.sh|\.bat)?\s+(?P<phase>load|run)\s+(?P<binding>[\w.-]+)(?P<shell>.*)"
    r"|\bCommand line:(?P<echo>.*)"
    r"|\b(?:site|com\.yahoo)\.ycsb\.Client\s(?P<java>.*)"
)
SECRET = re.compile(r"(?i)pass|secret|token|credential|user")
# Where the command ends and the shell continues.
ENDS = re.compile(r"[|&;`)]|\d?>")


@dataclass(frozen=True)
class Command:
    """The settings of a command; None where it does not contain one."""

    clients: int | None = None
    target: int | None = None
    phase: str | None = None
    binding: str | None = None
    # Its properties, without clients, rate and possible secrets.
    properties: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


def command(line: str) -> Command | None:
    """Finds a command line in a line of text; None without one."""
    if "ycsb" not in line and "Command line:" not in line:
        return None
    match = STARTS.search(line)
    if match is None:
        return None
    arguments = split(match["shell"] or match["echo"] or match["java"] or "")
    clients = target = None
    properties: dict[str, str] = {}
    phase = match["phase"] or next((word for word in arguments[:2] if word in ("load", "run")), None)
    # Flags and properties share one map in YCSB: the last one counts. The property is `threadcount`, not `threads`.
    for word, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        name, _, value = following.partition("=")
        if word.lstrip("-") == "threads" or (word, name) == ("-p", "threadcount"):
            clients = whole(value if word == "-p" else following)
        elif word.lstrip("-") == "target" or (word, name) == ("-p", "target"):
            target = whole(value if word == "-p" else following)
        elif word in ("-load", "-t") and not phase:
            phase = "load" if word == "-load" else "run"
        elif word == "-p" and value and not SECRET.search(name):
            properties[name] = value
        elif word == "-db":
            properties.setdefault("db", following)
    return Command(clients or None, target, phase, match["binding"], properties, line[match.start() :].lstrip(" /`$"))


def split(text: str) -> list[str]:
    """A command's words, up to where the shell continues."""
    try:
        arguments = shlex.split(text)
    except ValueError:
        # A quote that is not closed: the line is prose, or was cut.
        arguments = text.split()
    return list(takewhile(lambda word: not ENDS.match(word), arguments))


def whole(text: str) -> int | None:
    """A whole number, else None."""
    return int(text) if text.isascii() and text.isdigit() else None
