"""`loadstone export DIR` exports the figures, all tables, or the whole folder as one file."""

from __future__ import annotations

import sys
from pathlib import Path

from loadstone.commands.open_results import folder_at, open_results
from loadstone.commands.parser import CommandParser, UsageError, guard_command, join_filters
from loadstone.results import archive, export
from loadstone.results.projection import filter_results


@guard_command
def main(arguments: list[str]) -> int:
    """Writes one row per figure and trial as CSV or Parquet, or all tables and histograms, or an archive."""
    parser = CommandParser(
        "export",
        "Export the table of values: one row per figure and trial. To a directory: all tables as Parquet, and the\n"
        "histograms as .hlog. To a .zip file: the whole folder, which show, compare and report open like the folder.",
    )
    parser.results_at()
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE|DIR",
        type=Path,
        help="a .csv, .parquet or .zip file, or a directory (default: CSV to stdout)",
    )
    parser.add_argument("--filter", metavar="EXPR", default="", help="only matching trials: 'system:lmdb -clients:1'")
    parser.add_argument(
        "--redact", action="store_true", help="replace host names, addresses and absolute paths (only for a .zip file)"
    )
    parser.results_option()
    options = parser.parse_args(join_filters(arguments))
    output: Path | None = options.output
    is_archive = output is not None and output.suffix == archive.SUFFIX
    if options.redact and not is_archive:
        raise UsageError("--redact needs a .zip file", "add `--output FILE.zip`; export tables from that file")
    if output is not None and is_archive:
        if options.filter:
            raise UsageError("--filter cannot be combined with a .zip file", "an archive contains the whole folder")
        folder = folder_at(options.results_at, options.results)
        for name in archive.write_archive(folder, output, redact=options.redact):
            print(f"omitted {name}: a binary file cannot be redacted", file=sys.stderr)
        return 0
    results = open_results(options.results_at, options.results)
    if output is not None and (output.is_dir() or not output.suffix):
        archive.write_everything(filter_results(results, options.filter), output)
    else:
        export.write_figures(results, options.filter, output)
    return 0
