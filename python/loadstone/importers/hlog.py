"""Interval logs of HdrHistogram: Loadstone's, YCSB's (`hdrhistogram.fileoutput`) and any other tool's.

The format does not define the values' unit: Loadstone writes it as a comment, YCSB's are µs, and others need a fact.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from loadstone.engine.events import BESIDE, CENSORED
from loadstone.engine.histogram import HEADER, Histogram, Layout, decode
from loadstone.importers.number import plain
from loadstone.importers.run import ALL, COMPOSED, NO_ERROR, WELL, Run, latencies, series
from loadstone.importers.source import Source
from loadstone.results.hlog import UNIT
from loadstone.results.trial_result import Series
from loadstone.statistics.percentile import Population

NAME = "hlog"
TITLE = "HDR histogram log (.hlog)"
SIGN = "#[Histogram log format version"
LOGGING = re.compile(r"#\[Logging for: ([^\]]+)\]")
START = re.compile(r"#\[StartTime: (\d+(?:\.\d+)?)")
RESPONSE = "-response"
UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000}
# The format of Java's HdrHistogram 2.1.4, and so of YCSB 0.17.0: words of 8 bytes, deflated or not.
V1, V1_DEFLATED = 0x1C849381, 0x1C849382
HINT = "import the whole file; its last line may be cut"


@dataclass
class Log:
    """The intervals of each tag: start, length in s, histogram; and the unit in ns."""

    ns: int
    tags: dict[str, list[tuple[float, float, Histogram]]] = field(default_factory=dict)

    def merged(self, tag: str) -> Histogram:
        """The sum of a tag's histograms."""
        total = Histogram()
        for _, _, histogram in self.tags[tag]:
            total.add(histogram)
        return total

    def responds(self, operation: str) -> bool:
        """Whether there are response times of an operation."""
        return any(tag.endswith(RESPONSE) and split(tag)[0] == operation for tag in self.tags)


def recognises(text: str) -> bool:
    """Whether its header is that of an interval log."""
    return SIGN in text


def runs(source: Source) -> list[Run]:
    """The only run of the file. Raises LoadstoneError when a line is damaged or the unit is not known."""
    logging = LOGGING.search(source.text)
    log = Log(unit(source, logging is not None))
    untagged = logging[1] if logging else ALL.upper()
    for index, line in enumerate(source.lines):
        if not line.strip() or line.startswith(("#", '"')):
            continue
        parts = line.strip().split(",")
        tag = parts.pop(0).removeprefix("Tag=") if parts[0].startswith("Tag=") else untagged
        with source.reading("a line of the histogram log is damaged: {error}", HINT, index):
            if len(parts) != 4:
                raise ValueError(f"it has {len(parts)} fields instead of 4")
            start, length = plain(parts[0]), plain(parts[1])
            histogram = read(parts[3])
        log.tags.setdefault(tag, []).append((start or 0.0, length or 0.0, histogram))
    if not any(histogram.counts for lines in log.tags.values() for _, _, histogram in lines):
        raise source.error("the histogram log has no values", "was anything measured?")
    return [run(log, source)]


def unit(source: Source, of_ycsb: bool) -> int:
    """The unit of its values in ns. Raises LoadstoneError when it is not known."""
    given = source.facts.get("hlog_unit")
    if given is not None:
        if str(given) not in UNITS:
            raise source.error(f'hlog_unit must be ns, us or ms, got "{given}"', "for example --fact hlog_unit=us")
        return UNITS[str(given)]
    if UNIT in source.text:
        return UNITS["ns"]
    if of_ycsb:
        return UNITS["us"]
    raise source.error("the unit of the log's values is not known", "state it: --fact hlog_unit=us, or ns, or ms")


def read(text: str) -> Histogram:
    """Reads a histogram of version 1 or 2. Raises ValueError when it is damaged."""
    try:
        data = base64.b64decode(text, validate=True)
        (cookie,) = struct.unpack_from(">i", data)
        if cookie not in (V1, V1_DEFLATED):
            return decode(text)
        if cookie == V1_DEFLATED:
            data = zlib.decompress(data[8:])
        _, length, offset, digits, lowest, _, _ = HEADER.unpack_from(data)
        counts = struct.unpack_from(f">{length // 8}q", data, HEADER.size)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not an HDR histogram: {error}") from error
    if offset or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError(f"an HDR histogram that cannot be read: offset {offset}, {digits} digits")
    return Histogram(Layout(digits, lowest), Counter({index: count for index, count in enumerate(counts) if count}))


def run(log: Log, source: Source) -> Run:
    """The log's figures: for each tag, and for all operations that ended well."""
    open_loop = any(tag.endswith(RESPONSE) for tag in log.tags)
    found = Run(loop="open" if open_loop else "closed", of_all=True, step_ns=log.ns if log.ns > 1 else 0)
    if UNIT in source.text:
        found.facts["tool"] = "loadstone"
    elif LOGGING.search(source.text):
        found.facts["tool"] = "ycsb"
    if start := START.search(source.text):
        found.start_unix_ns = int(Decimal(start[1]) * 10**9)
    # CLEANUP and checks of values are not operations.
    simple = [tag for tag in log.tags if tag.removesuffix(RESPONSE) not in BESIDE]
    with source.reading("the log's histograms do not add up: {error}", HINT):
        totals = {tag: log.merged(tag) for tag in simple}
        course, everything = together(log, [tag for tag in simple if counts(tag, log)])
        beyond = others(totals, log)
    for tag, histogram in totals.items():
        operation, status = split(tag)
        if status != CENSORED:
            # Only tags of operations that ended well have any others.
            found.values.extend(latencies(name_of(tag, log), histogram, log.ns, beyond.get(tag)))
        # Operations that were never sent have no service time.
        if not tag.endswith(RESPONSE) or status == CENSORED:
            known = found.statuses.setdefault(operation, {})
            known[status] = max(known.get(status, 0), histogram.count)
    found.series = course
    seconds = sum(course.length_seconds) if course else None
    found.add_totals(everything.count / seconds if seconds else None, seconds and seconds * 1e9, everything.count)
    if ALL.upper() not in log.tags:
        found.values.extend(latencies(ALL, everything, log.ns, beyond[ALL]))
    return found


def others(totals: Mapping[str, Histogram], log: Log) -> dict[str, Population]:
    """The failures, and the bounds of operations that never ended, by the tag of those that ended well, and for all."""
    found = {ALL: Population()}
    for tag, histogram in totals.items():
        operation, status = split(tag)
        if operation in BESIDE or (status in NO_ERROR and status != CENSORED):
            continue
        response = tag.endswith(RESPONSE)
        names = [f"{operation}{RESPONSE}" if response else operation]
        # Unanswered operations have not been reported by their parts; for others the headline latency counts.
        if (operation not in COMPOSED or status == CENSORED) and response == log.responds(operation):
            names.append(ALL)
        for name in names:
            known = found.setdefault(name, Population())
            if status == CENSORED:
                known.censored.add(histogram)
            else:
                known.failed += histogram.count
    return found


def split(tag: str) -> tuple[str, str]:
    """A tag's operation, and how it ended."""
    name = tag.removesuffix(RESPONSE)
    composed = next((each for each in COMPOSED if name == each or name.startswith(f"{each}-")), None)
    operation, _, status = (composed, "", name[len(composed) + 1 :]) if composed else name.partition("-")
    return operation, status or "OK"


def counts(tag: str, log: Log) -> bool:
    """Whether a tag has the headline latencies of operations that ended well, and none also counted as their parts."""
    operation, status = split(tag)
    if operation in COMPOSED or status not in WELL:
        return False
    return tag.endswith(RESPONSE) or tag + RESPONSE not in log.tags


def name_of(tag: str, log: Log) -> str:
    """The operation's name in metrics: where response times are known, service times are a separate one."""
    operation = tag.removesuffix(RESPONSE).lower()
    return f"{operation}.service" if not tag.endswith(RESPONSE) and tag + RESPONSE in log.tags else operation


def together(log: Log, tags: list[str]) -> tuple[Series | None, Histogram]:
    """The course of several tags, added by interval, and the total. Raises ValueError when they do not add up."""
    intervals: dict[tuple[float, float], Histogram] = {}
    for tag in tags:
        for start, length, histogram in log.tags[tag]:
            intervals.setdefault((start, length), Histogram()).add(histogram)
    everything = Histogram()
    rows = []
    first = min((start for start, length in intervals if length > 0), default=0.0)
    for (start, length), histogram in sorted(intervals.items()):
        everything.add(histogram)
        if length > 0:
            p50, p99 = (
                (histogram.quantile(share) * log.ns for share in (0.5, 0.99)) if histogram.counts else (None, None)
            )
            rows.append((start - first, length, histogram.count / length, p50, p99))
    return series(rows, least=1), everything
