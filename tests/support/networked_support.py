"""The stores that reach a server, an entry each, and a store with its server up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from conftest import Engine
from systems_support import Up

RECORDS = 400
CLIENTS = 8
# What an operation may end with while its server is gone, and while it is paused.
GONE = {"SERVICE_UNAVAILABLE", "TIMEOUT"}
PAUSE_SECONDS = 5.0
# How the names of properties end that hold an address.
HOST, PORT = ("host", "hosts", "quorum"), ("port", "Port")


@dataclass(frozen=True)
class Networked:
    """A store, the system that it reaches, and how they are told of each other."""

    name: str
    system: str
    # How its properties begin: a system tells those of every store that it serves.
    properties: tuple[str, ...]
    # The store's limit of a wait, in ms.
    timeout: str
    # Where the password is, and a user with another would be refused.
    password: str | None = None
    # `loadstone systems fresh`'s options; None where there are no tables that could be missing.
    table: Mapping[str, str] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    nodes: int | None = None
    # What it must be given beside where its server is.
    more_properties: Mapping[str, str] = field(default_factory=dict)
    # A server has room for so many; where each is a thread of a JVM, so has this machine.
    many_clients: int = 1000
    # What is said of a server that was killed, of one that exceeds a limit of 1,500 ms, and of what makes a table.
    killed: tuple[str, ...] = ("SERVICE_UNAVAILABLE",)
    late: str = r"within 1500 ms"
    makes_table: str = r"CREATE TABLE (ycsb\.)?nosuchtable"

    @property
    def variable(self) -> str:
        """What the cases in Rust take its properties from."""
        return f"LOADSTONE_TEST_{self.name.upper()}"


STORES = (
    Networked(
        "redis",
        "redis",
        ("redis.",),
        "redis.timeout",
        "redis.password",
        # What is written must be there after a restart.
        settings={"password": "secret", "appendonly": "yes", "appendfsync": "no"},
        # Its own limit of 2 s is no longer than this machine may be held up.
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
        # A server that was stopped for five seconds gives up on what it had under way, by its own limits.
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
        # Its client asks until its limit is over, and says of either that the limit is.
        killed=("SERVICE_UNAVAILABLE", "TIMEOUT"),
        late=r"callTimeout=1500\b",
        makes_table=r"`loadstone systems hbase create-table nosuchtable cf`",
    ),
)


@dataclass(frozen=True)
class Served:
    """A store and its server, which is up and has the table."""

    store: Networked
    up: Up

    @property
    def properties(self) -> dict[str, str]:
        """The store's own."""
        found = {n: v for n, v in self.up.properties.items() if n.startswith(self.store.properties)}
        return {**found, **self.store.more_properties}

    @property
    def address(self) -> tuple[str, str]:
        """Host and port, as messages name them."""
        text = " ".join(self.properties.values())
        found = re.search(r"//([^:/]+):(\d+)", text)
        if found:
            return found[1], found[2]
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

    def words(self, **changes: str) -> list[str]:
        """The properties as the engine's command line takes them; `_` in a name stands for `.`."""
        all_properties = {**self.properties, **{name.replace("_", "."): value for name, value in changes.items()}}
        return [f"{name}={value}" for name, value in all_properties.items()]

    def fresh(self) -> None:
        """A running server with an empty table, whatever happened to it before."""
        self.up.running.up(self.store.nodes, self.up.running.plan.settings)
        self.up.running.recreate_table("usertable", self.store.table or {})

    def load(self, engine: Engine) -> None:
        """Loads records that can be verified."""
        self.fresh()
        line = (
            f"load {self.store.name} -P workloads/workloada recordcount={RECORDS} dataintegrity=true -threads {CLIENTS}"
        )
        result = engine(line, *self.words())
        assert result.returns("INSERT") == {"OK": RECORDS}

    def run(self, seconds: int, *more: str) -> tuple[str, ...]:
        """A run of workload A that ends after so long."""
        line = f"run {self.store.name} -P workloads/workloada recordcount={RECORDS} dataintegrity=true operationcount=0"
        return (f"{line} maxexecutiontime={seconds} -threads {CLIENTS}", *self.words(), *more)
