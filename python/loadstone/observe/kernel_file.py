"""Reads files in /proc and /sys: a hidden, unsupported or vanished file reads as empty."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
SYS = Path("/sys")


def read_text(path: str | Path) -> str:
    """A file's text without surrounding white space; empty if it cannot be read."""
    try:
        # Reading through a descriptor takes a third of the time of Path.read_text, and each sample reads a dozen files.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return b"".join(parts).decode(errors="replace").strip()


def read_number(path: str | Path) -> int | None:
    """The integer in a file; None if it contains something else (such as `max`)."""
    return parse_whole(read_text(path))


def parse_whole(word: str) -> int | None:
    """A word as an integer; None if it is not an integer."""
    try:
        return int(word)
    except ValueError:
        return None


def parse_fields(text: str) -> dict[str, int]:
    """The numbers in lines of the form `name: number [kB]` or `name number`, keyed by name; kB are converted to B."""
    read: dict[str, int] = {}
    for line in text.splitlines():
        name, *rest = line.replace(":", " ", 1).split()[:3] or [""]
        if rest and (value := parse_whole(rest[0])) is not None:
            read[name] = value * 1024 if rest[1:] == ["kB"] else value
    return read


def list_names(directory: str | Path) -> list[str]:
    """The names in a directory, sorted; empty if it cannot be read."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def list_pids(proc: Path) -> Iterator[int]:
    """The pids of all visible processes."""
    return (int(name) for name in list_names(proc) if name.isdecimal())
