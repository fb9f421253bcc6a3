"""Histograms on disk: the interval log of HdrHistogram (format 1.3), which its own tools read.

One file a phase, a line an interval and kind of operation; the tag is `READ`, with `-<status>` behind for what did not
end well and `-response` for response times. Values, the column Interval_Max among them, are ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from loadstone.event import Interval
from loadstone.histogram import Histogram, decode

UNIT = "#[Unit: ns]"
HEADER = """\
#[Histogram log format version 1.3]
{unit}
#[StartTime: {start:.3f} (seconds since epoch)]
#[BaseTime: {start:.3f} (seconds since epoch)]
"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
"""


class Writer:
    """Writes the intervals of one phase as they come."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._begun = False

    def take(self, interval: Interval) -> None:
        """Adds an interval's histograms."""
        if not self._begun:
            start = (interval.unix_ns - interval.length_ns - interval.start_ns) / 1e9
            self._file.write(HEADER.format(unit=UNIT, start=start))
            self._begun = True
        for outcome in interval.outcomes:
            name = outcome.operation if outcome.status == "OK" else f"{outcome.operation}-{outcome.status}"
            self._line(name, interval, outcome.service)
            if outcome.response is not None:
                self._line(f"{name}-response", interval, outcome.response)
        self._file.flush()

    def _line(self, tag: str, interval: Interval, histogram: str) -> None:
        largest = decode(histogram).quantile(1)
        self._file.write(
            f"Tag={tag},{interval.start_ns / 1e9:.3f},{interval.length_ns / 1e9:.3f},{largest},{histogram}\n"
        )


def read(path: Path) -> Iterator[tuple[str, float, float, Histogram]]:
    """Each line's tag, start and length in s, and histogram. Raises ValueError when one is damaged."""
    with path.open(encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(("#", '"')) or not line.strip():
                continue
            parts = line.strip().split(",")
            tag = parts.pop(0).removeprefix("Tag=") if parts[0].startswith("Tag=") else ""
            if len(parts) != 4:
                raise ValueError(f"{path.name}: a line of {len(parts)} fields")
            yield tag, float(parts[0]), float(parts[1]), decode(parts[3])


def merged(histograms: Iterable[tuple[str, float, float, Histogram]]) -> dict[str, Histogram]:
    """The histograms of all intervals, added by tag."""
    found: dict[str, Histogram] = {}
    for tag, _, _, histogram in histograms:
        found.setdefault(tag, Histogram()).add(histogram)
    return found
