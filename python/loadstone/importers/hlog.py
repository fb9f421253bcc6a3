"""HdrHistogram interval logs from Loadstone, YCSB (`hdrhistogram.fileoutput`) and other tools.

The format defines neither the unit of values nor the meaning of tags. Loadstone writes the unit as a comment; YCSB's
values are in µs; cassandra-stress, cql-stress and scylla-bench write ns; for other tools, a fact must state the unit.
A tag is an operation with a status (Loadstone), an operation with `-st`, `-rt` or `-wt` for service, response or wait
time (cassandra-stress, cql-stress), `raw` or `co-fixed` for service or response time (scylla-bench), or only a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from loadstone.engine.events import CENSORED, TIMED_STEPS
from loadstone.engine.histogram import Histogram
from loadstone.format import units
from loadstone.importers.hlog_parser import (
    BASE,
    COMMON_MIN,
    HINT,
    LOGGING,
    OVERLAP,
    RESPONSE,
    STRESS,
    HistogramLog,
    Tag,
    parse_log,
)
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
from loadstone.results.trial_result import Series
from loadstone.statistics.percentile import Population

NAME = "hlog"
TITLE = "HDR histogram log (.hlog)"
SIGN = "#[Histogram log format version"
START = re.compile(r"#\[StartTime: (\d+(?:\.\d+)?)")


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
        hint = "start all processes together, and run them for the same time, or use one process of Loadstone"
        run.add_note("processes-apart", message, hint)


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
    """Whether a tag has the headline latencies of successful operations. Composite operations do not count, because
    their parts do."""
    if tag.operation in COMPOSED or tag.status not in WELL:
        return False
    return tag.response or not log.has_responses(tag.operation, tag.status)


def merge_tags(log: HistogramLog, tags: list[Tag]) -> tuple[Series | None, float, Histogram]:
    """Adds several tags interval by interval; returns the time series, its length in s, and the total histogram.

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
