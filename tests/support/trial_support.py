"""A trial's spec, an engine driven line by line, and the invariants of its events."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from loadstone.engine.events import (
    CENSORED,
    TIMED_STEPS,
    WELL,
    Counts,
    Earlier,
    Event,
    Interval,
    Outcome,
    Summary,
    parse_event,
)
from loadstone.engine.histogram import Histogram, decode_histogram
from loadstone.engine.trial import EngineError, Spec, Trial, follow_trials

RECORDS = 2_000
READS = {"read": 1, "update": 0, "insert": 0, "scan": 0, "read_modify_write": 0, "delete": 0}
STORES = ("null", "lmdb", "rocksdb")
# Much longer than any command takes on a busy machine.
PATIENCE_SECONDS = 60.0
# A command that runs longer hangs. A test may wait for a server that is starting.
HANGS_SECONDS = 600.0


def spec(name: str = "null", directory: Path | None = None, **changes: Any) -> Spec:
    """A trial of workload A for a minute, with changes."""
    return {
        "spec": 2,
        "store": {"name": name, "properties": {f"{name}.dir": str(directory)} if directory else {}},
        "phase": "run",
        "work": work(),
        "clients": 2,
        "pace": {"mode": "closed"},
        "until": {"seconds": PATIENCE_SECONDS},
        "seed": 7,
        "sinks": [{"sink": "hdr_ns"}],
        "interval_ms": 1000,
        **changes,
    }


def work(**changes: Any) -> dict[str, Any]:
    """YCSB's workload A, with changes."""
    mix = {"read": 0.5, "update": 0.5, "insert": 0, "scan": 0, "read_modify_write": 0, "delete": 0}
    return {
        "type": "records",
        "table": "usertable",
        "records": RECORDS,
        "insert_start": 0,
        "insert_count": RECORDS,
        "field_count": 10,
        "field_name_prefix": "field",
        "field_length": {"distribution": "constant", "bytes": 100},
        "read_all_fields": True,
        "write_all_fields": False,
        "integrity": False,
        "mix": mix,
        "keys": {"distribution": "zipfian"},
        "insert_order": "hashed",
        "zero_padding": 1,
        "scan_length": {"distribution": "uniform", "min": 1, "max": 100},
        "operations": None,
        "insert_lag": 4,
        **changes,
    }


def rate(operations_per_second: float) -> dict[str, Any]:
    """A fixed rate."""
    piece = {"from": operations_per_second, "to": operations_per_second, "seconds": 1}
    return {"mode": "open", "rate": [piece], "arrival": "uniform"}


def events(trial: Trial) -> Iterator[Event]:
    """Yields the events of a trial up to its end. Raises its error, if any."""
    for _, event in follow_trials(trial):
        if isinstance(event, EngineError):
            raise event
        yield event


def summary_of(trial: Trial) -> Summary:
    """The summary of a trial that has ended."""
    assert trial.summary is not None
    return trial.summary


class Running:
    """An engine driven line by line, as by any lab; killed if it outlives the test."""

    def __init__(self, program: Path, spec: Spec) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program, "trial"], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._watchdog = threading.Timer(HANGS_SECONDS, self.process.kill)
        self._watchdog.start()
        self.say(json.dumps(spec))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.cancel()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            # Buffered input cannot be flushed to a process that has exited.
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def say(self, line: str) -> None:
        """Writes a line."""
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hang_up(self) -> None:
        """Closes the engine's stdin."""
        assert self.process.stdin
        self.process.stdin.close()

    def next(self) -> Event:
        """The next event. Raises EOFError with the engine's messages if the engine exited."""
        assert self.process.stdout
        assert self.process.stderr
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(self.process.stderr.read())
        return parse_event(line)

    def succeed(self, operations: int) -> None:
        """Waits until this many operations have succeeded in intervals that begin from now on; skips earlier events."""
        now_ns = time.time_ns()
        while operations > 0:
            event = self.next()
            if isinstance(event, Interval) and event.unix_ns - 2 * event.length_ns >= now_ns:
                operations -= event.completed

    def read_remaining(self) -> tuple[int, list[Event]]:
        """The exit code, and all remaining events; the last event must be the only summary."""
        assert self.process.stdout
        assert self.process.stderr
        events = [parse_event(line) for line in self.process.stdout]
        assert self.process.stderr.read() == ""
        assert [isinstance(event, Summary) for event in events] == [False] * (len(events) - 1) + [True]
        return self.process.wait(), events


Start = Callable[..., Running]


def counts(outcomes: tuple[Outcome, ...]) -> Counter[tuple[str, str]]:
    """The number of ended operations in the histograms, by operation and status."""
    ended = [outcome for outcome in outcomes if outcome.status != CENSORED]
    for outcome in ended:
        assert decode_histogram(outcome.service).count == outcome.count
    return Counter({(run.operation, run.status): run.count for run in ended if run.operation not in TIMED_STEPS})


def single_summary(events: list[Event]) -> Summary:
    """The summary, which must be consistent."""
    summary = events[-1]
    assert isinstance(summary, Summary)
    done = counts(summary.outcomes)
    assert done.total() == summary.operations
    assert sum(n for (_, status), n in done.items() if status in WELL) == summary.succeeded
    censored = sum(outcome.count for outcome in summary.outcomes if outcome.status == CENSORED)
    assert censored == summary.never_ended
    if summary.due is not None:
        assert summary.due == summary.operations + summary.never_ended
    return summary


def check_sums(summary: Summary, intervals: list[Interval]) -> list[Counts]:
    """Checks that the intervals add up to the summary; returns all their parts, including later additions."""
    parts: list[Counts] = [*intervals, *(part for interval in intervals for part in interval.earlier)]
    assert sum(part.good + part.late for part in parts) == summary.succeeded
    assert sum(part.failed for part in parts) == summary.failures
    assert sum(part.not_yet for part in parts) == summary.not_yet
    assert add_histograms(intervals) == add_histograms([summary])
    return parts


def add_histograms(events: list[Interval] | list[Summary]) -> dict[tuple[str, str, str], Histogram]:
    """All histograms of intervals or summaries, without censored operations, by operation, status and latency."""
    parts: list[Interval | Earlier | Summary] = []
    for event in events:
        parts += [event, *(event.earlier if isinstance(event, Interval) else ())]
    sums: dict[tuple[str, str, str], Histogram] = {}
    for outcome in (outcome for part in parts for outcome in part.outcomes if outcome.status != CENSORED):
        texts = {"service": outcome.service, "response": outcome.response, "lower": outcome.response_lower}
        for name, text in texts.items():
            if text is not None:
                sums.setdefault((outcome.operation, outcome.status, name), Histogram()).add_histogram(
                    decode_histogram(text)
                )
    return sums
