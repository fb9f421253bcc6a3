"""HBase: either a single JVM, or ZooKeeper, a master and region servers over HDFS."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from loadstone.systems.base import jvm
from loadstone.systems.base.plan import read_positive, read_whole_number
from loadstone.systems.base.system import Place, Server, Setting, System, SystemPlan, SystemsError
from loadstone.systems.hbase import file_system, site
from loadstone.systems.hbase.jars import server_class_path
from loadstone.systems.hbase.site import DISTRIBUTED, MASTER_HOST, STANDALONE, region_host
from loadstone.systems.hbase.tables import ADMINISTRATION, RegionServer, Tables
from loadstone.systems.hdfs import hadoop

MASTER, ZOOKEEPER = "master", "zookeeper"
ZOOKEEPER_HEAP = "128m"
# Packages that Java 17 closes, but that HBase 2.6 and its Netty access (HBase's launcher has the same list).
OPENED = [
    "--add-modules=jdk.unsupported",
    *jvm.open_packages("java.io java.lang java.lang.reflect java.nio java.util java.util.concurrent"),
    *jvm.open_packages("jdk.internal.ref sun.nio.ch"),
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
]


class HBase(System):
    """Apache HBase."""

    name = "hbase"
    title = "HBase 2.6: standalone, or distributed over HDFS"
    activities: ClassVar = {
        "flush": r"HRegion.*Flushing .*column families",
        "compaction": r"HStore.*Completed (major )?compaction",
    }
    nodes = tuple(range(1, 10))
    # The data may be on HDFS, and all instances would use the same HDFS.
    has_instances = False
    # The start may include the start of HDFS, and the servers wait for each other.
    deadline_s = 300.0
    settings = (
        Setting("version", "2.6.1-hadoop3", "the version of HBase"),
        Setting(
            "mode",
            "auto",
            f"{STANDALONE} (one node, on a local file system) or {DISTRIBUTED} (nodes are region"
            f" servers, over HDFS); auto: {STANDALONE} for one node",
        ),
        Setting("heap", "1g", "the heap size of each region server, or of the single JVM"),
        Setting("master.heap", "512m", "the heap size of the master"),
        Setting("hbase.rootdir", "", "URI of another directory for all of HBase's files"),
        Setting("hbase.wal.dir", "", "URI of another directory for write-ahead logs"),
        Setting("hbase.wal.provider", "asyncfs", "asyncfs or filesystem"),
        Setting("hbase.zookeeper.property.clientPort", "2181", "the port of ZooKeeper", read_positive),
        Setting("hbase.master.port", "16000", "the port of the master", read_positive),
        Setting(
            "hbase.regionserver.port", "16020", "the port of region servers, each on a separate address", read_positive
        ),
        Setting("hbase.master.info.port", "16010", "the port of the master for JMX and web pages", read_positive),
        Setting(
            "hbase.regionserver.info.port", "16030", "the port of region servers for JMX and web pages", read_positive
        ),
        Setting("hbase.*", "", "any other property of hbase-site.xml"),
        Setting("dfs.*", "", "any property of the HDFS client in HBase"),
    )

    def check_plan(self, plan: SystemPlan) -> None:
        """Checks that the mode fits the number of nodes. Raises SystemsError."""
        site.deployment_mode(plan)

    def server_stages(self, place: Place, plan: SystemPlan) -> Sequence[Sequence[Server]]:
        """ZooKeeper, then the master and all region servers together: neither is ready without the other."""
        below = file_system.file_system(place, plan)
        where = site.root_directories(place, plan, below)
        jars = server_class_path(self.server_version(plan))
        for number in range(plan.nodes + 1):
            site.write_configuration(
                conf_of(place, number), site.site_properties(place, plan, where, max(number, 1)), below
            )
        if site.deployment_mode(plan) == STANDALONE:
            return [[plan_server(place, plan, STANDALONE, jars)]]
        regions = [plan_server(place, plan, region_server(number), jars) for number in range(1, plan.nodes + 1)]
        return [[plan_server(place, plan, ZOOKEEPER, jars)], [plan_server(place, plan, MASTER, jars), *regions]]

    def missing_readiness(self, place: Place, plan: SystemPlan, servers: Sequence[Server]) -> str | None:
        """Checks that the master is active and has every region server, and that HBase's system tables can be read."""
        names = [server.name for server in servers]
        if ZOOKEEPER in names:
            return None if zookeeper_serves(zookeeper_port(plan)) else "ZooKeeper does not answer"
        if (missing := missing_by_jmx(plan, servers)) is not None:
            return missing
        # This is the last check, because it starts a JVM.
        try:
            serving = tables_of(place, plan).read_serving()
        except SystemsError as error:
            return str(error.args[0])
        if len(serving.servers) < plan.nodes:
            return f"{len(serving.servers)} of {plan.nodes} region servers are ready"
        return f"regions not open: {serving.waiting}" if serving.waiting else None

    def store_properties(self, place: Place, plan: SystemPlan) -> Mapping[str, str]:
        """The directory with the site files, for `-cp`; and ZooKeeper's address, for stores without a class path."""
        return {
            "hbase.conf": str(conf_of(place)),
            "hbase.zookeeper.quorum": MASTER_HOST,
            "hbase.zookeeper.property.clientPort": str(zookeeper_port(plan)),
        }

    def find_roles(self, place: Place, plan: SystemPlan) -> Mapping[str, Sequence[str]]:
        """`meta` is the region server with hbase:meta, which all clients need; other servers are `without-meta`."""
        names: dict[str, list[str]] = {"meta": [], "without-meta": []}
        for server in tables_of(place, plan).region_servers():
            names["meta" if server.tables.get("hbase:meta") else "without-meta"].append(name_of(plan, server))
        return names

    def data_directories(self, place: Place, plan: SystemPlan) -> Sequence[Path]:
        """The directories on local file systems; over HDFS, the data belongs to HDFS."""
        settings = hadoop.read_site(conf_of(place) / "hbase-site.xml")
        uris = dict.fromkeys([settings["hbase.rootdir"], settings["hbase.wal.dir"]])
        return [hadoop.local_path(uri) for uri in uris if site.is_local(uri)]

    def read_facts(self, place: Place, plan: SystemPlan) -> Mapping[str, str | int | float]:
        """The mode, the heap, and where HBase writes its log and its files, which determines the guarantee of a write.

        SYNC_WAL is an hflush and FSYNC_WAL an hsync; they differ on HDFS, but not on Hadoop's local file system.
        """
        settings = hadoop.read_site(conf_of(place) / "hbase-site.xml")
        return {
            "mode": site.deployment_mode(plan),
            "heap": plan.settings["heap"],
            "wal.provider": plan.settings["hbase.wal.provider"],
            "wal.dir": settings["hbase.wal.dir"],
            "wal.file_system": site.file_system(settings["hbase.wal.dir"]),
            "root.file_system": site.file_system(settings["hbase.rootdir"]),
            # The client sets each file's replication, and HDFS applies it.
            **(
                {"replication": int(copies)} if (copies := plan.settings.get("dfs.replication", "")).isdecimal() else {}
            ),
        }

    def read_figures(self, place: Place, plan: SystemPlan) -> Mapping[str, float]:
        """The number of regions by table and server, and the heap and memstores of each server."""
        try:
            servers = tables_of(place, plan).region_servers()
        except SystemsError:
            return {}
        figures: dict[str, float] = {}
        for server in servers:
            name = name_of(plan, server)
            heap, memstore = memory_bytes(plan, server)
            figures |= {
                f"{name}.regions": server.regions,
                f"{name}.heap_bytes": heap,
                f"{name}.memstore_bytes": memstore,
            }
            for table, count in server.tables.items():
                figures[f"{name}.regions.{table}"] = count
                figures[f"regions.{table}"] = figures.get(f"regions.{table}", 0) + count
        return figures

    def create_table(
        self, place: Place, plan: SystemPlan, table: str, options: Mapping[str, str], *, replace: bool
    ) -> bool:
        """Creates a table with the options `family` (required), `splits`, `compression` and `durability`."""
        tables = tables_of(place, plan)
        if not replace and tables.has_table(table):
            return False
        tables.create_table(table, options, recreate=replace)
        return True

    def is_reached(self, own: Mapping[str, str], properties: Mapping[str, str]) -> bool:
        """Whether a store uses this system's site files, or names its ZooKeeper."""
        if "hbase.conf" in properties:
            return Path(properties["hbase.conf"]).resolve() == Path(own["hbase.conf"])
        keys = ("hbase.zookeeper.quorum", "hbase.zookeeper.property.clientPort")
        return all(properties.get(key) == own[key] for key in keys)

    def table_options(
        self, store: str, properties: Mapping[str, str], work: Mapping[str, Any]
    ) -> Mapping[str, str] | None:
        """The store's column family."""
        family = properties.get("columnfamily")
        return {"family": family} if family else None

    def clear_outside(self, place: Place) -> None:
        """Removes files in directories that the user named, or in HDFS, and stops an HDFS that was started for this
        system."""
        # The helper uses the configuration that is removed next.
        ADMINISTRATION.end_program()
        file_system.clear_leftovers(place, conf_of(place))


def plan_server(place: Place, plan: SystemPlan, name: str, jars: Sequence[Path]) -> Server:
    """The definition of one server."""
    settings, number = plan.settings, number_of(name)
    zookeeper = (MASTER_HOST, zookeeper_port(plan))
    master = server_addresses(plan, MASTER_HOST, "hbase.master")
    region = server_addresses(plan, region_host(number), "hbase.regionserver")
    main, heap, ports = {
        ZOOKEEPER: ("zookeeper.HQuorumPeer", ZOOKEEPER_HEAP, [zookeeper]),
        MASTER: ("master.HMaster", settings["master.heap"], master),
        STANDALONE: ("master.HMaster", settings["heap"], [zookeeper, *master, *region]),
    }.get(name, ("regionserver.HRegionServer", settings["heap"], region))
    return jvm.jvm_server(
        place,
        name,
        ports,
        heap,
        [conf_of(place, number if name.startswith("region-server") else 0), *jars],
        f"org.apache.hadoop.hbase.{main}",
        options=[*OPENED, *(["-XX:+UseSerialGC"] if name == ZOOKEEPER else [])],
        properties={
            "java.net.preferIPv4Stack": "true",
            # ZooKeeper's admin server would listen on 0.0.0.0:8080.
            "zookeeper.admin.enableServer": "false",
            # HBase is slow without memory outside the heap.
            "org.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible": "true",
        },
        # In a single JVM, ZooKeeper stops before the other servers, which would retry its address for 20 s.
        arguments=[*(["-Dzookeeper.recovery.retry=1"] if name == STANDALONE else []), "start"],
    )


def zookeeper_port(plan: SystemPlan) -> int:
    """ZooKeeper's port for clients."""
    return read_whole_number(plan, "hbase.zookeeper.property.clientPort", 1)


def server_addresses(plan: SystemPlan, host: str, server: str) -> list[tuple[str, int]]:
    """The addresses of a server: one with the port for clients, and one with the port for JMX and web pages."""
    return [(host, read_whole_number(plan, f"{server}.{which}", 1)) for which in ("port", "info.port")]


def region_server(number: int) -> str:
    """The name of a region server."""
    return f"region-server-{number}"


def number_of(name: str) -> int:
    """The number of a region server; 1 for other servers."""
    return int(name.rpartition("-")[2]) if name.startswith("region-server-") else 1


def name_of(plan: SystemPlan, server: RegionServer) -> str:
    """Loadstone's name for a region server."""
    if site.deployment_mode(plan) == STANDALONE:
        return STANDALONE
    return region_server(int(server.name.split(",")[0].rpartition(".")[2]))


def conf_of(place: Place, number: int = 0) -> Path:
    """The directory with the site files of a region server; for 0, with the files of other servers and of clients."""
    return place.data / region_server(number) / "conf" if number else place.data / "conf"


def tables_of(place: Place, plan: SystemPlan) -> Tables:
    """The system's tables."""
    return Tables(conf_of(place), plan.settings["version"])


def zookeeper_serves(port: int) -> bool:
    """Whether ZooKeeper answers its four-letter word `srvr`."""
    try:
        with socket.create_connection((MASTER_HOST, port), timeout=2) as connection:
            connection.sendall(b"srvr")
            return connection.recv(64).startswith(b"Zookeeper version")
    except OSError:
        return False


def missing_by_jmx(plan: SystemPlan, servers: Sequence[Server]) -> str | None:
    """The missing condition according to the servers' beans, which are read without a JVM; None if all are ready."""
    port = read_whole_number(plan, "hbase.master.info.port", 1)
    master = hadoop.read_bean(MASTER_HOST, port, "Hadoop:service=HBase,name=Master,sub=Server")
    if master is None or master.get("tag.isActiveMaster") != "true":
        return "no master is active"
    if not master.get("masterFinishedInitializationTime"):
        return "the master is starting"
    live = [word for word in str(master.get("tag.liveRegionServers", "")).split(";") if word]
    if len(live) < plan.nodes:
        return f"{len(live)} of {plan.nodes} region servers have registered"
    for server in (member for member in servers if member.name != MASTER):
        # The master still counts a server that was just killed as live, so this very process must be listed as live.
        bean = region_bean(plan, region_host(number_of(server.name)))
        if bean is None or bean.get("tag.serverName") not in live:
            return f"{server.name} has not registered"
    return None


def region_bean(plan: SystemPlan, host: str) -> Mapping[str, Any] | None:
    """A region server's bean about itself."""
    port = read_whole_number(plan, "hbase.regionserver.info.port", 1)
    return hadoop.read_bean(host, port, "Hadoop:service=HBase,name=RegionServer,sub=Server")


def memory_bytes(plan: SystemPlan, server: RegionServer) -> tuple[int, int]:
    """The sizes of heap and memstores, in bytes, from the server's beans: other sources state only megabytes."""
    host = server.name.split(",")[0]
    bean = region_bean(plan, host) or {}
    heap = hadoop.heap_bytes(host, read_whole_number(plan, "hbase.regionserver.info.port", 1))
    return server.heap_bytes if heap is None else heap, int(bean.get("memStoreSize", server.memstore_bytes))
