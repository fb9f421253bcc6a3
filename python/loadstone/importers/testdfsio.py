"""The results file and the log of Hadoop's TestDFSIO.

Its MB is 2^20 bytes (`TestDFSIO.MEGA`). Its `Throughput` is the bytes of all files ÷ the sum of the tasks' times. This
is the mean speed of one task while other tasks run, not the speed of the cluster. Its `Average IO rate` is the
unweighted mean of the tasks' speeds. Neither is in operations per second, so neither is called throughput here.
(`Total Throughput`, which some versions print, divides MB by ms; it is omitted.)
"""

from __future__ import annotations

import re

from loadstone.importers.command_line import command_fact, hadoop_facts
from loadstone.importers.number import last_digit, parse_decimal_comma
from loadstone.importers.run import ImportedRun
from loadstone.importers.source import Source, is_log_prefix
from loadstone.importers.unit import base_unit

NAME = "testdfsio"
TITLE = "TestDFSIO results"
MEGA = 1 << 20
BEGIN = re.compile(r"----- TestDFSIO ----- :\s*((?:random|backward|skip) read|\S+)(?:\s+(\S.*?))?\s*$")
# The tests of Hadoop 3 (TestDFSIO.TestType).
KNOWN = ("read", "write", "cleanup", "append", "random read", "backward read", "skip read", "truncate")
FIELDS = (
    "Number of files",
    "Total MBytes processed",
    "Throughput mb/sec",
    "Average IO rate mb/sec",
    "IO rate std deviation",
    "Test exec time sec",
)
# Some versions and many users add a comment after the number.
FIELD = re.compile(
    rf"(?<!Total )({'|'.join(FIELDS)}):\s*(\d\S*?(?=[A-Za-z/]*[:;,!?]*(?:\s|$))|\S+?)"
    r"((?<=\d)[A-Za-z/]+|)([:;,!?]*(?:\s+\S.*?)?)\s*$"
)
WORD = re.compile(r"[A-Za-zµμ%][\w/%]*")
# The units that may follow a field's number.
MEGA_UNITS = ("mb", "mb/s", "mb/sec", "mbytes", "mib", "mib/s")
UNITS = {"time sec": ("s", "sec", "secs", "seconds"), "files": ("files",), "mb": MEGA_UNITS, "deviation": MEGA_UNITS}
# TestDFSIO prints two decimals, or all decimals of a double, so three digits after a comma are ambiguous.
GROUPED = re.compile(r"\d{1,3}(,\d{3})+")
COMMAND = re.compile(r"(TestDFSIO\s+-[a-zA-Z].*)$")
# Options that the result repeats, or that state locations.
NOT_OF_WORK = ("read", "write", "append", "clean", "random", "backward", "skip", "truncate",
               "nrFiles", "size", "fileSize", "resFile", "baseDir")  # fmt: skip
CUT = "import the file TestDFSIO_results.log, or the whole log of the job"


def recognise_text(text: str) -> bool:
    """Whether the text contains a result of TestDFSIO, or a job that should have a result."""
    return "----- TestDFSIO -----" in text or "fs.TestDFSIO: TestDFSIO." in text


def read_runs(source: Source) -> list[ImportedRun]:
    """Every result in the file. Raises LoadstoneError if a result is truncated or missing."""
    blocks: list[tuple[str, int, dict[str, tuple[float | None, float]]]] = []
    commands: list[str] = []
    comments: dict[str, None] = {}
    for index, line in enumerate(source.bare_lines):
        if command := COMMAND.search(line):
            commands.append(command[1])
            source.used.add(index)
        elif (match := BEGIN.search(line)) and has_log_prefix(line[: match.start()]):
            blocks.append((match[1], index, {}))
            comments |= {match[2]: None} if match[2] else {}
            source.used.add(index)
        elif blocks and (match := FIELD.search(line)) and has_log_prefix(line[: match.start()]):
            with source.report_damage(f"{match[1]} is not a number: {match[2][:40]}", CUT, index):
                if GROUPED.fullmatch(match[2]):
                    message = f"{match[1]} is ambiguous: a comma before three digits may separate decimals or thousands"
                    raise source.error_at(f"{message}: {match[2]}", "write the number with a decimal point", index)
                check_unit(match, source, index)
                value = parse_decimal_comma(match[2])
                figure = value, last_digit(match[2])
                if blocks[-1][2].setdefault(match[1], figure) != figure:
                    raise source.error_at(f"the TestDFSIO result has {match[1]} twice", CUT, index)
            if index == source.last and source.torn and not match[3] and not match[4].strip():
                # The last digits of the number may be missing.
                blocks[-1][2][match[1]] = None, 0.0
            if match[4]:
                comments[match[4].strip()] = None
            source.used.add(index)
    if not blocks:
        raise source.error_at("the TestDFSIO log is truncated: it has no result", CUT)
    result = [read_result(test, index, block, source) for test, index, block in blocks]
    for number, test_run in enumerate(result):
        test_run.unknown |= comments
        if len(commands) == len(result):
            test_run.facts |= {"command": command_fact(commands[number]), **hadoop_facts(commands[number], NOT_OF_WORK)}
    return result


def check_unit(match: re.Match[str], source: Source, index: int) -> None:
    """Raises an error if the number of a field is followed by a unit that differs from the unit of the field."""
    word = match[3] or ((name := WORD.match(match[4].strip())) and name[0]) or ""
    units = next((units for part, units in UNITS.items() if part in match[1].lower()), ())
    if word.lower() in units or not word:
        return
    if match[3]:
        raise ValueError(f"unknown unit {word}")
    if base_unit(word) is not None:
        raise source.error_at(f"{match[1]} is printed in {word}", "write the number in the unit of its name", index)


def has_log_prefix(before: str) -> bool:
    """Whether the prefix of a line results from quoting, a log collector or log4j."""
    return is_log_prefix(before) or "TestDFSIO" in before


def read_result(test: str, index: int, block: dict[str, tuple[float | None, float]], source: Source) -> ImportedRun:
    """The figures of a result; a figure that is not a number (because no time was measured) is omitted."""
    if missing := next((name for name in FIELDS if name not in block), None):
        raise source.error_at(f'the TestDFSIO result is truncated: it has no "{missing}"', CUT, index)
    operation = re.sub(r"[^a-z0-9]+", "_", test.lower()).strip("_") or "test"
    files, size, speed, rate, deviation, seconds = (block[name][0] for name in FIELDS)
    n = int(files or 0)
    if not n and size:
        raise source.error_at("the TestDFSIO result has bytes, but no files", CUT, index)
    run = ImportedRun(dimensions={"test": operation}, facts={"tool": NAME, "bandwidth_of": "task", "files": n})
    run.facts["action"] = operation
    run.unknown |= {} if test in KNOWN else {f"the test {test}": None}
    if size is not None:
        run.facts["bytes"] = int(size * MEGA)
        if n:
            run.facts["file_bytes"] = int(size * MEGA / n)
    steps = {name: digit for name, (_, digit) in block.items()}
    for name, label, value in zip(
        ("bandwidth", "io_rate", "io_rate_stddev"), FIELDS[2:5], (speed, rate, deviation), strict=True
    ):
        figure = None if value is None else value * MEGA
        run.add_figure(f"{operation}.{name}", figure, "B/s", n, steps[label] * MEGA)
    run.add_figure("runtime", None if seconds is None else seconds * 1e9, "ns", 1, steps[FIELDS[5]] * 1e9)
    return run
