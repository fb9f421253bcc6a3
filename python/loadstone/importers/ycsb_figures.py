"""Converts the entries of YCSB's final report, in any format, to figures."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from loadstone.engine.events import TIMED_STEPS
from loadstone.engine.histogram import Histogram
from loadstone.format import units
from loadstone.importers.run import (
    ALL,
    COMPOSED,
    OPERATIONS,
    WELL,
    ImportedRun,
    Statuses,
    build_histogram,
    count_errors,
    histogram_figures,
)
from loadstone.importers.source import Source
from loadstone.importers.ycsb_command import YcsbCommand, add_facts, parse_command
from loadstone.importers.ycsb_status import Status, parse_status, status_series
from loadstone.results.value import Value

# A block has the values of one metric, keyed by measurement. Blocks are keyed by metric.
Block = Mapping[str, float | None]
Blocks = Mapping[str, Block]
OVERALL = "OVERALL"
RUNTIME, THROUGHPUT = "RunTime(ms)", "Throughput(ops/sec)"
INTENDED = "Intended-"
# Statistics of the client's JVM (measurement.trackjvm), which YCSB prints as if they were operations.
JVM = frozenset({"THREAD_COUNT", "USED_MEM_MB", "SYS_LOAD_AVG", "GCS", "GCS_TIME"})
LATENCY = re.compile(r"(Average|Min|Max|([\d.]+)(?:st|nd|rd|th)?Percentile)Latency\((us|ms)\)")
# The measurement type `raw` uses different names; its values are in µs.
RAW_LAST = "p99.99"
RAW = {"Average": "mean", "Min": "min", "Max": "max"}
NS = {"us": 1e3, "ms": 1e6}
# The operations of YCSB's core workloads. The total counts each of them once.
CORE = frozenset({"READ", "UPDATE", "INSERT", "SCAN", "DELETE"})
# A measurement that only the measurement type `histogram` prints.
VARIANCE = "LatencyVariance(us)"
# The version: in the name of a file on the class path, or in the client's first line, where old versions print 0.1.
JAR, CLIENT = re.compile(r"/core-(\d[\w.-]*)\.jar"), re.compile(r"^\W*YCSB Client (\d\S*)$")
# If the lines of a report cover less than this share of its total, the report is truncated.
WHOLE = 0.999
CUT = "import the whole output of the run, including standard output; if it was not saved, run YCSB again"


@dataclass(frozen=True)
class ReportEntry:
    """`[metric], measurement, value`, with the index of its line."""

    metric: str
    measurement: str
    value: float | None
    line: int | None = None

    @property
    def begins(self) -> bool:
        """Whether the entry is the first of a report."""
        return (self.metric, self.measurement) == (OVERALL, RUNTIME)


@dataclass
class ReportContext:
    """The lines around a report."""

    command: YcsbCommand | None = None
    version: str = ""
    statuses: list[Status] = field(default_factory=list)

    def read_line(self, line: str) -> bool:
        """Reads a line outside the report, and returns whether it was recognised."""
        status, settings = parse_status(line), parse_command(line)
        # Old versions print 0.1, so the class path is more precise.
        if (match := CLIENT.search(line)) and match[1] != "0.1":
            self.version = match[1]
        elif match := match or JAR.search(line):
            self.version = self.version or match[1]
        if status is not None:
            self.statuses.append(status)
        elif settings is not None:
            self.command = settings
        return status is not None or settings is not None


def build_run(entries: Sequence[ReportEntry], context: ReportContext, source: Source) -> ImportedRun:
    """The figures of a report. Raises LoadstoneError if it is truncated or mixed with another report."""
    blocks = dict(group_by_metric(entries, source))
    overall = blocks.pop(OVERALL, {})
    line = entries[0].line if entries else None
    for required in (RUNTIME, THROUGHPUT):
        if required not in overall:
            raise source.error_at(f"the YCSB log is truncated: its report has no {required}", CUT, line)
    run = ImportedRun(facts={"tool": "ycsb"}, step_ns=NS["us"])
    if context.command is not None:
        add_facts(context.command, run)
    if context.version:
        run.facts["tool_version"] = context.version
    operations = {name: block for name, block in choose_measurement(blocks).items() if is_operation(name, block)}
    run.statuses = {name: counts for name, block in operations.items() if (counts := count_statuses(block))}
    runtime, throughput = overall[RUNTIME], overall[THROUGHPUT]
    done = round((throughput or 0.0) * (runtime or 0.0) / 1000)
    covered = count_covered(operations, run.statuses)
    exact = (throughput or 0.0) * (runtime or 0.0) / 1000
    # YCSB prints the run time in whole milliseconds. The product is whole unless the rate was rounded.
    slack = 1 + (throughput or 0.0) / 1000
    if abs(exact - round(exact)) > 1e-9 * exact:
        slack = max(slack, exact / WHOLE - exact)
    if foreign := foreign_operations(operations, run.statuses, done, slack):
        run.unknown |= {f"[{name}], whose operations are not part of the total": None for name in foreign}
        covered = count_covered({name: operations[name] for name in operations.keys() - foreign}, run.statuses)
    if abs(done - covered) <= 1 + (throughput or 0.0) / 1000:
        done = covered
    check_blocks(operations, run, done, covered, slack, source, line)
    composed = any(is_composed(name) for name in operations)
    # The throughput may exclude failures (as in YCSB's loads and in Loadstone). Its product with the run time is not
    # always a whole number, and a composed operation is counted in two lines.
    total = done if composed or covered < done * WHOLE else covered
    failed, well = count_errors(run.statuses), well_done(run.statuses)
    rate = throughput
    if failed and throughput and well < done * WHOLE:
        message = (
            f"YCSB's throughput of {units.format_rate(throughput)} counts operations "
            f"that failed: {units.format_count(failed)} in this run"
        )
        if composed:
            hint = "they are not subtracted, because the number of failed read-modify-writes is unknown; see `errors`"
        else:
            rate, hint = throughput * well / done, "the failed operations are subtracted; see `errors`"
        run.add_note("counts-failures", message, hint)
    # YCSB prints the run time in whole milliseconds.
    step = rate / runtime if rate and runtime else 0.0
    run.add_totals(rate, None if runtime is None else runtime * NS["ms"], total, step, NS["ms"])
    if throughput is None:
        run.add_note("not-a-number", "YCSB printed no throughput: it completed no operations", "check the run")
    responses = {name for name in operations if name.startswith(INTENDED)}
    for name, block in operations.items():
        suffix = ".service" if INTENDED + name in responses else ""
        add_latencies(name.removeprefix(INTENDED), suffix, block, run)
    run.unknown |= dict.fromkeys(unknown_names(operations))
    run.omitted |= dict.fromkeys(list_omissions(blocks, operations))
    if any(map(is_coarse, operations.values())):
        run.add_note("coarse", "its percentiles are rounded down to 1 ms", "run YCSB with measurementtype=hdrhistogram")
    if total:
        for service in (False, True) if responses else (True,):
            suffix = ".service" if responses and service else ""
            blocks = {name: block for name, block in operations.items()
                      if (name in responses) is not service and name not in foreign}  # fmt: skip
            add_mean(blocks, f"{ALL}{suffix}.mean", total, run)
    add_verification(run)
    if any(
        after.seconds < before.seconds and after.total < before.total for before, after in pairwise(context.statuses)
    ):
        message = "the log of an earlier run is truncated: its status lines precede the report of another run"
        raise source.error_at(message, CUT, line)
    run.series = status_series(context.statuses)
    if context.statuses:
        first = context.statuses[0]
        run.start_unix_ns = round((first.clock - first.seconds) * 1e9)
    run.omitted |= {"status lines, except throughput and p99": None} if context.statuses else {}
    if run.loop == "open" and not responses:
        run.facts["latency"] = "service"
        message = "a rate was set, but it is unknown whether the log's latencies include the wait for an idle client"
        run.add_note("service-time", message, "run YCSB with -p measurement.interval=both to get response times")
    return run


def group_by_metric(entries: Iterable[ReportEntry], source: Source) -> Blocks:
    """Groups the entries of one report by metric. Raises LoadstoneError if an entry occurs twice."""
    blocks: dict[str, dict[str, float | None]] = defaultdict(dict)
    for entry in entries:
        # The measurement type `timeseries` prints an interval again if status lines are requested.
        if entry.measurement in blocks[entry.metric] and not entry.measurement.isdigit():
            raise source.error_at(
                f"the report has [{entry.metric}], {entry.measurement} twice",
                "two runs wrote to one log: import a separate log for each run",
                entry.line,
            )
        blocks[entry.metric][entry.measurement] = entry.value
    return blocks


def choose_measurement(blocks: Blocks) -> Blocks:
    """The blocks by operation; with two measurement types in a run (HdrREAD, RawREAD), the blocks of the first type."""
    two = any(name.startswith("Hdr") for name in blocks) and any(name.startswith(("Raw", "Bucket")) for name in blocks)
    if not two:
        return blocks
    return {name.removeprefix("Hdr"): block for name, block in blocks.items() if not name.startswith(("Raw", "Bucket"))}


def is_operation(name: str, block: Block) -> bool:
    """Whether a block describes operations, unlike CLEANUP (the closing of connections) and the JVM's statistics."""
    plain = name.removeprefix(INTENDED)
    return plain not in JVM | {"CLEANUP"} and (count_measured(block) is not None or bool(count_statuses(block)))


def count_statuses(block: Block) -> dict[str, int]:
    """The number of operations that completed with each status."""
    return {
        key.removeprefix("Return="): int(value)
        for key, value in block.items()
        if key.startswith("Return=") and value is not None
    }


def count_measured(block: Block) -> int | None:
    """The number of operations that a block measured."""
    count = block.get("Operations", block.get("Total Operations"))
    return None if count is None else int(count)


def is_composed(name: str) -> bool:
    """Whether a block describes composed operations, whose parts are also reported, or their failures (`…-FAILED`)."""
    plain = name.removeprefix(INTENDED)
    return any(plain == operation or plain.startswith(f"{operation}-") for operation in COMPOSED)


def well_done(statuses: Statuses) -> int:
    """The number of successful operations."""
    counts = (counts for name, counts in statuses.items() if name not in TIMED_STEPS and not is_composed(name))
    return sum(count for outcomes in counts for status, count in outcomes.items() if status in WELL)


def count_covered(operations: Blocks, statuses: Statuses) -> int:
    """The number of operations that the lines of a report cover, whatever their outcome. Each operation counts once."""
    total = 0
    for name, block in operations.items():
        # READ's statuses include the operations measured as READ-FAILED or READ-TIMEOUT.
        part = any(name.startswith(f"{whole}-") for whole in statuses)
        if name in TIMED_STEPS or name.startswith(INTENDED) or is_composed(name) or part:
            continue
        total += max(count_measured(block) or 0, sum(statuses.get(name, {}).values()))
    return total


def foreign_operations(operations: Blocks, statuses: Statuses, done: int, slack: float) -> set[str]:
    """The operations outside YCSB's core workloads, if the core operations alone make up the report's total.

    Bindings measure parts of operations under other names. Such lines may also belong to another report.
    """
    core = {name: block for name, block in operations.items() if name.removeprefix(INTENDED) in CORE}
    if abs(count_covered(core, statuses) - done) > slack:
        return set()
    return {name for name, block in operations.items() if name not in core and count_covered({name: block}, statuses)}


def unknown_names(operations: Blocks) -> Iterator[str]:
    """Yields the measurements of operations that this importer does not read."""
    for name, block in operations.items():
        for key in block:
            known = LATENCY.fullmatch(key) or key in RAW or key in ("Operations", "Total Operations", VARIANCE)
            if not known and not re.match(r"Return=|>?\d|p\d", key):
                yield f"[{name}], {key}"


def list_omissions(blocks: Blocks, operations: Blocks) -> Iterator[str]:
    """Yields the blocks that are not operations, and the points or buckets in blocks that are not histograms."""
    for name, block in blocks.items():
        if name not in operations and name.removeprefix("Hdr") not in operations:
            yield f"[{name}]"
        elif any(key.isdigit() for key in block) and not verbose_histogram(block, count_measured(block) or 0):
            yield f"[{name}], points of its time series or buckets of 1 ms"


def count_excess(operations: Blocks, run: ImportedRun, done: int, slack: float) -> float:
    """The number by which the successful operations exceed the report's total; 0 if they do not exceed it.

    Only YCSB's core operations count: bindings measure parts of operations under other names. Retries are measured too.
    """
    well = 0
    for name, block in operations.items():
        if name in CORE:
            statuses = run.statuses.get(name)
            well += well_done({name: statuses}) if statuses else count_measured(block) or 0
    composed = sum(count_measured(block) or 0 for name, block in operations.items() if name in COMPOSED)
    return max(well - composed - done - slack, 0.0)


def check_blocks(
    operations: Blocks, run: ImportedRun, done: int, covered: int, slack: float, source: Source, line: int | None
) -> None:
    """Raises LoadstoneError if a report is truncated within a block or between two blocks.

    `slack` is the number of operations by which `done` may differ from the number of operations in the run.
    """
    for name, block in operations.items():
        began = any(LATENCY.fullmatch(key) for key in block) or "Operations" in block
        if began and not {"Average", "Min", "Max"} <= {match[1] for key in block if (match := LATENCY.fullmatch(key))}:
            raise source.error_at(f"the YCSB log is truncated within the lines of [{name}]", CUT, line)
        raw = (block.get("Total Operations") or 0) > 0
        if raw and not {"Average", "Min", "Max", RAW_LAST} <= block.keys():
            raise source.error_at(f"the YCSB log is truncated within the lines of [{name}]", CUT, line)
        if name in CORE and (run.statuses.keys() & CORE or raw) and name not in run.statuses:
            # YCSB prints the status counts of every operation after its latencies.
            raise source.error_at(f"the YCSB log is truncated: [{name}] has no status counts", CUT, line)
        well = sum(count for status, count in run.statuses.get(name, {}).items() if status in WELL)
        count = count_measured(block)
        if name not in TIMED_STEPS and name in run.statuses and count is not None and well != count:
            if source.torn and name == list(operations)[-1]:
                raise source.error_at(f"the YCSB log is truncated within the lines of [{name}]", CUT, source.last)
            run.add_note("counts-disagree", f"{name}: {count} operations measured, {well} succeeded", "check the log")
    if count_excess(operations, run, done, slack):
        message = (
            f"the report's lines cover {units.format_count(covered)} operations, but its total is"
            f" {units.format_count(done)}: "
            "lines of another report follow"
        )
        raise source.error_at(message, "import the whole output of each run", line)
    if covered >= done * WHOLE:
        return
    message = f"the report's lines cover only {units.format_count(covered)} of {units.format_count(done)} operations"
    if source.facts.get("partial") is True:
        run.add_note("partial", message, "the latencies exclude the remaining operations")
        return
    hint = f"{CUT}. Alternatively, import this part with `loadstone import --fact partial=true`"
    raise source.error_at(f"the YCSB log is truncated: {message}", hint, line)


def add_latencies(operation: str, suffix: str, block: Block, run: ImportedRun) -> None:
    """Adds an operation's latencies; `suffix` marks service times if there are also response times."""
    count = count_measured(block)
    if not count or operation in TIMED_STEPS:
        return
    name = f"{operation.lower()}{suffix}"
    values = {f"{name}.count": Value(f"{name}.count", count, OPERATIONS, count)}
    for key, value in block.items():
        match = LATENCY.fullmatch(key)
        statistic = RAW.get(key, key if re.fullmatch(r"p[\d.]+", key) else None)
        if value is None or (match is None and statistic is None):
            continue
        if match is not None and match[2] and is_coarse(block):
            # The type `histogram` prints the start of a 1 ms bucket, which may be below the minimum.
            value = max(value, (block.get("MinLatency(us)") or 0.0) * NS["us"] / NS[match[3]])
        if match is not None:
            statistic = f"p{match[2]}" if match[2] else RAW[match[1]]
        metric = f"{name}.{statistic}"
        step = NS[match[3] if match else "us"]
        # Percentiles of the type `histogram` are whole ms, whatever their unit. The minimum and the maximum are exact.
        rounded = match is not None and match[2] and is_coarse(block)
        values[metric] = Value(metric, value * step, "ns", count, resolution=NS["ms"] if rounded else 0.0)
    if histogram := verbose_histogram(block, count):
        for figure in histogram_figures(name, histogram, 1000):
            values.setdefault(figure.metric, figure)
    run.values.extend(values.values())


def is_coarse(block: Block) -> bool:
    """Whether a block has the type `histogram`, which counts in buckets of 1 ms: its percentiles are whole ms."""
    if VARIANCE in block or any(key.startswith(">") or key.endswith("PercentileLatency(ms)") for key in block):
        return True
    # Since version 0.2, percentiles are printed in µs, and users may have removed the buckets from a log.
    percentiles = [value for key, value in block.items() if key.endswith("PercentileLatency(us)") and value is not None]
    if len(percentiles) < 2 or any(value % 1000 for value in percentiles):
        return False
    lowest, highest = block.get("MinLatency(us)") or 0, block.get("MaxLatency(us)") or 0
    return highest % 1000 != 0 and max(*percentiles, lowest) > 0


def verbose_histogram(block: Block, count: int) -> Histogram | None:
    """The histogram of HdrHistogram's verbose report (`[READ], 67, 1.0`: µs, count), or None.

    The type `histogram` prints buckets of 1 ms and a variance, and `timeseries` prints means: neither is accepted.
    """
    if is_coarse(block) or not any("Percentile" in key for key in block):
        return None
    pairs = [(int(key), int(value)) for key, value in block.items() if key.isdigit() and value is not None]
    return build_histogram(pairs) if pairs and sum(times for _, times in pairs) == count else None


def add_mean(blocks: Blocks, metric: str, done: int, run: ImportedRun) -> None:
    """Adds the mean over all operations, whatever their outcome, as in Little's law: total time ÷ operations."""
    total = covered = 0.0
    for name, block in blocks.items():
        plain = name.removeprefix(INTENDED)
        average = block.get("AverageLatency(us)", block.get("Average"))
        count = count_measured(block)
        if plain in TIMED_STEPS or is_composed(name) or not count:
            continue
        if average is None:
            return
        total += average * 1e3 * count
        covered += count
    if covered >= done * WHOLE:
        run.add_figure(metric, total / done, "ns", done)


def add_verification(run: ImportedRun) -> None:
    """Adds the number of verified values (dataintegrity) and the number of wrong values."""
    if counts := run.statuses.get("VERIFY"):
        total = sum(counts.values())
        run.add_figure("verified", total, "values", total)
        run.add_figure("wrong", total - counts.get("OK", 0), "values", total)
