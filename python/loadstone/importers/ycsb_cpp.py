"""YCSB-cpp's output: three lines for each phase, and cumulative status lines.

Latencies are service times in µs. Percentiles are read from the last status line, if it covers all operations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from loadstone.importers.number import last_digit, parse_number
from loadstone.importers.run import OPERATIONS, ImportedRun, build_series, check_total
from loadstone.importers.source import Source
from loadstone.importers.ycsb_command import add_facts, parse_command, parse_whole_number
from loadstone.results.trial_result import Series

NAME = "ycsb-cpp"
TITLE = "YCSB-cpp"
LINE = re.compile(r"\b(Load|Run) (runtime\(sec\)|operations\(ops\)|throughput\(ops/sec\)): (\S+)\s*$")
STATUS = re.compile(r"(\d+) sec: (\d+) operations;(.*)$")
BLOCK = re.compile(r"\[([\w-]+): Count=(\d+) ([^\]]*)\]")
COMMAND = re.compile(r"ycsb(?:\.exe)? (-\S.*)$")
FIGURES = {"Max": "max", "Min": "min", "Avg": "mean"}
# The lines of a summary, in the order in which they are printed. The last line ends a phase.
FIELDS = ("runtime(sec)", "operations(ops)", "throughput(ops/sec)")
US = 1e3
CUT = "import the whole output of YCSB-cpp, up to its throughput"


@dataclass
class Phase:
    """The output of one phase."""

    name: str = ""
    lines: dict[str, str] = field(default_factory=dict)
    # Seconds, operations so far, and the text about each operation.
    statuses: list[tuple[int, int, str]] = field(default_factory=list)


def recognise_text(text: str) -> bool:
    """Whether the text contains the summary of a phase."""
    return re.search(r"(?m)^[^\w\n]*+(?:\S+ *\| *)?(?:Load|Run) runtime\(sec\):", text) is not None


def read_runs(source: Source) -> list[ImportedRun]:
    """Every phase in the file. Raises LoadstoneError if a phase is truncated."""
    phases = [Phase()]
    command = ""
    for index, line in enumerate(source.bare_lines):
        if match := COMMAND.search(line):
            command = match[1]
        elif match := STATUS.search(line):
            if phases[-1].statuses and int(match[1]) < phases[-1].statuses[-1][0]:
                message = "a phase is truncated: its status lines begin again, but it has no summary"
                raise source.error_at(message, CUT, index)
            phases[-1].statuses.append((int(match[1]), int(match[2]), match[3]))
        elif BLOCK.match(line) and phases[-1].statuses:
            # The status line was wrapped.
            until, total, text = phases[-1].statuses[-1]
            phases[-1].statuses[-1] = until, total, f"{text} {line}"
        elif match := LINE.search(line):
            if index == source.last and source.torn:
                raise source.error_at("the YCSB-cpp output is truncated within its last line", CUT, index)
            if match[2] in phases[-1].lines or match[1] != (phases[-1].name or match[1]):
                raise source.error_at("the summary of a phase is truncated: another summary follows", CUT, index)
            phases[-1].name, phases[-1].lines[match[2]] = match[1], match[3]
            if match[2] == FIELDS[-1]:
                phases.append(Phase())
        else:
            continue
        source.used.add(index)
    last = phases.pop()
    if last.lines or last.statuses or any(set(phase.lines) != set(FIELDS) for phase in phases):
        raise source.error_at("the YCSB-cpp output is truncated: a phase has no complete summary", CUT)
    with source.report_damage("the YCSB-cpp output is damaged: {error}", CUT):
        return [read_phase(phase, command, source) for phase in phases]


def read_phase(phase: Phase, command: str, source: Source) -> ImportedRun:
    """The figures of a phase. Raises ValueError if a figure is not a number."""
    run = ImportedRun(dimensions={"phase": phase.name.lower()}, facts={"tool": NAME, "latency": "service"}, step_ns=1.0)
    if command:
        add_settings(command, phase.name, run)
    seconds, done, rate = (parse_number(phase.lines[name]) for name in FIELDS)
    n = int(done or 0)
    if seconds and rate:
        check_total(source, rate * seconds, n, None, slack=0.01 * n + rate * last_digit(phase.lines[FIELDS[0]]))
    run.add_text("throughput", phase.lines[FIELDS[2]], 1.0, "op/s", n)
    run.add_text("runtime", phase.lines[FIELDS[0]], 1e9, "ns", 1)
    run.add_figure("operations", n, OPERATIONS, n)
    run.series = time_series(phase)
    run.omitted |= {"status lines before the last one, except throughput": None} if run.series else {}
    blocks = BLOCK.findall(phase.statuses[-1][2]) if phase.statuses else []
    if sum(int(count) for _, count, _ in blocks) != n:
        if blocks:
            run.add_note("percentiles-left-out", "its last status line does not cover all operations", "")
        return run
    for name, count, text in blocks:
        operation, own = name.lower(), int(count)
        run.add_figure(f"{operation}.count", own, OPERATIONS, own)
        for part in text.split():
            label, _, value = part.partition("=")
            statistic = FIGURES.get(label) or (f"p{label}" if label[0].isdigit() else None)
            if statistic is None:
                run.unknown[f"[{name}] {label}"] = None
            else:
                run.add_text(f"{operation}.{statistic}", value, US, "ns", own)
    return run


def add_settings(command: str, phase: str, run: ImportedRun) -> None:
    """Adds the clients, the rate and the facts in a command line, whose properties have YCSB's names."""
    binding = re.search(r"-db +([\w.-]+)", command)
    settings = parse_command(f"ycsb run {binding[1] if binding else 'basic'} {command}")
    if settings is not None:
        # `limit.ops` applies only to the second phase.
        limit = parse_whole_number(settings.properties.get("limit.ops", "")) if phase == "Run" else None
        add_facts(replace(settings, phase=None, target=limit or None, text=f"ycsb {command}"), run)


def time_series(phase: Phase) -> Series | None:
    """The throughput between successive status lines."""
    rows, at, before = [], 0, 0
    for until, total, _ in phase.statuses:
        if until > at:
            rows.append((float(at), float(until - at), (total - before) / (until - at)))
            at, before = until, total
    return build_series(rows)
