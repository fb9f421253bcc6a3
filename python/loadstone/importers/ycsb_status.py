"""YCSB's status lines (`-s`): the time series of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from loadstone.engine.events import TIMED_STEPS
from loadstone.importers.number import parse_decimal_comma
from loadstone.importers.run import build_series
from loadstone.results.trial_result import Series

LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}) (?P<seconds>\d+) sec: (?P<total>\d+) operations;(?P<rest>.*)"
)
BLOCK = re.compile(r"\[([\w-]+): Count=(\d+), [^\[\]]*?\b99=([^,\[\]]+)")
# The clock and the count of seconds may differ by this many seconds because of rounding.
SECONDS_APART = 1.5


@dataclass(frozen=True)
class Status:
    """A status line: the client's clock and count of seconds, the operations so far, and a block for each operation.

    A block has the name of the operation, its count and its p99 in µs.
    """

    clock: float
    seconds: int
    total: int
    blocks: tuple[tuple[str, int, float | None], ...]


def parse_status(line: str) -> Status | None:
    """Parses a status line; None for other lines."""
    if " sec: " not in line:
        return None
    match = LINE.search(line)
    if match is None:
        return None
    try:
        clock = datetime.strptime(match["time"], "%Y-%m-%d %H:%M:%S:%f").timestamp()
    except ValueError:
        return None
    blocks = tuple((name, int(count), parse_microseconds(text)) for name, count, text in BLOCK.findall(match["rest"]))
    return Status(clock, int(match["seconds"]), int(match["total"]), blocks)


def parse_microseconds(text: str) -> float | None:
    """Parses a latency in a status line, in the client's locale; None if it is not a number."""
    try:
        return parse_decimal_comma(text)
    except ValueError:
        return None


def status_series(lines: Sequence[Status]) -> Series | None:
    """The time series in status lines; None for fewer than two intervals.

    Each interval lasts from one line to the next. If lines are missing, the interval is longer and has no latency.
    """
    rows: list[tuple[float, float, float, None, float | None]] = []
    at, total = 0.0, 0
    for index, line in enumerate(lines):
        if index == 0 and line.seconds == 0:
            # YCSB prints the first line when the status thread starts, after the clients have started.
            total = line.total
            continue
        length = elapsed_seconds(lines[index - 1] if index else None, line)
        done = line.total - total
        # YCSB prints the last line when the clients have finished; it may show no progress since the previous line.
        if length <= 0 or done < 0 or (not done and line is lines[-1] and rows and length < rows[-1][1]):
            continue
        rows.append((at, length, done / length, None, p99_ns(line, done)))
        at, total = at + length, line.total
    return build_series(rows)


def elapsed_seconds(before: Status | None, line: Status) -> float:
    """The seconds between two lines: by the clock, which has milliseconds, unless the clock was set in between."""
    if before is None:
        return float(line.seconds)
    counted = line.seconds - before.seconds
    clock = line.clock - before.clock
    return clock if abs(clock - counted) <= SECONDS_APART else float(counted)


def p99_ns(line: Status, done: int) -> float | None:
    """The p99 of an interval, in ns, if it has only one type of operation: percentiles cannot be combined."""
    blocks = [block for block in line.blocks if block[0].removeprefix("Intended-") not in TIMED_STEPS and block[1]]
    if len(blocks) != 1 or not done / 2 <= blocks[0][1] <= done * 2 or blocks[0][2] is None:
        return None
    return blocks[0][2] * 1000
