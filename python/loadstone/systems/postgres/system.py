"""PostgreSQL: one server, or a primary with standbys, from Debian's package, with a role and a database for the
store."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from loadstone.format import units
from loadstone.systems.base import outside_directories, tls
from loadstone.systems.base.files import debian
from loadstone.systems.base.plan import read_choice, read_positive, read_truth, read_whole_number, table_plan
from loadstone.systems.base.system import Place, Server, Setting, StartEstimate, System, SystemPlan, SystemsError
from loadstone.systems.postgres import cluster
from loadstone.systems.postgres.cluster import SUPERUSER, Programs

HOST = "127.0.0.1"
# The names of a single server and of a primary.
SERVER, PRIMARY = "postgres", "primary"
# A valid unquoted name in SQL. YCSB's bindings do not quote names, so both read `Table` as `table`.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
URL = re.compile(r"jdbc:postgresql://([^:/?]+)(?::(\d+))?/([^?]*)")
COMMITS = ("on", "off", "local", "remote_write", "remote_apply")
# Parameters of the running server that determine the meaning of a result.
RECORDED = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_writer_delay",
    "shared_buffers",
    "max_connections",
)
# https://www.postgresql.org/docs/15/runtime-config-replication.html#GUC-SYNCHRONOUS-STANDBY-NAMES
STANDBY = r'(?:"[^",]+"|[A-Za-z_][A-Za-z0-9_$]*|\*)'
LIST = rf"\s*{STANDBY}(?:\s*,\s*{STANDBY})*\s*"
STANDBYS = re.compile(rf"\s*(?:(?:(?:FIRST|ANY)\s+)?(\d+)\s*\(({LIST})\)\s*|({LIST}))", re.I)
# The parameters in `node_parameters`.
OF_NODE = frozenset({"listen_addresses", "port", "synchronous_standby_names"})
# Whether a standby receives the primary's log and has written everything sent to it. The standby is asked, because
# sessions that wait for a lost standby may occupy all connections of the primary.
CAUGHT_UP = """
    SELECT 1 FROM pg_stat_wal_receiver WHERE status = 'streaming' AND (written_lsn < latest_end_lsn) IS NOT TRUE"""
LAYOUTS = ("jdbc", "postgrenosql")


def read_commit(plan: SystemPlan, name: str = "synchronous_commit") -> str:
    """The event for which a commit waits. Raises SystemsError for an invalid value."""
    return read_choice(plan, name, COMMITS)


def check_standbys(plan: SystemPlan, name: str = "synchronous_standby_names") -> None:
    """Checks that commits wait only for standbys that exist: otherwise, every commit would wait forever. Raises
    SystemsError."""
    text, standbys = plan.settings[name], [server_name(plan, node) for node in range(2, plan.nodes + 1)]
    if not standbys or not text:
        return
    match = STANDBYS.fullmatch(text)
    hint = f'use `*`, `ANY 1 (*)`, or names in quotes: `"{standbys[0]}"`; the standbys are {", ".join(standbys)}'
    if match is None:
        raise SystemsError(f'{name} cannot be "{text}"', hint)
    names = [entry.strip().strip('"') for entry in (match[2] or match[3]).split(",")]
    if missing := [entry for entry in names if entry not in (*standbys, "*")]:
        raise SystemsError(f'{name} contains "{missing[0]}", which is not a standby', hint)
    count = int(match[1] or 1)
    if count > (len(standbys) if "*" in names else len({*names})) or count < 1:
        raise SystemsError(f"{name} requires {units.count_noun(count, 'standby', 'standbys')}", hint)


def check_name(plan: SystemPlan, name: str) -> None:
    """Checks the name of a role or database. Raises SystemsError."""
    if check_identifier(plan.settings[name], name).lower() == SUPERUSER:
        raise SystemsError(f"{name} cannot be {SUPERUSER}, which the server reserves", f"set {name} to ycsb")


class Postgres(System):
    """One PostgreSQL server, or a primary with standbys. The primary stays the primary: no standby is promoted."""

    name = "postgres"
    title = "PostgreSQL 15, one server or a primary with standbys"
    nodes = (1, 2, 3)
    isolatable: ClassVar = True
    runs_in_java = False
    start_estimate = StartEstimate(2.0, 5.0, 15.0)
    activities: ClassVar = {"checkpoint": "LOG:  checkpoint starting"}
    settings = (
        Setting("version", "15", "the version of the package, or a prefix of it: `15`, `15.20`"),
        Setting("binary", "debian", "`debian` (the package), or a directory with `postgres`"),
        Setting("port", "5432", "the port of the server or primary; each standby has the next port", read_positive),
        Setting("user", "ycsb", "the clients' role, which owns the database", check_name),
        Setting("password", "ycsb", "the password of this role"),
        Setting("database", "ycsb", "the stores' database; for commands, there is also `bench`", check_name),
        Setting("fsync", "on", "with `off`, a power cut can destroy all data", read_truth),
        Setting(
            "synchronous_commit",
            "on",
            f"what a commit waits for: {', '.join(f'`{name}`' for name in COMMITS)}",
            read_commit,
        ),
        Setting(
            "synchronous_standby_names",
            "*",
            "the standbys that commits wait for, if there are standbys; empty: none",
            check_standbys,
        ),
        Setting("shared_buffers", "128MB", "the size of the cache in memory"),
        Setting(
            "max_connections", "200", "the maximum number of connections, each of which is a process", read_positive
        ),
        tls.SETTING,
        Setting("conf.*", "", "other parameters of postgresql.conf: `conf.max_wal_size=4GB`"),
    )

    def check_plan(self, plan: SystemPlan) -> None:
        """Checks that `conf.*` contains none of the parameters that Loadstone sets. Raises SystemsError."""
        server_parameters(plan)

    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        """Creates the clusters if they are missing; returns the primary, followed by its standbys."""
        arguments = server_parameters(plan)
        user = outside_directories.choose_user("postgres")
        programs = find_programs(place, plan, user)
        names = self.node_directories(plan)
        network = f"{plan.network}.0/24" if plan.network else ""
        primary = None
        servers = []
        for node, name in enumerate(names, 1):
            directory = outside_directories.directory_for(user, place, name)
            options = [*arguments, *node_parameters(plan, node)]
            if tls.is_requested(plan):
                # A client's certificate names the client's role, for `clientcert=verify-full`.
                files = tls.ensure_certificates(place, [server_address(plan, 1)], plan.settings["user"])
                options += encryption_parameters(cluster.copy_certificates(files, directory, user))
            if primary is None:
                data = primary = cluster.ensure_cluster(
                    programs, directory, user, plan.settings, names[1:], arguments, network
                )
            else:
                address = server_address(plan, 1)
                data = cluster.ensure_standby(primary, directory, user, plan.settings, name, address)
            servers.append(
                Server(
                    name,
                    [programs.program_path("postgres"), "-D", str(data), *options],
                    server_address(plan, node),
                    server_port(plan, node),
                    environment=programs.variables,
                    directory=directory,
                    user=user,
                    # On SIGINT, the server closes connections instead of waiting for clients to disconnect.
                    stop=signal.SIGINT,
                )
            )
        return [servers[:1], servers[1:]] if servers[1:] else [servers]

    def node_directories(self, plan: SystemPlan) -> Sequence[str]:
        """The data directory of each server."""
        return [server_name(plan, node) for node in range(1, plan.nodes + 1)]

    def plan_roles(self, plan: SystemPlan) -> Mapping[str, Sequence[str]]:
        """The primary; a single server counts as a primary."""
        return {PRIMARY: [server_name(plan, 1)]}

    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """Checks that the clients' role gets an answer from its database on each server, and that each standby has
        caught up with the primary."""
        try:
            for server in servers:
                node = self.node_directories(plan).index(server.name) + 1
                if not self._ask_server(place, plan, "SELECT 1" if node == 1 else CAUGHT_UP, node):
                    return f"{server.name} has not caught up with the primary"
        except SystemsError as error:
            return str(error.args[0])
        return None

    def find_backlog(self, place: Place, plan: SystemPlan) -> str | None:
        """The first reachable standby that has not caught up with the primary."""
        for node in range(2, plan.nodes + 1):
            with contextlib.suppress(SystemsError):
                if not self._ask_server(place, plan, CAUGHT_UP, node):
                    return f"{server_name(plan, node)} has not caught up with the primary"
        return None

    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The properties with which a store connects, with the names that YCSB's two bindings use."""
        settings = plan.settings
        url = f"jdbc:postgresql://{server_address(plan, 1)}:{settings['port']}/{settings['database']}"
        if tls.is_requested(plan):
            url += f"?sslmode=verify-full&sslrootcert={quote(tls.authority_path(place))}"
        return {
            "postgrenosql.url": url,
            "postgrenosql.user": settings["user"],
            "postgrenosql.passwd": settings["password"],
            "db.driver": "org.postgresql.Driver",
            "db.url": url,
            "db.user": settings["user"],
            "db.passwd": settings["password"],
        }

    def client_environment(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The path of the matching psql and pgbench, and libpq's variables for host, role and database."""
        programs = find_programs(place, plan, outside_directories.choose_user("postgres"))
        names = {"PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password", "PGDATABASE": "database"}
        return {
            **programs.variables,
            "PATH": str(programs.directory),
            "PGHOST": server_address(plan, 1),
            **{variable: plan.settings[name] for variable, name in names.items()},
        }

    def data_directories(self, place: Place, plan: SystemPlan) -> Sequence[Path]:
        """The servers' directories, which may be links."""
        return [place.data / name for name in self.node_directories(plan)]

    def read_facts(self, place: Place, plan: SystemPlan) -> Mapping[str, str | int | float]:
        """The server's exact version and its parameters, as the clients' role sees them."""
        extra = [name for name in plan.settings if name.startswith("conf.")]
        names = [*RECORDED, *(name.removeprefix("conf.") for name in extra)]
        query = ", ".join(f"coalesce(current_setting({cluster.sql_literal(name)}, true), '')" for name in names)
        try:
            values = self._ask_server(place, plan, f"SELECT concat_ws(E'\\x01', {query})").split("\x01")
        except SystemsError as error:
            return {"durability_unknown": f"the settings of postgres could not be read: {error.args[0]}"}
        settings = dict(zip([*RECORDED, *extra], values, strict=True))
        durability = write_durability(settings["fsync"], settings["synchronous_commit"])
        how = f"synchronous_commit={settings['synchronous_commit']}, fsync={settings['fsync']}"
        standbys = settings["synchronous_standby_names"]
        alone = not standbys or settings["synchronous_commit"] in ("off", "local")
        acknowledged = 1 if alone else f"1 and {standbys} ({settings['synchronous_commit']})"
        # A single server may have standbys that a hook started.
        copies: dict[str, str | int] = {} if plan.nodes == 1 else {"replication": plan.nodes, PRIMARY: PRIMARY}
        return {**settings, "durability": durability, "how": how, "replication_acknowledged": acknowledged, **copies}

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """The number of connections, the size, live rows and dead rows of the role's largest database, and the number
        of connected standbys and their largest lag.

        Commands and stores may use different databases.
        """
        largest = """
            SELECT datname FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba WHERE rolname = current_user
            ORDER BY pg_database_size(pg_database.oid) DESC LIMIT 1"""
        query = """
            SELECT pg_database_size(current_database()), (SELECT count(*) FROM pg_stat_activity),
                (SELECT coalesce(sum(n_live_tup), 0) FROM pg_stat_user_tables),
                (SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables),
                (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'),
                (SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)) FROM pg_stat_replication)"""
        try:
            settings = {**plan.settings, "database": self._ask_server(place, plan, largest)}
            values = self._ask_server(place, dataclasses.replace(plan, settings=settings), query).split("|")
        except SystemsError:
            return {}
        names = ["database_bytes", "connections", "live_rows", "dead_rows"]
        if plan.nodes > 1:
            names += ["standbys", "standby_lag_bytes"]
        # Without a connected standby, the lag is unknown.
        return {f"postgres.{name}": float(value) for name, value in zip(names, values, strict=False) if value}

    def create_table(
        self, place: Place, plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool
    ) -> bool:
        """Creates a table in the layout of a YCSB binding; the options are `layout` and, for jdbc, `fieldcount`."""
        columns, name = table_layout(options), check_identifier(table, "table")
        if not replace and self._ask_server(place, plan, f"SELECT to_regclass('{name}')"):
            return False
        drop = f"DROP TABLE IF EXISTS {name}; " if replace else ""
        self._ask_server(place, plan, f"{drop}CREATE TABLE IF NOT EXISTS {name} ({columns})")
        return True

    def is_reached(self, own: Mapping[str, str], properties: Mapping[str, str]) -> bool:
        """Whether a store's URL names this server and its database; `localhost` also counts as its host."""
        here = place_of(own["db.url"])
        return any(place_of(properties.get(key, "")) == here for key in ("db.url", "postgrenosql.url"))

    def table_options(
        self, store: str, properties: Mapping[str, str], work: Mapping[str, Any]
    ) -> Mapping[str, str] | None:
        """The store's layout; columns can be created only with YCSB's default names."""
        if store == "postgrenosql":
            return {"layout": "postgrenosql"}
        if work.get("field_name_prefix", "field").lower() != "field":
            return None
        return {"layout": "jdbc", "fieldcount": str(work.get("field_count", 10))}

    def clear_outside(self, place: Place) -> None:
        """Removes the shared memory of killed servers, and the files outside the data directory, which exist if the
        server's user cannot access the data directory."""
        for directory in place.data.iterdir() if place.data.is_dir() else ():
            cluster.remove_shared_memory(directory.resolve())
        outside_directories.remove_outside(place)

    def _ask_server(self, place: Place, plan: SystemPlan, query: str, node: int = 1) -> str:
        """A node's answer to a query, with columns separated by `|`. Raises SystemsError."""
        programs = find_programs(place, plan, outside_directories.choose_user("postgres"))
        settings = {**plan.settings, "port": str(server_port(plan, node))}
        return cluster.ask_server(programs, server_address(plan, node), settings, query)


def server_name(plan: SystemPlan, node: int) -> str:
    """The name of a node's server; nodes are numbered from 1."""
    if plan.nodes == 1:
        return SERVER
    return PRIMARY if node == 1 else f"standby-{node - 1}"


def server_address(plan: SystemPlan, node: int) -> str:
    """The address of a node."""
    return f"{plan.network}.{node}" if plan.network else HOST


def server_port(plan: SystemPlan, node: int) -> int:
    """The port of a node."""
    return read_whole_number(plan, "port", 1) + node - 1


def table_layout(options: Mapping[str, str]) -> str:
    """The columns of a table. Raises SystemsError for an unknown option."""
    chosen = table_plan("postgres", options, {"layout": "jdbc", "fieldcount": "10"})
    if read_choice(chosen, "layout", LAYOUTS) == "postgrenosql":
        return "YCSB_KEY VARCHAR(255) PRIMARY KEY NOT NULL, YCSB_VALUE JSONB NOT NULL"
    fields = [f"FIELD{number} TEXT" for number in range(read_whole_number(chosen, "fieldcount"))]
    return ", ".join(["YCSB_KEY VARCHAR(255) PRIMARY KEY", *fields])


def place_of(url: str) -> tuple[str, str, str] | None:
    """The host, port and database of a JDBC URL; None if it is not a PostgreSQL URL."""
    match = URL.match(url)
    if match is None:
        return None
    host = HOST if match[1] == "localhost" else match[1]
    return host, match[2] or "5432", match[3]


def write_durability(fsync: str, synchronous_commit: str) -> str:
    """The guarantee of an acknowledged write, as in the store (crates/stores/src/postgres/server.rs)."""
    if synchronous_commit == "off":
        return "interval"
    return "device" if fsync == "on" else "os"


def find_programs(place: Place, plan: SystemPlan, user: str | None) -> Programs:
    """The server's programs, in a directory that its user can read. Raises SystemsError."""
    named, version = plan.settings["binary"], plan.settings["version"]
    if named != "debian":
        directory = Path(named).absolute()
        if not (directory / "postgres").is_file():
            hint = "use --set binary=/usr/lib/postgresql/15/bin"
            raise SystemsError(f"there is no program {directory}/postgres", hint)
        return Programs(directory, {})
    major = version.partition(".")[0]
    packages = [f"postgresql-{major}", f"postgresql-client-{major}"]
    root = debian.unpack_packages(packages, version, outside_directories.cache_for(user, place.cache))
    return Programs(root / f"usr/lib/postgresql/{major}/bin", {"LD_LIBRARY_PATH": debian.library_path(root)})


def server_parameters(plan: SystemPlan) -> list[str]:
    """The server's parameters as arguments. Raises SystemsError for an invalid setting."""
    values = {
        # The socket is in the data directory. The path is relative, because it may have at most 107 bytes.
        "unix_socket_directories": ".",
        "fsync": "on" if read_truth(plan, "fsync") else "off",
        "synchronous_commit": read_commit(plan),
        "shared_buffers": plan.settings["shared_buffers"],
        "max_connections": str(read_whole_number(plan, "max_connections", 1)),
        # Shared memory is in the data directory, because in /dev/shm, it would outlive a killed server.
        "dynamic_shared_memory_type": "mmap",
    }
    extra = {name.removeprefix("conf."): value for name, value in plan.settings.items() if name.startswith("conf.")}
    # PostgreSQL ignores the case of parameter names.
    own = {*values, *OF_NODE} if plan.nodes > 1 else {*values, *OF_NODE} - {"synchronous_standby_names"}
    if duplicates := [name for name in extra if name.lower() in own]:
        name = duplicates[0].lower()
        hint = f"use the setting {name}" if name in plan.settings else "omit it"
        raise SystemsError(f"conf.{duplicates[0]} cannot be set: Loadstone sets it", hint)
    return write_arguments({**values, **extra})


def node_parameters(plan: SystemPlan, node: int) -> list[str]:
    """The parameters in which servers differ, as arguments."""
    values = {"listen_addresses": server_address(plan, node), "port": server_port(plan, node)}
    waits = node == 1 and plan.nodes > 1
    names = {"synchronous_standby_names": plan.settings["synchronous_standby_names"]} if waits else {}
    return write_arguments({**values, **names})


def write_arguments(parameters: Mapping[str, object]) -> list[str]:
    """Converts parameters to command-line arguments."""
    return [word for name, value in parameters.items() for word in ("-c", f"{name}={value}")]


def encryption_parameters(files: Path) -> list[str]:
    """The parameters for encrypted connections as arguments; unencrypted connections are accepted, too."""
    values = {
        "ssl": "on",
        "ssl_cert_file": files / "server.pem",
        "ssl_key_file": files / "server.key",
        "ssl_ca_file": files / "ca.pem",
    }
    return write_arguments(values)


def check_identifier(text: str, what: str) -> str:
    """Checks that SQL accepts a name unquoted. Raises SystemsError."""
    if not NAME.fullmatch(text):
        raise SystemsError(f'{what} cannot be "{text}" in SQL', "use at most 63 letters, digits and _")
    return text
