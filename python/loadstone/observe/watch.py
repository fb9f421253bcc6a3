"""Observes the host while an engine runs, between two flushes of the file system with the data.

The first flush excludes earlier writes; the second includes the trial's writes that are still in the kernel's cache.
Both flushes are outside the measured window, so device bytes are counted over all operations of the engine, including
the warm-up, and reported per operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from loadstone.observe.observer import Observer
from loadstone.observe.page_cache import flush_file_system
from loadstone.observe.server_usage import ServerObserver
from loadstone.observe.summary import SERVER
from loadstone.results.trial_result import Scalar
from loadstone.results.value import Value

MEASURE, FLUSH = "measure", "flush"


class Watch:
    """Observes the host about once a second."""

    def __init__(self, directory: Path | None, path: Path | None, servers: ServerObserver | None = None) -> None:
        """Observes the host, the device of `directory`, if any, and the `servers` that the lab started, if any.

        Samples are also written to `path`, unless it is None.
        """
        self._directory = directory
        self._servers = servers
        pids = {f"{SERVER}{server.name}": server.pid for server in servers.watched} if servers else {}
        self._observer = Observer(directory, pids, path=path)

    def __enter__(self) -> Self:
        self._flush()
        self._observer.begin_phase(MEASURE)
        if self._servers is not None:
            self._servers.begin_observation()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._observer:
            if self._servers is not None:
                self._servers.end_observation()
            if error is None:
                self._observer.begin_phase(FLUSH)
                self._flush()
                self._observer.take_sample()

    def _flush(self) -> None:
        if self._directory is not None:
            flush_file_system(self._directory)

    def watch(self, name: str, pid: int) -> None:
        """Adds a process of Loadstone to the observed processes."""
        self._observer.watch_process(name, pid)

    def take_sample(self) -> object:
        """Takes a sample if one is due; must be called about once a second."""
        if self._servers is not None:
            self._servers.take_sample()
        return self._observer.poll_sample()

    @property
    def facts(self) -> dict[str, Scalar]:
        """The file system of the data, and a description of its device."""
        backing = self._observer.backing
        if backing is None:
            return {}
        return {"file_system": backing.mount.type if backing.mount else "unknown", "device": backing.description}

    def values(self, operations: int) -> Iterator[Value]:
        """The figures, once the observation has ended; `operations` counts all operations, including the warm-up."""
        measured = self._observer.phase_figures(MEASURE)
        yield from measured
        if self._servers is not None:
            yield from self._servers.list_values()
        by_metric = {value.metric: value for value in measured}
        flushed = {value.metric: value.value for value in self._observer.phase_figures(FLUSH)}
        for direction in ("read", "written"):
            volume = by_metric.get(f"device.{direction}")
            if volume is None:
                continue
            late = flushed.get(f"device.{direction}", 0.0) if direction == "written" else 0.0
            if direction == "written":
                yield Value("device.written_after", late, "B", volume.n)
            if operations:
                yield Value(f"device.{direction}_per_operation", (volume.value + late) / operations, "B/op", operations)
