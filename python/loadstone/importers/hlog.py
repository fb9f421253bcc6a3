"""Interval logs of HdrHistogram: Loadstone's, YCSB's (`hdrhistogram.fileoutput`) and any other tool's.

The format defines neither the unit of values nor the meaning of tags. Loadstone writes the unit as a comment; YCSB's
values are in µs; cassandra-stress, cql-stress and scylla-bench write ns; for other tools, a fact must state the unit.
A tag is an operation with a status (Loadstone), an operation with `-st`, `-rt` or `-wt` for service, response or wait
time (cassandra-stress, cql-stress), `raw` or `co-fixed` for service or response time (scylla-bench), or only a name.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from loadstone.engine.events import CENSORED, TIMED_STEPS
from loadstone.engine.histogram import HEADER, Histogram, Layout, decode_histogram
from loadstone.format import units
from loadstone.importers.number import parse_number
from loadstone.importers.run import (
    ALL,
    COMPOSED,
    NO_ERROR,
    WELL,
    ImportedRun,
    build_histogram,
    build_series,
    histogram_figures,
)
from loadstone.importers.source import Source, text_of
from loadstone.results.hlog import UNIT
from loadstone.results.trial_result import ROUNDED_SECONDS, Series
from loadstone.statistics.percentile import Population

NAME = "hlog"
TITLE = "HDR histogram log (.hlog)"
SIGN = "#[Histogram log format version"
LOGGING = re.compile(r"#\[Logging for: ([^\]]+)\]")
BASE = re.compile(r"#\[BaseTime: (\d+(?:\.\d+)?)")
START = re.compile(r"#\[StartTime: (\d+(?:\.\d+)?)")
RESPONSE = "-response"
# cassandra-stress 3.11 to 5.0 and Scylla's fork; scylla-bench writes the same comment.
STRESS = re.compile(r"#\[?(?:Logging op latencies for Cassandra Stress|Logged with Cql-stress)")
SERVICE_TIME, RESPONSE_TIME, WAIT_TIME = "-st", "-rt", "-wt"
STRESS_TAG = re.compile(r"(?P<operation>.+)(?P<time>-st|-rt|-wt)")
BENCH_TAG = re.compile(r"(?P<time>raw|co-fixed)(?:-(?P<operation>read|write))?")
BENCH_TIMES = {"raw": SERVICE_TIME, "co-fixed": RESPONSE_TIME}
# The share of an interval by which it may overlap the next interval: starts and lengths are rounded to ms.
OVERLAP = 0.02
# If the processes ran together for a smaller share of the time, the load was visibly lower for part of the time.
COMMON_MIN = 0.95
# The fact that states how much warm-up to exclude, in s.
WARMUP = "warmup_s"
UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000}
# The formats of Java's HdrHistogram before 2.1.5, and therefore of YCSB 0.17.0. COUNT_BITS state the size of a
# count in bytes (AbstractHistogram.java: encodeIntoByteBuffer).
V0, V0_DEFLATED, V1, V1_DEFLATED, COUNT_BITS = 0x1C849308, 0x1C849309, 0x1C849301, 0x1C849302, 0xF0
V0_HEADER = struct.Struct(">iiqqq")
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
        """Whether there are response times for an operation, with one status or with any."""
        return any(tag.response and tag.operation == operation and status in (None, tag.status) for tag in self.tags)


def recognise_text(text: str) -> bool:
    """Whether the text has the header of an interval log."""
    return SIGN in text


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a line is damaged or the unit is unknown."""
    return [read_log(parse_log(part), part) for part in split_logs(source)]


def split_logs(source: Source) -> list[Source]:
    """Splits a file into its logs if each begins after the end of the previous log; otherwise, returns the whole file.

    Logs that overlap may belong to parallel processes. A log begins with comments that include the version. Lines
    keep their numbers.
    """
    begins, until = [0], 0
    ends: list[float] = []
    for index, line in enumerate(source.lines):
        if line.startswith(SIGN) and until > begins[-1]:
            begins.append(until)
        elif "," in line and not line.startswith(("#", '"')):
            until = index + 1
    parts = [
        replace(source, text="\n" * begin + "\n".join(source.lines[begin:end]))
        for begin, end in zip(begins, [*begins[1:], len(source.lines)], strict=True)
    ]
    for part in parts:
        start = START.search(part.text)
        if start is None or (ends and float(start[1]) < ends[-1]):
            return [source]
        timed = (re.match(r"(?:Tag=[^,]*,)?([\d.]+),([\d.]+),", line) for line in part.lines)
        offsets = [float(match[1]) + float(match[2]) for match in timed if match]
        latest = max(offsets, default=0.0)
        # Without a base time, the times of intervals may be absolute.
        ends.append(latest if latest > float(start[1]) else float(start[1]) + latest)
    return parts


def merge_runs(sources: Sequence[Source]) -> ImportedRun:
    """Merges logs into one run. They belong to processes (or operations) of one tool that were measured together.

    Times are aligned by the start of each log; if a start is unknown, all logs are assumed to begin together. The
    throughput covers the time in which any process ran; if all ran together for less than 95 % of that time, a note
    states both times. Raises LoadstoneError if a log is damaged, or if the logs have different units.
    """
    logs = [parse_log(source) for source in sources]
    whole = HistogramLog(logs[0].ns, additive=all(log.additive for log in logs))
    starts = [
        float(match[1]) if (match := BASE.search(source.text) or START.search(source.text)) else None
        for source in sources
    ]
    known = [start for start in starts if start is not None]
    spans = []
    for log, start, source in zip(logs, starts, sources, strict=True):
        if log.ns != whole.ns:
            raise source.error_at(
                "the unit of this log differs from the unit of the other logs", "import the logs of one tool at a time"
            )
        later = start - min(known) if start is not None and len(known) == len(starts) else 0.0
        for tag, intervals in log.tags.items():
            moments = [(begin + later, length, histogram) for begin, length, histogram in intervals]
            whole.tags.setdefault(tag, []).extend(moments)
        whole.unknown |= log.unknown
        timed = [span for intervals in log.tags.values() for span in intervals if span[1] > 0]
        if timed:
            last = max(begin + length for begin, length, _ in timed)
            spans.append((later + min(begin for begin, _, _ in timed), later + last))
    merged = read_log(whole, sources[starts.index(min(known)) if known else 0])
    note_parallelism(merged, spans)
    if len(known) < len(starts) > 1:
        message = "not every log states its start, so all are assumed to begin together: throughput may be overstated"
        merged.add_note("starts-unknown", message, "import logs with the line StartTime or BaseTime")
    return merged


def note_parallelism(run: ImportedRun, spans: Sequence[tuple[float, float]]) -> None:
    """Adds a note if processes did not run together, so that the load was lower for part of the time."""
    if len(spans) < 2:
        return
    begins, ends = zip(*spans, strict=True)
    every = max(ends) - min(begins)
    common = max(min(ends) - max(begins), 0.0)
    if common < COMMON_MIN * every:
        message = (
            f"the {len(spans)} logs cover {units.format_duration(every * 1e9)}, but they overlap for only "
            f"{units.format_duration(common * 1e9)}: the throughput is understated"
        )
        hint = "start all processes together, and run them for the same time. Alternatively, use one Loadstone engine"
        run.add_note("processes-apart", message, hint)


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
        parts = line.strip().split(",")
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
    """Decodes a histogram in version 1 or 2 of the encoding. Raises ValueError if it is damaged."""
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


def read_log(log: HistogramLog, source: Source) -> ImportedRun:
    """The figures in the log: for each tag, and for all successful operations together."""
    open_loop = any(tag.response for tag in log.tags)
    run = ImportedRun(loop="open" if open_loop else "closed", of_all=True, step_ns=log.ns if log.ns > 1 else 0)
    run.unknown = log.unknown
    if UNIT in source.text:
        run.facts["tool"] = "loadstone"
    elif LOGGING.search(source.text):
        run.facts["tool"] = "ycsb"
    elif STRESS.search(source.text):
        bench = any(tag.operation == ALL.upper() for tag in log.tags)
        run.facts["tool"] = "scylla-bench" if bench else "cassandra-stress"
        run.facts["latency"] = "response" if open_loop else "service"
    if start := START.search(source.text):
        run.start_unix_ns = int(Decimal(start[1]) * 10**9)
    # CLEANUP and checks of values are not operations.
    simple = [tag for tag in log.tags if tag.operation not in TIMED_STEPS]
    with source.report_damage("the log's histograms cannot be added: {error}", HINT):
        totals = {tag: log.merge_intervals(tag) for tag in simple}
        series, seconds, everything = merge_tags(log, [tag for tag in simple if counts_as_success(tag, log)])
        operations = list_populations(log, totals)
    for name, population in operations.items():
        if name != ALL or log.has_total:
            run.values.extend(histogram_figures(name, population.well, log.ns, population))
    for tag, histogram in totals.items():
        run.histograms[tag.label] = convert_to_ns(histogram, log.ns)
        # Operations that were never sent have no service time, so their response times are counted.
        if log.additive and (not tag.response or tag.status == CENSORED or len(totals) == 1):
            known = run.statuses.setdefault(tag.operation, {})
            known[tag.status] = max(known.get(tag.status, 0), histogram.count)
    if not log.additive:
        names = ", ".join(tag.operation for tag in log.tags)
        message = f"the tags {names} are from an unknown tool: they may count operations twice, so there is no total"
        run.add_note("unknown-tags", message, "to get a throughput, import a log with one tag")
        return run
    run.series = series
    if not seconds:
        run.add_note("times-unknown", "the log's times are invalid, so there is no throughput", "use the tool's report")
    rate = everything.count / seconds if seconds else None
    run.add_totals(rate, seconds * 1e9 if seconds else None, everything.count)
    if UNIT not in source.text:
        # Only Loadstone's logs contain failures: in other logs, their number is unknown, not 0.
        run.values = [value for value in run.values if value.metric != "errors"]
    if not log.has_total:
        run.values.extend(histogram_figures(ALL, everything, log.ns, operations[ALL]))
    return run


def read_populations(path: Path) -> dict[str, Population]:
    """The operations in a Loadstone log, in ns, keyed by the prefix of their metrics: `read`, `read.service`, `all`.

    Raises LoadstoneError if the log is missing or damaged.
    """
    source = Source(path, text_of(path), {"hlog_unit": "ns"})
    log = parse_log(source)
    with source.report_damage("the log's histograms cannot be added: {error}", HINT):
        totals = {tag: log.merge_intervals(tag) for tag in log.tags if tag.operation not in TIMED_STEPS}
        operations = list_populations(log, totals)
        for key, population in list_failures(totals, log).items():
            operation = key.removesuffix(RESPONSE)
            service = log.has_responses(operation) and operation == key
            # An operation that never succeeded has no other tag.
            operations.setdefault(f"{operation.lower()}{'.service' if service else ''}", population)
    return operations


def list_populations(log: HistogramLog, totals: Mapping[Tag, Histogram]) -> dict[str, Population]:
    """The operations of each tag and of all tags together, keyed by the prefix of their metrics.

    Raises ValueError if histograms cannot be added.
    """
    beyond = list_failures(totals, log)
    result: dict[str, Population] = {}
    for tag, histogram in totals.items():
        if tag.status != CENSORED:
            # Only the tags of successful operations are combined with failures.
            name = (
                f"{tag.name}.service" if not tag.response and log.has_responses(tag.operation, tag.status) else tag.name
            )
            key = f"{tag.operation}{RESPONSE if tag.response else ''}"
            result[name] = replace(
                beyond.get(key, Population()) if tag.status == "OK" else Population(), well=histogram
            )
    if not log.has_total:
        every = result[ALL] = replace(beyond[ALL], well=Histogram())
        for tag, histogram in totals.items():
            if counts_as_success(tag, log):
                every.well.add_histogram(histogram)
    return result


def convert_to_ns(histogram: Histogram, ns: int) -> Histogram:
    """Converts a histogram with values in units of `ns` nanoseconds to a histogram with values in ns."""
    if ns == 1:
        return histogram
    layout = histogram.layout
    return build_histogram((layout.highest_equivalent(index) * ns, count) for index, count in histogram.counts.items())


def list_failures(totals: Mapping[Tag, Histogram], log: HistogramLog) -> dict[str, Population]:
    """Failed and censored operations, keyed by the tag of the successful operations, and in total."""
    failures = {ALL: Population()}
    for tag, histogram in totals.items():
        operation, status, response = tag
        if operation in TIMED_STEPS or (status in NO_ERROR and status != CENSORED):
            continue
        names = [f"{operation}{RESPONSE}" if response else operation]
        # The parts of a composite operation report its failures, but not a missing answer. Each operation counts
        # once: by its headline latency.
        if (operation not in COMPOSED or status == CENSORED) and response == log.has_responses(operation):
            names.append(ALL)
        for name in names:
            known = failures.setdefault(name, Population())
            if status == CENSORED:
                known.censored.add_histogram(histogram)
            else:
                known.failed += histogram.count
    return failures


def counts_as_success(tag: Tag, log: HistogramLog) -> bool:
    """Whether a tag has the headline latencies of successful operations that are not also counted by their parts."""
    if tag.operation in COMPOSED or tag.status not in WELL:
        return False
    return tag.response or not log.has_responses(tag.operation, tag.status)


def merge_tags(log: HistogramLog, tags: list[Tag]) -> tuple[Series | None, float, Histogram]:
    """The time series of several tags, added interval by interval, its length in s, and the total.

    Raises ValueError if the histograms cannot be added. Tags with different intervals have no series. The length is 0
    if times are invalid: some versions of scylla-bench write seconds since 1970 as ms, which precede the base time.
    """
    intervals: dict[tuple[float, float], Histogram] = {}
    for tag in tags:
        for start, length, histogram in log.tags[tag]:
            intervals.setdefault((start, length), Histogram()).add_histogram(histogram)
    everything = Histogram()
    rows = []
    first = min((start for start, length in intervals if length > 0), default=0.0)
    seconds, until = 0.0, first
    for (start, length), histogram in sorted(intervals.items()):
        everything.add_histogram(histogram)
        if length > 0:
            p50, p99 = (
                (histogram.value_at_quantile(share) * log.ns for share in (0.5, 0.99))
                if histogram.counts
                else (None, None)
            )
            rows.append((start - first, length, histogram.count / length, p50, p99))
            seconds += max(start + length - max(start, until), 0.0)
            until = max(until, start + length)
    if first < 0:
        return None, 0.0, everything
    aligned = sum(row[1] for row in rows) <= seconds * (1 + OVERLAP)
    return build_series(rows, least=1) if aligned else None, seconds, everything
