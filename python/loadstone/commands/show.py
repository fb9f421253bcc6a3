"""`loadstone show DIR`: prints the results of a run as tables."""

from __future__ import annotations

from loadstone.commands.opening import open_results
from loadstone.commands.parser import Parser, guarded, joined
from loadstone.commands.reading import show


@guarded
def main(arguments: list[str]) -> int:
    """Prints the tables of one result folder or file."""
    parser = Parser("show", "Show the results of an experiment or of another tool.")
    parser.results_at()
    parser.show_options()
    options = parser.parse_args(joined(arguments))
    show(open_results(options.results_at, options.results), options)
    return 0
