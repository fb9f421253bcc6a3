"""The report of pgbench in PostgreSQL 9.4 to 17.

Without `-P`, `-r`, `-R` or `-L`, pgbench does not time transactions: its `latency average` is clients × time ÷
transactions, and it prints no standard deviation. With a rate (`-R`), latency is measured from the scheduled start:
it is response time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from loadstone.importers.command_line import command_fact, find_command, option_facts, parse_options, split_command
from loadstone.importers.number import number_or_text, parse_number
from loadstone.importers.run import (
    ALL,
    OPERATIONS,
    ImportedRun,
    build_series,
    check_total,
    mix_fact,
    set_once,
)
from loadstone.importers.source import Source

NAME = "pgbench"
TITLE = "pgbench"
VERSION = re.compile(r"pgbench \((\d[\w.]*)")
FIELD = re.compile(
    r"(transaction type|scaling factor|query mode|number of [\w ]+?|maximum number of tries|duration|latency \w+"
    r"|rate limit schedule lag|total number of retries|(?:initial|average) connection time)(?: =|:)"
    r" (\d[\d./]*(?: m?s)?(?: \((?:[\d.]+ ?%|including failures)\))?|[^\d\s].*?)\s*$"
)
TPS = re.compile(r"tps = (\S+) \((.*)\)\s*$")
PROGRESS = re.compile(r"progress: ([\d.]+) s, ([\d.]+) tps, lat (\S+) ms stddev (\S+?)(?:,|\s|$)")
SCRIPT = re.compile(r"SQL script (\d+): (<.*>|<[^>]+|[^<].*?)\s*$")
SCRIPT_COUNT = re.compile(r" - (\d+) transactions \([\d.]+% of total, tps = ([\d.]+)\)")
SCRIPT_LATENCY = re.compile(r" - latency average = ([\d.]+) ms")
# A client stops at its first error, such as a deadlock; before version 11, only the client's line reports this.
ABORTED = re.compile(r"results are incomplete|^(?:pgbench: error: )?[Cc]lient \d+ .*aborted")
MS = 1e6
# The words by which pgbench qualifies a tps figure, in order of preference.
RATES = ("without", "excluding", "including reconnection")
FACTS = {"script": "transaction type", "query_mode": "query mode", "threads": "number of threads",
         "tries": "maximum number of tries"}  # fmt: skip
READ = ("scaling factor", "number of clients", "duration", "latency average", "number of failed transactions",
        "number of transactions actually processed", "number of transactions skipped")  # fmt: skip
# Short options of pgbench and their long names, and options without a value (pgbench(1)).
LETTERS = {"b": "builtin", "c": "client", "C": "connect", "d": "debug", "D": "define", "f": "file", "F": "fillfactor",
           "h": "host", "j": "jobs", "l": "log", "L": "latency-limit", "M": "protocol", "n": "no-vacuum",
           "N": "skip-some-updates", "p": "port", "P": "progress", "r": "report-per-command", "R": "rate", "s": "scale",
           "S": "select-only", "t": "transactions", "T": "time", "U": "username", "v": "vacuum-all"}  # fmt: skip
FLAGS = ("connect", "debug", "log", "no-vacuum", "skip-some-updates", "report-per-command", "report-latencies",
         "select-only", "vacuum-all", "progress-timestamp", "exit-on-abort", "failures-detailed", "verbose-errors",
         "quiet")  # fmt: skip
# Options that do not affect the work during the run, that the report repeats, or that describe the connection.
NOT_OF_WORK = (*(name for name in FLAGS if name != "connect"), *("builtin", "client", "jobs", "protocol", "scale"),
               *("file", "transactions", "time", "rate", "max-tries", "progress", "host", "port", "dbname",
                 "random-seed", "log-prefix", "aggregate-interval", "sampling-rate"))  # fmt: skip
# The values of options that the command omits.
DEFAULTS = {"connect": "false", "define": "none", "latency-limit": "none"}
# Rows of pgbench_accounts per unit of the scaling factor (pgbench.c).
ROWS_PER_SCALE = 100_000
CUT = "import pgbench's whole output, up to its tps"


@dataclass
class PgbenchReport:
    """The output of one run."""

    line: int = 0
    version: str = ""
    command: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    # Rates, keyed by the words that qualify them: `without initial connection time`.
    tps: dict[str, str] = field(default_factory=dict)
    progress: list[tuple[float, float, float | None]] = field(default_factory=list)
    # For each script: the number of its transactions, its tps and its mean latency.
    scripts: dict[str, dict[str, str]] = field(default_factory=dict)
    aborted: bool = False
    # Whether a user removed progress lines.
    removed: bool = False


def recognise_text(text: str) -> bool:
    """Whether the text contains a report, or the progress of a run."""
    return (
        "number of transactions actually processed" in text
        or ("progress: " in text and " tps, lat " in text)
        or ("transaction type: " in text and "scaling factor: " in text)
    )


def read_runs(source: Source) -> list[ImportedRun]:
    """Every run in the file. Raises LoadstoneError if a run is truncated."""
    reports = [PgbenchReport()]
    for index, line in enumerate(source.bare_lines):
        report = reports[-1]
        starts = VERSION.search(line) or PROGRESS.search(line) or line.startswith("transaction type:")
        progress = PROGRESS.search(line)
        # A run that was interrupted has no report; the next run counts its time from 0 again.
        restarts = progress and report.progress and float(progress[1]) < report.progress[-1][0]
        if ((starts or find_pgbench(line)) and report.tps) or restarts:
            report = PgbenchReport(line=index)
            reports.append(report)
        report.removed = report.removed or index in source.row_gaps
        with source.report_damage("a line of pgbench's report is damaged: {error}", CUT, index):
            if parse_line(report, line):
                source.used.add(index)
    if len(reports) > 1 and not reports[-1].fields and not reports[-1].progress:
        reports.pop()
    return [read_report(report, source) for report in reports]


def find_pgbench(line: str) -> str | None:
    """The pgbench command in a line; the name of a database may precede its options."""
    return find_command(line, "pgbench", 1)


def parse_line(report: PgbenchReport, line: str) -> bool:
    """Parses a line, and returns whether it was recognised. Raises ValueError if it is damaged."""
    if match := VERSION.search(line):
        report.version = match[1]
    elif command := find_pgbench(line):
        report.command = command
    elif match := PROGRESS.search(line):
        report.progress.append((float(match[1]), float(match[2]), parse_number(match[3])))
    elif match := TPS.search(line):
        set_once(report.tps, match[2], match[1])
    elif match := SCRIPT.search(line):
        if match[2].startswith("<") != match[2].endswith(">"):
            raise ValueError("the name of a script is truncated")
        report.scripts[match[2]] = {}
    elif report.scripts and (match := SCRIPT_COUNT.match(line) or SCRIPT_LATENCY.match(line)):
        script = report.scripts[next(reversed(report.scripts))]
        if match.lastindex == 2:
            script["tps"] = match[2]
        if script.setdefault("latency" if "latency" in line else "count", match[1]) != match[1]:
            raise ValueError("a figure of a script has two different values")
    elif ABORTED.search(line):
        report.aborted = True
    elif not report.tps and (match := FIELD.search(line)):
        set_once(report.fields, match[1], match[2])
    else:
        return False
    return True


def read_report(report: PgbenchReport, source: Source) -> ImportedRun:
    """A report's figures. Raises LoadstoneError if it is truncated."""
    fields = report.fields
    # With `-C`, each transaction opens a connection: since version 14, only the rate with connection time is printed.
    rate = next((text for start in RATES for name, text in report.tps.items() if name.startswith(start)), None)
    several = fields.get("transaction type", "").startswith("multiple")
    if rate is None and fields.get("number of transactions actually processed", "").split("/")[0] == "0":
        # Since version 14, pgbench prints neither latency nor tps if no transaction completed.
        raise source.error_at("the pgbench run completed no transactions", "run it for longer", report.line)
    if rate is None or "number of transactions actually processed" not in fields:
        raise source.error_at("the pgbench report is truncated: it has no tps excluding connections", CUT, report.line)
    run = ImportedRun(facts={"tool": NAME}, end="failed" if report.aborted else "done")
    with source.report_damage("the pgbench report is damaged: {error}", CUT, report.line):
        done = int(fields["number of transactions actually processed"].split("/")[0])
        if "maximum number of tries" in fields and "number of failed transactions" not in fields:
            # Every version that prints the number of tries also prints the number of failed transactions.
            raise ValueError("it has no number of failed transactions")
        failed = first_count(fields.get("number of failed transactions", "0"))
        skipped = first_count(fields.get("number of transactions skipped", "0"))
        add_facts(report, run)
        if report.aborted:
            message = "pgbench reports that clients stopped because of errors: its figures are incomplete"
            run.add_note("failed", message, "see the error messages of pgbench")
        check_times(report, done)
        run.statuses["TRANSACTION"] = {"OK": done, **({"FAILED": failed} if failed else {}),
                                       **({"SKIPPED": skipped} if skipped else {})}  # fmt: skip
        run.add_text("throughput", rate, 1.0, "op/s", done)
        speed = parse_number(rate)
        run.add_figure("runtime", done / speed * 1e9 if speed else None, "ns", 1)
        run.add_figure("operations", done + failed + skipped, OPERATIONS, done + failed + skipped)
        run.add_figure("errors", failed + skipped, OPERATIONS, done + failed + skipped)
        if latency := fields.get("latency average"):
            run.add_text(f"{ALL}.mean", latency.split(" ")[0], MS, "ns", done)
            if "latency stddev" not in fields:
                run.add_note("derived", "pgbench computed its mean latency from clients, time and transactions",
                         "run pgbench with -r or -P 10, which measure each transaction")  # fmt: skip
        if several:
            add_scripts(report, run, done, source)
    run.series = build_series(rows_of(report))
    run.omitted |= {"progress, except throughput": None} if report.progress else {}
    return run


def check_times(report: PgbenchReport, done: int) -> None:
    """Raises ValueError if the rate, duration, progress and number of transactions contradict each other."""
    rows = rows_of(report)
    printed = sum(rate * length for _, length, rate in rows)
    if printed > 1.01 * done + 1 + 0.1 * sum(length for _, length, _ in rows):
        raise ValueError(f"its progress covers {printed:,.0f} transactions, but its total is {done:,}")
    # If tps excludes connection time, transactions ÷ tps is less than the duration of a run that reconnects.
    rate = next((text for start in reversed(RATES) for name, text in report.tps.items() if name.startswith(start)), "0")
    including = next((text for name, text in report.tps.items() if name.startswith("including")), rate)
    speed, duration = parse_number(including), re.match(r"(\d+) s$", report.fields.get("duration", ""))
    mean, connecting = (
        (parse_number(report.fields.get(name, "0").split(" ")[0]) or 0.0) / 1000
        for name in ("latency average", "initial connection time")
    )
    # The last transactions complete after the duration, and clients connect before their first transaction.
    late = 10 * mean + connecting
    until = rows[-1][0] + rows[-1][1] if rows else 0.0
    if speed and rows and abs(printed - speed * until) > 1 + 0.05 * printed + (0.5 + late) * speed:
        raise ValueError(f"its progress contradicts its {speed:,g} transactions per second")
    if not speed or duration is None or report.aborted:
        return
    seconds, stated = done / speed, float(duration[1])
    if not 0.95 * stated - 0.5 - connecting <= seconds <= 1.05 * stated + 1 + late:
        raise ValueError(f"{done:,} transactions at {speed:,g} per second contradict its duration of {stated:g} s")


def first_count(text: str) -> int:
    """The count in `12 (0.100%)`."""
    return int(text.split(" ")[0])


def add_facts(report: PgbenchReport, run: ImportedRun) -> None:
    """Adds clients, loop and facts about the work. Raises ValueError if a count is not a number."""
    fields = report.fields
    run.clients = int(fields["number of clients"]) if "number of clients" in fields else None
    run.facts |= {"version": report.version} if report.version else {}
    options = parse_options(split_command(report.command)[1:], LETTERS, FLAGS)
    if report.command:
        run.facts |= {"command": command_fact(report.command), **option_facts(DEFAULTS | options, NOT_OF_WORK)}
    for fact, name in FACTS.items():
        if name in fields:
            run.facts[fact] = number_or_text(fields[name])
    # Before version 15, pgbench tries each transaction once.
    run.facts.setdefault("tries", 1)
    run.omitted |= dict.fromkeys(name for name in fields if name not in (*READ, *FACTS.values()))
    if "scaling factor" in fields:
        run.facts["scale"] = int(fields["scaling factor"])
        # `select only` and the other built-in scripts use the tables that pgbench creates.
        if "<builtin" in fields.get("transaction type", "") or any("<builtin" in name for name in report.scripts):
            run.facts["records"] = run.facts["scale"] * ROWS_PER_SCALE
    if "rate limit schedule lag" in fields:
        run.loop = "open"
        run.facts["latency"] = "response"
        if isinstance(rate := number_or_text(options.get("rate", "")), int | float):
            run.facts["target"] = float(rate)


def add_scripts(report: PgbenchReport, run: ImportedRun, done: int, source: Source) -> None:
    """Adds the figures of each script. Raises an error if a figure is missing, or if figures contradict the totals."""
    counts = {name: int(script["count"]) for name, script in report.scripts.items()}
    check_total(source, sum(counts.values()), done, report.line)
    rates = [float(script["tps"]) for script in report.scripts.values()]
    printed = [float(text) for text in report.tps.values()]
    if not any(abs(sum(rates) - rate) <= 0.01 * rate + 0.01 for rate in printed):
        raise ValueError(f"the rates of its scripts add up to {sum(rates):,g}, but its tps is {printed[-1]:,g}")
    run.facts["mix"] = mix_fact(counts)
    for name, script in report.scripts.items():
        if "latency" in script:
            operation = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
            run.add_text(f"{operation}.mean", script["latency"], MS, "ns", counts[name])


def rows_of(report: PgbenchReport) -> list[tuple[float, float, float]]:
    """The progress lines as rows of a time series."""
    rows, at = [], 0.0
    for until, rate, _ in () if report.removed else report.progress:
        if until > at:
            rows.append((at, until - at, rate))
            at = until
    return rows
