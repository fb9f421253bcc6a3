"""`loadstone systems hbase` manages tables and regions of an HBase cluster, whether or not the lab started it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from loadstone.commands.parser import CommandParser, UsageError
from loadstone.commands.systems import verb_of
from loadstone.systems.base.running_system import RunningSystem
from loadstone.systems.base.system import SystemsError
from loadstone.systems.hbase.jars import client_class_path
from loadstone.systems.hbase.tables import OPTIONS, Tables
from loadstone.systems.registry import load_system

USAGE = """\
usage: loadstone systems hbase create-table TABLE FAMILY [--splits N] [--recreate] [--conf DIR]
       loadstone systems hbase drop-table TABLE [--conf DIR]
       loadstone systems hbase regions [TABLE] [--conf DIR]
       loadstone systems hbase class-path [--conf DIR]

verbs:
"""
TABLE_HINT = "list the tables with `loadstone systems hbase regions`"


def main(arguments: list[str]) -> int:
    """Runs one verb."""
    verb = verb_of("systems hbase", "hbase has", VERBS, usage_text, arguments)
    if verb is not None:
        VERBS[verb][1](parser_of(verb).parse_args(arguments[1:]))
    return 0


def create_table(options: Namespace) -> None:
    """Creates a table and prints its number of regions."""
    table_options = {name: str(getattr(options, name)) for name in OPTIONS}
    count = select_tables(options).create_table(options.table, table_options, recreate=options.recreate)
    print(f"{options.table} {count} regions")


def show_regions(options: Namespace) -> None:
    """Prints the number of regions for each table and server."""
    rows = [
        (table, server.address, count)
        for server in select_tables(options).region_servers()
        for table, count in server.tables.items()
        if options.table in (None, table)
    ]
    for table, address, count in sorted(rows):
        print(f"{table} {address} {count}")
    if options.table and not rows:
        raise SystemsError(f"HBase has no table {options.table}", TABLE_HINT)


def drop_table(options: Namespace) -> None:
    """Drops a table. Raises SystemsError if there is no such table."""
    if not select_tables(options).drop_table(options.table):
        raise SystemsError(f"HBase has no table {options.table}", TABLE_HINT)


def class_path(options: Namespace) -> None:
    """Prints the class path of a Java client."""
    hbase = select_tables(options)
    print(os.pathsep.join(map(str, [hbase.conf, *client_class_path(hbase.version)])))


VERBS: dict[str, tuple[str, Callable[[Namespace], None]]] = {
    "create-table": ("create a table with one column family, pre-split for YCSB's keys", create_table),
    "drop-table": ("drop a table", drop_table),
    "regions": ("print `TABLE SERVER regions` for each table and region server", show_regions),
    "class-path": ("print the configuration directory and the client's jars, for `java -cp`", class_path),
}


def usage_text() -> str:
    """The help text."""
    return USAGE + "\n".join(f"  {verb:<14}{what}" for verb, (what, _) in VERBS.items())


def parser_of(verb: str) -> CommandParser:
    """The parser for the arguments of a verb."""
    what = VERBS[verb][0]
    parser = CommandParser(f"systems hbase {verb}", f"{what[0].upper()}{what[1:]}.")
    if verb == "regions":
        parser.add_argument("table", metavar="TABLE", nargs="?", help="only this table (default: all)")
    elif verb != "class-path":
        parser.add_argument("table", metavar="TABLE")
    if verb == "create-table":
        named = "a name that HBase defines (default: %(default)s)"
        splits = "split at N keys, with the formula of YCSB's HBase binding"
        parser.add_argument("family", metavar="FAMILY")
        parser.add_argument("--splits", metavar="N", type=int, default=0, help=splits)
        parser.add_argument("--recreate", action="store_true", help="drop the table first if it exists")
        parser.add_argument("--compression", metavar="NAME", default="NONE", help=named)
        parser.add_argument("--durability", metavar="NAME", default="USE_DEFAULT", help=named)
    conf = "the directory with hbase-site.xml (default: the running HBase's directory)"
    parser.add_argument("--conf", metavar="DIR", type=Path, help=conf)
    parser.add_argument(
        "--version", metavar="V", help="the version of the client (default: the version of the running HBase)"
    )
    return parser


def select_tables(options: Namespace) -> Tables:
    """The tables of the HBase cluster that the options select."""
    version: str | None = options.version
    if options.conf is not None:
        if not (options.conf / "hbase-site.xml").is_file():
            raise UsageError(f"{options.conf} has no hbase-site.xml", "name HBase's configuration directory")
        default = {setting.name: setting.default for setting in load_system("hbase").settings}["version"]
        return Tables(options.conf.absolute(), version or default)
    running = RunningSystem("hbase")
    return Tables(Path(running.store_properties()["hbase.conf"]), version or running.server_version())
