"""All systems by name. A system's module is imported on first use."""

from __future__ import annotations

import importlib
from pathlib import Path

from loadstone.format.suggestion import did_you_mean
from loadstone.systems.base.system import StartEstimate, System, SystemsError

# The class of each system, which is in `system.py` in the folder with the system's name.
SYSTEMS = {
    "cassandra": "Cassandra",
    "hbase": "HBase",
    "hdfs": "Hdfs",
    "postgres": "Postgres",
    "redis": "Redis",
}

# The system to which each store connects.
SERVED_BY = {**{name: name for name in SYSTEMS}, "postgrenosql": "postgres"}


def public_names(name: str) -> list[str]:
    """The names of a system's settings and store properties, without secrets and patterns."""
    from loadstone.engine.describe import describe_engine
    from loadstone.systems.base.plan import plan_of
    from loadstone.systems.base.system import Place

    kind = load_system(name)
    settings = [setting.name for setting in kind.settings if not setting.name.endswith("*")]
    nowhere = Path("/nonexistent")
    properties = kind.store_properties(Place(nowhere, nowhere), plan_of(kind, None, {}))
    return [setting for setting in (*settings, *properties) if not describe_engine().is_secret(setting)]


def estimate_start(store: str) -> StartEstimate:
    """The time that the system of a store takes to start; without a known system, the default of `System`."""
    name = SERVED_BY.get(store)
    return System.start_estimate if name is None else load_system(name).start_estimate


def load_system(name: str) -> System:
    """Loads a system by its name. Raises SystemsError for an unknown name."""
    if name not in SYSTEMS:
        raise SystemsError(
            f'there is no system "{name}"', f"{did_you_mean(name, SYSTEMS)}the systems are {', '.join(SYSTEMS)}"
        )
    module = importlib.import_module(f"loadstone.systems.{name}.system")
    system: System = getattr(module, SYSTEMS[name])()
    return system
