"""Logs of many processes that were one run: cassandra-stress started by the hundred, one point of a sweep.

Histograms add up exactly; percentiles do not, so logs without histograms are refused. Processes rarely start and end
together: the throughput covers the time in which any of them ran, and the share in which all of them ran is stated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.importers import hlog
from loadstone.importers.read import Imported, name_runs, open_source
from loadstone.importers.source import Source
from loadstone.results.trial_result import Scalar

BASE = re.compile(r"#\[BaseTime: (\d+(?:\.\d+)?)")
# If the share of common time is smaller, a smaller load ran for a significant part of the run.
COMMON_MIN = 0.95
HINT = "have each process write histograms (cassandra-stress: -log hdrfile=FILE), and import those files"


def merge_logs(paths: Sequence[Path], facts: Mapping[str, Scalar], name: str | None = None) -> list[Imported]:
    """One trial from the histogram logs of several processes.

    Raises LoadstoneError for a log without histograms, a copy of another log, or logs of different tools.
    """
    sources = [open_histograms(path, facts, name) for path in paths]
    refuse_copies(sources)
    logs = [hlog.parse_log(source) for source in sources]
    first = sources[0]
    for source, log in zip(sources, logs, strict=True):
        if (log.ns, log.additive, {*log.tags}) != (logs[0].ns, logs[0].additive, {*logs[0].tags}):
            hint = "import processes that did different work separately"
            raise source.error_at(f"its unit or tags differ from {first.path.name}", hint)
    total = hlog.HistogramLog(logs[0].ns, {}, logs[0].additive, dict(logs[0].unknown))
    spans = []
    for source, log in zip(sources, logs, strict=True):
        offset = base_seconds(source)
        shifted = {
            tag: [(start + offset, length, histogram) for start, length, histogram in intervals]
            for tag, intervals in log.tags.items()
        }
        timed = [
            (start, start + length) for intervals in shifted.values() for start, length, _ in intervals if length > 0
        ]
        spans.append((min(start for start, _ in timed), max(end for _, end in timed)) if timed else (0.0, 0.0))
        for tag, intervals in shifted.items():
            total.tags.setdefault(tag, []).extend(intervals)
    run = hlog.read_log(total, first)
    run.start_unix_ns = int(min(start for start, _ in spans) * 1e9) or run.start_unix_ns
    run.facts["processes"] = len(paths)
    begin, end = min(start for start, _ in spans), max(end for _, end in spans)
    common = max(min(end for _, end in spans) - max(start for start, _ in spans), 0.0)
    if end > begin and common < COMMON_MIN * (end - begin):
        message = (
            f"the {len(paths)} processes ran for {units.format_duration((end - begin) * 1e9)}, "
            "and all of them together for "
            f"{units.format_duration(common * 1e9)}: the throughput is understated"
        )
        run.add_note("processes-apart", message, "start them together, for equal times; one Loadstone engine does so")
    written = open_source(first.path, facts, name)[2]
    return name_runs(first.path, [run], written, facts)


def open_histograms(path: Path, facts: Mapping[str, Scalar], name: str | None) -> Source:
    """A log with histograms. Raises LoadstoneError for any other."""
    source, chosen, _ = open_source(path, facts, name)
    if chosen.NAME != hlog.NAME:
        message = f"it has percentiles only, and percentiles of several processes cannot be merged ({path.name})"
        raise LoadstoneError(message, HINT)
    return source


def refuse_copies(sources: Sequence[Source]) -> None:
    """Raises LoadstoneError if two files have the same content: one process would count twice."""
    known: dict[str, Source] = {}
    for source in sources:
        digest = hashlib.sha256(source.text.encode()).hexdigest()
        if digest in known:
            raise LoadstoneError(f"{source.path} is a copy of {known[digest].path}", "name each process's log once")
        known[digest] = source


def base_seconds(source: Source) -> float:
    """The instant to which the log's times refer, in seconds since 1970; 0 if they are absolute or unknown."""
    stated = BASE.search(source.text) or hlog.START.search(source.text)
    return float(Decimal(stated[1])) if stated else 0.0
