"""What servers do now and then, by their logs: checkpoints, flushes, compactions, snapshots.

A window that is shorter than the time between two of them measures the server with it or without it, as it happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

# Time of a line: as log4j, logback and PostgreSQL write it, and as Redis does. All in this host's time zone.
TIME = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[.,](\d{3})|(\d\d \w{3} \d{4}) (\d\d:\d\d:\d\d)\.(\d{3})")
# Of a longer log only the end is read.
READ_BYTES = 16 << 20
# As many gaps are a period; fewer may be anything.
GAPS_MIN = 2
PERIOD = "_period_seconds"


def figures(logs: Iterable[tuple[Path, float]], marks: Mapping[str, str]) -> dict[str, float]:
    """How often each activity began since its server did, and the median time between two beginnings of one server.

    `logs` are the servers' logs and when each server was started, s since the epoch. `marks` are regular expressions
    for the lines with which an activity begins, by its name. Names are `checkpoints`, `checkpoint_period_seconds`.
    """
    found: dict[str, float] = {}
    kept = [(lines_of(log), since) for log, since in logs]
    for name, mark in marks.items():
        pattern = re.compile(mark.encode())
        each = [[at for at in times(lines, pattern) if at >= since] for lines, since in kept]
        found[plural(name)] = sum(map(len, each))
        gaps = [after - before for one in each for before, after in pairwise(one)]
        if len(gaps) >= GAPS_MIN:
            found[name + PERIOD] = median(gaps)
    return found


def plural(name: str) -> str:
    """`checkpoints`, `flushes`."""
    return name + ("es" if name.endswith("sh") else "s")


def lines_of(log: Path) -> list[bytes]:
    """The lines of a log; none where it cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - READ_BYTES, 0))
            return file.read().splitlines()
    except OSError:
        return []


def times(lines: Iterable[bytes], pattern: re.Pattern[bytes]) -> Iterator[float]:
    """When the lines that match were written, s since the epoch."""
    for line in lines:
        if pattern.search(line) and (at := TIME.search(line)):
            day, clock, ms, redis_day, redis_clock, redis_ms = (part and part.decode() for part in at.groups())
            if day:
                yield datetime.fromisoformat(f"{day} {clock}.{ms}").timestamp()
            else:
                text = f"{redis_day} {redis_clock}.{redis_ms}"
                yield datetime.strptime(text, "%d %b %Y %H:%M:%S.%f").timestamp()
