"""`loadstone list`: lists result folders."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from loadstone.commands.parser import Parser, guarded
from loadstone.format import units
from loadstone.report.terminal import standard_output
from loadstone.results import lines
from loadstone.results.folder import find


@guarded
def main(arguments: list[str]) -> int:
    """Prints a line for each result folder, oldest first."""
    parser = Parser("list", "List result folders.")
    parser.results_option()
    options = parser.parse_args(arguments)
    folders = find(options.results)
    if not folders:
        print(f"no results below {options.results} yet; `loadstone example` shows experiments to start from")
        return 0
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("name", "folder", "trials", "question"):
        table.add_column(name, justify="right" if name == "trials" else "left", overflow="fold")
    for folder in folders:
        done = {str(line.get("trial")) for line in lines.read(folder.path / "values.jsonl").documents}
        table.add_row(folder.name, str(folder.path), units.count(len(done)), folder.question.text)
    standard_output().print(table)
    return 0
