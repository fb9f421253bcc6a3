"""Histograms on disk: the interval log of HdrHistogram (format 1.3), which HdrHistogram's tools read.

One file per phase, a line per interval and kind of operation; the tag is `READ`, with `-<status>` for operations
that failed, and `-response` for response times. Values, including the column Interval_Max, are in ns.

An interval contains the operations due in it (in a closed loop: sent in it), even if they end later. Written lines
are never changed, so an interval can have several lines of one tag: they add up. The lines of a file are thus not in
chronological order. The last lines count operations of the whole window that never ended, tagged `READ-CENSORED`:
a value is the time waited for an operation. So every percentile follows from the file
(loadstone.statistics.percentile).
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
        # Start and length of each interval, ns, for operations that are added to it later.
        self._spans: dict[int, tuple[int, int]] = {}

    def write_interval(self, interval: Interval) -> None:
        """Adds an interval's histograms, and adds operations that ended since then to earlier intervals."""
        if not self._spans:
            start = (interval.unix_ns - interval.length_ns - interval.start_ns) / 1e9
            self._file.write(HEADER.format(unit=UNIT, start=start))
        self._spans[interval.k] = (interval.start_ns, interval.length_ns)
        for k, outcomes in [*((step.k, step.outcomes) for step in interval.earlier), (interval.k, interval.outcomes)]:
            self._write_outcomes(outcomes, *self._spans.get(k, self._spans[interval.k]))
        self._file.flush()

    def write_censored(self, summary: Summary) -> None:
        """Adds the operations that never ended."""
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
    """Writes histograms of a whole window, ns, by their tags; writes no file if there are none."""
    if histograms:
        lines = [
            f"Tag={tag},0.000,0.000,{histogram.value_at_quantile(1)},{encode_histogram(histogram)}\n"
            for tag, histogram in histograms.items()
            if histogram.count
        ]
        path.write_text(HEADER.format(unit=UNIT, start=0.0) + "".join(lines))
