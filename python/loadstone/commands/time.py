"""`loadstone time 'COMMAND A' 'COMMAND B' …` compares the times of commands, and judges the difference."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from loadstone.commands import show_results
from loadstone.commands.parser import CommandParser, UsageError, guard_command
from loadstone.commands.run import exclusive_host
from loadstone.experiment.model.template import escape_braces
from loadstone.format import parsing, units
from loadstone.judge.judge import judge_results
from loadstone.judge.judgement import Judgement
from loadstone.observe.environment import describe_environment, redact_arguments
from loadstone.report.terminal import PlainConsole, standard_output, tables
from loadstone.results.folder import Folder, new_path
from loadstone.results.result_set import Question, variant_key
from loadstone.runner.progress import display
from loadstone.runner.time_commands import DIMENSION, METRIC, NAME, ROUNDS_MAX, Timed, Timing
from loadstone.statistics.estimate import REPEATS_MIN
from loadstone.statistics.intervals import find_outliers
from loadstone.workloads.shell_command import check_program, check_syntax

# The figures that are compared. Memory is omitted, because it is unknown for small commands.
COMPARED = (METRIC, "cpu_time")
METRICS = (*COMPARED, "memory_max")
# Hints for hyperfine's options that do not exist here.
HINTS = {
    "time-unit": "omit it: each time has a suitable unit, --json is in ns, and --export-json in s",
    "u": "omit it: each time has a suitable unit, --json is in ns, and --export-json in s",
    "parameter-scan": "list the values: -L NAME 1,2,3",
    "P": "list the values: -L NAME 1,2,3",
    "export-csv": "use --export-json, or `loadstone report` with the result folder",
    "export-markdown": "use --export-json, or `loadstone report` with the result folder",
    "reference": "write the reference as the first command: it is the baseline",
    "cleanup": "run this command after `loadstone time`",
    "conclude": "use --prepare, which also runs before the next execution",
    "show-output": "run the command by hand: its output is discarded here",
}
# The value of `--shell` for commands without a shell.
NO_SHELL = "none"


@guard_command
def main(arguments: list[str]) -> int:
    """Times commands. The exit status is 1 if a command fails."""
    options = build_parser().parse_args(arguments)
    commands = create_commands(
        options.commands, options.prepare, options.command_name, options.setup, options.parameter_list
    )
    width, limit, timeout = (
        parse_option(read, text, name)
        for read, text, name in (
            (parsing.parse_share, options.width, "--width"),
            (parsing.parse_seconds, options.time_limit, "--time-limit"),
            (parsing.parse_seconds, options.timeout, "--timeout"),
        )
    )
    runs_min, runs_max = parse_runs(options)
    if options.warmups < 0:
        raise UsageError(
            "--warmups must be 0 or more", "write the number of executions before the first timed execution"
        )
    shell = parse_shell(options)
    for command in commands:
        for text in filter(None, (command.setup, command.text, command.prepare)):
            if shell:
                check_syntax(escape_braces(text), shell)
            check_program(text)
    console = PlainConsole(stderr=True)
    with exclusive_host(NAME, options) as note:
        folder = create_folder(commands, options)
        note(folder.path)
        with folder.hold_lock(), display(console) as progress:
            timing = Timing(
                commands,
                folder,
                progress,
                seed=options.seed,
                rounds_min=runs_min,
                rounds_max=runs_max,
                width=width,
                limit_seconds=limit,
                timeout_seconds=timeout,
                ignore_failure=options.ignore_failure,
                shell=shell,
            )
            try:
                reason = timing.run(options.warmups)
            except BaseException:
                folder.repair_lines()
                console.print(f"finished runs are kept in {folder.path}", soft_wrap=True)
                raise
    judgement = judge_results(folder.load_results())
    if options.export_json:
        document = {"results": [export_command(judgement, command) for command in commands]}
        options.export_json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    if options.json:
        whole = {
            **show_results.replace_infinite(show_results.judgement_document(judgement)),
            "stopped": reason,
            "results": str(folder.path),
        }
        print(json.dumps(whole, ensure_ascii=False, allow_nan=False))
        return 0
    out = standard_output()
    for text in result_lines(judgement, commands):
        out.print(text, soft_wrap=True, highlight=False)
    # Checks without the necessary data are not listed, because most checks concern load on a system.
    for finding in tables.findings(replace(judgement, not_looked={})):
        out.print(finding, soft_wrap=True)
    console.print(f"stopped because {reason}; `loadstone report {folder.path}` writes a report", soft_wrap=True)
    return 0


def create_folder(commands: Sequence[Timed], options: Namespace) -> Folder:
    """Creates the result folder."""
    return Folder.create_folder(
        new_path(options.results, NAME),
        NAME,
        Question(
            text=f"Which is faster: {', '.join(command.name for command in commands)}?",
            by=DIMENSION if len(commands) > 1 else None,
            baseline=commands[0].name if len(commands) > 1 else None,
            metrics=COMPARED,
            guarantees={DIMENSION: ("work",)},
        ),
        interleaved=True,
        environment=describe_environment(),
        seed=options.seed,
        command=shlex.join(redact_arguments(["loadstone", *sys.argv[1:]])),
    )


def build_parser() -> CommandParser:
    """Builds the parser. Options that hyperfine also has keep their names."""
    command_line = CommandParser(
        NAME,
        "Time shell commands, interleaved, until the interval of their ratio is narrow; then judge the difference.",
        "Executions alternate, so that a change in the machine's speed affects all commands alike.",
        HINTS,
    )
    command_line.add_argument(
        "commands", metavar="COMMAND", nargs="+", help="a shell command; the first is the baseline"
    )
    command_line.add_argument(
        "-p", "--prepare", metavar="COMMAND", action="append", default=[],
        help="an untimed command before each execution; give it once for all commands, or once for each",
    )  # fmt: skip
    command_line.add_argument(
        "-w", "--warmups", "--warmup", metavar="N", type=int, default=0,
        help="untimed executions of each command at the beginning (default: 0)",
    )  # fmt: skip
    command_line.add_argument("-r", "--runs", metavar="N", type=int, help="execute each command exactly N times")
    command_line.add_argument(
        "-m",
        "--min-runs",
        metavar="N",
        type=int,
        help=f"execute each command at least N times (default: {REPEATS_MIN})",
    )
    command_line.add_argument(
        "-M", "--max-runs", metavar="N", type=int, help=f"execute each at most N times (default: {ROUNDS_MAX})"
    )
    command_line.add_argument(
        "-s",
        "--setup",
        metavar="COMMAND",
        default="",
        help="an untimed command before each command's first execution",
    )
    command_line.add_argument(
        "-L", "--parameter-list", metavar=("NAME", "VALUES"), nargs=2, action="append", default=[],
        help="time each command with each value of {NAME}; the values are separated by commas",
    )  # fmt: skip
    command_line.add_argument(
        "-S",
        "--shell",
        metavar="SHELL",
        default="sh",
        help="the shell and its options; `none` for no shell (default: sh)",
    )
    command_line.add_argument("-N", dest="shell", action="store_const", const=NO_SHELL, help="the same as --shell none")
    command_line.add_argument(
        "--width",
        metavar="SHARE",
        default="5%",
        help="stop when the interval is this narrow, as a share of the ratio (default: 5%%)",
    )
    command_line.add_argument(
        "--time-limit", metavar="TIME", default="5m", help="stop after this time (default: %(default)s)"
    )
    command_line.add_argument(
        "--timeout", metavar="TIME", default="1h", help="time limit for one execution (default: %(default)s)"
    )
    command_line.add_argument(
        "-n",
        "--command-name",
        metavar="NAME",
        action="append",
        default=[],
        help="a name for a command; repeat for each command, in order",
    )
    command_line.add_argument("-i", "--ignore-failure", action="store_true", help="also time commands that fail")
    command_line.add_argument(
        "--seed", metavar="N", type=int, default=1, help="seed of the random order (default: %(default)s)"
    )
    command_line.add_argument("--share-host", action="store_true", help="allow another run on this host")
    command_line.add_argument("--json", action="store_true", help="print one JSON document")
    command_line.add_argument(
        "--export-json", metavar="FILE", type=Path, help="write the times of each command in hyperfine's format, in s"
    )
    command_line.results_option()
    return command_line


def parse_runs(options: Namespace) -> tuple[int, int]:
    """The minimum and the maximum number of executions of each command. Raises UsageError."""
    for name in ("runs", "min_runs", "max_runs"):
        if (runs := getattr(options, name)) is not None and runs < REPEATS_MIN:
            message = f"--{name.replace('_', '-')} must be at least {REPEATS_MIN}"
            raise UsageError(message, f"fewer than {REPEATS_MIN} runs support no claim")
    if options.runs and (options.min_runs or options.max_runs):
        raise UsageError("--runs cannot be combined with --min-runs or --max-runs", "--runs sets both")
    runs_min, runs_max = options.min_runs or REPEATS_MIN, options.max_runs or ROUNDS_MAX
    if runs_min > runs_max:
        raise UsageError(f"--min-runs {runs_min} exceeds --max-runs {runs_max}", "exchange the two numbers")
    return (options.runs, options.runs) if options.runs else (runs_min, runs_max)


def parse_shell(options: Namespace) -> list[str]:
    """The shell and its options; empty if commands run without a shell. Raises UsageError."""
    if options.shell == NO_SHELL:
        for text in (*options.commands, *options.prepare, options.setup):
            try:
                shlex.split(text)
            except ValueError as error:
                hint = "correct its quotes, or omit -N"
                raise UsageError(f"`{text}` cannot be split into arguments: {error}", hint) from error
        return []
    shell = shlex.split(options.shell)
    if not shell or shutil.which(shell[0]) is None:
        raise UsageError(f'there is no shell "{options.shell}"', "write sh, 'bash -o pipefail', or none")
    return shell


def vary_commands(commands: Sequence[Sequence[str]], parameters: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Expands each command, its setup and its preparation for every combination of the parameters in the command.

    Raises UsageError if a parameter does not occur in any command.
    """
    for name, values in parameters:
        place = f"{{{name}}}"
        if not any(place in text for text, *_ in commands):
            raise UsageError(f"no command uses {place}", f"write {place} in a command")
        commands = [
            [text.replace(place, value) for text in texts]
            for texts in commands
            for value in (values.split(",") if place in texts[0] else [place])
        ]
    return commands


def export_command(judgement: Judgement, command: Timed) -> dict[str, Any]:
    """The times of a command in the format of `hyperfine --export-json`, in s."""
    cell = judgement.cells.get((variant_key({DIMENSION: command.name}), METRIC))
    times = [value / 1e9 for _, value in cell.samples] if cell else []
    result = {"command": command.name, "times": times}
    if not times:
        return result
    return {
        **result,
        "mean": mean(times),
        "stddev": stdev(times) if len(times) > 1 else None,
        "median": median(times),
        "min": min(times),
        "max": max(times),
    }


def parse_option(read: Any, text: str, name: str) -> float:
    """The numeric value of an option. Raises UsageError."""
    try:
        value = float(text) if text.replace(".", "", 1).isdigit() else float(read(text))
    except ValueError:
        value = 0.0
    if value <= 0:
        raise UsageError(f'{name} must be above 0, got "{text}"', "write 5% or 0.05, and times as 30s or 5m")
    return value


def create_commands(
    texts: Sequence[str],
    prepares: Sequence[str],
    names: Sequence[str],
    setup: str = "",
    parameters: Sequence[Sequence[str]] = (),
) -> list[Timed]:
    """The commands to time, each with a distinct name. Raises UsageError."""
    total = units.count_noun(len(texts), "command")
    if len(prepares) not in (0, 1, len(texts)):
        message = f"--prepare is given {units.count_noun(len(prepares), 'time')} for {total}"
        raise UsageError(message, "give it once, or once for each command")
    if (empty := next((text for text in texts if not text.strip()), None)) is not None:
        raise UsageError(f'a command is empty: "{empty}"', "write a shell command")
    each_prepare = prepares if len(prepares) > 1 else [*prepares, *[""]][:1] * len(texts)
    commands = vary_commands(
        [(text, prepare, setup) for text, prepare in zip(texts, each_prepare, strict=True)], parameters
    )
    if len(names) > len(commands):
        total = units.count_noun(len(commands), "command")
        raise UsageError(f"there are {len(names)} names for {total}", "give a name for each command")
    each_name = [*names, *(text for text, *_ in commands[len(names) :])]
    # A command may be compared with itself.
    distinct = [
        name if each_name.count(name) == 1 else f"{name} #{each_name[: at + 1].count(name)}"
        for at, name in enumerate(each_name)
    ]
    return [Timed(name, *parts) for name, parts in zip(distinct, commands, strict=True)]


def result_lines(judgement: Judgement, commands: Sequence[Timed]) -> Iterator[str]:
    """The lines with the figures of each command, and with the comparison."""
    for number, command in enumerate(commands, 1):
        yield f"Command {number}: {command.name}"
        yield from command_lines(judgement, command)
        yield ""
    yield from (f"{text}" for text in judgement.answer.splitlines())


def command_lines(judgement: Judgement, command: Timed) -> Iterator[str]:
    """The median time with its interval, the range, CPU time, memory, number of executions, and outliers."""
    key = variant_key({DIMENSION: command.name})
    cells = {metric: judgement.cells.get((key, metric)) for metric in METRICS}
    cell = cells[METRIC]
    if cell is None:
        return
    samples = [value for _, value in cell.samples]
    estimate = cell.estimate
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        interval = f"   95 % interval {units.format_duration(estimate.low)} to {units.format_duration(estimate.high)}"
    span = f"range {units.format_duration(min(samples))} to {units.format_duration(max(samples))}"
    runs = units.count_noun(len(samples), "run")
    yield f"  time    {units.format_duration(estimate.value)} (median){interval}   {span}   {runs}"
    cpu, memory = cells["cpu_time"], cells["memory_max"]
    parts = [f"CPU     {units.format_duration(cpu.estimate.value)}"] if cpu else []
    parts += [f"memory {units.format_size(memory.estimate.value)} (peak)"] if memory else []
    if parts:
        yield "  " + "   ".join(parts)
    if outliers := find_outliers(samples):
        longest = units.format_duration(max(outliers))
        yield f"  {units.count_noun(len(outliers), 'outlier')}, the longest {longest}: something disturbed these runs"
