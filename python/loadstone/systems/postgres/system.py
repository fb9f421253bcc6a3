"""PostgreSQL: one server, from Debian's package, with a role and a database for the store."""

from __future__ import annotations

import dataclasses
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from loadstone.systems.base import outside_directories, tls
from loadstone.systems.base.files import debian
from loadstone.systems.base.plan import read_choice, read_positive, read_truth, read_whole_number, table_plan
from loadstone.systems.base.system import Place, Server, Setting, StartEstimate, System, SystemPlan, SystemsError
from loadstone.systems.postgres import cluster
from loadstone.systems.postgres.cluster import SUPERUSER, Programs

HOST = "127.0.0.1"
SERVER = "postgres"
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
LAYOUTS = ("jdbc", "postgrenosql")


def read_commit(plan: SystemPlan, name: str = "synchronous_commit") -> str:
    """The event for which a commit waits. Raises SystemsError for an invalid value."""
    return read_choice(plan, name, COMMITS)


def check_name(plan: SystemPlan, name: str) -> None:
    """Checks the name of a role or database. Raises SystemsError."""
    if check_identifier(plan.settings[name], name).lower() == SUPERUSER:
        raise SystemsError(f"{name} cannot be {SUPERUSER}, which the server reserves", f"set {name} to ycsb")


class Postgres(System):
    """One PostgreSQL server."""

    name = "postgres"
    title = "PostgreSQL 15, one server"
    runs_in_java = False
    start_estimate = StartEstimate(2.0, 5.0, 15.0)
    activities: ClassVar = {"checkpoint": "LOG:  checkpoint starting"}
    settings = (
        Setting("version", "15", "the version of the package, or a prefix of it: `15`, `15.20`"),
        Setting("binary", "debian", "`debian` (the package), or a directory with `postgres`"),
        Setting("port", "5432", "the port of the server", read_positive),
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
        """Creates the role and the database if they are missing; returns one server."""
        arguments = server_parameters(plan)
        user = outside_directories.choose_user("postgres")
        programs = find_programs(place, plan, user)
        directory = outside_directories.directory_for(user, place, SERVER)
        if tls.is_requested(plan):
            # A client's certificate names the client's role, for `clientcert=verify-full`.
            files = tls.ensure_certificates(place, [HOST], plan.settings["user"])
            arguments += encryption_parameters(cluster.copy_certificates(files, directory, user))
        data = cluster.ensure_cluster(programs, directory, user, plan.settings)
        server = Server(
            SERVER,
            [programs.program_path("postgres"), "-D", str(data), *arguments],
            HOST,
            read_whole_number(plan, "port", 1),
            environment=programs.variables,
            directory=directory,
            user=user,
            # On SIGINT, the server closes connections instead of waiting for clients to disconnect.
            stop=signal.SIGINT,
        )
        return [[server]]

    def node_directories(self, plan: SystemPlan) -> Sequence[str]:
        """The server's data directory."""
        return [SERVER]

    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """Checks that the clients' role gets an answer from its database."""
        try:
            self._ask_server(place, plan, "SELECT 1")
        except SystemsError as error:
            return str(error.args[0])
        return None

    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The properties with which a store connects, with the names that YCSB's two bindings use."""
        settings = plan.settings
        url = f"jdbc:postgresql://{HOST}:{settings['port']}/{settings['database']}"
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
            "PGHOST": HOST,
            **{variable: plan.settings[name] for variable, name in names.items()},
        }

    def data_directories(self, place: Place, plan: SystemPlan) -> Sequence[Path]:
        """The server's directory, which may be a link."""
        return [place.data / SERVER]

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
        standbys = settings.pop("synchronous_standby_names")
        alone = not standbys or settings["synchronous_commit"] in ("off", "local")
        acknowledged = 1 if alone else f"1 and {standbys} ({settings['synchronous_commit']})"
        return {**settings, "durability": durability, "how": how, "replication_acknowledged": acknowledged}

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """The number of connections, and the size, live rows and dead rows of the role's largest database.

        A command may use another database than the stores.
        """
        largest = """
            SELECT datname FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba WHERE rolname = current_user
            ORDER BY pg_database_size(pg_database.oid) DESC LIMIT 1"""
        query = """
            SELECT pg_database_size(current_database()), (SELECT count(*) FROM pg_stat_activity),
                (SELECT coalesce(sum(n_live_tup), 0) FROM pg_stat_user_tables),
                (SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables)"""
        try:
            settings = {**plan.settings, "database": self._ask_server(place, plan, largest)}
            values = self._ask_server(place, dataclasses.replace(plan, settings=settings), query).split("|")
        except SystemsError:
            return {}
        names = ("database_bytes", "connections", "live_rows", "dead_rows")
        return {f"postgres.{name}": float(value) for name, value in zip(names, values, strict=True)}

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
        """Removes the files outside the data directory, which exist if the server's user cannot access the data
        directory."""
        cluster.remove_shared_memory((place.data / SERVER).resolve())
        outside_directories.remove_outside(place)

    def _ask_server(self, place: Place, plan: SystemPlan, query: str) -> str:
        """The answer to a query, with columns separated by `|`. Raises SystemsError."""
        programs = find_programs(place, plan, outside_directories.choose_user("postgres"))
        return cluster.ask_server(programs, HOST, plan.settings, query)


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
        "listen_addresses": HOST,
        "port": str(read_whole_number(plan, "port", 1)),
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
    if duplicates := [name for name in extra if name.lower() in values]:
        name = duplicates[0].lower()
        hint = f"use the setting {name}" if name in plan.settings else "omit it"
        raise SystemsError(f"conf.{duplicates[0]} cannot be set: Loadstone sets it", hint)
    return [word for name, value in {**values, **extra}.items() for word in ("-c", f"{name}={value}")]


def encryption_parameters(files: Path) -> list[str]:
    """The parameters for encrypted connections as arguments; unencrypted connections are accepted, too."""
    values = {
        "ssl": "on",
        "ssl_cert_file": files / "server.pem",
        "ssl_key_file": files / "server.key",
        "ssl_ca_file": files / "ca.pem",
    }
    return [word for name, value in values.items() for word in ("-c", f"{name}={value}")]


def check_identifier(text: str, what: str) -> str:
    """Checks that SQL accepts a name unquoted. Raises SystemsError."""
    if not NAME.fullmatch(text):
        raise SystemsError(f'{what} cannot be "{text}" in SQL', "use at most 63 letters, digits and _")
    return text
