"""Parses an HdrHistogram interval log: its unit, the meaning of its tags, and its intervals."""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from loadstone.engine.events import CENSORED
from loadstone.engine.histogram import HEADER, Histogram, Layout, decode_histogram
from loadstone.importers.number import parse_number
from loadstone.importers.run import (
    ALL,
    COMPOSED,
)
from loadstone.importers.source import Source
from loadstone.results.hlog import UNIT
from loadstone.results.trial_result import ROUNDED_SECONDS

SERVICE_TIME, RESPONSE_TIME, WAIT_TIME = "-st", "-rt", "-wt"
# The formats of Java's HdrHistogram before 2.1.5, and therefore of YCSB 0.17.0. COUNT_BITS masks the size of a
# count in bytes (AbstractHistogram.java: encodeIntoByteBuffer).
V0, V0_DEFLATED, V1, V1_DEFLATED, COUNT_BITS = 0x1C849308, 0x1C849309, 0x1C849301, 0x1C849302, 0xF0
V0_HEADER = struct.Struct(">iiqqq")
LOGGING = re.compile(r"#\[Logging for: ([^\]]+)\]")
BASE = re.compile(r"#\[BaseTime: (\d+(?:\.\d+)?)")
RESPONSE = "-response"
# cassandra-stress 3.11 to 5.0 and Scylla's fork; scylla-bench writes the same comment.
STRESS = re.compile(r"#\[?(?:Logging op latencies for Cassandra Stress|Logged with Cql-stress)")
STRESS_TAG = re.compile(r"(?P<operation>.+)(?P<time>-st|-rt|-wt)")
BENCH_TAG = re.compile(r"(?P<time>raw|co-fixed)(?:-(?P<operation>read|write))?")
BENCH_TIMES = {"raw": SERVICE_TIME, "co-fixed": RESPONSE_TIME}
# The share of an interval by which it may overlap the next interval: starts and lengths are rounded to ms.
OVERLAP = 0.02
# If the processes ran together for less than this share of the time, the load was visibly lower at times.
COMMON_MIN = 0.95
# The fact that states how much warm-up to exclude, in s.
WARMUP = "warmup_s"
UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000}
COUNT = {2: "h", 4: "i", 8: "q"}
HINT = "import the whole file; its last line may be truncated"


class Tag(NamedTuple):
    """The meaning of a tag: an operation, a status, and whether the values are response times."""

    operation: str
    status: str = "OK"
    response: bool = False

    @property
    def name(self) -> str:
        """The tag's name in metrics, without a suffix for service times."""
        return (self.operation if self.status == "OK" else f"{self.operation}-{self.status}").lower()

    @property
    def label(self) -> str:
        """The tag in Loadstone's logs."""
        status = "" if self.status == "OK" else f"-{self.status}"
        return f"{self.operation}{status}{RESPONSE if self.response else ''}"


# A line with a comment after the encoded histogram, which has no blanks.
COMMENTED = re.compile(r"((?:[^,]*,){3,4}[\w+/]{8,}=*)\s+(\S.*)$")


@dataclass
class HistogramLog:
    """The intervals of each tag (start and length in s, and the histogram), and the unit of the values in ns."""

    ns: int
    tags: dict[Tag, list[tuple[float, float, Histogram]]] = field(default_factory=dict)
    # Whether no operation is counted by several tags, so that the sum over the tags is the number of operations.
    additive: bool = True
    unknown: dict[str, None] = field(default_factory=dict)

    def merge_intervals(self, tag: Tag) -> Histogram:
        """The sum of a tag's histograms."""
        total = Histogram()
        for _, _, histogram in self.tags[tag]:
            total.add_histogram(histogram)
        return total

    @property
    def has_total(self) -> bool:
        """Whether a tag covers all operations."""
        return Tag(ALL.upper()) in self.tags or Tag(ALL.upper(), response=True) in self.tags

    def has_responses(self, operation: str, status: str | None = None) -> bool:
        """Whether there are response times for an operation, with this status or, if it is None, with any status."""
        return any(tag.response and tag.operation == operation and status in (None, tag.status) for tag in self.tags)


def parse_log(source: Source) -> HistogramLog:
    """The intervals in the file. Raises LoadstoneError if a line is damaged or the unit is unknown."""
    logging = LOGGING.search(source.text)
    log = HistogramLog(find_unit(source, logging is not None))
    untagged = logging[1] if logging else ALL.upper()
    lines: dict[str, list[tuple[float, float, Histogram]]] = {}
    earlier: set[tuple[str, float, float, str]] = set()
    is_engines = UNIT in source.text
    for index, line in enumerate(source.lines):
        if not line.strip():
            continue
        if line.startswith(("#", '"')):
            source.used.add(index)
            continue
        if "," not in line:
            # The line does not contain even part of an interval.
            continue
        match = COMMENTED.match(line)
        if match:
            log.unknown[match[2].strip()] = None
        parts = (match[1] if match else line.strip()).split(",")
        tag = parts.pop(0).removeprefix("Tag=") if parts[0].startswith("Tag=") else untagged
        with source.report_damage("a line of the histogram log is damaged: {error}", HINT, index):
            if len(parts) != 4:
                raise ValueError(f"it has {len(parts)} fields instead of 4")
            start, length = parse_number(parts[0]), parse_number(parts[1])
            histogram = decode_any_version(parts[3])
        span = (start or 0.0, length or 0.0)
        # The engine adds a line for operations that complete after their interval. Only lines with a single value may
        # be equal.
        repeated = parts[3] if sum(histogram.counts.values()) > 1 else str(index)
        identity = (tag, *span, repeated if is_engines else "")
        if identity in earlier and length:
            hint = "import the log of each process as a separate file: loadstone import --processes"
            raise source.error_at(f"the interval of {tag} at {span[0]:g} s occurs twice", hint, index)
        earlier.add(identity)
        lines.setdefault(tag, []).append((*span, histogram))
        source.used.add(index)
    drop_warmup(lines, float(source.facts.get(WARMUP, 0)))
    if not any(histogram.counts for intervals in lines.values() for _, _, histogram in intervals):
        raise source.error_at("the histogram log has no values", "check that the tool measured any operations")
    interpret_tags(log, lines, source)
    if not log.tags:
        raise source.error_at("the histogram log has only wait times", "import the log of service times as well")
    for tag, intervals in log.tags.items():
        if tag.status != CENSORED:
            check_overlap(tag, intervals, source)
    return log


def drop_warmup(lines: dict[str, list[tuple[float, float, Histogram]]], seconds: float) -> None:
    """Drops the intervals that begin less than `seconds` after the first interval."""
    first = min((start for intervals in lines.values() for start, _, _ in intervals), default=0.0)
    for tag, intervals in lines.items():
        lines[tag] = [interval for interval in intervals if interval[0] - first >= seconds - ROUNDED_SECONDS]


def interpret_tags(
    log: HistogramLog, lines: Mapping[str, list[tuple[float, float, Histogram]]], source: Source
) -> None:
    """Interprets tags according to the tool that wrote them."""
    if UNIT in source.text:
        log.tags = {loadstone_tag(name): intervals for name, intervals in lines.items()}
        return
    patterns = (BENCH_TAG, STRESS_TAG)
    pattern = next((pattern for pattern in patterns if all(map(pattern.fullmatch, lines))), None)
    if pattern is None:
        # The tags of other tools are plain names, even with a hyphen, and two tags may count the same operation.
        log.tags = {Tag(name): intervals for name, intervals in lines.items()}
        log.additive = len(lines) == 1
        return
    for name, intervals in lines.items():
        match = pattern.fullmatch(name)
        time = BENCH_TIMES.get(match["time"], match["time"]) if match else ""
        if match and time != WAIT_TIME:
            log.tags[Tag(match["operation"] or ALL.upper(), response=time == RESPONSE_TIME)] = intervals
        else:
            log.unknown[f"{name} (wait)"] = None


def loadstone_tag(name: str) -> Tag:
    """Parses a tag of a Loadstone log: `READ`, `READ-NOT_FOUND`, `READ-response`."""
    text = name.removesuffix(RESPONSE)
    composed = next((prefix for prefix in COMPOSED if text == prefix or text.startswith(f"{prefix}-")), None)
    operation, _, status = (composed, "", text[len(composed) + 1 :]) if composed else text.partition("-")
    return Tag(operation, status or "OK", name.endswith(RESPONSE))


def check_overlap(tag: Tag, intervals: Sequence[tuple[float, float, Histogram]], source: Source) -> None:
    """Raises LoadstoneError if intervals of a tag overlap: the sum of their lengths would exceed the time."""
    spans = sorted({(start, length) for start, length, _ in intervals if length > 0})
    for (start, length), (following, _) in pairwise(spans):
        if start + length > following + OVERLAP * length:
            message = (
                f"intervals of {tag.operation} overlap: one begins at {start:g} s and lasts {length:g} s, "
                f"but the next begins at {following:g} s"
            )
            hint = "logs that give the end of an interval as its length, or cumulative histograms, are not supported"
            raise source.error_at(message, hint)


def has_unit(source: Source) -> bool:
    """Whether the log states the unit of its values, or its tool, which determines the unit."""
    return UNIT in source.text or bool(LOGGING.search(source.text) or STRESS.search(source.text))


def find_unit(source: Source, of_ycsb: bool) -> int:
    """The unit of the log's values, in ns. Raises LoadstoneError if it is unknown."""
    stated = source.facts.get("hlog_unit")
    if stated is not None:
        if str(stated) not in UNITS:
            raise source.error_at(f'hlog_unit must be ns, us or ms, got "{stated}"', "for example `hlog_unit: us`")
        return UNITS[str(stated)]
    if UNIT in source.text:
        return UNITS["ns"]
    if of_ycsb:
        return UNITS["us"]
    if STRESS.search(source.text):
        return UNITS["ns"]
    hint = f"write `hlog_unit: us` (or ns, or ms) into {source.path.name}.facts.yaml"
    raise source.error_at("the unit of the log's values is unknown", hint)


def decode_any_version(text: str) -> Histogram:
    """Decodes a histogram in version 0, 1 or 2 of the encoding. Raises ValueError if it is damaged."""
    try:
        data = base64.b64decode(text, validate=True)
        (cookie,) = struct.unpack_from(">i", data)
        if cookie & ~COUNT_BITS not in (V0, V0_DEFLATED, V1, V1_DEFLATED):
            return decode_histogram(text)
        if cookie & ~COUNT_BITS in (V0_DEFLATED, V1_DEFLATED):
            data = zlib.decompress(data[8:])
            (cookie,) = struct.unpack_from(">i", data)
        if cookie & ~COUNT_BITS == V0:
            _, digits, lowest, _, _ = V0_HEADER.unpack_from(data)
            offset, begin, length = 0, V0_HEADER.size, len(data) - V0_HEADER.size
        else:
            _, length, offset, digits, lowest, _, _ = HEADER.unpack_from(data)
            begin = HEADER.size
        size = (cookie & COUNT_BITS) >> 4 & 0xE
        counts = struct.unpack_from(f">{length // size}{COUNT[size]}", data, begin)
    except (binascii.Error, struct.error, zlib.error, KeyError, ZeroDivisionError) as error:
        raise ValueError(f"not an HDR histogram: {error}") from error
    if offset or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError(f"an unsupported HDR histogram: offset {offset}, {digits} digits")
    return Histogram(Layout(digits, lowest), Counter({index: count for index, count in enumerate(counts) if count}))
