"""Merges the events of segments or hosts into events of the whole trial: `loadstone-engine merge` adds them up."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Self

from loadstone.engine import program
from loadstone.engine.events import Event, Interval, Note, Ready, Result, Summary, parse_event
from loadstone.engine.trial import EngineError


class Merger:
    """Merges the events of several parts. A single part needs no merging.

    Leaving the `with` block kills the process that merges.
    """

    def __init__(self, parts: Sequence[str], heard: Callable[[str], object] | None = None) -> None:
        """`parts` are the titles of the parts, such as `segment 1/3`. `heard` is called with each merged line."""
        self._parts = parts
        self._heard = heard
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: Ready | None = None
        self._notes: list[Note] = []
        self._summary: Summary | None = None
        # The merged events that the caller has not received yet.
        self._complete: list[Ready | Interval] = []
        # The segments that ended without a result, with the reasons.
        self.lost: dict[int, EngineError] = {}

    def __enter__(self) -> Self:
        if len(self._parts) > 1:
            command = [program.find_engine(), "merge", str(len(self._parts))]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            self._process.wait()

    def hear(self, segment: int, line: str) -> None:
        """Merges an event, given as the line that the engine wrote. Raises EngineError if it cannot be merged."""
        if self._process is None:
            if self._heard is not None:
                self._heard(line)
        else:
            self._exchange(f"{segment}\t{line}\n")

    def lose(self, segment: int, error: EngineError) -> None:
        """Marks a segment as lost. A single segment also loses its summary: an engine that fails after its summary may
        not have written everything."""
        self.lost[segment] = error
        if self._process is None:
            self._summary = None
        else:
            self._exchange(f"{segment}\tlost\n")

    def take(self, event: Event | EngineError) -> Iterator[Ready | Interval]:
        """The merged events that an event completes: `ready`, and intervals in order."""
        if self._process is None and not isinstance(event, EngineError):
            self._keep(event)
        while self._complete:
            yield self._complete.pop(0)

    def result(self) -> Result:
        """The merged result, after the last segment has ended. Raises EngineError if no segment has a result."""
        if self._process is not None and len(self.lost) < len(self._parts):
            self._finish(self._process)
        if self._summary is None or self._ready is None:
            raise next(iter(self.lost.values()))
        lost = [
            Note("lost-segment", f"{self._parts[segment]}: {error.args[0]}", error.hint)
            for segment, error in sorted(self.lost.items())
        ]
        return Result(self._ready, (*self._notes, *lost), self._summary)

    def _keep(self, event: Event) -> None:
        match event:
            case Ready():
                self._ready = event
                self._complete.append(event)
            case Interval():
                self._complete.append(event)
            case Note():
                self._notes.append(event)
            case Summary():
                self._summary = event

    def _answer(self, line: str) -> None:
        self._keep(parse_event(line))
        if self._heard is not None:
            self._heard(line.rstrip("\n"))

    def _exchange(self, line: str) -> None:
        """Sends a line, and reads the answer: the events that the line completes, then an empty line."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        while (answer := self._process.stdout.readline()) != b"\n":
            if not answer:
                raise self._failure()
            self._answer(answer.decode())

    def _finish(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        for answer in process.stdout:
            self._answer(answer.decode())
        if process.wait() != 0:
            raise self._failure()

    def _failure(self) -> EngineError:
        assert self._process is not None
        stream: IO[bytes] | None = self._process.stderr
        text = stream.read().decode(errors="replace") if stream is not None else ""
        lines = dict(line.partition(": ")[::2] for line in text.splitlines())
        message = lines.get("error", "the process that merges the segments exited")
        return EngineError(message, lines.get("hint", "run the trial again"), self._process.wait())
