"""`loadstone export DIR`: exports the table of values for other tools."""

from __future__ import annotations

from pathlib import Path

from loadstone.commands.opening import open_results
from loadstone.commands.parser import Parser, guarded, joined
from loadstone.results.export import write


@guarded
def main(arguments: list[str]) -> int:
    """Writes a row per figure and trial, as CSV or Parquet."""
    parser = Parser("export", "Export the table of values: one row per figure and trial.")
    parser.results_at()
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="a .csv or .parquet file (default: CSV to stdout)"
    )
    parser.add_argument("--filter", metavar="EXPR", default="", help="only matching trials: 'system:lmdb -clients:1'")
    parser.results_option()
    options = parser.parse_args(joined(arguments))
    write(open_results(options.results_at, options.results), options.filter, options.output)
    return 0
