"""Reads files to which another process appends lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadstone.results.lines import parse_line

# At most this many bytes are read at a time, so that a long file does not delay a reader.
CHUNK_BYTES = 1 << 24


class Tail:
    """Reads the new complete lines of a file. A file that has become shorter is read again from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._part = b""

    def read_new(self) -> Iterator[dict[str, Any]]:
        """The new documents, in order; damaged lines are skipped, and a missing file has no documents."""
        try:
            with self.path.open("rb") as file:
                if self.path.stat().st_size < self._offset:
                    self._offset, self._part = 0, b""
                file.seek(self._offset)
                data = file.read(CHUNK_BYTES)
        except OSError:
            return
        self._offset += len(data)
        *lines, self._part = (self._part + data).split(b"\n")
        for line in lines:
            if (document := parse_line(line)) is not None:
                yield document
