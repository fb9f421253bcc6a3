"""Watching the host while an engine runs, between two flushes of the file system that holds its data.

The first flush keeps what was written before out of the account; the second brings what the trial wrote and the
kernel still held. Both lie outside of the measured window, so device bytes are counted over all operations of the
engine, those of the warm-up among them, and given for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from loadstone.observe.device import flush
from loadstone.observe.observer import Observer
from loadstone.observe.servers import Servers
from loadstone.observe.summary import SERVER
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value

MEASURE, FLUSH = "measure", "flush"


class Watch:
    """Looks at the host about once a second."""

    def __init__(self, directory: Path | None, path: Path, servers: Servers | None = None) -> None:
        """Watches the host, the device behind `directory`, if data are there, and `servers`, which are ours.

        What it sees goes to `path`, too.
        """
        self._directory = directory
        self._servers = servers
        pids = {f"{SERVER}{each.name}": each.pid for each in servers.watched} if servers else {}
        self._observer = Observer(directory, pids, path=path)

    def __enter__(self) -> Self:
        self._flush()
        self._observer.mark(MEASURE)
        if self._servers is not None:
            self._servers.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._observer:
            if self._servers is not None:
                self._servers.end()
            if error is None:
                self._observer.mark(FLUSH)
                self._flush()
                self._observer.look()

    def _flush(self) -> None:
        if self._directory is not None:
            flush(self._directory)

    def watch(self, name: str, pid: int) -> None:
        """One more process that is ours."""
        self._observer.watch(name, pid)

    def look(self) -> object:
        """To be called about once a second."""
        if self._servers is not None:
            self._servers.look()
        return self._observer.poll()

    @property
    def facts(self) -> dict[str, Scalar]:
        """The file system that held the data, and the device behind it in words."""
        backing = self._observer.backing
        if backing is None:
            return {}
        return {"file_system": backing.mount.type if backing.mount else "unknown", "device": backing.words}

    def values(self, operations: int) -> Iterator[Value]:
        """What was seen, after the end; `operations` are those of the whole engine, warm-up included."""
        measured = self._observer.summary(MEASURE)
        yield from measured
        if self._servers is not None:
            yield from self._servers.values()
        before = {value.metric: value for value in measured}
        after = {value.metric: value.value for value in self._observer.summary(FLUSH)}
        for way in ("read", "written"):
            seen = before.get(f"device.{way}")
            if seen is None:
                continue
            late = after.get(f"device.{way}", 0.0) if way == "written" else 0.0
            if way == "written":
                yield Value("device.written_after", late, "B", seen.n)
            if operations:
                yield Value(f"device.{way}_per_operation", (seen.value + late) / operations, "B/op", operations)
