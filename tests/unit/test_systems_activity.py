"""Periodic activity of servers, from lines of their real logs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from loadstone.results.trial_result import Series
from loadstone.runner.series import add_pauses
from loadstone.systems.base.activity import READ_BYTES, activity_figures
from loadstone.systems.base.jvm import list_pauses
from loadstone.systems.registry import load_system as named

LINES = {
    "postgres": "2026-11-24 02:%M:%S.044 UTC [71] LOG:  checkpoint starting: time",
    "redis": "71:M 24 Nov 2026 02:%M:%S.044 * Background saving started by pid 9",
    "cassandra": "INFO  [Native-1] 2026-11-24T02:%M:%S,044 ColumnFamilyStore.java:1007 - Enqueuing flush of"
    " ycsb.usertable, Reason: MEMTABLE_LIMIT, Usage: 200MiB",
    "hbase": "2026-11-24T02:%M:%S,044 INFO  [MemStoreFlusher.0] regionserver.HRegion: Flushing 9d0 1/1 column families,"
    " dataSize=127 MB",
}
NAMES = {"postgres": "checkpoint", "redis": "snapshot", "cassandra": "flush", "hbase": "flush"}
OTHER_LINES = {
    "postgres": "2026-11-24 02:00:00.000 UTC [71] LOG:  checkpoint complete: wrote 9 buffers",
    "redis": "71:M 24 Nov 2026 02:00:00.000 * Background saving terminated with success",
    "cassandra": "INFO  [main] 2026-11-24T02:00:00,000 ColumnFamilyStore.java:1007 - Enqueuing flush of"
    " system.local, Reason: X",
    "hbase": "2026-11-24T02:00:00,000 INFO  [x] regionserver.HRegion: Finished flush of dataSize ~127 MB",
}


def log(path: Path, system: str, minutes: Sequence[int]) -> Path:
    """A log in which the system's activity begins in these minutes of an hour."""
    lines = [datetime(2026, 11, 24, 2, minute).strftime(LINES[system]) for minute in minutes]
    path.write_text("\n".join([OTHER_LINES[system], *lines, "a line without a time"]) + "\n")
    return path


@pytest.mark.parametrize("system", LINES)
def test_starts_are_counted_with_their_median_period(tmp_path: Path, system: str) -> None:
    since = datetime(2026, 11, 24, 2, 0).timestamp()
    values = activity_figures([(log(tmp_path / "log", system, [1, 5, 10, 15]), since)], named(system).activities)
    name = NAMES[system]
    plural = name + ("es" if name == "flush" else "s")
    assert (values[plural], values[f"{name}_period_seconds"]) == (4, 300)


def test_lines_of_an_earlier_start_do_not_count(tmp_path: Path) -> None:
    since = datetime(2026, 11, 24, 2, 5).timestamp()
    values = activity_figures([(log(tmp_path / "log", "postgres", [1, 2, 5, 10]), since)], named("postgres").activities)
    # Two starts have a single gap between them, which is not a period.
    assert values == {"checkpoints": 2}


def test_gaps_are_those_of_one_server(tmp_path: Path) -> None:
    since = datetime(2026, 11, 24, 2, 0).timestamp()
    logs = [(log(tmp_path / str(first), "cassandra", [first, first + 10, first + 20]), since) for first in (1, 2, 3)]
    values = activity_figures(logs, named("cassandra").activities)
    assert (values["flushes"], values["flush_period_seconds"]) == (9, 600)


def test_parts_of_one_start_are_no_period(tmp_path: Path) -> None:
    moments = [minute + part / 60_000 for minute in (1, 5, 9) for part in range(0, 60, 12)]
    values = count_starts(tmp_path / "log", checkpoint_lines(*moments))
    assert values["checkpoints"] == 15
    assert values["checkpoint_period_seconds"] == pytest.approx(240, abs=1)
    assert set(count_starts(tmp_path / "log", checkpoint_lines(*moments[:5]))) == {"checkpoints"}


def test_a_log_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert activity_figures([(tmp_path / "none", 0.0)], {"checkpoint": "checkpoint starting"}) == {"checkpoints": 0}


CHECKPOINT = "%Y-%m-%d %H:%M:%S.{:03.0f} UTC [71] LOG:  checkpoint starting: time"
START = datetime(2026, 11, 24, 2, 0)


def count_starts(path: Path, content: bytes, since: datetime = START) -> dict[str, float]:
    """The figures from a log of PostgreSQL, without the lines before `since`."""
    path.write_bytes(content)
    return activity_figures([(path, since.timestamp())], named("postgres").activities)


def checkpoint_lines(*minutes: float) -> bytes:
    """The log lines of checkpoints, each this many minutes after `START`."""
    moments = [START + timedelta(minutes=minute) for minute in minutes]
    return b"".join(f"{at.strftime(CHECKPOINT).format(at.microsecond / 1000)}\n".encode() for at in moments)


def test_clock_set_back_preserves_checkpoints_and_period(tmp_path: Path) -> None:
    assert count_starts(tmp_path / "log", checkpoint_lines(1, 6, 11, -30, -25)) == {
        "checkpoints": 5,
        "checkpoint_period_seconds": 300,
    }
    assert count_starts(tmp_path / "log", checkpoint_lines(1, 6, 3)) == {"checkpoints": 3}


def test_clock_set_forward_preserves_the_period(tmp_path: Path) -> None:
    day = 24 * 60
    values = count_starts(tmp_path / "log", checkpoint_lines(1, 6, day + 11, day + 16))
    assert values == {"checkpoints": 4, "checkpoint_period_seconds": 300}


def test_a_checkpoint_each_second_is_counted(tmp_path: Path) -> None:
    values = count_starts(tmp_path / "log", checkpoint_lines(*(second / 60 for second in range(600))))
    assert values == {"checkpoints": 600, "checkpoint_period_seconds": 1}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(b'2026-11-24 02:07:01.044 UTC [71] ERROR:  no "checkpoint starting"\n', id="another message"),
        pytest.param(b"2026-13-45 02:07:01.044 UTC [71] LOG:  checkpoint starting: time\n", id="no day"),
        pytest.param(b"2026-11-24 25:07:01.044 UTC [71] LOG:  checkpoint starting: time\n", id="no hour"),
        pytest.param(b"71:M 24 Xyz 2026 02:07:01.044 LOG:  checkpoint starting\n", id="no month"),
        pytest.param(b"\xff\xfe\x00\xe9\n\x00\x00\x00", id="not UTF-8"),
        pytest.param(b"LOG:  checkpoint starting\n", id="no time"),
    ],
)
def test_lines_that_are_not_beginnings_do_not_count(tmp_path: Path, other: bytes) -> None:
    values = count_starts(tmp_path / "log", checkpoint_lines(1, 6) + other + checkpoint_lines(11))
    assert values == {"checkpoints": 3, "checkpoint_period_seconds": 300}


def test_partial_line_counts_once_it_is_complete(tmp_path: Path) -> None:
    assert count_starts(tmp_path / "log", checkpoint_lines(1, 6)[:-40]) == {"checkpoints": 1}
    assert count_starts(tmp_path / "log", checkpoint_lines(1, 6)[:-7]) == {"checkpoints": 2}


def test_log_without_its_start_has_only_a_period(tmp_path: Path) -> None:
    other = b"2026-11-24 02:08:30.044 UTC [71] LOG:  something else\n"
    much = other * (READ_BYTES // len(other) + 1)
    assert count_starts(tmp_path / "log", checkpoint_lines(1, 5) + much + checkpoint_lines(10, 15, 20)) == {
        "checkpoint_period_seconds": 300
    }
    # The lines of an earlier start may be missing.
    started = START + timedelta(minutes=9)
    values = count_starts(tmp_path / "log", checkpoint_lines(1, 5) + much + checkpoint_lines(10, 15, 20), started)
    assert values == {"checkpoints": 3, "checkpoint_period_seconds": 300}


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize("change", [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)])
@pytest.mark.parametrize("started", [-23, 2])
def test_daylight_saving_change_loses_nothing(tmp_path: Path, change: datetime, started: int) -> None:
    minutes = range(started + 3, started + 83, 10)
    lines = [(change + timedelta(minutes=minute)).astimezone().strftime(CHECKPOINT).format(44) for minute in minutes]
    values = count_starts(tmp_path / "log", "\n".join(lines).encode(), change + timedelta(minutes=started))
    assert values == {"checkpoints": 8, "checkpoint_period_seconds": 600}


def test_pauses_are_divided_among_intervals(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    written = "[2026-11-28T17:00:02.500+0000][12.5s][info][gc] GC(7) "
    log.write_text(
        f"{written}Pause Young (Normal) (G1 Evacuation Pause)\n"
        f"{written}Pause Young (Normal) (G1 Evacuation Pause) 24M->1M(64M) 700.250ms\n"
        f"{written}Concurrent Mark Cycle 300.000ms\n"
    )
    began = round(datetime(2026, 11, 28, 17, 0, 1, tzinfo=UTC).timestamp()) * 10**9
    series = Series((0.0, 1.0, 2.0), (1.0, 1.0, 0.5), (1.0, 1.0, 1.0))
    (pause,) = list_pauses(log)
    assert pause == (began + 1_500_000_000, 700_250_000)
    # The pause lasts from 0.79975 s to 1.5 s of the window; the second one ends before the window.
    counted = add_pauses(series, began, [pause, (began, 10**9)])
    assert counted.gc_ns == (200_250_000, 500_000_000, 0)
    assert Series.from_json(counted.to_json()) == counted
    assert add_pauses(series, began + 10**12, [pause]) == series
