"""Cassandra, with up to nine nodes, each on a separate address."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from loadstone.format import units
from loadstone.observe.server_usage import file_size
from loadstone.systems.base import tls
from loadstone.systems.base.jvm import live_heap_bytes
from loadstone.systems.base.system import NOWHERE, Place, Server, Setting, System, SystemPlan
from loadstone.systems.cassandra import tables
from loadstone.systems.cassandra.cql import RefusedError, UnreachableError
from loadstone.systems.cassandra.node import (
    heap_size,
    node_host,
    node_settings,
    port_setting,
    prepare_node,
    read_sync,
    server_name,
)
from loadstone.systems.cassandra.ring import (
    SINGLE_ANSWER_S,
    connect_node,
    login_credentials,
    missing_readiness,
    nodes_up,
    read_views,
)

SETTINGS = "SELECT name, value FROM system_views.settings"
KEYSPACES = "SELECT keyspace_name, durable_writes FROM system_schema.keyspaces"
# The setting with the sync period, for each way of syncing the commit log.
PERIOD_SETTINGS = {"periodic": "commitlog_sync_period", "group": "commitlog_sync_group_window"}
# A node deletes a file of hints after they have been delivered.
HINTS = "SELECT files FROM system_views.pending_hints"
POOLS = "SELECT pending_tasks, blocked_tasks_all_time FROM system_views.thread_pools"
POOL_FIGURES = {"tasks_pending": "pending_tasks", "tasks_blocked_total": "blocked_tasks_all_time"}
# Logged every 5 s by MessagingMetrics.
DROPPED = re.compile(r"messages were dropped in last \d+ ms: (\d+) internal and (\d+) cross node")
COMPACTIONS = "SELECT active_tasks, pending_tasks FROM system_views.thread_pools WHERE name = 'CompactionExecutor'"


class Cassandra(System):
    """Apache Cassandra 5.0, 4.1 or 4.0; all nodes start at the same time and are seeds."""

    name = "cassandra"
    title = "Apache Cassandra, 1 to 9 nodes"
    # Activities on the user's tables; the node's own tables are small.
    activities: ClassVar = {
        "flush": r"ColumnFamilyStore.*Enqueuing flush of (?!system(_\w+)?\.)",
        "compaction": r"CompactionTask.*Compacting \(\S+\) \[(?!\S*/data/system(_\w+)?/)",
    }
    nodes = range(1, 10)
    # Hints remain in memory, where no table shows them, for `hints_flush_period`, which is 10 s.
    unseen_s = 11.0
    # Starting three nodes at the same time takes two otherwise idle processors half a minute.
    deadline_s = 300.0
    settings = (
        Setting("version", "5.0.9", "a release of 5.0, 4.1 or 4.0 on Maven Central"),
        Setting("heap", "1G", "the heap size of each node", heap_size),
        Setting("port", "9042", "the port for clients, on each node's address", port_setting),
        Setting("storage_port", "7000", "the port for other nodes, on each node's address", port_setting),
        Setting("jmx_port", "7190", "the base of the JMX ports on 127.0.0.1; each node adds its number", port_setting),
        Setting("commitlog_sync", "periodic", "`periodic`, `batch` or `group`", read_sync),
        Setting(
            "commitlog_sync_period",
            "",
            "the period of `periodic`, 10000ms by default, or the window of `group`, 1000ms",
        ),
        Setting(
            "authenticator",
            "AllowAllAuthenticator",
            "or `PasswordAuthenticator`: user and password are then `cassandra`",
        ),
        Setting("authorizer", "AllowAllAuthorizer", "or `CassandraAuthorizer`"),
        Setting("read_request_timeout", "5000ms", "a coordinator's time limit for reads from replicas"),
        Setting("write_request_timeout", "2000ms", "a coordinator's time limit for writes to replicas"),
        tls.SETTING,
        Setting("yaml.*", "", "other settings of cassandra.yaml: `yaml.concurrent_writes=64`"),
    )

    def check_plan(self, plan: SystemPlan) -> None:
        """Checks the settings in cassandra.yaml. Raises SystemsError."""
        node_settings(NOWHERE, plan, 1)

    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        """All nodes in one stage: a node restarted alone on its existing data would wait for the other nodes."""
        return [[prepare_node(place, plan, node) for node in range(1, plan.nodes + 1)]]

    isolatable: ClassVar = True
    spreadable: ClassVar = True

    def node_directories(self, plan: SystemPlan) -> Sequence[str]:
        """A directory for each node."""
        return [server_name(node) for node in range(1, plan.nodes + 1)]

    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """Checks that all nodes have the state UN of `nodetool status`, as seen from each node."""
        names = {server.name for server in servers}
        return missing_readiness(plan, [node for node in range(1, plan.nodes + 1) if server_name(node) in names])

    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The properties with which a store connects, with the names that YCSB's binding uses."""
        properties = {
            "hosts": ",".join(node_host(plan, node) for node in range(1, plan.nodes + 1)),
            "port": str(port_setting(plan, "port")),
        }
        if tls.is_requested(plan):
            properties |= {"cassandra.useSSL": "true", "cassandra.tls.ca": tls.authority_path(place)}
        if login := login_credentials(plan):
            properties["cassandra.username"], properties["cassandra.password"] = login
        return properties

    def read_facts(self, place: Place, plan: SystemPlan) -> Mapping[str, str | int | float]:
        """The heap size, and the durability of acknowledged writes as a node reports it.

        `device` means that no write is lost. `interval` means that a node may lose its latest writes: it replays its
        log up to the last marker, and a periodically synced log has a marker every 100 ms at best (CASSANDRA-13987).
        """
        facts: dict[str, str | int | float] = {"heap": plan.settings["heap"]}
        try:
            with tables.connect_first(plan) as cql:
                settings = {str(row["name"]): str(row["value"] or "") for row in cql.run_query(SETTINGS)}
                keyspaces = [
                    row for row in cql.run_query(KEYSPACES) if not str(row["keyspace_name"]).startswith("system")
                ]
        except (UnreachableError, RefusedError) as error:
            return {**facts, "durability_unknown": f"the settings of cassandra could not be read: {error}"}
        sync = settings.get("commitlog_sync", "")
        period = PERIOD_SETTINGS.get(sync, "")
        # 4.0 uses the old names, and states milliseconds without the unit.
        old = settings.get(f"{period}_in_ms", "").removesuffix(".0")
        facts |= {"commitlog_sync": sync, "commitlog_sync_period": settings.get(period) or (f"{old}ms" if old else "")}
        facts["commitlog_format"] = find_log_format(settings)
        logged = all(row["durable_writes"] for row in keyspaces)
        facts["durability"] = "none" if not logged else "device" if sync in ("batch", "group") else "interval"
        facts["how"] = f"commitlog_sync={sync}" if logged else "a keyspace has durable_writes=false"
        return facts

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """The state of the ring, and, for each node, the size of its data, its heap after the last collection, and its
        compactions.

        `load_bytes` is the current size on disk; the load that nodetool shows is up to a minute old.
        """
        nodes, _ = read_views(plan, SINGLE_ANSWER_S)
        up = nodes_up(plan, nodes)
        # The figures of all hosts are added up, so only one host counts the nodes.
        ring = {"ring.nodes_up": up, "ring.nodes_down": plan.nodes - up}
        figures: dict[str, float] = {**ring} if 1 in plan.local_nodes else {}
        for node in plan.local_nodes:
            figures[f"{server_name(node)}.up"] = int(node in nodes)
            figures[f"{server_name(node)}.load_bytes"] = directory_bytes(place.data / server_name(node) / "data")
            live = live_heap_bytes(place.logs / f"{server_name(node)}.gc.log")
            if node in nodes and live is not None:
                figures[f"{server_name(node)}.live_heap_bytes"] = live
            if node in nodes:
                figures |= {
                    f"{server_name(node)}.{figure}": count for figure, count in count_compactions(plan, node).items()
                }
            for figure, count in read_pressure(place, plan, node, reachable=node in nodes).items():
                figures[f"ring.{figure}"] = figures.get(f"ring.{figure}", 0) + count
        return figures

    def find_backlog(self, place: Place, plan: SystemPlan) -> str | None:
        """The hints that a reachable node keeps for other nodes, or its unfinished compactions."""
        reachable, _ = read_views(plan, SINGLE_ANSWER_S)
        for node in reachable:
            try:
                with connect_node(plan, node, SINGLE_ANSWER_S) as cql:
                    if hints := sum(int(str(row["files"])) for row in cql.run_query(HINTS)):
                        return f"{server_name(node)} has {units.count_noun(hints, 'file')} of hints for other nodes"
            except UnreachableError as error:
                return str(error.args[0])
            except RefusedError as error:
                # Versions before 4.1 do not have the table of hints.
                return f"the hints of {server_name(node)} are unknown: {error.args[0]}"
            if tasks := sum(count_compactions(plan, node).values()):
                return f"{server_name(node)} has {units.count_noun(tasks, 'unfinished compaction')}"
        return None

    def create_table(
        self, place: Place, plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool
    ) -> bool:
        """Creates the keyspace and the table of YCSB's binding."""
        return tables.create_table(plan, table, options, replace=replace)

    def is_reached(self, own: Mapping[str, str], properties: Mapping[str, str]) -> bool:
        """Whether each of a store's contact points is a node of this cluster; `localhost` is the first node."""
        contact_points = [host.strip() for host in properties.get("hosts", "").split(",")]
        nodes = own["hosts"].split(",")
        hosts = {nodes[0] if contact == "localhost" else contact for contact in contact_points}
        return hosts <= {*nodes} and properties.get("port", "9042") == own["port"]

    def table_options(
        self, store: str, properties: Mapping[str, str], work: Mapping[str, Any]
    ) -> Mapping[str, str] | None:
        """The store's keyspace, and the number and names of its fields."""
        return {
            "keyspace": properties.get("cassandra.keyspace", "ycsb"),
            "fieldcount": str(work.get("field_count", 10)),
            "fieldnameprefix": str(work.get("field_name_prefix", "field")),
        }


def read_pressure(place: Place, plan: SystemPlan, node: int, *, reachable: bool) -> Mapping[str, float]:
    """Signs of overload on a node: messages dropped and tasks blocked since its start, and pending tasks and hints."""
    dropped = 0
    with suppress(OSError), (place.logs / f"{server_name(node)}.log").open(errors="replace") as log:
        dropped = sum(int(match[1]) + int(match[2]) for line in log if (match := DROPPED.search(line)))
    pressure = {"messages_dropped_total": float(dropped)}
    if not reachable:
        return pressure
    with suppress(UnreachableError, RefusedError), connect_node(plan, node, SINGLE_ANSWER_S) as cql:
        for row in cql.run_query(POOLS):
            for figure, column in POOL_FIGURES.items():
                pressure[figure] = pressure.get(figure, 0) + int(str(row[column]))
        # Versions before 4.1 do not have the table of hints.
        pressure["hint_files"] = sum(int(str(row["files"])) for row in cql.run_query(HINTS))
    return pressure


def count_compactions(plan: SystemPlan, node: int) -> Mapping[str, int]:
    """The number of running and of waiting compactions on a node; empty if the node does not report them."""
    try:
        with connect_node(plan, node, SINGLE_ANSWER_S) as cql:
            rows = cql.run_query(COMPACTIONS)
    except (UnreachableError, RefusedError):
        return {}
    return {
        f"compactions_{key.removesuffix('_tasks')}": count
        for row in rows
        for key, count in row.items()
        if isinstance(count, int)
    }


def directory_bytes(directory: Path) -> int:
    """The size of all files below a directory, which may change while it is read."""
    return sum(file_size(Path(where, file)) for where, _, files in os.walk(directory) for file in files)


def find_log_format(settings: Mapping[str, str]) -> str:
    """How nodes write the commit log.

    After a kill, a mapped log lacks at most its last 100 ms; any other log may lack everything since its last sync.
    """
    # 4.0 joins the names of nested settings with `_`, and later versions with `.`.
    values = {name.replace(".", "_"): value for name, value in settings.items()}
    if any(value not in ("", "null") for name, value in values.items() if name.startswith("commitlog_compression")):
        return "compressed"
    if values.get("transparent_data_encryption_options_enabled") == "true":
        return "encrypted"
    # `auto` chooses direct I/O if the file system supports it.
    return "direct I/O" if values.get("commitlog_disk_access_mode") in ("direct", "auto") else "mapped"
