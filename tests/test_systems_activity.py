"""What servers do now and then, by lines of their real logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from loadstone.systems.base.activity import figures
from loadstone.systems.registry import system as named

LINES = {
    "postgres": "2026-11-24 02:%M:%S.044 UTC [71] LOG:  checkpoint starting: time",
    "redis": "71:M 24 Nov 2026 02:%M:%S.044 * Background saving started by pid 9",
    "cassandra": "INFO  [Native-1] 2026-11-24T02:%M:%S,044 ColumnFamilyStore.java:1007 - Enqueuing flush of"
    " ycsb.usertable, Reason: MEMTABLE_LIMIT, Usage: 200MiB",
    "hbase": "2026-11-24T02:%M:%S,044 INFO  [MemStoreFlusher.0] regionserver.HRegion: Flushing 9d0 1/1 column families,"
    " dataSize=127 MB",
}
NAMES = {"postgres": "checkpoint", "redis": "snapshot", "cassandra": "flush", "hbase": "flush"}
OTHERS = {
    "postgres": "2026-11-24 02:00:00.000 UTC [71] LOG:  checkpoint complete: wrote 9 buffers",
    "redis": "71:M 24 Nov 2026 02:00:00.000 * Background saving terminated with success",
    "cassandra": "INFO  [main] 2026-11-24T02:00:00,000 ColumnFamilyStore.java:1007 - Enqueuing flush of"
    " system.local, Reason: X",
    "hbase": "2026-11-24T02:00:00,000 INFO  [x] regionserver.HRegion: Finished flush of dataSize ~127 MB",
}


def log(path: Path, system: str, minutes: Sequence[int]) -> Path:
    """A log in which the system's activity begins in these minutes of an hour."""
    lines = [datetime(2026, 11, 24, 2, minute).strftime(LINES[system]) for minute in minutes]
    path.write_text("\n".join([OTHERS[system], *lines, "a line without a time"]) + "\n")
    return path


@pytest.mark.parametrize("system", LINES)
def test_beginnings_are_counted_and_the_median_time_between_them_is_their_period(tmp_path: Path, system: str) -> None:
    since = datetime(2026, 11, 24, 2, 0).timestamp()
    found = figures([(log(tmp_path / "log", system, [1, 5, 10, 15]), since)], named(system).activities)
    name = NAMES[system]
    plural = name + ("es" if name == "flush" else "s")
    assert (found[plural], found[f"{name}_period_seconds"]) == (4, 300)


def test_lines_of_an_earlier_start_do_not_count(tmp_path: Path) -> None:
    since = datetime(2026, 11, 24, 2, 5).timestamp()
    found = figures([(log(tmp_path / "log", "postgres", [1, 2, 5, 10]), since)], named("postgres").activities)
    # Two beginnings have one gap between them, and that is no period yet.
    assert found == {"checkpoints": 2}


def test_gaps_are_those_of_one_server(tmp_path: Path) -> None:
    since = datetime(2026, 11, 24, 2, 0).timestamp()
    logs = [(log(tmp_path / str(first), "cassandra", [first, first + 10, first + 20]), since) for first in (1, 2, 3)]
    found = figures(logs, named("cassandra").activities)
    assert (found["flushes"], found["flush_period_seconds"]) == (9, 600)


def test_a_log_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert figures([(tmp_path / "none", 0.0)], {"checkpoint": "checkpoint starting"}) == {"checkpoints": 0}
