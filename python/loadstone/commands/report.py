"""`loadstone report DIR` writes report.html and report.md for existing results."""

from __future__ import annotations

from pathlib import Path

from loadstone.commands.open_results import open_results
from loadstone.commands.parser import CommandParser, guard_command
from loadstone.errors import LoadstoneError


@guard_command
def main(arguments: list[str]) -> int:
    """Writes the report and prints the paths of its two pages."""
    parser = CommandParser("report", "Write report.html and report.md for results.")
    parser.results_at()
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="where to write (default: the result folder)")
    parser.results_option()
    options = parser.parse_args(arguments)
    results = open_results(options.results_at, options.results)
    inside = results.path if results.path is not None and results.path.is_dir() else None
    target = options.output or inside
    if target is None:
        raise LoadstoneError(
            f"{options.results_at} is a file, so the report needs an output directory",
            "add `--output DIR`, or import the file first with `loadstone import`",
        )
    # Imported late, because importing the packages for charts takes longer than printing the help text.
    from loadstone.judge.judge import judge_results
    from loadstone.report.write import write

    for path in write(judge_results(results), target):
        if path.suffix in (".html", ".md"):
            print(path)
    return 0
