"""`loadstone history QUESTION` shows figures by version and commit, over all results of one question."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from loadstone.commands.parser import CommandParser, UsageError, guard_command, join_filters
from loadstone.commands.show_results import split_keys
from loadstone.format import wording
from loadstone.report.history import FigureHistory, HistoryPoint, draw_interval, find_limits, select, trace
from loadstone.report.terminal import standard_output
from loadstone.report.terminal.tables import fits
from loadstone.results.folder import survey_folders

COLUMNS = ("host", "settings", "version", "commit", "run", "n", "figure", "interval", "verdict")


@guard_command
def main(arguments: list[str]) -> int:
    """Prints a table for each metric and variant."""
    parser = CommandParser(
        "history",
        "Show figures by version and commit, over all results of one question: a row for each run, with its interval.\n"
        "Runs differ from day to day and from host to host; `loadstone compare` decides whether versions differ.",
    )
    parser.add_argument("question", metavar="QUESTION", help="an experiment's name, a question, or part of a question")
    parser.add_argument("--metric", metavar="NAMES", help="metrics, separated by commas (read.p99,throughput)")
    parser.add_argument("--filter", metavar="EXPR", default="", help="only matching trials: 'system:lmdb -clients:1'")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.results_option()
    options = parser.parse_args(join_filters(arguments))
    if not options.question.strip():
        raise UsageError("the question is empty", "name an experiment, a question or part of a question")
    folders, problems = survey_folders(options.results)
    history = trace(select(folders, options.question), split_keys(options.metric) or (), options.filter)
    for problem in (*problems, *history.problems):
        print(problem, file=sys.stderr)
    if options.markdown:
        print(f"# {escape_markdown(history.question)}\n")
        for series in history.series:
            print(f"## {escape_markdown(series.title)}\n")
            print("\n".join(markdown_rows(series)), end="\n\n")
            print(*(f"- {escape_markdown(line)}\n" for line in describe_settings(series)), sep="")
        print(*(f"- host {letter}: {escape_markdown(text)}" for letter, text in history.hosts.items()), sep="\n")
        return 0
    console = standard_output()
    console.print(Text(history.question, style="bold"), soft_wrap=True)
    for series in history.series:
        console.print(Text(series.title, style="bold"), soft_wrap=True)
        tables = (build_table(series), build_table(series, has_chart=False))
        if table := next((table for table in tables if fits(table, console)), None):
            console.print(table)
        else:
            console.print("\n".join(list_entries(series)))
        for line in describe_settings(series):
            console.print(line, soft_wrap=True, markup=False)
    for letter, text in history.hosts.items():
        console.print(f"host {letter}: {text}", soft_wrap=True)
    return 0


def describe_settings(series: FigureHistory) -> list[str]:
    """A line for each distinct group of settings."""
    return [f"settings {letter}: {text}" for letter, text in series.settings.items()]


def entry_cells(series: FigureHistory, entry: HistoryPoint) -> list[str]:
    """The cells of an entry, in the order of COLUMNS."""
    estimate = entry.cell.estimate
    has_interval = estimate.low is not None and estimate.high is not None and not entry.cell.withheld
    interval = wording.interval_text(estimate, entry.cell.unit) if has_interval else ""
    return [
        entry.host,
        series.settings_letter(entry),
        entry.version,
        entry.commit,
        entry.run,
        str(estimate.n),
        entry.figure,
        interval,
        entry.verdict,
    ]


def build_table(series: FigureHistory, has_chart: bool = True) -> Table:
    """A series as a table, optionally with a chart that shows the intervals on one axis."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in ("n", "figure") else "left", overflow="fold")
    low, high = find_limits(series.entries)
    if has_chart:
        table.add_column("", no_wrap=True)
    for entry in series.entries:
        chart = [draw_interval(entry, low, high)] if has_chart else []
        table.add_row(*entry_cells(series, entry), *chart)
    return table


def list_entries(series: FigureHistory) -> Iterator[str]:
    """A series as lines for a terminal that is too narrow for a table."""
    for entry in series.entries:
        cells = zip(COLUMNS, entry_cells(series, entry), strict=True)
        yield ", ".join(f"{name} {cell}" for name, cell in cells if cell)


def markdown_rows(series: FigureHistory) -> list[str]:
    """A series as the lines of a Markdown table."""
    head = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    return head + [
        "| " + " | ".join(escape_markdown(cell) for cell in entry_cells(series, entry)) + " |"
        for entry in series.entries
    ]


def escape_markdown(text: str) -> str:
    """Escapes text for Markdown, including table cells."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
