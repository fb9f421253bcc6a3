"""All systems by name. A system's module is imported when needed."""

from __future__ import annotations

import importlib

from loadstone.format.suggestion import did_you_mean
from loadstone.systems.base.system import System, SystemsError

# Each in `system.py` of the folder of its name, with its class.
SYSTEMS = {
    "cassandra": "Cassandra",
    "hbase": "HBase",
    "hdfs": "Hdfs",
    "postgres": "Postgres",
    "redis": "Redis",
}

# The system of each store.
SERVED_BY = {**{name: name for name in SYSTEMS}, "postgrenosql": "postgres"}


def system(name: str) -> System:
    """A system by its name. Raises SystemsError for an unknown name."""
    if name not in SYSTEMS:
        raise SystemsError(
            f'there is no system "{name}"', f"{did_you_mean(name, SYSTEMS)}known are {', '.join(SYSTEMS)}"
        )
    module = importlib.import_module(f"loadstone.systems.{name}.system")
    found: System = getattr(module, SYSTEMS[name])()
    return found
