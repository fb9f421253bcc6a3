"""`loadstone list` lists result folders."""

from __future__ import annotations

import sys

from rich.box import SIMPLE_HEAD
from rich.table import Table

from loadstone.commands.parser import CommandParser, guard_command
from loadstone.errors import LoadstoneError
from loadstone.format import units
from loadstone.report.terminal import standard_output
from loadstone.results import lines
from loadstone.results.folder import VALUES, survey_folders


@guard_command
def main(arguments: list[str]) -> int:
    """Prints a line for each result folder, sorted by experiment and time."""
    parser = CommandParser("list", "List result folders.")
    parser.results_option()
    options = parser.parse_args(arguments)
    folders, problems = survey_folders(options.results)
    rows = []
    for folder in folders:
        try:
            done = {str(line.get("trial")) for line in lines.read_lines(folder.path / VALUES).documents}
        except LoadstoneError as error:
            problems.append(f"omitted: {error.args[0]}")
            continue
        rows.append((folder.name, str(folder.path), units.format_count(len(done)), folder.question.text))
    for problem in problems:
        print(problem, file=sys.stderr)
    if not rows:
        print(f"no results below {options.results} yet; `loadstone example` shows experiments to start from")
        return 0
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("name", "folder", "trials", "question"):
        table.add_column(name, justify="right" if name == "trials" else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    standard_output().print(table)
    return 0
