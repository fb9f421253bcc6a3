"""`loadstone systems hbase`: manages tables and regions of an HBase that the lab started, or of any other."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from loadstone.commands.parser import Parser, UsageError
from loadstone.format.suggestion import did_you_mean
from loadstone.systems.base.running import Running
from loadstone.systems.base.system import SystemsError
from loadstone.systems.hbase.jars import client_class_path
from loadstone.systems.hbase.tables import Tables
from loadstone.systems.registry import system

USAGE = """\
usage: loadstone systems hbase create-table TABLE FAMILY [--splits N] [--recreate] [--conf DIR]
       loadstone systems hbase drop-table TABLE [--conf DIR]
       loadstone systems hbase regions [TABLE] [--conf DIR]
       loadstone systems hbase class-path [--conf DIR]

verbs:
  create-table  create a table with one column family, pre-split for YCSB's keys
  drop-table    drop a table
  regions       print `TABLE SERVER regions` for each table and region server
  class-path    print the configuration directory and the client's jars, for `java -cp`"""


def main(arguments: list[str]) -> int:
    """Runs one verb."""
    if not arguments:
        raise UsageError("a verb is missing", "add one: `loadstone systems hbase --help` lists them")
    verb, rest = arguments[0], arguments[1:]
    if verb in ("-h", "--help"):
        print(USAGE)
        return 0
    if verb in VERBS:
        return VERBS[verb](rest)
    raise UsageError(
        f'hbase has no verb "{verb}"',
        f"{did_you_mean(verb, VERBS)}`loadstone systems hbase --help` lists the verbs",
    )


def create_table(arguments: list[str]) -> int:
    """Creates a table and prints its number of regions."""
    parser = Parser("systems hbase create-table", "Create a table with one column family.")
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("family", metavar="FAMILY")
    parser.add_argument(
        "--splits", metavar="N", type=int, default=0, help="split at N keys, by the formula of YCSB's HBase binding"
    )
    parser.add_argument("--recreate", action="store_true", help="drop the table first if it exists")
    parser.add_argument("--compression", metavar="NAME", default="NONE", help="name in HBase (default: %(default)s)")
    parser.add_argument(
        "--durability", metavar="NAME", default="USE_DEFAULT", help="name in HBase (default: %(default)s)"
    )
    options = parsed(parser, arguments)
    count = tables(options).create(
        options.table,
        options.family,
        options.splits,
        recreate=options.recreate,
        compression=options.compression,
        durability=options.durability,
    )
    print(f"{options.table} {count} regions")
    return 0


def regions(arguments: list[str]) -> int:
    """Prints the number of regions by table and server."""
    parser = Parser("systems hbase regions", "Print `TABLE SERVER regions` for each table and region server.")
    parser.add_argument("table", metavar="TABLE", nargs="?", help="only this table (default: all)")
    options = parsed(parser, arguments)
    rows = [
        (table, one.address, count)
        for one in tables(options).region_servers()
        for table, count in one.tables.items()
        if options.table in (None, table)
    ]
    for table, address, count in sorted(rows):
        print(f"{table} {address} {count}")
    if options.table and not rows:
        raise SystemsError(f"HBase has no table {options.table}", TABLE_HINT)
    return 0


def drop_table(arguments: list[str]) -> int:
    """Drops a table; exit status 1 if there is none."""
    parser = Parser("systems hbase drop-table", "Drop a table.")
    parser.add_argument("table", metavar="TABLE")
    options = parsed(parser, arguments)
    if not tables(options).drop(options.table):
        raise SystemsError(f"HBase has no table {options.table}", TABLE_HINT)
    return 0


def class_path(arguments: list[str]) -> int:
    """Prints the class path of a Java client."""
    hbase = tables(parsed(Parser("systems hbase class-path", "Print a client's class path."), arguments))
    print(os.pathsep.join(map(str, [hbase.conf, *client_class_path(hbase.version)])))
    return 0


TABLE_HINT = "list the tables by `loadstone systems hbase regions`"
VERBS = {"create-table": create_table, "drop-table": drop_table, "regions": regions, "class-path": class_path}


def parsed(parser: Parser, arguments: list[str]) -> Namespace:
    """Parses the options, including those of every verb."""
    parser.add_argument(
        "--conf", metavar="DIR", type=Path, help="the directory of hbase-site.xml (default: the running HBase's)"
    )
    parser.add_argument("--version", metavar="V", help="version of the client (default: the running HBase's)")
    return parser.parse_args(arguments)


def tables(options: Namespace) -> Tables:
    """The tables of the HBase that the options name."""
    version: str | None = options.version
    if options.conf is not None:
        if not (options.conf / "hbase-site.xml").is_file():
            raise UsageError(f"{options.conf} has no hbase-site.xml", "name HBase's configuration directory")
        default = {each.name: each.default for each in system("hbase").settings}["version"]
        return Tables(options.conf.absolute(), version or default)
    running = Running("hbase")
    return Tables(Path(running.properties()["hbase.conf"]), version or running.version())
