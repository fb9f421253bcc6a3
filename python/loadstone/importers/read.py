"""Reads the results of other tools: detects the format of a file, and assigns names and facts to its runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from loadstone.engine.events import Note
from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.format.parsing import normalize_spelling
from loadstone.importers import (
    cassandra_stress,
    csv_table,
    fio,
    fio_normal,
    fio_terse,
    go_ycsb,
    hbase_pe,
    hlog,
    hyperfine,
    json_paths,
    latte,
    memtier,
    pgbench,
    redis_benchmark,
    scylla_bench,
    sysbench,
    terasort,
    testdfsio,
    ycsb,
    ycsb_cpp,
    ycsb_json,
)
from loadstone.importers.comments import read_commented
from loadstone.importers.facts import Facts, load_companion, parse_fact
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import LINE_MAX, Source, decode_file, split_origins, split_prefix, strip_collector
from loadstone.results.hlog import UNIT
from loadstone.results.result_set import number_keys
from loadstone.results.result_set import variant_key as key_of
from loadstone.results.trial_result import LOGGED, Loop, Scalar, Series, TrialResult, values_by_metric
from loadstone.results.value import metric_statistic

__all__ = ["FORMATS", "Format", "Imported", "detect_format", "parse_fact", "read_all", "read_file"]


class Format(Protocol):
    """The interface of a format's module: its name for `--format`, and its functions."""

    NAME: str
    TITLE: str

    def recognise_text(self, text: str) -> bool:
        """Whether the text has this format."""

    def read_runs(self, source: Source) -> list[ImportedRun]:
        """Every run in a file. Raises LoadstoneError if it is damaged."""


ALL: tuple[Format, ...] = (
    ycsb,
    ycsb_json,
    ycsb_cpp,
    go_ycsb,
    cassandra_stress,
    scylla_bench,
    latte,
    testdfsio,
    terasort,
    hbase_pe,
    fio,
    fio_normal,
    fio_terse,
    pgbench,
    sysbench,
    redis_benchmark,
    memtier,
    hyperfine,
    hlog,
    csv_table,
    json_paths,
)
FORMATS = {module.NAME: module for module in ALL}
# A figure is coarse if the place value of its last digit exceeds this share of the figure.
COARSE = 0.2
# A command line names the store and its host, so it may differ between variants; its options are separate facts.
COMMAND = {"command": "store.command"}
JSON = (ycsb_json, latte, fio, memtier, hyperfine)
# Formats based on lines, to which users add comments.
ANNOTATED = (ycsb, ycsb_cpp, go_ycsb, cassandra_stress, scylla_bench, testdfsio, terasort, hbase_pe, fio_normal,
             pgbench, sysbench, redis_benchmark, memtier)  # fmt: skip
# Formats whose rows cover one interval each. In other formats, rows are cumulative: a gap only lengthens an interval.
OF_INTERVALS = (cassandra_stress, scylla_bench, pgbench, sysbench)
# Output that contains only averages, from tools that can also write each repeat.
SUMMARIES = {
    "hyperfine's normal output": r"Time \((?:mean ± σ|abs ≡)\):",
    "hyperfine's CSV": r"(?m)^command,mean,stddev,median,",
    "hyperfine's table": r"\|\s?Command\s*\|\s*Mean \[",
}
# The number of unknown names that a note lists.
UNKNOWN_MAX = 6
# The fact that states when the run began, as a time with a zone; many tools do not print it.
START = "start"
SECOND_NS = 10**9
# Facts that become other parts of a result, and are not repeated among its facts.
NAMING = frozenset({"variant", "repeat", "clients", "loop", "hlog_unit", "partial", "json", START})


@dataclass(frozen=True)
class Imported:
    """One run of another tool, and the run's time series."""

    result: TrialResult
    series: Series | None = None
    # The file, if it is a log of this run's histograms in ns.
    log: Path | None = None


def read_file(path: Path, facts: Mapping[str, Scalar], format: str | None = None) -> list[Imported]:  # noqa: A002
    """Every run in a file, with the facts in its facts file and in `facts`, which take precedence.

    Raises LoadstoneError if the file is damaged, if its format is unknown, or if a fact is invalid.
    """
    source, chosen, written = open_source(path, facts, format)
    runs = name_runs(path, read_source(source, chosen), written, facts)
    is_log = chosen is FORMATS["hlog"] and len(runs) == 1 and UNIT in source.text and "hlog_unit" not in source.facts
    return [replace(imported, log=path) for imported in runs] if is_log else runs


def logs_of(imported: Iterable[Imported]) -> dict[str, Path]:
    """The histogram logs of trials, keyed by the trial's name."""
    return {run.result.trial: run.log for run in imported if run.log is not None}


def open_source(path: Path, facts: Mapping[str, Scalar], name: str | None) -> tuple[Source, Format, Facts]:
    """A file, its format, and the facts in its facts file. Raises LoadstoneError if the format is unknown."""
    written = load_companion(path)
    known = {**written.common, **facts}
    name = name or (json_paths.NAME if "json" in known else None)
    if name is not None and name not in FORMATS:
        raise LoadstoneError(f'there is no format "{name}"', f"known formats: {', '.join(FORMATS)}")
    text = decode_file(path)
    if name == json_paths.NAME:
        # The tool's own JSON lines may contain text that varies, so they resemble a collector's JSON.
        source = Source(path, text, known)
        with suppress(LoadstoneError):
            read_source(source.restart({}), FORMATS[name])
            return source, FORMATS[name], written
    text = strip_collector(text)
    prefix, bare = split_prefix(text)
    origin, grouped = ("", text) if prefix else split_origins(text)
    if prefix or origin:
        whole = Source(path, text, known)
        # The prefix may belong to the tool's output, so it is removed only if the text cannot be read with it. Some
        # formats are read with any prefix, so lines of several origins are first read separately.
        without = Source(path, strip_collector(bare if prefix else grouped), known, prefix=prefix or origin)
        for source in (whole, without) if prefix else (without, whole):
            with suppress(LoadstoneError):
                chosen = FORMATS[name] if name else detect_format(path, source.text)
                read_source(replace(source, used=set(), documents=[], passed=set()), chosen)
                return source, chosen, written
    return Source(path, text, known), FORMATS[name] if name else detect_format(path, text), written


def read_source(source: Source, chosen: Format) -> list[ImportedRun]:
    """Every run in a file. Raises LoadstoneError if the file is damaged or has no runs.

    An importer may skip a line because of the text after a figure. The file is then read again without this text.
    """
    error: LoadstoneError | None = None
    result: list[ImportedRun] = []
    try:
        result = read_lines(source, chosen)
    except LoadstoneError as refusal:
        error = refusal
    if chosen not in ANNOTATED:
        if error is not None:
            raise error
        return result
    return read_commented(source, lambda again: read_lines(again, chosen), result, error)


def read_lines(source: Source, chosen: Format) -> list[ImportedRun]:
    """Every run in a file, read once. Raises LoadstoneError if the file is damaged or has no runs."""
    name = source.path.name
    try:
        # Reports a damaged number that the importer itself does not detect.
        with source.report_damage(f"{chosen.TITLE} is damaged: {{error}}", "import the whole output of the tool"):
            result = chosen.read_runs(source)
    except MemoryError:
        raise LoadstoneError(f"{name} is too large for this host's memory", "import only part of it") from None
    gaps = source.row_gaps & source.used if chosen in OF_INTERVALS else ()
    removed = min(gaps, default=None)
    for run in result:
        if removed is not None:
            # The interval after a gap would seem to last as long as the whole gap.
            run.series = None
            run.add_note(
                "rows-left-out", f"rows were removed from the file before line {removed + 1}", "import all rows"
            )
        if negative := next((value for value in run.values if value.value < 0 and value.unit != "share"), None):
            raise source.error_at(f"{negative.metric} is negative", "import the whole output of the tool")
        if chosen is not csv_table:
            run.unknown |= dict.fromkeys(source.comments)
        if source.prefix:
            run.unknown[f"{source.prefix.strip()} before every line"] = None
    if not result:
        message = f"{name} has no results in the format {chosen.TITLE}"
        raise LoadstoneError(message, "import the whole output of the tool")
    return result


def read_all(paths: Iterable[Path], facts: Mapping[str, Scalar], format: str | None = None) -> list[Imported]:  # noqa: A002
    """Every run in several files, each trial with a unique id; a variant in several files has several repeats."""
    runs: list[Imported] = []
    repeats: Counter[tuple[tuple[str, Scalar], ...]] = Counter()
    known_paths: set[Path] = set()
    for path in paths:
        if path.resolve() in known_paths:
            hint = "name each file once: a file that is read twice is not a second repeat"
            raise LoadstoneError(f"{path} is named twice", hint)
        known_paths.add(path.resolve())
        before = dict(repeats)
        for imported in read_file(path, facts, format):
            result = imported.result
            key = key_of(result.config)
            repeat = result.repeat + before.get(key, 0)
            repeats[key] = max(repeats[key], repeat)
            runs.append(replace(imported, result=replace(result, repeat=repeat)))
    names = fio.number_names((imported.result.trial for imported in runs), ".")
    return [
        replace(imported, result=replace(imported.result, trial=name))
        for imported, name in zip(runs, names, strict=True)
    ]


def detect_format(path: Path, text: str) -> Format:
    """The format of a file. Raises LoadstoneError unless exactly one format matches."""
    # Only JSON has long lines; regular expressions take seconds for a line of 20 MB.
    short = text
    if max(map(len, text.split("\n"))) > LINE_MAX:
        short = "\n".join(line for line in text.split("\n") if len(line) <= LINE_MAX)
    matches = [module for module in FORMATS.values() if module.recognise_text(text if module in JSON else short)]
    if len(matches) > 1:
        titles = ", ".join(module.TITLE for module in matches)
        hint = f"choose one: loadstone import --format {matches[0].NAME}"
        raise LoadstoneError(f"{path.name} has results in several formats: {titles}", hint)
    if not matches and (known := next((title for title, sign in SUMMARIES.items() if re.search(sign, short)), None)):
        raise LoadstoneError(
            f"{path.name} is {known}, which does not contain the individual executions",
            "run hyperfine with --export-json FILE, and import that file",
        )
    if not matches:
        titles = ", ".join(module.TITLE for module in FORMATS.values() if module is not json_paths)
        raise LoadstoneError(
            f"the format of {path.name} is unknown",
            f"known formats: {titles}; for JSON from other tools, state paths: loadstone import --json",
        )
    return matches[0]


def name_runs(path: Path, runs: Sequence[ImportedRun], written: Facts, stated: Mapping[str, Scalar]) -> list[Imported]:
    """The runs with their names, repeats and facts. Raises LoadstoneError if a fact is invalid."""
    common = {**written.common, **stated}
    configs = configure_runs(path, runs, common)
    names = dict.fromkeys(str(config["variant"]) for config in configs)
    if unknown := next((name for name in written.variants if name not in names), None):
        message = f'there is no variant "{unknown}" in {path.name} ({written.path.name if written.path else ""})'
        raise LoadstoneError(message, f"the variants in {path.name} are {', '.join(names)}")
    facts = [{**written.common, **written.variants.get(str(config["variant"]), {}), **stated} for config in configs]
    clients = [clients_of(run, fact) for run, fact in zip(runs, facts, strict=True)]
    if clients_vary(clients):
        for config, number in zip(configs, clients, strict=True):
            config["clients"] = number or 0
    renamed = "variant" in common
    repeats = [
        number if run.repeat is None or renamed else run.repeat
        for run, number in zip(runs, number_keys(map(key_of, configs)), strict=True)
    ]
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-.") or "imported"
    return [
        Imported(
            TrialResult(
                trial=slug if len(runs) == 1 else f"{slug}-{index}",
                config=config,
                repeat=repeat,
                values=values_by_metric(*run.figures_with_bounds()),
                clients=number,
                loop=loop_of(run, fact),
                facts={
                    **collect_facts(run),
                    **assume_latency(run, fact),
                    **{name: value for name, value in fact.items() if name not in NAMING},
                    **{
                        f"{LOGGED}{name}": value
                        for name, value in find_contradictions(run, fact).items()
                        if name != START
                    },
                },
                statuses=run.statuses,
                end=run.end,
                notes=tuple(list_notes(run, fact)),
                start_unix_ns=parse_start(fact) or run.start_unix_ns,
            ),
            run.series,
        )
        for index, (run, config, repeat, number, fact) in enumerate(
            zip(runs, configs, repeats, clients, facts, strict=True), 1
        )
    ]


def parse_start(facts: Mapping[str, Scalar]) -> int | None:
    """The stated start of a run, ns since the epoch; None if no start is stated. Raises LoadstoneError if the start is
    not a time."""
    if START not in facts:
        return None
    try:
        moment = datetime.fromisoformat(str(facts[START]))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        message = f'{START} must be a time with a zone, got "{facts[START]}"'
        raise LoadstoneError(message, f"write it like {START}=2026-11-27T09:30:00Z")
    return round(moment.timestamp() * 1e9)


def coarse_figures(run: ImportedRun) -> list[str]:
    """The coarse means and percentiles; empty if a note already reports them."""
    if any(note.name == "coarse" for note in run.notes):
        return []
    return [
        value.metric
        for value in run.figures_with_bounds()
        if value.unit == "ns" and "." in value.metric and metric_statistic(value.metric) not in ("min", "max")
        and value.resolution > COARSE * value.value
    ]  # fmt: skip


def clients_vary(clients: Sequence[int | None]) -> bool:
    """Whether the number of clients is a dimension: it is known for every run, and differs between runs."""
    return None not in clients and len(set(clients)) > 1


def configure_runs(path: Path, runs: Sequence[ImportedRun], facts: Mapping[str, Scalar]) -> list[dict[str, Scalar]]:
    """The config of each run. The variant comes from a fact, the run's name or the file's name (with a number).

    Raises LoadstoneError if one fact would name several variants.
    """
    if "variant" in facts:
        own = dict.fromkeys(run.variant for run in runs)
        if len(own) > 1:
            raise LoadstoneError(
                f'the fact variant="{facts["variant"]}" would give {len(own)} variants the same name ({path.name})',
                "omit the fact: the file names its variants itself",
            )
        return [{"variant": str(facts["variant"]), **run.dimensions} for run in runs]
    sweep = clients_vary([run.clients for run in runs]) and "clients" not in facts
    keys = [(run.variant, tuple(run.dimensions.items()), run.clients if sweep else None) for run in runs]
    counts = Counter(keys)
    configs: list[dict[str, Scalar]] = []
    for run, key, number in zip(runs, keys, number_keys(keys), strict=True):
        # Runs with a repeat number are already distinct.
        apart = run.variant is None and run.repeat is None and counts[key] > 1
        configs.append({"variant": f"{path.stem}-{number}" if apart else run.variant or path.stem, **run.dimensions})
    return configs


def clients_of(run: ImportedRun, facts: Mapping[str, Scalar]) -> int | None:
    """The number of clients: from a fact, else from the log. Raises LoadstoneError if the fact is not a count."""
    stated = facts.get("clients")
    if stated is None:
        return run.clients
    if isinstance(stated, bool) or not isinstance(stated, int) or stated < 1:
        raise LoadstoneError(
            f'the fact "clients" must be a whole number of at least 1, got "{stated}"', "for example clients=4"
        )
    return stated


def collect_facts(run: ImportedRun) -> dict[str, Scalar]:
    """The facts in the log."""
    return {COMMAND.get(name, name): value for name, value in run.facts.items()}


def find_contradictions(run: ImportedRun, facts: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """For each fact whose stated value contradicts the log: the value in the log."""
    logged = collect_facts(run) | ({"clients": run.clients} if run.clients is not None else {})
    start, logged_start = parse_start(facts), run.start_unix_ns
    if start is not None and logged_start is not None and abs(start - logged_start) >= SECOND_NS:
        logged[START] = datetime.fromtimestamp(logged_start / SECOND_NS, UTC).isoformat(timespec="seconds")
    return {
        name: logged[name] for name, stated in facts.items() if name in logged and not is_equal(stated, logged[name])
    }


def is_equal(stated: Scalar, logged: Scalar) -> bool:
    """Whether two values are the same number, or the same text in any spelling."""
    try:
        return float(stated) == float(logged)
    except (ValueError, OverflowError):
        return normalize_spelling(stated) == normalize_spelling(logged)


def assume_latency(run: ImportedRun, facts: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The fact that latencies are service times, if only a fact states that the loop is open; otherwise, no fact."""
    is_stated = run.loop == "closed" and loop_of(run, facts) == "open"
    return {"latency": "service"} if is_stated and "tool" in run.facts and "latency" not in run.facts else {}


def loop_of(run: ImportedRun, facts: Mapping[str, Scalar]) -> Loop:
    """The type of loop: from a fact (a stated rate implies `open`), else from the log. Raises LoadstoneError if the
    fact is not `open` or `closed`."""
    stated = facts.get("loop", "open" if facts.get("target") else run.loop)
    if stated not in ("closed", "open"):
        raise LoadstoneError(
            f'the fact "loop" must be closed or open, got "{stated}"', "use `open` if the tool had a target rate"
        )
    return "open" if stated == "open" else "closed"


def list_notes(run: ImportedRun, facts: Mapping[str, Scalar]) -> Iterable[Note]:
    """The run's notes, and notes on unknown names, coarse figures and contradictions between a fact and the log."""
    yield from run.notes
    if run.unknown:
        names = units.list_items([f'"{name[:60]}"' for name in run.unknown], UNKNOWN_MAX)
        yield Note("unknown", f"unknown to this importer, and omitted: {names}", "see `loadstone import --explain`")
    if coarse := coarse_figures(run):
        message = (
            f"the last digit is more than {units.format_percent(COARSE)} of "
            f"{units.list_items(list(coarse), UNKNOWN_MAX)}"
        )
        yield Note("coarse", message, "have the tool print more digits, or use its histograms")
    if differing := find_contradictions(run, facts):
        values = units.list_items([f"{name} ({facts[name]} instead of {value})" for name, value in differing.items()])
        yield Note(
            "facts-disagree",
            f"stated facts override the log: {values}",
            "omit these facts unless the log is wrong",
        )
    if assume_latency(run, facts) and facts.get("latency", "service") == "service":
        stated = "a target rate is stated" if facts.get("target") else "an open loop is stated"
        message = f"{stated}, but the log's latencies are not known to include the wait for an idle client"
        yield Note("service-time", message, "state `latency=response` if the tool measured from the due time")
