"""Files of /proc and /sys: one that is hidden, unsupported or gone with its process reads as nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
SYS = Path("/sys")


def read_text(path: str | Path) -> str:
    """A file's text without the space around it; empty if it cannot be read."""
    try:
        # A plain descriptor costs a third of Path.read_text, and a sampler reads a dozen files at each look.
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
    """A file that holds one whole number; None if it does not (`max`, for one)."""
    return parse_whole(read_text(path))


def parse_whole(word: str) -> int | None:
    """A word as a whole number, None if it is not one."""
    try:
        return int(word)
    except ValueError:
        return None


def parse_fields(found: str) -> dict[str, int]:
    """Lines of `name: number [kB]` or `name number`, by name; kB become bytes. Other lines are left out."""
    read: dict[str, int] = {}
    for line in found.splitlines():
        name, *rest = line.replace(":", " ", 1).split()[:3] or [""]
        if rest and (value := parse_whole(rest[0])) is not None:
            read[name] = value * 1024 if rest[1:] == ["kB"] else value
    return read


def list_names(directory: str | Path) -> list[str]:
    """The names in a directory, sorted; nothing if it cannot be read."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def list_pids(proc: Path) -> Iterator[int]:
    """The processes that can be seen."""
    return (int(name) for name in list_names(proc) if name.isdecimal())
