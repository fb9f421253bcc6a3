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
        "Compare results with the first ones named. They were measured at different times, not in random order, so\n"
        "the comparison is marked `between runs: order not randomised`.",
    )
    parser.add_argument("results_at", metavar="DIR|FILE|NAME", nargs="+", help="result folders, names or files")
    parser.show_options()
    options = parser.parse_args(joined(arguments))
    if len(options.results_at) < 2:
        parser.error("a comparison needs at least two results")
    show(union([open_results(each, options.results) for each in options.results_at]), options)
    return 0
