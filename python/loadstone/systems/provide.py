"""What a store needs beside the engine, fetched once: the jars of HBase's client."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own constant costs the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The engine's variable that names other jars.
VARIABLE = "LOADSTONE_HBASE"
OWN = "hbase.lib="


def for_command(arguments: Sequence[str]) -> None:
    """Provides for a YCSB command line. What cannot be fetched is left to the engine to miss: it knows more places."""
    words = [word for word in arguments[1:4] if word.rstrip("0123456789") == "hbase"]
    if not words or any(word.startswith(OWN) for word in arguments):
        return
    from loadstone.errors import LoadstoneError

    try:
        for_stores(words)
    except LoadstoneError as error:
        print(f"warning: {error.args[0]}; {error.hint}", file=sys.stderr)


def table(arguments: Sequence[str]) -> None:
    """Makes the table of a load on servers of ours. What cannot be made is left to the engine to miss."""
    from loadstone.errors import LoadstoneError
    from loadstone.systems import tables

    try:
        made = tables.for_command(arguments)
    except LoadstoneError as error:
        made = f"warning: the table was not made: {error.args[0]}; {error.hint}"
    if made:
        print(made, file=sys.stderr)


def for_stores(stores: Iterable[str]) -> None:
    """Provides for stores. Raises LoadstoneError when something cannot be fetched."""
    if not any(store.startswith("hbase") for store in stores) or os.environ.get(VARIABLE):
        return
    from loadstone.systems.hbase.jars import client_class_path
    from loadstone.systems.hbase.system import HBase

    version = next(setting.default for setting in HBase.settings if setting.name == "version")
    client_class_path(version)
