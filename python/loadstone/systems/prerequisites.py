"""Prerequisites of a command: the jars of HBase's client, which are downloaded once, the store's table, and the paths
of the garbage collection logs for the output of cassandra-stress.

On servers that `loadstone systems up` started, a missing table is created. On any other server, the owner must create
the table, and the store's error message explains how.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise

TYPE_CHECKING = False  # typing has this constant, but importing typing takes time
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from loadstone.systems.base.running_system import RunningSystem

# The environment variable for the path of HBase's client jars, if the user provides the jars.
VARIABLE = "LOADSTONE_HBASE"
OWN = "hbase.lib="
# The environment variable in which the engine finds the garbage collection logs: paths by server address, as JSON.
GC_LOGS = "LOADSTONE_GC_LOGS"


def for_command(arguments: Sequence[str]) -> None:
    """Downloads jars for a YCSB command line. If a download fails, the engine searches for the jars elsewhere."""
    stores = [word for word in arguments[1:4] if word.rstrip("0123456789") == "hbase"]
    if not stores or any(word.startswith(OWN) for word in arguments):
        return
    from loadstone.errors import LoadstoneError

    try:
        for_stores(stores)
    except LoadstoneError as error:
        print(f"warning: {error.args[0]}; {error.hint}", file=sys.stderr)


def provide_table(arguments: Sequence[str]) -> None:
    """Creates the table for a load on Loadstone's servers. If that fails, the engine reports the missing table."""
    from loadstone.errors import LoadstoneError

    try:
        message = create_load_table(arguments)
    except LoadstoneError as error:
        message = f"warning: the table was not created: {error.args[0]}; {error.hint}"
    if message:
        print(message, file=sys.stderr)


def for_stores(stores: Iterable[str]) -> None:
    """Downloads HBase's client jars if a store needs them and the user provides none. Raises LoadstoneError."""
    if not any(store.startswith("hbase") for store in stores) or os.environ.get(VARIABLE):
        return
    from loadstone.systems.hbase.jars import client_class_path
    from loadstone.systems.hbase.system import HBase

    version = next(setting.default for setting in HBase.settings if setting.name == "version")
    client_class_path(version)


def create_load_table(arguments: Sequence[str]) -> str | None:
    """Creates the table for a `ycsb load`; returns a message for the user, or None.

    Raises LoadstoneError if the table is missing and cannot be created.
    """
    if "load" not in arguments or not has_servers() or reads_once(arguments):
        return None
    import json
    import subprocess

    from loadstone.engine import program

    command = [program.find_engine(), "ycsb", *arguments, "--print-spec"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    # If the command line is wrong, the engine reports the error itself.
    return prepare_spec(json.loads(done.stdout)) if done.returncode == 0 and done.stdout[:1] == "{" else None


def prepare_spec(spec: Mapping[str, Any]) -> str | None:
    """Creates a missing table for a spec's store, if `loadstone systems up` started its servers; returns a message."""
    store, properties, work = spec["store"]["name"], spec["store"]["properties"], spec["work"]
    if store == "null" or not has_servers():
        return None
    from loadstone.systems.base.running_system import RunningSystem
    from loadstone.systems.registry import SERVED_BY

    name = SERVED_BY.get(store)
    if name is None:
        return None
    running = RunningSystem(name)
    options = running.system.table_options(store, properties, work)
    if options is None or not is_here(running, properties):
        return None
    table = work.get("table", "usertable")
    if not running.system.create_table(running.place, running.plan, table, options, replace=False):
        return None
    return f"{name}: created the missing table {table}"


def is_here(running: RunningSystem, properties: Mapping[str, str]) -> bool:
    """Whether these properties point to a system that is up and was not started by an experiment."""
    known = running.load_state
    if known is None or not known.processes or known.owner:
        return False
    return running.system.is_reached(running.store_properties(), properties)


def name_gc_logs() -> None:
    """Puts the paths of garbage collection logs in the engine's environment, for servers that run on this host."""
    os.environ.pop(GC_LOGS, None)
    if states := find_states():
        import json

        os.environ[GC_LOGS] = json.dumps({address: log for path in states for address, log in read_gc_logs(path)})


def read_gc_logs(state: str) -> list[tuple[str, str]]:
    """The address and the garbage collection log of each running server of a system; none if its state is damaged.

    The state is parsed here, because importing `base/state.py` takes longer than starting the engine.
    """
    import json

    try:
        with open(state) as file, open("/proc/sys/kernel/random/boot_id") as boot:
            document = json.load(file)
            # Pids from another boot are meaningless.
            servers = document["started"] if document["boot"] == boot.read().strip() else []
        return [
            (str(server["address"]), str(server["gc_log"]))
            for server in servers
            if server["gc_log"] and is_running(server["pid"], server["started_ticks"])
        ]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def is_running(pid: int, started_ticks: int) -> bool:
    """Whether this process exists, and not a later process with the same pid."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The program's name in parentheses may contain blanks. The time of the start is field 22.
            return int(file.read().rpartition(")")[2].split()[19]) == started_ticks
    except OSError:
        return False


def has_servers() -> bool:
    """Whether servers may exist. The check is quick, because a command must start quickly."""
    return bool(find_states())


def find_states() -> list[str]:
    """The paths of all systems' state files."""
    root = systems_root()
    try:
        paths = [os.path.join(root, name, "state.json") for name in os.listdir(root)]
    except OSError:
        return []
    return [path for path in paths if os.path.exists(path)]


def systems_root() -> str:
    """`$LOADSTONE_SYSTEMS`, else `$XDG_STATE_HOME/loadstone/systems`, else `~/.local/state/loadstone/systems`.

    This function is here because importing `base/running_system.py` takes a tenth of a second.
    """
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.environ.get("LOADSTONE_SYSTEMS") or os.path.join(home, "loadstone/systems")


def reads_once(arguments: Sequence[str]) -> bool:
    """Whether a properties file is not a regular file: only the engine may read a pipe, which can be read only once."""
    files = [after for option, after in pairwise(arguments) if option == "-P"]
    return any(not os.path.isfile(path) for path in files)
