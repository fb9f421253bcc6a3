"""What the engine can do, as it describes itself: its stores and the properties that it knows.

The source of every name that the lab checks, so that a store of another engine binary works at once.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from loadstone.engine import program
from loadstone.engine.document import read
from loadstone.errors import LoadstoneError

VERSION = 1
SECONDS = 30
HIDDEN = "***"
# A variable of the environment, as an experiment file names it.
VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
# Of what no store of ours describes: properties of bindings, settings of systems.
SECRET_NAME = re.compile(r"passw(or)?d|passphrase|secret", re.IGNORECASE)


@dataclass(frozen=True)
class StoreInfo:
    """A store; the properties are names, one with `*` at its end stands for all that begin so."""

    name: str
    networked: bool
    properties: tuple[str, ...]
    # Of these, the passwords, and those that say where its files are.
    secrets: tuple[str, ...]
    directories: tuple[str, ...]
    # The properties that take the hosts of its servers and their port.
    hosts: str | None = None
    port: str | None = None

    @property
    def keeps_files(self) -> bool:
        """Whether it keeps files of its own."""
        return bool(self.directories)

    @property
    def address(self) -> tuple[str, str] | None:
        """The properties for hosts and port, of a store that has both."""
        return (self.hosts, self.port) if self.hosts and self.port else None


@dataclass(frozen=True)
class Description:
    """One build of the engine."""

    stores: Mapping[str, StoreInfo]
    # YCSB's and the engine's own, whatever the store.
    properties: frozenset[str]

    @property
    def directories(self) -> frozenset[str]:
        """Every property that says where a store's files are."""
        return frozenset(name for store in self.stores.values() for name in store.directories)

    def is_secret(self, name: str) -> bool:
        """Whether a property's value is not to be written anywhere: a store says so, or its name does."""
        return any(name in store.secrets for store in self.stores.values()) or bool(SECRET_NAME.search(name))

    def without_secrets(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Properties as they may be written; the name of a variable that holds a secret is none."""
        return {
            name: HIDDEN if self.is_secret(name) and not VARIABLE.fullmatch(str(value)) else value
            for name, value in properties.items()
        }

    def networked(self, store: str) -> bool:
        """Whether a store's operations cross a network; not of one that there is not."""
        return store in self.stores and self.stores[store].networked

    def keeps_files(self, store: str) -> bool:
        """Whether a store keeps files of its own; not of one that there is not."""
        return store in self.stores and self.stores[store].keeps_files

    def keeps_data(self, store: str) -> bool:
        """Whether there are data to load: a store without servers and without files has nowhere to keep any."""
        return self.networked(store) or self.keeps_files(store)

    def own(self, store: str) -> tuple[str, ...]:
        """A store's own properties."""
        return self.stores[store].properties if store in self.stores else ()

    def address(self, store: str) -> tuple[str, str] | None:
        """The properties that take a store's hosts and port, if it has them."""
        return self.stores[store].address if store in self.stores else None


@cache
def description() -> Description:
    """Of the engine that would run now. Raises LoadstoneError when there is none, or it is too old to say."""
    path = program.find()
    hint = "it is of another version than this package; run `make`"
    try:
        told = subprocess.run([path, "describe"], capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LoadstoneError(f"cannot run {path}: {error}", hint) from error
    if told.returncode:
        raise LoadstoneError(f"{path} does not describe itself: {told.stderr.strip() or told.returncode}", hint)
    return parse(told.stdout, path, hint)


def parse(text: str, path: str, hint: str) -> Description:
    """Reads what an engine says. Raises LoadstoneError."""
    try:
        found = json.loads(text)
        if found["describe"] != VERSION:
            raise LoadstoneError(f"{path} describes itself by version {found['describe']}, this is {VERSION}", hint)
        stores = read(list[StoreInfo], found["stores"])
        names = frozenset(str(each["name"]) for each in found["properties"])
    except (ValueError, KeyError, TypeError) as error:
        raise LoadstoneError(f"{path} describes itself in a way that is not understood: {error!r}", hint) from error
    return Description({each.name: each for each in stores}, names)
