"""`loadstone import FILE…` imports results from other tools into a result folder."""

from __future__ import annotations

from pathlib import Path

from loadstone.commands.parser import CommandParser, UsageError, guard_command
from loadstone.errors import LoadstoneError


@guard_command
def main(arguments: list[str]) -> int:
    """Imports files into a new folder, and prints the folder's path."""
    parser = CommandParser(
        "import",
        "Import results from other tools, so that show, compare, check and report work with them: YCSB, go-ycsb,\n"
        "YCSB-cpp, cassandra-stress, cql-stress, scylla-bench, latte, TestDFSIO, TeraSort, HBase\n"
        "PerformanceEvaluation, fio, pgbench, sysbench, redis-benchmark, memtier_benchmark, hyperfine, HDR logs,\n"
        "CSV, or JSON from any tool.",
        "A fact states something that no log contains: --fact clients=4 --fact data_nodes=3. Facts can also be in\n"
        "FILE.facts.yaml next to a file.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="logs, or result files")
    parser.add_argument(
        "--fact", metavar="NAME=VALUE", action="append", default=[], help="a fact that the logs do not contain"
    )
    parser.add_argument("--format", metavar="NAME", help="the format of the files, if it is not recognised")
    parser.add_argument(
        "--json",
        metavar="METRIC=PATH UNIT",
        action="append",
        default=[],
        help="a figure in JSON from any tool: 'throughput=$.tps op/s'",
    )
    parser.add_argument("--explain", action="store_true", help="also list the data read, and what was omitted and why")
    parser.add_argument(
        "--processes",
        action="store_true",
        help="the files are histogram logs of processes that ran together: merge them into one trial",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="the results' name in lists and reports (default: the first file's name)"
    )
    parser.add_argument("--question", metavar="TEXT", default="", help="the question that the results answer")
    parser.results_option()
    options = parser.parse_args(arguments)

    from loadstone.importers.explain import explain_file
    from loadstone.importers.json_paths import parse_figure
    from loadstone.importers.processes import merge_logs
    from loadstone.importers.read import parse_fact, read_all
    from loadstone.importers.store import store_runs

    try:
        facts = dict(parse_fact(text) for text in options.fact)
        for figure in options.json:
            parse_figure(figure)
    except LoadstoneError as error:
        raise UsageError(str(error.args[0]), error.hint) from None
    if options.json:
        facts["json"] = "\n".join(options.json)
    read = merge_logs if options.processes else read_all
    imported = read(options.files, facts, options.format)
    folder = store_runs(
        imported, options.results, options.name or options.files[0].stem, options.question, options.files
    )
    if options.explain:
        for path in options.files:
            print(*explain_file(path, facts, options.format), sep="\n")
    print(folder.path)
    return 0
