"""The observer: samples this host and some processes while a trial runs.

    with Observer(data, {"engine": pid}, path=trial / "observed.jsonl") as observer:
        observer.begin_phase("measure")
        ...                        # observer.poll_sample() about once a second
        observer.begin_phase("flush")
        values = observer.phase_figures("measure")

The observer has no thread: the loop that waits for the engine's events polls it. A sample costs 0.5–2 ms of CPU time.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Self

from loadstone.observe.control_group import control_group
from loadstone.observe.device import backing_of
from loadstone.observe.kernel_file import PROC, SYS, list_names
from loadstone.observe.process import read_stat, take_census
from loadstone.observe.sample import LAB, HostSample, take_sample
from loadstone.observe.summary import window_figures
from loadstone.observe.window import Window
from loadstone.results.value import Value


class Observer:
    """Samples the host. Phases follow each other: `begin_phase` ends the current phase and begins the next."""

    def __init__(
        self,
        directory: Path | None = None,
        pids: Mapping[str, int] | None = None,
        interval_seconds: float = 1.0,
        path: Path | None = None,
        *,
        proc: Path = PROC,
        sys: Path = SYS,
    ) -> None:
        """Observes the host, the device behind `directory`, and named processes; samples go to a new file `path`."""
        self.interval_seconds = interval_seconds
        self.path = path
        # The storage behind the directory; reports show its `description`.
        self.backing = None if directory is None else backing_of(directory, proc, sys)
        # The reason why samples could not be written, if any: a full disk ends the file, but not the trial.
        self.problem: str | None = None
        self._proc = proc
        self._group = control_group(proc)
        self._interfaces = physical_interfaces(sys)
        self._watched: dict[str, tuple[int, int]] = {}
        self._windows: dict[str, Window] = {}
        self._phase: Window | None = None
        self._file: io.FileIO | None = None
        self._due = 0.0
        for name, pid in (pids or {}).items():
            self.watch_process(name, pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def watch_process(self, name: str, pid: int) -> None:
        """Observes another process, which may have exited already. The new process replaces any of the same name."""
        stat = read_stat(pid, self._proc)
        if stat is not None:
            self._watched[name] = stat.key
        else:
            self._watched.pop(name, None)

    def poll_sample(self) -> HostSample | None:
        """Takes a sample if the interval since the last sample has passed."""
        return self.take_sample() if time.monotonic() >= self._due else None

    def take_sample(self) -> HostSample:
        """Takes a sample now."""
        return self._store_sample(self._read_sample())

    def begin_phase(self, name: str) -> HostSample:
        """Takes a sample, with a census of all processes, that begins the phase `name` and ends the previous phase."""
        # The census precedes the sample. If a server's child exits between the two, its CPU time counts twice as the
        # lab's, but never as another program's.
        counted = take_census((pid for pid, _ in self._watched.values()), self._proc)
        sample = replace(self._read_sample(), mark=name, census=counted)
        self._store_sample(sample)
        self._phase = self._windows[name] = Window()
        self._phase.add_sample(sample)
        return sample

    def phase_figures(self, phase: str) -> list[Value]:
        """The figures of a phase, from its beginning to its end. Raises KeyError if the phase was never begun."""
        device = None if self.backing is None else self.backing.device
        return window_figures(self._windows[phase], device, self._interfaces)

    def close(self) -> None:
        """Closes the file; later samples are not written."""
        self.path = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read_sample(self) -> HostSample:
        self._due = time.monotonic() + self.interval_seconds
        sample = take_sample({name: pid for name, (pid, _) in self._watched.items()}, self._group, self._proc)
        for name, key in list(self._watched.items()):
            # By now, the pid may belong to another process.
            if name not in sample.processes or sample.processes[name].key != key:
                del self._watched[name]
        processes = {
            name: process for name, process in sample.processes.items() if name in self._watched or name == LAB
        }
        return replace(sample, processes=processes)

    def _store_sample(self, sample: HostSample) -> HostSample:
        if self._phase is not None:
            self._phase.add_sample(sample)
        if self.path is not None and self.problem is None:
            try:
                if self._file is None:
                    # Unbuffered, because the samples just before a crash are the most valuable, and so that closing
                    # cannot fail.
                    self._file = io.FileIO(self.path, "w")
                line = json.dumps(sample.to_json(), separators=(",", ":")).encode() + b"\n"
                if self._file.write(line) != len(line):
                    self.problem = f"cannot write {self.path}: a line was truncated"
            except OSError as error:
                self.problem = f"cannot write {self.path}: {error.strerror}"
        return sample


def physical_interfaces(sys: Path = SYS) -> frozenset[str]:
    """The hardware interfaces; bonds, bridges and tunnels would count the same bytes again. Empty in a container."""
    return frozenset(name for name in list_names(sys / "class/net") if (sys / "class/net" / name / "device").exists())
