"""Validates the systems' stores and the stores' properties."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from loadstone.engine.describe import describe_engine
from loadstone.experiment.kind import KINDS, PLAIN
from loadstone.experiment.model.ycsb_properties import KEYS, OF_A_COMMAND
from loadstone.experiment.reading.path import Path as Keys
from loadstone.experiment.validation.context import Context
from loadstone.format.suggestion import suggest_names

# Engine properties that may differ between systems: they control the execution of clients.
OF_A_STORE = frozenset({"executors", "spin.sleep"})
SYSTEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def check_systems(context: Context) -> None:
    """Checks the store of every system and its properties.

    By default, the store has the name of the system, or else of the started system.
    """
    systems = dict(context.experiment.systems)
    usable = {name: None for kind in context.experiment.kinds or [PLAIN] for name in KINDS[kind].stores()}
    every = {name: None for kind in KINDS.values() for name in kind.stores()}
    for system, entry in systems.items():
        path = ("systems", system)
        first = next(iter(usable))
        # For work that needs no store, the name of the workload kind takes the place of the store's name.
        only = first if len(usable) == 1 or first not in describe_engine().stores else system
        started = entry.start.system if entry.start is not None and entry.start.system in every else only
        store = entry.store or (system if system in every else started)
        systems[system] = entry.model_copy(update={"store": store})
        if not SYSTEM.fullmatch(system):
            hint = "use only letters, digits and . _ + -"
            context.add_mistake(path, f'"{system}" is not a valid name for a system', hint)
        if not context.is_valid(*path, "store") or not context.is_valid("systems"):
            continue
        if store not in every:
            hint = suggest_names(store, tuple(usable), "the stores are")
            if not entry.store:
                hint += f"; to use another name for a system, write `{system}: {{store: …}}`"
            context.add_mistake((*path, "store"), f'there is no store "{store}"', hint)
            continue
        for key in entry.properties:
            check_store_property(context, (*path, "properties", key), store, key)
    if context.is_valid("systems"):
        context.fill_in(systems=systems)
        check_load_properties(context)


def check_load_properties(context: Context) -> None:
    """Checks the properties for loading, which any store may have; workload properties must apply to the run, too."""
    stores = [entry.store for entry in context.experiment.systems.values() if entry.store in describe_engine().stores]
    for key in context.experiment.load.properties:
        path = ("load", "properties", key)
        if any(has_property(store, key) for store in stores):
            continue
        if key == "threadcount":
            context.add_mistake(path, "threadcount is not a property of a store", "write `load: {clients: 32}`")
        elif key in describe_engine().properties and key not in KEYS and key not in OF_A_COMMAND:
            context.add_mistake(path, f"{key} is a property of the workload", "write it in `workload: {properties: …}`")
        elif stores:
            check_store_property(context, path, stores[0], key)


def has_property(store: str, key: str) -> bool:
    """Whether an experiment may set this property of the store."""
    return key not in describe_engine().directories and any(
        fnmatchcase(key, pattern) for pattern in describe_engine().store_properties(store)
    )


def check_store_property(context: Context, path: Keys, store: str, key: str) -> None:
    """Checks a property of a store."""
    own = [
        key_name
        for key_name in describe_engine().store_properties(store)
        if key_name not in describe_engine().directories
    ]
    if key in describe_engine().directories:
        context.add_mistake(
            path, f"{key} is set by the lab", "set `directory` instead: each trial has a directory below it"
        )
    elif has_property(store, key):
        return
    elif key in KEYS:
        context.add_mistake(path, f"{key} is not a property of a store", f"write `{KEYS[key]}`")
    elif key in describe_engine().properties and key not in OF_A_COMMAND | OF_A_STORE:
        # If systems set this property, they would do different work.
        context.add_mistake(path, f"{key} is a property of the workload", "write it in `workload: {properties: …}`")
    elif key in OF_A_STORE:
        return
    elif key.partition(".")[0] in describe_engine().stores:
        hint = suggest_names(key, own, f"the properties of {store} are")
        context.add_mistake(path, f"{store} has no property {key}", hint)
    else:
        hint = suggest_names(key, own, f"the properties of {store} are") if own else f"remove it: {store} has none"
        context.add_warning(path, f"unknown property {key}", hint)
