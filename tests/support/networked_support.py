"""An entry for each store that connects to a server, and a store with a running server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from conftest import Engine
from systems_support import Up

RECORDS = 400
CLIENTS = 8
# The statuses with which operations may fail while the server is down or paused.
GONE = {"SERVICE_UNAVAILABLE", "TIMEOUT"}
PAUSE_SECONDS = 5.0
# Suffixes of the names of properties that contain an address.
HOST, PORT = ("host", "hosts", "quorum"), ("port", "Port")


@dataclass(frozen=True)
class Networked:
    """A store, its system, and the settings that connect them."""

    name: str
    system: str
    # The prefix of the store's properties; a system returns properties for every store that it serves.
    properties: tuple[str, ...]
    # The property that contains the store's time limit, in ms.
    timeout: str
    # The property that contains the password; None if the store has no password.
    password: str | None = None
    # Options of `loadstone systems fresh`; None if the store has no tables.
    table: Mapping[str, str] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    nodes: int | None = None
    # Required properties in addition to the server's address.
    more_properties: Mapping[str, str] = field(default_factory=dict)
    # The maximum number of clients; limited by this machine if each client is a thread of a JVM.
    many_clients: int = 1000
    # The statuses after a kill; the messages about a time limit of 1,500 ms and about table creation.
    killed: tuple[str, ...] = ("SERVICE_UNAVAILABLE",)
    late: str = r"within 1500 ms"
    makes_table: str = r"CREATE TABLE (ycsb\.)?nosuchtable"

    @property
    def variable(self) -> str:
        """The environment variable with the properties for the tests in Rust."""
        return f"LOADSTONE_TEST_{self.name.upper()}"


STORES = (
    Networked(
        "redis",
        "redis",
        ("redis.",),
        "redis.timeout",
        "redis.password",
        # Writes must survive a restart.
        settings={"password": "secret", "appendonly": "yes", "appendfsync": "no"},
        # A stall of this machine may exceed the store's default time limit of 2 s.
        more_properties={"redis.timeout": "10000"},
    ),
    Networked("postgres", "postgres", ("db.",), "postgres.timeout", "db.passwd", {"layout": "jdbc"}, many_clients=150),
    Networked(
        "postgrenosql",
        "postgres",
        ("postgrenosql.",),
        "postgres.timeout",
        "postgrenosql.passwd",
        {"layout": "postgrenosql"},
        many_clients=150,
    ),
    Networked(
        "cassandra",
        "cassandra",
        ("hosts", "port", "cassandra."),
        "cassandra.readtimeoutmillis",
        "cassandra.password",
        {},
        # With its default limits, a server that was stopped for five seconds abandons its requests in flight.
        settings={
            "authenticator": "PasswordAuthenticator",
            "read_request_timeout": "20000ms",
            "write_request_timeout": "20000ms",
        },
    ),
    Networked(
        "hbase",
        "hbase",
        ("hbase.zookeeper.",),
        "hbase.client.operation.timeout",
        table={"family": "cf"},
        more_properties={"columnfamily": "cf"},
        many_clients=100,
        # HBase's client retries until its time limit, so it may report a timeout for a killed server, too.
        killed=("SERVICE_UNAVAILABLE", "TIMEOUT"),
        late=r"callTimeout=1500\b",
        makes_table=r"`loadstone systems hbase create-table nosuchtable cf`",
    ),
)


@dataclass(frozen=True)
class Served:
    """A store with a running server and a table."""

    store: Networked
    up: Up

    @property
    def properties(self) -> dict[str, str]:
        """The store's properties."""
        entries = {n: v for n, v in self.up.properties.items() if n.startswith(self.store.properties)}
        return {**entries, **self.store.more_properties}

    @property
    def address(self) -> tuple[str, str]:
        """Host and port, in the form used by messages."""
        text = " ".join(self.properties.values())
        match = re.search(r"//([^:/]+):(\d+)", text)
        if match:
            return match[1], match[2]
        host = next(v for n, v in self.properties.items() if n.endswith(HOST)).split(",")[0]
        return host, next(v for n, v in self.properties.items() if n.endswith(PORT))

    def elsewhere(self, host: str, port: str) -> dict[str, str]:
        """The properties of a server at another address."""
        own_host, own_port = self.address
        changed = {}
        for name, value in self.properties.items():
            if name.endswith("url"):
                value = value.replace(f"{own_host}:{own_port}", f"{host}:{port}")
            elif name.endswith(HOST):
                value = host
            elif name.endswith(PORT):
                value = port
            changed[name] = value
        assert changed != self.properties
        return changed

    def arguments(self, **changes: str) -> list[str]:
        """The properties as the engine's command line takes them; `_` in a name means `.`."""
        all_properties = {**self.properties, **{name.replace("_", "."): value for name, value in changes.items()}}
        return [f"{name}={value}" for name, value in all_properties.items()]

    def reset_table(self) -> None:
        """Makes sure that the server runs and its table is empty."""
        self.up.running.up(self.store.nodes, self.up.running.plan.settings)
        self.up.running.recreate_table("usertable", self.store.table or {})

    def load(self, engine: Engine) -> None:
        """Loads records that can be verified."""
        self.reset_table()
        line = (
            f"load {self.store.name} -P workloads/workloada recordcount={RECORDS} dataintegrity=true -threads {CLIENTS}"
        )
        result = engine(line, *self.arguments())
        assert result.returns("INSERT") == {"OK": RECORDS}

    def run(self, seconds: int, *more: str) -> tuple[str, ...]:
        """The command line of a run of workload A of this duration."""
        line = f"run {self.store.name} -P workloads/workloada recordcount={RECORDS} dataintegrity=true operationcount=0"
        return (f"{line} maxexecutiontime={seconds} -threads {CLIENTS}", *self.arguments(), *more)
