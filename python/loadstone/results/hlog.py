"""Histograms on disk, as interval logs of HdrHistogram (format 1.3), which HdrHistogram's tools read.

There is one file per phase, with a line for each interval and type of operation. The tag is `READ`, with `-<status>`
for failed operations, and `-response` for response times. Values, including the column Interval_Max, are in ns.

An interval contains the operations due in it (in a closed loop: sent in it), even if they complete later. Written lines
are never changed, so an interval can have several lines with one tag, whose counts are added. The lines of a file are
therefore not in chronological order. The last lines contain the operations of the whole window that never completed,
with the tag `READ-CENSORED`; their values are the times for which the operations had waited. Every percentile can
therefore be computed from the file (loadstone.statistics.percentile).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from loadstone.engine.events import CENSORED, WELL, Interval, Outcome, Summary
from loadstone.engine.histogram import Histogram, decode_histogram, encode_histogram

UNIT = "#[Unit: ns]"
HEADER = """\
#[Histogram log format version 1.3]
{unit}
#[StartTime: {start:.3f} (seconds since epoch)]
#[BaseTime: {start:.3f} (seconds since epoch)]
"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
"""


class Writer:
    """Writes the intervals of one phase as they arrive."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        # The start and length of each interval, in ns, for operations that are added to it later.
        self._spans: dict[int, tuple[int, int]] = {}

    def write_interval(self, interval: Interval) -> None:
        """Adds an interval's histograms, and lines for operations that were due earlier but completed in it."""
        if not self._spans:
            start = (interval.unix_ns - interval.length_ns - interval.start_ns) / 1e9
            self._file.write(HEADER.format(unit=UNIT, start=start))
        self._spans[interval.k] = (interval.start_ns, interval.length_ns)
        for k, outcomes in [*((step.k, step.outcomes) for step in interval.earlier), (interval.k, interval.outcomes)]:
            self._write_outcomes(outcomes, *self._spans.get(k, self._spans[interval.k]))
        self._file.flush()

    def write_censored(self, summary: Summary) -> None:
        """Adds the operations that never completed."""
        censored = [outcome for outcome in summary.outcomes if outcome.status == CENSORED]
        if self._spans:
            self._write_outcomes(censored, 0, max(start + length for start, length in self._spans.values()))
        self._file.flush()

    def _write_outcomes(self, outcomes: Iterable[Outcome], start_ns: int, length_ns: int) -> None:
        for outcome in outcomes:
            name = outcome.operation if outcome.status in WELL else f"{outcome.operation}-{outcome.status}"
            for tag, text in ((name, outcome.service), (f"{name}-response", outcome.response)):
                if text is not None and (histogram := decode_histogram(text)).count:
                    largest = histogram.value_at_quantile(1)
                    self._file.write(f"Tag={tag},{start_ns / 1e9:.3f},{length_ns / 1e9:.3f},{largest},{text}\n")


def write_histograms(path: Path, histograms: Mapping[str, Histogram]) -> None:
    """Writes the histograms of a whole window, in ns, keyed by tag; writes no file if there are none."""
    if histograms:
        lines = [
            f"Tag={tag},0.000,0.000,{histogram.value_at_quantile(1)},{encode_histogram(histogram)}\n"
            for tag, histogram in histograms.items()
            if histogram.count
        ]
        path.write_text(HEADER.format(unit=UNIT, start=0.0) + "".join(lines))
