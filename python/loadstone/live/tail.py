"""Reads files to which another process appends lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadstone.results.lines import parse_line

# At most this many bytes are read at a time, so that viewers of a long file see its first part at once.
CHUNK_BYTES = 1 << 22


class Tail:
    """Reads the new complete lines of a file. A file that has become shorter is read again from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._part = b""
        # Whether the last read stopped before the end of the file.
        self.is_behind = False

    def read_new(self) -> Iterator[dict[str, Any]]:
        """The new documents, in order; damaged lines are skipped, and a missing file has no documents."""
        for line in self.read_lines():
            if (document := parse_line(line)) is not None:
                yield document

    def read_lines(self) -> list[bytes]:
        """The new lines, in order; a missing file has no lines."""
        try:
            with self.path.open("rb") as file:
                if self.path.stat().st_size < self._offset:
                    self._offset, self._part = 0, b""
                file.seek(self._offset)
                data = file.read(CHUNK_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        self.is_behind = len(data) == CHUNK_BYTES
        *lines, self._part = (self._part + data).split(b"\n")
        return lines
