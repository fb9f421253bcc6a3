"""The report of redis-benchmark from Redis 2 to 8: as text, in short form (`-q`), or as CSV (`--csv`).

Each test (SET, GET, …) is a run. Reports up to version 6.0 state how many operations completed within each whole
number of milliseconds, so percentiles are known only to 1 ms. With `-P`, a latency covers a whole pipeline.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field

from loadstone.importers.command_line import command_fact, find_command, option_facts, split_command
from loadstone.importers.number import number_or_text, parse_number
from loadstone.importers.run import ALL, OPERATIONS, ImportedRun
from loadstone.importers.source import Source
from loadstone.results.trial_result import Scalar
from loadstone.results.value import PERCENTILES

NAME = "redis-benchmark"
TITLE = "redis-benchmark"
PROGRAM = r"(?:redis|valkey|keydb)-benchmark(?![\w.-])"
BEGIN = re.compile(r"====== (.+?) ======\s*$")
# redis-benchmark prints error replies only with `-e`.
REPLY = re.compile(r"^Error from server: (.+)$")
COMPLETED = re.compile(r"^\s+(\d+) requests completed in ([\d.]+) seconds")
SETTING = re.compile(
    r"^\s+(?:(\d+) (parallel clients|bytes payload)|(keep alive|multi-thread|threads|cluster mode): (\S.*?)"
    r"|host configuration \"(\w+)\":\s*(.*?))\s*$"
)
# The configuration of a node of a cluster.
NODE = re.compile(r"^ {4}(save|appendonly):\s*(.*?)\s*$")
SHARE = re.compile(r"^([\d.]+)% <= ([\d.]+) (?:milliseconds|msec)")
OLD_END = re.compile(r"^([\d.]+|-?nan|inf) requests per second\s*$")
RATE = re.compile(r"^\s+throughput summary: ([\d.]+|-?nan|inf) requests per second")
COLUMNS = re.compile(r"^\s+avg\s+min\s+p50")
# The beginning of a test that was interrupted.
PROGRESS = re.compile(r"(?m)^[^\n:]+: rps=[\d.]+ \(overall: \S+\) avg_msec=")
# If the user states a command, the test is named after it.
QUIET = re.compile(r"^(\S.*?): ([\d.]+) requests per second(?:, p50=([\d.]+) msec)?\s*$")
CSV_HEADER = '"test","rps"'
CSV_ROW = re.compile(r'^"([^"]+)","([\d.]+)"((?:,"[^"]*")*)$')
STATISTIC = re.compile(r"avg|min|max|p[\d.]+")
MS = 1e6
FACTS = {"parallel clients": "clients", "bytes payload": "record_bytes", "keep alive": "keep_alive"}
# Options without a value, and options that the result repeats, that state a connection, or that set the output's form.
FLAGS = ("l", "I", "q", "e", "x", "z", "3", "4", "6", "csv", "cluster", "tls", "insecure", "enable-tracking")
NOT_OF_WORK = ("h", "p", "s", "a", "u", "c", "n", "d", "P", "r", "t", "k", "l", "q", "e", "csv", "threads", "precision",
               "seed", "dbnum", "cacert", "cacertdir", "cert", "key", "sni", "insecure", "4", "6")  # fmt: skip
# The defaults of options (redis-benchmark.c). By default, requests are not pipelined, and all requests access one key.
DEFAULTS = {"clients": ("c", 50), "record_bytes": ("d", 3), "keep_alive": ("k", 1), "pipeline": ("P", 1),
            "keyspace": ("r", 1)}  # fmt: skip
CUT = "import redis-benchmark's whole output"


@dataclass
class Test:
    """The output of one test."""

    name: str
    line: int
    facts: dict[str, Scalar] = field(default_factory=dict)
    # The number of requests; None until the result is read.
    requests: int | None = None
    seconds: str = ""
    shares: list[tuple[float, str]] = field(default_factory=list)
    rate: str = ""
    # Latencies in ms, keyed by statistic.
    latencies: dict[str, str] = field(default_factory=dict)
    # The column names of the row that follows.
    columns: list[str] = field(default_factory=list)
    whole: bool = False
    # Whether the result is a single line: in CSV, or with `-q`.
    single: bool = False


def recognise_text(text: str) -> bool:
    """Whether the text contains the result of a test, or the beginning of a test."""
    return (
        CSV_HEADER in text
        or PROGRESS.search(text) is not None
        or (
            "requests" in text
            and any(
                # Text may precede the result. A search takes time ∝ length², so only lines with a marker are searched.
                re.search(pattern.pattern.removeprefix("^").removesuffix(r"\s*$"), line) is not None
                for line in text.split("\n")
                for sign, pattern in (("======", BEGIN), (" requests per second", QUIET))
                if sign in line
            )
        )
        or re.search(r'(?m)^"(?:PING_INLINE|PING_BULK|PING_MBULK|SET|GET)","[\d.]+"\s*$', text) is not None
    )


def read_runs(source: Source) -> list[ImportedRun]:
    """Every test in the file. Raises LoadstoneError if a test is truncated."""
    tests: list[Test] = []
    command = ""
    header: list[str] = []
    unread: int | None = None
    replies: list[str] = []
    for index, line in enumerate(source.bare_lines):
        torn = source.torn and index == source.last
        if line_command := find_command(line, PROGRAM):
            command = line_command
        elif match := REPLY.match(line):
            replies.append(match[1])
        elif match := BEGIN.search(line):
            tests.append(Test(match[1], index))
        elif line.startswith(CSV_HEADER):
            header = next(csv.reader([line]))[2:]
        elif match := CSV_ROW.match(line):
            cells = next(csv.reader([match[3]]))[1:] if match[3] else []
            if len(cells) != len(header):
                raise source.error_at(f"a row has {len(cells) + 2} cells for {len(header) + 2} columns", CUT, index)
            tests.append(
                Test(
                    match[1],
                    index,
                    rate=match[2],
                    latencies=dict(zip(header, cells, strict=True)),
                    whole=True,
                    single=True,
                )
            )
        elif match := QUIET.match(line):
            latencies = {"p50_latency_ms": match[3]} if match[3] else {}
            tests.append(Test(match[1], index, rate=match[2], latencies=latencies, whole=True, single=True))
        elif not tests or tests[-1].whole:
            # No error yet: the row may be readable without the comment after its figures.
            unread = index if header and line.startswith('"') and unread is None else unread
            continue
        else:
            with source.report_damage(
                f"the test {tests[-1].name} of redis-benchmark is damaged: {{error}}", CUT, index
            ):
                if not parse_line(tests[-1], line, torn):
                    continue
        source.used.add(index)
    if unread is not None:
        raise source.error_at("a row of redis-benchmark's CSV is damaged", CUT, unread)
    for test in tests:
        if not test.whole:
            message = f"the test {test.name} of redis-benchmark is truncated: its end is missing"
            raise source.error_at(message, CUT, test.line)
    result = []
    for test in tests:
        with source.report_damage(f"the test {test.name} of redis-benchmark is damaged: {{error}}", CUT, test.line):
            result.append(read_test(test, command))
            # The replies may precede or follow the line of their test.
            result[-1].note_replies(replies)
    return result


def parse_line(test: Test, line: str, torn: bool) -> bool:
    """Parses a line of a test, and returns whether it was recognised.

    The last number of a torn line is ignored, because it may be truncated.
    """
    if match := COMPLETED.match(line):
        if test.requests is not None:
            raise ValueError("it has two results")
        test.requests, test.seconds = int(match[1]), match[2]
    elif match := SETTING.match(line):
        if (FACTS.get(match[2] or "") or match[5] or re.sub(r"\W", "_", match[3] or "")) in test.facts:
            raise ValueError("a setting occurs twice")
        if match[2]:
            test.facts[FACTS[match[2]]] = int(match[1])
        elif match[5]:
            test.facts[match[5]] = match[6] or "none"
        else:
            test.facts[re.sub(r"\W", "_", match[3])] = match[4]
    elif match := NODE.match(line):
        values = str(test.facts.get(match[1], "")).split("; ") if match[1] in test.facts else []
        test.facts[match[1]] = "; ".join(dict.fromkeys([*values, match[2] or "none"]))
    elif match := SHARE.match(line):
        if test.shares and float(match[1]) / 100 < test.shares[-1][0] and "(cumulative" not in line:
            raise ValueError("its cumulative shares decrease")
        test.shares.append((float(match[1]) / 100, match[2]))
    elif match := RATE.match(line):
        if test.rate:
            raise ValueError("it has two rates")
        test.rate = match[1]
    elif COLUMNS.match(line):
        test.columns = line.split()
    elif match := OLD_END.match(line):
        test.rate, test.whole = match[1], True
    elif test.columns and line.strip():
        cells = line.split()
        if torn:
            cells.pop()
        if len(cells) not in (len(test.columns), len(test.columns) - torn):
            return False
        test.latencies = {f"{name}_latency_ms": cell for name, cell in zip(test.columns, cells, strict=False)}
        test.whole = True
    else:
        return False
    return True


def read_test(test: Test, command: str) -> ImportedRun:
    """The figures of a test. Raises ValueError if a figure is not a number."""
    run = ImportedRun(dimensions={"test": test.name}, facts={"tool": NAME, "latency": "service"})
    options = parse_command(command)
    if command:
        run.facts |= {"command": command_fact(command), **option_facts(options, NOT_OF_WORK)}
        # Some results do not state the number of threads, but the command may.
        run.facts |= {"threads": options["threads"]} if "threads" in options else {}
        run.facts |= {name: number_or_text(options.get(letter, str(default)))
                      for name, (letter, default) in DEFAULTS.items()}  # fmt: skip
    run.facts |= test.facts
    clients = run.facts.pop("clients", None)
    run.clients = int(clients) if clients else None
    rate = parse_number(test.rate) or 0.0
    n = int(options.get("n", 0)) if test.requests is None else test.requests
    if test.requests is None and not test.single:
        raise ValueError("it has no number of requests")
    if test.seconds and abs(float(test.seconds) * rate - n) > 0.0055 * rate + 1:
        raise ValueError(f"{n} requests in {test.seconds} s contradict its {test.rate} requests per second")
    operation = re.sub(r"[^a-z0-9]+", "_", test.name.lower().partition(" ")[0]).strip("_")
    run.add_text("throughput", test.rate, 1.0, "op/s", n)
    if test.seconds:
        run.add_text("runtime", test.seconds, 1e9, "ns", 1)
        run.add_figure("operations", n, OPERATIONS, n)
    # A pipeline's latency covers several operations, so it cannot be used in Little's law.
    names = (operation,) if run.facts.get("pipeline", 1) != 1 else (operation, ALL)
    for name in names:
        for label, text in test.latencies.items():
            statistic = label.removesuffix("_latency_ms")
            if not STATISTIC.fullmatch(statistic):
                run.unknown[label] = None
                continue
            run.add_text(f"{name}.{'mean' if statistic == 'avg' else statistic}", text, MS, "ns", n)
        if not test.latencies:
            add_shares(test, name, n, run)
    return run


def parse_command(command: str) -> dict[str, str]:
    """The options in a command line; a Redis command may follow them."""
    options: dict[str, str] = {}
    arguments = iter(split_command(command)[1:])
    for word in arguments:
        if not word.startswith("-"):
            break
        name = word.lstrip("-")
        options[name] = "true" if name in FLAGS else next(arguments, "")
    return options


def add_shares(test: Test, name: str, n: int, run: ImportedRun) -> None:
    """Adds percentiles, as upper bounds, from the shares of operations that completed within certain times."""
    for statistic, share in {**PERCENTILES, "max": 1.0}.items():
        for within, text in test.shares:
            if within >= share:
                value = float(text)
                below = max((float(other) for _, other in test.shares if float(other) < value), default=0.0)
                run.add_figure(f"{name}.{statistic}", value * MS, "ns", n, (value - below) * MS)
                break
