"""Redis: one server, a primary with replicas, or a cluster, from Debian's package. Most settings are named as in
redis.conf."""

from __future__ import annotations

import contextlib
import re
import resource
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from loadstone.format import units
from loadstone.results import lines
from loadstone.systems.base import tls
from loadstone.systems.base.files import debian, program
from loadstone.systems.base.plan import read_choice, read_positive, read_truth, read_whole_number
from loadstone.systems.base.system import Place, Server, Setting, StartEstimate, System, SystemPlan, SystemsError
from loadstone.systems.redis.client import RedisClient, RedisError

HOST = "127.0.0.1"
PROGRAM = "redis-server"
# Settings of the running server that determine the meaning of a result.
RECORDED = (
    "appendonly",
    "appendfsync",
    "no-appendfsync-on-rewrite",
    "maxmemory",
    "maxmemory-policy",
    "io-threads",
    "min-replicas-to-write",
)
# The number of files that a server has open in addition to its connections.
OTHER_FILES = 96
SLOTS, PORT_MAX = 16_384, 65_535
# The smallest cluster has three masters.
CLUSTER_MIN = 3
SLAVE = re.compile(r"slave\d+$")
SERVER, PRIMARY, MIN_REPLICAS = "redis", "primary", "min-replicas-to-write"
HINT = "name a working redis-server with --set binary=PATH"


def read_appendfsync(plan: SystemPlan, name: str = "appendfsync") -> str:
    """When the append-only log is synced. Raises SystemsError for an invalid value."""
    return read_choice(plan, name, ("always", "everysec", "no"))


class Redis(System):
    """One Redis server without snapshots, a primary with replicas, or a cluster of at least three servers with equal
    shares of the slots. The primary stays the primary: no replica is promoted."""

    name = "redis"
    title = "Redis 7, one server, a primary with replicas, or a cluster"
    runs_in_java = False
    start_estimate = StartEstimate(0.5, 2.0, 5.0)
    nodes = range(1, 10)
    activities: ClassVar = {
        "snapshot": "Background saving started",
        "log_rewrite": "Background append only file rewriting started",
    }
    settings = (
        Setting("version", "7.0.15", "the version of the package, or a prefix of it: `7.0`"),
        Setting("binary", "debian", "`debian` (the package), or the path of a redis-server"),
        Setting(
            "port",
            "6379",
            "the port of the first node; each further node has the next port",
            read_positive,
        ),
        Setting("cluster", "no", "a Redis Cluster of all nodes (`yes`), or a primary with replicas (`no`)", read_truth),
        Setting(
            "min-replicas-to-write",
            "0",
            "the primary refuses writes while fewer replicas are connected and at most 10 s behind",
            read_whole_number,
        ),
        Setting(
            "password",
            "",
            "the password for AUTH; default: a random password on the hosts of a fleet, otherwise no password",
        ),
        Setting("appendonly", "no", "write a log of all writes: `yes` or `no`", read_truth),
        Setting("appendfsync", "everysec", "when the log is synced: `always`, `everysec` or `no`", read_appendfsync),
        Setting(
            "maxclients", "10100", "the maximum number of connections, each of which is an open file", read_positive
        ),
        Setting("maxmemory", "0", "the maximum memory in bytes, or with a unit: `2gb`; 0 means no limit"),
        Setting("maxmemory-policy", "noeviction", "what happens when `maxmemory` is reached: `allkeys-lru` …"),
        Setting("io-threads", "1", "the number of threads that write to connections", read_positive),
        tls.SETTING,
    )

    # Without a password, Redis serves everyone who can reach the host's address.
    secrets: ClassVar = ("password",)

    def check_plan(self, plan: SystemPlan) -> None:
        """Checks the number of nodes and of replicas. Raises SystemsError."""
        if is_cluster(plan) and plan.nodes < CLUSTER_MIN:
            raise SystemsError(
                f"redis with {units.count_noun(plan.nodes, 'node')} cannot have cluster={plan.settings['cluster']}",
                "use 3 to 9 nodes with cluster=yes; without a cluster, use one node, or a primary with replicas",
            )
        required, replicas = read_whole_number(plan, MIN_REPLICAS), 0 if is_cluster(plan) else plan.nodes - 1
        if required > replicas:
            raise SystemsError(
                f"{MIN_REPLICAS}={required}, but there {'is' if replicas == 1 else 'are'}"
                f" {units.count_noun(replicas, 'replica')}: every write would be refused",
                f"use {required + 1} nodes or more without a cluster, or a smaller number",
            )
        if plan.nodes > 1 and tls.is_requested(plan):
            raise SystemsError("tls cannot be combined with several nodes", "omit one of them")

    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        """Writes the redis.conf of each node. All nodes are in one stage, except the replicas of a primary."""
        texts = {node: render_configuration(place, plan, node) for node in range(1, plan.nodes + 1)}
        allow_connections(writable_nodes(plan) * read_whole_number(plan, "maxclients", 1))
        binary, variables = find_server(place, plan)
        if tls.is_requested(plan):
            tls.ensure_certificates(place, [server_address(plan, 1)])
        servers = []
        for node, text in texts.items():
            directory = place.data / server_name(plan, node)
            directory.mkdir(parents=True, exist_ok=True)
            path = directory / "redis.conf"
            # The file contains the password.
            lines.replace_file(path, text.encode(), 0o600)
            host = server_address(plan, node)
            bus = [(host, bus_port(plan, node))] if is_cluster(plan) else []
            argv, port = [binary, str(path)], client_port(plan, node)
            servers.append(
                Server(server_name(plan, node), argv, host, port, environment=variables, directory=directory, ports=bus)
            )
        if is_cluster(plan) or plan.nodes == 1:
            return [servers]
        return [servers[:1], servers[1:]]

    isolatable: ClassVar = True
    spreadable: ClassVar = True

    def node_directories(self, plan: SystemPlan) -> Sequence[str]:
        """A directory for each server."""
        return [server_name(plan, node) for node in range(1, plan.nodes + 1)]

    def plan_roles(self, plan: SystemPlan) -> Mapping[str, Sequence[str]]:
        """The primary; a single server counts as a primary, and a cluster has none."""
        return {} if is_cluster(plan) else {PRIMARY: [server_name(plan, 1)]}

    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """Checks that each of these nodes has loaded its data, answers PING, and accepts the configured number of
        clients, and that replicas have a copy of the primary's data."""
        names = [server.name for server in servers]
        for node in range(1, plan.nodes + 1):
            if server_name(plan, node) not in names:
                continue
            try:
                with connect_client(plan, node) as client:
                    client.send_command("PING")
                    allowed = client.send_command("CONFIG", "GET", "maxclients")
                missing = missing_copy(plan, node) if node > writable_nodes(plan) else None
            except (OSError, RedisError) as error:
                # The error LOADING means that the node is still reading its log.
                return f"{server_name(plan, node)} does not answer PING: {error}"
            if allowed != ["maxclients", plan.settings["maxclients"]]:
                return f"{server_name(plan, node)} accepts only {allowed} clients: too few open files"
            if missing is not None:
                return missing
        return form_cluster(plan) if is_cluster(plan) else None

    def find_backlog(self, place: Place, plan: SystemPlan) -> str | None:
        """The first reachable replica that has not caught up with the primary."""
        for node in range(writable_nodes(plan) + 1, plan.nodes + 1):
            with contextlib.suppress(OSError, RedisError):
                if missing := missing_copy(plan, node):
                    return missing
        return None

    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The properties with which a store connects, with the names that YCSB's binding uses."""
        properties = {"redis.host": server_address(plan, 1), "redis.port": plan.settings["port"]}
        if is_cluster(plan):
            properties["redis.cluster"] = "true"
        if tls.is_requested(plan):
            properties |= {"redis.tls": "true", "redis.tls.ca": tls.authority_path(place)}
        password = plan.settings["password"]
        return {**properties, "redis.password": password} if password else properties

    def client_environment(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The path of the matching redis-cli and redis-benchmark, and the variable with the password for both."""
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
        """The location and durability of the data, as the server reports them: a hook may have changed the settings."""
        try:
            with connect_client(plan) as client:
                settings = {name: read_setting(client, name) for name in RECORDED}
                role, replicas = (client.read_section("replication")[name] for name in ("role", "connected_slaves"))
        except (OSError, RedisError, KeyError) as error:
            return {"data_in": "memory", "durability_unknown": f"the settings of redis could not be read: {error}"}
        durability, how = write_durability(settings)
        rewrite = "no-appendfsync-on-rewrite"
        # The number of copies on servers that the lab started, connected or not.
        nodes = 1 if is_cluster(plan) else plan.nodes
        return {
            **{name: value for name, value in settings.items() if name not in (rewrite, MIN_REPLICAS)},
            rewrite.replace("-", "_"): settings[rewrite],
            "data_in": "memory",
            "durability": durability,
            "how": how,
            **({"replication": max(nodes, 1 + int(replicas))} if role == "master" else {}),
            "replication_acknowledged": 1,
            **({PRIMARY: PRIMARY, MIN_REPLICAS.replace("-", "_"): settings[MIN_REPLICAS]} if nodes > 1 else {}),
        }

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """The total number of keys, bytes of memory, connections and evicted keys on all nodes to which clients write,
        and the number of connected replicas and their largest lag."""
        figures: Counter[str] = Counter()
        try:
            for node in range(1, writable_nodes(plan) + 1):
                with connect_client(plan, node) as client:
                    keys = client.send_command("DBSIZE")
                    memory, clients, stats = (client.read_section(part) for part in ("memory", "clients", "stats"))
                figures["redis.keys"] += keys if isinstance(keys, int) else 0
                figures["redis.used_memory_bytes"] += int(memory["used_memory"])
                figures["redis.connections"] += int(clients["connected_clients"])
                figures["redis.evicted_keys"] += int(stats["evicted_keys"])
            if writable_nodes(plan) < plan.nodes:
                figures.update(read_replication(plan))
        except (OSError, RedisError):
            return {}
        return {figure: float(count) for figure, count in figures.items()}

    def create_table(
        self, place: Place, plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool
    ) -> bool:
        """Removes every key: Redis has no tables, and YCSB's index of keys is itself a key."""
        try:
            for node in range(1, writable_nodes(plan) + 1):
                with connect_client(plan, node, timeout_s=60.0) as client:
                    client.send_command("FLUSHDB")
        except (OSError, RedisError) as error:
            raise SystemsError(f"redis cannot be emptied: {error}", "see `loadstone systems status redis`") from error
        return True


def is_cluster(plan: SystemPlan) -> bool:
    """Whether the nodes form a cluster. Raises SystemsError for a value that is neither yes nor no."""
    # The plan of a system that an earlier version of Loadstone started may lack this setting.
    return "cluster" in plan.settings and read_truth(plan, "cluster")


def server_name(plan: SystemPlan, node: int) -> str:
    """The name of a node's server; nodes are numbered from 1."""
    if is_cluster(plan):
        return f"redis-{node}"
    return SERVER if plan.nodes == 1 else PRIMARY if node == 1 else f"replica-{node - 1}"


def client_port(plan: SystemPlan, node: int) -> int:
    """A node's port for clients."""
    return read_whole_number(plan, "port", 1) + node - 1


def bus_port(plan: SystemPlan, node: int) -> int:
    """A node's port for other nodes: 10,000 above the clients' port, as in Redis, or 10,000 below it if that would
    exceed 65535."""
    port = client_port(plan, node)
    return port + 10_000 if port <= PORT_MAX - 10_000 else port - 10_000


def form_cluster(plan: SystemPlan) -> str | None:
    """Introduces the nodes to each other and assigns any unassigned slots; returns the missing condition, or None."""
    reasons = []
    try:
        for node in range(1, plan.nodes + 1):
            with connect_client(plan, node) as client:
                state = client.send_command("CLUSTER", "INFO")
                assert isinstance(state, str)
                info = dict(line.split(":", 1) for line in state.splitlines() if ":" in line)
                nodes = client.send_command("CLUSTER", "NODES")
                assert isinstance(nodes, str)
                own = next(line for line in nodes.splitlines() if "myself" in line)
                # A line has eight fields, followed by the node's slots.
                if len(own.split()) == 8:
                    first, last = ((node - 1) * SLOTS // plan.nodes, node * SLOTS // plan.nodes - 1)
                    client.send_command("CLUSTER", "ADDSLOTSRANGE", str(first), str(last))
                if int(info["cluster_known_nodes"]) < plan.nodes:
                    for peer in range(1, plan.nodes + 1):
                        ports = (str(client_port(plan, peer)), str(bus_port(plan, peer)))
                        client.send_command("CLUSTER", "MEET", server_address(plan, peer), *ports)
                if info["cluster_state"] != "ok" or info["cluster_slots_assigned"] != str(SLOTS):
                    reasons.append(
                        f"{server_name(plan, node)} knows the owners of only {info['cluster_slots_assigned']} slots"
                    )
    except (OSError, RedisError) as error:
        return f"the cluster has not formed: {error}"
    return reasons[0] if reasons else None


def writable_nodes(plan: SystemPlan) -> int:
    """The number of nodes that accept writes; these nodes come first."""
    return plan.nodes if is_cluster(plan) else 1


def read_replication(plan: SystemPlan) -> dict[str, int]:
    """The number of connected replicas, and the number of log bytes not yet confirmed by the slowest of them.

    Replicas confirm once a second.
    """
    with connect_client(plan) as client:
        section = client.read_section("replication")
    # slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=0
    rows = [dict(part.split("=", 1) for part in text.split(",")) for name, text in section.items() if SLAVE.match(name)]
    offsets = [int(row["offset"]) for row in rows if row["state"] == "online"]
    lag = {"redis.replica_lag_bytes": int(section["master_repl_offset"]) - min(offsets)} if offsets else {}
    return {"redis.replicas": len(offsets), **lag}


def missing_copy(plan: SystemPlan, node: int) -> str | None:
    """None if a replica has a copy of the primary's data, and receives all changes; otherwise the missing condition.

    Raises OSError or RedisError.
    """
    with connect_client(plan, node) as client:
        is_linked = client.read_section("replication").get("master_link_status") == "up"
    return None if is_linked else f"{server_name(plan, node)} has not caught up with the primary"


def server_address(plan: SystemPlan, node: int) -> str:
    """The address of a node."""
    if plan.addresses:
        return plan.addresses[node - 1]
    return f"{plan.network}.{node}" if plan.network else HOST


def read_setting(client: RedisClient, name: str) -> str:
    """A setting of the running server. Raises RedisError, or KeyError if this version does not have it."""
    reply = client.send_command("CONFIG", "GET", name)
    if not isinstance(reply, list) or len(reply) != 2:
        raise KeyError(name)
    return str(reply[1])


def write_durability(settings: Mapping[str, str]) -> tuple[str, str]:
    """The guarantee of an acknowledged write, and its reason, as in crates/stores/src/redis/server.rs."""
    if settings["appendonly"] != "yes":
        return "none", "no append-only log: writes are in the server's memory"
    match settings["appendfsync"]:
        case "always" if settings["no-appendfsync-on-rewrite"] == "no":
            return "device", "append-only log, synced before each answer"
        case "always":
            return "os", "append-only log, synced before each answer except while it is rewritten"
        case "no":
            return "os", "append-only log, written before each answer, not synced"
    # While a sync is running, answered writes wait in the server's memory, for up to two seconds.
    return "interval", "append-only log, synced each second; during a sync, writes wait in the server's memory"


def connect_client(plan: SystemPlan, node: int = 1, timeout_s: float = 3.0) -> RedisClient:
    """A connection to a node. Raises OSError or RedisError."""
    host, port, password = server_address(plan, node), client_port(plan, node), plan.settings["password"]
    return RedisClient(host, port, password, timeout_s, encrypted=tls.is_requested(plan))


def find_server(place: Place, plan: SystemPlan) -> tuple[str, Mapping[str, str]]:
    """The server's program, and the environment that it needs to find its libraries. Raises SystemsError."""
    named = plan.settings["binary"]
    if named != "debian":
        executable = shutil.which(named)
        if executable is None:
            raise SystemsError(f"there is no program {named}", HINT)
        return str(Path(executable).absolute()), {}
    # The server is a link to a program in redis-tools. If installed, redis-tools would be skipped as a dependency.
    root = debian.unpack_packages([PROGRAM, "redis-tools"], plan.settings["version"], place.cache)
    binary = str(root / "usr/bin" / PROGRAM)
    variables = {"LD_LIBRARY_PATH": debian.library_path(root)}
    # Reports a missing library by its name here; otherwise, the server would merely not start.
    program.run_program([binary, "--version"], f"{binary} does not run", HINT, variables=variables)
    return binary, variables


def render_configuration(place: Place, plan: SystemPlan, node: int = 1) -> str:
    """The text of redis.conf. Raises SystemsError for an invalid setting."""
    settings = {
        "bind": server_address(plan, node),
        "port": str(client_port(plan, node)),
        "dir": quote_value(str(place.data / server_name(plan, node))),
        "daemonize": "no",
        "supervised": "no",
        "logfile": '""',
        # A process title would overwrite the environment that identifies the process.
        "set-proc-title": "no",
        # The fork for a snapshot would disturb the measurement.
        "save": '""',
        # The first copy for a replica starts immediately, instead of after 5 s.
        "repl-diskless-sync-delay": "0",
        "appendonly": "yes" if read_truth(plan, "appendonly") else "no",
        "appendfsync": read_appendfsync(plan),
        "maxclients": str(read_whole_number(plan, "maxclients", 1)),
        "maxmemory": quote_value(plan.settings["maxmemory"]),
        "maxmemory-policy": quote_value(plan.settings["maxmemory-policy"]),
        "io-threads": str(read_whole_number(plan, "io-threads", 1)),
        # Ten thousand clients may connect at the same time; the kernel limits the backlog to net.core.somaxconn.
        "tcp-backlog": "4096",
        "timeout": "0",
    }
    if plan.network:
        # Otherwise, a server without a password refuses clients outside its network namespace.
        settings["protected-mode"] = "no"
    if writable_nodes(plan) < plan.nodes:
        settings[MIN_REPLICAS] = plan.settings[MIN_REPLICAS]
    if node > writable_nodes(plan):
        settings["replicaof"] = f"{server_address(plan, 1)} {client_port(plan, 1)}"
    if is_cluster(plan):
        settings |= {"cluster-enabled": "yes", "cluster-port": str(bus_port(plan, node))}
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
        settings["requirepass"] = settings["masterauth"] = quote_value(password)
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def quote_value(text: str) -> str:
    """A value quoted for redis.conf."""
    plain = {byte: chr(byte) for byte in range(32, 127) if byte not in b'"\\'}
    return '"' + "".join(plain.get(byte, f"\\x{byte:02x}") for byte in text.encode()) + '"'


def allow_connections(connections: int) -> None:
    """Increases this process's limit on open files, so that the servers started next can have this many connections.

    Servers inherit the limit, and each connection is an open file. Raises SystemsError if the limit is too low.
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
            f"run `ulimit -Hn {needed}` as root first, or lower `maxclients` with --set",
        ) from error
