"""Logs: files that only grow, of which the end matters."""

from __future__ import annotations

from pathlib import Path

# Longer ends than this nobody reads in a terminal.
END_BYTES = 64 * 1024


def last_lines(log: Path, count: int, since: int = 0) -> list[str]:
    """The last lines of a file, of those behind byte `since`; none if it is not there."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(since, size - END_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    return lines[-count:] if count > 0 else []


def size(log: Path) -> int:
    """Its bytes; 0 if it is not there."""
    try:
        return log.stat().st_size
    except OSError:
        return 0
