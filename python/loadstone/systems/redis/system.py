"""Redis: one server, in Debian's version. Its settings have the names of redis.conf."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from loadstone.results import lines
from loadstone.systems.base import tls
from loadstone.systems.base.files import debian, program
from loadstone.systems.base.plan import read_choice, read_truth, read_whole_number
from loadstone.systems.base.system import Place, Server, Setting, System, SystemPlan, SystemsError
from loadstone.systems.redis.client import RedisClient, RedisError

HOST = "127.0.0.1"
PROGRAM = "redis-server"
# Settings of the running server that decide what a result means.
ASKED = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy", "io-threads")
# Files that it has open beside its connections.
OTHER_FILES = 96
HINT = "name a working redis-server with --set binary=PATH"


class Redis(System):
    """One Redis server, without snapshots."""

    name = "redis"
    title = "Redis 7, one server"
    activities: ClassVar = {
        "snapshot": "Background saving started",
        "log_rewrite": "Background append only file rewriting started",
    }
    settings = (
        Setting("version", "7.0.15", "of the package, or its beginning: `7.0`"),
        Setting("binary", "debian", "`debian` (the package), or the path of a redis-server"),
        Setting("port", "6379", "the port"),
        Setting("password", "", "for AUTH; none by default"),
        Setting("appendonly", "no", "write a log of all writes: `yes` or `no`"),
        Setting("appendfsync", "everysec", "when the log is synced: `always`, `everysec` or `no`"),
        Setting("maxclients", "10100", "connections, each an open file"),
        Setting("maxmemory", "0", "bytes, or `2gb`; 0: no limit"),
        Setting("maxmemory-policy", "noeviction", "at `maxmemory`: `allkeys-lru` …"),
        Setting("io-threads", "1", "threads that write to connections"),
        tls.SETTING,
    )

    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        """Writes redis.conf; one server."""
        text = render_configuration(place, plan)
        allow_connections(read_whole_number(plan, "maxclients", 1))
        binary, variables = find_server(place, plan)
        directory = place.data / "redis"
        directory.mkdir(parents=True, exist_ok=True)
        if tls.is_requested(plan):
            tls.ensure_certificates(place, [server_address(plan)])
        path = directory / "redis.conf"
        # It contains the password.
        lines.replace_file(path, text.encode(), 0o600)
        argv, port = [binary, str(path)], read_whole_number(plan, "port", 1)
        return [[Server("redis", argv, server_address(plan), port, environment=variables, directory=directory)]]

    isolatable: ClassVar = True
    spreadable: ClassVar = True

    def node_directories(self, plan: SystemPlan) -> Sequence[str]:
        """The server's."""
        return ["redis"]

    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """When it answers PING, with its data loaded, and accepts as many clients as configured."""
        try:
            with connect_client(plan) as client:
                client.send_command("PING")
                allowed = client.send_command("CONFIG", "GET", "maxclients")
        except (OSError, RedisError) as error:
            # LOADING: it is reading its log.
            return f"redis does not answer PING: {error}"
        if allowed != ["maxclients", plan.settings["maxclients"]]:
            return f"redis accepts only {allowed} clients: too few open files"
        return None

    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """By the names of YCSB's binding."""
        properties = {"redis.host": server_address(plan), "redis.port": plan.settings["port"]}
        if tls.is_requested(plan):
            properties |= {"redis.tls": "true", "redis.tls.ca": tls.authority_path(place)}
        password = plan.settings["password"]
        return {**properties, "redis.password": password} if password else properties

    def client_environment(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """redis-cli and redis-benchmark of its version; both read the password from a variable."""
        binary, variables = find_server(place, plan)
        password = plan.settings["password"]
        return {**variables, "PATH": str(Path(binary).parent), **({"REDISCLI_AUTH": password} if password else {})}

    def server_version(self, plan: SystemPlan) -> str:
        """The version that the server reports."""
        try:
            with connect_client(plan) as client:
                return client.read_section("server")["redis_version"]
        except (OSError, RedisError, KeyError):
            return plan.settings["version"]

    def read_facts(self, place: Place, plan: SystemPlan) -> Mapping[str, str | int | float]:
        """What is kept, and how safely, as the server reports: a hook may have changed its settings."""
        try:
            with connect_client(plan) as client:
                settings = {name: read_setting(client, name) for name in ASKED}
                role, replicas = (client.read_section("replication")[name] for name in ("role", "connected_slaves"))
        except (OSError, RedisError, KeyError) as error:
            return {"data_in": "memory", "durability_unknown": f"the settings of redis could not be read: {error}"}
        durability, how = write_durability(settings)
        rewrite = "no-appendfsync-on-rewrite"
        return {
            **{name: value for name, value in settings.items() if name != rewrite},
            "data_in": "memory",
            "durability": durability,
            "how": how,
            **({"replication": 1 + int(replicas)} if role == "master" else {}),
            "replication_acknowledged": 1,
        }

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """Keys, memory, connections and evictions."""
        try:
            with connect_client(plan) as client:
                keys = client.send_command("DBSIZE")
                memory, clients, stats = (client.read_section(each) for each in ("memory", "clients", "stats"))
        except (OSError, RedisError):
            return {}
        return {
            "redis.keys": float(keys) if isinstance(keys, int) else 0.0,
            "redis.used_memory_bytes": float(memory["used_memory"]),
            "redis.connections": float(clients["connected_clients"]),
            "redis.evicted_keys": float(stats["evicted_keys"]),
        }

    def create_table(
        self, place: Place, plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool
    ) -> bool:
        """Removes every key: Redis has no tables, and YCSB's index of keys is a key too."""
        try:
            with connect_client(plan, timeout_s=60.0) as client:
                return bool(client.send_command("FLUSHDB"))
        except (OSError, RedisError) as error:
            raise SystemsError(f"redis cannot be emptied: {error}", "`loadstone systems status redis`") from error


def server_address(plan: SystemPlan) -> str:
    """The server's address."""
    if plan.addresses:
        return plan.addresses[0]
    return f"{plan.network}.1" if plan.network else HOST


def read_setting(client: RedisClient, name: str) -> str:
    """A setting of the running server. Raises RedisError, or KeyError where this version does not have it."""
    reply = client.send_command("CONFIG", "GET", name)
    if not isinstance(reply, list) or len(reply) != 2:
        raise KeyError(name)
    return str(reply[1])


def write_durability(settings: Mapping[str, str]) -> tuple[str, str]:
    """What an acknowledged write survives, and why, by the rules of crates/stores/src/redis/server.rs."""
    if settings["appendonly"] != "yes":
        return "none", "no append-only log: writes are in the server's memory"
    match settings["appendfsync"]:
        case "always" if settings["no-appendfsync-on-rewrite"] == "no":
            return "device", "append-only log, synced before each answer"
        case "always":
            return "os", "append-only log, synced before each answer except while it is rewritten"
        case "no":
            return "os", "append-only log, written before each answer, not synced"
    # While one sync is under way, answered writes wait in the server's memory, up to two seconds.
    return "interval", "append-only log, synced each second; during a sync, writes wait in the server's memory"


def connect_client(plan: SystemPlan, timeout_s: float = 3.0) -> RedisClient:
    """A connection to the server. Raises OSError or RedisError."""
    port, password = read_whole_number(plan, "port", 1), plan.settings["password"]
    return RedisClient(server_address(plan), port, password, timeout_s, encrypted=tls.is_requested(plan))


def find_server(place: Place, plan: SystemPlan) -> tuple[str, Mapping[str, str]]:
    """The server's program, and the environment that it needs to find its libraries. Raises SystemsError."""
    named = plan.settings["binary"]
    if named != "debian":
        executable = shutil.which(named)
        if executable is None:
            raise SystemsError(f"there is no program {named}", HINT)
        return str(Path(executable).absolute()), {}
    root = debian.unpack_packages([PROGRAM], plan.settings["version"], place.cache)
    binary = str(root / "usr/bin" / PROGRAM)
    variables = {"LD_LIBRARY_PATH": debian.library_path(root)}
    # A missing library is reported here by name, rather than by a server that does not start.
    program.run_program([binary, "--version"], f"{binary} does not run", HINT, variables=variables)
    return binary, variables


def render_configuration(place: Place, plan: SystemPlan) -> str:
    """redis.conf. Raises SystemsError for an invalid setting."""
    settings = {
        "bind": server_address(plan),
        "port": str(read_whole_number(plan, "port", 1)),
        "dir": quote_value(str(place.data / "redis")),
        "daemonize": "no",
        "supervised": "no",
        "logfile": '""',
        # Its title would overwrite the environment by which its process is properties.
        "set-proc-title": "no",
        # A snapshot's fork disturbs the measurement.
        "save": '""',
        "appendonly": "yes" if read_truth(plan, "appendonly") else "no",
        "appendfsync": read_choice(plan, "appendfsync", ("always", "everysec", "no")),
        "maxclients": str(read_whole_number(plan, "maxclients", 1)),
        "maxmemory": quote_value(plan.settings["maxmemory"]),
        "maxmemory-policy": quote_value(plan.settings["maxmemory-policy"]),
        "io-threads": str(read_whole_number(plan, "io-threads", 1)),
        # Ten thousand clients connect at once; the kernel cuts this to net.core.somaxconn.
        "tcp-backlog": "4096",
        "timeout": "0",
    }
    if tls.is_requested(plan):
        files = tls.tls_directory(place)
        settings |= {
            "port": "0",
            "tls-port": settings["port"],
            "tls-cert-file": quote_value(str(files / "server.pem")),
            "tls-key-file": quote_value(str(files / "server.key")),
            "tls-ca-cert-file": quote_value(str(files / "ca.pem")),
            "tls-auth-clients": "optional",
        }
    password = plan.settings["password"]
    if password:
        settings["requirepass"] = quote_value(password)
    elif plan.addresses:
        # Without a password, Redis refuses clients on other hosts.
        settings["protected-mode"] = "no"
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def quote_value(text: str) -> str:
    """A value quoted for redis.conf."""
    plain = {byte: chr(byte) for byte in range(32, 127) if byte not in b'"\\'}
    return '"' + "".join(plain.get(byte, f"\\x{byte:02x}") for byte in text.encode()) + '"'


def allow_connections(connections: int) -> None:
    """Allows the servers we start that many connections. Raises SystemsError when the limits do not.

    Raises this process's limit, which they inherit: each connection is an open file.
    """
    needed = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        above = hard != resource.RLIM_INFINITY and hard < needed
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, needed if above else hard))
    except (ValueError, OSError) as error:
        raise SystemsError(
            f"{connections} connections take {needed} open files, but a process may have only {hard}",
            f"run `ulimit -Hn {needed}` as root first, or ask for fewer with --set",
        ) from error
