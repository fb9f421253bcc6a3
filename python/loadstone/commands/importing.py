"""`loadstone import FILE…`: other tools' results as a result folder."""

from __future__ import annotations

from pathlib import Path

from loadstone.commands.parser import Parser, UsageError, guarded
from loadstone.errors import LoadstoneError


@guarded
def main(arguments: list[str]) -> int:
    """Imports files into one new folder and prints its path."""
    parser = Parser(
        "import",
        "Read results of YCSB, go-ycsb, cassandra-stress, TestDFSIO, fio, HBase PerformanceEvaluation, HDR logs or\n"
        "CSV, so that show, compare, check and report work on them.",
        "A fact is what no log holds: --fact clients=4 --fact data_nodes=3. FILE.facts.yaml beside a file does, too.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="logs, or result files")
    parser.add_argument("--fact", metavar="NAME=VALUE", action="append", default=[], help="something no log holds")
    parser.add_argument("--format", metavar="NAME", help="the files' format, if it is not recognised")
    parser.add_argument("--name", metavar="NAME", help="the folder's name (default: the first file's)")
    parser.add_argument("--question", metavar="TEXT", default="", help="what the results are to answer")
    parser.results_option()
    options = parser.parse_args(arguments)

    from loadstone.importers.read import parse_fact, read_all
    from loadstone.importers.store import store

    try:
        facts = dict(parse_fact(each) for each in options.fact)
    except LoadstoneError as error:
        raise UsageError(str(error.args[0]), error.hint) from None
    imported = read_all(options.files, facts, options.format)
    folder = store(imported, options.results, options.name or options.files[0].stem, options.question, options.files)
    print(folder.path)
    return 0
