"""`loadstone systems hbase`: tables with their regions, on an HBase that was started here or on any other."""

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
  create-table  make a table with one column family, split where YCSB's keys fall
  drop-table    drop one
  regions       print `TABLE SERVER regions` for each table and region server
  class-path    print the site files' directory and a client's jars, as `java -cp` takes them"""


def main(arguments: list[str]) -> int:
    """Runs one verb."""
    if not arguments:
        raise UsageError("a verb is missing", "`loadstone systems hbase --help` lists them")
    verb, rest = arguments[0], arguments[1:]
    if verb in ("-h", "--help"):
        print(USAGE)
        return 0
    if verb in VERBS:
        return VERBS[verb](rest)
    raise UsageError(
        f'hbase has no verb "{verb}"',
        f"{did_you_mean(verb, VERBS)}`loadstone systems hbase --help` lists what there is",
    )


def create_table(arguments: list[str]) -> int:
    """Makes a table and prints how many regions it has."""
    parser = Parser("systems hbase create-table", "Make a table with one column family.")
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("family", metavar="FAMILY")
    parser.add_argument(
        "--splits", metavar="N", type=int, default=0, help="split at N keys, by the formula of YCSB's HBase binding"
    )
    parser.add_argument("--recreate", action="store_true", help="drop the table first if it is there")
    parser.add_argument("--compression", metavar="NAME", default="NONE", help="HBase's name (default: %(default)s)")
    parser.add_argument(
        "--durability", metavar="NAME", default="USE_DEFAULT", help="HBase's name (default: %(default)s)"
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
    """Prints how many regions of each table each server has."""
    parser = Parser("systems hbase regions", "Print `TABLE SERVER regions` for each table and region server.")
    parser.add_argument("table", metavar="TABLE", nargs="?", help="only this one (default: all)")
    options = parsed(parser, arguments)
    found = [
        (table, one.address, count)
        for one in tables(options).region_servers()
        for table, count in one.tables.items()
        if options.table in (None, table)
    ]
    for table, address, count in sorted(found):
        print(f"{table} {address} {count}")
    if options.table and not found:
        raise SystemsError(f"HBase has no table {options.table}", "`loadstone systems hbase regions` lists all")
    return 0


def drop_table(arguments: list[str]) -> int:
    """Drops a table; exit status 1 if there is none."""
    parser = Parser("systems hbase drop-table", "Drop a table.")
    parser.add_argument("table", metavar="TABLE")
    options = parsed(parser, arguments)
    if not tables(options).drop(options.table):
        raise SystemsError(f"HBase has no table {options.table}", "`loadstone systems hbase regions` lists all")
    return 0


def class_path(arguments: list[str]) -> int:
    """Prints what a Java client of this HBase is started with."""
    found = tables(parsed(Parser("systems hbase class-path", "Print a client's class path."), arguments))
    print(os.pathsep.join(map(str, [found.conf, *client_class_path(found.version)])))
    return 0


VERBS = {"create-table": create_table, "drop-table": drop_table, "regions": regions, "class-path": class_path}


def parsed(parser: Parser, arguments: list[str]) -> Namespace:
    """The options, with what every verb has."""
    parser.add_argument(
        "--conf", metavar="DIR", type=Path, help="the directory of hbase-site.xml (default: the HBase started here)"
    )
    parser.add_argument("--version", metavar="V", help="of the client (default: the one started here)")
    return parser.parse_args(arguments)


def tables(options: Namespace) -> Tables:
    """The tables of the HBase that is meant."""
    version: str | None = options.version
    if options.conf is not None:
        if not (options.conf / "hbase-site.xml").is_file():
            raise UsageError(f"{options.conf} holds no hbase-site.xml", "name HBase's directory of configuration")
        default = {each.name: each.default for each in system("hbase").settings}["version"]
        return Tables(options.conf.absolute(), version or default)
    running = Running("hbase")
    return Tables(Path(running.properties()["hbase.conf"]), version or running.version())
