"""The engine's description of itself: its stores, and the properties that it knows.

The lab checks all names against this description, so that another build of the engine can add stores without
a change to the lab.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from loadstone.engine import program
from loadstone.engine.document import read_document
from loadstone.errors import LoadstoneError

VERSION = 1
SECONDS = 30
HIDDEN = "***"
# An environment variable, as written in an experiment file.
VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
# The names of secrets that no store describes: properties of bindings, and settings of systems.
SECRET_NAME = re.compile(r"passw(or)?d|passphrase|secret", re.IGNORECASE)


@dataclass(frozen=True)
class StoreInfo:
    """A store. `properties` contains names; a name that ends in `*` represents all names with that prefix."""

    name: str
    # The objects of the clients' operations: `records` or `files`.
    holds: str
    networked: bool
    properties: tuple[str, ...]
    # The secret properties, and the properties that name the directories of the store's files.
    secrets: tuple[str, ...]
    directories: tuple[str, ...]
    # The properties for the servers' hosts and port.
    hosts: str | None = None
    port: str | None = None

    @property
    def keeps_files(self) -> bool:
        """Whether the store keeps its data in local files."""
        return bool(self.directories)

    @property
    def address(self) -> tuple[str, str] | None:
        """The properties for the hosts and the port; None unless the store has both."""
        return (self.hosts, self.port) if self.hosts and self.port else None


@dataclass(frozen=True)
class Description:
    """The description of one build of the engine."""

    stores: Mapping[str, StoreInfo]
    # Properties of YCSB and the engine that apply to every store.
    properties: frozenset[str]

    @property
    def directories(self) -> frozenset[str]:
        """Every property that sets the location of a store's files."""
        return frozenset(name for store in self.stores.values() for name in store.directories)

    def is_secret(self, name: str) -> bool:
        """Whether a property's value must never be written, according to a store's description or the name."""
        return any(name in store.secrets for store in self.stores.values()) or bool(SECRET_NAME.search(name))

    def hide_secrets(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Properties that are safe to write. The name of a variable that contains a secret is not itself secret."""
        return {
            name: HIDDEN if self.is_secret(name) and not VARIABLE.fullmatch(str(value)) else value
            for name, value in properties.items()
        }

    def is_networked(self, store: str) -> bool:
        """Whether a store's operations cross a network; false for an unknown store."""
        return store in self.stores and self.stores[store].networked

    def keeps_files(self, store: str) -> bool:
        """Whether a store keeps its data in local files; false for an unknown store."""
        return store in self.stores and self.stores[store].keeps_files

    def is_embedded(self, store: str) -> bool:
        """Whether a store is a database whose files only one process can open; false for an unknown store."""
        return self.keeps_files(store) and self.stores[store].holds == "records"

    def keeps_data(self, store: str) -> bool:
        """Whether there is data to load: a store with neither servers nor files cannot keep data."""
        return self.is_networked(store) or self.keeps_files(store)

    def store_properties(self, store: str) -> tuple[str, ...]:
        """The properties that a store defines."""
        return self.stores[store].properties if store in self.stores else ()

    def is_property_of_others(self, store: str, name: str) -> bool:
        """Whether only other stores have this property; false for a store that accepts any property."""
        known = self.store_properties(store)
        if not known or any(fnmatchcase(name, pattern) for pattern in known):
            return False
        return any(name in other.properties for other in self.stores.values())

    def address_properties(self, store: str) -> tuple[str, str] | None:
        """The properties for a store's hosts and port, if it has them."""
        return self.stores[store].address if store in self.stores else None


@cache
def describe_engine() -> Description:
    """The description of the installed engine. Raises LoadstoneError if no engine is found, or its version differs."""
    path = program.find_engine()
    hint = "its version differs from the version of this package; run `make`"
    try:
        result = subprocess.run([path, "describe"], capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LoadstoneError(f"cannot run {path}: {error}", hint) from error
    if result.returncode:
        raise LoadstoneError(f"`{path} describe` failed: {result.stderr.strip() or result.returncode}", hint)
    return parse_description(result.stdout, path, hint)


def parse_description(text: str, path: str, hint: str) -> Description:
    """Reads an engine's description. Raises LoadstoneError."""
    try:
        document = json.loads(text)
        if document["describe"] != VERSION:
            raise LoadstoneError(f"{path} has description version {document['describe']}, expected {VERSION}", hint)
        stores = read_document(list[StoreInfo], document["stores"])
        names = frozenset(str(item["name"]) for item in document["properties"])
    except (ValueError, KeyError, TypeError) as error:
        raise LoadstoneError(f"cannot read the description from {path}: {error!r}", hint) from error
    return Description({store.name: store for store in stores}, names)
