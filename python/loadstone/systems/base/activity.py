"""Reads the periodic activities of servers from their logs: checkpoints, flushes, compactions, snapshots.

A window shorter than the period of an activity contains the activity only by chance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import dropwhile, pairwise
from pathlib import Path
from statistics import median

from loadstone.observe.server_usage import file_size

# The timestamp of a line, in the format of log4j, logback and PostgreSQL, or of Redis. All use this host's time zone.
TIME = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[.,](\d{3})|(\d\d \w{3} \d{4}) (\d\d:\d\d:\d\d)\.(\d{3})")
ANY = re.compile(b"")
# Only this number of bytes at the end of a log is read.
READ_BYTES = 16 << 20
# The minimum number of gaps between starts from which a period is computed.
GAPS_MIN = 2
# Gaps between starts that are shorter than this do not count towards the period.
TOGETHER_S = 1.0
PERIOD = "_period_seconds"


def activity_figures(logs: Iterable[tuple[Path, float]], marks: Mapping[str, str]) -> dict[str, float]:
    """The number of starts of each activity since the servers started, and the median time between consecutive starts.

    `logs` are the servers' logs and start times, s since the epoch. `marks` are regular expressions for the first log
    line of each activity, keyed by activity. The results have names such as `checkpoints` and
    `checkpoint_period_seconds`. If the beginning of a log is missing, there is no count, only a period.
    """
    activity: dict[str, float] = {}
    tails = [(read_tail(log, READ_BYTES).splitlines(), file_size(log) <= READ_BYTES, since) for log, since in logs]
    known = all(whole or next(list_times(lines, ANY, since), since) < since for lines, whole, since in tails)
    for name, mark in marks.items():
        pattern = re.compile(mark.encode())
        # Skips only leading lines: if the clock was set back, later lines count, even with times before `since`.
        times_by_log = [list(dropwhile(since.__gt__, list_times(lines, pattern, since))) for lines, _, since in tails]
        if known:
            activity[plural_name(name)] = sum(map(len, times_by_log))
        gaps = [gap for times in times_by_log for before, after in pairwise(times) if (gap := after - before) >= 0]
        # The regions of a table are flushed together, but each region has a separate log line.
        gaps = [gap for gap in gaps if gap >= TOGETHER_S]
        if len(gaps) >= GAPS_MIN:
            activity[name + PERIOD] = median(gaps)
    return activity


def plural_name(name: str) -> str:
    """The plural of an activity's name: `checkpoints`, `flushes`."""
    return name + ("es" if name.endswith("sh") else "s")


def read_tail(log: Path, most: int, since: int = 0) -> bytes:
    """The end of a log after byte `since`, at most `most` bytes; empty if it cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - most, since))
            return file.read()
    except OSError:
        return b""


def list_times(lines: Iterable[bytes], pattern: re.Pattern[bytes], since: float) -> Iterator[float]:
    """The times of the matching lines, s since the epoch.

    If the local time is ambiguous, because the clock passes through an hour twice, yields the first of the two times
    that is not before `since`.
    """
    for line in lines:
        if pattern.search(line) and (match := TIME.search(line)) and (at := time_of(match)):
            early = at.timestamp()
            yield early if early >= since else at.replace(fold=1).timestamp()


def time_of(match: re.Match[bytes]) -> datetime | None:
    """The time in a line's timestamp; None if the timestamp is invalid."""
    day, clock, ms, redis_day, redis_clock, redis_ms = (part and part.decode() for part in match.groups())
    try:
        if day:
            return datetime.fromisoformat(f"{day} {clock}.{ms}")
        return datetime.strptime(f"{redis_day} {redis_clock}.{redis_ms}", "%d %b %Y %H:%M:%S.%f")
    except ValueError:
        return None
