"""`loadstone show DIR` prints the results of a run as tables."""

from __future__ import annotations

from loadstone.commands.open_results import open_results
from loadstone.commands.parser import CommandParser, guard_command, join_filters
from loadstone.commands.show_results import show_results


@guard_command
def main(arguments: list[str]) -> int:
    """Prints the tables of one result folder or file."""
    parser = CommandParser("show", "Show the results of an experiment or of another tool.")
    parser.results_at()
    parser.show_options()
    options = parser.parse_args(join_filters(arguments))
    show_results(open_results(options.results_at, options.results), options)
    return 0
