"""`loadstone compare A B…`: compares runs of different times, or files of other tools, with the first."""

from __future__ import annotations

from loadstone.commands.opening import open_results
from loadstone.commands.parser import Parser, guarded, joined
from loadstone.commands.reading import show
from loadstone.results.union import union


@guarded
def main(arguments: list[str]) -> int:
    """Prints the comparison of the named results."""
    parser = Parser(
        "compare",
        "Compare results with the first ones named. A side is one result, or several runs of it, separated by commas.\n"
        "Runs differ from day to day, so a claim takes six alternating runs of each side.",
    )
    parser.add_argument("results_at", metavar="DIR|FILE|NAME[,…]", nargs="+", help="result folders, names or files")
    parser.show_options()
    options = parser.parse_args(joined(arguments))
    if len(options.results_at) < 2:
        parser.error("a comparison needs at least two results")
    sides = [[open_results(run, options.results) for run in each.split(",")] for each in options.results_at]
    show(union(sides), options)
    return 0
